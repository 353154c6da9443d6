//===- StreamRows.cpp - Rows of x that are split for matrix units ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How #kf.stream brings rows of x to workgroup memory: as two numbers of 16
// bits each or a rounded one, or as they are for a weight of f32, in the order
// in which lanes multiply them, with sums of squares where a norm scales the
// rows, and sums of x where the weight's blocks want some.
//
//===----------------------------------------------------------------------===//

#include "StreamMatmulEmitter.h"

#include "../../Common/RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

/// Splits a chunk's columns of all rows into one or two terms, in the order of
/// the right operand: [pairs of tiles][terms][rows][4] vectors, of which each
/// has words of columns 2 t, 2 t + 8, 2 t + 16 and 2 t + 24. For a weight of
/// f32, terms are the halves of 32 columns, and have columns t, t + 4, t + 8
/// and t + 12.
void StreamMatmulEmitter::stageX(Value round, Value slice) {
  // Loads of some vectors are under way at a time.
  const int64_t runs = stream.chunkColumns() / perRun;
  const int64_t threads = stream.threads(), lanes = StreamShape::lanes;
  const int64_t most =
      std::clamp<int64_t>(stream.rows * runs / threads, 1, norm ? 2 : 4);
  Value count = e.scaled(rows, runs);
  // Lanes of a warp go together.
  if (runs % lanes != 0)
    count = e.scaled(e.ceilDiv(count, lanes), lanes);
  e.loop(e.thread, count, e.index(most * threads), {},
         [&](Value first, ValueRange) -> SmallVector<Value> {
           SmallVector<XRun> all;
           for (int64_t i = 0; i < most; ++i) {
             Value number = e.add(first, e.index(i * threads));
             if (i > 0) // else once more what is there
               number = e.select(e.isLess(number, count), number, first);
             all.push_back(loadRun(number, runs, round, slice));
           }
           for (XRun &run : all)
             storeRun(run);
           return {};
         });
}

StreamMatmulEmitter::XRun StreamMatmulEmitter::loadRun(Value number,
                                                       int64_t runs,
                                                       Value round,
                                                       Value slice) {
  XRun run;
  run.row = e.div(number, runs);
  if (runs % StreamShape::lanes != 0)
    run.row =
        e.select(e.isLess(run.row, rows), run.row, e.sub(rows, e.index(1)));
  Value inRow = e.rem(number, runs);
  run.pair = e.div(inRow, 4);
  run.inPair = e.rem(inRow, 4);
  if (blockTiles) {
    Value group = e.rem(run.pair, 2 * StreamBlocks::pairsApart);
    run.half = e.rem(group, 2);
    run.pair = e.add(e.sub(run.pair, group), e.div(group, 2));
  }
  // Where the pair is in K.
  Value inChunk = e.scaled(run.pair, StreamShape::pairColumns);
  Value column = e.add(e.scaled(slice, stream.chunkColumns()), inChunk);
  if (stream.rounds() > 1) {
    Value step = e.add(e.scaled(slice, stream.chunkSteps),
                       e.div(inChunk, stream.roundColumns()));
    Value ofShare = e.add(e.scaled(round, stream.roundColumns()),
                          e.rem(inChunk, stream.roundColumns()));
    column =
        e.add(e.scaled(step, stream.shares() * stream.stepColumns()), ofShare);
  }
  run.line = e.div(column, stream.lineColumns());
  column = e.add(column, e.scaled(run.inPair, isSingle()   ? 1
                                              : blockTiles ? 2
                                                           : 4));
  if (blockTiles)
    column = e.add(column, e.scaled(run.half, StreamShape::pairColumns / 2));
  run.squares = e.f32(0.0);
  Value scale = isScaled ? range->scaleOf(run.row) : Value();
  for (int64_t i = 0; i < perRun; ++i)
    run.values.push_back(loadColumn(
        run.row, e.add(column, e.index(columnInPair(i))), scale, run.squares));
  return run;
}

/// The column of value number `number` of a run, from its first one on.
int64_t StreamMatmulEmitter::columnInPair(int64_t number) const {
  if (isSingle())
    return 4 * number;
  if (blockTiles)
    return StreamBlocks::pairsApart * StreamShape::pairColumns * (number / 4) +
           8 * (number % 4 / 2) + number % 2;
  return 16 * (number / 4) + number % 4;
}

/// Column `k` of a row of x, 0 past the end; without its norm's scale, and
/// `squares` grows by its square before the norm's weight. `scale` is that of
/// the row's range, or null.
Value StreamMatmulEmitter::loadColumn(Value row, Value k, Value scale,
                                      Value &squaresOfRun) {
  Value isInside;
  if (stream.paddedColumns() != extent) {
    isInside = e.isLess(k, e.index(extent));
    k = e.select(isInside, k, e.index(0));
  }
  Value value = norm ? e.load(norm.getX(), {row, k}, 0) : loadX(row, k);
  if (scale)
    value = e.mul(value, scale);
  if (isInside)
    value = e.select(isInside, value, e.f32(0.0));
  if (!norm)
    return value;
  squaresOfRun = e.add(squaresOfRun, e.mul(value, value));
  Value weight = normWeight(e, norm, k, 0);
  Value product = e.mul(value, weight);
  return isInside ? e.select(isInside, product, e.f32(0.0)) : product;
}

void StreamMatmulEmitter::storeRun(const XRun &run) {
  if (blockTiles)
    storeBlockRun(run);
  else
    storePairRun(run);
  if (stream.hasSquares)
    storeSquares(run);
}

/// Halves of two pairs, whose lanes have two of the four words of a vector.
void StreamMatmulEmitter::storeBlockRun(const XRun &run) {
  auto type = VectorType::get({2}, b.getI32Type());
  const int64_t ofVector = vectorBytes / 2;
  SmallVector<Value> parts(2);
  for (int64_t i = 0; i < 2; ++i) {
    ArrayRef<Value> values = ArrayRef(run.values).slice(4 * i, 4);
    Value pair = e.add(run.pair, e.index(i * StreamBlocks::pairsApart));
    SmallVector<Value> high, low;
    for (int64_t k = 0; k < 2; ++k) {
      Value first = values[2 * k], second = values[2 * k + 1], word;
      if (stream.terms == 1) { // sums are of what codes are multiplied with
        word = code.pack(element, first, second);
        std::tie(first, second) = widen(word);
      }
      Value sum = e.add(first, second);
      parts[i] = k ? e.add(parts[i], sum) : sum;
      if (word) {
        high.push_back(blockTiles->scaledPair(word, k));
        continue;
      }
      if (double scale = blockTiles->scaleOfPair(k); scale != 1) {
        first = e.mul(first, e.f32(scale));
        second = e.mul(second, e.f32(scale));
      }
      auto [rounded, rest] = split(first, second);
      high.push_back(rounded);
      low.push_back(rest);
    }
    Value place = e.add(
        e.scaled(e.add(e.scaled(pair, stream.terms * stream.rows), run.row), 4),
        run.inPair);
    Value to = code.advance(
        code.pointerTo(xMemory),
        e.add(e.scaled(place, vectorBytes), e.scaled(run.half, ofVector)));
    for (auto [term, words] : {std::pair(0, &high), {1, &low}})
      if (term < stream.terms)
        LLVM::StoreOp::create(
            b, loc, vector::FromElementsOp::create(b, loc, type, *words),
            code.advance(to, term * stream.rows * 4 * vectorBytes), ofVector);
  }
  blockTiles->storeSums(run.pair, run.half, run.row, parts);
}

void StreamMatmulEmitter::storePairRun(const XRun &run) {
  SmallVector<Value> high, low;
  // Nothing is split for f32: halves of the columns are in place of both terms.
  for (Value value : isSingle() ? ArrayRef(run.values) : ArrayRef<Value>())
    (high.size() < perRun / 2 ? high : low)
        .push_back(arith::BitcastOp::create(b, loc, b.getI32Type(), value));
  for (int64_t i = 0; i < (isSingle() ? 0 : 4); ++i) {
    auto [rounded, rest] = split(run.values[2 * i], run.values[2 * i + 1]);
    high.push_back(rounded);
    low.push_back(rest);
  }
  if (!isSingle())
    for (SmallVector<Value> *words : {&high, &low})
      for (int64_t half = 0; half < 2; ++half)
        orderWords(MutableArrayRef(*words).slice(2 * half, 2));
  Value place = e.add(
      e.scaled(e.add(e.scaled(run.pair, stream.terms * stream.rows), run.row),
               4),
      run.inPair);
  storeWords(high, place);
  if (stream.terms == 2)
    storeWords(low, e.add(place, e.index(stream.rows * 4)));
}

/// From words of columns 4 t and 4 t + 2 of lane t, of a group of 4, those of 2
/// t and 2 t + 8: what has been read together is what neighbours multiply.
void StreamMatmulEmitter::orderWords(MutableArrayRef<Value> words) {
  code.exchangeWords(words[0], words[1], 1);
  code.exchangeWords(words[0], words[1], 2);
}

void StreamMatmulEmitter::storeWords(ArrayRef<Value> words, Value place) {
  Value vector = vector::FromElementsOp::create(
      b, loc, VectorType::get({4}, b.getI32Type()), words);
  memref::StoreOp::create(b, loc, vector, xMemory, place);
}

/// Two numbers in one word: rounded, and what that leaves.
std::pair<Value, Value> StreamMatmulEmitter::split(Value first, Value second) {
  const bool isHalf = element.isF16();
  if (isHalf && halfScale() != 1) {
    first = e.mul(first, e.f32(halfScale()));
    second = e.mul(second, e.f32(halfScale()));
  }
  Value rounded = code.pack(element, first, second);
  auto [low, high] = widen(rounded);
  auto rest = [&](Value value, Value rounded) -> Value {
    Value left = e.sub(value, rounded);
    // Infinities leave nothing.
    Value isFinite = arith::CmpFOp::create(
        b, loc, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, loc, left),
        e.f32(std::numeric_limits<double>::infinity()));
    left = e.select(isFinite, left, e.f32(0.0));
    return isHalf ? e.mul(left, e.f32(restScale)) : left;
  };
  return {rounded, code.pack(element, rest(first, low), rest(second, high))};
}

std::pair<Value, Value> StreamMatmulEmitter::widen(Value rounded) {
  if (element.isF16()) {
    Value pair =
        LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), rounded);
    auto at = [&](int64_t i) -> Value {
      Value half = vector::ExtractOp::create(b, loc, pair, i);
      return arith::ExtFOp::create(b, loc, b.getF32Type(), half);
    };
    return {at(0), at(1)};
  }
  auto float32 = [&](Value bits) -> Value {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  };
  return {float32(arith::ShLIOp::create(b, loc, rounded, e.word(16))),
          float32(arith::AndIOp::create(b, loc, rounded,
                                        e.word(int64_t(0xffff0000))))};
}

/// Adds what the lanes have that share a line of a row.
void StreamMatmulEmitter::storeSquares(const XRun &run) {
  const int64_t sharing = stream.lineColumns() / perRun;
  Value sum = addLanes(run.squares, sharing);
  e.ifThen(e.isLess(e.rem(lane, sharing), e.index(1)), [&] {
    memref::StoreOp::create(
        b, loc, sum, squares,
        e.add(e.scaled(run.row, stream.squares()), run.line));
  });
}

/// The scale of each row, as rowStatistics() has it; a warp for each.
void StreamMatmulEmitter::emitScales() {
  constexpr int64_t lanes = StreamShape::lanes;
  e.forThreads(e.scaled(rows, lanes), [&](Value number) {
    Value row = e.div(number, lanes), sum = e.f32(0.0);
    for (int64_t at = 0; at < stream.squares(); at += lanes) {
      Value line = e.add(lane, e.index(at));
      Value isInside;
      if (stream.squares() - at < lanes) {
        isInside = e.isLess(line, e.index(stream.squares()));
        line = e.select(isInside, line, e.index(0));
      }
      Value part = memref::LoadOp::create(
          b, loc, squares, e.add(e.scaled(row, stream.squares()), line));
      sum = e.add(sum, isInside ? e.select(isInside, part, e.f32(0.0)) : part);
    }
    sum = addLanes(sum, lanes);
    Value mean = e.mul(sum, e.f32(1.0 / static_cast<double>(extent)));
    Value eps = e.f32(norm.getEps().convertToDouble());
    if (isScaled) { // as the row is
      Value scale = range->scaleOf(row);
      eps = e.mul(e.mul(eps, scale), scale);
    }
    Value root = math::SqrtOp::create(b, loc, e.add(mean, eps));
    Value scale = arith::DivFOp::create(b, loc, e.f32(1.0), root);
    e.ifThen(e.isLess(lane, e.index(1)),
             [&] { memref::StoreOp::create(b, loc, scale, scales, row); });
  });
}

/// The sum of `count` lanes, a power of two.
Value StreamMatmulEmitter::addLanes(Value sum, int64_t count) {
  return code.combineLanes(sum, 0, llvm::Log2_64(count),
                           [&](Value x, Value y) { return e.add(x, y); });
}
