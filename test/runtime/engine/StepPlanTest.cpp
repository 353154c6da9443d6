//===- StepPlanTest.cpp - What a step reads and what is wanted ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StepPlan.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

template <typename T>
std::vector<T> valuesOf(const StepPlan &plan, StepInput input) {
  const std::vector<std::byte> &bytes = plan.columns[input];
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

using Ints = std::vector<int32_t>;

TEST(StepPlan, ColumnsAreOfRowsAndOfWantedRows) {
  const Ints pages = {4, 2};
  const std::vector<LogitAdjustment> adjustments = {{3, 1, -1}, {9, 0, 2}};
  const std::vector<uint32_t> allowed = {0xF0u, 1u};
  StepPlan plan;
  for (int round = 0; round < 2; ++round) {
    plan.clear();
    plan.pages.push_back(pages);
    plan.addRow(7, 64);
    plan.addRow(8, 65);
    plan.want();
    plan.choose({.temperature = 2, .topK = 5, .seed = uint64_t(-3)}, {},
                adjustments, allowed);
    plan.pages.push_back(pages);
    plan.addRow(6, 10);
    plan.want();
    plan.choose({.topP = 0.5, .counter = 11}, {1.5, 0.25, 0.125},
                std::span(adjustments).first(1));
    const StepCounts counts = plan.counts();
    EXPECT_EQ(counts.tokens, 3);
    EXPECT_EQ(counts.sequences, 2);
    EXPECT_EQ(counts.wanted, 2);
    EXPECT_EQ(counts.adjustments, 3);
    EXPECT_EQ(counts.masks, 1);
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepIds), Ints({7, 8, 6}));
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepPositions), Ints({64, 65, 10}));
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepSequences), Ints({0, 0, 1}));
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepWanted), Ints({1, 2}));
    EXPECT_EQ(valuesOf<float>(plan, kStepTemperature),
              std::vector<float>({2, 0}));
    EXPECT_EQ(valuesOf<int64_t>(plan, kStepSeed),
              std::vector<int64_t>({-3, 0}));
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepFirst), Ints({0, 2}));
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepCount), Ints({2, 1}));
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepAdjustedIds), Ints({3, 9, 3}));
    EXPECT_EQ(valuesOf<int32_t>(plan, kStepMasked), Ints({0, -1}));
    EXPECT_EQ(valuesOf<uint32_t>(plan, kStepMask), allowed);
  }
}

} // namespace
