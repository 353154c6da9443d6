//===- RoundRows.cpp - Rows of products and queries in 16 bits ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/RoundRows.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuSchedules.h"
#include "kf/Target/NVVM/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::kf {
#define GEN_PASS_DEF_ROUNDNVVMROWS
#include "kf/Target/NVVM/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct RoundNvvmRowsPass
    : mlir::kf::impl::RoundNvvmRowsBase<RoundNvvmRowsPass> {
  using RoundNvvmRowsBase::RoundNvvmRowsBase;

  void runOnOperation() override {
    roundRows(getOperation(), {maxTokens, getRoundedType, mostSplitRows,
                               /*roundsQueries=*/true});
  }

private:
  /// Rows that are better multiplied as two numbers each: what is rounded, and
  /// what that leaves.
  static int64_t mostSplitRows(MatmulOp op) {
    return isa<Float8E4M3FNType>(op.getW().getType().getElementType())
               ? kGpuFewRows
               : StreamShape::mostSplitRows;
  }
};

} // namespace
