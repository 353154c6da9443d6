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
  SmallVector<Value> offsets;
  weights = e.sourceMemref(op.getW(), offsets);
  Value firstPanel = arith::DivUIOp::create(b, loc, offsets[offsets.size() - 2],
                                            e.index(panel));
  Value panels = e.ceilDiv(e.sizesOf(op.getResult()).back(), panel);
  if (auto product = dyn_cast<ExpertMatmulOp>(op.getOperation()))
    return emitExperts(product, firstPanel, panels);
  rows = e.sizesOf(op.getX())[0];
  int64_t mostRows = llvm::alignTo(mostRowsOfGroup(), tileRows);
  mostTiles = mostRows / tileRows;
  computeRows(mostRows);
  computePanels(firstPanel, panels);
}

/// The rows of one expert after those of another. Panels of an expert lie
/// behind those of the one before.
void MatmulEmitter::emitExperts(ExpertMatmulOp product, Value firstPanel,
                                Value panels) {
  const int64_t mostRows = e.schedule.getTile()[2];
  mostTiles = mostRows / tileRows;
  experts.emplace(e, product, mostRowsOfGroup());
  Value panelsOfExpert = e.index(llvm::divideCeil(wholeColumns(), panel));
  experts->forRows(mostRows, [&](Value of, Value count) {
    expert = of;
    rows = count;
    computeRows(mostRows);
    computePanels(e.add(e.mul(expert, panelsOfExpert), firstPanel), panels);
  });
}

int64_t MatmulEmitter::mostRowsOfGroup() {
  ArrayRef<int64_t> workgroup = e.schedule.getWorkgroup();
  if (!workgroup.empty() && workgroup[0] != 0)
    return workgroup[0];
  return cast<RankedTensorType>(op.getX().getType()).getDimSize(0);
}

void MatmulEmitter::emitRow(Value row, KernelEmitter::StoreFn store) {
  SmallVector<Value> line = xRow(row);
  if (!op.getScales())
    return e.emitRow(op.getX(), line, store);
  constexpr int64_t unit = ::kf::PackedBlock::unit;
  e.loop(e.index(extent / unit), [&](Value number) {
    Value scale = e.load(op.getScales(), indicesAt(line, number), 0);
    Value first = e.mul(number, e.index(unit));
    e.forPiecesStatic(unit, [&](int64_t at, unsigned width) {
      Value column = e.add(first, e.index(at));
      Value codes = e.load(op.getX(), indicesAt(line, column), width);
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
  extent = cast<RankedTensorType>(op.getX().getType()).getShape().back();
  readLayout(getLayout(op.getW().getType()));
}

void MatmulEmitter::storeRow(
    Value row, Value p,
    function_ref<Value(int64_t group, int64_t vector)> sumOf) {
  Value result = e.tileResult();
  SmallVector<Value> at =
      experts ? experts->resultRow(row) : SmallVector<Value>{row};
  for (int64_t v = 0; v < panel / lanes; ++v) {
    Value column = e.add(e.mul(p, e.index(panel)), e.index(v * lanes));
    Value mask = columnMask(column);
    SmallVector<Value> sums;
    for (int64_t group = 0; group < groups; ++group)
      sums.push_back(sumOf(group, v));
    Value value = finishProduct(e, op, sums, column, lanes, mask, expert);
    e.define(op.getResult(),
             [value](ValueRange, unsigned, Value) { return value; });
    SmallVector<Value> place = indicesAt(at, column);
    e.storeResult(e.load(result, place, lanes, mask), place, mask);
  }
}

/// Which lanes are columns of the result; null where all are.
Value MatmulEmitter::columnMask(Value column) {
  Value columns = e.sizesOf(op.getResult()).back();
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
