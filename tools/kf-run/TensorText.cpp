//===- TensorText.cpp - Tensors printed and compared ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorText.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

using namespace kf;

namespace {

template <typename T> T elementAt(const HostTensor &tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.bytes.data() + index * int64_t(sizeof(T)),
              sizeof(T));
  return value;
}

template <typename T> std::string numberText(T value) {
  char buffer[64];
  return std::string(buffer,
                     std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

bool holdsFloats(DataType type) {
  return type == DataType::F32 || type == DataType::F16 ||
         type == DataType::BF16 || type == DataType::F64;
}

/// An element of a float type.
double realAt(const HostTensor &tensor, int64_t index) {
  switch (tensor.type) {
  case DataType::F16:
    return halfToFloat(elementAt<uint16_t>(tensor, index));
  case DataType::BF16:
    return bfloatToFloat(elementAt<uint16_t>(tensor, index));
  case DataType::F64:
    return elementAt<double>(tensor, index);
  default:
    return elementAt<float>(tensor, index);
  }
}

/// An element of an integer type.
int64_t integerAt(const HostTensor &tensor, int64_t index) {
  switch (tensor.type) {
  case DataType::I1:
    return elementAt<uint8_t>(tensor, index) != 0;
  case DataType::U8:
    return elementAt<uint8_t>(tensor, index);
  case DataType::I8:
    return elementAt<int8_t>(tensor, index);
  case DataType::I16:
    return elementAt<int16_t>(tensor, index);
  case DataType::I32:
    return elementAt<int32_t>(tensor, index);
  default:
    return elementAt<int64_t>(tensor, index);
  }
}

/// The shortest text that reads back as the element.
std::string elementText(const HostTensor &tensor, int64_t index) {
  if (!holdsFloats(tensor.type))
    return numberText(integerAt(tensor, index));
  if (tensor.type == DataType::F64)
    return numberText(realAt(tensor, index));
  return numberText(static_cast<float>(realAt(tensor, index)));
}

/// Appends the elements of dimensions [dim, rank) from `index` on; `left` is
/// how many may still be printed.
void appendElements(const HostTensor &tensor, size_t dim, int64_t &index,
                    int64_t &left, std::string &out) {
  const size_t rank = tensor.shape.size();
  if (dim == rank) {
    out += elementText(tensor, index++);
    --left;
    return;
  }
  for (int64_t i = 0; i < tensor.shape[dim]; ++i) {
    const bool inner = dim + 1 == rank;
    if (inner && i > 0)
      out += ' ';
    if (left <= 0) {
      out += "...";
      return;
    }
    if (!inner)
      out += '[';
    appendElements(tensor, dim + 1, index, left, out);
    if (!inner)
      out += ']';
  }
}

/// "[1, 2]" for element `index`.
std::string indexText(const HostTensor &tensor, int64_t index) {
  std::string out;
  for (size_t dim = tensor.shape.size(); dim-- > 0;) {
    out = std::to_string(index % tensor.shape[dim]) +
          (out.empty() ? "" : ", ") + out;
    index /= tensor.shape[dim];
  }
  return "[" + out + "]";
}

/// How far an element is beyond the tolerance; not positive if it is within.
double excess(const HostTensor &found, const HostTensor &expected,
              int64_t index, const Tolerance &tolerance) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!holdsFloats(found.type))
    return integerAt(found, index) == integerAt(expected, index) ? 0 : infinity;
  const double a = realAt(found, index), b = realAt(expected, index);
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  if (!std::isfinite(a) || !std::isfinite(b))
    return infinity;
  return std::abs(a - b) -
         (tolerance.absolute + tolerance.relative * std::abs(b));
}

} // namespace

std::string kf::typeText(const HostTensor &tensor) {
  std::string out;
  for (int64_t dim : tensor.shape)
    out += std::to_string(dim) + "x";
  return out + std::string(nameOf(tensor.type));
}

std::string kf::tensorText(const HostTensor &tensor, int64_t limit) {
  std::string out = typeText(tensor) + "=";
  int64_t index = 0;
  appendElements(tensor, 0, index, limit, out);
  return out;
}

Status kf::compareTensors(const std::string &name, const HostTensor &found,
                          const HostTensor &expected,
                          const Tolerance &tolerance) {
  if (found.type != expected.type || found.shape != expected.shape)
    return Status::error(name + " is " + typeText(found) + ", but " +
                         typeText(expected) + " is expected");
  const int64_t count = found.elementCount();
  int64_t worst = -1, wrong = 0;
  double most = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double by = excess(found, expected, i, tolerance);
    if (!(by > 0))
      continue;
    ++wrong;
    if (by > most || worst < 0) {
      worst = i;
      most = by;
    }
  }
  if (wrong == 0)
    return Status();
  std::string line = name + indexText(found, worst) + ": expected " +
                     elementText(expected, worst) + ", found " +
                     elementText(found, worst);
  if (holdsFloats(found.type))
    line += "; the tolerance is " + numberText(tolerance.absolute) + " + " +
            numberText(tolerance.relative) + " * |expected|";
  return Status::error(line + " (" + std::to_string(wrong) + " of " +
                       std::to_string(count) +
                       " elements differ by more; this one by most)");
}
