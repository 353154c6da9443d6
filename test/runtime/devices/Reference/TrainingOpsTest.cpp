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
