//===- LoraConfigTest.cpp - Low-rank additions to a model's matrices ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LoraConfig.h"

#include "ConfigTesting.h"

using namespace kf;
using namespace kf::test;

namespace {

ModelConfig smallPhi3() {
  return parse({{"model_type", "phi3"},
                {"hidden_size", 8},
                {"num_hidden_layers", 2},
                {"num_attention_heads", 2},
                {"num_key_value_heads", 1},
                {"intermediate_size", 6},
                {"vocab_size", 10}})
      .take();
}

TEST(LoraConfig, Scales) {
  LoraConfig config{.rank = 16, .alpha = 32, .targets = {"q_proj"}};
  EXPECT_EQ(config.scale(), 2);
  config.rankStabilized = true;
  EXPECT_EQ(config.scale(), 8);
}

TEST(LoraConfig, NamesModulesOfLlama) {
  const ModelConfig config = parse(smallLlama()).take();
  const std::vector<LoraModule> modules = loraModules(config);
  ASSERT_EQ(modules.size(), 4u * 7u);
  const LoraModule &query = modules.front();
  EXPECT_EQ(query.name, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(query.nameOfA(),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(query.nameOfB(),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
  EXPECT_EQ(query.in, 64);
  EXPECT_EQ(query.out, 64);
  ASSERT_EQ(query.parts.size(), 1u);
  EXPECT_EQ(query.parts[0].key, "layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(query.parts[0].rows, 64);
  EXPECT_EQ(query.parts[0].pairedRows, 0);
  const LoraModule &down = modules.back();
  EXPECT_EQ(down.name, "model.layers.3.mlp.down_proj");
  EXPECT_EQ(down.layer, 3);
  EXPECT_EQ(down.in, 172);
  EXPECT_EQ(down.out, 64);
}

TEST(LoraConfig, KnowsTheOrderOfGgufsRows) {
  ModelConfig config = parse(smallLlama()).take();
  config.naming = TensorNaming::Gguf;
  const std::vector<LoraModule> modules = loraModules(config);
  ASSERT_EQ(modules.size(), 4u * 7u);
  EXPECT_EQ(modules[0].name, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(modules[0].parts[0].key, "blk.0.attn_q.weight");
  EXPECT_EQ(modules[0].parts[0].pairedRows, 16);
  EXPECT_EQ(modules[1].parts[0].pairedRows, 16);
  EXPECT_EQ(modules[2].parts[0].key, "blk.0.attn_v.weight");
  EXPECT_EQ(modules[2].parts[0].pairedRows, 0);
}

TEST(LoraConfig, JoinsWhatPhi3Joins) {
  const std::vector<LoraModule> modules = loraModules(smallPhi3());
  ASSERT_EQ(modules.size(), 2u * 4u);
  const LoraModule &qkv = modules[0];
  EXPECT_EQ(qkv.name, "model.layers.0.self_attn.qkv_proj");
  EXPECT_EQ(qkv.out, 16);
  ASSERT_EQ(qkv.parts.size(), 3u);
  EXPECT_EQ(qkv.parts[1].key, "layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(qkv.parts[1].firstRow, 8);
  EXPECT_EQ(qkv.parts[1].rows, 4);
  const LoraModule &gateUp = modules[2];
  EXPECT_EQ(gateUp.name, "model.layers.0.mlp.gate_up_proj");
  EXPECT_EQ(gateUp.out, 12);
  EXPECT_EQ(gateUp.parts[1].key, "layers.0.mlp.up_proj.weight");
  EXPECT_EQ(gateUp.parts[1].firstRow, 6);
}

TEST(LoraConfig, KnowsTransposedModules) {
  const ModelConfig config = parse({{"model_type", "gpt2"},
                                    {"n_embd", 8},
                                    {"n_layer", 1},
                                    {"n_head", 2},
                                    {"vocab_size", 10}})
                                 .take();
  const std::vector<LoraModule> modules = loraModules(config);
  ASSERT_EQ(modules.size(), 4u);
  EXPECT_EQ(modules[0].name, "transformer.h.0.attn.c_attn");
  EXPECT_TRUE(modules[0].transposed);
  EXPECT_EQ(modules[0].in, 8);
  EXPECT_EQ(modules[0].out, 24);
}

TEST(LoraConfig, FindsTargets) {
  EXPECT_TRUE(isLoraTarget("q_proj", "model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(
      isLoraTarget("self_attn.q_proj", "model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(isLoraTarget("a.q_proj", "a.q_proj"));
  EXPECT_FALSE(isLoraTarget("proj", "model.layers.0.self_attn.q_proj"));
  EXPECT_FALSE(isLoraTarget("", "model.layers.0.self_attn.q_proj"));

  const ModelConfig config = parse(smallLlama()).take();
  EXPECT_EQ(findLoraModules(config, {"q_proj", "down_proj"})->size(), 8u);
  EXPECT_EQ(findLoraModules(config, {"layers.2.self_attn.q_proj"})->size(), 1u);
  EXPECT_EQ(findLoraModules(config, {std::string(kAllLinear)})->size(), 28u);
  EXPECT_EQ(findLoraModules(config, {"q_proj", "c_attn"}).message(),
            "'c_attn' names no module that adapters may add to; the model has "
            "'q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', "
            "'down_proj'");
  expectContains(findLoraModules(config, {}).message(),
                 "an adapter needs at least one target of 'q_proj'");
}

TEST(LoraConfig, LeavesOutExperts) {
  const ModelConfig config = parse({{"model_type", "mixtral"},
                                    {"hidden_size", 8},
                                    {"num_hidden_layers", 1},
                                    {"num_attention_heads", 2},
                                    {"num_key_value_heads", 1},
                                    {"intermediate_size", 6},
                                    {"num_local_experts", 4},
                                    {"num_experts_per_tok", 2},
                                    {"vocab_size", 10}})
                                 .take();
  EXPECT_EQ(loraModules(config).size(), 4u);
}

} // namespace
