//===- ContextSharesTest.cpp - Positions of texts on several ranks --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ContextShares.h"

#include "runtime/model/DummyWeights.h"
#include "runtime/model/LayerCaches.h"
#include "runtime/model/Stages.h"
#include "runtime/model/Step.h"
#include "runtime/model/TensorList.h"
#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace kf;
using namespace kf::test;

namespace {

ModelConfig llama() {
  auto config = parseModelConfig(
      R"({"model_type": "llama", "hidden_size": 64, "rms_norm_eps": 1e-5,
          "intermediate_size": 96, "vocab_size": 77, "num_hidden_layers": 3,
          "max_position_embeddings": 1000, "num_attention_heads": 4})");
  EXPECT_TRUE(config.ok()) << config.message();
  return *config;
}

std::shared_ptr<WeightSource> dummyOf(const ModelConfig &config) {
  return DummyWeights::create(config, DataType::BF16, /*seed=*/1).take();
}

TEST(ContextShares, RanksHaveAllWeightsAndTheirNumber) {
  const ModelConfig config = llama();
  const auto weights = dummyOf(config);
  for (int64_t rank = 0; rank < 3; ++rank) {
    auto part = partOfRank(config, weights, rank, 3, Parallelism::Context);
    ASSERT_TRUE(succeeds(part.status()));
    EXPECT_EQ(part->config.contextRanks, 3);
    EXPECT_EQ(part->config.rankCount(), 3);
    EXPECT_EQ(part->config.ranks, 1);
    EXPECT_TRUE(succeeds(findTensors(part->config, *part->weights).status()));
    auto number = part->weights->find(std::string(kRankNumber));
    ASSERT_TRUE(succeeds(number.status()));
    EXPECT_EQ(number->type, DataType::F32);
    EXPECT_EQ(number->shape, (std::vector<int64_t>{1}));
    float value = -1;
    std::memcpy(&value, number->data, sizeof(value));
    EXPECT_EQ(value, static_cast<float>(rank));
    // All others are those of the source, and are read there.
    std::vector<std::string> names = part->weights->names();
    EXPECT_TRUE(std::ranges::is_sorted(names));
    EXPECT_EQ(std::erase(names, std::string(kRankNumber)), 1u);
    EXPECT_EQ(names, weights->names());
    part->weights->release(std::string(kRankNumber));
    part->weights->releasePart(std::string(kRankNumber), 0, 4);
    for (const std::string &name : names)
      EXPECT_EQ(part->weights->describe(name)->bytes,
                weights->describe(name)->bytes);
  }
}

TEST(ContextShares, PagesHoldPositionsOfAllRanks) {
  ModelConfig config = llama();
  EXPECT_EQ(pagePositionsOf(config), 64);
  config.contextRanks = 3;
  EXPECT_EQ(pagePositionsOf(config), 192);
  EXPECT_EQ(pagesOfSequence(config, 192), 1);
  EXPECT_EQ(pagesOfSequence(config, 193), 2);
  EXPECT_EQ(pagesOfSequences(config, 1000, 4, 512), 4 * 6);
  EXPECT_EQ(positionsWithin(config, 5), 5 * 192);
  EXPECT_EQ(positionsOf(config, 12, 1000), 2 * 6 * 192);
  // A page of each rank is as large as one of one rank.
  EXPECT_EQ(LayerCaches(config).bytes(7).take(),
            LayerCaches(llama()).bytes(7).take());
  EXPECT_EQ(stepSignature({StepPart::Body, 16}, config)
                .inputs[numberOf(kStepPageTable)]
                .shape.back(),
            6);
}

TEST(ContextShares, PartsAreGatheredOnceALayer) {
  const ModelConfig config = llama();
  const auto part = shareContext(config, dummyOf(config), 0, 2);
  const std::vector<StepCollectives> all = collectivesOf(part->config);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, CollectiveSpec::Kind::AllGather);
  EXPECT_EQ(all[0].count, 3);
  EXPECT_EQ(all[0].columns, 4 * (16 + 2));
}

TEST(ContextShares, RefusesWindowsAndStates) {
  ModelConfig config = llama();
  const auto weights = dummyOf(config);
  EXPECT_FALSE(shareContext(config, weights, 2, 2).ok());
  config.layerConfigs[1].window = 999;
  EXPECT_EQ(shareContext(config, weights, 0, 2).message(),
            "the positions of models whose layers attend to windows are not "
            "shared by ranks; leave --context-parallel out");
  // All that texts have is seen.
  config.layerConfigs[1].window = 1000;
  EXPECT_TRUE(succeeds(shareContext(config, weights, 0, 2).status()));
  config.linear.keyHeads = 2;
  EXPECT_EQ(shareContext(config, weights, 0, 2).message(),
            "the positions of models with states of their sequences are not "
            "shared by ranks; leave --context-parallel out");
}

} // namespace
