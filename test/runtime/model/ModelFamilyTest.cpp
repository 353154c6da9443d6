//===- ModelFamilyTest.cpp - Configurations of the families ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigTesting.h"

#include "runtime/model/RopeFactors.h"
#include "runtime/model/StreamFields.h"
#include "runtime/model/TensorList.h"

#include <cmath>

using namespace kf;
using namespace kf::test;

namespace {

TEST(ModelFamily, Granite) {
  auto config = golden("granite");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_DOUBLE_EQ(config->embeddingScale, 3);
  EXPECT_DOUBLE_EQ(config->residualScale, 0.6);
  EXPECT_DOUBLE_EQ(config->attentionScale, 0.2);
  EXPECT_DOUBLE_EQ(config->logitScale, 2);
  json small = {{"model_type", "granite"},  {"hidden_size", 64},
                {"num_hidden_layers", 2},   {"num_attention_heads", 4},
                {"intermediate_size", 172}, {"vocab_size", 307}};
  auto plain = parse(small);
  ASSERT_TRUE(plain.ok()) << plain.message();
  EXPECT_DOUBLE_EQ(plain->attentionScale, 1);
  for (json value : {json(0), json(-1), json("1"), json(1e39)}) {
    EXPECT_FALSE(parse(with(small, {{"logits_scaling", value}})).ok()) << value;
    EXPECT_FALSE(parse(with(small, {{"residual_multiplier", value}})).ok())
        << value;
  }
  // Kernels multiply by f32.
  for (const char *name :
       {"attention_multiplier", "embedding_multiplier", "residual_multiplier"})
    for (double value : {1e39, 1e-39})
      expectContains(parse(with(small, {{name, value}})).message(),
                     "'" + std::string(name) + "' is " + json(value).dump() +
                         ", which makes a factor of " + json(value).dump() +
                         "; one that is a normal f32 is expected");
  expectContains(parse(with(small, {{"logits_scaling", 1e39}})).message(),
                 "'logits_scaling' is 1e+39, which makes a factor of 1e-39");
}

TEST(ModelFamily, SmolLm3TurnsSomeLayers) {
  auto config = golden("smollm3");
  ASSERT_TRUE(config.ok()) << config.message();
  auto turned = [](const ModelConfig &read) {
    std::vector<bool> turned;
    for (const LayerConfig &layer : read.layerConfigs)
      turned.push_back(layer.rope.has_value());
    return turned;
  };
  EXPECT_EQ(turned(*config), (std::vector<bool>{true, true, true, false}));
  EXPECT_FALSE(config->commonRope());
  json small = {{"model_type", "smollm3"},     {"hidden_size", 64},
                {"num_hidden_layers", 3},      {"num_attention_heads", 4},
                {"num_key_value_heads", 2},    {"intermediate_size", 172},
                {"no_rope_layer_interval", 2}, {"vocab_size", 307}};
  auto interval = parse(small);
  ASSERT_TRUE(interval.ok()) << interval.message();
  EXPECT_EQ(turned(*interval), (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(interval->tiedEmbeddings);
  EXPECT_EQ(interval->layerConfigs[0].rope->theta, 2e6);
  // The layers that slide are those that are not turned.
  auto slides =
      parse(with(small, {{"use_sliding_window", true}, {"sliding_window", 5}}));
  ASSERT_TRUE(slides.ok()) << slides.message();
  EXPECT_EQ(slides->windows(), (std::vector<int64_t>{0, 5, 0}));
  for (json list : {json{1, 0}, json{1, 0, 2}, json{1, 0, "1"}, json(1)})
    expectContains(parse(with(small, {{"no_rope_layers", list}})).message(),
                   "a list of 0 or 1 for each layer is expected");
  // Others must not have the fields.
  expectContains(errorOf({{"no_rope_layers", {1, 1, 1, 0}}}),
                 "'no_rope_layers'");
}

TEST(ModelFamily, Olmo3TurnsLayersByTheirType) {
  auto config = golden("olmo3");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->normPlaces, NormPlaces::Outputs);
  EXPECT_EQ(config->qkNorm, QkNorm::Width);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 8, 8, 0}));
  const RopeConfig sliding = *config->layerConfigs[0].rope;
  EXPECT_EQ(sliding.scaling, RopeConfig::Scaling::None);
  const RopeConfig full = *config->layerConfigs[3].rope;
  EXPECT_EQ(full.scaling, RopeConfig::Scaling::Yarn);
  EXPECT_EQ(full.originalContext, 16);
  EXPECT_NEAR(full.magnitude, 0.1 * std::log(8.0) + 1, 1e-12);
  // Published files scale full layers alone, too.
  json older = {{"model_type", "olmo3"},
                {"hidden_size", 64},
                {"num_hidden_layers", 4},
                {"num_attention_heads", 4},
                {"intermediate_size", 172},
                {"vocab_size", 307},
                {"sliding_window", 8},
                {"rope_theta", 500000},
                {"rope_scaling",
                 {{"rope_type", "yarn"},
                  {"factor", 8.0},
                  {"original_max_position_embeddings", 16}}}};
  auto read = parse(older);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->windows(), (std::vector<int64_t>{8, 8, 8, 0}));
  EXPECT_EQ(read->layerConfigs[0].rope->scaling, RopeConfig::Scaling::None);
  EXPECT_NEAR(read->layerConfigs[3].rope->magnitude, full.magnitude, 1e-12);
  // The layers that rope_parameters leaves out are plain, as in transformers.
  json alone = older;
  alone.erase("rope_scaling");
  alone.erase("rope_theta");
  alone["rope_parameters"]["full_attention"] =
      with(older["rope_scaling"], {{"rope_theta", 1000}});
  auto part = parse(alone);
  ASSERT_TRUE(part.ok()) << part.message();
  EXPECT_EQ(part->layerConfigs[0].rope->scaling, RopeConfig::Scaling::None);
  EXPECT_EQ(part->layerConfigs[0].rope->theta, 500000);
  EXPECT_EQ(part->layerConfigs[0].rope->dim, 16);
  EXPECT_EQ(part->layerConfigs[3].rope->theta, 1000);
  EXPECT_NEAR(part->layerConfigs[3].rope->magnitude, full.magnitude, 1e-12);
  older["rope_scaling"]["factor"] = 0.5;
  expectContains(parse(older).message(), "'rope_scaling.factor' is 0.5");
}

TEST(ModelFamily, Phi3) {
  auto config = golden("phi3");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{10, 10, 10, 10}));
  EXPECT_EQ(config->commonRope()->dim, config->headDim);
  json small = {{"model_type", "phi3"},     {"hidden_size", 64},
                {"num_hidden_layers", 2},   {"num_attention_heads", 4},
                {"intermediate_size", 172}, {"vocab_size", 307}};
  auto part = parse(with(small, {{"partial_rotary_factor", 0.75}}));
  ASSERT_TRUE(part.ok()) << part.message();
  EXPECT_EQ(part->commonRope()->dim, 12);
  for (json factor : {json(0), json(1.5), json(-1), json("1")})
    EXPECT_FALSE(parse(with(small, {{"partial_rotary_factor", factor}})).ok());
  expectContains(parse(with(small, {{"partial_rotary_factor", 0.7}})).message(),
                 "of heads of 16 elements are 11; rotary embedding needs an "
                 "even number");
}

TEST(ModelFamily, LongRope) {
  auto config = golden("phi3-longrope");
  ASSERT_TRUE(config.ok()) << config.message();
  const RopeConfig *rope = config->commonRope();
  EXPECT_EQ(rope->scaling, RopeConfig::Scaling::LongRope);
  EXPECT_EQ(rope->dim, 6);
  EXPECT_EQ(rope->originalContext, 16);
  EXPECT_EQ(rope->shortFactors, (std::vector<float>{1.303F, 1.112F, 1.161F}));
  EXPECT_EQ(rope->longFactors, (std::vector<float>{1.935F, 2.129F, 3.8F}));
  EXPECT_NEAR(rope->magnitude, std::sqrt(1.75), 1e-12); // 1 + ln 8 / ln 16
  EXPECT_EQ(ropeFactors(*rope), rope->longFactors);
  EXPECT_EQ(settleContext(*config, 16), 16);
  EXPECT_EQ(ropeFactors(*config->commonRope()), rope->shortFactors);
  EXPECT_EQ(settleContext(*config, 17), 128);
  EXPECT_EQ(ropeFactors(*config->commonRope()), rope->longFactors);
  // Others are right for all of their positions.
  auto plain = golden("phi3");
  EXPECT_EQ(settleContext(*plain, 1), plain->maxPositions);

  const json small = {{"model_type", "phi3"},
                      {"hidden_size", 64},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 16},
                      {"intermediate_size", 172},
                      {"max_position_embeddings", 64},
                      {"original_max_position_embeddings", 64},
                      {"vocab_size", 307}};
  const json scaling = {
      {"type", "su"}, {"short_factor", {1, 2}}, {"long_factor", {3, 4}}};
  auto ropeOf = [&](const json &more) -> Result<RopeConfig> {
    KF_ASSIGN_OR_RETURN(
        ModelConfig read,
        parse(with(small, {{"rope_scaling", with(scaling, more)}})));
    return *read.commonRope();
  };
  auto own = ropeOf({{"attention_factor", 1.25}});
  ASSERT_TRUE(own.ok()) << own.message();
  EXPECT_EQ(own->magnitude, 1.25);
  EXPECT_FALSE(own->isLong);
  EXPECT_NEAR(ropeOf({{"factor", 8}})->magnitude, std::sqrt(1.5), 1e-12);
  for (const char *name : {"short_factor", "long_factor"}) {
    for (json value : {json{1}, json{1, 2, 3}, json{1, "2"}, json{1, 0},
                       json{1, -1}, json{1, 1e300}, json(1), json::object()})
      expectContains(ropeOf({{name, value}}).message(),
                     "'rope_scaling." + std::string(name) + "' is");
    expectContains(ropeOf({{name, nullptr}}).message(),
                   "a longrope scaling without '" + std::string(name) + "'");
  }
  expectContains(ropeOf({{"attention_factor", 1e300}}).message(),
                 "'rope_scaling.attention_factor' is 1e+300");
}

TEST(ModelFamily, LayerNormFamilies) {
  auto stable = golden("stablelm");
  ASSERT_TRUE(stable.ok()) << stable.message();
  EXPECT_EQ(stable->norm, Norm::Layer);
  EXPECT_TRUE(stable->normBias && stable->qkvBias);
  EXPECT_FALSE(stable->attentionOutputBias || stable->parallelBlocks);
  EXPECT_EQ(stable->commonRope()->dim, 2);
  auto star = golden("starcoder2");
  ASSERT_TRUE(star.ok()) << star.message();
  EXPECT_FALSE(star->gatedMlp);
  EXPECT_EQ(star->activation, Activation::GeluTanh);
  EXPECT_TRUE(star->qkvBias && star->attentionOutputBias && star->mlpBias);
  EXPECT_EQ(star->windows(), (std::vector<int64_t>{8, 8, 8, 8}));
  auto cohere = golden("cohere");
  ASSERT_TRUE(cohere.ok()) << cohere.message();
  EXPECT_TRUE(cohere->parallelBlocks && cohere->commonRope()->interleaved);
  EXPECT_FALSE(cohere->normBias);
  EXPECT_DOUBLE_EQ(cohere->logitScale, 0.3);
  auto cohere2 = golden("cohere2");
  ASSERT_TRUE(cohere2.ok()) << cohere2.message();
  EXPECT_EQ(cohere2->windows(), (std::vector<int64_t>{8, 8, 0, 8}));
  EXPECT_TRUE(cohere2->layerConfigs[1].rope);
  EXPECT_FALSE(cohere2->layerConfigs[2].rope);
}

json smallStableLm() {
  return {{"model_type", "stablelm"}, {"hidden_size", 80},
          {"num_hidden_layers", 2},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"intermediate_size", 172},
          {"vocab_size", 307}};
}

/// What rope_parameters say of the part of heads that is turned counts alone: a
/// quarter of 20 elements, the usual part, could not be.
TEST(ModelFamily, StableLmTurnsThePartThatItsParametersSay) {
  auto half =
      parse(with(smallStableLm(),
                 {{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}));
  ASSERT_TRUE(half.ok()) << half.message();
  EXPECT_EQ(half->commonRope()->dim, 10);
  auto scaled = parse(with(
      smallStableLm(),
      {{"rope_scaling",
        {{"type", "linear"}, {"factor", 2}, {"partial_rotary_factor", 1}}}}));
  ASSERT_TRUE(scaled.ok()) << scaled.message();
  EXPECT_EQ(scaled->commonRope()->dim, 20);
  for (json more : {json::object(), json{{"rope_parameters", json::object()}}})
    expectContains(
        parse(with(smallStableLm(), more)).message(),
        "'partial_rotary_factor' 0.25 of heads of 20 elements are 5");
}

TEST(ModelFamily, Gemma3) {
  auto config = golden("gemma3");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->normPlaces, NormPlaces::Both);
  EXPECT_EQ(config->qkNorm, QkNorm::Heads);
  EXPECT_EQ(config->activation, Activation::GeluTanh);
  EXPECT_TRUE(config->zeroCenteredNorms && config->gatedMlp);
  EXPECT_DOUBLE_EQ(config->embeddingScale, std::sqrt(32.0));
  EXPECT_DOUBLE_EQ(config->attentionScale, 1 / 3.0);
  EXPECT_EQ(config->attentionCap, 0);
  EXPECT_EQ(config->logitCap, 0);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 8, 0, 8}));
  EXPECT_EQ(config->layerConfigs[0].rope->theta, 10000);
  EXPECT_EQ(config->layerConfigs[0].rope->scaling, RopeConfig::Scaling::None);
  EXPECT_EQ(config->layerConfigs[2].rope->theta, 1e6);
  EXPECT_EQ(config->layerConfigs[2].rope->factor, 8);

  // The newer style, whose objects may be without what is usual.
  json small = {{"model_type", "gemma3_text"},
                {"hidden_size", 64},
                {"num_hidden_layers", 7},
                {"intermediate_size", 172}};
  auto nested = parse(with(
      small, {{"rope_parameters",
               {{"full_attention", {{"rope_type", "linear"}, {"factor", 2}}},
                {"sliding_attention", {{"rope_theta", 500}}}}}}));
  ASSERT_TRUE(nested.ok()) << nested.message();
  EXPECT_EQ(nested->layerConfigs[5].rope->theta, 1e6);
  EXPECT_EQ(nested->layerConfigs[5].rope->factor, 2);
  EXPECT_EQ(nested->layerConfigs[6].rope->theta, 500);
  auto usual = parse(small);
  ASSERT_TRUE(usual.ok()) << usual.message();
  EXPECT_EQ(usual->heads, 8);
  EXPECT_EQ(usual->kvHeads, 4);
  EXPECT_EQ(usual->headDim, 256);
  EXPECT_EQ(usual->vocabSize, 262208);
  EXPECT_EQ(usual->windows(),
            (std::vector<int64_t>{4096, 4096, 4096, 4096, 4096, 0, 4096}));
  EXPECT_EQ(usual->layerConfigs[6].rope->theta, 10000);
  EXPECT_EQ(usual->attentionScale, 1 / 16.0);
  EXPECT_TRUE(usual->tiedEmbeddings);
  auto capped = parse(with(small, {{"final_logit_softcapping", 30}}));
  ASSERT_TRUE(capped.ok()) << capped.message();
  EXPECT_EQ(capped->logitCap, 30);

  for (const char *name : {"query_pre_attn_scalar", "rope_local_base_freq",
                           "attn_logit_softcapping", "final_logit_softcapping"})
    for (json value : {json(0), json(-1), json(1e300), json("8"), json(true)})
      expectContains(parse(with(small, {{name, value}})).message(),
                     "'" + std::string(name) + "' is " + value.dump());
  expectContains(parse(with(small, {{"sliding_window_pattern", 0}})).message(),
                 "'sliding_window_pattern' is 0");
  expectContains(
      parse(with(small, {{"use_bidirectional_attention", true}})).message(),
      "'use_bidirectional_attention' is true");
  expectContains(
      parse(with(small, {{"rope_parameters",
                          {{"full_attention", {{"rope_theta", 0}}}}}}))
          .message(),
      "'rope_parameters.full_attention.rope_theta' is 0");
}

TEST(ModelFamily, StableLmsBlocks) {
  json model = smallStableLm();
  model["hidden_size"] = 64;
  auto usual = parse(model);
  ASSERT_TRUE(usual.ok()) << usual.message();
  EXPECT_FALSE(usual->parallelBlocks || usual->qkvBias);
  auto parallel = parse(
      with(model, {{"use_parallel_residual", true}, {"use_qkv_bias", true}}));
  ASSERT_TRUE(parallel.ok()) << parallel.message();
  EXPECT_TRUE(parallel->parallelBlocks && parallel->qkvBias);
  EXPECT_FALSE(parallel->attentionOutputBias || parallel->mlpBias);
  // One norm a layer, for both blocks.
  size_t norms = 0;
  for (const ListedTensor &tensor : listTensors(*parallel))
    norms += tensor.role == ListedTensor::Role::NormWeight;
  EXPECT_EQ(norms, 2u + 1u);
  EXPECT_EQ(parse(with(model, {{"qk_layernorm", true}})).message(),
            "config.json: 'qk_layernorm' is true, which changes the arithmetic "
            "in a way that is not supported");
  EXPECT_TRUE(parse(with(model, {{"qk_layernorm", false}})).ok());
  for (const char *name : {"use_parallel_residual", "use_qkv_bias"})
    EXPECT_EQ(parse(with(model, {{name, 1}})).message(),
              "config.json: '" + std::string(name) +
                  "' is 1, but true or false is expected");
  const json star = with(model, {{"model_type", "starcoder2"}});
  auto plain = parse(with(star, {{"use_bias", false}}));
  ASSERT_TRUE(plain.ok()) << plain.message();
  EXPECT_FALSE(plain->qkvBias || plain->attentionOutputBias || plain->mlpBias);
  EXPECT_TRUE(plain->normBias);
  EXPECT_EQ(parse(with(star, {{"use_bias", "no"}})).message(),
            "config.json: 'use_bias' is \"no\", but true or false is expected");
}

/// Fields that say what a family computes say nothing else.
TEST(ModelFamily, StatedFields) {
  const json sizes = {{"hidden_size", 64},        {"num_hidden_layers", 4},
                      {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                      {"intermediate_size", 172}, {"vocab_size", 307}};
  struct Case {
    const char *family, *name;
    json right, wrong;
  };
  const json rope = "rope_gptj";
  for (const Case &test : std::initializer_list<Case>{
           {"cohere", "position_embedding_type", rope, "learned_absolute"},
           {"cohere", "use_parallel_block", true, false},
           {"cohere", "use_gated_activation", true, false},
           {"cohere2", "position_embedding_type", rope, "rope"},
           {"cohere2", "use_parallel_block", true, false},
           {"cohere2", "use_gated_activation", true, 1},
           {"cohere2", "order_of_interleaved_layers", "local_attn_first",
            "global_attn_first"},
           {"starcoder2", "norm_type", "layer_norm", "rms_norm"},
           {"starcoder2", "mlp_type", "default", "gated"},
           {"gemma2", "sliding_window_pattern", 2, 3},
           {"olmo3", "sliding_window_pattern", 4, 2}}) {
    const json model = with(sizes, {{"model_type", test.family}});
    auto right = parse(with(model, {{test.name, test.right}}));
    EXPECT_TRUE(right.ok()) << right.message();
    EXPECT_EQ(parse(with(model, {{test.name, test.wrong}})).message(),
              "config.json: '" + std::string(test.name) + "' is " +
                  test.wrong.dump() + ", but " + test.right.dump() +
                  " is expected");
  }
  const json cohere2 = with(sizes, {{"model_type", "cohere2"}});
  EXPECT_TRUE(parse(with(cohere2, {{"layer_switch", 4}})).ok());
  EXPECT_TRUE(
      parse(with(cohere2, {{"layer_switch", 2}, {"sliding_window_pattern", 2}}))
          .ok());
  EXPECT_EQ(parse(with(cohere2, {{"layer_switch", 2}})).message(),
            "config.json: 'layer_switch' is 2, but layer 1 has a window by "
            "'layer_types' or its default");
  expectContains(parse(with(cohere2, {{"layer_switch", 0}})).message(),
                 "'layer_switch' is 0");
  expectContains(
      parse(with(sizes, {{"model_type", "cohere"}, {"layer_switch", 4}}))
          .message(),
      "'layer_switch' is 4, which changes the arithmetic");
  expectContains(errorOf({{"use_parallel_block", true}}),
                 "'use_parallel_block' is true");
}

/// Layers have the window or have none, so that there is one.
TEST(ModelFamily, SomeLayersNeedAWindow) {
  for (const char *family : {"cohere2", "gemma2", "gemma3_text", "olmo3"}) {
    const json model = {
        {"model_type", family},     {"hidden_size", 64},
        {"num_hidden_layers", 2},   {"num_attention_heads", 4},
        {"num_key_value_heads", 2}, {"intermediate_size", 172},
        {"vocab_size", 307},        {"sliding_window", nullptr}};
    EXPECT_EQ(parse(model).message(),
              "config.json: 'sliding_window' is null, but some layers have a "
              "window; give it, or 'layer_types' without "
              "\"sliding_attention\"");
    auto full = parse(
        with(model, {{"layer_types", {"full_attention", "full_attention"}}}));
    ASSERT_TRUE(full.ok()) << full.message();
    EXPECT_EQ(full->windows(), (std::vector<int64_t>{0, 0}));
  }
}

/// A language model in one that reads images, too.
TEST(ModelFamily, TextConfig) {
  auto alone = golden("gemma3"), inside = golden("gemma3-nested");
  ASSERT_TRUE(inside.ok()) << inside.message();
  EXPECT_EQ(inside->architecture, Architecture::Gemma3);
  EXPECT_EQ(inside->layerConfigs, alone->layerConfigs);
  EXPECT_EQ(inside->headDim, alone->headDim);
  EXPECT_EQ(inside->eosIds, alone->eosIds);
  json outside = {{"model_type", "gemma3"},
                  {"architectures", {"Gemma3ForConditionalGeneration"}},
                  {"eos_token_id", {1, 106}},
                  {"torch_dtype", "bfloat16"},
                  {"vision_config", {{"hidden_size", 1152}}},
                  {"text_config", {{"hidden_size", 64}}}};
  auto read = parse(outside);
  ASSERT_TRUE(read.ok()) << read.message();
  EXPECT_EQ(read->hiddenSize, 64);
  EXPECT_EQ(read->eosIds, (std::vector<int64_t>{1, 106}));
  EXPECT_EQ(read->dtype, DataType::BF16);
  auto errorWith = [&](const json &changes) {
    return parse(with(outside, changes)).message();
  };
  EXPECT_EQ(errorWith({{"text_config", nullptr}}),
            "config.json: 'text_config' is missing");
  EXPECT_EQ(errorWith({{"text_config", {1}}}),
            "config.json: 'text_config' is [1], but an object is expected");
  expectContains(errorWith({{"text_config", {{"model_type", "llama"}}}}),
                 "'text_config.model_type' is \"llama\", but \"gemma3_text\" "
                 "is expected");
  expectContains(errorWith({{"text_config", {{"hidden_size", -1}}}}),
                 "'text_config.hidden_size' is -1");
  expectContains(errorWith({{"text_config", {{"num_local_experts", 8}}}}),
                 "'text_config.num_local_experts' is 8");
  expectContains(errorWith({{"architectures", {"Gemma3ForCausalLM"}}}),
                 "[\"Gemma3ForConditionalGeneration\"] is expected");
  // Of models that are nothing but text, it is refused.
  expectContains(errorOf({{"text_config", {{"hidden_size", 64}}}}),
                 "'text_config' is");
}

/// Four layers with nothing but sizes.
json smallLlama4() {
  return {{"model_type", "llama4_text"},
          {"hidden_size", 64},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 4}};
}

TEST(ModelFamily, Llama4) {
  auto config = golden("llama4");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->qkNorm, QkNorm::Turned);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 8, 8, 0}));
  EXPECT_EQ(config->intermediateSize, 40);
  EXPECT_EQ(config->experts.count, 4);
  EXPECT_EQ(config->experts.chosen, 1);
  EXPECT_EQ(config->experts.width, 16);
  EXPECT_EQ(config->experts.sharedWidth, 16);
  EXPECT_TRUE(config->experts.sigmoid);
  EXPECT_TRUE(config->experts.weighsInputs);
  EXPECT_FALSE(config->experts.normalized);
  EXPECT_FALSE(config->experts.sharedGate);
  const LayerConfig turned = config->layer(0), other = config->layer(3);
  EXPECT_TRUE(turned.chunked);
  ASSERT_TRUE(turned.rope);
  EXPECT_TRUE(turned.rope->interleaved);
  EXPECT_EQ(turned.rope->scaling, RopeConfig::Scaling::Llama3);
  EXPECT_FALSE(turned.queryGrowth);
  EXPECT_FALSE(other.chunked);
  EXPECT_FALSE(other.rope);
  EXPECT_EQ(other.queryGrowth, (QueryGrowth{.scale = 0.4, .period = 6}));
}

TEST(ModelFamily, FieldsOfLlama4) {
  auto config = parse(smallLlama4());
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8192, 8192, 8192, 0}));
  EXPECT_EQ(config->layer(3).queryGrowth,
            (QueryGrowth{.scale = 0.1, .period = 8192}));
  EXPECT_EQ(config->experts.count, 16);
  EXPECT_EQ(config->layer(0).rope->theta, 5e5);
  auto parseWith = [](const json &fields) {
    auto config = parse(with(smallLlama4(), fields));
    EXPECT_TRUE(config.ok()) << config.message();
    return config.take();
  };
  // An empty list says nothing; types say which layers have chunks.
  ModelConfig own = parseWith({{"no_rope_layers", json::array()},
                               {"no_rope_layer_interval", 2},
                               {"layer_types",
                                {"full_attention", "chunked_attention",
                                 "full_attention", "full_attention"}}});
  EXPECT_TRUE(own.layer(0).rope);
  EXPECT_FALSE(own.layer(1).rope);
  EXPECT_EQ(own.windows(), (std::vector<int64_t>{0, 8192, 0, 0}));
  EXPECT_TRUE(own.layer(1).chunked);
  EXPECT_FALSE(parseWith({{"attention_chunk_size", nullptr}}).layer(0).chunked);
  EXPECT_EQ(parseWith({{"use_qk_norm", false}}).qkNorm, QkNorm::None);
  for (const json &used : {json(false), json(0)})
    EXPECT_FALSE(
        parseWith({{"attn_temperature_tuning", used}}).layer(3).queryGrowth);
  EXPECT_TRUE(parseWith({{"attn_temperature_tuning", 4}}).layer(3).queryGrowth);
  // Which layers have experts.
  auto haveExperts = [](const ModelConfig &config) {
    std::vector<bool> have;
    for (int64_t i = 0; i < config.layers; ++i)
      have.push_back(config.hasExperts(i));
    return have;
  };
  EXPECT_EQ(haveExperts(parseWith({{"interleave_moe_layer_step", 2}})),
            (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(haveExperts(parseWith(
                {{"interleave_moe_layer_step", 2}, {"moe_layers", {0, 2}}})),
            (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(haveExperts(parseWith({{"moe_layers", json::array()}})),
            std::vector<bool>(4, false));

  auto errorWith = [](const json &fields) {
    return parse(with(smallLlama4(), fields)).message();
  };
  expectContains(errorWith({{"moe_layers", {4}}}),
                 "'moe_layers' is [4], but a list of layers, 0 to 3, is "
                 "expected");
  expectContains(errorWith({{"attention_chunk_size", 0}}),
                 "'attention_chunk_size' is 0");
  expectContains(errorWith({{"floor_scale", 0}}), "'floor_scale' is 0");
  expectContains(errorWith({{"attn_scale", -1}}), "'attn_scale' is -1");
  expectContains(errorWith({{"attn_temperature_tuning", "yes"}}),
                 "'attn_temperature_tuning' is \"yes\"");
  expectContains(errorWith({{"layer_types",
                             {"full_attention", "sliding_attention",
                              "full_attention", "full_attention"}}}),
                 "'layer_types' has \"sliding_attention\", which is not "
                 "supported (supported: full_attention, chunked_attention)");
  expectContains(errorWith({{"sliding_window", 8}}), "'sliding_window' is 8");
  expectContains(
      errorWith({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}}),
      "is not supported where norms of queries and keys are behind "
      "RoPE, as 'use_qk_norm' says");
}

/// As files have it whose models read images, too.
TEST(ModelFamily, Llama4InsideAnother) {
  auto config = parse({{"model_type", "llama4"},
                       {"text_config", smallLlama4()},
                       {"vision_config", {{"hidden_size", 1408}}}});
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->architecture, Architecture::Llama4);
  EXPECT_EQ(config->hiddenSize, 64);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8192, 8192, 8192, 0}));
  EXPECT_EQ(config->experts, parse(smallLlama4())->experts);
}

TEST(ModelFamily, DeepseekV3) {
  auto config = golden("deepseek-v3");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->latent, (LatentConfig{.width = 12,
                                          .queryWidth = 16,
                                          .plainDim = 8,
                                          .turnedDim = 8,
                                          .valueDim = 12}));
  // Of the cache.
  EXPECT_EQ(config->headDim, 20);
  EXPECT_EQ(config->kvHeads, 1);
  EXPECT_EQ(config->attentionScale, 0.25);
  EXPECT_TRUE(config->layer(0).rope->interleaved);
  EXPECT_EQ(config->layer(0).rope->dim, 8);
  EXPECT_FALSE(config->hasExperts(0));
  EXPECT_TRUE(config->hasExperts(1));
  EXPECT_EQ(config->experts.count, 8);
  EXPECT_EQ(config->experts.chosen, 2);
  EXPECT_EQ(config->experts.sharedWidth, 12);
  EXPECT_TRUE(config->experts.sigmoid);
  EXPECT_TRUE(config->experts.normalized);
  EXPECT_TRUE(config->experts.choiceBias);
  EXPECT_FALSE(config->experts.weighsInputs);
  EXPECT_EQ(config->experts.groups, 4);
  EXPECT_EQ(config->experts.keptGroups, 2);
  EXPECT_EQ(config->experts.scale, 2.5);
}

TEST(ModelFamily, FieldsOfDeepseekV3) {
  const json small = {{"model_type", "deepseek_v3"},
                      {"hidden_size", 64},
                      {"num_hidden_layers", 4},
                      {"num_attention_heads", 8}};
  auto parseWith = [&](const json &fields) {
    auto config = parse(with(small, fields));
    EXPECT_TRUE(config.ok()) << config.message();
    return config.take();
  };
  ModelConfig config = parseWith(json::object());
  EXPECT_EQ(config.headDim, 576);
  EXPECT_EQ(config.latent.queryWidth, 1536);
  EXPECT_EQ(config.experts.count, 256);
  EXPECT_EQ(config.experts.groups, 8);
  EXPECT_FALSE(config.hasExperts(2));
  EXPECT_TRUE(config.hasExperts(3));
  EXPECT_EQ(parseWith({{"q_lora_rank", nullptr}}).latent.queryWidth, 0);
  EXPECT_EQ(parseWith({{"n_shared_experts", 2}}).experts.sharedWidth, 4096);
  EXPECT_EQ(parseWith({{"num_nextn_predict_layers", 1}}).guessingLayers, 1);
  EXPECT_EQ(parseWith({{"n_shared_experts", nullptr}}).experts.sharedWidth, 0);
  config = parseWith({{"n_group", 1}, {"topk_group", 1}});
  EXPECT_EQ(config.experts.groups, 0);
  EXPECT_FALSE(
      parseWith({{"rope_interleave", false}}).layer(0).rope->interleaved);
  // YaRN multiplies scores, and cosines by what its fields make of one another.
  json yarn = {{"type", "yarn"},
               {"factor", 40.0},
               {"mscale", 1.0},
               {"mscale_all_dim", 1.0},
               {"original_max_position_embeddings", 4096}};
  config = parseWith({{"rope_scaling", yarn}});
  const double magnitude = 0.1 * std::log(40.0) + 1;
  EXPECT_NEAR(config.attentionScale, magnitude * magnitude / std::sqrt(192.0),
              1e-12);
  EXPECT_EQ(config.layer(0).rope->magnitude, 1);
  yarn["mscale"] = 0.5;
  EXPECT_NEAR(parseWith({{"rope_scaling", yarn}}).layer(0).rope->magnitude,
              (0.05 * std::log(40.0) + 1) / magnitude, 1e-12);
  yarn["mscale_all_dim"] = 0.0;
  EXPECT_NEAR(parseWith({{"rope_scaling", yarn}}).attentionScale,
              1 / std::sqrt(192.0), 1e-12);

  // Of latents and the output; queries of the hidden row have none.
  for (const json &width : {json(16), json()}) {
    std::vector<std::string> biases;
    for (const ListedTensor &tensor : listTensors(
             parseWith({{"attention_bias", true}, {"q_lora_rank", width}})))
      if (tensor.name.starts_with("model.layers.1.self_attn.") &&
          tensor.name.ends_with(".bias"))
        biases.push_back(
            tensor.name.substr(std::string("model.layers.1.").size()));
    std::vector<std::string> expected = {"self_attn.kv_a_proj_with_mqa.bias",
                                         "self_attn.o_proj.bias"};
    if (!width.is_null())
      expected.insert(expected.begin(), "self_attn.q_a_proj.bias");
    EXPECT_EQ(biases, expected);
  }

  auto errorWith = [&](const json &fields) {
    return parse(with(small, fields)).message();
  };
  expectContains(errorWith({{"num_key_value_heads", 4}}),
                 "'num_key_value_heads' is 4, but 8, as 'num_attention_heads' "
                 "says, is expected");
  expectContains(errorWith({{"num_attention_heads", 16385}}),
                 "'num_attention_heads' 16385 times 'num_hidden_layers' 4 is "
                 "65540; at most 65536 heads are possible");
  expectContains(errorWith({{"qk_rope_head_dim", 5}}),
                 "'qk_rope_head_dim' is 5, but an even number is expected");
  expectContains(errorWith({{"n_group", 6}}),
                 "'n_group' is 6, but 'n_routed_experts' 256 make no such "
                 "groups of two or more");
  expectContains(errorWith({{"n_group", 128}, {"topk_group", 3}}),
                 "'topk_group' is 3, but as many groups have 6 experts, fewer "
                 "than 'num_experts_per_tok' 8");
  expectContains(errorWith({{"topk_group", 9}}),
                 "'topk_group' is 9, but 'n_group' is 8 by default: no more "
                 "groups can be kept than there are");
  expectContains(errorWith({{"n_group", 2}}),
                 "'topk_group' is 4 by default, but 'n_group' is 2: no more");
  // By the names that the file has.
  expectContains(errorWith({{"num_local_experts", 12}}),
                 "'n_group' is 8 by default, but 'num_local_experts' 12 make "
                 "no such groups");
  expectContains(errorWith({{"num_experts_per_tok", 200}}),
                 "'topk_group' is 4 by default, but as many groups have 128 "
                 "experts, fewer than 'num_experts_per_tok' 200");
  expectContains(errorWith({{"scoring_func", "softmax"}}),
                 "'scoring_func' is \"softmax\", but \"sigmoid\" is expected");
  expectContains(errorWith({{"topk_method", "greedy"}}), "'topk_method'");
  expectContains(errorWith({{"routed_scaling_factor", 0}}),
                 "'routed_scaling_factor' is 0");
  expectContains(errorWith({{"kv_lora_rank", 0}}), "'kv_lora_rank' is 0");
  expectContains(errorOf({{"kv_lora_rank", 8}}), "'kv_lora_rank' is 8");
}

TEST(ModelFamily, Gemma4) {
  auto config = golden("gemma4-shared-kv");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->attentionScale, 1);
  EXPECT_TRUE(config->valueNorm);
  EXPECT_TRUE(config->layerScales);
  EXPECT_EQ(config->tokenInputWidth, 8);
  EXPECT_EQ(config->tokenInputVocab, 64);
  EXPECT_EQ(config->experts.count, 0);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 0, 8, 8, 0}));
  EXPECT_EQ(config->layer(0).headDim, 8);
  EXPECT_EQ(config->layer(1).headDim, 16);
  EXPECT_EQ(config->layer(1).kvHeads, 1);
  EXPECT_FALSE(config->layer(2).keysOf);
  EXPECT_EQ(config->layer(3).keysOf, 2);
  EXPECT_EQ(config->layer(4).keysOf, 1);
  EXPECT_EQ(config->layer(2).intermediateSize, 24);
  EXPECT_EQ(config->layer(4).intermediateSize, 48);
  const RopeConfig full = *config->layer(1).rope;
  EXPECT_EQ(full.scaling, RopeConfig::Scaling::Proportional);
  EXPECT_EQ(full.dim, 16);
  EXPECT_EQ(full.turnedShare, 0.25);
  EXPECT_EQ(config->layer(0).rope->dim, 8);
  EXPECT_EQ(config->layer(0).rope->theta, 10000);

  auto experts = golden("gemma4-moe");
  ASSERT_TRUE(experts.ok()) << experts.message();
  EXPECT_EQ(experts->experts.count, 4);
  EXPECT_EQ(experts->experts.chosen, 2);
  EXPECT_EQ(experts->experts.width, 12);
  EXPECT_TRUE(experts->experts.normalized);
  EXPECT_TRUE(experts->experts.besideBlock);
  EXPECT_TRUE(experts->experts.routerNorm);
  EXPECT_TRUE(experts->experts.scales);
  EXPECT_EQ(experts->tokenInputWidth, 0);
  EXPECT_EQ(experts->layer(0).kvHeads, 2);
  EXPECT_EQ(experts->layer(2).kvHeads, 1);
  EXPECT_EQ(experts->layer(2).headDim, 16);
  EXPECT_FALSE(experts->layer(0).valuesAreKeys);
  EXPECT_TRUE(experts->layer(2).valuesAreKeys);
}

/// Six layers, of which the last has no window.
json smallGemma4() {
  return {{"model_type", "gemma4_text"}, {"hidden_size", 64},
          {"num_hidden_layers", 6},      {"intermediate_size", 172},
          {"num_attention_heads", 8},    {"num_key_value_heads", 4}};
}

TEST(ModelFamily, DefaultsOfGemma4) {
  auto config = parse(smallGemma4());
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->windows(),
            (std::vector<int64_t>{512, 512, 512, 512, 512, 0}));
  EXPECT_EQ(config->layer(0).headDim, 256);
  EXPECT_EQ(config->layer(5).headDim, 512);
  EXPECT_EQ(config->layer(5).kvHeads, 4);
  EXPECT_EQ(config->layer(5).rope->turnedShare, 0.25);
  EXPECT_EQ(config->layer(5).rope->theta, 1e6);
  EXPECT_EQ(config->tokenInputWidth, 256);
  EXPECT_EQ(config->tokenInputVocab, 262144);
  EXPECT_EQ(config->logitCap, 0);
  EXPECT_EQ(config->experts.count, 0);
  // KV heads of full layers count only where values are keys.
  json global = {{"num_global_key_value_heads", 2}};
  EXPECT_EQ(parse(with(smallGemma4(), global))->layer(5).kvHeads, 4);
  global["attention_k_eq_v"] = true;
  EXPECT_EQ(parse(with(smallGemma4(), global))->layer(5).kvHeads, 2);
  // The last layer has no window, whatever the file says.
  auto forced = parse(with(
      smallGemma4(),
      {{"layer_types", std::vector<std::string>(6, "sliding_attention")}}));
  ASSERT_TRUE(forced.ok()) << forced.message();
  EXPECT_EQ(forced->windows().back(), 0);
  ASSERT_EQ(forced->warnings.size(), 1u);
  expectContains(forced->warnings[0], "the last of 'layer_types'");
  EXPECT_TRUE(
      parse(with(smallGemma4(), {{"use_bidirectional_attention", "vision"}}))
          .ok());
}

TEST(ModelFamily, ErrorsOfGemma4) {
  auto error = [](const json &changes) {
    auto config = parse(with(smallGemma4(), changes));
    EXPECT_FALSE(config.ok()) << changes;
    return config.message();
  };
  expectContains(error({{"use_bidirectional_attention", "all"}}),
                 "'use_bidirectional_attention' is \"all\"");
  expectContains(
      error({{"rope_parameters",
              {{"full_attention", {{"rope_type", "axial"}}}}}}),
      "'rope_parameters.full_attention' has rope_type 'axial', "
      "which is not supported (supported: default, linear, dynamic, llama3, "
      "yarn, longrope, proportional)");
  expectContains(error({{"global_head_dim", 31}}),
                 "layer 5 has a head dimension of 31, which is odd");
  expectContains(
      error({{"attention_k_eq_v", true}, {"num_global_key_value_heads", 3}}),
      "layer 5 has 3 KV heads, of which 'num_attention_heads' 8");
  expectContains(
      error({{"layer_types", std::vector<std::string>(6, "full_attention")},
             {"num_kv_shared_layers", 2},
             {"use_double_wide_mlp", true},
             {"intermediate_size", (1 << 23) + 1}}),
      "'intermediate_size' is 8388609 and 'use_double_wide_mlp' is "
      "true, but blocks of twice the width have 16777218 columns; "
      "at most 16777216 is possible");
  expectContains(error({{"num_kv_shared_layers", 6}}),
                 "'num_kv_shared_layers' is 6");
  expectContains(error({{"num_kv_shared_layers", 1}}),
                 "'num_kv_shared_layers' 1 has layer 5 attend to the keys of "
                 "an earlier layer without window, and there is none");
  expectContains(error({{"per_layer_config", {{"6", json::object()}}}}),
                 "'per_layer_config' has a layer '6', but the model has "
                 "layers 0 to 5");
  for (const char *layer : {"x", "02", "-1", ""})
    expectContains(error({{"per_layer_config", {{layer, json::object()}}}}),
                   "'per_layer_config' has a layer '" + std::string(layer) +
                       "'");
  expectContains(error({{"per_layer_config", {{"1", 7}}}}),
                 "'per_layer_config.1' is 7, but an object is expected");
  expectContains(error({{"per_layer_config", 3}}), "'per_layer_config' is 3");
  expectContains(
      error({{"per_layer_config", {{"1", {{"rope_theta", 7}}}}}}),
      "'per_layer_config.1' has a field 'rope_theta', which is not supported");
  expectContains(
      error({{"per_layer_config", {{"1", {{"head_dim", 64}}}}}}),
      "layer 1 has heads of 64 elements, but layer 0 of 256, and both have a "
      "window; this is not supported");
  expectContains(error({{"hidden_size_per_layer_input", 1 << 23}}),
                 "'hidden_size_per_layer_input' is 8388608, which times "
                 "'num_hidden_layers' 6");
  expectContains(error({{"enable_moe_block", true}}), "'num_experts'");
  expectContains(error({{"enable_moe_block", true},
                        {"num_experts", 4},
                        {"moe_intermediate_size", 8},
                        {"top_k_experts", 5}}),
                 "'top_k_experts' 5 is more than 'num_experts' 4");
  // Others must not have the fields.
  expectContains(errorOf({{"num_kv_shared_layers", 2}}),
                 "'num_kv_shared_layers' is 2");
  expectContains(errorOf({{"enable_moe_block", true}}),
                 "'enable_moe_block' is true");
}

TEST(ModelFamily, Qwen3Next) {
  auto config = golden("qwen3-next");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_TRUE(config->hasStates());
  EXPECT_EQ(config->linear, (LinearAttentionConfig{.keyHeads = 2,
                                                   .valueHeads = 4,
                                                   .keyDim = 8,
                                                   .valueDim = 8,
                                                   .taps = 4,
                                                   .byKeyHeads = true}));
  EXPECT_TRUE(config->gatedAttention);
  EXPECT_TRUE(config->zeroCenteredNorms);
  EXPECT_EQ(config->qkNorm, QkNorm::Heads);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(config->layer(i).isLinear, i != 3) << i;
    EXPECT_EQ(config->layer(i).rope.has_value(), i == 3) << i;
    EXPECT_TRUE(config->hasExperts(i)) << i;
  }
  EXPECT_EQ(config->layer(3).rope->dim, 4);
  EXPECT_TRUE(config->experts.sharedGate);
  EXPECT_TRUE(config->experts.normalized);

  auto dense = golden("qwen3-5");
  ASSERT_TRUE(dense.ok()) << dense.message();
  EXPECT_FALSE(dense->linear.byKeyHeads);
  EXPECT_EQ(dense->layer(3).rope, config->layer(3).rope);
  EXPECT_EQ(dense->experts.count, 0);
}

TEST(ModelFamily, FieldsOfQwen3Next) {
  const json small = {{"model_type", "qwen3_next"}, {"hidden_size", 64},
                      {"intermediate_size", 128},   {"num_hidden_layers", 8},
                      {"num_attention_heads", 4},   {"vocab_size", 300}};
  auto config = parse(small);
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->linear, (LinearAttentionConfig{.keyHeads = 16,
                                                   .valueHeads = 32,
                                                   .keyDim = 128,
                                                   .valueDim = 128,
                                                   .taps = 4,
                                                   .byKeyHeads = true}));
  EXPECT_EQ(config->kvHeads, 2);
  EXPECT_EQ(config->headDim, 256);
  EXPECT_EQ(config->layer(3).rope->dim, 64);
  EXPECT_EQ(config->experts.count, 512);
  EXPECT_EQ(config->experts.chosen, 10);
  EXPECT_TRUE(config->experts.normalized);
  // Without linear attention, nothing is said of it.
  auto full = parse(with(small, {{"full_attention_interval", 1}}));
  ASSERT_TRUE(full.ok()) << full.message();
  EXPECT_FALSE(full->hasStates());
  auto often = parse(with(small, {{"full_attention_interval", 2}}));
  ASSERT_TRUE(often.ok()) << often.message();
  EXPECT_FALSE(often->layer(1).isLinear);

  auto error = [&](const json &changes) {
    auto config = parse(with(small, changes));
    EXPECT_FALSE(config.ok()) << changes;
    return config.message();
  };
  std::vector<std::string> types(8, "linear_attention");
  types[1] = "full_attention";
  auto listed = parse(with(small, {{"layer_types", types}}));
  ASSERT_TRUE(listed.ok()) << listed.message();
  EXPECT_FALSE(listed->layer(1).isLinear);
  EXPECT_TRUE(listed->layer(3).isLinear);
  expectContains(
      error({{"layer_types", types}, {"full_attention_interval", 4}}),
      "'full_attention_interval' is 4, but layer 1 has full attention by "
      "'layer_types'");
  types[2] = "sliding_attention";
  expectContains(error({{"layer_types", types}}),
                 "'layer_types' has \"sliding_attention\", which is not "
                 "supported (supported: full_attention, linear_attention)");
  types.pop_back();
  expectContains(error({{"layer_types", types}}), "'layer_types'");
  expectContains(error({{"linear_num_value_heads", 24}}),
                 "'linear_num_value_heads' 24 is not a multiple of "
                 "'linear_num_key_heads' 16");
  expectContains(error({{"linear_num_key_heads", 0}}),
                 "'linear_num_key_heads' is 0");
  expectContains(error({{"linear_key_head_dim", "x"}}),
                 "'linear_key_head_dim' is \"x\"");
  expectContains(error({{"linear_conv_kernel_dim", 1}}),
                 "'linear_conv_kernel_dim' is 1");
  expectContains(error({{"linear_conv_kernel_dim", 17}}),
                 "'linear_conv_kernel_dim' is 17");
  expectContains(error({{"linear_num_key_heads", 4096},
                        {"linear_num_value_heads", 1 << 20}}),
                 "columns of q, k and v; at most 16777216 are possible");
  expectContains(error({{"linear_num_key_heads", 1},
                        {"linear_num_value_heads", 1},
                        {"linear_key_head_dim", 65536},
                        {"linear_value_head_dim", 65536}}),
                 "makes states of");
  expectContains(error({{"rope_parameters",
                         {{"rope_theta", 1e7}, {"mrope_section", {1, 1, 0}}}}}),
                 "'rope_parameters' has a field 'mrope_section'");
  // Others must not have the fields.
  for (const char *field : {"full_attention_interval", "linear_num_key_heads",
                            "linear_num_value_heads"})
    expectContains(errorOf({{field, 4}}), "'" + std::string(field) + "' is 4");
  const json dense = with(small, {{"model_type", "qwen3_5_text"}});
  expectContains(parse(with(dense, {{"attn_output_gate", false}})).message(),
                 "'attn_output_gate' is false, but true is expected");
  expectContains(
      parse(with(dense, {{"mamba_ssm_dtype", "bfloat16"}})).message(),
      "'mamba_ssm_dtype' is \"bfloat16\", but \"float32\" is expected");
}

TEST(ModelFamily, Gemma3n) {
  auto config = golden("gemma3n");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->streams, (StreamsConfig{3, 0, true}));
  EXPECT_EQ(config->narrowWidth, 6);
  EXPECT_EQ(config->tokenInputWidth, 8);
  EXPECT_EQ(config->tokenInputVocab, 60);
  EXPECT_EQ(config->attentionScale, 1);
  EXPECT_TRUE(config->valueNorm);
  EXPECT_FALSE(config->layerScales);
  EXPECT_EQ(config->logitCap, 4);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 0, 8, 8, 0}));
  EXPECT_EQ(config->layer(3).keysOf, 2);
  EXPECT_EQ(config->layer(4).keysOf, 1);
  EXPECT_NEAR(config->layer(0).gateCutoff.value(), 0.524400512708041, 1e-12);
  EXPECT_FALSE(config->layer(2).gateCutoff);
  EXPECT_NEAR(normalQuantile(0.95), 1.6448536269514722, 1e-12);
  EXPECT_NEAR(normalQuantile(0.5), 0, 1e-12);
  EXPECT_NEAR(normalQuantile(0.01), -2.3263478740408408, 1e-12);
}

TEST(ModelFamily, FieldsOfGemma3n) {
  const json small = {{"model_type", "gemma3n_text"},
                      {"hidden_size", 64},
                      {"num_hidden_layers", 20},
                      {"vocab_size", 300},
                      {"query_pre_attn_scalar", 256}};
  auto config = parse(small);
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->streams, (StreamsConfig{4, 0, true}));
  EXPECT_EQ(config->narrowWidth, 64);
  EXPECT_EQ(config->logitCap, 30);
  EXPECT_EQ(config->intermediateSize, 16384);
  EXPECT_EQ(config->layer(4).window, 0);
  EXPECT_EQ(config->layer(5).window, 512);
  EXPECT_EQ(config->layer(4).rope->theta, 1e6);
  EXPECT_EQ(config->layer(5).rope->theta, 1e4);
  // Ten of more than ten layers are sparse; the last 15 share keys.
  EXPECT_TRUE(config->layer(9).gateCutoff);
  EXPECT_FALSE(config->layer(10).gateCutoff);
  EXPECT_EQ(config->layer(4).keysOf, std::nullopt);
  EXPECT_EQ(config->layer(5).keysOf, 3);
  EXPECT_EQ(config->layer(9).keysOf, 4);
  // Of as few, none does.
  auto shallow = parse(with(small, {{"num_hidden_layers", 15}}));
  ASSERT_TRUE(shallow.ok()) << shallow.message();
  for (int64_t i = 0; i < 15; ++i)
    EXPECT_FALSE(shallow->layer(i).keysOf) << i;
  std::vector<int64_t> widths(20, 100);
  widths[7] = 30;
  auto wide = parse(with(small, {{"intermediate_size", widths}}));
  ASSERT_TRUE(wide.ok()) << wide.message();
  EXPECT_EQ(wide->layer(6).intermediateSize, 100);
  EXPECT_EQ(wide->layer(7).intermediateSize, 30);

  auto error = [&](const json &changes) {
    auto config = parse(with(small, changes));
    EXPECT_FALSE(config.ok()) << changes;
    return config.message();
  };
  widths.pop_back();
  for (const json &list :
       {json(widths), json::array({100, "x"}), json::array({0})})
    expectContains(error({{"intermediate_size", list}}), "'intermediate_size'");
  expectContains(error({{"altup_num_inputs", 1}}), "'altup_num_inputs' is 1");
  expectContains(error({{"altup_num_inputs", 9}}), "'altup_num_inputs' is 9");
  expectContains(error({{"altup_num_inputs", 8}, {"num_hidden_layers", 65}}),
                 "'altup_num_inputs' is 8, whose square times "
                 "'num_hidden_layers' 65 is 4160; at most 4096 is possible");
  expectContains(error({{"altup_active_idx", 4}}), "'altup_active_idx' is 4");
  expectContains(error({{"laurel_rank", 0}}), "'laurel_rank' is 0");
  expectContains(error({{"altup_coef_clip", 0.5}}),
                 "'altup_coef_clip' is 0.5, but 120.0 is expected");
  for (const json &sparsity :
       {json(1.0), json(-0.5), json("x"), json(std::vector<double>(19, 0.5)),
        json(std::vector<double>(20, 1.5))})
    expectContains(error({{"activation_sparsity_pattern", sparsity}}),
                   "'activation_sparsity_pattern'");
  expectContains(errorOf({{"laurel_rank", 64}}), "'laurel_rank' is 64");
}

TEST(ModelFamily, Gemma2) {
  auto config = golden("gemma2");
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->attentionCap, 2);
  EXPECT_EQ(config->logitCap, 4);
  EXPECT_EQ(config->qkNorm, QkNorm::None);
  EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 0, 8, 0}));
  json small = {{"model_type", "gemma2"},
                {"hidden_size", 64},
                {"num_hidden_layers", 3},
                {"intermediate_size", 172}};
  auto usual = parse(small);
  ASSERT_TRUE(usual.ok()) << usual.message();
  EXPECT_EQ(usual->attentionCap, 50);
  EXPECT_EQ(usual->logitCap, 30);
  EXPECT_EQ(usual->windows(), (std::vector<int64_t>{4096, 0, 4096}));
  auto plain = parse(with(small, {{"attn_logit_softcapping", nullptr},
                                  {"final_logit_softcapping", nullptr}}));
  ASSERT_TRUE(plain.ok()) << plain.message();
  EXPECT_EQ(plain->attentionCap, 0);
  EXPECT_EQ(plain->logitCap, 0);
  // Others must not have the fields.
  expectContains(errorOf({{"attn_logit_softcapping", 50}}),
                 "'attn_logit_softcapping' is 50");
}

} // namespace
