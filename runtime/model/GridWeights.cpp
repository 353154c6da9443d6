//===- GridWeights.cpp - Tensors of GGUF's grids --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GridWeights.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/io/GgufFormat.h"
#include "runtime/weights/BlockEncoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdio>
#include <span>

using namespace kf;
using namespace kf::quantize;

namespace {

// Rows of tables: of each element the number of its magnitude, 3 bits for one
// of eight and 2 for one of three, the first element's lowest.
#include "runtime/model/Grids.inc"

constexpr int kElements = 256, kHalf = 16;
constexpr int kHalves = kElements / kHalf;

/// A block: element i is d * factor * scales[i / 16] * values[i].
struct GridBlock {
  float d = 0;
  std::array<int, kHalves> scales = {}; ///< odd, 1 to 31
  std::array<int, kElements> values = {};
};

/// Where a format has what a GridBlock is of; offsets are bytes of a block.
struct GridFormat {
  std::string_view name; ///< ggml's
  std::span<const uint16_t> grid;
  std::array<int, 8> magnitudes;
  int bits;      ///< of a magnitude's number
  float factor;  ///< of all elements
  DataType into; ///< what it is presented as
  void (*read)(const GridFormat &, const uint8_t *, GridBlock &);

  int perRow() const { return bits == 3 ? 4 : 8; }
  /// Elements that row number `row` of the table stands for.
  void put(int row, int first, GridBlock &block) const {
    for (int i = 0; i < perRow(); ++i)
      block.values[first + i] =
          magnitudes[grid[row] >> bits * i & ((1 << bits) - 1)];
  }
};

/// Bit i of `signs` is whether element `first` + i, of eight, is negative.
void putSigns(int signs, int first, GridBlock &block) {
  for (int i = 0; i < 8; ++i)
    if (signs >> i & 1)
      block.values[first + i] *= -1;
}

/// Eight signs of which seven are stored: an even number of them is negative.
int evenSigns(uint32_t seven) {
  return static_cast<int>(seven | std::popcount(seven) % 2u << 7);
}

/// The scale of half `half` of 32 elements, or of `perScale` of them together.
void putNibbles(const uint8_t *bytes, int perScale, GridBlock &block) {
  for (int half = 0; half < kHalves; ++half) {
    const int number = half / perScale;
    block.scales[half] = 1 + 2 * (bytes[number / 2] >> number % 2 * 4 & 15);
  }
}

/// A word of 32 elements: four times seven signs, and a scale in 4 bits.
void putWord(const uint8_t *bytes, int number, GridBlock &block) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  for (int i = 0; i < 4; ++i)
    putSigns(evenSigns(word >> 7 * i & 127), 32 * number + 8 * i, block);
  block.scales[2 * number] = block.scales[2 * number + 1] =
      static_cast<int>(1 + 2 * (word >> 28));
}

void readIq3S(const GridFormat &format, const uint8_t *bytes,
              GridBlock &block) {
  const uint8_t *low = bytes + 2, *high = bytes + 66, *signs = bytes + 74;
  for (int i = 0; i < kElements / 4; ++i)
    format.put(low[i] | (high[i / 8] >> i % 8 & 1) << 8, 4 * i, block);
  for (int i = 0; i < kElements / 8; ++i)
    putSigns(signs[i], 8 * i, block);
  putNibbles(bytes + 106, 2, block);
}

void readIq3Xxs(const GridFormat &format, const uint8_t *bytes,
                GridBlock &block) {
  for (int i = 0; i < kElements / 4; ++i)
    format.put(bytes[2 + i], 4 * i, block);
  for (int i = 0; i < kElements / 32; ++i)
    putWord(bytes + 66 + 4 * i, i, block);
}

void readIq2Xxs(const GridFormat &format, const uint8_t *bytes,
                GridBlock &block) {
  for (int i = 0; i < kElements / 32; ++i) {
    const uint8_t *of = bytes + 2 + 8 * i;
    for (int k = 0; k < 4; ++k)
      format.put(of[k], 32 * i + 8 * k, block);
    putWord(of + 4, i, block);
  }
}

void readIq2Xs(const GridFormat &format, const uint8_t *bytes,
               GridBlock &block) {
  for (int i = 0; i < kElements / 8; ++i) {
    const int word = bytes[2 + 2 * i] | bytes[3 + 2 * i] << 8;
    format.put(word & 511, 8 * i, block);
    putSigns(evenSigns(static_cast<uint32_t>(word) >> 9), 8 * i, block);
  }
  putNibbles(bytes + 66, 1, block);
}

void readIq2S(const GridFormat &format, const uint8_t *bytes,
              GridBlock &block) {
  const uint8_t *low = bytes + 2, *signs = bytes + 34, *high = bytes + 66;
  for (int i = 0; i < kElements / 8; ++i) {
    format.put(low[i] | (high[i / 4] >> i % 4 * 2 & 3) << 8, 8 * i, block);
    putSigns(signs[i], 8 * i, block);
  }
  putNibbles(bytes + 74, 1, block);
}

// A number of two bits is below 3 in every row.
constexpr std::array<int, 8> kThree = {8, 25, 43};

constexpr GridFormat kGrids[] = {
    {"IQ3_S",
     kIq3S,
     {1, 3, 5, 7, 9, 11, 13, 15},
     3,
     1,
     DataType::Q6_K,
     readIq3S},
    // Half of the magnitudes that ggml has, times half of its factor.
    {"IQ3_XXS",
     kIq3Xxs,
     {2, 6, 10, 14, 18, 22, 26, 31},
     3,
     0.5f,
     DataType::Q6_K,
     readIq3Xxs},
    {"IQ2_XXS", kIq2Xxs, kThree, 2, 0.125f, DataType::Q8_0, readIq2Xxs},
    {"IQ2_XS", kIq2Xs, kThree, 2, 0.125f, DataType::Q8_0, readIq2Xs},
    {"IQ2_S", kIq2S, kThree, 2, 0.125f, DataType::Q8_0, readIq2S}};

const GridFormat *findGrid(const GgmlType *type) {
  if (!type)
    return nullptr;
  for (const GridFormat &format : kGrids)
    if (format.name == type->name)
      return &format;
  return nullptr;
}

/// Writes a block in what it is presented as, all zeros before.
void write(const GridFormat &format, const GridBlock &block, uint8_t *dst) {
  const float d = block.d * format.factor;
  if (format.into == DataType::Q6_K) {
    BlockEncoder<DataType::Q6_K> encoder(dst);
    encoder.putScale(d);
    for (int half = 0; half < kHalves; ++half)
      encoder.putSubScale(half, block.scales[half], 0);
    for (int i = 0; i < kElements; ++i)
      encoder.putCode(i, block.values[i] + encoder.format.zero);
    return;
  }
  float values[kElements];
  for (int i = 0; i < kElements; ++i)
    values[i] = d * static_cast<float>(block.scales[i / kHalf]) *
                static_cast<float>(block.values[i]);
  quantizeBlocks(format.into, values, kElements / elementsPerBlock(format.into),
                 dst);
}

/// Bytes of 256 elements of `type`.
int64_t bytesOf(DataType type) {
  return kElements / elementsPerBlock(type) * bytesPerBlock(type);
}

} // namespace

struct GridWeights::Entry : Tensor {
  const GridFormat *format = nullptr;
  const GgmlType *from = nullptr;
  int64_t blocks = 0;

  Status make(const WeightSource &source, const std::string &name,
              std::byte *dst) const override {
    const auto &file = static_cast<const Gguf &>(source);
    const auto *in =
        reinterpret_cast<const uint8_t *>(file.bytesOf(name).data());
    auto *to = reinterpret_cast<uint8_t *>(dst);
    const int64_t size = bytesOf(format->into);
    std::fill_n(to, blocks * size, uint8_t(0));
    for (int64_t i = 0; i < blocks; ++i) {
      GridBlock block;
      const uint8_t *of = in + i * from->bytes;
      block.d = halfToFloat(static_cast<uint16_t>(of[0] | of[1] << 8));
      format->read(*format, of, block);
      write(*format, block, to + i * size);
    }
    source.release(name);
    return Status();
  }
};

GridWeights::GridWeights(std::unique_ptr<Gguf> gguf)
    : MadeWeights(std::move(gguf)), file(static_cast<const Gguf &>(*source)) {
  for (const GgufTensor &tensor : file.tensors()) {
    const GridFormat *format = findGrid(tensor.type);
    if (!format)
      continue;
    auto entry = std::make_unique<Entry>();
    entry->format = format;
    entry->from = tensor.type;
    entry->blocks = static_cast<int64_t>(tensor.bytes) / tensor.type->bytes;
    entry->type = format->into;
    entry->shape = tensor.shape;
    entry->bytes = static_cast<uint64_t>(entry->blocks * bytesOf(format->into));
    made.emplace(tensor.name, std::move(entry));
  }
}
GridWeights::~GridWeights() = default;

bool GridWeights::isNeeded(const Gguf &source) {
  return std::ranges::any_of(
      source.tensors(), [](const GgufTensor &t) { return findGrid(t.type); });
}

/// All that are made here are these.
const GridWeights::Entry &GridWeights::entryOf(const Tensor &tensor) const {
  return static_cast<const Entry &>(tensor);
}

std::vector<std::string> GridWeights::notes() const {
  std::vector<std::string> lines;
  for (const GridFormat &format : kGrids) {
    int64_t count = 0, bytes = 1;
    for (const auto &[name, tensor] : made)
      if (const Entry &entry = entryOf(*tensor); entry.format == &format) {
        ++count;
        bytes = entry.from->bytes;
      }
    if (count == 0)
      continue;
    char times[16];
    std::snprintf(times, sizeof(times), "%.1f",
                  static_cast<double>(bytesOf(format.into)) /
                      static_cast<double>(bytes));
    lines.push_back(std::to_string(count) +
                    (count == 1 ? " tensor" : " tensors") + " of " +
                    std::string(format.name) + (count == 1 ? " is" : " are") +
                    " read as " + std::string(nameOf(format.into)) +
                    (format.into != DataType::Q6_K ? ", rounded to it"
                     : format.name == "IQ3_XXS"
                         ? ", of the same values but for small scales"
                         : ", of the same values") +
                    ", in " + times + " times the memory");
  }
  return lines;
}
