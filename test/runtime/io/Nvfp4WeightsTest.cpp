//===- Nvfp4WeightsTest.cpp - Tensors of NVFP4 in GGUF files --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Nvfp4Weights.h"

#include "MemoryTensors.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/io/Npy.h"
#include "runtime/io/PackedWeights.h"
#include "test/runtime/GgufBuilder.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace kf;
using kf::test::GgufBuilder;
using kf::test::raw;

namespace {

constexpr uint32_t kNvfp4 = 40, kF32 = 0, kF16 = 1; ///< ggml's numbers
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// What the gguf package made.
HostTensor readData(const std::string &name) {
  Result<HostTensor> tensor =
      readNpy(KF_SOURCE_DIR "/test/runtime/data/blocks/nvfp4." + name + ".npy");
  EXPECT_TRUE(tensor.ok()) << tensor.message();
  return tensor.ok() ? tensor.take() : HostTensor();
}

/// A block of 64 elements; each group of 16 has the codes 0 to 15, turned by
/// `turn`, and the scales are 1, 2, 3.5 and the least.
std::string makeBlock(int turn = 0) {
  std::string block("\x38\x40\x46\x01", 4);
  for (int byte = 0; byte < 32; ++byte) {
    const int low = (byte % 8 + turn) % 16;
    block += static_cast<char>(low | (low + 8) % 16 << 4);
  }
  return block;
}

/// A factor, or several, as a tensor: its sizes, ggml's number of its type, and
/// its bytes.
struct Factor {
  std::vector<uint64_t> sizes;
  uint32_t type = kF32;
  std::string bytes;
};
Factor factors(const std::vector<float> &values) {
  Factor factor{{values.size()}, kF32, {}};
  for (float value : values)
    factor.bytes += raw(value);
  return factor;
}

/// A tensor `a.weight` of that shape, the innermost size first, whose blocks
/// are makeBlock()'s, with its factor and others' tensors.
std::string makeFile(const std::vector<uint64_t> &sizes,
                     const std::optional<Factor> &factor = std::nullopt) {
  uint64_t count = 1;
  for (uint64_t size : sizes)
    count *= size;
  std::string blocks;
  for (uint64_t i = 0; i < count / 64; ++i)
    blocks += makeBlock(static_cast<int>(i));
  GgufBuilder builder;
  uint64_t end = 0;
  auto add = [&](const std::string &name, const std::vector<uint64_t> &shape,
                 uint32_t type, std::string bytes) {
    bytes.resize((bytes.size() + 31) / 32 * 32);
    builder.tensorEntry(name, shape, type, end).append(bytes);
    end += bytes.size();
  };
  add("a.weight", sizes, kNvfp4, blocks);
  if (factor)
    add("a.scale", factor->sizes, factor->type, factor->bytes);
  add("a.input_scale", {1}, kF32, raw(3.0f));
  add("b.weight", {1}, kF32, raw(7.0f));
  add("b.scale", {1}, kF32, raw(7.0f));
  return builder.bytes();
}

struct Opened {
  std::unique_ptr<Nvfp4Weights> weights;
  std::string error;
};
/// `bytes` outlive the result.
Opened open(const std::string &bytes) {
  auto gguf = Gguf::parse(std::as_bytes(std::span(bytes)), "test");
  if (!gguf.ok())
    return {nullptr, gguf.message()};
  EXPECT_TRUE(Nvfp4Weights::isNeeded(**gguf));
  const Gguf &file = **gguf;
  auto weights = Nvfp4Weights::create(gguf.take(), file);
  if (!weights.ok())
    return {nullptr, weights.message()};
  return {weights.take(), ""};
}

std::vector<float> valuesOf(const WeightSource &source,
                            const std::string &name = "a.weight") {
  auto view = source.find(name);
  EXPECT_TRUE(view.ok()) << view.message();
  if (!view.ok())
    return {};
  EXPECT_EQ(view->type, DataType::BF16);
  EXPECT_EQ(view->bytes,
            uint64_t(*checkedByteCount(DataType::BF16, view->shape)));
  std::vector<float> values(view->bytes / 2);
  EXPECT_TRUE(convertToFloat(view->type, view->data,
                             static_cast<int64_t>(values.size()), values.data())
                  .ok());
  return values;
}

/// Element `i` of blocks that follow one another, without a factor.
float valueOf(int64_t i) {
  constexpr float scales[] = {1, 2, 3.5f, 0x1p-9f};
  const auto code = static_cast<int>((i % 16 + i / 64) % 16);
  return static_cast<float>(kE2M1Table[code]) / 2 * scales[i / 16 % 4];
}

TEST(Nvfp4Weights, HasTheValuesOfTheGgufPackage) {
  const HostTensor blocks = readData("blocks"), values = readData("values");
  const int64_t count = values.elementCount();
  ASSERT_EQ(count, 64 * 64) << "each byte as a scale";
  const std::string bytes =
      GgufBuilder()
          .tensorEntry("a.weight", {128, 32}, kNvfp4, 0)
          .append({reinterpret_cast<const char *>(blocks.bytes.data()),
                   blocks.bytes.size()})
          .bytes();
  const Opened opened = open(bytes);
  ASSERT_TRUE(opened.weights) << opened.error;
  const std::vector<float> got = valuesOf(*opened.weights);
  ASSERT_EQ(got.size(), size_t(count));
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(got[i], values.data<float>()[i]) << i;
}

TEST(Nvfp4Weights, HidesScales) {
  const std::string bytes = makeFile({128, 3}, factors({0.25f}));
  const Opened opened = open(bytes);
  ASSERT_TRUE(opened.weights) << opened.error;
  const Nvfp4Weights &weights = *opened.weights;
  EXPECT_EQ(weights.names(),
            (std::vector<std::string>{"a.weight", "b.scale", "b.weight"}));
  EXPECT_EQ(weights.note(),
            "1 tensor of NVFP4 is read as bf16, in 3.6 times the memory");
  auto described = weights.describe("a.weight");
  ASSERT_TRUE(described.ok()) << described.message();
  EXPECT_EQ(described->type, DataType::BF16);
  EXPECT_EQ(described->shape, (std::vector<int64_t>{3, 128}));
  const std::vector<float> values = valuesOf(weights);
  ASSERT_EQ(values.size(), 384u);
  for (int64_t i = 0; i < 384; ++i)
    ASSERT_EQ(values[i], valueOf(i) / 4) << i;
  weights.release("a.weight");
  EXPECT_EQ(valuesOf(weights), values);
  EXPECT_EQ(weights.find("b.weight")->type, DataType::F32);
  EXPECT_FALSE(weights.find("c").ok());
}

TEST(Nvfp4Weights, FactorsMayBeMissingOrZero) {
  const std::string missing = makeFile({64});
  const Opened plain = open(missing);
  ASSERT_TRUE(plain.weights) << plain.error;
  const std::vector<float> values = valuesOf(*plain.weights);
  for (int64_t i = 0; i < 64; ++i)
    ASSERT_EQ(values[i], valueOf(i)) << i;
  const std::string zero = makeFile({64}, factors({0}));
  const Opened zeros = open(zero);
  ASSERT_TRUE(zeros.weights) << zeros.error;
  for (float value : valuesOf(*zeros.weights))
    ASSERT_EQ(value, 0);
}

TEST(Nvfp4Weights, ExpertsHaveFactorsOfTheirOwn) {
  const std::string bytes = makeFile({64, 2, 3}, factors({1, -2, 0.5f}));
  const Opened opened = open(bytes);
  ASSERT_TRUE(opened.weights) << opened.error;
  const std::vector<float> values = valuesOf(*opened.weights);
  ASSERT_EQ(values.size(), 384u);
  const float expected[] = {1, -2, 0.5f};
  for (int64_t i = 0; i < 384; ++i)
    ASSERT_EQ(values[i], valueOf(i) * expected[i / 128]) << i;
}

/// A folder has the same codes in another order, with the same scales.
TEST(Nvfp4Weights, RoundsAsFoldersDo) {
  const float factor = 0.0037f;
  const std::string bytes = makeFile({64, 2}, factors({factor}));
  const Opened opened = open(bytes);
  ASSERT_TRUE(opened.weights) << opened.error;
  std::string codes, scales;
  for (int turn = 0; turn < 2; ++turn) {
    scales += makeBlock().substr(0, 4);
    for (int i = 0; i < 64; i += 2)
      codes += static_cast<char>((i + turn) % 16 | (i + 1 + turn) % 16 << 4);
  }
  auto folder = std::make_unique<test::MemoryTensors>();
  folder->add("a.weight", DataType::U8, {2, 32}, codes);
  folder->add("a.weight_scale", DataType::F8E4M3, {2, 4}, scales);
  folder->add("a.weight_scale_2", {}, {factor});
  auto packed = PackedWeights::create(std::move(folder));
  ASSERT_TRUE(packed.ok()) << packed.message();
  EXPECT_EQ(valuesOf(*opened.weights), valuesOf(**packed));
}

TEST(Nvfp4Weights, Errors) {
  auto error = [](const std::vector<uint64_t> &sizes, const Factor &factor) {
    const std::string bytes = makeFile(sizes, factor);
    return open(bytes).error;
  };
  EXPECT_EQ(error({96, 2}, factors({1})),
            "test: tensor 'a.weight': rows of NVFP4 come in blocks of 64 "
            "elements, but have 96");
  EXPECT_EQ(error({64, 2}, factors({1, 2})),
            "test: tensor 'a.scale' has shape [2], but [1] is expected");
  EXPECT_EQ(error({64, 2, 3}, factors({1})),
            "test: tensor 'a.scale' has shape [1], but [3] is expected");
  EXPECT_EQ(error({64}, {{1}, kF16, raw<uint16_t>(0x3c00)}),
            "test: tensor 'a.scale' has type f16 where f32 is expected");
  EXPECT_EQ(error({64, 1, 2}, factors({1, kNan})),
            "test: tensor 'a.scale' is not finite at element 1");
  EXPECT_EQ(error({64}, factors({-kInfinity})),
            "test: tensor 'a.scale' is not finite at element 0");
  EXPECT_EQ(error({64}, {{64}, kNvfp4, makeBlock()}),
            "test: tensor 'a.scale' has type NVFP4; supported types are F32, "
            "F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, "
            "IQ4_NL, IQ4_XS, I8, I16, I32, I64, F64, BF16, MXFP4");
}

TEST(Nvfp4Weights, ErrorsOfSizes) {
  // Of no block, but the product of the others counts.
  const std::string bytes = makeFile({64, uint64_t(1) << 56, 0});
  EXPECT_EQ(open(bytes).error,
            "test: tensor 'a.weight': a shape takes more bytes than 63 bits "
            "can count");
}

TEST(Nvfp4Weights, FactorsKeepProductsFinite) {
  auto error = [](float factor) {
    const std::string bytes = makeFile({64}, factors({factor}));
    return open(bytes).error;
  };
  // Of bf16, the least number that is rounded to infinity is 0x1.ffp127.
  const float least = 0x1.ffp127f / (6 * 480);
  EXPECT_EQ(error(std::nextafter(least, 0.0f)), "");
  for (float factor : {std::nextafter(least, 1e38f), -1e36f})
    EXPECT_EQ(error(factor),
              "test: tensor 'a.scale' is so large at element 0 that what it "
              "multiplies is not finite in bf16");
}

TEST(Nvfp4Weights, ErrorsNameThePartOfTheModel) {
  auto part = [](uint16_t number) {
    GgufBuilder builder;
    builder.entry("split.no", GgufValueType::U16, raw(number))
        .entry("split.count", GgufValueType::U16, raw<uint16_t>(2))
        .entry("split.tensors.count", GgufValueType::I32, raw<int32_t>(2));
    return builder;
  };
  const test::TempFolder folder;
  const std::string first = folder.write(
      "m-00001-of-00002.gguf", part(0)
                                   .tensorEntry("a.weight", {64}, kNvfp4, 0)
                                   .append(makeBlock())
                                   .bytes());
  const std::string second =
      folder.write("m-00002-of-00002.gguf",
                   part(1).tensor("a.scale", {2}, DataType::F32).bytes());
  auto gguf = Gguf::open(first);
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  const Gguf &file = **gguf;
  EXPECT_EQ(Nvfp4Weights::create(gguf.take(), file).message(),
            second + ": tensor 'a.scale' has shape [2], but [1] is expected");
}

TEST(Nvfp4Weights, EmptyTensorsHaveNoFactors) {
  const std::string bytes = makeFile({64, 0, 1'000'000'000'000}, factors({1}));
  const Opened opened = open(bytes);
  ASSERT_TRUE(opened.weights) << opened.error;
  EXPECT_TRUE(valuesOf(*opened.weights).empty());
}

TEST(Nvfp4Weights, IsNotNeededForOthers) {
  const std::string bytes = GgufBuilder().tensor("b", {4}).bytes();
  auto gguf = Gguf::parse(std::as_bytes(std::span(bytes)), "test");
  ASSERT_TRUE(gguf.ok()) << gguf.message();
  EXPECT_FALSE(Nvfp4Weights::isNeeded(**gguf));
}

} // namespace
