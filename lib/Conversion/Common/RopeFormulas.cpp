//===- RopeFormulas.cpp - Rotations by angles -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeFormulas.h"

#include "ScalarCode.h"

#include "kf/Conversion/TwoOverPi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace mlir::kf;

/// Polynomial in `x` by Horner's rule, highest coefficient first.
static Value polynomial(TileEmitter &e, Value x,
                        ArrayRef<double> coefficients) {
  Value sum = constantLike(e, x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = math::FmaOp::create(e.b, e.loc, sum, x,
                              constantLike(e, x, coefficient));
  return sum;
}

/// pi/2 in parts, less a multiple of which is taken one after another. With an
/// fma that rounds once, three are enough. Else products have to be exact: the
/// parts but the last have 5 bits, for multiples up to 2^19.
static ArrayRef<double> partsOfQuarter(FmaRounding fma) {
  static constexpr double ofFma[] = {1.5707963705062866, -4.371139000186243e-8,
                                     -1.7151245100058819e-15};
  static constexpr double exact[] = {
      1.5625, 0.00830078125, -4.5299530029296875e-06, 7.54978995489188216e-8};
  return fma == FmaRounding::Once ? ArrayRef(ofFma) : ArrayRef(exact);
}

namespace {

/// angle = quarters * pi/2 + rest, rest in [-pi/4, pi/4] or hardly more;
/// quarters (i32) modulo 4.
struct Reduced {
  Value quarters, rest;
};

class AngleCode : public ScalarCode {
public:
  AngleCode(TileEmitter &e, Value angle)
      : ScalarCode(e), angle(angle), integers(likeAngle(b.getI32Type())) {}

  Reduced reduce(FmaRounding rounding);
  SinCos sinCos(const Reduced &reduced);

private:
  /// From here on, multiples of the parts of pi/2 are not exact.
  static constexpr double largeAngle = 0x1p19;

  Reduced reduceSmall(FmaRounding rounding);
  Reduced reduceLarge();

  Type likeAngle(Type element) {
    auto vector = dyn_cast<VectorType>(angle.getType());
    return vector ? Type(vector.clone(element)) : element;
  }
  Value real(double value) { return constantLike(tile, angle, value); }
  Value integer(int64_t value) { return number(integers, value); }
  Value toReal(Value value) {
    return arith::SIToFPOp::create(b, loc, angle.getType(), value);
  }
  Value toInteger(Value value) {
    return arith::FPToSIOp::create(b, loc, integers, value);
  }
  Value fma(Value a, Value x, Value c) {
    return math::FmaOp::create(b, loc, a, x, c);
  }
  Value negateIf(Value condition, Value value) {
    return tile.select(condition, arith::NegFOp::create(b, loc, value), value);
  }
  Value hasBit(Value value, int64_t bit) {
    return compare(arith::CmpIPredicate::ne, both(value, integer(bit)),
                   integer(0));
  }

  Value angle;
  Type integers;
};

} // namespace

/// By multiples of pi/2 (Cody and Waite, "Software Manual for the Elementary
/// Functions", 1980).
Reduced AngleCode::reduceSmall(FmaRounding rounding) {
  Value quarters = math::RoundEvenOp::create(
      b, loc, tile.mul(angle, real(2.0 / std::numbers::pi)));
  Value rest = angle;
  for (double part : partsOfQuarter(rounding))
    rest = fma(quarters, real(-part), rest);
  return {toInteger(quarters), rest};
}

/// By the bits of 2/pi that matter, in 30 bits behind the point: those of
/// multiples of 4 quarters do not, and those behind are worth a few units of
/// the last.
Reduced AngleCode::reduceLarge() {
  constexpr int64_t windows = 5;
  static_assert(windows + 2 <= std::size(kTwoOverPi));
  auto shl = [&](Value value, Value by) {
    return make<arith::ShLIOp>(value, by);
  };
  auto shr = [&](Value value, Value by) {
    return make<arith::ShRUIOp>(value, by);
  };
  auto sum = [&](Value lhs, Value rhs) {
    return make<arith::AddIOp>(lhs, rhs);
  };
  auto difference = [&](Value lhs, Value rhs) {
    return make<arith::SubIOp>(lhs, rhs);
  };
  // |angle| = mantissa * 2^(exponent - 150). The product with 2/pi is wanted
  // from 2^1 to 2^-30: from bit (exponent - 120) of the table on.
  Value bits = arith::BitcastOp::create(b, loc, integers, angle);
  Value exponent = both(shr(bits, integer(23)), integer(255));
  Value mantissa =
      make<arith::OrIOp>(both(bits, integer(0x7fffff)), integer(0x800000));
  Value place = difference(exponent, integer(120));
  Value first = shr(place, integer(5)), shift = both(place, integer(31));
  auto word = [&](int64_t number) {
    auto at = [&](int64_t window) {
      return integer(static_cast<int32_t>(kTwoOverPi[window + number]));
    };
    Value chosen = at(0);
    for (int64_t window = 1; window < windows; ++window)
      chosen =
          tile.select(compare(arith::CmpIPredicate::eq, first, integer(window)),
                      at(window), chosen);
    return chosen;
  };
  Value words[] = {word(0), word(1), word(2)};
  // Of two words, those 32 bits that begin at `shift`.
  Value other = difference(integer(31), shift);
  auto aligned = [&](int64_t number) {
    Value rest = shr(shr(words[number + 1], integer(1)), other);
    return make<arith::OrIOp>(shl(words[number], shift), rest);
  };
  Value below = tile.mul(toReal(shr(aligned(1), integer(8))), real(0x1p-24));
  Value turns = sum(make<arith::MulIOp>(mantissa, aligned(0)),
                    toInteger(tile.mul(toReal(mantissa), below)));
  Value quarters =
      make<arith::ShRSIOp>(sum(turns, integer(1 << 29)), integer(30));
  Value rest = tile.mul(toReal(difference(turns, shl(quarters, integer(30)))),
                        real(std::numbers::pi / 2 * 0x1p-30));
  Value isNegative = compare(arith::CmpIPredicate::slt, bits, integer(0));
  Value isFinite = compare(arith::CmpIPredicate::ne, exponent, integer(255));
  return {tile.select(isNegative, difference(integer(0), quarters), quarters),
          tile.select(isFinite, negateIf(isNegative, rest),
                      real(std::numeric_limits<double>::quiet_NaN()))};
}

/// Models have few large angles, if any: a branch where a lane has one.
Reduced AngleCode::reduce(FmaRounding rounding) {
  Reduced small = reduceSmall(rounding);
  Value isLarge =
      compare(arith::CmpFPredicate::OGT, math::AbsFOp::create(b, loc, angle),
              real(largeAngle));
  Value condition = isa<VectorType>(isLarge.getType()) ? any(isLarge) : isLarge;
  auto branch = scf::IfOp::create(b, loc, TypeRange{integers, angle.getType()},
                                  condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Reduced large = reduceLarge();
  scf::YieldOp::create(
      b, loc,
      ValueRange{tile.select(isLarge, large.quarters, small.quarters),
                 tile.select(isLarge, large.rest, small.rest)});
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{small.quarters, small.rest});
  return {branch.getResult(0), branch.getResult(1)};
}

/// By minimax polynomials on [-pi/4, pi/4].
SinCos AngleCode::sinCos(const Reduced &reduced) {
  const auto [quarters, r] = reduced;
  Value r2 = tile.mul(r, r);
  Value sine =
      fma(tile.mul(r2, r),
          polynomial(tile, r2,
                     {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}),
          r);
  Value cosine = fma(tile.mul(r2, r2),
                     polynomial(tile, r2,
                                {2.443315711809948e-5, -1.388731625493765e-3,
                                 4.166664568298827e-2}),
                     fma(r2, real(-0.5), real(1.0)));
  Value odd = hasBit(quarters, 1);
  Value sinPart = tile.select(odd, cosine, sine);
  Value cosPart = tile.select(odd, sine, cosine);
  Value next = make<arith::AddIOp>(quarters, integer(1));
  return {negateIf(hasBit(quarters, 2), sinPart),
          negateIf(hasBit(next, 2), cosPart)};
}

SinCos mlir::kf::sinCos(TileEmitter &e, Value angle, FmaRounding rounding) {
  AngleCode code(e, angle);
  return code.sinCos(code.reduce(rounding));
}

SinCos mlir::kf::scaled(TileEmitter &e, const SinCos &angle,
                        std::optional<APFloat> magnitude) {
  if (!magnitude)
    return angle;
  Value factor = constantLike(e, angle.sine, magnitude->convertToDouble());
  return {e.mul(angle.sine, factor), e.mul(angle.cosine, factor)};
}

std::pair<Value, Value> mlir::kf::rotate(TileEmitter &e, Value first,
                                         Value second, const SinCos &angle) {
  return {e.sub(e.mul(first, angle.cosine), e.mul(second, angle.sine)),
          e.add(e.mul(second, angle.cosine), e.mul(first, angle.sine))};
}
