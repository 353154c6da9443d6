//===- GpuMath.h - Functions that GPUs lack, or not as exact ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_GPUMATH_H
#define KF_TARGET_COMMON_GPUMATH_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::kf {

/// Patterns that make plain arithmetic of math.acos, acosh, asin, asinh, atan,
/// atan2, atanh, cbrt, cosh, erfc, exp2, expm1, log10, log1p, log2, sinh and
/// tanh of scalars of f32, with math.exp in erfc, and of arith.remf, which is
/// exact. Infinities, NaNs and signed zeros come out as C's functions give
/// them.
void populateGpuMathPatterns(RewritePatternSet &patterns);

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_GPUMATH_H
