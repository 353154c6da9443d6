//===- CombineEmitter.cpp - Attention from its parts ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Common/RowFormulas.h"
#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

namespace {

class CombineEmitter {
public:
  explicit CombineEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<AttentionCombineOp>()) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(op.getValues().getType()).getShape();
    splits = shape[2];
    dim = shape[3];
  }

  void emit() {
    weights = e.scratch({splits});
    SmallVector<Value> sizes = e.sizesOf(op.getMaxima());
    sizes.pop_back();
    e.forRows(sizes, [&](ValueRange row) { combine(row); });
  }

private:
  /// The row of one token and head.
  void combine(ValueRange row) {
    Value size = e.index(splits);
    auto ofPart = [&](Value tensor, Value part, unsigned width) {
      return e.load(tensor, indicesAt(row, part), width);
    };
    Value largest = e.reduceRow(size, vector::CombiningKind::MAXIMUMF,
                                [&](Value part, unsigned width) {
                                  return ofPart(op.getMaxima(), part, width);
                                });
    Value isEmpty =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, largest,
                              e.f32(-std::numeric_limits<double>::infinity()));
    largest = e.select(isEmpty, e.f32(0.0), largest);
    e.forPieces(size, [&](Value part, unsigned width) {
      Value maxima = ofPart(op.getMaxima(), part, width);
      e.store(
          math::ExpOp::create(b, loc, e.sub(maxima, e.splat(largest, width))),
          weights, part);
    });
    Value total = e.reduceRow(
        size, vector::CombiningKind::ADD, [&](Value part, unsigned width) {
          return e.mul(e.loadMemref(weights, part, width),
                       ofPart(op.getTotals(), part, width));
        });
    if (op.getSinks())
      total = addSink(e, total, op.getSinks(), row.back(), largest);
    Value inverse = e.select(isEmpty, e.f32(0.0),
                             arith::DivFOp::create(b, loc, e.f32(1.0), total));
    e.forPieces(e.index(dim), [&](Value column, unsigned width) {
      auto sum = e.loop(
          e.index(0), size, e.index(1), e.splat(e.f32(0.0), width),
          [&](Value part, ValueRange args) {
            Value value = e.load(
                op.getValues(), indicesAt(indicesAt(row, part), column), width);
            Value weight = e.splat(e.loadMemref(weights, part, 0), width);
            return SmallVector<Value>{
                vector::FMAOp::create(b, loc, weight, value, args[0])};
          });
      e.storeResult(e.mul(sum.getResult(0), e.splat(inverse, width)),
                    indicesAt(row, column));
    });
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  AttentionCombineOp op;
  int64_t splits, dim;
  Value weights; // scratch [splits]
};

} // namespace

void mlir::kf::emitCombineKernel(KernelEmitter &emitter) {
  CombineEmitter(emitter).emit();
}
