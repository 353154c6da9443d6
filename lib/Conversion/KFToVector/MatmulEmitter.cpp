//===- MatmulEmitter.cpp - Matrix products --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"

#include "../Common/RowFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

void MatmulEmitter::emit() {
  readSchedule();
  SmallVector<Value> sizes = e.sizesOf(op.getX());
  rows = sizes[0];
  SmallVector<Value> offsets;
  weights = e.sourceMemref(op.getW(), offsets);
  Value firstPanel = arith::DivUIOp::create(b, loc, offsets[offsets.size() - 2],
                                            e.index(panel));

  int64_t most =
      e.schedule.getWorkgroup().empty() ? 0 : e.schedule.getWorkgroup()[0];
  if (most == 0)
    most = cast<RankedTensorType>(op.getX().getType()).getDimSize(0);
  int64_t mostRows = llvm::alignTo(most, tileRows);
  mostTiles = mostRows / tileRows;
  computeRows(mostRows);

  computePanels(firstPanel, e.ceilDiv(e.sizesOf(op.getResult())[1], panel));
}

void MatmulEmitter::emitRow(Value row, KernelEmitter::StoreFn store) {
  if (!op.getScales())
    return e.emitRow(op.getX(), row, store);
  constexpr int64_t unit = ::kf::PackedBlock::unit;
  e.loop(e.index(extent / unit), [&](Value number) {
    Value scale = e.load(op.getScales(), {row, number}, 0);
    Value first = e.mul(number, e.index(unit));
    e.forPiecesStatic(unit, [&](int64_t at, unsigned width) {
      Value column = e.add(first, e.index(at));
      Value codes = e.load(op.getX(), {row, column}, width);
      Value floats =
          arith::SIToFPOp::create(b, loc, e.vectorType(width), codes);
      store(column, width, e.mul(floats, e.splat(scale, width)));
    });
  });
}

/// Reads what verifyVectorSchedule() has checked.
void MatmulEmitter::readSchedule() {
  tileRows = e.schedule.getTile()[0];
  panel = e.schedule.getTile()[1];
  lanes = e.lanes;
  groups = op.getGlu() ? 2 : 1;
  extent = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  readLayout(getLayout(op.getW().getType()));
}

void MatmulEmitter::storeRow(
    Value row, Value p,
    function_ref<Value(int64_t group, int64_t vector)> sumOf) {
  Value result = e.tileResult();
  for (int64_t v = 0; v < panel / lanes; ++v) {
    Value column = e.add(e.mul(p, e.index(panel)), e.index(v * lanes));
    Value mask = columnMask(column);
    SmallVector<Value> sums;
    for (int64_t group = 0; group < groups; ++group)
      sums.push_back(sumOf(group, v));
    Value value = finishProduct(e, op, sums, column, lanes, mask);
    e.define(op.getResult(),
             [value](ValueRange, unsigned, Value) { return value; });
    e.storeResult(e.load(result, {row, column}, lanes, mask), {row, column},
                  mask);
  }
}

/// Which lanes are columns of the result; null where all are.
Value MatmulEmitter::columnMask(Value column) {
  Value columns = e.sizesOf(op.getResult())[1];
  std::optional<int64_t> extent = getConstantIntValue(columns);
  if (extent && *extent % panel == 0)
    return Value();
  int64_t total = wholeColumns();
  if (!extent && total % panel == 0)
    return Value();
  return vector::CreateMaskOp::create(b, loc,
                                      e.vectorType(lanes, b.getI1Type()),
                                      ValueRange{e.sub(columns, column)});
}

int64_t MatmulEmitter::wholeColumns() {
  Value w = op.getW();
  while (auto slice = w.getDefiningOp<tensor::ExtractSliceOp>())
    w = slice.getSource();
  auto type = cast<RankedTensorType>(w.getType());
  return type.getDimSize(type.getRank() - 2);
}

//===----------------------------------------------------------------------===//
// Interleaved panels of bf16
//===----------------------------------------------------------------------===//

Value MatmulEmitter::splatBits(uint32_t bits) {
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(bitsType(),
                             b.getI32IntegerAttr(static_cast<int32_t>(bits))));
}

Value MatmulEmitter::loadHalves(ValueRange indices) {
  Value halves = vector::LoadOp::create(
      b, loc, e.vectorType(2 * lanes, b.getBF16Type()), weights, indices);
  return vector::BitCastOp::create(b, loc, bitsType(), halves);
}

Value MatmulEmitter::lowerAsFloat(Value bits) {
  return arith::ShLIOp::create(b, loc, bits, splatBits(16));
}

Value MatmulEmitter::upperAsFloat(Value bits) {
  return arith::AndIOp::create(b, loc, bits, splatBits(0xffff0000u));
}

Value MatmulEmitter::lowFromHigh(Value bits) {
  return arith::ShRUIOp::create(b, loc, bits, splatBits(16));
}

std::array<Value, 2> MatmulEmitter::pairRows(Value even, Value odd) {
  Value low = arith::AndIOp::create(b, loc, even, splatBits(0xffff));
  Value lows = arith::OrIOp::create(b, loc, low, lowerAsFloat(odd));
  return {lows,
          arith::OrIOp::create(b, loc, lowFromHigh(even), upperAsFloat(odd))};
}
