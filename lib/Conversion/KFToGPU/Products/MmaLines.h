//===- MmaLines.h - Lines of weights for matrix units -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a weight comes to the stages of a product on matrix units, and from there
// to registers, for each way that weights lie in memory.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMALINES_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMALINES_H

#include "MmaFragment.h"
#include "MmaStaging.h"

namespace mlir::kf {

/// The weight's part of each stage.
class MmaLines {
public:
  virtual ~MmaLines() = default;

  /// Starts to fill the stage at `stage` with columns from `k` on.
  virtual void copy(Value stage, Value k) = 0;
  /// What a copy cannot do: this thread's part of columns from `k` on, in
  /// registers, which do for any `k` past the end.
  virtual SmallVector<Value> fetch(Value k) { return {}; }
  /// Stores part number `part` of `parts` of what fetch() has given to the
  /// stage; it is there at the next barrier.
  virtual void store(Value stage, ArrayRef<Value> fetched, int64_t part,
                     int64_t parts) {}
  /// The words of this warp's unit number `unit`, of step number `step`.
  virtual SmallVector<Value> load(Value stage, int64_t unit, int64_t step) = 0;
};

/// Those of `op`'s weight, of which the workgroup's tile has `columns` columns,
/// from byte `offset` of each stage on.
std::unique_ptr<MmaLines> createMmaLines(GPUEmitter &e, MatmulOp op,
                                         MmaFragment &product, Value columns,
                                         int64_t offset);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMALINES_H
