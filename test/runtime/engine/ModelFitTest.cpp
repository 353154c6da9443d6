//===- ModelFitTest.cpp - Whether a device has room for a model -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/ModelFit.h"

#include "runtime/model/LayerCaches.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

constexpr uint64_t kGiB = uint64_t(1) << 30;

/// 8 billion weights of 16 bits, and a cache of 4096 positions, 128 KiB each.
ModelNeeds large() {
  return {
      .weights = 16 * kGiB,
      .parameters = 8 * kGiB,
      .cache = [](int64_t pages) { return (uint64_t(64) * 128 << 10) * pages; },
      .positions = [](int64_t pages) { return 64 * pages; },
      .pages = 64};
}

DeviceMemory withFree(uint64_t bytes) {
  return {.total = 24 * kGiB, .free = bytes, .largestBuffer = bytes};
}

TEST(ModelFit, WhatFitsIsNoError) {
  EXPECT_TRUE(checkFits(large(), withFree(16 * kGiB + kGiB / 2)).ok());
}

TEST(ModelFit, SaysWhichContextFits) {
  const Status status = checkFits(large(), withFree(16 * kGiB + kGiB / 4));
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_EQ(status.message(),
            "weights of 16.00 GiB and a KV cache of 0.50 GiB (4096 positions) "
            "are 0.25 GiB more than the 16.25 GiB of 24.00 GiB that the device "
            "has free; there is room for 2048 positions in all (-c N, or "
            "--cache-memory)");
}

TEST(ModelFit, SaysWhichTypeOfWeightsFits) {
  const Status status = checkFits(large(), withFree(6 * kGiB));
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_EQ(status.message(),
            "weights of 16.00 GiB and a KV cache of 0.50 GiB (4096 positions) "
            "are 10.50 GiB more than the 6.00 GiB of 24.00 GiB that the device "
            "has free; in q4_k they would take 4.90 GiB ('kf-run quantize')");
}

TEST(ModelFit, WeightsMayBeThere) {
  ModelNeeds needs = large();
  needs.weights = 0;
  EXPECT_TRUE(checkFits(needs, withFree(kGiB / 2)).ok());
  EXPECT_EQ(checkFits(needs, withFree(kGiB / 4)).message(),
            "a KV cache of 0.50 GiB (4096 positions) is 0.25 GiB more than the "
            "0.25 GiB of 24.00 GiB that the device has free; there is room for "
            "2048 positions in all (-c N, or --cache-memory)");
}

/// A state takes as much as 16 pages, and there is one for each 32 of them.
TEST(ModelFit, CachesMayHaveMoreThanPages) {
  ModelNeeds needs = large();
  needs.cache = [](int64_t pages) {
    return (uint64_t(8) << 20) * (pages + 16 * ((pages + 31) / 32));
  };
  EXPECT_TRUE(checkFits(needs, withFree(16 * kGiB + 3 * kGiB / 4)).ok());
  const Status status = checkFits(needs, withFree(16 * kGiB + kGiB / 2));
  EXPECT_EQ(status.message(),
            "weights of 16.00 GiB and a KV cache of 0.75 GiB (4096 positions) "
            "are 0.25 GiB more than the 16.50 GiB of 24.00 GiB that the device "
            "has free; there is room for 2048 positions in all (-c N, or "
            "--cache-memory)");
}

TEST(ModelFit, CachesMayBeTooLargeForAnyMemory) {
  ModelNeeds needs = large();
  needs.cache = [](int64_t pages) {
    return pages > 8 ? UINT64_MAX : uint64_t(pages);
  };
  const Status status = checkFits(needs, withFree(17 * kGiB));
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_NE(status.message().find("there is room for 512 positions in all"),
            std::string::npos);
}

/// Where all layers have windows (Mistral 7B v0.1), a long context has as many
/// pages as one a little longer than a window.
TEST(ModelFit, PositionsAreNotInProportionToPages) {
  ModelConfig config;
  config.layers = 2;
  config.kvHeads = 1;
  config.headDim = 8;
  config.maxPositions = 32768;
  LayerConfig layer;
  layer.window = 4096;
  config.layerConfigs.assign(2, layer);
  const int64_t pages = pagesOfSequence(config, 32768);
  ASSERT_EQ(pages, 70);
  ModelNeeds needs = {.cache = [](int64_t count) { return uint64_t(count); },
                      .positions = cachePositionsOf(config, 32768, 1),
                      .pages = pages};
  EXPECT_EQ(needs.cachePositions(), 32768);
  EXPECT_EQ(needs.positions(60), 3840);
  EXPECT_EQ(needs.positions(0), 0);
  const Status status = checkFits(needs, {.total = 100, .free = 60});
  EXPECT_NE(status.message().find("(32768 positions)"), std::string::npos);
  EXPECT_NE(status.message().find("there is room for 3840 positions in all"),
            std::string::npos)
      << status.message();
  // What is said fits.
  EXPECT_LE(pagesOfSequence(config, 3840), 60);
  // Of several sequences, the whole context of some.
  EXPECT_EQ(cachePositionsOf(config, 32768, 4)(2 * 70), 2 * 32768);
  EXPECT_EQ(cachePositionsOf(config, 32768, 4)(8 * 70), 4 * 32768);
}

TEST(ModelFit, FindsTheMostPages) {
  auto bytesOf = [](int64_t pages) { return 10 + 3 * uint64_t(pages); };
  EXPECT_EQ(pagesWithin(12, 100, bytesOf), 0);
  EXPECT_EQ(pagesWithin(13, 100, bytesOf), 1);
  EXPECT_EQ(pagesWithin(39, 100, bytesOf), 9);
  EXPECT_EQ(pagesWithin(UINT64_MAX, 100, bytesOf), 100);
  EXPECT_EQ(pagesWithin(UINT64_MAX, 0, bytesOf), 0);
}

TEST(ModelFit, NoTypeThatIsLargerIsAnAnswer) {
  ModelNeeds needs = large();
  needs.weights = 3 * kGiB; // less than 3.2 bits a weight
  EXPECT_NE(checkFits(needs, withFree(kGiB))
                .message()
                .find("no type of weights makes them fit"),
            std::string::npos);
}

} // namespace
