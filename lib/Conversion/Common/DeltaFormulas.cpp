//===- DeltaFormulas.cpp - What kernels of kf.gated_delta share -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeltaFormulas.h"

#include "runtime/program/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::kf;

DeltaHead::DeltaHead(TileEmitter &emitter, GatedDeltaOp op)
    : e(emitter), b(e.b), loc(e.loc), op(op),
      sequence(e.index(OpFoldResult(op.getTile()[0]))) {
  head = e.index(OpFoldResult(op.getTile()[1]));
  StateCacheType cache = op.getCache().getType();
  Value slots =
      e.ceilDiv(e.loadScalar(KF_SCALAR_CACHE_PAGES), cache.getSlotPages());
  Value slot = arith::MinUIOp::create(
      b, loc, loadIndex(op.getStates(), sequence), e.sub(slots, e.index(1)));
  Value number = e.add(e.mul(slot, e.index(cache.getHeads())), head);
  matrix = e.mul(number, e.index(cache.getElements()));
  const int64_t dk = op.getKeyDim(), dv = op.getValueDim();
  window = e.add(matrix, e.index(dk * dv));

  const int64_t keyHeads = op.getKeyHeads();
  Value keyHead = arith::DivUIOp::create(
      b, loc, head, e.index(op.getValueHeads() / keyHeads));
  Value ofKeys = e.mul(keyHead, e.index(dk));
  parts = {{op.getQ(), keyHead, ofKeys, dk, 0},
           {op.getK(), keyHead, e.add(ofKeys, e.index(keyHeads * dk)), dk, dk},
           {op.getV(), head,
            e.add(e.mul(head, e.index(dv)), e.index(2 * keyHeads * dk)), dv,
            2 * dk}};
  rate = math::ExpOp::create(b, loc, e.load(op.getDecay(), head, 0));
  bias = e.load(op.getBias(), head, 0);
}

Value DeltaHead::loadIndex(Value tensor, Value at) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                    e.load(tensor, at, 0));
}

void DeltaHead::forRows(function_ref<void(Value, Value)> body) {
  forRows({}, [&](Value row, Value isFirst, ValueRange) {
    body(row, isFirst);
    return SmallVector<Value>();
  });
}

SmallVector<Value> DeltaHead::forRows(
    ValueRange inits,
    function_ref<SmallVector<Value>(Value, Value, ValueRange)> body) {
  auto isEqual = [&](Value a, Value other) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, a, other);
  };
  auto rows =
      e.loop(e.index(0), e.sizesOf(op.getPositions())[0], e.index(1), inits,
             [&](Value row, ValueRange before) {
               auto own = scf::IfOp::create(
                   b, loc, inits.getTypes(),
                   isEqual(loadIndex(op.getSequences(), row), sequence),
                   /*withElseRegion=*/!inits.empty());
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPointToStart(own.thenBlock());
               SmallVector<Value> after = body(
                   row, isEqual(loadIndex(op.getPositions(), row), e.index(0)),
                   before);
               if (!inits.empty()) {
                 scf::YieldOp::create(b, loc, after);
                 b.setInsertionPointToStart(own.elseBlock());
                 scf::YieldOp::create(b, loc, before);
               }
               return SmallVector<Value>(own.getResults());
             });
  return SmallVector<Value>(rows.getResults());
}

std::pair<Value, Value> DeltaHead::gatesOf(Value row) {
  auto exp = [&](Value x) -> Value { return math::ExpOp::create(b, loc, x); };
  auto negated = [&](Value x) -> Value {
    return arith::NegFOp::create(b, loc, x);
  };
  Value a = e.add(e.load(op.getA(), {row, head}, 0), bias);
  // softplus, log(1 + exp(a)), of numbers whose exp overflows, too.
  Value magnitude = math::AbsFOp::create(b, loc, a);
  Value softplus =
      e.add(arith::MaximumFOp::create(b, loc, a, e.f32(0.0)),
            math::Log1pOp::create(b, loc, exp(negated(magnitude))));
  Value share = arith::DivFOp::create(
      b, loc, e.f32(1.0),
      e.add(e.f32(1.0), exp(negated(e.load(op.getB(), {row, head}, 0)))));
  return {exp(negated(e.mul(rate, softplus))), share};
}

Value DeltaHead::inverseNorm(Value sumOfSquares) {
  Value root = math::SqrtOp::create(b, loc, e.add(sumOfSquares, e.f32(1e-6)));
  return arith::DivFOp::create(b, loc, e.f32(1.0), root);
}

Value DeltaHead::queryScale() {
  return e.f32(1.0 / std::sqrt(static_cast<double>(op.getKeyDim())));
}
