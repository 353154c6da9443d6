//===- ReferenceTensor.cpp - Operands of the reference ops ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceTensor.h"

#include "runtime/core/BlockRounding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

namespace kf::reference {
namespace {

/// Bytes of a scale of blocks in a cache.
constexpr int64_t kScaleBytes = 2;

/// Conversions of types that were checked when their tensor was made.
void widenPlain(DataType type, const void *src, int64_t count, float *dst) {
  [[maybe_unused]] Status status = convertToFloat(type, src, count, dst);
  assert(status.ok() && "every plain type widens");
}
void roundPlain(DataType type, const float *src, int64_t count, void *dst) {
  [[maybe_unused]] Status status = convertFromFloat(type, src, count, dst);
  assert(status.ok() && "caches and results have float types");
}

template <typename T> void put(Tensor &x, int64_t i, T value) {
  std::memcpy(x.bytes.data() + i * int64_t(sizeof(T)), &value, sizeof(T));
}

} // namespace

std::string describe(DataType type, std::span<const int64_t> shape) {
  std::string text;
  for (int64_t dim : shape)
    text += (dim == -1 ? "?" : std::to_string(dim)) + "x";
  return text + std::string(nameOf(type));
}

int64_t TensorView::count() const {
  int64_t product = 1;
  for (int64_t dim : shape)
    product *= dim;
  return product;
}

Result<Tensor> Tensor::zeros(DataType type, std::vector<int64_t> shape) {
  KF_ASSIGN_OR_RETURN(int64_t size, checkedByteCount(type, shape));
  Tensor tensor;
  try {
    tensor.bytes.resize(static_cast<size_t>(size));
  } catch (const std::exception &) { // bad_alloc or length_error
    return Status::error("no memory for a tensor of type " +
                             describe(type, shape),
                         StatusCode::OutOfMemory);
  }
  tensor.type = type;
  tensor.shape = std::move(shape);
  return tensor;
}

void widen(const TensorView &tensor, int64_t first, int64_t count, float *dst) {
  int64_t elements = elementsPerBlock(tensor.type);
  assert(first % elements == 0 && "part of a block");
  widenPlain(tensor.type,
             tensor.data + first / elements * bytesPerBlock(tensor.type), count,
             dst);
}

Result<std::vector<float>> widen(const TensorView &tensor) {
  std::vector<float> values;
  try {
    values.resize(static_cast<size_t>(tensor.count()));
  } catch (const std::exception &) { // bad_alloc or length_error
    return Status::error("no memory to widen a tensor of type " +
                             describe(tensor.type, tensor.shape),
                         StatusCode::OutOfMemory);
  }
  widen(tensor, 0, tensor.count(), values.data());
  return values;
}

bool isReal(DataType type) { return isFloat(type) || type == DataType::F64; }

void putReal(Tensor &x, int64_t i, double value) {
  if (x.type == DataType::F64)
    return put(x, i, value);
  float single = static_cast<float>(value);
  if (x.type == DataType::F16)
    return put(x, i, floatToHalf(single));
  if (x.type == DataType::BF16)
    return put(x, i, floatToBfloat(single));
  put(x, i, single);
}

void putInteger(Tensor &x, int64_t i, int64_t value) {
  switch (x.type) {
  case DataType::I1:
    return put(x, i, static_cast<uint8_t>(value & 1));
  case DataType::I8:
    return put(x, i, static_cast<int8_t>(value));
  case DataType::I16:
    return put(x, i, static_cast<int16_t>(value));
  case DataType::I32:
    return put(x, i, static_cast<int32_t>(value));
  default:
    return put(x, i, value);
  }
}

Result<Tensor> roundTo(Tensor tensor, DataType type) {
  if (tensor.type == type)
    return tensor;
  if (tensor.type != DataType::F32 || !isFloat(type))
    return Status::error("a result of " + std::string(nameOf(tensor.type)) +
                         " does not convert to " + std::string(nameOf(type)));
  KF_ASSIGN_OR_RETURN(Tensor rounded, Tensor::zeros(type, tensor.shape));
  roundPlain(type, tensor.floats(), tensor.view().count(),
             rounded.bytes.data());
  return rounded;
}

Result<std::vector<int32_t>> readInts(const TensorView &tensor,
                                      const char *what) {
  if (tensor.type != DataType::I32)
    return Status::error(std::string(what) + " are " +
                         std::string(nameOf(tensor.type)) + ", not i32");
  std::vector<int32_t> values;
  try {
    values.resize(static_cast<size_t>(tensor.count()));
  } catch (const std::exception &) { // bad_alloc or length_error
    return Status::error(std::string("no memory for the ") + what,
                         StatusCode::OutOfMemory);
  }
  if (!values.empty())
    std::memcpy(values.data(), tensor.data, values.size() * sizeof(int32_t));
  return values;
}

//===----------------------------------------------------------------------===//
// CacheView
//===----------------------------------------------------------------------===//

CacheView::Row CacheView::find(int64_t layer, int kind, int64_t head,
                               int64_t slot) const {
  const bool isBlocks = isBlock(spec.type);
  const int64_t d = spec.headDim, groups = d / elementsPerBlock(spec.type);
  const int64_t element =
      isBlocks ? 1 : static_cast<int64_t>(sizeOf(spec.type));
  const int64_t codeBytes = spec.page * d * element;
  const int64_t scaleBytes = isBlocks ? spec.page * groups * kScaleBytes : 0;
  const int64_t page = layer * pages + slot / spec.page;
  const int64_t index = (page * 2 + kind) * spec.kvHeads + head;
  std::byte *elements = data + index * (codeBytes + scaleBytes);
  std::byte *scales = elements + codeBytes;
  // Values are as keys in blocks of one position.
  const int64_t keyBlock = kind == 0 ? spec.keyBlock : 1;
  const int64_t place = slot % spec.page;
  const int64_t block = place / keyBlock, lane = place % keyBlock;
  return {elements + (block * d * keyBlock + lane) * element,
          scales + (block * groups * keyBlock + lane) * kScaleBytes,
          keyBlock * element, keyBlock * kScaleBytes};
}

void CacheView::read(const Row &row, float *dst) const {
  if (isBlock(spec.type))
    return readBlocks(row, dst);
  if (row.step == static_cast<int64_t>(sizeOf(spec.type)))
    return widenPlain(spec.type, row.elements, spec.headDim, dst);
  for (int64_t d = 0; d < spec.headDim; ++d)
    widenPlain(spec.type, row.elements + d * row.step, 1, dst + d);
}

void CacheView::readBlocks(const Row &row, float *dst) const {
  const int64_t elements = elementsPerBlock(spec.type);
  for (int64_t first = 0; first < spec.headDim; first += elements) {
    float scale;
    widenPlain(DataType::F16, row.scales + first / elements * row.scaleStep, 1,
               &scale);
    for (int64_t d = first; d < first + elements; ++d)
      dst[d] = scale * static_cast<float>(
                           static_cast<int8_t>(row.elements[d * row.step]));
  }
}

void CacheView::write(const Row &row, const float *src) const {
  if (isBlock(spec.type))
    return writeBlocks(row, src);
  for (int64_t d = 0; d < spec.headDim; ++d)
    roundPlain(spec.type, src + d, 1, row.elements + d * row.step);
}

void CacheView::writeBlocks(const Row &row, const float *src) const {
  assert(spec.type == DataType::Q8_0 && "no other cache has blocks");
  constexpr BlockFormat format = *findBlockFormat(DataType::Q8_0);
  for (int64_t group = 0; group < spec.headDim / format.elements; ++group) {
    const float *values = src + group * format.elements;
    uint8_t block[format.bytes];
    quantizeBlocks(spec.type, values, 1, block);
    if (std::any_of(values, values + format.elements, [](float value) {
          return !(std::abs(value) < kTooLargeForBlock);
        })) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      roundPlain(DataType::F16, &nan, 1, block + format.scaleOffset);
    }
    std::memcpy(row.scales + group * row.scaleStep, block + format.scaleOffset,
                kScaleBytes);
    for (int i = 0; i < format.elements; ++i)
      row.elements[(group * format.elements + i) * row.step] =
          static_cast<std::byte>(block[format.low.byteOf(i)]);
  }
}

void CacheView::readKey(int64_t layer, int64_t head, int64_t slot,
                        float *dst) const {
  read(find(layer, 0, head, slot), dst);
}

void CacheView::readValue(int64_t layer, int64_t head, int64_t slot,
                          float *dst) const {
  read(find(layer, 1, head, slot), dst);
}

void CacheView::writeKey(int64_t layer, int64_t head, int64_t slot,
                         const float *src) const {
  write(find(layer, 0, head, slot), src);
}

void CacheView::writeValue(int64_t layer, int64_t head, int64_t slot,
                           const float *src) const {
  write(find(layer, 1, head, slot), src);
}

} // namespace kf::reference
