//===- RoundRows.cpp - Rows of products in 16 bits ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuSchedules.h"
#include "kf/Target/NVVM/Passes.h"
#include "kf/Transforms/KernelKey.h"

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
    getOperation().walk([&](MatmulOp op) {
      RankedTensorType x = op.getX().getType();
      if (op.isOfMatrices() && x.getElementType().isF32() && roundedType(op) &&
          getMostRows(getOperation(), x, maxTokens) > mostSplitRows(op))
        round(op);
    });
  }

private:
  /// What matrix units multiply with the weight; null: they do not.
  static Type roundedType(MatmulOp op) {
    Type weight = op.getW().getType().getElementType();
    if (isa<QuantType>(weight))
      return Float16Type::get(op.getContext());
    return weight.isF16() || weight.isBF16() ? weight : Type();
  }

  /// Rows that are better multiplied as two numbers each: what is rounded, and
  /// what that leaves. Where matrix units do not read the weight as it is
  /// stored, they multiply many rows alone.
  static int64_t mostSplitRows(MatmulOp op) {
    RankedTensorType w = op.getW().getType();
    bool hasTiles =
        getFragmentTile(w.getElementType()) && ::kf::hasFragments(w.getShape());
    return hasTiles ? kGpuSplitRows : kGpuFewRows;
  }

  static void round(MatmulOp op) {
    OpBuilder b(op);
    Value x = arith::TruncFOp::create(
        b, op.getLoc(), op.getX().getType().clone(roundedType(op)), op.getX());
    auto rounded = MatmulOp::create(
        b, op.getLoc(), x, op.getW(), op.getBias(), /*scales=*/Value(),
        /*sums=*/Value(), op.getGluAttr(), /*wide=*/b.getUnitAttr());
    op.replaceAllUsesWith(rounded.getResult());
    op.erase();
  }
};

} // namespace
