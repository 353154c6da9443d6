//===- CodeBudget.cpp - Bounds of what emitters make ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeBudget.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

/// Ops that the polynomial of a transcendental function has on a CPU.
static constexpr int64_t opsOfFunction = 40;

void CodeBudget::notifyOperationInserted(Operation *op,
                                         OpBuilder::InsertPoint) {
  int64_t ops =
      isa<math::ExpOp, math::TanhOp, math::ErfOp>(op) ? opsOfFunction : 1;
  ofKernel += ops;
  ofModule += ops;
}

LogicalResult CodeBudget::check(KernelOp kernel, StringRef pass) const {
  if (ofKernel > perKernel)
    return kernel.emitError(pass)
           << ": the code of this kernel is longer than " << perKernel
           << " ops; use fewer ops, or a schedule with smaller tiles and less "
              "unrolling";
  if (ofModule > perModule)
    return kernel.emitError(pass)
           << ": the code of all kernels up to this one is longer than "
           << perModule << " ops; compile fewer functions at a time";
  return success();
}
