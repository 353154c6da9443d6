//===- Tensor.h - Host tensors and element types ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Element types and dense row-major host tensors: what programs take and
// return, what checkpoints hold, and what the reference ops compute on.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TENSOR_H
#define KF_RUNTIME_TENSOR_H

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

enum class DataType { F32, F16, BF16, I1, I8, U8, I16, I32, I64, F64 };

/// Bytes of one element.
size_t sizeOf(DataType type);
/// MLIR's spelling: "f32", "bf16", "i32" ... ("ui8" for U8).
std::string_view nameOf(DataType type);
/// The inverse of nameOf; an error that lists the known names otherwise.
Result<DataType> parseDataType(std::string_view name);

/// Product of `shape`; an error if a dimension is negative or the product (or
/// its byte count with `elementSize`) does not fit in 63 bits.
Result<int64_t> checkedElementCount(std::span<const int64_t> shape,
                                    size_t elementSize = 1);

/// A dense row-major tensor that owns its bytes. Not thread-safe.
struct HostTensor {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes; // [product(shape)] elements of `type`

  static Result<HostTensor> zeros(DataType type, std::vector<int64_t> shape);
  int64_t elementCount() const;
  template <typename T> T *data() {
    return reinterpret_cast<T *>(bytes.data());
  }
  template <typename T> const T *data() const {
    return reinterpret_cast<const T *>(bytes.data());
  }
};

/// Conversions between one element and float; exact for f16 and bf16 to f32,
/// round to nearest even for f32 to f16 and bf16.
float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value);
float bfloatToFloat(uint16_t bits);
uint16_t floatToBfloat(float value);

/// Widens `count` elements of `type` at `src` to float. F32, F16, BF16 and the
/// integer types.
Status convertToFloat(DataType type, const void *src, int64_t count,
                      float *dst);
/// Rounds `count` floats to elements of `type` at `dst`. F32, F16, BF16.
Status convertFromFloat(DataType type, const float *src, int64_t count,
                        void *dst);

} // namespace kf

#endif // KF_RUNTIME_TENSOR_H
