//===- GpuMath.cpp - Functions that GPUs lack or have not as exact --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where arithmetic and square roots are rounded as IEEE 754 says, the errors
// are below these units in the last place, which ExpandMathTest measures:
//
//   1  cbrt, exp2                  3  acosh, asinh, atan, atan2, atanh, erfc,
//   2  acos, cosh, expm1, log1p,      log2
//      log10, sinh, tanh           6  asin
//
// acos, asin and erfc are MLIR's polynomials.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuMath.h"

#include "kf/Target/Common/MathCode.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numbers>

using namespace mlir;
using namespace mlir::kf;

namespace {

class FunctionCode : public MathCode {
public:
  using MathCode::MathCode;

  Value exp2(Value x);
  Value expm1(Value x);
  Value log2(Value x);
  Value log10(Value x);
  Value log1p(Value x);
  Value sinh(Value x);
  Value cosh(Value x);
  Value tanh(Value x);
  Value asinh(Value x);
  Value acosh(Value x);
  Value atanh(Value x);
  Value atan(Value x);
  Value atan2(Value y, Value x);
  Value cbrt(Value x);
  Value remainder(Value x, Value y);

private:
  /// What pi/2 is more than the nearest f32.
  static constexpr double halfPiLow = -4.37113882867379117e-8;

  Value sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
  Value divide(Value x, Value y) { return make<arith::DivFOp>(x, y); }
  Value withSign(Value size, Value sign) {
    return math::CopySignOp::create(b, loc, size, sign);
  }
  /// Of x in [0, 1].
  Value smallAtan(Value x);
  Value logTo(Value x, double ofTwo, double ofE);
  /// log((sum + rest) * 2^doublings), where sum + rest is no f32.
  Value logOfSum(Value sum, Value rest, Value doublings = {});
  /// log(1 + x), or log(2 * large) where isLarge.
  Value logPlusOne(Value x, Value isLarge = {}, Value large = {});
};

/// 2^x = 2^n * e^((x - n) * ln2).
Value FunctionCode::exp2(Value x) {
  x = make<arith::MaximumFOp>(x, number(-151.0));
  x = make<arith::MinimumFOp>(x, number(129.0));
  Value shifted = add(x, number(magic));
  Value r = mul(sub(x, sub(shifted, number(magic))), number(std::numbers::ln2));
  Value p = polynomial(r, {1.38403662e-3, 8.36934801e-3, 4.16680835e-2,
                           0.166665152, 0.49999994, 1.0, 1.0});
  Value power = make<arith::SubIOp>(bits(shifted), integer(magicBits));
  Value half = make<arith::ShRSIOp>(power, integer(1));
  return mul(mul(p, powerOfTwo(half)),
             powerOfTwo(make<arith::SubIOp>(power, half)));
}

/// 2^n * (e^r - 1) + (2^n - 1), with halves of both, which are finite where the
/// result is.
Value FunctionCode::expm1(Value x) {
  // Below, all is -1, above, all is infinite. NaNs pass.
  Value bounded = make<arith::MaximumFOp>(x, number(-18.0));
  bounded = make<arith::MinimumFOp>(bounded, number(89.0));
  auto [shifted, r] = powersOf(bounded);
  Value p = polynomial(r, {1.38403662e-3, 8.36934801e-3, 4.16680835e-2,
                           0.166665152, 0.49999994});
  p = fma(mul(r, r), p, r);
  Value half =
      powerOfTwo(make<arith::SubIOp>(bits(shifted), integer(magicBits + 1)));
  Value sum = fma(p, half, sub(half, number(0.5)));
  return withSign(add(sum, sum), x);
}

Value FunctionCode::logTo(Value x, double ofTwo, double ofE) {
  auto [n, f] = split(x);
  Value r = mul(logOfFraction(f), number(ofE));
  return orSpecialLog(x, fma(n, number(ofTwo), r));
}

Value FunctionCode::log2(Value x) { return logTo(x, 1.0, std::numbers::log2e); }

Value FunctionCode::log10(Value x) {
  return logTo(x, std::numbers::ln2 / std::numbers::ln10, std::numbers::log10e);
}

Value FunctionCode::logOfSum(Value sum, Value rest, Value doublings) {
  auto [n, f] = split(sum);
  // Above 2^24, there is no rest that matters.
  Value scale = powerOfTwo(arith::FPToSIOp::create(
      b, loc, b.getI32Type(),
      negate(make<arith::MinNumFOp>(n, number(126.0)))));
  f = select(isLess(sum, number(0x1p25)), fma(rest, scale, f), f);
  if (doublings)
    n = add(n, doublings);
  return orSpecialLog(sum, fma(n, number(std::numbers::ln2), logOfFraction(f)));
}

/// 1 + x and what its rounding loses (Knuth, "The Art of Computer Programming",
/// volume 2, 4.2.2).
Value FunctionCode::logPlusOne(Value x, Value isLarge, Value large) {
  Value one = number(1.0), sum = add(one, x);
  Value part = sub(sum, one);
  Value rest = add(sub(one, sub(sum, part)), sub(x, part));
  if (!isLarge)
    return logOfSum(sum, rest);
  Value zero = number(0.0);
  return logOfSum(select(isLarge, large, sum), select(isLarge, zero, rest),
                  select(isLarge, one, zero));
}

Value FunctionCode::log1p(Value x) {
  // Of -0, too.
  return select(isEqual(x, number(0.0)), x, logPlusOne(x));
}

Value FunctionCode::sinh(Value x) {
  Value a = abs(x), square = mul(x, x);
  // Taylor's series: the next term is less than 1e-9.
  Value p = polynomial(
      square, {1.0 / 39916800, 1.0 / 362880, 1.0 / 5040, 1.0 / 120, 1.0 / 6});
  Value small = fma(mul(p, square), a, a);
  Value half = exponential(a, Value(), /*doublings=*/-1);
  Value large = sub(half, divide(number(0.25), half));
  return withSign(select(isLess(a, number(1.0)), small, large), x);
}

Value FunctionCode::cosh(Value x) {
  Value half = exponential(abs(x), Value(), /*doublings=*/-1);
  return add(half, divide(number(0.25), half));
}

Value FunctionCode::tanh(Value x) {
  Value a = abs(x), square = mul(x, x);
  Value p = polynomial(square, {2.18527508e-3, -8.22144933e-3, 2.17176657e-2,
                                -5.394971e-2, 0.133332282, -0.333333313});
  Value small = fma(mul(p, square), a, a);
  Value e = exp(add(a, a));
  Value large = sub(number(1.0), divide(number(2.0), add(e, number(1.0))));
  return withSign(select(isLess(a, number(0.6)), small, large), x);
}

/// log(a + sqrt(a^2 + 1)), of which 1 is taken out; log(2 * a) where 1 beside
/// a^2 does not matter.
Value FunctionCode::asinh(Value x) {
  Value a = abs(x), isLarge = isLess(number(4096.0), a);
  Value bounded = make<arith::MinNumFOp>(a, number(4096.0));
  Value square = mul(bounded, bounded), one = number(1.0);
  Value more = divide(square, add(one, sqrt(add(square, one))));
  Value result = logPlusOne(add(bounded, more), isLarge, a);
  // A NaN is bounded, too.
  return withSign(select(is(arith::CmpFPredicate::UNO, x, x), x, result), x);
}

/// log(x + sqrt(x^2 - 1)) in the same way.
Value FunctionCode::acosh(Value x) {
  Value isLarge = isLess(number(4096.0), x);
  Value t = sub(make<arith::MinNumFOp>(x, number(4096.0)), number(1.0));
  Value root = sqrt(make<arith::MaxNumFOp>(fma(t, t, add(t, t)), number(0.0)));
  Value result = logPlusOne(add(t, root), isLarge, x);
  return select(is(arith::CmpFPredicate::OGE, x, number(1.0)), result,
                number(NAN));
}

/// log((1 + a) / (1 - a)) / 2.
Value FunctionCode::atanh(Value x) {
  Value a = abs(x);
  Value ratio = divide(add(a, a), sub(number(1.0), a));
  Value result = mul(logPlusOne(ratio), number(0.5));
  result = select(isLess(a, number(1.0)), result, number(NAN));
  result = select(isEqual(a, number(1.0)), number(infinity), result);
  return withSign(result, x);
}

/// A minimax fit in relative error.
Value FunctionCode::smallAtan(Value x) {
  Value square = mul(x, x);
  Value p = polynomial(square, {2.92035984e-3, -1.63665209e-2, 4.32094261e-2,
                                -7.55199343e-2, 0.106658928, -0.142110243,
                                0.199937686, -0.333331525});
  return fma(mul(p, square), x, x);
}

/// pi/2 - atan(1 / x) above 1.
Value FunctionCode::atan(Value x) {
  Value a = abs(x), one = number(1.0), isLarge = isLess(one, a);
  Value r = smallAtan(select(isLarge, divide(one, a), a));
  Value rest = add(sub(number(std::numbers::pi / 2), r), number(halfPiLow));
  return withSign(select(isLarge, rest, r), x);
}

/// The angle in the first eighth of the circle, and from there.
Value FunctionCode::atan2(Value y, Value x) {
  Value a = abs(x), c = abs(y), zero = number(0.0);
  Value isSteep = isLess(a, c);
  Value least = select(isSteep, a, c), most = select(isSteep, c, a);
  // Where both are zero or infinite, too.
  Value ratio = divide(least, select(isEqual(most, zero), number(1.0), most));
  ratio = select(isEqual(least, number(infinity)), number(1.0), ratio);
  Value r = smallAtan(ratio);
  Value rest = add(sub(number(std::numbers::pi / 2), r), number(halfPiLow));
  r = select(isSteep, rest, r);
  rest = add(sub(number(std::numbers::pi), r), number(2 * halfPiLow));
  r = withSign(select(hasBit(bits(x), signBit), rest, r), y);
  return select(is(arith::CmpFPredicate::UNO, x, y), number(NAN), r);
}

/// A third of the exponent, then Halley's and Newton's iterations; the latter
/// knows what the cube's rounding loses.
Value FunctionCode::cbrt(Value x) {
  Value a = abs(x), isDenormal = isLess(a, number(0x1p-126));
  Value all = bits(select(isDenormal, mul(a, number(0x1p24)), a));
  // a = m * 2^(3 * third - 129), m in [1, 8).
  Value exponent = make<arith::ShRUIOp>(all, integer(23));
  Value third = make<arith::DivUIOp>(make<arith::AddIOp>(exponent, integer(2)),
                                     integer(3));
  auto shifted = [&](Value value) {
    return make<arith::ShLIOp>(value, integer(23));
  };
  Value threeTimes = make<arith::MulIOp>(third, integer(3));
  Value mBits = make<arith::SubIOp>(
      all, shifted(make<arith::SubIOp>(threeTimes, integer(129))));
  Value m = fromBits(mBits);
  // Within 4%.
  Value y = fromBits(make<arith::AddIOp>(
      make<arith::DivUIOp>(mBits, integer(3)), integer(0x2a5137a0)));
  Value cube = mul(mul(y, y), y);
  y = mul(y, divide(add(cube, add(m, m)), add(add(cube, cube), m)));
  Value square = mul(y, y);
  Value lost = fma(y, y, negate(square));
  Value error = fma(lost, y, fma(square, y, negate(m)));
  y = sub(y, divide(error, mul(square, number(3.0))));
  Value power = make<arith::SubIOp>(
      third, select(isDenormal, integer(43 + 8), integer(43)));
  Value result = fromBits(make<arith::AddIOp>(bits(y), shifted(power)));
  // Zeros, infinities and NaNs.
  Value isPlain =
      make<arith::AndIOp>(isLess(number(0.0), a), isLess(a, number(infinity)));
  return select(isPlain, withSign(result, x), x);
}

/// Long division of the mantissas, 8 bits a step.
Value FunctionCode::remainder(Value x, Value y) {
  auto mask = [&](Value value, int32_t bits) {
    return make<arith::AndIOp>(value, integer(bits));
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs).getResult();
  };
  auto difference = [&](Value lhs, Value rhs) {
    return make<arith::SubIOp>(lhs, rhs);
  };
  auto shifted = [&](Value value, Value by) {
    return make<arith::ShLIOp>(value, by);
  };
  Value zero = integer(0), one = integer(1), implicit = integer(0x800000);
  // A magnitude is mantissa * 2^(exponent - 150).
  struct Parts {
    Value mantissa, exponent;
  };
  auto partsOf = [&](Value magnitude) -> Parts {
    Value exponent = make<arith::ShRUIOp>(magnitude, integer(23));
    Value isDenormal = compare(arith::CmpIPredicate::eq, exponent, zero);
    Value fraction = mask(magnitude, 0x7fffff);
    return {
        select(isDenormal, fraction, make<arith::OrIOp>(fraction, implicit)),
        select(isDenormal, one, exponent)};
  };
  Value xBits = mask(bits(x), ~signBit), yBits = mask(bits(y), ~signBit);
  auto [xMantissa, xExponent] = partsOf(xBits);
  auto [mantissa, exponent] = partsOf(yBits);
  Value isZero = compare(arith::CmpIPredicate::eq, yBits, zero);
  Value divisor = select(isZero, one, mantissa);
  Value first = make<arith::RemUIOp>(xMantissa, divisor);
  Value places = make<arith::MaxSIOp>(difference(xExponent, exponent), zero);
  auto division = scf::ForOp::create(
      b, loc, zero, places, integer(8), first,
      [&](OpBuilder &b, Location loc, Value done, ValueRange rest) {
        FunctionCode code(b, loc);
        Value step = code.make<arith::MinSIOp>(
            code.make<arith::SubIOp>(places, done), code.integer(8));
        Value next = code.make<arith::ShLIOp>(rest[0], step);
        scf::YieldOp::create(
            b, loc, ValueRange{code.make<arith::RemUIOp>(next, divisor)});
      });
  Value rest = division.getResult(0);
  // The bits of rest * 2^(exponent - 150).
  Value asNumber = bits(toNumber(rest));
  Value power = difference(exponent, integer(150));
  Value normal = make<arith::AddIOp>(asNumber, shifted(power, integer(23)));
  Value isSmall = compare(
      arith::CmpIPredicate::slt,
      make<arith::AddIOp>(make<arith::ShRUIOp>(asNumber, integer(23)), power),
      one);
  isSmall = make<arith::OrIOp>(isSmall,
                               compare(arith::CmpIPredicate::eq, rest, zero));
  Value small = shifted(
      rest, make<arith::MinSIOp>(difference(exponent, one), integer(31)));
  Value result = select(isSmall, small, normal);
  result =
      select(compare(arith::CmpIPredicate::ult, xBits, yBits), xBits, result);
  Value hasNone = make<arith::OrIOp>(
      isZero, compare(arith::CmpIPredicate::uge, xBits, integer(0x7f800000)));
  hasNone = make<arith::OrIOp>(
      hasNone, compare(arith::CmpIPredicate::ugt, yBits, integer(0x7f800000)));
  result = select(hasNone, integer(0x7fc00000), result);
  return fromBits(make<arith::OrIOp>(result, mask(bits(x), signBit)));
}

template <typename OpTy, auto expand>
using Expand = ExpandF32<OpTy, FunctionCode, expand>;

} // namespace

void mlir::kf::populateGpuMathPatterns(RewritePatternSet &patterns) {
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return llvm::is_contained({math::AcosOp::getOperationName(),
                               math::AsinOp::getOperationName(),
                               math::ErfcOp::getOperationName()},
                              name);
  });
  patterns.add<Expand<math::Exp2Op, &FunctionCode::exp2>,
               Expand<math::ExpM1Op, &FunctionCode::expm1>,
               Expand<math::Log2Op, &FunctionCode::log2>,
               Expand<math::Log10Op, &FunctionCode::log10>,
               Expand<math::Log1pOp, &FunctionCode::log1p>,
               Expand<math::SinhOp, &FunctionCode::sinh>,
               Expand<math::CoshOp, &FunctionCode::cosh>,
               Expand<math::TanhOp, &FunctionCode::tanh>,
               Expand<math::AsinhOp, &FunctionCode::asinh>,
               Expand<math::AcoshOp, &FunctionCode::acosh>,
               Expand<math::AtanhOp, &FunctionCode::atanh>,
               Expand<math::CbrtOp, &FunctionCode::cbrt>,
               Expand<math::AtanOp, &FunctionCode::atan>,
               Expand<math::Atan2Op, &FunctionCode::atan2>,
               Expand<arith::RemFOp, &FunctionCode::remainder>>(
      patterns.getContext());
}
