//===- SampleCandidates.cpp - Draws of a few tokens -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For top-k, each pair of threads has a largest logit, which are logits of
// tokens apart: the one of rank k among them is not above what top-k keeps. For
// top-p, weights are summed up in bins of the same leading bits: bins from one
// on reach what it wants, and those behind it do not. min-p says itself what it
// keeps.
//
//===----------------------------------------------------------------------===//

#include "TokenChoice.h"

#include "runtime/core/SamplingMath.h"

#include <bit>
#include <limits>

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// The topK-th of the largest logits of pairs of threads, an order; there are
/// as many.
Value TokenChoice::reachOfTopK() {
  const Value none = i32(std::numeric_limits<int32_t>::min());
  storeWord(ownLargest, orders, e.thread);
  e.barrier();
  Value hasPlace = e.isLess(e.thread, e.index(places));
  Value place = e.select(hasPlace, e.thread, e.index(0));
  Value partner = e.add(place, e.index(places));
  partner =
      e.select(e.isLess(partner, e.index(e.shape.threadCount)), partner, place);
  Value own =
      make<arith::MaxSIOp>(loadWord(orders, place), loadWord(orders, partner));
  e.ifThen(hasPlace, [&] { storeWord(own, ids, place); });
  e.barrier();
  auto rank =
      e.loop(e.index(0), e.select(hasPlace, e.index(places), e.index(0)),
             e.index(1), i32(0), [&](Value i, ValueRange state) {
               Value isBefore = compare(CmpI::sge, loadWord(ids, i), own);
               return SmallVector<Value>{make<arith::AddIOp>(
                   state[0],
                   arith::ExtUIOp::create(b, loc, b.getI32Type(), isBefore))};
             });
  Value reaches =
      both(hasPlace, compare(CmpI::sge, rank.getResult(0), settings.topK));
  return e.combineThreads(
      e.select(reaches, own, none), none,
      [&](Value lhs, Value rhs) { return make<arith::MaxSIOp>(lhs, rhs); });
}

/// The bits of the largest weight as a float less those of 1.
static constexpr int32_t kBitsOfOne = std::bit_cast<int32_t>(1.0f);
static constexpr int32_t kMostBits =
    std::bit_cast<int32_t>(float(1 << ::kf::kWeightBits)) - kBitsOfOne;

/// How far bits of a weight as a float are shifted, that there is a thread for
/// each bin; 3 bits of the fraction are left at most.
static int64_t binShift(int64_t threads) {
  int64_t shift = std::numeric_limits<float>::digits - 4;
  while ((kMostBits >> shift) >= threads)
    ++shift;
  return shift;
}

/// The number (i32) of a weight's bin, which does not fall as weights grow;
/// below 0 for no weight.
Value TokenChoice::weightBin(Value weight) {
  Value number = arith::SIToFPOp::create(b, loc, b.getF32Type(), weight);
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), number);
  return make<arith::ShRSIOp>(make<arith::SubIOp>(bits, i32(kBitsOfOne)),
                              i32(binShift(e.shape.threadCount)));
}

/// The first bin (i32) of weights that top-p may have to look at: even one of
/// each id that is lighter would not make up what it leaves out. Below 0 where
/// that is all of them.
Value TokenChoice::firstBin() {
  const double unit = (1 << ::kf::kWeightBits) / static_cast<double>(columns);
  Value dropped = e.sub(e.f32(1.0), settings.topP);
  // Less of it, for products are rounded.
  Value least = arith::FPToSIOp::create(b, loc, b.getI32Type(),
                                        e.mul(dropped, e.f32(0.999 * unit)));
  return weightBin(least);
}

/// Sums up weights in bins from `first` on, low words in `orders` and high ones
/// in `ids`; the sum of all.
Words TokenChoice::addBins(Value first) {
  storeWord(i32(0), orders, e.thread);
  storeWord(i32(0), ids, e.thread);
  e.barrier();
  Value none[] = {i32(0), i32(0)};
  SmallVector<Value> light =
      scan(none, [&](Value logit, Value, ValueRange state) {
        Value weight = tokenWeights(logit, largest, scale);
        Value bin = weightBin(weight);
        Value hasBin = both(compare(CmpI::ne, weight, i32(0)),
                            compare(CmpI::sge, bin, first));
        e.ifThen(hasBin, [&] {
          Value place = toIndex(bin);
          Value before = addToWord(weight, orders, place);
          Value after = make<arith::AddIOp>(before, weight);
          e.ifThen(compare(CmpI::ult, after, weight),
                   [&] { addToWord(i32(1), ids, place); });
        });
        Words sum = add({state[0], state[1]},
                        {e.select(hasBin, i32(0), weight), i32(0)});
        return SmallVector<Value>{sum.low, sum.high};
      });
  e.barrier();
  return addAll(add(load(orders, ids, e.thread), {light[0], light[1]}));
}

/// The last bin such that those from it on reach what top-p wants, or the first
/// of all where lighter ones are missing.
Value TokenChoice::reachOfTopP(const Words &all) {
  Words wanted = topPTarget(all);
  Value start[] = {i32(0), i32(0)};
  auto from = e.loop(e.thread, e.index(e.shape.threadCount), e.index(1), start,
                     [&](Value bin, ValueRange state) {
                       Words sum =
                           add({state[0], state[1]}, load(orders, ids, bin));
                       return SmallVector<Value>{sum.low, sum.high};
                     });
  Value lacks = isBelow({from.getResult(0), from.getResult(1)}, wanted);
  return e.combineThreads(
      e.select(lacks, i32(0), toI32(e.thread)), i32(0),
      [&](Value lhs, Value rhs) { return make<arith::MaxSIOp>(lhs, rhs); });
}

/// For each of `suffices`, which holds for all weights from one on: the least
/// order of logits for whose weights it does, or the one behind the largest.
SmallVector<Value> TokenChoice::leastOrders(
    ArrayRef<std::function<Value(Value weight)>> suffices) {
  Value end = make<arith::AddIOp>(largestOrder, i32(1));
  SmallVector<Value> start;
  for (size_t i = 0; i < suffices.size(); ++i)
    start.append({lowestOrder(), end});
  SmallVector<Type> types(start.size(), b.getI32Type());
  auto search = scf::WhileOp::create(
      b, loc, types, start,
      [&](OpBuilder &, Location, ValueRange state) {
        Value isOpen = this->number(b.getI1Type(), 0);
        for (size_t i = 0; i < state.size(); i += 2)
          isOpen = make<arith::OrIOp>(
              isOpen, compare(CmpI::ne, state[i], state[i + 1]));
        scf::ConditionOp::create(b, loc, isOpen, state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        SmallVector<Value> next;
        for (auto [i, isEnough] : llvm::enumerate(suffices)) {
          Value low = state[2 * i], high = state[2 * i + 1];
          // Without sign, for they may be 2^32 apart.
          Value half =
              make<arith::ShRUIOp>(make<arith::SubIOp>(high, low), i32(1));
          Value middle = make<arith::AddIOp>(low, half);
          Value order = make<arith::MinSIOp>(middle, largestOrder);
          Value weight = tokenWeights(numberOf(order), largest, scale);
          Value isInside = make<arith::OrIOp>(compare(CmpI::eq, middle, end),
                                              isEnough(weight));
          Value behind = make<arith::AddIOp>(middle, i32(1));
          next.push_back(e.select(isInside, low, behind));
          next.push_back(e.select(isInside, middle, high));
        }
        scf::YieldOp::create(b, loc, next);
      });
  SmallVector<Value> orders;
  for (size_t i = 0; i < start.size(); i += 2)
    orders.push_back(search.getResult(i));
  return orders;
}

/// Copies the tokens whose logits have an order of `leastOrder` at least; how
/// many there are (i32). Of more than threads, some are copied.
Value TokenChoice::copyCandidates(Value leastOrder) {
  const Value room = i32(e.shape.threadCount);
  e.onFirstThread([&] { storeWord(i32(0), copied, e.index(0)); });
  e.barrier();
  // Threads stop once there is no room: all equal logits would queue else.
  scan(i32(0), [&](Value logit, Value id, ValueRange state) {
    Value order = orderOf(logit);
    Value isOne = both(compare(CmpI::sge, order, leastOrder),
                       compare(CmpI::slt, state[0], room));
    return SmallVector<Value>{ifElse(
        isOne,
        [&] {
          Value number = addToWord(i32(1), copied, e.index(0));
          e.ifThen(compare(CmpI::slt, number, room), [&] {
            Value place = toIndex(number);
            storeWord(order, orders, place);
            storeWord(id, ids, place);
          });
          return number;
        },
        [&] { return state[0]; })};
  });
  e.barrier();
  return loadWord(copied, e.index(0));
}

TokenChoice::Candidates TokenChoice::findCandidates() {
  Value zero = i32(0), lowest = lowestOrder();
  Value end = make<arith::AddIOp>(largestOrder, i32(1));
  // The bound, and what else is known then.
  auto ofTopK = [&]() -> SmallVector<Value> {
    return {reachOfTopK(), zero, zero, lowest, end};
  };
  auto ofWeights = [&]() -> SmallVector<Value> {
    SmallVector<Value> known = ifElseWords(
        isNucleus, 4,
        [&]() -> SmallVector<Value> {
          Value first = firstBin();
          Words all = addBins(first);
          Value bin = reachOfTopP(all);
          Value behind = make<arith::AddIOp>(bin, i32(1));
          // Bins from there on have been summed up, and do not reach it.
          return {bin, make<arith::MaxSIOp>(behind, first), all.low, all.high};
        },
        [&]() -> SmallVector<Value> { return {zero, zero, zero, zero}; });
    SmallVector<Value> least =
        leastOrders({[&](Value weight) {
                       return compare(CmpI::sge, weightBin(weight), known[0]);
                     },
                     [&](Value weight) {
                       return compare(CmpI::sge, weightBin(weight), known[1]);
                     },
                     [&](Value weight) {
                       return compare(CmpI::sge, weight, leastWeight);
                     }});
    return {make<arith::MaxSIOp>(least[0], least[2]), known[2], known[3],
            least[0], e.select(isLimited, end, least[1])};
  };
  // About 1.4 times as many tokens as places are expected to be copied, then.
  Value isFew =
      both(isLimited, compare(CmpI::sle, settings.topK, i32(places * 3 / 4)));
  Value isWeighed =
      make<arith::OrIOp>(isNucleus, compare(CmpI::sgt, leastWeight, zero));
  Value isBound = make<arith::OrIOp>(isFew, isWeighed);
  SmallVector<Value> found = ifElseWords(isFew, 5, ofTopK, [&] {
    return ifElseWords(isWeighed, 5, ofWeights, [&]() -> SmallVector<Value> {
      return {lowest, zero, zero, lowest, end};
    });
  });
  Value count = ifElse(
      isBound, [&] { return copyCandidates(found[0]); },
      [&] { return i32(std::numeric_limits<int32_t>::max()); });
  return {count, {found[1], found[2]}, found[3], found[4]};
}

//===----------------------------------------------------------------------===//
// The draw
//===----------------------------------------------------------------------===//

/// A token drawn from the candidates, of which a thread has one.
Value TokenChoice::drawCandidate(const Candidates &candidates) {
  Value count = toIndex(candidates.count);
  Value hasOne = e.isLess(e.thread, count);
  Value place = e.select(hasOne, e.thread, e.index(0));
  Value end = e.select(hasOne, count, e.index(0));
  Value order = loadWord(orders, place), id = loadWord(ids, place);
  Value weight =
      e.select(hasOne, tokenWeights(numberOf(order), largest, scale), i32(0));
  storeWord(weight, weights, e.thread);
  e.barrier();
  Value none[] = {i32(0), i32(0), i32(0)};
  auto before =
      e.loop(e.index(0), end, e.index(1), none, [&](Value i, ValueRange state) {
        Value other = loadWord(orders, i);
        Value isBefore =
            make<arith::OrIOp>(compare(CmpI::sgt, other, order),
                               both(compare(CmpI::eq, other, order),
                                    compare(CmpI::slt, loadWord(ids, i), id)));
        Words sum =
            add({state[1], state[2]},
                {e.select(isBefore, loadWord(weights, i), i32(0)), i32(0)});
        return SmallVector<Value>{
            make<arith::AddIOp>(
                state[0],
                arith::ExtUIOp::create(b, loc, b.getI32Type(), isBefore)),
            sum.low, sum.high};
      });
  Value isDropped =
      both(isLimited, compare(CmpI::sge, before.getResult(0), settings.topK));
  weight = e.select(isDropped, i32(0), weight);
  weight = ifElse(
      isNucleus,
      [&] {
        Words kept = addAll({weight, i32(0)});
        Words all = {e.select(isLimited, kept.low, candidates.all.low),
                     e.select(isLimited, kept.high, candidates.all.high)};
        Value isKept = isBelow({before.getResult(1), before.getResult(2)},
                               topPTarget(all));
        return e.select(isKept, weight, i32(0));
      },
      [&] { return weight; });
  weight = e.select(compare(CmpI::sge, weight, leastWeight), weight, i32(0));
  Words point = drawPoint(addAll({weight, i32(0)}), random);
  e.barrier();
  storeWord(weight, weights, e.thread);
  e.barrier();
  Value start[] = {i32(0), i32(0)};
  auto lower = e.loop(
      e.index(0), end, e.index(1), start, [&](Value i, ValueRange state) {
        Value isBefore = compare(CmpI::slt, loadWord(ids, i), id);
        Words sum =
            add({state[0], state[1]},
                {e.select(isBefore, loadWord(weights, i), i32(0)), i32(0)});
        return SmallVector<Value>{sum.low, sum.high};
      });
  e.barrier();
  // The first one up to which weights sum up to more than the point.
  Words sum = add({lower.getResult(0), lower.getResult(1)}, {weight, i32(0)});
  Value isHere = both(hasOne, isBelow(point, sum));
  return e.combineThreads(
      e.select(isHere, id, i32(columns)), i32(columns),
      [&](Value lhs, Value rhs) { return make<arith::MinUIOp>(lhs, rhs); });
}
