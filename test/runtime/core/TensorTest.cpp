//===- TensorTest.cpp - Element types and their conversions ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Tensor.h"

#include "runtime/core/Float8.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace kf;

namespace {

/// f16 to double by its definition.
double halfByDefinition(uint16_t bits) {
  int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                     : exponent < 31
                         ? std::ldexp(1024 + mantissa, exponent - 25)
                         : (mantissa ? std::nan("") : HUGE_VAL);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Tensor, EveryHalfRoundTrips) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    float value = halfToFloat(bits);
    if (std::isnan(halfByDefinition(bits))) {
      EXPECT_TRUE(std::isnan(value)) << i;
      EXPECT_EQ(floatToHalf(value), bits | 0x200) << i; // made quiet
      continue;
    }
    EXPECT_EQ(value, halfByDefinition(bits)) << i;
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0) << i;
    EXPECT_EQ(floatToHalf(value), bits) << i;
  }
}

TEST(Tensor, HalfRoundsToNearestEven) {
  // Between each two neighbours: the middle goes to the even one, and a hair
  // off the middle to the nearer one.
  for (uint16_t low = 0; low < 0x7c00; ++low) {
    uint16_t high = low + 1;
    double from = halfByDefinition(low);
    double to = high == 0x7c00 ? 65536.0 : halfByDefinition(high);
    float middle = static_cast<float>((from + to) / 2);
    EXPECT_EQ(floatToHalf(middle), low % 2 ? high : low) << low;
    EXPECT_EQ(floatToHalf(std::nextafterf(middle, 0.0f)), low) << low;
    EXPECT_EQ(floatToHalf(std::nextafterf(middle, HUGE_VALF)), high) << low;
    EXPECT_EQ(floatToHalf(-middle), (low % 2 ? high : low) | 0x8000) << low;
  }
  EXPECT_EQ(floatToHalf(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(floatToHalf(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(floatToHalf(-HUGE_VALF), 0xfc00);
}

TEST(Tensor, EveryBfloatRoundTrips) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    uint16_t bits = static_cast<uint16_t>(i);
    float value = bfloatToFloat(bits);
    EXPECT_EQ(std::bit_cast<uint32_t>(value), i << 16);
    bool isNan = (bits & 0x7fff) > 0x7f80;
    EXPECT_EQ(floatToBfloat(value), isNan ? bits | 0x40 : bits) << i;
  }
}

TEST(Tensor, BfloatRoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7f80; ++low) {
    uint32_t middle = (low << 16) | 0x8000;
    EXPECT_EQ(floatToBfloat(std::bit_cast<float>(middle)),
              low % 2 ? low + 1 : low);
    EXPECT_EQ(floatToBfloat(std::bit_cast<float>(middle - 1)), low);
    EXPECT_EQ(floatToBfloat(std::bit_cast<float>(middle + 1)), low + 1);
  }
  // A NaN whose payload is only in the low bits must not become infinity.
  EXPECT_EQ(floatToBfloat(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
}

TEST(Tensor, BulkConversionsEqualSingleOnesAtAnyAlignment) {
  for (DataType type : {DataType::F16, DataType::BF16}) {
    std::vector<char> raw(2 * 65536 + 1);
    for (uint32_t i = 0; i < 65536; ++i) {
      uint16_t bits = static_cast<uint16_t>(i);
      std::memcpy(raw.data() + 1 + 2 * i, &bits, 2);
    }
    std::vector<float> wide(65536);
    ASSERT_TRUE(convertToFloat(type, raw.data() + 1, 65536, wide.data()).ok());
    std::vector<uint16_t> narrow(65536);
    ASSERT_TRUE(convertFromFloat(type, wide.data(), 65536, narrow.data()).ok());
    for (uint32_t i = 0; i < 65536; ++i) {
      float single = type == DataType::F16 ? halfToFloat(i) : bfloatToFloat(i);
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]),
                std::bit_cast<uint32_t>(single));
      ASSERT_EQ(narrow[i], type == DataType::F16 ? floatToHalf(single)
                                                 : floatToBfloat(single));
    }
  }
}

TEST(Tensor, IntegersWiden) {
  float out[2];
  int8_t i8[] = {-128, 127};
  ASSERT_TRUE(convertToFloat(DataType::I8, i8, 2, out).ok());
  EXPECT_EQ(out[0], -128.0f);
  uint8_t u8[] = {0, 255};
  ASSERT_TRUE(convertToFloat(DataType::U8, u8, 2, out).ok());
  EXPECT_EQ(out[1], 255.0f);
  int64_t i64[] = {-(int64_t(1) << 40), 3};
  ASSERT_TRUE(convertToFloat(DataType::I64, i64, 2, out).ok());
  EXPECT_EQ(out[0], -0x1p40f);
  EXPECT_EQ(out[1], 3.0f);
  Status status = convertFromFloat(DataType::I8, out, 2, i8);
  EXPECT_EQ(status.message(),
            "cannot round f32 to i8; f32, f16 and bf16 are possible");
}

TEST(Tensor, TypeNames) {
  for (DataType type :
       {DataType::F32, DataType::F16, DataType::BF16, DataType::I1,
        DataType::I8, DataType::U8, DataType::I16, DataType::I32, DataType::I64,
        DataType::F64, DataType::F8E4M3, DataType::Q8_0, DataType::Q4_K,
        DataType::IQ4_NL, DataType::MXFP4, DataType::IQ4_XS}) {
    Result<DataType> parsed = parseDataType(nameOf(type));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, type);
  }
  EXPECT_EQ(parseDataType("f8").message(),
            "unknown element type 'f8'; known are f32, f16, bf16, i1, i8, ui8, "
            "i16, i32, i64, f64, f8E4M3FN, q8_0, q4_0, q4_1, q5_0, q5_1, "
            "q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, mxfp4, iq4_xs");
}

TEST(Tensor, EightBitFloats) {
  // 1, the largest, the smallest, -0.5 and NaN, from OCP's table of E4M3.
  const uint8_t bits[] = {0x38, 0x7e, 0x01, 0xb0, 0x7f};
  float values[5];
  ASSERT_TRUE(convertToFloat(DataType::F8E4M3, bits, 5, values).ok());
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 448.0f);
  EXPECT_EQ(values[2], 0x1p-9f);
  EXPECT_EQ(values[3], -0.5f);
  EXPECT_TRUE(std::isnan(values[4]));
}

// Exponents of 4 bits with a bias of 7, 3 bits of mantissa, subnormals below
// exponent 1.
TEST(Tensor, EveryEightBitFloat) {
  for (int bits = 0; bits < 256; ++bits) {
    SCOPED_TRACE(bits);
    const auto code = static_cast<uint8_t>(bits);
    float value = 0;
    ASSERT_TRUE(convertToFloat(DataType::F8E4M3, &code, 1, &value).ok());
    if ((bits & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(floatToE4M3(value) & 0x7f, 0x7f);
      continue;
    }
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double magnitude = exponent == 0
                                 ? std::ldexp(mantissa, -9)
                                 : std::ldexp(8 + mantissa, exponent - 10);
    EXPECT_EQ(value, static_cast<float>(bits & 0x80 ? -magnitude : magnitude));
    EXPECT_EQ(floatToE4M3(value), code);
  }
}

TEST(Tensor, RoundsToEightBits) {
  auto valueOf = [](int bits) {
    const auto code = static_cast<uint8_t>(bits);
    float value = 0;
    EXPECT_TRUE(convertToFloat(DataType::F8E4M3, &code, 1, &value).ok());
    return value;
  };
  for (int code = 0; code < 0x7e; ++code) {
    SCOPED_TRACE(code);
    // f32 holds what is between two neighbours.
    const float middle = (valueOf(code) + valueOf(code + 1)) / 2;
    const float infinity = std::numeric_limits<float>::infinity();
    for (int sign : {0, 0x80}) {
      auto rounded = [&](float magnitude) {
        return floatToE4M3(sign ? -magnitude : magnitude);
      };
      EXPECT_EQ(rounded(std::nextafter(middle, 0.0f)), sign | code);
      EXPECT_EQ(rounded(middle), sign | (code + code % 2));
      EXPECT_EQ(rounded(std::nextafter(middle, infinity)), sign | (code + 1));
    }
  }
  for (float large :
       {448.0f, 464.0f, 1e30f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(floatToE4M3(large), 0x7e);
    EXPECT_EQ(floatToE4M3(-large), 0xfe);
  }
  EXPECT_EQ(floatToE4M3(1e-30f), 0);
  EXPECT_EQ(floatToE4M3(-0.0f), 0x80);
}

TEST(Tensor, ByteCountsOfBlocks) {
  EXPECT_EQ(*checkedByteCount(DataType::Q4_0, std::vector<int64_t>{3, 64}),
            3 * 2 * 18);
  EXPECT_EQ(*checkedByteCount(DataType::F16, std::vector<int64_t>{3, 64}),
            3 * 64 * 2);
  EXPECT_EQ(
      checkedByteCount(DataType::Q4_K, std::vector<int64_t>{3, 64}).message(),
      "rows of q4_k come in blocks of 256 elements, but have 64");
  std::vector<float> values(32);
  EXPECT_FALSE(convertToFloat(DataType::Q8_0, "", 31, values.data()).ok());
}

TEST(Tensor, ElementCounts) {
  EXPECT_EQ(*checkedElementCount(std::vector<int64_t>{}), 1);
  EXPECT_EQ(*checkedElementCount(std::vector<int64_t>{3, 4}, 8), 12);
  EXPECT_EQ(*checkedElementCount(std::vector<int64_t>{3, 0}, 8), 0);
  int64_t big = int64_t(1) << 40;
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{-1}, {big, big}, {0, big, big}, {big, big, 0}})
    EXPECT_FALSE(checkedElementCount(shape).ok());
  EXPECT_TRUE(checkedElementCount(std::vector<int64_t>{big, 1 << 22}).ok());
  EXPECT_FALSE(checkedElementCount(std::vector<int64_t>{big, 1 << 22}, 4).ok());
}

TEST(Tensor, Zeros) {
  Result<HostTensor> tensor = HostTensor::zeros(DataType::F32, {2, 3});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->elementCount(), 6);
  EXPECT_EQ(tensor->bytes.size(), 24u);
  EXPECT_EQ(tensor->data<float>()[5], 0.0f);
  EXPECT_FALSE(HostTensor::zeros(DataType::F32, {-2}).ok());
  EXPECT_FALSE(HostTensor::zeros(DataType::I8, {int64_t(1) << 62}).ok());
}

} // namespace
