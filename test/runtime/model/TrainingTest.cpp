//===- TrainingTest.cpp - What programs of training are made for ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/Training.h"

#include "../StatusAssertions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <locale>

using namespace kf;
using namespace kf::test;

using Kind = OptimizerOptions::Kind;

TEST(TrainingTest, NumbersOfOptimizers) {
  EXPECT_TRUE(succeeds(OptimizerOptions().validate()));
  EXPECT_TRUE(succeeds(
      OptimizerOptions{.beta1 = 0, .beta2 = 0, .weightDecay = 0, .clipNorm = 0}
          .validate()));
  EXPECT_TRUE(
      succeeds(OptimizerOptions{.kind = Kind::Sgd, .momentum = 1}.validate()));
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto &[options, error] :
       std::vector<std::pair<OptimizerOptions, std::string>>{
           {{.beta1 = 1}, "--beta1 is 1; a number from 0 to below 1"},
           {{.beta1 = -0.1}, "--beta1 is -0.1"},
           {{.beta2 = NAN}, "--beta2 is nan"},
           {{.beta2 = 1 - 1e-12}, "--beta2 is"}, // 1 as f32
           {{.epsilon = 0}, "--epsilon is 0; a number above 0"},
           {{.epsilon = 1e-60}, "--epsilon is 1e-60"}, // 0 as f32
           {{.epsilon = infinite}, "--epsilon is inf"},
           {{.epsilon = NAN}, "--epsilon is nan"},
           {{.kind = Kind::Sgd, .momentum = -1},
            "--momentum is -1; a number from 0 to 1"},
           {{.kind = Kind::Sgd, .momentum = NAN}, "--momentum is nan"},
           {{.weightDecay = -1}, "--weight-decay is -1; a number of at least"},
           {{.weightDecay = infinite}, "--weight-decay is inf"},
           {{.clipNorm = -1}, "--clip is -1"},
           {{.clipNorm = 1e300}, "--clip is 1e+300"}})
    EXPECT_TRUE(failsWith(options.validate(), error));
  // What another kind has does not matter.
  EXPECT_TRUE(
      succeeds(OptimizerOptions{.kind = Kind::Sgd, .beta1 = 1}.validate()));
  EXPECT_TRUE(succeeds(OptimizerOptions{.momentum = 2}.validate()));
}

TEST(TrainingTest, BatchesThatCannotBeCounted) {
  EXPECT_TRUE(succeeds(TrainingShape{.rows = 4, .length = 2048}.validate()));
  const int64_t large = int64_t(1) << 32;
  for (const auto &[rows, length] : {std::pair<int64_t, int64_t>{0, 1},
                                     {1, 0},
                                     {-1, -1},
                                     {large, large},
                                     {int64_t(1) << 16, int64_t(1) << 15}})
    EXPECT_TRUE(
        failsWith(TrainingShape{.rows = rows, .length = length}.validate(),
                  "batches of " + std::to_string(rows) + " rows of " +
                      std::to_string(length) + " tokens; 1 or more of both"));
  EXPECT_FALSE(TrainingShape{.optimizer = {.beta1 = 1}}.validate().ok());
  EXPECT_FALSE(listTrained({}, {.rows = large, .length = large}).ok());
}

/// Numbers of more than three digits in groups, and a comma before fractions.
class Grouped : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(TrainingTest, GradientsAreDescribedByWhatIsComputedAgain) {
  TrainingShape shape = {.part = TrainingPart::Gradient};
  TrainingShape other = shape;
  other.recompute = Recompute::Layers;
  EXPECT_NE(describe(shape), describe(other));
  // No other program has anything that is computed again.
  for (const TrainingPart part : {TrainingPart::Loss, TrainingPart::Update}) {
    shape.part = other.part = part;
    EXPECT_EQ(describe(shape), describe(other));
  }
}

TEST(TrainingTest, ADescriptionIsTheSameInEveryLocale) {
  const TrainingShape shape = {.part = TrainingPart::Update,
                               .lora = LoraConfig{.rank = 2048, .alpha = 0.5},
                               .optimizer = {.weightDecay = 0.25}};
  const std::string expected = describe(shape);
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new Grouped));
  const std::string found = describe(shape);
  std::locale::global(before);
  EXPECT_EQ(found, expected);
}
