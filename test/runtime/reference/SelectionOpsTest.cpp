//===- SelectionOpsTest.cpp - Argmax and sampling ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/reference/ReferenceOps.h"

#include "ReferenceTestUtils.h"

namespace kf::reference {
namespace {

TEST(Argmax, TakesTheLowestOfEquals) {
  Tensor logits =
      makeTensor({4, 3}, {1, 5, 5, 2, 2, 2, -3, -2, -1, 0, 0, -0.0f});
  Result<Tensor> result = argmax(logits.view());
  expectShape(result, {4});
  expectInts(result, {1, 0, 2, 0});
}

TEST(Argmax, RanksNanLast) {
  Tensor logits =
      makeTensor({4, 2}, {kNan, 1, 1, kNan, kNan, kNan, kNan, -kInf});
  expectInts(argmax(logits.view()), {1, 0, 0, 1});
}

TEST(Argmax, RejectsWrongOperands) {
  expectError(argmax(makeTensor({2}, {1, 2}).view()), "kf.argmax C1");
  expectError(argmax(makeTensor({2, 0}, {}).view()), "kf.argmax C1");
  expectError(argmax(makeInts({2}).view()), "kf.argmax C1");
}

/// One draw from logits whose probabilities are 0.1, 0.4, 0.2, 0.3 at
/// temperature 1: in falling order, the indices 1, 3, 2, 0.
int32_t draw(float uniform, SampleOptions options) {
  Tensor logits = makeTensor(
      {1, 4}, {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(3.0f)});
  Tensor draws = makeTensor({1}, {uniform});
  Result<Tensor> result = sample(logits.view(), draws.view(), options);
  EXPECT_TRUE(result.ok()) << result.message();
  return result.ok() ? result->ints()[0] : -1;
}

TEST(Sample, InvertsTheCumulativeDistribution) {
  EXPECT_EQ(draw(0, {}), 1);
  EXPECT_EQ(draw(0.39f, {}), 1);
  EXPECT_EQ(draw(0.41f, {}), 3);
  EXPECT_EQ(draw(0.69f, {}), 3);
  EXPECT_EQ(draw(0.71f, {}), 2);
  EXPECT_EQ(draw(0.91f, {}), 0);
  EXPECT_EQ(draw(0.99999994f, {}), 0);
}

TEST(Sample, KeepsTheTopK) {
  // 0.4 and 0.3 are left: the border is at 4/7.
  EXPECT_EQ(draw(0.57f, {1, 2, 1}), 1);
  EXPECT_EQ(draw(0.58f, {1, 2, 1}), 3);
  EXPECT_EQ(draw(0.999f, {1, 2, 1}), 3);
  EXPECT_EQ(draw(0.999f, {1, 1, 1}), 1);
  EXPECT_EQ(draw(0.999f, {1, 100, 1}), 0);
}

TEST(Sample, KeepsTheTopP) {
  // 0.4 alone does not reach 0.5; with 0.3 it does.
  EXPECT_EQ(draw(0.999f, {1, 0, 0.5f}), 3);
  EXPECT_EQ(draw(0.999f, {1, 0, 0.39f}), 1);
  EXPECT_EQ(draw(0.999f, {1, 0, 0.8f}), 2);
  // top_p counts among those that top_k left: 4/7 reaches 0.55.
  EXPECT_EQ(draw(0.999f, {1, 2, 0.55f}), 1);
}

TEST(Sample, DividesByTheTemperature) {
  // At 0.5 the probabilities are 1, 16, 4, 9 of 30.
  EXPECT_EQ(draw(0.53f, {0.5f, 0, 1}), 1);
  EXPECT_EQ(draw(0.54f, {0.5f, 0, 1}), 3);
  EXPECT_EQ(draw(0.97f, {0.5f, 0, 1}), 0);
  EXPECT_EQ(draw(0.999f, {0.01f, 0, 1}), 1);
}

TEST(Sample, HoldsAtTheEnds) {
  // Ties in index order; NaN and -inf never; +inf always.
  Tensor logits = makeTensor({5, 3}, {2, 2, 2, kNan, 0, -kInf, -kInf, 1, kInf,
                                      -kInf, -kInf, -kInf, kNan, 1, 1});
  Tensor draws = makeTensor({5}, {0.5f, 0.999f, 0, 0.5f, 0.75f});
  Result<Tensor> result = sample(logits.view(), draws.view(), {});
  expectShape(result, {5});
  expectInts(result, {1, 1, 2, 0, 2});
}

TEST(Sample, RejectsWrongOperands) {
  Tensor logits = makeTensor({1, 2}, {1, 2}), one = makeTensor({1}, {0});
  Tensor two = makeTensor({2}, {0, 0}),
         half = makeTensor({1}, {0}, DataType::F16);
  expectError(sample(one.view(), one.view(), {}), "kf.sample C1");
  expectError(sample(logits.view(), two.view(), {}), "kf.sample C2");
  expectError(sample(logits.view(), half.view(), {}), "kf.sample C2");
  for (SampleOptions options :
       {SampleOptions{0, 0, 1}, SampleOptions{kNan, 0, 1},
        SampleOptions{1, -1, 1}, SampleOptions{1, 0, 0},
        SampleOptions{1, 0, 1.5f}})
    expectError(sample(logits.view(), one.view(), options), "kf.sample C3");
}

} // namespace
} // namespace kf::reference
