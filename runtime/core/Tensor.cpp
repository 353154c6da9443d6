//===- Tensor.cpp - Host tensors and element types ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Tensor.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Quote.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <new>

namespace kf {
namespace {

/// No host has a tensor of a TiB; sanitizers abort on larger requests instead
/// of refusing them.
constexpr size_t kMaxTensorBytes = (size_t(1) << 40) - (size_t(1) << 30);

struct TypeInfo {
  DataType type;
  std::string_view name;
  size_t size; ///< 0 for block types
};

constexpr std::array<TypeInfo, 24> kTypes = {
    {{DataType::F32, "f32", 4},         {DataType::F16, "f16", 2},
     {DataType::BF16, "bf16", 2},       {DataType::I1, "i1", 1},
     {DataType::I8, "i8", 1},           {DataType::U8, "ui8", 1},
     {DataType::I16, "i16", 2},         {DataType::I32, "i32", 4},
     {DataType::I64, "i64", 8},         {DataType::F64, "f64", 8},
     {DataType::F8E4M3, "f8E4M3FN", 1}, {DataType::Q8_0, "q8_0", 0},
     {DataType::Q4_0, "q4_0", 0},       {DataType::Q4_1, "q4_1", 0},
     {DataType::Q5_0, "q5_0", 0},       {DataType::Q5_1, "q5_1", 0},
     {DataType::Q2_K, "q2_k", 0},       {DataType::Q3_K, "q3_k", 0},
     {DataType::Q4_K, "q4_k", 0},       {DataType::Q5_K, "q5_k", 0},
     {DataType::Q6_K, "q6_k", 0},       {DataType::IQ4_NL, "iq4_nl", 0},
     {DataType::MXFP4, "mxfp4", 0},     {DataType::IQ4_XS, "iq4_xs", 0}}};

const TypeInfo &infoOf(DataType type) {
  size_t index = static_cast<size_t>(type);
  assert(index < kTypes.size() && kTypes[index].type == type &&
         "kTypes follows the enumeration");
  return kTypes[index];
}

// The four conversions below have no branches, so that loops over them
// vectorize: every case is computed and one is selected.

inline float widenHalf(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  uint32_t exponent = bits & 0x7c00u;
  uint32_t mantissa = bits & 0x03ffu;
  uint32_t shifted = uint32_t(bits & 0x7fffu) << 13;
  uint32_t normal = shifted + (112u << 23);   // rebias 15 to 127
  uint32_t special = shifted | (0xffu << 23); // infinity and NaN
  uint32_t subnormal = std::bit_cast<uint32_t>(
      static_cast<float>(static_cast<int32_t>(mantissa)) * 0x1p-24f);
  uint32_t magnitude = exponent == 0         ? subnormal
                       : exponent == 0x7c00u ? special
                                             : normal;
  return std::bit_cast<float>(sign | magnitude);
}

inline uint16_t narrowToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  int32_t magnitude = static_cast<int32_t>(bits & 0x7fffffffu);
  uint32_t unsignedMagnitude = static_cast<uint32_t>(magnitude);
  // Adding 0.5 leaves the magnitude in units of 2^-24 in the low bits, rounded
  // to nearest even by the addition.
  uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      std::bit_cast<uint32_t>(0.5f);
  uint32_t odd = (unsignedMagnitude >> 13) & 1u;
  uint32_t normal = (unsignedMagnitude - (112u << 23) + 0xfffu + odd) >> 13;
  uint32_t nan = 0x7e00u | ((unsignedMagnitude >> 13) & 0x3ffu);
  uint32_t result = magnitude < 0x38800000    ? subnormal // below 2^-14
                    : magnitude < 0x477ff000  ? normal    // below 65520
                    : magnitude <= 0x7f800000 ? 0x7c00u   // infinity
                                              : nan;
  return static_cast<uint16_t>(sign | result);
}

inline float widenBfloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

inline uint16_t narrowToBfloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t nan = (bits >> 16) | 0x40u;
  bool isNan = static_cast<int32_t>(bits & 0x7fffffffu) > 0x7f800000;
  return static_cast<uint16_t>(isNan ? nan : rounded);
}

/// The 256 values of F8E4M3, from its definition: 1 sign, 4 exponent (bias 7)
/// and 3 mantissa bits, subnormals, no infinities, NaN where all bits are ones.
constexpr std::array<float, 256> makeE4M3Table() {
  std::array<float, 256> table = {};
  for (int bits = 0; bits < 256; ++bits) {
    int exponent = bits >> 3 & 15, mantissa = bits & 7;
    float value = exponent == 0 ? mantissa / 8.0f : 1 + mantissa / 8.0f;
    for (int i = exponent == 0 ? 1 : exponent; i < 7; ++i)
      value /= 2;
    for (int i = 7; i < exponent; ++i)
      value *= 2;
    if ((bits & 127) == 127)
      value = std::numeric_limits<float>::quiet_NaN();
    table[bits] = bits & 128 ? -value : value;
  }
  return table;
}
constexpr std::array<float, 256> kE4M3 = makeE4M3Table();

/// dst[i] = convert(src[i]); neither side needs to be aligned, since tensors in
/// a mapped file start wherever the file says.
template <typename Src, typename Dst, typename Convert>
void convertEach(const void *src, int64_t count, void *dst, Convert convert) {
  const char *from = static_cast<const char *>(src);
  char *to = static_cast<char *>(dst);
  for (int64_t i = 0; i < count; ++i) {
    Src in;
    std::memcpy(&in, from + i * sizeof(Src), sizeof(Src));
    Dst out = convert(in);
    std::memcpy(to + i * sizeof(Dst), &out, sizeof(Dst));
  }
}

template <typename Src>
void castEach(const void *src, int64_t count, float *dst) {
  convertEach<Src, float>(src, count, dst,
                          [](Src in) { return static_cast<float>(in); });
}

} // namespace

bool isFloat(DataType type) {
  return type == DataType::F32 || type == DataType::F16 ||
         type == DataType::BF16;
}

bool isBlock(DataType type) { return infoOf(type).size == 0; }

int64_t elementsPerBlock(DataType type) {
  const BlockFormat *format = findBlockFormat(type);
  return format ? format->elements : 1;
}

int64_t bytesPerBlock(DataType type) {
  const BlockFormat *format = findBlockFormat(type);
  return format ? format->bytes : static_cast<int64_t>(infoOf(type).size);
}

size_t sizeOf(DataType type) {
  assert(!isBlock(type) && "elements of blocks have no size of their own");
  return infoOf(type).size;
}

std::string_view nameOf(DataType type) { return infoOf(type).name; }

Result<DataType> parseDataType(std::string_view name) {
  std::string known;
  for (const TypeInfo &info : kTypes) {
    if (info.name == name)
      return info.type;
    known += known.empty() ? "" : ", ";
    known += info.name;
  }
  return Status::error("unknown element type " + inQuotes(name) +
                       "; known are " + known);
}

Result<int64_t> checkedElementCount(std::span<const int64_t> shape,
                                    size_t elementSize) {
  // Zero dimensions are left out of the products, so that the answer does not
  // depend on their place.
  int64_t count = 1, bytes = 0;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return Status::error("negative dimension " + std::to_string(dim) +
                           " in a shape");
    empty |= dim == 0;
    if (dim != 0 && __builtin_mul_overflow(count, dim, &count))
      return Status::error("a shape has more elements than 63 bits can count");
  }
  if (__builtin_mul_overflow(count, elementSize, &bytes))
    return Status::error("a shape takes more bytes than 63 bits can count");
  return empty ? 0 : count;
}

Result<int64_t> checkedByteCount(DataType type,
                                 std::span<const int64_t> shape) {
  int64_t elements = elementsPerBlock(type), bytes = bytesPerBlock(type);
  if (elements > 1 && (shape.empty() || shape.back() % elements != 0))
    return Status::error("rows of " + std::string(nameOf(type)) +
                         " come in blocks of " + std::to_string(elements) +
                         " elements, but have " +
                         std::to_string(shape.empty() ? 1 : shape.back()));
  std::vector<int64_t> blocks(shape.begin(), shape.end());
  if (!blocks.empty())
    blocks.back() /= elements;
  KF_ASSIGN_OR_RETURN(int64_t count,
                      checkedElementCount(blocks, static_cast<size_t>(bytes)));
  return count * bytes;
}

Result<HostTensor> HostTensor::zeros(DataType type,
                                     std::vector<int64_t> shape) {
  KF_ASSIGN_OR_RETURN(int64_t size, checkedByteCount(type, shape));
  HostTensor tensor;
  size_t bytes = static_cast<size_t>(size);
  Status outOfMemory = Status::error("no memory for a tensor of " +
                                         std::to_string(bytes) + " bytes",
                                     StatusCode::OutOfMemory);
  if (bytes > kMaxTensorBytes)
    return outOfMemory;
  try {
    tensor.bytes.resize(bytes);
  } catch (const std::bad_alloc &) {
    return outOfMemory;
  }
  tensor.type = type;
  tensor.shape = std::move(shape);
  return tensor;
}

int64_t HostTensor::elementCount() const {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

float halfToFloat(uint16_t bits) { return widenHalf(bits); }
uint16_t floatToHalf(float value) { return narrowToHalf(value); }
float bfloatToFloat(uint16_t bits) { return widenBfloat(bits); }
uint16_t floatToBfloat(float value) { return narrowToBfloat(value); }

Status convertToFloat(DataType type, const void *src, int64_t count,
                      float *dst) {
  switch (type) {
  case DataType::F32:
    if (count > 0)
      std::memmove(dst, src, static_cast<size_t>(count) * sizeof(float));
    return Status();
  case DataType::F16:
    convertEach<uint16_t, float>(src, count, dst, widenHalf);
    return Status();
  case DataType::BF16:
    convertEach<uint16_t, float>(src, count, dst, widenBfloat);
    return Status();
  case DataType::I1:
    convertEach<uint8_t, float>(src, count, dst,
                                [](uint8_t in) { return in ? 1.0f : 0.0f; });
    return Status();
  case DataType::I8:
    castEach<int8_t>(src, count, dst);
    return Status();
  case DataType::U8:
    castEach<uint8_t>(src, count, dst);
    return Status();
  case DataType::I16:
    castEach<int16_t>(src, count, dst);
    return Status();
  case DataType::I32:
    castEach<int32_t>(src, count, dst);
    return Status();
  case DataType::I64:
    castEach<int64_t>(src, count, dst);
    return Status();
  case DataType::F64:
    castEach<double>(src, count, dst);
    return Status();
  case DataType::F8E4M3:
    convertEach<uint8_t, float>(src, count, dst,
                                [](uint8_t in) { return kE4M3[in]; });
    return Status();
  default:
    break;
  }
  int64_t elements = elementsPerBlock(type);
  if (count % elements != 0)
    return Status::error(std::to_string(count) + " elements of " +
                         std::string(nameOf(type)) + " split a block of " +
                         std::to_string(elements));
  dequantizeBlocks(type, src, count / elements, dst);
  return Status();
}

Status convertFromFloat(DataType type, const float *src, int64_t count,
                        void *dst) {
  switch (type) {
  case DataType::F32:
    if (count > 0)
      std::memmove(dst, src, static_cast<size_t>(count) * sizeof(float));
    return Status();
  case DataType::F16:
    convertEach<float, uint16_t>(src, count, dst, narrowToHalf);
    return Status();
  case DataType::BF16:
    convertEach<float, uint16_t>(src, count, dst, narrowToBfloat);
    return Status();
  default:
    return Status::error("cannot round f32 to " + std::string(nameOf(type)) +
                         "; f32, f16 and bf16 are possible");
  }
}

} // namespace kf
