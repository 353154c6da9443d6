//===- ExpandMath.cpp - Functions of f32 without a library ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The errors of what is made here are measured by ExpandMathTest. Polynomials
// are minimax fits in relative error, coefficients rounded to f32 from the
// lowest on, the others fitted again.
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/TwoOverPi.h"
#include "kf/Target/Common/GpuMath.h"
#include "kf/Target/Common/MathCode.h"
#include "kf/Target/NVVM/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <numbers>

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDNVVMMATH
#include "kf/Target/NVVM/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Which of the functions of an angle.
enum class Circular { Sine, Cosine, Tangent };

class MathExpander : public MathCode {
public:
  using MathCode::MathCode;

  Value sin(Value x) { return circular(x, Circular::Sine); }
  Value cos(Value x) { return circular(x, Circular::Cosine); }
  Value tan(Value x) { return circular(x, Circular::Tangent); }
  Value erf(Value x);
  Value pow(Value x, Value y);
  /// The i16 that `x` is when rounded to f16.
  Value halfBits(Value x);

private:
  Value circular(Value x, Circular kind);
  /// x = quarters * pi/2 + rest, rest in [-pi/4, pi/4] or hardly more; quarters
  /// (i32) modulo 4. Not for negative x.
  struct Angle {
    Value quarters, rest;
  };
  Angle reduce(Value x);
  Angle reduceLarge(Value x);
};

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
  Value r = exponential(select(isEqual(a, one), zero, product), rest);

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
// Sine, cosine and tangent
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

/// By multiplying with as many bits of 2/pi as matter: those behind a multiple
/// of 4 do not, nor those that reach less than 62 bits below 1.
MathExpander::Angle MathExpander::reduceLarge(Value x) {
  constexpr int64_t windows = std::size(kTwoOverPi) - 3;
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
    Value chosen = wide(kTwoOverPi[word]);
    for (int64_t window = 1; window < windows; ++window) {
      Value isChosen = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                             first, integer(window));
      chosen = select(isChosen, wide(kTwoOverPi[window + word]), chosen);
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

Value MathExpander::circular(Value x, Circular kind) {
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
  Value ofSine = select(swap, cosineOfRest, sine);
  Value ofCosine = select(swap, sine, cosineOfRest);
  Value signOfX = make<arith::AndIOp>(bits(x), integer(signBit));
  if (kind == Circular::Tangent) {
    Value sign = make<arith::ShLIOp>(quarters, integer(31));
    return fromBits(
        make<arith::XOrIOp>(bits(make<arith::DivFOp>(ofSine, ofCosine)),
                            make<arith::XOrIOp>(sign, signOfX)));
  }
  bool isCosine = kind == Circular::Cosine;
  Value value = isCosine ? ofCosine : ofSine;
  if (isCosine)
    quarters = make<arith::AddIOp>(quarters, integer(1));
  Value sign = make<arith::ShLIOp>(make<arith::AndIOp>(quarters, integer(2)),
                                   integer(30));
  if (!isCosine)
    sign = make<arith::XOrIOp>(sign, signOfX);
  return fromBits(make<arith::XOrIOp>(bits(value), sign));
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

template <typename OpTy, auto expand>
using Expand = ExpandF32<OpTy, MathExpander, expand>;

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

/// Where the last bits do not matter, by the instruction of 2^x.
struct ApproximateExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32() ||
        !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "its last bits matter");
    Value log2 = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        rewriter.getF32FloatAttr(static_cast<float>(std::numbers::log2e)));
    Value power =
        arith::MulFOp::create(rewriter, op.getLoc(), op.getOperand(), log2);
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr("llvm.nvvm.ex2.approx.ftz"),
        ValueRange{power});
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
           math::TanOp::getOperationName(), math::TanhOp::getOperationName(),
           math::ErfOp::getOperationName(), math::PowFOp::getOperationName()},
          name);
    };
    RewritePatternSet widen(&getContext());
    populateMathF32ExpansionPatterns(widen, isExpanded);
    walkAndApplyPatterns(getOperation(), std::move(widen));

    RewritePatternSet shared(&getContext());
    populateGpuMathPatterns(shared);
    // Greedily, for that of acos makes an asin.
    if (failed(applyPatternsGreedily(getOperation(), std::move(shared))))
      return signalPassFailure();

    RewritePatternSet expand(&getContext());
    expand.add<Expand<math::ExpOp, &MathExpander::exp>,
               Expand<math::LogOp, &MathExpander::log>,
               Expand<math::SinOp, &MathExpander::sin>,
               Expand<math::CosOp, &MathExpander::cos>,
               Expand<math::TanOp, &MathExpander::tan>,
               Expand<math::ErfOp, &MathExpander::erf>,
               Expand<math::PowFOp, &MathExpander::pow>, ExpandHalfBits>(
        &getContext());
    expand.add<ApproximateExp>(&getContext(), /*benefit=*/2);
    walkAndApplyPatterns(getOperation(), std::move(expand));
  }
};

} // namespace
