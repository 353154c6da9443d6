//===- MathCode.cpp - Functions of f32 in plain arithmetic ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Polynomials are minimax fits in relative error, coefficients rounded to f32
// from the lowest on, the others fitted again.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/MathCode.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::kf;

MathCode::Powers MathCode::powersOf(Value x) {
  Value shifted = fma(x, number(std::numbers::log2e), number(magic));
  Value n = sub(shifted, number(magic));
  Value rest = fma(n, number(-ln2High), x);
  return {shifted, fma(n, number(-ln2Low), rest)};
}

Value MathCode::powerOfTwo(Value power) {
  return fromBits(make<arith::ShLIOp>(make<arith::AddIOp>(power, integer(127)),
                                      integer(23)));
}

Value MathCode::exponential(Value x, Value rest, int32_t doublings) {
  // Below, all is 0, above, all is infinite. NaNs pass.
  x = make<arith::MaximumFOp>(x, number(-105.0));
  x = make<arith::MinimumFOp>(x, number(89.0 - doublings));
  auto [shifted, r] = powersOf(x);
  if (rest)
    r = add(r, rest);
  Value p = polynomial(r, {1.38403662e-3, 8.36934801e-3, 4.16680835e-2,
                           0.166665152, 0.49999994, 1.0, 1.0});
  // Two factors, each a normal number, reach denormals and infinity.
  Value power =
      make<arith::SubIOp>(bits(shifted), integer(magicBits - doublings));
  Value half = make<arith::ShRSIOp>(power, integer(1));
  return mul(mul(p, powerOfTwo(half)),
             powerOfTwo(make<arith::SubIOp>(power, half)));
}

MathCode::Split MathCode::split(Value x) {
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

Value MathCode::logOfFraction(Value f) {
  Value p =
      polynomial(f, {-0.129589871, 0.140097111, -0.121830203, 0.140047431,
                     -0.16680263, 0.200104609, -0.249998018, 0.333332151});
  Value square = mul(f, f);
  return add(fma(mul(p, f), square, mul(square, number(-0.5))), f);
}

Value MathCode::orSpecialLog(Value x, Value value) {
  // Infinity and NaNs are their own logarithms.
  value = select(isLess(x, number(infinity)), value, x);
  value = select(isEqual(x, number(0.0)), number(-infinity), value);
  return select(isLess(x, number(0.0)), number(NAN), value);
}

Value MathCode::log(Value x) {
  auto [n, f] = split(x);
  return orSpecialLog(x, fma(n, number(std::numbers::ln2), logOfFraction(f)));
}
