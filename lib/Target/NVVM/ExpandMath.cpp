//===- ExpandMath.cpp - Functions of f32 without a library ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every operation here rounds as IEEE 754 says, so that a CPU finds the errors
// that a GPU would make; ExpandMathTest measures them. Polynomials are minimax
// fits in relative error, coefficients rounded to f32 from the lowest on, the
// others fitted again.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/NVVM/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <numbers>

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDNVVMMATH
#include "kf/Target/NVVM/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// 1.5 * 2^23: the integer nearest to x is in the low bits of x + magic.
constexpr double magic = 12582912.0;
constexpr int32_t magicBits = 0x4b400000;
constexpr int32_t signBit = std::numeric_limits<int32_t>::min();
/// Multiples of it have few bits, so that small ones are exact; with the rest.
constexpr double ln2High = 0.693145751953125, ln2Low = 1.42860682030941723e-6;

/// Emits arithmetic on scalars of f32, i32 and i64.
class MathExpander {
public:
  MathExpander(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value exp(Value x) { return expSum(x, Value()); }
  Value log(Value x);
  Value sin(Value x) { return sinCos(x, /*cosine=*/false); }
  Value cos(Value x) { return sinCos(x, /*cosine=*/true); }
  Value tanh(Value x);
  Value erf(Value x);
  Value pow(Value x, Value y);
  /// The i16 that `x` is when rounded to f16.
  Value halfBits(Value x);

private:
  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value integer(int32_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  Value wide(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }
  template <typename OpTy> Value make(Value lhs, Value rhs) {
    return OpTy::create(b, loc, lhs, rhs);
  }
  Value add(Value x, Value y) { return make<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return make<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return make<arith::MulFOp>(x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value negate(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value abs(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value bits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  }
  Value fromBits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), x);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  /// Comparisons that are false where one side is a NaN.
  Value isLess(Value x, Value y) { return is(arith::CmpFPredicate::OLT, x, y); }
  Value isEqual(Value x, Value y) {
    return is(arith::CmpFPredicate::OEQ, x, y);
  }
  Value is(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value hasBit(Value x, int32_t bit) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                 make<arith::AndIOp>(x, integer(bit)),
                                 integer(0));
  }
  Value truncate(Value x) {
    return arith::TruncIOp::create(b, loc, b.getI32Type(), x);
  }
  Value extend(Value x) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), x);
  }
  Value toNumber(Value x) {
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), x);
  }
  /// By Horner's rule, highest coefficient first.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = number(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, number(coefficient));
    return sum;
  }

  //===--------------------------------------------------------------------===//
  // Parts
  //===--------------------------------------------------------------------===//

  /// e^(x + rest), where `rest`, if there is one, is small.
  Value expSum(Value x, Value rest);
  /// A positive x is 2^exponent * (1 + fraction), fraction in [-1/3, 1/3).
  struct Split {
    Value exponent, fraction;
  };
  Split split(Value x);
  Value sinCos(Value x, bool cosine);
  /// x = quarters * pi/2 + rest, rest in [-pi/4, pi/4] or hardly more; quarters
  /// (i32) modulo 4. Not for negative x.
  struct Angle {
    Value quarters, rest;
  };
  Angle reduce(Value x);
  Angle reduceLarge(Value x);

  OpBuilder &b;
  Location loc;
};

Value MathExpander::expSum(Value x, Value rest) {
  // Below, all is 0, above, all is infinite. NaNs pass.
  x = make<arith::MaximumFOp>(x, number(-105.0));
  x = make<arith::MinimumFOp>(x, number(89.0));
  Value shifted = fma(x, number(std::numbers::log2e), number(magic));
  Value n = sub(shifted, number(magic));
  Value r = fma(n, number(-ln2High), x);
  r = fma(n, number(-ln2Low), r);
  if (rest)
    r = add(r, rest);
  Value p = polynomial(r, {1.38403662e-3, 8.36934801e-3, 4.16680835e-2,
                           0.166665152, 0.49999994, 1.0, 1.0});
  // Two factors, each a normal number, reach denormals and infinity.
  Value power = make<arith::SubIOp>(bits(shifted), integer(magicBits));
  Value half = make<arith::ShRSIOp>(power, integer(1));
  auto factor = [&](Value power) {
    return fromBits(make<arith::ShLIOp>(
        make<arith::AddIOp>(power, integer(127)), integer(23)));
  };
  return mul(mul(p, factor(half)), factor(make<arith::SubIOp>(power, half)));
}

MathExpander::Split MathExpander::split(Value x) {
  Value isDenormal = isLess(x, number(0x1p-126));
  Value normal = bits(select(isDenormal, mul(x, number(0x1p23)), x));
  // Exponents count from 2/3 to 4/3.
  Value exponent = make<arith::ShRSIOp>(
      make<arith::SubIOp>(normal, bits(number(2.0 / 3.0))), integer(23));
  Value mantissa = fromBits(
      make<arith::SubIOp>(normal, make<arith::ShLIOp>(exponent, integer(23))));
  return {
      add(toNumber(exponent), select(isDenormal, number(-23.0), number(0.0))),
      sub(mantissa, number(1.0))};
}

Value MathExpander::log(Value x) {
  auto [n, f] = split(x);
  Value p =
      polynomial(f, {-0.129589871, 0.140097111, -0.121830203, 0.140047431,
                     -0.16680263, 0.200104609, -0.249998018, 0.333332151});
  Value square = mul(f, f);
  Value r = add(fma(mul(p, f), square, mul(square, number(-0.5))), f);
  r = fma(n, number(std::numbers::ln2), r);
  // Infinity and NaNs are their own logarithms.
  r = select(isLess(x, number(infinity)), r, x);
  r = select(isEqual(x, number(0.0)), number(-infinity), r);
  return select(isLess(x, number(0.0)), number(NAN), r);
}

Value MathExpander::tanh(Value x) {
  Value a = abs(x), square = mul(x, x);
  Value p = polynomial(square, {2.18527508e-3, -8.22144933e-3, 2.17176657e-2,
                                -5.394971e-2, 0.133332282, -0.333333313});
  Value small = fma(mul(p, square), a, a);
  Value e = exp(add(a, a));
  Value large =
      sub(number(1.0), make<arith::DivFOp>(number(2.0), add(e, number(1.0))));
  return math::CopySignOp::create(
      b, loc, select(isLess(a, number(0.6)), small, large), x);
}

Value MathExpander::erf(Value x) {
  Value a = abs(x), square = mul(x, x);
  Value p = polynomial(square, {7.99664995e-5, -8.04976968e-4, 5.19240508e-3,
                                -2.68557314e-2, 0.112836257, -0.376126289,
                                0.128379166});
  Value small = fma(p, a, a);
  // 1 - e^q; the difference to 1 vanishes from 4 on.
  Value q =
      polynomial(make<arith::MinimumFOp>(a, number(4.0)),
                 {-2.11002171e-5, 4.3449708e-4, -4.17116564e-3, 2.51195915e-2,
                  -0.108280227, -0.633346856, -1.12951493, 1.74682515e-4});
  Value large = sub(number(1.0), exp(q));
  return math::CopySignOp::create(
      b, loc, select(isLess(a, number(0.92)), small, large), x);
}

/// log |x| and its product with y have two parts: what is lost of 88 would be
/// as much times too large in the result.
Value MathExpander::pow(Value x, Value y) {
  Value a = abs(x), zero = number(0.0), one = number(1.0);
  auto [n, f] = split(a);
  Value p = polynomial(f, {-0.115492478, 0.121084809, -9.69685465e-2,
                           0.107309304, -0.125002638, 0.143064693, -0.1666715,
                           0.199995115, -0.25000006, 0.333333373});
  Value square = mul(f, f), halved = mul(square, number(-0.5));
  Value sum = add(f, halved);
  Value rest = add(sub(f, sum), halved);
  rest = fma(fma(f, f, negate(square)), number(-0.5), rest);
  rest = fma(mul(p, f), square, rest);
  Value large = mul(n, number(ln2High));
  Value high = add(large, sum);
  Value low = add(add(sub(large, high), sum), fma(n, number(ln2Low), rest));
  Value log = add(high, low);
  low = add(sub(high, log), low);
  log = select(isEqual(a, zero), number(-infinity), log);
  log = select(isEqual(a, number(infinity)), number(infinity), log);

  Value product = mul(y, log);
  rest = fma(y, low, fma(y, log, negate(product)));
  rest = select(isLess(abs(product), number(200.0)), rest, zero);
  Value r = expSum(select(isEqual(a, one), zero, product), rest);

  auto isWhole = [&](Value value) {
    return isEqual(math::FloorOp::create(b, loc, value), value);
  };
  auto both = [&](Value lhs, Value rhs) {
    return make<arith::AndIOp>(lhs, rhs);
  };
  auto isNot = [&](Value value) {
    return make<arith::XOrIOp>(
        value, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  };
  Value whole = isWhole(y);
  Value odd = both(whole, isNot(isWhole(mul(y, number(0.5)))));
  r = select(both(odd, hasBit(bits(x), signBit)), negate(r), r);
  Value isFinite = isLess(a, number(infinity));
  Value hasNone = both(both(isLess(x, zero), isFinite), isNot(whole));
  hasNone = make<arith::OrIOp>(hasNone, is(arith::CmpFPredicate::UNO, x, y));
  r = select(hasNone, number(NAN), r);
  // Even of a NaN.
  return select(make<arith::OrIOp>(isEqual(y, zero), isEqual(x, one)), one, r);
}

Value MathExpander::halfBits(Value x) {
  auto shiftRight = [&](Value value, int32_t by) {
    return make<arith::ShRUIOp>(value, integer(by));
  };
  auto mask = [&](Value value, int32_t bits) {
    return make<arith::AndIOp>(value, integer(bits));
  };
  auto isBelow = [&](Value value, int32_t limit) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, value,
                                 integer(limit));
  };
  Value all = bits(x);
  Value a = mask(all, ~signBit);
  // Half a unit in the last place, and the last bit, so that ties become even.
  Value large =
      make<arith::AddIOp>(make<arith::AddIOp>(a, integer(0x0fff - 0x38000000)),
                          mask(shiftRight(a, 13), 1));
  large = make<arith::MinUIOp>(shiftRight(large, 13), integer(0x7c00));
  // Denormals of f16 are multiples of the last place of 0.5.
  Value small = make<arith::SubIOp>(bits(add(fromBits(a), number(0.5))),
                                    bits(number(0.5)));
  Value nan =
      make<arith::OrIOp>(mask(shiftRight(a, 13), 0x3ff), integer(0x7e00));
  Value half = select(isBelow(a, 0x38800000), small, large);
  half = select(isBelow(a, 0x7f800001), half, nan);
  Value sign = mask(shiftRight(all, 16), 0x8000);
  return arith::TruncIOp::create(b, loc, b.getI16Type(),
                                 make<arith::OrIOp>(half, sign));
}

//===----------------------------------------------------------------------===//
// Sine and cosine
//===----------------------------------------------------------------------===//

/// By multiples of pi/2 held in three parts (Cody and Waite, "Software Manual
/// for the Elementary Functions", 1980).
MathExpander::Angle MathExpander::reduce(Value x) {
  Value shifted = fma(x, number(2.0 / std::numbers::pi), number(magic));
  Value n = sub(shifted, number(magic));
  Value r = fma(n, number(-1.5707963705062866), x);
  r = fma(n, number(4.371139000186243e-8), r);
  r = fma(n, number(1.7151245100058819e-15), r);
  return {bits(shifted), r};
}

/// By multiplying with as many bits of 2/pi as matter (Payne and Hanek, "Radian
/// reduction for trigonometric functions", 1983): those behind a multiple of 4
/// do not, nor those that reach less than 62 bits below 1.
MathExpander::Angle MathExpander::reduceLarge(Value x) {
  constexpr uint32_t twoOverPi[] = {0,          0xa2f9836e, 0x4e441529,
                                    0xfc2757d1, 0xf534ddc0, 0xdb629599,
                                    0x3c439041, 0xfe5163ab};
  constexpr int64_t windows = std::size(twoOverPi) - 3;
  Value all = bits(x);
  Value mantissa = extend(make<arith::OrIOp>(
      make<arith::AndIOp>(all, integer(0x7fffff)), integer(0x800000)));
  // x = mantissa * 2^(exponent - 150), and the first word is 0.
  Value exponent = make<arith::ShRUIOp>(all, integer(23));
  Value position = make<arith::SubIOp>(exponent, integer(150 + 2 - 32));
  Value first = make<arith::ShRUIOp>(position, integer(5));
  Value shift = extend(make<arith::AndIOp>(position, integer(31)));
  SmallVector<Value> words;
  for (int64_t word = 0; word < 4; ++word) {
    Value chosen = wide(twoOverPi[word]);
    for (int64_t window = 1; window < windows; ++window) {
      Value isChosen = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                             first, integer(window));
      chosen = select(isChosen, wide(twoOverPi[window + word]), chosen);
    }
    words.push_back(chosen);
  }
  auto shl = [&](Value value, Value by) {
    return make<arith::ShLIOp>(value, by);
  };
  auto shr = [&](Value value, Value by) {
    return make<arith::ShRUIOp>(value, by);
  };
  auto sum = [&](Value lhs, Value rhs) {
    return make<arith::AddIOp>(lhs, rhs);
  };
  auto times = [&](int64_t word) {
    Value joined =
        make<arith::OrIOp>(shl(words[word], wide(32)), words[word + 1]);
    Value aligned = shr(shl(joined, shift), wide(32));
    return make<arith::MulIOp>(mantissa, aligned);
  };
  // In units of 2^-62, modulo 4.
  Value turns =
      sum(sum(shl(times(0), wide(32)), times(1)), shr(times(2), wide(32)));
  Value quarters = shr(sum(turns, wide(int64_t(1) << 61)), wide(62));
  Value rest = make<arith::SubIOp>(turns, shl(quarters, wide(62)));
  return {truncate(quarters),
          mul(toNumber(rest), number(std::numbers::pi / 2 * 0x1p-62))};
}

Value MathExpander::sinCos(Value x, bool cosine) {
  Value a = abs(x);
  auto yield = [](OpBuilder &b, Location loc, Angle angle) {
    scf::YieldOp::create(b, loc, ValueRange{angle.quarters, angle.rest});
  };
  auto angle = scf::IfOp::create(
      b, loc, is(arith::CmpFPredicate::OGT, a, number(131072.0)),
      [&](OpBuilder &b, Location loc) {
        yield(b, loc, MathExpander(b, loc).reduceLarge(a));
      },
      [&](OpBuilder &b, Location loc) {
        yield(b, loc, MathExpander(b, loc).reduce(a));
      });
  Value quarters = angle.getResult(0);
  // Infinity has neither sine nor cosine.
  Value r = select(isLess(a, number(infinity)), angle.getResult(1), sub(a, a));
  Value square = mul(r, r);
  Value sine =
      fma(mul(square, r),
          polynomial(square, {-1.95078843e-4, 8.33210628e-3, -0.166666538}), r);
  Value cosineOfRest =
      fma(mul(square, square),
          polynomial(square, {2.44321018e-5, -1.38873083e-3, 4.16666456e-2}),
          fma(square, number(-0.5), number(1.0)));

  Value swap = hasBit(quarters, 1);
  Value value = cosine ? select(swap, sine, cosineOfRest)
                       : select(swap, cosineOfRest, sine);
  if (cosine)
    quarters = make<arith::AddIOp>(quarters, integer(1));
  Value sign = make<arith::ShLIOp>(make<arith::AndIOp>(quarters, integer(2)),
                                   integer(30));
  if (!cosine)
    sign = make<arith::XOrIOp>(sign,
                               make<arith::AndIOp>(bits(x), integer(signBit)));
  return fromBits(make<arith::XOrIOp>(bits(value), sign));
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

template <typename OpTy, Value (MathExpander::*expand)(Value)>
struct ExpandUnary : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not a scalar of f32");
    MathExpander expander(rewriter, op.getLoc());
    rewriter.replaceOp(op, (expander.*expand)(op.getOperand()));
    return success();
  }
};

struct ExpandPow : OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not a scalar of f32");
    MathExpander expander(rewriter, op.getLoc());
    rewriter.replaceOp(op, expander.pow(op.getLhs(), op.getRhs()));
    return success();
  }
};

/// See the pass's description for why.
struct ExpandHalfBits : OpRewritePattern<arith::BitcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::BitcastOp op,
                                PatternRewriter &rewriter) const override {
    auto rounded = op.getIn().getDefiningOp<arith::TruncFOp>();
    if (!rounded || !rounded.getIn().getType().isF32() ||
        !rounded.getType().isF16() || !op.getType().isInteger(16))
      return rewriter.notifyMatchFailure(op, "no bits of a rounded f16");
    MathExpander expander(rewriter, op.getLoc());
    rewriter.replaceOp(op, expander.halfBits(rounded.getIn()));
    return success();
  }
};

struct ExpandNvvmMathPass
    : mlir::kf::impl::ExpandNvvmMathBase<ExpandNvvmMathPass> {
  void runOnOperation() override {
    auto isExpanded = [](StringRef name) {
      return llvm::is_contained(
          {math::ExpOp::getOperationName(), math::LogOp::getOperationName(),
           math::SinOp::getOperationName(), math::CosOp::getOperationName(),
           math::TanhOp::getOperationName(), math::ErfOp::getOperationName(),
           math::PowFOp::getOperationName()},
          name);
    };
    RewritePatternSet widen(&getContext());
    populateMathF32ExpansionPatterns(widen, isExpanded);
    walkAndApplyPatterns(getOperation(), std::move(widen));

    RewritePatternSet expand(&getContext());
    expand.add<ExpandUnary<math::ExpOp, &MathExpander::exp>,
               ExpandUnary<math::LogOp, &MathExpander::log>,
               ExpandUnary<math::SinOp, &MathExpander::sin>,
               ExpandUnary<math::CosOp, &MathExpander::cos>,
               ExpandUnary<math::TanhOp, &MathExpander::tanh>,
               ExpandUnary<math::ErfOp, &MathExpander::erf>, ExpandPow,
               ExpandHalfBits>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(expand));
  }
};

} // namespace
