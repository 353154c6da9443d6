//===- AttentionEmitter.cpp - Online-softmax attention over the KV cache --===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup takes tokens of the query heads that share a KV head, a few rows
// (a token and a head) of one sequence at a time, and visits their keys in
// tiles, each within a page:
//
// 1. `parts` threads share a key: each multiplies its columns with those of all
//    rows, which lie in workgroup memory, and leaves a partial sum.
// 2. A thread adds up the parts of a row's score.
// 3. A thread makes a weight of a score, and the row's new maximum.
// 4. Threads side by side take neighbouring columns of the values, groups of
//    them every so many keys, and sum up weighted values in registers.
//
// In the end the groups' sums are added. A part of kf.attention_partial is what
// one token's rows have of some of the pages. Tiles begin at multiples of their
// size and a row that sees nothing of one is left as it was, so what a row sums
// up, and in which order, does not depend on the rows beside it.
//
// Keys that a row does not see must not touch it, whatever they hold: their
// weight is negative, which leaves out the value, for 0 * NaN is NaN.
//
//===----------------------------------------------------------------------===//

#include "../Common/KeyWindow.h"
#include "CacheBuffer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// The score of a hidden key, and the maximum of no score: finite, so that the
/// one less the other is no NaN.
constexpr double hiddenScore = -std::numeric_limits<double>::infinity();
constexpr double lowestMaximum = std::numeric_limits<float>::lowest();
/// The weight of a hidden key.
constexpr double hiddenWeight = -1.0;

class AttentionEmitter {
public:
  explicit AttentionEmitter(GPUEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<CacheAttentionInterface>()),
        partial(dyn_cast<AttentionPartialOp>(op.getOperation())),
        type(op.getCache().getType()), shape(*e.shape.flash), window(e, op),
        cache(e, op.getCache(), op.getSequences(), op.getPageTable()) {}

  LogicalResult emit() {
    if (failed(check()))
      return failure();
    limit = cache.limit();
    allocate();
    LogicalResult result = success();
    forRuns([&](Value first, Value count) {
      firstToken = first;
      sequence = cache.sequenceOf(first);
      rows = e.mul(count, e.index(heads));
      e.loop(e.index(0), rows, e.index(shape.rows), {},
             [&](Value row, ValueRange) {
               firstRow = row;
               if (failed(emitRows()))
                 result = failure();
               return SmallVector<Value>();
             });
    });
    return result;
  }

private:
  //===--------------------------------------------------------------------===//
  // Setup
  //===--------------------------------------------------------------------===//

  LogicalResult check() {
    auto fail = [&](const Twine &message) {
      return op->emitOpError("convert-kf-to-gpu: " + message);
    };
    auto q = cast<RankedTensorType>(op.getQ().getType());
    dim = q.getDimSize(2);
    heads = q.getDimSize(1);
    if (failed(e.checkResults(op)))
      return failure();
    if (!op.getKvHead() && type.getKvHeads() != 1)
      return fail("schedule must tile heads by the group that shares a KV "
                  "head");
    if (type.getKeyBlock() != 1)
      return fail("cache has key_block = " + Twine(type.getKeyBlock()) +
                  ", GPU code takes keys row by row (1)");
    return success();
  }

  void allocate() {
    Type f32 = b.getF32Type();
    queries = e.workgroupMemory(shape.queryElements(), f32);
    partials = e.workgroupMemory(shape.partialElements(), f32);
    scores = e.workgroupMemory(shape.scoreElements(), f32);
    weights = e.workgroupMemory(shape.rows * shape.keys, f32);
    maxima = e.workgroupMemory(shape.rows, f32);
    newMaxima = e.workgroupMemory(shape.rows, f32);
    factors = e.workgroupMemory(shape.rows, f32);
    positions = e.workgroupMemory(shape.rows, b.getI32Type());
    // Of the products, and of the values.
    part = arith::RemUIOp::create(b, loc, e.thread, e.index(shape.parts));
    slot = arith::DivUIOp::create(b, loc, e.thread, e.index(shape.parts));
    column = arith::RemUIOp::create(b, loc, e.thread, e.index(shape.columns));
    group = arith::DivUIOp::create(b, loc, e.thread, e.index(shape.columns));
  }

  /// Calls `body` for runs of neighbouring tokens that belong to one sequence.
  /// A table for one sequence makes them one run. All threads read the same
  /// sequences, so they agree on the runs.
  void forRuns(function_ref<void(Value first, Value count)> body) {
    Value tokenCount = e.sizesOf(op.getQ())[0];
    if (cache.hasOneSequence() || getConstantIntValue(tokenCount) == 1)
      return body(e.index(0), tokenCount);
    Value one = e.index(1);
    auto isSame = [&](Value lhs, Value rhs) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lhs, rhs);
    };
    auto runs = scf::WhileOp::create(
        b, loc, TypeRange{b.getIndexType()}, ValueRange{e.index(0)},
        [&](OpBuilder &, Location, ValueRange state) {
          scf::ConditionOp::create(b, loc, e.isLess(state[0], tokenCount),
                                   state);
        },
        [](OpBuilder &, Location, ValueRange) {});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(runs.getAfterBody());
    Value first = runs.getAfterArguments()[0];
    Value own = cache.sequenceOf(first), next = e.add(first, one);
    auto end =
        e.loop(next, tokenCount, one, next, [&](Value at, ValueRange args) {
          Value isOwn = arith::AndIOp::create(
              b, loc, isSame(args[0], at), isSame(cache.sequenceOf(at), own));
          return SmallVector<Value>{e.select(isOwn, e.add(at, one), args[0])};
        });
    body(first, e.sub(end.getResult(0), first));
    scf::YieldOp::create(b, loc, end.getResult(0));
  }

  //===--------------------------------------------------------------------===//
  // A few rows
  //===--------------------------------------------------------------------===//

  /// Rows [firstRow, firstRow + shape.rows) of the run, of which the last may
  /// be missing.
  LogicalResult emitRows() {
    findRange();
    LogicalResult result = success();
    if (shape.queryChunks(dim) == 1)
      result = stageQueries(e.index(0));
    e.loop(e.index(shape.passes(dim)), [&](Value pass) {
      firstColumn = e.add(e.mul(pass, e.index(shape.columnsOfPass())), column);
      e.forThreads(e.index(shape.rows), [&](Value row) {
        store(e.f32(lowestMaximum), maxima, row);
      });
      e.barrier();
      if (failed(visitKeys()))
        result = failure();
      e.barrier();
    });
    return result;
  }

  /// Row number `row` of the block: its token in the tile and its head, and
  /// whether the run has it. Those of a row that it has not are the first's.
  struct Row {
    Value token, head, exists;
  };
  Row find(Value row) {
    Value number = e.add(firstRow, row), exists = e.isLess(number, rows);
    number = e.select(exists, number, firstRow);
    Value size = e.index(heads);
    return {e.add(firstToken, arith::DivUIOp::create(b, loc, number, size)),
            arith::RemUIOp::create(b, loc, number, size), exists};
  }

  /// Positions of the rows, -1 for all that see nothing, and the keys that any
  /// of them sees.
  void findRange() {
    Type i32 = b.getI32Type();
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(i32, value));
    };
    positionOf.clear();
    Value low, high;
    for (int64_t r = 0; r < shape.rows; ++r) {
      Row row = find(e.index(r));
      Value position = arith::MaxSIOp::create(
          b, loc, e.load(op.getPositions(), row.token, 0), number(-1));
      low = low ? arith::MinSIOp::create(b, loc, low, position) : position;
      high = high ? arith::MaxSIOp::create(b, loc, high, position) : position;
      positionOf.push_back(e.select(row.exists, position, number(-1)));
    }
    e.onFirstThread([&] {
      for (int64_t r = 0; r < shape.rows; ++r)
        store(positionOf[r], positions, e.index(r));
    });
    auto toIndex = [&](Value value) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
    };
    // Positions up to the largest i32: one more is none.
    Value last =
        arith::MinSIOp::create(b, loc, toIndex(high), e.sub(limit, e.index(1)));
    endKey = e.add(last, e.index(1));
    Value tile = e.index(shape.keys);
    firstSeen = window.firstOf(toIndex(low));
    firstKey = e.mul(arith::DivUIOp::create(b, loc, firstSeen, tile), tile);
    if (partial)
      takePart();
  }

  /// Leaves of the keys those of the pages of the workgroup's part. Its rows
  /// are one token's.
  void takePart() {
    auto [seen, first, end] =
        keysOfPart(e, partial, {firstSeen, firstKey, endKey});
    firstSeen = seen, firstKey = first, endKey = end;
  }

  Value load(Value memory, Value place) {
    return memref::LoadOp::create(b, loc, memory, place);
  }
  void store(Value value, Value memory, Value place) {
    memref::StoreOp::create(b, loc, value, memory, place);
  }
  Value placeOf(Value row, Value offset, int64_t extent) {
    return e.add(e.mul(row, e.index(extent)), offset);
  }

  /// Stages columns of all rows' queries, scaled, from `first` on.
  LogicalResult stageQueries(Value first) {
    Value scale = e.f32(op.getScale().convertToDouble());
    int64_t width = shape.queryColumns;
    auto stage = [&](const Row &row, Value local, Value offset) {
      Value at = e.add(first, offset), inside = row.exists;
      if (dim % width != 0) {
        Value exists = e.isLess(at, e.index(dim));
        inside = arith::AndIOp::create(b, loc, inside, exists);
        at = e.select(exists, at, first);
      }
      Value q = e.mul(e.load(op.getQ(), {row.token, row.head, at}, 0), scale);
      store(e.select(inside, q, e.f32(0.0)), queries,
            placeOf(local, offset, width));
    };
    if (e.isLoadable(op.getQ())) {
      e.forThreads(e.index(shape.rows * width), [&](Value i) {
        Value local = arith::DivUIOp::create(b, loc, i, e.index(width));
        stage(find(local), local,
              arith::RemUIOp::create(b, loc, i, e.index(width)));
      });
      return success();
    }
    LogicalResult result = success();
    e.loop(e.index(shape.rows), [&](Value local) {
      Row row = find(local);
      result = e.prepareRow(op.getQ(), {row.token, row.head});
      if (succeeded(result))
        e.forThreads(e.index(width),
                     [&](Value offset) { stage(row, local, offset); });
    });
    return result;
  }

  //===--------------------------------------------------------------------===//
  // Keys
  //===--------------------------------------------------------------------===//

  /// What a thread sums up of the values: [rows][columnsOfThread], and each
  /// row's weights.
  int64_t valueSums() const { return shape.rows * shape.columnsOfThread; }

  LogicalResult visitKeys() {
    SmallVector<Value> zeros(valueSums() + shape.rows, e.f32(0.0));
    LogicalResult result = success();
    auto tiles = e.loop(firstKey, endKey, e.index(shape.keys), zeros,
                        [&](Value key, ValueRange sums) {
                          locateKeys(key);
                          if (failed(sumProducts()))
                            result = failure();
                          e.barrier();
                          emitScores(key);
                          e.barrier();
                          emitWeights(key);
                          e.barrier();
                          return sumValues(key, sums);
                        });
    if (failed(result))
      return failure();
    SmallVector<Value> sums(tiles.getResults());
    if (shape.groups() > 1)
      sums = addGroups(sums);
    if (partial)
      writePart(sums);
    else
      writeResult(sums);
    return success();
  }

  /// The tile of keys at position `key` of the sequence: it lies in one page,
  /// as its size divides a page's.
  void locateKeys(Value key) {
    firstPlace = arith::RemUIOp::create(b, loc, key, e.index(type.getPage()));
    Value head =
        op.getKvHead() ? e.index(OpFoldResult(op.getKvHead())) : e.index(0);
    keysOfHead = e.add(cache.findPage(sequence, key),
                       e.mul(head, e.index(cache.headSize())));
    valuesOfHead = e.add(keysOfHead, e.index(cache.valuesOffset()));
  }

  /// Leaves this thread's part of its keys' products with all rows.
  LogicalResult sumProducts() {
    SmallVector<CacheRow> keyRows;
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < shape.keysOfThread(); ++i) {
      numbers.push_back(e.add(slot, e.index(i * shape.keysAtOnce())));
      Value number = numbers.back();
      if ((i + 1) * shape.keysAtOnce() > shape.keys)
        number =
            arith::MinUIOp::create(b, loc, number, e.index(shape.keys - 1));
      keyRows.push_back(cache.locate(keysOfHead, e.add(firstPlace, number)));
    }
    SmallVector<Value> sums(shape.rows * keyRows.size(), e.f32(0.0));
    LogicalResult result = success();
    if (int64_t chunks = shape.queryChunks(dim); chunks == 1) {
      sums = addProducts(keyRows, e.index(0), sums);
    } else {
      auto added = e.loop(e.index(0), e.index(chunks), e.index(1), sums,
                          [&](Value chunk, ValueRange args) {
                            Value first =
                                e.mul(chunk, e.index(shape.queryColumns));
                            e.barrier();
                            if (failed(stageQueries(first)))
                              result = failure();
                            e.barrier();
                            return addProducts(keyRows, first, args);
                          });
      sums.assign(added.result_begin(), added.result_end());
    }
    for (auto [i, number] : llvm::enumerate(numbers)) {
      auto leave = [&, i = i, number = number] {
        for (int64_t r = 0; r < shape.rows; ++r) {
          Value score = e.add(number, e.index(r * shape.keys));
          store(sums[r * keyRows.size() + i], partials,
                placeOf(score, part, shape.parts + 1));
        }
      };
      if ((static_cast<int64_t>(i) + 1) * shape.keysAtOnce() > shape.keys)
        e.ifThen(e.isLess(number, e.index(shape.keys)), leave);
      else
        leave();
    }
    return result;
  }

  /// `sums` [rows][keys of the thread] with the products of the staged columns
  /// added, which begin at `first`.
  SmallVector<Value> addProducts(ArrayRef<CacheRow> keyRows, Value first,
                                 ValueRange sums) {
    // Columns of one step: a block's, or a few.
    int64_t step = cache.isQuantized() ? cache.blockSize() : shape.parts;
    if (!cache.isQuantized() && dim % (4 * step) == 0 &&
        shape.queryColumns % (4 * step) == 0)
      step *= 4;
    Value count = e.index(shape.queryColumns);
    if (dim % shape.queryColumns != 0)
      count = arith::MinUIOp::create(b, loc, count, e.sub(e.index(dim), first));
    auto products = e.loop(
        e.index(0), count, e.index(step), sums,
        [&](Value offset, ValueRange args) {
          SmallVector<Value> acc(args), scales;
          if (cache.isQuantized())
            for (const CacheRow &row : keyRows)
              scales.push_back(cache.loadScale(
                  row, arith::DivUIOp::create(b, loc, e.add(first, offset),
                                              e.index(cache.blockSize()))));
          for (int64_t i = 0; i < step; i += shape.parts)
            addColumn(keyRows, scales, first,
                      e.add(e.add(offset, e.index(i)), part), acc);
          return acc;
        });
    return SmallVector<Value>(products.getResults());
  }

  /// The products of staged column `at`. Parts may not divide the columns:
  /// past the last one there is nothing to add.
  void addColumn(ArrayRef<CacheRow> keyRows, ArrayRef<Value> scales,
                 Value first, Value at, MutableArrayRef<Value> acc) {
    Value inside, source = e.add(first, at);
    if (dim % shape.parts != 0) {
      inside = e.isLess(source, e.index(dim));
      source = e.select(inside, source, first);
      at = e.select(inside, at, e.index(0));
    }
    SmallVector<Value> k;
    for (auto [i, row] : llvm::enumerate(keyRows)) {
      Value value = cache.load(row, source);
      k.push_back(scales.empty() ? value : e.mul(value, scales[i]));
    }
    for (int64_t r = 0; r < shape.rows; ++r) {
      Value q = load(queries, placeOf(e.index(r), at, shape.queryColumns));
      for (auto [i, value] : llvm::enumerate(k)) {
        Value &sum = acc[r * keyRows.size() + i];
        Value more = math::FmaOp::create(b, loc, q, value, sum);
        sum = inside ? e.select(inside, more, sum) : more;
      }
    }
  }

  /// Whether row `row` sees key number `number` of the tile at `key`.
  Value sees(Value row, Value key, Value number) {
    Value at = e.add(key, number);
    Value seen = window.isSeen(
        arith::IndexCastOp::create(b, loc, b.getI32Type(), at),
        load(positions, row), [](Value scalar) { return scalar; });
    return arith::AndIOp::create(b, loc, seen, e.isLess(at, endKey));
  }

  /// Calls `body` for the rows and keys of this thread.
  void
  forScores(function_ref<void(Value place, Value row, Value number)> body) {
    e.forThreads(e.index(shape.rows * shape.keys), [&](Value place) {
      body(place, arith::DivUIOp::create(b, loc, place, e.index(shape.keys)),
           arith::RemUIOp::create(b, loc, place, e.index(shape.keys)));
    });
  }

  void emitScores(Value key) {
    forScores([&](Value place, Value row, Value number) {
      Value sum;
      for (int64_t i = 0; i < shape.parts; ++i) {
        Value value =
            load(partials, placeOf(place, e.index(i), shape.parts + 1));
        sum = sum ? e.add(sum, value) : value;
      }
      store(e.select(sees(row, key, number), sum, e.f32(hiddenScore)), scores,
            place);
    });
  }

  void emitWeights(Value key) {
    forScores([&](Value place, Value row, Value number) {
      Value old = load(maxima, row), first = e.mul(row, e.index(shape.keys));
      auto largest =
          e.loop(e.index(0), e.index(shape.keys), e.index(1), old,
                 [&](Value i, ValueRange args) {
                   return SmallVector<Value>{arith::MaximumFOp::create(
                       b, loc, args[0], load(scores, e.add(first, i)))};
                 });
      Value maximum = largest.getResult(0);
      Value weight =
          math::ExpOp::create(b, loc, e.sub(load(scores, place), maximum));
      store(e.select(sees(row, key, number), weight, e.f32(hiddenWeight)),
            weights, place);
      Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            number, e.index(0));
      e.ifThen(isFirst, [&] {
        store(maximum, newMaxima, row);
        store(math::ExpOp::create(b, loc, e.sub(old, maximum)), factors, row);
      });
    });
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// `sums` rescaled, with the weighted values of this thread's keys and
  /// columns added.
  SmallVector<Value> sumValues(Value key, ValueRange sums) {
    e.forThreads(e.index(shape.rows),
                 [&](Value row) { store(load(newMaxima, row), maxima, row); });
    SmallVector<Value> acc;
    for (int64_t r = 0; r < shape.rows; ++r) {
      Value factor = load(factors, e.index(r));
      for (int64_t i = 0; i < shape.columnsOfThread; ++i)
        acc.push_back(e.mul(sums[r * shape.columnsOfThread + i], factor));
    }
    for (int64_t r = 0; r < shape.rows; ++r)
      acc.push_back(e.mul(sums[valueSums() + r], load(factors, e.index(r))));

    Value end =
        arith::MinSIOp::create(b, loc, e.index(shape.keys), e.sub(endKey, key));
    int64_t groups = shape.groups();
    Value first = e.select(e.isLess(group, e.index(groups)), group, end);
    auto added = e.loop(first, end, e.index(groups), acc,
                        [&](Value number, ValueRange args) {
                          SmallVector<Value> next(args);
                          addValue(number, next);
                          return next;
                        });
    return SmallVector<Value>(added.getResults());
  }

  /// Column number `i` of this thread, and whether there is one.
  Value columnOf(int64_t i) {
    return e.add(firstColumn, e.index(i * shape.columns));
  }
  bool coversColumns() const { return dim % shape.columnsOfPass() == 0; }

  void addValue(Value number, MutableArrayRef<Value> acc) {
    CacheRow row = cache.locate(valuesOfHead, e.add(firstPlace, number));
    SmallVector<Value> values;
    for (int64_t i = 0; i < shape.columnsOfThread; ++i) {
      Value at = columnOf(i);
      if (!coversColumns())
        at = arith::MinUIOp::create(b, loc, at, e.index(dim - 1));
      Value value = cache.load(row, at);
      if (cache.isQuantized()) {
        Value block =
            arith::DivUIOp::create(b, loc, at, e.index(cache.blockSize()));
        value = e.mul(value, cache.loadScale(row, block));
      }
      values.push_back(value);
    }
    for (int64_t r = 0; r < shape.rows; ++r) {
      Value weight = load(weights, e.add(number, e.index(r * shape.keys)));
      Value isHidden = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                                             weight, e.f32(0.0));
      for (auto [i, value] : llvm::enumerate(values)) {
        Value &sum = acc[r * shape.columnsOfThread + i];
        sum = e.select(isHidden, sum,
                       math::FmaOp::create(b, loc, weight, value, sum));
      }
      Value &total = acc[valueSums() + r];
      total = e.select(isHidden, total, e.add(total, weight));
    }
  }

  /// Calls `body` with the number, among `sums`, and the column of what the
  /// first group's threads have of values of row number `r`.
  void forColumns(int64_t r, const Row &row,
                  function_ref<void(int64_t number, Value at)> body) {
    Value writes = arith::AndIOp::create(
        b, loc, row.exists,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, group,
                              e.index(0)));
    for (int64_t i = 0; i < shape.columnsOfThread; ++i) {
      Value inside = writes, at = columnOf(i);
      if (!coversColumns())
        inside =
            arith::AndIOp::create(b, loc, inside, e.isLess(at, e.index(dim)));
      e.ifThen(inside, [&] { body(r * shape.columnsOfThread + i, at); });
    }
  }

  /// Stores the rows' results, of which `sums` are the sums of all keys.
  void writeResult(ArrayRef<Value> sums) {
    for (int64_t r = 0; r < shape.rows; ++r) {
      Row row = find(e.index(r));
      Value position =
          arith::IndexCastOp::create(b, loc, b.getIndexType(), positionOf[r]);
      Value isAny = window.seesAny(position, limit);
      Value inverse = e.select(
          isAny,
          arith::DivFOp::create(b, loc, e.f32(1.0), sums[valueSums() + r]),
          e.f32(0.0));
      forColumns(r, row, [&](int64_t number, Value at) {
        e.storeResult(e.mul(sums[number], inverse), {row.token, row.head, at});
      });
    }
  }

  /// Stores what the rows have of the part's keys.
  void writePart(ArrayRef<Value> sums) {
    // Threads have left the last maxima.
    e.barrier();
    Value hasKeys = e.isLess(firstSeen, endKey), zero = e.index(0);
    for (int64_t r = 0; r < shape.rows; ++r) {
      Row row = find(e.index(r));
      e.ifThen(row.exists, [&] {
        e.onFirstThread([&] {
          SmallVector<Value> place = {row.token, row.head, zero};
          Value maximum =
              e.select(hasKeys, load(maxima, e.index(r)), e.f32(hiddenScore));
          e.storeResult(maximum, place, 0);
          e.storeResult(sums[valueSums() + r], place, 1);
        });
      });
      forColumns(r, row, [&](int64_t number, Value at) {
        e.storeResult(sums[number], {row.token, row.head, zero, at}, 2);
      });
    }
  }

  /// The sums of all groups, in the threads of the first.
  SmallVector<Value> addGroups(ArrayRef<Value> sums) {
    int64_t groups = shape.groups();
    for (int64_t r = 0; r < shape.rows; ++r) {
      store(sums[r], partials, e.add(e.thread, e.index(r * shape.threads)));
      Value writes = arith::AndIOp::create(
          b, loc,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, column,
                                e.index(0)),
          e.isLess(group, e.index(groups)));
      e.ifThen(writes, [&] {
        store(sums[valueSums() + r], scores, e.add(group, e.index(r * groups)));
      });
    }
    e.barrier();
    SmallVector<Value> added;
    auto addAll = [&](function_ref<Value(int64_t)> part) {
      Value sum = part(0);
      for (int64_t g = 1; g < groups; ++g)
        sum = e.add(sum, part(g));
      added.push_back(sum);
    };
    for (int64_t r = 0; r < shape.rows; ++r)
      addAll([&](int64_t g) {
        return load(partials, e.add(column, e.index(r * shape.threads +
                                                    g * shape.columns)));
      });
    for (int64_t r = 0; r < shape.rows; ++r)
      addAll([&](int64_t g) { return load(scores, e.index(r * groups + g)); });
    return added;
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  CacheAttentionInterface op;
  AttentionPartialOp partial; // null where it is not
  KVCacheType type;
  const FlashShape &shape;
  KeyWindow window;
  CacheBuffer cache;
  int64_t dim = 0, heads = 0;
  Value limit;                     // positions that a sequence may have
  Value firstToken, sequence;      // of the run
  Value rows, firstRow;            // of the run; the first of the block
  SmallVector<Value> positionOf;   // of the block's rows, i32
  Value firstSeen, endKey;         // keys that any of them sees
  Value firstKey;                  // where their first tile begins
  Value part, slot, column, group; // this thread's
  Value firstColumn;               // of this thread in this pass
  Value firstPlace;                // of the tile of keys in its page
  Value keysOfHead, valuesOfHead;  // where the page's begin
  // Workgroup memory.
  Value queries;                    // [rows][queryColumns]
  Value partials;                   // [rows][keys][parts + 1]
  Value scores, weights;            // [rows][keys]
  Value maxima, newMaxima, factors; // [rows]
  Value positions;                  // [rows] of i32
};

} // namespace

LogicalResult mlir::kf::emitGPUAttention(GPUEmitter &emitter) {
  return AttentionEmitter(emitter).emit();
}
