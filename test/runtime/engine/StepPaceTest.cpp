//===- StepPaceTest.cpp - Rows of a step that takes not too long ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StepPace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace kf;

namespace {

TEST(StepPace, WithoutALimitStepsAreWhole) {
  StepPace pace(std::nullopt, 512);
  EXPECT_EQ(pace.rows(), 512);
  pace.add(512, 100);
  EXPECT_EQ(pace.rows(), 512);
}

/// Machines of all kinds: what a step costs, and each of its rows.
TEST(StepPace, StepsTakeAsLongAsTheyMay) {
  constexpr double longest = 0.25;
  for (double base : {0.0, 0.001, 0.05, 0.15})
    for (double row : {1e-6, 1e-4, 1e-3, 5e-3, 2e-2}) {
      SCOPED_TRACE(std::to_string(base) + ", " + std::to_string(row));
      StepPace pace(longest, 512);
      auto seconds = [&](int64_t rows) {
        return base + row * static_cast<double>(rows);
      };
      int tooLong = 0;
      for (int step = 0; step < 30; ++step) {
        const int64_t rows = pace.rows();
        EXPECT_GE(rows, 1);
        EXPECT_LE(rows, 512);
        tooLong += seconds(rows) > longest;
        pace.add(rows, seconds(rows));
      }
      EXPECT_EQ(tooLong, 0);
      EXPECT_LE(seconds(pace.rows()), longest);
      // And it is worth it.
      EXPECT_TRUE(pace.rows() == 512 ||
                  seconds(2 * pace.rows() + 1) > 0.7 * longest)
          << pace.rows();
    }
}

TEST(StepPace, SmallStepsSayNothingAgainstLargeOnes) {
  StepPace pace(0.25, 512);
  for (int step = 0; step < 10; ++step)
    pace.add(pace.rows(), 1e-4 * static_cast<double>(pace.rows()));
  EXPECT_EQ(pace.rows(), 512);
  // The end of a prompt, and texts.
  pace.add(3, 0.05);
  pace.add(1, 0.19);
  EXPECT_EQ(pace.rows(), 512);
  // Something else has the machine.
  pace.add(512, 2.0);
  EXPECT_EQ(pace.rows(), 51);
  pace.add(51, 0.01);
  EXPECT_EQ(pace.rows(), 102);
  // However long it takes, there is a row.
  pace.add(1, 1000);
  EXPECT_EQ(pace.rows(), 1);
  pace.add(1, 0);
  EXPECT_EQ(pace.rows(), 2);
}

/// Where even two rows take too long, that is tried now and then only.
TEST(StepPace, WhatTookTooLongIsNotTriedSoon) {
  StepPace pace(0.25, 512);
  int tooLong = 0;
  for (int step = 0; step < 320; ++step) {
    const int64_t rows = pace.rows();
    tooLong += rows > 1;
    pace.add(rows, 0.19 * static_cast<double>(rows));
  }
  EXPECT_GE(tooLong, 2);
  EXPECT_LE(tooLong, 10);
}

/// Steps that are not alike, up to a fifth longer.
TEST(StepPace, HasRoomForChance) {
  std::mt19937 random(3);
  StepPace pace(0.25, 512);
  for (int step = 0; step < 1000; ++step) {
    const int64_t rows = pace.rows();
    const double chance = 1 + static_cast<double>(random() % 20) / 100;
    const double seconds = 0.003 * static_cast<double>(rows) * chance;
    EXPECT_LE(seconds, 0.25);
    pace.add(rows, seconds);
  }
  EXPECT_GT(pace.rows(), 50);
}

} // namespace
