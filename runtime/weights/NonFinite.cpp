//===- NonFinite.cpp - Weights that are no numbers ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/NonFinite.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

using namespace kf;

namespace {

/// Bytes that one thread reads at a time, about.
constexpr uint64_t kStretch = uint64_t(4) << 20;

/// Whether one of `count` words has all bits of `exponent`, so that it is an
/// infinity or a NaN.
template <typename Word>
bool hasExponent(const std::byte *data, uint64_t count, Word exponent) {
  bool found = false;
  for (uint64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, data + i * sizeof(Word), sizeof(Word));
    found |= (word & exponent) == exponent;
  }
  return found;
}

/// Of doubles, which kernels get as f32.
bool isFiniteAsFloat(const std::byte *data, uint64_t count) {
  bool finite = true;
  for (uint64_t i = 0; i < count; ++i) {
    double value;
    std::memcpy(&value, data + i * sizeof(double), sizeof(double));
    finite &= std::isfinite(static_cast<float>(value));
  }
  return finite;
}

/// Whether `bytes` bytes of whole blocks, or elements, are finite. A scale that
/// is not finite makes every element of its block so.
bool isFinite(DataType type, const std::byte *data, uint64_t bytes) {
  switch (type) {
  case DataType::F64:
    return isFiniteAsFloat(data, bytes / 8);
  case DataType::F32:
    return !hasExponent<uint32_t>(data, bytes / 4, 0x7f800000);
  case DataType::F16:
    return !hasExponent<uint16_t>(data, bytes / 2, 0x7c00);
  case DataType::BF16:
    return !hasExponent<uint16_t>(data, bytes / 2, 0x7f80);
  case DataType::F8E4M3:
    return !hasExponent<uint8_t>(data, bytes, 0x7f);
  default:
    break;
  }
  const BlockFormat *format = findBlockFormat(type);
  if (!format)
    return true; // whole numbers
  for (const std::byte *block = data; block != data + bytes;
       block += format->bytes)
    if (!hasFiniteScales(*format, block))
      return false;
  return true;
}

/// What is the matter with row `row`, which is not finite.
Result<std::optional<std::string>> describe(const TensorView &view,
                                            uint64_t row, uint64_t rowBytes) {
  std::vector<float> values(static_cast<size_t>(view.shape.back()));
  KF_RETURN_IF_ERROR(convertToFloat(
      view.type, static_cast<const std::byte *>(view.data) + row * rowBytes,
      view.shape.back(), values.data()));
  const auto bad = std::ranges::find_if_not(
      values, [](float value) { return std::isfinite(value); });
  const bool isNan = bad != values.end() && std::isnan(*bad);
  return std::optional((isNan ? "a NaN in row " : "an infinity in row ") +
                       std::to_string(row));
}

} // namespace

Result<std::optional<std::string>>
kf::findNonFinite(const TensorView &view, ThreadPool *pool,
                  CancelFlag cancelled,
                  const std::function<void(uint64_t, uint64_t)> &onRead) try {
  if (view.bytes == 0)
    return std::optional<std::string>();
  const int64_t columns = view.shape.empty() ? 1 : view.shape.back();
  const auto rowBytes = static_cast<uint64_t>(
      columns / elementsPerBlock(view.type) * bytesPerBlock(view.type));
  const auto *data = static_cast<const std::byte *>(view.data);
  const uint64_t rows = view.bytes / rowBytes;
  const uint64_t rowsEach = std::max<uint64_t>(kStretch / rowBytes, 1);
  std::atomic<uint64_t> first = rows; // that is not finite
  auto examine = [&](int64_t number) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    const uint64_t begin = static_cast<uint64_t>(number) * rowsEach;
    const uint64_t end = std::min(begin + rowsEach, rows);
    for (uint64_t row = begin; row < end && row < first; ++row) {
      if (isFinite(view.type, data + row * rowBytes, rowBytes))
        continue;
      for (uint64_t known = first;
           row < known && !first.compare_exchange_weak(known, row);) {
      }
      break;
    }
    if (onRead)
      onRead(begin * rowBytes, (end - begin) * rowBytes);
    return Status();
  };
  const auto count = static_cast<int64_t>((rows + rowsEach - 1) / rowsEach);
  if (pool)
    KF_RETURN_IF_ERROR(pool->parallelFor(count, examine));
  else
    for (int64_t number = 0; number < count; ++number)
      KF_RETURN_IF_ERROR(examine(number));
  if (first == rows)
    return std::optional<std::string>();
  return describe(view, first, rowBytes);
} catch (...) {
  return statusOfException();
}
