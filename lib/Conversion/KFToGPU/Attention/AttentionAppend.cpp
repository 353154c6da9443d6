//===- AttentionAppend.cpp - Keys of a step, where they are read ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An append in a kernel of attention: before a workgroup reads the cache, it
// stores the keys and values that its rows may see, those of their KV head of
// all rows of the step that are of the same sequences. So no workgroup waits
// for another: what several store is the same. A row's own are first; lanes
// look for others at once, of which most steps have none.
//
//===----------------------------------------------------------------------===//

#include "../Units/WarpOps.h"
#include "AttentionRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class AttentionAppend {
public:
  AttentionAppend(AttentionRows &run, KVAppendOp op)
      : run(run), e(run.e), b(run.b), loc(run.loc), warp(e), op(op),
        type(op.getCache().getType()),
        cache(e, op.getCache(), op.getSequences(), op.getPageTable()) {}

  void emit() {
    Value tokens = run.tokens();
    Value rows = e.sizesOf(op.getK())[0];
    Value first = e.tileOffsets()[0], one = e.index(1);
    e.loop(e.index(0), tokens, one, {}, [&](Value token, ValueRange) {
      appendRow(e.add(first, token));
      return SmallVector<Value>();
    });
    if (getConstantIntValue(rows) == 1)
      return;
    const int64_t lanes = 32;
    Value lane = e.rem(e.thread, lanes);
    e.loop(e.index(0), rows, e.index(lanes), {}, [&](Value begin, ValueRange) {
      Value row = e.add(begin, lane), exists = e.isLess(row, rows);
      Value sequence = cache.sequenceOf(e.select(exists, row, e.index(0)));
      e.loop(e.index(0), tokens, one, {}, [&](Value token, ValueRange) {
        appendOthers(e.add(first, token), begin, row, exists, sequence);
        return SmallVector<Value>();
      });
      return SmallVector<Value>();
    });
  }

private:
  /// Appends the rows from `begin` on, a lane's each, that are of the sequence
  /// of row `own`, but not that row.
  void appendOthers(Value own, Value begin, Value row, Value exists,
                    Value sequence) {
    auto compare = [&](arith::CmpIPredicate kind, Value lhs, Value rhs) {
      return arith::CmpIOp::create(b, loc, kind, lhs, rhs);
    };
    auto both = [&](Value lhs, Value rhs) -> Value {
      return arith::AndIOp::create(b, loc, lhs, rhs);
    };
    Value isOther = both(
        both(exists, compare(arith::CmpIPredicate::ne, row, own)),
        compare(arith::CmpIPredicate::eq, sequence, cache.sequenceOf(own)));
    Value mask = warp.ballot(isOther);
    Value count = arith::IndexCastOp::create(
        b, loc, b.getIndexType(), math::CtPopOp::create(b, loc, mask));
    e.loop(e.index(0), count, e.index(1), mask, [&](Value, ValueRange left) {
      Value number = math::CountTrailingZerosOp::create(b, loc, left[0]);
      appendRow(e.add(
          begin, arith::IndexCastOp::create(b, loc, b.getIndexType(), number)));
      Value without = arith::SubIOp::create(b, loc, left[0], e.word(1));
      return SmallVector<Value>{both(left[0], without)};
    });
  }

  /// Stores K and V of row `row`; threads share their elements.
  void appendRow(Value row) {
    const int64_t columns = type.getHeadDim();
    Value position = arith::IndexCastOp::create(
        b, loc, b.getIndexType(), e.load(op.getPositions(), row, 0));
    Value sequence = cache.sequenceOf(row);
    Value zero = e.index(0);
    e.loop(e.thread, e.index(2 * columns), e.index(e.shape.threadCount), {},
           [&](Value number, ValueRange) {
             Value column = e.rem(number, columns);
             Value isKey = e.isLess(number, e.index(columns));
             SmallVector<Value> at = {row, zero, column};
             Value value = e.ifElse(
                 isKey, [&] { return e.load(op.getK(), at, 0); },
                 [&] { return e.load(op.getV(), at, 0); });
             cache.ifExists(sequence, position, [&](Value page) {
               Value head =
                   e.add(page, e.mul(e.index(OpFoldResult(op.getKvHead())),
                                     e.index(cache.headSize())));
               head = e.add(
                   head, e.select(isKey, zero, e.index(cache.valuesOffset())));
               cache.store(value,
                           cache.locate(head, e.rem(position, type.getPage())),
                           column);
             });
             return SmallVector<Value>();
           });
  }

  AttentionRows &run;
  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  WarpOps warp;
  KVAppendOp op;
  KVCacheType type;
  CacheBuffer cache;
};

} // namespace

void AttentionRows::append() {
  auto op = e.find<KVAppendOp>();
  if (!op)
    return;
  e.useAllRegisters();
  AttentionAppend(*this, op).emit();
  e.barrier();
}
