//===- RowReductions.cpp - Elementwise ops and ops that reduce rows -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where every element of the tile can be had alone, threads stride over all of
// them. Otherwise the workgroup takes one row after another: threads stride
// over its columns, and what they found is reduced by shuffles, where there are
// warps, or by a tree in workgroup memory.
//
//===----------------------------------------------------------------------===//

#include "../../Common/RowFormulas.h"
#include "../GPUEmitter.h"

#include "kf/Conversion/KernelLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

void GPUEmitter::prepareRow(Value tensor, ValueRange row) {
  if (isLoadable(tensor))
    return;
  Operation *op = tensor.getDefiningOp();
  if (isElementwise(op)) {
    for (Value operand : op->getOperands())
      prepareRow(operand, row);
    return;
  }
  if (auto rope = dyn_cast<RopeOp>(op)) {
    prepareRow(rope.getX(), row);
    return defineRope(rope);
  }
  holdRow(op->getOperand(0), row);
  prepareRow(op->getOperand(0), row);
  SmallVector<Value> statistics = rowStatistics(*this, op, row);
  define(tensor, [=, this](ValueRange indices, unsigned, Value) {
    return normalize(*this, op, statistics, indices, 0);
  });
}

void GPUEmitter::withRow(Value size, function_ref<void()> body) {
  if (isOneBatch(size))
    rowBatch = wholeBatch(size);
  body();
  rowBatch.reset();
}

/// Reads the row's elements of `tensor` that are this thread's, where those of
/// its producers do not change and a batch has them all.
void GPUEmitter::holdRow(Value tensor, ValueRange row) {
  Operation *op = tensor.getDefiningOp();
  if (!rowBatch || !op || !isLoadable(tensor) ||
      !(isElementwise(op) || isa<tensor::ExtractSliceOp>(op)))
    return;
  SmallVector<Value> values;
  for (Value column : rowBatch->numbers)
    values.push_back(load(tensor, indicesAt(row, column), 0));
  defineHeld(tensor, rowBatch->numbers, values);
}

/// Other columns than `columns` are read from where they are.
void GPUEmitter::defineHeld(Value tensor, ArrayRef<Value> columns,
                            ArrayRef<Value> values) {
  define(tensor,
         [=, this, columns = SmallVector<Value>(columns),
          values = SmallVector<Value>(values)](ValueRange indices, unsigned,
                                               Value) -> Value {
           auto it = llvm::find(columns, indices.back());
           if (it != columns.end())
             return values[it - columns.begin()];
           undefine(tensor);
           Value read = load(tensor, indices, 0);
           defineHeld(tensor, columns, values);
           return read;
         });
}

Value GPUEmitter::reduceRow(Value size, vector::CombiningKind kind,
                            function_ref<Value(Value, unsigned)> element) {
  Value neutral = f32(kind == vector::CombiningKind::ADD
                          ? 0.0
                          : -std::numeric_limits<double>::infinity());
  return reduce(
      size, neutral,
      [&](Value lhs, Value rhs) {
        return vector::makeArithReduction(b, loc, kind, lhs, rhs);
      },
      [&](Value column) { return element(column, 0); });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Stores the elements of `tensor` that a thread has a batch of, once all of
/// them are read.
static void storeBatch(GPUEmitter &e, Value tensor,
                       const GPUEmitter::Batch &batch,
                       ArrayRef<SmallVector<Value>> indices) {
  SmallVector<Value> values;
  for (ArrayRef<Value> own : indices)
    values.push_back(e.load(tensor, own, 0));
  for (auto [i, own] : llvm::enumerate(indices)) {
    auto store = [&, i = i, own = ArrayRef<Value>(own)] {
      e.storeResult(values[i], own);
    };
    if (Value isInside = batch.isInside[i])
      e.ifThen(isInside, store);
    else
      store();
  }
}

/// All elements of the tile, one after another.
static void emitElements(GPUEmitter &e, Value tensor) {
  SmallVector<Value> sizes = e.sizesOf(tensor);
  Value count = e.index(1);
  for (Value size : sizes)
    count = e.mul(count, size);
  auto indicesOf = [&](Value linear) {
    SmallVector<Value> indices(sizes.size());
    for (size_t dim = sizes.size(); dim-- > 1;) {
      indices[dim] = arith::RemUIOp::create(e.b, e.loc, linear, sizes[dim]);
      linear = arith::DivUIOp::create(e.b, e.loc, linear, sizes[dim]);
    }
    if (!indices.empty())
      indices[0] = linear;
    return indices;
  };
  e.forBatches(count, {}, [&](const GPUEmitter::Batch &batch, ValueRange) {
    SmallVector<SmallVector<Value>> indices;
    for (Value number : batch.numbers)
      indices.push_back(indicesOf(number));
    storeBatch(e, tensor, batch, indices);
    return SmallVector<Value>();
  });
}

/// A reduction whose elements all threads have together, one after another.
static void emitReduction(GPUEmitter &e) {
  Value tensor = e.tileResult();
  // A tile that is the whole result may leave the reduction outside.
  ReduceOp op =
      findSharedReduction(tensor.getDefiningOp()->getParentOfType<KernelOp>());
  Value x = op.getX();
  Type element =
      e.computeType(cast<RankedTensorType>(x.getType()).getElementType());
  Value neutral =
      arith::ConstantOp::create(e.b, e.loc, neutralOf(op.getKind(), element));
  SmallVector<Value> sizes = e.sizesOf(x);
  const size_t kept = sizes.size() - op.getDims().size();
  Value count = sizes[kept];
  for (Value size : ArrayRef(sizes).drop_front(kept + 1))
    count = e.mul(count, size);
  e.forRows(e.sizesOf(tensor), [&](ValueRange indices) {
    auto load = [&](Value number) {
      SmallVector<Value> at(sizes.size());
      llvm::copy(indices.take_front(kept), at.begin());
      for (size_t dim = sizes.size(); dim-- > kept + 1;) {
        at[dim] = arith::RemUIOp::create(e.b, e.loc, number, sizes[dim]);
        number = arith::DivUIOp::create(e.b, e.loc, number, sizes[dim]);
      }
      at[kept] = number;
      return e.load(x, at, 0);
    };
    auto combined = [&](Value lhs, Value rhs) {
      return combine(e, op.getKind(), lhs, rhs);
    };
    Value total = e.reduce(count, neutral, combined, load);
    if (op.getKind() == ReduceKind::Mean)
      total = arith::DivFOp::create(e.b, e.loc, total, e.countReduced(op));
    e.define(op.getResult(),
             [total](ValueRange, unsigned, Value) { return total; });
    e.onFirstThread(
        [&] { e.storeResult(e.load(tensor, indices, 0), indices); });
  });
}

void mlir::kf::emitGPURows(GPUEmitter &e) {
  if (e.shape.sharing > 1)
    return emitReduction(e);
  Value tensor = e.tileResult();
  if (e.isLoadable(tensor))
    return emitElements(e, tensor);
  SmallVector<Value> sizes = e.sizesOf(tensor);
  e.forRows(ArrayRef(sizes).drop_back(), [&](ValueRange row) {
    e.withRow(sizes.back(), [&] {
      e.prepareRow(tensor, row);
      e.forBatches(sizes.back(), {},
                   [&](const GPUEmitter::Batch &batch, ValueRange) {
                     SmallVector<SmallVector<Value>> indices;
                     for (Value column : batch.numbers)
                       indices.push_back(indicesAt(row, column));
                     storeBatch(e, tensor, batch, indices);
                     return SmallVector<Value>();
                   });
    });
  });
}

void mlir::kf::emitGPUArgmax(GPUEmitter &e) {
  auto op = e.find<ArgmaxOp>();
  Value logits = op.getLogits();
  OpBuilder &b = e.b;
  Location loc = e.loc;
  SmallVector<Value> sizes = e.sizesOf(logits);
  e.forRows(sizes[0], [&](ValueRange row) {
    e.prepareRow(logits, row);
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
    e.onFirstThread([&] { e.storeResult(found, row); });
  });
}
