//===- CounterRandomTest.cpp - Random numbers by their number -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/CounterRandom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace kf;

namespace {

TEST(CounterRandom, FollowsFromSeedStreamAndNumberAlone) {
  const CounterRandom random(1, 2);
  const uint64_t later = random(1000);
  (void)random(5);
  EXPECT_EQ(CounterRandom(1, 2)(1000), later);
  std::set<uint64_t> different;
  for (uint64_t seed : {0, 1})
    for (uint64_t stream : {0, 1})
      for (uint64_t number = 0; number < 100; ++number)
        different.insert(CounterRandom(seed, stream)(number));
  EXPECT_EQ(different.size(), 400u);
}

TEST(CounterRandom, NumbersAreSpreadEvenly) {
  const CounterRandom random(7, 0);
  std::vector<int> counts(10);
  for (uint64_t number = 0; number < 10000; ++number)
    ++counts[random.below(10, number)];
  // Within six standard deviations of 1000.
  for (int count : counts)
    EXPECT_NEAR(count, 1000, 180);
}

TEST(CounterRandom, PermutationsHaveEachNumberOnce) {
  EXPECT_TRUE(CounterRandom(0, 0).permutation(0).empty());
  EXPECT_EQ(CounterRandom(0, 0).permutation(1), std::vector<size_t>{0});
  std::vector<size_t> first = CounterRandom(3, 0).permutation(100);
  EXPECT_NE(first, CounterRandom(4, 0).permutation(100));
  EXPECT_NE(first, CounterRandom(3, 1).permutation(100));
  std::ranges::sort(first);
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i], i);
}

} // namespace
