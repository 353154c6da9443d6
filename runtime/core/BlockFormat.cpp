//===- BlockFormat.cpp - Values of block-quantized storage ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BlockFormat.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace kf {
namespace {

uint16_t halfAt(const void *block, int offset) {
  const uint8_t *bytes = static_cast<const uint8_t *>(block) + offset;
  return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

bool isFiniteHalf(uint16_t bits) { return (bits & 0x7c00) != 0x7c00; }

// Bits of f32.
constexpr uint32_t kNan = 0x7fc00000, kInfinity = 0x7f800000;
constexpr int kMantissaBits = 23;

float halvedE8M0(uint8_t byte) {
  if (byte == 255)
    return std::bit_cast<float>(kNan);
  // 2^-128 and 2^-127 are subnormal.
  return std::bit_cast<float>(byte < 2 ? (byte + 1u) << (kMantissaBits - 2)
                                       : (byte - 1u) << kMantissaBits);
}

uint8_t toHalvedE8M0(float d) {
  const uint32_t bits = std::bit_cast<uint32_t>(d) & 0x7fffffff;
  if (bits >= kInfinity)
    return 255;
  if (bits < 3u << (kMantissaBits - 2)) // below the middle of 2^-127 and 2^-126
    return bits > 3u << (kMantissaBits - 3) ? 1 : 0;
  const uint32_t half = 1u << (kMantissaBits - 1);
  return static_cast<uint8_t>(
      std::min(((bits + half) >> kMantissaBits) + 1, 254u));
}

/// One block of kBlockFormats[Index]; the description is a constant, so that
/// its arithmetic folds.
template <size_t Index> void dequantizeBlock(const uint8_t *block, float *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  float d = loadScale(format, block);
  float m = format.minOffset >= 0 ? halfToFloat(halfAt(block, format.minOffset))
                                  : 0.0f;
  for (int sub = 0; sub < format.subBlocks(); ++sub) {
    BlockFormat::SubScale integers = format.subScaleAt(block, sub);
    float scale = d * static_cast<float>(integers.scale);
    float min = m * static_cast<float>(integers.min);
    for (int i = sub * format.subBlock; i < (sub + 1) * format.subBlock; ++i) {
      int code = format.codeAt(block, i);
      int value = format.isSigned ? static_cast<int8_t>(code)
                  : format.table  ? format.table[code]
                                  : code - format.zero;
      float product = scale * static_cast<float>(value);
      dst[i] = format.minOffset < 0   ? product
               : format.minIsNegative ? product - min
                                      : product + min;
    }
  }
}

using BlockFn = void (*)(const uint8_t *, float *);
template <size_t... Indices>
constexpr std::array<BlockFn, sizeof...(Indices)>
makeTable(std::index_sequence<Indices...>) {
  return {dequantizeBlock<Indices>...};
}
constexpr auto kDequantize =
    makeTable(std::make_index_sequence<kBlockFormats.size()>());

} // namespace

float loadScale(const BlockFormat &format, const void *block) {
  if (format.scale == BlockScale::HalvedE8M0)
    return halvedE8M0(static_cast<const uint8_t *>(block)[format.scaleOffset]);
  return halfToFloat(halfAt(block, format.scaleOffset));
}

void storeScale(const BlockFormat &format, float d, void *block) {
  uint8_t *to = static_cast<uint8_t *>(block) + format.scaleOffset;
  if (format.scale == BlockScale::HalvedE8M0) {
    *to = toHalvedE8M0(d);
    return;
  }
  const uint16_t bits = floatToHalf(d);
  to[0] = static_cast<uint8_t>(bits & 0xff);
  to[1] = static_cast<uint8_t>(bits >> 8);
}

bool hasFiniteScales(const BlockFormat &format, const void *block) {
  // Of powers of two from 2^125 on, 12 of which are no f32.
  if (format.scale == BlockScale::HalvedE8M0)
    return static_cast<const uint8_t *>(block)[format.scaleOffset] < 253;
  return isFiniteHalf(halfAt(block, format.scaleOffset)) &&
         (format.minOffset < 0 ||
          isFiniteHalf(halfAt(block, format.minOffset)));
}

void dequantizeBlocks(DataType type, const void *src, int64_t blocks,
                      float *dst) {
  const BlockFormat *format = findBlockFormat(type);
  assert(format && "only block types have blocks");
  BlockFn fn = kDequantize[format - kBlockFormats.data()];
  const uint8_t *from = static_cast<const uint8_t *>(src);
  for (int64_t i = 0; i < blocks; ++i)
    fn(from + i * format->bytes, dst + i * format->elements);
}

} // namespace kf
