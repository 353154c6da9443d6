//===- MathEmitter.cpp - Sine and cosine ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numbers>

using namespace mlir;
using namespace mlir::kf;

/// Polynomial in `x` by Horner's rule, highest coefficient first.
static Value polynomial(KernelEmitter &e, Value x,
                        ArrayRef<double> coefficients) {
  Value sum = constantLike(e, x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = math::FmaOp::create(e.b, e.loc, sum, x,
                              constantLike(e, x, coefficient));
  return sum;
}

/// Reduces by multiples of pi/2 held in three parts (Cody and Waite, "Software
/// Manual for the Elementary Functions", 1980), then minimax polynomials on
/// [-pi/4, pi/4].
std::pair<Value, Value> KernelEmitter::sinCos(Value angle) {
  auto number = [&](double value) { return constantLike(*this, angle, value); };
  auto fma = [&](Value a, Value x, Value c) -> Value {
    return math::FmaOp::create(b, loc, a, x, c);
  };
  auto type = cast<VectorType>(angle.getType());
  Value quarters = math::RoundEvenOp::create(
      b, loc, mul(angle, number(2.0 / std::numbers::pi)));
  Value r = fma(quarters, number(-1.5707963705062866), angle);
  r = fma(quarters, number(4.371139000186243e-8), r);
  r = fma(quarters, number(1.7151245100058819e-15), r);
  Value r2 = mul(r, r);
  Value sine =
      fma(mul(r2, r),
          polynomial(*this, r2,
                     {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}),
          r);
  Value cosine = fma(mul(r2, r2),
                     polynomial(*this, r2,
                                {2.443315711809948e-5, -1.388731625493765e-3,
                                 4.166664568298827e-2}),
                     fma(r2, number(-0.5), number(1.0)));

  VectorType integers = type.clone(b.getI32Type());
  auto integer = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(integers, b.getI32IntegerAttr(value)));
  };
  Value quadrant = arith::FPToSIOp::create(b, loc, integers, quarters);
  auto hasBit = [&](Value value, int32_t bit) -> Value {
    Value masked = arith::AndIOp::create(b, loc, value, integer(bit));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, masked,
                                 integer(0));
  };
  auto negateIf = [&](Value condition, Value value) -> Value {
    return arith::SelectOp::create(b, loc, condition,
                                   arith::NegFOp::create(b, loc, value), value);
  };
  Value odd = hasBit(quadrant, 1);
  Value sinPart = arith::SelectOp::create(b, loc, odd, cosine, sine);
  Value cosPart = arith::SelectOp::create(b, loc, odd, sine, cosine);
  Value next = arith::AddIOp::create(b, loc, quadrant, integer(1));
  return {negateIf(hasBit(quadrant, 2), sinPart),
          negateIf(hasBit(next, 2), cosPart)};
}
