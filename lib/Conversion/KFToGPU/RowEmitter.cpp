//===- RowEmitter.cpp - Elementwise ops and ops that reduce rows ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where every element of the tile can be had alone, threads stride over all of
// them. Otherwise the workgroup takes one row after another: a tree in
// workgroup memory reduces it, and threads stride over its columns.
//
//===----------------------------------------------------------------------===//

#include "GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

LogicalResult GPUEmitter::prepareRow(Value tensor, ValueRange row) {
  if (isLoadable(tensor))
    return success();
  Operation *op = tensor.getDefiningOp();
  if (isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (failed(prepareRow(operand, row)))
        return failure();
    return success();
  }
  if (!isa<RmsNormOp, LayerNormOp, SoftmaxOp>(op))
    return op->emitOpError("convert-kf-to-gpu: no GPU code for this op yet; "
                           "--device=cpu and --device=reference compute it");
  if (failed(prepareRow(op->getOperand(0), row)))
    return failure();
  SmallVector<Value> statistics = rowStatistics(op, row);
  define(tensor, [=, this](ValueRange indices, unsigned, Value) {
    return normalize(op, indices, statistics);
  });
  return success();
}

SmallVector<Value> GPUEmitter::rowStatistics(Operation *op, ValueRange row) {
  Value x = op->getOperand(0), size = sizesOf(x).back();
  auto sum = [&](function_ref<Value(Value)> element) {
    return reduce(
        size, f32(0.0), [&](Value lhs, Value rhs) { return add(lhs, rhs); },
        element);
  };
  auto element = [&](Value column) {
    return load(x, indicesAt(row, column), 0);
  };
  auto divide = [&](Value lhs, Value rhs) -> Value {
    return arith::DivFOp::create(b, loc, lhs, rhs);
  };
  if (isa<SoftmaxOp>(op)) {
    Value lowest = f32(-std::numeric_limits<double>::infinity());
    Value largest = reduce(
        size, lowest,
        [&](Value lhs, Value rhs) -> Value {
          return arith::MaximumFOp::create(b, loc, lhs, rhs);
        },
        element);
    Value total = sum([&](Value column) -> Value {
      return math::ExpOp::create(b, loc, sub(element(column), largest));
    });
    return {largest, divide(f32(1.0), total)};
  }

  double extent = *getConstantIntValue(size);
  Value inverse = f32(1.0 / extent);
  auto scale = [&](Value meanSquare, const APFloat &eps) {
    Value root = math::SqrtOp::create(
        b, loc, add(meanSquare, f32(eps.convertToDouble())));
    return divide(f32(1.0), root);
  };
  if (auto norm = dyn_cast<RmsNormOp>(op)) {
    Value squares = sum([&](Value column) {
      Value value = element(column);
      return mul(value, value);
    });
    return {scale(mul(squares, inverse), norm.getEps())};
  }
  auto norm = cast<LayerNormOp>(op);
  Value mean = mul(sum(element), inverse);
  Value squares = sum([&](Value column) {
    Value centered = sub(element(column), mean);
    return mul(centered, centered);
  });
  return {scale(mul(squares, inverse), norm.getEps()), mean};
}

Value GPUEmitter::normalize(Operation *op, ValueRange indices,
                            ValueRange statistics) {
  Value x = load(op->getOperand(0), indices, 0), column = indices.back();
  if (isa<SoftmaxOp>(op)) {
    Value exp = math::ExpOp::create(b, loc, sub(x, statistics[0]));
    return mul(exp, statistics[1]);
  }
  if (auto norm = dyn_cast<RmsNormOp>(op))
    return mul(mul(x, statistics[0]), load(norm.getWeight(), column, 0));
  auto norm = cast<LayerNormOp>(op);
  Value result = mul(mul(sub(x, statistics[1]), statistics[0]),
                     load(norm.getWeight(), column, 0));
  return norm.getBias() ? add(result, load(norm.getBias(), column, 0)) : result;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// All elements of the tile, one after another.
static void emitElements(GPUEmitter &e, Value tensor) {
  SmallVector<Value> sizes = e.sizesOf(tensor);
  Value count = e.index(1);
  for (Value size : sizes)
    count = e.mul(count, size);
  e.forThreads(count, [&](Value linear) {
    SmallVector<Value> indices(sizes.size());
    for (size_t dim = sizes.size(); dim-- > 1;) {
      indices[dim] = arith::RemUIOp::create(e.b, e.loc, linear, sizes[dim]);
      linear = arith::DivUIOp::create(e.b, e.loc, linear, sizes[dim]);
    }
    indices[0] = linear;
    e.storeResult(e.load(tensor, indices, 0), indices);
  });
}

LogicalResult mlir::kf::emitGPURows(GPUEmitter &e) {
  Value tensor = e.tileResult();
  if (!tensor)
    return e.kernel.emitError("convert-kf-to-gpu: kernel has no result");
  if (e.isLoadable(tensor)) {
    emitElements(e, tensor);
    return success();
  }
  SmallVector<Value> sizes = e.sizesOf(tensor);
  return e.forRows(ArrayRef(sizes).drop_back(), [&](ValueRange row) {
    if (failed(e.prepareRow(tensor, row)))
      return failure();
    e.forThreads(sizes.back(), [&](Value column) {
      SmallVector<Value> indices = indicesAt(row, column);
      e.storeResult(e.load(tensor, indices, 0), indices);
    });
    return success();
  });
}

LogicalResult mlir::kf::emitGPUArgmax(GPUEmitter &e) {
  auto op = e.find<ArgmaxOp>();
  Value logits = op.getLogits();
  if (e.tileResult() != op.getResult())
    return op.emitOpError("convert-kf-to-gpu: must make the kernel's result");
  OpBuilder &b = e.b;
  Location loc = e.loc;
  SmallVector<Value> sizes = e.sizesOf(logits);
  return e.forRows(sizes[0], [&](ValueRange row) {
    if (failed(e.prepareRow(logits, row)))
      return failure();
    auto element = [&](Value column) {
      return e.load(logits, indicesAt(row, column), 0);
    };
    Value largest = e.reduce(
        sizes[1], e.f32(-std::numeric_limits<double>::infinity()),
        [&](Value lhs, Value rhs) -> Value {
          return arith::MaxNumFOp::create(b, loc, lhs, rhs);
        },
        element);
    // The lowest index that holds the largest value; 0 in a row of NaNs.
    auto integer = [&](Value value) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
    };
    Value none = integer(sizes[1]);
    Value found = e.reduce(
        sizes[1], none,
        [&](Value lhs, Value rhs) -> Value {
          return arith::MinUIOp::create(b, loc, lhs, rhs);
        },
        [&](Value column) {
          Value equal = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                              element(column), largest);
          return e.select(equal, integer(column), none);
        });
    Value isNone =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, found, none);
    found = e.select(isNone, integer(e.index(0)), found);
    e.ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, e.thread,
                                   e.index(0)),
             [&] { e.storeResult(found, row); });
    return success();
  });
}
