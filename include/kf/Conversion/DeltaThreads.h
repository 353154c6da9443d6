//===- DeltaThreads.h - Who holds what of a state ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_DELTATHREADS_H
#define KF_CONVERSION_DELTATHREADS_H

#include "kf/Dialect/KF/IR/KF.h"

#include <array>

namespace mlir::kf {

/// How a workgroup of `threads` shares the matrix [dk, dv] of a head.
struct DeltaThreads {
  /// Rows of a column that a thread holds in registers at most, twice.
  static constexpr int64_t mostHeld = 64;
  /// Threads that have registers for these at most.
  static constexpr int64_t mostThreads = 512;

  DeltaThreads(GatedDeltaOp op, const std::array<int64_t, 3> &threads)
      : columns(threads[0]), parts(threads[1]) {
    const int64_t dk = op.getKeyDim();
    if (columns >= op.getValueDim() && dk % parts == 0 &&
        dk / parts <= mostHeld && columns * parts <= mostThreads &&
        threads[2] == 1)
      held = dk / parts;
  }

  int64_t columns, parts; ///< along x, and along y of a column
  /// Rows of a column that each thread holds; 0: none, as there are too many
  /// of them, or of threads.
  int64_t held = 0;

  /// Numbers of workgroup memory that parts are added up in: four for each.
  int64_t sums() const { return parts > 1 ? 4 * parts * columns : 0; }
};

} // namespace mlir::kf

#endif // KF_CONVERSION_DELTATHREADS_H
