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

/// `name` of tensors of any types, as `type`.
Result<Tensor> scalarOp(std::string_view name,
                        const std::vector<TensorView> &operands,
                        DataType type = DataType::F32, int64_t predicate = 0) {
  const ScalarOp *op = findScalarOp(name);
  EXPECT_NE(op, nullptr) << name;
  return apply(*op, operands, type, predicate);
}

/// A tensor of integers of `type`, the low bytes of each.
Tensor makeIntegers(DataType type, const std::vector<int64_t> &values) {
  Tensor tensor =
      Tensor::zeros(type, {static_cast<int64_t>(values.size())}).take();
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(tensor.bytes.data() + i * sizeOf(type), &values[i],
                sizeOf(type));
  return tensor;
}

void expectIntegers(const Result<Tensor> &found, DataType type,
                    const std::vector<int64_t> &expected) {
  ASSERT_TRUE(found.ok()) << found.message();
  EXPECT_EQ(found->type, type);
  EXPECT_EQ(found->bytes, makeIntegers(type, expected).bytes);
}

TEST(ScalarOps, ComputeFloats) {
  Tensor a = makeTensor({2, 2}, {1, -2, 6, 0.5f}, DataType::F16);
  Tensor b = makeTensor({2, 2}, {4, 2, -3, 0.5f}, DataType::F16);
  auto of = [&](std::string_view name) {
    return scalarOp(name, {a.view(), b.view()});
  };
  expectShape(of("arith.addf"), {2, 2});
  expectFloats(of("arith.addf"), {5, 0, 3, 1});
  expectFloats(of("arith.subf"), {-3, -4, 9, 0});
  expectFloats(of("arith.mulf"), {4, -4, -18, 0.25f});
  expectFloats(of("arith.divf"), {0.25f, -1, -2, 1});
  expectFloats(of("arith.maximumf"), {4, 2, 6, 0.5f});
  expectFloats(of("arith.minimumf"), {1, -2, -3, 0.5f});
  expectFloats(of("arith.maxnumf"), {4, 2, 6, 0.5f});
  expectFloats(of("arith.minnumf"), {1, -2, -3, 0.5f});
  Tensor x = makeTensor({2}, {4, 0});
  auto one = [&](std::string_view name) { return scalarOp(name, {x.view()}); };
  expectFloats(one("arith.negf"), {-4, 0});
  expectFloats(one("math.exp"), {54.598150f, 1}, 1e-5f);
  expectFloats(one("math.sqrt"), {2, 0});
  expectFloats(one("math.rsqrt"), {0.5f, kInf});
  expectFloats(one("math.tanh"), {0.99932930f, 0}, 1e-6f);
}

TEST(ScalarOps, TreatNanAndZeroAsArithDoes) {
  Tensor a = makeTensor({4}, {kNan, 1, -0.0f, 0.0f});
  Tensor b = makeTensor({4}, {1, kNan, 0.0f, -0.0f});
  auto of = [&](std::string_view name) {
    return scalarOp(name, {a.view(), b.view()});
  };
  expectFloats(of("arith.maxnumf"), {1, 1, 0, 0});
  expectFloats(of("arith.minnumf"), {1, 1, 0, 0});
  Result<Tensor> larger = of("arith.maximumf"), smaller = of("arith.minimumf");
  expectFloats(larger, {kNan, kNan, 0, 0});
  expectFloats(smaller, {kNan, kNan, 0, 0});
  for (int i : {2, 3}) {
    EXPECT_FALSE(std::signbit(larger->floats()[i]));
    EXPECT_TRUE(std::signbit(smaller->floats()[i]));
  }
  constexpr int64_t oeq = 1, une = 13, ult = 11;
  Tensor c = makeTensor({4}, {kNan, 1, 2, -1});
  auto compare = [&](int64_t predicate) {
    return scalarOp("arith.cmpf", {a.view(), c.view()}, DataType::I1,
                    predicate);
  };
  expectIntegers(compare(oeq), DataType::I1, {0, 1, 0, 0});
  expectIntegers(compare(une), DataType::I1, {1, 0, 1, 1});
  expectIntegers(compare(ult), DataType::I1, {1, 0, 1, 0});
}

TEST(ScalarOps, WrapIntegersAndDefineWhatArithDoesNot) {
  constexpr DataType i8 = DataType::I8;
  Tensor a = makeIntegers(i8, {-128, 7, -7, 100}),
         b = makeIntegers(i8, {-1, 0, 2, 100});
  auto of = [&](std::string_view name) {
    return scalarOp(name, {a.view(), b.view()}, i8);
  };
  expectIntegers(of("arith.addi"), i8, {127, 7, -5, -56});
  expectIntegers(of("arith.divsi"), i8, {-128, 0, -3, 1});
  expectIntegers(of("arith.remsi"), i8, {0, 7, -1, 0});
  expectIntegers(of("arith.floordivsi"), i8, {-128, 0, -4, 1});
  expectIntegers(of("arith.ceildivsi"), i8, {-128, 0, -3, 1});
  expectIntegers(of("arith.divui"), i8, {0, 0, 124, 1});
  expectIntegers(of("arith.shli"), i8, {0, 7, -28, 0});
  expectIntegers(of("arith.shrsi"), i8, {-1, 7, -2, 0});
  expectIntegers(of("arith.maxui"), i8, {-1, 7, -7, 100});
  Tensor x = makeTensor({5}, {300, -300, 1.9f, -1.9f, kNan});
  expectIntegers(scalarOp("arith.fptosi", {x.view()}, i8), i8,
                 {127, -128, 1, -1, 0});
  expectIntegers(scalarOp("arith.fptoui", {x.view()}, i8), i8,
                 {255, 0, 1, 0, 0});
}

TEST(ScalarOps, RefuseOtherTypesAndShapes) {
  Tensor a = makeTensor({4}, {1, 2, 3, 4}), b = makeTensor({1}, {1});
  expectError(scalarOp("arith.addf", {a.view(), b.view()}),
              "arith.addf does not take 4xf32, 1xf32 and make f32");
  expectError(scalarOp("arith.negf", {makeInts({1}).view()}),
              "arith.negf does not take");
  expectError(scalarOp("arith.addi", {a.view(), a.view()}, DataType::I32),
              "arith.addi does not take");
  expectError(scalarOp("arith.cmpf", {a.view(), a.view()}, DataType::I1, 16),
              "arith.cmpf does not take");
  EXPECT_EQ(findScalarOp("arith.nothing"), nullptr);
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
