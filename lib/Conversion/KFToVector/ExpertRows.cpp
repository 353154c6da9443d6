//===- ExpertRows.cpp - Which rows of a tile are an expert's --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpertRows.h"

#include "../Common/RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

ExpertRows::ExpertRows(KernelEmitter &emitter, ExpertMatmulOp op,
                       int64_t tokens)
    : e(emitter), b(e.b), loc(e.loc), op(op), tokens(tokens) {
  auto experts = cast<RankedTensorType>(op.getExperts().getType());
  top = experts.getDimSize(1);
  if (tokens > 1 || top > 1)
    sort();
}

/// By counting: `ends` first counts each expert's rows, one place behind its
/// own, then says where they begin, and ends where the next one's do.
void ExpertRows::sort() {
  const int64_t experts = op.countExperts();
  order = e.scratch({tokens * top}, b.getI32Type());
  ends = e.scratch({experts + 1}, b.getI32Type());
  Value one = e.index(1), count = e.sizesOf(op.getExperts())[0];
  auto forPairs = [&](function_ref<void(Value pair, Value expert)> body) {
    e.loop(count, [&](Value token) {
      e.loop(e.index(top), [&](Value place) {
        body(e.add(e.mul(token, e.index(top)), place),
             nearestExpert(e, op, token, place));
      });
    });
  };
  e.loop(e.index(experts + 1), [&](Value at) { store(e.index(0), ends, at); });
  forPairs([&](Value, Value expert) {
    Value next = e.add(expert, one);
    store(e.add(load(ends, next), one), ends, next);
  });
  e.loop(e.index(experts), [&](Value at) {
    Value next = e.add(at, one);
    store(e.add(load(ends, at), load(ends, next)), ends, next);
  });
  forPairs([&](Value pair, Value expert) {
    Value place = load(ends, expert);
    store(pair, order, place);
    store(e.add(place, one), ends, expert);
  });
}

void ExpertRows::forRows(int64_t most,
                         function_ref<void(Value expert, Value rows)> body) {
  if (!order)
    return body(nearestExpert(e, op, e.index(0), e.index(0)), e.index(1));
  Value zero = e.index(0);
  e.loop(zero, e.index(op.countExperts()), e.index(1), zero,
         [&](Value expert, ValueRange state) {
           Value begin = state[0], end = load(ends, expert);
           e.loop(begin, end, e.index(most), {}, [&](Value at, ValueRange) {
             first = at;
             body(expert, arith::MinUIOp::create(b, loc, e.sub(end, at),
                                                 e.index(most)));
             return SmallVector<Value>();
           });
           return SmallVector<Value>{end};
         });
}

SmallVector<Value> ExpertRows::resultRow(Value row) {
  if (!order)
    return {e.index(0), e.index(0)};
  Value pair = load(order, e.add(first, row));
  return {arith::DivUIOp::create(b, loc, pair, e.index(top)),
          arith::RemUIOp::create(b, loc, pair, e.index(top))};
}

SmallVector<Value> ExpertRows::xRow(Value row) {
  SmallVector<Value> at = resultRow(row);
  if (!op.hasRowForEach())
    at.pop_back();
  return at;
}

Value ExpertRows::load(Value memref, Value at) {
  return arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      memref::LoadOp::create(b, loc, memref, at).getResult());
}

void ExpertRows::store(Value value, Value memref, Value at) {
  memref::StoreOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, b.getI32Type(), value), memref,
      at);
}
