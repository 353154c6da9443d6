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
//              elements (a unit), here or before by kf.quantize_rows; a quad's
//              products are added up in integers; scales are applied once a
//              sub-block.
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"
#include "RowQuantizer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
    if (!op.getScales())
      return computeFloatRows(most, rowsOfX);
    if (!e.isLoadable(op.getX()) || !e.isLoadable(op.getScales()))
      return fail("codes and scales must be arguments of the kernel");
    rowsOfX = e.scratch({most, extent});
    e.loop(rows, [&](Value row) {
      e.loop(e.index(extent / unit), [&](Value number) {
        Value scale = e.load(op.getScales(), {row, number}, 0);
        Value first = e.mul(number, e.index(unit));
        e.forPiecesStatic(unit, [&](int64_t at, unsigned width) {
          Value column = e.add(first, e.index(at));
          Value codes = e.load(op.getX(), {row, column}, width);
          Value value =
              arith::SIToFPOp::create(b, loc, e.vectorType(width), codes);
          e.store(e.mul(value, e.splat(scale, width)), rowsOfX, {row, column});
        });
      });
    });
    return success();
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
  LogicalResult computeRows(int64_t most) override {
    if (op.getScales())
      return bindRows();
    x.codes = e.scratch({most, extent}, b.getI8Type());
    x.scales = e.scratch({most, extent / unit});
    x.sums = e.scratch({most, extent / format.subBlock}, b.getI32Type());
    x.firstRow = e.index(0);
    LogicalResult result = success();
    e.loop(rows, [&](Value row) {
      result = quantizeRow(e, op.getX(), row, format.subBlock, x);
    });
    return result;
  }

  /// Takes rows that kf.quantize_rows rounded.
  LogicalResult bindRows() {
    auto bind = [&](Value tensor, Value &memref) {
      SmallVector<Value> at;
      memref = e.sourceMemref(tensor, at);
      if (!x.firstRow)
        x.firstRow = at[0];
      return memref && isEqualConstantIntOrValue(at[0], x.firstRow) &&
             getConstantIntValue(at[1]) == 0;
    };
    if (bind(op.getX(), x.codes) && bind(op.getScales(), x.scales) &&
        bind(op.getSums(), x.sums))
      return success();
    return fail("codes, scales and sums must be arguments of the kernel, or "
                "the same whole rows of them; slice what kf.quantize_rows "
                "reads instead");
  }

  /// Where row `row` of a register tile lies. Those past the last row are that
  /// one again where nobody has made room for them.
  Value rowAt(Value firstRow, int64_t row) {
    Value index = e.add(firstRow, e.index(row));
    std::optional<int64_t> count = getConstantIntValue(rows);
    if (op.getScales() && tileRows > 1 && !(count && *count % tileRows == 0))
      index = arith::MinUIOp::create(b, loc, index, e.sub(rows, e.index(1)));
    return e.add(x.firstRow, index);
  }

  /// Four neighbouring bytes of row `row`, on every lane.
  Value loadQuad(Value row, Value number) {
    Value bytes =
        vector::LoadOp::create(b, loc, e.vectorType(4, b.getI8Type()), x.codes,
                               ValueRange{row, e.mul(number, e.index(4))});
    Value quad = vector::BitCastOp::create(
        b, loc, e.vectorType(1, b.getI32Type()), bytes);
    return e.splat(vector::ExtractOp::create(b, loc, quad, int64_t(0)), lanes);
  }

  void addSubBlock(Value firstRow, Value, Value u, int64_t firstQuad,
                   ArrayRef<Value> scales, ArrayRef<Value> mins,
                   MutableArrayRef<Value> sums) override {
    int64_t vectors = vectorsPerRow();
    SmallVector<Value> rowIndices, rowTotals, products;
    Value sub = e.add(e.mul(u, e.index(unit / format.subBlock)),
                      e.index(firstQuad * 4 / format.subBlock));
    for (int64_t row = 0; row < tileRows; ++row) {
      rowIndices.push_back(rowAt(firstRow, row));
      rowTotals.push_back(memref::LoadOp::create(
          b, loc, x.sums, ValueRange{rowIndices[row], sub}));
      // The sum of (code - zero) * q is that of code * q less zero times q's.
      Value start = splatInt(0);
      if (packed.zero && !isSigned())
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
      else if (isSigned())
        for (Value &code : codes)
          code = arith::XOrIOp::create(
              b, loc, code, splatInt(static_cast<int32_t>(0x80808080u)));
      Value column =
          e.add(e.mul(u, e.index(quadsPerUnit)), e.index(firstQuad + quad));
      for (int64_t row = 0; row < tileRows; ++row) {
        Value bytes = loadQuad(rowIndices[row], column);
        for (int64_t v = 0; v < vectors; ++v) {
          Value &product = products[row * vectors + v];
          product = dot(product, codes[v], bytes);
        }
      }
    }
    for (int64_t row = 0; row < tileRows; ++row) {
      Value factor = memref::LoadOp::create(b, loc, x.scales,
                                            ValueRange{rowIndices[row], u});
      Value factors = e.splat(factor, lanes);
      Value total;
      if (!mins.empty())
        total =
            e.splat(e.mul(factor, arith::SIToFPOp::create(
                                      b, loc, b.getF32Type(), rowTotals[row])),
                    lanes);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &sum = sums[row * vectors + v];
        Value scaled = e.mul(toFloat(products[row * vectors + v]), scales[v]);
        sum = vector::FMAOp::create(b, loc, scaled, factors, sum);
        if (total)
          sum = vector::FMAOp::create(b, loc, mins[v], total, sum);
      }
    }
  }

  /// Whether products take codes with a sign, from which packing had taken it
  /// by adding packed.zero.
  bool isSigned() { return e.schedule.getDot() == DotKind::S8; }

  /// sum + the four products of bytes of `codes` and `x`.
  Value dot(Value sum, Value codes, Value x) {
    VectorType bytes = e.vectorType(4 * lanes, b.getI8Type());
    uint32_t most = packed.zero == 128 ? 255 : (1u << format.codeBits()) - 1;
    return Dp4aOp::create(
        b, loc, sum, vector::BitCastOp::create(b, loc, bytes, codes),
        vector::BitCastOp::create(b, loc, bytes, x), most, isSigned());
  }

  /// The table's entries at the bytes of `codes`, with packed.zero added unless
  /// they keep their sign.
  Value lookUpBytes(Value codes) {
    SmallVector<int8_t> entries;
    for (int64_t i = 0; i < 16; ++i)
      entries.push_back(static_cast<int8_t>(format.table[i] +
                                            (isSigned() ? 0 : packed.zero)));
    VectorType bytes = e.vectorType(4 * lanes, b.getI8Type());
    Value found = LookUpOp::create(
        b, loc, vector::BitCastOp::create(b, loc, bytes, codes), entries);
    return vector::BitCastOp::create(b, loc, intType(), found);
  }

  QuantizedRows x;
};

} // namespace

LogicalResult mlir::kf::emitBlockMatmulKernel(KernelEmitter &emitter) {
  auto type = cast<RankedTensorType>(emitter.find<MatmulOp>().getW().getType());
  const Format &format =
      getStorage(cast<QuantType>(type.getElementType()).getFormat());
  if (emitter.schedule.getDot() != DotKind::F32)
    return Int8BlockEmitter(emitter, format).emit();
  return FloatBlockEmitter(emitter, format).emit();
}
