//===- PackedWeights.cpp - Tensors of 4-bit codes and their scales --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/PackedWeights.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/core/ShapeText.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <new>
#include <optional>
#include <set>

using namespace kf;
using nlohmann::json;

namespace {

constexpr std::string_view kStates[] = {".quant_state.bitsandbytes__nf4",
                                        ".quant_state.bitsandbytes__fp4"};
constexpr std::string_view kPacked = "_packed";
constexpr int64_t kNvfp4Block = 16;
/// Elements of a bitsandbytes block: far more than it ever makes.
constexpr int64_t kMostOfBlock = int64_t(1) << 20;

int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// What `name` is where it ends with `suffix`; nothing where it does not.
std::optional<std::string> withoutSuffix(const std::string &name,
                                         std::string_view suffix) {
  if (!name.ends_with(suffix) || name.size() == suffix.size())
    return std::nullopt;
  return name.substr(0, name.size() - suffix.size());
}

/// The matrix whose quant_state `name` is.
std::optional<std::string> findStateOwner(const std::string &name) {
  for (std::string_view state : kStates)
    if (auto owner = withoutSuffix(name, state))
      return owner;
  return std::nullopt;
}

/// The tensor's description, or none where there is no such tensor. Throws
/// where there is no memory to tell.
std::optional<TensorView> lookUp(const WeightSource &source,
                                 const std::string &name) {
  Result<TensorView> view = source.describe(name);
  if (view.ok())
    return *view;
  if (view.status().code() == StatusCode::OutOfMemory)
    throw std::bad_alloc();
  return std::nullopt;
}

/// The matrix of NVFP4 that has its codes in the tensor `name`.
std::optional<std::string> findNvfp4Owner(const WeightSource &source,
                                          const std::string &name) {
  if (auto owner = withoutSuffix(name, kPacked))
    if (lookUp(source, *owner + "_scale") &&
        lookUp(source, *owner + "_global_scale"))
      return owner;
  if (lookUp(source, name + "_scale_2"))
    return name;
  return std::nullopt;
}

Status checkTensor(const WeightSource &source, const std::string &name,
                   DataType type, int64_t count) {
  KF_ASSIGN_OR_RETURN(const TensorView view, source.describe(name));
  if (view.type != type)
    return Status::error("tensor " + inQuotes(name) + " has type " +
                         std::string(nameOf(view.type)) + " where " +
                         std::string(nameOf(type)) + " is expected");
  if (view.bytes != static_cast<uint64_t>(count) * sizeOf(type))
    return Status::error("tensor " + inQuotes(name) + " has shape " +
                         shapeText(view.shape) + ", but " +
                         std::to_string(count) + " elements are expected");
  return Status();
}

Result<std::vector<float>> readFloats(const WeightSource &source,
                                      const std::string &name) {
  KF_ASSIGN_OR_RETURN(const TensorView view, source.find(name));
  std::vector<float> values(view.bytes / sizeOf(view.type));
  KF_RETURN_IF_ERROR(convertToFloat(view.type, view.data,
                                    static_cast<int64_t>(values.size()),
                                    values.data()));
  source.release(name);
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return Status::error("tensor " + inQuotes(name) +
                           " is not finite at element " + std::to_string(i));
  return values;
}

/// Checks that the products of each of the blocks' scales and of values up to
/// `most` are finite in bf16; `name` is the matrix.
Status checkProducts(const std::string &name, std::span<const float> scales,
                     float most) {
  for (size_t i = 0; i < scales.size(); ++i)
    if (!std::isfinite(bfloatToFloat(floatToBfloat(scales[i] * most))))
      return Status::error(
          "tensor " + inQuotes(name) + ": the scale of block " +
          std::to_string(i) +
          " is so large that what it multiplies is not finite in bf16");
  return Status();
}

/// An integer from 1 to `most`.
std::optional<int64_t> readCount(const json &value, int64_t most) {
  if (!value.is_number_integer() || value < 1 || value > most)
    return std::nullopt;
  return value.get<int64_t>();
}

} // namespace

struct PackedWeights::Entry : Tensor {
  std::string codes, scales; ///< in the source
  int64_t count = 0;         ///< elements
  int64_t block = kNvfp4Block;
  bool isNvfp4 = false;
  std::string factor;   ///< of NVFP4, the tensor with that of all blocks,
  bool divides = false; ///< which divides them
  std::string map;      ///< of bitsandbytes, the tensor of the codes' values
  std::string nestedScales, nestedMap; ///< empty: scales are floats
  int64_t nestedBlock = 1;
  float nestedOffset = 0;

  int64_t blocks() const { return ceilDiv(count, block); }

  /// The shape's elements and bytes.
  Status measure() {
    KF_ASSIGN_OR_RETURN(const int64_t all,
                        checkedByteCount(DataType::BF16, shape));
    bytes = static_cast<uint64_t>(all);
    count = all / static_cast<int64_t>(sizeOf(DataType::BF16));
    return Status();
  }

  /// The scale of each block.
  Result<std::vector<float>> readScales(const WeightSource &source) const {
    if (isNvfp4) {
      KF_ASSIGN_OR_RETURN(std::vector<float> values,
                          readFloats(source, scales));
      KF_ASSIGN_OR_RETURN(const std::vector<float> ofAll,
                          readFloats(source, factor));
      if (divides && ofAll[0] == 0)
        return Status::error("tensor " + inQuotes(factor) +
                             " is 0, but scales are divided by it");
      for (float &value : values)
        value = divides ? value / ofAll[0] : value * ofAll[0];
      return values;
    }
    if (nestedScales.empty())
      return readFloats(source, scales);
    KF_ASSIGN_OR_RETURN(const std::vector<float> outer,
                        readFloats(source, nestedScales));
    KF_ASSIGN_OR_RETURN(const std::vector<float> ofCodes,
                        readFloats(source, nestedMap));
    KF_ASSIGN_OR_RETURN(const TensorView view, source.find(scales));
    const auto *inner = static_cast<const uint8_t *>(view.data);
    std::vector<float> values(static_cast<size_t>(blocks()));
    for (int64_t i = 0; i < blocks(); ++i)
      values[i] = ofCodes[inner[i]] * outer[i / nestedBlock] + nestedOffset;
    source.release(scales);
    return values;
  }

  Status make(const WeightSource &source, const std::string &name,
              std::byte *dst) const override {
    std::array<float, 16> ofCodes;
    if (isNvfp4) {
      for (int i = 0; i < 16; ++i)
        ofCodes[i] = static_cast<float>(kE2M1Table[i]) / 2;
    } else {
      KF_ASSIGN_OR_RETURN(const std::vector<float> read,
                          readFloats(source, map));
      std::ranges::copy(read, ofCodes.begin());
    }
    KF_ASSIGN_OR_RETURN(const std::vector<float> ofBlocks, readScales(source));
    float most = 0;
    for (float value : ofCodes)
      most = std::max(most, std::abs(value));
    KF_RETURN_IF_ERROR(checkProducts(name, ofBlocks, most));
    KF_ASSIGN_OR_RETURN(const TensorView view, source.find(codes));
    const auto *packed = static_cast<const uint8_t *>(view.data);
    const int ofEven = isNvfp4 ? 0 : 4;
    constexpr int64_t step = 1024;
    float products[step];
    for (int64_t first = 0; first < count;) {
      const int64_t number = first / block;
      const int64_t end = std::min({count, (number + 1) * block, first + step});
      for (int64_t i = first; i < end; ++i) {
        const int shift = i % 2 == 0 ? ofEven : 4 - ofEven;
        products[i - first] =
            ofCodes[packed[i / 2] >> shift & 15] * ofBlocks[number];
      }
      KF_RETURN_IF_ERROR(
          convertFromFloat(DataType::BF16, products, end - first,
                           dst + first * int64_t(sizeof(uint16_t))));
      first = end;
    }
    source.release(codes);
    return Status();
  }
};

PackedWeights::PackedWeights(std::unique_ptr<WeightSource> source)
    : MadeWeights(std::move(source)) {}
PackedWeights::~PackedWeights() = default;

bool PackedWeights::isNeeded(const WeightSource &source) {
  return std::ranges::any_of(source.names(), [&](const std::string &name) {
    return findStateOwner(name) || findNvfp4Owner(source, name);
  });
}

Result<std::unique_ptr<PackedWeights>>
PackedWeights::create(std::unique_ptr<WeightSource> source) try {
  std::unique_ptr<PackedWeights> result(new PackedWeights(std::move(source)));
  std::set<std::string> hidden;
  const std::vector<std::string> all = result->source->names();
  for (const std::string &name : all) {
    if (auto owner = findStateOwner(name)) {
      KF_RETURN_IF_ERROR(result->addQuantState(*owner, name));
      for (const char *part :
           {"", ".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"})
        hidden.insert(*owner + part);
      hidden.insert(name);
    } else if (auto matrix = findNvfp4Owner(*result->source, name)) {
      KF_RETURN_IF_ERROR(result->addNvfp4(*matrix, name));
      for (const char *part :
           {"", "_packed", "_scale", "_scale_2", "_global_scale"})
        hidden.insert(*matrix + part);
      if (auto module = withoutSuffix(*matrix, "weight"))
        hidden.insert(
            {*module + "input_scale", *module + "input_global_scale"});
    }
  }
  for (const std::string &name : all)
    if (!hidden.count(name))
      result->visible.push_back(name);
  for (const auto &[name, entry] : result->made)
    result->visible.push_back(name);
  std::ranges::sort(result->visible);
  return result;
} catch (...) {
  return statusOfException();
}

Status PackedWeights::addQuantState(const std::string &name,
                                    const std::string &state) {
  KF_ASSIGN_OR_RETURN(const TensorView view, source->find(state));
  if (view.type != DataType::U8)
    return Status::error("tensor " + inQuotes(state) + " has type " +
                         std::string(nameOf(view.type)) +
                         " where ui8 is expected");
  Result<JsonDocument> read = parseJson(
      std::string_view(static_cast<const char *>(view.data), view.bytes));
  if (!read.ok())
    return read.status().in("tensor " + inQuotes(state));
  const json &fields = **read;
  auto fail = [&](const std::string &what) {
    return Status::error("tensor " + inQuotes(state) + ": " + what);
  };
  if (!fields.is_object())
    return fail("a JSON object is expected");
  auto field = [&](const char *key) {
    auto it = fields.find(key);
    return it == fields.end() ? json() : *it;
  };

  auto entry = std::make_unique<Entry>();
  const json shape = field("shape");
  if (!shape.is_array() || shape.size() != 2)
    return fail("'shape' has to be two sizes");
  for (const json &size : shape) {
    auto count = readCount(size, std::numeric_limits<int64_t>::max());
    if (!count)
      return fail("'shape' has to be two sizes");
    entry->shape.push_back(*count);
  }
  auto sizeOfBlock = [&](const char *key) -> Result<int64_t> {
    if (auto size = readCount(field(key), kMostOfBlock))
      return *size;
    return fail("'" + std::string(key) + "' has to be an integer from 1 to " +
                std::to_string(kMostOfBlock));
  };
  KF_ASSIGN_OR_RETURN(entry->block, sizeOfBlock("blocksize"));
  Status counted = entry->measure();
  if (!counted.ok())
    return counted.in("tensor " + inQuotes(state));

  entry->codes = name;
  entry->scales = name + ".absmax";
  entry->map = name + ".quant_map";
  KF_RETURN_IF_ERROR(
      checkTensor(*source, name, DataType::U8, ceilDiv(entry->count, 2)));
  KF_RETURN_IF_ERROR(checkTensor(*source, entry->map, DataType::F32, 16));
  const std::optional<TensorView> scales = lookUp(*source, entry->scales);
  const bool isNested = scales && scales->type == DataType::U8;
  KF_RETURN_IF_ERROR(checkTensor(*source, entry->scales,
                                 isNested ? DataType::U8 : DataType::F32,
                                 entry->blocks()));
  if (isNested) {
    KF_ASSIGN_OR_RETURN(entry->nestedBlock, sizeOfBlock("nested_blocksize"));
    const json offset = field("nested_offset");
    if (!offset.is_number() || !std::isfinite(offset.get<float>()))
      return fail("'nested_offset' has to be a number");
    entry->nestedOffset = offset.get<float>();
    entry->nestedScales = name + ".nested_absmax";
    entry->nestedMap = name + ".nested_quant_map";
    KF_RETURN_IF_ERROR(
        checkTensor(*source, entry->nestedScales, DataType::F32,
                    ceilDiv(entry->blocks(), entry->nestedBlock)));
    KF_RETURN_IF_ERROR(
        checkTensor(*source, entry->nestedMap, DataType::F32, 256));
  }
  if (!made.emplace(name, std::move(entry)).second)
    return Status::error("tensor " + inQuotes(name) + " has two quant_states");
  return Status();
}

Status PackedWeights::addNvfp4(const std::string &name,
                               const std::string &codes) {
  KF_ASSIGN_OR_RETURN(const TensorView view, source->describe(codes));
  auto entry = std::make_unique<Entry>();
  entry->isNvfp4 = true;
  entry->codes = codes;
  entry->scales = name + "_scale";
  entry->divides = codes != name;
  entry->factor = name + (entry->divides ? "_global_scale" : "_scale_2");
  constexpr int64_t bytesOfBlock = kNvfp4Block / 2;
  if (view.type != DataType::U8 || view.shape.size() != 2 ||
      view.shape[0] < 1 || view.shape[1] < 1 ||
      view.shape[1] % bytesOfBlock != 0)
    return Status::error("tensor " + inQuotes(codes) + " is " +
                         std::string(nameOf(view.type)) + " of shape " +
                         shapeText(view.shape) +
                         " where rows of ui8 with blocks of 8 bytes are "
                         "expected");
  // What has bytes has fewer than 2^62.
  entry->shape = {view.shape[0], 2 * view.shape[1]};
  KF_RETURN_IF_ERROR(entry->measure().in("tensor " + inQuotes(codes)));
  KF_RETURN_IF_ERROR(
      checkTensor(*source, entry->scales, DataType::F8E4M3, entry->blocks()));
  KF_ASSIGN_OR_RETURN(const TensorView scales, source->describe(entry->scales));
  const std::vector<int64_t> wanted = {view.shape[0],
                                       view.shape[1] / bytesOfBlock};
  if (scales.shape != wanted)
    return Status::error("tensor " + inQuotes(entry->scales) + " has shape " +
                         shapeText(scales.shape) + ", but " +
                         shapeText(wanted) + " is expected");
  KF_RETURN_IF_ERROR(checkTensor(*source, entry->factor, DataType::F32, 1));
  if (entry->divides && lookUp(*source, name))
    return Status::error("tensors " + inQuotes(codes) + " and " +
                         inQuotes(name) + " hold the same");
  if (!made.emplace(name, std::move(entry)).second)
    return Status::error("tensors " + inQuotes(codes) + " and " +
                         inQuotes(name) + " hold the same");
  return Status();
}

std::string PackedWeights::note() const {
  uint64_t wide = 0, stored = 0;
  for (const auto &[name, tensor] : made) {
    const auto &entry = static_cast<const Entry &>(*tensor);
    wide += entry.bytes;
    for (const std::string &part : {entry.codes, entry.scales})
      if (const std::optional<TensorView> view = lookUp(*source, part))
        stored += view->bytes;
  }
  char times[16];
  std::snprintf(times, sizeof(times), "%.1f",
                static_cast<double>(wide) /
                    static_cast<double>(std::max<uint64_t>(stored, 1)));
  return std::to_string(made.size()) +
         (made.size() == 1 ? " matrix of 4 bits is"
                           : " matrices of 4 bits are") +
         " read as bf16, in " + times +
         " times the memory; a GGUF file of q4_0 or q4_k keeps them small";
}

std::vector<std::string> PackedWeights::names() const { return visible; }
