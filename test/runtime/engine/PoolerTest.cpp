//===- PoolerTest.cpp - The embedding of a text ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Pooler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace kf;

namespace {

using Row = std::vector<float>;

/// Of a text whose tokens have these rows.
Result<Row> pool(const EmbeddingOptions &options,
                 const std::vector<Row> &rows) {
  Pooler pooler(options, rows.size(), rows.front().size());
  for (size_t i = pooler.first(); i < pooler.end(); ++i)
    pooler.add(rows[i]);
  return pooler.take();
}

const std::vector<Row> kRows = {{1, 2, 2}, {3, 0, -4}, {2, 1, 8}};

TEST(Pooler, TakesTheRowsThatItNeeds) {
  auto range = [](Pooling pooling) {
    const Pooler pooler({pooling}, 5, 3);
    return std::pair(pooler.first(), pooler.end());
  };
  using Range = std::pair<size_t, size_t>;
  EXPECT_EQ(range(Pooling::None), Range(0, 5));
  EXPECT_EQ(range(Pooling::Mean), Range(0, 5));
  EXPECT_EQ(range(Pooling::Cls), Range(0, 1));
  EXPECT_EQ(range(Pooling::Last), Range(4, 5));
}

TEST(Pooler, Pools) {
  auto of = [](Pooling pooling) { return *pool({pooling, false}, kRows); };
  EXPECT_EQ(of(Pooling::Cls), Row({1, 2, 2}));
  EXPECT_EQ(of(Pooling::Last), Row({2, 1, 8}));
  EXPECT_EQ(of(Pooling::Mean), Row({2, 1, 2}));
  EXPECT_EQ(of(Pooling::None), Row({1, 2, 2, 3, 0, -4, 2, 1, 8}));
}

TEST(Pooler, NormalizesEachRow) {
  EXPECT_EQ(*pool({Pooling::Cls, true}, kRows),
            Row({1 / 3.f, 2 / 3.f, 2 / 3.f}));
  EXPECT_EQ(*pool({Pooling::Mean, true}, kRows),
            Row({2 / 3.f, 1 / 3.f, 2 / 3.f}));
  EXPECT_EQ(*pool({Pooling::None, true}, {{3, 4}, {0, 2}}),
            Row({0.6f, 0.8f, 0, 1}));
}

/// The first numbers are what is normalized.
TEST(Pooler, CutsBeforeItNormalizes) {
  EXPECT_EQ(*pool({Pooling::Last, false, 2}, kRows), Row({2, 1}));
  EXPECT_EQ(*pool({Pooling::Mean, false, 1}, kRows), Row({2}));
  EXPECT_EQ(*pool({Pooling::None, false, 1}, kRows), Row({1, 3, 2}));
  EXPECT_EQ(*pool({Pooling::Last, true, 2}, {{3, 4, 100}}), Row({0.6f, 0.8f}));
  EXPECT_EQ(*pool({Pooling::Last, true, 3}, {{1, 2, 2}}),
            *pool({Pooling::Last, true}, {{1, 2, 2}}));
}

/// Sums and squares that floats would not hold, or round away.
TEST(Pooler, AddsExactlyEnough) {
  constexpr float most = std::numeric_limits<float>::max();
  EXPECT_EQ(*pool({Pooling::Mean, false}, {{most}, {most}, {most}}),
            Row({most}));
  EXPECT_EQ(*pool({Pooling::Last, true}, {{most, most}}),
            Row({std::sqrt(0.5f), std::sqrt(0.5f)}));
  constexpr float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(*pool({Pooling::Last, true}, {{0, least}}), Row({0, 1}));
  std::vector<Row> rows(100001, Row({1e-8f}));
  rows.front() = {1};
  EXPECT_EQ(*pool({Pooling::Mean, false}, rows),
            Row({static_cast<float>((1 + 1e5 * double(1e-8f)) / 100001)}));
}

TEST(Pooler, ZeroHasNoDirection) {
  const Result<Row> zero = pool({Pooling::Mean, true}, {{1, -1}, {-1, 1}});
  EXPECT_EQ(zero.message(), "the embedding is zero, so that it has no "
                            "direction; it is not to be normalized");
  EXPECT_EQ(zero.status().code(), StatusCode::Internal);
  EXPECT_FALSE(pool({Pooling::None, true}, {{1, -1}, {0, 0}}).ok());
  EXPECT_EQ(*pool({Pooling::Mean, false}, {{1, -1}, {-1, 1}}), Row({0, 0}));
}

TEST(Pooler, WhatIsSaidGoesBeforeTheModelsFiles) {
  const EmbeddingOptions unsaid = *chooseEmbedding({}, {});
  EXPECT_EQ(unsaid, (EmbeddingOptions{Pooling::Last, true}));
  const PoolingConfig model = {.pooling = Pooling::Mean, .normalizes = false};
  EXPECT_EQ(*chooseEmbedding({}, model),
            (EmbeddingOptions{Pooling::Mean, false}));
  EXPECT_EQ(*chooseEmbedding({Pooling::Cls, {}}, model),
            (EmbeddingOptions{Pooling::Cls, false}));
  EXPECT_EQ(*chooseEmbedding({{}, true}, model),
            (EmbeddingOptions{Pooling::Mean, true}));
  // What there is no code for need not be used.
  const PoolingConfig odd = {.unsupported = Status::error("odd")};
  EXPECT_EQ(chooseEmbedding({{}, true}, odd).message(), "odd");
  EXPECT_EQ(*chooseEmbedding({Pooling::Mean, {}}, odd),
            (EmbeddingOptions{Pooling::Mean, true}));
}

} // namespace
