//===- FormProducts.cpp - Products that matrix units have -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/TensorBuilder.h"
#include "kf/Target/Common/GpuSchedules.h"
#include "kf/Target/NVVM/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::kf {
#define GEN_PASS_DEF_FORMNVVMPRODUCTS
#include "kf/Target/NVVM/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// What is computed again stays apart from what was computed before.
void keepAttributes(Operation *op, Value product) {
  product.getDefiningOp()->setDiscardableAttrs(
      op->getDiscardableAttrDictionary());
}

/// The loops of a grid are three: of batches, of rows and of columns. What
/// threads multiply stays with what is made of it.
void joinBatches(BatchMatmulOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (type.getRank() != 4 || !isForMatrixUnits(op))
    return;
  OpBuilder b(op);
  TensorBuilder build(b, op.getLoc());
  const SmallVector<ReassociationIndices> groups = {{0, 1}, {2}, {3}};
  auto joined = [&](Value x) {
    ArrayRef<int64_t> shape = TensorBuilder::typeOf(x).getShape();
    return build.reshape(x, {shape[0] * shape[1], shape[2], shape[3]}, groups);
  };
  Value product =
      build.make<BatchMatmulOp>(joined(op.getX()), joined(op.getW()));
  keepAttributes(op, product);
  op->getResult(0).replaceAllUsesWith(
      build.reshape(product, type.getShape(), groups));
  op.erase();
}

/// dy^T x is a product of what both have in each column.
void transposeFactors(MatmulWgradOp op) {
  if (!isForMatrixUnits(op))
    return;
  OpBuilder b(op);
  TensorBuilder build(b, op.getLoc());
  Value product = MatmulOp::create(b, op.getLoc(), build.swapLast(op.getDy()),
                                   build.swapLast(op.getX()), Value(),
                                   ActivationKindAttr(), Value());
  keepAttributes(op, product);
  op->getResult(0).replaceAllUsesWith(product);
  op.erase();
}

struct FormNvvmProductsPass
    : mlir::kf::impl::FormNvvmProductsBase<FormNvvmProductsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<BatchMatmulOp, MatmulWgradOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (auto batches = dyn_cast<BatchMatmulOp>(op))
        joinBatches(batches);
      else
        transposeFactors(cast<MatmulWgradOp>(op));
  }
};

} // namespace
