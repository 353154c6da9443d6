//===- TrainingBatchesTest.cpp - Packed rows, and their order -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingBatches.h"

#include "runtime/train/CounterRandom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace kf;

namespace {

/// Examples of `lengths` tokens, each of which has an id of its own.
std::vector<TrainingExample> examplesOf(const std::vector<size_t> &lengths) {
  std::vector<TrainingExample> examples;
  int32_t id = 0;
  for (size_t length : lengths) {
    TrainingExample &example = examples.emplace_back();
    for (size_t i = 0; i < length; ++i)
      example.ids.push_back(id++);
    example.counts.assign(length, true);
  }
  return examples;
}

std::vector<int32_t> labelsOf(const TrainingBatch &batch) {
  std::vector<int32_t> labels;
  for (int32_t label : batch.labels)
    if (label != kNoLabel)
      labels.push_back(label);
  return labels;
}

TEST(TrainingBatches, ARowHasExamplesOneBehindTheOther) {
  std::vector<TrainingExample> examples = examplesOf({3, 5});
  examples[0].counts = {false, false, true};
  TrainingBatches batches(examples, {.rows = 1, .length = 8, .shuffle = false});
  EXPECT_EQ(batches.epochRows(), 1);
  const TrainingBatch batch = batches.batch(0);
  EXPECT_EQ(batch.rows, 1);
  EXPECT_EQ(batch.length, 8);
  EXPECT_EQ(batch.ids, (std::vector<int32_t>{3, 4, 5, 6, 0, 1, 0, 0}));
  EXPECT_EQ(batch.positions, (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 0, 0}));
  EXPECT_EQ(batch.examples, (std::vector<int32_t>{0, 0, 0, 0, 1, 1, -1, -1}));
  EXPECT_EQ(batch.labels, (std::vector<int32_t>{4, 5, 6, 7, kNoLabel, 2,
                                                kNoLabel, kNoLabel}));
}

TEST(TrainingBatches, WithoutPackingARowHasOneExample) {
  const std::vector<TrainingExample> examples = examplesOf({3, 2, 4});
  TrainingBatches batches(
      examples, {.rows = 3, .length = 8, .pack = false, .shuffle = false});
  EXPECT_EQ(batches.epochRows(), 3);
  EXPECT_EQ(labelsOf(batches.batch(0)),
            (std::vector<int32_t>{1, 2, 4, 6, 7, 8}));
}

TEST(TrainingBatches, RowsHaveLittleRoomLeft) {
  std::vector<size_t> lengths;
  const CounterRandom random(1, 0);
  size_t places = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    lengths.push_back(2 + random.below(64, i));
    places += lengths.back() - 1;
  }
  const std::vector<TrainingExample> examples = examplesOf(lengths);
  TrainingBatches batches(examples, {.rows = 1, .length = 128});
  const auto least = static_cast<int64_t>((places + 127) / 128);
  EXPECT_GE(batches.epochRows(), least);
  EXPECT_LE(batches.epochRows(), least + 1);
}

TEST(TrainingBatches, AnEpochHasEveryExampleOnce) {
  std::vector<size_t> lengths;
  for (size_t i = 0; i < 60; ++i)
    lengths.push_back(2 + i * 7 % 11);
  const std::vector<TrainingExample> examples = examplesOf(lengths);
  TrainingBatches batches(examples, {.rows = 2, .length = 16, .seed = 9});
  const int64_t rows = batches.epochRows();
  std::multiset<int32_t> seen;
  // Two epochs, since one may end within a batch.
  for (int64_t i = 0; i < rows; ++i)
    for (int32_t label : labelsOf(batches.batch(i)))
      seen.insert(label);
  std::multiset<int32_t> expected;
  for (const TrainingExample &example : examples)
    for (size_t i = 1; i < example.ids.size(); ++i)
      for (int epoch = 0; epoch < 2; ++epoch)
        expected.insert(example.ids[i]);
  EXPECT_EQ(seen, expected);
}

TEST(TrainingBatches, ABatchFollowsFromSeedAndNumberAlone) {
  const std::vector<TrainingExample> examples =
      examplesOf(std::vector<size_t>(50, 9));
  const TrainingBatches::Options options = {.rows = 4, .length = 8, .seed = 3};
  TrainingBatches one(examples, options), other(examples, options);
  std::map<int64_t, std::vector<int32_t>> ids;
  for (int64_t number = 0; number < 40; ++number)
    ids[number] = one.batch(number).ids;
  for (int64_t number : {39, 0, 12, 13, 5})
    EXPECT_EQ(other.batch(number).ids, ids[number]) << number;
  // Other epochs and seeds have other orders: 50 rows are 12.5 batches.
  EXPECT_NE(ids[0], ids[25]);
  TrainingBatches seeded(examples, {.rows = 4, .length = 8, .seed = 4});
  EXPECT_NE(seeded.batch(0).ids, ids[0]);
}

TEST(TrainingBatches, RowsBehindTheLastEpochAreEmpty) {
  const std::vector<TrainingExample> examples =
      examplesOf(std::vector<size_t>(5, 9));
  TrainingBatches batches(examples, {.rows = 4, .length = 8, .epochs = 2});
  ASSERT_EQ(batches.count(), 3);
  const TrainingBatch last = batches.batch(2);
  EXPECT_EQ(labelsOf(last).size(), 16u);
  EXPECT_EQ(std::ranges::count(last.examples, -1), 16);
  EXPECT_TRUE(labelsOf(batches.batch(3)).empty());
  TrainingBatches endless(examples, {.rows = 4, .length = 8});
  EXPECT_EQ(endless.count(), INT64_MAX);
  EXPECT_EQ(labelsOf(endless.batch(1000)).size(), 32u);
}

} // namespace
