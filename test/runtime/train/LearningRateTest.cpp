//===- LearningRateTest.cpp - Schedules -----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LearningRate.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

TEST(LearningRate, RisesToThePeakAndStays) {
  const LearningRate rate{.peak = 1, .warmup = 3, .steps = 10};
  EXPECT_DOUBLE_EQ(rate.at(0), 0.25);
  EXPECT_DOUBLE_EQ(rate.at(1), 0.5);
  EXPECT_DOUBLE_EQ(rate.at(2), 0.75);
  for (int64_t step = 3; step < 20; ++step)
    EXPECT_DOUBLE_EQ(rate.at(step), 1) << step;
}

TEST(LearningRate, FallsInALine) {
  const LearningRate rate{.peak = 1,
                          .minimum = 0.5,
                          .decay = LearningRate::Decay::Linear,
                          .warmup = 2,
                          .steps = 6};
  EXPECT_DOUBLE_EQ(rate.at(2), 1);
  EXPECT_DOUBLE_EQ(rate.at(3), 0.875);
  EXPECT_DOUBLE_EQ(rate.at(5), 0.625);
  EXPECT_DOUBLE_EQ(rate.at(6), 0.5);
  EXPECT_DOUBLE_EQ(rate.at(100), 0.5);
}

TEST(LearningRate, FallsAsACosine) {
  const LearningRate rate{
      .peak = 2, .decay = LearningRate::Decay::Cosine, .steps = 4};
  EXPECT_DOUBLE_EQ(rate.at(0), 2);
  EXPECT_NEAR(rate.at(1), 1 + std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(rate.at(2), 1, 1e-15);
  EXPECT_NEAR(rate.at(4), 0, 1e-15);
}

TEST(LearningRate, AWarmupAsLongAsAllSteps) {
  const LearningRate rate{
      .peak = 1, .decay = LearningRate::Decay::Linear, .warmup = 4, .steps = 4};
  EXPECT_DOUBLE_EQ(rate.at(3), 0.8);
  EXPECT_DOUBLE_EQ(rate.at(4), 1);
}

} // namespace
