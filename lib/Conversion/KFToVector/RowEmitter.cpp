//===- RowEmitter.cpp - Ops that compute rows -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Common/RopeFormulas.h"
#include "../Common/RowFormulas.h"
#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

void KernelEmitter::emitRow(Value tensor, ValueRange row, StoreFn store) {
  if (isLoadable(tensor)) {
    bool isScalar = cast<RankedTensorType>(tensor.getType()).getRank() == 0;
    Value size = isScalar ? index(1) : sizesOf(tensor).back();
    forPieces(size, [&](Value column, unsigned width) {
      SmallVector<Value> indices;
      if (!isScalar)
        indices = indicesAt(row, column);
      store(column, width, load(tensor, indices, width));
    });
    return;
  }
  Operation *op = tensor.getDefiningOp();
  // An elementwise op whose operands are not at hand: compute those first.
  if (isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (!isLoadable(operand))
        materializeRow(operand, row);
    return emitRow(tensor, row, store);
  }
  if (hasRowStatistics(op)) {
    prepareInput(op, row);
    defineNormalized(op, row);
    emitRow(tensor, row, store);
    return undefine(tensor);
  }
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return emitReduce(reduce, row, store);
  if (auto product = dyn_cast<BatchMatmulOp>(op))
    return emitBatchMatmul(product, row, store);
  prepareInput(op, row);
  emitRope(cast<RopeOp>(op), row, store);
}

void KernelEmitter::prepareRow(Value tensor, ValueRange row) {
  if (isLoadable(tensor))
    return;
  Operation *op = tensor.getDefiningOp();
  if (!hasRowStatistics(op))
    return materializeRow(tensor, row);
  prepareInput(op, row);
  defineNormalized(op, row);
}

/// Makes the elements of row `row` of the op's first operand loadable.
void KernelEmitter::prepareInput(Operation *op, ValueRange row) {
  Value input = op->getOperand(0);
  if (!isLoadable(input))
    materializeRow(input, row);
}

/// The row's statistics now; each element where it is loaded. Exponentials are
/// computed once.
void KernelEmitter::defineNormalized(Operation *op, ValueRange row) {
  Value result = op->getResult(0);
  if (isa<SoftmaxOp>(op)) {
    Value kept =
        scratch({cast<RankedTensorType>(result.getType()).getShape().back()});
    SmallVector<Value> statistics =
        rowStatistics(*this, op, row, [&](Value column, Value exponentials) {
          store(exponentials, kept, column);
        });
    define(result, [=, this, inverse = statistics[1]](
                       ValueRange indices, unsigned width, Value mask) {
      Value exponential = loadMemref(kept, indices.back(), width, mask);
      return mul(exponential, width ? splat(inverse, width) : inverse);
    });
    return;
  }
  define(result, [this, op, statistics = rowStatistics(*this, op, row)](
                     ValueRange indices, unsigned width, Value mask) {
    return normalize(*this, op, statistics, indices, width, mask);
  });
}

/// Computes a row into scratch, from where its elements are loaded until the
/// next row is.
void KernelEmitter::materializeRow(Value tensor, ValueRange row) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t extent = type.getRank() ? type.getShape().back() : 1;
  // A tile of a vector has no more elements than its loop steps over.
  if (ShapedType::isDynamic(extent))
    extent = *getConstantIntValue(forall.getMixedStep()[0]);
  Type element = type.getElementType();
  Value buffer = scratch({extent}, element.isInteger(1) ? b.getI8Type()
                                                        : computeType(element));
  emitRow(tensor, row, [&](Value column, unsigned, Value values) {
    store(values, buffer, column);
  });
  define(tensor, [=, this](ValueRange indices, unsigned width, Value mask) {
    return loadStored(element, buffer,
                      indices.empty() ? indices : indices.take_back(), width,
                      mask);
  });
}

//===----------------------------------------------------------------------===//
// Rotary embedding
//===----------------------------------------------------------------------===//

/// The op's frequencies, in memory.
Value KernelEmitter::frequencies(RopeOp op) {
  SmallVector<float> values = op.getFrequencies();
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    b.getF32Type());
  return constant(function.getName() + "_frequencies_" +
                      Twine(rotations.size()),
                  DenseElementsAttr::get(type, ArrayRef<float>(values)));
}

void KernelEmitter::beginToken(Value token) {
  for (RopeOp op : forall.getBody()->getOps<RopeOp>()) {
    int64_t half = op.getRotaryDim() / 2;
    auto &[cosines, sines] = rotations[op];
    if (!cosines) {
      cosines = scratch({half});
      sines = scratch({half});
    }
    SmallVector<Value> offsets;
    Value positions = sourceMemref(op.getPositions(), offsets);
    Value position =
        memref::LoadOp::create(b, loc, positions, add(offsets[0], token));
    position = arith::SIToFPOp::create(b, loc, b.getF32Type(), position);
    Value table = frequencies(op);
    Value cosTable = cosines, sinTable = sines;
    forPieces(index(half), [&](Value column, unsigned width) {
      Value frequency = loadMemref(table, column, width);
      if (Value factors = op.getFactors())
        frequency = arith::DivFOp::create(b, loc, frequency,
                                          load(factors, column, width));
      SinCos angle = sinCos(*this, mul(splat(position, width), frequency),
                            FmaRounding::Once);
      angle = scaled(*this, angle, op.getMagnitude());
      store(angle.cosine, cosTable, column);
      store(angle.sine, sinTable, column);
    });
  }
}

void KernelEmitter::emitRope(RopeOp op, ValueRange row, StoreFn store) {
  auto [cosines, sines] = rotations.lookup(op);
  assert(cosines && "beginToken computes the angles of a token first");
  int64_t rotary = op.getRotaryDim(), half = rotary / 2;
  auto element = [&](Value column, unsigned width) {
    return load(op.getX(), indicesAt(row, column), width);
  };
  Value cosTable = cosines, sinTable = sines;
  auto angle = [&](Value column, unsigned width) -> SinCos {
    return {loadMemref(sinTable, column, width),
            loadMemref(cosTable, column, width)};
  };
  forPieces(index(half), [&](Value column, unsigned width) {
    if (op.getStyle() == RopeStyle::Half) {
      Value second = add(column, index(half));
      auto [x, y] = rotate(*this, element(column, width),
                           element(second, width), angle(column, width));
      store(column, width, x);
      store(second, width, y);
      return;
    }
    Value first = mul(column, index(2));
    Value pairs = element(first, 2 * width);
    auto parts = vector::DeinterleaveOp::create(b, loc, pairs);
    auto [x, y] = rotate(*this, parts.getResult(0), parts.getResult(1),
                         angle(column, width));
    store(first, 2 * width, vector::InterleaveOp::create(b, loc, x, y));
  });
  int64_t extent = cast<RankedTensorType>(op.getType()).getDimSize(2);
  forPieces(index(extent - rotary), [&](Value column, unsigned width) {
    Value position = add(column, index(rotary));
    store(position, width, element(position, width));
  });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void mlir::kf::emitRowKernel(KernelEmitter &e) {
  Value result = e.tileResult();
  if (auto product = result.getDefiningOp<BatchMatmulOp>();
      product && e.isLoadable(product.getX()))
    return e.emitBatchMatmulTile(product);
  SmallVector<Value> sizes = e.sizesOf(result);
  bool isScalar = sizes.empty();
  if (!isScalar)
    sizes.pop_back();
  auto emitRow = [&](ValueRange row) {
    e.emitRow(result, row, [&](Value column, unsigned, Value values) {
      e.storeResult(values,
                    isScalar ? SmallVector<Value>() : indicesAt(row, column));
    });
  };
  // Rotary angles are shared among the heads of a token.
  e.forRows(sizes, emitRow, [&](Value token) { e.beginToken(token); });
}

/// Where element `i` of a panel row is stored; see #kf.layout.
static Value packedColumn(KernelEmitter &e, LayoutAttr layout, Value i) {
  int64_t half = layout.getInterleave();
  if (half == 0)
    return i;
  auto divide = [&](Value value, int64_t by) -> Value {
    return arith::DivUIOp::create(e.b, e.loc, value, e.index(by));
  };
  auto remainder = [&](Value value, int64_t by) -> Value {
    return arith::RemUIOp::create(e.b, e.loc, value, e.index(by));
  };
  // 2 * half elements: the first half at even places, the second at odd ones.
  Value at = remainder(i, 2 * half);
  Value pair = e.add(e.mul(remainder(at, half), e.index(2)), divide(at, half));
  return e.add(e.sub(i, at), pair);
}

void mlir::kf::emitPackKernel(KernelEmitter &e) {
  auto op = e.find<PackOp>();
  auto type = cast<RankedTensorType>(op.getType());
  LayoutAttr layout = getLayout(type);
  int64_t rank = type.getRank(), panel = layout.getPanel();
  OpBuilder &b = e.b;
  Location loc = e.loc;
  SmallVector<Value> sizes = e.sizesOf(op.getSource());
  Value firstRow = e.tileOffsets()[rank - 2], rows = sizes[rank - 2];
  Value firstPanel = arith::DivUIOp::create(b, loc, firstRow, e.index(panel));
  Value groups = rank >= 3 ? sizes[0] : e.index(1);
  Value experts = rank == 4 ? sizes[1] : e.index(1);
  auto whole = cast<RankedTensorType>(e.kernel.getResultTypes()[0]);
  Value ofExpert = e.index(llvm::divideCeil(whole.getDimSize(rank - 2), panel));
  Value result = e.resultStorage();
  auto packElement = [&](Value p, Value group, Value expert, Value k, Value i) {
    Value row = e.add(e.mul(p, e.index(panel)), i);
    Value inside = e.isLess(row, rows);
    SmallVector<Value> source = {e.select(inside, row, e.index(0)), k};
    if (rank == 4)
      source.insert(source.begin(), expert);
    if (rank >= 3)
      source.insert(source.begin(), group);
    Value value =
        e.select(inside, e.load(op.getSource(), source, 0), e.f32(0.0));
    Value place = e.add(e.mul(expert, ofExpert), e.add(firstPanel, p));
    e.store(value, result, {place, group, k, packedColumn(e, layout, i)});
  };
  e.loop(experts, [&](Value expert) {
    e.loop(e.ceilDiv(rows, panel), [&](Value p) {
      e.loop(groups, [&](Value group) {
        e.loop(sizes[rank - 1], [&](Value k) {
          e.loop(e.index(panel),
                 [&](Value i) { packElement(p, group, expert, k, i); });
        });
      });
    });
  });
}
