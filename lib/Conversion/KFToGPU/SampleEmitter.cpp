//===- SampleEmitter.cpp - Choosing tokens --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup chooses the token of a row. Groups of threads have a part of the
// ids each, of which neighbours read neighbours. Filters do not sort: each
// bisects for the least logit that it keeps, by the count or the sum of weights
// of all tokens from that one on, which threads add up together. Where equal
// logits are kept in part, it bisects for the last id among them in the same
// way. The draw narrows down a range of ids by the sums of groups, and then of
// as many parts as there are threads.
//
// Logits are adjusted where they are read, for a kernel has no memory for a row
// of its own: bits in workgroup memory tell which ids may be in the lists, and
// who reads one of those goes through them.
//
// All sums are integers, so it does not matter in which order threads add.
// Logits are compared by integers in their order, for devices may take
// subnormal numbers for zeros. All threads compute the same of what is not
// their own share, so that they agree on every branch around a barrier.
//
//===----------------------------------------------------------------------===//

#include "../Common/SampleFormulas.h"
#include "WarpOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Code for a row at a time.
class SampleEmitter : public SampleFormulas {
public:
  SampleEmitter(GPUEmitter &e, SampleOp op)
      : SampleFormulas(e), e(e), op(op),
        columns(
            cast<RankedTensorType>(op.getLogits().getType()).getDimSize(1)) {
    e.useAllRegisters();
    const int64_t threads = e.shape.threadCount;
    lanes = std::min(threads, mostLanes);
    while (threads % lanes != 0)
      --lanes;
    groups = threads / lanes;
    span =
        llvm::alignTo(std::max<int64_t>(llvm::divideCeil(columns, groups), 1),
                      lanes * e.shape.batch);
    if (groups > 1) {
      groupLows = e.workgroupMemory(groups, b.getI32Type());
      groupHighs = e.workgroupMemory(groups, b.getI32Type());
    }
    lowWords = e.workgroupMemory(e.shape.threadCount, b.getI32Type());
    highWords = e.workgroupMemory(e.shape.threadCount, b.getI32Type());
    if (op.hasAdjustments())
      marks = e.workgroupMemory(e.shape.adjustmentWords, b.getI32Type());
  }

  /// The token (i32) of row number `number` of the tile.
  LogicalResult emit(Value number);

private:
  using CmpF = arith::CmpFPredicate;
  using CmpI = arith::CmpIPredicate;

  /// A token is kept if the order of its logit is above `order`, or equal to it
  /// and its id (i32) at most `lastId`.
  struct Filter {
    Value order, lastId;
  };
  /// What of a token counts.
  enum class Unit { One, Weight };

  /// The state after a token, from that before it.
  using NextFn =
      function_ref<SmallVector<Value>(Value logit, Value id, ValueRange state)>;

  void findShare();
  SmallVector<Value> scan(ValueRange start, NextFn next);
  Value choose(Value largestId);
  Value draw();

  void findEntries();
  void markEntries();
  Value markPlace(Value id);
  Value marksOf(ArrayRef<Value> ids);
  Value readLogit(Value id);
  Value adjusted(Value logit, Value id);
  Value passes(const Filter &filter, Value logit, Value id);
  Value weightOf(Value logit, Value id);
  Words sum(function_ref<Value(Value logit, Value id)> element);
  Words reach(const Filter &filter, Unit unit);
  Value bisect(Value low, Value high, const Words &target,
               function_ref<Words(Value middle)> reach);
  void keep(Value condition, Unit unit, function_ref<Words()> wanted);
  Words load(Value lows, Value highs, Value place);
  void store(const Words &words, Value lows, Value highs, Value place);
  Words addUp(Value lows, Value highs, int64_t count, Value first = Value());
  Words addLanes(Words own, int64_t count);
  void addGroups(const Words &own, bool storesOwn);
  Words addAll(const Words &own);
  SmallVector<Value> pass(Value number, ValueRange state, const Words &weight,
                          const Words &point);
  SmallVector<Value> findPart(const Words &point, Value first,
                              ValueRange before);
  Value pick(const Words &point);

  /// Threads of a group: a warp's, where there are some.
  static constexpr int64_t mostLanes = 32;

  GPUEmitter &e;
  SampleOp op;
  int64_t columns;
  int64_t lanes, groups, span; ///< threads of a group; groups; ids of a group
  Value lane, shareBegin, shareEnd; ///< the thread's; its group's ids
  Value row;
  SampleSettings settings; ///< the row's
  Words seed;
  Value entry, entriesEnd; ///< of the lists, the row's
  Value hasEntries;
  Value marks; ///< workgroup memory: a bit an id
  Value largestOrder, largest, scale;
  SmallVector<Filter> filters; ///< so far
  Value leastWeight;           ///< i32; null: any
  Value lowWords, highWords;   ///< workgroup memory, of a thread each
  Value groupLows, groupHighs; ///< the same, of a group each
};

//===----------------------------------------------------------------------===//
// Adjustments
//===----------------------------------------------------------------------===//

/// The row's entries are those from `first` on, `count` of them, as far as the
/// lists reach; i32s.
void SampleEmitter::findEntries() {
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
Value SampleEmitter::markPlace(Value id) {
  Value number = make<arith::DivUIOp>(id, e.index(32));
  return make<arith::RemUIOp>(number, e.index(e.shape.adjustmentWords));
}

static Value bitOf(SampleFormulas &code, Value id) {
  Value place = code.both(code.toI32(id), code.i32(31));
  return code.make<arith::ShLIOp>(code.i32(1), place);
}

/// Marks the ids of the row's entries. Threads that mark ids of one word do so
/// in any order.
void SampleEmitter::markEntries() {
  e.forThreads(e.index(e.shape.adjustmentWords), [&](Value word) {
    memref::StoreOp::create(b, loc, i32(0), marks, word);
  });
  e.barrier();
  e.forThreads(e.sub(entriesEnd, entry), [&](Value i) {
    Value id = toIndex(e.load(op.getIds(), e.add(entry, i), 0));
    e.ifThen(e.isLess(id, e.index(columns)), [&] {
      memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::ori,
                                  bitOf(*this, id), marks, markPlace(id));
    });
  });
  e.barrier();
}

/// Whether `ids`, of which neighbours belong to neighbouring threads, may have
/// entries.
Value SampleEmitter::marksOf(ArrayRef<Value> ids) {
  return ifElse(
      hasEntries,
      [&] {
        Value found = i32(0);
        for (Value id : ids) {
          Value bits = memref::LoadOp::create(b, loc, marks, markPlace(id));
          found = make<arith::OrIOp>(found, both(bits, bitOf(*this, id)));
        }
        return compare(CmpI::ne, found, i32(0));
      },
      [&] { return this->number(b.getI1Type(), 0); });
}

/// The logit of `id`, an index, as it is in memory.
Value SampleEmitter::readLogit(Value id) {
  return e.load(op.getLogits(), {row, id}, 0);
}

/// `logit`, which is that of `id`, after its adjustments.
Value SampleEmitter::adjusted(Value logit, Value id) {
  if (!op.hasAdjustments())
    return logit;
  auto adjust = [&] {
    Value own = toI32(id);
    auto result = e.loop(
        entry, entriesEnd, e.index(1), logit, [&](Value i, ValueRange args) {
          Value isOwn = compare(CmpI::eq, e.load(op.getIds(), i, 0), own);
          return SmallVector<Value>{ifElse(
              isOwn,
              [&] {
                return adjustLogit(args[0], e.load(op.getSeen(), i, 0),
                                   e.load(op.getBias(), i, 0), settings);
              },
              [&] { return args[0]; })};
        });
    return result.getResult(0);
  };
  return ifElse(marksOf(id), adjust, [&] { return logit; });
}

//===----------------------------------------------------------------------===//
// Ids of a thread
//===----------------------------------------------------------------------===//

void SampleEmitter::findShare() {
  lane = make<arith::RemUIOp>(e.thread, e.index(lanes));
  Value group = make<arith::DivUIOp>(e.thread, e.index(lanes));
  auto atMost = [&](Value value) -> Value {
    return make<arith::MinUIOp>(value, e.index(columns));
  };
  shareBegin = atMost(e.mul(group, e.index(span)));
  shareEnd = atMost(e.add(shareBegin, e.index(span)));
}

/// Goes through the thread's ids in their order. It has several logits on their
/// way at a time; where one of them may be adjusted, they are taken one by one.
SmallVector<Value> SampleEmitter::scan(ValueRange start, NextFn next) {
  const int64_t batch = e.shape.batch, step = lanes * batch;
  auto one = [&](Value id, ValueRange state) {
    return next(adjusted(readLogit(id), id), toI32(id), state);
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
    if (!op.hasAdjustments())
      return all();
    auto branch = scf::IfOp::create(b, loc, start.getTypes(), marksOf(ids),
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

Words SampleEmitter::load(Value lows, Value highs, Value place) {
  return {memref::LoadOp::create(b, loc, lows, place),
          memref::LoadOp::create(b, loc, highs, place)};
}

void SampleEmitter::store(const Words &words, Value lows, Value highs,
                          Value place) {
  memref::StoreOp::create(b, loc, words.low, lows, place);
  memref::StoreOp::create(b, loc, words.high, highs, place);
}

/// The sum of `count` words from `first` on, from their start where it is null.
Words SampleEmitter::addUp(Value lows, Value highs, int64_t count,
                           Value first) {
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
Words SampleEmitter::addLanes(Words own, int64_t count) {
  WarpOps ops(e);
  for (int64_t mask = 1; mask < count; mask *= 2)
    own = add(own, {ops.exchange(own.low, mask), ops.exchange(own.high, mask)});
  return own;
}

/// Stores the sums of groups, and `own` itself where it should. All threads may
/// read them then.
void SampleEmitter::addGroups(const Words &own, bool storesOwn) {
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
Words SampleEmitter::addAll(const Words &own) {
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
Words SampleEmitter::sum(function_ref<Value(Value, Value)> element) {
  Value start[] = {i32(0), i32(0)};
  SmallVector<Value> own =
      scan(start, [&](Value logit, Value id, ValueRange state) {
        Words next = add({state[0], state[1]}, {element(logit, id), i32(0)});
        return SmallVector<Value>{next.low, next.high};
      });
  return addAll({own[0], own[1]});
}

Value SampleEmitter::passes(const Filter &filter, Value logit, Value id) {
  Value order = orderOf(logit);
  Value isAbove = compare(CmpI::sgt, order, filter.order);
  Value isEqual = compare(CmpI::eq, order, filter.order);
  Value isEarly = compare(CmpI::sle, id, filter.lastId);
  return make<arith::OrIOp>(isAbove, both(isEqual, isEarly));
}

/// The weight (i32) of a token; 0 if the filters so far drop it.
Value SampleEmitter::weightOf(Value logit, Value id) {
  Value weight = tokenWeights(logit, largest, scale);
  for (const Filter &filter : filters)
    weight = e.select(passes(filter, logit, id), weight, i32(0));
  if (leastWeight)
    weight = e.select(compare(CmpI::sge, weight, leastWeight), weight, i32(0));
  return weight;
}

/// What `filter` keeps of what the ones so far do.
Words SampleEmitter::reach(const Filter &filter, Unit unit) {
  return sum([&](Value logit, Value id) {
    Value counts = unit == Unit::One ? i32(1) : weightOf(logit, id);
    return e.select(passes(filter, logit, id), counts, i32(0));
  });
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

/// The last number in [low, high), i32s with sign, that reaches `target`, as
/// `low` does and all that come before one that does; or any that reaches just
/// that, for those behind it keep the same.
Value SampleEmitter::bisect(Value low, Value high, const Words &target,
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
/// tokens as reach what is wanted.
void SampleEmitter::keep(Value condition, Unit unit,
                         function_ref<Words()> wanted) {
  Value last = i32(columns);
  Value lowest = orderOf(e.f32(-kInfinity));
  auto find = scf::IfOp::create(
      b, loc, TypeRange{b.getI32Type(), b.getI32Type()}, condition,
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(find.thenBlock());
  Words target = wanted();
  Value order =
      bisect(lowest, make<arith::AddIOp>(largestOrder, i32(1)), target,
             [&](Value order) { return reach({order, last}, unit); });
  // Of several equal to it, ids up to the first that is enough: its negative is
  // the last number that is.
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
              return reach({order, negative(number)}, unit);
            }));
      },
      [&] { return last; });
  scf::YieldOp::create(b, loc, ValueRange{order, lastId});
  b.setInsertionPointToStart(find.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{lowest, last});
  filters.push_back({find.getResult(0), find.getResult(1)});
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Of a search for the part that holds `point`, the state after part number
/// `number`: the part so far, and the words before it. Parts are passed as long
/// as the point is not below their end.
SmallVector<Value> SampleEmitter::pass(Value number, ValueRange state,
                                       const Words &weight,
                                       const Words &point) {
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
SmallVector<Value> SampleEmitter::findPart(const Words &point, Value first,
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
Value SampleEmitter::pick(const Words &point) {
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
          Value logit = adjusted(readLogit(id), id);
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

Value SampleEmitter::draw() {
  scale = exponentScale(settings.temperature);
  Value isLimited = both(compare(CmpI::sgt, settings.topK, i32(0)),
                         compare(CmpI::sgt, i32(columns), settings.topK));
  Value isNucleus = compare(CmpF::OLT, settings.topP, e.f32(1.0));
  keep(isLimited, Unit::One, [&] { return Words{settings.topK, i32(0)}; });
  keep(isNucleus, Unit::Weight, [&] {
    Words all = sum([&](Value logit, Value id) { return weightOf(logit, id); });
    Words wanted = topPSum(all, settings.topP);
    Value isNone =
        compare(CmpI::eq, make<arith::OrIOp>(wanted.low, wanted.high), i32(0));
    return Words{e.select(isNone, i32(1), wanted.low), wanted.high};
  });
  leastWeight = minPWeight(settings.minP);
  Words left = sum([&](Value logit, Value id) { return weightOf(logit, id); });
  return pick(drawPoint(left, randomBits(seed, settings.counter)));
}

/// `largestId` is the first of the thread's own with its largest logit, and
/// `columns` where others have a larger one.
Value SampleEmitter::choose(Value largestId) {
  Value isGreedy = compare(CmpI::eq, orderOf(settings.temperature), i32(0));
  auto firstOfAll = [&] {
    return e.combineThreads(largestId, i32(columns), [&](Value lhs, Value rhs) {
      return make<arith::MinUIOp>(lhs, rhs);
    });
  };
  return ifElse(isGreedy, firstOfAll, [&] { return draw(); });
}

LogicalResult SampleEmitter::emit(Value number) {
  if (failed(e.prepareRow(op.getLogits(), number)))
    return failure();
  row = number;
  filters.clear();
  leastWeight = Value();
  settings = loadSettings(op, number);
  auto [low, high] = e.loadWords(op.getSeed(), number);
  seed = {low, high};
  if (op.hasAdjustments())
    findEntries();
  auto none = [&] { return i32(-1); };
  findShare();
  auto find = [&]() -> Value {
    if (op.hasAdjustments())
      markEntries();
    // A NaN of either sign is the largest, and not within.
    Value lowest = orderOf(e.f32(-kInfinity));
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
    Value isLargest = compare(CmpI::eq, own[0], largestOrder);
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
  return success();
}

} // namespace

LogicalResult mlir::kf::emitGPUSample(GPUEmitter &e) {
  auto op = e.find<SampleOp>();
  if (failed(e.checkResults(op)))
    return failure();
  for (Value operand : op->getOperands().drop_front())
    if (!e.isLoadable(operand))
      return op.emitOpError("convert-kf-to-gpu: settings must be arguments of "
                            "the kernel, or elementwise ops on them");
  SampleEmitter emitter(e, op);
  return e.forRows(e.sizesOf(op.getLogits())[0],
                   [&](ValueRange row) { return emitter.emit(row[0]); });
}
