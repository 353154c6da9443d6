//===- VectorMatmulEmitter.cpp - Products in vector registers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorMatmulEmitter.h"

#include "kf/Conversion/VectorSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

/// Bytes of a line of the caches.
static constexpr int64_t lineBytes = 64;

/// Register tiles of a workgroup from which on what each writes is prefetched.
static constexpr int64_t fewestPrefetchedTiles = 4;

bool VectorMatmulEmitter::prefetchesMeanwhile() const {
  return !isLeftToHardware() && mostTiles > 1;
}

ArrayRef<WeightPrefetch> VectorMatmulEmitter::prefetches() const {
  if (!readsOnce() || isLeftToHardware())
    return {};
  auto type = cast<MemRefType>(weights.getType());
  const int64_t bytes =
      type.getNumElements() * type.getElementTypeBitWidth() / 8;
  if (isSmallWeight(op, bytes, getMachine(op)) || prefetchesMeanwhile())
    return kNearPrefetch;
  if (e.schedule.getPrefetch() == PrefetchKind::Once)
    return kOnePrefetch;
  return kTwoPrefetches;
}

void VectorMatmulEmitter::computePanels(Value firstPanel, Value panels) {
  // As forTiles() makes them, but that smaller ones of many rows count as one.
  tiles = e.ceilDiv(rows, tileRows);
  std::optional<int64_t> count = getConstantIntValue(rows);
  if (sharesParts())
    tiles = e.index(1);
  else if (tileRows == 2 && !dividesEvenly() && (!count || *count > 1))
    tiles = count ? e.index(*count / 2)
                  : Value(arith::DivUIOp::create(b, loc, rows, e.index(2)));
  if (dividesEvenly())
    evenTiles = countEvenTiles(rows);
  e.loop(panels, [&](Value p) {
    resultPanel = p;
    computePanel(e.add(firstPanel, p), p);
  });
}

void VectorMatmulEmitter::computePanel(Value weightPanel, Value p) {
  if (unpacks())
    unpackPanel(weightPanel);
  forTiles([&](RegisterTile tile) {
    if (mostTiles >= fewestPrefetchedTiles && !hasExperts() &&
        !prefetchesTileByTheWay())
      prefetchTile(tile, e.index(0), 1);
    storeTile(tile, p, sumTile(weightPanel, tile));
  });
}

VectorMatmulEmitter::TileCounts
VectorMatmulEmitter::countEvenTiles(Value rows) {
  Value count =
      arith::MaxUIOp::create(b, loc, e.ceilDiv(rows, tileRows), e.index(1));
  Value least = arith::DivUIOp::create(b, loc, rows, count);
  Value larger = arith::RemUIOp::create(b, loc, rows, count);
  Value smaller = e.sub(count, larger), none = e.index(0);
  auto isLeast = [&](int64_t height) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, least,
                                 e.index(height));
  };
  TileCounts counts;
  for (int64_t height = 1; height <= tileRows; ++height)
    counts.push_back(e.select(isLeast(height), smaller,
                              e.select(isLeast(height - 1), larger, none)));
  return counts;
}

void VectorMatmulEmitter::forEvenTiles(const TileCounts &counts, Value first,
                                       int64_t least,
                                       function_ref<void(RegisterTile)> body) {
  Value number = e.index(0);
  for (int64_t height = tileRows; height >= least; --height) {
    Value count = counts[height - 1];
    e.loop(count, [&](Value tile) {
      body({e.add(first, e.mul(tile, e.index(height))), height,
            e.add(number, tile)});
    });
    first = e.add(first, e.mul(count, e.index(height)));
    number = e.add(number, count);
  }
}

/// Whole tiles have as many rows as the schedule says, and those that are left
/// make tiles of smaller powers of two, which is less code. One that is left of
/// pairs joins the last of them, for alone it would take as long.
void VectorMatmulEmitter::forTiles(function_ref<void(RegisterTile)> body) {
  if (dividesEvenly())
    return forEvenTiles(evenTiles, e.index(0), 1, body);
  auto wholeTiles = [&](Value count) {
    e.loop(count, [&](Value tile) {
      body({e.mul(tile, e.index(tileRows)), tileRows, tile});
    });
    return e.mul(count, e.index(tileRows));
  };
  if (std::optional<int64_t> count = getConstantIntValue(rows)) {
    int64_t left = *count % tileRows;
    if (tileRows == 2 && left == 1 && *count > 1)
      left = 3;
    int64_t whole = (*count - left) / tileRows;
    Value first = wholeTiles(e.index(whole));
    if (left > 0)
      body({first, left, e.index(whole)});
    return;
  }
  if (tileRows == 2) {
    Value two = e.index(2), one = e.index(1);
    Value isOdd =
        e.isLess(e.index(0), arith::AndIOp::create(b, loc, rows, one));
    Value hasPair = e.isLess(one, rows);
    Value pairs = arith::DivUIOp::create(b, loc, rows, two);
    Value isJoined = arith::AndIOp::create(b, loc, isOdd, hasPair);
    Value whole = e.select(isJoined, e.sub(pairs, one), pairs);
    Value first = wholeTiles(whole);
    e.ifThen(isJoined, [&] { body({first, 3, whole}); });
    e.ifThen(e.isLess(rows, two), [&] { body({first, 1, whole}); });
    return;
  }
  Value whole = arith::DivUIOp::create(b, loc, rows, e.index(tileRows));
  Value first = wholeTiles(whole);
  Value left = e.sub(rows, first);
  for (int64_t size = llvm::bit_floor<uint64_t>(tileRows - 1); size > 0;
       size /= 2) {
    Value ofSize = arith::AndIOp::create(b, loc, left, e.index(size));
    e.ifThen(e.isLess(e.index(0), ofSize), [&] { body({first, size, whole}); });
    first = e.add(first, ofSize);
  }
}

SmallVector<Value> VectorMatmulEmitter::sumInTurn(
    RegisterTile tile, function_ref<SmallVector<Value>(int64_t group)> sumsOf) {
  int64_t all = vectorsPerRow(), count = all / groups;
  SmallVector<Value> sums(tile.rows * all);
  for (int64_t group = 0; group < groups; ++group) {
    SmallVector<Value> part = sumsOf(group);
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t v = 0; v < count; ++v)
        sums[row * all + group * count + v] = part[row * count + v];
  }
  return sums;
}

void VectorMatmulEmitter::prefetchMeanwhile(Value p, RegisterTile tile,
                                            Value step, int64_t steps) {
  prefetchNext(p, tile, step, steps);
  if (mostTiles >= fewestPrefetchedTiles && !sharesParts() && !hasExperts() &&
      prefetchesTileByTheWay())
    prefetchTile(tile, step, steps);
}

/// What storeTile() reads and writes, by the middle of the steps (of many
/// steps, a line in each of the first ones, and the last line again later): a
/// few lines at a time, for what is multiplied waits where all that the caches
/// can ask for at once are asked for.
void VectorMatmulEmitter::prefetchTile(RegisterTile tile, Value step,
                                       int64_t steps) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto prefetch = [&](Value memref, ValueRange at, bool isWrite) {
    int64_t perLine =
        8 * lineBytes /
        cast<MemRefType>(memref.getType()).getElementTypeBitWidth();
    int64_t linesOfRow = llvm::divideCeil(panel, perLine);
    int64_t lines = tile.rows * linesOfRow;
    int64_t share =
        std::min<int64_t>(lines, llvm::divideCeil(2 * lines, steps));
    Value first = e.mul(step, e.index(share));
    Value column = e.add(at[1], e.mul(resultPanel, e.index(panel)));
    for (int64_t i = 0; i < share; ++i) {
      Value line = arith::MinUIOp::create(b, loc, e.add(first, e.index(i)),
                                          e.index(lines - 1));
      Value row = arith::DivUIOp::create(b, loc, line, e.index(linesOfRow));
      Value inRow = arith::RemUIOp::create(b, loc, line, e.index(linesOfRow));
      memref::PrefetchOp::create(
          b, loc, memref,
          ValueRange{e.add(at[0], e.add(tile.first, row)),
                     e.add(column, e.mul(inRow, e.index(perLine)))},
          isWrite, /*localityHint=*/3, /*isDataCache=*/true);
    }
  };
  prefetch(e.resultStorage(), e.tileOffsets(), /*isWrite=*/true);
  llvm::SmallPtrSet<Value, 4> seen;
  for (Operation &user : *op->getBlock()) {
    if (&user == op.getOperation() || user.getNumResults() != 1)
      continue;
    for (Value operand : user.getOperands()) {
      auto tensor = dyn_cast<RankedTensorType>(operand.getType());
      SmallVector<Value> at;
      if (!tensor || tensor.getShape() != type.getShape() ||
          !seen.insert(operand).second)
        continue;
      if (Value memref = e.sourceMemref(operand, at))
        prefetch(memref, at, /*isWrite=*/false);
    }
  }
}

/// A share of the panel behind `p`, into a cache that holds panels.
void VectorMatmulEmitter::prefetchNext(Value p, RegisterTile tile, Value step,
                                       int64_t steps) {
  auto type = cast<MemRefType>(weights.getType());
  int64_t elements = 1;
  for (int64_t extent : type.getShape().drop_front())
    elements *= extent;
  Value position = e.add(e.mul(tile.number, e.index(steps)), step);
  int64_t perLine = 8 * lineBytes / type.getElementTypeBitWidth();
  auto prefetch = [&](Value first, Value offset) {
    SmallVector<Value> at(type.getRank(), e.index(0));
    at.front() = e.add(p, e.index(1));
    at.back() = e.add(first, offset);
    memref::PrefetchOp::create(b, loc, weights, at, /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  };
  // A line is asked for by several steps rather than one by none.
  if (std::optional<int64_t> count = getConstantIntValue(tiles)) {
    int64_t share = llvm::divideCeil(elements, *count * steps);
    Value first = e.mul(position, e.index(share));
    for (int64_t offset = 0; offset < share; offset += perLine)
      prefetch(first, e.index(offset));
    return;
  }
  Value share = shareOfTiles(llvm::divideCeil(elements, steps));
  Value first = e.mul(position, share);
  e.loop(e.index(0), share, e.index(perLine), {},
         [&](Value offset, ValueRange) {
           prefetch(first, offset);
           return SmallVector<Value>();
         });
}

/// What each tile has of `count`, rounded up; computed once, before all panels.
Value VectorMatmulEmitter::shareOfTiles(int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(tiles);
  Value one = e.index(1);
  Value divisor = arith::MaxUIOp::create(b, loc, tiles, one);
  Value rest = arith::DivUIOp::create(b, loc, e.index(count - 1), divisor);
  return e.add(rest, one);
}

int64_t VectorMatmulEmitter::rowStride(int64_t perLine) const {
  if (tileRows == 1)
    return extent;
  return perLine * (llvm::divideCeil(extent, perLine) | 1);
}

void VectorMatmulEmitter::storeTile(RegisterTile tile, Value p,
                                    ArrayRef<Value> sums) {
  int64_t vectors = panel / lanes;
  for (int64_t row = 0; row < tile.rows; ++row)
    storeRow(e.add(tile.first, e.index(row)), p, [&](int64_t group, int64_t v) {
      return sums[(row * groups + group) * vectors + v];
    });
}
