//===- ScaledWeights.cpp - 8-bit tensors and their scales -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/ScaledWeights.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/core/ShapeText.h"
#include "runtime/weights/RowScales.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <optional>
#include <set>

using namespace kf;

namespace {

/// The side of the squares of block-wise scales.
constexpr int64_t kSquare = 128;

constexpr const char *kScaleSuffixes[] = {"_scale", "_scale_inv"};

int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Nothing that cannot be read is of 8 bits. Throws where there is no memory to
/// tell.
bool is8Bit(const Result<TensorView> &view) {
  if (!view.ok() && view.status().code() == StatusCode::OutOfMemory)
    throw std::bad_alloc();
  return view.ok() &&
         (view->type == DataType::F8E4M3 || view->type == DataType::I8);
}

/// Scales of a tensor of `rows` x `columns`: element (r, c) has that of index
/// (r / rowsEach) * perRow + c / columnsEach.
struct Scales {
  std::vector<float> values;
  int64_t rowsEach = 1, columnsEach = 1, perRow = 1;
};

/// Which of the shapes of ScaledWeights `shape`, of `count` elements, is; the
/// values are left to the caller. Nothing if it is none.
std::optional<Scales> gridOf(std::span<const int64_t> shape, size_t count,
                             int64_t rows, int64_t columns) {
  if (count == 1)
    return Scales{{}, rows, columns, 1};
  if (shape.size() == 1 && shape[0] == rows)
    return Scales{{}, 1, columns, 1};
  if (shape.size() != 2 || shape[1] <= 0)
    return std::nullopt;
  if (shape[0] == rows && columns % shape[1] == 0)
    return Scales{{}, 1, columns / shape[1], shape[1]};
  if (shape[0] == ceilDiv(rows, kSquare) &&
      shape[1] == ceilDiv(columns, kSquare))
    return Scales{{}, kSquare, kSquare, shape[1]};
  return std::nullopt;
}

/// The values of all codes.
std::array<float, 256> valuesOf(DataType type) {
  std::array<uint8_t, 256> codes;
  std::array<float, 256> values;
  for (int i = 0; i < 256; ++i)
    codes[i] = static_cast<uint8_t>(i);
  Status status = convertToFloat(type, codes.data(), 256, values.data());
  assert(status.ok() && "both 8-bit types widen");
  (void)status;
  return values;
}

} // namespace

struct ScaledWeights::Entry : Tensor {
  int64_t rows = 1, columns = 1;
  Scales scales;

  Status make(const WeightSource &source, const std::string &name,
              std::byte *dst) const override {
    KF_ASSIGN_OR_RETURN(const TensorView codes, source.find(name));
    convert(codes.type, static_cast<const uint8_t *>(codes.data), dst);
    source.release(name);
    return Status();
  }

  /// Converts the elements at `codes` into `dst`.
  void convert(DataType type, const uint8_t *codes, std::byte *dst) const {
    constexpr int64_t step = 1024;
    const std::array<float, 256> values = valuesOf(type);
    float products[step];
    for (int64_t row = 0; row < rows; ++row) {
      const float *line =
          scales.values.data() + row / scales.rowsEach * scales.perRow;
      for (int64_t first = 0; first < columns;) {
        // A run shares a scale.
        const int64_t which = first / scales.columnsEach;
        const int64_t end =
            std::min({columns, (which + 1) * scales.columnsEach, first + step});
        for (int64_t c = first; c < end; ++c)
          products[c - first] = values[codes[c]] * line[which];
        Status status =
            convertFromFloat(DataType::BF16, products, end - first, dst);
        assert(status.ok() && "floats round to bf16");
        (void)status;
        dst += (end - first) * sizeof(uint16_t);
        first = end;
      }
      codes += columns;
    }
  }
};

ScaledWeights::ScaledWeights(std::unique_ptr<WeightSource> source)
    : MadeWeights(std::move(source)) {}
ScaledWeights::~ScaledWeights() = default;

bool ScaledWeights::isNeeded(const WeightSource &source) {
  return std::ranges::any_of(source.names(), [&](const std::string &name) {
    return is8Bit(source.describe(name));
  });
}

Result<std::unique_ptr<ScaledWeights>>
ScaledWeights::create(std::unique_ptr<WeightSource> source) try {
  std::unique_ptr<ScaledWeights> result(new ScaledWeights(std::move(source)));
  std::set<std::string> hidden;
  const std::vector<std::string> all = result->source->names();
  for (const std::string &name : all) {
    Result<TensorView> view = result->source->describe(name);
    if (!is8Bit(view))
      continue;
    KF_RETURN_IF_ERROR(result->add(name, *view, all));
    for (const char *suffix : kScaleSuffixes)
      hidden.insert(name + suffix);
    if (name.ends_with(".weight"))
      hidden.insert(name.substr(0, name.size() - 6) + "input_scale");
  }
  for (const std::string &name : all)
    if (!hidden.count(name))
      result->visible.push_back(name);
  return result;
} catch (...) {
  return statusOfException();
}

Status ScaledWeights::add(const std::string &name, const TensorView &view,
                          std::span<const std::string> all) {
  auto entry = std::make_unique<Entry>();
  entry->shape = view.shape;
  const int64_t count = static_cast<int64_t>(view.bytes);
  if (!view.shape.empty())
    entry->columns = view.shape.back();
  entry->rows = entry->columns == 0 ? 0 : count / entry->columns;
  KF_ASSIGN_OR_RETURN(int64_t bytes,
                      checkedByteCount(DataType::BF16, view.shape));
  entry->bytes = static_cast<uint64_t>(bytes);

  auto exists = [&](const std::string &other) {
    return std::ranges::binary_search(all, other);
  };
  if (exists(name + "_zero_point"))
    return Status::error("tensor " + inQuotes(name) +
                         " has zero points; only symmetric 8-bit weights are "
                         "supported");
  std::string scale;
  for (const char *suffix : kScaleSuffixes)
    if (exists(name + suffix)) {
      if (!scale.empty())
        return Status::error("tensor " + inQuotes(name) + " has two scales, " +
                             inQuotes(scale) + " and " +
                             inQuotes(name + suffix));
      scale = name + suffix;
    }
  if (scale.empty()) {
    entry->scales = {{1.0f},
                     std::max<int64_t>(entry->rows, 1),
                     std::max<int64_t>(entry->columns, 1),
                     1};
    made.emplace(name, std::move(entry));
    return Status();
  }

  KF_ASSIGN_OR_RETURN(TensorView scales, source->find(scale));
  if (!isFloat(scales.type))
    return Status::error("scale " + inQuotes(scale) + " has type " +
                         std::string(nameOf(scales.type)) +
                         "; f32, f16 and bf16 are supported");
  const size_t scaleCount = scales.bytes / sizeOf(scales.type);
  std::optional<Scales> grid =
      gridOf(scales.shape, scaleCount, entry->rows, entry->columns);
  if (!grid || count == 0)
    return Status::error(
        "scale " + inQuotes(scale) + " has shape " + shapeText(scales.shape) +
        ", which does not go with the tensor's " + shapeText(view.shape) +
        "; one scale, one a row, one for a run of columns, or one for 128 x "
        "128 elements is supported");
  grid->values.resize(scaleCount);
  KF_RETURN_IF_ERROR(convertToFloat(scales.type, scales.data,
                                    static_cast<int64_t>(scaleCount),
                                    grid->values.data()));
  for (size_t i = 0; i < grid->values.size(); ++i)
    if (!std::isfinite(grid->values[i]))
      return Status::error("scale " + inQuotes(scale) +
                           " is not finite at element " + std::to_string(i));
  source->release(scale);
  entry->scales = std::move(*grid);
  made.emplace(name, std::move(entry));
  return Status();
}

Result<bool> ScaledWeights::keepFloat8(const std::string &name) try {
  auto it = made.find(name);
  if (it == made.end())
    return factors.contains(scaleName(name));
  const auto &entry = static_cast<const Entry &>(*it->second);
  Result<TensorView> codes = source->describe(name);
  if (!codes.ok() || codes->type != DataType::F8E4M3 ||
      codes->shape.size() != 2 || codes->bytes == 0 ||
      entry.scales.columnsEach < entry.columns)
    return false;
  std::vector<float> values(static_cast<size_t>(entry.rows));
  for (int64_t row = 0; row < entry.rows; ++row)
    values[row] =
        entry.scales.values[row / entry.scales.rowsEach * entry.scales.perRow];
  factors.emplace(scaleName(name), std::move(values));
  made.erase(it);
  return true;
} catch (...) {
  return statusOfException();
}

Result<TensorView> ScaledWeights::find(const std::string &name) const try {
  const auto found = factors.find(name);
  if (found == factors.end())
    return MadeWeights::find(name);
  const std::vector<float> &values = found->second;
  return TensorView{DataType::F32,
                    {static_cast<int64_t>(values.size())},
                    values.data(),
                    values.size() * sizeof(float)};
} catch (...) {
  return statusOfException();
}

Result<TensorView> ScaledWeights::describe(const std::string &name) const {
  return factors.contains(name) ? find(name) : MadeWeights::describe(name);
}

void ScaledWeights::release(const std::string &name) const {
  if (!factors.contains(name))
    MadeWeights::release(name);
}

void ScaledWeights::releasePart(const std::string &name, uint64_t first,
                                uint64_t bytes) const {
  if (!factors.contains(name))
    MadeWeights::releasePart(name, first, bytes);
}

std::vector<std::string> ScaledWeights::names() const { return visible; }
