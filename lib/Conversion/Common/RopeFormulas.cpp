//===- RopeFormulas.cpp - Rotations by angles -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeFormulas.h"

#include "ScalarCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

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

/// Reduces by multiples of pi/2 (Cody and Waite, "Software Manual for the
/// Elementary Functions", 1980), then minimax polynomials on [-pi/4, pi/4].
SinCos mlir::kf::sinCos(TileEmitter &e, Value angle, FmaRounding rounding) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  auto number = [&](double value) { return constantLike(e, angle, value); };
  auto fma = [&](Value a, Value x, Value c) -> Value {
    return math::FmaOp::create(b, loc, a, x, c);
  };
  Value quarters = math::RoundEvenOp::create(
      b, loc, e.mul(angle, number(2.0 / std::numbers::pi)));
  Value r = angle;
  for (double part : partsOfQuarter(rounding))
    r = fma(quarters, number(-part), r);
  Value r2 = e.mul(r, r);
  Value sine = fma(
      e.mul(r2, r),
      polynomial(e, r2, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}),
      r);
  Value cosine = fma(e.mul(r2, r2),
                     polynomial(e, r2,
                                {2.443315711809948e-5, -1.388731625493765e-3,
                                 4.166664568298827e-2}),
                     fma(r2, number(-0.5), number(1.0)));

  Type integers = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(angle.getType()))
    integers = vector.clone(integers);
  ScalarCode code(e);
  auto integer = [&](int64_t value) { return code.number(integers, value); };
  Value quadrant = arith::FPToSIOp::create(b, loc, integers, quarters);
  auto hasBit = [&](Value value, int64_t bit) {
    return code.compare(arith::CmpIPredicate::ne,
                        code.both(value, integer(bit)), integer(0));
  };
  auto negateIf = [&](Value condition, Value value) {
    return e.select(condition, arith::NegFOp::create(b, loc, value), value);
  };
  Value odd = hasBit(quadrant, 1);
  Value sinPart = e.select(odd, cosine, sine);
  Value cosPart = e.select(odd, sine, cosine);
  Value next = code.make<arith::AddIOp>(quadrant, integer(1));
  return {negateIf(hasBit(quadrant, 2), sinPart),
          negateIf(hasBit(next, 2), cosPart)};
}

std::pair<Value, Value> mlir::kf::rotate(TileEmitter &e, Value first,
                                         Value second, const SinCos &angle) {
  return {e.sub(e.mul(first, angle.cosine), e.mul(second, angle.sine)),
          e.add(e.mul(second, angle.cosine), e.mul(first, angle.sine))};
}
