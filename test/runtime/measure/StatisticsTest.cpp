//===- StatisticsTest.cpp -------------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/Statistics.h"

#include <gtest/gtest.h>

#include <vector>

using namespace kf;

TEST(Statistics, OfSeveralSamplesInAnyOrder) {
  const std::vector<double> samples = {4, 2, 9, 5};
  const Statistics statistics = statisticsOf(samples);
  EXPECT_EQ(statistics.count, 4u);
  EXPECT_DOUBLE_EQ(statistics.mean, 5);
  EXPECT_DOUBLE_EQ(statistics.median, 4.5);
  EXPECT_DOUBLE_EQ(statistics.least, 2);
  EXPECT_DOUBLE_EQ(statistics.most, 9);
  // Squares 1, 9, 16, 0 over 3.
  EXPECT_NEAR(statistics.deviation * statistics.deviation, 26.0 / 3, 1e-12);
}

TEST(Statistics, MedianOfAnOddNumberIsASample) {
  const std::vector<double> samples = {7, 1, 3};
  EXPECT_DOUBLE_EQ(statisticsOf(samples).median, 3);
}

TEST(Statistics, OfOneSampleThereIsNoDeviation) {
  const std::vector<double> samples = {0.25};
  const Statistics statistics = statisticsOf(samples);
  EXPECT_DOUBLE_EQ(statistics.mean, 0.25);
  EXPECT_DOUBLE_EQ(statistics.median, 0.25);
  EXPECT_EQ(statistics.deviation, 0);
  EXPECT_EQ(statistics.spread, 0);
}

TEST(Statistics, FarSamplesDoNotMoveTheSpread) {
  // Distances from the median 5: 1, 1, 0, 2, 2; then 1, 1, 0, 2, 995.
  const std::vector<double> quiet = {4, 6, 5, 3, 7},
                            disturbed = {4, 6, 5, 3, 1000};
  EXPECT_DOUBLE_EQ(statisticsOf(quiet).spread, 1.4826);
  EXPECT_DOUBLE_EQ(statisticsOf(disturbed).spread, 1.4826);
  EXPECT_GT(statisticsOf(disturbed).deviation, 400);
}

TEST(Statistics, OfNothingIsZero) {
  const Statistics statistics = statisticsOf({});
  EXPECT_EQ(statistics.count, 0u);
  EXPECT_EQ(statistics.mean, 0);
  EXPECT_EQ(statistics.most, 0);
}

TEST(Statistics, LargeSamplesThatLieCloseKeepTheirDigits) {
  const std::vector<double> samples = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  const Statistics statistics = statisticsOf(samples);
  EXPECT_DOUBLE_EQ(statistics.mean, 1e9 + 10);
  EXPECT_NEAR(statistics.deviation * statistics.deviation, 30, 1e-9);
}
