//===- FragmentBlocks.cpp - Blocks in the order of matrix units -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/BlockFields.h"
#include "runtime/weights/FragmentPacking.h"
#include "runtime/weights/StreamingCopy.h"

#include <algorithm>
#include <cassert>

namespace kf {
namespace {

constexpr int64_t tileRows = FragmentTile::rows, half = tileRows / 2;
constexpr int64_t tileColumns = 256, spans = tileColumns / FragmentTile::span;

/// The index of a type's description.
constexpr size_t indexOf(DataType type) {
  size_t index = 0;
  while (kBlockFormats[index].type != type)
    ++index;
  return index;
}

/// What a row has of a tile; all zeros where there is no row, or no block.
struct TileRow {
  alignas(16) uint8_t codes[tileColumns] = {};
  uint8_t scales[16] = {}, mins[8] = {}; ///< of sub-blocks
  uint16_t d[spans] = {}, m = 0;         ///< of blocks
};

template <size_t Index>
void readRow(const std::byte *blocks, int64_t count, TileRow &row) {
  constexpr BlockFormat format = kBlockFormats[Index];
  for (int64_t i = 0; i < count; ++i) {
    const auto *block =
        reinterpret_cast<const uint8_t *>(blocks) + i * format.bytes;
    uint8_t *codes = row.codes + i * format.elements;
    readPlane<Index, false>(block, codes);
    if constexpr (format.high.bits != 0) {
      uint8_t high[format.elements];
      readPlane<Index, true>(block, high);
      for (int k = 0; k < format.elements; ++k)
        codes[k] |= static_cast<uint8_t>(high[k] << format.low.bits);
    }
    if constexpr (format.isSigned)
      for (int k = 0; k < format.elements; ++k)
        codes[k] ^= 0x80;
    std::memcpy(&row.d[i], block + format.scaleOffset, 2);
    if constexpr (format.minOffset >= 0)
      std::memcpy(&row.m, block + format.minOffset, 2);
    if constexpr (format.subScales != SubScales::None) {
      SubScaleBytes sub = readSubScales<Index>(block);
      std::memcpy(row.scales, &sub.scales, format.subBlocks());
      if constexpr (format.minOffset >= 0)
        std::memcpy(row.mins, &sub.mins, format.subBlocks());
    }
  }
}

/// Four codes of each of four lanes, a byte each, to where a word of the type
/// has codes 0 to 3: bits 0, 16, 0 + `width` and 16 + `width`.
template <int width> Words spread(Words codes) {
  return (codes & 0xffu) | (codes & 0xff00u) << 8 |
         (codes >> 16 & 0xffu) << width | (codes >> 24) << (16 + width);
}

/// The words of the four lanes of rows g and g + 8 for one span.
template <DataType type>
void writeSpan(const TileRow &upper, const TileRow &lower, int64_t span,
               Words *words) {
  Words codes[2][2]; // by row, and half of the span
  for (int64_t i = 0; i < 2; ++i) {
    std::memcpy(&codes[0][i], upper.codes + span * 32 + i * 16, sizeof(Words));
    std::memcpy(&codes[1][i], lower.codes + span * 32 + i * 16, sizeof(Words));
  }
  if constexpr (type == DataType::Q8_0) {
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t row = 0; row < 2; ++row)
        words[4 * span + 2 * i + row] = spread<8>(codes[row][i]);
  } else if constexpr (type == DataType::Q6_K) {
    // The last row's second half has no word of its own.
    const Words rest = codes[1][1];
    auto low = [](Words byte, int bit) { return (byte & 15u) << bit; };
    auto high = [](Words byte, int bit) { return (byte >> 4 & 3u) << bit; };
    words[3 * span] =
        spread<6>(codes[0][0]) | low(rest, 12) | low(rest >> 8, 28);
    words[3 * span + 1] =
        spread<6>(codes[1][0]) | low(rest >> 16, 12) | low(rest >> 24, 28);
    words[3 * span + 2] = spread<6>(codes[0][1]) | high(rest, 12) |
                          high(rest >> 8, 28) | high(rest >> 16, 14) |
                          high(rest >> 24, 30);
  } else {
    for (int64_t row = 0; row < 2; ++row)
      words[2 * span + row] =
          spread<4>(codes[row][0]) | spread<4>(codes[row][1]) << 8;
  }
}

/// What scales a row's codes, to `dst`, behind all codes of the tile.
template <DataType type>
void writeScales(const TileRow &row, int64_t number, std::byte *dst) {
  const int64_t g = number % half, h = number / half;
  auto put = [&](int64_t at, const auto &value) {
    std::memcpy(dst + at, &value, sizeof(value));
  };
  if constexpr (type == DataType::Q6_K) {
    for (int64_t s = 0; s < 16; ++s)
      put(8 * (4 * g + s % 8 / 2) + 4 * (s / 8) + 2 * h + s % 2,
          uint8_t(row.scales[s] ^ 0x80));
    put(256 + 4 * g + 2 * h, row.d[0]);
    return;
  }
  for (int64_t u = 0; u < spans; ++u) {
    const int64_t p = 4 * g + u / 2, q = 2 * h + u % 2;
    if constexpr (type == DataType::Q4_K) {
      put(4 * p + q, uint8_t(row.scales[u] | row.mins[u] << 6));
      // The even span has the low half of the byte, the odd one the other.
      if (u % 2 == 0)
        put(128 + 2 * p + h,
            uint8_t(row.mins[u] >> 2 | row.mins[u + 1] >> 2 << 4));
    } else {
      put(8 * p + 2 * q, row.d[u]);
    }
  }
  if constexpr (type == DataType::Q4_K) {
    put(192 + 8 * g + 4 * h, row.d[0]);
    put(192 + 8 * g + 4 * h + 2, row.m);
  }
}

template <DataType type>
void packTiles(std::span<const std::byte *const, tileRows> rows, int64_t blocks,
               std::byte *dst) {
  constexpr size_t index = indexOf(type);
  constexpr BlockFormat format = kBlockFormats[index];
  constexpr FragmentTile tile = *findFragmentTile(type);
  constexpr int64_t ofTile = tileColumns / format.elements;
  alignas(16) std::byte packed[tile.bytes];
  for (int64_t first = 0; first < blocks; first += ofTile, dst += tile.bytes) {
    TileRow read[tileRows];
    for (int64_t r = 0; r < tileRows; ++r)
      if (rows[r])
        readRow<index>(rows[r] + first * format.bytes,
                       std::min(ofTile, blocks - first), read[r]);
    std::fill(std::begin(packed), std::end(packed), std::byte());
    for (int64_t g = 0; g < half; ++g) {
      Words words[4 * tile.vectors];
      for (int64_t u = 0; u < spans; ++u)
        writeSpan<type>(read[g], read[g + half], u, words);
      for (int64_t i = 0; i < tile.vectors; ++i)
        for (int64_t t = 0; t < 4; ++t) {
          const Words lane = {words[4 * i][t], words[4 * i + 1][t],
                              words[4 * i + 2][t], words[4 * i + 3][t]};
          std::memcpy(packed + i * 512 + (4 * g + t) * 16, &lane, sizeof(lane));
        }
    }
    for (int64_t r = 0; r < tileRows; ++r)
      if (rows[r])
        writeScales<type>(read[r], r, packed + tile.vectors * 512);
    streamingCopy(dst, packed, sizeof(packed));
  }
  endStreaming();
}

} // namespace

void packFragmentBlocks(
    DataType type, std::span<const std::byte *const, FragmentTile::rows> rows,
    int64_t blocks, std::byte *dst) {
  switch (type) {
  case DataType::Q4_0:
    return packTiles<DataType::Q4_0>(rows, blocks, dst);
  case DataType::Q4_K:
    return packTiles<DataType::Q4_K>(rows, blocks, dst);
  case DataType::Q6_K:
    return packTiles<DataType::Q6_K>(rows, blocks, dst);
  case DataType::Q8_0:
    return packTiles<DataType::Q8_0>(rows, blocks, dst);
  default:
    assert(false && "findFragmentTile() has no such blocks");
  }
}

} // namespace kf
