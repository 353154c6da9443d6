//===- KernelShape.h - What a schedule asks of a GPU workgroup --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reading of a kernel's schedule that convert-kf-to-gpu emits and that a
// target's KernelConfig checks against its device's limits.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KERNELSHAPE_H
#define KF_CONVERSION_KERNELSHAPE_H

#include "kf/Dialect/KF/IR/KF.h"

#include <array>

namespace mlir::kf {

/// Threads and workgroup memory of one kernel. Of a matmul, a workgroup
/// computes [rows, columns] of the product in steps of `step` along K; thread
/// (x, y) computes the elements (y + i * threads[1], x + j * threads[0]).
struct KernelShape {
  std::array<int64_t, 3> threads = {1, 1, 1};
  int64_t threadCount = 1;

  int64_t rows = 0, columns = 0;         ///< of the workgroup's tile
  int64_t tileRows = 0, tileColumns = 0; ///< elements of a thread
  int64_t step = 0, unroll = 1;
  int64_t groups = 1;     ///< 2 with glu: gate and up
  int64_t statistics = 0; ///< per row, of the norm fused into x

  /// Elements between the rows of a staged tile: odd, so that threads which
  /// read a column meet different banks.
  int64_t stride() const { return step | 1; }
  /// f32 elements of workgroup memory for one value a thread.
  int64_t partialSums() const { return threadCount; }

  int64_t workgroupBytes = 0; ///< all workgroup memory of the kernel
};

/// The shape that the kernel's schedule means; a diagnostic on the kernel where
/// it means none.
FailureOr<KernelShape> getKernelShape(KernelOp kernel);

} // namespace mlir::kf

#endif // KF_CONVERSION_KERNELSHAPE_H
