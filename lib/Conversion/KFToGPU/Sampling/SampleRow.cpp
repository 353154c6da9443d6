//===- SampleRow.cpp - What threads read of a row of logits ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleRow.h"

#include "../Units/WarpOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

SampleRow::SampleRow(GPUEmitter &e, SampleOp op)
    : SampleFormulas(e), e(e), op(op),
      columns(cast<RankedTensorType>(op.getLogits().getType()).getDimSize(1)),
      lanes(getSampleLanes(e.shape.threadCount)),
      groups(e.shape.threadCount / lanes),
      span(
          llvm::alignTo(std::max<int64_t>(llvm::divideCeil(columns, groups), 1),
                        lanes * e.shape.batch)) {
  if (groups > 1) {
    groupLows = e.workgroupMemory(groups, b.getI32Type());
    groupHighs = e.workgroupMemory(groups, b.getI32Type());
  }
  lowWords = workgroupWords();
  highWords = workgroupWords();
  weights = workgroupWords();
  if (op.hasAdjustments()) {
    marks = e.workgroupMemory(e.shape.adjustmentWords, b.getI32Type());
    entryIds = workgroupWords();
  }
}

void SampleRow::startRow(Value number) {
  row = number;
  settings = loadSettings(op, number);
  mask = loadMask(op, number);
  if (op.hasAdjustments())
    findEntries();
  lane = make<arith::RemUIOp>(e.thread, e.index(lanes));
  Value group = make<arith::DivUIOp>(e.thread, e.index(lanes));
  auto atMost = [&](Value value) -> Value {
    return make<arith::MinUIOp>(value, e.index(columns));
  };
  shareBegin = atMost(e.mul(group, e.index(span)));
  shareEnd = atMost(e.add(shareBegin, e.index(span)));
}

//===----------------------------------------------------------------------===//
// Ids of a thread
//===----------------------------------------------------------------------===//

/// The logit of `id`, an index, as it is in memory.
Value SampleRow::readLogit(Value id) {
  return e.load(op.getLogits(), {row, id}, 0);
}

Value SampleRow::changedLogit(Value id) {
  return masked(adjusted(readLogit(id), id), id);
}

/// `logit`, which is that of `id`, or -inf where the row's mask excludes it.
Value SampleRow::masked(Value logit, Value id) {
  if (!op.hasMask())
    return logit;
  auto exclude = [&] {
    Value word = e.load(op.getMask(),
                        {mask.row, make<arith::DivUIOp>(id, e.index(32))}, 0);
    Value place = toI32(make<arith::RemUIOp>(id, e.index(32)));
    return e.select(isAllowed(word, place), logit,
                    e.f32(-std::numeric_limits<float>::infinity()));
  };
  return ifElse(mask.isMasked, exclude, [&] { return logit; });
}

/// Whether logits of `ids` may be others than those that are read; null where
/// no row's are.
Value SampleRow::changesOf(ArrayRef<Value> ids) {
  Value changes = op.hasAdjustments() ? marksOf(ids) : Value();
  if (!op.hasMask())
    return changes;
  return changes ? make<arith::OrIOp>(changes, mask.isMasked) : mask.isMasked;
}

/// Goes through the thread's ids in their order. It has several logits on their
/// way at a time; where one of them may be adjusted, they are taken one by one.
SmallVector<Value> SampleRow::scan(ValueRange start, NextFn next) {
  const int64_t batch = e.shape.batch, step = lanes * batch;
  auto one = [&](Value id, ValueRange state) {
    return next(changedLogit(id), toI32(id), state);
  };
  auto several = [&](Value first, ValueRange start) {
    SmallVector<Value> ids, logits;
    for (int64_t i = 0; i < batch; ++i)
      ids.push_back(e.add(first, e.index(i * lanes)));
    for (Value id : ids)
      logits.push_back(readLogit(id));
    auto all = [&] {
      SmallVector<Value> state(start);
      for (auto [logit, id] : llvm::zip(logits, ids))
        state = next(logit, toI32(id), state);
      return state;
    };
    Value changes = changesOf(ids);
    if (!changes)
      return all();
    auto branch = scf::IfOp::create(b, loc, start.getTypes(), changes,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    auto each = e.loop(e.index(0), e.index(step), e.index(lanes), start,
                       [&](Value offset, ValueRange state) {
                         return one(e.add(first, offset), state);
                       });
    scf::YieldOp::create(b, loc, each.getResults());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, all());
    return SmallVector<Value>(branch.getResults());
  };
  SmallVector<Value> state(start);
  Value rest = shareBegin;
  if (batch > 1) {
    Value size = e.sub(shareEnd, shareBegin);
    Value steps = make<arith::DivUIOp>(size, e.index(step));
    rest = e.add(shareBegin, e.mul(steps, e.index(step)));
    auto found =
        e.loop(e.add(shareBegin, lane), rest, e.index(step), state, several);
    state.assign(found.result_begin(), found.result_end());
  }
  auto found = e.loop(e.add(rest, lane), shareEnd, e.index(lanes), state, one);
  return SmallVector<Value>(found.getResults());
}

//===----------------------------------------------------------------------===//
// Sums over the row
//===----------------------------------------------------------------------===//

Value SampleRow::loadWord(Value words, Value place) {
  return memref::LoadOp::create(b, loc, words, place);
}

void SampleRow::storeWord(Value word, Value words, Value place) {
  memref::StoreOp::create(b, loc, word, words, place);
}

Value SampleRow::addToWord(Value word, Value words, Value place) {
  return memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::addi, word,
                                     words, place);
}

Words SampleRow::load(Value lows, Value highs, Value place) {
  return {loadWord(lows, place), loadWord(highs, place)};
}

void SampleRow::store(const Words &words, Value lows, Value highs,
                      Value place) {
  storeWord(words.low, lows, place);
  storeWord(words.high, highs, place);
}

/// The sum of `count` words from `first` on, from their start where it is null.
Words SampleRow::addUp(Value lows, Value highs, int64_t count, Value first) {
  Value start[] = {i32(0), i32(0)};
  auto sums = e.loop(e.index(0), e.index(count), e.index(1), start,
                     [&](Value i, ValueRange args) {
                       Value place = first ? e.add(first, i) : i;
                       Words sum =
                           add({args[0], args[1]}, load(lows, highs, place));
                       return SmallVector<Value>{sum.low, sum.high};
                     });
  return {sums.getResult(0), sums.getResult(1)};
}

/// The sum of `own` of `count` neighbours in a warp, a power of two.
Words SampleRow::addLanes(Words own, int64_t count) {
  WarpOps ops(e);
  for (int64_t mask = 1; mask < count; mask *= 2)
    own = add(own, {ops.exchange(own.low, mask), ops.exchange(own.high, mask)});
  return own;
}

/// Stores the sums of groups, and `own` itself where it should. All threads may
/// read them then.
void SampleRow::addGroups(const Words &own, bool storesOwn) {
  const bool hasWarps = e.hasWarps();
  if (storesOwn || !hasWarps)
    store(own, lowWords, highWords, e.thread);
  Value isFirst = compare(CmpI::eq, lane, e.index(0));
  if (groups > 1 && hasWarps) {
    Words sum = addLanes(own, lanes);
    e.ifThen(isFirst, [&] {
      Value group = make<arith::DivUIOp>(e.thread, e.index(lanes));
      store(sum, groupLows, groupHighs, group);
    });
  }
  e.barrier();
  if (groups == 1 || hasWarps)
    return;
  e.ifThen(e.isLess(e.thread, e.index(groups)), [&] {
    Words sum =
        addUp(lowWords, highWords, lanes, e.mul(e.thread, e.index(lanes)));
    store(sum, groupLows, groupHighs, e.thread);
  });
  e.barrier();
}

/// The sum of all threads' `own`. Leaves those of groups where they are, up to
/// the next sum.
Words SampleRow::addAll(const Words &own) {
  if (e.shape.threadCount == 1)
    return own;
  Words total;
  if (groups == 1 && e.hasWarps())
    return addLanes(own, lanes);
  addGroups(own, /*storesOwn=*/false);
  if (groups == 1) {
    total = addUp(lowWords, highWords, lanes);
  } else if (e.hasWarps()) {
    const int64_t places = llvm::PowerOf2Ceil(groups);
    Value place = make<arith::RemUIOp>(lane, e.index(places));
    Value hasOne = e.isLess(place, e.index(groups));
    Words found =
        load(groupLows, groupHighs, e.select(hasOne, place, e.index(0)));
    total = addLanes({e.select(hasOne, found.low, i32(0)),
                      e.select(hasOne, found.high, i32(0))},
                     places);
  } else {
    total = addUp(groupLows, groupHighs, groups);
  }
  // The next sum is written only once all threads have read this one.
  e.barrier();
  return total;
}

/// The sum of `element` (i32, without sign) of all tokens.
Words SampleRow::sum(function_ref<Value(Value, Value)> element) {
  Value start[] = {i32(0), i32(0)};
  SmallVector<Value> own =
      scan(start, [&](Value logit, Value id, ValueRange state) {
        Words next = add({state[0], state[1]}, {element(logit, id), i32(0)});
        return SmallVector<Value>{next.low, next.high};
      });
  return addAll({own[0], own[1]});
}

SmallVector<Value> SampleRow::ifElseWords(Value condition, int64_t count,
                                          WordsFn yes, WordsFn no) {
  SmallVector<Type> types(count, b.getI32Type());
  auto branch = scf::IfOp::create(b, loc, types, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, yes());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, no());
  return SmallVector<Value>(branch.getResults());
}
