//===- FlashMmaStaging.cpp - Attention through workgroup memory -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of many rows, where matrix units are what takes the time: each product is one
// product, of queries and weights rounded to the type of keys and values, and
// all warps read the same copy of these. While one block of keys is multiplied,
// the next one is on its way to the other stage: 16 bytes at a time without
// registers, or codes through registers, which become f16 there.
//
//===----------------------------------------------------------------------===//

#include "FlashMmaEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::kf;

using Registers = SmallVector<Value>;

/// Elements of queries that a thread has on their way; angles take registers.
static constexpr int64_t queriesAtOnce = 16, turnedAtOnce = 2;
/// Codes that a thread takes at once, and columns of a scale.
static constexpr int64_t codesAtOnce = 16, codesOfScale = 32;

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// Scores are multiplied by this: a scale in the queries would be rounded.
double FlashMmaEmitter::stagedScale() {
  double scale = std::abs(scoreScale());
  return scale > 0 ? scale : 1.0;
}

/// Leaves queries where lanes read fragments: [warps][steps][lanes][8]. They
/// have the sign of the scale.
void FlashMmaEmitter::stageRounded(Value parts) {
  double scale = scoreScale();
  run.forQueries(
      shape.rows(), e.index(0), 16 * shape.steps(),
      scale == 0 ? 0.0 : scale / std::abs(scale),
      [&](Value local, Value column, Value q) {
        Value row = e.rem(local, 16);
        Value at = e.add(e.mul(e.div(local, 16), e.index(shape.steps())),
                         e.div(column, 16));
        at = e.add(e.mul(at, e.index(8)), e.rem(row, 8));
        at = e.add(e.mul(at, e.index(4)), e.div(e.rem(column, 8), 2));
        at = e.add(e.mul(at, e.index(2)), e.div(e.rem(column, 16), 8));
        at = e.add(e.mul(at, e.index(2)), e.div(row, 8));
        at = e.add(e.mul(at, e.index(2)), e.rem(column, 2));
        store(arith::TruncFOp::create(b, loc, element, q), parts, at);
      },
      e.find<RopeOp>() ? turnedAtOnce : queriesAtOnce);
}

/// Fragments of queries that memory has in the units' type, and with the sign
/// of the scale.
void FlashMmaEmitter::readRounded() {
  SmallVector<Value> starts;
  for (const Row &row : rowsHere)
    starts.push_back(warp.advance(rounded->rowPointer({row.token, row.head}),
                                  e.mul(place, e.index(4))));
  queries.clear();
  for (int64_t step = 0; step < shape.steps(); ++step) {
    Registers &fragment = queries.emplace_back();
    for (int64_t half = 0; half < 2; ++half)
      for (Value start : starts)
        llvm::append_range(
            fragment,
            warp.loadRegisters(
                warp.advance(start, (2 * step + half) * shape.chunkBytes), 4));
  }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void FlashMmaEmitter::prepareStages() {
  stages = warp.pointerTo(memory);
  if (shape.isForWarpgroups)
    stages = warp.align(stages, shape.warpgroupAlignment);
  prepareCopies();
  if (!shape.isNarrow() || shape.headDim % 16 != 0 || scoreScale() <= 0)
    return;
  MmaOperand operand(e, run.op.getQ(), element);
  if (operand.isInPlace())
    rounded.emplace(std::move(operand));
}

/// Where chunk `chunk` of row `row` goes, from the beginning of a stage's keys
/// or values on.
Value FlashMmaEmitter::placeOf(Value row, Value chunk) {
  if (!shape.isForWarpgroups)
    return e.add(e.mul(row, e.index(shape.rowBytes())),
                 e.mul(chunk, e.index(shape.chunkBytes)));
  Value panel = e.div(chunk, shape.chunksOfPanel);
  Value inPanel =
      arith::XOrIOp::create(b, loc, e.rem(chunk, shape.chunksOfPanel),
                            e.rem(row, shape.chunksOfPanel));
  return e.add(e.add(e.mul(panel, e.index(shape.panelBytes())),
                     e.mul(row, e.index(shape.panelRowBytes))),
               e.mul(inPanel, e.index(shape.chunkBytes)));
}

void FlashMmaEmitter::prepareCopies() {
  const int64_t perRow =
      shape.isQuantized ? shape.headDim / codesAtOnce : shape.chunksOfRow();
  const int64_t bytes = shape.chunkBytes;
  const int64_t all = shape.keys * perRow, threads = e.shape.threadCount;
  copies.clear();
  for (int64_t begin = 0; begin < all; begin += threads) {
    Value number = e.add(e.thread, e.index(begin));
    Copy copy;
    if (begin + threads > all) {
      copy.exists = e.isLess(number, e.index(all));
      number = e.select(copy.exists, number, e.index(0));
    }
    copy.row = e.div(number, perRow);
    copy.column = e.rem(number, perRow);
    if (perRow * shape.chunkColumns > shape.headDim && !shape.isQuantized)
      copy.isColumn =
          e.isLess(copy.column, e.index(shape.headDim / shape.chunkColumns));
    copy.from = e.add(e.mul(copy.row, e.index(shape.headDim * elementBytes)),
                      e.mul(copy.column, e.index(bytes)));
    if (shape.isQuantized) {
      Value chunk = e.mul(copy.column, e.index(2));
      copy.to = placeOf(copy.row, chunk);
      copy.toSecond = placeOf(copy.row, e.add(chunk, e.index(1)));
    } else {
      copy.to = placeOf(copy.row, copy.column);
    }
    copies.push_back(copy);
  }
  // Lanes 8i to 8i + 7 point to the rows of tile i: of keys, 16 of them in two
  // halves of a step; of values, 16 of them in 16 columns.
  auto lineOf = [&](int64_t rows, int64_t column) {
    Value row =
        e.add(e.rem(lane, 8), e.mul(e.rem(e.div(lane, rows), 2), e.index(8)));
    return e.add(e.mul(row, e.index(shape.rowBytes())),
                 e.mul(e.rem(e.div(lane, column), 2), e.index(bytes)));
  };
  keyLines = lineOf(16, 8);
  valueLines = e.add(lineOf(8, 16), e.index(shape.valuesOffset()));
}

/// Starts to copy the block of keys from `key` on, in the page whose keys begin
/// at `keys`, to the stage at `stage`. Keys that no row sees are zeros.
FlashMmaEmitter::Flight FlashMmaEmitter::beginCopies(Value key, Value keys,
                                                     Value stage) {
  Flight flight;
  for (bool isValue : {false, true})
    beginCopies(flight, isValue, key, keys, stage);
  endGroup();
  return flight;
}

/// Ends the group of what beginCopies() began.
void FlashMmaEmitter::endGroup() {
  if (!shape.isQuantized)
    warp.commitCopies();
}

/// The same of the block's keys or values alone; endGroup() has to follow.
void FlashMmaEmitter::beginCopies(Flight &flight, bool isValue, Value key,
                                  Value keys, Value stage) {
  Value inPage = e.rem(key, run.type.getPage());
  Value offset = e.mul(inPage, e.index(shape.headDim));
  Value head = isValue ? run.valuesAt(keys) : keys;
  Value from = warp.advance(cacheStart,
                            e.mul(e.add(head, offset), e.index(elementBytes)));
  Value scales;
  const int64_t scaleBytes = CacheBuffer::scaleBytes;
  const int64_t scalesOfRow = shape.headDim / codesOfScale;
  if (shape.isQuantized)
    scales = warp.advance(
        cacheStart, e.add(run.cache.scalesOf(head),
                          e.mul(inPage, e.index(scalesOfRow * scaleBytes))));
  if (isValue)
    stage = e.add(stage, e.index(shape.valuesOffset()));
  flight.stages.push_back(stage);
  Value to = warp.advance(stages, stage);
  for (const Copy &copy : copies) {
    Value at = e.add(key, copy.row), isSeen = e.isLess(at, endKey);
    if (run.window.isBounded())
      isSeen = arith::AndIOp::create(
          b, loc, isSeen,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, at,
                                firstSeen));
    if (copy.isColumn)
      isSeen = arith::AndIOp::create(b, loc, isSeen, copy.isColumn);
    Value start = warp.advance(from, copy.from);
    if (shape.isQuantized) {
      llvm::append_range(flight.words, warp.loadRegisters(start, 16));
      Value number = e.add(e.mul(copy.row, e.index(scalesOfRow)),
                           e.div(copy.column, codesOfScale / codesAtOnce));
      Value scale = warp.loadRegisters(
          warp.advance(scales, e.mul(number, e.index(scaleBytes))),
          scaleBytes)[0];
      flight.scales.push_back(e.select(isSeen, scale, e.word(0)));
      continue;
    }
    auto body = [&] {
      Value bytes = e.select(isSeen, e.word(shape.chunkBytes), e.word(0));
      warp.copyAsync(warp.advance(to, copy.to), start, bytes);
    };
    if (copy.exists)
      e.ifThen(copy.exists, body);
    else
      body();
  }
}

/// Leaves what beginCopies() began in its stage; other threads see it behind a
/// barrier.
void FlashMmaEmitter::endCopies(const Flight &flight) {
  if (!shape.isQuantized)
    warp.waitForCopies(0);
  ArrayRef<Value> words(flight.words);
  for (auto [number, scale] : llvm::enumerate(flight.scales)) {
    const Copy &copy = copies[number % copies.size()];
    Value start = warp.advance(stages, flight.stages[number / copies.size()]);
    ArrayRef<Value> codes = words.slice(4 * number, 4);
    auto body = [&, &scale = scale] {
      storeCodes(codes, scale, warp.advance(start, copy.to),
                 warp.advance(start, copy.toSecond));
    };
    if (copy.exists)
      e.ifThen(copy.exists, body);
    else
      body();
  }
  if (shape.isForWarpgroups)
    warp.fenceShared();
}

/// Stores 16 codes, times their scale, as f16, 8 of them to each place.
void FlashMmaEmitter::storeCodes(ArrayRef<Value> codes, Value scale, Value to,
                                 Value toSecond) {
  auto pair = VectorType::get({2}, b.getF16Type());
  auto asPair = [&](Value word) {
    return LLVM::BitcastOp::create(b, loc, pair, word);
  };
  Value factor = asPair(warp.selectBytes(scale, scale, 0x1010));
  // 1024 + code + 128.
  Value exponents = e.word(0x64646464);
  Value bias = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(pair, b.getF16FloatAttr(1152)));
  Registers halves;
  for (Value word : codes) {
    Value unsignedCodes = withoutSign(word);
    for (int64_t bytes : {0x4140, 0x4342}) {
      Value shifted = asPair(warp.selectBytes(unsignedCodes, exponents, bytes));
      Value code = arith::SubFOp::create(b, loc, shifted, bias);
      Value number = arith::MulFOp::create(b, loc, code, factor);
      halves.push_back(LLVM::BitcastOp::create(b, loc, b.getI32Type(), number));
    }
  }
  warp.storeRegisters(ArrayRef(halves).take_front(4), to);
  warp.storeRegisters(ArrayRef(halves).drop_front(4), toSecond);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

FlashMmaEmitter::Sums FlashMmaEmitter::visitStages() {
  Value step = e.index(shape.keys);
  Registers initial = noSums().all();
  initial.push_back(keysAt(e.add(firstKey, step)));
  initial.push_back(e.index(0));
  auto blocks =
      e.loop(firstKey, endKey, step, initial, [&](Value key, ValueRange args) {
        Value stage = args.back(), keys = args.drop_back().back();
        Sums sums = sumsOf(args.drop_back(2));
        // The stage is complete, and the other one is not read any more.
        e.barrier();
        Value next = e.add(key, step);
        Value other = e.sub(e.index(shape.stageBytes()), stage);
        Value keysAfter = keysAt(e.add(next, step));
        Flight flight = beginCopies(next, keys, other);
        findWhole(key);
        Registers scores = multiplyStage(stage);
        hide(scores, key);
        addStage(stage, weigh(scores, sums), sums);
        endCopies(flight);
        Registers results = sums.all();
        results.push_back(keysAfter);
        results.push_back(other);
        return results;
      });
  return sumsOf(ValueRange(blocks.getResults()).drop_back(2));
}

/// Scores of the lane: [blocks of 8 keys][2 rows][2 keys].
Registers FlashMmaEmitter::multiplyStage(Value stage) {
  Value start = warp.advance(stages, e.add(stage, keyLines));
  Registers scores(shape.keys / 2, e.f32(0.0));
  for (int64_t step = 0; step < shape.steps(); ++step) {
    Registers q = queryFragment(step, 0);
    for (int64_t i = 0; i < shape.keys / 16; ++i) {
      Registers k = warp.loadMatrices(
          warp.advance(start,
                       16 * i * shape.rowBytes() + 2 * step * shape.chunkBytes),
          4);
      for (int64_t half = 0; half < 2; ++half) {
        MutableArrayRef<Value> sums =
            MutableArrayRef(scores).slice(4 * (2 * i + half), 4);
        llvm::copy(
            warp.multiplyAdd(element, q, ArrayRef(k).slice(2 * half, 2), sums),
            sums.begin());
      }
    }
  }
  return scores;
}

/// Adds the stage's values times weights of its keys.
void FlashMmaEmitter::addStage(Value stage, ArrayRef<Value> weights,
                               Sums &sums) {
  Value start = warp.advance(stages, e.add(stage, valueLines));
  const int64_t tiles = shape.headDim / 8;
  Registers packed = packWeights(weights);
  for (int64_t i = 0; i < shape.keys / 16; ++i) {
    ArrayRef<Value> fragment = ArrayRef(packed).slice(4 * i, 4);
    for (int64_t tile = 0; tile < tiles; tile += 2) {
      const int64_t count = std::min<int64_t>(tiles - tile, 2);
      Registers v =
          warp.loadMatrices(warp.advance(start, 16 * i * shape.rowBytes() +
                                                    tile * shape.chunkBytes),
                            2 * count, /*isTransposed=*/true);
      for (int64_t half = 0; half < count; ++half) {
        MutableArrayRef<Value> acc =
            MutableArrayRef(sums.values).slice(4 * (tile + half), 4);
        llvm::copy(warp.multiplyAdd(element, fragment,
                                    ArrayRef(v).slice(2 * half, 2), acc),
                   acc.begin());
      }
    }
  }
}

/// Fragments of weights, four registers for 16 keys.
Registers FlashMmaEmitter::packWeights(ArrayRef<Value> weights) {
  Registers packed;
  for (size_t i = 0; i < weights.size(); i += 2)
    packed.push_back(warp.pack(element, weights[i], weights[i + 1]));
  return packed;
}
