//===- SplitAttention.cpp - Attention over parts of the keys --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/SplitAttention.h"

using namespace mlir;
using namespace mlir::kf;

void mlir::kf::splitAttention(AttentionOp op, int64_t splits) {
  OpBuilder b(op);
  auto parts = AttentionPartialOp::create(
      b, op.getLoc(), op.getQ(), op.getCache(), op.getPositions(),
      op.getSequences(), op.getPageTable(), /*tile=*/ValueRange(),
      b.getI64IntegerAttr(splits), op.getLayerAttr(), op.getScaleAttr(),
      op.getWindowAttr());
  auto combined = AttentionCombineOp::create(
      b, op.getLoc(), parts.getMaxima(), parts.getTotals(), parts.getValues());
  op.replaceAllUsesWith(combined.getResult());
  op.erase();
}
