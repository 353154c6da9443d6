//===- BlockMatmulEmitter.cpp - Products with block-quantized weights -----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads panels of ::kf::PackedBlock, a row of the weight to a lane. Codes come
// four to a 32-bit lane, for four neighbouring k (a quad). Two ways to sum:
//   dot = f32  a code becomes (d * scale) * value + min in registers, and is
//              multiplied by the broadcast element of x;
//   dot = i8   rows of x are rounded to 8 bits with a scale for every 32
//              elements (a unit); vpdpbusd adds up a quad's products in
//              integers; scales are applied once a sub-block.
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

using namespace mlir;
using namespace mlir::kf;
using Format = ::kf::BlockFormat;
using ::kf::PackedBlock;
using ::kf::SubScales;

namespace {

/// Elements that share a scale of x; every sub-block divides it.
constexpr int64_t unit = PackedBlock::unit;
constexpr int64_t quadsPerUnit = unit / 4;

class BlockMatmulEmitter : public MatmulEmitter {
public:
  BlockMatmulEmitter(KernelEmitter &e, const Format &format)
      : MatmulEmitter(e), format(format), packed(format) {}

protected:
  LogicalResult checkWeight(LayoutAttr) override {
    return checkTile(/*sums=*/1, /*unroll=*/unit);
  }

  /// Adds the products of one sub-block: `firstQuad` of the unit begins it.
  virtual void addSubBlock(Value firstRow, Value k, Value x, int64_t firstQuad,
                           ArrayRef<Value> scales, ArrayRef<Value> mins,
                           MutableArrayRef<Value> sums) = 0;

  SmallVector<Value> sumTile(Value p, Value firstRow) final {
    panelIndex = p;
    SmallVector<Value> zeros(tileRows * vectorsPerRow(),
                             e.splat(e.f32(0.0), lanes));
    auto blocks = e.loop(e.index(0), e.index(extent / format.elements),
                         e.index(1), zeros, [&](Value block, ValueRange sums) {
                           blockIndex = block;
                           return sumBlock(firstRow, SmallVector<Value>(sums));
                         });
    return SmallVector<Value>(blocks.getResults());
  }

  /// Codes of a quad of the current unit, one vector a group and `lanes` rows.
  SmallVector<Value> loadCodes(int64_t quad) {
    SmallVector<Value> codes;
    for (int64_t v = 0; v < vectorsPerRow(); ++v) {
      Value code = loadFields(v, packed.low, format.low.bits, quad);
      if (format.high.bits) {
        Value high = loadFields(v, packed.high, format.high.bits, quad);
        Value by = splatInt(format.low.bits);
        code = arith::OrIOp::create(b, loc, code,
                                    arith::ShLIOp::create(b, loc, high, by));
      }
      codes.push_back(code);
    }
    return codes;
  }

  VectorType intType() { return e.vectorType(lanes, b.getI32Type()); }
  Value splatInt(int32_t value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(intType(), b.getI32IntegerAttr(value)));
  }
  Value toFloat(Value integers) {
    return arith::SIToFPOp::create(b, loc, e.vectorType(lanes), integers);
  }

  const Format &format;
  const PackedBlock packed;

private:
  SmallVector<Value> sumBlock(Value firstRow, SmallVector<Value> sums) {
    SmallVector<Value> d, m;
    for (int64_t v = 0; v < vectorsPerRow(); ++v) {
      d.push_back(loadHalves(v, packed.scale));
      if (format.minOffset < 0)
        continue;
      Value min = loadHalves(v, packed.min);
      m.push_back(format.minIsNegative
                      ? arith::NegFOp::create(b, loc, min).getResult()
                      : min);
    }
    Value firstUnit =
        e.mul(blockIndex, e.index(format.elements / unit)); // of the row
    auto sumUnit = [&](Value number, ValueRange args) {
      unitIndex = number;
      loaded.clear();
      SmallVector<Value> into(args);
      Value x = e.add(firstUnit, number);
      Value k = e.mul(x, e.index(unit));
      for (int64_t sub = 0; sub < unit / format.subBlock; ++sub) {
        auto [scales, mins] = loadScales(sub, d, m);
        addSubBlock(firstRow, k, x, sub * format.subBlock / 4, scales, mins,
                    into);
      }
      return into;
    };
    if (format.elements == unit)
      return sumUnit(e.index(0), sums);
    auto units = e.loop(e.index(0), e.index(format.elements / unit), e.index(1),
                        sums, sumUnit);
    return SmallVector<Value>(units.getResults());
  }

  /// d * scale and m * min of sub-block `sub` of the current unit.
  std::pair<SmallVector<Value>, SmallVector<Value>>
  loadScales(int64_t sub, ArrayRef<Value> d, ArrayRef<Value> m) {
    if (format.subScales == SubScales::None)
      return {SmallVector<Value>(d), SmallVector<Value>(m)};
    std::pair<SmallVector<Value>, SmallVector<Value>> result;
    auto &[scales, mins] = result;
    auto widen = [&](Value bytes, bool isSigned) -> Value {
      if (isSigned)
        return arith::ExtSIOp::create(b, loc, intType(), bytes);
      return arith::ExtUIOp::create(b, loc, intType(), bytes);
    };
    for (int64_t v = 0; v < vectorsPerRow(); ++v) {
      bool isSigned = format.minOffset < 0;
      Value scale = widen(loadOfUnit(v, packed.subScales, sub, 1), isSigned);
      Value min;
      if (format.subScales == SubScales::Nibbles) {
        min = arith::ShRUIOp::create(b, loc, scale, splatInt(4));
        scale = arith::AndIOp::create(b, loc, scale, splatInt(15));
      } else if (format.subScales == SubScales::Packed6) {
        min = widen(loadOfUnit(v, packed.subMins, sub, 1), false);
      }
      scales.push_back(e.mul(d[v], toFloat(scale)));
      if (min)
        mins.push_back(e.mul(m[v], toFloat(min)));
    }
    return result;
  }

  //===--- Fields of the current block ------------------------------------===//

  /// `lanes` rows' bytes of a field of `size` bytes a row, which lies `offset`
  /// rows behind `column` of the block.
  Value loadRow(int64_t v, Value column, int64_t offset, int64_t size) {
    int64_t vectors = panel / lanes;
    column =
        e.add(column, e.index(offset * panel + v % vectors * lanes * size));
    return vector::LoadOp::create(
        b, loc, e.vectorType(lanes * size, b.getI8Type()), weights,
        ValueRange{panelIndex, e.index(v / vectors), blockIndex, column});
  }

  /// The same for field `number` of those at `offset` in the current unit.
  Value loadOfUnit(int64_t v, int64_t offset, int64_t number, int64_t size) {
    Value column = e.mul(unitIndex, e.index(packed.unitBytes * panel));
    return loadRow(v, column, packed.firstUnit + offset + number * size, size);
  }

  Value loadHalves(int64_t v, int64_t offset) {
    Value halves =
        vector::BitCastOp::create(b, loc, e.vectorType(lanes, b.getF16Type()),
                                  loadRow(v, e.index(0), offset, 2));
    return arith::ExtFOp::create(b, loc, e.vectorType(lanes), halves);
  }

  /// Fields of `bits` bits of a quad, in the bytes of 32-bit lanes.
  Value loadFields(int64_t v, int64_t offset, int64_t bits, int64_t quad) {
    int64_t quadsPerChunk = 8 / bits;
    int64_t chunk = quad / quadsPerChunk;
    Value &lanesOf = loaded[{v, offset, chunk}];
    if (!lanesOf)
      lanesOf = vector::BitCastOp::create(b, loc, intType(),
                                          loadOfUnit(v, offset, chunk, 4));
    Value fields = lanesOf;
    if (int64_t by = quad % quadsPerChunk * bits)
      fields = arith::ShRUIOp::create(b, loc, fields, splatInt(by));
    if (bits == 8)
      return fields;
    int32_t mask = ((1 << bits) - 1) * 0x01010101;
    return arith::AndIOp::create(b, loc, fields, splatInt(mask));
  }

  Value panelIndex, blockIndex, unitIndex;
  /// Chunks of planes of the current unit: (vector, plane, chunk).
  std::map<std::tuple<int64_t, int64_t, int64_t>, Value> loaded;
};

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

class FloatBlockEmitter : public BlockMatmulEmitter {
public:
  using BlockMatmulEmitter::BlockMatmulEmitter;

private:
  LogicalResult computeRows(int64_t most) override {
    return computeFloatRows(most, rowsOfX);
  }

  void addSubBlock(Value firstRow, Value k, Value, int64_t firstQuad,
                   ArrayRef<Value> scales, ArrayRef<Value> mins,
                   MutableArrayRef<Value> sums) override {
    for (int64_t quad = 0; quad < format.subBlock / 4; ++quad) {
      SmallVector<Value> codes = loadCodes(firstQuad + quad);
      for (int64_t j = 0; j < 4; ++j) {
        SmallVector<Value> w;
        for (auto [v, code] : llvm::enumerate(codes)) {
          Value value = e.mul(scales[v], valueOf(code, j));
          w.push_back(mins.empty() ? value : e.add(value, mins[v]));
        }
        Value column = e.add(k, e.index((firstQuad + quad) * 4 + j));
        for (int64_t row = 0; row < tileRows; ++row) {
          Value scalar = memref::LoadOp::create(
              b, loc, rowsOfX,
              ValueRange{e.add(firstRow, e.index(row)), column});
          Value x = e.splat(scalar, lanes);
          for (size_t v = 0; v < w.size(); ++v) {
            Value &sum = sums[row * w.size() + v];
            sum = vector::FMAOp::create(b, loc, x, w[v], sum);
          }
        }
      }
    }
  }

  /// value(code) of element `j` of a quad, as floats.
  Value valueOf(Value codes, int64_t j) {
    Value code = codes;
    if (j > 0)
      code = arith::ShRUIOp::create(b, loc, code, splatInt(8 * j));
    if (j < 3)
      code = arith::AndIOp::create(b, loc, code, splatInt(255));
    if (format.table)
      return e.lookUp(format.table, code);
    if (packed.zero)
      code = arith::SubIOp::create(b, loc, code, splatInt(packed.zero));
    return toFloat(code);
  }

  Value rowsOfX; // [rows of the workgroup tile, K + padding]
};

//===----------------------------------------------------------------------===//
// i8
//===----------------------------------------------------------------------===//

class Int8BlockEmitter : public BlockMatmulEmitter {
public:
  using BlockMatmulEmitter::BlockMatmulEmitter;

private:
  LogicalResult checkWeight(LayoutAttr layout) override {
    if (lanes < 4 || lanes > 16)
      return fail("dot = i8 needs 4, 8 or 16 lanes");
    return BlockMatmulEmitter::checkWeight(layout);
  }

  LogicalResult computeRows(int64_t most) override {
    Type i32 = b.getI32Type();
    quads = e.scratch({most, extent / 4}, i32);
    factors = e.scratch({most, extent / unit});
    totals = e.scratch({most, extent / format.subBlock}, i32);
    LogicalResult result = success();
    e.loop(rows, [&](Value r) {
      // What is prepared holds in the body of this loop alone.
      bool isPrepared = !e.isLoadable(op.getX());
      result = e.prepareRow(op.getX(), r);
      if (failed(result))
        return;
      e.loop(e.index(extent / unit), [&](Value u) { roundUnit(r, u); });
      if (isPrepared)
        e.undefine(op.getX());
    });
    return result;
  }

  /// Rounds unit `u` of row `r` to 8 bits: x = factor * q, |q| <= 127. A unit
  /// with an infinity or a NaN has a NaN as its factor, as sums with it would.
  void roundUnit(Value r, Value u) {
    Value k = e.mul(u, e.index(unit));
    SmallVector<Value> values;
    Value largest;
    for (int64_t at = 0; at < unit; at += lanes) {
      values.push_back(e.load(op.getX(), {r, e.add(k, e.index(at))}, lanes));
      Value magnitude = math::AbsFOp::create(b, loc, values.back());
      largest = largest ? arith::MaximumFOp::create(b, loc, largest, magnitude)
                              .getResult()
                        : magnitude;
    }
    Value most = vector::ReductionOp::create(
        b, loc, vector::CombiningKind::MAXIMUMF, largest);
    Value factor = e.mul(most, e.f32(1.0 / 127));
    Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         most, e.f32(0.0));
    Value inverse = e.select(isZero, e.f32(0.0),
                             arith::DivFOp::create(b, loc, e.f32(127.0), most));
    // inf / inf and NaN: nothing to round.
    Value isFinite =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, most,
                              e.f32(std::numeric_limits<float>::infinity()));
    inverse = e.select(isFinite, inverse, e.f32(0.0));
    factor = e.select(isFinite, factor,
                      e.f32(std::numeric_limits<float>::quiet_NaN()));
    memref::StoreOp::create(b, loc, factor, factors, ValueRange{r, u});

    Value zeros =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(e.vectorType(lanes)));
    Value total;
    for (auto [i, value] : llvm::enumerate(values)) {
      Value scaled = e.mul(value, e.splat(inverse, lanes));
      Value rounded = math::RoundEvenOp::create(b, loc, scaled);
      // NaN times 0 stays NaN, which has no integer.
      rounded = e.select(e.splat(isFinite, lanes), rounded, zeros);
      Value integers = arith::FPToSIOp::create(b, loc, intType(), rounded);
      Value bytes = arith::TruncIOp::create(
          b, loc, e.vectorType(lanes, b.getI8Type()), integers);
      Value packedQuads = vector::BitCastOp::create(
          b, loc, e.vectorType(lanes / 4, b.getI32Type()), bytes);
      int64_t at = i * lanes;
      vector::StoreOp::create(
          b, loc, packedQuads, quads,
          ValueRange{r,
                     e.add(e.mul(u, e.index(quadsPerUnit)), e.index(at / 4))});
      total = total ? arith::AddIOp::create(b, loc, total, integers).getResult()
                    : integers;
      if ((at + lanes) % format.subBlock != 0)
        continue;
      Value sum = vector::ReductionOp::create(
          b, loc, vector::CombiningKind::ADD, total);
      memref::StoreOp::create(
          b, loc, sum, totals,
          ValueRange{r, e.add(e.mul(u, e.index(unit / format.subBlock)),
                              e.index(at / format.subBlock))});
      total = Value();
    }
  }

  void addSubBlock(Value firstRow, Value, Value u, int64_t firstQuad,
                   ArrayRef<Value> scales, ArrayRef<Value> mins,
                   MutableArrayRef<Value> sums) override {
    int64_t vectors = vectorsPerRow();
    SmallVector<Value> rowIndices, rowTotals, products;
    Value sub = e.add(e.mul(u, e.index(unit / format.subBlock)),
                      e.index(firstQuad * 4 / format.subBlock));
    for (int64_t row = 0; row < tileRows; ++row) {
      rowIndices.push_back(e.add(firstRow, e.index(row)));
      rowTotals.push_back(memref::LoadOp::create(
          b, loc, totals, ValueRange{rowIndices[row], sub}));
      // The sum of (code - zero) * q is that of code * q less zero times q's.
      Value start = splatInt(0);
      if (packed.zero)
        start = e.splat(arith::MulIOp::create(
                            b, loc, rowTotals[row],
                            arith::ConstantOp::create(
                                b, loc, b.getI32IntegerAttr(-packed.zero))),
                        lanes);
      products.append(vectors, start);
    }
    for (int64_t quad = 0; quad < format.subBlock / 4; ++quad) {
      SmallVector<Value> codes = loadCodes(firstQuad + quad);
      if (format.table)
        for (Value &code : codes)
          code = lookUpBytes(code);
      Value column =
          e.add(e.mul(u, e.index(quadsPerUnit)), e.index(firstQuad + quad));
      for (int64_t row = 0; row < tileRows; ++row) {
        Value x =
            e.splat(memref::LoadOp::create(b, loc, quads,
                                           ValueRange{rowIndices[row], column}),
                    lanes);
        for (int64_t v = 0; v < vectors; ++v) {
          Value &product = products[row * vectors + v];
          product = dot(product, codes[v], x);
        }
      }
    }
    for (int64_t row = 0; row < tileRows; ++row) {
      Value factor = memref::LoadOp::create(b, loc, factors,
                                            ValueRange{rowIndices[row], u});
      Value x = e.splat(factor, lanes);
      Value total;
      if (!mins.empty())
        total =
            e.splat(e.mul(factor, arith::SIToFPOp::create(
                                      b, loc, b.getF32Type(), rowTotals[row])),
                    lanes);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &sum = sums[row * vectors + v];
        Value scaled = e.mul(toFloat(products[row * vectors + v]), scales[v]);
        sum = vector::FMAOp::create(b, loc, scaled, x, sum);
        if (total)
          sum = vector::FMAOp::create(b, loc, mins[v], total, sum);
      }
    }
  }

  Value intrinsic(StringRef name, Type result, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                         operands)
        .getResult(0);
  }

  /// sum + the four products of unsigned bytes of `codes` and signed of `x`.
  Value dot(Value sum, Value codes, Value x) {
    std::string name = "llvm.x86.avx512.vpdpbusd." + std::to_string(32 * lanes);
    VectorType bytes = e.vectorType(4 * lanes, b.getI8Type());
    return intrinsic(name, sum.getType(),
                     {sum, vector::BitCastOp::create(b, loc, bytes, codes),
                      vector::BitCastOp::create(b, loc, bytes, x)});
  }

  /// The table's entries, with packed.zero added, at the bytes of `codes`.
  Value lookUpBytes(Value codes) {
    StringRef name = lanes == 16  ? "llvm.x86.avx512.pshuf.b.512"
                     : lanes == 8 ? "llvm.x86.avx2.pshuf.b"
                                  : "llvm.x86.ssse3.pshuf.b.128";
    VectorType bytes = e.vectorType(4 * lanes, b.getI8Type());
    SmallVector<int8_t> entries; // again for each 16 bytes
    for (int64_t i = 0; i < 4 * lanes; ++i)
      entries.push_back(
          static_cast<int8_t>(format.table[i % 16] + packed.zero));
    Value table = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(bytes, ArrayRef<int8_t>(entries)));
    Value found = intrinsic(
        name, bytes, {table, vector::BitCastOp::create(b, loc, bytes, codes)});
    return vector::BitCastOp::create(b, loc, intType(), found);
  }

  Value quads;   // [rows, K / 4] of i32: four bytes of x each
  Value factors; // [rows, K / 32]
  Value totals;  // [rows, K / sub-block] of i32: sums of bytes
};

} // namespace

LogicalResult mlir::kf::emitBlockMatmulKernel(KernelEmitter &emitter) {
  auto type = cast<RankedTensorType>(emitter.find<MatmulOp>().getW().getType());
  const Format &format =
      getStorage(cast<QuantType>(type.getElementType()).getFormat());
  if (emitter.schedule.getDot() == DotKind::I8)
    return Int8BlockEmitter(emitter, format).emit();
  return FloatBlockEmitter(emitter, format).emit();
}
