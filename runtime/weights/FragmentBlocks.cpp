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

constexpr int64_t tileRows = FragmentTile::rows, half = tileRows / 2;
constexpr int64_t tileColumns = 256, spans = tileColumns / FragmentTile::span;

/// What a row has of a tile; all zeros where there is no row, or no block.
struct TileRow {
  alignas(16) uint8_t codes[tileColumns] = {};
  uint8_t scales[16] = {}, mins[8] = {}; ///< of sub-blocks
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
    std::memcpy(&row.d[i], block + format.scaleOffset, 2);
    if constexpr (format.minOffset >= 0)
      std::memcpy(&row.m[i], block + format.minOffset, 2);
    if constexpr (format.subScales != SubScales::None) {
      SubScaleBytes sub = readSubScales<Index>(block);
      std::memcpy(row.scales, &sub.scales, format.subBlocks());
      if constexpr (format.subScales == SubScales::Packed6)
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
void writeScales(const TileRow &row, int64_t number, std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  constexpr bool hasMin = format.minOffset >= 0;
  const int64_t g = number % half, h = number / half;
  auto put = [&](int64_t at, const auto &value) {
    std::memcpy(dst + at, &value, sizeof(value));
  };
  auto place = [&](int64_t u) {
    return 8 * (4 * g + u / 2) + 4 * h + u % 2 * 2;
  };
  if constexpr (format.subScales == SubScales::None) {
    for (int64_t u = 0; u < spans; ++u) {
      put(place(u), row.d[u]);
      if constexpr (hasMin)
        put(256 + place(u), row.m[u]);
    }
  } else if constexpr (format.subScales == SubScales::Packed6) {
    for (int64_t u = 0; u < spans; ++u)
      put(place(u) / 2, uint8_t(row.scales[u] | row.mins[u] << 6));
    // The even span has the low half of the byte, the odd one the other.
    for (int64_t u = 0; u < spans; u += 2)
      put(128 + place(u) / 4,
          uint8_t(row.mins[u] >> 2 | row.mins[u + 1] >> 2 << 4));
    put(192 + 8 * g + 4 * h, row.d[0]);
    put(192 + 8 * g + 4 * h + 2, row.m[0]);
  } else if constexpr (format.subScales == SubScales::TopsFirst6) {
    for (int64_t u = 0; u < spans; ++u)
      put(place(u) / 2, uint8_t(row.scales[u] ^ 0x80));
    put(128 + 4 * g + 2 * h, row.d[0]);
  } else {
    constexpr uint8_t above = format.subScales == SubScales::Nibbles ? 0 : 0x80;
    for (int64_t s = 0; s < 16; ++s)
      put(8 * (4 * g + s % 8 / 2) + 4 * (s / 8) + 2 * h + s % 2,
          uint8_t(row.scales[s] ^ above));
    put(256 + (hasMin ? 8 : 4) * g + (hasMin ? 4 : 2) * h, row.d[0]);
    if constexpr (hasMin)
      put(256 + 8 * g + 4 * h + 2, row.m[0]);
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
    for (int64_t r = 0; r < tileRows; ++r)
      if (rows[r])
        writeScales<Index>(read[r], r, packed + tile.vectors * 512);
    streamingCopy(dst, packed, sizeof(packed));
  }
  endStreaming();
}

using PackFn = void (*)(std::span<const std::byte *const, tileRows>, int64_t,
                        std::byte *);

/// Null where the format has no tiles.
template <size_t Index> constexpr PackFn packFunction() {
  if constexpr (findFragmentTile(kBlockFormats[Index].type))
    return packTiles<Index>;
  return nullptr;
}

template <size_t... Indices>
constexpr std::array<PackFn, sizeof...(Indices)>
packFunctions(std::index_sequence<Indices...>) {
  return {packFunction<Indices>()...};
}

constexpr auto kPack =
    packFunctions(std::make_index_sequence<kBlockFormats.size()>());

} // namespace

void packFragmentBlocks(
    DataType type, std::span<const std::byte *const, FragmentTile::rows> rows,
    int64_t blocks, std::byte *dst) {
  const BlockFormat *format = findBlockFormat(type);
  assert(format && findFragmentTile(type) && "only some types have tiles");
  kPack[format - kBlockFormats.data()](rows, blocks, dst);
}

} // namespace kf
