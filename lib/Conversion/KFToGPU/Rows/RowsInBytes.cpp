//===- RowsInBytes.cpp - Rows in 8 bits -----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread rounds the elements that share a scale, one after another; other
// threads round their neighbours.
//
//===----------------------------------------------------------------------===//

#include "../../Common/BlockRounding.h"
#include "../GPUEmitter.h"

#include "runtime/core/BlockFormat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

/// Elements that share a scale.
static constexpr int64_t unit = ::kf::PackedBlock::unit;

/// Unit `number` of row `row` of `op`'s input, whose elements can be had.
static void quantizeUnit(GPUEmitter &e, QuantizeRowsOp op, Value row,
                         Value number) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Value first = e.mul(number, e.index(unit));
  auto element = [&](Value column) {
    return e.load(op.getX(), {row, column}, 0);
  };
  Value one = e.index(1), end = e.index(unit);
  auto largest =
      e.loop(e.index(0), end, one, e.f32(0.0), [&](Value at, ValueRange args) {
        Value size = math::AbsFOp::create(b, loc, element(e.add(first, at)));
        return SmallVector<Value>{
            arith::MaximumFOp::create(b, loc, args[0], size)};
      });
  RowScale scale = rowScale(e, largest.getResult(0));
  e.storeResult(scale.scale, {row, number}, 1);

  int64_t group = op.getGroup();
  Value groups = e.index(unit / group);
  e.loop(groups, [&](Value part) {
    Value begin = e.add(first, e.mul(part, e.index(group)));
    Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    auto sum = e.loop(
        e.index(0), e.index(group), one, zero, [&](Value at, ValueRange args) {
          Value column = e.add(begin, at);
          Value code = roundToRowCode(e, element(column), scale);
          e.storeResult(arith::TruncIOp::create(b, loc, b.getI8Type(), code),
                        {row, column}, 0);
          return SmallVector<Value>{
              arith::AddIOp::create(b, loc, args[0], code)};
        });
    e.storeResult(sum.getResult(0), {row, e.add(e.mul(number, groups), part)},
                  2);
  });
}

void mlir::kf::emitGPUQuantizeRows(GPUEmitter &e) {
  auto op = e.find<QuantizeRowsOp>();
  int64_t extent = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  e.forRows(e.sizesOf(op.getX())[0], [&](ValueRange row) {
    e.prepareRow(op.getX(), row);
    e.forThreads(e.index(extent / unit),
                 [&](Value number) { quantizeUnit(e, op, row[0], number); });
  });
}
