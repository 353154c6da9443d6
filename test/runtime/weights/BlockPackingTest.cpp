//===- BlockPackingTest.cpp - Panels of block-quantized weights -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/BlockPacking.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kf {
namespace {

/// Field `i` of `bits` bits of row `row`, as PackedBlock's comment describes
/// planes.
int fieldOf(const uint8_t *plane, int bits, int i, size_t row, size_t rows) {
  int covered = 32 / bits; // elements of a chunk
  int chunk = i / covered, t = i % covered / 4, j = i % 4;
  uint8_t byte = plane[(chunk * rows + row) * 4 + j];
  return byte >> (bits * t) & ((1 << bits) - 1);
}

class BlockPacking : public testing::TestWithParam<BlockFormat> {};

/// Packs `blocks` blocks of each of `rows` rows, all but row `absent` of which
/// exist, and looks at every field of the result.
void expectEveryField(const BlockFormat &format, size_t rows, size_t blocks,
                      size_t absent) {
  const PackedBlock packed(format);
  const auto scaleBytes = static_cast<size_t>(format.scaleBytes());
  std::mt19937 random(7);
  std::vector<uint8_t> source(rows * blocks * format.bytes);
  for (uint8_t &byte : source)
    byte = static_cast<uint8_t>(random());
  std::vector<const std::byte *> pointers;
  for (size_t row = 0; row < rows; ++row)
    pointers.push_back(reinterpret_cast<const std::byte *>(
        row == absent ? nullptr : &source[row * blocks * format.bytes]));
  const size_t bytes = rows * blocks * packed.bytes;
  std::vector<uint8_t> result(bytes + 1, 0xcc);
  packBlockPanel(format.type, {.rows = pointers}, blocks,
                 reinterpret_cast<std::byte *>(result.data()));
  EXPECT_EQ(result[bytes], 0xcc) << "nothing behind the panel is written";

  for (size_t block = 0; block < blocks; ++block)
    for (size_t row = 0; row < rows; ++row) {
      const uint8_t *from = &source[(row * blocks + block) * format.bytes];
      const uint8_t *to = &result[block * rows * packed.bytes];
      auto byteOf = [&](int field, size_t index) {
        return to[field * rows + index];
      };
      if (row == absent) {
        for (size_t i = 0; i < scaleBytes; ++i)
          EXPECT_EQ(byteOf(packed.scale, scaleBytes * row + i), 0);
        continue;
      }
      for (size_t i = 0; i < scaleBytes; ++i)
        EXPECT_EQ(byteOf(packed.scale, scaleBytes * row + i),
                  from[format.scaleOffset + i]);
      for (size_t i = 0; i < 2 && format.minOffset >= 0; ++i)
        EXPECT_EQ(byteOf(packed.min, 2 * row + i), from[format.minOffset + i]);
      auto unitAt = [&](int element) {
        return packed.firstUnit +
               element / PackedBlock::unit * packed.unitBytes;
      };
      for (int sub = 0; sub < format.subBlocks(); ++sub) {
        BlockFormat::SubScale expected = format.subScaleAt(from, sub);
        const int unit = unitAt(sub * format.subBlock);
        const int number = sub % (PackedBlock::unit / format.subBlock);
        uint8_t scale = byteOf(unit + packed.subScales, number * rows + row);
        uint8_t min = byteOf(unit + packed.subMins, number * rows + row);
        if (format.subScales == SubScales::Nibbles)
          EXPECT_EQ(scale, expected.scale | expected.min << 4);
        else if (format.subScales != SubScales::None)
          EXPECT_EQ(scale, static_cast<uint8_t>(expected.scale));
        if (format.subScales == SubScales::Packed6)
          EXPECT_EQ(min, expected.min);
      }
      for (int i = 0; i < format.elements; ++i) {
        auto field = [&](int offset, int bits) {
          return fieldOf(to + (unitAt(i) + offset) * rows, bits,
                         i % PackedBlock::unit, row, rows);
        };
        int code = field(packed.low, format.low.bits);
        if (format.high.bits)
          code |= field(packed.high, format.high.bits) << format.low.bits;
        int expected = format.codeAt(from, i);
        ASSERT_EQ(code, format.isSigned ? expected ^ 0x80 : expected)
            << "element " << i;
      }
    }
}

TEST_P(BlockPacking, KeepsEveryField) { expectEveryField(GetParam(), 8, 3, 5); }

/// Rows are packed by fours, and blocks in runs that stay in a cache.
TEST_P(BlockPacking, KeepsEveryFieldOfAnyNumberOfRowsAndBlocks) {
  for (size_t rows : {1, 3, 6, 13, 32, 47})
    expectEveryField(GetParam(), rows, 61, 2);
}

TEST_P(BlockPacking, StaysNearTheFormatsSize) {
  const BlockFormat &format = GetParam();
  EXPECT_GE(PackedBlock(format).bytes, format.bytes);
  EXPECT_LE(PackedBlock(format).bytes, format.bytes * 1.04)
      << "more than the 4 bytes that 6-bit scales become bytes with";
}

INSTANTIATE_TEST_SUITE_P(Formats, BlockPacking,
                         testing::ValuesIn(kBlockFormats),
                         [](const testing::TestParamInfo<BlockFormat> &info) {
                           return std::string(nameOf(info.param.type));
                         });

} // namespace
} // namespace kf
