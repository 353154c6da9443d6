//===- FragmentTile.h - Weights in the order of matrix units ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `#kf.fragments` means for the elements of a weight. Packing, compiler
// and checks of executables agree on it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_FRAGMENTTILE_H
#define KF_RUNTIME_CORE_FRAGMENTTILE_H

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Tensor.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace kf {

/// The tile of a weight that lies in memory as one run: what a warp takes of it
/// as the left operand of a matrix unit's m16n8k16 product. The weight is
/// [row blocks][tiles of K][bytes], padded with zero bytes. A row block has 16
/// fragment rows: of a weight of rank 2, 16 rows; of [2, N, K], whose groups
/// are gate and up, 8 rows of the first and the same 8 of the second.
///
/// A tile of f16, bf16, f32 or f8E4M3FN has 8 words of 32 bits a row, w[0] to
/// w[7], and 16 bytes for each of 32 lanes: lane 4 g + t holds the words
///   row g: w[t], row g + 8: w[t], row g: w[t + 4], row g + 8: w[t + 4].
/// Words have neighbouring columns, but for f8E4M3FN: w[t], where t is below 4,
/// has columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9, and w[t + 4] those 16 behind.
///
/// A tile of blocks has 256 columns: `vectors` times 16 bytes a lane of codes,
/// 4 words each, then what scales them. Of each 32 columns, a span, lane 4 g +
/// t has 8 codes of row g and 8 of row g + 8: number j is that of column 2 t +
/// j % 2 + 8 (j / 2), which findFragmentCode() finds in the lane's words.
/// Behind the codes is what scales them, which findFragmentScales() finds.
struct FragmentTile {
  static constexpr int64_t rows = 16, lanes = 32, lineWords = 8, span = 32;

  int64_t columns = 0; ///< of K
  int64_t bytes = 0;
  int64_t vectors = 1; ///< of 16 bytes a lane

  /// Row blocks of a weight with `extent` rows in each of `groups` groups.
  static constexpr int64_t rowBlocks(int64_t groups, int64_t extent) {
    return (extent - 1) / (rows / groups) + 1;
  }
  constexpr int64_t tilesOf(int64_t extent) const {
    return (extent - 1) / columns + 1;
  }
};

/// Some bits of a code: `width` of them, from its bit `at` on, lie from bit
/// `bit` of a lane's word number `word` on.
struct CodeBits {
  int word = 0, bit = 0, width = 0, at = 0;
};
/// A code; `high` has no width where all is in `low`.
struct FragmentCode {
  CodeBits low, high = {};
};

/// Where a lane has code number `j`, below 8, of its row `h` in span `u`; of
/// signed ones what is 128 more. Even codes and those behind them lie 16 bits
/// apart, so that a mask leaves numbers of 16 bits; those of a table 8 bits,
/// and four of them side by side, which select four bytes of it. Of E2M1, a
/// byte has two codes, the signs above both: of every other pair a sign lies as
/// far above exponent and mantissa as in f16.
constexpr FragmentCode findFragmentCode(const BlockFormat &format, int u, int h,
                                        int j) {
  const int half = j / 4, pair = j / 2 % 2, odd = 16 * (j % 2);
  const int bits = format.low.bits;
  if (hasE2M1(format)) {
    const int byte = 8 * half + odd;
    return {
        .low = {.word = 2 * u + h, .bit = byte + 3 * pair, .width = 3},
        .high = {
            .word = 2 * u + h, .bit = byte + 6 + pair, .width = 1, .at = 3}};
  }
  if (format.table)
    return {.low = {.word = 2 * u + h,
                    .bit = 16 * half + 4 * pair + odd / 2,
                    .width = bits}};
  if (format.codeBits() == 6) {
    // Three words a span: the last row's second half has none of its own.
    if (h == 0 || half == 0)
      return {.low = {.word = 3 * u + h + 2 * half,
                      .bit = 6 * pair + odd,
                      .width = 6}};
    return {.low = {.word = 3 * u + pair, .bit = 12 + odd, .width = 4},
            .high = {.word = 3 * u + 2,
                     .bit = 12 + 2 * pair + odd,
                     .width = 2,
                     .at = 4}};
  }
  // Halves of a word have the pairs of some rows and halves of a span.
  const int group = half + 2 * h, groups = 8 / bits;
  FragmentCode code = {
      .low = {.word = (4 * u + group) / groups,
              .bit = 2 * bits * (group % groups) + bits * pair + odd,
              .width = bits}};
  if (format.high.bits == 1) // of two spans in a word, behind all others
    code.high = {.word = 4 * bits + u / 2,
                 .bit = 8 * (u % 2) + h + 8 / bits * half + bits * pair + odd,
                 .width = 1,
                 .at = bits};
  return code;
}

/// Where what scales the codes of a tile lies, in bytes behind these.
/// Sub-blocks have integers of a byte each, rows d and m of their block;
/// without integers, spans have d and m. Where scales are bytes of E8M0, these
/// are the integers of spans, and there is no d. Those of rows g and g + 8,
/// which are `h` = 0 and 1, lie side by side. Sizes and offsets are here; the
/// order within what a pair of rows has is what readers take it to be, and
/// FragmentBlocksTest holds it.
struct FragmentScales {
  /// Integers of a row: one for each span, or for each half of one; 0: d and m
  /// are those of spans.
  int integers = 0;
  int bits = 8; ///< of an integer that is a scale; above them are its minimum's
  int above = 0; ///< what is added to scales, so that they have no sign
  bool areExponents = false; ///< integers are E8M0, and all that there is
  /// Of the bits of minimums for which a byte has no room, four for each
  /// integer: those of two spans are a byte, the even one's below; 0: there are
  /// none.
  int restOffset = 0;
  int blockOffset = 0; ///< of d
  int minOffset = 0;   ///< of m behind its d; 0: there is none
  int bytes = 0;       ///< of all

  /// Bytes that rows g and g + 8 have of integers or, without, of d; one behind
  /// the other by g. A quarter of it is a lane's, 4 g + t for all t.
  constexpr int pairBytes() const { return integers == 8 ? 16 : 32; }
  /// The same of d and m where there are integers.
  constexpr int blockPairBytes() const { return minOffset ? 8 : 4; }

  /// Of integer number `i`. Words have those of two neighbours, of row h = 0
  /// and then of h = 1; of halves of spans, a lane's second word has those of
  /// numbers 8 behind.
  constexpr int integerAt(int g, int h, int i) const {
    const int word = integers == 8 ? i / 2 : i % 8 / 2 * 2 + i / 8;
    return pairBytes() * g + 4 * word + 2 * h + i % 2;
  }
  /// Of the rest of minimums that spans 2 i and 2 i + 1 have.
  constexpr int restAt(int g, int h, int i) const {
    return restOffset + pairBytes() / 2 * g + 2 * i + h;
  }
  /// Of the d that span `u` is scaled by.
  constexpr int blockAt(int g, int h, int u) const {
    if (integers)
      return blockOffset + blockPairBytes() * g + blockPairBytes() / 2 * h;
    return pairBytes() * g + u / 2 * 8 + 4 * h + u % 2 * 2;
  }
};

/// What scales the codes of blocks of `format`, however it stores that itself.
constexpr FragmentScales findFragmentScales(const BlockFormat &format) {
  const bool hasMin = format.minOffset >= 0;
  if (format.scale == BlockScale::HalvedE8M0)
    return {.integers = 8, .areExponents = true, .bytes = 128};
  if (format.subScales == SubScales::None)
    return {.minOffset = hasMin ? 256 : 0, .bytes = hasMin ? 512 : 256};
  FragmentScales scales = {.integers = 256 / format.subBlock, // in all columns
                           .bits = hasMin ? format.subScaleBits() : 8,
                           .above = hasMin ? 0 : 128,
                           .minOffset = hasMin ? 2 : 0};
  scales.blockOffset = 8 * scales.pairBytes();
  if (hasMin && scales.bits > 4) {
    scales.restOffset = scales.blockOffset;
    scales.blockOffset += 4 * scales.pairBytes();
  }
  scales.bytes = scales.blockOffset + 8 * scales.blockPairBytes();
  return scales;
}

/// Whether readers of tiles know the shape of `format`: a row's columns of a
/// tile are one block with integers, or eight without; minimums are subtracted
/// where there are integers, else added; the rest of minimums is that of 6
/// bits, for spans; and codes of E2M1 alone go with scales of E8M0.
constexpr bool hasKnownFragmentShape(const BlockFormat &format) {
  const FragmentScales scales = findFragmentScales(format);
  const bool hasIntegers = format.subScales != SubScales::None;
  return (format.subBlock == 16 || format.subBlock == 32) &&
         format.elements == (hasIntegers ? 256 : 32) &&
         (format.minOffset < 0 || format.minIsNegative == hasIntegers) &&
         hasE2M1(format) == scales.areExponents &&
         (scales.restOffset == 0 || (scales.integers == 8 && scales.bits == 6));
}
static_assert(
    [] {
      for (const BlockFormat &format : kBlockFormats)
        if (!hasKnownFragmentShape(format))
          return false;
      return true;
    }(),
    "a block format has a shape that readers of fragment tiles do not know: "
    "teach them in lib/Conversion/KFToGPU first");

/// The tile for elements of `type`; nothing where there is none, as of
/// integers.
constexpr std::optional<FragmentTile> findFragmentTile(DataType type) {
  switch (type) {
  case DataType::F16:
  case DataType::BF16:
    return FragmentTile{.columns = 16, .bytes = 512};
  case DataType::F32:
    return FragmentTile{.columns = 8, .bytes = 512};
  case DataType::F8E4M3:
    return FragmentTile{.columns = 32, .bytes = 512};
  default:
    break;
  }
  const BlockFormat *format = findBlockFormat(type);
  if (!format)
    return std::nullopt;
  return FragmentTile{.columns = 256,
                      .bytes = 512 * format->codeBits() +
                               findFragmentScales(*format).bytes,
                      .vectors = format->codeBits()};
}

/// Whether weights of this shape have row blocks.
constexpr bool hasFragments(std::span<const int64_t> shape) {
  return shape.size() == 2 || (shape.size() == 3 && shape[0] == 2);
}

/// Bytes of a weight of `shape`, with dimensions from 1 on, for which
/// hasFragments(); nothing where they are too many to count.
constexpr std::optional<int64_t> fragmentBytes(const FragmentTile &tile,
                                               std::span<const int64_t> shape) {
  int64_t groups = shape.size() == 3 ? shape[0] : 1, bytes = 0;
  int64_t blocks = FragmentTile::rowBlocks(groups, shape[shape.size() - 2]);
  if (__builtin_mul_overflow(blocks, tile.tilesOf(shape.back()), &bytes) ||
      __builtin_mul_overflow(bytes, tile.bytes, &bytes))
    return std::nullopt;
  return bytes;
}

} // namespace kf

#endif // KF_RUNTIME_CORE_FRAGMENTTILE_H
