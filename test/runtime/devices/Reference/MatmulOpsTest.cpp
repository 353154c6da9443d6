//===- MatmulOpsTest.cpp - Lookup and matrix products --------------------===//
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

TEST(Embedding, TakesRows) {
  Tensor table = makeTensor({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor ids = makeInts({2, 0, 2});
  Result<Tensor> rows = embedding(ids.view(), table.view());
  expectShape(rows, {3, 2});
  expectFloats(rows, {5, 6, 1, 2, 5, 6});
}

TEST(Embedding, GivesZerosOutsideTheTable) {
  Tensor table = makeTensor({2, 2}, {1, 2, 3, 4}, DataType::BF16);
  Tensor ids = makeInts({-1, 1, 2, INT32_MIN, INT32_MAX});
  expectFloats(embedding(ids.view(), table.view()),
               {0, 0, 3, 4, 0, 0, 0, 0, 0, 0});
}

TEST(Embedding, ReadsQuantizedTables) {
  // q8_0: d = 0.5, quants 0, 1, ... in the second row.
  Tensor table = Tensor::zeros(DataType::Q8_0, {2, 32}).take();
  uint16_t half = floatToHalf(0.5f);
  std::memcpy(table.bytes.data() + 34, &half, 2);
  std::vector<float> expected(32);
  for (int i = 0; i < 32; ++i) {
    table.bytes[34 + 2 + i] = std::byte(i);
    expected[i] = 0.5f * static_cast<float>(i);
  }
  Tensor ids = makeInts({1});
  expectFloats(embedding(ids.view(), table.view()), expected);
}

TEST(Embedding, RejectsWrongOperands) {
  Tensor table = makeTensor({2, 2}, {1, 2, 3, 4});
  Tensor floats = makeTensor({1}, {1}), ids = makeInts({1});
  expectError(embedding(floats.view(), table.view()), "kf.embedding C1");
  expectError(embedding(table.view(), table.view()), "kf.embedding C1");
  expectError(embedding(ids.view(), floats.view()), "kf.embedding C2");
  expectError(embedding(ids.view(), ids.view()), "kf.embedding C2");
}

TEST(Matmul, MultipliesByTheTransposedWeight) {
  Tensor x = makeTensor({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor w = makeTensor({2, 3}, {1, 0, -1, 2, 1, 0});
  Result<Tensor> product = matmul(x.view(), w.view(), nullptr);
  expectShape(product, {2, 2});
  expectFloats(product, {-2, 4, -2, 13});
  Tensor bias = makeTensor({2}, {10, 20}, DataType::F16);
  TensorView offsets = bias.view();
  expectFloats(matmul(x.view(), w.view(), &offsets), {8, 24, 8, 33});
}

TEST(Matmul, GatesPairsOfColumns) {
  Tensor x = makeTensor({1, 2}, {1, 2});
  // Gates -1 and 3, ups 5 and 2.
  Tensor w = makeTensor({2, 2, 2}, {1, -1, 1, 1, 1, 2, 2, 0});
  expectFloats(matmul(x.view(), w.view(), nullptr, Activation::Relu), {0, 6});
  Tensor offsets = makeTensor({2, 2}, {3, 0, -1, 1});
  TensorView bias = offsets.view();
  // Gates 2 and 3, ups 4 and 3.
  expectFloats(matmul(x.view(), w.view(), &bias, Activation::Relu), {8, 9});
  expectFloats(matmul(x.view(), w.view(), &bias, Activation::Identity), {8, 9});
}

TEST(Matmul, AgreesWithDoublesOnLongRows) {
  // 83 elements: blocks of 16 and a tail.
  int64_t m = 3, n = 4, k = 83;
  std::vector<float> a = randomFloats(m * k, 1), b = randomFloats(n * k, 2);
  for (DataType type : {DataType::F32, DataType::F16, DataType::BF16}) {
    Tensor x = makeTensor({m, k}, a, type), w = makeTensor({n, k}, b, type);
    std::vector<float> left = widen(x.view()).take(),
                       right = widen(w.view()).take(), expected;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += double(left[i * k + l]) * right[j * k + l];
        expected.push_back(static_cast<float>(sum));
      }
    expectFloats(matmul(x.view(), w.view(), nullptr), expected, 2e-6f);
  }
}

TEST(Matmul, ReadsQuantizedWeights) {
  // q4_0: d = 2, all quants 9, that is 1: every weight is 2.
  Tensor w = Tensor::zeros(DataType::Q4_0, {2, 32}).take();
  uint16_t half = floatToHalf(2.0f);
  for (int row = 0; row < 2; ++row) {
    std::memcpy(w.bytes.data() + row * 18, &half, 2);
    std::memset(w.bytes.data() + row * 18 + 2, 0x99, 16);
  }
  Tensor x = makeTensor({1, 32}, std::vector<float>(32, 0.5f));
  expectFloats(matmul(x.view(), w.view(), nullptr), {32, 32});
}

TEST(Matmul, RejectsWrongOperands) {
  Tensor x = makeTensor({1, 2}, {1, 2}), w = makeTensor({1, 2}, {1, 2});
  Tensor wide = makeTensor({1, 3}, {1, 2, 3}), vector = makeTensor({2}, {1, 2});
  TensorView bias = vector.view();
  expectError(matmul(vector.view(), w.view(), nullptr), "kf.matmul C1");
  expectError(matmul(x.view(), vector.view(), nullptr), "kf.matmul C2");
  expectError(matmul(x.view(), w.view(), nullptr, Activation::Silu),
              "kf.matmul C2");
  expectError(matmul(x.view(), wide.view(), nullptr), "kf.matmul C3");
  expectError(matmul(x.view(), w.view(), &bias), "kf.matmul C4");
}

class MlpTest : public testing::Test {
protected:
  Tensor xTensor = makeTensor({1, 2}, {1, 2});
  Tensor upTensor = makeTensor({2, 2}, {1, 1, 1, -1});    // hidden 3, -1
  Tensor gateTensor = makeTensor({2, 2}, {2, 0, -1, -1}); // gate 2, -3
  Tensor downTensor = makeTensor({1, 2}, {10, 1});
  Tensor upBiasTensor = makeTensor({2}, {1, 5});   // hidden 4, 4
  Tensor gateBiasTensor = makeTensor({2}, {0, 6}); // gate 2, 3
  Tensor downBiasTensor = makeTensor({1}, {100});
  TensorView x = xTensor.view(), up = upTensor.view(), gate = gateTensor.view(),
             down = downTensor.view(), upBias = upBiasTensor.view(),
             gateBias = gateBiasTensor.view(), downBias = downBiasTensor.view();
};

TEST_F(MlpTest, Plain) {
  MlpWeights weights{nullptr, &up, &down, nullptr, nullptr, nullptr};
  expectFloats(mlp(x, weights, Activation::Relu), {30});
  weights.upBias = &upBias;
  weights.downBias = &downBias;
  expectFloats(mlp(x, weights, Activation::Relu), {144});
}

TEST_F(MlpTest, Gated) {
  MlpWeights weights{&gate, &up, &down, nullptr, nullptr, nullptr};
  expectFloats(mlp(x, weights, Activation::Relu), {60});
  weights = {&gate, &up, &down, &gateBias, &upBias, &downBias};
  expectFloats(mlp(x, weights, Activation::Relu), {80 + 12 + 100});
}

TEST_F(MlpTest, RejectsWrongOperands) {
  MlpWeights weights{nullptr, &up, &down, &gateBias, nullptr, nullptr};
  expectError(mlp(x, weights, Activation::Relu), "kf.mlp C4");
  Tensor oneRow = makeTensor({1, 2}, {1, 1});
  TensorView gateOfOneRow = oneRow.view();
  weights = {&gateOfOneRow, &up, &down, nullptr, nullptr, nullptr};
  expectError(mlp(x, weights, Activation::Relu), "kf.mlp C2: gate is");
  weights = {nullptr, &up, nullptr, nullptr, nullptr, nullptr};
  expectError(mlp(x, weights, Activation::Relu), "kf.mlp needs");
  weights = {nullptr, &up, &x, nullptr, nullptr, &upBias};
  expectError(mlp(x, weights, Activation::Relu), "C4");
}

} // namespace
} // namespace kf::reference
