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

#ifndef KF_RUNTIME_CORE_TENSOR_H
#define KF_RUNTIME_CORE_TENSOR_H

#include "runtime/core/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Element types. Those from Q8_0 on are block types: elements of a row come in
/// blocks that share a scale (runtime/core/BlockFormat.h).
enum class DataType {
  F32,
  F16,
  BF16,
  I1,
  I8,
  U8,
  I16,
  I32,
  I64,
  F64,
  F8E4M3, ///< 4 exponent bits, bias 7, no infinities (OCP's E4M3)
  Q8_0,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  MXFP4,
  IQ4_XS
};

/// F32, F16 or BF16: what kernels take as plain floats.
bool isFloat(DataType type);
/// Whether elements lie in blocks.
bool isBlock(DataType type);
/// Elements of a block, and its bytes; of one element for other types.
int64_t elementsPerBlock(DataType type);
int64_t bytesPerBlock(DataType type);
/// Bytes of one element; `type` is no block type.
size_t sizeOf(DataType type);
/// MLIR's spelling: "f32", "bf16", "i32" ... ("ui8" for U8, "f8E4M3FN"), and
/// GGUF's names of block types: "q8_0", "q4_k", "mxfp4" ...
std::string_view nameOf(DataType type);
/// The inverse of nameOf; an error that lists the known names otherwise.
Result<DataType> parseDataType(std::string_view name);

/// Product of `shape`; an error if a dimension is negative or the product (or
/// its byte count with `elementSize`) does not fit in 63 bits.
Result<int64_t> checkedElementCount(std::span<const int64_t> shape,
                                    size_t elementSize = 1);

/// Bytes of a tensor; an error as above, or if rows of a block type do not end
/// with a block.
Result<int64_t> checkedByteCount(DataType type, std::span<const int64_t> shape);

/// A dense row-major tensor that owns its bytes. Not thread-safe.
struct HostTensor {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes; // [checkedByteCount(type, shape)]

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

/// Widens `count` elements of `type` at `src` to float; whole blocks of a block
/// type. An error where `count` splits a block.
Status convertToFloat(DataType type, const void *src, int64_t count,
                      float *dst);
/// Rounds `count` floats to elements of `type` at `dst`. F32, F16, BF16; an
/// error for others.
Status convertFromFloat(DataType type, const float *src, int64_t count,
                        void *dst);

} // namespace kf

#endif // KF_RUNTIME_CORE_TENSOR_H
