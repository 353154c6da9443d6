//===- ScaledWeightsTest.cpp - 8-bit tensors and their scales -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ScaledWeights.h"

#include "MemoryTensors.h"

#include "runtime/io/Safetensors.h"
#include "runtime/weights/RowScales.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace kf;
using kf::test::TempFolder;
using Tensors = kf::test::MemoryTensors;

namespace {

/// Codes of E4M3 whose values are 1, 2, -0.5 and 448.
constexpr char kOne = 0x38, kTwo = 0x40, kMinusHalf = char(0xb0), kMost = 0x7e;

Result<std::unique_ptr<ScaledWeights>> wrap(const Tensors &tensors) {
  return ScaledWeights::create(std::make_unique<Tensors>(tensors));
}

std::vector<float> valuesOf(const WeightSource &source,
                            const std::string &name) {
  auto view = source.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  if (!view.ok())
    return {};
  EXPECT_EQ(view->type, DataType::BF16);
  std::vector<float> values(view->bytes / 2);
  EXPECT_TRUE(convertToFloat(view->type, view->data,
                             static_cast<int64_t>(values.size()), values.data())
                  .ok());
  return values;
}

/// The values of a 2 x 4 tensor of E4M3 with scales of this shape.
std::vector<float> scaled(std::vector<int64_t> shape,
                          const std::vector<float> &scales,
                          const std::string &suffix = "_scale") {
  Tensors tensors;
  tensors.add("a.weight", DataType::F8E4M3, {2, 4},
              {kOne, kTwo, kMinusHalf, kMost, kOne, kOne, kTwo, kTwo});
  tensors.add("a.weight" + suffix, std::move(shape), scales);
  auto source = wrap(tensors);
  EXPECT_TRUE(source.ok()) << source.message();
  if (!source.ok())
    return {};
  EXPECT_EQ((*source)->names(), std::vector<std::string>{"a.weight"});
  return valuesOf(**source, "a.weight");
}

TEST(ScaledWeights, ShapesOfScales) {
  using Values = std::vector<float>;
  const Values doubled = {2, 4, -1, 896, 2, 2, 4, 4};
  EXPECT_EQ(scaled({}, {2}), doubled);
  EXPECT_EQ(scaled({1}, {2}), doubled);
  EXPECT_EQ(scaled({1, 1}, {2}), doubled);
  EXPECT_EQ(scaled({1}, {2}, "_scale_inv"), doubled);
  const Values rows = {2, 4, -1, 896, -3, -3, -6, -6};
  EXPECT_EQ(scaled({2}, {2, -3}), rows);
  EXPECT_EQ(scaled({2, 1}, {2, -3}), rows);
  const Values runs = {2, 4, -1.5, 1344, 1, 1, 8, 8};
  EXPECT_EQ(scaled({2, 2}, {2, 3, 1, 4}), runs);
}

TEST(ScaledWeights, RoundsTheProductOnce) {
  // 448 * 1.01 = 452.48 lies between the bf16 numbers 452 and 454.
  EXPECT_EQ(scaled({}, {1.01f})[3], 452);
}

TEST(ScaledWeights, SquaresOf128) {
  constexpr int64_t rows = 130, columns = 300;
  Tensors tensors;
  tensors.add("w", DataType::I8, {rows, columns},
              std::string(rows * columns, char(-3)));
  tensors.add("w_scale_inv", {2, 3}, {1, 2, 3, 4, 5, 6});
  auto source = wrap(tensors);
  ASSERT_TRUE(source.ok()) << source.message();
  std::vector<float> values = valuesOf(**source, "w");
  ASSERT_EQ(values.size(), size_t(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      ASSERT_EQ(values[r * columns + c], -3.0f * (r / 128 * 3 + c / 128 + 1));
}

TEST(ScaledWeights, ValuesWithoutScales) {
  Tensors tensors;
  tensors.add("f8", DataType::F8E4M3, {2}, {kTwo, kMinusHalf});
  tensors.add("i8", DataType::I8, {3}, {char(-128), 0, 127});
  tensors.add("empty", DataType::I8, {0, 4}, {});
  tensors.add("norm", {2}, {1, 3});
  auto source = wrap(tensors);
  ASSERT_TRUE(source.ok()) << source.message();
  EXPECT_EQ((*source)->names(),
            (std::vector<std::string>{"empty", "f8", "i8", "norm"}));
  EXPECT_EQ(valuesOf(**source, "f8"), (std::vector<float>{2, -0.5}));
  EXPECT_EQ(valuesOf(**source, "i8"), (std::vector<float>{-128, 0, 127}));
  EXPECT_EQ(valuesOf(**source, "empty"), std::vector<float>());
  EXPECT_EQ((*source)->find("norm")->type, DataType::F32);
  EXPECT_FALSE((*source)->find("none").ok());

  auto described = (*source)->describe("i8");
  ASSERT_TRUE(described.ok());
  EXPECT_EQ(described->type, DataType::BF16);
  EXPECT_EQ(described->bytes, 6u);
  (*source)->release("i8");
  EXPECT_EQ(valuesOf(**source, "i8"), (std::vector<float>{-128, 0, 127}));
}

TEST(ScaledWeights, HidesScalesOfActivations) {
  Tensors tensors;
  tensors.add("a.weight", DataType::F8E4M3, {1}, {kOne});
  tensors.add("a.weight_scale", {}, {2});
  tensors.add("a.input_scale", {}, {2});
  tensors.add("b.weight", {1}, {1});
  tensors.add("b.input_scale", {}, {2});
  auto source = wrap(tensors);
  ASSERT_TRUE(source.ok()) << source.message();
  EXPECT_EQ((*source)->names(), (std::vector<std::string>{
                                    "a.weight", "b.input_scale", "b.weight"}));
}

TEST(ScaledWeights, Errors) {
  auto errorOf = [](std::vector<int64_t> shape,
                    const std::vector<float> &scales) {
    Tensors tensors;
    tensors.add("w", DataType::I8, {2, 4}, std::string(8, 1));
    tensors.add("w_scale", std::move(shape), scales);
    return wrap(tensors).message();
  };
  EXPECT_EQ(errorOf({3}, {1, 1, 1}),
            "scale 'w_scale' has shape [3], which does not go with the "
            "tensor's [2, 4]; one scale, one a row, one for a run of columns, "
            "or one for 128 x 128 elements is supported");
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{2, 3}, {4, 2}, {1, 2, 1}})
    EXPECT_NE(errorOf(shape, std::vector<float>(8)).find("does not go with"),
              std::string::npos);
  EXPECT_NE(errorOf({2, 0}, {}).find("does not go with"), std::string::npos);
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(errorOf({2}, {1, infinite}),
            "scale 'w_scale' is not finite at element 1");
  EXPECT_EQ(errorOf({1}, {NAN}), "scale 'w_scale' is not finite at element 0");

  Tensors tensors;
  tensors.add("w", DataType::I8, {1}, "1");
  tensors.add("w_scale", DataType::I8, {1}, "1");
  EXPECT_EQ(wrap(tensors).message(),
            "scale 'w_scale' has type i8; f32, f16 and bf16 are supported");
  tensors.add("w_scale", {1}, {1});
  tensors.add("w_scale_inv", {1}, {1});
  EXPECT_EQ(wrap(tensors).message(),
            "tensor 'w' has two scales, 'w_scale' and 'w_scale_inv'");
  tensors.add("w_zero_point", {1}, {1});
  EXPECT_EQ(wrap(tensors).message(),
            "tensor 'w' has zero points; only symmetric 8-bit weights are "
            "supported");
}

TEST(ScaledWeights, KeepsMatricesWithAScaleForEachRow) {
  Tensors tensors;
  const std::string codes = {kOne, kTwo, kMinusHalf, kMost, kOne, kOne};
  for (const char *name : {"row", "column", "whole", "bare", "groups"})
    tensors.add(name, DataType::F8E4M3, {2, 3}, codes);
  tensors.add("row_scale", {2}, {2, 4});
  tensors.add("column_scale_inv", {2, 1}, {3, 5});
  tensors.add("whole_scale", {}, {7});
  tensors.add("groups_scale", {2, 3}, {1, 2, 3, 4, 5, 6});
  tensors.add("integers", DataType::I8, {2, 3}, codes);
  tensors.add("vector", DataType::F8E4M3, {6}, codes);
  tensors.add("plain", {2}, {1, 2});
  auto source = wrap(tensors);
  ASSERT_TRUE(source.ok()) << source.message();
  const std::vector<std::string> names = (*source)->names();

  for (const char *name : {"groups", "integers", "vector", "plain", "none"})
    EXPECT_FALSE(*(*source)->keepFloat8(name)) << name;
  const std::pair<const char *, std::vector<float>> kept[] = {
      {"row", {2, 4}}, {"column", {3, 5}}, {"whole", {7, 7}}, {"bare", {1, 1}}};
  for (const auto &[name, factors] : kept) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(*(*source)->keepFloat8(name));
    EXPECT_TRUE(*(*source)->keepFloat8(name)) << "twice";
    auto described = (*source)->describe(name), found = (*source)->find(name);
    ASSERT_TRUE(described.ok() && found.ok());
    for (const TensorView &view : {*described, *found}) {
      EXPECT_EQ(view.type, DataType::F8E4M3);
      EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3}));
    }
    EXPECT_EQ(std::string(static_cast<const char *>(found->data), found->bytes),
              codes);
    for (int time : {0, 1}) {
      auto scales = (*source)->find(scaleName(name));
      ASSERT_TRUE(scales.ok()) << scales.message() << time;
      EXPECT_EQ(scales->type, DataType::F32);
      EXPECT_EQ(scales->shape, std::vector<int64_t>{2});
      const auto *values = static_cast<const float *>(scales->data);
      EXPECT_EQ(std::vector<float>(values, values + 2), factors);
      (*source)->release(scaleName(name));
      (*source)->release(name);
    }
  }
  EXPECT_EQ((*source)->describe("groups")->type, DataType::BF16);
  EXPECT_EQ((*source)->names(), names);
}

TEST(ScaledWeights, AroundFilesThatNeedIt) {
  const std::string header =
      R"({"w":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[0,2]},)"
      R"("w_scale":{"dtype":"F32","shape":[],"data_offsets":[2,6]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes += header;
  bytes += {kOne, kMinusHalf};
  const float four = 4;
  bytes.append(reinterpret_cast<const char *>(&four), 4);
  TempFolder temp;
  temp.write("model.safetensors", bytes);
  auto source = openSafetensors(temp.path());
  ASSERT_TRUE(source.ok()) << source.message();
  EXPECT_EQ((*source)->names(), std::vector<std::string>{"w"});
  EXPECT_EQ(valuesOf(**source, "w"), (std::vector<float>{4, -2}));

  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\x7f");
  EXPECT_EQ(openSafetensors(temp.write("nan.safetensors", bytes)).message(),
            temp.path("nan.safetensors") +
                ": scale 'w_scale' is not finite at element 0");
}

} // namespace
