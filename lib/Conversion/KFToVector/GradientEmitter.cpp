//===- GradientEmitter.cpp - Sums over rows that gradients are ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// kf.matmul_wgrad sums up products of rows in a tile of registers, one row
// after the other. kf.scatter_add takes the rows of its ids one by one, and
// adds those to the workgroup's part of the result that belong there.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class WgradEmitter {
public:
  explicit WgradEmitter(KernelEmitter &e)
      : e(e), op(e.find<MatmulWgradOp>()), sizes(e.sizesOf(op.getResult())),
        count(e.sizesOf(op.getX())[0]) {}

  void emit() {
    // Sums for half of the registers, two vectors of each of the rows.
    const int64_t tileRows = e.lanes >= 16 ? 8 : 4;
    Value step = e.index(tileRows);
    Value whole =
        e.mul(arith::DivUIOp::create(e.b, e.loc, sizes[0], step), step);
    forRows(e.index(0), whole, tileRows);
    forRows(whole, sizes[0], 1);
  }

private:
  void forRows(Value begin, Value end, int64_t rows) {
    e.loop(begin, end, e.index(rows), {}, [&](Value row, ValueRange) {
      emitColumns(row, rows);
      return SmallVector<Value>();
    });
  }

  void emitColumns(Value row, int64_t rows) {
    const int64_t wide = 2 * e.lanes;
    std::optional<int64_t> extent = getConstantIntValue(sizes[1]);
    const int64_t whole = extent ? *extent / wide * wide : 0;
    if (whole > 0)
      e.loop(e.index(0), e.index(whole), e.index(wide), {},
             [&](Value column, ValueRange) {
               emitTile(row, rows, column, wide);
               return SmallVector<Value>();
             });
    e.forPieces(extent ? e.index(*extent - whole) : sizes[1],
                [&](Value column, unsigned width) {
                  emitTile(row, rows, e.add(column, e.index(whole)), width);
                });
  }

  void emitTile(Value row, int64_t rows, Value column, unsigned width) {
    SmallVector<Value> zeros(rows, e.splat(e.f32(0.0), width));
    auto addRow = [&](Value m, ValueRange sums) {
      Value right = e.load(op.getX(), {m, column}, width);
      SmallVector<Value> next;
      for (int64_t i = 0; i < rows; ++i) {
        Value left = e.load(op.getDy(), {m, e.add(row, e.index(i))}, 0);
        next.push_back(math::FmaOp::create(e.b, e.loc, e.splat(left, width),
                                           right, sums[i]));
      }
      return next;
    };
    auto sums = e.loop(e.index(0), count, e.index(1), zeros, addRow);
    for (int64_t i = 0; i < rows; ++i)
      e.storeResult(sums.getResult(i), {e.add(row, e.index(i)), column});
  }

  KernelEmitter &e;
  MatmulWgradOp op;
  SmallVector<Value> sizes; // of the tile
  Value count;              // of rows that are summed up
};

} // namespace

void mlir::kf::emitWgradKernel(KernelEmitter &emitter) {
  WgradEmitter(emitter).emit();
}

void mlir::kf::emitScatterKernel(KernelEmitter &e) {
  auto op = e.find<ScatterAddOp>();
  SmallVector<Value> sizes = e.sizesOf(op.getResult()),
                     offsets = e.tileOffsets();
  e.loop(sizes[0], [&](Value row) {
    e.forPieces(sizes[1], [&](Value column, unsigned width) {
      e.storeResult(e.splat(e.f32(0.0), width), {row, column});
    });
  });
  e.loop(e.sizesOf(op.getRows())[0], [&](Value t) {
    Value id = arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(),
                                          e.load(op.getIds(), t, 0));
    Value row = e.sub(id, offsets[0]);
    e.ifThen(e.isLess(row, sizes[0]), [&] {
      e.forPieces(sizes[1], [&](Value column, unsigned width) {
        Value sum = e.loadMemref(e.resultStorage(),
                                 {id, e.add(offsets[1], column)}, width);
        Value more = e.load(op.getRows(), {t, column}, width);
        e.storeResult(e.add(sum, more), {row, column});
      });
    });
  });
}
