//===- BlockFormatTest.cpp - Block-quantized storage ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BlockFormat.h"

#include "ReferenceTestUtils.h"
#include "runtime/devices/Reference/ReferenceOps.h"

#include <algorithm>

namespace kf::reference {
namespace {

using Bytes = std::vector<uint8_t>;

void putHalf(Bytes &bytes, size_t at, float value) {
  uint16_t bits = floatToHalf(value);
  bytes[at] = static_cast<uint8_t>(bits);
  bytes[at + 1] = static_cast<uint8_t>(bits >> 8);
}

std::vector<float> dequantized(DataType format, const Bytes &bytes) {
  int64_t blocks = static_cast<int64_t>(bytes.size()) / bytesPerBlock(format);
  std::vector<float> values(blocks * elementsPerBlock(format));
  dequantizeBlocks(format, bytes.data(), blocks, values.data());
  return values;
}

Bytes quantized(DataType format, const std::vector<float> &values) {
  int64_t blocks =
      static_cast<int64_t>(values.size()) / elementsPerBlock(format);
  Bytes bytes(blocks * bytesPerBlock(format));
  quantizeBlocks(format, values.data(), blocks, bytes.data());
  return bytes;
}

/// Root mean square error of a round trip, relative to the values.
double roundTripError(DataType format, const std::vector<float> &values) {
  std::vector<float> back = dequantized(format, quantized(format, values));
  double error = 0, total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double(back[i]) - values[i], 2);
    total += std::pow(double(values[i]), 2);
  }
  return std::sqrt(error / total);
}

TEST(Q8_0, Dequantizes) {
  Bytes bytes(34);
  putHalf(bytes, 0, 0.25f);
  bytes[2] = 0x80; // -128
  bytes[3] = 0xff; // -1
  bytes[33] = 100;
  std::vector<float> expected(32);
  expected[0] = -32, expected[1] = -0.25f, expected[31] = 25;
  EXPECT_EQ(dequantized(DataType::Q8_0, bytes), expected);
}

TEST(Q8_0, QuantizesAsGgml) {
  std::vector<float> values(64);
  values[0] = -254, values[1] = 3, values[2] = -5, values[3] = 2.9f;
  // The second block is zeros.
  Bytes bytes = quantized(DataType::Q8_0, values);
  Bytes expected(68);
  putHalf(expected, 0, 2);
  expected[2] = 0x81; // -127
  expected[3] = 2;    // 1.5, away from zero
  expected[4] = 0xfd; // -2.5
  expected[5] = 1;
  EXPECT_EQ(bytes, expected);
}

TEST(Q4_0, Dequantizes) {
  Bytes bytes(18);
  putHalf(bytes, 0, -0.5f);
  for (int i = 0; i < 16; ++i)
    bytes[2 + i] = 0x88; // zeros
  bytes[2] = 0xf0;       // elements 0 and 16: quants 0 and 15
  bytes[17] = 0x9a;      // elements 15 and 31: quants 10 and 9
  std::vector<float> expected(32);
  expected[0] = 4, expected[16] = -3.5f, expected[15] = -1,
  expected[31] = -0.5f;
  EXPECT_EQ(dequantized(DataType::Q4_0, bytes), expected);
}

TEST(Q4_0, QuantizesAsGgml) {
  std::vector<float> values(32);
  values[0] = -16; // the largest: d = 2, quant 0
  values[1] = 16;  // would be quant 16: clamped to 15
  values[2] = 1, values[3] = -1, values[16] = 3;
  Bytes bytes = quantized(DataType::Q4_0, values);
  Bytes expected(18, 0x88);
  putHalf(expected, 0, 2);
  expected[2] = 0xa0; // quant 10 for 1.5 + 8.5
  expected[3] = 0x8f;
  expected[4] = 0x89; // 0.5 goes up to 1
  expected[5] = 0x88; // -0.5 goes up to 0
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(dequantized(DataType::Q4_0,
                        quantized(DataType::Q4_0, std::vector<float>(32))),
            std::vector<float>(32));
}

TEST(Q4_K, Dequantizes) {
  // Scales 1, 2, ..., 8 times 8 plus 3 for the last; mins 63 - 9 * i.
  Bytes bytes(144);
  putHalf(bytes, 0, 0.5f);
  putHalf(bytes, 2, 0.25f);
  int scales[8], mins[8];
  // The 12 bytes as one number of 96 bits, from the definition: byte j has, for
  // j < 4, scale j in its low 6 bits and bits 4-5 of scale j + 4 above, for
  // 4 <= j < 8 the same of the mins, and byte 8 + j bits 0-3 of scale and min
  // j + 4.
  for (int i = 0; i < 8; ++i) {
    scales[i] = i * 8 + 3;
    mins[i] = 63 - 9 * i;
    for (int bit = 0; bit < 6; ++bit) {
      int scaleByte = i < 4 ? i : bit < 4 ? 4 + i : i - 4;
      int scaleBit = i < 4 || bit < 4 ? bit : bit + 2;
      int minByte = i < 4 ? 4 + i : bit < 4 ? 4 + i : i;
      int minBit = i < 4 ? bit : bit < 4 ? bit + 4 : bit + 2;
      bytes[4 + scaleByte] |=
          static_cast<uint8_t>((scales[i] >> bit & 1) << scaleBit);
      bytes[4 + minByte] |=
          static_cast<uint8_t>((mins[i] >> bit & 1) << minBit);
    }
  }
  std::vector<float> expected(256);
  for (int e = 0; e < 256; ++e) {
    int sub = e / 32, quant = (e * 7 + sub) % 16;
    bytes[16 + e / 64 * 32 + e % 32] |=
        static_cast<uint8_t>(quant << (e / 32 % 2 * 4));
    expected[e] = 0.5f * static_cast<float>(scales[sub] * quant) -
                  0.25f * static_cast<float>(mins[sub]);
  }
  EXPECT_EQ(dequantized(DataType::Q4_K, bytes), expected);
}

TEST(Q6_K, Dequantizes) {
  Bytes bytes(210);
  putHalf(bytes, 208, 0.125f);
  std::vector<float> expected(256);
  for (int e = 0; e < 256; ++e) {
    int scale = e / 16 * 17 - 128, quant = (e * 11 + 5) % 64;
    bytes[192 + e / 16] = static_cast<uint8_t>(scale);
    // ggml's order: 128 elements from 64 bytes of low and 32 of high bits;
    // elements 0-31, 32-63, 64-95, 96-127 use the low half of bytes 0-31 and
    // 32-63, then the high half of both.
    int within = e % 128;
    int lowByte = e / 128 * 64 + within % 64;
    bytes[lowByte] |= static_cast<uint8_t>((quant & 15) << (within / 64 * 4));
    bytes[128 + e / 128 * 32 + within % 32] |=
        static_cast<uint8_t>((quant >> 4) << (within / 32 * 2));
    expected[e] = 0.125f * static_cast<float>(scale * (quant - 32));
  }
  EXPECT_EQ(dequantized(DataType::Q6_K, bytes), expected);
}

/// Bit for bit: whole numbers from -12 to 12 times half of a power of two.
TEST(Mxfp4, Dequantizes) {
  const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int byte = 0; byte < 256; ++byte) {
    Bytes bytes(17);
    bytes[0] = static_cast<uint8_t>(byte);
    for (int i = 0; i < 16; ++i)
      bytes[1 + i] = static_cast<uint8_t>(i | (15 - i) << 4);
    const std::vector<float> values = dequantized(DataType::MXFP4, bytes);
    for (int i = 0; i < 16; ++i)
      for (const auto &[element, code] :
           {std::pair(i, i), std::pair(16 + i, 15 - i)}) {
        const float number = code < 8 ? numbers[code] : -numbers[code - 8];
        if (byte == 255)
          EXPECT_TRUE(std::isnan(values[element]));
        else
          EXPECT_EQ(values[element], std::ldexp(number, byte - 127)) << byte;
      }
  }
}

TEST(Mxfp4, StoresScales) {
  const BlockFormat &format = *findBlockFormat(DataType::MXFP4);
  Bytes block(17);
  for (int byte = 0; byte < 255; ++byte) {
    block[0] = static_cast<uint8_t>(byte);
    const float d = loadScale(format, block.data());
    EXPECT_EQ(d, std::ldexp(1.0f, byte - 128));
    for (float near : {1.0f, -1.0f, 1.25f, 0.8f}) {
      block[0] = 77;
      storeScale(format, d * near, block.data());
      EXPECT_EQ(block[0], byte) << near;
    }
  }
  for (float odd : {kNan, kInf}) {
    storeScale(format, odd, block.data());
    EXPECT_EQ(block[0], 255);
    EXPECT_FALSE(hasFiniteScales(format, block.data()));
  }
  storeScale(format, 3e38f, block.data());
  EXPECT_EQ(block[0], 254);
}

TEST(Mxfp4, Quantizes) {
  // The largest element is 6 times 2^1; 3 times 2^2 would fit the others less.
  std::vector<float> values(32);
  values[0] = 12, values[1] = -1, values[2] = 8, values[3] = 5, values[16] = 3;
  Bytes bytes = quantized(DataType::MXFP4, values);
  Bytes expected(17);
  expected[0] = 128;
  expected[1] = 0x37; // 6 and 1.5
  expected[2] = 0x09; // -0.5
  expected[3] = 0x06; // 4
  expected[4] = 0x04; // 2.5 goes to 2, whose mantissa is even
  EXPECT_EQ(bytes, expected);
  // Where 7 would be cut off to 6, a power of two more is nearer.
  std::fill(values.begin(), values.end(), 7.9f);
  EXPECT_EQ(quantized(DataType::MXFP4, values)[0], 128);
  std::fill(values.begin(), values.end(), 6.5f);
  EXPECT_EQ(quantized(DataType::MXFP4, values)[0], 127);
}

TEST(Quantize, ErrsLittle) {
  std::vector<float> values = randomFloats(4 * 256, 6);
  // Uniform values in [-1, 1] have root mean square 0.58; half a step of 1/127,
  // 1/8, about 2/15 and 1/32 spreads evenly over the error.
  EXPECT_LT(roundTripError(DataType::Q8_0, values), 0.004);
  EXPECT_LT(roundTripError(DataType::Q4_0, values), 0.075);
  EXPECT_LT(roundTripError(DataType::Q4_K, values), 0.065);
  EXPECT_LT(roundTripError(DataType::Q6_K, values), 0.016);
  // Rows far from zero have a min of their own in q4_k.
  for (float &value : values)
    value -= 5;
  EXPECT_LT(roundTripError(DataType::Q4_K, values), 0.012);
}

TEST(Quantize, KeepsWhatItCanRepresent) {
  std::vector<float> values(256);
  for (int i = 0; i < 256; ++i)
    values[i] = static_cast<float>(i % 16 * (i / 32 + 1));
  // Steps 1 to 8 over d = 8 / 63: scales are rounded to 1/63 of the largest.
  EXPECT_LT(roundTripError(DataType::Q4_K, values), 0.02);
  for (int i = 0; i < 256; ++i)
    values[i] = static_cast<float>(i * 37 % 64 - 32);
  values[16] = values[0] = -32;
  for (int sub = 0; sub < 16; ++sub)
    values[sub * 16] = -32;
  EXPECT_LT(roundTripError(DataType::Q6_K, values), 1e-6);
}

TEST(Quantize, SurvivesExtremes) {
  for (const BlockFormat &format : kBlockFormats) {
    std::string_view name = nameOf(format.type);
    std::vector<float> zeros(256);
    EXPECT_EQ(dequantized(format.type, quantized(format.type, zeros)), zeros)
        << name;
    // One value among zeros; negative ones alone; tiny ones.
    std::vector<float> single(256);
    single[77] = 3;
    EXPECT_LT(roundTripError(format.type, single), 0.15) << name;
    EXPECT_LT(roundTripError(format.type, std::vector<float>(256, -2.0f)), 0.02)
        << name;
    for (float odd : {kNan, kInf, -kInf, 1e-40f, 3e38f, -3e38f}) {
      std::vector<float> values(256, odd); // no crash, no undefined behaviour
      EXPECT_EQ(quantized(format.type, values).size(),
                static_cast<size_t>(256 / format.elements * format.bytes));
    }
  }
}

TEST(Quantize, WorksOnTensors) {
  Tensor x = makeTensor({2, 2, 32}, randomFloats(128, 7));
  Result<Tensor> blocks = quantize(x.view(), DataType::Q8_0);
  expectShape(blocks, {2, 2, 32});
  EXPECT_EQ(blocks->bytes.size(), 4u * 34);
  Result<Tensor> back = dequantize(blocks->view());
  expectShape(back, {2, 2, 32});
  expectFloats(back, randomFloats(128, 7), 0.005f);
}

TEST(Quantize, RejectsWrongOperands) {
  Tensor x = makeTensor({1, 32}, std::vector<float>(32));
  Tensor half = makeTensor({1, 32}, std::vector<float>(32), DataType::F16);
  expectError(quantize(half.view(), DataType::Q8_0), "kf.quantize C1");
  expectError(quantize(x.view(), DataType::Q4_K), "kf.quantize C2");
  expectError(dequantize(x.view()), "kf.dequantize C1");
}

} // namespace
} // namespace kf::reference
