//===- TokenChoice.cpp - Choosing tokens ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenChoice.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

TokenChoice::TokenChoice(GPUEmitter &e, SampleOp op)
    : SampleRow(e, op), places(llvm::divideCeil(e.shape.threadCount, 2)) {
  e.useAllRegisters();
  orders = workgroupWords();
  ids = workgroupWords();
  copied = e.workgroupMemory(1, b.getI32Type());
}

Value TokenChoice::lowestOrder() { return orderOf(e.f32(-kInfinity)); }

/// What top-p has to reach of `all`: no less than the most likely token.
Words TokenChoice::topPTarget(const Words &all) {
  Words wanted = topPSum(all, settings.topP);
  Value isNone =
      compare(CmpI::eq, make<arith::OrIOp>(wanted.low, wanted.high), i32(0));
  return {e.select(isNone, i32(1), wanted.low), wanted.high};
}

Value TokenChoice::draw() {
  random = randomBits(seed, settings.counter);
  scale = exponentScale(settings.temperature);
  leastWeight = minPWeight(settings.minP);
  isLimited = both(compare(CmpI::sgt, settings.topK, i32(0)),
                   compare(CmpI::sgt, i32(columns), settings.topK));
  isNucleus = compare(CmpF::OLT, settings.topP, e.f32(1.0));
  Candidates candidates = findCandidates();
  // Of top-k, either all that it keeps are there, or all of what is there is
  // kept; then only top-p has to know the others.
  Value lacksSome = both(both(isLimited, isNucleus),
                         compare(CmpI::sgt, settings.topK, candidates.count));
  Value areEnough =
      both(compare(CmpI::sle, candidates.count, i32(e.shape.threadCount)),
           compare(CmpI::eq, lacksSome, this->number(b.getI1Type(), 0)));
  return ifElse(
      areEnough, [&] { return drawCandidate(candidates); },
      [&] { return drawOfAll(candidates); });
}

/// `largestId` is the first of the thread's own with its largest logit, and
/// `columns` where others have a larger one.
Value TokenChoice::choose(Value largestId) {
  Value isGreedy = compare(CmpI::eq, orderOf(settings.temperature), i32(0));
  auto firstOfAll = [&] {
    return e.combineThreads(largestId, i32(columns), [&](Value lhs, Value rhs) {
      return make<arith::MinUIOp>(lhs, rhs);
    });
  };
  return ifElse(isGreedy, firstOfAll, [&] { return draw(); });
}

void TokenChoice::emit(Value number) {
  e.prepareRow(op.getLogits(), number);
  startRow(number);
  auto [low, high] = e.loadWords(op.getSeed(), number);
  seed = {low, high};
  auto none = [&] { return i32(-1); };
  auto find = [&]() -> Value {
    if (op.hasAdjustments())
      markEntries();
    // A NaN of either sign is the largest, and not within.
    Value lowest = lowestOrder();
    Value start[] = {lowest, i32(columns)};
    SmallVector<Value> own =
        scan(start, [&](Value logit, Value id, ValueRange state) {
          Value order = orderOf(logit);
          order = e.select(compare(CmpI::slt, order, lowest),
                           i32(std::numeric_limits<int32_t>::max()), order);
          Value isLarger = compare(CmpI::sgt, order, state[0]);
          return SmallVector<Value>{make<arith::MaxSIOp>(order, state[0]),
                                    e.select(isLarger, id, state[1])};
        });
    largestOrder = e.combineThreads(own[0], lowest, [&](Value lhs, Value rhs) {
      return make<arith::MaxSIOp>(lhs, rhs);
    });
    ownLargest = own[0];
    Value isLargest = compare(CmpI::eq, ownLargest, largestOrder);
    Value largestId = e.select(isLargest, own[1], i32(columns));
    largest = numberOf(largestOrder);
    return ifElse(
        isOrderWithin(largestOrder, -kMost, kMost),
        [&] { return choose(largestId); }, none);
  };
  Value token = ifElse(areValid(settings), find, none);
  e.onFirstThread([&] { e.storeResult(token, number); });
  // The next row marks anew once all threads are done with this one's.
  if (op.hasAdjustments())
    e.barrier();
}

void mlir::kf::emitGPUSample(GPUEmitter &e) {
  auto op = e.find<SampleOp>();
  TokenChoice emitter(e, op);
  e.forRows(e.sizesOf(op.getLogits())[0],
            [&](ValueRange row) { emitter.emit(row[0]); });
}
