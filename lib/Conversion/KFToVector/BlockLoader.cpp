//===- BlockLoader.cpp - Elements of rows of blocks -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Block-quantized tensors in the layout of their file, as embedding tables are:
// code that reads a few neighbouring elements of a row, from the description
// of the format alone.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::BitPlane;
using Format = ::kf::BlockFormat;
using ::kf::SubScales;

namespace {

/// Reads `width` elements from element `element` of the block on that begins at
/// byte `base` of row `row`. They share a sub-block.
class BlockReader {
public:
  BlockReader(KernelEmitter &e, const Format &format, Value memref, Value row,
              Value base, Value element, unsigned width)
      : e(e), b(e.b), loc(e.loc), format(format), memref(memref), row(row),
        base(base), element(element), width(width) {}

  /// A vector of f32.
  Value read() {
    auto [scale, min] = subScale();
    Value d = e.mul(half(format.scaleOffset), scale);
    Value result = e.mul(e.splat(d, width), values());
    if (format.minOffset < 0)
      return result;
    Value m = e.splat(e.mul(half(format.minOffset), min), width);
    return format.minIsNegative ? e.sub(result, m) : e.add(result, m);
  }

private:
  //===--- Arithmetic on index and i32 ------------------------------------===//

  Value div(Value x, int64_t by) {
    return by == 1 ? x : arith::DivUIOp::create(b, loc, x, e.index(by));
  }
  Value rem(Value x, int64_t by) {
    return by == 1 ? e.index(0)
                   : arith::RemUIOp::create(b, loc, x, e.index(by));
  }
  Value i32(Value x) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), x);
  }
  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  Value shift(Value x, Value by) {
    return arith::ShRUIOp::create(b, loc, x, by);
  }
  Value lowBits(Value x, int64_t bits) {
    return arith::AndIOp::create(b, loc, x, constant((1 << bits) - 1));
  }
  Value join(Value low, Value high, int64_t bits) {
    return arith::OrIOp::create(
        b, loc, low, arith::ShLIOp::create(b, loc, high, constant(bits)));
  }

  //===--- Memory ---------------------------------------------------------===//

  Value byte(Value offset) {
    Value value = memref::LoadOp::create(b, loc, memref,
                                         ValueRange{row, e.add(base, offset)});
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
  }
  Value bytes(Value offset, int64_t count) {
    return vector::LoadOp::create(b, loc, e.vectorType(count, b.getI8Type()),
                                  memref, ValueRange{row, e.add(base, offset)});
  }
  /// The half-precision number at byte `offset`, as f32.
  Value half(int64_t offset) {
    Value one = vector::BitCastOp::create(
        b, loc, e.vectorType(1, b.getF16Type()), bytes(e.index(offset), 2));
    Value scalar = vector::ExtractOp::create(b, loc, one, int64_t(0));
    return arith::ExtFOp::create(b, loc, b.getF32Type(), scalar);
  }

  //===--- Fields ---------------------------------------------------------===//

  /// Fields of `plane`, as a vector of i32.
  Value fields(const BitPlane &plane) {
    VectorType type = e.vectorType(width, b.getI32Type());
    Value packed, bit;
    if (plane.run % width == 0) {
      // One bit position of consecutive bytes.
      int64_t group = plane.run * 8 / plane.bits;
      Value within = rem(element, group);
      Value offset =
          e.add(e.mul(div(element, group), e.index(plane.run)),
                e.add(rem(within, plane.run), e.index(plane.offset)));
      packed = arith::ExtUIOp::create(b, loc, type, bytes(offset, width));
      bit = e.splat(e.mul(div(within, plane.run), e.index(plane.bits)), width);
    } else if (plane.bits == 8) {
      packed = arith::ExtUIOp::create(
          b, loc, type, bytes(e.add(element, e.index(plane.offset)), width));
      return packed;
    } else {
      // A bit an element, in the order of elements: 32 of them in a word.
      assert(plane.run == 1 && plane.bits == 1 && format.elements == 32 &&
             "no other format has such a plane");
      Value word =
          vector::BitCastOp::create(b, loc, e.vectorType(1, b.getI32Type()),
                                    bytes(e.index(plane.offset), 4));
      packed =
          e.splat(vector::ExtractOp::create(b, loc, word, int64_t(0)), width);
      Value steps =
          vector::StepOp::create(b, loc, e.vectorType(width, b.getIndexType()));
      bit = arith::AddIOp::create(b, loc, e.splat(element, width), steps);
    }
    bit = arith::IndexCastOp::create(b, loc, type, bit);
    Value mask = e.splat(constant((1 << plane.bits) - 1), width);
    return arith::AndIOp::create(
        b, loc, arith::ShRUIOp::create(b, loc, packed, bit), mask);
  }

  /// value(code), as a vector of f32.
  Value values() {
    VectorType type = e.vectorType(width, b.getI32Type());
    Value code = fields(format.low);
    if (format.high.bits) {
      Value by = e.splat(constant(format.low.bits), width);
      code = arith::OrIOp::create(
          b, loc, code, arith::ShLIOp::create(b, loc, fields(format.high), by));
    }
    if (format.table)
      return e.lookUp(format.table, code);
    if (format.isSigned) {
      Value byteCode = arith::TruncIOp::create(
          b, loc, e.vectorType(width, b.getI8Type()), code);
      code = arith::ExtSIOp::create(b, loc, type, byteCode);
    }
    if (format.zero)
      code = arith::SubIOp::create(b, loc, code,
                                   e.splat(constant(format.zero), width));
    return arith::SIToFPOp::create(b, loc, e.vectorType(width), code);
  }

  /// Scale and min of the sub-block, as f32.
  std::pair<Value, Value> subScale() {
    Value sub = div(element, format.subBlock);
    auto at = [&](Value index) {
      return byte(e.add(index, e.index(format.subScaleOffset)));
    };
    auto toFloat = [&](Value integer) -> Value {
      return arith::SIToFPOp::create(b, loc, b.getF32Type(), integer);
    };
    switch (format.subScales) {
    case SubScales::None:
      return {e.f32(1.0), e.f32(1.0)};
    case SubScales::Nibbles: {
      Value both = at(sub);
      return {toFloat(lowBits(both, 4)), toFloat(shift(both, constant(4)))};
    }
    case SubScales::Int8: {
      Value narrow = arith::TruncIOp::create(b, loc, b.getI8Type(), at(sub));
      return {toFloat(arith::ExtSIOp::create(b, loc, b.getI32Type(), narrow)),
              Value()};
    }
    case SubScales::Split6: {
      Value low = lowBits(
          shift(at(rem(sub, 8)), i32(e.mul(div(sub, 8), e.index(4)))), 4);
      Value high = lowBits(shift(at(e.add(e.index(8), rem(sub, 4))),
                                 i32(e.mul(div(sub, 4), e.index(2)))),
                           2);
      return {toFloat(arith::SubIOp::create(b, loc, join(low, high, 4),
                                            constant(32))),
              Value()};
    }
    case SubScales::Packed6: {
      Value isFirst = e.isLess(sub, e.index(4));
      Value before = e.select(isFirst, sub, e.sub(sub, e.index(4)));
      Value own = at(sub), after = at(e.add(sub, e.index(4)));
      Value scale =
          e.select(isFirst, lowBits(own, 6),
                   join(lowBits(after, 4), shift(at(before), constant(6)), 4));
      Value min =
          e.select(isFirst, lowBits(after, 6),
                   join(shift(after, constant(4)), shift(own, constant(6)), 4));
      return {toFloat(scale), toFloat(min)};
    }
    }
    llvm_unreachable("every kind of scale is read above");
  }

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  const Format &format;
  Value memref, row, base, element;
  unsigned width;
};

} // namespace

Value KernelEmitter::lookUp(const int8_t *table, Value codes) {
  auto type = MemRefType::get({16}, b.getF32Type());
  StringRef name = "kf_block_table";
  if (!SymbolTable::lookupNearestSymbolFrom(function, b.getStringAttr(name))) {
    SmallVector<float> values(table, table + 16);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    memref::GlobalOp::create(
        b, loc, name, b.getStringAttr("private"), type,
        DenseElementsAttr::get(RankedTensorType::get({16}, b.getF32Type()),
                               ArrayRef<float>(values)),
        /*constant=*/true, IntegerAttr());
  }
  Value memref = memref::GetGlobalOp::create(b, loc, type, name);
  auto codeType = cast<VectorType>(codes.getType());
  Value all = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(codeType.clone(b.getI1Type()), true));
  Value zeros = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(codeType.clone(b.getF32Type())));
  return vector::GatherOp::create(b, loc, cast<VectorType>(zeros.getType()),
                                  memref, ValueRange{index(0)}, codes, all,
                                  zeros);
}

Value KernelEmitter::loadBlocks(BlockArgument argument, const Format &format,
                                ValueRange indices, unsigned width,
                                Value mask) {
  Value column = indices.back();
  unsigned count = std::max(width, 1u);
  if (mask) {
    // Lanes past the row read its end instead.
    int64_t last =
        cast<RankedTensorType>(argument.getType()).getShape().back() - count;
    column = select(isLess(column, index(last)), column, index(last));
  }
  Value block = arith::DivUIOp::create(b, loc, column, index(format.elements));
  Value element =
      arith::RemUIOp::create(b, loc, column, index(format.elements));
  Value base = mul(block, index(format.bytes));
  assert(indices.size() == 2 && "tables have rows and columns");
  Value values = BlockReader(*this, format, memrefOf(argument), indices[0],
                             base, element, count)
                     .read();
  return width ? values
               : vector::ExtractOp::create(b, loc, values, int64_t(0))
                     .getResult();
}
