//===- TensorRows.cpp - Tensors in another type, row by row ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TensorRows.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Quote.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

using namespace kf;

namespace {

/// Elements that a task takes at least.
constexpr int64_t kTaskElements = 32768;
constexpr int kTasksPerThread = 4;

/// A matrix whose rows are wanted in another order or type.
struct Rows {
  const ConvertedTensor &tensor;
  const TensorView *view; ///< null: tensor.values
  int64_t count = 1, columns = 1;

  Rows(const ConvertedTensor &tensor, const TensorView *view)
      : tensor(tensor), view(view) {
    for (int64_t size : tensor.shape)
      count *= size;
    // Elements of a vector that move are rows of their own.
    const bool single =
        tensor.shape.size() == 1 &&
        (tensor.order == TensorOrder::HalvesOfHeads || !tensor.rows.empty());
    columns = single || tensor.shape.empty() ? 1 : tensor.shape.back();
    count = columns > 0 ? count / columns : 0;
    int64_t end = 0;
    for (const RowRange &range : tensor.rows)
      ends.push_back(end += range.count);
  }

  /// The row of the source that is row `row` of the result.
  int64_t sourceRow(int64_t row) const {
    if (!ends.empty()) {
      const auto range = std::ranges::upper_bound(ends, row) - ends.begin();
      return tensor.rows[range].first + tensor.rows[range].count -
             (ends[range] - row);
    }
    if (tensor.order != TensorOrder::HalvesOfHeads)
      return row;
    const int64_t inHead = row % tensor.headDim;
    return row - inHead + inHead % 2 * (tensor.headDim / 2) + inHead / 2;
  }

  /// The bytes of the source that are row `row`; not of a transposed one.
  std::span<const std::byte> bytesOf(int64_t row) const {
    const int64_t size =
        columns / elementsPerBlock(view->type) * bytesPerBlock(view->type);
    return {static_cast<const std::byte *>(view->data) + sourceRow(row) * size,
            static_cast<size_t>(size)};
  }

  /// Widens row `row` to `out`. `raw` has room for a row of the source.
  Status read(int64_t row, float *out, std::byte *raw) const {
    if (!view) {
      std::copy_n(tensor.values.data() + row * columns, columns, out);
      return Status();
    }
    if (tensor.order != TensorOrder::Transposed) {
      KF_RETURN_IF_ERROR(
          convertToFloat(view->type, bytesOf(row).data(), columns, out));
      if (tensor.added != 0)
        std::for_each_n(out, columns, [&](float &x) { x += tensor.added; });
      if (tensor.negatedExponential)
        std::for_each_n(out, columns, [](float &x) { x = -std::exp(x); });
      if (!tensor.columns.empty())
        moveColumns(out);
      return Status();
    }
    const std::byte *data = static_cast<const std::byte *>(view->data);
    const int64_t size = static_cast<int64_t>(sizeOf(view->type));
    for (int64_t i = 0; i < columns; ++i)
      std::memcpy(raw + i * size, data + (i * count + row) * size,
                  static_cast<size_t>(size));
    return convertToFloat(view->type, raw, columns, out);
  }

  /// Whether rows of the source are rows of `type` as they are.
  bool are(DataType type) const {
    return view && view->type == type && tensor.added == 0 &&
           tensor.order != TensorOrder::Transposed &&
           !tensor.negatedExponential && tensor.columns.empty();
  }

private:
  void moveColumns(float *row) const {
    const std::vector<float> source(row, row + columns);
    for (const RowRange &range : tensor.columns)
      row = std::copy_n(source.data() + range.first, range.count, row);
  }

  std::vector<int64_t> ends; ///< of tensor.rows, in the tensor
};

bool isFiniteHalf(const uint8_t *bytes) { return (bytes[1] & 0x7c) != 0x7c; }

/// Whether the scales of a row of `type` came out finite.
bool fits(DataType type, const std::byte *row, int64_t columns) {
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(row);
  if (type == DataType::F16) {
    for (int64_t i = 0; i < columns; ++i)
      if (!isFiniteHalf(bytes + 2 * i))
        return false;
    return true;
  }
  if (type == DataType::BF16) {
    for (int64_t i = 0; i < columns; ++i)
      if ((bytes[2 * i] & 0x80) && (bytes[2 * i + 1] & 0x7f) == 0x7f)
        return false;
    return true;
  }
  const BlockFormat *format = findBlockFormat(type);
  if (!format)
    return true;
  for (int64_t i = 0; i < columns / format->elements; ++i)
    if (!hasFiniteScales(*format, bytes + i * format->bytes))
      return false;
  return true;
}

Status narrow(DataType type, const float *values, int64_t columns,
              std::byte *out) {
  if (!isBlock(type))
    return convertFromFloat(type, values, columns, out);
  quantizeBlocks(type, values, columns / elementsPerBlock(type), out);
  return Status();
}

/// The first row at which something is wrong.
class FirstRow {
public:
  void note(int64_t row) {
    int64_t known = first.load(std::memory_order_relaxed);
    while (row < known && !first.compare_exchange_weak(known, row)) {
    }
  }
  bool any() const { return first != kNone; }
  std::string text() const { return "row " + std::to_string(first.load()); }

private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> first{kNone};
};

} // namespace

Status TensorRows::convert(const ConvertedTensor &tensor,
                           const TensorView *view, DataType type,
                           const Sink &sink) {
  const Rows rows(tensor, view);
  const std::string name =
      "tensor " + inQuotes(tensor.source.empty() ? tensor.name : tensor.source);
  if (rows.count == 0)
    return Status();
  // Any failure of a conversion is one of the types, so of every row.
  std::vector<float> probe(static_cast<size_t>(rows.columns));
  const int64_t rawBytes =
      view && tensor.order == TensorOrder::Transposed
          ? rows.columns * static_cast<int64_t>(sizeOf(view->type))
          : 0;
  std::vector<std::byte> probeRaw(static_cast<size_t>(rawBytes));
  KF_RETURN_IF_ERROR(rows.read(0, probe.data(), probeRaw.data()).in(name));

  const bool copied = rows.are(type);
  const int64_t rowBytes =
      rows.columns / elementsPerBlock(type) * bytesPerBlock(type);
  const int64_t taskRows =
      std::clamp<int64_t>(kTaskElements / rows.columns, 1, rows.count);
  const int64_t allTasks = (rows.count + taskRows - 1) / taskRows;
  const int64_t tasks =
      std::min<int64_t>(allTasks, int64_t(pool.size()) * kTasksPerThread);
  values.resize(static_cast<size_t>(tasks * taskRows * rows.columns));
  raw.resize(static_cast<size_t>(tasks * rawBytes));
  bytes.resize(static_cast<size_t>(tasks * taskRows * rowBytes));

  FirstRow notFinite, noRate, tooLarge;
  for (int64_t begin = 0; begin < rows.count; begin += tasks * taskRows) {
    const int64_t end = std::min(rows.count, begin + tasks * taskRows);
    auto convertTask = [&](int64_t task) {
      float *row = values.data() + task * taskRows * rows.columns;
      std::byte *out = bytes.data() + task * taskRows * rowBytes;
      const int64_t first = begin + task * taskRows;
      for (int64_t i = first; i < std::min(end, first + taskRows); ++i) {
        const bool read = rows.read(i, row, raw.data() + task * rawBytes).ok();
        if (tensor.negatedExponential &&
            !std::all_of(row, row + rows.columns,
                         [](float x) { return std::isfinite(x) && x < 0; }))
          return noRate.note(i);
        if (!read || !std::all_of(row, row + rows.columns,
                                  [](float x) { return std::isfinite(x); }))
          return notFinite.note(i);
        if (copied)
          std::memcpy(out, rows.bytesOf(i).data(),
                      static_cast<size_t>(rowBytes));
        else if (!narrow(type, row, rows.columns, out).ok() ||
                 !fits(type, out, rows.columns))
          return tooLarge.note(i);
        row += rows.columns;
        out += rowBytes;
      }
    };
    KF_RETURN_IF_ERROR(pool.parallelFor(tasks, [&](int64_t task) {
      convertTask(task);
      return Status();
    }));
    if (notFinite.any())
      return Status::error(name + " has a NaN or an infinity in " +
                           notFinite.text());
    if (noRate.any())
      return Status::error(name + " has a value in " + noRate.text() +
                           " of which -exp is no finite number below 0");
    if (tooLarge.any())
      return Status::error(name + " has a value in " + tooLarge.text() +
                           " that is too large for " +
                           std::string(nameOf(type)));
    KF_RETURN_IF_ERROR(
        sink({bytes.data(), static_cast<size_t>((end - begin) * rowBytes)}));
  }
  return Status();
}
