//===- GgufLayersTest.cpp - GGUF files whose layers differ ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/model/GgufTesting.h"

#include "runtime/model/LayerCaches.h"

#include "gtest/gtest.h"

#include <cmath>
#include <functional>
#include <limits>

using namespace kf;
using namespace kf::test;

namespace {

FileOf leastLinear(const std::string &architecture) {
  const std::string at = architecture + ".";
  FileOf file = least(architecture);
  file.u32(at + "block_count", 4)
      .u32(at + "ssm.conv_kernel", 4)
      .u32(at + "ssm.state_size", 8)
      .u32(at + "ssm.group_count", 2)
      .u32(at + "ssm.time_step_rank", 4)
      .u32(at + "ssm.inner_size", 32)
      .u32(at + "rope.dimension_count", 8);
  if (architecture == "qwen3next")
    file.u32(at + "expert_count", 6).u32(at + "expert_used_count", 2);
  return file;
}

FileOf leastGemma4() {
  return least("gemma4")
      .u32("gemma4.block_count", 3)
      .u32("gemma4.attention.head_count_kv", 2)
      .u32("gemma4.attention.key_length", 32)
      .u32("gemma4.attention.value_length", 32)
      .u32("gemma4.attention.key_length_swa", 16)
      .u32("gemma4.attention.value_length_swa", 16)
      .u32("gemma4.attention.sliding_window", 8)
      .flags("gemma4.attention.sliding_window_pattern", {true, false, true})
      .tensor("rope_freqs.weight", {16});
}

FileOf leastGemma3n() {
  return least("gemma3n")
      .u32("gemma3n.attention.sliding_window", 8)
      .flags("gemma3n.attention.sliding_window_pattern", {true, false})
      .u32("gemma3n.embedding_length_per_layer_input", 12)
      .u32("gemma3n.altup.num_inputs", 4)
      .u32("gemma3n.altup.active_idx", 1)
      .f32s("gemma3n.activation_sparsity_scale",
            {1.5f, -std::numeric_limits<float>::infinity()})
      .tensor("per_layer_token_embd.weight", {300, 24})
      .tensor("blk.0.laurel_l.weight", {5, 64});
}

FileOf leastDeepseek() {
  return least("deepseek2")
      .u32("deepseek2.attention.q_lora_rank", 24)
      .u32("deepseek2.attention.kv_lora_rank", 16)
      .u32("deepseek2.attention.key_length_mla", 20)
      .u32("deepseek2.attention.value_length_mla", 12)
      .u32("deepseek2.rope.dimension_count", 8)
      .u32("deepseek2.leading_dense_block_count", 1)
      .u32("deepseek2.expert_count", 8)
      .u32("deepseek2.expert_used_count", 2)
      .u32("deepseek2.expert_feed_forward_length", 10)
      .u32("deepseek2.expert_shared_count", 2)
      .u32("deepseek2.expert_gating_func", 2)
      .boolean("deepseek2.expert_weights_norm", true)
      .f32("deepseek2.expert_weights_scale", 2.5f)
      .u32("deepseek2.expert_group_count", 4)
      .u32("deepseek2.expert_group_used_count", 2)
      .tensor("blk.1.exp_probs_b.bias", {8});
}

FileOf leastLlama4() {
  return least("llama4")
      .u32("llama4.block_count", 4)
      .u32("llama4.interleave_moe_layer_step", 2)
      .u32("llama4.expert_count", 4)
      .u32("llama4.expert_used_count", 1)
      .u32("llama4.expert_feed_forward_length", 16);
}

TEST(GgufLayers, LinearAttention) {
  for (std::string name : {"qwen3next", "qwen35"}) {
    SCOPED_TRACE(name);
    auto config = leastLinear(name).config();
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(config->linear,
              (LinearAttentionConfig{.keyHeads = 2,
                                     .valueHeads = 4,
                                     .keyDim = 8,
                                     .valueDim = 8,
                                     .taps = 4,
                                     .byKeyHeads = name == "qwen3next"}));
    EXPECT_TRUE(config->gatedAttention);
    EXPECT_FALSE(config->zeroCenteredNorms); // the file's hold 1 more
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(config->layer(i).isLinear, i < 3);
      EXPECT_EQ(config->layer(i).rope.has_value(), i == 3);
    }
    const std::string at = name + ".";
    config = leastLinear(name)
                 .flags(at + "attention.recurrent_layers",
                        {false, true, true, false})
                 .u32(at + "nextn_predict_layers", 1)
                 .config();
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(config->layers, 3);
    EXPECT_EQ(config->guessingLayers, 1);
    EXPECT_FALSE(config->layer(0).isLinear);
    EXPECT_TRUE(config->layer(2).isLinear);
  }
}

TEST(GgufLayers, HeadsAndKeysOfLayers) {
  auto config = leastGemma4()
                    .i32s("gemma4.attention.head_count_kv", {2, 1, 2})
                    .i32s("gemma4.feed_forward_length", {96, 96, 192})
                    .u32("gemma4.attention.shared_kv_layers", 1)
                    .tensor("blk.0.layer_output_scale.weight", {1})
                    .config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->headDim, 16);
  EXPECT_EQ(config->layer(1).headDim, 32);
  EXPECT_EQ(config->layer(1).kvHeads, 1);
  EXPECT_TRUE(config->layer(1).valuesAreKeys);
  EXPECT_FALSE(config->layer(0).valuesAreKeys);
  EXPECT_EQ(config->layer(2).keysOf, 0);
  EXPECT_EQ(config->layer(2).intermediateSize, 192);
  EXPECT_EQ(config->attentionScale, 1);
  EXPECT_TRUE(config->layerScales);
  EXPECT_TRUE(config->valueNorm);
  EXPECT_EQ(config->experts.count, 0);
  EXPECT_TRUE(config->layer(1).rope->frequencyFactors);
  EXPECT_FALSE(config->layer(0).rope->frequencyFactors);
  EXPECT_EQ(config->layer(1).rope->dim, 32);
  EXPECT_EQ(config->layer(0).rope->dim, 16);
}

TEST(GgufLayers, Streams) {
  auto config = leastGemma3n().config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->streams,
            (StreamsConfig{.count = 4, .active = 1, .scaled = true}));
  EXPECT_EQ(config->narrowWidth, 5);
  EXPECT_EQ(config->tokenInputWidth, 12);
  EXPECT_EQ(config->tokenInputVocab, 300);
  EXPECT_EQ(config->layer(0).gateCutoff, 1.5);
  EXPECT_FALSE(config->layer(1).gateCutoff);
}

TEST(GgufLayers, LatentAttention) {
  auto config = leastDeepseek().config();
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->latent, (LatentConfig{.width = 16,
                                          .queryWidth = 24,
                                          .plainDim = 12,
                                          .turnedDim = 8,
                                          .valueDim = 12}));
  EXPECT_EQ(config->headDim, 24);
  EXPECT_EQ(config->kvHeads, 1);
  EXPECT_DOUBLE_EQ(config->attentionScale, 1 / std::sqrt(20.0));
  EXPECT_TRUE(config->commonRope()->interleaved);
  const ExpertsConfig &experts = config->experts;
  EXPECT_TRUE(experts.sigmoid && experts.normalized && experts.choiceBias);
  EXPECT_EQ(experts.groups, 4);
  EXPECT_EQ(experts.keptGroups, 2);
  EXPECT_EQ(experts.scale, 2.5);
  EXPECT_EQ(experts.sharedWidth, 20);
  EXPECT_FALSE(config->hasExperts(0));
  EXPECT_TRUE(config->hasExperts(1));
  // YaRN's share of the scale is written as a tenth.
  auto yarn = leastDeepseek()
                  .text("deepseek2.rope.scaling.type", "yarn")
                  .f32("deepseek2.rope.scaling.factor", 40)
                  .f32("deepseek2.rope.scaling.yarn_log_multiplier", .1f)
                  .config();
  ASSERT_TRUE(yarn.ok()) << yarn.message();
  const double magnitude = .1 * std::log(40.0) + 1;
  EXPECT_NEAR(yarn->attentionScale, magnitude * magnitude / std::sqrt(20.0),
              1e-6);
  EXPECT_NEAR(yarn->commonRope()->magnitude, 1, 1e-12);
  // A factor of the usual magnitude remains; another magnitude is unknown.
  auto scaled = leastDeepseek()
                    .text("deepseek2.rope.scaling.type", "yarn")
                    .f32("deepseek2.rope.scaling.factor", 40)
                    .f32("deepseek2.rope.scaling.yarn_log_multiplier", .1f);
  auto factor =
      FileOf(scaled).f32("deepseek2.rope.scaling.attn_factor", 2).config();
  ASSERT_TRUE(factor.ok()) << factor.message();
  EXPECT_NEAR(factor->commonRope()->magnitude, 2, 1e-12);
  EXPECT_NE(scaled.f32("deepseek2.rope.scaling.yarn_attn_factor", 1)
                .error()
                .find("not supported beside "
                      "'deepseek2.rope.scaling.yarn_attn_factor'"),
            std::string::npos);
}

TEST(GgufLayers, Chunks) {
  auto config = leastLlama4().config();
  ASSERT_TRUE(config.ok()) << config.message();
  for (int64_t i = 0; i < 4; ++i) {
    const LayerConfig layer = config->layer(i);
    EXPECT_EQ(layer.hasExperts, i % 2 == 1);
    EXPECT_EQ(layer.window, i < 3 ? 8192 : 0);
    EXPECT_EQ(layer.chunked, i < 3);
    EXPECT_EQ(layer.rope.has_value(), i < 3);
    EXPECT_EQ(layer.queryGrowth.has_value(), i == 3);
  }
  EXPECT_TRUE(config->experts.weighsInputs);
  EXPECT_EQ(config->experts.sharedWidth, 16);
  EXPECT_EQ(config->qkNorm, QkNorm::Turned);
  EXPECT_EQ(leastLlama4().u32("llama4.expert_count", 128).config()->qkNorm,
            QkNorm::None);
}

/// Values that no model has are a line with the key's name, and so is a key
/// that is not there.
TEST(GgufLayers, WhatCannotBe) {
  struct Wrong {
    std::function<FileOf()> file;
    std::string key, expected;
    std::optional<uint32_t> value; ///< none: without the key
  };
  const auto linear = [] { return leastLinear("qwen35"); };
  const Wrong wrongs[] = {
      {linear, "qwen35.ssm.group_count", "from 1", 0},
      {linear, "qwen35.ssm.group_count", "multiple of", 3},
      {linear, "qwen35.ssm.group_count", "ssm.group_count", {}},
      {linear, "qwen35.ssm.conv_kernel", "from 2", 1},
      {linear, "qwen35.ssm.conv_kernel", "from 1 to", 4000000000},
      {linear, "qwen35.ssm.inner_size", "make no heads", 33},
      {linear, "qwen35.ssm.state_size", "from 1", 0},
      {linear, "qwen35.ssm.time_step_rank", "make no heads", 1 << 24},
      {linear, "qwen35.nextn_predict_layers", "all layers", 4},
      {linear, "qwen35.full_attention_interval", "from 1", 0},
      {linear, "qwen35.attention.recurrent_layers", "no array", 1},
      {leastGemma4, "gemma4.attention.key_length_swa", "from 1", 0},
      {leastGemma4, "gemma4.attention.value_length_swa", "two sizes", 8},
      {leastGemma4, "gemma4.attention.key_length", "key_length", {}},
      {leastGemma4, "gemma4.attention.shared_kv_layers", "all layers", 3},
      {leastGemma4, "gemma4.attention.shared_kv_layers", "there is none", 2},
      {leastGemma4, "gemma4.attention.head_count_kv", "multiple", 3},
      {leastGemma4, "gemma4.rope.dimension_count_swa", "elements", 32},
      {leastGemma4, "gemma4.expert_count", "expert_used_count", 4},
      {leastGemma3n, "gemma3n.altup.num_inputs", "2 to", 1},
      {leastGemma3n, "gemma3n.altup.num_inputs", "from 1", 9},
      {leastGemma3n, "gemma3n.altup.active_idx", "num_inputs", 4},
      {leastGemma3n, "gemma3n.embedding_length_per_layer_input", "streams", 0},
      {leastGemma3n, "gemma3n.embedding_length_per_layer_input", "columns",
       1 << 24},
      {leastGemma3n, "gemma3n.activation_sparsity_scale", "sparsity", {}},
      {leastGemma3n, "blk.0.laurel_l.weight", "no tensor", {}},
      {leastDeepseek, "deepseek2.attention.kv_lora_rank", "from 1", 0},
      {leastDeepseek, "deepseek2.attention.kv_lora_rank", "heads of", 65536},
      {leastDeepseek, "deepseek2.attention.key_length_mla", "even", 8},
      {leastDeepseek, "deepseek2.attention.head_count_kv", "imply 1", 4},
      {leastDeepseek, "deepseek2.attention.q_lora_rank", "from 1 to",
       4000000000},
      {leastDeepseek, "deepseek2.expert_gating_func", "supported: 2", 1},
      {leastDeepseek, "deepseek2.expert_group_count", "no such groups", 3},
      {leastDeepseek, "deepseek2.expert_group_used_count", "too many", 5},
      {leastDeepseek, "deepseek2.expert_shared_count", "columns", 1 << 30},
      {leastLlama4, "llama4.attention.sliding_window", "supported: 8192", 4096},
      {leastLlama4, "llama4.interleave_moe_layer_step", "interleave", {}},
      {leastLlama4, "llama4.interleave_moe_layer_step", "from 1", 0},
  };
  for (const Wrong &wrong : wrongs) {
    SCOPED_TRACE(wrong.key + " " + wrong.expected);
    FileOf file = wrong.file();
    ASSERT_TRUE(file.config().ok()) << file.error();
    file.without(wrong.key);
    if (wrong.value)
      file.u32(wrong.key, *wrong.value);
    const std::string error = file.error();
    EXPECT_NE(error.find(wrong.expected), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_NE(leastGemma3n()
                .f32s("gemma3n.activation_sparsity_scale", {NAN, 0})
                .error()
                .find("-inf, is expected"),
            std::string::npos);
}

} // namespace
