//===- FragmentBlocksTest.cpp - Blocks in the order of matrix units -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/BlockFormat.h"
#include "runtime/weights/FragmentPacking.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace kf {
namespace {

/// Reads a tile as FragmentTile.h describes it.
class TileReader {
public:
  TileReader(DataType type, const uint8_t *tile)
      : format(*findBlockFormat(type)), tile(tile),
        scales(tile + findFragmentTile(type)->vectors * 512) {}

  float at(int64_t row, int64_t column) const {
    const int64_t g = row % 8, h = row / 8, u = column / 32, k = column % 32;
    const int64_t t = k % 8 / 2, j = k / 8 * 2 + k % 2;
    const int code = codeOf(4 * g + t, u, h, j);
    const float value = static_cast<float>(
        format.table ? format.table[code]
                     : code - (format.isSigned ? 128 : format.zero));
    const int64_t p = 4 * g + u / 2, q = 2 * h + u % 2, s = column / 16;
    // Of formats with a byte for each half of a span.
    const auto both = [&] {
      return scales[8 * (4 * g + s % 8 / 2) + 4 * (s / 8) + 2 * h + s % 2];
    };
    switch (format.subScales) {
    case SubScales::None:
      return half(8 * p + 2 * q) * value +
             (format.minOffset >= 0 ? half(256 + 8 * p + 2 * q) : 0.0f);
    case SubScales::Packed6: {
      const int byte = scales[4 * p + q];
      const int min = byte >> 6 | (scales[128 + 2 * p + h] >> (u % 2 * 4) & 15)
                                      << 2;
      const int64_t d = 192 + 8 * g + 4 * h;
      return half(d) * static_cast<float>(byte & 63) * value -
             half(d + 2) * static_cast<float>(min);
    }
    case SubScales::Nibbles: {
      const int64_t d = 256 + 8 * g + 4 * h;
      return half(d) * static_cast<float>(both() & 15) * value -
             half(d + 2) * static_cast<float>(both() >> 4);
    }
    case SubScales::TopsFirst6:
      return half(128 + 4 * g + 2 * h) *
             static_cast<float>(scales[4 * p + q] - 128) * value;
    default:
      return half(256 + 4 * g + 2 * h) * static_cast<float>(both() - 128) *
             value;
    }
  }

private:
  int codeOf(int64_t lane, int64_t u, int64_t h, int64_t j) const {
    const FragmentCode code = findFragmentCode(
        format, static_cast<int>(u), static_cast<int>(h), static_cast<int>(j));
    uint32_t all = 0;
    for (const CodeBits &bits : {code.low, code.high})
      if (bits.width != 0)
        all |= (wordOf(lane, bits.word) >> bits.bit & ((1u << bits.width) - 1))
               << bits.at;
    return static_cast<int>(all);
  }
  uint32_t wordOf(int64_t lane, int64_t number) const {
    uint32_t word;
    std::memcpy(&word, tile + number / 4 * 512 + lane * 16 + number % 4 * 4, 4);
    return word;
  }
  float half(int64_t at) const {
    return halfToFloat(static_cast<uint16_t>(scales[at] | scales[at + 1] << 8));
  }

  const BlockFormat &format;
  const uint8_t *tile, *scales;
};

class FragmentBlocks : public testing::TestWithParam<DataType> {};

TEST_P(FragmentBlocks, EveryElementIsThatOfItsBlock) {
  const DataType type = GetParam();
  const BlockFormat &format = *findBlockFormat(type);
  const FragmentTile tile = *findFragmentTile(type);
  // One row less than there may be; for small blocks, a tile that is not full.
  const int64_t columns = format.elements == 32 ? 256 + 96 : 512;
  const int64_t blocks = columns / format.elements, absent = 11;
  std::mt19937 random(5);
  std::vector<uint8_t> source(16 * blocks * format.bytes + 1);
  for (uint8_t &byte : source)
    byte = static_cast<uint8_t>(random());
  std::array<const std::byte *, 16> rows;
  std::vector<float> expected(16 * columns);
  for (int64_t row = 0; row < 16; ++row) {
    uint8_t *at = &source[row * blocks * format.bytes + 1];
    // Scales that are numbers.
    for (int64_t i = 0; i < blocks; ++i)
      for (int offset : {format.scaleOffset, format.minOffset})
        if (offset >= 0)
          at[i * format.bytes + offset + 1] &= 0xbb;
    rows[row] =
        row == absent ? nullptr : reinterpret_cast<const std::byte *>(at);
    if (row != absent)
      dequantizeBlocks(type, at, blocks, &expected[row * columns]);
  }
  const int64_t bytes = tile.tilesOf(columns) * tile.bytes;
  std::vector<uint8_t> packed(bytes + 16, 0xcc);
  packFragmentBlocks(type, rows, blocks,
                     reinterpret_cast<std::byte *>(packed.data()));
  EXPECT_EQ(packed[bytes], 0xcc) << "nothing behind the tiles is written";
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t k = 0; k < tile.tilesOf(columns) * 256; ++k)
      ASSERT_EQ(
          TileReader(type, &packed[k / 256 * tile.bytes]).at(row, k % 256),
          k < columns ? expected[row * columns + k] : 0.0f)
          << "row " << row << ", column " << k;
}

TEST_P(FragmentBlocks, EveryBitOfAWordIsOneOfACode) {
  const BlockFormat &format = *findBlockFormat(GetParam());
  std::vector<uint32_t> words(4 * findFragmentTile(GetParam())->vectors);
  for (int u = 0; u < 8; ++u)
    for (int h = 0; h < 2; ++h)
      for (int j = 0; j < 8; ++j) {
        const FragmentCode code = findFragmentCode(format, u, h, j);
        for (const CodeBits &bits : {code.low, code.high}) {
          if (bits.width == 0)
            continue;
          const uint32_t own = ((1u << bits.width) - 1) << bits.bit;
          ASSERT_EQ(words.at(bits.word) & own, 0u) << u << " " << h << " " << j;
          words[bits.word] |= own;
        }
      }
  for (uint32_t word : words)
    EXPECT_EQ(word, 0xffffffffu);
}

/// All types of blocks.
std::vector<DataType> blockTypes() {
  std::vector<DataType> types;
  for (const BlockFormat &format : kBlockFormats)
    if (findFragmentTile(format.type))
      types.push_back(format.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Formats, FragmentBlocks,
                         testing::ValuesIn(blockTypes()), [](const auto &info) {
                           return std::string(nameOf(info.param));
                         });

} // namespace
} // namespace kf
