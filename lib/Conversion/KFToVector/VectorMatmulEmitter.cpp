//===- VectorMatmulEmitter.cpp - Products in vector registers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorMatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

/// Register tiles that have to share a panel for its conversion to pay: while
/// it is converted for the first of a few, memory is the limit.
static constexpr int64_t fewestTiles = 4;

/// Bytes of a line of the caches.
static constexpr int64_t lineBytes = 64;

bool VectorMatmulEmitter::unpacks() const {
  return mostTiles >= fewestTiles && canUnpack();
}

ArrayRef<WeightPrefetch> VectorMatmulEmitter::prefetches() const {
  if (!readsOnce())
    return {};
  auto type = cast<MemRefType>(weights.getType());
  int64_t bits = type.getNumElements() * type.getElementTypeBitWidth();
  bool isSmall = bits < 8 * kFewestEarlyBytes;
  if (isSmall || prefetchesMeanwhile())
    return kNearPrefetch;
  if (e.schedule.getPrefetch() == PrefetchKind::Once)
    return kOnePrefetch;
  return kTwoPrefetches;
}

void VectorMatmulEmitter::computePanels(Value firstPanel, Value panels) {
  Value tiles = e.ceilDiv(rows, tileRows);
  e.loop(panels, [&](Value p) {
    Value weightPanel = e.add(firstPanel, p);
    resultPanel = p;
    if (unpacks())
      unpackPanel(weightPanel);
    e.loop(tiles, [&](Value tile) {
      Value firstRow = e.mul(tile, e.index(tileRows));
      if (mostTiles >= fewestTiles && !prefetchesTileByTheWay())
        prefetchTile(firstRow, e.index(0), 1);
      storeTile(firstRow, p, sumTile(weightPanel, firstRow));
    });
  });
}

void VectorMatmulEmitter::prefetchMeanwhile(Value p, Value firstRow, Value step,
                                            int64_t steps) {
  prefetchNext(p, firstRow, step, steps);
  if (mostTiles >= fewestTiles && prefetchesTileByTheWay())
    prefetchTile(firstRow, step, steps);
}

/// What storeTile() reads and writes, by the middle of the steps (of many
/// steps, a line in each of the first ones, and the last line again later): a
/// few lines at a time, for what is multiplied waits where all that the caches
/// can ask for at once are asked for.
void VectorMatmulEmitter::prefetchTile(Value firstRow, Value step,
                                       int64_t steps) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto prefetch = [&](Value memref, ValueRange tile, bool isWrite) {
    int64_t perLine =
        8 * lineBytes /
        cast<MemRefType>(memref.getType()).getElementTypeBitWidth();
    int64_t linesOfRow = llvm::divideCeil(panel, perLine);
    int64_t lines = tileRows * linesOfRow;
    int64_t share =
        std::min<int64_t>(lines, llvm::divideCeil(2 * lines, steps));
    Value first = e.mul(step, e.index(share));
    Value column = e.add(tile[1], e.mul(resultPanel, e.index(panel)));
    for (int64_t i = 0; i < share; ++i) {
      Value line = arith::MinUIOp::create(b, loc, e.add(first, e.index(i)),
                                          e.index(lines - 1));
      Value row = arith::DivUIOp::create(b, loc, line, e.index(linesOfRow));
      Value inRow = arith::RemUIOp::create(b, loc, line, e.index(linesOfRow));
      memref::PrefetchOp::create(
          b, loc, memref,
          ValueRange{e.add(tile[0], e.add(firstRow, row)),
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
void VectorMatmulEmitter::prefetchNext(Value p, Value firstRow, Value step,
                                       int64_t steps) {
  auto type = cast<MemRefType>(weights.getType());
  int64_t elements = 1;
  for (int64_t extent : type.getShape().drop_front())
    elements *= extent;
  // A line is asked for by several steps rather than one by none.
  int64_t share = llvm::divideCeil(elements, mostTiles * steps);
  Value tile = arith::DivUIOp::create(b, loc, firstRow, e.index(tileRows));
  Value position = e.add(e.mul(tile, e.index(steps)), step);
  Value first = e.mul(position, e.index(share));
  SmallVector<Value> at(type.getRank(), e.index(0));
  at.front() = e.add(p, e.index(1));
  int64_t perLine = 8 * lineBytes / type.getElementTypeBitWidth();
  for (int64_t offset = 0; offset < share; offset += perLine) {
    at.back() = e.add(first, e.index(offset));
    memref::PrefetchOp::create(b, loc, weights, at, /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  }
}

int64_t VectorMatmulEmitter::rowStride(int64_t perLine) const {
  if (tileRows == 1)
    return extent;
  return perLine * (llvm::divideCeil(extent, perLine) | 1);
}

void VectorMatmulEmitter::storeTile(Value firstRow, Value p,
                                    ArrayRef<Value> sums) {
  int64_t vectors = panel / lanes;
  bool rowsAreWhole =
      getConstantIntValue(rows) && *getConstantIntValue(rows) % tileRows == 0;
  for (int64_t row = 0; row < tileRows; ++row) {
    Value index = e.add(firstRow, e.index(row));
    auto store = [&] {
      storeRow(index, p, [&](int64_t group, int64_t v) {
        return sums[(row * groups + group) * vectors + v];
      });
    };
    if (rowsAreWhole)
      store();
    else
      e.ifThen(
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, rows),
          store);
  }
}
