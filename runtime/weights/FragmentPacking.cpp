//===- FragmentPacking.cpp - Weights in the order of matrix units ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/FragmentPacking.h"

#include "runtime/weights/BlockFields.h"
#include "runtime/weights/StreamingCopy.h"

#include <algorithm>
#include <cstring>

namespace kf {
namespace {

/// Words of one row and tile.
struct Line {
  Words low, high;
};

template <bool isFloat8> Line readLine(const std::byte *row, int64_t tile) {
  Line line = {};
  if (row)
    std::memcpy(&line, row + tile * sizeof(Line), sizeof(Line));
  if constexpr (isFloat8)
    line = {orderForLanes((Bytes)line.low), orderForLanes((Bytes)line.high)};
  return line;
}

/// The 16 bytes of each of the four lanes that have these rows: a
/// transposition of four vectors.
void writeLanes(const Line &upper, const Line &lower, std::byte *dst) {
  Longs first =
      (Longs)__builtin_shufflevector(upper.low, lower.low, 0, 4, 1, 5);
  Longs second =
      (Longs)__builtin_shufflevector(upper.high, lower.high, 0, 4, 1, 5);
  Longs third =
      (Longs)__builtin_shufflevector(upper.low, lower.low, 2, 6, 3, 7);
  Longs fourth =
      (Longs)__builtin_shufflevector(upper.high, lower.high, 2, 6, 3, 7);
  const Longs lanes[4] = {__builtin_shufflevector(first, second, 0, 2),
                          __builtin_shufflevector(first, second, 1, 3),
                          __builtin_shufflevector(third, fourth, 0, 2),
                          __builtin_shufflevector(third, fourth, 1, 3)};
  std::memcpy(dst, lanes, sizeof(lanes));
}

template <bool isFloat8>
void packTiles(std::span<const std::byte *const, FragmentTile::rows> rows,
               int64_t tiles, std::byte *dst) {
  constexpr int64_t half = FragmentTile::rows / 2, tileBytes = 512;
  // Tiles of which all rows' lines are whole lines of the cache.
  constexpr int64_t step = 8;
  alignas(16) std::byte packed[step * tileBytes];
  for (int64_t first = 0; first < tiles; first += step) {
    const int64_t count = std::min(step, tiles - first);
    for (int64_t g = 0; g < half; ++g)
      for (int64_t i = 0; i < count; ++i)
        writeLanes(readLine<isFloat8>(rows[g], first + i),
                   readLine<isFloat8>(rows[g + half], first + i),
                   packed + i * tileBytes + g * 64);
    streamingCopy(dst + first * tileBytes, packed,
                  static_cast<size_t>(count * tileBytes));
  }
  endStreaming();
}

} // namespace

void packFragments(DataType type,
                   std::span<const std::byte *const, FragmentTile::rows> rows,
                   int64_t tiles, std::byte *dst) {
  if (type == DataType::F8E4M3)
    packTiles<true>(rows, tiles, dst);
  else
    packTiles<false>(rows, tiles, dst);
}

} // namespace kf
