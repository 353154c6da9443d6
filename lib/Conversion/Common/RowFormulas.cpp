//===- RowFormulas.cpp - Formulas of rows and products --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;
using vector::CombiningKind;

bool mlir::kf::hasRowStatistics(Operation *op) {
  return isa_and_nonnull<RmsNormOp, LayerNormOp, SoftmaxOp>(op);
}

namespace {

/// The formulas of one row.
class Row {
public:
  Row(TileEmitter &e, Value x, ValueRange row)
      : e(e), x(x), row(row), size(e.sizesOf(x).back()) {}

  /// 1 / sqrt(mean of squares + eps).
  SmallVector<Value> statisticsOf(RmsNormOp op) {
    Value squares = sum([&](Value column, unsigned width) {
      Value value = element(column, width);
      return e.mul(value, value);
    });
    return {scale(e.mul(squares, inverseSize()), op.getEps())};
  }

  /// The same of what is left without the mean, and the mean.
  SmallVector<Value> statisticsOf(LayerNormOp op) {
    Value inverse = inverseSize();
    Value mean = e.mul(sum([&](Value column, unsigned width) {
                         return element(column, width);
                       }),
                       inverse);
    Value squares = sum([&](Value column, unsigned width) {
      Value centered = e.sub(element(column, width), e.splat(mean, width));
      return e.mul(centered, centered);
    });
    return {scale(e.mul(squares, inverse), op.getEps()), mean};
  }

  /// The largest element, and 1 / the sum of exponentials.
  SmallVector<Value> statisticsOf(SoftmaxOp,
                                  function_ref<void(Value, Value)> keep) {
    Value largest = e.reduceRow(
        size, CombiningKind::MAXIMUMF,
        [&](Value column, unsigned width) { return element(column, width); });
    Value total = sum([&](Value column, unsigned width) -> Value {
      Value x = e.sub(element(column, width), e.splat(largest, width));
      Value exponential = math::ExpOp::create(e.b, e.loc, x);
      if (keep)
        keep(column, exponential);
      return exponential;
    });
    return {largest, inverseOf(total)};
  }

private:
  Value element(Value column, unsigned width) {
    return e.load(x, indicesAt(row, column), width);
  }
  Value sum(function_ref<Value(Value, unsigned)> element) {
    return e.reduceRow(size, CombiningKind::ADD, element);
  }
  Value inverseSize() {
    return e.f32(1.0 / static_cast<double>(*getConstantIntValue(size)));
  }
  Value inverseOf(Value value) {
    return arith::DivFOp::create(e.b, e.loc, e.f32(1.0), value);
  }
  Value scale(Value meanSquare, const APFloat &eps) {
    return inverseOf(math::SqrtOp::create(
        e.b, e.loc, e.add(meanSquare, e.f32(eps.convertToDouble()))));
  }

  TileEmitter &e;
  Value x;
  ValueRange row;
  Value size;
};

} // namespace

SmallVector<Value>
mlir::kf::rowStatistics(TileEmitter &e, Operation *op, ValueRange row,
                        function_ref<void(Value, Value)> keep) {
  Row formulas(e, op->getOperand(0), row);
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    return formulas.statisticsOf(softmax, keep);
  if (auto norm = dyn_cast<RmsNormOp>(op))
    return formulas.statisticsOf(norm);
  return formulas.statisticsOf(cast<LayerNormOp>(op));
}

Value mlir::kf::normalize(TileEmitter &e, Operation *op, ValueRange statistics,
                          ValueRange indices, unsigned width, Value mask) {
  Value x = e.load(op->getOperand(0), indices, width, mask);
  Value column = indices.back();
  auto spread = [&](unsigned number) {
    return e.splat(statistics[number], width);
  };
  if (isa<SoftmaxOp>(op)) {
    Value exp = math::ExpOp::create(e.b, e.loc, e.sub(x, spread(0)));
    return e.mul(exp, spread(1));
  }
  if (auto norm = dyn_cast<RmsNormOp>(op))
    return e.mul(e.mul(x, spread(0)),
                 e.load(norm.getWeight(), column, width, mask));
  auto norm = cast<LayerNormOp>(op);
  Value result = e.mul(e.mul(e.sub(x, spread(1)), spread(0)),
                       e.load(norm.getWeight(), column, width, mask));
  return norm.getBias()
             ? e.add(result, e.load(norm.getBias(), column, width, mask))
             : result;
}

Value mlir::kf::finishProduct(TileEmitter &e, MatmulOp op, ValueRange sums,
                              Value column, unsigned width, Value mask) {
  auto finished = [&](int64_t group) -> Value {
    SmallVector<Value> indices = {column};
    if (op.getGlu())
      indices.insert(indices.begin(), e.index(group));
    Value value = sums[group];
    if (Value scales = op.getWeightScales())
      value = e.mul(value, e.load(scales, indices, width, mask));
    if (op.getBias())
      value = e.add(value, e.load(op.getBias(), indices, width, mask));
    return value;
  };
  Value value = finished(0);
  return op.getGlu() ? e.mul(e.activate(*op.getGlu(), value), finished(1))
                     : value;
}
