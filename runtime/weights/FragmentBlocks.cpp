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
#include <array>
#include <cassert>
#include <utility>

namespace kf {
namespace {

constexpr int tileRows = FragmentTile::rows, half = tileRows / 2;
constexpr int tileColumns = 256, spans = tileColumns / FragmentTile::span;

/// What a row has of a tile; all zeros where there is no row, or no block.
struct TileRow {
  alignas(16) uint8_t codes[tileColumns] = {};
  uint8_t scales[16] = {}, mins[8] = {}; ///< of sub-blocks; E8M0 of blocks
  uint16_t d[spans] = {}, m[spans] = {}; ///< of blocks
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
    if constexpr (format.scale == BlockScale::HalvedE8M0)
      row.scales[i] = block[format.scaleOffset];
    else
      std::memcpy(&row.d[i], block + format.scaleOffset, 2);
    if constexpr (format.minOffset >= 0)
      std::memcpy(&row.m[i], block + format.minOffset, 2);
    if constexpr (format.subScales != SubScales::None) {
      SubScaleBytes sub = readSubScales<Index>(block);
      std::memcpy(row.scales, &sub.scales, format.subBlocks());
      if constexpr (findFragmentScales(format).restOffset != 0)
        std::memcpy(row.mins, &sub.mins, format.subBlocks());
    }
  }
}

/// Adds to a word of each of four lanes the bits of their codes that it has.
template <CodeBits bits> void addBits(Words codes, Words *words) {
  if constexpr (bits.width != 0) {
    constexpr uint32_t mask = (1u << bits.width) - 1;
    words[bits.word] |= (codes >> bits.at & mask) << bits.bit;
  }
}

/// The codes of 16 columns, those of a lane behind one another.
Words readLanes(const uint8_t *codes) {
  Bytes bytes;
  std::memcpy(&bytes, codes, sizeof(bytes));
  return orderForLanes(bytes);
}

/// Adds the codes of row `h` of span `u`, of the 4 lanes that have the row.
template <size_t Index, int u, int h, int... j>
void addSpan(const TileRow &row, Words *words,
             std::integer_sequence<int, j...>) {
  const uint8_t *codes = row.codes + u * FragmentTile::span;
  const Words lanes[2] = {readLanes(codes), readLanes(codes + 16)};
  auto add = [&]<FragmentCode code>(Words of) {
    addBits<code.low>(of, words);
    addBits<code.high>(of, words);
  };
  (add.template operator()<findFragmentCode(kBlockFormats[Index], u, h, j)>(
       lanes[j / 4] >> 8 * (j % 4) & 0xffu),
   ...);
}

/// The words of the four lanes of rows g and g + 8.
template <size_t Index, int... u>
void writeCodes(const TileRow &upper, const TileRow &lower, Words *words,
                std::integer_sequence<int, u...>) {
  constexpr auto codes = std::make_integer_sequence<int, 8>();
  (addSpan<Index, u, 0>(upper, words, codes), ...);
  (addSpan<Index, u, 1>(lower, words, codes), ...);
}

/// What scales a row's codes, to `dst`, behind all codes of the tile.
template <size_t Index>
void writeScales(const TileRow &row, int number, std::byte *dst) {
  constexpr FragmentScales scales = findFragmentScales(kBlockFormats[Index]);
  const int g = number % half, h = number / half;
  auto put = [&](int at, const auto &value) {
    std::memcpy(dst + at, &value, sizeof(value));
  };
  for (int i = 0; i < scales.integers; ++i) {
    unsigned integer = row.scales[i] ^ scales.above;
    if constexpr (scales.restOffset != 0)
      integer |= unsigned(row.mins[i]) << scales.bits;
    put(scales.integerAt(g, h, i), static_cast<uint8_t>(integer));
  }
  if constexpr (scales.restOffset != 0)
    for (int i = 0; i < scales.integers; i += 2) {
      constexpr int low = 8 - scales.bits;
      put(scales.restAt(g, h, i / 2),
          static_cast<uint8_t>(row.mins[i] >> low |
                               row.mins[i + 1] >> low << 4));
    }
  if constexpr (scales.areExponents)
    return;
  for (int u = 0; u < (scales.integers ? 1 : spans); ++u) {
    put(scales.blockAt(g, h, u), row.d[u]);
    if constexpr (scales.minOffset != 0)
      put(scales.blockAt(g, h, u) + scales.minOffset, row.m[u]);
  }
}

template <size_t Index>
void packTiles(std::span<const std::byte *const, tileRows> rows, int64_t blocks,
               std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  constexpr FragmentTile tile = *findFragmentTile(format.type);
  constexpr int64_t ofTile = tileColumns / format.elements;
  alignas(16) std::byte packed[tile.bytes];
  for (int64_t first = 0; first < blocks; first += ofTile, dst += tile.bytes) {
    TileRow read[tileRows];
    for (int64_t r = 0; r < tileRows; ++r)
      if (rows[r])
        readRow<Index>(rows[r] + first * format.bytes,
                       std::min(ofTile, blocks - first), read[r]);
    std::fill(std::begin(packed), std::end(packed), std::byte());
    for (int64_t g = 0; g < half; ++g) {
      Words words[4 * tile.vectors] = {};
      writeCodes<Index>(read[g], read[g + half], words,
                        std::make_integer_sequence<int, spans>());
      for (int64_t i = 0; i < tile.vectors; ++i)
        for (int64_t t = 0; t < 4; ++t) {
          const Words lane = {words[4 * i][t], words[4 * i + 1][t],
                              words[4 * i + 2][t], words[4 * i + 3][t]};
          std::memcpy(packed + i * 512 + (4 * g + t) * 16, &lane, sizeof(lane));
        }
    }
    for (int r = 0; r < tileRows; ++r)
      if (rows[r])
        writeScales<Index>(read[r], r, packed + tile.vectors * 512);
    streamingCopy(dst, packed, sizeof(packed));
  }
  endStreaming();
}

using PackFn = void (*)(std::span<const std::byte *const, tileRows>, int64_t,
                        std::byte *);

template <size_t... Indices>
constexpr std::array<PackFn, sizeof...(Indices)>
packFunctions(std::index_sequence<Indices...>) {
  return {packTiles<Indices>...};
}

constexpr auto kPack =
    packFunctions(std::make_index_sequence<kBlockFormats.size()>());

} // namespace

void packFragmentBlocks(
    DataType type, std::span<const std::byte *const, FragmentTile::rows> rows,
    int64_t blocks, std::byte *dst) {
  const BlockFormat *format = findBlockFormat(type);
  assert(format && "only types of blocks");
  kPack[format - kBlockFormats.data()](rows, blocks, dst);
}

} // namespace kf
