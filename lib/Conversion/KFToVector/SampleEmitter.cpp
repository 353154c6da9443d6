//===- SampleEmitter.cpp - Choosing tokens --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenCandidates.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

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
  FailureOr<Value> emit(Value number);

private:
  FailureOr<Value> prepareRow(Value number);
  FailureOr<Value> copyAndAdjust(Value number, Value begin, Value end);
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
FailureOr<Value> SampleEmitter::prepareRow(Value number) {
  Value inPlace = row.inPlace(number);
  if (!op.hasAdjustments())
    return inPlace ? inPlace : row.copy(number);
  auto wide = [&](Value value) -> Value {
    return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
  };
  Value extent = math.toI64(e.sizesOf(op.getIds())[0]);
  Value end = math.make<arith::MinSIOp>(
      math.make<arith::AddIOp>(wide(settings.first), wide(settings.count)),
      extent);
  Value begin = math.make<arith::MaxSIOp>(wide(settings.first), math.i64(0));
  if (!inPlace)
    return copyAndAdjust(number, begin, end);
  LogicalResult result = success();
  auto change = [&] {
    FailureOr<Value> changed = copyAndAdjust(number, begin, end);
    result = changed;
    return changed.value_or(inPlace);
  };
  Value values =
      math.ifElse(math.compare(arith::CmpIPredicate::slt, begin, end), change,
                  [&] { return inPlace; });
  if (failed(result))
    return failure();
  return values;
}

/// Applies the entries [begin, end) of the lists, i64s.
FailureOr<Value> SampleEmitter::copyAndAdjust(Value number, Value begin,
                                              Value end) {
  FailureOr<Value> values = row.copy(number);
  if (failed(values))
    return failure();
  auto adjust = [&](Value i, ValueRange) {
    Value id = math.toIndex(e.load(op.getIds(), i, 0));
    e.ifThen(e.isLess(id, e.index(row.columns())), [&] {
      Value logit = memref::LoadOp::create(b, loc, *values, id);
      e.store(math.adjustLogit(logit, e.load(op.getSeen(), i, 0),
                               e.load(op.getBias(), i, 0), settings),
              *values, id);
    });
    return SmallVector<Value>();
  };
  e.loop(math.toIndex(begin), math.toIndex(end), e.index(1), {}, adjust);
  return values;
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

FailureOr<Value> SampleEmitter::emit(Value number) {
  LogicalResult result = success();
  auto none = [&] { return math.i32(-1); };
  auto choose = [&] {
    Value isGreedy = math.compare(arith::CmpFPredicate::OEQ,
                                  settings.temperature, e.f32(0.0));
    return math.ifElse(
        isGreedy, [&] { return row.firstLargest(); }, [&] { return draw(); });
  };
  auto scan = [&]() -> Value {
    FailureOr<Value> values = prepareRow(number);
    if (failed(values)) {
      result = failure();
      return none();
    }
    row.scan(*values, /*ignoreNan=*/false);
    Value isFinite = math.isWithin(row.largest, -math.kMost, math.kMost);
    return math.ifElse(row.hasNan, none,
                       [&] { return math.ifElse(isFinite, choose, none); });
  };
  settings = math.loadSettings(op, number);
  seed = e.load(op.getSeed(), number, 0);
  Value token = math.ifElse(math.areValid(settings), scan, none);
  if (failed(result))
    return failure();
  return token;
}

} // namespace

LogicalResult mlir::kf::emitSampleKernel(KernelEmitter &e) {
  auto op = e.find<SampleOp>();
  if (failed(e.checkResults(op)))
    return failure();
  for (Value operand : op->getOperands().drop_front())
    if (!e.isLoadable(operand))
      return op.emitOpError("convert-kf-to-vector: settings must be arguments "
                            "of the kernel, or elementwise ops on them");
  SampleEmitter emitter(e, op);
  LogicalResult result = success();
  e.loop(e.sizesOf(op.getLogits())[0], [&](Value row) {
    FailureOr<Value> token = emitter.emit(row);
    result = token;
    if (succeeded(token))
      e.storeResult(*token, row);
  });
  return result;
}
