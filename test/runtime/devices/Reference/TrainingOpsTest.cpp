//===- TrainingOpsTest.cpp - Losses, and what gradients are made of -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include "ReferenceTestUtils.h"

namespace kf::reference {
namespace {

TEST(CrossEntropy, IsTheLogOfALikelihood) {
  Tensor logits = makeTensor({2, 3}, {0, 0, 0, 1000, 0, 998});
  expectFloats(crossEntropy(logits.view(), makeInts({1, 2}).view()),
               {std::log(3.0f), 2.126928f}, 1e-6f);
}

TEST(CrossEntropy, IsZeroWhereTheLabelIsNoColumn) {
  Tensor logits = makeTensor({3, 2}, {1, 2, kNan, 4, 5, 6});
  expectFloats(crossEntropy(logits.view(), makeInts({-100, 2, -1}).view()),
               {0, 0, 0});
}

TEST(CrossEntropy, KeepsWhatIsNotFinite) {
  Tensor logits = makeTensor({3, 2}, {-kInf, 0, kInf, 0, kNan, 0});
  expectFloats(crossEntropy(logits.view(), makeInts({0, 0, 1}).view()),
               {kInf, kNan, kNan});
}

TEST(CrossEntropy, RefusesOtherShapes) {
  Tensor logits = makeTensor({2, 3}, {0, 0, 0, 0, 0, 0});
  Tensor labels = makeInts({1});
  expectError(crossEntropy(logits.view(), labels.view()).status(),
              "kf.cross_entropy C2");
  expectError(crossEntropy(labels.view(), labels.view()).status(),
              "kf.cross_entropy C1");
}

/// Philox4x32-10 as its paper writes it, for one element.
uint32_t written(std::array<uint64_t, 4> c, uint32_t low, uint32_t high) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53 * c[0], b = 0xCD9E8D57 * c[2];
    c = {(b >> 32) ^ c[1] ^ low, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ high,
         a & 0xFFFFFFFF};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return static_cast<uint32_t>(c[0]);
}

TEST(Dropout, LeavesOutWhatItsCounterSays) {
  const std::vector<int32_t> draw = {7, INT32_MIN + 3, -5, 12};
  std::vector<float> x(40 * 50, 3);
  Tensor input = makeTensor({40, 50}, x);
  auto result = dropout(input.view(), makeInts(draw).view(), 0.25f);
  ASSERT_TRUE(result.ok()) << result.message();
  int64_t left = 0;
  for (uint32_t t = 0; t < 40; ++t)
    for (uint32_t d = 0; d < 50; ++d) {
      const bool isLeftOut = written({d, t, 7, uint32_t(INT32_MIN) + 3},
                                     uint32_t(-5), 12) < 0x40000000;
      left += isLeftOut;
      ASSERT_EQ(result->floats()[t * 50 + d], isLeftOut ? 0.0f : 4.0f);
    }
  EXPECT_NEAR(static_cast<double>(left) / 2000, 0.25, 0.03);
}

TEST(Dropout, LeavesOutNaNsAndNothing) {
  Tensor x = makeTensor({1, 64}, std::vector<float>(64, kNan));
  auto result = dropout(x.view(), makeInts({1, 2, 3, 4}).view(), 0.5f);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(std::any_of(result->floats(), result->floats() + 64,
                          [](float value) { return value == 0; }));
  expectFloats(dropout(makeTensor({1, 2}, {1, 2}).view(),
                       makeInts({1, 2, 3, 4}).view(), 0),
               {1, 2});
}

TEST(Dropout, RefusesOtherShapes) {
  Tensor x = makeTensor({1, 2}, {1, 2}), draw = makeInts({1, 2, 3, 4});
  expectError(dropout(draw.view(), draw.view(), 0).status(), "kf.dropout C1");
  expectError(dropout(x.view(), makeInts({1, 2}).view(), 0).status(),
              "kf.dropout C2");
  expectError(dropout(x.view(), draw.view(), 1).status(), "kf.dropout C3");
  expectError(dropout(x.view(), draw.view(), kNan).status(), "kf.dropout C3");
  Tensor other = makeInts({1});
  expectError(philoxWords({draw.view(), draw.view(), draw.view(), draw.view(),
                           other.view(), draw.view()})
                  .status(),
              "kf.philox C1");
}

TEST(ScatterAdd, SumsRowsOfAnId) {
  Tensor rows = makeTensor({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Tensor ids = makeInts({2, 0, 2, 3});
  expectFloats(scatterAdd(ids.view(), rows.view(), 3), {3, 4, 0, 0, 6, 8});
}

TEST(ScatterAdd, LeavesOutOtherIds) {
  Tensor rows = makeTensor({3, 1}, {1, 2, 4}, DataType::BF16);
  Tensor ids = makeInts({-1, 1, INT32_MAX});
  expectFloats(scatterAdd(ids.view(), rows.view(), 2), {0, 2});
}

TEST(ScatterAdd, RefusesOtherShapes) {
  Tensor rows = makeTensor({2, 1}, {1, 2});
  expectError(scatterAdd(makeInts({1}).view(), rows.view(), 2).status(),
              "kf.scatter_add C2");
  expectError(scatterAdd(rows.view(), rows.view(), 2).status(),
              "kf.scatter_add C1");
}

TEST(MatmulDgrad, IsAProductWithTheWeightAsItLies) {
  Tensor dy = makeTensor({1, 2}, {10, 1}), w = makeTensor({2, 2}, {1, 2, 3, 4});
  expectFloats(matmulDgrad(dy.view(), w.view()), {13, 24});
  expectError(
      matmulDgrad(makeTensor({1, 3}, {1, 2, 3}).view(), w.view()).status(),
      "kf.matmul_dgrad C2");
}

TEST(MatmulWgrad, SumsProductsOfRows) {
  Tensor dy = makeTensor({2, 1}, {10, 1}), x = makeTensor({2, 2}, {1, 2, 3, 4});
  expectFloats(matmulWgrad(dy.view(), x.view()), {13, 24});
  expectError(matmulWgrad(makeTensor({1, 2}, {1, 2}).view(), x.view()).status(),
              "kf.matmul_wgrad C2");
}

} // namespace
} // namespace kf::reference
