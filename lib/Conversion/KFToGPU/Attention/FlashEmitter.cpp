//===- FlashEmitter.cpp - Online-softmax attention over the KV cache ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup takes a few rows of one sequence at a time, and visits their keys
// in tiles, each within a page:
//
// 1. `shares` threads have a key: each multiplies its columns with those of all
//    rows, which lie in workgroup memory, and leaves a partial sum.
// 2. A thread adds up the shares of a row's score.
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

#include "FlashEmitter.h"

#include "../../Common/RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

/// Heads of more columns have more sums in registers than ptxas leaves them: it
/// spills some for another workgroup. `wideThreads` threads of a multiprocessor
/// have enough for twice the columns, and in proportion fewer for more.
static constexpr int64_t wideHead = 128, wideThreads = 768;
/// Workgroups that every multiprocessor takes.
static constexpr int64_t mostWorkgroups = 16;
/// The weight of a hidden key.
static constexpr double hiddenWeight = -1.0;

FlashEmitter::FlashEmitter(AttentionRows &rows)
    : run(rows), e(rows.e), b(rows.b), loc(rows.loc), shape(*e.shape.flash),
      cache(rows.cache), window(rows.window) {}

void FlashEmitter::emit() {
  if (run.dim > wideHead) {
    const int64_t dims = std::max(run.dim, 2 * wideHead);
    const int64_t threads = wideThreads * 2 * wideHead / dims;
    e.useAllRegisters(
        std::clamp<int64_t>(threads / e.shape.threadCount, 1, mostWorkgroups));
  }
  allocate([&](int64_t count, Type element) {
    return e.workgroupMemory(count, element);
  });
  run.forBlocks(shape.rows, [&] { emitRows(); });
}

void FlashEmitter::allocate(MemoryFn memory) {
  Type f32 = b.getF32Type();
  queries = memory(shape.queryElements(), f32);
  partials = memory(shape.partialElements(), f32);
  scores = memory(shape.scoreElements(), f32);
  weights = memory(shape.rows * shape.keys, f32);
  maxima = memory(shape.rows, f32);
  newMaxima = memory(shape.rows, f32);
  factors = memory(shape.rows, f32);
  positions = memory(shape.rows, b.getI32Type());
  numberThread();
}

void FlashEmitter::numberThread() {
  // Of the products, and of the values.
  share = arith::RemUIOp::create(b, loc, e.thread, e.index(shape.shares));
  slot = arith::DivUIOp::create(b, loc, e.thread, e.index(shape.shares));
  column = arith::RemUIOp::create(b, loc, e.thread, e.index(shape.columns));
  group = arith::DivUIOp::create(b, loc, e.thread, e.index(shape.columns));
}

//===----------------------------------------------------------------------===//
// A few rows
//===----------------------------------------------------------------------===//

void FlashEmitter::emitRows(int64_t count) {
  Value first = run.firstRow;
  Value end =
      arith::MinUIOp::create(b, loc, e.add(first, e.index(count)), run.rows);
  e.loop(first, end, e.index(shape.rows), {}, [&](Value row, ValueRange) {
    run.firstRow = row;
    emitRows();
    return SmallVector<Value>();
  });
  run.firstRow = first;
}

/// Rows [firstRow, firstRow + shape.rows) of the run, of which the last may
/// be missing.
void FlashEmitter::emitRows() {
  findRange();
  if (shape.queryChunks(run.dim) == 1)
    stageQueries(e.index(0));
  e.loop(e.index(shape.passes(run.dim)), [&](Value pass) {
    firstColumn = e.add(e.mul(pass, e.index(shape.columnsOfPass())), column);
    e.forThreads(e.index(shape.rows), [&](Value row) {
      store(e.f32(AttentionRows::lowestMaximum), maxima, row);
    });
    e.barrier();
    visitKeys();
    e.barrier();
  });
}

/// Positions of the rows, -1 for all that see nothing, and the keys that any
/// of them sees.
void FlashEmitter::findRange() {
  Value nothing = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(-1));
  positionOf.clear();
  Value low, high;
  for (int64_t r = 0; r < shape.rows; ++r) {
    AttentionRows::Row row = run.find(e.index(r));
    Value position = run.positionOf(row);
    low = low ? arith::MinSIOp::create(b, loc, low, position) : position;
    high = high ? arith::MaxSIOp::create(b, loc, high, position) : position;
    positionOf.push_back(e.select(row.exists, position, nothing));
  }
  e.onFirstThread([&] {
    for (int64_t r = 0; r < shape.rows; ++r)
      store(positionOf[r], positions, e.index(r));
  });
  auto toIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  };
  // Positions up to the largest i32: one more is none.
  Value last = arith::MinSIOp::create(b, loc, toIndex(high),
                                      e.sub(run.limit, e.index(1)));
  endKey = e.add(last, e.index(1));
  Value tile = e.index(shape.keys);
  firstSeen = window.firstOf(toIndex(low));
  firstKey = e.mul(arith::DivUIOp::create(b, loc, firstSeen, tile), tile);
  if (!run.partial)
    return;
  // The rows are one token's.
  auto [seen, first, end] =
      keysOfPart(e, run.partial, {firstSeen, firstKey, endKey});
  firstSeen = seen, firstKey = first, endKey = end;
}

Value FlashEmitter::placeIn(const FlashMemory &memory, Value place) {
  return memory.first == 0 ? place : e.add(place, e.index(memory.first));
}
Value FlashEmitter::load(const FlashMemory &from, Value place) {
  return memref::LoadOp::create(b, loc, from.memory, placeIn(from, place));
}
void FlashEmitter::store(Value value, const FlashMemory &to, Value place) {
  memref::StoreOp::create(b, loc, value, to.memory, placeIn(to, place));
}
/// Stages columns of all rows' queries, scaled, from `first` on.
void FlashEmitter::stageQueries(Value first) {
  int64_t width = shape.queryColumns;
  run.forQueries(shape.rows, first, width, run.op.getScale().convertToDouble(),
                 [&](Value local, Value offset, Value q) {
                   store(q, queries, placeOf(local, offset, width));
                 });
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void FlashEmitter::visitKeys() {
  SmallVector<Value> zeros(valueSums() + shape.rows, e.f32(0.0));
  auto tiles = e.loop(firstKey, endKey, e.index(shape.keys), zeros,
                      [&](Value key, ValueRange sums) {
                        locateKeys(key);
                        sumProducts();
                        e.barrier();
                        emitScores(key);
                        e.barrier();
                        emitWeights(key);
                        e.barrier();
                        return sumValues(key, sums);
                      });
  SmallVector<Value> sums(tiles.getResults());
  if (shape.groups() > 1)
    sums = addGroups(sums);
  if (run.partial)
    writePart(sums);
  else
    writeResult(sums);
}

/// The tile of keys at position `key` of the sequence: it lies in one page,
/// as its size divides a page's.
void FlashEmitter::locateKeys(Value key) {
  firstPlace = arith::RemUIOp::create(b, loc, key, e.index(run.type.getPage()));
  keysOfHead = run.keysAt(key);
  valuesOfHead = run.valuesAt(keysOfHead);
}

/// Leaves this thread's share of its keys' products with all rows.
void FlashEmitter::sumProducts() {
  SmallVector<CacheRow> keyRows;
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < shape.keysOfThread(); ++i) {
    numbers.push_back(e.add(slot, e.index(i * shape.keysAtOnce())));
    Value number = numbers.back();
    if ((i + 1) * shape.keysAtOnce() > shape.keys)
      number = arith::MinUIOp::create(b, loc, number, e.index(shape.keys - 1));
    keyRows.push_back(cache.locate(keysOfHead, e.add(firstPlace, number)));
  }
  SmallVector<Value> sums(shape.rows * keyRows.size(), e.f32(0.0));
  if (int64_t chunks = shape.queryChunks(run.dim); chunks == 1) {
    sums = addProducts(keyRows, e.index(0), sums);
  } else {
    auto added = e.loop(e.index(0), e.index(chunks), e.index(1), sums,
                        [&](Value chunk, ValueRange args) {
                          Value first =
                              e.mul(chunk, e.index(shape.queryColumns));
                          e.barrier();
                          stageQueries(first);
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
              placeOf(score, share, shape.shares + 1));
      }
    };
    if ((static_cast<int64_t>(i) + 1) * shape.keysAtOnce() > shape.keys)
      e.ifThen(e.isLess(number, e.index(shape.keys)), leave);
    else
      leave();
  }
}

/// `sums` [rows][keys of the thread] with the products of the staged columns
/// added, which begin at `first`.
SmallVector<Value> FlashEmitter::addProducts(ArrayRef<CacheRow> keyRows,
                                             Value first, ValueRange sums) {
  // Columns of one step: a block's, or a few.
  int64_t step = cache.isQuantized() ? cache.blockSize() : shape.shares;
  if (!cache.isQuantized() && run.dim % (4 * step) == 0 &&
      shape.queryColumns % (4 * step) == 0)
    step *= 4;
  Value count = e.index(shape.queryColumns);
  if (run.dim % shape.queryColumns != 0)
    count =
        arith::MinUIOp::create(b, loc, count, e.sub(e.index(run.dim), first));
  auto products = e.loop(
      e.index(0), count, e.index(step), sums,
      [&](Value offset, ValueRange args) {
        SmallVector<Value> acc(args), scales;
        if (cache.isQuantized())
          for (const CacheRow &row : keyRows)
            scales.push_back(cache.loadScale(
                row, arith::DivUIOp::create(b, loc, e.add(first, offset),
                                            e.index(cache.blockSize()))));
        for (int64_t i = 0; i < step; i += shape.shares)
          addColumn(keyRows, scales, first,
                    e.add(e.add(offset, e.index(i)), share), acc);
        return acc;
      });
  return SmallVector<Value>(products.getResults());
}

/// The products of staged column `at`. Parts may not divide the columns:
/// past the last one there is nothing to add.
void FlashEmitter::addColumn(ArrayRef<CacheRow> keyRows, ArrayRef<Value> scales,
                             Value first, Value at,
                             MutableArrayRef<Value> acc) {
  Value inside, source = e.add(first, at);
  if (run.dim % shape.shares != 0) {
    inside = e.isLess(source, e.index(run.dim));
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
Value FlashEmitter::sees(Value row, Value key, Value number) {
  Value at = e.add(key, number);
  Value seen =
      window.isSeen(arith::IndexCastOp::create(b, loc, b.getI32Type(), at),
                    load(positions, row), [](Value scalar) { return scalar; });
  return arith::AndIOp::create(b, loc, seen, e.isLess(at, endKey));
}

/// Calls `body` for the rows and keys of this thread.
void FlashEmitter::forScores(
    function_ref<void(Value place, Value row, Value number)> body) {
  e.forThreads(e.index(shape.rows * shape.keys), [&](Value place) {
    body(place, arith::DivUIOp::create(b, loc, place, e.index(shape.keys)),
         arith::RemUIOp::create(b, loc, place, e.index(shape.keys)));
  });
}

void FlashEmitter::emitScores(Value key) {
  forScores([&](Value place, Value row, Value number) {
    Value sum;
    for (int64_t i = 0; i < shape.shares; ++i) {
      Value value =
          load(partials, placeOf(place, e.index(i), shape.shares + 1));
      sum = sum ? e.add(sum, value) : value;
    }
    if (std::optional<APFloat> cap = run.op.getSoftcap())
      sum = e.softcap(sum, cap->convertToDouble());
    store(e.select(sees(row, key, number), sum,
                   e.f32(AttentionRows::hiddenScore)),
          scores, place);
  });
}

void FlashEmitter::emitWeights(Value key) {
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

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// `sums` rescaled, with the weighted values of this thread's keys and
/// columns added.
SmallVector<Value> FlashEmitter::sumValues(Value key, ValueRange sums) {
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

void FlashEmitter::addValue(Value number, MutableArrayRef<Value> acc) {
  CacheRow row = cache.locate(valuesOfHead, e.add(firstPlace, number));
  SmallVector<Value> values;
  for (int64_t i = 0; i < shape.columnsOfThread; ++i) {
    Value at = columnOf(i);
    if (!coversColumns())
      at = arith::MinUIOp::create(b, loc, at, e.index(run.dim - 1));
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
void FlashEmitter::forColumns(
    int64_t r, const AttentionRows::Row &row,
    function_ref<void(int64_t number, Value at)> body) {
  Value writes = arith::AndIOp::create(
      b, loc, row.exists,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, group,
                            e.index(0)));
  for (int64_t i = 0; i < shape.columnsOfThread; ++i) {
    Value inside = writes, at = columnOf(i);
    if (!coversColumns())
      inside =
          arith::AndIOp::create(b, loc, inside, e.isLess(at, e.index(run.dim)));
    e.ifThen(inside, [&] { body(r * shape.columnsOfThread + i, at); });
  }
}

/// Stores the rows' results, of which `sums` are the sums of all keys.
void FlashEmitter::writeResult(ArrayRef<Value> sums) {
  const Value sinks = run.op.getSinks();
  if (sinks) // threads have left the last maxima
    e.barrier();
  for (int64_t r = 0; r < shape.rows; ++r) {
    AttentionRows::Row row = run.find(e.index(r));
    Value position =
        arith::IndexCastOp::create(b, loc, b.getIndexType(), positionOf[r]);
    Value isAny = window.seesAny(position, run.limit);
    Value total = sums[valueSums() + r];
    if (sinks)
      total = addSink(e, total, sinks, row.head, load(maxima, e.index(r)));
    Value inverse = e.select(
        isAny, arith::DivFOp::create(b, loc, e.f32(1.0), total), e.f32(0.0));
    forColumns(r, row, [&](int64_t number, Value at) {
      e.storeResult(e.mul(sums[number], inverse), {row.token, row.head, at});
    });
  }
}

/// Stores what the rows have of the part's keys.
void FlashEmitter::writePart(ArrayRef<Value> sums) {
  // Threads have left the last maxima.
  e.barrier();
  Value hasKeys = e.isLess(firstSeen, endKey), zero = e.index(0);
  for (int64_t r = 0; r < shape.rows; ++r) {
    AttentionRows::Row row = run.find(e.index(r));
    e.ifThen(row.exists, [&] {
      e.onFirstThread([&] {
        SmallVector<Value> place = {row.token, row.head, zero};
        Value maximum = e.select(hasKeys, load(maxima, e.index(r)),
                                 e.f32(AttentionRows::hiddenScore));
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
SmallVector<Value> FlashEmitter::addGroups(ArrayRef<Value> sums) {
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
