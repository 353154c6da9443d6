//===- TimeRatioTest.cpp - How much longer one thing takes ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/TimeRatio.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace kf;

namespace {

TEST(TimeRatio, OfTooFewTimesHasNoBounds) {
  EXPECT_EQ(ratioOfPairs({}, {}), TimeRatio());
  EXPECT_EQ(ratioOfSamples({}, {}), TimeRatio());
  const std::vector<double> pairs(19, 2.0), samples(11, 2.0);
  EXPECT_EQ(ratioOfPairs(pairs, pairs), (TimeRatio{1, 0, HUGE_VAL}));
  EXPECT_EQ(ratioOfSamples(samples, samples), (TimeRatio{1, 0, HUGE_VAL}));
  const std::vector<double> enough(20, 2.0), half(20, 1.0);
  EXPECT_EQ(ratioOfPairs(enough, half), (TimeRatio{2, 2, 2}));
  EXPECT_EQ(ratioOfSamples(std::vector<double>(12, 3.0),
                           std::vector<double>(12, 2.0)),
            (TimeRatio{1.5, 1.5, 1.5}));
}

TEST(TimeRatio, OfPairsLeavesOutWhatBothHave) {
  // The machine's speed changes by a factor of 16 meanwhile.
  std::vector<double> now, before;
  for (int i = 0; i < 40; ++i) {
    const double speed = std::exp2(i / 10.0);
    before.push_back(speed * (i % 2 ? 1.01 : 0.99));
    now.push_back(1.5 * speed);
  }
  const TimeRatio ratio = ratioOfPairs(now, before);
  EXPECT_NEAR(ratio.ratio, 1.5, 0.02);
  EXPECT_GT(ratio.low, 1.4);
  EXPECT_LT(ratio.high, 1.6);
  EXPECT_LT(ratioOfSamples(now, before).low, 0.8);
}

TEST(TimeRatio, RunsFarOffCountAsOneEach) {
  std::vector<double> now(30, 1.2), before(30, 1.0);
  now[3] = now[7] = before[20] = 1000;
  EXPECT_EQ(ratioOfPairs(now, before).ratio, 1.2);
  EXPECT_EQ(ratioOfPairs(now, before).low, 1.2);
  EXPECT_EQ(ratioOfSamples(now, before), (TimeRatio{1.2, 1.2, 1.2}));
}

TEST(TimeRatio, BoundsHoldTheRatio) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.5);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> now, before;
    for (int i = 0; i < 64; ++i) {
      now.push_back(1.3 * noise(random));
      before.push_back(noise(random));
    }
    for (const TimeRatio &ratio :
         {ratioOfPairs(now, before), ratioOfSamples(now, before)}) {
      EXPECT_LE(ratio.low, 1.3);
      EXPECT_GE(ratio.high, 1.3);
      EXPECT_LE(ratio.low, ratio.ratio);
      EXPECT_GE(ratio.high, ratio.ratio);
      EXPECT_GT(ratio.low, 0.4);
      EXPECT_LT(ratio.high, 4);
    }
  }
  // Of many, some ranks are enough.
  std::vector<double> many, others;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(1.3 * noise(random));
    others.push_back(noise(random));
  }
  const TimeRatio ratio = ratioOfSamples(many, others);
  EXPECT_NEAR(ratio.ratio, 1.3, 0.15);
  EXPECT_LT(ratio.low, 1.3);
  EXPECT_GT(ratio.high, 1.3);
}

TEST(TimeRatio, Verdicts) {
  EXPECT_EQ(verdictOf({1.2, 1.11, 1.3}, 0.1), TimeVerdict::Slower);
  EXPECT_EQ(verdictOf({1.2, 1.09, 1.3}, 0.1), TimeVerdict::Same);
  EXPECT_EQ(verdictOf({1.2, 1.09, 1.34}, 0.1), TimeVerdict::Unclear);
  EXPECT_EQ(verdictOf({0.5, 0.4, 0.9}, 0.1), TimeVerdict::Faster);
  EXPECT_EQ(verdictOf({0.5, 0.4, 0.95}, 0.1), TimeVerdict::Same);
  EXPECT_EQ(verdictOf({}, 0.1), TimeVerdict::Unclear);
}

} // namespace
