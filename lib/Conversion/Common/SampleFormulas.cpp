//===- SampleFormulas.cpp - Formulas of kf.sample -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleFormulas.h"

#include "runtime/core/SamplingMath.h"

#include <bit>
#include <limits>

using namespace mlir;
using namespace mlir::kf;

/// The type of `x` with i32 elements.
static Type integersLike(Value x) {
  Type integer = IntegerType::get(x.getContext(), 32);
  auto vector = dyn_cast<VectorType>(x.getType());
  return vector ? Type(vector.clone(integer)) : integer;
}

/// `scalar` on every lane of what x has.
static Value splatLike(TileEmitter &e, Value x, Value scalar) {
  auto vector = dyn_cast<VectorType>(x.getType());
  return vector ? e.splat(scalar, vector.getNumElements()) : scalar;
}

/// What orderOf() makes of `number`.
static int32_t orderOfConstant(double number) {
  const float magnitude = static_cast<float>(std::abs(number));
  const int32_t bits = std::bit_cast<int32_t>(magnitude);
  return number < 0 ? -bits : bits;
}

Value SampleFormulas::isOrderWithin(Value order, double low, double high,
                                    bool isOpen) {
  auto atLeast = isOpen ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::sge;
  return both(
      compare(atLeast, order, i32(orderOfConstant(low))),
      compare(arith::CmpIPredicate::sle, order, i32(orderOfConstant(high))));
}

SampleSettings SampleFormulas::loadSettings(SampleOp op, Value row) {
  auto load = [&](Value tensor) { return tile.load(tensor, row, 0); };
  SampleSettings settings;
  settings.temperature = load(op.getTemperature());
  settings.topK = load(op.getTopK());
  settings.topP = load(op.getTopP());
  settings.minP = load(op.getMinP());
  settings.counter = load(op.getCounter());
  if (!op.hasAdjustments())
    return settings;
  settings.first = load(op.getFirst());
  settings.count = load(op.getCount());
  settings.repetition = load(op.getRepetition());
  settings.presence = load(op.getPresence());
  settings.frequency = load(op.getFrequency());
  return settings;
}

SampleMask SampleFormulas::loadMask(SampleOp op, Value row) {
  if (!op.hasMask())
    return {};
  Value number = tile.load(op.getMasked(), row, 0);
  Value count = toI32(tile.sizesOf(op.getMask())[0]);
  // A negative number is a large one without its sign.
  return {toIndex(number), compare(arith::CmpIPredicate::ult, number, count)};
}

Value SampleFormulas::isAllowed(Value word, Value place) {
  Value bit = make<arith::AndIOp>(make<arith::ShRUIOp>(word, place), i32(1));
  return compare(arith::CmpIPredicate::ne, bit, i32(0));
}

Value SampleFormulas::areValid(const SampleSettings &settings) {
  Value valid = isWithin(settings.temperature, 0, kMost);
  auto require = [&](Value condition) { valid = both(valid, condition); };
  require(compare(arith::CmpIPredicate::sge, settings.topK, i32(0)));
  require(isWithin(settings.topP, 0, 1, /*isOpen=*/true));
  require(isWithin(settings.minP, 0, 1));
  if (!settings.repetition)
    return valid;
  require(isWithin(settings.repetition, 0, kMost, /*isOpen=*/true));
  require(isWithin(settings.presence, -kMost, kMost));
  require(isWithin(settings.frequency, -kMost, kMost));
  return valid;
}

Value SampleFormulas::isWithin(Value value, double low, double high,
                               bool isOpen) {
  return isOrderWithin(orderOf(value), low, high, isOpen);
}

//===----------------------------------------------------------------------===//
// Adjustments
//===----------------------------------------------------------------------===//

Value SampleFormulas::dropTiny(Value x) {
  Value isTiny =
      both(compare(arith::CmpFPredicate::OGT, x, tile.f32(-::kf::kLeastLogit)),
           compare(arith::CmpFPredicate::OLT, x, tile.f32(::kf::kLeastLogit)));
  return tile.select(isTiny, tile.f32(0.0), x);
}

Value SampleFormulas::adjustLogit(Value logit, Value seen, Value bias,
                                  const SampleSettings &settings) {
  auto clamp = [&](Value x) {
    x = tile.select(compare(arith::CmpFPredicate::OLT, x, tile.f32(-kMost)),
                    tile.f32(-kMost), x);
    return tile.select(compare(arith::CmpFPredicate::OGT, x, tile.f32(kMost)),
                       tile.f32(kMost), x);
  };
  Value start = dropTiny(logit);
  Value isPositive = compare(arith::CmpFPredicate::OGT, start, tile.f32(0.0));
  Value least = tile.f32(::kf::kLeastLogit);
  Value isTooSmall =
      compare(arith::CmpFPredicate::OLT, settings.repetition, least);
  Value repetition = tile.select(isTooSmall, least, settings.repetition);
  Value x =
      dropTiny(tile.select(isPositive, make<arith::DivFOp>(start, repetition),
                           tile.mul(start, repetition)));
  Value times = arith::SIToFPOp::create(b, loc, b.getF32Type(), seen);
  x = dropTiny(
      tile.sub(x, dropTiny(clamp(tile.mul(settings.frequency, times)))));
  x = clamp(dropTiny(tile.sub(x, settings.presence)));
  Value wasSeen = compare(arith::CmpIPredicate::sgt, seen, i32(0));
  Value biased = dropTiny(tile.add(tile.select(wasSeen, x, start), bias));
  biased = tile.select(isWithin(bias, -kMost, kMost), clamp(biased), biased);
  return tile.select(isWithin(logit, -kMost, kMost), biased, logit);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value SampleFormulas::exponentScale(Value temperature) {
  Value least = tile.f32(::kf::kLeastTemperature);
  Value isTooLow = compare(arith::CmpFPredicate::OLT, temperature, least);
  return make<arith::DivFOp>(tile.f32(::kf::kLogitUnit),
                             tile.select(isTooLow, least, temperature));
}

Value SampleFormulas::powerOfTwo(Value fraction) {
  Type type = fraction.getType();
  Value power = number(type, ::kf::kExp2.back());
  for (uint32_t coefficient : llvm::reverse(ArrayRef(::kf::kExp2).drop_back()))
    power = make<arith::AddIOp>(
        number(type, coefficient),
        arith::MulUIExtendedOp::create(b, loc, power, fraction).getHigh());
  return power;
}

Value SampleFormulas::tokenWeights(Value logits, Value largest, Value scale) {
  Type integers = integersLike(logits);
  constexpr int bits = ::kf::kExponentBits;
  Value least =
      constantLike(tile, logits,
                   std::ldexp(static_cast<double>(::kf::kLeastExponent), bits));
  Value exponent = tile.mul(tile.sub(logits, splatLike(tile, logits, largest)),
                            splatLike(tile, logits, scale));
  Value weighs = compare(arith::CmpFPredicate::OGE, exponent, least);
  Value fixed = arith::FPToSIOp::create(b, loc, integers,
                                        tile.select(weighs, exponent, least));
  Value fraction = make<arith::ShLIOp>(fixed, number(integers, 32 - bits));
  Value power = powerOfTwo(fraction), one = number(integers, 1);
  Value shift = make<arith::SubIOp>(
      number(integers, 0), make<arith::ShRSIOp>(fixed, number(integers, bits)));
  Value weight = make<arith::ShRUIOp>(make<arith::ShLIOp>(power, one), shift);
  weight = make<arith::ShRUIOp>(make<arith::AddIOp>(weight, one), one);
  return tile.select(weighs, weight, number(integers, 0));
}

Value SampleFormulas::minPWeight(Value minP) {
  // Up to the next integer.
  Value exact = tile.mul(minP, tile.f32(std::ldexp(1.0, ::kf::kWeightBits)));
  Value down = arith::FPToSIOp::create(b, loc, b.getI32Type(), exact);
  Value back = arith::SIToFPOp::create(b, loc, b.getF32Type(), down);
  Value isLess = compare(arith::CmpFPredicate::OLT, back, exact);
  return make<arith::AddIOp>(
      down, arith::ExtUIOp::create(b, loc, b.getI32Type(), isLess));
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Words SampleFormulas::add(const Words &lhs, const Words &rhs) {
  Value low = make<arith::AddIOp>(lhs.low, rhs.low);
  Value carry = arith::ExtUIOp::create(
      b, loc, b.getI32Type(), compare(arith::CmpIPredicate::ult, low, rhs.low));
  return {low,
          make<arith::AddIOp>(make<arith::AddIOp>(lhs.high, rhs.high), carry)};
}

Words SampleFormulas::subtract(const Words &lhs, const Words &rhs) {
  Value borrow = arith::ExtUIOp::create(
      b, loc, b.getI32Type(),
      compare(arith::CmpIPredicate::ult, lhs.low, rhs.low));
  return {make<arith::SubIOp>(lhs.low, rhs.low),
          make<arith::SubIOp>(make<arith::SubIOp>(lhs.high, rhs.high), borrow)};
}

Words SampleFormulas::multiply(Value lhs, Value rhs) {
  auto product = arith::MulUIExtendedOp::create(b, loc, lhs, rhs);
  return {product.getLow(), product.getHigh()};
}

Value SampleFormulas::isBelow(const Words &lhs, const Words &rhs) {
  Value equal = compare(arith::CmpIPredicate::eq, lhs.high, rhs.high);
  return tile.select(equal,
                     compare(arith::CmpIPredicate::ult, lhs.low, rhs.low),
                     compare(arith::CmpIPredicate::ult, lhs.high, rhs.high));
}

Words SampleFormulas::topPSum(const Words &sum, Value topP) {
  Value part = arith::FPToUIOp::create(b, loc, b.getI32Type(),
                                       tile.mul(topP, tile.f32(0x1p32)));
  return add(multiply(sum.high, part), {multiply(sum.low, part).high, i32(0)});
}

/// As kf::multiplyHigh.
Words SampleFormulas::drawPoint(const Words &sum, const Words &bits) {
  Value zero = i32(0);
  Words middle = add(multiply(sum.high, bits.low),
                     {multiply(sum.low, bits.low).high, zero});
  Words other = add(multiply(sum.low, bits.high), {middle.low, zero});
  return add(add(multiply(sum.high, bits.high), {middle.high, zero}),
             {other.high, zero});
}

Words SampleFormulas::randomBits(const Words &seed, Value counter) {
  Value zero = i32(0);
  SmallVector<Value> words =
      philox({counter, zero, zero, zero}, {seed.low, seed.high});
  return {words[0], words[1]};
}

//===----------------------------------------------------------------------===//
// Orders
//===----------------------------------------------------------------------===//

Value SampleFormulas::orderOf(Value number) {
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), number);
  Value sign = make<arith::ShRSIOp>(bits, i32(31));
  Value magnitude = both(bits, i32(std::numeric_limits<int32_t>::max()));
  return make<arith::SubIOp>(make<arith::XOrIOp>(magnitude, sign), sign);
}

Value SampleFormulas::numberOf(Value order) {
  Value sign = make<arith::ShRSIOp>(order, i32(31));
  Value magnitude = make<arith::SubIOp>(make<arith::XOrIOp>(order, sign), sign);
  Value bits = make<arith::OrIOp>(
      magnitude, both(order, i32(std::numeric_limits<int32_t>::min())));
  return arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
}
