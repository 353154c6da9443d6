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

TEST(StepTimes, BetweenWhatWasMeasured) {
  StepTimes times;
  EXPECT_FALSE(times.has(100));
  times.add(4, 5); // the first one is not counted
  EXPECT_FALSE(times.has(4));
  times.add(4, 1);
  EXPECT_FALSE(times.has(3));
  EXPECT_TRUE(times.has(4));
  EXPECT_EQ(times.of(9), 1);
  for (int i = 0; i < 2; ++i)
    times.add(8, 3);
  EXPECT_EQ(times.of(4), 1);
  EXPECT_EQ(times.of(6), 2);
  EXPECT_EQ(times.of(8), 3);
  EXPECT_EQ(times.of(64), 3);
}

TEST(StepTimes, TheFastestUntilSomeAreSlower) {
  StepTimes times;
  for (double seconds : {9, 2, 1})
    times.add(1, seconds);
  times.add(1, 50); // something else took that
  EXPECT_LT(times.of(1), 1.1);
  for (int i = 0; i < 30; ++i)
    times.add(1, 3);
  EXPECT_EQ(times.of(1), 3);
  // What was slow once is tried again some day.
  for (int i = 0; i < 2; ++i)
    times.add(9, 30);
  for (int i = 0; i < 5000; ++i)
    times.add(1, 3);
  EXPECT_LT(times.of(9), 3);
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
    for (size_t i = 0; i < count; ++i)
      times.drafting.add(static_cast<int64_t>(texts), costs.draft);
    times.reading.add(static_cast<int64_t>(texts * (1 + count)), step);
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
  EXPECT_FALSE(pace.isResting(50)); // of a text that was cut
  for (int i = 0; i < 100; ++i)
    pace.takeRest(1000);
  EXPECT_TRUE(pace.isResting(1255));
  EXPECT_FALSE(pace.isResting(1256));
  pace.stop(2000);
  EXPECT_TRUE(pace.isResting(1000000));
  EXPECT_FALSE(pace.isResting(1999));
}

TEST(DraftPace, RestsWhereThereIsNoRoom) {
  DraftTimes times;
  DraftPace pace;
  EXPECT_EQ(pace.worth(times, 0, 1, 10), 0u);
  EXPECT_TRUE(pace.isResting(11));
}

} // namespace
