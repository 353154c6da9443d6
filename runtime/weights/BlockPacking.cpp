//===- BlockPacking.cpp - Panels of block-quantized weights ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/BlockPacking.h"

#include "runtime/weights/BlockFields.h"
#include "runtime/weights/StreamingCopy.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

namespace kf {
namespace {

/// Rows that are packed together: their words make whole vectors.
constexpr size_t rowsAtOnce = 4;

/// The bytes that chunks of a unit hold of one row: `fields` of `bits` bits,
/// which four bytes make a word of, in turn from the word's lowest bits up.
/// There are `bits` words, 4 to a vector.
template <int bits>
std::array<Words, (bits + 3) / 4> wordsOf(const uint8_t *fields) {
  std::array<Words, 2> in;
  std::memcpy(in.data(), fields, PackedBlock::unit);
  if constexpr (bits == 8) {
    return in;
  } else {
    // Each word goes above the fields of the one before it.
    auto join = [](Words words, int above) {
      Longs pairs = (Longs)words;
      return (Words)(pairs | pairs >> (32 - above));
    };
    Words words = __builtin_shufflevector(join(in[0], bits), join(in[1], bits),
                                          0, 2, 4, 6);
    if constexpr (bits <= 2) {
      words = join(words, 2 * bits);
      words = __builtin_shufflevector(words, words, 0, 2, 0, 2);
    }
    if constexpr (bits == 1)
      words = join(words, 4);
    return {words};
  }
}

/// Rows that are packed together, among those of the panel: `rowsAtOnce`, or,
/// unless it is full, the fewer at the panel's end.
template <bool isFull> struct RowGroup {
  /// What each row has `each` bytes of at `bytes`, side by side at its place
  /// in `field`, where the panel has `each` bytes for each of its rows.
  template <size_t each> void put(const void *bytes, std::byte *field) const {
    std::memcpy(field + first * each, bytes,
                isFull ? rowsAtOnce * each : count * each);
  }

  size_t first; ///< row of the panel
  size_t count;
  size_t rows; ///< of the panel
};

/// Writes `fields` of `bits` bits of one unit of each row to chunks at `dst`.
/// The fields of a row are `stride` after those of the row before.
template <int bits, bool isFull>
void writePlane(const uint8_t *fields, size_t stride, RowGroup<isFull> group,
                std::byte *dst) {
  std::array<std::array<Words, (bits + 3) / 4>, rowsAtOnce> words;
  for (size_t r = 0; r < rowsAtOnce; ++r)
    words[r] = wordsOf<bits>(fields + r * stride);
  for (int chunk = 0; chunk < bits; chunk += 4) {
    // A 4x4 transposition: from words of a row to rows of a word.
    auto at = [&](size_t r) { return words[r][chunk / 4]; };
    Longs low01 = (Longs)__builtin_shufflevector(at(0), at(1), 0, 4, 1, 5);
    Longs low23 = (Longs)__builtin_shufflevector(at(2), at(3), 0, 4, 1, 5);
    Longs high01 = (Longs)__builtin_shufflevector(at(0), at(1), 2, 6, 3, 7);
    Longs high23 = (Longs)__builtin_shufflevector(at(2), at(3), 2, 6, 3, 7);
    const Longs columns[4] = {__builtin_shufflevector(low01, low23, 0, 2),
                              __builtin_shufflevector(low01, low23, 1, 3),
                              __builtin_shufflevector(high01, high23, 0, 2),
                              __builtin_shufflevector(high01, high23, 1, 3)};
    for (int i = 0; i < 4 && chunk + i < bits; ++i)
      group.template put<4>(&columns[i], dst + (chunk + i) * 4 * group.rows);
  }
}

/// Bytes of each row to a word of all rows for each of them.
std::array<uint32_t, 16> transposeBytes(const std::array<Bytes, 4> &rows) {
  typedef uint16_t Halves __attribute__((vector_size(16)));
  std::array<uint32_t, 16> words;
  auto put = [&](int at, Halves upper, Halves lower) {
    const Halves in[2] = {
        __builtin_shufflevector(upper, lower, 0, 8, 1, 9, 2, 10, 3, 11),
        __builtin_shufflevector(upper, lower, 4, 12, 5, 13, 6, 14, 7, 15)};
    std::memcpy(&words[at], in, sizeof(in));
  };
  auto interleaveLow = [](Bytes a, Bytes b) {
    return (Halves)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                           20, 5, 21, 6, 22, 7, 23);
  };
  auto interleaveHigh = [](Bytes a, Bytes b) {
    return (Halves)__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27,
                                           12, 28, 13, 29, 14, 30, 15, 31);
  };
  put(0, interleaveLow(rows[0], rows[1]), interleaveLow(rows[2], rows[3]));
  put(8, interleaveHigh(rows[0], rows[1]), interleaveHigh(rows[2], rows[3]));
  return words;
}

/// Packs one block of each row.
template <size_t Index, bool isFull>
void packBlocks(std::array<const uint8_t *, rowsAtOnce> blocks,
                RowGroup<isFull> group, std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  constexpr PackedBlock packed(format);
  auto putField = [&]<size_t bytes>(int field, int offset) {
    uint8_t fields[rowsAtOnce][bytes];
    for (size_t r = 0; r < rowsAtOnce; ++r)
      std::memcpy(fields[r], blocks[r] + offset, bytes);
    group.template put<bytes>(fields, dst + field * group.rows);
  };
  putField.template operator()<format.scaleBytes()>(packed.scale,
                                                    format.scaleOffset);
  if constexpr (format.minOffset >= 0)
    putField.template operator()<2>(packed.min, format.minOffset);

  uint8_t low[rowsAtOnce][format.elements];
  uint8_t high[rowsAtOnce][format.high.bits != 0 ? format.elements : 1];
  for (size_t r = 0; r < rowsAtOnce; ++r) {
    readPlane<Index, false>(blocks[r], low[r]);
    if (format.isSigned)
      for (uint8_t &field : low[r])
        field ^= 0x80;
    if constexpr (format.high.bits != 0)
      readPlane<Index, true>(blocks[r], high[r]);
  }
  std::array<uint32_t, 16> scales, mins;
  if constexpr (format.subScales != SubScales::None) {
    std::array<Bytes, rowsAtOnce> ofScales, ofMins;
    for (size_t r = 0; r < rowsAtOnce; ++r) {
      SubScaleBytes sub = readSubScales<Index>(blocks[r]);
      ofScales[r] = sub.scales;
      ofMins[r] = sub.mins;
    }
    scales = transposeBytes(ofScales);
    mins = transposeBytes(ofMins);
  }

  constexpr int subBlocks = PackedBlock::unit / format.subBlock;
  for (int unit = 0; unit < format.elements / PackedBlock::unit; ++unit) {
    const int base = packed.firstUnit + unit * packed.unitBytes;
    for (int i = 0; i < subBlocks; ++i) {
      const int number = unit * subBlocks + i;
      auto at = [&](int field) {
        return dst + (base + field + i) * group.rows;
      };
      if constexpr (format.subScales != SubScales::None)
        group.template put<1>(&scales[number], at(packed.subScales));
      if constexpr (format.subScales == SubScales::Packed6)
        group.template put<1>(&mins[number], at(packed.subMins));
    }
    const int first = unit * PackedBlock::unit;
    writePlane<format.low.bits>(low[0] + first, sizeof(low[0]), group,
                                dst + (base + packed.low) * group.rows);
    if constexpr (format.high.bits != 0)
      writePlane<format.high.bits>(high[0] + first, sizeof(high[0]), group,
                                   dst + (base + packed.high) * group.rows);
  }
}

/// Asks for blocks [begin, end) of the first rows.
template <size_t Index>
void fetch(std::span<const std::byte *const> rows, int64_t begin, int64_t end) {
  constexpr int64_t bytes = kBlockFormats[Index].bytes;
  for (const std::byte *row : rows.first(std::min(rowsAtOnce, rows.size())))
    for (int64_t at = begin * bytes; row && at < end * bytes; at += 64)
      __builtin_prefetch(row + at);
}

template <size_t Index>
void packPanel(std::span<const std::byte *const> rows, int64_t blocks,
               std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  const size_t count = rows.size(), step = PackedBlock(format).bytes * count;
  // Some blocks at a time, which the nearest cache holds on their way out.
  constexpr size_t nearest = 16 * 1024;
  constexpr int64_t most = 512 / format.bytes + 1;
  static constexpr uint8_t zeros[most * format.bytes] = {};
  const int64_t tile =
      std::clamp<int64_t>(nearest / std::max<size_t>(step, 1), 1, most);
  std::vector<std::byte> packed(static_cast<size_t>(tile) * step);
  for (int64_t begin = 0; begin < blocks; begin += tile) {
    const int64_t end = std::min(begin + tile, blocks);
    for (size_t first = 0; first < count; first += rowsAtOnce) {
      const size_t valid = std::min(rowsAtOnce, count - first);
      std::array<const uint8_t *, rowsAtOnce> at;
      for (size_t r = 0; r < rowsAtOnce; ++r) {
        const std::byte *row = r < valid ? rows[first + r] : nullptr;
        at[r] =
            row ? reinterpret_cast<const uint8_t *>(row) + begin * format.bytes
                : zeros;
      }
      // What comes next: too many rows for the hardware to follow.
      if (first + rowsAtOnce < count)
        fetch<Index>(rows.subspan(first + rowsAtOnce), begin, end);
      else
        fetch<Index>(rows, end, std::min(end + tile, blocks));
      std::byte *to = packed.data();
      for (int64_t i = begin; i < end; ++i, to += step) {
        if (valid == rowsAtOnce)
          packBlocks<Index>(at, RowGroup<true>{first, valid, count}, to);
        else
          packBlocks<Index>(at, RowGroup<false>{first, valid, count}, to);
        for (const uint8_t *&block : at)
          block += format.bytes;
      }
    }
    streamingCopy(dst + static_cast<size_t>(begin) * step, packed.data(),
                  static_cast<size_t>(end - begin) * step);
  }
  endStreaming();
}

using PanelFn = void (*)(std::span<const std::byte *const>, int64_t,
                         std::byte *);
template <size_t... Indices>
constexpr std::array<PanelFn, sizeof...(Indices)>
makeTable(std::index_sequence<Indices...>) {
  return {packPanel<Indices>...};
}
constexpr auto kPackPanel =
    makeTable(std::make_index_sequence<kBlockFormats.size()>());

} // namespace

void packBlockPanel(DataType type, std::span<const std::byte *const> rows,
                    int64_t blocks, std::byte *dst) {
  const BlockFormat *format = findBlockFormat(type);
  assert(format && "only block types have blocks");
  kPackPanel[format - kBlockFormats.data()](rows, blocks, dst);
}

} // namespace kf
