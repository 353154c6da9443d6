//===- FlashMmaResults.cpp - Results of attention on matrix units ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlashMmaEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numbers>

using namespace mlir;
using namespace mlir::kf;

/// Calls `body` with each of row `r`'s sums of values in this lane, and its
/// column.
void FlashMmaEmitter::forValues(
    const Sums &sums, int64_t r,
    function_ref<void(Value sum, Value column)> body) {
  int64_t columns = shape.valueColumns();
  for (int64_t i = 0; i < shape.headDim / 8; ++i)
    for (int64_t n = 0; n < 2; ++n) {
      // 8wh + w(2t + n) + j
      Value column =
          e.add(e.mul(place, e.index(2 * columns)),
                e.index(i / columns * 8 * columns + n * columns + i % columns));
      body(ofRow(ArrayRef(sums.values).slice(4 * i, 4), r, n), column);
    }
}

Value FlashMmaEmitter::totalOf(const Sums &sums, int64_t r) {
  return warp.combineLanes(sums.totals[r], 0, 2,
                           [&](Value x, Value y) { return e.add(x, y); });
}

Value FlashMmaEmitter::isFirst(Value number) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                               e.index(0));
}

Value FlashMmaEmitter::isFirstPlace() { return isFirst(place); }

/// Notes that the block has to be computed again unless `sum` is finite; by the
/// first workgroup of a cluster.
void FlashMmaEmitter::check(Value sum) {
  Value infinity = e.f32(std::numeric_limits<double>::infinity());
  Value isFinite =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                            math::AbsFOp::create(b, loc, sum), infinity);
  Value isNot = arith::XOrIOp::create(
      b, loc, isFinite, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  e.ifThen(isNot, [&] {
    if (shape.parts == 1)
      return store(e.word(1), flag, e.index(0));
    Value first = warp.pointerInCluster(warp.pointerTo(flag), e.index(0));
    LLVM::StoreOp::create(b, loc, e.word(1), first);
  });
}

/// 1 / `total`; 0 for a row that sees no keys, or none of the part.
Value FlashMmaEmitter::inverseOf(Value total, Value position) {
  Value isAny = run.partial ? e.isLess(firstSeen, endKey)
                            : run.window.seesAny(toIndex(position), run.limit);
  Value inverse = arith::DivFOp::create(b, loc, e.f32(1.0), total);
  return e.select(isAny, inverse, e.f32(0.0));
}

void FlashMmaEmitter::storePart(Value maximum, Value total, const Row &row) {
  Value lowest = e.f32(AttentionRows::lowestMaximum);
  Value isLowest =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, maximum, lowest);
  Value natural = e.mul(maximum, e.f32(std::numbers::ln2));
  natural = e.select(isLowest, lowest, natural);
  Value hasKeys = e.isLess(firstSeen, endKey), zero = e.index(0);
  SmallVector<Value> at = {row.token, row.head, zero};
  e.storeResult(e.select(hasKeys, natural, e.f32(AttentionRows::hiddenScore)),
                at, 0);
  e.storeResult(total, at, 1);
}

/// The result of element `column` of a row; `factor` is inverseOf().
void FlashMmaEmitter::storeValue(Value sum, const Row &row, Value column,
                                 Value factor) {
  if (run.partial)
    e.storeResult(sum, {row.token, row.head, e.index(0), column}, 2);
  else
    e.storeResult(e.mul(sum, factor), {row.token, row.head, column});
}

/// Of a warp that has seen all keys of its rows.
void FlashMmaEmitter::writeRows(const Sums &sums) {
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    const Row &row = rowsHere[r];
    Value total = totalOf(sums, r), size = total, factor;
    if (!run.partial || shape.isStaged)
      factor = inverseOf(total, positions[r]);
    // Of rounded queries that are infinite, all weights may be 0.
    if (shape.isStaged)
      size = e.add(size, factor);
    e.ifThen(row.exists, [&] {
      if (run.partial)
        e.ifThen(isFirstPlace(),
                 [&] { storePart(sums.maxima[r], total, row); });
      forValues(sums, r, [&](Value sum, Value column) {
        size = e.add(size, math::AbsFOp::create(b, loc, sum));
        storeValue(sum, row, column, factor);
      });
      check(size);
    });
  }
}

/// Adds up what the warps found that have divided the keys.
void FlashMmaEmitter::combineWarps(const Sums &sums) {
  const int64_t rows = shape.rows(), dim = shape.headDim;
  const PartSums ofWarps = sumsFrom(0, shape.keyWarps * rows);
  // Queries were there.
  e.barrier();
  storeSums(sums, ofWarps);
  e.barrier();
  e.forThreads(e.index(rows * dim), [&](Value number) {
    Value local = e.div(number, dim), column = e.rem(number, dim);
    Row row = run.find(local);
    e.ifThen(row.exists, [&] {
      const WarpsSum all = addWarps(ofWarps, local, column);
      if (shape.parts > 1) {
        PartSums part = partSums();
        store(all.value, part.values, number);
        e.ifThen(isFirst(column), [&] {
          store(all.maximum, part.maxima, local);
          store(all.total, part.totals, local);
        });
        return;
      }
      Value factor;
      if (!run.partial)
        factor = inverseOf(all.total, run.positionOf(row));
      else
        e.ifThen(isFirst(column),
                 [&] { storePart(all.maximum, all.total, row); });
      storeValue(all.value, row, column, factor);
      check(e.add(all.value, all.total));
    });
  });
}

/// Leaves what this warp found for the others.
void FlashMmaEmitter::storeSums(const Sums &sums, const PartSums &ofWarps) {
  for (int64_t r = 0; r < rowsOfLane; ++r) {
    Value local = e.add(e.mul(rowWarp, e.index(shape.rowsOfWarp())),
                        e.add(group, e.index(8 * r)));
    Value at = e.add(e.mul(keyWarp, e.index(shape.rows())), local);
    Value total = totalOf(sums, r);
    e.ifThen(isFirstPlace(), [&] {
      store(sums.maxima[r], ofWarps.maxima, at);
      store(total, ofWarps.totals, at);
    });
    Value first = e.mul(at, e.index(shape.headDim));
    forValues(sums, r, [&](Value sum, Value column) {
      store(sum, ofWarps.values, e.add(first, column));
    });
  }
}

/// What all warps found of an element of row `local`, in their order.
FlashMmaEmitter::WarpsSum FlashMmaEmitter::addWarps(const PartSums &ofWarps,
                                                    Value local, Value column) {
  WarpsSum all;
  auto placeOf = [&](int64_t number) {
    return e.add(local, e.index(number * shape.rows()));
  };
  for (int64_t w = 0; w < shape.keyWarps; ++w) {
    Value own = load(ofWarps.maxima, placeOf(w));
    all.maximum = all.maximum ? maximum(all.maximum, own) : own;
  }
  for (int64_t w = 0; w < shape.keyWarps; ++w) {
    Value at = placeOf(w);
    Value factor = warp.exp2(e.sub(load(ofWarps.maxima, at), all.maximum));
    Value value =
        load(ofWarps.values, e.add(e.mul(at, e.index(shape.headDim)), column));
    if (!all.value) {
      all.total = e.mul(factor, load(ofWarps.totals, at));
      all.value = e.mul(factor, value);
      continue;
    }
    all.total = math::FmaOp::create(b, loc, factor, load(ofWarps.totals, at),
                                    all.total);
    all.value = math::FmaOp::create(b, loc, factor, value, all.value);
  }
  return all;
}

/// The sums of `rows` rows in the workgroup memory from `byte` on.
FlashMmaEmitter::PartSums FlashMmaEmitter::sumsFrom(int64_t byte,
                                                    int64_t rows) {
  const int64_t values = rows * shape.headDim;
  Type f32 = b.getF32Type();
  PartSums sums;
  sums.values = viewOf(f32, byte, values);
  sums.maxima = viewOf(f32, byte + 4 * values, rows);
  sums.totals = viewOf(f32, byte + 4 * (values + rows), rows);
  return sums;
}

FlashMmaEmitter::PartSums FlashMmaEmitter::partSums() {
  return sumsFrom(partStart, shape.rows());
}

/// Adds up what the workgroups of the cluster have found, a part of the
/// elements in each, in the order of their numbers.
void FlashMmaEmitter::combineParts() {
  const PartSums own = partSums();
  SmallVector<PartSums> parts;
  for (int64_t number = 0; number < shape.parts; ++number) {
    auto there = [&](Value memory) {
      return warp.pointerInCluster(warp.pointerTo(memory), e.index(number));
    };
    parts.push_back({there(own.values), there(own.maxima), there(own.totals)});
  }
  auto read = [&](Value start, Value at) -> Value {
    return LLVM::LoadOp::create(b, loc, b.getF32Type(),
                                warp.advance(start, e.scaled(at, 4)));
  };
  warp.clusterBarrier();
  const int64_t lanes = FlashMmaShape::warp, dim = shape.headDim;
  const int64_t threads = e.shape.threadCount;
  Value first = e.add(
      e.scaled(e.add(e.scaled(e.div(e.thread, lanes), shape.parts), e.part),
               lanes),
      lane);
  e.loop(
      first, e.index(shape.rows() * dim), e.index(threads * shape.parts), {},
      [&](Value number, ValueRange) {
        Value local = e.div(number, dim), column = e.rem(number, dim);
        Row row = run.find(local);
        e.ifThen(row.exists, [&] {
          Registers maxima, totals, values;
          for (const PartSums &part : parts) {
            maxima.push_back(read(part.maxima, local));
            totals.push_back(read(part.totals, local));
            values.push_back(read(part.values, number));
          }
          Value largest = maxima.front();
          for (Value other : ArrayRef(maxima).drop_front())
            largest = maximum(largest, other);
          Value total = e.f32(0.0), sum = total;
          for (auto [own, ofPart, value] : llvm::zip(maxima, totals, values)) {
            Value factor = warp.exp2(e.sub(own, largest));
            total = math::FmaOp::create(b, loc, factor, ofPart, total);
            sum = math::FmaOp::create(b, loc, factor, value, sum);
          }
          storeValue(sum, row, column, inverseOf(total, run.positionOf(row)));
          check(e.add(sum, total));
        });
        return Registers();
      });
  // They have read, and the first one knows what is to be computed again.
  warp.clusterBarrier();
}

/// Computes the block without matrix units where something is not finite.
void FlashMmaEmitter::computeAgain() {
  e.barrier();
  Value isOdd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                      load(flag, e.index(0)), e.word(0));
  e.ifThen(isOdd, [&] { spare.emitRows(shape.rows()); });
}
