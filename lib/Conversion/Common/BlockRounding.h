//===- BlockRounding.h - Rounding to 8-bit codes ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas by which elements are rounded to q8_0, whose bits are those of
// quantizeBlocks in runtime/core, and by which kf.quantize_rows does.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_BLOCKROUNDING_H
#define KF_CONVERSION_COMMON_BLOCKROUNDING_H

#include "TileEmitter.h"

namespace mlir::kf {

/// What a block's codes are multiplied by, and what makes codes of elements;
/// f32.
struct CodeScale {
  Value scale, inverse;
};

/// The scale of a block whose largest magnitude is `largest`, an f32: a NaN
/// where that is one, or too large for a scale in half precision.
CodeScale codeScale(TileEmitter &emitter, Value largest);

/// The nearest codes (i32) of `x`, f32 values times a block's inverse scale:
/// halves away from zero, the smallest code for NaN. A scalar or a vector.
Value roundToCodes(TileEmitter &emitter, Value x);

/// What kf.quantize_rows makes codes of elements that share a scale with; or
/// vectors of that, a lane for each scale.
struct RowScale {
  Value scale, inverse; ///< f32
  Value isFinite;       ///< else codes are zeros, and the scale is a NaN
};

/// That of elements whose largest magnitude is `largest`, an f32 or a vector;
/// of a NaN, it is a NaN.
RowScale rowScale(TileEmitter &emitter, Value largest);

/// The nearest code (i32) of the scalar `x`, the even one of two.
Value roundToRowCode(TileEmitter &emitter, Value x, const RowScale &scale);

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_BLOCKROUNDING_H
