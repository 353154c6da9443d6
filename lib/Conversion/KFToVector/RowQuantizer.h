//===- RowQuantizer.h - Rows in 8 bits --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kf.quantize_rows computes, for the kernel of that op and for products
// that round their rows themselves.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_ROWQUANTIZER_H
#define KF_CONVERSION_KFTOVECTOR_ROWQUANTIZER_H

#include "KernelEmitter.h"

namespace mlir::kf {

/// 1.5 * 2^23, where one is the unit in the last place, and its bits: with an
/// integer added to these, they are that of the sum.
inline constexpr float kIntegerBase = 12582912.0f;
inline constexpr int32_t kIntegerBaseBits = 0x4b400000;

/// Where rows in 8 bits lie, or go: memrefs as kf.quantize_rows' results are.
struct QuantizedRows {
  Value codes;  ///< [rows, K] of i8
  Value scales; ///< [rows, K / 32]
  Value sums;   ///< [rows, K / group] of i32
  /// The first row of the workgroup's tile; an index.
  Value firstRow;
};

/// Rounds the row of `x` that has the indices `row` to row `number` of the tile
/// of `into`.
void quantizeRow(KernelEmitter &emitter, Value x, ValueRange row, Value number,
                 int64_t group, const QuantizedRows &into);

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_ROWQUANTIZER_H
