//===- RowQuantizer.cpp - Rows in 8 bits ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowQuantizer.h"

#include "../Common/BlockRounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Elements that share a scale.
constexpr int64_t unit = ::kf::PackedBlock::unit;

class RowQuantizer {
public:
  RowQuantizer(KernelEmitter &e, Value x, Value row, int64_t group,
               const QuantizedRows &into)
      : e(e), b(e.b), loc(e.loc), lanes(e.lanes), x(x), row(row), group(group),
        into(into), target(e.add(into.firstRow, row)) {}

  /// Unit `u` of the row: x = scale * code, |code| <= 127.
  void quantize(Value u) {
    Value k = e.mul(u, e.index(unit));
    SmallVector<Value> values;
    Value largest;
    // As integers, magnitudes are in the same order, and a NaN is the largest.
    VectorType type = e.vectorType(lanes, b.getI32Type());
    Value magnitude = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getI32IntegerAttr(0x7fffffff)));
    for (int64_t at = 0; at < unit; at += lanes) {
      values.push_back(e.load(x, {row, e.add(k, e.index(at))}, lanes));
      Value bits = arith::AndIOp::create(
          b, loc, vector::BitCastOp::create(b, loc, type, values.back()),
          magnitude);
      largest =
          largest ? arith::MaxSIOp::create(b, loc, largest, bits) : Value(bits);
    }
    Value mostBits = vector::ReductionOp::create(
        b, loc, vector::CombiningKind::MAXSI, largest);
    Value most = arith::BitcastOp::create(b, loc, b.getF32Type(), mostBits);
    RowScale scale = rowScale(e, most);
    memref::StoreOp::create(b, loc, scale.scale, into.scales,
                            ValueRange{target, u});
    round(u, k, values, scale);
  }

private:
  /// Codes of the unit's `values`, and the sums of its groups.
  void round(Value u, Value k, ArrayRef<Value> values, const RowScale &scale) {
    Value total;
    for (auto [i, value] : llvm::enumerate(values)) {
      Value integers = roundToRowCodes(e, value, scale, lanes);
      Value bytes = arith::TruncIOp::create(
          b, loc, e.vectorType(lanes, b.getI8Type()), integers);
      int64_t at = i * lanes;
      vector::StoreOp::create(b, loc, bytes, into.codes,
                              ValueRange{target, e.add(k, e.index(at))});
      total = total ? arith::AddIOp::create(b, loc, total, integers).getResult()
                    : integers;
      if ((at + lanes) % group != 0)
        continue;
      Value sum = vector::ReductionOp::create(
          b, loc, vector::CombiningKind::ADD, total);
      Value number =
          e.add(e.mul(u, e.index(unit / group)), e.index(at / group));
      memref::StoreOp::create(b, loc, sum, into.sums,
                              ValueRange{target, number});
      total = Value();
    }
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  int64_t lanes;
  Value x, row;
  int64_t group;
  const QuantizedRows &into;
  Value target; // the row of `into`
};

} // namespace

LogicalResult mlir::kf::quantizeRow(KernelEmitter &e, Value x, Value row,
                                    int64_t group, const QuantizedRows &into) {
  // What is prepared holds in the body of the loop over rows alone.
  bool isPrepared = !e.isLoadable(x);
  if (failed(e.prepareRow(x, row)))
    return failure();
  int64_t extent = cast<RankedTensorType>(x.getType()).getDimSize(1);
  RowQuantizer quantizer(e, x, row, group, into);
  e.loop(e.index(extent / unit), [&](Value u) { quantizer.quantize(u); });
  if (isPrepared)
    e.undefine(x);
  return success();
}

LogicalResult mlir::kf::emitQuantizeRowsKernel(KernelEmitter &e) {
  auto op = e.find<QuantizeRowsOp>();
  if (failed(e.checkResults(op)))
    return failure();
  QuantizedRows rows = {e.resultStorage(0), e.resultStorage(1),
                        e.resultStorage(2), e.tileOffsets()[0]};
  LogicalResult result = success();
  e.loop(e.sizesOf(op.getX())[0], [&](Value row) {
    result = quantizeRow(e, op.getX(), row, op.getGroup(), rows);
  });
  return result;
}
