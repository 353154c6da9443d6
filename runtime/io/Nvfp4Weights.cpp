//===- Nvfp4Weights.cpp - Tensors of NVFP4 in GGUF files ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Nvfp4Weights.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/core/ShapeText.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>

using namespace kf;

namespace {

constexpr int64_t kBlock = 64, kOfScale = 16, kScales = kBlock / kOfScale;
constexpr int64_t kBytes = kScales + kBlock / 2; ///< of a block
constexpr float kMostProduct = 6 * 480;          ///< of a code and a scale
constexpr std::string_view kWeight = "weight";

bool isNvfp4(const GgufTensor &tensor) {
  return tensor.type && tensor.type->name == "NVFP4";
}

/// What errors of `tensor` begin with: which file of the model has it, and its
/// name.
std::string nameInErrors(const Gguf &file, const GgufTensor &tensor) {
  return file.files()[tensor.file]->source() + ": tensor " +
         inQuotes(tensor.name);
}

/// The number that each byte means as a scale.
std::array<float, 256> valuesOfScales() {
  std::array<float, 256> values;
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const auto fraction = static_cast<float>(mantissa);
    values[code] = code == 0x7f    ? 0
                   : exponent == 0 ? std::ldexp(fraction, -9)
                                   : std::ldexp(8 + fraction, exponent - 10);
  }
  return values;
}

/// The factors in the tensor `name`, one for each of `count` matrices; ones
/// where there is no such tensor.
Result<std::vector<float>> readFactors(const Gguf &file,
                                       const std::string &name, int64_t count) {
  std::vector<float> factors(static_cast<size_t>(count), 1.0f);
  const GgufTensor *tensor = file.lookUpTensor(name);
  if (!tensor)
    return factors;
  KF_ASSIGN_OR_RETURN(const TensorView view, file.find(name));
  auto fail = [&](const std::string &what) {
    return Status::error(nameInErrors(file, *tensor) + " " + what);
  };
  if (view.type != DataType::F32)
    return fail("has type " + std::string(nameOf(view.type)) +
                " where f32 is expected");
  const std::vector<int64_t> wanted = {count};
  if (view.shape != wanted)
    return fail("has shape " + shapeText(view.shape) + ", but " +
                shapeText(wanted) + " is expected");
  std::memcpy(factors.data(), view.data, view.bytes);
  file.release(name);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!std::isfinite(factors[i]))
      return fail("is not finite at element " + std::to_string(i));
    const uint16_t most = floatToBfloat(factors[i] * kMostProduct);
    if (!std::isfinite(bfloatToFloat(most)))
      return fail("is so large at element " + std::to_string(i) +
                  " that what it multiplies is not finite in bf16");
  }
  return factors;
}

} // namespace

struct Nvfp4Weights::Entry : Tensor {
  const Gguf *file = nullptr;
  int64_t blocks = 0;
  std::vector<float> factors; ///< of as many blocks each

  Status make(const WeightSource &, const std::string &name,
              std::byte *dst) const override {
    const std::array<float, 256> scales = valuesOfScales();
    const int64_t each = blocks / static_cast<int64_t>(factors.size());
    const auto *block =
        reinterpret_cast<const uint8_t *>(file->bytesOf(name).data());
    for (int64_t i = 0; i < blocks; ++i, block += kBytes) {
      float values[kBlock];
      for (int64_t group = 0; group < kScales; ++group) {
        // Halved, for the table has its numbers doubled.
        const float scale = scales[block[group]] / 2 * factors[i / each];
        const uint8_t *codes = block + kScales + group * kOfScale / 2;
        float *to = values + group * kOfScale;
        for (int64_t j = 0; j < kOfScale / 2; ++j) {
          to[j] = kE2M1Table[codes[j] & 15] * scale;
          to[j + kOfScale / 2] = kE2M1Table[codes[j] >> 4] * scale;
        }
      }
      KF_RETURN_IF_ERROR(
          convertFromFloat(DataType::BF16, values, kBlock,
                           dst + i * kBlock * int64_t(sizeof(uint16_t))));
    }
    file->release(name);
    return Status();
  }
};

Nvfp4Weights::Nvfp4Weights(std::unique_ptr<WeightSource> source)
    : MadeWeights(std::move(source)) {}
Nvfp4Weights::~Nvfp4Weights() = default;

bool Nvfp4Weights::isNeeded(const Gguf &file) {
  return std::ranges::any_of(file.tensors(), isNvfp4);
}

Result<std::unique_ptr<Nvfp4Weights>>
Nvfp4Weights::create(std::unique_ptr<WeightSource> source,
                     const Gguf &file) try {
  std::unique_ptr<Nvfp4Weights> result(new Nvfp4Weights(std::move(source)));
  std::set<std::string> hidden;
  for (const GgufTensor &tensor : file.tensors()) {
    if (!isNvfp4(tensor))
      continue;
    auto entry = std::make_unique<Entry>();
    const Result<int64_t> bytes =
        checkedByteCount(DataType::BF16, tensor.shape);
    if (!bytes.ok())
      return bytes.status().in(nameInErrors(file, tensor));
    entry->file = &file;
    entry->blocks = static_cast<int64_t>(tensor.bytes) / kBytes;
    entry->shape = tensor.shape;
    entry->bytes = static_cast<uint64_t>(*bytes);
    entry->factors = {1.0f};
    const std::string name(tensor.name);
    if (name.ends_with(kWeight)) {
      const std::string of = name.substr(0, name.size() - kWeight.size());
      const bool isStack = tensor.shape.size() == 3 && tensor.bytes > 0;
      const int64_t matrices = isStack ? tensor.shape[0] : 1;
      KF_ASSIGN_OR_RETURN(entry->factors,
                          readFactors(file, of + "scale", matrices));
      hidden.insert({of + "scale", of + "input_scale"});
    }
    result->made.emplace(name, std::move(entry));
  }
  for (std::string &name : result->source->names())
    if (!hidden.contains(name))
      result->visible.push_back(std::move(name));
  return result;
} catch (...) {
  return statusOfException();
}

std::string Nvfp4Weights::note() const {
  char times[16];
  std::snprintf(times, sizeof(times), "%.1f",
                static_cast<double>(kBlock * sizeof(uint16_t)) / kBytes);
  return std::to_string(made.size()) +
         (made.size() == 1 ? " tensor of NVFP4 is" : " tensors of NVFP4 are") +
         " read as bf16, in " + times + " times the memory";
}
