//===- LayerCachesTest.cpp - Where layers keep keys and values ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LayerCaches.h"

#include "runtime/model/Step.h"
#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

/// Six layers of 2 KV heads of 32 elements.
ModelConfig config() {
  ModelConfig config;
  config.layers = 6;
  config.heads = 4;
  config.kvHeads = 2;
  config.headDim = 32;
  config.intermediateSize = 64;
  config.layerConfigs.resize(6);
  return config;
}

TEST(LayerCaches, EqualLayersHaveOne) {
  const ModelConfig model = config();
  const LayerCaches caches(model, DataType::F16);
  ASSERT_EQ(caches.specs().size(), 1u);
  EXPECT_EQ(caches.specs()[0],
            (CacheSpec{DataType::F16, 6, 2, 32, 1, kCachePage}));
  EXPECT_EQ(caches.of(5).cache, 0u);
  EXPECT_EQ(caches.of(5).layer, 5);
  auto bytes = caches.bytes(3);
  ASSERT_TRUE(succeeds(bytes.status()));
  EXPECT_EQ(*bytes, 3 * 6 * 2 * 2 * 64 * 32 * 2);
}

TEST(LayerCaches, EachSizeOfKeysHasItsOwn) {
  ModelConfig model = config();
  // The heads of layers 1 and 4 are fewer and larger.
  for (size_t layer : {1, 4}) {
    model.layerConfigs[layer].kvHeads = 1;
    model.layerConfigs[layer].headDim = 64;
  }
  // A size that is the model's is no other.
  model.layerConfigs[2].headDim = 32;
  const LayerCaches caches(model);
  ASSERT_EQ(caches.specs().size(), 2u);
  EXPECT_EQ(caches.specs()[0],
            (CacheSpec{DataType::F32, 4, 2, 32, 1, kCachePage}));
  EXPECT_EQ(caches.specs()[1],
            (CacheSpec{DataType::F32, 2, 1, 64, 1, kCachePage}));
  const std::pair<size_t, int64_t> places[] = {{0, 0}, {1, 0}, {0, 1},
                                               {0, 2}, {1, 1}, {0, 3}};
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(caches.of(i).cache, places[i].first) << i;
    EXPECT_EQ(caches.of(i).layer, places[i].second) << i;
  }
  auto bytes = caches.bytes(1);
  ASSERT_TRUE(succeeds(bytes.status()));
  EXPECT_EQ(*bytes, (4 * 2 * 32 + 2 * 1 * 64) * 2 * 64 * 4);
}

TEST(LayerCaches, LayersThatAttendToOthersKeysHaveNone) {
  ModelConfig model = config();
  model.layerConfigs[1].headDim = 64;
  model.layerConfigs[4].headDim = 64;
  model.layerConfigs[4].keysOf = 1;
  model.layerConfigs[5].keysOf = 3;
  const LayerCaches caches(model);
  ASSERT_EQ(caches.specs().size(), 2u);
  EXPECT_EQ(caches.specs()[0].layers, 3);
  EXPECT_EQ(caches.specs()[1].layers, 1);
  EXPECT_EQ(caches.of(4).cache, 1u);
  EXPECT_EQ(caches.of(4).layer, 0);
  EXPECT_EQ(caches.of(5).cache, 0u);
  EXPECT_EQ(caches.of(5).layer, 2);
}

TEST(LayerCaches, StatesHaveSlotsBesidePages) {
  ModelConfig model = config();
  model.maxPositions = 100000;
  model.linear = {
      .keyHeads = 2, .valueHeads = 4, .keyDim = 8, .valueDim = 16, .taps = 4};
  EXPECT_EQ(model.linear.channels(), 2 * 2 * 8 + 4 * 16);
  EXPECT_EQ(model.linear.stateElements(), 8 * 16 + 3 * (2 * 8 + 16));
  for (size_t layer : {0, 1, 3, 4})
    model.layerConfigs[layer].isLinear = true;
  const LayerCaches caches(model, DataType::F16);
  ASSERT_EQ(caches.specs().size(), 2u);
  EXPECT_EQ(caches.specs()[0], CacheSpec::ofStates(4, 4, 224, 64));
  EXPECT_EQ(caches.specs()[1],
            (CacheSpec{DataType::F16, 2, 2, 32, 1, kCachePage}));
  EXPECT_EQ(caches.of(4).cache, 0u);
  EXPECT_EQ(caches.of(4).layer, 3);
  EXPECT_EQ(caches.of(5).cache, 1u);
  EXPECT_EQ(caches.of(5).layer, 1);
  for (const auto [pages, slots] :
       {std::pair<int64_t, int64_t>(1, 1), {64, 1}, {65, 2}}) {
    EXPECT_EQ(cachedStates(model, pages), slots);
    auto bytes = caches.bytes(pages);
    ASSERT_TRUE(succeeds(bytes.status()));
    EXPECT_EQ(*bytes,
              4 * slots * 4 * 224 * 4 + 2 * pages * 2 * 2 * 64 * 32 * 2);
  }
  // A sequence has a slot, however short it is.
  EXPECT_EQ(pagesOfSequence(model, 100), 64);
  EXPECT_EQ(pagesOfSequence(model, 64 * 100), 100);
  model.maxPositions = 200;
  EXPECT_EQ(statePagesOf(model), 4);
  model.linear = {};
  EXPECT_EQ(cachedStates(model, 100), 0);
  EXPECT_EQ(pagesOfSequence(model, 100), 2);
}

TEST(LayerCaches, SaysWhatIsTooLarge) {
  ModelConfig model = config();
  model.layerConfigs[0].headDim = 1 << 16;
  EXPECT_TRUE(failsWith(LayerCaches(model).bytes(int64_t(1) << 40).status(),
                        "than 63 bits can count"));
}

} // namespace
