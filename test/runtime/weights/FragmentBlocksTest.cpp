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
      : type(type), tile(tile),
        scales(tile + findFragmentTile(type)->vectors * 512) {}

  float at(int64_t row, int64_t column) const {
    const int64_t g = row % 8, h = row / 8, u = column / 32, k = column % 32;
    const int64_t t = k % 16 / 4, j = k / 16 * 4 + k % 4;
    const int64_t p = 4 * g + u / 2, q = 2 * h + u % 2;
    auto word = [&](int64_t n) { return wordOf(4 * g + t, n); };
    const int64_t odd = 16 * (j % 2);
    switch (type) {
    case DataType::Q4_0: {
      int code = word(2 * u + h) >> (4 * (j / 2) + odd) & 15;
      return half(8 * p + 2 * q) * static_cast<float>(code - 8);
    }
    case DataType::Q4_K: {
      int code = word(2 * u + h) >> (4 * (j / 2) + odd) & 15;
      int byte = scales[4 * p + q];
      int min = byte >> 6 | (scales[128 + 2 * p + h] >> (u % 2 * 4) & 15) << 2;
      float scale = half(192 + 8 * g + 4 * h) * static_cast<float>(byte & 63);
      float product = scale * static_cast<float>(code);
      return product - half(192 + 8 * g + 4 * h + 2) * static_cast<float>(min);
    }
    case DataType::Q8_0: {
      int code = word(4 * u + 2 * (j / 4) + h) >> (8 * (j % 4 / 2) + odd) & 255;
      return half(8 * p + 2 * q) * static_cast<float>(code - 128);
    }
    default:
      break;
    }
    int code;
    if (h == 0)
      code = word(3 * u + (j < 4 ? 0 : 2)) >> (6 * (j % 4 / 2) + odd) & 63;
    else if (j < 4)
      code = word(3 * u + 1) >> (6 * (j / 2) + odd) & 63;
    else
      code = (word(3 * u + j / 2 % 2) >> (12 + odd) & 15) |
             (word(3 * u + 2) >> (12 + 2 * (j / 2 % 2) + odd) & 3) << 4;
    const int64_t s = column / 16;
    int scale = scales[8 * (4 * g + s % 8 / 2) + 4 * (s / 8) + 2 * h + s % 2];
    return half(256 + 4 * g + 2 * h) * static_cast<float>(scale - 128) *
           static_cast<float>(code - 32);
  }

private:
  uint32_t wordOf(int64_t lane, int64_t number) const {
    uint32_t word;
    std::memcpy(&word, tile + number / 4 * 512 + lane * 16 + number % 4 * 4, 4);
    return word;
  }
  float half(int64_t at) const {
    return halfToFloat(static_cast<uint16_t>(scales[at] | scales[at + 1] << 8));
  }

  DataType type;
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

INSTANTIATE_TEST_SUITE_P(Formats, FragmentBlocks,
                         testing::Values(DataType::Q8_0, DataType::Q4_0,
                                         DataType::Q4_K, DataType::Q6_K),
                         [](const auto &info) {
                           return std::string(nameOf(info.param));
                         });

} // namespace
} // namespace kf
