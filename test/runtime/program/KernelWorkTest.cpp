//===- KernelWorkTest.cpp - Amounts of work -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/KernelWork.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

using namespace kf;

namespace {

using Scalars = std::array<int64_t, KF_SCALAR_COUNT>;

TEST(KernelWork, GrowsWithTheSizesOfAStep) {
  SizedCount count;
  count.constant = 1000;
  count.perSize[KF_SCALAR_N_TOKENS] = 10;
  count.perSize[KF_SCALAR_NAMED_SIZES + 1] = 3;
  EXPECT_EQ(count.at(Scalars{}), 1000);
  EXPECT_EQ(count.at(Scalars{7, 500, 9, 2}), 1000 + 70 + 6);
}

TEST(KernelWork, LargestNumbersDoNotOverflow) {
  SizedCount count;
  count.constant = std::numeric_limits<uint64_t>::max();
  count.perSize.fill(std::numeric_limits<uint64_t>::max());
  Scalars scalars;
  scalars.fill(std::numeric_limits<int64_t>::max());
  EXPECT_GT(count.at(scalars), 1e38);
}

TEST(KernelWork, CountsKeysOfRowsAndOfSequences) {
  // Three rows of one prompt, one row that generates, one without a position.
  const std::vector<int32_t> positions = {4, 5, 6, 99, -1},
                             sequences = {0, 0, 0, 1, 2};
  const KeyCounts all = countKeys(positions, sequences, {});
  EXPECT_EQ(all.seen, 5 + 6 + 7 + 100);
  EXPECT_EQ(all.read, 7 + 100);
  const KeyCounts near = countKeys(positions, sequences, {3});
  EXPECT_EQ(near.seen, 4 * 3);
  EXPECT_EQ(near.read, 5 + 3); // 2 to 6, and 97 to 99
}

TEST(KernelWork, CountsKeysOfChunks) {
  const std::vector<int32_t> positions = {4, 5, 6, 99},
                             sequences = {0, 0, 0, 1};
  const KeyCounts chunks = countKeys(positions, sequences, {5, true});
  EXPECT_EQ(chunks.seen, 5 + 1 + 2 + 5);
  EXPECT_EQ(chunks.read, 7 + 5); // 0 to 6, and 95 to 99
}

TEST(KernelWork, AWindowBeyondTheTextIsNone) {
  const std::vector<int32_t> positions = {9}, sequences = {0};
  for (uint64_t window : {uint64_t(10), ~uint64_t(0)})
    EXPECT_EQ(countKeys(positions, sequences, {window}).seen, 10);
  EXPECT_EQ(countKeys(positions, sequences, {9}).seen, 9);
  EXPECT_EQ(countKeys(positions, {}, {}).seen, 0);
}

TEST(KernelWork, KeysAddToWhatRowsTake) {
  KernelWork work;
  work.bytes.perSize[KF_SCALAR_N_TOKENS] = 8;
  work.flops.constant = 5;
  work.int8Ops.constant = 6;
  work.bf16Flops.perSize[KF_SCALAR_N_TOKENS] = 7;
  KeyWork keys;
  keys.bytesPerKey = 100;
  keys.flopsPerKey = 1000;
  work.keys = keys;
  const WorkAmount amount =
      amountOf(work, Scalars{2}, {.seen = 30, .read = 20});
  EXPECT_EQ(amount.bytes, 16 + 2000);
  EXPECT_EQ(amount.flops, 5 + 30000);
  EXPECT_EQ(amount.int8Ops, 6);
  EXPECT_EQ(amount.bf16Flops, 14);
  EXPECT_EQ(amount.operations(), 30025);
  EXPECT_TRUE(work.multipliesBF16());
}

TEST(KernelWork, KeysMayBeMultipliedInBF16) {
  KernelWork work;
  EXPECT_FALSE(work.multipliesBF16());
  work.keys = {.flopsPerKey = 1000};
  EXPECT_FALSE(work.multipliesBF16());
  work.keys->inBF16 = true;
  EXPECT_TRUE(work.multipliesBF16());
  const WorkAmount amount = amountOf(work, Scalars{2}, {.seen = 30});
  EXPECT_EQ(amount.flops, 0);
  EXPECT_EQ(amount.bf16Flops, 30000);
}

} // namespace
