//===- ElementwiseEmitter.cpp - Elementwise ops on elements ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most ops of arith and math work on elements and vectors as on tensors. Those
// that arith leaves undefined for some operands are not: no data may end a
// process, and devices agree. x / 0 is 0 and x mod 0 is x, shifts by the width
// or more shift everything out, and conversions to integers saturate, with 0
// for a NaN.
//
//===----------------------------------------------------------------------===//

#include "ScalarCode.h"
#include "TileEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Elements of one op's result: scalars, or vectors of one width.
class Elements {
public:
  Elements(TileEmitter &e, Operation *op, ValueRange operands, unsigned width)
      : e(e), b(e.b), loc(e.loc), op(op), x(operands.front()),
        y(operands.size() > 1 ? operands[1] : Value()), operands(operands),
        width(width), from(cast<RankedTensorType>(op->getOperand(0).getType())
                               .getElementType()),
        to(cast<RankedTensorType>(op->getResult(0).getType())
               .getElementType()) {}

  Value compute() {
    return TypeSwitch<Operation *, Value>(op)
        // The latter's results are rounded where they are stored.
        .Case<CopyOp, RoundHalfOp>([&](auto) { return x; })
        .Case([&](arith::ExtFOp) -> Value {
          Type type = typeOf(e.computeType(to));
          return x.getType() == type ? x
                                     : arith::ExtFOp::create(b, loc, type, x);
        })
        .Case([&](arith::TruncFOp) {
          Value value = x;
          if (e.computeType(from) != e.computeType(to))
            value = arith::TruncFOp::create(b, loc, typeOf(b.getF32Type()), x);
          return e.round(value, to);
        })
        .Case<arith::SIToFPOp, arith::UIToFPOp>([&](auto cast) {
          Value value =
              decltype(cast)::create(b, loc, typeOf(e.computeType(to)), x);
          return e.round(value, to);
        })
        .Case<arith::FPToSIOp, arith::FPToUIOp>(
            [&](auto cast) { return toInteger<decltype(cast)>(); })
        .Case([&](arith::BitcastOp) { return bitcast(); })
        .Case<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
              arith::CeilDivSIOp>([&](auto) { return divideSigned(); })
        .Case<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(
            [&](auto) { return divideUnsigned(); })
        .Case<arith::ShLIOp, arith::ShRUIOp>([&](auto shift) {
          Value inside = less(y, integer(bits()));
          Value amount = choose(inside, y, integer(0));
          Value shifted = decltype(shift)::create(b, loc, x, amount);
          return choose(inside, shifted, integer(0));
        })
        .Case([&](arith::ShRSIOp) -> Value {
          Value inside = less(y, integer(bits()));
          return arith::ShRSIOp::create(b, loc, x,
                                        choose(inside, y, integer(bits() - 1)));
        })
        .Case([&](arith::CmpFOp compare) {
          // SPIR-V has no comparison that does not compare.
          switch (compare.getPredicate()) {
          case arith::CmpFPredicate::AlwaysFalse:
            return constant(b.getBoolAttr(false));
          case arith::CmpFPredicate::AlwaysTrue:
            return constant(b.getBoolAttr(true));
          default:
            return asOnTensors();
          }
        })
        .Case([&](PhiloxOp) {
          return ScalarCode(e)
              .philox(operands.take_front(4), operands.drop_front(4))
              .front();
        })
        .Case([&](math::AbsIOp) {
          Value isNegative = compare(arith::CmpIPredicate::slt, x, integer(0));
          return choose(isNegative, negative(x), x);
        })
        .Case([&](math::IsNaNOp) {
          return compare(arith::CmpFPredicate::UNO, x, x);
        })
        .Case([&](math::IsInfOp) {
          return compare(arith::CmpFPredicate::OEQ, magnitude(), infinity());
        })
        .Case([&](math::IsFiniteOp) {
          return compare(arith::CmpFPredicate::OLT, magnitude(), infinity());
        })
        .Case([&](math::IsNormalOp) -> Value {
          const auto &semantics = cast<FloatType>(from).getFloatSemantics();
          APFloat least = APFloat::getSmallestNormalized(semantics);
          bool losesInfo;
          least.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                        &losesInfo);
          Value large = compare(arith::CmpFPredicate::OGE, magnitude(),
                                real(least.convertToDouble()));
          Value finite =
              compare(arith::CmpFPredicate::OLT, magnitude(), infinity());
          return arith::AndIOp::create(b, loc, large, finite);
        })
        .Default([&](Operation *) { return asOnTensors(); });
  }

private:
  /// The op itself, without promises about its operands.
  Value asOnTensors() {
    SmallVector<NamedAttribute> attributes;
    for (NamedAttribute attribute : op->getAttrs())
      if (attribute.getName() != "overflowFlags" &&
          attribute.getName() != "isExact")
        attributes.push_back(attribute);
    OperationState state(loc, op->getName(), operands,
                         {typeOf(e.computeType(to))}, attributes);
    return b.create(state)->getResult(0);
  }

  Type typeOf(Type element) { return e.typeOfWidth(width, element); }
  int64_t bits() { return to.getIntOrFloatBitWidth(); }

  Value constant(TypedAttr value) {
    Value scalar = arith::ConstantOp::create(b, loc, value);
    return width ? e.splat(scalar, width) : scalar;
  }
  Value integer(const APInt &value) {
    return constant(b.getIntegerAttr(to, value));
  }
  Value integer(int64_t value) {
    return integer(APInt(bits(), value, /*isSigned=*/true,
                         /*implicitTrunc=*/true));
  }
  Value real(double value) {
    return constant(b.getFloatAttr(e.computeType(from), value));
  }
  Value infinity() { return real(std::numeric_limits<double>::infinity()); }
  Value magnitude() { return math::AbsFOp::create(b, loc, x); }

  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  /// As unsigned numbers.
  Value less(Value lhs, Value rhs) {
    // 1 does not count the bits of an i1.
    if (bits() == 1)
      return compare(arith::CmpIPredicate::eq, lhs, integer(0));
    return compare(arith::CmpIPredicate::ult, lhs, rhs);
  }
  Value choose(Value condition, Value yes, Value no) {
    return e.select(condition, yes, no);
  }
  Value negative(Value value) {
    return arith::SubIOp::create(b, loc, integer(0), value);
  }
  /// f16 and bf16 have their own bits, not those of the f32 that they are
  /// computed in.
  Value bitcast() {
    Value value = e.computeType(from) == from ? x : e.narrow(x, from);
    bool isComputed = e.computeType(to) == to;
    Type type = typeOf(isComputed ? to : e.narrowType(to));
    if (value.getType() != type)
      value = arith::BitcastOp::create(b, loc, type, value);
    return isComputed ? value : e.widen(value, to);
  }

  template <typename CastOp> Value toInteger() {
    constexpr bool isSigned = std::is_same_v<CastOp, arith::FPToSIOp>;
    // What `from` would round up to an integer would otherwise be cut below it.
    Value x = e.round(this->x, from);
    double top = std::ldexp(1.0, static_cast<int>(bits()) - isSigned);
    Value tooLarge = compare(arith::CmpFPredicate::OGE, x, real(top));
    Value tooSmall =
        compare(arith::CmpFPredicate::OLE, x, real(isSigned ? -top : 0.0));
    Value isOrdered = compare(arith::CmpFPredicate::ORD, x, x);
    Value outside = arith::OrIOp::create(b, loc, tooLarge, tooSmall);
    Value safe = choose(isOrdered, choose(outside, real(0.0), x), real(0.0));
    auto width = static_cast<unsigned>(bits());
    // By way of 32 bits to one bit: LLVM's code for NVIDIA GPUs is wrong there.
    Value value =
        CastOp::create(b, loc, typeOf(width == 1 ? b.getI32Type() : to), safe);
    if (width == 1)
      value = arith::TruncIOp::create(b, loc, typeOf(to), value);
    APInt most =
        isSigned ? APInt::getSignedMaxValue(width) : APInt::getMaxValue(width);
    APInt least =
        isSigned ? APInt::getSignedMinValue(width) : APInt::getMinValue(width);
    value = choose(tooLarge, integer(most), value);
    return choose(tooSmall, integer(least), value);
  }

  /// Divides by 1 instead of 0 and -1, the only ones that trap.
  Value divideSigned() {
    Value zero = integer(0);
    Value byZero = compare(arith::CmpIPredicate::eq, y, zero);
    Value byMinusOne = compare(arith::CmpIPredicate::eq, y, integer(-1));
    Value special = arith::OrIOp::create(b, loc, byZero, byMinusOne);
    Value safe = choose(special, integer(1), y);
    Value quotient = arith::DivSIOp::create(b, loc, x, safe);
    // Not arith.remsi: SPIR-V has none for the smallest integer.
    Value rest = arith::SubIOp::create(
        b, loc, x, arith::MulIOp::create(b, loc, quotient, safe).getResult());
    if (isa<arith::RemSIOp>(op))
      return choose(byZero, x, rest);
    quotient = choose(byMinusOne, negative(x), quotient);
    quotient = choose(byZero, zero, quotient);
    if (isa<arith::DivSIOp>(op))
      return quotient;
    // Of what is cut off, a part goes the other way.
    Value isCut = compare(arith::CmpIPredicate::ne, rest, zero);
    Value differ =
        compare(arith::CmpIPredicate::slt,
                arith::XOrIOp::create(b, loc, x, y).getResult(), zero);
    bool isFloor = isa<arith::FloorDivSIOp>(op);
    Value next =
        isFloor
            ? arith::SubIOp::create(b, loc, quotient, integer(1)).getResult()
            : arith::AddIOp::create(b, loc, quotient, integer(1)).getResult();
    Value moved = isFloor ? choose(differ, next, quotient)
                          : choose(differ, quotient, next);
    return choose(isCut, moved, quotient);
  }

  Value divideUnsigned() {
    Value zero = integer(0);
    Value byZero = compare(arith::CmpIPredicate::eq, y, zero);
    Value safe = choose(byZero, integer(1), y);
    if (isa<arith::RemUIOp>(op))
      return choose(byZero, x,
                    arith::RemUIOp::create(b, loc, x, safe).getResult());
    Value quotient = choose(
        byZero, zero, arith::DivUIOp::create(b, loc, x, safe).getResult());
    if (isa<arith::DivUIOp>(op))
      return quotient;
    Value isCut =
        compare(arith::CmpIPredicate::ne,
                arith::RemUIOp::create(b, loc, x, safe).getResult(), zero);
    return choose(isCut, arith::AddIOp::create(b, loc, quotient, integer(1)),
                  quotient);
  }

  TileEmitter &e;
  RewriterBase &b;
  Location loc;
  Operation *op;
  Value x, y;
  ValueRange operands;
  unsigned width;
  Type from, to; // elements of the first operand and the result
};

} // namespace

Value TileEmitter::compute(Operation *op, ValueRange operands, unsigned width) {
  return Elements(*this, op, operands, width).compute();
}

/// `element`, or a vector of it as `x` is one.
static Type likeTypeOf(Value x, Type element) {
  auto vector = dyn_cast<VectorType>(x.getType());
  return vector ? Type(vector.clone(element)) : element;
}

Value TileEmitter::narrow(Value x, Type element) {
  return arith::TruncFOp::create(b, loc, likeTypeOf(x, element), x);
}

Value TileEmitter::widen(Value x, Type element) {
  return arith::ExtFOp::create(b, loc, likeTypeOf(x, computeType(element)), x);
}

Value TileEmitter::widenHalvedE8M0(Value bytes) {
  auto word = [&](int64_t value) -> Value {
    auto type = dyn_cast<VectorType>(bytes.getType());
    Value scalar =
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
    return type ? splat(scalar, type.getNumElements()) : scalar;
  };
  auto is = [&](arith::CmpIPredicate predicate, int64_t value) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, bytes, word(value));
  };
  Value exponents = arith::SubIOp::create(b, loc, bytes, word(1));
  Value normal = arith::ShLIOp::create(b, loc, exponents, word(23));
  // 2^-128 and 2^-127 are bits of the mantissa.
  Value counts = arith::AddIOp::create(b, loc, bytes, word(1));
  Value subnormal = arith::ShLIOp::create(b, loc, counts, word(21));
  Value bits = select(is(arith::CmpIPredicate::ult, 2), subnormal, normal);
  bits = select(is(arith::CmpIPredicate::eq, 255), word(0x7fc00000), bits);
  return arith::BitcastOp::create(b, loc, likeTypeOf(bytes, b.getF32Type()),
                                  bits);
}

Value TileEmitter::widenFloat8(Value codes) {
  // Vectors have lanes of 16 bits, of which CPUs convert f16.
  const bool isVector = isa<VectorType>(codes.getType());
  Type word = isVector ? b.getI16Type() : b.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    Value scalar =
        arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, value));
    return isVector ? vector::BroadcastOp::create(
                          b, loc, likeTypeOf(codes, word), scalar)
                    : scalar;
  };
  auto bitcast = [&](Value x, Type type) -> Value {
    return arith::BitcastOp::create(b, loc, likeTypeOf(codes, type), x);
  };
  auto moved = [&](Value x, int64_t left) -> Value {
    return arith::ShLIOp::create(b, loc, x, constant(left));
  };
  Value bits = arith::ExtUIOp::create(b, loc, likeTypeOf(codes, word), codes);
  Value magnitude = arith::AndIOp::create(b, loc, bits, constant(0x7f));
  Value sign = arith::AndIOp::create(b, loc, bits, constant(0x80));
  Value isNan = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      magnitude, constant(0x7f));
  auto orNan = [&](Value value) {
    double nan = std::numeric_limits<double>::quiet_NaN();
    return select(isNan, constantLike(*this, value, nan), value);
  };
  if (isVector) {
    // Half precision has a bias of 15, not of 7: 2^-8 of the value.
    Value half = bitcast(
        arith::OrIOp::create(b, loc, moved(magnitude, 7), moved(sign, 8)),
        b.getF16Type());
    Value value =
        arith::ExtFOp::create(b, loc, likeTypeOf(codes, b.getF32Type()), half);
    return orNan(mul(value, constantLike(*this, value, 256.0)));
  }
  // GPUs may lack f16, or its subnormal numbers. Those of f8E4M3FN count 2^-9.
  Value normal = bitcast(arith::AddIOp::create(b, loc, moved(magnitude, 20),
                                               constant((127 - 7) << 23)),
                         b.getF32Type());
  Value small = mul(arith::UIToFPOp::create(b, loc, b.getF32Type(), magnitude),
                    f32(0x1p-9));
  Value isSmall = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                        magnitude, constant(8));
  Value value = orNan(select(isSmall, small, normal));
  return bitcast(
      arith::OrIOp::create(b, loc, bitcast(value, word), moved(sign, 24)),
      b.getF32Type());
}
