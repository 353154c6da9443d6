//===- GPUMatmulEmitter.cpp - Matrix products on a GPU --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPUMatmulEmitter.h"
#include "TileIndices.h"

#include "../Units/RowRange.h"

#include "../../Common/RowFormulas.h"
#include "kf/Dialect/KF/IR/TensorBuilder.h"
#include "runtime/core/BlockFormat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

void GPUMatmulEmitter::emit() {
  extent = cast<RankedTensorType>(product.getX().getType()).getShape().back();
  SmallVector<Value> sizes = e.sizesOf(product.getResult());
  rows = sizes.front();
  columns = sizes.back();
  prepareInput();
  emitProduct();
}

/// Makes rows of x loadable; those of a norm by statistics in workgroup memory:
/// [rows][statistics].
void GPUMatmulEmitter::prepareInput() {
  if (e.isLoadable(op.getX()))
    return;
  Operation *norm = op.getX().getDefiningOp();
  Value memory =
      e.workgroupMemory(shape.rows * shape.statistics, b.getF32Type());
  auto place = [this](Value row, int64_t number) {
    return e.add(e.mul(row, e.index(shape.statistics)), e.index(number));
  };
  e.loop(rows, [&](Value row) {
    SmallVector<Value> statistics = rowStatistics(e, norm, row);
    e.onFirstThread([&] {
      for (auto [number, value] : llvm::enumerate(statistics))
        memref::StoreOp::create(b, loc, value, memory, place(row, number));
    });
  });
  e.barrier();
  e.define(op.getX(), [=, this](ValueRange indices, unsigned, Value) {
    SmallVector<Value> statistics;
    for (int64_t number = 0; number < shape.statistics; ++number)
      statistics.push_back(
          memref::LoadOp::create(b, loc, memory, place(indices[0], number)));
    return normalize(e, norm, statistics, indices, 0);
  });
}

Value GPUMatmulEmitter::loadX(Value row, Value k) {
  Value x = OutlierRows(e, op).load({row, k});
  if (!op.getScales())
    return x;
  Value unit = e.index(::kf::PackedBlock::unit);
  Value scale =
      e.load(op.getScales(), {row, arith::DivUIOp::create(b, loc, k, unit)}, 0);
  Value code = arith::ExtSIOp::create(b, loc, b.getI32Type(), x);
  return e.mul(arith::SIToFPOp::create(b, loc, b.getF32Type(), code), scale);
}

SmallVector<Value> GPUMatmulEmitter::groupIndices(int64_t group,
                                                  ValueRange indices) {
  SmallVector<Value> all(indices);
  if (shape.groups == 2)
    all.insert(all.begin(), e.index(group));
  return all;
}

void GPUMatmulEmitter::storeElement(Value row, Value column, ValueRange sums) {
  Value inside = arith::AndIOp::create(b, loc, e.isLess(row, rows),
                                       e.isLess(column, columns));
  e.ifThen(inside, [&] {
    Value value = finishElement(row, column, sums);
    e.storeResult(value, resultIndices(row, column));
  });
}

Value GPUMatmulEmitter::finishElement(Value row, Value column,
                                      ValueRange sums) {
  Value value = finishProduct(e, op, sums, column, 0);
  e.define(op.getResult(),
           [value](ValueRange, unsigned, Value) { return value; });
  return e.load(e.tileResult(), tileIndices(e, row, column), 0);
}

SmallVector<Value> mlir::kf::tileIndices(GPUEmitter &e, Value row,
                                         Value column) {
  auto type = cast<RankedTensorType>(e.tileResult().getType());
  SmallVector<Value> indices(type.getRank() - 2, e.index(0));
  indices.append({row, column});
  return indices;
}

WeightRows mlir::kf::findWeightRows(GPUEmitter &e, ProductOpInterface op) {
  Value weight = op.getW(), first = e.index(0);
  while (auto slice = weight.getDefiningOp<tensor::ExtractSliceOp>()) {
    first = e.add(first, e.index(slice.getMixedOffsets().end()[-2]));
    weight = slice.getSource();
  }
  return {cast<BlockArgument>(weight), first};
}

/// Has the one batch of the tile multiplied as matrices are.
static void multiplyBatch(GPUEmitter &e, BatchMatmulOp op) {
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPoint(op);
  TensorBuilder build(e.b, op.getLoc());
  const SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
  auto matrixOf = [&](Value batch) {
    auto type = cast<RankedTensorType>(batch.getType());
    Value matrix = build.reshape(batch, type.getShape().drop_front(), groups);
    e.define(matrix, [&e, batch](ValueRange at, unsigned, Value) {
      return e.load(batch, {e.index(0), at[0], at[1]}, 0);
    });
    return matrix;
  };
  Value product =
      MatmulOp::create(e.b, op.getLoc(), matrixOf(op.getX()),
                       matrixOf(op.getW()), Value(), ActivationKindAttr());
  auto type = cast<RankedTensorType>(op.getType());
  SmallVector<OpFoldResult> sizes;
  for (Value size : e.sizesOf(op.getResult()))
    sizes.push_back(getAsOpFoldResult(size));
  Value whole = tensor::ExpandShapeOp::create(e.b, op.getLoc(), type, product,
                                              groups, sizes);
  op->getResult(0).replaceAllUsesWith(whole);
}

void mlir::kf::emitGPUMatmul(GPUEmitter &emitter) {
  if (emitter.shape.mma && !emitter.find<MatmulOp>())
    multiplyBatch(emitter, emitter.find<BatchMatmulOp>());
  if (emitter.shape.stream)
    return emitStreamMatmul(emitter);
  if (emitter.shape.held)
    return emitHeldMatmul(emitter);
  if (emitter.shape.lanes)
    return emitLanesMatmul(emitter);
  if (emitter.shape.coop)
    return emitCoopMatmul(emitter);
  if (emitter.shape.mma)
    return emitMmaMatmul(emitter);
  return emitter.shape.sharing > 1 ? emitSharedMatmul(emitter)
                                   : emitStagedMatmul(emitter);
}
