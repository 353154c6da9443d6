//===- DummyWeights.cpp - Weights made of random numbers ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/DummyWeights.h"

#include "runtime/core/AlignedBuffer.h"
#include "runtime/core/BlockFormat.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Float8.h"
#include "runtime/core/Quote.h"
#include "runtime/model/TensorList.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

using namespace kf;

namespace {

constexpr float kDeviation = 0.02f;
/// Of numbers in 8 bits, whose factors make it kDeviation.
constexpr float kFloat8Deviation = kDeviation / kRowFactorMean;

//===----------------------------------------------------------------------===//
// Random numbers by index
//===----------------------------------------------------------------------===//

/// The `index`-th number of the sequence `key`: splitmix64.
inline uint64_t numberAt(uint64_t key, uint64_t index) {
  uint64_t x = key + (index + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// FNV-1a, mixed with the seed.
uint64_t keyOf(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return numberAt(hash, seed);
}

/// x with P(standard normal < x) = p, for 0 < p < 1, by bisection: it runs once
/// for each entry of a small table.
double normalQuantile(double p) {
  double low = -9, high = 9;
  for (int i = 0; i < 50; ++i) {
    double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Quantiles of the standard normal distribution: one drawn at random is nearly
/// normal, and the table stays in the nearest cache.
constexpr int kQuantiles = 4096;
const std::array<float, kQuantiles> &quantiles() {
  static const std::array<float, kQuantiles> table = [] {
    std::array<float, kQuantiles> values;
    for (int i = 0; i < kQuantiles; ++i)
      values[i] = static_cast<float>(normalQuantile((i + 0.5) / kQuantiles));
    return values;
  }();
  return table;
}

//===----------------------------------------------------------------------===//
// Parts of a tensor
//===----------------------------------------------------------------------===//

struct Range {
  int64_t begin = 0, end = 0;
};

/// Some MB each, which begin with a number of their own.
constexpr int64_t kPartFloats = int64_t(1) << 20, kPartBlocks = 1 << 15;

/// Calls fill(part) for parts of [0, count) of `size`, on threads where there
/// are several.
template <typename Fill>
void forEachPart(int64_t count, int64_t size, const Fill &fill) {
  const int64_t parts = (count + size - 1) / size;
  std::atomic<int64_t> next = 0;
  auto work = [&] {
    for (int64_t i = next++; i < parts; i = next++)
      fill(Range{i * size, std::min(count, (i + 1) * size)});
  };
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  std::vector<std::jthread> others;
  try {
    for (int64_t i = 1; i < std::min(cores, parts); ++i)
      others.emplace_back(work);
  } catch (const std::exception &) {
    // Those that there are do it.
  }
  work();
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

/// Draws entries of `table` for a tensor's elements `part`, four from each
/// number. `part` begins at a multiple of four.
template <typename T>
void draw(uint64_t key, const T *table, Range part, T *dst) {
  int64_t i = part.begin;
  for (; i + 4 <= part.end; i += 4) {
    uint64_t bits = numberAt(key, static_cast<uint64_t>(i) / 4);
    for (int k = 0; k < 4; ++k)
      dst[i + k] = table[bits >> (16 * k) & (kQuantiles - 1)];
  }
  uint64_t bits = numberAt(key, static_cast<uint64_t>(i) / 4);
  for (; i < part.end; ++i, bits >>= 16)
    dst[i] = table[bits & (kQuantiles - 1)];
}

/// The codes of quantiles in 8 bits.
const std::array<uint8_t, kQuantiles> &float8Quantiles() {
  static const std::array<uint8_t, kQuantiles> table = [] {
    std::array<uint8_t, kQuantiles> codes;
    for (int i = 0; i < kQuantiles; ++i)
      codes[i] = floatToE4M3(kFloat8Deviation * quantiles()[i]);
    return codes;
  }();
  return table;
}

/// Elements `part` of the tensor at `dst`. `type` is a float type or F8E4M3.
void fillFloats(uint64_t key, DataType type, float mean, float deviation,
                Range part, std::byte *dst) {
  if (type == DataType::F8E4M3) {
    draw(key, float8Quantiles().data(), part, reinterpret_cast<uint8_t *>(dst));
    return;
  }
  std::array<float, kQuantiles> values;
  for (int i = 0; i < kQuantiles; ++i)
    values[i] = mean + deviation * quantiles()[i];
  if (type == DataType::F32) {
    draw(key, values.data(), part, reinterpret_cast<float *>(dst));
    return;
  }
  std::array<uint16_t, kQuantiles> rounded;
  for (int i = 0; i < kQuantiles; ++i)
    rounded[i] = type == DataType::F16 ? floatToHalf(values[i])
                                       : floatToBfloat(values[i]);
  draw(key, rounded.data(), part, reinterpret_cast<uint16_t *>(dst));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// What makes random bits a block of small numbers around 0: a block's scales
/// are one of a few pairs, which `scales` holds.
struct BlockFiller {
  static constexpr int kScales = 16;
  const BlockFormat &format;
  std::array<float, kScales> scales{};
  std::array<uint16_t, kScales> mins{}; ///< f16
  double missing = 0;                   ///< see storable()

  explicit BlockFiller(const BlockFormat &format) : format(format) {
    // With a scale of 1 the values' deviation is what one divides by.
    scales.fill(1);
    mins.fill(floatToHalf(minOfScale()));
    constexpr int samples = 256;
    std::vector<std::byte> blocks(samples * format.bytes);
    std::vector<float> values(samples * format.elements);
    fill(/*key=*/1, {0, samples}, blocks.data());
    dequantizeBlocks(format.type, blocks.data(), samples, values.data());
    double squares = 0;
    for (float value : values)
      squares += static_cast<double>(value) * value;
    const float scale =
        kDeviation / static_cast<float>(std::sqrt(squares / values.size()));
    for (int i = 0; i < kScales; ++i) {
      // From 0.77 to 1.23: blocks of real weights differ as well. Codes without
      // a minimum go lower than they go high, so half of the scales turn them.
      const float sign = format.minOffset < 0 && i % 2 ? -1 : 1;
      const float of = sign * scale * (0.77f + 0.46f * i / (kScales - 1));
      scales[i] = storable(of);
      mins[i] = floatToHalf(of * minOfScale());
    }
  }

  /// `d`, or of powers of two one that makes up for those before it, so that
  /// the mean of their squares is what is asked for.
  float storable(float d) {
    if (format.scale == BlockScale::Half)
      return d;
    std::vector<uint8_t> block(format.bytes);
    const double square = static_cast<double>(d) * d;
    const double asked = std::max(square / 4, square + missing);
    storeScale(format, static_cast<float>(std::sqrt(asked)), block.data());
    const float stored = loadScale(format, block.data());
    missing += square - static_cast<double>(stored) * stored;
    return stored;
  }

  /// The m that goes with d = 1, so that the mean is 0.
  float minOfScale() const {
    if (format.minOffset < 0)
      return 0;
    const float meanCode = ((1 << format.codeBits()) - 1) / 2.0f;
    switch (format.subScales) {
    case SubScales::Nibbles:
      return 1; // fixSubScales() makes min the scale times the mean code
    case SubScales::Packed6:
      return meanCode; // it makes min the scale
    default:
      return format.minIsNegative ? meanCode : -meanCode;
    }
  }

  /// Makes the mins of sub-blocks follow from their scales.
  void fixSubScales(uint8_t *block) const {
    uint8_t *bytes = block + format.subScaleOffset;
    if (format.subScales == SubScales::Nibbles) {
      // The mean code is 1.5: scales of 4, 6, 8 or 10, mins of 6, 9, 12 or 15.
      for (int i = 0; i < format.subBlocks(); ++i) {
        const int half = 2 + (bytes[i] & 3);
        bytes[i] = static_cast<uint8_t>(2 * half | 3 * half << 4);
      }
    } else if (format.subScales == SubScales::Packed6) {
      for (int i = 0; i < 4; ++i) {
        bytes[i + 4] = bytes[i];
        bytes[i + 8] = static_cast<uint8_t>((bytes[i + 8] & 15) * 17);
      }
    }
  }

  /// Blocks `part` of the tensor at `dst`; it begins at a multiple of eight.
  void fill(uint64_t key, Range part, std::byte *dst) const {
    const uint64_t size = static_cast<uint64_t>(format.bytes);
    const uint64_t end = static_cast<uint64_t>(part.end) * size;
    for (uint64_t at = static_cast<uint64_t>(part.begin) * size; at < end;
         at += 8) {
      const uint64_t bits = numberAt(key, at / 8);
      std::memcpy(dst + at, &bits, std::min<uint64_t>(8, end - at));
    }
    for (int64_t i = part.begin; i < part.end; ++i) {
      auto *block = reinterpret_cast<uint8_t *>(dst) + i * format.bytes;
      const int which = block[format.scaleOffset] & (kScales - 1);
      storeScale(format, scales[which], block);
      if (format.minOffset >= 0)
        std::memcpy(block + format.minOffset, &mins[which], 2);
      fixSubScales(block);
    }
  }
};

/// `type`, or what a matrix is instead whose rows are no whole blocks, or are
/// no rows of products.
DataType typeOfMatrix(DataType type, const ListedTensor &matrix) {
  const int64_t columns = matrix.shape.back();
  if (isBlock(type) && matrix.transposed)
    return DataType::F16;
  if (!isBlock(type) || columns % elementsPerBlock(type) == 0)
    return type;
  return columns % elementsPerBlock(DataType::Q8_0) == 0 ? DataType::Q8_0
                                                         : DataType::F16;
}

} // namespace

//===----------------------------------------------------------------------===//
// The source
//===----------------------------------------------------------------------===//

struct DummyWeights::Entry {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  uint64_t key = 0;
  float mean = 0, deviation = 0;
  std::mutex making;                   ///< guards `memory`
  std::optional<AlignedBuffer> memory; ///< none: not made, or released

  TensorView view() const {
    return {type, shape, memory ? memory->data() : nullptr, bytes};
  }
};

DummyWeights::DummyWeights() = default;
DummyWeights::~DummyWeights() = default;

/// Whether there can be random numbers of `type`.
static Status checkType(DataType type) {
  if (isFloat(type) || isBlock(type) || type == DataType::F8E4M3)
    return Status();
  return Status::error("weights cannot be of type " +
                       std::string(nameOf(type)) +
                       "; f32, f16, bf16, f8E4M3FN and GGUF's block types are "
                       "possible");
}

Status DummyWeights::add(const DummyTensor &tensor, uint64_t seed) {
  auto entry = std::make_unique<Entry>();
  entry->type = tensor.type;
  entry->shape = tensor.shape;
  Result<int64_t> bytes = checkedByteCount(tensor.type, tensor.shape);
  if (!bytes.ok())
    return bytes.status().in("tensor " + inQuotes(tensor.name));
  entry->bytes = static_cast<uint64_t>(*bytes);
  entry->key = keyOf(seed, tensor.name);
  entry->mean = tensor.mean;
  entry->deviation = tensor.deviation;
  if (!entries.emplace(tensor.name, std::move(entry)).second)
    return Status::error("there are two tensors " + inQuotes(tensor.name));
  return Status();
}

Result<std::unique_ptr<DummyWeights>>
DummyWeights::create(std::span<const DummyTensor> tensors, uint64_t seed) try {
  std::unique_ptr<DummyWeights> result(new DummyWeights());
  for (const DummyTensor &tensor : tensors) {
    KF_RETURN_IF_ERROR(checkType(tensor.type));
    KF_RETURN_IF_ERROR(result->add(tensor, seed));
  }
  return result;
} catch (...) {
  return statusOfException();
}

Result<std::unique_ptr<DummyWeights>>
DummyWeights::create(const ModelConfig &config, DataType type,
                     uint64_t seed) try {
  KF_RETURN_IF_ERROR(checkType(type));
  std::vector<DummyTensor> tensors;
  for (const ListedTensor &listed : listTensors(config)) {
    DummyTensor &tensor = tensors.emplace_back();
    tensor.name = listed.name;
    tensor.shape = listed.storedShape();
    tensor.mean = listed.role == ListedTensor::Role::NormWeight &&
                          !config.zeroCenteredNorms
                      ? 1
                      : 0;
    if (type == DataType::F8E4M3 && !isFactor(listed)) {
      tensor.type = DataType::BF16;
      continue;
    }
    tensor.type = listed.role == ListedTensor::Role::Matrix
                      ? typeOfMatrix(type, listed)
                  : isBlock(type) ? DataType::F32
                                  : type;
    if (type != DataType::F8E4M3)
      continue;
    tensors.push_back({scaleName(listed.name),
                       DataType::F32,
                       {listed.storedShape().front()},
                       kRowFactorMean,
                       kRowFactorDeviation});
  }
  return create(tensors, seed);
} catch (...) {
  return statusOfException();
}

Result<DummyWeights::Entry *>
DummyWeights::entryOf(const std::string &name) const {
  auto it = entries.find(name);
  if (it == entries.end())
    return Status::error("the model has no tensor " + inQuotes(name));
  return it->second.get();
}

Result<TensorView> DummyWeights::describe(const std::string &name) const try {
  KF_ASSIGN_OR_RETURN(Entry * entry, entryOf(name));
  return TensorView{entry->type, entry->shape, nullptr, entry->bytes};
} catch (...) {
  return statusOfException();
}

Result<TensorView> DummyWeights::find(const std::string &name) const try {
  KF_ASSIGN_OR_RETURN(Entry * entry, entryOf(name));
  std::lock_guard lock(entry->making);
  if (entry->memory)
    return entry->view();
  Result<AlignedBuffer> memory = AlignedBuffer::allocate(entry->bytes);
  if (!memory.ok())
    return memory.status().in("tensor " + inQuotes(name));
  if (const BlockFormat *format = findBlockFormat(entry->type)) {
    const BlockFiller filler(*format);
    forEachPart(
        static_cast<int64_t>(entry->bytes) / format->bytes, kPartBlocks,
        [&](Range part) { filler.fill(entry->key, part, memory->data()); });
  } else {
    forEachPart(static_cast<int64_t>(entry->bytes / sizeOf(entry->type)),
                kPartFloats, [&](Range part) {
                  fillFloats(entry->key, entry->type, entry->mean,
                             entry->deviation, part, memory->data());
                });
  }
  entry->memory = memory.take();
  return entry->view();
} catch (...) {
  return statusOfException();
}

void DummyWeights::release(const std::string &name) const {
  Result<Entry *> entry = entryOf(name);
  if (!entry.ok())
    return;
  std::lock_guard lock((*entry)->making);
  (*entry)->memory.reset();
}

std::vector<std::string> DummyWeights::names() const {
  std::vector<std::string> result;
  result.reserve(entries.size());
  for (const auto &[name, entry] : entries)
    result.push_back(name);
  return result;
}
