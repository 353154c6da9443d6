//===- CombinedParts.cpp - Attention from its parts -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Common/RowFormulas.h"
#include "../GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

/// The element at `indices`: a thread weighs all parts for itself.
static Value combineAt(GPUEmitter &e, AttentionCombineOp op,
                       ValueRange indices) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  ValueRange row = indices.drop_back();
  Value zero = e.f32(0.0), begin = e.index(0), one = e.index(1);
  Value splits = e.index(
      cast<RankedTensorType>(op.getMaxima().getType()).getShape().back());
  Value lowest = e.f32(-std::numeric_limits<double>::infinity());
  Value largest =
      e.loop(begin, splits, one, lowest, [&](Value part, ValueRange args) {
         Value next = e.load(op.getMaxima(), indicesAt(row, part), 0);
         return SmallVector<Value>{
             arith::MaximumFOp::create(b, loc, args[0], next)};
       }).getResult(0);
  Value isEmpty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, largest, lowest);
  largest = e.select(isEmpty, zero, largest);
  auto sums = e.loop(
      begin, splits, one, {zero, zero}, [&](Value part, ValueRange args) {
        SmallVector<Value> place = indicesAt(row, part);
        Value weight = math::ExpOp::create(
            b, loc, e.sub(e.load(op.getMaxima(), place, 0), largest));
        Value total = e.mul(weight, e.load(op.getTotals(), place, 0));
        Value value =
            e.load(op.getValues(), indicesAt(place, indices.back()), 0);
        return SmallVector<Value>{
            e.add(args[0], total),
            math::FmaOp::create(b, loc, weight, value, args[1])};
      });
  Value total = sums.getResult(0);
  if (op.getSinks())
    total = addSink(e, total, op.getSinks(), row.back(), largest);
  Value inverse = arith::DivFOp::create(b, loc, e.f32(1.0), total);
  return e.mul(sums.getResult(1), e.select(isEmpty, zero, inverse));
}

void GPUEmitter::defineCombine(AttentionCombineOp op) {
  define(op.getResult(), [this, op](ValueRange indices, unsigned, Value) {
    return combineAt(*this, op, indices);
  });
}
