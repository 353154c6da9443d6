//===- BlockPacking.cpp - Panels of block-quantized weights ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/BlockPacking.h"

#include <cassert>
#include <cstring>
#include <utility>

namespace kf {
namespace {

/// The fields of `plane` of one block, a byte each.
template <size_t Index, bool High>
void readPlane(const uint8_t *block, uint8_t *fields) {
  constexpr BlockFormat format = kBlockFormats[Index];
  constexpr BitPlane plane = High ? format.high : format.low;
  constexpr int mask = (1 << plane.bits) - 1;
  // Runs of fields that lie at the same bit of consecutive bytes.
  for (int first = 0; first < format.elements; first += plane.run) {
    const uint8_t *bytes = block + plane.byteOf(first);
    int shift = plane.bitOf(first);
    for (int i = 0; i < plane.run; ++i)
      fields[first + i] = static_cast<uint8_t>(bytes[i] >> shift & mask);
  }
}

/// Writes a unit's fields of `bits` bits as row `row` of chunks at `dst`.
template <int bits>
void writePlane(const uint8_t *fields, size_t row, size_t rows,
                std::byte *dst) {
  constexpr int quads = 8 / bits; // in a chunk
  for (int chunk = 0; chunk < PackedBlock::unit / 4 / quads; ++chunk) {
    uint32_t packed = 0;
    for (int t = 0; t < quads; ++t) {
      uint32_t quad;
      std::memcpy(&quad, fields + 4 * (chunk * quads + t), 4);
      packed |= quad << (bits * t);
    }
    std::memcpy(dst + (chunk * rows + row) * 4, &packed, 4);
  }
}

/// Packs one block of row `row`.
template <size_t Index>
void packRow(const uint8_t *block, size_t row, size_t rows, std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  constexpr PackedBlock packed(format);
  auto put = [&](int field, int index, auto value) {
    std::memcpy(dst + field * rows + (index * rows + row) * sizeof(value),
                &value, sizeof(value));
  };
  auto half = [&](int offset) {
    uint16_t bits;
    std::memcpy(&bits, block + offset, 2);
    return bits;
  };
  put(packed.scale, 0, half(format.scaleOffset));
  if (format.minOffset >= 0)
    put(packed.min, 0, half(format.minOffset));

  uint8_t low[format.elements];
  readPlane<Index, false>(block, low);
  if (format.isSigned)
    for (uint8_t &field : low)
      field ^= 0x80;
  uint8_t high[format.elements];
  if constexpr (format.high.bits != 0)
    readPlane<Index, true>(block, high);

  constexpr int subBlocks = PackedBlock::unit / format.subBlock;
  for (int unit = 0; unit < format.elements / PackedBlock::unit; ++unit) {
    const int base = packed.firstUnit + unit * packed.unitBytes;
    if constexpr (format.subScales != SubScales::None) {
      for (int i = 0; i < subBlocks; ++i) {
        BlockFormat::SubScale sub =
            format.subScaleAt(block, unit * subBlocks + i);
        bool nibbles = format.subScales == SubScales::Nibbles;
        put(base + packed.subScales, i,
            static_cast<uint8_t>(nibbles ? sub.scale | sub.min << 4
                                         : sub.scale));
        if (format.subScales == SubScales::Packed6)
          put(base + packed.subMins, i, static_cast<uint8_t>(sub.min));
      }
    }
    writePlane<format.low.bits>(low + unit * PackedBlock::unit, row, rows,
                                dst + (base + packed.low) * rows);
    if constexpr (format.high.bits != 0)
      writePlane<format.high.bits>(high + unit * PackedBlock::unit, row, rows,
                                   dst + (base + packed.high) * rows);
  }
}

template <size_t Index>
void packPanel(std::span<const std::byte *const> rows, int64_t blocks,
               std::byte *dst) {
  constexpr BlockFormat format = kBlockFormats[Index];
  const size_t step = rows.size() * PackedBlock(format).bytes;
  for (const std::byte *row : rows)
    if (!row) {
      std::memset(dst, 0, step * static_cast<size_t>(blocks));
      break;
    }
  for (int64_t i = 0; i < blocks; ++i, dst += step)
    for (size_t row = 0; row < rows.size(); ++row)
      if (rows[row])
        packRow<Index>(reinterpret_cast<const uint8_t *>(rows[row]) +
                           i * format.bytes,
                       row, rows.size(), dst);
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
