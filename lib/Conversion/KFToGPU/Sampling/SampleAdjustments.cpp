//===- SampleAdjustments.cpp - What becomes of logits ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleRow.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

/// The row's entries are those from `first` on, `count` of them, as far as the
/// lists reach; i32s.
void SampleRow::findEntries() {
  Value first = settings.first, count = settings.count;
  Value extent = toI32(e.sizesOf(op.getIds())[0]);
  entry = make<arith::MaxSIOp>(first, i32(0));
  // What lies before the lists does not count; the rest may be more than there
  // are, and stays within 32 bits.
  Value skipped = make<arith::SubIOp>(entry, first);
  Value isAny = compare(CmpI::sgt, count, skipped);
  Value left = e.select(isAny, make<arith::SubIOp>(count, skipped), i32(0));
  entry = make<arith::MinSIOp>(entry, extent);
  left = make<arith::MinSIOp>(left, make<arith::SubIOp>(extent, entry));
  entriesEnd = toIndex(make<arith::AddIOp>(entry, left));
  entry = toIndex(entry);
  hasEntries = e.isLess(entry, entriesEnd);
}

/// The word of `id`, an index, in `marks`.
Value SampleRow::markPlace(Value id) {
  Value number = make<arith::DivUIOp>(id, e.index(32));
  return make<arith::RemUIOp>(number, e.index(e.shape.adjustmentWords));
}

static Value bitOf(SampleFormulas &code, Value id) {
  Value place = code.both(code.toI32(id), code.i32(31));
  return code.make<arith::ShLIOp>(code.i32(1), place);
}

/// Marks the ids of the row's entries, and sorts these. Threads that mark ids
/// of one word do so in any order.
void SampleRow::markEntries() {
  e.forThreads(e.index(e.shape.adjustmentWords),
               [&](Value word) { storeWord(i32(0), marks, word); });
  e.barrier();
  e.forThreads(e.sub(entriesEnd, entry), [&](Value i) {
    Value id = toIndex(e.load(op.getIds(), e.add(entry, i), 0));
    e.ifThen(e.isLess(id, e.index(columns)), [&] {
      memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::ori,
                                  bitOf(*this, id), marks, markPlace(id));
    });
  });
  sortEntries();
  e.barrier();
}

/// Whether `ids`, of which neighbours belong to neighbouring threads, may have
/// entries.
Value SampleRow::marksOf(ArrayRef<Value> ids) {
  return ifElse(
      hasEntries,
      [&] {
        Value found = i32(0);
        for (Value id : ids) {
          Value bits = loadWord(marks, markPlace(id));
          found = make<arith::OrIOp>(found, both(bits, bitOf(*this, id)));
        }
        return compare(CmpI::ne, found, i32(0));
      },
      [&] { return this->number(b.getI1Type(), 0); });
}

/// `logit` after entry number `i` of the lists, where that is one of `id`, an
/// i32.
Value SampleRow::afterEntry(Value i, Value id, Value logit) {
  return ifElse(
      compare(CmpI::eq, e.load(op.getIds(), i, 0), id),
      [&] {
        return adjustLogit(logit, e.load(op.getSeen(), i, 0),
                           e.load(op.getBias(), i, 0), settings);
      },
      [&] { return logit; });
}

/// Has the row's entries in workgroup memory in order of their ids, each with
/// what all of its id make of the logit, where there is a thread for each.
void SampleRow::sortEntries() {
  Value count = e.sub(entriesEnd, entry);
  areSorted = compare(CmpI::ule, count, e.index(e.shape.threadCount));
  e.ifThen(both(areSorted, e.isLess(e.thread, count)), [&] {
    Value own = e.add(entry, e.thread);
    Value id = e.load(op.getIds(), own, 0), place = toIndex(id);
    Value isInside = e.isLess(place, e.index(columns));
    Value start[] = {i32(0), readLogit(e.select(isInside, place, e.index(0)))};
    auto found = e.loop(
        entry, entriesEnd, e.index(1), start, [&](Value i, ValueRange state) {
          Value other = e.load(op.getIds(), i, 0);
          Value isEarlier =
              both(compare(CmpI::eq, other, id), e.isLess(i, own));
          Value isBefore =
              make<arith::OrIOp>(compare(CmpI::slt, other, id), isEarlier);
          Value rank = make<arith::AddIOp>(
              state[0],
              arith::ExtUIOp::create(b, loc, b.getI32Type(), isBefore));
          return SmallVector<Value>{rank, afterEntry(i, id, state[1])};
        });
    Value rank = toIndex(found.getResult(0));
    storeWord(id, entryIds, rank);
    storeWord(
        arith::BitcastOp::create(b, loc, b.getI32Type(), found.getResult(1)),
        weights, rank);
  });
}

/// `logit`, which is that of `id`, an i32, or what sorted entries make of it.
Value SampleRow::findEntry(Value logit, Value id) {
  Value count = toI32(e.sub(entriesEnd, entry));
  Type types[] = {b.getI32Type(), b.getI32Type()};
  Value start[] = {i32(0), count};
  auto search = scf::WhileOp::create(
      b, loc, types, start,
      [&](OpBuilder &, Location, ValueRange state) {
        scf::ConditionOp::create(b, loc, compare(CmpI::slt, state[0], state[1]),
                                 state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        Value middle = make<arith::ShRUIOp>(
            make<arith::AddIOp>(state[0], state[1]), i32(1));
        Value isBelow =
            compare(CmpI::slt, loadWord(entryIds, toIndex(middle)), id);
        Value behind = make<arith::AddIOp>(middle, i32(1));
        Value next[] = {e.select(isBelow, behind, state[0]),
                        e.select(isBelow, state[1], middle)};
        scf::YieldOp::create(b, loc, next);
      });
  Value first = search.getResult(0);
  Value isThere = compare(CmpI::slt, first, count);
  Value place = toIndex(e.select(isThere, first, i32(0)));
  Value isOwn = both(isThere, compare(CmpI::eq, loadWord(entryIds, place), id));
  Value found = arith::BitcastOp::create(b, loc, b.getF32Type(),
                                         loadWord(weights, place));
  return e.select(isOwn, found, logit);
}

/// `logit`, which is that of `id`, after its adjustments.
Value SampleRow::adjusted(Value logit, Value id) {
  if (!op.hasAdjustments())
    return logit;
  Value own = toI32(id);
  auto goThrough = [&] {
    auto all = e.loop(entry, entriesEnd, e.index(1), logit,
                      [&](Value i, ValueRange state) {
                        return SmallVector<Value>{afterEntry(i, own, state[0])};
                      });
    return all.getResult(0);
  };
  auto adjust = [&] {
    return ifElse(areSorted, [&] { return findEntry(logit, own); }, goThrough);
  };
  return ifElse(marksOf(id), adjust, [&] { return logit; });
}
