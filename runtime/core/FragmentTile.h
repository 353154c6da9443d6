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
/// Behind the codes, in bytes, where u is the number of a span, s that of a
/// half of one, h that of the row g + 8 h, p = 4 g + u / 2 and q = 2 h + u % 2:
///   without integer scales: f16 d at 8 p + 2 q, and m at 256 + 8 p + 2 q
///   Packed6: scales and the low 2 bits of minimums, above them, at 4 p + q;
///   the
///     others at 128 + 2 p + h, in half u % 2 of that byte; f16 d and m at
///     192 + 8 g + 4 h
///   TopsFirst6: scales plus 128 at 4 p + q; f16 d at 128 + 4 g + 2 h
///   the others: of s a byte at 8 (4 g + s % 8 / 2) + 4 (s / 8) + 2 h + s % 2,
///     its scale plus 128 or, of Nibbles, both; f16 d at 256 + 4 g + 2 h or,
///     with m behind it, at 256 + 8 g + 4 h
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
/// and four of them side by side, which select four bytes of it.
constexpr FragmentCode findFragmentCode(const BlockFormat &format, int u, int h,
                                        int j) {
  const int half = j / 4, pair = j / 2 % 2, odd = 16 * (j % 2);
  const int bits = format.low.bits;
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

/// Bytes of what scales the codes of a tile.
constexpr int64_t fragmentScaleBytes(const BlockFormat &format) {
  const bool hasMin = format.minOffset >= 0;
  switch (format.subScales) {
  case SubScales::None:
    return hasMin ? 512 : 256;
  case SubScales::Packed6:
    return 256;
  case SubScales::TopsFirst6:
    return 160;
  default:
    return hasMin ? 320 : 288;
  }
}

/// The tile for elements of `type`; nothing where there is none, as of blocks
/// whose scales are beyond the range of f16.
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
  if (!format || format->scale != BlockScale::Half)
    return std::nullopt;
  return FragmentTile{.columns = 256,
                      .bytes = 512 * format->codeBits() +
                               fragmentScaleBytes(*format),
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
