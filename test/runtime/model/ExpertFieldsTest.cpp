//===- ExpertFieldsTest.cpp - Configurations with experts ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigTesting.h"

#include "runtime/model/TensorList.h"

#include <algorithm>

using namespace kf;
using namespace kf::test;

namespace {

/// Four layers; the fields of experts are those that their classes imply.
json smallOf(const char *family) {
  return {{"model_type", family},     {"hidden_size", 64},
          {"num_hidden_layers", 4},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"intermediate_size", 172},
          {"vocab_size", 307}};
}

std::vector<bool> layersWithExperts(const ModelConfig &config) {
  std::vector<bool> have;
  for (int64_t i = 0; i < config.layers; ++i)
    have.push_back(config.hasExperts(i));
  return have;
}

TEST(ExpertFields, GoldenModels) {
  struct Case {
    const char *model;
    ExpertsConfig experts;
  };
  for (const Case &test :
       std::initializer_list<Case>{{"mixtral", {4, 2, 24, true}},
                                   {"qwen2-moe",
                                    {.count = 6,
                                     .chosen = 2,
                                     .width = 16,
                                     .sharedWidth = 24,
                                     .sharedGate = true}},
                                   {"qwen3-moe", {8, 2, 12, true}},
                                   {"granitemoe", {4, 2, 20, true}},
                                   {"olmoe", {6, 2, 16, false}}}) {
    SCOPED_TRACE(test.model);
    auto config = golden(test.model);
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(config->experts, test.experts);
    EXPECT_EQ(layersWithExperts(*config), std::vector<bool>(3, true));
    EXPECT_EQ(config->windows(), std::vector<int64_t>(3, 0));
    EXPECT_FALSE(config->attentionSinks);
  }
  for (const auto &[model, width] :
       {std::pair("gpt-oss", 24), std::pair("gpt-oss-mxfp4", 32)}) {
    SCOPED_TRACE(model);
    auto config = golden(model);
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(config->experts, (ExpertsConfig{.count = 4,
                                              .chosen = 2,
                                              .width = width,
                                              .normalized = true,
                                              .bias = true,
                                              .clamp = GateClamp{1.5, 1.702}}));
    EXPECT_EQ(config->windows(), (std::vector<int64_t>{8, 0, 8}));
    EXPECT_TRUE(config->attentionSinks && config->qkvBias &&
                config->attentionOutputBias);
    EXPECT_EQ(config->commonRope()->scaling, RopeConfig::Scaling::Yarn);
    EXPECT_FALSE(config->commonRope()->truncate);
  }
  EXPECT_EQ(golden("qwen3-moe")->qkNorm, QkNorm::Heads);
  EXPECT_EQ(golden("olmoe")->qkNorm, QkNorm::Width);
  EXPECT_TRUE(golden("qwen2-moe")->qkvBias);
  EXPECT_EQ(golden("granitemoe")->residualScale, 0.7);
  EXPECT_EQ(golden("granitemoe")->logitScale, 2.5);
  EXPECT_EQ(golden("llama2-mha")->experts, ExpertsConfig());
}

/// What absent fields stand for is what the configuration classes say.
TEST(ExpertFields, Defaults) {
  struct Case {
    const char *family;
    ExpertsConfig experts;
  };
  for (const Case &test :
       std::initializer_list<Case>{{"mixtral", {8, 2, 172, true}},
                                   {"qwen2_moe",
                                    {.count = 60,
                                     .chosen = 4,
                                     .width = 1408,
                                     .sharedWidth = 5632,
                                     .sharedGate = true}},
                                   {"qwen3_moe", {128, 8, 768, false}},
                                   {"granitemoe", {8, 2, 172, true}},
                                   {"olmoe", {64, 8, 172, false}}}) {
    auto config = parse(smallOf(test.family));
    ASSERT_TRUE(config.ok()) << config.message();
    EXPECT_EQ(config->experts, test.experts) << test.family;
  }
}

TEST(ExpertFields, DefaultsOfGptOss) {
  auto config = parse({{"model_type", "gpt_oss"}});
  ASSERT_TRUE(config.ok()) << config.message();
  EXPECT_EQ(config->layers, 36);
  EXPECT_EQ(config->headDim, 64);
  EXPECT_EQ(config->experts, (ExpertsConfig{.count = 128,
                                            .chosen = 4,
                                            .width = 2880,
                                            .normalized = true,
                                            .bias = true,
                                            .clamp = GateClamp{7, 1.702}}));
  EXPECT_EQ(config->layerConfigs[34].window, 128);
  EXPECT_EQ(config->layerConfigs[35].window, 0);
  RopeConfig yarn = *config->commonRope();
  EXPECT_EQ(yarn.scaling, RopeConfig::Scaling::Yarn);
  EXPECT_EQ(yarn.factor, 32);
  EXPECT_EQ(yarn.originalContext, 4096);
  EXPECT_EQ(yarn.theta, 150000);
  EXPECT_FALSE(yarn.truncate);
  // null says that there is no scaling.
  auto plain = parse({{"model_type", "gpt_oss"}, {"rope_scaling", nullptr}});
  EXPECT_EQ(plain->commonRope()->scaling, RopeConfig::Scaling::None);
  expectContains(
      parse({{"model_type", "gpt_oss"}, {"hidden_act", "gelu"}}).message(),
      "'hidden_act' is \"gelu\"");
  for (const char *name : {"swiglu_limit", "swiglu_alpha"})
    expectContains(parse({{"model_type", "gpt_oss"}, {name, 0}}).message(),
                   "'" + std::string(name) + "' is 0");
}

/// transformers 4 and 5 have two names of the number of experts.
TEST(ExpertFields, EitherNameOfTheCount) {
  for (const char *family :
       {"mixtral", "qwen2_moe", "qwen3_moe", "granitemoe", "olmoe"}) {
    const json model = with(smallOf(family), {{"num_experts_per_tok", 3}});
    for (const char *name : {"num_experts", "num_local_experts"}) {
      auto config = parse(with(model, {{name, 5}}));
      ASSERT_TRUE(config.ok()) << config.message();
      EXPECT_EQ(config->experts.count, 5) << family;
      EXPECT_EQ(parse(with(model, {{name, 2}})).message(),
                "config.json: 'num_experts_per_tok' 3 is more than '" +
                    std::string(name) + "' 2");
      expectContains(parse(with(model, {{name, 0}})).message(),
                     "'" + std::string(name) + "' is 0");
    }
    const json both = {{"num_experts", 5}, {"num_local_experts", 5}};
    EXPECT_TRUE(parse(with(model, both)).ok());
    const std::string disagree =
        parse(with(with(model, both), {{"num_experts", 6}})).message();
    expectContains(disagree, "'num_experts' is 6");
    expectContains(disagree, "'num_local_experts' is 5");
  }
}

TEST(ExpertFields, NumbersOutOfRange) {
  const json model = smallOf("qwen2_moe");
  for (const char *name :
       {"num_experts", "num_experts_per_tok", "moe_intermediate_size",
        "shared_expert_intermediate_size", "decoder_sparse_step"})
    for (json value : {json(0), json(-1), json(1 << 25), json("8"), json(1.5)})
      expectContains(parse(with(model, {{name, value}})).message(),
                     "'" + std::string(name) + "' is " + value.dump());
  expectContains(parse(with(model, {{"norm_topk_prob", 1}})).message(),
                 "'norm_topk_prob' is 1, but true or false is expected");
  EXPECT_EQ(
      parse(with(model, {{"num_hidden_layers", 1024}, {"num_experts", 128}}))
          .message(),
      "config.json: 'num_experts' 128 times 'num_hidden_layers' 1024 is "
      "131072; at most 65536 experts are possible");
}

TEST(ExpertFields, LayersWithoutExperts) {
  for (const char *family : {"qwen2_moe", "qwen3_moe"}) {
    const json model = smallOf(family);
    auto every = parse(with(model, {{"decoder_sparse_step", 2}}));
    ASSERT_TRUE(every.ok()) << every.message();
    EXPECT_EQ(layersWithExperts(*every),
              (std::vector<bool>{false, true, false, true}));
    auto both = parse(
        with(model, {{"decoder_sparse_step", 2}, {"mlp_only_layers", {3, 0}}}));
    ASSERT_TRUE(both.ok()) << both.message();
    EXPECT_EQ(layersWithExperts(*both),
              (std::vector<bool>{false, true, false, false}));
    for (json list : {json(1), json{1, 4}, json{-1}, json{"1"}, json{1.0}})
      EXPECT_EQ(parse(with(model, {{"mlp_only_layers", list}})).message(),
                "config.json: 'mlp_only_layers' is " + list.dump() +
                    ", but a list of layers, 0 to 3, is expected");
  }
  // Others have experts in all layers, whatever such fields say.
  auto mixtral = parse(with(smallOf("mixtral"), {{"decoder_sparse_step", 2}}));
  ASSERT_TRUE(mixtral.ok()) << mixtral.message();
  EXPECT_EQ(layersWithExperts(*mixtral), std::vector<bool>(4, true));
}

TEST(ExpertFields, Windows) {
  const json used = {{"use_sliding_window", true},
                     {"sliding_window", 8},
                     {"max_window_layers", 2}};
  auto qwen3 = parse(with(smallOf("qwen3_moe"), used));
  ASSERT_TRUE(qwen3.ok()) << qwen3.message();
  EXPECT_EQ(qwen3->windows(), std::vector<int64_t>(4, 8));
  json qwen2 = with(smallOf("qwen2_moe"), used);
  EXPECT_EQ(parse(qwen2).message(),
            "config.json: 'use_sliding_window' is true, but nothing says which "
            "layers have the window; 'layer_types' is expected");
  qwen2["layer_types"] = {"sliding_attention", "full_attention",
                          "sliding_attention", "full_attention"};
  EXPECT_EQ(parse(qwen2)->windows(), (std::vector<int64_t>{8, 0, 8, 0}));
  for (const char *family : {"qwen2_moe", "qwen3_moe"})
    EXPECT_EQ(parse(with(smallOf(family), {{"sliding_window", 8}}))->windows(),
              std::vector<int64_t>(4, 0));
  EXPECT_EQ(parse(with(smallOf("mixtral"), {{"sliding_window", 8}}))->windows(),
            std::vector<int64_t>(4, 8));
}

/// Fields that change the arithmetic in a way that is not built.
TEST(ExpertFields, Unsupported) {
  EXPECT_EQ(parse(with(smallOf("olmoe"), {{"clip_qkv", 8.0}})).message(),
            "config.json: 'clip_qkv' is 8.0, which changes the arithmetic in a "
            "way that is not supported");
  EXPECT_TRUE(parse(with(smallOf("olmoe"), {{"clip_qkv", nullptr}})).ok());
  for (const char *name :
       {"n_shared_experts", "shared_expert_intermediate_size"})
    expectContains(parse(with(smallOf("mixtral"), {{name, 64}})).message(),
                   "'" + std::string(name) + "' is 64");
  expectContains(parse(with(smallOf("qwen3_moe"),
                            {{"shared_expert_intermediate_size", 64}}))
                     .message(),
                 "'shared_expert_intermediate_size' is 64, but 0 is expected");
  expectContains(errorOf({{"num_experts", 8}}), "'num_experts' is 8");
  // What only training does is ignored.
  EXPECT_TRUE(
      parse(with(smallOf("mixtral"), {{"router_jitter_noise", 0.1}})).ok());
}

/// Names and shapes of the tensors of one layer.
std::vector<std::string> layerTensors(const ModelConfig &config,
                                      const std::string &layer) {
  std::vector<std::string> found;
  for (const ListedTensor &tensor : listTensors(config)) {
    if (!tensor.key.starts_with(layer) ||
        tensor.key.find(".self_attn.") != std::string::npos ||
        tensor.key.find("norm") != std::string::npos)
      continue;
    std::string text = tensor.key.substr(layer.size());
    for (int64_t size : tensor.shape)
      text += " " + std::to_string(size);
    if (tensor.ofExpert)
      text += " expert";
    found.push_back(text);
  }
  return found;
}

TEST(ExpertFields, TensorsOfALayer) {
  const json experts = {{"num_experts", 2},
                        {"num_experts_per_tok", 1},
                        {"moe_intermediate_size", 12},
                        {"shared_expert_intermediate_size", 20},
                        {"mlp_only_layers", {1}}};
  auto qwen2 = parse(with(smallOf("qwen2_moe"), experts));
  ASSERT_TRUE(qwen2.ok()) << qwen2.message();
  EXPECT_EQ(layerTensors(*qwen2, "layers.0.mlp."),
            (std::vector<std::string>{"gate.weight 2 64",
                                      "experts.0.gate_proj.weight 12 64 expert",
                                      "experts.0.up_proj.weight 12 64 expert",
                                      "experts.0.down_proj.weight 64 12 expert",
                                      "experts.1.gate_proj.weight 12 64 expert",
                                      "experts.1.up_proj.weight 12 64 expert",
                                      "experts.1.down_proj.weight 64 12 expert",
                                      "shared_expert.gate_proj.weight 20 64",
                                      "shared_expert.up_proj.weight 20 64",
                                      "shared_expert.down_proj.weight 64 20",
                                      "shared_expert_gate.weight 1 64"}));
  EXPECT_EQ(layerTensors(*qwen2, "layers.1.mlp."),
            (std::vector<std::string>{"gate_proj.weight 172 64",
                                      "up_proj.weight 172 64",
                                      "down_proj.weight 64 172"}));
  const json few = {{"num_experts", 1}, {"num_experts_per_tok", 1}};
  auto mixtral = parse(with(smallOf("mixtral"), few));
  EXPECT_EQ(layerTensors(*mixtral, "layers.3.block_sparse_moe."),
            (std::vector<std::string>{"gate.weight 1 64",
                                      "experts.0.w1.weight 172 64 expert",
                                      "experts.0.w3.weight 172 64 expert",
                                      "experts.0.w2.weight 64 172 expert"}));
  auto granite = parse(with(smallOf("granitemoe"), few));
  EXPECT_EQ(layerTensors(*granite, "layers.3.block_sparse_moe.").front(),
            "router.layer.weight 1 64");
  auto gptOss = parse(with(smallOf("gpt_oss"), few));
  EXPECT_EQ(
      layerTensors(*gptOss, "layers.3.mlp."),
      (std::vector<std::string>{"router.weight 1 64", "router.bias 1",
                                "experts.0.gate_proj.weight 172 64 expert",
                                "experts.0.gate_proj.bias 172 expert",
                                "experts.0.up_proj.weight 172 64 expert",
                                "experts.0.up_proj.bias 172 expert",
                                "experts.0.down_proj.weight 64 172 expert",
                                "experts.0.down_proj.bias 64 expert"}));
  const std::vector<ListedTensor> all = listTensors(*gptOss);
  EXPECT_EQ(
      std::ranges::count(all, "layers.3.self_attn.sinks", &ListedTensor::key),
      1);
}

} // namespace
