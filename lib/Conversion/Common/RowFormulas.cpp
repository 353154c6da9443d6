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

#include <limits>

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
    return {inverseRoot(op.getEps(), [&](Value column, unsigned width) {
      return element(column, width);
    })};
  }

  /// The same of what is left without the mean, and the mean.
  SmallVector<Value> statisticsOf(LayerNormOp op) {
    Value total = sum(
        [&](Value column, unsigned width) { return element(column, width); });
    Value mean = e.ifElse(
        isFinite(math::AbsFOp::create(e.b, e.loc, total)),
        [&] { return e.mul(total, inverseSize()); },
        [&] {
          Value part = e.mul(sum([&](Value column, unsigned width) {
                               return reduced(element(column, width), width);
                             }),
                             inverseSize());
          return e.mul(part, e.f32(1 / reduction));
        });
    Value inverse = inverseRoot(op.getEps(), [&](Value column, unsigned width) {
      return e.sub(element(column, width), e.splat(mean, width));
    });
    return {inverse, mean};
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
  /// `factor` / `value`.
  Value inverseOf(Value value, double factor = 1) {
    return arith::DivFOp::create(e.b, e.loc, e.f32(factor), value);
  }
  /// What numbers are multiplied by whose squares do not fit an f32.
  static constexpr double reduction = 0x1p-80;
  Value reduced(Value value, unsigned width) {
    return e.mul(value, e.splat(e.f32(reduction), width));
  }

  /// Whether `value`, which is not negative, is a number.
  Value isFinite(Value value) {
    return arith::CmpFOp::create(
        e.b, e.loc, arith::CmpFPredicate::OLE, value,
        e.f32(static_cast<double>(std::numeric_limits<float>::max())));
  }

  /// 1 / sqrt(mean of the squares of `value` + eps). Where the squares of a row
  /// are more than an f32 holds, they are summed up again of numbers that are
  /// smaller by a power of two: those that matter are 2^40 at least then.
  Value inverseRoot(const APFloat &eps,
                    function_ref<Value(Value, unsigned)> value) {
    auto squares = [&](bool areReduced) {
      return sum([&](Value column, unsigned width) {
        Value own = value(column, width);
        if (areReduced)
          own = reduced(own, width);
        return e.mul(own, own);
      });
    };
    auto inverse = [&](Value total, double factor) -> Value {
      Value mean = e.mul(total, inverseSize());
      Value least = e.f32(eps.convertToDouble() * factor * factor);
      return inverseOf(math::SqrtOp::create(e.b, e.loc, e.add(mean, least)),
                       factor);
    };
    Value total = squares(false);
    return e.ifElse(
        isFinite(total), [&] { return inverse(total, 1); },
        [&] { return inverse(squares(true), reduction); });
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
    return e.mul(e.mul(x, spread(0)), normWeight(e, norm, column, width, mask));
  auto norm = cast<LayerNormOp>(op);
  Value result = e.mul(e.mul(e.sub(x, spread(1)), spread(0)),
                       e.load(norm.getWeight(), column, width, mask));
  return norm.getBias()
             ? e.add(result, e.load(norm.getBias(), column, width, mask))
             : result;
}

Value mlir::kf::normWeight(TileEmitter &e, RmsNormOp op, Value column,
                           unsigned width, Value mask) {
  Value weight = e.load(op.getWeight(), column, width, mask);
  return op.getZeroCentered() ? e.add(weight, e.splat(e.f32(1.0), width))
                              : weight;
}

Value mlir::kf::addSink(TileEmitter &e, Value total, Value sinks, Value head,
                        Value maximum) {
  Value sink = e.load(sinks, head, 0);
  return e.add(total, math::ExpOp::create(e.b, e.loc, e.sub(sink, maximum)));
}

Value mlir::kf::nearestExpert(TileEmitter &e, ExpertMatmulOp op, Value token,
                              Value place) {
  auto limit = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        e.b, e.loc, e.b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  Value number = e.load(op.getExperts(), {token, place}, 0);
  number = arith::MaxSIOp::create(e.b, e.loc, number, limit(0));
  number =
      arith::MinSIOp::create(e.b, e.loc, number, limit(op.countExperts() - 1));
  return arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(), number);
}

/// The gate's result of its two products, which `clamp` bounds.
static Value clamped(TileEmitter &e, GluClampAttr clamp, Value gate, Value up) {
  auto number = [&](double value) { return constantLike(e, gate, value); };
  const double limit = clamp.getLimit().convertToDouble();
  const double alpha = clamp.getAlpha().convertToDouble();
  auto least = [&](Value x) -> Value {
    return arith::MinimumFOp::create(e.b, e.loc, x, number(limit));
  };
  gate = least(gate);
  up = least(arith::MaximumFOp::create(e.b, e.loc, up, number(-limit)));
  Value decay = math::ExpOp::create(e.b, e.loc, e.mul(gate, number(-alpha)));
  gate = arith::DivFOp::create(e.b, e.loc, gate, e.add(number(1.0), decay));
  return e.mul(gate, e.add(up, number(1.0)));
}

Value mlir::kf::finishProduct(TileEmitter &e, ProductOpInterface op,
                              ValueRange sums, Value column, unsigned width,
                              Value mask, Value expert) {
  auto finished = [&](int64_t group) -> Value {
    SmallVector<Value> indices;
    if (op.getGlu() || expert)
      indices.push_back(e.index(group));
    if (expert)
      indices.push_back(expert);
    indices.push_back(column);
    Value value = sums[group];
    if (Value scales = op.getWeightScales())
      value = e.mul(value, e.load(scales, indices, width, mask));
    if (op.getBias())
      value = e.add(value, e.load(op.getBias(), indices, width, mask));
    return value;
  };
  Value value = finished(0);
  if (!op.getGlu())
    return value;
  if (GluClampAttr clamp = op.getClampAttr())
    return clamped(e, clamp, value, finished(1));
  return e.mul(e.activate(*op.getGlu(), value), finished(1));
}
