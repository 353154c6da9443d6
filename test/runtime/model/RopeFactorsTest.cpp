//===- RopeFactorsTest.cpp - Frequencies of scaled RoPE -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numbers are YaRN's definition in Python's doubles, of heads of 16.
//
//===----------------------------------------------------------------------===//

#include "runtime/model/RopeFactors.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

RopeConfig yarn(double theta, double factor, int64_t originalContext) {
  RopeConfig rope;
  rope.theta = theta;
  rope.dim = 16;
  rope.scaling = RopeConfig::Scaling::Yarn;
  rope.factor = factor;
  rope.originalContext = originalContext;
  return rope;
}

void expectFactors(const RopeConfig &rope, const std::vector<float> &expected) {
  const std::vector<float> factors = ropeFactors(rope);
  ASSERT_EQ(factors.size(), expected.size());
  for (size_t i = 0; i < factors.size(); ++i)
    EXPECT_NEAR(factors[i], expected[i], 1e-6F * expected[i]) << i;
}

TEST(RopeFactors, NoneWithoutYarn) {
  RopeConfig rope = yarn(1e6, 4, 32768);
  rope.scaling = RopeConfig::Scaling::Linear;
  EXPECT_TRUE(ropeFactors(rope).empty());
}

TEST(RopeFactors, Yarn) {
  // Between the frequencies 2 and 5.
  RopeConfig rope = yarn(1e6, 4, 32768);
  expectFactors(rope, {1, 1, 1, 1.3333333F, 2, 4, 4, 4});
  // Between 2.949 and 4.956.
  rope.truncate = false;
  expectFactors(rope, {1, 1, 1, 1.0192383F, 1.64634F, 4, 4, 4});
}

TEST(RopeFactors, YarnOfOwnBetas) {
  RopeConfig rope = yarn(10000, 4, 64);
  rope.betaFast = 8;
  rope.betaSlow = 2;
  expectFactors(rope, {1, 1.6F, 4, 4, 4, 4, 4, 4});
}

TEST(RopeFactors, YarnOfNoRange) {
  // Both ends are 0.
  RopeConfig rope = yarn(10000, 8, 4);
  rope.betaFast = 8;
  rope.betaSlow = 2;
  expectFactors(rope, {1, 8, 8, 8, 8, 8, 8, 8});
}

} // namespace
