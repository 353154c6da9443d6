//===- ShapeOpsTest.cpp - Slices, reshapes, types ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include "ReferenceTestUtils.h"

#include <numeric>

namespace kf::reference {
namespace {

using Dims = std::vector<int64_t>;

Tensor counting(Dims shape) {
  Tensor tensor = Tensor::zeros(DataType::F32, std::move(shape)).take();
  std::iota(tensor.floats(), tensor.floats() + tensor.view().count(), 0.0f);
  return tensor;
}

TEST(ExtractSlice, TakesAnyBox) {
  Tensor x = counting({3, 4});
  auto slice = [&](Dims offsets, Dims sizes, Dims strides) {
    return extractSlice(x.view(), offsets, sizes, strides);
  };
  expectFloats(slice({0, 0}, {3, 4}, {1, 1}),
               {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  Result<Tensor> columns = slice({0, 1}, {3, 2}, {1, 1});
  expectShape(columns, {3, 2});
  expectFloats(columns, {1, 2, 5, 6, 9, 10});
  expectFloats(slice({0, 1}, {2, 2}, {2, 2}), {1, 3, 9, 11});
  expectFloats(slice({2, 3}, {1, 1}, {9, 9}), {11});
  expectShape(slice({3, 0}, {0, 4}, {1, 1}), {0, 4});
}

TEST(ExtractSlice, KeepsTheType) {
  Tensor ids = makeInts({16777217, 5, -7}); // not all are floats
  expectInts(extractSlice(ids.view(), Dims{0}, Dims{2}, Dims{2}),
             {16777217, -7});
}

TEST(ExtractSlice, RejectsWhatIsOutside) {
  Tensor x = counting({3, 4});
  constexpr int64_t huge = INT64_MAX;
  for (auto [offset, size, stride] : {std::array<int64_t, 3>{0, 4, 1},
                                      {2, 2, 1},
                                      {-1, 1, 1},
                                      {0, -1, 1},
                                      {0, 2, 3},
                                      {0, 1, 0},
                                      {0, 1, -1},
                                      {huge, huge, huge},
                                      {0, huge, 1},
                                      {4, 0, 1}})
    expectError(
        extractSlice(x.view(), Dims{offset, 0}, Dims{size, 1}, Dims{stride, 1}),
        "are not in dimension 0");
  expectError(extractSlice(x.view(), Dims{0}, Dims{1}, Dims{1}), "as many");
  Tensor blocks = Tensor::zeros(DataType::Q8_0, {1, 32}).take();
  expectError(extractSlice(blocks.view(), Dims{0, 0}, Dims{1, 32}, Dims{1, 1}),
              "cannot be sliced");
}

TEST(QuantizeRows, RoundsUnitsOf32) {
  // The second unit is of zeros, the third has an infinity; ties go to even.
  std::vector<float> values(96);
  values[0] = -127;
  values[1] = 2.5f;
  values[2] = 3.5f;
  values[17] = 0.4f;
  values[64] = kInf;
  values[65] = 1;
  Result<std::vector<Tensor>> rows =
      quantizeRows(makeTensor({1, 96}, values).view(), 16);
  ASSERT_TRUE(rows.ok()) << rows.message();
  ASSERT_EQ(rows->size(), 3u);
  const Tensor &codes = (*rows)[0];
  EXPECT_EQ(codes.type, DataType::I8);
  EXPECT_EQ(codes.shape, (std::vector<int64_t>{1, 96}));
  std::vector<std::byte> expected(96);
  expected[0] = std::byte(-127);
  expected[1] = std::byte(2);
  expected[2] = std::byte(4);
  EXPECT_EQ(codes.bytes, expected);
  expectFloats((*rows)[1], {1, 0, kNan}, 1e-6f);
  expectInts((*rows)[2], {-121, 0, 0, 0, 0, 0});

  Result<Tensor> scaled = scaleRows(codes.view(), (*rows)[1].view());
  ASSERT_TRUE(scaled.ok()) << scaled.message();
  EXPECT_NEAR(scaled->floats()[0], -127, 1e-4f);
  EXPECT_TRUE(std::isnan(scaled->floats()[65]));
}

TEST(QuantizeRows, RejectsWrongOperands) {
  Tensor x = counting({2, 32});
  expectError(quantizeRows(counting({2, 6}).view(), 32), "C1");
  expectError(quantizeRows(counting({32}).view(), 32), "C1");
  expectError(quantizeRows(x.view(), 8), "C2");
  Tensor codes = quantizeRows(x.view(), 32).take()[0];
  expectError(scaleRows(x.view(), x.view()), "kf.matmul C1");
  expectError(scaleRows(codes.view(), x.view()), "kf.matmul C6");
}

TEST(Reshape, KeepsTheElements) {
  Tensor x = counting({2, 6});
  Result<Tensor> expanded = reshape(x.view(), {2, 3, 2});
  expectShape(expanded, {2, 3, 2});
  expectFloats(expanded, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expectShape(reshape(x.view(), {12}), {12});
  expectShape(reshape(makeTensor({1}, {3}).view(), {}), {});
  expectError(reshape(x.view(), {2, 5}), "not as many elements");
  // Before there is memory for it.
  expectError(reshape(x.view(), {1 << 30, 1 << 30}), "not as many elements");
}

TEST(Transpose, PermutesDimensions) {
  Tensor x = makeTensor({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  Result<Tensor> y = transpose(x.view(), Dims{2, 0, 1});
  expectShape(y, {3, 2, 1});
  expectFloats(y, {1, 4, 2, 5, 3, 6});
  expectError(transpose(x.view(), Dims{0, 0, 1}), "kf.transpose C1");
  expectError(transpose(x.view(), Dims{0, 1}), "kf.transpose C1");
}

TEST(Broadcast, RepeatsOnes) {
  Tensor x = makeTensor({2, 1}, {1, 2});
  Result<Tensor> y = broadcast(x.view(), {2, 2, 3});
  expectShape(y, {2, 2, 3});
  expectFloats(y, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  expectFloats(broadcast(makeTensor({}, {7}).view(), {2}), {7, 7});
  expectError(broadcast(x.view(), {3, 1}), "kf.broadcast C3");
  expectError(broadcast(x.view(), {2}), "kf.broadcast C2");
}

TEST(Concat, JoinsAlongADimension) {
  Tensor a = makeTensor({2, 1}, {1, 2}), b = makeTensor({2, 2}, {3, 4, 5, 6});
  std::vector<TensorView> parts = {a.view(), b.view()};
  Result<Tensor> y = concat(parts, 1);
  expectShape(y, {2, 3});
  expectFloats(y, {1, 3, 4, 2, 5, 6});
  expectError(concat(parts, 0), "does not fit");
  expectError(concat(parts, 2), "dimension 2");
}

TEST(Iota, CountsAlongADimension) {
  Result<Tensor> y = iota(DataType::I32, {2, 3}, 1);
  ASSERT_TRUE(y.ok()) << y.message();
  for (int32_t i = 0; i < 6; ++i)
    EXPECT_EQ(y->ints()[i], i % 3);
  expectError(iota(DataType::F32, {2, 3}, 1), "kf.iota");
}

TEST(Reduce, CombinesDimensions) {
  Tensor x = makeTensor({2, 3}, {1, 5, -2, 4, 0, 6});
  expectFloats(reduce(Reduction::Sum, x.view(), Dims{1}, {2}), {4, 10});
  expectFloats(reduce(Reduction::Max, x.view(), Dims{0}, {1, 3}), {4, 5, 6});
  expectFloats(reduce(Reduction::Mean, x.view(), Dims{0, 1}, {}), {14.0f / 6});
  expectFloats(reduce(Reduction::Prod, x.view(), Dims{1}, {2}), {-10, 0});
  expectError(reduce(Reduction::Sum, x.view(), Dims{2}, {2}), "kf.reduce C1");
  expectError(reduce(Reduction::Sum, x.view(), Dims{1}, {3}), "kf.reduce C3");
  expectError(reduce(Reduction::Mean, makeInts({1, 2}).view(), Dims{0}, {}),
              "kf.reduce C2");
}

TEST(TypeSizes, AreChecked) {
  EXPECT_EQ(*checkedByteCount(DataType::BF16, Dims{3, 5}), 30);
  EXPECT_EQ(*checkedByteCount(DataType::F32, Dims{}), 4);
  EXPECT_EQ(*checkedByteCount(DataType::Q4_K, Dims{2, 512}), 4 * 144);
  expectError(checkedByteCount(DataType::Q6_K, Dims{2, 255}), "blocks of 256");
  expectError(checkedByteCount(DataType::Q8_0, Dims{}), "blocks of 32");
  expectError(checkedByteCount(DataType::F32, Dims{INT64_MAX, 2}), "63 bits");
  expectError(checkedByteCount(DataType::F32, Dims{-1}), "negative");
}

TEST(TypeNames, RoundTrip) {
  for (const char *name :
       {"f32", "bf16", "i32", "q8_0", "q4_0", "q4_k", "q6_k"})
    EXPECT_EQ(nameOf(*parseDataType(name)), name);
  expectError(parseDataType("q9_1"), "unknown element type 'q9_1'");
}

} // namespace
} // namespace kf::reference
