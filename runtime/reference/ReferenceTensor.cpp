//===- ReferenceTensor.cpp - Operands of the reference ops ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/reference/ReferenceTensor.h"

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

std::string nameOf(const ElementType &type) {
  return std::string(type.block ? infoOf(*type.block).name
                                : kf::nameOf(type.data));
}

Result<ElementType> parseElementType(const std::string &name) {
  if (std::optional<BlockFormat> block = parseBlockFormat(name))
    return ElementType(*block);
  KF_ASSIGN_OR_RETURN(DataType data, parseDataType(name));
  return ElementType(data);
}

Result<int64_t> byteSize(const ElementType &type,
                         std::span<const int64_t> shape) {
  if (!type.block) {
    KF_ASSIGN_OR_RETURN(int64_t count,
                        checkedElementCount(shape, sizeOf(type.data)));
    return count * static_cast<int64_t>(sizeOf(type.data));
  }
  const BlockFormatInfo &info = infoOf(*type.block);
  if (shape.empty() || shape.back() % info.elements != 0)
    return Status::error(
        describe(type, shape) +
        ": the last dimension is no multiple of the block of " +
        std::to_string(info.elements));
  std::vector<int64_t> blocks(shape.begin(), shape.end());
  blocks.back() /= info.elements;
  KF_ASSIGN_OR_RETURN(
      int64_t count,
      checkedElementCount(blocks, static_cast<size_t>(info.bytes)));
  return count * info.bytes;
}

std::string describe(const ElementType &type, std::span<const int64_t> shape) {
  std::string text;
  for (int64_t dim : shape)
    text += (dim == -1 ? "?" : std::to_string(dim)) + "x";
  return text + nameOf(type);
}

int64_t TensorView::count() const {
  int64_t product = 1;
  for (int64_t dim : shape)
    product *= dim;
  return product;
}

Result<Tensor> Tensor::zeros(ElementType type, std::vector<int64_t> shape) {
  KF_ASSIGN_OR_RETURN(int64_t size, byteSize(type, shape));
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
  if (!tensor.type.block) {
    size_t size = sizeOf(tensor.type.data);
    widenPlain(tensor.type.data, tensor.data + first * size, count, dst);
    return;
  }
  const BlockFormatInfo &info = infoOf(*tensor.type.block);
  assert(first % info.elements == 0 && count % info.elements == 0 &&
         "part of a block");
  dequantizeBlocks(info.format,
                   tensor.data + first / info.elements * info.bytes,
                   count / info.elements, dst);
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

Result<Tensor> roundTo(Tensor tensor, const ElementType &type) {
  if (tensor.type == type)
    return tensor;
  if (tensor.type != DataType::F32 || !type.isFloat())
    return Status::error("a result of " + nameOf(tensor.type) +
                         " does not convert to " + nameOf(type));
  KF_ASSIGN_OR_RETURN(Tensor rounded, Tensor::zeros(type, tensor.shape));
  roundPlain(type.data, tensor.floats(), tensor.view().count(),
             rounded.bytes.data());
  return rounded;
}

Result<std::vector<int32_t>> readInts(const TensorView &tensor,
                                      const char *what) {
  if (tensor.type != DataType::I32)
    return Status::error(std::string(what) + " are " + nameOf(tensor.type) +
                         ", not i32");
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

std::byte *CacheView::head(int64_t layer, int kind, int64_t head) const {
  int64_t index = (layer * 2 + kind) * spec.kvHeads + head;
  return data + index * capacity * spec.headDim *
                    static_cast<int64_t>(sizeOf(spec.type));
}

std::byte *CacheView::keyElement(int64_t layer, int64_t head, int64_t position,
                                 int64_t d) const {
  int64_t block = position / spec.keyBlock, lane = position % spec.keyBlock;
  int64_t element = (block * spec.headDim + d) * spec.keyBlock + lane;
  return this->head(layer, 0, head) +
         element * static_cast<int64_t>(sizeOf(spec.type));
}

void CacheView::readKey(int64_t layer, int64_t head, int64_t position,
                        float *dst) const {
  if (spec.keyBlock == 1) {
    widenPlain(spec.type, keyElement(layer, head, position, 0), spec.headDim,
               dst);
    return;
  }
  for (int64_t d = 0; d < spec.headDim; ++d)
    widenPlain(spec.type, keyElement(layer, head, position, d), 1, dst + d);
}

void CacheView::readValue(int64_t layer, int64_t head, int64_t position,
                          float *dst) const {
  size_t row = sizeOf(spec.type) * static_cast<size_t>(spec.headDim);
  widenPlain(spec.type, this->head(layer, 1, head) + position * row,
             spec.headDim, dst);
}

void CacheView::writeKey(int64_t layer, int64_t head, int64_t position,
                         const float *src) const {
  for (int64_t d = 0; d < spec.headDim; ++d)
    roundPlain(spec.type, src + d, 1, keyElement(layer, head, position, d));
}

void CacheView::writeValue(int64_t layer, int64_t head, int64_t position,
                           const float *src) const {
  size_t row = sizeOf(spec.type) * static_cast<size_t>(spec.headDim);
  roundPlain(spec.type, src, spec.headDim,
             this->head(layer, 1, head) + position * row);
}

} // namespace kf::reference
