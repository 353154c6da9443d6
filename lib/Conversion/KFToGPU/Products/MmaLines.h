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

/// A step of K: the columns from `k` on, which are in the stage at `stage`, a
/// pointer. It is number `number` of those that have tiles of codes in common.
struct MmaStep {
  Value stage, k;
  int64_t number = 0;
};

/// What units multiply: f16 or bf16.
Type factorOf(MatmulOp op);
/// What stages hold of rows, and of lines that are no codes: the same, or f32
/// of WideFactors.
Type stagedTypeOf(MatmulOp op);

/// The weight's part of each step.
class MmaLines {
public:
  virtual ~MmaLines() = default;

  /// Starts to bring it to workgroup memory.
  virtual void copy(const MmaStep &step) = 0;
  /// The words of this warp's unit number `unit`, of 16 columns, those of
  /// number `sixteen` of the step. Of f32 they are twice as many: what is
  /// rounded, and then what that leaves.
  virtual SmallVector<Value> load(const MmaStep &step, int64_t unit,
                                  int64_t sixteen) = 0;
};

/// Those of `op`'s weight, of which the workgroup's tile has `columns` columns.
/// `ring` is a pointer to the stages, and what is behind them.
std::unique_ptr<MmaLines> createMmaLines(GPUEmitter &e, MatmulOp op,
                                         MmaFragment &product, Value columns,
                                         Value ring);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_MMALINES_H
