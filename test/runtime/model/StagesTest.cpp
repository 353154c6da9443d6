//===- StagesTest.cpp - Layers of a model on one rank ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Stages.h"

#include "runtime/model/DummyWeights.h"
#include "runtime/model/Step.h"
#include "runtime/model/TensorList.h"
#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace kf;
using namespace kf::test;

namespace {

/// A llama of `layers` layers with `more` in its config.json.
ModelConfig llama(int layers, const std::string &more = "") {
  auto config = parseModelConfig(
      R"({"model_type": "llama", "hidden_size": 64, "rms_norm_eps": 1e-5,
          "intermediate_size": 96, "vocab_size": 77,
          "max_position_embeddings": 64, "num_attention_heads": 4,
          "num_hidden_layers": )" +
      std::to_string(layers) + more + "}");
  EXPECT_TRUE(config.ok()) << config.message();
  return *config;
}

std::string bytesOf(const WeightSource &weights, const std::string &name) {
  auto view = weights.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  return view.ok()
             ? std::string(static_cast<const char *>(view->data), view->bytes)
             : std::string();
}

std::shared_ptr<WeightSource> dummyOf(const ModelConfig &config) {
  return DummyWeights::create(config, DataType::BF16, /*seed=*/1).take();
}

TEST(Stages, RanksHaveTheLayersInOrder) {
  const ModelConfig config = llama(7);
  const auto weights = dummyOf(config);
  // Stage 0, 1 and 2; the last is rank 0's.
  int64_t first = 0;
  for (const auto &[rank, layers] :
       {std::pair<int64_t, int64_t>(1, 3), {2, 2}, {0, 2}}) {
    auto part = cutModel(config, weights, rank, 3);
    ASSERT_TRUE(succeeds(part.status()));
    EXPECT_EQ(part->config.stage.number, stageOfRank(rank, 3));
    EXPECT_EQ(part->config.stage.count, 3);
    EXPECT_EQ(part->config.rankCount(), 3);
    EXPECT_EQ(part->config.layers, layers);
    // What programs are made of is there, and nothing else.
    EXPECT_TRUE(succeeds(findTensors(part->config, *part->weights).status()));
    std::set<std::string> names;
    for (const std::string &name : part->weights->names())
      names.insert(name);
    EXPECT_EQ(names.contains("model.embed_tokens.weight"), rank == 1);
    EXPECT_EQ(names.contains("model.norm.weight"), rank == 0);
    EXPECT_EQ(names.contains("lm_head.weight"), rank == 0);
    for (int64_t i = 0; i < layers; ++i)
      for (const std::string tensor :
           {".self_attn.q_proj.weight", ".mlp.down_proj.weight"})
        EXPECT_EQ(bytesOf(*part->weights,
                          "model.layers." + std::to_string(i) + tensor),
                  bytesOf(*weights,
                          "model.layers." + std::to_string(first + i) + tensor))
            << rank << ": " << i << tensor;
    first += layers;
  }
  EXPECT_EQ(first, 7);
}

TEST(Stages, ATableThatIsTheOutputMatrixIsOnBothRanks) {
  const ModelConfig config = llama(2, R"(, "tie_word_embeddings": true)");
  const auto weights = dummyOf(config);
  const std::string table = "model.embed_tokens.weight";
  auto last = cutModel(config, weights, 0, 2),
       first = cutModel(config, weights, 1, 2);
  ASSERT_TRUE(succeeds(last.status()));
  ASSERT_TRUE(succeeds(first.status()));
  EXPECT_EQ(bytesOf(*first->weights, table), bytesOf(*weights, table));
  EXPECT_EQ(bytesOf(*last->weights, "lm_head.weight"),
            bytesOf(*weights, table));
  EXPECT_FALSE(std::ranges::count(last->weights->names(), table));
}

TEST(Stages, LayersKeepWhatIsTheirOwn) {
  auto config = parseModelConfig(
      R"({"model_type": "gemma3_text", "hidden_size": 64, "head_dim": 16,
          "intermediate_size": 96, "vocab_size": 77, "rms_norm_eps": 1e-6,
          "max_position_embeddings": 512, "num_attention_heads": 4,
          "num_key_value_heads": 2, "num_hidden_layers": 6,
          "sliding_window": 32, "sliding_window_pattern": 3,
          "hidden_activation": "gelu_pytorch_tanh"})");
  ASSERT_TRUE(succeeds(config.status()));
  const auto weights = dummyOf(*config);
  std::vector<int64_t> windows;
  for (const int64_t rank : {1, 2, 3, 0}) {
    auto part = cutModel(*config, weights, rank, 4);
    ASSERT_TRUE(succeeds(part.status()));
    for (int64_t i = 0; i < part->config.layers; ++i)
      windows.push_back(part->config.layer(i).window);
  }
  EXPECT_EQ(windows, config->windows());
  EXPECT_EQ(windows, (std::vector<int64_t>{32, 32, 0, 32, 32, 0}));
}

TEST(Stages, BodiesGiveRowsInTheLastOneAlone) {
  const ModelConfig config = llama(2);
  const auto weights = dummyOf(config);
  const StepShape body = {StepPart::Body, 16};
  const StepSignature whole = stepSignature(body, config);
  for (const int64_t rank : {0, 1}) {
    auto part = cutModel(config, weights, rank, 2);
    const StepSignature own = stepSignature(body, part->config);
    EXPECT_EQ(own.inputs, whole.inputs);
    EXPECT_EQ(own.outputs.size(), rank == 0 ? 1u : 0u);
  }
}

TEST(Stages, CollectivesSayWhatIsSent) {
  const ModelConfig config = llama(3);
  const auto weights = dummyOf(config);
  using enum CollectiveSpec::Kind;
  for (const auto &[rank, kinds] :
       {std::pair<int64_t, std::vector<CollectiveSpec::Kind>>(1, {Send}),
        {2, {Receive, Send}},
        {0, {Receive}}}) {
    std::vector<CollectiveSpec::Kind> found;
    for (const StepCollectives &each :
         collectivesOf(cutModel(config, weights, rank, 3)->config)) {
      found.push_back(each.kind);
      EXPECT_EQ(each.count, 1);
      EXPECT_EQ(each.columns, 64);
    }
    EXPECT_EQ(found, kinds);
  }
}

TEST(Stages, RefusesWhatCannotBeCut) {
  const ModelConfig config = llama(3);
  const auto weights = dummyOf(config);
  EXPECT_EQ(possibleStages(config), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(cutModel(config, weights, 0, 4).message(),
            "the model's 3 layers cannot be cut into 4 stages; 1 to 3 are "
            "possible");
  EXPECT_EQ(cutModel(config, weights, 2, 2).message(),
            "there is no rank 2 of 2 that share a model");
  EXPECT_EQ(cutModel(config, weights, 0, 1).message(),
            "there is no rank 0 of 1 that share a model");
}

/// A layer that attends to another's keys is on its rank.
TEST(Stages, KeepsLayersThatShareKeysTogether) {
  ModelConfig config = llama(6);
  config.layerConfigs[3].keysOf = 2;
  config.layerConfigs[5].keysOf = 4;
  EXPECT_EQ(possibleStages(config), (std::vector<int64_t>{1, 3}));
  const auto weights = dummyOf(config);
  auto part = cutModel(config, weights, 0, 3);
  ASSERT_TRUE(succeeds(part.status()));
  EXPECT_EQ(part->config.layer(1).keysOf, 0);
  EXPECT_EQ(cutModel(config, weights, 0, 2).message(),
            "the model's 6 layers cannot be cut into 2 stages that each have "
            "the keys their layers share; 1 and 3 are possible");
  EXPECT_EQ(cutModel(config, weights, 0, 7).message(),
            "the model's 6 layers cannot be cut into 7 stages; 1 and 3 are "
            "possible");
}

/// Of a model with states, rank 0 counts what all have.
TEST(Stages, HaveLayersOfEachKind) {
  ModelConfig config = llama(8);
  const auto weights = dummyOf(config);
  for (const size_t layer : {0, 1, 2, 4, 5, 6})
    config.layerConfigs[layer].isLinear = true;
  config.linear.keyHeads = 1;
  EXPECT_EQ(possibleStages(config), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(cutModel(config, weights, 0, 3).message(),
            "the model's 8 layers cannot be cut into 3 stages that have layers "
            "with states and with keys each; 1 and 2 are possible");
  config.layerConfigs[3].isLinear = true;
  EXPECT_EQ(cutModel(config, weights, 0, 2).message(),
            "the model's 8 layers cannot be cut into 2 stages that have layers "
            "with states and with keys each; leave --pipeline-parallel out");
}

TEST(Stages, RefusesModelsThatReadMoreThanRows) {
  ModelConfig config = llama(4);
  const auto weights = dummyOf(config);
  config.tokenInputWidth = 8;
  EXPECT_EQ(cutModel(config, weights, 0, 2).message(),
            "models whose layers read inputs of tokens are not cut into "
            "stages; leave --pipeline-parallel out");
  EXPECT_EQ(possibleStages(config), (std::vector<int64_t>{1}));
  config.streams.count = 4;
  EXPECT_EQ(cutModel(config, weights, 0, 2).message(),
            "models with several streams of hidden rows are not cut into "
            "stages; leave --pipeline-parallel out");
}

} // namespace
