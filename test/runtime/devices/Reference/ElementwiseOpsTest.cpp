//===- ElementwiseOpsTest.cpp - Norms, activations, arithmetic -----------===//
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

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  // mean of squares (9 + 16) / 2 = 12.5, and 0.
  Tensor x = makeTensor({2, 2}, {3, 4, 0, 0});
  Tensor weight = makeTensor({2}, {1, 2}, DataType::BF16);
  float root = std::sqrt(12.5f);
  Result<Tensor> result = rmsNorm(x.view(), weight.view(), 1e-9f);
  expectShape(result, {2, 2});
  expectFloats(result, {3 / root, 8 / root, 0, 0}, 1e-6f);
  // 12.5 + 3.5 = 16.
  expectFloats(rmsNorm(x.view(), weight.view(), 3.5f), {0.75f, 2, 0, 0}, 1e-6f);
  // Without eps, a row of zeros is 0 / 0.
  expectFloats(rmsNorm(x.view(), weight.view(), 0),
               {3 / root, 8 / root, kNan, kNan}, 1e-6f);
}

TEST(RmsNorm, TakesAnyRank) {
  Tensor x = makeTensor({1, 2, 1}, {-5, 7}), weight = makeTensor({1}, {3});
  Result<Tensor> result = rmsNorm(x.view(), weight.view(), 0);
  expectShape(result, {1, 2, 1});
  expectFloats(result, {-3, 3}, 1e-6f);
}

TEST(RmsNorm, RejectsWrongOperands) {
  Tensor x = makeTensor({1, 2}, {1, 2}), scalar = makeTensor({}, {1});
  expectError(rmsNorm(scalar.view(), x.view(), 0), "kf.rms_norm C1");
  expectError(rmsNorm(makeInts({1}).view(), x.view(), 0), "kf.rms_norm C1");
  expectError(rmsNorm(x.view(), x.view(), 0), "kf.rms_norm C2");
}

TEST(LayerNorm, SubtractsTheMean) {
  // mean 3, biased variance (4 + 0 + 4 + 0) / 4 = 2; constant rows give bias.
  Tensor x = makeTensor({2, 4}, {1, 3, 5, 3, 7, 7, 7, 7});
  Tensor weight = makeTensor({4}, {1, 1, 2, 1}),
         b = makeTensor({4}, {0, 1, 0, 0});
  TensorView bias = b.view();
  float unit = std::sqrt(2.0f);
  expectFloats(layerNorm(x.view(), weight.view(), nullptr, 1e-12f),
               {-unit, 0, 2 * unit, 0, 0, 0, 0, 0}, 1e-6f);
  // 2 + 2 = 4.
  expectFloats(layerNorm(x.view(), weight.view(), &bias, 2),
               {-1, 1, 2, 0, 0, 1, 0, 0}, 1e-6f);
}

TEST(LayerNorm, RejectsWrongOperands) {
  Tensor x = makeTensor({1, 2}, {1, 2}), weight = makeTensor({2}, {1, 1});
  TensorView bias = x.view();
  expectError(layerNorm(makeInts({1}).view(), weight.view(), nullptr, 0),
              "kf.layer_norm C1");
  expectError(layerNorm(x.view(), x.view(), nullptr, 0), "kf.layer_norm C2");
  expectError(layerNorm(x.view(), weight.view(), &bias, 0), "kf.layer_norm C2");
}

TEST(Softmax, SumsToOne) {
  float log2 = std::log(2.0f), log5 = std::log(5.0f);
  Tensor x = makeTensor({3, 3}, {0, log2, log5, 1000, 1000, -kInf, -7, -7, -7});
  float third = 1.0f / 3;
  Result<Tensor> result = softmax(x.view());
  expectShape(result, {3, 3});
  expectFloats(result,
               {0.125f, 0.25f, 0.625f, 0.5f, 0.5f, 0, third, third, third},
               1e-6f);
  expectFloats(softmax(makeTensor({2, 1}, {-4, 9}).view()), {1, 1});
}

TEST(Softmax, RejectsEmptyRows) {
  expectError(softmax(makeTensor({2, 0}, {}).view()), "kf.softmax C1");
  expectError(softmax(makeTensor({}, {1}).view()), "kf.softmax C1");
}

TEST(Activation, MatchesTabulatedValues) {
  // Computed in double precision from the definitions.
  Tensor x = makeTensor({5}, {-3, -0.5f, 0, 1, 4});
  auto apply = [&](Activation kind) { return activation(kind, x.view()); };
  expectFloats(apply(Activation::Identity), {-3, -0.5f, 0, 1, 4});
  expectFloats(apply(Activation::Relu), {0, 0, 0, 1, 4});
  expectFloats(apply(Activation::Silu),
               {-0.1422776195f, -0.1887703344f, 0, 0.7310585786f, 3.928055160f},
               1e-6f);
  expectFloats(apply(Activation::Gelu),
               {-0.0040496941f, -0.1542687694f, 0, 0.8413447461f, 3.999873315f},
               1e-6f);
  expectFloats(apply(Activation::GeluTanh),
               {-0.0036373921f, -0.1542859902f, 0, 0.8411919906f, 3.999929754f},
               1e-6f);
}

TEST(Activation, HoldsAtTheEnds) {
  Tensor x = makeTensor({3}, {-200, 200, kNan});
  for (Activation kind : {Activation::Silu, Activation::Gelu,
                          Activation::GeluTanh, Activation::Relu})
    expectFloats(activation(kind, x.view()), {0, 200, kNan});
  expectError(activation(Activation::Silu, makeInts({1}).view()),
              "kf.activation C1");
}

TEST(Binary, ComputesElementwise) {
  Tensor a = makeTensor({2, 2}, {1, -2, 6, 0.5f}, DataType::F16);
  Tensor b = makeTensor({2, 2}, {4, 2, -3, 0.5f});
  auto apply = [&](Binary kind) { return binary(kind, a.view(), b.view()); };
  expectShape(apply(Binary::Add), {2, 2});
  expectFloats(apply(Binary::Add), {5, 0, 3, 1});
  expectFloats(apply(Binary::Sub), {-3, -4, 9, 0});
  expectFloats(apply(Binary::Mul), {4, -4, -18, 0.25f});
  expectFloats(apply(Binary::Div), {0.25f, -1, -2, 1});
  expectFloats(apply(Binary::Maximum), {4, 2, 6, 0.5f});
  expectFloats(apply(Binary::Minimum), {1, -2, -3, 0.5f});
  expectFloats(apply(Binary::MaxNum), {4, 2, 6, 0.5f});
  expectFloats(apply(Binary::MinNum), {1, -2, -3, 0.5f});
}

TEST(Binary, TreatsNanAndZeroAsArithDoes) {
  Tensor a = makeTensor({4}, {kNan, 1, -0.0f, 0.0f});
  Tensor b = makeTensor({4}, {1, kNan, 0.0f, -0.0f});
  expectFloats(binary(Binary::MaxNum, a.view(), b.view()), {1, 1, 0, 0});
  expectFloats(binary(Binary::MinNum, a.view(), b.view()), {1, 1, 0, 0});
  Result<Tensor> larger = binary(Binary::Maximum, a.view(), b.view());
  Result<Tensor> smaller = binary(Binary::Minimum, a.view(), b.view());
  expectFloats(larger, {kNan, kNan, 0, 0});
  expectFloats(smaller, {kNan, kNan, 0, 0});
  for (int i : {2, 3}) {
    EXPECT_FALSE(std::signbit(larger->floats()[i]));
    EXPECT_TRUE(std::signbit(smaller->floats()[i]));
  }
  expectError(binary(Binary::Add, a.view(), makeTensor({1}, {1}).view()),
              "one shape");
}

TEST(Unary, ComputesElementwise) {
  Tensor x = makeTensor({2}, {4, 0});
  expectFloats(unary(Unary::Neg, x.view()), {-4, 0});
  expectFloats(unary(Unary::Exp, x.view()), {54.598150f, 1}, 1e-5f);
  expectFloats(unary(Unary::Sqrt, x.view()), {2, 0});
  expectFloats(unary(Unary::Rsqrt, x.view()), {0.5f, kInf});
  expectFloats(unary(Unary::Tanh, x.view()), {0.99932930f, 0}, 1e-6f);
  expectFloats(unary(Unary::Sqrt, makeTensor({}, {-1}).view()), {kNan});
  expectError(unary(Unary::Neg, makeInts({1}).view()), "float tensor");
}

TEST(RoundTo, RoundsToNearestEven) {
  // bf16 keeps 8 significant bits: 257 is halfway between 256 and 258.
  Tensor x = makeTensor({3}, {257, 259, 1.0f / 3});
  expectFloats(roundTo(x, DataType::BF16), {256, 260, 0.333984375f});
  expectError(roundTo(x, DataType::I32), "does not convert to i32");
  expectError(roundTo(makeInts({1}), DataType::F32), "result of i32");
}

} // namespace
} // namespace kf::reference
