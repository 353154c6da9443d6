//===- BlockFormat.h - Block-quantized storage ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GGUF's block formats, each described once: the reference dequantizes by this
// table, packing rearranges bits by it, and the compiler emits kernels from it.
//
// A block stores the integer codes of `elements` values in one or two planes
// of bits, a scale d, and for some formats a half-precision minimum m and small
// integer scales and minimums of sub-blocks. An element is
//
//   x = (d * scale) * value(code) + (m * min)
//
// where value(code) is code - zero, or the entry of a table, scale and min are
// 1 without sub-blocks, and the minimum of K formats counts negatively.
// Source: the GGUF specification and ggml's definition of its block types; of
// mxfp4 also OCP's Microscaling Formats (MX) Specification 1.0.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_BLOCKFORMAT_H
#define KF_RUNTIME_CORE_BLOCKFORMAT_H

#include "runtime/core/Tensor.h"

#include <array>
#include <cstdint>

namespace kf {

/// Fields of `bits` bits (1, 2, 4 or 8), one an element. `run` bytes hold the
/// elements of a group of run * 8 / bits: element i of the group lies in byte
/// i % run, at bit bits * (i / run).
struct BitPlane {
  int offset = 0; ///< of its first byte in the block
  int bits = 0;   ///< 0: there is no such plane
  int run = 0;    ///< bytes

  /// The byte of a block and the bit in it where field `i` begins.
  constexpr int byteOf(int i) const {
    return offset + i / (run * 8 / bits) * run + i % run;
  }
  constexpr int bitOf(int i) const { return i % (run * 8 / bits) / run * bits; }
};

/// How a block's scale d is stored.
enum class BlockScale {
  Half, ///< f16
  /// A byte of OCP's E8M0, which stands for 2^(byte - 127), and 255 for NaN. d
  /// is half of that: value(code) is twice an element, so that it is a whole
  /// number. The least, 2^-128, is a subnormal f32.
  HalvedE8M0
};

/// How the integer scales and minimums of sub-blocks are stored.
enum class SubScales {
  None,
  Nibbles, ///< a byte a sub-block: scale in its low, min in its high half
  Int8,    ///< a signed byte a sub-block; no min
  Split6,  ///< 16 scales of 6 bits in 12 bytes, less 32; no min
  /// 8 scales of 6 bits in 6 bytes, less 32: the high 2 bits of all, then the
  /// low halves; no min.
  TopsFirst6,
  /// 8 scales and mins of 6 bits in 12 bytes. The first four of each have bytes
  /// 0-3 and 4-7; the last four have their low halves in bytes 8-11 (scale low,
  /// min high) and their high 2 bits on top of bytes 0-3 and 4-7.
  Packed6
};

struct BlockFormat {
  DataType type;
  int elements;       ///< a block
  int bytes;          ///< a block
  BitPlane low;       ///< low bits of the codes
  BitPlane high = {}; ///< the bits above them
  /// Codes are unsigned but for this format's: two's complement of 8 bits.
  bool isSigned = false;
  /// What value(code) subtracts; with a table, what makes its entries unsigned
  /// when it is added.
  int zero = 0;
  const int8_t *table = nullptr; ///< [16] value(code); null: none
  BlockScale scale = BlockScale::Half;
  int scaleOffset = 0;        ///< byte of d
  int minOffset = -1;         ///< byte of m; -1: there is none
  bool minIsNegative = false; ///< m * min is subtracted
  SubScales subScales = SubScales::None;
  int subScaleOffset = 0; ///< byte of the first
  int subBlock = 32;      ///< elements that share a scale

  constexpr int codeBits() const { return low.bits + high.bits; }
  /// Of d.
  constexpr int scaleBytes() const { return scale == BlockScale::Half ? 2 : 1; }
  constexpr int subBlocks() const { return elements / subBlock; }
  /// Of an integer scale, and of a minimum where there are some.
  constexpr int subScaleBits() const {
    switch (subScales) {
    case SubScales::None:
      return 0;
    case SubScales::Nibbles:
      return 4;
    case SubScales::Int8:
      return 8;
    case SubScales::Split6:
    case SubScales::TopsFirst6:
    case SubScales::Packed6:
      return 6;
    }
    return 0;
  }

  /// The unsigned code of element `i`; 8-bit two's complement as it is.
  constexpr int codeAt(const uint8_t *block, int i) const {
    int code = block[low.byteOf(i)] >> low.bitOf(i) & ((1 << low.bits) - 1);
    if (high.bits)
      code |= (block[high.byteOf(i)] >> high.bitOf(i) & ((1 << high.bits) - 1))
              << low.bits;
    return code;
  }

  /// The integer scale and min of sub-block `i`; 1 and 1 without sub-scales.
  struct SubScale {
    int scale = 1, min = 1;
  };
  constexpr SubScale subScaleAt(const uint8_t *block, int i) const {
    const uint8_t *bytes = block + subScaleOffset;
    switch (subScales) {
    case SubScales::None:
      return {};
    case SubScales::Nibbles:
      return {bytes[i] & 15, bytes[i] >> 4};
    case SubScales::Int8:
      return {static_cast<int8_t>(bytes[i]), 0};
    case SubScales::Split6:
      return {((bytes[i % 8] >> i / 8 * 4 & 15) |
               (bytes[8 + i % 4] >> i / 4 * 2 & 3) << 4) -
                  32,
              0};
    case SubScales::TopsFirst6:
      return {((bytes[2 + i / 2] >> i % 2 * 4 & 15) |
               (bytes[i / 4] >> i % 4 * 2 & 3) << 4) -
                  32,
              0};
    case SubScales::Packed6:
      if (i < 4)
        return {bytes[i] & 63, bytes[i + 4] & 63};
      return {(bytes[i + 4] & 15) | (bytes[i - 4] >> 6) << 4,
              bytes[i + 4] >> 4 | (bytes[i] >> 6) << 4};
    }
    return {};
  }
};

/// Values of iq4_nl and iq4_xs: finer around 0.
inline constexpr int8_t kIq4NlTable[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// Twice the numbers of OCP's E2M1: a sign, 2 bits of exponent, 1 of mantissa.
inline constexpr int8_t kE2M1Table[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                          0, -1, -2, -3, -4, -6, -8, -12};

inline constexpr std::array<BlockFormat, 13> kBlockFormats = {{
    {.type = DataType::Q8_0,
     .elements = 32,
     .bytes = 34,
     .low = {2, 8, 1},
     .isSigned = true},
    {.type = DataType::Q4_0,
     .elements = 32,
     .bytes = 18,
     .low = {2, 4, 16},
     .zero = 8},
    {.type = DataType::Q4_1,
     .elements = 32,
     .bytes = 20,
     .low = {4, 4, 16},
     .minOffset = 2},
    {.type = DataType::Q5_0,
     .elements = 32,
     .bytes = 22,
     .low = {6, 4, 16},
     .high = {2, 1, 1},
     .zero = 16},
    {.type = DataType::Q5_1,
     .elements = 32,
     .bytes = 24,
     .low = {8, 4, 16},
     .high = {4, 1, 1},
     .minOffset = 2},
    {.type = DataType::Q2_K,
     .elements = 256,
     .bytes = 84,
     .low = {16, 2, 32},
     .scaleOffset = 80,
     .minOffset = 82,
     .minIsNegative = true,
     .subScales = SubScales::Nibbles,
     .subBlock = 16},
    {.type = DataType::Q3_K,
     .elements = 256,
     .bytes = 110,
     .low = {32, 2, 32},
     .high = {0, 1, 32},
     .zero = 4,
     .scaleOffset = 108,
     .subScales = SubScales::Split6,
     .subScaleOffset = 96,
     .subBlock = 16},
    {.type = DataType::Q4_K,
     .elements = 256,
     .bytes = 144,
     .low = {16, 4, 32},
     .minOffset = 2,
     .minIsNegative = true,
     .subScales = SubScales::Packed6,
     .subScaleOffset = 4},
    {.type = DataType::Q5_K,
     .elements = 256,
     .bytes = 176,
     .low = {48, 4, 32},
     .high = {16, 1, 32},
     .minOffset = 2,
     .minIsNegative = true,
     .subScales = SubScales::Packed6,
     .subScaleOffset = 4},
    {.type = DataType::Q6_K,
     .elements = 256,
     .bytes = 210,
     .low = {0, 4, 64},
     .high = {128, 2, 32},
     .zero = 32,
     .scaleOffset = 208,
     .subScales = SubScales::Int8,
     .subScaleOffset = 192,
     .subBlock = 16},
    {.type = DataType::IQ4_NL,
     .elements = 32,
     .bytes = 18,
     .low = {2, 4, 16},
     .zero = 128,
     .table = kIq4NlTable},
    {.type = DataType::MXFP4,
     .elements = 32,
     .bytes = 17,
     .low = {1, 4, 16},
     .zero = 12,
     .table = kE2M1Table,
     .scale = BlockScale::HalvedE8M0},
    {.type = DataType::IQ4_XS,
     .elements = 256,
     .bytes = 136,
     .low = {8, 4, 16},
     .zero = 128,
     .table = kIq4NlTable,
     .subScales = SubScales::TopsFirst6,
     .subScaleOffset = 2},
}};

/// Whether codes are numbers of E2M1, halves of the table's.
constexpr bool hasE2M1(const BlockFormat &format) {
  return format.table == kE2M1Table;
}

/// The description of a block type; null for every other type.
constexpr const BlockFormat *findBlockFormat(DataType type) {
  for (const BlockFormat &format : kBlockFormats)
    if (format.type == type)
      return &format;
  return nullptr;
}

/// How a panel of rows stores one block of each: fields of the same meaning
/// side by side, one a row, so that a vector register holds them for as many
/// rows as it has lanes. Everything lies in the order in which a product over
/// k reads it, for the sake of the hardware's prefetching: first d and m (as
/// the format has them, [panel rows] each), then for each `unit` of elements
///   scales and mins of its sub-blocks (bytes, [sub-blocks][panel rows] each;
///   mins of Nibbles stay in the byte of their scale), low plane, high plane.
/// A plane of w bits is [chunks][panel rows][4 bytes]; a chunk covers 32 / w
/// elements: bits w * t and up of byte j belong to element 4 * t + j of the
/// chunk. Signed codes are stored with 128 added, so that all are unsigned. The
/// size is the format's own, but for 6-bit scales, which become bytes.
struct PackedBlock {
  /// Elements; a multiple of every sub-block's and chunk's.
  static constexpr int unit = 32;

  constexpr explicit PackedBlock(const BlockFormat &format) {
    int at = 0;
    auto take = [&](bool exists, int size) {
      int offset = at;
      at += exists ? size : 0;
      return offset;
    };
    scale = take(true, format.scaleBytes());
    min = take(format.minOffset >= 0, 2);
    firstUnit = at;
    at = 0;
    int subBlocks = unit / format.subBlock;
    subScales = take(format.subScales != SubScales::None, subBlocks);
    subMins = take(format.subScales == SubScales::Packed6, subBlocks);
    low = take(true, unit * format.low.bits / 8);
    high = take(format.high.bits, unit * format.high.bits / 8);
    unitBytes = at;
    bytes = firstUnit + format.elements / unit * unitBytes;
    zero = format.isSigned ? 128 : format.zero;
  }

  /// What value(code) subtracts; with a table, from its entries plus that.
  int zero;
  // Offsets and sizes are bytes of one row: to be multiplied by the rows.
  int scale, min, firstUnit;         ///< offsets in the block
  int subScales, subMins, low, high; ///< offsets in a unit
  int unitBytes, bytes;              ///< sizes of a unit and of the block
};

/// The scale d of a block of `format`.
float loadScale(const BlockFormat &format, const void *block);
/// Makes the nearest number that the format holds the scale d of a block; of
/// powers of two, the nearest by its exponent, whatever the sign.
void storeScale(const BlockFormat &format, float d, void *block);
/// Whether d and m are finite, and small enough for every element to be finite
/// in f32.
bool hasFiniteScales(const BlockFormat &format, const void *block);

/// Widens `blocks` blocks at `src` to `blocks * elements` floats at `dst`; bit
/// for bit what the formula above gives in f32 without fused multiply-adds.
/// `type` is a block type. Any alignment.
void dequantizeBlocks(DataType type, const void *src, int64_t blocks,
                      float *dst);

/// Rounds `blocks * elements` floats at `src` to blocks at `dst`. q8_0, q4_0,
/// q4_1, q5_0 and q5_1 round as ggml's reference does, byte for byte; the other
/// formats search the scales with the least weighted squared error. A block
/// with a NaN or an infinity, or with values too large for a half-precision
/// scale, has no useful values; other blocks do not notice. Any alignment.
void quantizeBlocks(DataType type, const float *src, int64_t blocks, void *dst);

} // namespace kf

#endif // KF_RUNTIME_CORE_BLOCKFORMAT_H
