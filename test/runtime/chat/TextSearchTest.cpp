//===- TextSearchTest.cpp - Tests of searching texts ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/TextSearch.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

using namespace kf::jinja;

/// Needles and texts of few letters, which match in part again and again.
TEST(TextSearch, FindsWhatStringViewsFind) {
  std::minstd_rand random(1);
  auto someText = [&](size_t most, unsigned letters) {
    std::string text(random() % (most + 1), ' ');
    for (char &c : text)
      c = static_cast<char>('a' + random() % letters);
    return text;
  };
  for (int round = 0; round < 20'000; ++round) {
    const unsigned letters = 1 + random() % 3;
    const std::string needle = someText(8, letters);
    const std::string text = someText(40, letters);
    Budget budget(UINT64_MAX);
    EXPECT_EQ(TextSearch(needle, false, budget).find(text), text.find(needle))
        << needle << " in " << text;
    EXPECT_EQ(TextSearch(needle, true, budget).find(text), text.rfind(needle))
        << needle << " in " << text;
  }
}

/// The classic worst case, in steps: twice the length is twice the work.
TEST(TextSearch, CostsBothLengths) {
  auto stepsOf = [](size_t length, bool fromRight) {
    const std::string text(2 * length, 'a');
    std::string needle(length, 'a');
    (fromRight ? needle.front() : needle.back()) = 'b';
    uint64_t steps = 1;
    for (;; steps *= 2) {
      Budget budget(steps);
      try {
        EXPECT_EQ(TextSearch(needle, fromRight, budget).find(text),
                  std::string::npos);
        return steps;
      } catch (const Failure &) {
      }
    }
  };
  for (bool fromRight : {false, true}) {
    const uint64_t once = stepsOf(1 << 12, fromRight);
    EXPECT_GE(once, uint64_t(3 << 12) / 64);
    EXPECT_EQ(stepsOf(1 << 16, fromRight), 16 * once);
  }
}
