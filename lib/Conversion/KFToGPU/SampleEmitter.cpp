//===- SampleEmitter.cpp - Choosing tokens --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup chooses the token of a row. Filters do not sort: each bisects for
// the least logit that it keeps, by the count or the sum of weights of all
// tokens from that one on, which threads add up together. Where equal logits
// are kept in part, it bisects for the last id among them in the same way. The
// draw narrows down a range of ids by the sums of as many parts as there are
// threads.
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
#include "GPUEmitter.h"

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

  Value choose();
  Value firstLargest();
  Value draw();

  void findEntries();
  void markEntries();
  Value markPlace(Value id);
  Value logitAt(Value id);
  Value passes(const Filter &filter, Value logit, Value id);
  Value weightOf(Value logit, Value id);
  Words sum(function_ref<Value(Value logit, Value id)> element);
  Words reach(const Filter &filter, Unit unit);
  Value bisect(Value low, Value high, const Words &target,
               function_ref<Words(Value middle)> reach);
  void keep(Value condition, Unit unit, function_ref<Words()> wanted);
  Words addAll(const Words &own);
  Value pick(const Words &point);

  GPUEmitter &e;
  SampleOp op;
  int64_t columns;
  Value row;
  SampleSettings settings; ///< the row's
  Words seed;
  Value entry, entriesEnd; ///< of the lists, the row's
  Value marks;             ///< workgroup memory: a bit an id
  Value largestOrder, largest, scale;
  SmallVector<Filter> filters; ///< so far
  Value leastWeight;           ///< i32; null: any
  Value lowWords, highWords;   ///< workgroup memory, of a thread each
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

/// The logit of `id`, an index, after its adjustments.
Value SampleEmitter::logitAt(Value id) {
  Value logit = e.load(op.getLogits(), {row, id}, 0);
  if (!op.hasAdjustments())
    return logit;
  Value bits = memref::LoadOp::create(b, loc, marks, markPlace(id));
  Value isMarked = compare(CmpI::ne, both(bits, bitOf(*this, id)), i32(0));
  auto adjust = [&] {
    Value own = toI32(id);
    auto adjusted = e.loop(
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
    return adjusted.getResult(0);
  };
  return ifElse(isMarked, adjust, [&] { return logit; });
}

//===----------------------------------------------------------------------===//
// Sums over the row
//===----------------------------------------------------------------------===//

/// The sum of all threads' `own`.
Words SampleEmitter::addAll(const Words &own) {
  int64_t threads = e.shape.threadCount;
  if (threads == 1)
    return own;
  auto load = [&](Value place) -> Words {
    return {memref::LoadOp::create(b, loc, lowWords, place),
            memref::LoadOp::create(b, loc, highWords, place)};
  };
  auto store = [&](const Words &words, Value place) {
    memref::StoreOp::create(b, loc, words.low, lowWords, place);
    memref::StoreOp::create(b, loc, words.high, highWords, place);
  };
  // Some threads add up what a few left, and all of them those sums.
  auto addUp = [&](Value first, int64_t count) {
    Value start[] = {i32(0), i32(0)};
    auto sums = e.loop(e.index(0), e.index(count), e.index(1), start,
                       [&](Value i, ValueRange args) {
                         Words sum =
                             add({args[0], args[1]}, load(e.add(first, i)));
                         return SmallVector<Value>{sum.low, sum.high};
                       });
    return Words{sums.getResult(0), sums.getResult(1)};
  };
  store(own, e.thread);
  e.barrier();
  int64_t few = 1;
  while (few * few < threads)
    ++few;
  while (threads % few != 0)
    --few;
  if (few > 1) {
    Value adds = e.isLess(e.thread, e.index(threads / few));
    Value first = e.select(adds, e.mul(e.thread, e.index(few)), e.index(0));
    Words sum = addUp(first, few);
    e.barrier();
    e.ifThen(adds, [&] { store(sum, e.thread); });
    e.barrier();
  }
  Words total = addUp(e.index(0), threads / few);
  // The next sum is written only once all threads have read this one.
  e.barrier();
  return total;
}

/// The sum of `element` (i32, without sign) of all tokens.
Words SampleEmitter::sum(function_ref<Value(Value, Value)> element) {
  Value start[] = {i32(0), i32(0)};
  auto own = e.loop(e.thread, e.index(columns), e.index(e.shape.threadCount),
                    start, [&](Value id, ValueRange state) {
                      Words next =
                          add({state[0], state[1]},
                              {element(logitAt(id), toI32(id)), i32(0)});
                      return SmallVector<Value>{next.low, next.high};
                    });
  return addAll({own.getResult(0), own.getResult(1)});
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

/// The first token, in order of ids, up to which weights sum up to more than
/// `point`. Every round cuts the range that has it into a part a thread.
Value SampleEmitter::pick(const Words &point) {
  int64_t threads = e.shape.threadCount;
  Type i32Type = b.getI32Type();
  Type types[] = {b.getIndexType(), b.getIndexType(), i32Type, i32Type};
  // The range, and what comes before it.
  Value start[] = {e.index(0), e.index(columns), i32(0), i32(0)};
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
  auto atMost = [&](Value lhs, Value rhs) -> Value {
    return arith::MinUIOp::create(b, loc, lhs, rhs);
  };
  // One thread alone cuts in two.
  int64_t cuts = std::max<int64_t>(threads, 2);
  Value size = e.ceilDiv(e.sub(state[1], state[0]), cuts);
  auto partOf = [&](Value number) {
    Value begin = atMost(e.add(state[0], e.mul(number, size)), state[1]);
    return std::pair(begin, atMost(e.add(begin, size), state[1]));
  };
  auto weightOfPart = [&](Value number) -> Words {
    auto [begin, end] = partOf(number);
    Value none[] = {i32(0), i32(0)};
    auto sums =
        e.loop(begin, end, e.index(1), none, [&](Value id, ValueRange args) {
          Words next = add({args[0], args[1]},
                           {weightOf(logitAt(id), toI32(id)), i32(0)});
          return SmallVector<Value>{next.low, next.high};
        });
    return {sums.getResult(0), sums.getResult(1)};
  };
  Value before[] = {e.index(0), state[2], state[3]};
  SmallVector<Value> found;
  auto pass = [&](Value number, ValueRange args, const Words &weight) {
    // Parts are passed as long as point is not below their end. The last one
    // is not: what is left holds the point.
    Words after = add({args[1], args[2]}, weight);
    Value isHere = compare(CmpI::eq, args[0], number);
    Value isPassed =
        both(isHere, make<arith::XOrIOp>(isBelow(point, after),
                                         this->number(b.getI1Type(), 1)));
    return SmallVector<Value>{
        e.select(isPassed, e.add(number, e.index(1)), args[0]),
        e.select(isPassed, after.low, args[1]),
        e.select(isPassed, after.high, args[2])};
  };
  if (threads == 1) {
    found = pass(e.index(0), before, weightOfPart(e.index(0)));
  } else {
    Words own = weightOfPart(e.thread);
    memref::StoreOp::create(b, loc, own.low, lowWords, e.thread);
    memref::StoreOp::create(b, loc, own.high, highWords, e.thread);
    e.barrier();
    auto passed = e.loop(
        e.index(0), e.index(threads - 1), e.index(1), before,
        [&](Value number, ValueRange args) {
          Words weight = {memref::LoadOp::create(b, loc, lowWords, number),
                          memref::LoadOp::create(b, loc, highWords, number)};
          return pass(number, args, weight);
        });
    e.barrier();
    found.assign(passed.result_begin(), passed.result_end());
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

/// The lowest id with the largest logit.
Value SampleEmitter::firstLargest() {
  Value none = i32(columns);
  return e.reduce(
      e.index(columns), none,
      [&](Value lhs, Value rhs) { return make<arith::MinUIOp>(lhs, rhs); },
      [&](Value id) {
        Value isLargest = compare(CmpI::eq, orderOf(logitAt(id)), largestOrder);
        return e.select(isLargest, toI32(id), none);
      });
}

Value SampleEmitter::choose() {
  Value isGreedy = compare(CmpI::eq, orderOf(settings.temperature), i32(0));
  return ifElse(
      isGreedy, [&] { return firstLargest(); }, [&] { return draw(); });
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
  auto scan = [&]() -> Value {
    if (op.hasAdjustments())
      markEntries();
    // A NaN of either sign is the largest, and not within.
    Value lowest = orderOf(e.f32(-kInfinity));
    largestOrder = e.reduce(
        e.index(columns), lowest,
        [&](Value lhs, Value rhs) { return make<arith::MaxSIOp>(lhs, rhs); },
        [&](Value id) {
          Value order = orderOf(logitAt(id));
          return e.select(compare(CmpI::slt, order, lowest),
                          i32(std::numeric_limits<int32_t>::max()), order);
        });
    largest = numberOf(largestOrder);
    return ifElse(
        isOrderWithin(largestOrder, -kMost, kMost), [&] { return choose(); },
        none);
  };
  Value token = ifElse(areValid(settings), scan, none);
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
