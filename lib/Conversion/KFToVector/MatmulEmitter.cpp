//===- MatmulEmitter.cpp - Register-blocked matrix products ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of x are computed once for a workgroup into scratch (normalized or
// converted on the way); the packed weight is read panel by panel. A register
// tile holds rows x panel of the result while it runs over all of K: one
// vector load (and conversion) of the panel row, one broadcast and one fused
// multiply-add a row and vector (Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", 2008). With one row, `accumulators`
// partial sums hide the latency of the additions.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class MatmulEmitter {
public:
  explicit MatmulEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<MatmulOp>()) {}

  LogicalResult emit() {
    if (failed(check()))
      return failure();
    SmallVector<Value> sizes = e.sizesOf(op.getX());
    rows = sizes[0];
    SmallVector<Value> offsets;
    weights = e.sourceMemref(op.getW(), offsets);
    firstPanel = arith::DivUIOp::create(b, loc, offsets[offsets.size() - 2],
                                        e.index(panel));
    if (failed(computeRows()))
      return failure();

    Value panels = e.ceilDiv(e.sizesOf(op.getResult())[1], panel);
    Value tiles = e.ceilDiv(rows, tileRows);
    e.loop(panels, [&](Value p) {
      e.loop(tiles, [&](Value tile) { emitTile(tile, p); });
    });
    return success();
  }

private:
  LogicalResult check() {
    auto fail = [&](const Twine &message) {
      return op.emitOpError("convert-kf-to-vector: " + message);
    };
    LayoutAttr layout = getLayout(op.getW().getType());
    if (!layout)
      return fail("weight is not packed; run kf-pack-weights first");
    ArrayRef<int64_t> tile = e.schedule.getTile();
    if (tile.size() != 2)
      return fail("schedule needs tile = [rows, columns]");
    tileRows = tile[0];
    panel = tile[1];
    lanes = e.lanes;
    if (layout.getPanel() != panel || panel % lanes != 0)
      return fail("tile columns (" + Twine(panel) +
                  ") must be the weight's panel (" + Twine(layout.getPanel()) +
                  ") and a multiple of the vector's lanes (" + Twine(lanes) +
                  ")");
    if (layout.getInterleave() != 0 && layout.getInterleave() != lanes)
      return fail("weight is interleaved by " + Twine(layout.getInterleave()) +
                  " lanes, but the vector has " + Twine(lanes));
    interleaved = layout.getInterleave() != 0;
    groups = op.getGlu() ? 2 : 1;
    extent = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
    unroll = std::min<int64_t>(e.schedule.getUnroll(), extent);
    sums = std::min<int64_t>(e.schedule.getAccumulators(), unroll);
    int64_t tileColumns =
        e.schedule.getWorkgroup().size() > 1 ? e.schedule.getWorkgroup()[1] : 0;
    if (tileColumns % panel != 0)
      return fail("workgroup columns (" + Twine(tileColumns) +
                  ") must be a multiple of tile columns (" + Twine(panel) +
                  ")");
    return success();
  }

  /// Computes the tile's rows of x into scratch.
  LogicalResult computeRows() {
    int64_t most =
        e.schedule.getWorkgroup().empty() ? 0 : e.schedule.getWorkgroup()[0];
    if (most == 0)
      most = cast<RankedTensorType>(op.getX().getType()).getDimSize(0);
    if (ShapedType::isDynamic(most))
      return op.emitOpError("convert-kf-to-vector: schedule needs a workgroup "
                            "tile of the rows");
    most = llvm::alignTo(most, tileRows);
    // A stride that is not a power of two keeps rows apart in the cache.
    int64_t stride = tileRows == 1 ? extent : llvm::alignTo(extent, 16) + 16;
    x = e.scratch({most, stride});
    LogicalResult result = success();
    e.loop(rows, [&](Value row) {
      result =
          e.emitRow(op.getX(), row, [&](Value column, unsigned, Value values) {
            e.store(values, x, {row, column});
          });
    });
    return result;
  }

  /// Vectors of row `k` of the panel, one a group and `lanes` columns.
  SmallVector<Value> loadPanelRow(Value p, Value k) {
    SmallVector<Value> vectors;
    Type element = cast<MemRefType>(weights.getType()).getElementType();
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t column = 0; column < panel;
           column += interleaved ? 2 * lanes : lanes) {
        SmallVector<Value> indices = {p, e.index(group), k, e.index(column)};
        if (!interleaved) {
          vectors.push_back(e.loadMemref(weights, indices, lanes));
          continue;
        }
        // Low and high halves of 32-bit lanes are f32's upper 16 bits.
        Value pairs = vector::LoadOp::create(
            b, loc, e.vectorType(2 * lanes, element), weights, indices);
        VectorType bitsType = e.vectorType(lanes, b.getI32Type());
        Value bits = vector::BitCastOp::create(b, loc, bitsType, pairs);
        auto constant = [&](uint32_t value) -> Value {
          return arith::ConstantOp::create(
              b, loc,
              DenseElementsAttr::get(
                  bitsType, b.getI32IntegerAttr(static_cast<int32_t>(value))));
        };
        Value low = arith::ShLIOp::create(b, loc, bits, constant(16));
        Value high = arith::AndIOp::create(b, loc, bits, constant(0xffff0000u));
        for (Value half : {low, high})
          vectors.push_back(
              vector::BitCastOp::create(b, loc, e.vectorType(lanes), half));
      }
    }
    return vectors;
  }

  /// Adds x[rows, k] * w[k, panel] to the partial sums `into`.
  void step(Value p, Value firstRow, Value k, MutableArrayRef<Value> into) {
    SmallVector<Value> w = loadPanelRow(p, k);
    size_t next = 0;
    for (int64_t row = 0; row < tileRows; ++row) {
      Value scalar = memref::LoadOp::create(
          b, loc, x, ValueRange{e.add(firstRow, e.index(row)), k});
      Value broadcast = e.splat(scalar, lanes);
      for (Value column : w) {
        into[next] =
            vector::FMAOp::create(b, loc, broadcast, column, into[next]);
        ++next;
      }
    }
  }

  void emitTile(Value tile, Value p) {
    Value firstRow = e.mul(tile, e.index(tileRows));
    Value globalPanel = e.add(firstPanel, p);
    int64_t vectorsPerRow = groups * panel / lanes;
    int64_t perSum = tileRows * vectorsPerRow;
    SmallVector<Value> zeros(perSum * sums, e.splat(e.f32(0.0), lanes));
    int64_t whole = extent / unroll * unroll;
    auto reduction = e.loop(
        e.index(0), e.index(whole), e.index(unroll), zeros,
        [&](Value k, ValueRange args) {
          SmallVector<Value> acc(args);
          for (int64_t u = 0; u < unroll; ++u)
            step(globalPanel, firstRow, e.add(k, e.index(u)),
                 MutableArrayRef<Value>(acc).slice(u % sums * perSum, perSum));
          return acc;
        });
    SmallVector<Value> acc(reduction.getResults());
    for (int64_t k = whole; k < extent; ++k)
      step(globalPanel, firstRow, e.index(k),
           MutableArrayRef<Value>(acc).take_front(perSum));
    for (int64_t sum = 1; sum < sums; ++sum)
      for (int64_t i = 0; i < perSum; ++i)
        acc[i] = e.add(acc[i], acc[sum * perSum + i]);
    storeTile(firstRow, p, acc);
  }

  /// Bias, gate, elementwise consumers, and the store of each row.
  void storeTile(Value firstRow, Value p, ArrayRef<Value> acc) {
    int64_t vectors = panel / lanes;
    Value result = e.tileResult();
    bool rowsAreWhole =
        getConstantIntValue(rows) && *getConstantIntValue(rows) % tileRows == 0;
    for (int64_t row = 0; row < tileRows; ++row) {
      Value index = e.add(firstRow, e.index(row));
      auto storeRow = [&] {
        for (int64_t v = 0; v < vectors; ++v) {
          Value column = e.add(e.mul(p, e.index(panel)), e.index(v * lanes));
          Value mask = columnMask(column);
          const Value *sum = &acc[row * groups * vectors];
          Value value = addBias(sum[v], 0, column, mask);
          if (groups == 2)
            value = e.mul(e.activate(*op.getGlu(), value),
                          addBias(sum[vectors + v], 1, column, mask));
          e.define(op.getResult(),
                   [value](ValueRange, unsigned, Value) { return value; });
          e.storeResult(e.load(result, {index, column}, lanes, mask),
                        {index, column}, mask);
        }
      };
      if (rowsAreWhole)
        storeRow();
      else
        e.ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index,
                                       rows),
                 storeRow);
    }
  }

  /// Which lanes are columns of the result; null where all are.
  Value columnMask(Value column) {
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

  /// Columns of the kernel's whole product.
  int64_t wholeColumns() {
    Value w = op.getW();
    while (auto slice = w.getDefiningOp<tensor::ExtractSliceOp>())
      w = slice.getSource();
    auto type = cast<RankedTensorType>(w.getType());
    return type.getDimSize(type.getRank() - 2);
  }

  Value addBias(Value sum, int64_t group, Value column, Value mask) {
    if (!op.getBias())
      return sum;
    SmallVector<Value> indices = {column};
    if (groups == 2)
      indices.insert(indices.begin(), e.index(group));
    return e.add(sum, e.load(op.getBias(), indices, lanes, mask));
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  MatmulOp op;
  int64_t tileRows = 0, panel = 0, lanes = 0, groups = 1, extent = 0;
  int64_t unroll = 1, sums = 1;
  bool interleaved = false;
  Value rows;       // of the tile
  Value weights;    // [panels, groups, K, panel]
  Value firstPanel; // of the tile
  Value x;          // scratch [rows of the workgroup tile, K + padding]
};

} // namespace

LogicalResult mlir::kf::emitMatmulKernel(KernelEmitter &emitter) {
  return MatmulEmitter(emitter).emit();
}
