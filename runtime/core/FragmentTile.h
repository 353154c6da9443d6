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

#include "runtime/core/Tensor.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace kf {

/// The tile of a weight that lies in memory as one run: what a warp takes of it
/// as the left operand of a matrix unit's m16n8 product. The weight is
/// [row blocks][tiles of K][bytes], padded with zero bytes. A row block has 16
/// fragment rows: of a weight of rank 2, 16 rows; of [2, N, K], whose groups
/// are gate and up, 8 rows of the first and the same 8 of the second.
///
/// A tile of f16, bf16, f32 or f8E4M3FN has 8 words of 32 bits a row, w[0] to
/// w[7], and 16 bytes for each of 32 lanes: lane 4 g + t holds the words
///   row g: w[t], row g + 8: w[t], row g: w[t + 4], row g + 8: w[t + 4].
///
/// A tile of blocks has 256 columns: `vectors` times 16 bytes a lane of codes,
/// then what scales them. Of each 32 columns, a span, lane 4 g + t has 8 codes
/// of row g and 8 of row g + 8: number j, below 4, is that of column 4 t + j,
/// the others are those of columns 12 + 4 t + j. Where u is the number of the
/// span and h that of the row, the lane's words, 4 to a vector, are
///   q4_0, q4_k: w[2 u + h], code j at bit 4 (j / 2) + 16 (j % 2)
///   q8_0: codes plus 128, w[4 u + 2 (j / 4) + h] at bit 8 (j % 4 / 2) +
///     16 (j % 2)
///   q6_k: w[3 u] and w[3 u + 1] have codes 0 to 3 of both rows, and w[3 u + 2]
///     codes 4 to 7 of row g, at bit 6 (j % 4 / 2) + 16 (j % 2). Of codes 4 to
///     7 of row g + 8, w[3 u + j / 2 % 2] has the low 4 bits at bit 12 +
///     16 (j % 2), and w[3 u + 2] the high 2 bits at 12 + 2 (j / 2 % 2) +
///     16 (j % 2).
/// Behind the codes, in bytes, where p = 4 g + u / 2 and q = 2 h + u % 2:
///   q4_0, q8_0: f16 scales at 8 p + 2 q
///   q4_k: scales and the low 2 bits of minimums, above them, at 4 p + q; the
///     others at 128 + 2 p + h, in half u % 2 of that byte; f16 d and m at
///     192 + 8 g + 4 h
///   q6_k: scales plus 128 of sub-block s, 8 (4 g + s % 8 / 2) + 4 (s / 8) +
///     2 h + s % 2; f16 d at 256 + 4 g + 2 h
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

/// The tile for elements of `type`; nothing where there is none.
constexpr std::optional<FragmentTile> findFragmentTile(DataType type) {
  switch (type) {
  case DataType::F16:
  case DataType::BF16:
    return FragmentTile{.columns = 16, .bytes = 512};
  case DataType::F32:
    return FragmentTile{.columns = 8, .bytes = 512};
  case DataType::F8E4M3:
    return FragmentTile{.columns = 32, .bytes = 512};
  case DataType::Q4_0:
  case DataType::Q4_K:
    return FragmentTile{.columns = 256, .bytes = 2304, .vectors = 4};
  case DataType::Q6_K:
    return FragmentTile{.columns = 256, .bytes = 3360, .vectors = 6};
  case DataType::Q8_0:
    return FragmentTile{.columns = 256, .bytes = 4352, .vectors = 8};
  default:
    return std::nullopt;
  }
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
