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
#include <memory>
#include <type_traits>
#include <utility>

namespace kf {
namespace {

/// Rows that are packed together: a vector has a word of 4 bytes of each. Twice
/// as many, in vectors of AVX2, take as long: memory is what packing waits for.
constexpr size_t rowsAtOnce = 4;
using RowBlocks = std::array<const uint8_t *, rowsAtOnce>;

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

/// The `count` words of 4 bytes from `offset` on in a block of each row, a
/// vector for each: what is done with it is done with all rows at once.
template <size_t count>
std::array<Words, count> readWords(const RowBlocks &blocks, int offset) {
  std::array<Words, count> words;
  if constexpr (count % 4 != 0) {
    for (size_t i = 0; i < count; ++i)
      for (size_t r = 0; r < rowsAtOnce; ++r) {
        uint32_t word;
        std::memcpy(&word, blocks[r] + offset + 4 * i, sizeof(word));
        words[i][r] = word;
      }
    return words;
  }
  for (size_t i = 0; i + 4 <= count; i += 4) {
    // A transposition of 4x4 words.
    std::array<Words, rowsAtOnce> in;
    for (size_t r = 0; r < rowsAtOnce; ++r)
      std::memcpy(&in[r], blocks[r] + offset + 4 * i, sizeof(Words));
    Longs low01 = (Longs)__builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
    Longs low23 = (Longs)__builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
    Longs high01 = (Longs)__builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
    Longs high23 = (Longs)__builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
    words[i] = (Words)__builtin_shufflevector(low01, low23, 0, 2);
    words[i + 1] = (Words)__builtin_shufflevector(low01, low23, 1, 3);
    words[i + 2] = (Words)__builtin_shufflevector(high01, high23, 0, 2);
    words[i + 3] = (Words)__builtin_shufflevector(high01, high23, 1, 3);
  }
  return words;
}

/// Exchanges the bits whose numbers differ in that one has digit `high` and
/// the other digit `low`.
template <int high, int low> Words swapDigits(Words bits) {
  constexpr int distance = (1 << high) - (1 << low);
  constexpr uint32_t mask = [] {
    uint32_t result = 0;
    for (int bit = 0; bit < 32; ++bit)
      if ((bit >> high & 1) == 0 && (bit >> low & 1) == 1)
        result |= UINT32_C(1) << bit;
    return result;
  }();
  const Words differing = (bits >> distance ^ bits) & mask;
  return bits ^ differing ^ differing << distance;
}

/// Writes the fields of a plane of unit `unit` of each row to chunks at `dst`:
/// four fields, which are in as many bytes, go to the same bits of a word.
/// `flipped` are bits of each byte that change.
template <BitPlane plane, uint8_t flipped, size_t count, bool isFull>
void writePlane(const std::array<Words, count> &words, int unit,
                RowGroup<isFull> group, std::byte *dst) {
  constexpr int bits = plane.bits;
  constexpr uint32_t bytes = 0x01010101;
#pragma clang loop unroll(full)
  for (int chunk = 0; chunk < bits; ++chunk) {
    Words out = {};
    if constexpr (plane.run == 1 && bits == 1) {
      static_assert(flipped == 0);
      // Bit 4 t + j goes to bit 8 j + t.
      out = swapDigits<4, 1>(words[unit]);
      out = swapDigits<3, 1>(out);
      out = swapDigits<3, 0>(out);
      out = swapDigits<2, 0>(out);
    } else {
      static_assert(bits == 8 || plane.run % 4 == 0,
                    "four fields are in as many bytes");
#pragma clang loop unroll(full)
      for (int t = 0; t < 8 / bits; ++t) {
        const int first = unit * PackedBlock::unit + chunk * 32 / bits + 4 * t;
        const int from = plane.bitOf(first), to = bits * t;
        Words word = words[(plane.byteOf(first) - plane.offset) / 4];
        word = from > to ? word >> (from - to) : word << (to - from);
        out |= word & (((1u << bits) - 1) << to) * bytes;
      }
      out ^= flipped * bytes;
    }
    group.template put<4>(&out, dst + chunk * 4 * group.rows);
  }
}

/// Writes the `bytes` bytes at `offset` of each row's block, a scale, to
/// `field`.
template <size_t bytes, bool isFull>
void putScale(const RowBlocks &blocks, int offset, RowGroup<isFull> group,
              std::byte *field) {
  // Joined in a register: a load of what several stores wrote waits for them.
  uint64_t joined = 0;
  for (size_t r = 0; r < rowsAtOnce; ++r) {
    std::conditional_t<bytes == 1, uint8_t, uint16_t> one;
    std::memcpy(&one, blocks[r] + offset, bytes);
    joined |= static_cast<uint64_t>(one) << (8 * bytes * r);
  }
  group.template put<bytes>(&joined, field);
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
void packBlocks(const RowBlocks &blocks, RowGroup<isFull> group,
                std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  constexpr PackedBlock packed(format);
  putScale<format.scaleBytes()>(blocks, format.scaleOffset, group,
                                dst + packed.scale * group.rows);
  if constexpr (format.minOffset >= 0)
    putScale<2>(blocks, format.minOffset, group, dst + packed.min * group.rows);

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

  constexpr BitPlane low = format.low, high = format.high;
  const auto wordsOfLow =
      readWords<format.elements * low.bits / 32>(blocks, low.offset);
  const auto wordsOfHigh =
      readWords<format.elements * high.bits / 32>(blocks, high.offset);
  constexpr int subBlocks = PackedBlock::unit / format.subBlock;
#pragma clang loop unroll(full)
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
    writePlane<low, format.isSigned ? 0x80 : 0>(
        wordsOfLow, unit, group, dst + (base + packed.low) * group.rows);
    if constexpr (high.bits != 0)
      writePlane<high, 0>(wordsOfHigh, unit, group,
                          dst + (base + packed.high) * group.rows);
  }
}

/// Packs `blocks` blocks of each row, the first of which are at `rows`.
template <size_t Index, bool isFull>
void packGroup(RowBlocks rows, RowGroup<isFull> group, int64_t blocks,
               std::byte *dst, ReadAhead<> &ahead) {
  constexpr BlockFormat format = kBlockFormats[Index];
  for (int64_t i = 0; i < blocks; ++i) {
    packBlocks<Index>(rows, group, dst);
    for (const uint8_t *&row : rows)
      row += format.bytes;
    dst += PackedBlock(format).bytes * group.rows;
    ahead.step(static_cast<int64_t>(group.count) * format.bytes);
  }
}

template <size_t Index>
void packPanel(const PanelRows &panel, int64_t blocks, std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  const std::span<const std::byte *const> rows = panel.rows;
  const size_t count = rows.size(), step = PackedBlock(format).bytes * count;
  // Some blocks at a time, which the nearest cache holds on their way out: few,
  // so that reading and writing go on together.
  constexpr size_t nearest = 4 * 1024;
  constexpr int64_t most = 512 / format.bytes + 1;
  static constexpr uint8_t zeros[most * format.bytes] = {};
  const int64_t tile =
      std::clamp<int64_t>(nearest / std::max<size_t>(step, 1), 1, most);
  const auto packed = std::make_unique_for_overwrite<std::byte[]>(
      static_cast<size_t>(tile) * step);
  ReadAhead ahead(panel, blocks * format.bytes);
  for (int64_t begin = 0; begin < blocks; begin += tile) {
    const int64_t tileBlocks = std::min(tile, blocks - begin);
    for (size_t first = 0; first < count; first += rowsAtOnce) {
      const size_t valid = std::min(rowsAtOnce, count - first);
      RowBlocks at;
      for (size_t r = 0; r < rowsAtOnce; ++r) {
        const std::byte *row = r < valid ? rows[first + r] : nullptr;
        at[r] =
            row ? reinterpret_cast<const uint8_t *>(row) + begin * format.bytes
                : zeros;
      }
      if (valid == rowsAtOnce)
        packGroup<Index>(at, RowGroup<true>{first, valid, count}, tileBlocks,
                         packed.get(), ahead);
      else
        packGroup<Index>(at, RowGroup<false>{first, valid, count}, tileBlocks,
                         packed.get(), ahead);
    }
    streamingCopy(dst + static_cast<size_t>(begin) * step, packed.get(),
                  static_cast<size_t>(tileBlocks) * step);
  }
  endStreaming();
}

using PanelFn = void (*)(const PanelRows &, int64_t, std::byte *);
template <size_t... Indices>
constexpr std::array<PanelFn, sizeof...(Indices)>
makeTable(std::index_sequence<Indices...>) {
  return {packPanel<Indices>...};
}
constexpr auto kPackPanel =
    makeTable(std::make_index_sequence<kBlockFormats.size()>());

} // namespace

void packBlockPanel(DataType type, const PanelRows &panel, int64_t blocks,
                    std::byte *dst) {
  const BlockFormat *format = findBlockFormat(type);
  assert(format && "only block types have blocks");
  kPackPanel[format - kBlockFormats.data()](panel, blocks, dst);
}

} // namespace kf
