//===- ReferenceTensor.cpp - Operands of the reference ops ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Reference/ReferenceTensor.h"

#include <cstring>
#include <new>
#include <stdexcept>

namespace kf::reference {
namespace {

/// Conversions of types that were checked when their tensor was made.
void widenPlain(DataType type, const void *src, int64_t count, float *dst) {
  [[maybe_unused]] Status status = convertToFloat(type, src, count, dst);
  assert(status.ok() && "every plain type widens");
}
void roundPlain(DataType type, const float *src, int64_t count, void *dst) {
  [[maybe_unused]] Status status = convertFromFloat(type, src, count, dst);
  assert(status.ok() && "caches and results have float types");
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
                         describe(type, shape));
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
                         describe(tensor.type, tensor.shape));
  }
  widen(tensor, 0, tensor.count(), values.data());
  return values;
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
    return Status::error(std::string("no memory for the ") + what);
  }
  if (!values.empty())
    std::memcpy(values.data(), tensor.data, values.size() * sizeof(int32_t));
  return values;
}

//===----------------------------------------------------------------------===//
// CacheView
//===----------------------------------------------------------------------===//

std::byte *CacheView::head(int64_t layer, int kind, int64_t head,
                           int64_t slot) const {
  int64_t page = layer * pages + slot / spec.page;
  int64_t index = (page * 2 + kind) * spec.kvHeads + head;
  return data + index * spec.page * spec.headDim *
                    static_cast<int64_t>(sizeOf(spec.type));
}

std::byte *CacheView::keyElement(int64_t layer, int64_t head, int64_t slot,
                                 int64_t d) const {
  int64_t place = slot % spec.page;
  int64_t block = place / spec.keyBlock, lane = place % spec.keyBlock;
  int64_t element = (block * spec.headDim + d) * spec.keyBlock + lane;
  return this->head(layer, 0, head, slot) +
         element * static_cast<int64_t>(sizeOf(spec.type));
}

std::byte *CacheView::value(int64_t layer, int64_t head, int64_t slot) const {
  size_t row = sizeOf(spec.type) * static_cast<size_t>(spec.headDim);
  return this->head(layer, 1, head, slot) + slot % spec.page * row;
}

void CacheView::readKey(int64_t layer, int64_t head, int64_t slot,
                        float *dst) const {
  if (spec.keyBlock == 1) {
    widenPlain(spec.type, keyElement(layer, head, slot, 0), spec.headDim, dst);
    return;
  }
  for (int64_t d = 0; d < spec.headDim; ++d)
    widenPlain(spec.type, keyElement(layer, head, slot, d), 1, dst + d);
}

void CacheView::readValue(int64_t layer, int64_t head, int64_t slot,
                          float *dst) const {
  widenPlain(spec.type, value(layer, head, slot), spec.headDim, dst);
}

void CacheView::writeKey(int64_t layer, int64_t head, int64_t slot,
                         const float *src) const {
  for (int64_t d = 0; d < spec.headDim; ++d)
    roundPlain(spec.type, src + d, 1, keyElement(layer, head, slot, d));
}

void CacheView::writeValue(int64_t layer, int64_t head, int64_t slot,
                           const float *src) const {
  roundPlain(spec.type, src, spec.headDim, value(layer, head, slot));
}

} // namespace kf::reference
