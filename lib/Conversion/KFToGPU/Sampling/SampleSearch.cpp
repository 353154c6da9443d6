//===- SampleSearch.cpp - Filters and draws of a whole row ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenChoice.h"

using namespace mlir;
using namespace mlir::kf;

Value TokenChoice::passes(const Filter &filter, Value logit, Value id) {
  Value order = orderOf(logit);
  Value isAbove = compare(CmpI::sgt, order, filter.order);
  Value isEqual = compare(CmpI::eq, order, filter.order);
  Value isEarly = compare(CmpI::sle, id, filter.lastId);
  return make<arith::OrIOp>(isAbove, both(isEqual, isEarly));
}

/// The weight (i32) of a token; 0 if the filters so far drop it.
Value TokenChoice::weightOf(Value logit, Value id) {
  Value weight = tokenWeights(logit, largest, scale);
  for (const Filter &filter : filters)
    weight = e.select(passes(filter, logit, id), weight, i32(0));
  if (filtersByMinP)
    weight = e.select(compare(CmpI::sge, weight, leastWeight), weight, i32(0));
  return weight;
}

/// What `filter` keeps of what the ones so far do.
Words TokenChoice::reach(const Filter &filter, Measure measure) {
  return sum([&](Value logit, Value id) {
    Value counts = measure == Measure::One ? i32(1) : weightOf(logit, id);
    return e.select(passes(filter, logit, id), counts, i32(0));
  });
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

/// The last number in [low, high), i32s with sign, that reaches `target`, as
/// `low` does and all that come before one that does; or any that reaches just
/// that, for those behind it keep the same.
Value TokenChoice::bisect(Value low, Value high, const Words &target,
                          function_ref<Words(Value)> reach) {
  Type types[] = {b.getI32Type(), b.getI32Type()};
  Value start[] = {low, high};
  auto search = scf::WhileOp::create(
      b, loc, types, start,
      [&](OpBuilder &, Location, ValueRange state) {
        // Without sign, for the numbers may be 2^32 apart.
        Value distance = make<arith::SubIOp>(state[1], state[0]);
        scf::ConditionOp::create(b, loc, compare(CmpI::ugt, distance, i32(1)),
                                 state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        Value distance = make<arith::SubIOp>(state[1], state[0]);
        Value middle = make<arith::AddIOp>(
            state[0], make<arith::ShRUIOp>(distance, i32(1)));
        Words found = reach(middle);
        Value missing = isBelow(found, target);
        Value exact = both(compare(CmpI::eq, found.low, target.low),
                           compare(CmpI::eq, found.high, target.high));
        Value after = make<arith::AddIOp>(middle, i32(1));
        Value next[] = {
            e.select(missing, state[0], middle),
            e.select(missing, middle, e.select(exact, after, state[1]))};
        scf::YieldOp::create(b, loc, next);
      });
  return search.getResult(0);
}

/// Adds a filter, where `condition` holds, that keeps as few of the most likely
/// tokens as reach what is wanted. Those with an order of `low` at least do,
/// and those with one of `high` do not.
void TokenChoice::keep(Value condition, Measure measure, Value low, Value high,
                       function_ref<Words()> wanted) {
  Value last = i32(columns);
  auto find = [&]() -> SmallVector<Value> {
    Words target = wanted();
    Value order = bisect(low, high, target, [&](Value order) {
      return reach({order, last}, measure);
    });
    // Of several equal to it, ids up to the first that is enough: its negative
    // is the last number that is.
    auto negative = [&](Value number) {
      return make<arith::SubIOp>(i32(0), number);
    };
    Words equals = sum([&](Value other, Value) -> Value {
      return arith::ExtUIOp::create(b, loc, b.getI32Type(),
                                    compare(CmpI::eq, orderOf(other), order));
    });
    Value lastId = ifElse(
        compare(CmpI::ugt, equals.low, i32(1)),
        [&] {
          return negative(
              bisect(i32(-columns), i32(1), target, [&](Value number) {
                return reach({order, negative(number)}, measure);
              }));
        },
        [&] { return last; });
    return {order, lastId};
  };
  SmallVector<Value> filter =
      ifElseWords(condition, 2, find, [&]() -> SmallVector<Value> {
        return {lowestOrder(), last};
      });
  filters.push_back({filter[0], filter[1]});
}

//===----------------------------------------------------------------------===//
// Draws
//===----------------------------------------------------------------------===//

/// Of a search for the part that holds `point`, the state after part number
/// `number`: the part so far, and the words before it. Parts are passed as long
/// as the point is not below their end.
SmallVector<Value> TokenChoice::pass(Value number, ValueRange state,
                                     const Words &weight, const Words &point) {
  Words after = add({state[1], state[2]}, weight);
  Value isHere = compare(CmpI::eq, state[0], number);
  Value isPassed =
      both(isHere, make<arith::XOrIOp>(isBelow(point, after),
                                       this->number(b.getI1Type(), 1)));
  return {e.select(isPassed, e.add(number, e.index(1)), state[0]),
          e.select(isPassed, after.low, state[1]),
          e.select(isPassed, after.high, state[2])};
}

/// The part that holds `point`, of groups or, with `first`, of those threads
/// whose words lie from there on. The last one is not passed: what is left
/// holds the point.
SmallVector<Value> TokenChoice::findPart(const Words &point, Value first,
                                         ValueRange before) {
  Value start[] = {e.index(0), before[0], before[1]};
  Value lows = first ? lowWords : groupLows;
  Value highs = first ? highWords : groupHighs;
  auto found =
      e.loop(e.index(0), e.index((first ? lanes : groups) - 1), e.index(1),
             start, [&](Value number, ValueRange state) {
               Value place = first ? e.add(first, number) : number;
               return pass(number, state, load(lows, highs, place), point);
             });
  return SmallVector<Value>(found.getResults());
}

/// The first token, in order of ids, up to which weights sum up to more than
/// `point`; the sums of groups are those of weights. Every round cuts the range
/// that has it into a part a thread.
Value TokenChoice::pick(const Words &point) {
  const int64_t threads = e.shape.threadCount;
  auto atMost = [&](Value lhs, Value rhs) -> Value {
    return make<arith::MinUIOp>(lhs, rhs);
  };
  Type i32Type = b.getI32Type();
  Type types[] = {b.getIndexType(), b.getIndexType(), i32Type, i32Type};
  // The range, and what comes before it.
  SmallVector<Value> start = {e.index(0), e.index(columns), i32(0), i32(0)};
  if (groups > 1) {
    SmallVector<Value> group = findPart(point, Value(), {i32(0), i32(0)});
    e.barrier();
    Value begin = atMost(e.mul(group[0], e.index(span)), e.index(columns));
    Value end = atMost(e.add(begin, e.index(span)), e.index(columns));
    start = {begin, end, group[1], group[2]};
  }
  auto search = scf::WhileOp::create(
      b, loc, types, start,
      [&](OpBuilder &, Location, ValueRange state) {
        Value size = e.sub(state[1], state[0]);
        scf::ConditionOp::create(b, loc, e.isLess(e.index(1), size), state);
      },
      [](OpBuilder &, Location, ValueRange) {});
  OpBuilder::InsertPoint behind = b.saveInsertionPoint();
  b.setInsertionPointToEnd(search.getAfterBody());
  ValueRange state = search.getAfterArguments();
  // One thread alone cuts in two.
  Value size =
      e.ceilDiv(e.sub(state[1], state[0]), std::max<int64_t>(threads, 2));
  auto partOf = [&](Value number) {
    Value begin = atMost(e.add(state[0], e.mul(number, size)), state[1]);
    return std::pair(begin, atMost(e.add(begin, size), state[1]));
  };
  auto weightOfPart = [&](Value number) -> Words {
    auto [begin, end] = partOf(number);
    Value none[] = {i32(0), i32(0)};
    auto sums =
        e.loop(begin, end, e.index(1), none, [&](Value id, ValueRange args) {
          Value logit = changedLogit(id);
          Words next =
              add({args[0], args[1]}, {weightOf(logit, toI32(id)), i32(0)});
          return SmallVector<Value>{next.low, next.high};
        });
    return {sums.getResult(0), sums.getResult(1)};
  };
  Value before[] = {state[2], state[3]};
  SmallVector<Value> found;
  if (threads == 1) {
    Value first[] = {e.index(0), state[2], state[3]};
    found = pass(e.index(0), first, weightOfPart(e.index(0)), point);
  } else {
    addGroups(weightOfPart(e.thread), /*storesOwn=*/true);
    Value first = e.index(0);
    SmallVector<Value> group;
    if (groups > 1) {
      group = findPart(point, Value(), before);
      first = e.mul(group[0], e.index(lanes));
      group.erase(group.begin());
    } else {
      group.append(std::begin(before), std::end(before));
    }
    found = findPart(point, first, group);
    found[0] = e.add(first, found[0]);
    e.barrier();
  }
  auto [begin, end] = partOf(found[0]);
  scf::YieldOp::create(b, loc, ValueRange{begin, end, found[1], found[2]});
  b.restoreInsertionPoint(behind);
  return toI32(search.getResult(0));
}

/// A token drawn from all of the row.
Value TokenChoice::drawOfAll(const Candidates &candidates) {
  filters.clear();
  filtersByMinP = false;
  auto sumOfWeights = [&] {
    return sum([&](Value logit, Value id) { return weightOf(logit, id); });
  };
  keep(isLimited, Measure::One, lowestOrder(),
       make<arith::AddIOp>(largestOrder, i32(1)),
       [&] { return Words{settings.topK, i32(0)}; });
  keep(isNucleus, Measure::Weight, candidates.low, candidates.high, [&] {
    SmallVector<Value> all = ifElseWords(
        isLimited, 2,
        [&]() -> SmallVector<Value> {
          Words kept = sumOfWeights();
          return {kept.low, kept.high};
        },
        [&]() -> SmallVector<Value> {
          return {candidates.all.low, candidates.all.high};
        });
    return topPTarget({all[0], all[1]});
  });
  filtersByMinP = true;
  Words left = sumOfWeights();
  return pick(drawPoint(left, random));
}
