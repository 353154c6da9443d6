//===- GgufConfigTest.cpp - GGUF metadata, sound and hostile --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufConfig.h"

#include "ConfigTesting.h"
#include "runtime/model/GgufOddities.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/model/TensorList.h"
#include "test/runtime/model/GgufTesting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

using namespace kf;
using namespace kf::test;

namespace {

//===----------------------------------------------------------------------===//
// Sound files
//===----------------------------------------------------------------------===//

TEST(GgufConfig, OtherFamilies) {
  auto smol = least("smollm3").u32("smollm3.block_count", 5).config();
  ASSERT_TRUE(smol.ok()) << smol.message();
  std::vector<bool> turned;
  for (const LayerConfig &layer : smol->layerConfigs)
    turned.push_back(layer.rope.has_value());
  EXPECT_EQ(turned, (std::vector<bool>{true, true, true, false, true}));
  EXPECT_TRUE(smol->layerConfigs[0].rope->interleaved);
  auto olmo = least("olmo2").config();
  ASSERT_TRUE(olmo.ok()) << olmo.message();
  EXPECT_EQ(olmo->normPlaces, NormPlaces::Outputs);
  EXPECT_EQ(olmo->qkNorm, QkNorm::Width);
  EXPECT_FALSE(olmo->commonRope()->interleaved);
  // LLaMA 3's factors, in a model of which some layers are turned.
  auto factors = least("smollm3")
                     .u32("smollm3.block_count", 5)
                     .tensor("rope_freqs.weight", {8})
                     .config();
  ASSERT_TRUE(factors.ok()) << factors.message();
  EXPECT_EQ(listTensors(*factors).end()[-1].name, "rope_freqs.weight");
  auto star = least("starcoder2").config();
  ASSERT_TRUE(star.ok()) << star.message();
  EXPECT_EQ(star->norm, Norm::Layer);
  EXPECT_TRUE(star->normBias);
  EXPECT_FALSE(star->gatedMlp);
  EXPECT_EQ(star->activation, Activation::GeluTanh);
}

TEST(GgufConfig, GraniteScales) {
  auto plain = least("granite").config();
  ASSERT_TRUE(plain.ok()) << plain.message();
  EXPECT_EQ(plain->architecture, Architecture::Granite);
  EXPECT_TRUE(plain->commonRope()->interleaved);
  EXPECT_EQ(plain->attentionScale, 0.25);
  EXPECT_EQ(plain->embeddingScale, 1);
  EXPECT_EQ(plain->logitScale, 1);
  auto scaled = least("granite")
                    .f32("granite.attention.scale", 0.5F)
                    .f32("granite.embedding_scale", 12)
                    .f32("granite.residual_scale", 0.25F)
                    .f32("granite.logit_scale", 8)
                    .config();
  ASSERT_TRUE(scaled.ok()) << scaled.message();
  EXPECT_EQ(scaled->attentionScale, 0.5);
  EXPECT_EQ(scaled->embeddingScale, 12);
  EXPECT_EQ(scaled->residualScale, 0.25);
  EXPECT_EQ(scaled->logitScale, 0.125);
  for (const char *key : {"granite.attention.scale", "granite.embedding_scale",
                          "granite.residual_scale", "granite.logit_scale"}) {
    for (float value : {-1.0F, INFINITY, NAN, 1e-40F})
      expectContains(least("granite").f32(key, value).error(),
                     "metadata '" + std::string(key) + "' is ");
    expectContains(least("granite").text(key, "1").error(), key);
  }
  // 0 is as none, and other architectures have none of them.
  EXPECT_EQ(least("granite").f32("granite.logit_scale", 0).config()->logitScale,
            1);
  expectContains(least().f32("llama.embedding_scale", 12).error(),
                 "changes the arithmetic in a way that is not supported");
  expectContains(least().f32("llama.attention.scale", 1).error(), "not known");
}

/// The least that a model with 6 experts says, of which rows choose 2.
FileOf leastExperts(const std::string &architecture) {
  return least(architecture)
      .u32(architecture + ".expert_count", 6)
      .u32(architecture + ".expert_used_count", 2);
}

TEST(GgufConfig, Experts) {
  for (auto [name, architecture, width, shared, normalized, interleaved] :
       {std::tuple("llama", Architecture::Mixtral, 96, 0, true, true),
        std::tuple("granitemoe", Architecture::GraniteMoe, 96, 0, true, true),
        std::tuple("olmoe", Architecture::Olmoe, 96, 0, false, false),
        // What a row goes through is as wide as other models' block.
        std::tuple("qwen2moe", Architecture::Qwen2Moe, 48, 96, false, false),
        std::tuple("qwen3moe", Architecture::Qwen3Moe, 48, 0, true, false)}) {
    SCOPED_TRACE(name);
    auto config = leastExperts(name).config();
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(config->architecture, architecture);
    EXPECT_EQ(config->experts.count, 6);
    EXPECT_EQ(config->experts.chosen, 2);
    EXPECT_EQ(config->experts.width, width);
    EXPECT_EQ(config->experts.sharedWidth, shared);
    EXPECT_EQ(config->experts.sharedGate, shared > 0);
    EXPECT_EQ(config->experts.normalized, normalized);
    EXPECT_EQ(config->commonRope()->interleaved, interleaved);
    for (int64_t i = 0; i < config->layers; ++i)
      EXPECT_TRUE(config->hasExperts(i));
  }
  auto qwen = leastExperts("qwen2moe")
                  .u32("qwen2moe.expert_feed_forward_length", 40)
                  .u32("qwen2moe.expert_shared_feed_forward_length", 56)
                  .config();
  ASSERT_TRUE(qwen.ok()) << qwen.message();
  EXPECT_EQ(qwen->experts.width, 40);
  EXPECT_EQ(qwen->experts.sharedWidth, 56);
  EXPECT_EQ(qwen->intermediateSize, 96);
  auto granite = leastExperts("granitemoe")
                     .f32("granitemoe.residual_scale", 0.25F)
                     .f32("granitemoe.logit_scale", 8)
                     .config();
  ASSERT_TRUE(granite.ok()) << granite.message();
  EXPECT_EQ(granite->residualScale, 0.25);
  EXPECT_EQ(granite->logitScale, 0.125);
  EXPECT_EQ(leastExperts("olmoe").config()->qkNorm, QkNorm::Width);
  EXPECT_EQ(leastExperts("qwen3moe").config()->qkNorm, QkNorm::Heads);
  // The same number in each layer, and what says of no other arithmetic.
  EXPECT_EQ(leastExperts("qwen3moe")
                .i32s("qwen3moe.expert_used_count", {3, 3})
                .u32("qwen3moe.expert_gating_func", 1)
                .u32("qwen3moe.expert_shared_feed_forward_length", 0)
                .config()
                ->experts.chosen,
            3);
  auto dense = least()
                   .u32("llama.expert_count", 0)
                   .u32("llama.expert_used_count", 0)
                   .config();
  ASSERT_TRUE(dense.ok()) << dense.message();
  EXPECT_EQ(dense->architecture, Architecture::Llama);
  EXPECT_FALSE(dense->hasExperts(0));
}

/// The least that files of gpt-oss say.
FileOf leastGptOss() {
  return leastExperts("gpt-oss")
      .u32("gpt-oss.expert_feed_forward_length", 48)
      .u32("gpt-oss.attention.sliding_window", 8);
}

TEST(GgufConfig, GptOss) {
  auto config = leastGptOss()
                    .u32("gpt-oss.block_count", 3)
                    .text("gpt-oss.rope.scaling.type", "yarn")
                    .f32("gpt-oss.rope.scaling.factor", 32)
                    .u32("gpt-oss.rope.scaling.original_context_length", 16)
                    .config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->architecture, Architecture::GptOss);
  EXPECT_TRUE(config->attentionSinks);
  EXPECT_EQ(config->normPlaces, NormPlaces::Inputs);
  EXPECT_EQ(config->experts.width, 48);
  EXPECT_TRUE(config->experts.bias);
  EXPECT_TRUE(config->experts.normalized);
  EXPECT_EQ(config->experts.clamp, (GateClamp{.limit = 7, .alpha = 1.702}));
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 0, 8}));
  for (const LayerConfig &layer : config->layerConfigs) {
    EXPECT_EQ(layer.rope->scaling, RopeConfig::Scaling::Yarn);
    EXPECT_FALSE(layer.rope->truncate);
    EXPECT_FALSE(layer.rope->interleaved);
  }
  EXPECT_EQ(leastGptOss()
                .u32("gpt-oss.attention.sliding_window_pattern", 1)
                .config()
                ->windows(),
            (std::vector<int64_t>{0, 0}));
  EXPECT_FALSE(least("olmoe")
                   .u32("olmoe.expert_count", 6)
                   .u32("olmoe.expert_used_count", 2)
                   .config()
                   ->experts.clamp);
  for (const char *key :
       {"gpt-oss.expert_feed_forward_length",
        "gpt-oss.attention.sliding_window", "gpt-oss.expert_count"})
    EXPECT_EQ(leastGptOss().without(key).error(),
              "test: there is no metadata '" + std::string(key) + "'");
  expectContains(leastGptOss().f32("gpt-oss.swiglu_clamp_exp", 2).error(),
                 "metadata 'gpt-oss.swiglu_clamp_exp' is not known");
}

TEST(GgufConfig, ExpertsThatCannotBe) {
  EXPECT_EQ(least("olmoe").error(),
            "test: there is no metadata 'olmoe.expert_count'");
  EXPECT_EQ(least().u32("llama.expert_count", 8).error(),
            "test: there is no metadata 'llama.expert_used_count'");
  EXPECT_EQ(least().u32("llama.expert_used_count", 2).error(),
            "test: metadata 'llama.expert_used_count' is 2, but "
            "'llama.expert_count' says of no experts");
  EXPECT_EQ(leastExperts("olmoe").u32("olmoe.expert_count", 0).error(),
            "test: metadata 'olmoe.expert_count' is 0, but a number from 1 to "
            "4096 is expected");
  EXPECT_EQ(leastExperts("llama").u32("llama.expert_count", 4000000000).error(),
            "test: metadata 'llama.expert_count' is 4000000000, but a number "
            "from 1 to 4096 is expected");
  EXPECT_EQ(leastExperts("olmoe")
                .u32("olmoe.expert_count", 4096)
                .u32("olmoe.block_count", 17)
                .error(),
            "test: metadata 'olmoe.expert_count' is 4096 in each of 17 layers; "
            "at most 65536 experts are possible");
  EXPECT_EQ(leastExperts("olmoe").u32("olmoe.expert_used_count", 7).error(),
            "test: metadata 'olmoe.expert_count' is 6, but "
            "'olmoe.expert_used_count' is 7");
  EXPECT_EQ(leastExperts("olmoe").u32("olmoe.expert_used_count", 0).error(),
            "test: metadata 'olmoe.expert_used_count' is 0, but a number from "
            "1 to 4096 is expected");
  EXPECT_EQ(
      leastExperts("olmoe").i32s("olmoe.expert_used_count", {2, 1}).error(),
      "test: metadata 'olmoe.expert_used_count' differs between layers (2 and "
      "1), which is not supported");
  EXPECT_EQ(
      leastExperts("qwen3moe").u32("qwen3moe.feed_forward_length", 1).error(),
      "test: there is no metadata "
      "'qwen3moe.expert_feed_forward_length'");
  EXPECT_EQ(leastExperts("qwen2moe")
                .u32("qwen2moe.expert_shared_feed_forward_length", 0)
                .error(),
            "test: metadata 'qwen2moe.expert_shared_feed_forward_length' is 0, "
            "but a number from 1 to 16777216 is expected");
  for (const char *key :
       {"expert_gating_func", "expert_group_count", "expert_group_used_count",
        "expert_shared_feed_forward_length"})
    EXPECT_EQ(leastExperts("granitemoe")
                  .u32("granitemoe." + std::string(key), 2)
                  .error(),
              "test: metadata 'granitemoe." + std::string(key) +
                  "' is 2, which changes the arithmetic in a way that is not "
                  "supported");
  expectContains(
      leastExperts("olmoe").u32("olmoe.expert_feed_forward_length", 32).error(),
      "not known");
}

/// `windows()` of five layers of the file.
std::vector<int64_t> windowsOf(FileOf file) {
  auto config = file.u32(file.architecture + ".block_count", 5).config();
  EXPECT_TRUE(config.ok()) << config.message();
  return config.ok() ? config->windows() : std::vector<int64_t>();
}

TEST(GgufConfig, WindowsOfSomeLayers) {
  using Windows = std::vector<int64_t>;
  const std::string window = ".attention.sliding_window";
  const std::string pattern = ".attention.sliding_window_pattern";
  EXPECT_EQ(windowsOf(least("gemma2")), (Windows{4096, 0, 4096, 0, 4096}));
  EXPECT_EQ(windowsOf(least("gemma2").u32("gemma2" + window, 8)),
            (Windows{8, 0, 8, 0, 8}));
  EXPECT_EQ(windowsOf(least("gemma3")), (Windows{0, 0, 0, 0, 0}));
  EXPECT_EQ(windowsOf(least("gemma3").u32("gemma3" + window, 8)),
            (Windows{8, 8, 8, 8, 8}));
  const FileOf olmo = least("olmo2").u32("olmo2" + window, 8);
  EXPECT_EQ(windowsOf(olmo), (Windows{8, 8, 8, 0, 8}));
  EXPECT_EQ(FileOf(olmo).config()->architecture, Architecture::Olmo3);
  EXPECT_EQ(least("olmo2").config()->architecture, Architecture::Olmo2);
  EXPECT_EQ(windowsOf(FileOf(olmo).u32("olmo2" + pattern, 2)),
            (Windows{8, 0, 8, 0, 8}));
  EXPECT_EQ(windowsOf(FileOf(olmo).flags("olmo2" + pattern,
                                         {false, true, true, false, true})),
            (Windows{0, 8, 8, 0, 8}));
  EXPECT_EQ(windowsOf(FileOf(olmo).i32s("olmo2" + pattern, {1, 0, 0, 0, 1})),
            (Windows{8, 0, 0, 0, 8}));
  EXPECT_EQ(FileOf(olmo).flags("olmo2" + pattern, {true}).error(),
            "test: metadata 'olmo2.attention.sliding_window_pattern' is an "
            "array of 1 values for 2 layers");
  EXPECT_EQ(FileOf(olmo).i32s("olmo2" + pattern, {1, 2}).error(),
            "test: metadata 'olmo2.attention.sliding_window_pattern' is an "
            "array of i32 with another value for layer 1 than true or false");
  EXPECT_EQ(FileOf(olmo).u32("olmo2" + pattern, 0).error(),
            "test: metadata 'olmo2.attention.sliding_window_pattern' is 0, but "
            "a number from 1 to 1024 is expected");
  expectContains(least().u32("llama" + pattern, 4).error(), "not known");
  // Others' windows are all layers'.
  EXPECT_EQ(windowsOf(least("phi3").u32("phi3" + window, 8)),
            (Windows{8, 8, 8, 8, 8}));
}

TEST(GgufConfig, Gemma) {
  auto gemma = least("gemma2").config();
  ASSERT_TRUE(gemma.ok()) << gemma.message();
  EXPECT_EQ(gemma->normPlaces, NormPlaces::Both);
  EXPECT_FALSE(gemma->zeroCenteredNorms);
  EXPECT_EQ(gemma->embeddingScale, 8);
  EXPECT_EQ(gemma->activation, Activation::GeluTanh);
  EXPECT_EQ(gemma->attentionCap, 50);
  EXPECT_EQ(gemma->logitCap, 30);
  EXPECT_EQ(gemma->attentionScale, 0.25);
  EXPECT_EQ(*gemma->commonRope(), RopeConfig(*gemma->layerConfigs[0].rope));
  auto capped = least("gemma2")
                    .f32("gemma2.attn_logit_softcapping", 2)
                    .f32("gemma2.final_logit_softcapping", 4)
                    .f32("gemma2.attention.scale", 0.5F)
                    .config();
  ASSERT_TRUE(capped.ok()) << capped.message();
  EXPECT_EQ(capped->attentionCap, 2);
  EXPECT_EQ(capped->logitCap, 4);
  EXPECT_EQ(capped->attentionScale, 0.5);
  EXPECT_EQ(
      least("gemma2").f32("gemma2.attn_logit_softcapping", 0).error(),
      "test: metadata 'gemma2.attn_logit_softcapping' is 0, but a number from "
      "0.001 to 1e+06 is expected");
  // The largest ones have a scale of their own.
  EXPECT_FLOAT_EQ(float(least("gemma2")
                            .u32("gemma2.block_count", 46)
                            .u32("gemma2.attention.key_length", 32)
                            .config()
                            ->attentionScale),
                  0.25F);

  FileOf file = least("gemma3")
                    .u32("gemma3.attention.sliding_window", 8)
                    .u32("gemma3.attention.sliding_window_pattern", 2)
                    .f32("gemma3.rope.freq_base", 1e6F)
                    .text("gemma3.rope.scaling.type", "linear")
                    .f32("gemma3.rope.scaling.factor", 8);
  auto third = file.config();
  ASSERT_TRUE(third.ok()) << third.message();
  EXPECT_EQ(third->qkNorm, QkNorm::Heads);
  EXPECT_EQ(third->attentionCap, 0);
  EXPECT_EQ(third->logitCap, 0);
  EXPECT_EQ(third->layerConfigs[0].rope->theta, 10000);
  EXPECT_EQ(third->layerConfigs[0].rope->scaling, RopeConfig::Scaling::None);
  EXPECT_EQ(third->layerConfigs[1].rope->theta, 1e6);
  EXPECT_EQ(third->layerConfigs[1].rope->factor, 8);
  EXPECT_EQ(file.f32("gemma3.rope.freq_base_swa", 500)
                .config()
                ->layerConfigs[0]
                .rope->theta,
            500);
  EXPECT_EQ(file.f32("gemma3.rope.freq_base_swa", 0.5F).error(),
            "test: metadata 'gemma3.rope.freq_base_swa' is 0.5, but a number "
            "from 1 to 1e+18 is expected");
  EXPECT_EQ(least("gemma3")
                .f32("gemma3.final_logit_softcapping", 30)
                .config()
                ->logitCap,
            30);
  expectContains(
      least("gemma3").f32("gemma3.attn_logit_softcapping", 5).error(),
      "changes the arithmetic in a way that is not supported");
}

TEST(GgufConfig, Cohere) {
  auto cohere = least("command-r").f32("command-r.logit_scale", 0.25F).config();
  ASSERT_TRUE(cohere.ok()) << cohere.message();
  EXPECT_EQ(cohere->norm, Norm::Layer);
  EXPECT_FALSE(cohere->normBias);
  EXPECT_TRUE(cohere->parallelBlocks);
  EXPECT_TRUE(cohere->commonRope()->interleaved);
  EXPECT_EQ(cohere->logitScale, 0.25);
  FileOf file = least("cohere2")
                    .f32("cohere2.logit_scale", 0.25F)
                    .u32("cohere2.attention.sliding_window", 8)
                    .u32("cohere2.attention.sliding_window_pattern", 2)
                    .text("cohere2.rope.scaling.type", "none");
  auto second = file.config();
  ASSERT_TRUE(second.ok()) << second.message();
  EXPECT_TRUE(second->layerConfigs[0].rope.has_value());
  EXPECT_FALSE(second->layerConfigs[1].rope.has_value());
  for (const char *key : {"logit_scale", "attention.sliding_window"})
    EXPECT_EQ(FileOf(file).without("cohere2." + std::string(key)).error(),
              "test: there is no metadata 'cohere2." + std::string(key) + "'");
  EXPECT_EQ(least("command-r").error(),
            "test: there is no metadata 'command-r.logit_scale'");
  EXPECT_EQ(least("command-r").f32("command-r.logit_scale", -1).error(),
            "test: metadata 'command-r.logit_scale' is -1, but a positive "
            "number is expected");
}

TEST(GgufConfig, StableLm) {
  auto parallel =
      least("stablelm").u32("stablelm.rope.dimension_count", 4).config();
  ASSERT_TRUE(parallel.ok()) << parallel.message();
  EXPECT_TRUE(parallel->parallelBlocks);
  EXPECT_TRUE(parallel->normBias);
  EXPECT_EQ(parallel->commonRope()->dim, 4);
  EXPECT_FALSE(least("stablelm")
                   .tensor("blk.0.ffn_norm.weight", {64})
                   .config()
                   ->parallelBlocks);
  EXPECT_EQ(least("stablelm").u32("stablelm.rope.dimension_count", 20).error(),
            "test: metadata 'stablelm.rope.dimension_count' is 20, but heads "
            "have 16 elements");
  EXPECT_EQ(least("stablelm").u32("stablelm.rope.dimension_count", 5).error(),
            "test: metadata 'stablelm.rope.dimension_count' is 5, but heads "
            "have 16 elements; rotary embedding needs an even number");
}

/// Phi-3 with LongRoPE's tables of six elements of heads.
FileOf longRope() {
  return least("phi3")
      .text("phi3.rope.scaling.type", "longrope")
      .u32("phi3.rope.dimension_count", 6)
      .u32("phi3.rope.scaling.original_context_length", 32)
      .f32("phi3.rope.scaling.attn_factor", 1.25F)
      .vector("rope_factors_long.weight", {1, 2, 4})
      .vector("rope_factors_short.weight", {1, 1, 2});
}

TEST(GgufConfig, LongRope) {
  // Older files say no type.
  for (FileOf file :
       {longRope(), longRope().without("phi3.rope.scaling.type")}) {
    auto config = file.config();
    ASSERT_TRUE(config.ok()) << config.message();
    const RopeConfig &rope = *config->commonRope();
    EXPECT_EQ(rope.scaling, RopeConfig::Scaling::LongRope);
    EXPECT_EQ(rope.longFactors, (std::vector<float>{1, 2, 4}));
    EXPECT_EQ(rope.shortFactors, (std::vector<float>{1, 1, 2}));
    EXPECT_EQ(rope.originalContext, 32);
    EXPECT_EQ(rope.magnitude, 1.25);
    EXPECT_EQ(rope.dim, 6);
    EXPECT_TRUE(rope.isLong);
  }
  for (const char *name :
       {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    const std::string tensor = "test: tensor '" + std::string(name) + "'";
    EXPECT_EQ(longRope().without(name).error(), "test: there is no tensor '" +
                                                    std::string(name) +
                                                    "', which LongRoPE needs");
    EXPECT_EQ(longRope().tensor(name, {4}).error(),
              tensor + " is not of 3 F32, one for each pair of a head's "
                       "elements");
    FileOf zero = longRope();
    zero.data.erase(name);
    EXPECT_EQ(zero.error(),
              tensor + " has 0, but numbers from 0.1 to 1e+12 are expected");
  }
  for (const char *key : {"phi3.rope.scaling.original_context_length",
                          "phi3.rope.scaling.attn_factor"})
    EXPECT_EQ(longRope().without(key).error(),
              "test: there is no metadata '" + std::string(key) + "'");
  EXPECT_EQ(longRope().f32("phi3.rope.scaling.attn_factor", NAN).error(),
            "test: metadata 'phi3.rope.scaling.attn_factor' is nan, but a "
            "number from 0.001 to 1e+06 is expected");
  EXPECT_EQ(longRope()
                .text("phi3.rope.scaling.type", "dynamic")
                .without("rope_factors_long.weight")
                .without("rope_factors_short.weight")
                .error(),
            "test: metadata 'phi3.rope.scaling.type' is 'dynamic', which is "
            "not supported (supported: none, linear, yarn, longrope)");
}

/// Tables beside what asks for a scaling of another kind.
TEST(GgufConfig, LongRopeBesideAnotherScaling) {
  const std::string beside = ", which is not supported beside LongRoPE's "
                             "tables, such as 'rope_factors_long.weight'";
  const std::string scaling = "phi3.rope.scaling.";
  for (const char *type : {"none", "linear", "yarn"}) {
    const FileOf file = longRope().text(scaling + "type", type);
    EXPECT_EQ(FileOf(file).error(), "test: metadata '" + scaling +
                                        "type' is '" + type + "'" + beside);
    EXPECT_EQ(FileOf(file).config().status().code(), StatusCode::Unsupported);
  }
  for (const FileOf &file :
       {longRope(), longRope().without(scaling + "type")}) {
    EXPECT_EQ(FileOf(file).f32(scaling + "factor", 4).error(),
              "test: metadata '" + scaling + "factor' is 4" + beside);
    EXPECT_EQ(FileOf(file).f32("phi3.rope.scale_linear", 4).error(),
              "test: metadata 'phi3.rope.scale_linear' is 4" + beside);
    for (float nothing : {0.0F, 1.0F})
      EXPECT_TRUE(FileOf(file).f32(scaling + "factor", nothing).config().ok());
  }
}

TEST(GgufConfig, Yarn) {
  FileOf file = least("olmo2")
                    .u32("olmo2.attention.sliding_window", 8)
                    .u32("olmo2.attention.sliding_window_pattern", 2)
                    .f32("olmo2.rope.freq_base", 500000)
                    .text("olmo2.rope.scaling.type", "yarn")
                    .f32("olmo2.rope.scaling.factor", 8);
  auto ropeOf = [](const FileOf &file) {
    auto config = file.config();
    EXPECT_TRUE(config.ok()) << config.message();
    return config.ok() ? *config->layerConfigs[1].rope : RopeConfig();
  };
  RopeConfig usual = ropeOf(file);
  EXPECT_EQ(usual.scaling, RopeConfig::Scaling::Yarn);
  EXPECT_EQ(usual.factor, 8);
  EXPECT_EQ(usual.originalContext, 128); // all positions
  EXPECT_EQ(usual.betaFast, 32);
  EXPECT_EQ(usual.betaSlow, 1);
  EXPECT_EQ(usual.magnitude, yarnMagnitude(8));
  // Layers with a window turn as if there were none, by a theta of their own.
  auto config = file.config();
  EXPECT_EQ(config->layerConfigs[0].rope->scaling, RopeConfig::Scaling::None);
  EXPECT_EQ(config->layerConfigs[0].rope->theta, 500000);
  RopeConfig said =
      ropeOf(FileOf(file)
                 .u32("olmo2.rope.scaling.original_context_length", 16)
                 .f32("olmo2.rope.scaling.yarn_beta_fast", 16)
                 .f32("olmo2.rope.scaling.yarn_beta_slow", 2)
                 .f32("olmo2.rope.scaling.yarn_ext_factor", 1)
                 .f32("olmo2.rope.scaling.yarn_attn_factor", 1.5F)
                 .f32("olmo2.rope.scaling.attn_factor", 0.5F));
  EXPECT_EQ(said.originalContext, 16);
  EXPECT_EQ(said.betaFast, 16);
  EXPECT_EQ(said.betaSlow, 2);
  EXPECT_EQ(said.magnitude, 0.75);
  EXPECT_EQ(FileOf(file).without("olmo2.rope.scaling.factor").error(),
            "test: there is no metadata 'olmo2.rope.scaling.factor'");
  EXPECT_EQ(FileOf(file).f32("olmo2.rope.freq_base", 1).error(),
            "test: metadata 'olmo2.rope.freq_base' is 1, of which there is no "
            "yarn scaling");
  EXPECT_EQ(FileOf(file).f32("olmo2.rope.scaling.yarn_beta_fast", 0).error(),
            "test: metadata 'olmo2.rope.scaling.yarn_beta_fast' is 0, but a "
            "number from 0.001 to 1e+06 is expected");
  EXPECT_EQ(FileOf(file).tensor("rope_freqs.weight", {8}).error(),
            "test: tensor 'rope_freqs.weight' beside yarn or longrope is not "
            "supported");
  expectContains(
      FileOf(file).f32("olmo2.rope.scaling.yarn_ext_factor", 0.5F).error(),
      "changes the arithmetic in a way that is not supported");
  for (const std::string key : {"attn_factor", "yarn_attn_factor"})
    expectContains(least().f32("llama.rope.scaling." + key, 2).error(),
                   "'llama.rope.scaling." + key +
                       "' is 2, which changes the arithmetic in a way that is "
                       "not supported");
}

TEST(GgufConfig, ReadsKfStories) {
  auto gguf =
      Gguf::open(KF_SOURCE_DIR "/models/kf-stories-gguf/kf-stories-Q4_0.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  Result<ModelConfig> read = readGgufConfig(**gguf);
  ASSERT_TRUE(read.ok()) << read.message();
  Result<ModelConfig> original =
      loadModelConfig(KF_SOURCE_DIR "/models/kf-stories");
  ASSERT_TRUE(original.ok()) << original.message();

  EXPECT_EQ(read->naming, TensorNaming::Gguf);
  EXPECT_EQ(read->architecture, original->architecture);
  EXPECT_EQ(read->layers, original->layers);
  EXPECT_EQ(read->hiddenSize, original->hiddenSize);
  EXPECT_EQ(read->intermediateSize, original->intermediateSize);
  EXPECT_EQ(read->vocabSize, original->vocabSize);
  EXPECT_EQ(read->heads, original->heads);
  EXPECT_EQ(read->kvHeads, original->kvHeads);
  EXPECT_EQ(read->headDim, original->headDim);
  EXPECT_EQ(read->maxPositions, original->maxPositions);
  EXPECT_EQ(read->norm, original->norm);
  EXPECT_EQ(float(read->normEps), float(original->normEps));
  EXPECT_EQ(read->activation, original->activation);
  EXPECT_EQ(read->gatedMlp, original->gatedMlp);
  EXPECT_EQ(read->attentionScale, original->attentionScale);
  EXPECT_EQ(read->windows(), original->windows());
  EXPECT_EQ(read->qkvBias, original->qkvBias);
  EXPECT_EQ(read->tiedEmbeddings, original->tiedEmbeddings);
  EXPECT_EQ(read->bosId, original->bosId);
  EXPECT_EQ(read->eosIds, original->eosIds);
  // The file's rows are permuted for it.
  RopeConfig rope = *original->commonRope();
  rope.interleaved = true;
  EXPECT_EQ(*read->commonRope(), rope);
}

TEST(GgufConfig, Defaults) {
  Result<ModelConfig> config = least().config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->architecture, Architecture::Llama);
  EXPECT_EQ(config->kvHeads, 4);
  EXPECT_EQ(config->headDim, 16);
  EXPECT_EQ(config->attentionScale, 0.25);
  EXPECT_EQ(config->commonRope()->theta, 10000);
  EXPECT_EQ(config->commonRope()->scaling, RopeConfig::Scaling::None);
  EXPECT_TRUE(config->commonRope()->interleaved);
  EXPECT_FALSE(config->commonRope()->frequencyFactors);
  EXPECT_TRUE(config->tiedEmbeddings);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{0, 0}));
  EXPECT_FALSE(config->qkvBias);
  EXPECT_FALSE(config->bosId);
  EXPECT_TRUE(config->eosIds.empty());
}

TEST(GgufConfig, WhatLlamaFilesSay) {
  Result<ModelConfig> config =
      least()
          .u32("llama.attention.head_count_kv", 2)
          .u32("llama.attention.key_length", 32)
          .u32("llama.attention.value_length", 32)
          .u32("llama.rope.dimension_count", 32)
          .f32("llama.rope.freq_base", 500000)
          .u32("llama.attention.sliding_window", 40)
          .u32("llama.vocab_size", 300)
          .u32("llama.expert_count", 0)
          .text("llama.tensor_data_layout", "Meta AI original pth")
          .u32("tokenizer.ggml.bos_token_id", 1)
          .u32("tokenizer.ggml.eos_token_id", 2)
          .u32("tokenizer.ggml.eot_token_id", 7)
          .u32("tokenizer.ggml.eom_token_id", 2)
          .tensor("output.weight", {300, 64})
          .tensor("rope_freqs.weight", {16})
          .config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->kvHeads, 2);
  EXPECT_EQ(config->headDim, 32);
  EXPECT_EQ(config->commonRope()->theta, 500000);
  EXPECT_TRUE(config->commonRope()->frequencyFactors);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{40, 40}));
  EXPECT_FALSE(config->tiedEmbeddings);
  EXPECT_EQ(config->bosId, 1);
  EXPECT_EQ(config->eosIds, (std::vector<int64_t>{2, 7}));
}

TEST(GgufConfig, QwenRotatesHalves) {
  for (std::string architecture : {"qwen2", "qwen3"}) {
    Result<ModelConfig> config =
        least(architecture).tensor("blk.0.attn_q.bias", {64}).config();
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(nameOf(config->architecture), architecture);
    EXPECT_FALSE(config->commonRope()->interleaved);
    EXPECT_TRUE(config->qkvBias);
    EXPECT_EQ(config->qkNorm,
              architecture == "qwen3" ? QkNorm::Heads : QkNorm::None);
  }
}

TEST(GgufConfig, Gpt2) {
  Result<ModelConfig> config = least("gpt2")
                                   .tensor("position_embd.weight", {128, 64})
                                   .tensor("blk.0.attn_qkv.bias", {192})
                                   .tensor("blk.0.attn_output.bias", {64})
                                   .tensor("blk.0.ffn_down.bias", {64})
                                   .config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->norm, Norm::Layer);
  EXPECT_EQ(config->activation, Activation::GeluTanh);
  EXPECT_FALSE(config->gatedMlp);
  EXPECT_FALSE(config->commonRope());
  EXPECT_TRUE(config->qkvBias && config->attentionOutputBias &&
              config->mlpBias);
}

TEST(GgufConfig, RopeScaling) {
  auto rope = [](FileOf file) {
    Result<ModelConfig> config = file.config();
    EXPECT_TRUE(config.ok()) << config.message();
    return config.ok() ? *config->commonRope() : RopeConfig();
  };
  RopeConfig linear = rope(least()
                               .text("llama.rope.scaling.type", "linear")
                               .f32("llama.rope.scaling.factor", 4));
  EXPECT_EQ(linear.scaling, RopeConfig::Scaling::Linear);
  EXPECT_EQ(linear.factor, 4);
  // A factor alone is linear, by its old name too.
  EXPECT_EQ(rope(least().f32("llama.rope.scaling.factor", 2)).factor, 2);
  EXPECT_EQ(rope(least().f32("llama.rope.scale_linear", 2)).factor, 2);
  // And these are none.
  EXPECT_EQ(rope(least()
                     .text("llama.rope.scaling.type", "none")
                     .f32("llama.rope.scaling.factor", 4))
                .scaling,
            RopeConfig::Scaling::None);
  EXPECT_EQ(rope(least().f32("llama.rope.scale_linear", 0)).scaling,
            RopeConfig::Scaling::None);
  EXPECT_EQ(least().text("llama.rope.scaling.type", "longrope").error(),
            "test: metadata 'llama.rope.scaling.type' is 'longrope', which is "
            "not supported (supported: none, linear, yarn)");
}

TEST(GgufConfig, ArraysOfOneValueALayer) {
  Result<ModelConfig> config =
      least().i32s("llama.attention.head_count_kv", {2, 2}).config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->kvHeads, 2);
  auto error = [](const std::vector<int32_t> &values) {
    return least().i32s("llama.attention.head_count_kv", values).error();
  };
  EXPECT_EQ(error({2, 4}),
            "test: metadata 'llama.attention.head_count_kv' differs between "
            "layers (2 and 4), which is not supported");
  EXPECT_EQ(error({2}), "test: metadata 'llama.attention.head_count_kv' is an "
                        "array of 1 numbers for 2 layers");
  EXPECT_EQ(error({0, 0}),
            "test: metadata 'llama.attention.head_count_kv' is 0 in "
            "layer 0, but a number from 1 to 16777216 is expected");
}

TEST(GgufConfig, TextToHashHasWhatTheArchitectureDefines) {
  auto textOf = [](const FileOf &file) {
    const std::string image = file.bytes();
    auto gguf = Gguf::parse(std::as_bytes(std::span(image)), "test");
    EXPECT_TRUE(gguf.ok()) << gguf.message();
    return ggufConfigText(**gguf);
  };
  const std::string text = textOf(least());
  EXPECT_EQ(textOf(least().text("general.name", "other")), text);
  EXPECT_NE(textOf(least("qwen2")), text);
  EXPECT_NE(textOf(least().u32("llama.context_length", 129)), text);
  EXPECT_NE(textOf(least().f32("llama.rope.freq_base", 10000)), text);
  // LongRoPE's numbers are in programs, too.
  EXPECT_NE(textOf(longRope()),
            textOf(longRope().vector("rope_factors_long.weight", {1, 2, 5})));
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(GgufConfig, OtherArchitectures) {
  EXPECT_EQ(least("mamba").error(),
            "test: architecture 'mamba' is not supported (supported: llama, "
            "qwen2, qwen3, gpt2, granite, smollm3, olmo2, starcoder2, gemma2, "
            "gemma3, phi3, stablelm, command-r, cohere2, qwen2moe, qwen3moe, "
            "granitemoe, olmoe, gpt-oss, qwen3next, qwen35, gemma3n, gemma4, "
            "deepseek2, llama4)");
  std::string image = GgufBuilder().u32("general.architecture", 1).bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(image)), "test");
  EXPECT_EQ(readGgufConfig(**gguf).message(),
            "test: metadata 'general.architecture' is 1 where a string is "
            "expected");
  image = GgufBuilder().bytes();
  gguf = Gguf::parse(std::as_bytes(std::span(image)), "test");
  EXPECT_EQ(readGgufConfig(**gguf).message(),
            "test: there is no metadata 'general.architecture'");
}

TEST(GgufConfig, OtherFiles) {
  EXPECT_EQ(least().text("general.type", "adapter").error(),
            "test: the file is of the type 'adapter', not a model");
  EXPECT_EQ(least().u32("split.count", 3).error(),
            "test: the file is one of 3 parts of a model, and the others are "
            "not open");
  EXPECT_EQ(least().without("token_embd.weight").error(),
            "test: no tensor 'token_embd.weight': the file has a configuration "
            "but no model");
  EXPECT_EQ(least().tensor("token_embd.weight", {300}).error(),
            "test: tensor 'token_embd.weight' is no matrix of 1 to 16777216 "
            "rows");
}

TEST(GgufConfig, MissingKeys) {
  for (std::string key : {"block_count", "context_length", "embedding_length",
                          "feed_forward_length", "attention.head_count",
                          "attention.layer_norm_rms_epsilon"})
    EXPECT_EQ(least().without("llama." + key).error(),
              "test: there is no metadata 'llama." + key + "'");
}

TEST(GgufConfig, SizesAreBounded) {
  EXPECT_EQ(least().u32("llama.block_count", 0).error(),
            "test: metadata 'llama.block_count' is 0, but a number from 1 to "
            "1024 is expected");
  EXPECT_EQ(least().u32("llama.block_count", 4000000000).error(),
            "test: metadata 'llama.block_count' is 4000000000, but a number "
            "from 1 to 1024 is expected");
  EXPECT_EQ(least().text("llama.block_count", "2").error(),
            "test: metadata 'llama.block_count' is a string where an unsigned "
            "integer is expected");
  EXPECT_EQ(least().u32("llama.attention.key_length", 65537).error(),
            "test: metadata 'llama.attention.key_length' is 65537, but a "
            "number from 1 to 65536 is expected");
  EXPECT_EQ(least()
                .u32("llama.attention.head_count", 512)
                .u32("llama.attention.head_count_kv", 512)
                .u32("llama.attention.key_length", 65536)
                .error(),
            "test: 512 heads of 65536 elements have 33554432; at most 16777216 "
            "is possible");
  EXPECT_EQ(least()
                .u32("llama.embedding_length", 131072)
                .u32("llama.attention.head_count", 1)
                .u32("llama.attention.head_count_kv", 1)
                .error(),
            "test: metadata 'llama.embedding_length' 131072 with "
            "'llama.attention.head_count' 1 makes heads of 131072 elements; at "
            "most 65536 are possible");
  EXPECT_EQ(least().u32("llama.attention.sliding_window", 4000000000).error(),
            "test: metadata 'llama.attention.sliding_window' is 4000000000, "
            "but a number from 0 to 1073741824 is expected");
  EXPECT_EQ(least().u32("tokenizer.ggml.bos_token_id", 0xffffffff).error(),
            "test: metadata 'tokenizer.ggml.bos_token_id' is 4294967295, but "
            "tensor 'token_embd.weight' has 300 rows");
  EXPECT_EQ(least().u32("tokenizer.ggml.eot_token_id", 300).error(),
            "test: metadata 'tokenizer.ggml.eot_token_id' is 300, but tensor "
            "'token_embd.weight' has 300 rows");
  EXPECT_EQ(least().u32("llama.vocab_size", 299).error(),
            "test: metadata 'llama.vocab_size' is 299, but tensor "
            "'token_embd.weight' has 300 rows");
}

TEST(GgufConfig, NumbersAreFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(least().f32("llama.rope.freq_base", infinity).error(),
            "test: metadata 'llama.rope.freq_base' is inf, but a number from 1 "
            "to 1e+18 is expected");
  // What a position turns by is no more than a radian.
  EXPECT_EQ(least().f32("llama.rope.freq_base", 0.5f).error(),
            "test: metadata 'llama.rope.freq_base' is 0.5, but a number from 1 "
            "to 1e+18 is expected");
  EXPECT_EQ(least()
                .f32("llama.attention.layer_norm_rms_epsilon", std::nanf(""))
                .error(),
            "test: metadata 'llama.attention.layer_norm_rms_epsilon' is nan, "
            "but a finite number that is not negative is expected");
  EXPECT_EQ(least().f32("llama.rope.scaling.factor", -1).error(),
            "test: metadata 'llama.rope.scaling.factor' is -1, but a number "
            "from 1 to 1e+18 is expected");
  EXPECT_EQ(least().f32("llama.rope.scale_linear", 0x1p-23f).error(),
            "test: metadata 'llama.rope.scale_linear' is 1.19209e-07, but a "
            "number from 1 to 1e+18 is expected");
}

TEST(GgufConfig, HeadsThatDoNotFit) {
  EXPECT_EQ(least().u32("llama.attention.head_count_kv", 3).error(),
            "test: metadata 'llama.attention.head_count' 4 is not a multiple "
            "of 'llama.attention.head_count_kv' 3");
  EXPECT_EQ(least().u32("llama.attention.head_count", 7).error(),
            "test: there is no metadata 'llama.attention.key_length'");
  EXPECT_EQ(least().u32("llama.attention.value_length", 8).error(),
            "test: metadata 'llama.attention.value_length' is 8, but keys have "
            "16; heads of two sizes are not supported");
  EXPECT_EQ(least().u32("llama.rope.dimension_count", 8).error(),
            "test: metadata 'llama.rope.dimension_count' is 8, but heads have "
            "16 elements; rotating a part of them is not supported");
  EXPECT_EQ(least().u32("llama.attention.key_length", 15).error(),
            "test: a head dimension of 15 is odd; rotary embedding needs an "
            "even one");
  EXPECT_EQ(least().tensor("rope_freqs.weight", {16}).error(),
            "test: tensor 'rope_freqs.weight' is not of 8 F32, one for each "
            "pair of a head's elements");
}

TEST(GgufConfig, WhatWouldChangeTheArithmetic) {
  EXPECT_EQ(least("granite").u32("granite.expert_count", 8).error(),
            "test: metadata 'granite.expert_count' is 8, which changes the "
            "arithmetic in a way that is not supported");
  EXPECT_EQ(least().text("llama.logit_scale", "x").error(),
            "test: metadata 'llama.logit_scale' is of type string, which "
            "changes the arithmetic in a way that is not supported");
  EXPECT_EQ(least().f32("llama.attention.scale", 0.5f).error(),
            "test: metadata 'llama.attention.scale' is not known; it may "
            "change the arithmetic in a way that is not supported");
}

//===----------------------------------------------------------------------===//
// What looks like a mistake
//===----------------------------------------------------------------------===//

TEST(GgufConfig, UnknownKeysNameTheKnownOneThatIsMeant) {
  const std::string unknown = " is not known; it may change the arithmetic in "
                              "a way that is not supported";
  for (auto [key, meant] : std::vector<std::pair<std::string, std::string>>{
           {"llama.rope.freq_bas", "llama.rope.freq_base"},
           {"llama.rope.freq_babse", "llama.rope.freq_base"},
           {"llama.rope_freqbase", "llama.rope.freq_base"},
           {"llama.ropf.freq_bbse", "llama.rope.freq_base"},
           {"llama.Rope.Freq_Base", "llama.rope.freq_base"},
           {"llama.expert_cuont", "llama.expert_count"},
           {"llama.attention.key_lengthss", "llama.attention.key_length"}})
    EXPECT_EQ(least().f32(key, 1).error(), "test: metadata '" + key + "'" +
                                               unknown + "; did you mean '" +
                                               meant + "'?");
  EXPECT_EQ(
      least("gemma2").u32("gemma2.attention.sliding_window_patern", 1).error(),
      "test: metadata 'gemma2.attention.sliding_window_patern'" + unknown +
          "; did you mean 'gemma2.attention.sliding_window_pattern'?");
  for (const char *key : {"llama.", "llama.x", "llama.rope.freq_baseXYZ",
                          "llama.freq_base", "llama.ropf.frfq_bbsf"})
    EXPECT_EQ(least().f32(key, 1).error(),
              "test: metadata '" + std::string(key) + "'" + unknown);
}

TEST(GgufConfig, KeysThatMissTheArchitectureAreWarnings) {
  auto warnings = [](const FileOf &file) {
    Result<ModelConfig> config = file.config();
    EXPECT_TRUE(config.ok()) << config.message();
    return config.ok() ? config->warnings : std::vector<std::string>();
  };
  EXPECT_TRUE(warnings(least()).empty());
  for (const char *key :
       {"lama.rope.freq_base", "Llama.rope.freq_base", "llamarope.freq_base",
        "llama_rope.freq_base", "llamb.rope.freq_basf"})
    EXPECT_EQ(warnings(least().f32(key, 500000)),
              std::vector<std::string>{"metadata '" + std::string(key) +
                                       "' is not read; did you mean "
                                       "'llama.rope.freq_base'?"});
  // A key with the name of another architecture, and those of other tools.
  EXPECT_EQ(warnings(least("qwen3").f32("qwen2.rope.freq_base", 1)),
            std::vector<std::string>{"metadata 'qwen2.rope.freq_base' is not "
                                     "read; did you mean "
                                     "'qwen3.rope.freq_base'?"});
  for (const char *key : {"grok.attention.scale", "general.name", "x", "",
                          "quantize.imatrix.file", "tokenizer.ggml.pre"})
    EXPECT_TRUE(warnings(least().text(key, "x")).empty()) << key;
  // No more lines than anyone reads.
  FileOf many = least();
  for (char c = 'a'; c <= 'z'; ++c)
    many.f32(std::string("lam") + c + ".rope.freq_base", 1);
  EXPECT_EQ(warnings(many).size(), 8u);
  // The bytes behind the last tensor are among them.
  const std::string image = many.bytes() + "x";
  auto gguf = Gguf::parse(std::as_bytes(std::span(image)), "test").take();
  const std::vector<std::string> lines = findGgufOddities(*gguf, "llama");
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_TRUE(lines.back().starts_with("1 bytes that are no padding"));
}

TEST(GgufConfig, BytesBehindTheLastTensorAreAWarning) {
  auto warnings = [](const std::string &rest) {
    const std::string image = least().bytes() + rest;
    auto gguf = Gguf::parse(std::as_bytes(std::span(image)), "test");
    EXPECT_TRUE(gguf.ok()) << gguf.message();
    Result<ModelConfig> config = readGgufConfig(**gguf);
    EXPECT_TRUE(config.ok()) << config.message();
    return config->warnings;
  };
  EXPECT_TRUE(warnings("").empty());
  EXPECT_TRUE(warnings(std::string(4096, '\0')).empty());
  EXPECT_EQ(warnings(std::string(100, '\0') + "x"),
            std::vector<std::string>{
                "101 bytes that are no padding follow the last tensor, "
                "'token_embd.weight': its type or its shape may be wrong"});
}

} // namespace
