//===- KernelLoops.h - What loops GPUs' threads share -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of one op with a loop, whose workgroup has more to do together than
// elements by themselves. Policy asks before a kernel is tiled, emitters after.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KERNELLOOPS_H
#define KF_CONVERSION_KERNELLOOPS_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// The product of matrices, one for each batch, that a kernel makes with
/// nothing but elementwise ops behind it; null: there is none.
BatchMatmulOp findBatchProduct(KernelOp kernel);

/// The reduction of floats along the last dimensions that a kernel makes, with
/// nothing but elementwise ops behind it; null: there is none.
ReduceOp findSharedReduction(KernelOp kernel);

/// Whether what lies side by side in memory are the rows of `factor`, rather
/// than columns of K, as of a view that transposes.
bool isTransposedInMemory(Value factor);

/// Factors of f32 on matrix units: each is two numbers of bf16, what is rounded
/// and what that leaves. Of them `products` are summed up: both rounded, and
/// what each leaves with the other rounded.
struct WideFactors {
  static constexpr int64_t products = 3;

  /// Whether factors of these types are taken so.
  static bool are(Type x, Type w);
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KERNELLOOPS_H
