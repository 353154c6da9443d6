//===- FormClusters.h - Which ops become one kernel --------------*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TRANSFORMS_FORMCLUSTERS_H
#define KF_LIB_TRANSFORMS_FORMCLUSTERS_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::kf {

/// Stays in the program, outside of every kernel.
inline bool isStructural(Operation *op) {
  return isa<WeightOp, func::ReturnOp>(op) || isView(op);
}

/// Ops in program order that become one kernel; the last makes its results.
struct Cluster {
  SmallVector<Operation *> ops; // from consumer to producer while it grows
  Operation *anchor = nullptr;
  SetVector<Operation *> views; // that the ops read through

  Operation *root() const { return ops.front(); }
  bool contains(Operation *op) const { return llvm::is_contained(ops, op); }

  /// Adds `op`, unless it is one of several and makes the kernel too long.
  bool add(Operation *op);

private:
  void addViews(Operation *op);
};

/// Clusters of a function's body in program order. Rows whose number it does
/// not say are up to `maxTokens`. What stays apart is told by remarks of
/// kf-form-kernels.
SmallVector<Cluster> formClusters(func::FuncOp function,
                                  const FusionRules &rules, int64_t maxTokens);

} // namespace mlir::kf

#endif // KF_LIB_TRANSFORMS_FORMCLUSTERS_H
