//===- DraftPaceTest.cpp - How many tokens are worth drafting -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/DraftPace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

using namespace kf;

namespace {

TEST(DraftTimes, BetweenWhatWasMeasured) {
  DraftTimes times;
  EXPECT_FALSE(times.hasStep(100));
  times.addStep(4, 5); // the first one is not counted
  EXPECT_FALSE(times.hasStep(4));
  times.addStep(4, 1);
  EXPECT_FALSE(times.hasStep(3));
  EXPECT_TRUE(times.hasStep(4));
  EXPECT_EQ(times.step(9), 1);
  for (int i = 0; i < 2; ++i)
    times.addStep(8, 3);
  EXPECT_EQ(times.step(4), 1);
  EXPECT_EQ(times.step(6), 2);
  EXPECT_EQ(times.step(8), 3);
  EXPECT_EQ(times.step(64), 3);
  EXPECT_EQ(times.draft(), 0);
  times.addDrafts(4, 2);
  EXPECT_EQ(times.draft(), 0.5);
}

TEST(DraftTimes, TheFastestUntilSomeAreSlower) {
  DraftTimes times;
  for (double seconds : {9, 2, 1})
    times.addStep(1, seconds);
  times.addStep(1, 50); // something else took that
  EXPECT_LT(times.step(1), 1.1);
  for (int i = 0; i < 30; ++i)
    times.addStep(1, 3);
  EXPECT_EQ(times.step(1), 3);
  // What was slow once is tried again some day.
  for (int i = 0; i < 2; ++i)
    times.addStep(9, 30);
  for (int i = 0; i < 5000; ++i)
    times.addStep(1, 3);
  EXPECT_LT(times.step(9), 3);
}

/// What a machine takes, in steps of one row.
struct Costs {
  double draft; ///< a drafted token
  double row;   ///< each row but the first
};

struct Simulated {
  double rate = 0;   ///< tokens for the time of a step of one row
  int64_t tried = 0; ///< drafts
};

/// A long text whose drafts are right with probability `likely`, with `fixed`
/// of them at a time; -1: as many as are worth it.
Simulated simulate(const Costs &costs, double likely, int64_t fixed,
                   size_t texts = 1) {
  std::mt19937 random(7);
  std::bernoulli_distribution isRight(likely);
  DraftTimes times;
  DraftPace pace;
  Simulated result;
  double seconds = 0;
  size_t length = 10;
  const size_t end = length + 4000;
  const auto rows = static_cast<double>(texts);
  while (length < end) {
    const size_t count = fixed >= 0 ? static_cast<size_t>(fixed)
                                    : pace.worth(times, 8, texts, length);
    EXPECT_LE(count, 8u);
    const double drafting = static_cast<double>(count) * costs.draft;
    const auto all = static_cast<double>(texts * (1 + count));
    const double step = 1 + (all - 1) * costs.row;
    if (count > 0)
      times.addDrafts(count, drafting);
    times.addStep(static_cast<int64_t>(texts * (1 + count)), step);
    seconds += drafting + step;
    size_t accepted = 0;
    while (accepted < count && isRight(random))
      ++accepted;
    if (count > 0)
      pace.learn(count, accepted);
    result.tried += static_cast<int64_t>(count);
    length += 1 + accepted;
  }
  result.rate = rows * 4000 / seconds;
  return result;
}

/// Nearly as good as the best number, which depends on all of these.
TEST(DraftPace, NearTheBestNumber) {
  for (double draft : {0.02, 0.1, 0.3, 0.6})
    for (double row : {0.0, 0.01, 0.1, 0.5})
      for (double likely : {0.02, 0.2, 0.5, 0.7, 0.9, 0.99})
        for (size_t texts : {1, 5}) {
          const Costs costs = {draft, row};
          double best = 0;
          for (int64_t fixed = 0; fixed <= 8; ++fixed)
            best = std::max(best, simulate(costs, likely, fixed, texts).rate);
          EXPECT_GT(simulate(costs, likely, -1, texts).rate, 0.93 * best)
              << "a draft of " << draft << ", rows of " << row
              << ", right with " << likely << ", " << texts << " texts";
        }
}

TEST(DraftPace, HardlyAnyWhereNoneIsWorthIt) {
  const Simulated wrong = simulate({0.3, 0.1}, 0.01, -1);
  EXPECT_LT(wrong.tried, 150);
  EXPECT_GT(wrong.tried, 10); // it is tried now and then
  EXPECT_GT(wrong.rate, 0.97);
}

TEST(DraftPace, RestsLongerEachTime) {
  DraftPace pace;
  pace.takeRest(100);
  EXPECT_TRUE(pace.isResting(107));
  EXPECT_FALSE(pace.isResting(108));
  pace.takeRest(108);
  EXPECT_TRUE(pace.isResting(123));
  EXPECT_FALSE(pace.isResting(124));
  for (int i = 0; i < 100; ++i)
    pace.takeRest(1000);
  EXPECT_TRUE(pace.isResting(1255));
  EXPECT_FALSE(pace.isResting(1256));
}

} // namespace
