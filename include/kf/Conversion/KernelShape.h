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
/// computes [rows, columns] of the product. Where `sharing` is 1, it goes in
/// steps of `step` along K, which are staged in workgroup memory, and thread
/// (x, y) computes the elements (y + i * threads[1], x + j * threads[0]). Else
/// the threads along x share the sum of an element: thread (x, y) has a part of
/// the elements (i, y + j * threads[1]).
struct KernelShape {
  std::array<int64_t, 3> threads = {1, 1, 1};
  int64_t threadCount = 1;

  int64_t rows = 0, columns = 0;         ///< of the workgroup's tile
  int64_t tileRows = 0, tileColumns = 0; ///< elements of a thread
  int64_t step = 0, unroll = 1;
  int64_t sharing = 1;        ///< threads that share a sum: threads[0] or 1
  int64_t sharedElements = 0; ///< elements that threads add up at a time
  int64_t groups = 1;         ///< 2 with glu: gate and up
  int64_t statistics = 0;     ///< per row, of the norm fused into x

  /// Elements between the rows of a staged tile: odd, so that threads which
  /// read a column meet different banks.
  int64_t stride() const { return step | 1; }
  /// Parts of sums that threads add up at a time, and elements between those of
  /// two sums: odd for the same reason.
  int64_t sharedSums() const { return sharedElements * groups * threads[1]; }
  int64_t sharedStride() const { return sharing | 1; }
  /// f32 elements of workgroup memory for one value a thread.
  int64_t partialSums() const { return threadCount; }

  int64_t workgroupBytes = 0; ///< all workgroup memory of the kernel
};

/// The shape that the kernel's schedule means; a diagnostic on the kernel where
/// it means none.
FailureOr<KernelShape> getKernelShape(KernelOp kernel);

} // namespace mlir::kf

#endif // KF_CONVERSION_KERNELSHAPE_H
