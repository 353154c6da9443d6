//===- BlockReader.cpp - Elements of a block of quantized values ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::BitPlane;
using ::kf::SubScales;

Value BlockReader::read() {
  auto [factor, min] = subScale();
  Value d = e.mul(scale(), factor);
  Value result = e.mul(e.splat(d, width), values());
  if (format.minOffset < 0)
    return result;
  Value m = e.splat(e.mul(half(format.minOffset), min), width);
  return format.minIsNegative ? e.sub(result, m) : e.add(result, m);
}

//===----------------------------------------------------------------------===//
// Arithmetic on index and i32
//===----------------------------------------------------------------------===//

Type BlockReader::typeOf(Type type) {
  return width ? Type(e.vectorType(width, type)) : type;
}

Value BlockReader::constant(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

Value BlockReader::div(Value x, int64_t by) {
  return by == 1 ? x : arith::DivUIOp::create(b, loc, x, e.index(by));
}

Value BlockReader::rem(Value x, int64_t by) {
  return by == 1 ? e.index(0) : arith::RemUIOp::create(b, loc, x, e.index(by));
}

Value BlockReader::i32(Value x) {
  return arith::IndexCastOp::create(b, loc, b.getI32Type(), x);
}

Value BlockReader::shift(Value x, Value by) {
  return arith::ShRUIOp::create(b, loc, x, by);
}

Value BlockReader::lowBits(Value x, int64_t bits) {
  return arith::AndIOp::create(b, loc, x, constant((1 << bits) - 1));
}

Value BlockReader::join(Value low, Value high, int64_t bits) {
  return arith::OrIOp::create(
      b, loc, low, arith::ShLIOp::create(b, loc, high, constant(bits)));
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// Fields of `plane`, in i32s.
Value BlockReader::fields(const BitPlane &plane) {
  Type type = typeOf(b.getI32Type());
  Value packed, bit;
  if (plane.bits == 8)
    return bytes(e.add(element, e.index(plane.offset)));
  if (width == 0 || plane.run % width == 0) {
    // One bit position of consecutive bytes.
    int64_t group = plane.run * 8 / plane.bits;
    bool isOneGroup = group == format.elements;
    Value within = isOneGroup ? element : rem(element, group);
    Value first = isOneGroup ? e.index(0) : div(element, group);
    Value offset = e.add(e.mul(first, e.index(plane.run)),
                         e.add(rem(within, plane.run), e.index(plane.offset)));
    packed = bytes(offset);
    bit = e.splat(e.mul(div(within, plane.run), e.index(plane.bits)), width);
  } else {
    // A bit an element, in the order of elements: 32 of them in a word.
    assert(plane.run == 1 && plane.bits == 1 && format.elements == 32 &&
           "no other format has such a plane");
    packed = e.splat(word(plane.offset), width);
    Value steps =
        vector::StepOp::create(b, loc, e.vectorType(width, b.getIndexType()));
    bit = arith::AddIOp::create(b, loc, e.splat(element, width), steps);
  }
  bit = arith::IndexCastOp::create(b, loc, type, bit);
  Value mask = e.splat(constant((1 << plane.bits) - 1), width);
  return arith::AndIOp::create(
      b, loc, arith::ShRUIOp::create(b, loc, packed, bit), mask);
}

/// value(code), in f32s.
Value BlockReader::values() {
  Value code = fields(format.low);
  if (format.high.bits) {
    Value by = e.splat(constant(format.low.bits), width);
    code = arith::OrIOp::create(
        b, loc, code, arith::ShLIOp::create(b, loc, fields(format.high), by));
  }
  if (format.table)
    return lookUp(format.table, code);
  if (format.isSigned) {
    Value byteCode =
        arith::TruncIOp::create(b, loc, typeOf(b.getI8Type()), code);
    code = arith::ExtSIOp::create(b, loc, typeOf(b.getI32Type()), byteCode);
  }
  if (format.zero)
    code = arith::SubIOp::create(b, loc, code,
                                 e.splat(constant(format.zero), width));
  return arith::SIToFPOp::create(b, loc, typeOf(b.getF32Type()), code);
}

/// The block's, in f32.
Value BlockReader::scale() {
  if (format.scale == ::kf::BlockScale::HalvedE8M0)
    return e.widenHalvedE8M0(byte(e.index(format.scaleOffset)));
  return half(format.scaleOffset);
}

/// Scale and min of the sub-block, in f32.
std::pair<Value, Value> BlockReader::subScale() {
  Value sub = div(element, format.subBlock);
  auto at = [&](Value index) {
    return byte(e.add(index, e.index(format.subScaleOffset)));
  };
  auto toFloat = [&](Value integer) -> Value {
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), integer);
  };
  // 32 less than the 4 bits number `nibble` of `low`, and the 2 bits number
  // `pair` of `high` above them.
  auto signed6 = [&](Value low, Value nibble, Value high, Value pair) {
    low = lowBits(shift(low, i32(e.mul(nibble, e.index(4)))), 4);
    high = lowBits(shift(high, i32(e.mul(pair, e.index(2)))), 2);
    return toFloat(
        arith::SubIOp::create(b, loc, join(low, high, 4), constant(32)));
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
  case SubScales::Split6:
    return {signed6(at(rem(sub, 8)), div(sub, 8),
                    at(e.add(e.index(8), rem(sub, 4))), div(sub, 4)),
            Value()};
  case SubScales::TopsFirst6:
    return {signed6(at(e.add(e.index(2), div(sub, 2))), rem(sub, 2),
                    at(div(sub, 4)), rem(sub, 4)),
            Value()};
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
