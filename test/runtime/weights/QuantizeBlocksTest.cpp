//===- QuantizeBlocksTest.cpp - Rounding to block-quantized storage -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BlockFormat.h"
#include "runtime/core/BlockRounding.h"
#include "runtime/io/Npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace kf;

namespace {

/// Where to find NumPy files that the gguf package made.
HostTensor readData(const std::string &name) {
  Result<HostTensor> tensor =
      readNpy(KF_SOURCE_DIR "/test/runtime/data/blocks/" + name + ".npy");
  EXPECT_TRUE(tensor.ok()) << tensor.message();
  return tensor.ok() ? tensor.take() : HostTensor();
}

std::vector<uint8_t> quantized(DataType type, const std::vector<float> &x) {
  const BlockFormat &format = *findBlockFormat(type);
  const int64_t blocks = int64_t(x.size()) / format.elements;
  std::vector<uint8_t> bytes(size_t(blocks * format.bytes), 0xaa);
  quantizeBlocks(type, x.data(), blocks, bytes.data());
  return bytes;
}

std::vector<float> dequantized(DataType type,
                               const std::vector<uint8_t> &bytes) {
  const BlockFormat &format = *findBlockFormat(type);
  const int64_t blocks = int64_t(bytes.size()) / format.bytes;
  std::vector<float> x(size_t(blocks * format.elements));
  dequantizeBlocks(type, bytes.data(), blocks, x.data());
  return x;
}

/// Root mean square error of a round trip, relative to that of the values.
double relativeError(DataType type, const std::vector<float> &x) {
  const std::vector<float> back = dequantized(type, quantized(type, x));
  double error = 0, all = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (double(back[i]) - x[i]) * (double(back[i]) - x[i]);
    all += double(x[i]) * x[i];
  }
  return std::sqrt(error / all);
}

std::vector<float> normalValues(size_t count, float size = 1) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> x(count);
  for (float &value : x)
    value = normal(generator);
  return x;
}

TEST(QuantizeBlocks, DequantizesAsTheGgufPackage) {
  for (const BlockFormat &format : kBlockFormats) {
    const std::string name(nameOf(format.type));
    const HostTensor blocks = readData(name + ".blocks");
    const HostTensor values = readData(name + ".values");
    ASSERT_EQ(blocks.shape.back(), format.bytes) << name;
    const int64_t count = blocks.shape[0] * format.elements;
    ASSERT_GE(count, 512) << name;
    ASSERT_EQ(values.elementCount(), count) << name;
    std::vector<float> got(count);
    dequantizeBlocks(format.type, blocks.bytes.data(), blocks.shape[0],
                     got.data());
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ(got[i], values.data<float>()[i]) << name << " element " << i;
  }
}

TEST(QuantizeBlocks, RoundsAsTheGgufPackage) {
  const HostTensor values = readData("rounding.values");
  const std::vector<float> x(values.data<float>(),
                             values.data<float>() + values.elementCount());
  for (DataType type : {DataType::Q8_0, DataType::Q4_0, DataType::Q4_1,
                        DataType::Q5_0, DataType::Q5_1}) {
    const std::string name(nameOf(type));
    const HostTensor expected = readData(name + ".rounded");
    const std::vector<uint8_t> got = quantized(type, x);
    ASSERT_EQ(got.size(), expected.bytes.size()) << name;
    const size_t bytes = size_t(bytesPerBlock(type));
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], uint8_t(expected.bytes[i]))
          << name << " block " << i / bytes << " byte " << i % bytes;
  }
}

TEST(QuantizeBlocks, DropsCodesThatTheirScaleHides) {
  // The scale is 0 in half precision either way.
  std::vector<float> x(32, 0x1p-119f);
  x[3] = -0x1p-119f;
  EXPECT_EQ(quantized(DataType::Q8_0, x), std::vector<uint8_t>(34, 0));
  x[7] = kLeastOfBlock;
  const std::vector<uint8_t> bytes = quantized(DataType::Q8_0, x);
  EXPECT_EQ(bytes[0] | bytes[1], 0);
  EXPECT_EQ(bytes[2 + 7], kLargestCode);
  EXPECT_EQ(bytes[2 + 3], uint8_t(-64));
}

TEST(QuantizeBlocks, ErrsAsLittleAsEachFormatCan) {
  // Relative errors of normal values; a little above what the searches reach.
  const std::pair<DataType, double> limits[] = {
      {DataType::Q8_0, 0.0055},   {DataType::Q4_0, 0.088},
      {DataType::Q4_1, 0.080},    {DataType::Q5_0, 0.044},
      {DataType::Q5_1, 0.039},    {DataType::Q2_K, 0.275},
      {DataType::Q3_K, 0.156},    {DataType::Q4_K, 0.072},
      {DataType::Q5_K, 0.0355},   {DataType::Q6_K, 0.0179},
      {DataType::IQ4_NL, 0.0785}, {DataType::MXFP4, 0.115},
      {DataType::IQ4_XS, 0.0785}};
  const std::vector<float> x = normalValues(64 * 256, 0.02f);
  for (auto [type, limit] : limits)
    EXPECT_LT(relativeError(type, x), limit) << nameOf(type);
}

TEST(QuantizeBlocks, KeepsItsOwnValues) {
  // What a block can say survives being rounded again.
  for (const BlockFormat &format : kBlockFormats) {
    const std::vector<float> once =
        dequantized(format.type, quantized(format.type, normalValues(8 * 256)));
    EXPECT_LT(relativeError(format.type, once),
              format.type == DataType::Q2_K ? 0.06 : 0.02)
        << nameOf(format.type);
  }
}

TEST(QuantizeBlocks, ScalesWithItsValues) {
  // A power of two moves into d as long as that has all its bits.
  for (const BlockFormat &format : kBlockFormats) {
    std::vector<float> x = normalValues(4 * 256);
    const std::vector<float> back =
        dequantized(format.type, quantized(format.type, x));
    for (float &value : x)
      value *= 8;
    const std::vector<float> scaled =
        dequantized(format.type, quantized(format.type, x));
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(scaled[i], 8 * back[i]) << nameOf(format.type) << " " << i;
  }
}

TEST(QuantizeBlocks, SurvivesOddValues) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  for (const BlockFormat &format : kBlockFormats) {
    for (float odd : {nan, inf, -inf, 3.4e38f, -3.4e38f, 1e-40f, 65504.0f,
                      1e30f, -1e-30f, -0.0f}) {
      quantized(format.type, std::vector<float>(256, odd));
      for (size_t at : {0u, 100u, 255u}) {
        std::vector<float> x = normalValues(512);
        x[at] = odd;
        const std::vector<float> back =
            dequantized(format.type, quantized(format.type, x));
        // Other blocks do not notice.
        for (size_t i = 256; i < 512; ++i)
          ASSERT_TRUE(std::isfinite(back[i])) << nameOf(format.type);
      }
    }
    const std::vector<float> zeros(256);
    EXPECT_EQ(dequantized(format.type, quantized(format.type, zeros)), zeros);
    // Constant blocks, of either sign, and blocks with one value.
    for (float value : {2.0f, -2.0f})
      EXPECT_LT(relativeError(format.type, std::vector<float>(256, value)),
                0.05)
          << nameOf(format.type) << " " << value;
    std::vector<float> single(256);
    single[77] = -3;
    EXPECT_LT(relativeError(format.type, single), 0.05) << nameOf(format.type);
  }
}

TEST(QuantizeBlocks, WritesAtAnyAlignment) {
  const std::vector<float> x = normalValues(256);
  for (const BlockFormat &format : kBlockFormats) {
    const std::vector<uint8_t> expected = quantized(format.type, x);
    std::vector<uint8_t> bytes(expected.size() + 1);
    quantizeBlocks(format.type, x.data(), 256 / format.elements, &bytes[1]);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &bytes[1]));
  }
}

} // namespace
