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

int64_t mlir::kf::getMostRows(func::FuncOp function, RankedTensorType tensor,
                              int64_t maxTokens) {
  if (!tensor.isDynamicDim(0))
    return tensor.getDimSize(0);
  if (auto tokens = function->getAttrOfType<IntegerAttr>("kf.max_tokens"))
    maxTokens = tokens.getInt();
  StringAttr name = getSizeName(tensor);
  auto ranges = function->getAttrOfType<ArrayAttr>(kSizeRangesAttrName);
  if (!name || !ranges)
    return maxTokens;
  for (Attribute attribute : ranges)
    if (auto range = dyn_cast<SizeRangeAttr>(attribute);
        range && range.getName() == name)
      return range.getMost();
  return maxTokens;
}

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
