//===- PartialSamplerOptionsTest.cpp - Who says what goes first -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PartialSamplerOptions.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

PartialSamplerOptions every(double number, int64_t integer) {
  PartialSamplerOptions options;
  options.temperature = options.topP = options.minP = number;
  options.repetitionPenalty = options.presencePenalty =
      options.frequencyPenalty = number;
  options.topK = options.penaltyWindow = integer;
  options.logitBias = std::vector<LogitBias>{{integer, number}};
  options.seed = static_cast<uint64_t>(integer);
  return options;
}

TEST(PartialSamplerOptions, WhatIsSaidFirstCounts) {
  const PartialSamplerOptions nothing, a = every(0.5, 5), b = every(0.25, 7);
  EXPECT_EQ(nothing.over(a), a);
  EXPECT_EQ(a.over(nothing), a);
  EXPECT_EQ(a.over(b), a);
  PartialSamplerOptions one;
  one.topK = 3;
  PartialSamplerOptions expected = a;
  expected.topK = 3;
  EXPECT_EQ(one.over(a), expected);
}

TEST(PartialSamplerOptions, TheRestIsTheDefault) {
  const SamplerOptions all = every(0.5, 5).complete();
  EXPECT_EQ(all.temperature, 0.5);
  EXPECT_EQ(all.topK, 5);
  EXPECT_EQ(all.topP, 0.5);
  EXPECT_EQ(all.minP, 0.5);
  EXPECT_EQ(all.repetitionPenalty, 0.5);
  EXPECT_EQ(all.presencePenalty, 0.5);
  EXPECT_EQ(all.frequencyPenalty, 0.5);
  EXPECT_EQ(all.penaltyWindow, 5);
  EXPECT_EQ(all.logitBias, (std::vector<LogitBias>{{5, 0.5}}));
  EXPECT_EQ(all.seed, 5u);
  const SamplerOptions none = PartialSamplerOptions().complete();
  EXPECT_EQ(none.temperature, 0);
  EXPECT_EQ(none.topP, 1);
  EXPECT_EQ(none.penaltyWindow, -1);
}

TEST(PartialSamplerOptions, OfAModel) {
  const PartialSamplerOptions options =
      PartialSamplerOptions::of({0.5, 20, 0.75, 0.25, 1.5, 64});
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_EQ(options.topK, 20);
  EXPECT_EQ(options.topP, 0.75);
  EXPECT_EQ(options.minP, 0.25);
  EXPECT_EQ(options.repetitionPenalty, 1.5);
  EXPECT_EQ(options.penaltyWindow, 64);
  EXPECT_EQ(PartialSamplerOptions::of({}), PartialSamplerOptions());
}

TEST(PartialSamplerOptions, AsksToDraw) {
  PartialSamplerOptions options;
  options.repetitionPenalty = 1.5;
  EXPECT_FALSE(options.asksToDraw());
  options.topK = 5;
  EXPECT_TRUE(options.asksToDraw());
  options.temperature = 0;
  EXPECT_FALSE(options.asksToDraw());
  options.temperature = 0.5;
  EXPECT_TRUE(options.asksToDraw());
}

} // namespace
