//===- ShapeOps.cpp - Quantization, slices, reshapes ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceOps.h"

#include "runtime/core/BlockRounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kf::reference {
namespace {

/// Elements of a row in 8 bits that share a scale.
constexpr int64_t kUnit = PackedBlock::unit;

/// Bits of f16's significand.
constexpr int kHalfBits = 11;

/// Elements offset + i * stride, i < size, exist in a dimension of `extent`.
bool sliceFits(int64_t extent, int64_t offset, int64_t size, int64_t stride) {
  if (offset < 0 || size < 0 || stride < 1)
    return false;
  if (size == 0)
    return offset <= extent;
  int64_t last;
  return !__builtin_mul_overflow(size - 1, stride, &last) &&
         !__builtin_add_overflow(last, offset, &last) && last < extent;
}

/// Elements from one to the next along each dimension.
std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

/// The tensor of `shape` whose element at an index is `x`'s number `first` plus
/// the index times `steps`.
Result<Tensor> gather(const TensorView &x, std::vector<int64_t> shape,
                      int64_t first, const std::vector<int64_t> &steps) {
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(x.type, shape));
  size_t bytes = sizeOf(x.type);
  std::vector<int64_t> index(shape.size()); // of the element in the result
  int64_t count = result.view().count(), source = first;
  for (int64_t element = 0; element < count; ++element) {
    std::memcpy(result.bytes.data() + element * bytes, x.data + source * bytes,
                bytes);
    for (size_t i = shape.size(); i-- > 0;) {
      source += steps[i];
      if (++index[i] < shape[i])
        break;
      source -= steps[i] * shape[i];
      index[i] = 0;
    }
  }
  return result;
}

} // namespace

Result<Tensor> quantize(const TensorView &x, DataType format) {
  if (!(x.type == DataType::F32))
    return Status::error("kf.quantize C1: x is " + describe(x.type, x.shape) +
                         "; f32 elements are expected");
  Result<Tensor> result = Tensor::zeros(format, x.shape);
  if (!result)
    return result.status().in("kf.quantize C2");
  KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(x));
  quantizeBlocks(format, values.data(), x.count() / elementsPerBlock(format),
                 result->bytes.data());
  return result;
}

Result<std::vector<Tensor>> roundHalf(const TensorView &x) {
  if (x.type != DataType::F32)
    return Status::error("kf.round_half C1: x is " + describe(x.type, x.shape) +
                         "; f32 elements are expected");
  KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(x));
  KF_ASSIGN_OR_RETURN(Tensor rounded, Tensor::zeros(DataType::F16, x.shape));
  KF_ASSIGN_OR_RETURN(Tensor outliers, Tensor::zeros(DataType::F32, x.shape));
  for (int64_t i = 0; i < x.count(); ++i) {
    putReal(rounded, i, values[i]);
    int exponent = 0;
    const double significand = std::frexp(double(values[i]), &exponent);
    outliers.floats()[i] =
        std::isfinite(values[i])
            ? static_cast<float>(
                  std::ldexp(std::nearbyint(std::ldexp(significand, kHalfBits)),
                             exponent - kHalfBits))
            : values[i];
  }
  std::vector<Tensor> results;
  results.push_back(std::move(rounded));
  results.push_back(std::move(outliers));
  return results;
}

Result<Tensor> insertOutliers(const TensorView &rounded,
                              const TensorView &outliers) {
  if (rounded.type != DataType::F16 || outliers.type != DataType::F32 ||
      rounded.shape != outliers.shape)
    return Status::error(
        "kf.matmul C9: x is " + describe(rounded.type, rounded.shape) +
        " with outliers " + describe(outliers.type, outliers.shape));
  KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(rounded));
  KF_ASSIGN_OR_RETURN(std::vector<float> others, widen(outliers));
  KF_ASSIGN_OR_RETURN(Tensor result,
                      Tensor::zeros(DataType::F32, rounded.shape));
  for (size_t i = 0; i < values.size(); ++i)
    result.floats()[i] = std::isinf(values[i]) ? others[i] : values[i];
  return result;
}

Result<std::vector<Tensor>> quantizeRows(const TensorView &x, int64_t group) {
  if (x.rank() != 2 || !isFloat(x.type) || x.columns() % kUnit != 0)
    return Status::error("kf.quantize_rows C1: x is " +
                         describe(x.type, x.shape) +
                         ", not [M, K] of float elements, K a multiple of 32");
  if (group != 16 && group != 32)
    return Status::error("kf.quantize_rows C2: group is " +
                         std::to_string(group) + ", not 16 or 32");
  const int64_t m = x.shape[0], k = x.shape[1];
  KF_ASSIGN_OR_RETURN(std::vector<float> values, widen(x));
  KF_ASSIGN_OR_RETURN(Tensor codes, Tensor::zeros(DataType::I8, {m, k}));
  KF_ASSIGN_OR_RETURN(Tensor scales,
                      Tensor::zeros(DataType::F32, {m, k / kUnit}));
  KF_ASSIGN_OR_RETURN(Tensor sums,
                      Tensor::zeros(DataType::I32, {m, k / group}));
  auto *bytes = reinterpret_cast<int8_t *>(codes.bytes.data());
  for (int64_t first = 0; first < m * k; first += kUnit) {
    float most = 0;
    bool isFinite = true;
    for (int64_t i = first; i < first + kUnit; ++i) {
      most = std::max(most, std::fabs(values[i]));
      isFinite &= std::isfinite(values[i]);
    }
    if (isFinite && most < kLeastOfBlock)
      continue;
    scales.floats()[first / kUnit] =
        isFinite ? most * (1.0f / kLargestCode)
                 : std::numeric_limits<float>::quiet_NaN();
    if (!isFinite)
      continue;
    const float inverse = kLargestCode / most;
    for (int64_t i = first; i < first + kUnit; ++i) {
      bytes[i] = static_cast<int8_t>(std::nearbyint(values[i] * inverse));
      sums.ints()[i / group] += bytes[i];
    }
  }
  std::vector<Tensor> results;
  results.push_back(std::move(codes));
  results.push_back(std::move(scales));
  results.push_back(std::move(sums));
  return results;
}

Result<Tensor> scaleRows(const TensorView &codes, const TensorView &scales) {
  if (codes.rank() != 2 || !(codes.type == DataType::I8))
    return Status::error("kf.matmul C1: x is " +
                         describe(codes.type, codes.shape) +
                         ", not a matrix of i8, as it has scales");
  if (scales.shape !=
          std::vector<int64_t>{codes.shape[0], codes.shape[1] / kUnit} ||
      codes.shape[1] % kUnit != 0 || !(scales.type == DataType::F32))
    return Status::error("kf.matmul C6: scales are " +
                         describe(scales.type, scales.shape) +
                         " for codes of " + describe(codes.type, codes.shape));
  KF_ASSIGN_OR_RETURN(std::vector<float> factors, widen(scales));
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, codes.shape));
  const auto *bytes = reinterpret_cast<const int8_t *>(codes.data);
  for (int64_t i = 0; i < codes.count(); ++i)
    result.floats()[i] = static_cast<float>(bytes[i]) * factors[i / kUnit];
  return result;
}

Result<Tensor> dequantize(const TensorView &x) {
  if (!isBlock(x.type))
    return Status::error("kf.dequantize C1: x is " + describe(x.type, x.shape) +
                         "; quantized elements are expected");
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(DataType::F32, x.shape));
  widen(x, 0, x.count(), result.floats());
  return result;
}

Result<Tensor> extractSlice(const TensorView &x,
                            std::span<const int64_t> offsets,
                            std::span<const int64_t> sizes,
                            std::span<const int64_t> strides) {
  if (isBlock(x.type))
    return Status::error("a quantized tensor cannot be sliced; dequantize it "
                         "first");
  size_t rank = x.rank();
  if (offsets.size() != rank || sizes.size() != rank || strides.size() != rank)
    return Status::error("a slice of a tensor of rank " + std::to_string(rank) +
                         " needs as many offsets, sizes and strides");
  for (size_t i = 0; i < rank; ++i)
    if (!sliceFits(x.shape[i], offsets[i], sizes[i], strides[i]))
      return Status::error("elements " + std::to_string(offsets[i]) +
                           " + i * " + std::to_string(strides[i]) + ", i < " +
                           std::to_string(sizes[i]) +
                           ", are not in dimension " + std::to_string(i) +
                           " of " + describe(x.type, x.shape));
  std::vector<int64_t> steps = stridesOf(x.shape);
  int64_t first = 0;
  for (size_t i = 0; i < rank; ++i) {
    first += offsets[i] * steps[i];
    steps[i] *= strides[i];
  }
  return gather(x, {sizes.begin(), sizes.end()}, first, steps);
}

Result<Tensor> transpose(const TensorView &x,
                         std::span<const int64_t> permutation) {
  const size_t rank = x.rank();
  std::vector<bool> seen(rank);
  std::vector<int64_t> shape, steps, from = stridesOf(x.shape);
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= int64_t(rank) || seen[dim])
      break;
    seen[dim] = true;
    shape.push_back(x.shape[dim]);
    steps.push_back(from[dim]);
  }
  if (isBlock(x.type) || shape.size() != rank || permutation.size() != rank)
    return Status::error("kf.transpose C1: the permutation does not fit " +
                         describe(x.type, x.shape));
  return gather(x, std::move(shape), 0, steps);
}

Result<Tensor> broadcast(const TensorView &x, std::vector<int64_t> shape) {
  const size_t rank = x.rank();
  if (isBlock(x.type) || shape.size() < rank)
    return Status::error("kf.broadcast C2: x is " + describe(x.type, x.shape) +
                         " for a result of rank " +
                         std::to_string(shape.size()));
  const size_t missing = shape.size() - rank;
  std::vector<int64_t> steps(shape.size()), from = stridesOf(x.shape);
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t extent = x.shape[dim];
    if (extent != 1 && extent != shape[dim + missing])
      return Status::error("kf.broadcast C3: x is " +
                           describe(x.type, x.shape) + " for a result of " +
                           describe(x.type, shape));
    steps[dim + missing] = extent == 1 ? 0 : from[dim];
  }
  return gather(x, std::move(shape), 0, steps);
}

Result<Tensor> concat(std::span<const TensorView> parts, int64_t dim) {
  const TensorView &head = parts[0];
  if (dim < 0 || dim >= int64_t(head.rank()) || isBlock(head.type))
    return Status::error("tensor.concat: dimension " + std::to_string(dim) +
                         " of " + describe(head.type, head.shape));
  std::vector<int64_t> shape = head.shape;
  shape[dim] = 0;
  for (const TensorView &part : parts) {
    std::vector<int64_t> others = part.shape;
    if (part.rank() == head.rank())
      others[dim] = head.shape[dim];
    if (part.type != head.type || others != head.shape ||
        __builtin_add_overflow(shape[dim], part.shape[dim], &shape[dim]))
      return Status::error("tensor.concat: " + describe(part.type, part.shape) +
                           " does not fit " + describe(head.type, head.shape));
  }
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(head.type, shape));
  int64_t rows = 1;
  for (int64_t i = 0; i < dim; ++i)
    rows *= shape[i];
  std::byte *to = result.bytes.data();
  for (int64_t row = 0; row < rows; ++row)
    for (const TensorView &part : parts) {
      size_t bytes = sizeOf(part.type) * (part.count() / rows);
      if (bytes > 0)
        std::memcpy(to, part.data + row * bytes, bytes);
      to += bytes;
    }
  return result;
}

Result<Tensor> iota(DataType type, std::vector<int64_t> shape, int64_t dim) {
  if ((type != DataType::I32 && type != DataType::I64) || dim < 0 ||
      dim >= int64_t(shape.size()))
    return Status::error("kf.iota: dimension " + std::to_string(dim) + " of " +
                         describe(type, shape));
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(type, shape));
  const int64_t count = result.view().count(), step = stridesOf(shape)[dim];
  for (int64_t i = 0; i < count; ++i)
    putInteger(result, i, i / step % shape[dim]);
  return result;
}

Result<Tensor> reshape(const TensorView &x, std::vector<int64_t> shape) {
  KF_ASSIGN_OR_RETURN(int64_t from, checkedByteCount(x.type, x.shape));
  KF_ASSIGN_OR_RETURN(int64_t to, checkedByteCount(x.type, shape));
  if (from != to)
    return Status::error("a tensor of type " + describe(x.type, x.shape) +
                         " has not as many elements as one of type " +
                         describe(x.type, shape));
  KF_ASSIGN_OR_RETURN(Tensor result, Tensor::zeros(x.type, std::move(shape)));
  if (from > 0)
    std::memcpy(result.bytes.data(), x.data, result.bytes.size());
  return result;
}

} // namespace kf::reference
