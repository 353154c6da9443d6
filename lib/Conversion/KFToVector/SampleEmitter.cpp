//===- SampleEmitter.cpp - Choosing tokens --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenCandidates.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>
#include <tuple>
#include <utility>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Code for a row at a time.
class SampleEmitter {
public:
  SampleEmitter(KernelEmitter &e, SampleOp op)
      : e(e), op(op), b(e.b), loc(e.loc), row(e, op.getLogits()),
        candidates(e, row), math(candidates) {}

  /// The token (i32) of row number `number` of the tile.
  Value emit(Value number);

private:
  Value prepareRow(Value number);
  std::pair<Value, Value> entries();
  void adjust(Value values, Value begin, Value end);
  void exclude(Value values, Value maskRow);
  Value draw();

  KernelEmitter &e;
  SampleOp op;
  RewriterBase &b;
  Location loc;
  RowBlocks row;
  TokenCandidates candidates;
  SampleMath &math;

  SampleSettings settings; // of the row
  Value seed;
};

/// The row's logits where they lie, or a copy where they have to change.
Value SampleEmitter::prepareRow(Value number) {
  Value inPlace = row.inPlace(number);
  SmallVector<Value> changes; // whether there are any of a kind
  Value begin, end;
  if (op.hasAdjustments()) {
    std::tie(begin, end) = entries();
    changes.push_back(math.compare(arith::CmpIPredicate::slt, begin, end));
  }
  const SampleMask mask = math.loadMask(op, number);
  if (mask.row)
    changes.push_back(mask.isMasked);
  auto copy = [&] {
    Value values = row.copy(number);
    if (begin)
      adjust(values, begin, end);
    if (mask.row)
      e.ifThen(mask.isMasked, [&] { exclude(values, mask.row); });
    return values;
  };
  if (!inPlace)
    return copy();
  if (changes.empty())
    return inPlace;
  Value changesAny = changes.front();
  for (Value other : llvm::drop_begin(changes))
    changesAny = math.make<arith::OrIOp>(changesAny, other);
  return math.ifElse(changesAny, copy, [&] { return inPlace; });
}

/// Where the row's entries of the lists begin and end, i64s.
std::pair<Value, Value> SampleEmitter::entries() {
  auto wide = [&](Value value) -> Value {
    return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
  };
  Value extent = math.toI64(e.sizesOf(op.getIds())[0]);
  Value end = math.make<arith::MinSIOp>(
      math.make<arith::AddIOp>(wide(settings.first), wide(settings.count)),
      extent);
  return {math.make<arith::MaxSIOp>(wide(settings.first), math.i64(0)), end};
}

/// Applies the entries [begin, end) of the lists to the copy `values`.
void SampleEmitter::adjust(Value values, Value begin, Value end) {
  auto change = [&](Value i, ValueRange) {
    Value id = math.toIndex(e.load(op.getIds(), i, 0));
    e.ifThen(e.isLess(id, e.index(row.columns())), [&] {
      Value logit = memref::LoadOp::create(b, loc, values, id);
      e.store(math.adjustLogit(logit, e.load(op.getSeen(), i, 0),
                               e.load(op.getBias(), i, 0), settings),
              values, id);
    });
    return SmallVector<Value>();
  };
  e.loop(math.toIndex(begin), math.toIndex(end), e.index(1), {}, change);
}

/// Has tokens of the copy `values` be none that row `maskRow` of the mask
/// excludes: of words that have some, one by one.
void SampleEmitter::exclude(Value values, Value maskRow) {
  constexpr int64_t bits = 32;
  Value lowest = e.f32(-std::numeric_limits<float>::infinity());
  auto excludeOf = [&](Value word, Value first) {
    Value last = math.make<arith::MinUIOp>(e.add(first, e.index(bits)),
                                           e.index(row.columns()));
    e.loop(first, last, e.index(1), {}, [&](Value id, ValueRange) {
      Value isAllowed = math.isAllowed(word, math.toI32(e.sub(id, first)));
      Value logit = memref::LoadOp::create(b, loc, values, id);
      e.store(e.select(isAllowed, logit, lowest), values, id);
      return SmallVector<Value>();
    });
  };
  const int64_t words = llvm::divideCeil(row.columns(), bits);
  e.loop(e.index(0), e.index(words), e.index(1), {}, [&](Value i, ValueRange) {
    Value word = e.load(op.getMask(), {maskRow, i}, 0);
    e.ifThen(math.compare(arith::CmpIPredicate::ne, word, math.i32(-1)),
             [&] { excludeOf(word, e.mul(i, e.index(bits))); });
    return SmallVector<Value>();
  });
}

/// Draws from the row that was scanned.
Value SampleEmitter::draw() {
  auto greater = arith::CmpIPredicate::sgt;
  Value isLimited =
      math.both(math.compare(greater, settings.topK, math.i32(0)),
                math.compare(greater, math.i32(row.columns()), settings.topK));
  Value isNucleus =
      math.compare(arith::CmpFPredicate::OLT, settings.topP, e.f32(1.0));
  candidates.collect(settings.temperature, isLimited, settings.topK);
  candidates.filterIf(isLimited, [&] { candidates.keepTopK(settings.topK); });
  candidates.filterIf(isNucleus, [&] { candidates.keepTopP(settings.topP); });
  Value left = candidates.keepMinP(settings.minP);
  return candidates.pick(
      math.drawPoint(left, math.randomBits(seed, settings.counter)));
}

Value SampleEmitter::emit(Value number) {
  auto none = [&] { return math.i32(-1); };
  auto choose = [&] {
    Value isGreedy = math.compare(arith::CmpFPredicate::OEQ,
                                  settings.temperature, e.f32(0.0));
    return math.ifElse(
        isGreedy, [&] { return row.firstLargest(); }, [&] { return draw(); });
  };
  auto scan = [&]() -> Value {
    row.scan(prepareRow(number), /*ignoreNan=*/false);
    Value isFinite = math.isWithin(row.largest, -math.kMost, math.kMost);
    return math.ifElse(row.hasNan, none,
                       [&] { return math.ifElse(isFinite, choose, none); });
  };
  settings = math.loadSettings(op, number);
  seed = e.load(op.getSeed(), number, 0);
  return math.ifElse(math.areValid(settings), scan, none);
}

} // namespace

void mlir::kf::emitSampleKernel(KernelEmitter &e) {
  auto op = e.find<SampleOp>();
  SampleEmitter emitter(e, op);
  e.loop(e.sizesOf(op.getLogits())[0],
         [&](Value row) { e.storeResult(emitter.emit(row), row); });
}
