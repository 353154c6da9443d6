//===- SharedContext.cpp - Attention to keys of several ranks -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedContext.h"

#include "runtime/model/Step.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

SharedContext::SharedContext(ModelOps &ops, Value positions)
    : ops(ops), b(ops.b), type(cast<RankedTensorType>(positions.getType())) {
  Location loc = ops.loc;
  const int64_t page = ::kf::kCachePage;
  Value all = number(ops.config.contextRanks * page), own = number(page);
  Value rank = BroadcastOp::create(
      b, loc, type,
      arith::FPToSIOp::create(b, loc,
                              RankedTensorType::get({1}, b.getI32Type()),
                              ops.weightOf(::kf::kRankNumber)));
  // Places before those of the pages that ranks have beside one another, and
  // how far into this rank's page that is: less than 0 of a page before it.
  Value before = arith::MulIOp::create(
      b, loc, arith::DivSIOp::create(b, loc, positions, all), own);
  Value within = arith::SubIOp::create(
      b, loc, arith::RemSIOp::create(b, loc, positions, all),
      arith::MulIOp::create(b, loc, rank, own));
  Value isOwn =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, within, own);
  ownPlaces = held(arith::SelectOp::create(
      b, loc, isOwn, arith::AddIOp::create(b, loc, before, within),
      number(-1)));
  Value last = arith::MaxSIOp::create(
      b, loc, arith::MinSIOp::create(b, loc, within, number(page - 1)),
      number(-1));
  seenPlaces = held(arith::AddIOp::create(b, loc, before, last));
}

/// `value` for each row.
Value SharedContext::number(int64_t value) {
  auto one = RankedTensorType::get({1}, b.getI32Type());
  return BroadcastOp::create(
      b, ops.loc, type,
      arith::ConstantOp::create(
          b, ops.loc,
          DenseElementsAttr::get(one, static_cast<int32_t>(value))));
}

/// x [T] in memory: attention has no integers of its own kernel.
Value SharedContext::held(Value x) {
  return tensor::CollapseShapeOp::create(
      b, ops.loc, type, ops.inMemory(ops.asColumn(x)),
      ArrayRef<ReassociationIndices>{{0, 1}});
}

/// Values, maxima and totals of all heads, side by side: [T, heads * (D + 2)].
Value SharedContext::rowOf(AttentionPartialOp part) {
  auto flat = [&](Value x) -> Value {
    const int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
    SmallVector<ReassociationIndices> groups = {{0}, {}};
    for (int64_t dim = 1; dim < rank; ++dim)
      groups.back().push_back(dim);
    return tensor::CollapseShapeOp::create(b, ops.loc, x, groups);
  };
  return ops.inMemory(tensor::ConcatOp::create(
      b, ops.loc, /*dim=*/1,
      ValueRange{flat(part.getValues()), flat(part.getMaxima()),
                 flat(part.getTotals())}));
}

Value SharedContext::combine(AttentionPartialOp part, Value sinks) {
  const int64_t ranks = ops.config.contextRanks;
  auto values = cast<RankedTensorType>(part.getValues().getType());
  const int64_t heads = values.getDimSize(1), dim = values.getDimSize(3);
  Value row = rowOf(part);
  auto rowType = cast<RankedTensorType>(row.getType());
  const int64_t width = rowType.getDimSize(1);
  Value gathered = AllGatherOp::create(
      b, ops.loc, getRowsOf(rowType, {ranks * width}, rowType.getElementType()),
      row, DenseI64ArrayAttr());
  Value ofRanks = ops.toHeads(gathered, ranks, width); // [T, ranks, width]
  auto numbers = [&](int64_t first) -> Value {         // [T, heads, ranks]
    return TransposeOp::create(b, ops.loc, ops.columns(ofRanks, first, heads),
                               ArrayRef<int64_t>{0, 2, 1});
  };
  Value parts = ops.columns(ofRanks, 0, heads * dim);
  auto apart =
      getRowsOf(rowType, {ranks, heads, dim}, rowType.getElementType());
  SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}};
  SmallVector<OpFoldResult> shape = {
      tensor::getMixedSize(b, ops.loc, parts, 0), b.getIndexAttr(ranks),
      b.getIndexAttr(heads), b.getIndexAttr(dim)};
  parts = TransposeOp::create(
      b, ops.loc,
      tensor::ExpandShapeOp::create(b, ops.loc, apart, parts, groups, shape),
      ArrayRef<int64_t>{0, 2, 1, 3});
  return AttentionCombineOp::create(b, ops.loc, numbers(heads * dim),
                                    numbers(heads * (dim + 1)), parts, sinks);
}
