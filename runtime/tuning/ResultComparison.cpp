//===- ResultComparison.cpp - Results against the reference's -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/ResultComparison.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace kf;

namespace {

/// What numbers of a type are computed to, relative to their size. A block's
/// codes may be the next ones.
double unitOf(DataType type) {
  switch (type) {
  case DataType::F64:
    return 1e-12;
  case DataType::F16:
    return 2e-3;
  case DataType::BF16:
    return 1.6e-2;
  default:
    return isBlock(type) ? 3e-2 : 2e-5;
  }
}

bool isReal(DataType type) {
  return isFloat(type) || isBlock(type) || type == DataType::F64;
}

template <typename T>
std::vector<double> widenIntegers(const HostTensor &tensor) {
  const T *first = tensor.data<T>();
  return {first, first + tensor.elementCount()};
}

std::string shapeText(const HostTensor &tensor) {
  std::string text;
  for (int64_t extent : tensor.shape)
    text += std::to_string(extent) + "x";
  return text + std::string(nameOf(tensor.type));
}

std::string numberText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

/// Sums over all results of what a ResultDifference has.
class Judge {
public:
  explicit Judge(const ResultTolerance &tolerance) : tolerance(tolerance) {}

  void complain(const std::string &text) {
    if (difference.agrees)
      difference.complaint = text;
    difference.agrees = false;
  }

  /// Of outliers, `rounded` are the expected elements of f16; otherwise empty.
  void compare(size_t number, DataType type, std::span<const double> found,
               std::span<const double> expected,
               std::span<const double> rounded) {
    auto isRead = [&](size_t i) {
      return rounded.empty() || std::isinf(rounded[i]);
    };
    double largest = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      if (isRead(i) && std::isfinite(expected[i]))
        largest = std::max(largest, std::abs(expected[i]));
    const double unit = unitOf(rounded.empty() ? type : DataType::F16);
    const double rounding = tolerance.roundsRows     ? 3e-2
                            : tolerance.roundsPairs  ? 1e-2
                            : tolerance.roundsBlocks ? 1e-3
                                                     : std::min(unit, 5e-6);
    int64_t others = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!isRead(i))
        continue;
      add(found[i], expected[i]);
      double most =
          unit * std::max(1.0, std::abs(expected[i])) + rounding * largest;
      most *= tolerance.scale;
      if (!isReal(type)) {
        most = !tolerance.roundsIntegers ? 0 : type == DataType::I8 ? 1 : 4;
        others += found[i] != expected[i];
      }
      if (!agrees(found[i], expected[i], most))
        complain("result " + std::to_string(number) + ", element " +
                 std::to_string(i) + " is " + numberText(found[i]) +
                 " instead of " + numberText(expected[i]));
    }
    if (others > std::max<int64_t>(1, int64_t(expected.size() / 100)))
      complain("result " + std::to_string(number) + " has " +
               std::to_string(others) + " of " +
               std::to_string(expected.size()) + " integers that differ");
  }

  ResultDifference take() {
    if (count) {
      difference.mean = absolute / static_cast<double>(count);
      difference.relative = squaresExpected > 0
                                ? std::sqrt(squares / squaresExpected)
                                : std::sqrt(squares);
      if (squaresFound > 0 && squaresExpected > 0)
        difference.cosine =
            product / std::sqrt(squaresFound) / std::sqrt(squaresExpected);
      else if (squaresFound != squaresExpected)
        difference.cosine = 0;
    }
    return std::move(difference);
  }

private:
  /// Whether finite numbers differ by no more than `most`, and others are the
  /// same; rows in 8 bits hold no infinity, and split ones multiply none.
  bool agrees(double found, double expected, double most) const {
    if (std::isfinite(expected))
      return std::abs(found - expected) <= most;
    if (std::isnan(found))
      return std::isnan(expected) || tolerance.roundsRows ||
             tolerance.splitsRows;
    return found == expected;
  }

  void add(double found, double expected) {
    if (!std::isfinite(found) || !std::isfinite(expected))
      return;
    const double off = std::abs(found - expected);
    difference.largest = std::max(difference.largest, off);
    absolute += off;
    squares += off * off;
    squaresFound += found * found;
    squaresExpected += expected * expected;
    product += found * expected;
    ++count;
  }

  const ResultTolerance tolerance;
  ResultDifference difference;
  double absolute = 0, squares = 0, squaresFound = 0, squaresExpected = 0,
         product = 0;
  int64_t count = 0;
};

/// The rounded elements that result `number` has the outliers of; nothing for
/// another result.
Result<std::vector<double>> roundedOf(std::span<const HostTensor> results,
                                      std::span<const KernelOutput> outputs,
                                      size_t number) {
  if (number >= outputs.size() || !outputs[number].rounded)
    return std::vector<double>();
  const size_t rounded = *outputs[number].rounded;
  if (rounded >= results.size() ||
      results[rounded].shape != results[number].shape)
    return Status::error(
        "result " + std::to_string(number) + " has the outliers of result " +
        std::to_string(rounded) + ", which is not there in the same shape");
  return toDoubles(results[rounded]);
}

} // namespace

Result<std::vector<double>> kf::toDoubles(const HostTensor &tensor) try {
  switch (tensor.type) {
  case DataType::F64:
    return widenIntegers<double>(tensor);
  case DataType::I64:
    return widenIntegers<int64_t>(tensor);
  case DataType::I32:
    return widenIntegers<int32_t>(tensor);
  case DataType::I16:
    return widenIntegers<int16_t>(tensor);
  case DataType::I8:
    return widenIntegers<int8_t>(tensor);
  case DataType::U8:
  case DataType::I1:
    return widenIntegers<uint8_t>(tensor);
  default:
    break;
  }
  std::vector<float> values(tensor.elementCount());
  KF_RETURN_IF_ERROR(convertToFloat(tensor.type, tensor.bytes.data(),
                                    static_cast<int64_t>(values.size()),
                                    values.data()));
  return std::vector<double>(values.begin(), values.end());
} catch (...) {
  return statusOfException();
}

Result<ResultDifference>
kf::compareResults(std::span<const HostTensor> found,
                   std::span<const HostTensor> expected,
                   const ResultTolerance &tolerance,
                   std::span<const KernelOutput> outputs) try {
  Judge judge(tolerance);
  if (found.size() != expected.size())
    judge.complain("there are " + std::to_string(found.size()) +
                   " results instead of " + std::to_string(expected.size()));
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    if (found[i].type != expected[i].type ||
        found[i].shape != expected[i].shape) {
      judge.complain("result " + std::to_string(i) + " is " +
                     shapeText(found[i]) + " instead of " +
                     shapeText(expected[i]));
      continue;
    }
    // 64 bits of an integer are more than a double holds.
    if (expected[i].type == DataType::I64 &&
        found[i].bytes != expected[i].bytes)
      judge.complain("result " + std::to_string(i) + " differs");
    KF_ASSIGN_OR_RETURN(std::vector<double> a, toDoubles(found[i]));
    KF_ASSIGN_OR_RETURN(std::vector<double> b, toDoubles(expected[i]));
    KF_ASSIGN_OR_RETURN(std::vector<double> rounded,
                        roundedOf(expected, outputs, i));
    judge.compare(i, expected[i].type, a, b, rounded);
  }
  return judge.take();
} catch (...) {
  return statusOfException();
}
