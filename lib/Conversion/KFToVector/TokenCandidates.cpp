//===- TokenCandidates.cpp - Tokens that can be drawn ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenCandidates.h"

#include "runtime/core/SamplingMath.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Mantissa bits that the first part of a search does not look at.
static constexpr int kFineBits = 22;

TokenCandidates::TokenCandidates(KernelEmitter &e, RowBlocks &row)
    : SampleMath(e), row(row),
      integers(e.vectorType(e.lanes, e.b.getI32Type())) {
  lanes = e.laneNumbers();
  // One more than there can be: a group is written before it is known to stay.
  int64_t most = row.blocks() * RowBlocks::kVectors + 1;
  logits = e.scratch({most * e.lanes});
  weights = e.scratch({most * e.lanes}, b.getI32Type());
  firstIds = e.scratch({most}, b.getI32Type());
}

//===----------------------------------------------------------------------===//
// The row's candidates
//===----------------------------------------------------------------------===//

/// A logit that the topK largest reach: as many lanes have one that is not
/// below it. -inf where there are fewer lanes.
Value TokenCandidates::reachOfTopK(Value topK) {
  auto reach = [&](Value key) {
    Value limit = floatOf(key);
    auto counts = e.loop(
        e.index(0), e.index(row.blocks()), e.index(1), zeros(),
        [&](Value block, ValueRange before) {
          Value mask = isAtLeast(row.maximaOf(block), limit);
          return SmallVector<Value>{make<arith::AddIOp>(
              before[0], arith::ExtUIOp::create(b, loc, integers, mask))};
        });
    return sum(widen(counts.getResult(0)));
  };
  Value end = make<arith::AddIOp>(keyOf(row.largest), i64(1));
  Value hasLanes =
      compare(arith::CmpIPredicate::sle, topK, i32(row.maximaCount()));
  return ifElse(
      hasLanes,
      [&] {
        return floatOf(
            bisect(range(keyOf(e.f32(-kInfinity)), end), wide(topK), reach)
                .key);
      },
      [&] { return e.f32(-kInfinity); });
}

/// Copies the vectors of a block that hold candidates; the number after them.
Value TokenCandidates::copyBlock(Value firstId, RowBlocks::Load load,
                                 Value number) {
  for (int64_t i = 0; i < RowBlocks::kVectors; ++i) {
    Value values = load(i);
    Value heavy =
        e.select(isAtLeast(values, leastLogit), weigh(values), zeros());
    Value id = e.add(firstId, e.index(i * e.lanes));
    setGroup(number, values, heavy,
             arith::IndexCastOp::create(b, loc, b.getI32Type(), id));
    number =
        e.add(number, e.select(any(isNonzero(heavy)), e.index(1), e.index(0)));
  }
  return number;
}

void TokenCandidates::collect(Value temperature, Value isLimited, Value topK) {
  scale = exponentScale(temperature);
  leastLogit = ifElse(
      isLimited, [&] { return reachOfTopK(topK); },
      [&] { return e.f32(-kInfinity); });
  Value none = e.index(0);
  groups = row.forBlocks(none, [&](Value block, Value firstId,
                                   RowBlocks::Load load, ValueRange before) {
    // The largest of their lanes tell which blocks hold nothing.
    Value maxima = row.maximaOf(block);
    auto skip = [&]() -> Value { return before[0]; };
    auto look = [&] {
      return ifElse(
          any(isNonzero(weigh(maxima))),
          [&] { return copyBlock(firstId, load, before[0]); }, skip);
    };
    return SmallVector<Value>{
        ifElse(any(isAtLeast(maxima, leastLogit)), look, skip)};
  })[0];
}

void TokenCandidates::filterIf(Value condition, function_ref<void()> filter) {
  Value before = groups;
  groups = ifElse(
      condition,
      [&] {
        filter();
        return groups;
      },
      [&] { return before; });
}

Value TokenCandidates::pick(Value point) {
  auto isPassed = [&](Value sum) {
    return compare(arith::CmpIPredicate::ule, sum, point);
  };
  // The group, and the sum before it.
  Type types[] = {b.getIndexType(), b.getI64Type(), b.getI64Type()};
  Value start[] = {e.index(0), i64(0)};
  auto search = scf::WhileOp::create(
      b, loc, types, start,
      [&](OpBuilder &, Location, ValueRange state) {
        Value here = sum(widen(group(state[0]).weights));
        Value after = make<arith::AddIOp>(state[1], here);
        scf::ConditionOp::create(b, loc, isPassed(after),
                                 ValueRange{state[0], state[1], after});
      },
      [&](OpBuilder &, Location, ValueRange state) {
        scf::YieldOp::create(b, loc,
                             ValueRange{e.add(state[0], e.index(1)), state[2]});
      });
  // How many of its lanes are passed.
  Value number = search.getResult(0);
  Value at = e.mul(number, e.index(e.lanes));
  auto lane = e.loop(
      e.index(0), e.index(e.lanes), e.index(1),
      ValueRange{search.getResult(1), i32(0)},
      [&](Value lane, ValueRange state) {
        Value weight = memref::LoadOp::create(b, loc, weights, e.add(at, lane));
        Value sum = make<arith::AddIOp>(state[0], wide(weight));
        Value passed =
            arith::ExtUIOp::create(b, loc, b.getI32Type(), isPassed(sum));
        return SmallVector<Value>{sum, make<arith::AddIOp>(state[1], passed)};
      });
  Value firstId = memref::LoadOp::create(b, loc, firstIds, number);
  return make<arith::AddIOp>(firstId, lane.getResult(1));
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

/// The largest key in [low, high) by which `measure` is at least `wanted`, or
/// any by which it is equal to that. It falls as keys grow, is `atLow` (enough)
/// at `low` and `atHigh` (not enough) at `high`. All are i64.
TokenCandidates::Threshold TokenCandidates::bisect(Range range, Value wanted,
                                                   Measure measure) {
  Type type = b.getI64Type();
  Type types[] = {type, type, type, type};
  Value start[] = {range.low, range.high, range.atLow, range.atHigh};
  auto search = scf::WhileOp::create(
      b, loc, types, start,
      [&](OpBuilder &, Location, ValueRange state) {
        Value distance = make<arith::SubIOp>(state[1], state[0]);
        Value isOpen = compare(arith::CmpIPredicate::sgt, distance, i64(1));
        Value isInexact = compare(arith::CmpIPredicate::ne, state[2], wanted);
        scf::ConditionOp::create(b, loc, both(isOpen, isInexact), state);
      },
      [&](OpBuilder &, Location, ValueRange state) {
        Value distance = make<arith::SubIOp>(state[1], state[0]);
        Value middle = make<arith::AddIOp>(
            state[0], make<arith::ShRUIOp>(distance, i64(1)));
        Value found = measure(middle);
        Value isEnough = compare(arith::CmpIPredicate::sge, found, wanted);
        Value next[] = {e.select(isEnough, middle, state[0]),
                        e.select(isEnough, state[1], middle),
                        e.select(isEnough, found, state[2]),
                        e.select(isEnough, state[3], found)};
        scf::YieldOp::create(b, loc, next);
      });
  return {search.getResult(0), search.getResult(2), search.getResult(3)};
}

/// [low, high) where nothing reaches `high`, and all that there is is enough.
TokenCandidates::Range TokenCandidates::range(Value low, Value high) {
  return {low, high, i64(std::numeric_limits<int64_t>::max()), i64(0)};
}

/// The same over all candidates, by keys of whole binades and halves at first:
/// most candidates lie below what these leave.
TokenCandidates::Threshold TokenCandidates::search(Value wanted,
                                                   Measure measure) {
  Value bits = i64(kFineBits), one = i64(1);
  auto keyFrom = [&](Value coarse) {
    return make<arith::ShLIOp>(coarse, bits);
  };
  Value low = keyOf(leastLogit);
  Value end =
      make<arith::AddIOp>(make<arith::ShRSIOp>(keyOf(row.largest), bits), one);
  Threshold coarse =
      bisect(range(make<arith::ShRSIOp>(low, bits), end), wanted,
             [&](Value middle) { return measure(keyFrom(middle)); });
  low = make<arith::MaxSIOp>(keyFrom(coarse.key), low);
  Value limit = floatOf(low);
  dropUnless(
      [&](const Group &group) { return isAtLeast(group.logits, limit); });
  Value high = keyFrom(make<arith::AddIOp>(coarse.key, one));
  return bisect({low, high, coarse.at, coarse.above}, wanted, measure);
}

void TokenCandidates::keepTopK(Value topK) {
  Value wanted = wide(topK);
  auto reach = [&](Value key) {
    Value limit = floatOf(key);
    return countLanes(
        [&](const Group &group) { return isAtLeast(group.logits, limit); });
  };
  keep(search(wanted, reach), wanted, i64(1));
}

void TokenCandidates::keepTopP(Value topP) {
  Value all =
      sumWeights([](Value, const Group &group) { return group.weights; });
  Value wanted = make<arith::MaxSIOp>(topPSum(all, topP), i64(1));
  // Even one for each id, tokens this light would not sum up to what is left
  // out.
  Value light = make<arith::DivUIOp>(make<arith::SubIOp>(all, wanted),
                                     i64(row.columns()));
  Value limit = splat(arith::TruncIOp::create(b, loc, b.getI32Type(), light));
  dropUnless([&](const Group &group) {
    return compare(arith::CmpIPredicate::sgt, group.weights, limit);
  });
  auto reach = [&](Value key) {
    Value limit = floatOf(key);
    return sumWeights([&](Value, const Group &group) {
      return e.select(isAtLeast(group.logits, limit), group.weights, zeros());
    });
  };
  Threshold threshold = search(wanted, reach);
  Value weight = vector::ExtractOp::create(
      b, loc, weigh(splat(floatOf(threshold.key))), 0);
  // A limit that no logit has may weigh nothing.
  keep(threshold, wanted, make<arith::MaxSIOp>(wide(weight), i64(1)));
}

/// Drops the groups of which `mask` has no lane set.
void TokenCandidates::dropUnless(function_ref<Value(const Group &)> mask) {
  auto moved =
      e.loop(e.index(0), groups, e.index(1), e.index(0),
             [&](Value number, ValueRange state) {
               Group here = group(number);
               Value firstId = memref::LoadOp::create(b, loc, firstIds, number);
               setGroup(state[0], here.logits, here.weights, firstId);
               Value step = e.select(any(mask(here)), e.index(1), e.index(0));
               return SmallVector<Value>{e.add(state[0], step)};
             });
  groups = moved.getResult(0);
}

/// Keeps what the threshold does, and of the logits equal to it no more than
/// are wanted, each of which counts for `unit`.
void TokenCandidates::keep(const Threshold &threshold, Value wanted,
                           Value unit) {
  Value limit = floatOf(threshold.key);
  Value equals = make<arith::DivUIOp>(
      make<arith::SubIOp>(threshold.at, threshold.above), unit);
  Value missing = make<arith::CeilDivUIOp>(
      make<arith::SubIOp>(wanted, threshold.above), unit);
  Value isInexact = compare(arith::CmpIPredicate::ne, threshold.at, wanted);
  Value cuts =
      both(isInexact, compare(arith::CmpIPredicate::slt, missing, equals));
  Value lastId = splat(ifElse(
      cuts, [&] { return lastOfEquals(limit, missing); },
      [&] { return i32(row.columns()); }));
  Value limits = splat(limit);
  forGroups([&](Value number) {
    Group here = group(number);
    Value isAbove = compare(Predicate::OGT, here.logits, limits);
    Value isEqual = compare(Predicate::OEQ, here.logits, limits);
    Value isEarly = compare(arith::CmpIPredicate::sle, here.ids, lastId);
    Value stays = make<arith::OrIOp>(isAbove, both(isEqual, isEarly));
    setWeights(number, e.select(stays, here.weights, zeros()));
  });
}

/// The id (i32) of token number `wanted` of those with this logit; the last
/// column if there are fewer. A filter before may have dropped some, but only
/// behind all that it kept.
Value TokenCandidates::lastOfEquals(Value logit, Value wanted) {
  Value limits = splat(logit);
  // More as ids grow: keys are ids with the other sign.
  auto idOf = [&](Value key) -> Value {
    return arith::TruncIOp::create(b, loc, b.getI32Type(),
                                   make<arith::SubIOp>(i64(0), key));
  };
  auto reach = [&](Value key) {
    Value last = splat(idOf(key));
    return countLanes([&](const Group &group) {
      Value isEqual = compare(Predicate::OEQ, group.logits, limits);
      Value isEarly = compare(arith::CmpIPredicate::sle, group.ids, last);
      return both(isEarly, isEqual);
    });
  };
  return idOf(bisect(range(i64(1 - row.columns()), i64(1)), wanted, reach).key);
}

Value TokenCandidates::keepMinP(Value minP) {
  Value least = splat(minPWeight(minP));
  return sumWeights([&](Value number, const Group &group) {
    Value stays = compare(arith::CmpIPredicate::sge, group.weights, least);
    Value kept = e.select(stays, group.weights, zeros());
    setWeights(number, kept);
    return kept;
  });
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

TokenCandidates::Group TokenCandidates::group(Value number) {
  Value at = e.mul(number, e.index(e.lanes));
  Value firstId = memref::LoadOp::create(b, loc, firstIds, number);
  return {e.loadMemref(logits, at, e.lanes), e.loadMemref(weights, at, e.lanes),
          make<arith::AddIOp>(splat(firstId), lanes)};
}

void TokenCandidates::setGroup(Value number, Value values, Value heavy,
                               Value firstId) {
  e.store(values, logits, e.mul(number, e.index(e.lanes)));
  setWeights(number, heavy);
  e.store(firstId, firstIds, number);
}

void TokenCandidates::setWeights(Value number, Value values) {
  e.store(values, weights, e.mul(number, e.index(e.lanes)));
}

void TokenCandidates::forGroups(function_ref<void(Value number)> body) {
  e.loop(e.index(0), groups, e.index(1), {}, [&](Value number, ValueRange) {
    body(number);
    return SmallVector<Value>();
  });
}

/// How many lanes of all groups `mask` has set, an i64.
Value TokenCandidates::countLanes(function_ref<Value(const Group &)> mask) {
  auto counts =
      e.loop(e.index(0), groups, e.index(1), zeros(),
             [&](Value number, ValueRange before) {
               Value ones = arith::ExtUIOp::create(b, loc, integers,
                                                   mask(group(number)));
               return SmallVector<Value>{make<arith::AddIOp>(before[0], ones)};
             });
  return sum(widen(counts.getResult(0)));
}

/// The sum (i64) of what `part` makes of each group's weights.
Value TokenCandidates::sumWeights(
    function_ref<Value(Value number, const Group &)> part) {
  auto sums = e.loop(e.index(0), groups, e.index(1), widen(zeros()),
                     [&](Value number, ValueRange before) {
                       SmallVector<Value> after;
                       for (auto [sum, more] : llvm::zip_equal(
                                before, widen(part(number, group(number)))))
                         after.push_back(make<arith::AddIOp>(sum, more));
                       return after;
                     });
  return sum(sums.getResults());
}
