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
#include <cmath>
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

  float at(int row, int column) const {
    const int g = row % 8, h = row / 8, u = column / 32, k = column % 32;
    const int t = k % 8 / 2, j = k / 8 * 2 + k % 2;
    const int code = codeOf(4 * g + t, u, h, j);
    const float value = static_cast<float>(
        format.table ? format.table[code]
                     : code - (format.isSigned ? 128 : format.zero));
    const FragmentScales own = findFragmentScales(format);
    const auto byte = [&](int64_t at) { return int(scales[at]); };
    if (own.integers == 0) {
      const int64_t d = own.blockAt(g, h, u);
      return half(d) * value +
             (own.minOffset != 0 ? half(d + own.minOffset) : 0.0f);
    }
    const int number = own.integers == 8 ? u : column / 16;
    const int integer = byte(own.integerAt(g, h, number));
    if (own.areExponents)
      return (integer == 255 ? NAN : std::ldexp(1.0f, integer - 128)) * value;
    const int64_t d = own.blockAt(g, h, 0);
    if (own.minOffset == 0)
      return half(d) * static_cast<float>(integer - own.above) * value;
    int min = integer >> own.bits;
    if (own.restOffset != 0)
      min |= (byte(own.restAt(g, h, u / 2)) >> u % 2 * 4 & 15)
             << (8 - own.bits);
    return half(d) * static_cast<float>(integer & ((1 << own.bits) - 1)) *
               value -
           half(d + own.minOffset) * static_cast<float>(min);
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
    // Scales that are numbers, or all there are of a byte's borders.
    for (int64_t i = 0; i < blocks; ++i)
      for (int offset : {format.scaleOffset, format.minOffset})
        if (offset >= 0 && format.scale == BlockScale::Half)
          at[i * format.bytes + offset + 1] &= 0xbb;
        else if (offset >= 0 && i < 4)
          at[i * format.bytes + offset] = std::array{0, 1, 254, 255}[i];
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
    for (int64_t k = 0; k < tile.tilesOf(columns) * 256; ++k) {
      const float found =
          TileReader(type, &packed[k / 256 * tile.bytes]).at(row, k % 256);
      const float value = k < columns ? expected[row * columns + k] : 0.0f;
      if (std::isnan(value))
        ASSERT_TRUE(std::isnan(found)) << "row " << row << ", column " << k;
      else
        ASSERT_EQ(found, value) << "row " << row << ", column " << k;
    }
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

TEST_P(FragmentBlocks, EveryByteOfScalesIsOneOfARow) {
  const BlockFormat &format = *findBlockFormat(GetParam());
  const FragmentScales scales = findFragmentScales(format);
  std::vector<int> uses(scales.bytes);
  for (int g = 0; g < 8; ++g)
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < scales.integers; ++i)
        ++uses.at(scales.integerAt(g, h, i));
      for (int i = 0; scales.restOffset != 0 && i < scales.integers / 2; ++i)
        ++uses.at(scales.restAt(g, h, i));
      const int blocks = scales.areExponents ? 0 : scales.integers ? 1 : 8;
      for (int u = 0; u < blocks; ++u)
        for (int part = 0; part <= (scales.minOffset != 0); ++part)
          for (int byte = 0; byte < 2; ++byte)
            ++uses.at(scales.blockAt(g, h, u) + part * scales.minOffset + byte);
    }
  EXPECT_EQ(uses, std::vector<int>(scales.bytes, 1));
}

/// What a lane reads with its neighbours lies as readers ask for it: of four
/// lanes, rows g and g + 8 behind those of the four before.
TEST_P(FragmentBlocks, ScalesOfALaneLieTogether) {
  const FragmentScales scales =
      findFragmentScales(*findBlockFormat(GetParam()));
  for (int g = 0; g < 8; ++g)
    for (int t = 0; t < 4; ++t) {
      const int lane = (4 * g + t) * scales.pairBytes() / 4;
      for (int h = 0; h < 2; ++h) {
        for (int i = 0; i < scales.integers; ++i) {
          if (i % 8 / 2 != t)
            continue;
          EXPECT_EQ(scales.integerAt(g, h, i),
                    lane + i / 8 * 4 + 2 * h + i % 2);
          if (scales.restOffset != 0) {
            EXPECT_EQ(scales.restAt(g, h, i / 2),
                      scales.restOffset + lane / 2 + h);
          }
        }
        if (scales.integers == 0) {
          EXPECT_EQ(scales.blockAt(g, h, 2 * t), lane + 4 * h);
          EXPECT_EQ(scales.blockAt(g, h, 2 * t + 1), lane + 4 * h + 2);
        } else if (!scales.areExponents) {
          EXPECT_EQ(scales.blockAt(g, h, 0),
                    scales.blockOffset + scales.blockPairBytes() * g +
                        scales.blockPairBytes() / 2 * h);
        }
      }
    }
}

/// Sizes and offsets, for a format of each class: where an offset is wrong,
/// packing is wrong with it, and the tests above compare these alone.
TEST(FragmentScales, OffsetsOfEachClass) {
  struct Offsets {
    DataType type;
    int integers, bits, rest, block, min, bytes;
  };
  for (const Offsets &expected : {
           Offsets{DataType::Q4_0, 0, 8, 0, 0, 0, 256},
           Offsets{DataType::Q4_1, 0, 8, 0, 0, 256, 512},
           Offsets{DataType::Q4_K, 8, 6, 128, 192, 2, 256},
           Offsets{DataType::IQ4_XS, 8, 8, 0, 128, 0, 160},
           Offsets{DataType::MXFP4, 8, 8, 0, 0, 0, 128},
           Offsets{DataType::Q6_K, 16, 8, 0, 256, 0, 288},
           Offsets{DataType::Q2_K, 16, 4, 0, 256, 2, 320},
       }) {
    SCOPED_TRACE(nameOf(expected.type));
    const FragmentScales scales =
        findFragmentScales(*findBlockFormat(expected.type));
    EXPECT_EQ(scales.integers, expected.integers);
    EXPECT_EQ(scales.bits, expected.bits);
    EXPECT_EQ(scales.restOffset, expected.rest);
    EXPECT_EQ(scales.blockOffset, expected.block);
    EXPECT_EQ(scales.minOffset, expected.min);
    EXPECT_EQ(scales.bytes, expected.bytes);
  }
}

/// What FragmentTile.h asserts of all formats.
TEST(FragmentScales, ShapesThatReadersKnow) {
  const BlockFormat known = *findBlockFormat(DataType::Q4_K);
  EXPECT_TRUE(hasKnownFragmentShape(known));
  BlockFormat format = known;
  format.minIsNegative = false;
  EXPECT_FALSE(hasKnownFragmentShape(format));
  format = known;
  format.elements = 128;
  EXPECT_FALSE(hasKnownFragmentShape(format));
  format = known;
  format.subBlock = 64;
  EXPECT_FALSE(hasKnownFragmentShape(format));
  format = known;
  format.subBlock = 16; // the rest of minimums of half spans
  EXPECT_FALSE(hasKnownFragmentShape(format));
  format = *findBlockFormat(DataType::MXFP4);
  EXPECT_TRUE(hasKnownFragmentShape(format));
  format.scale = BlockScale::Half;
  EXPECT_FALSE(hasKnownFragmentShape(format));
}

/// All types of blocks.
std::vector<DataType> blockTypes() {
  std::vector<DataType> types;
  for (const BlockFormat &format : kBlockFormats)
    types.push_back(format.type);
  return types;
}

INSTANTIATE_TEST_SUITE_P(Formats, FragmentBlocks,
                         testing::ValuesIn(blockTypes()), [](const auto &info) {
                           return std::string(nameOf(info.param));
                         });

} // namespace
} // namespace kf
