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

/// Gemma 3's: five layers in six have a window.
ModelConfig windowed() {
  ModelConfig model = config();
  model.maxPositions = 64 * 100;
  for (size_t i = 0; i < 5; ++i)
    model.layerConfigs[i].window = 500;
  return model;
}

TEST(LayerCaches, LayersWithWindowsHavePagesOfTheirOwn) {
  ModelConfig model = windowed();
  LayerCaches caches(model, DataType::F16);
  ASSERT_EQ(caches.specs().size(), 1u);
  EXPECT_EQ(caches.specs()[0],
            (CacheSpec{DataType::F16, 1, 2, 32, 1, kCachePage}));
  EXPECT_EQ(cacheWindowsOf(model), (CacheWindows{5, 500}));
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(caches.of(i).layer, 0);
    EXPECT_EQ(caches.of(i).table, i == 5 ? 0 : i + 1);
  }
  // Two that see all, in groups of two with one place that is empty; the widest
  // window is what all keep.
  model.layerConfigs[3].window = 0;
  model.layerConfigs[4].window = 100;
  model.layers = 7;
  model.layerConfigs.push_back(model.layerConfigs[0]);
  caches = LayerCaches(model);
  EXPECT_EQ(caches.specs()[0].layers, 2);
  EXPECT_EQ(cacheWindowsOf(model), (CacheWindows{3, 500}));
  const std::pair<int64_t, int64_t> places[] = {{1, 0}, {1, 1}, {2, 0}, {0, 0},
                                                {2, 1}, {0, 1}, {3, 0}};
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(caches.of(i).table, places[i].first);
    EXPECT_EQ(caches.of(i).layer, places[i].second);
  }
}

TEST(LayerCaches, WindowsHaveFewTables) {
  ModelConfig model = windowed();
  model.layers = 18;
  model.layerConfigs.assign(18, model.layerConfigs[0]);
  model.layerConfigs[9].window = 0;
  EXPECT_EQ(cacheWindowsOf(model).tables, 6);
  EXPECT_EQ(LayerCaches(model).specs()[0].layers, 3);
}

TEST(LayerCaches, LayersThatAttendToAWindowsKeysHaveItsPages) {
  ModelConfig model = windowed();
  model.layerConfigs[4].keysOf = 1;
  const LayerCaches caches(model);
  EXPECT_EQ(cacheWindowsOf(model).tables, 4);
  EXPECT_EQ(caches.of(4).table, caches.of(1).table);
  // Keys that one of them sees all of are kept.
  model.layerConfigs[4].window = 0;
  EXPECT_EQ(LayerCaches(model).of(1).table, 0);
  EXPECT_EQ(cacheWindowsOf(model).tables, 2);
}

TEST(LayerCaches, WindowsThatSaveNothingShareAllPages) {
  const ModelConfig model = windowed();
  auto hasNone = [&](auto change) {
    ModelConfig changed = model;
    change(changed);
    return cacheWindowsOf(changed) == CacheWindows();
  };
  EXPECT_FALSE(hasNone([](ModelConfig &) {}));
  // Texts are no longer than windows, or hardly.
  EXPECT_TRUE(hasNone([](ModelConfig &m) { m.maxPositions = 500; }));
  EXPECT_TRUE(hasNone([](ModelConfig &m) { m.maxPositions = 640; }));
  // None has a window, or few.
  EXPECT_TRUE(hasNone([](ModelConfig &m) { m.layerConfigs.assign(6, {}); }));
  EXPECT_TRUE(hasNone([](ModelConfig &m) {
    for (size_t i = 1; i < 5; ++i)
      m.layerConfigs[i].window = 0;
  }));
  // Keys of several sizes, and stages, whose pages are those of others.
  EXPECT_TRUE(hasNone([](ModelConfig &m) { m.layerConfigs[5].headDim = 64; }));
  EXPECT_TRUE(hasNone([](ModelConfig &m) { m.stage.count = 2; }));
}

/// Mistral's: one group, whose page table is the only one.
TEST(LayerCaches, LayersThatAllHaveWindowsAreOneGroup) {
  ModelConfig model = windowed();
  model.layerConfigs[5].window = 9;
  const CacheWindows windows = cacheWindowsOf(model);
  EXPECT_EQ(windows, (CacheWindows{1, 500, true}));
  EXPECT_EQ(windows.groups(), 1);
  EXPECT_EQ(windows.moreTables(), 0);
  const LayerCaches caches(model, DataType::F16);
  ASSERT_EQ(caches.specs().size(), 1u);
  EXPECT_EQ(caches.specs()[0].layers, 6);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(caches.of(i).layer, i);
    EXPECT_EQ(caches.of(i).table, 0);
  }
  EXPECT_EQ(pagesOfSequence(model, 640), 10);
  EXPECT_EQ(pagesOfSequence(model, 6400), 10 + 4);
  EXPECT_EQ(pagesOfSequences(model, 6400, 3, 2048), 3 * (10 + 4) + 32 - 4);
  // With as many pages as any text has, those of the whole context.
  EXPECT_EQ(positionsWithin(model, 13), 13 * 64);
  EXPECT_EQ(positionsWithin(model, 14), 6400);
  EXPECT_EQ(positionsWithin(model, 100), 6400);
  EXPECT_EQ(positionsOf(model, 2 * 14, 6400), 2 * 6400);
  EXPECT_EQ(positionsOf(model, 2 * 14, 640), 28 * 64);
  EXPECT_EQ(positionsOf(model, 2 * 14, 640, 2), 2 * 640);
  // With fewer than its windows see, a sequence has no more than them.
  EXPECT_EQ(positionsOf(model, 13, 6400), 13 * 64);
  EXPECT_EQ(positionsOf(model, 14, 6400), 6400);
}

TEST(LayerCaches, SequencesKeepWhatWindowsSee) {
  const ModelConfig model = windowed();
  const CacheWindows windows = cacheWindowsOf(model);
  EXPECT_EQ(windows.firstSeen(499), 0);
  EXPECT_EQ(windows.firstSeen(500), 0);
  EXPECT_EQ(windows.firstSeen(499 + 64), 1);
  EXPECT_EQ(windows.firstKept(499 + 64), 0);
  EXPECT_EQ(windows.firstKept(499 + 128), 1);
  for (int64_t length = 0; length < 2000; ++length)
    ASSERT_LE(cachePagesOf(length) - windows.firstKept(length),
              windows.pagesKept());
  EXPECT_EQ(windows.pagesKept(), 10);
  EXPECT_EQ(pagesOfSequence(model, 640), 6 * 10);
  EXPECT_EQ(pagesOfSequence(model, 6400), 100 + 5 * (10 + 4));
  EXPECT_EQ(positionsWithin(model, 100 + 5 * (10 + 4)), 6400);
  EXPECT_EQ(positionsWithin(model, 100 + 5 * (10 + 4) - 1), 6400 - 64);
  EXPECT_EQ(positionsWithin(model, 5), 0);
  EXPECT_EQ(positionsOf(model, 2 * 170, 6400), 2 * 6400);
  EXPECT_EQ(positionsOf(config(), 7, 1000), 7 * 64);
  // Whole contexts are not rounded down.
  for (int64_t context = 64; context <= 6400; context += 64)
    ASSERT_EQ(positionsOf(model, 3 * pagesOfSequence(model, context), context),
              3 * context);
  EXPECT_EQ(positionsOf(model, 1, 64), 0);
  // Pages for a step are none of theirs.
  EXPECT_EQ(positionsOf(model, pagesOfSequences(model, 6400, 2, 2048), 6400, 2),
            2 * 6400);
  EXPECT_EQ(positionsOf(config(), INT64_MAX, 64), INT64_MAX);
  EXPECT_EQ(positionsWithin(config(), 7), 7 * 64);
}

/// A cache of whole contexts has the pages of a whole step as well, but none
/// that no text can have.
TEST(LayerCaches, SequencesHavePagesForAStep) {
  const ModelConfig model = windowed();
  const int64_t each = pagesOfSequence(model, 6400);
  EXPECT_EQ(pagesOfSequences(model, 6400, 1, 256), each);
  EXPECT_EQ(pagesOfSequences(model, 6400, 1, 2048), each + 5 * (32 - 4));
  EXPECT_EQ(pagesOfSequences(model, 6400, 3, 2048), 3 * each + 5 * (32 - 4));
  EXPECT_EQ(pagesOfSequences(model, 640, 3, 2048), 3 * 6 * 10);
  EXPECT_EQ(pagesOfSequences(model, 64 * 16, 1, 2048), 6 * 16);
  EXPECT_EQ(pagesOfSequences(model, 64 * 16, 3, 2048), 3 * 6 * 16);
  EXPECT_EQ(pagesOfSequences(config(), 6400, 3, 2048), 300);
}

/// However long texts are, those that one model has room for have room in the
/// other's pages, and in no fewer.
TEST(LayerCaches, AModelHasPagesBesideAnother) {
  const ModelConfig whole = config(), narrow = windowed();
  ModelConfig wide = narrow;
  wide.layerConfigs.resize(4);
  wide.layers = 4;
  for (LayerConfig &layer : wide.layerConfigs)
    layer.window = 2000;
  wide.layerConfigs[3].window = 0;
  ASSERT_EQ(cacheWindowsOf(wide).tables, 3);
  ModelConfig narrowest = narrow;
  narrowest.layerConfigs[5].window = 500;
  for (const ModelConfig &model : {whole, narrow, wide, narrowest})
    for (const ModelConfig &other : {whole, narrow, wide, narrowest})
      for (const int64_t context : {64, 700, 2500, 6400}) {
        int64_t most = 0;
        const int64_t pages = 1000;
        for (int64_t length = 64; length < context + 64; length += 64) {
          const int64_t own = pagesOfSequence(model, length),
                        others = pagesOfSequence(other, length);
          most = std::max(most, (pages * own + others - 1) / others);
        }
        ASSERT_EQ(pagesBeside(model, other, pages, context), most);
      }
  EXPECT_EQ(pagesBeside(narrow, narrow, 77, 6400), 77);
  EXPECT_EQ(pagesBeside(narrow, whole, 10, 6400), 6 * 10);
}

TEST(LayerCaches, SaysWhatIsTooLarge) {
  ModelConfig model = config();
  model.layerConfigs[0].headDim = 1 << 16;
  EXPECT_TRUE(failsWith(LayerCaches(model).bytes(int64_t(1) << 40).status(),
                        "than 63 bits can count"));
}

} // namespace
