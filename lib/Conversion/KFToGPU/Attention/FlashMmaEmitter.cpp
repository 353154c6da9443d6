//===- FlashMmaEmitter.cpp - Attention on matrix units --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where there are many rows, see FlashMmaStaging.cpp. Where there are few:
//
// A warp has 16 rows of the units' tiles, and takes blocks of keys alone: no
// thread waits for another until the end, when warps that have divided the keys
// add up what they found. Keys and values go from memory to registers, 16 bytes
// of a row at a time, as the units want them; lane 4g + t has
//
// - of keys 8i + g, columns 32j + 8t + [0, 8), which make two of the units'
//   steps: the order of columns within 32 is another one, and queries have it
//   too;
// - of values 16i + 2t + {0, 1, 8, 9}, columns 8wh + wg + [0, w), of which two
//   rows make pairs: the order of columns in the sums is another one.
//
// Scores come out of the units as weights have to go into them.
//
// What is rounded to 16 bits would be too far off. Queries and weights are
// split into a rounded part and what that leaves, and both are multiplied: 22
// bits of them count with f16, 16 with bf16. Where a workgroup has 8 rows at
// most, the tile's other 8 are the second parts, and nothing is multiplied
// twice. Codes of q8_0 are exact in bf16; their scales are multiplied with
// scores and weights.
//
// Sums that are not finite may be so because of a key that a row does not see,
// or because of what splitting makes of infinities: such blocks of rows are
// computed again by FlashEmitter.
//
// Blocks of keys begin at multiples of their size, and go to warps by their
// number: what a row sums up, and in which order, depends on no other row,
// unless one of its block is computed again, and all of the block with it.
//
//===----------------------------------------------------------------------===//
#include "FlashMmaEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numbers>

using namespace mlir;
using namespace mlir::kf;

using Registers = SmallVector<Value>;

/// Elements of queries that a thread has on their way.
static constexpr int64_t queriesAtOnce = 4;

FlashMmaEmitter::FlashMmaEmitter(AttentionRows &rows)
    : run(rows), e(rows.e), b(rows.b), loc(rows.loc), warp(e), spare(rows),
      shape(*e.shape.flashMma),
      element(!shape.isQuantized ? rows.type.getType()
              : shape.isStaged   ? Type(b.getF16Type())
                                 : Type(b.getBF16Type())),
      rowsOfLane(shape.isPacked ? 1 : 2),
      elementBytes(shape.isQuantized ? 1 : 2) {}

void FlashMmaEmitter::emit() {
  allocate();
  run.forBlocks(shape.rows(), [&] { emitBlock(); });
}

//===----------------------------------------------------------------------===//
// Setup
//===----------------------------------------------------------------------===//

void FlashMmaEmitter::allocate() {
  const int64_t bytes = std::max(shape.bytes(), e.shape.flash->bytes());
  memory = e.workgroupBytes(bytes + (shape.isStaged ? shape.rangeBytes() : 0) +
                            shape.partBytes());
  partStart = bytes;
  flag = e.workgroupMemory(1, b.getI32Type());
  if (shape.isStaged)
    ranges = viewOf(b.getI32Type(), bytes, 2 * shape.rowWarps);
  int64_t spareBytes = 0;
  spare.allocate([&](int64_t count, Type type) {
    Value part = viewOf(type, spareBytes, count);
    spareBytes += 4 * count;
    return part;
  });
  e.useAllRegisters();
  cacheStart =
      warp.pointerTo(e.bufferOf(cast<BlockArgument>(run.op.getCache())));
  numberThread();
  if (shape.isStaged)
    prepareStages();
}

/// Sets what depends on e.thread alone.
void FlashMmaEmitter::numberThread() {
  Value lanes = e.index(FlashMmaShape::warp), four = e.index(4);
  lane = arith::RemUIOp::create(b, loc, e.thread, lanes);
  group = arith::DivUIOp::create(b, loc, lane, four);
  place = arith::RemUIOp::create(b, loc, lane, four);
  Value number = arith::DivUIOp::create(b, loc, e.thread, lanes);
  Value across = e.index(shape.rowWarps);
  rowWarp = arith::RemUIOp::create(b, loc, number, across);
  keyWarp = arith::DivUIOp::create(b, loc, number, across);
  int64_t warpBytes = shape.queryBytes() / shape.rowWarps;
  queryStart = warp.advance(
      warp.advance(warp.pointerTo(memory), shape.queryOffset()),
      e.add(e.mul(rowWarp, e.index(warpBytes)), e.mul(lane, e.index(16))));
}

/// Has what depends on the thread's number computed anew, where sums of wide
/// heads leave no registers in which it could wait.
void FlashMmaEmitter::forgetThread() {
  if (shape.isNarrow())
    return;
  e.thread = warp.sameNumber(e.thread);
  numberThread();
  spare.numberThread();
}

Value FlashMmaEmitter::viewOf(Type type, int64_t byte, int64_t count) {
  auto bytes = cast<MemRefType>(memory.getType());
  auto view = MemRefType::get({count}, type, MemRefLayoutAttrInterface(),
                              bytes.getMemorySpace());
  return memref::ViewOp::create(b, loc, view, memory, e.index(byte),
                                ValueRange());
}

Value FlashMmaEmitter::load(Value from, Value at) {
  return memref::LoadOp::create(b, loc, from, at);
}

void FlashMmaEmitter::store(Value value, Value to, Value at) {
  memref::StoreOp::create(b, loc, value, to, at);
}

Value FlashMmaEmitter::toIndex(Value value) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

Value FlashMmaEmitter::maximum(Value lhs, Value rhs) {
  return arith::MaximumFOp::create(b, loc, lhs, rhs);
}

//===----------------------------------------------------------------------===//
// A block of rows
//===----------------------------------------------------------------------===//

void FlashMmaEmitter::emitBlock() {
  const Value thread = e.thread;
  forgetThread();
  if (shape.isStaged && !shape.isNarrow())
    prepareCopies();
  // Whoever was at the block before this one has left the memory.
  e.barrier();
  e.onFirstThread([&] { store(e.word(0), flag, e.index(0)); });
  Sums sums;
  if (shape.isStaged) {
    findRange();
    Flight flight = beginCopies(firstKey, keysAt(firstKey), e.index(0));
    if (rounded) {
      readRounded();
      endCopies(flight);
    } else {
      stageQueries();
      endCopies(flight);
      e.barrier();
      keepQueries();
    }
    sums = shape.isForWarpgroups ? visitAhead() : visitStages();
  } else {
    stageQueries();
    e.barrier();
    findRange();
    keepQueries();
    sums = visitKeys();
  }
  forgetThread();
  if (shape.isDivided())
    combineWarps(sums);
  else
    writeRows(sums);
  if (shape.parts > 1)
    combineParts();
  computeAgain();
  e.thread = thread;
}

/// Of scores in units of log 2.
double FlashMmaEmitter::scoreScale() {
  return run.op.getScale().convertToDouble() * std::numbers::log2e;
}

/// Leaves the parts of queries where lanes read fragments of them: [warps of
/// rows][steps][terms][lanes][8]. Scores are in units of log 2.
void FlashMmaEmitter::stageQueries() {
  int64_t perFragment = FlashMmaShape::warp * 8;
  Value parts = viewOf(element, shape.queryOffset(), shape.queryBytes() / 2);
  if (shape.isStaged)
    return stageRounded(parts);
  run.forQueries(
      shape.rows(), e.index(0), 32 * shape.columnBlocks(), scoreScale(),
      [&](Value local, Value column, Value q) {
        Value high = arith::TruncFOp::create(b, loc, element, q);
        Value rounded = arith::ExtFOp::create(b, loc, b.getF32Type(), high);
        Value low = arith::TruncFOp::create(b, loc, element, e.sub(q, rounded));
        Value row = e.rem(local, shape.rowsOfWarp());
        Value at = e.div(local, shape.rowsOfWarp());
        Value step = e.add(e.mul(e.div(column, 32), e.index(2)),
                           e.div(e.rem(column, 8), 4));
        at = e.add(e.mul(at, e.index(shape.steps())), step);
        at = e.mul(at, e.index(shape.terms() * perFragment));
        Value owner = e.add(e.mul(e.rem(row, 8), e.index(4)),
                            e.div(e.rem(column, 32), 8));
        at = e.add(at, e.mul(owner, e.index(8)));
        at = e.add(at, e.mul(e.div(row, 8), e.index(2)));
        at = e.add(at, e.mul(e.div(e.rem(column, 4), 2), e.index(4)));
        at = e.add(at, e.rem(column, 2));
        store(high, parts, at);
        store(low, parts, e.add(at, e.index(shape.isPacked ? 2 : perFragment)));
      },
      queriesAtOnce);
}

/// The fragment of queries of step `step`, high parts or low ones.
Registers FlashMmaEmitter::queryFragment(int64_t step, int64_t term) {
  if (!queries.empty())
    return queries[step];
  // They are read for every block of keys.
  return readQueries(step, term, /*isVolatile=*/true);
}

Registers FlashMmaEmitter::readQueries(int64_t step, int64_t term,
                                       bool isVolatile) {
  int64_t number = step * shape.terms() + term;
  return warp.loadRegisters(
      warp.advance(queryStart, number * FlashMmaShape::warp * 16), 16,
      isVolatile);
}

/// Rows of the lane, and the keys that any of the warp's rows sees.
void FlashMmaEmitter::findRange() {
  Value nothing = e.word(-1), most = e.word(INT32_MAX);
  auto smaller = [&](Value lhs, Value rhs) -> Value {
    return arith::MinSIOp::create(b, loc, lhs, rhs);
  };
  auto larger = [&](Value lhs, Value rhs) -> Value {
    return arith::MaxSIOp::create(b, loc, lhs, rhs);
  };
  Value low = most, high = nothing;
  rowsHere.clear();
  positions.clear();
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    Value number = e.add(e.mul(rowWarp, e.index(shape.rowsOfWarp())),
                         e.add(group, e.index(8 * r)));
    rowsHere.push_back(run.find(number));
    Value position =
        e.select(rowsHere[r].exists, run.positionOf(rowsHere[r]), nothing);
    positions.push_back(position);
    Value isNone = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         position, e.word(0));
    low = smaller(low, e.select(isNone, most, position));
    high = larger(high, position);
  }
  low = warp.combineLanes(low, 2, 5, smaller);
  high = warp.combineLanes(high, 2, 5, larger);
  lowest = toIndex(low);
  highest = toIndex(high);
  Value first = lowest, last = highest;
  if (shape.isStaged) {
    // Of all warps, which visit the same blocks.
    e.ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                   e.index(0)),
             [&] {
               Value at = e.mul(rowWarp, e.index(2));
               store(low, ranges, at);
               store(high, ranges, e.add(at, e.index(1)));
             });
    e.barrier();
    for (int64_t w = 0; w < shape.rowWarps; ++w) {
      low = smaller(low, load(ranges, e.index(2 * w)));
      high = larger(high, load(ranges, e.index(2 * w + 1)));
    }
    first = toIndex(low);
    last = toIndex(high);
  }
  last = arith::MinSIOp::create(b, loc, last, e.sub(run.limit, e.index(1)));
  endKey = e.add(last, e.index(1));
  firstSeen = run.window.firstOf(first);
  if (run.partial || shape.parts > 1) {
    KeyRange all = {firstSeen, firstSeen, endKey};
    KeyRange part = run.partial ? keysOfPart(e, run.partial, all)
                                : keysOfPart(e, all, run.type.getPage(),
                                             shape.parts, e.part);
    firstSeen = part.firstSeen;
    endKey = part.endKey;
  }
  // The first block whose number is the warp's.
  first = e.div(firstSeen, shape.keys);
  Value own = e.rem(e.sub(e.add(keyWarp, e.index(shape.keyWarps)),
                          e.rem(first, shape.keyWarps)),
                    shape.keyWarps);
  firstKey = e.mul(e.add(first, own), e.index(shape.keys));
}

void FlashMmaEmitter::keepQueries() {
  queries.clear();
  if ((shape.isPacked || shape.isStaged) && shape.isNarrow())
    for (int64_t step = 0; step < shape.steps(); ++step)
      queries.push_back(readQueries(step, 0, /*isVolatile=*/false));
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

FlashMmaEmitter::Sums FlashMmaEmitter::sumsOf(ValueRange list) {
  auto take = [&](size_t count) {
    Registers some(list.take_front(count));
    list = list.drop_front(count);
    return some;
  };
  Sums sums;
  sums.maxima = take(rowsOfLane);
  sums.totals = take(rowsOfLane);
  sums.values = take(shape.headDim / 2);
  return sums;
}

/// Where keys begin in the page of `position`; where there is none, anywhere
/// in the cache.
Value FlashMmaEmitter::keysAt(Value position) {
  return run.keysAt(
      arith::MinUIOp::create(b, loc, position, e.sub(run.limit, e.index(1))));
}

FlashMmaEmitter::Sums FlashMmaEmitter::noSums() {
  Sums none;
  none.maxima.assign(rowsOfLane, e.f32(AttentionRows::lowestMaximum));
  none.totals.assign(rowsOfLane, e.f32(0.0));
  none.values.assign(shape.headDim / 2, e.f32(0.0));
  return none;
}

FlashMmaEmitter::Sums FlashMmaEmitter::visitKeys() {
  Registers initial = noSums().all();
  initial.push_back(keysAt(firstKey));
  Value step = e.index(shape.keys * shape.keyWarps);
  auto blocks =
      e.loop(firstKey, endKey, step, initial, [&](Value key, ValueRange args) {
        // Of the next block, while this one is computed.
        Value next = keysAt(e.add(key, step));
        Sums sums = sumsOf(args.drop_back());
        visitBlock(key, args.back(), sums);
        Registers results = sums.all();
        results.push_back(next);
        return results;
      });
  return sumsOf(ValueRange(blocks.getResults()).drop_back());
}

/// Sets isWhole for the block of keys from `key` on.
void FlashMmaEmitter::findWhole(Value key) {
  Value last = e.add(key, e.index(shape.keys - 1));
  isWhole =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, last, lowest);
  if (run.window.isBounded())
    isWhole = arith::AndIOp::create(
        b, loc, isWhole,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, key,
                              run.window.firstOf(highest)));
}

void FlashMmaEmitter::visitBlock(Value key, Value keys, Sums &sums) {
  Value inPage = e.rem(key, run.type.getPage());
  findWhole(key);
  Value values = run.valuesAt(keys);
  Value valueRow = e.add(inPage, e.mul(place, e.index(2)));
  Value valueStart =
      pointerTo(values, valueRow, e.mul(group, e.index(shape.valueColumns())));
  // Few keys: values are on their way while scores are computed.
  SmallVector<Registers> early;
  if (shape.keys == 16 && shape.isNarrow())
    for (int64_t h = 0; h < valuesOfRow(); ++h)
      early.push_back(loadValues(valueStart, 0, h));

  Registers keyScales, valueScales;
  if (shape.isQuantized) {
    keyScales = loadScales(keys, valueRow);
    valueScales = loadScales(values, valueRow);
  }
  Value keyStart =
      pointerTo(keys, e.add(inPage, group), e.mul(place, e.index(8)));
  Registers scores = multiplyKeys(keyStart, keyScales);
  hide(scores, key);
  Registers weights = weigh(scores, sums);
  for (int64_t i = 0; i < shape.keys; i += 16) {
    auto rowsAt = [&](int64_t h) {
      return early.empty() ? loadValues(valueStart, i, h) : early[h];
    };
    ArrayRef<Value> scales = valueScales;
    if (shape.isQuantized)
      scales =
          scales.slice(i / 4 * shape.columnBlocks(), 4 * shape.columnBlocks());
    addValues(rowsAt, scales,
              ArrayRef(weights).slice(i / 4 * rowsOfLane, 4 * rowsOfLane),
              e.add(key, e.index(i)), sums);
  }
}

/// Column `column` of row `row` of a page's keys or values, which begin at
/// `start`.
Value FlashMmaEmitter::pointerTo(Value start, Value row, Value column) {
  Value at = e.add(e.add(start, e.mul(row, e.index(shape.headDim))), column);
  return warp.advance(cacheStart, e.mul(at, e.index(elementBytes)));
}

/// Scores of the lane: [blocks of 8 keys][rowsOfLane][2 keys].
Registers FlashMmaEmitter::multiplyKeys(Value start, ArrayRef<Value> scales) {
  int64_t blocks = shape.keys / 8;
  Value zero = e.f32(0.0);
  SmallVector<Registers> sums(blocks, Registers(4, zero));
  Registers scores(blocks * rowsOfLane * 2, zero);
  for (int64_t j = 0; j < shape.columnBlocks(); ++j) {
    SmallVector<Registers> q;
    for (int64_t part = 0; part < 2 * shape.terms(); ++part)
      q.push_back(
          queryFragment(2 * j + part / shape.terms(), part % shape.terms()));
    for (int64_t i = 0; i < blocks; ++i) {
      Registers k = loadKeys(start, i, j);
      if (shape.isQuantized)
        sums[i].assign(4, zero);
      for (int64_t part = 0; part < 2 * shape.terms(); ++part) {
        int64_t half = part / shape.terms();
        sums[i] = warp.multiplyAdd(element, q[part],
                                   ArrayRef(k).slice(2 * half, 2), sums[i]);
      }
      if (!shape.isQuantized)
        continue;
      for (int64_t r = 0; r < rowsOfLane; ++r)
        for (int64_t n = 0; n < 2; ++n) {
          Value &score = scores[(i * rowsOfLane + r) * 2 + n];
          score = math::FmaOp::create(
              b, loc, ofRow(sums[i], r, n),
              scales[(2 * i + n) * shape.columnBlocks() + j], score);
        }
    }
  }
  if (!shape.isQuantized)
    for (int64_t i = 0; i < blocks; ++i)
      for (int64_t r = 0; r < rowsOfLane; ++r)
        for (int64_t n = 0; n < 2; ++n)
          scores[(i * rowsOfLane + r) * 2 + n] = ofRow(sums[i], r, n);
  return scores;
}

/// What four sums of the units say of row `r` of the lane: column `n` of two.
Value FlashMmaEmitter::ofRow(ArrayRef<Value> sums, int64_t r, int64_t n) {
  return shape.isPacked ? e.add(sums[n], sums[2 + n]) : sums[2 * r + n];
}

/// Columns 32j + 8t + [0, 8) of the lane's key of block `i`, as the units
/// take them in two steps.
Registers FlashMmaEmitter::loadKeys(Value start, int64_t i, int64_t j) {
  int64_t bytes = 8 * elementBytes;
  Value at =
      warp.advance(start, (8 * i * shape.headDim + 32 * j) * elementBytes);
  Value inside;
  if (int64_t rest = shape.headDim - 32 * j; rest < 32) {
    // Where there are none, something of the page is read, and dropped: 8t
    // columns before, or, in rows of fewer, those behind, which values follow.
    inside = e.isLess(e.mul(place, e.index(8)), e.index(rest));
    at = LLVM::SelectOp::create(
        b, loc, inside, at,
        warp.advance(start, 8 * i * shape.headDim * elementBytes));
  }
  Registers words = warp.loadRegisters(at, bytes);
  if (inside)
    for (Value &word : words)
      word = e.select(inside, word, e.word(0));
  if (!shape.isQuantized)
    return words;
  Registers pairs;
  for (Value word : words) {
    Value codes = withoutSign(word);
    for (int64_t byte : {0, 2})
      pairs.push_back(packCodes(codes, byte, codes, byte + 1));
  }
  return pairs;
}

/// Scores of keys that rows do not see become hiddenScore.
void FlashMmaEmitter::hide(Registers &scores, Value key) {
  scores = unlessWhole(scores, [&] {
    Registers seen;
    Value first = arith::IndexCastOp::create(
        b, loc, b.getI32Type(), e.add(key, e.mul(place, e.index(2))));
    for (auto [number, score] : llvm::enumerate(scores)) {
      int64_t r = number / 2 % rowsOfLane;
      int64_t offset = static_cast<int64_t>(number) / 2 / rowsOfLane * 8 +
                       static_cast<int64_t>(number) % 2;
      Value at = arith::AddIOp::create(b, loc, first, e.word(offset));
      Value sees = run.window.isSeen(at, positions[r],
                                     [](Value scalar) { return scalar; });
      seen.push_back(e.select(sees, score, e.f32(AttentionRows::hiddenScore)));
    }
    return seen;
  });
}

/// `values`, or, where a row may not see all keys of the block, what `body`
/// makes of them.
Registers FlashMmaEmitter::unlessWhole(ArrayRef<Value> values,
                                       function_ref<Registers()> body) {
  auto branch = scf::IfOp::create(
      b, loc, isWhole,
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, values); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, body()); });
  return Registers(branch.getResults());
}

/// Weights of the scores, with sums rescaled for their new maxima.
Registers FlashMmaEmitter::weigh(ArrayRef<Value> scores, Sums &sums) {
  Registers factors, weights = weigh(scores, sums, factors);
  rescale(sums, factors);
  return weights;
}

/// Multiplies sums of values by the factors of their rows.
void FlashMmaEmitter::rescale(Sums &sums, ArrayRef<Value> factors) {
  for (auto [number, value] : llvm::enumerate(sums.values))
    value = e.mul(value, factors[shape.isPacked ? 0 : number / 2 % 2]);
}

/// The same but for sums of values, which `factors` are for.
Registers FlashMmaEmitter::weigh(ArrayRef<Value> scores, Sums &sums,
                                 Registers &factors) {
  Registers weights(scores);
  Value scale = e.f32(stagedScale());
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    Value largest;
    forScoresOf(r, [&](int64_t number) {
      Value score = scores[number];
      largest = largest ? maximum(largest, score) : score;
    });
    // Four lanes share a row.
    largest = warp.combineLanes(
        largest, 0, 2, [&](Value x, Value y) { return maximum(x, y); });
    if (shape.isStaged)
      largest = e.mul(largest, scale);
    largest = maximum(sums.maxima[r], largest);
    Value lowered;
    if (shape.isStaged)
      lowered = arith::NegFOp::create(b, loc, largest);
    factors.push_back(warp.exp2(e.sub(sums.maxima[r], largest)));
    sums.maxima[r] = largest;
    Value total = e.mul(sums.totals[r], factors[r]);
    forScoresOf(r, [&](int64_t number) {
      weights[number] =
          warp.exp2(shape.isStaged ? math::FmaOp::create(b, loc, scores[number],
                                                         scale, lowered)
                                   : e.sub(scores[number], largest));
      total = e.add(total, weights[number]);
    });
    sums.totals[r] = total;
  }
  return weights;
}

void FlashMmaEmitter::forScoresOf(int64_t r, function_ref<void(int64_t)> body) {
  for (int64_t i = 0; i < shape.keys / 8; ++i)
    for (int64_t n = 0; n < 2; ++n)
      body((i * rowsOfLane + r) * 2 + n);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// What the lane reads at number `h` of its rows of 16 values, from number
/// `first` of the block on: [4 rows][valueRegisters].
Registers FlashMmaEmitter::loadValues(Value start, int64_t first, int64_t h) {
  Registers rows;
  for (int64_t offset : {0, 1, 8, 9})
    llvm::append_range(
        rows, warp.loadRegisters(
                  warp.advance(start, ((first + offset) * shape.headDim +
                                       h * 8 * shape.valueColumns()) *
                                          elementBytes),
                  valueBytes()));
  return rows;
}

/// Adds weighted values of 16 keys from `key` on, of which `rowsAt` gives
/// what loadValues() does. `weights`: [2 blocks of 8 keys][rowsOfLane][2];
/// `scales`: [4 rows][columnBlocks].
void FlashMmaEmitter::addValues(function_ref<Registers(int64_t h)> rowsAt,
                                ArrayRef<Value> scales, ArrayRef<Value> weights,
                                Value key, Sums &sums) {
  Registers visible(scales);
  SmallVector<Registers> fragments;
  if (shape.isQuantized)
    visible = dropUnseen(scales, key);
  else
    fragments = splitWeights(weights);
  int64_t columns = shape.valueColumns();
  for (int64_t h = 0; h < valuesOfRow(); ++h) {
    Registers rows = dropUnseen(rowsAt(h), key);
    if (shape.isQuantized) { // a block of 32 columns
      Registers scaled;
      for (auto [number, weight] : llvm::enumerate(weights)) {
        size_t row = number / (2 * rowsOfLane) * 2 + number % 2;
        scaled.push_back(
            e.mul(weight, visible[row * shape.columnBlocks() + h]));
      }
      fragments = splitWeights(scaled);
    }
    for (int64_t j = 0; j < columns; ++j) {
      Registers v = {pairOf(rows, j, 0), pairOf(rows, j, 2)};
      int64_t first = 4 * (h * columns + j);
      Registers acc(ArrayRef(sums.values).slice(first, 4));
      for (const Registers &fragment : fragments)
        acc = warp.multiplyAdd(element, fragment, v, acc);
      std::copy(acc.begin(), acc.end(), sums.values.begin() + first);
    }
  }
}

/// Zeros in place of what belongs to keys that no row of the warp sees:
/// `parts` has as many entries for each of the lane's four rows of the 16
/// from `key` on.
Registers FlashMmaEmitter::dropUnseen(ArrayRef<Value> parts, Value key) {
  return unlessWhole(parts, [&] {
    Registers seen;
    int64_t each = parts.size() / 4;
    for (int64_t row = 0; row < 4; ++row) {
      int64_t offset = row / 2 * 8 + row % 2;
      Value at = e.add(e.add(key, e.mul(place, e.index(2))), e.index(offset));
      Value isSeen = arith::AndIOp::create(
          b, loc, e.isLess(at, endKey),
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, at,
                                firstSeen));
      for (Value part : parts.slice(row * each, each)) {
        Value zero =
            arith::ConstantOp::create(b, loc, b.getZeroAttr(part.getType()));
        seen.push_back(e.select(isSeen, part, zero));
      }
    }
    return seen;
  });
}

/// Fragments of weights, [2 blocks of 8 keys][rowsOfLane][2], whose products
/// are added up.
SmallVector<Registers> FlashMmaEmitter::splitWeights(ArrayRef<Value> weights) {
  SmallVector<Registers> fragments(shape.terms());
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t r = 0; r < rowsOfLane; ++r) {
      int64_t first = (i * rowsOfLane + r) * 2;
      auto [high, low] =
          warp.split(element, weights[first], weights[first + 1]);
      fragments.front().push_back(high);
      fragments.back().push_back(low);
    }
  return fragments;
}

/// Column `j` of what loadValues() gave of rows `row` and row + 1.
Value FlashMmaEmitter::pairOf(ArrayRef<Value> rows, int64_t j, int64_t row) {
  auto word = [&](int64_t number, int64_t at) {
    return rows[number * valueRegisters() + at];
  };
  if (shape.isQuantized)
    return packCodes(withoutSign(word(row, 0)), j,
                     withoutSign(word(row + 1, 0)), j);
  constexpr int64_t lowHalves = 0x5410, highHalves = 0x7632;
  return warp.selectBytes(word(row, j / 2), word(row + 1, j / 2),
                          j % 2 == 0 ? lowHalves : highHalves);
}

//===----------------------------------------------------------------------===//
// Blocks of the cache
//===----------------------------------------------------------------------===//

/// Four codes, each plus 128.
Value FlashMmaEmitter::withoutSign(Value codes) {
  return arith::XOrIOp::create(b, loc, codes, e.word(int32_t(0x80808080)));
}

/// Two codes as bf16, which are exact: bytes of what withoutSign() gave.
Value FlashMmaEmitter::packCodes(Value first, int64_t firstByte, Value second,
                                 int64_t secondByte) {
  auto number = [&](Value codes, int64_t byte) -> Value {
    // 2^23 + code + 128.
    Value bits = warp.selectBytes(codes, e.word(0x4b000000), 0x7440 | byte);
    Value sum = arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
    return arith::BitcastOp::create(b, loc, b.getI32Type(),
                                    e.sub(sum, e.f32(0x1p23 + 128)));
  };
  return warp.selectBytes(number(first, firstByte), number(second, secondByte),
                          0x7632);
}

/// Scales of rows `first` + 8i + {0, 1} of a head of a page that begins at
/// `head`: [blocks of 8 rows][2][columnBlocks], f32.
Registers FlashMmaEmitter::loadScales(Value head, Value first) {
  int64_t bytes = 2 * shape.columnBlocks(), width = 1;
  while (width < 16 && bytes % (2 * width) == 0)
    width *= 2;
  Value start = warp.advance(cacheStart, e.add(run.cache.scalesOf(head),
                                               e.mul(first, e.index(bytes))));
  Registers scales;
  for (int64_t i = 0; i < shape.keys; i += 8)
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t at = 0; at < bytes; at += width)
        for (Value word : warp.loadRegisters(
                 warp.advance(start, (i + n) * bytes + at), width)) {
          auto [low, high] = warp.unpack(b.getF16Type(), word);
          scales.push_back(low);
          if (width > 2)
            scales.push_back(high);
        }
  return scales;
}

void mlir::kf::emitFlashMma(AttentionRows &rows) {
  FlashMmaEmitter(rows).emit();
}
