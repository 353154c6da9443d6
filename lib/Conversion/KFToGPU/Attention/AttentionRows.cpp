//===- AttentionRows.cpp - Query rows of a workgroup ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"

#include "../../Common/RowFormulas.h"
#include "FlashEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kf;

AttentionRows::AttentionRows(GPUEmitter &emitter)
    : e(emitter), b(e.b), loc(e.loc), op(e.find<CacheAttentionInterface>()),
      partial(dyn_cast<AttentionPartialOp>(op.getOperation())),
      type(op.getCache().getType()), window(e, op),
      cache(e, op.getCache(), op.getSequences(), op.getPageTable()) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  dim = q.getDimSize(2);
  heads = q.getDimSize(1);
}

void AttentionRows::forBlocks(int64_t blockRows, function_ref<void()> body) {
  limit = cache.limit();
  forRuns([&](Value first, Value count) {
    firstToken = first;
    sequence = cache.sequenceOf(first);
    rows = e.mul(count, e.index(heads));
    e.loop(e.index(0), rows, e.index(blockRows), {},
           [&](Value row, ValueRange) {
             firstRow = row;
             body();
             return SmallVector<Value>();
           });
  });
}

Value AttentionRows::tokens() {
  // A tile of one is never cut.
  if (e.kernel.getScheduleAttr().getWorkgroup()[0] == 1)
    return e.index(1);
  return e.sizesOf(op.getQ())[0];
}

/// A table for one sequence makes all tokens one run. All threads read the same
/// sequences, so they agree on the runs.
void AttentionRows::forRuns(function_ref<void(Value first, Value count)> body) {
  Value tokenCount = tokens();
  if (cache.hasOneSequence() || getConstantIntValue(tokenCount) == 1)
    return body(e.index(0), tokenCount);
  Value one = e.index(1);
  auto isSame = [&](Value lhs, Value rhs) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lhs, rhs);
  };
  auto runs = scf::WhileOp::create(
      b, loc, TypeRange{b.getIndexType()}, ValueRange{e.index(0)},
      [&](OpBuilder &, Location, ValueRange state) {
        scf::ConditionOp::create(b, loc, e.isLess(state[0], tokenCount), state);
      },
      [](OpBuilder &, Location, ValueRange) {});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(runs.getAfterBody());
  Value first = runs.getAfterArguments()[0];
  Value own = cache.sequenceOf(first), next = e.add(first, one);
  auto end =
      e.loop(next, tokenCount, one, next, [&](Value at, ValueRange args) {
        Value isOwn = arith::AndIOp::create(b, loc, isSame(args[0], at),
                                            isSame(cache.sequenceOf(at), own));
        return SmallVector<Value>{e.select(isOwn, e.add(at, one), args[0])};
      });
  body(first, e.sub(end.getResult(0), first));
  scf::YieldOp::create(b, loc, end.getResult(0));
}

AttentionRows::Row AttentionRows::find(Value row) {
  Value number = e.add(firstRow, row), exists = e.isLess(number, rows);
  number = e.select(exists, number, firstRow);
  Value size = e.index(heads);
  return {e.add(firstToken, arith::DivUIOp::create(b, loc, number, size)),
          arith::RemUIOp::create(b, loc, number, size), exists};
}

Value AttentionRows::positionOf(const Row &row) {
  Value nothing = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1));
  return arith::MaxSIOp::create(b, loc, e.load(op.getPositions(), row.token, 0),
                                nothing);
}

/// Ends what prepareRow() said of a row of `tensor`: what is loadable without a
/// row's statistics stays so.
static void forgetRow(GPUEmitter &e, Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (!op || !(isElementwise(op) || isa<RopeOp>(op) || hasRowStatistics(op)))
    return;
  for (Value operand : op->getOperands())
    forgetRow(e, operand);
  if (hasRowStatistics(op) || !e.isLoadable(op->getOperand(0)))
    e.undefine(tensor);
}

void AttentionRows::forQueries(
    int64_t count, Value first, int64_t width, double scale,
    function_ref<void(Value local, Value offset, Value q)> body,
    int64_t atOnce) {
  Value factor = e.f32(scale);
  bool hasAll = dim % width == 0;
  auto read = [&](const Row &row, Value offset) -> Value {
    Value at = e.add(first, offset), inside = row.exists;
    if (!hasAll) {
      Value exists = e.isLess(at, e.index(dim));
      inside = arith::AndIOp::create(b, loc, inside, exists);
      at = e.select(exists, at, first);
    }
    Value q = e.mul(e.load(op.getQ(), {row.token, row.head, at}, 0), factor);
    return e.select(inside, q, e.f32(0.0));
  };
  if (e.isLoadable(op.getQ())) {
    const int64_t threads = e.shape.threadCount;
    while (atOnce > 1 && count * width % (threads * atOnce) != 0)
      atOnce /= 2;
    struct Element {
      Value local, offset, q;
    };
    auto visit = [&](Value i, ValueRange) {
      SmallVector<Element> elements;
      for (int64_t n = 0; n < atOnce; ++n) {
        Value number = n == 0 ? i : e.add(i, e.index(n * threads));
        Value local = arith::DivUIOp::create(b, loc, number, e.index(width));
        Row row = find(local);
        Value offset = arith::RemUIOp::create(b, loc, number, e.index(width));
        elements.push_back({local, offset, read(row, offset)});
      }
      for (const Element &element : elements)
        body(element.local, element.offset, element.q);
      return SmallVector<Value>();
    };
    e.loop(e.thread, e.index(count * width), e.index(threads * atOnce), {},
           visit);
    return;
  }
  e.loop(e.index(count), [&](Value local) {
    Row row = find(local);
    e.prepareRow(op.getQ(), {row.token, row.head});
    e.forThreads(e.index(width),
                 [&](Value offset) { body(local, offset, read(row, offset)); });
  });
  // Statistics are those of a row of this loop.
  forgetRow(e, op.getQ());
}

Value AttentionRows::keysAt(Value position) {
  Value head =
      op.getKvHead() ? e.index(OpFoldResult(op.getKvHead())) : e.index(0);
  return e.add(cache.findPage(sequence, position),
               e.mul(head, e.index(cache.headSize())));
}

void mlir::kf::emitGPUAttention(GPUEmitter &emitter) {
  AttentionRows rows(emitter);
  rows.append();
  if (emitter.shape.flashMma)
    return emitFlashMma(rows);
  if (emitter.shape.flashCoop)
    return emitFlashCoop(rows);
  FlashEmitter(rows).emit();
}
