//===- ReferenceTensor.h - Operands of the reference ops --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference ops read views of tensors and of the KV cache in whatever type
// these are stored, compute in f32, and return tensors of their own.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_REFERENCE_REFERENCETENSOR_H
#define KF_RUNTIME_DEVICES_REFERENCE_REFERENCETENSOR_H

#include "runtime/core/BlockFormat.h"
#include "runtime/core/Tensor.h"
#include "runtime/program/Executable.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf::reference {

/// "2x3xf32".
std::string describe(DataType type, std::span<const int64_t> shape);

/// A dense row-major tensor in memory that somebody else owns, of any
/// alignment. Its shape is one that byteSize accepts.
struct TensorView {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  const std::byte *data = nullptr; ///< [checkedByteCount(type, shape)]

  size_t rank() const { return shape.size(); }
  int64_t count() const;
  /// The last dimension; 1 for rank 0.
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  /// Product of all dimensions but the last; 0 where there are no elements.
  int64_t rows() const { return count() == 0 ? 0 : count() / columns(); }
};

/// A dense row-major tensor that owns its bytes.
struct Tensor {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes; ///< [checkedByteCount(type, shape)]

  /// Zeros; an error where byteSize has one or there is no memory.
  static Result<Tensor> zeros(DataType type, std::vector<int64_t> shape);
  /// Only while the tensor lives and is not assigned to.
  TensorView view() const { return {type, shape, bytes.data()}; }
  float *floats() { return reinterpret_cast<float *>(bytes.data()); }
  int32_t *ints() { return reinterpret_cast<int32_t *>(bytes.data()); }
};

/// Widens `count` elements from element `first` on. For a block-quantized
/// tensor, both are multiples of the block (rows always are).
void widen(const TensorView &tensor, int64_t first, int64_t count, float *dst);
/// Widens the whole tensor; an error if there is no memory.
Result<std::vector<float>> widen(const TensorView &tensor);

/// The same tensor with f32 elements rounded to `type` (to nearest even), or
/// the tensor itself if it has that type. No other conversion is possible.
Result<Tensor> roundTo(Tensor tensor, DataType type);

/// Whether elements are floats, f64 among them.
bool isReal(DataType type);
/// Writes element `i` of a tensor of floats, rounded to its type.
void putReal(Tensor &tensor, int64_t i, double value);
/// Writes element `i` of a tensor of integers: the low bits of `value`.
void putInteger(Tensor &tensor, int64_t i, int64_t value);

/// All elements of an i32 tensor; an error that says `what` it is otherwise.
Result<std::vector<int32_t>> readInts(const TensorView &tensor,
                                      const char *what);

/// A KV cache in memory that somebody else owns; CacheSpec describes the
/// layout. A row is the headDim elements of one position of one head; its slot
/// is the page of the pool times spec.page, plus the place in the page. Indices
/// are the caller's to check.
struct CacheView {
  CacheSpec spec;
  int64_t pages = 0;
  std::byte *data = nullptr; ///< [spec.bytes(pages)]

  void readKey(int64_t layer, int64_t head, int64_t slot, float *dst) const;
  void readValue(int64_t layer, int64_t head, int64_t slot, float *dst) const;
  void writeKey(int64_t layer, int64_t head, int64_t slot,
                const float *src) const;
  void writeValue(int64_t layer, int64_t head, int64_t slot,
                  const float *src) const;

private:
  /// Where a row lies: its elements, or the codes of its blocks and their
  /// scales; how many bytes it is from one to the next.
  struct Row {
    std::byte *elements, *scales;
    int64_t step, scaleStep;
  };
  /// `kind` is 0 for K, 1 for V.
  Row find(int64_t layer, int kind, int64_t head, int64_t slot) const;
  void read(const Row &row, float *dst) const;
  void readBlocks(const Row &row, float *dst) const;
  void write(const Row &row, const float *src) const;
  void writeBlocks(const Row &row, const float *src) const;
};

/// Inner product, in 16 partial sums that a compiler can keep in vectors and
/// whose order does not depend on it.
inline float dot(const float *a, const float *b, int64_t count) {
  constexpr int kLanes = 16;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      sums[lane] += a[i + lane] * b[i + lane];
  float tail = 0;
  for (; i < count; ++i)
    tail += a[i] * b[i];
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      sums[lane] += sums[lane + width];
  return sums[0] + tail;
}

} // namespace kf::reference

#endif // KF_RUNTIME_DEVICES_REFERENCE_REFERENCETENSOR_H
