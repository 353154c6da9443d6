//===- PackedWeightsTest.cpp - Tensors of 4-bit codes and their scales ----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/PackedWeights.h"

#include "MemoryTensors.h"

#include "runtime/io/ScaledWeights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace kf;
using kf::test::Releases;
using Tensors = kf::test::MemoryTensors;

namespace {

constexpr const char *kNf4 = "a.weight.quant_state.bitsandbytes__nf4";

Result<std::unique_ptr<PackedWeights>> wrap(const Tensors &tensors) {
  return PackedWeights::create(std::make_unique<Tensors>(tensors));
}

float toBf16(float value) { return bfloatToFloat(floatToBfloat(value)); }

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

/// Code number `i` of a matrix.
int codeOf(int64_t i) { return static_cast<int>((i * 7 + i / 16) % 16); }

/// The codes of `count` elements, the first of two in the high half or not.
std::string packed(int64_t count, bool highFirst) {
  std::string bytes((count + 1) / 2, '\0');
  for (int64_t i = 0; i < count; ++i)
    bytes[i / 2] |=
        static_cast<char>(codeOf(i) << ((i % 2 == 0) == highFirst ? 4 : 0));
  return bytes;
}

/// NF4's values, of the QLoRA paper.
const std::vector<float> kMap = {-1.0f,
                                 -0.6961928009986877f,
                                 -0.5250730514526367f,
                                 -0.39491748809814453f,
                                 -0.28444138169288635f,
                                 -0.18477343022823334f,
                                 -0.09105003625154495f,
                                 0.0f,
                                 0.07958029955625534f,
                                 0.16093020141124725f,
                                 0.24611230194568634f,
                                 0.33791524171829224f,
                                 0.44070982933044434f,
                                 0.5626170039176941f,
                                 0.7229568362236023f,
                                 1.0f};

/// A matrix of bitsandbytes with blocks that end within rows, the last of which
/// is no whole one.
constexpr int64_t kRows = 3, kColumns = 101, kCount = kRows * kColumns;

Tensors makeFloatScales(const std::vector<float> &absmax) {
  Tensors tensors;
  tensors.add("a.weight", DataType::U8, {(kCount + 1) / 2, 1},
              packed(kCount, true));
  tensors.add("a.weight.quant_map", {16}, kMap);
  tensors.add("a.weight.absmax", {static_cast<int64_t>(absmax.size())}, absmax);
  const std::string state =
      R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", )"
      R"("shape": [3, 101]})";
  tensors.add(kNf4, DataType::U8, {static_cast<int64_t>(state.size())}, state);
  tensors.add("b.weight", {2}, {1, 2});
  return tensors;
}

const std::vector<float> kAbsmax = {1, 0, 1e-40f, 0.125f, 3e38f};

Tensors makeNestedScales(const std::string &state) {
  Tensors tensors = makeFloatScales(kAbsmax);
  tensors.add("a.weight.absmax", DataType::U8, {5},
              std::string("\x00\xff\x7f\x01\x80", 5));
  std::vector<float> map;
  for (int i = 0; i < 256; ++i)
    map.push_back(static_cast<float>(i - 127) / 128);
  tensors.add("a.weight.nested_quant_map", {256}, map);
  tensors.add("a.weight.nested_absmax", {3}, {0.5f, 0.25f, 7});
  tensors.add(kNf4, DataType::U8, {static_cast<int64_t>(state.size())}, state);
  return tensors;
}

constexpr const char *kNestedState =
    R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", )"
    R"("shape": [3, 101], "nested_blocksize": 2, "nested_dtype": "float32", )"
    R"("nested_offset": 0.0625})";

void expectMatrix(const Tensors &tensors, const std::vector<float> &scales) {
  auto source = wrap(tensors);
  ASSERT_TRUE(source.ok()) << source.message();
  EXPECT_EQ((*source)->names(),
            (std::vector<std::string>{"a.weight", "b.weight"}));
  auto described = (*source)->describe("a.weight");
  ASSERT_TRUE(described.ok()) << described.message();
  EXPECT_EQ(described->type, DataType::BF16);
  EXPECT_EQ(described->shape, (std::vector<int64_t>{kRows, kColumns}));
  const std::vector<float> values = valuesOf(**source, "a.weight");
  ASSERT_EQ(values.size(), static_cast<size_t>(kCount));
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(values[i], toBf16(kMap[codeOf(i)] * scales[i / 64])) << i;
}

TEST(PackedWeights, BitsAndBytes) {
  expectMatrix(makeFloatScales(kAbsmax), kAbsmax);
  const auto source = wrap(makeFloatScales(kAbsmax));
  ASSERT_TRUE(source.ok()) << source.message();
  EXPECT_EQ((*source)->note(),
            "1 matrix of 4 bits is read as bf16, in 3.5 times the memory; a "
            "GGUF file of q4_0 or q4_k keeps them small");
  EXPECT_TRUE(PackedWeights::isNeeded(makeFloatScales(kAbsmax)));
  EXPECT_FALSE(PackedWeights::isNeeded(Tensors()));
}

TEST(PackedWeights, BitsAndBytesWithNestedScales) {
  expectMatrix(makeNestedScales(kNestedState),
               {-127 / 128.0f * 0.5f + 0.0625f, 128 / 128.0f * 0.5f + 0.0625f,
                0 + 0.0625f, -126 / 128.0f * 0.25f + 0.0625f,
                1 / 128.0f * 7 + 0.0625f});
}

/// Codes of E4M3 whose values are 0, the least, -0.5, 1 and 448.
const std::string kScales("\0\x01\xb0\x38\x7e\x38", 6);
const std::vector<float> kScaleValues = {0, 0x1p-9f, -0.5f, 1, 448, 1};

void expectNvfp4(const Tensors &tensors, float factor) {
  auto source = wrap(tensors);
  ASSERT_TRUE(source.ok()) << source.message();
  EXPECT_EQ((*source)->names(), std::vector<std::string>{"a.weight"});
  EXPECT_FALSE(ScaledWeights::isNeeded(**source));
  const std::vector<float> values = valuesOf(**source, "a.weight");
  ASSERT_EQ(values.size(), 96u);
  const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int64_t i = 0; i < 96; ++i) {
    const int code = codeOf(i);
    const float number = code < 8 ? numbers[code] : -numbers[code - 8];
    ASSERT_EQ(values[i], toBf16(number * (kScaleValues[i / 16] * factor))) << i;
  }
}

Tensors makeModelOpt(float factor) {
  Tensors tensors;
  tensors.add("a.weight", DataType::U8, {2, 24}, packed(96, false));
  tensors.add("a.weight_scale", DataType::F8E4M3, {2, 3}, kScales);
  tensors.add("a.weight_scale_2", {}, {factor});
  tensors.add("a.input_scale", {}, {3});
  return tensors;
}

TEST(PackedWeights, Nvfp4OfModelOpt) { expectNvfp4(makeModelOpt(0.3f), 0.3f); }

TEST(PackedWeights, Nvfp4OfCompressedTensors) {
  Tensors tensors;
  tensors.add("a.weight_packed", DataType::U8, {2, 24}, packed(96, false));
  tensors.add("a.weight_scale", DataType::F8E4M3, {2, 3}, kScales);
  tensors.add("a.weight_global_scale", {1}, {4});
  tensors.add("a.input_global_scale", {1}, {3});
  expectNvfp4(tensors, 0.25f);
  tensors.add("a.weight_global_scale", {1}, {0});
  auto source = wrap(tensors);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(
      (*source)->find("a.weight").message(),
      "tensor 'a.weight_global_scale' is 0, but scales are divided by it");
  tensors.add("a.weight_global_scale", {1}, {1e-40f});
  source = wrap(tensors);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->find("a.weight").message(),
            "tensor 'a.weight': the scale of block 2 is so large that what it "
            "multiplies is not finite in bf16");
  tensors.add("a.weight", {1}, {1});
  EXPECT_EQ(wrap(tensors).message(),
            "tensors 'a.weight_packed' and 'a.weight' hold the same");
}

TEST(PackedWeights, MakesAndReleases) {
  Releases releases;
  auto tensors = std::make_unique<Tensors>(&releases);
  tensors->add("a.weight", DataType::U8, {2, 24}, packed(96, false));
  tensors->add("a.weight_scale", DataType::F8E4M3, {2, 3}, kScales);
  tensors->add("a.weight_scale_2", {}, {2});
  auto source = PackedWeights::create(std::move(tensors));
  ASSERT_TRUE(source.ok()) << source.message();
  ASSERT_TRUE((*source)->find("a.weight").ok());
  EXPECT_EQ(releases,
            (Releases{"a.weight_scale", "a.weight_scale_2", "a.weight"}));
  (*source)->release("a.weight");
  (*source)->releasePart("a.weight", 0, 2);
  EXPECT_EQ(releases.size(), 3u) << "it has given its pages back already";
  EXPECT_FALSE(*(*source)->keepFloat8("a.weight"));
  EXPECT_EQ(valuesOf(**source, "a.weight").size(), 96u);
}

/// The error of a matrix that `change` breaks, from create() or find().
std::string errorOf(Tensors tensors,
                    const std::function<void(Tensors &)> &change) {
  change(tensors);
  auto source = wrap(tensors);
  if (!source.ok())
    return source.message();
  return (*source)->find("a.weight").message();
}

TEST(PackedWeights, ErrorsOfBitsAndBytes) {
  auto error = [](const std::function<void(Tensors &)> &change) {
    return errorOf(makeNestedScales(kNestedState), change);
  };
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight", DataType::U8, {150, 1}, std::string(150, 'x'));
            }),
            "tensor 'a.weight' has shape [150, 1], but 152 elements are "
            "expected");
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight", DataType::I8, {152, 1}, std::string(152, 'x'));
            }),
            "tensor 'a.weight' has type i8 where ui8 is expected");
  EXPECT_EQ(error([](Tensors &t) { t.add("a.weight.quant_map", {1}, {1}); }),
            "tensor 'a.weight.quant_map' has shape [1], but 16 elements are "
            "expected");
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight.absmax", DataType::U8, {4}, "abcd");
            }),
            "tensor 'a.weight.absmax' has shape [4], but 5 elements are "
            "expected");
  EXPECT_EQ(
      error([](Tensors &t) { t.add("a.weight.nested_absmax", {2}, {1, 2}); }),
      "tensor 'a.weight.nested_absmax' has shape [2], but 3 elements are "
      "expected");
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight.nested_absmax", {3}, {1, std::nanf(""), 2});
            }),
            "tensor 'a.weight.nested_absmax' is not finite at element 1");
  // f32 holds this, bf16 does not.
  EXPECT_EQ(errorOf(makeFloatScales({1, 0, 3.4e38f, 1, 1}), [](Tensors &) {}),
            "tensor 'a.weight': the scale of block 2 is so large that what it "
            "multiplies is not finite in bf16");
  auto stateError = [&](const std::string &state) {
    return error([&](Tensors &t) {
      t.add(kNf4, DataType::U8, {static_cast<int64_t>(state.size())}, state);
    });
  };
  const std::string of = "tensor '" + std::string(kNf4) + "': ";
  EXPECT_TRUE(stateError("{").starts_with(of));
  EXPECT_EQ(stateError("[]"), of + "a JSON object is expected");
  EXPECT_EQ(stateError(R"({"blocksize": 64})"),
            of + "'shape' has to be two sizes");
  EXPECT_EQ(stateError(R"({"blocksize": 64, "shape": [3, -101]})"),
            of + "'shape' has to be two sizes");
  EXPECT_TRUE(
      stateError(R"({"blocksize": 64, "shape": [9223372036854775807, 8]})")
          .starts_with(of));
  for (const char *size : {"0", "1.5", "null", "-64", "1e30", "1048577"})
    EXPECT_EQ(stateError(R"({"shape": [3, 101], "blocksize": )" +
                         std::string(size) + "}"),
              of + "'blocksize' has to be an integer from 1 to 1048576");
  EXPECT_EQ(stateError(R"({"shape": [3, 101], "blocksize": 64})"),
            of + "'nested_blocksize' has to be an integer from 1 to 1048576");
  EXPECT_EQ(stateError(R"({"shape": [3, 101], "blocksize": 64,
                           "nested_blocksize": 2, "nested_offset": 1e39})"),
            of + "'nested_offset' has to be a number");
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight.quant_state.bitsandbytes__fp4", DataType::U8,
                    {static_cast<int64_t>(std::string(kNestedState).size())},
                    kNestedState);
            }),
            "tensor 'a.weight' has two quant_states");
  EXPECT_EQ(error([](Tensors &t) { t.add(kNf4, {1}, {1}); }),
            "tensor '" + std::string(kNf4) +
                "' has type f32 where ui8 is expected");
}

TEST(PackedWeights, ErrorsOfNvfp4) {
  auto error = [](const std::function<void(Tensors &)> &change) {
    return errorOf(makeModelOpt(1), change);
  };
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight", DataType::U8, {2, 9}, std::string(18, 'x'));
            }),
            "tensor 'a.weight' is ui8 of shape [2, 9] where rows of ui8 with "
            "blocks of 8 bytes are expected");
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight_scale", DataType::F8E4M3, {2, 2}, "abcd");
            }),
            "tensor 'a.weight_scale' has shape [2, 2], but 6 elements are "
            "expected");
  // In another order than rows'.
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight_scale", DataType::F8E4M3, {3, 2}, "abcdef");
            }),
            "tensor 'a.weight_scale' has shape [3, 2], but [2, 3] is expected");
  EXPECT_EQ(
      error([](Tensors &t) { t.add("a.weight_scale_2", {2}, {1, 2}); }),
      "tensor 'a.weight_scale_2' has shape [2], but 1 elements are expected");
  EXPECT_EQ(error([](Tensors &t) {
              t.add("a.weight_scale", DataType::F8E4M3, {2, 3},
                    std::string("\0\0\0\x7f\0\0", 6));
            }),
            "tensor 'a.weight_scale' is not finite at element 3");
  EXPECT_EQ(error([](Tensors &t) { t.add("a.weight_scale_2", {}, {1e36f}); }),
            "tensor 'a.weight': the scale of block 4 is so large that what it "
            "multiplies is not finite in bf16");
}

} // namespace
