//===- SampleMath.cpp - Formulas of kf.sample -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleMath.h"

#include "runtime/core/SamplingMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

static constexpr double kMost = std::numeric_limits<float>::max();

Value SampleMath::isWithin(Value value, double low, double high, bool isOpen) {
  auto atLeast = isOpen ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OGE;
  return both(compare(atLeast, value, e.f32(low)),
              compare(arith::CmpFPredicate::OLE, value, e.f32(high)));
}

//===----------------------------------------------------------------------===//
// Adjustments
//===----------------------------------------------------------------------===//

Value SampleMath::adjustLogit(Value logit, Value seen, Value bias,
                              Value repetition, Value presence,
                              Value frequency) {
  auto clamp = [&](Value x) {
    x = e.select(compare(arith::CmpFPredicate::OLT, x, e.f32(-kMost)),
                 e.f32(-kMost), x);
    return e.select(compare(arith::CmpFPredicate::OGT, x, e.f32(kMost)),
                    e.f32(kMost), x);
  };
  Value isPositive = compare(arith::CmpFPredicate::OGT, logit, e.f32(0.0));
  Value x = e.select(isPositive, make<arith::DivFOp>(logit, repetition),
                     e.mul(logit, repetition));
  Value times = arith::SIToFPOp::create(b, loc, b.getF32Type(), seen);
  Value less = arith::NegFOp::create(b, loc, frequency);
  x = math::FmaOp::create(b, loc, less, times, x);
  x = clamp(e.sub(x, presence));
  Value wasSeen = compare(arith::CmpIPredicate::sgt, seen, i32(0));
  Value biased = e.add(e.select(wasSeen, x, logit), bias);
  biased = e.select(isWithin(bias, -kMost, kMost), clamp(biased), biased);
  return e.select(isWithin(logit, -kMost, kMost), biased, logit);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

Value SampleMath::exponentScale(Value temperature) {
  Value scale = make<arith::DivFOp>(e.f32(::kf::kLogitUnit), temperature);
  return e.select(compare(arith::CmpFPredicate::OLT, scale, e.f32(kMost)),
                  scale, e.f32(kMost));
}

SmallVector<Value> SampleMath::widen(Value vector) {
  auto type = cast<VectorType>(vector.getType());
  int64_t lanes = type.getNumElements();
  if (lanes % 2 != 0)
    return {arith::ExtUIOp::create(b, loc, type.clone(b.getI64Type()), vector)};
  // Even lanes, then odd ones: no lane has to move.
  auto wide = VectorType::get({lanes / 2}, b.getI64Type());
  Value pairs = vector::BitCastOp::create(b, loc, wide, vector);
  return {make<arith::AndIOp>(pairs, number(wide, 0xffffffff)),
          make<arith::ShRUIOp>(pairs, number(wide, 32))};
}

Value SampleMath::narrow(ArrayRef<Value> parts, VectorType type) {
  if (parts.size() == 1)
    return arith::TruncIOp::create(b, loc, type, parts[0]);
  Value odd = make<arith::ShLIOp>(parts[1], number(parts[1].getType(), 32));
  return vector::BitCastOp::create(b, loc, type,
                                   make<arith::OrIOp>(parts[0], odd));
}

Value SampleMath::sum(ValueRange parts) {
  Value total = parts[0];
  for (Value part : parts.drop_front())
    total = make<arith::AddIOp>(total, part);
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, total);
}

Value SampleMath::tokenWeights(Value logits, Value largest, Value scale) {
  auto floats = cast<VectorType>(logits.getType());
  VectorType integers = floats.clone(b.getI32Type());
  constexpr int bits = ::kf::kExponentBits;
  Value least = constantLike(
      e, logits, std::ldexp(static_cast<double>(::kf::kLeastExponent), bits));
  unsigned width = floats.getNumElements();
  Value exponent =
      e.mul(e.sub(logits, e.splat(largest, width)), e.splat(scale, width));
  Value weighs = compare(arith::CmpFPredicate::OGE, exponent, least);
  Value fixed = arith::FPToSIOp::create(b, loc, integers,
                                        e.select(weighs, exponent, least));
  Value fraction = make<arith::ShLIOp>(fixed, number(integers, 32 - bits));

  // 2^(30 + fraction), in 64 bits each.
  SmallVector<Value> powers;
  for (Value part : widen(fraction)) {
    Type wide = part.getType();
    Value power = number(wide, ::kf::kExp2.back());
    for (uint32_t coefficient :
         llvm::reverse(ArrayRef(::kf::kExp2).drop_back()))
      power = make<arith::AddIOp>(
          number(wide, coefficient),
          make<arith::ShRUIOp>(make<arith::MulIOp>(power, part),
                               number(wide, 32)));
    powers.push_back(power);
  }
  Value power = narrow(powers, integers), one = number(integers, 1);
  Value shift = make<arith::SubIOp>(
      number(integers, 0), make<arith::ShRSIOp>(fixed, number(integers, bits)));
  Value weight = make<arith::ShRUIOp>(make<arith::ShLIOp>(power, one), shift);
  weight = make<arith::ShRUIOp>(make<arith::AddIOp>(weight, one), one);
  return e.select(weighs, weight, number(integers, 0));
}

Value SampleMath::highWord(Value product) {
  return make<arith::ShRUIOp>(product, i64(32));
}

Value SampleMath::topPSum(Value sum, Value topP) {
  Value part = arith::FPToSIOp::create(b, loc, b.getI64Type(),
                                       e.mul(topP, e.f32(0x1p32)));
  Value low = both(sum, i64(0xffffffff));
  return make<arith::AddIOp>(make<arith::MulIOp>(highWord(sum), part),
                             highWord(make<arith::MulIOp>(low, part)));
}

Value SampleMath::minPWeight(Value minP) {
  // Up to the next integer.
  Value exact = e.mul(minP, e.f32(std::ldexp(1.0, ::kf::kWeightBits)));
  Value down = arith::FPToSIOp::create(b, loc, b.getI32Type(), exact);
  Value back = arith::SIToFPOp::create(b, loc, b.getF32Type(), down);
  Value isLess = compare(arith::CmpFPredicate::OLT, back, exact);
  return make<arith::AddIOp>(
      down, arith::ExtUIOp::create(b, loc, b.getI32Type(), isLess));
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

Value SampleMath::drawPoint(Value sum, Value bits) {
  return arith::MulUIExtendedOp::create(b, loc, sum, bits).getHigh();
}

/// Words are the low halves of i64s.
Value SampleMath::randomBits(Value seed, Value counter) {
  Value mask = i64(0xffffffff);
  auto low = [&](Value value) { return both(value, mask); };
  auto exclusive = [&](Value a, Value c, Value d) -> Value {
    return make<arith::XOrIOp>(make<arith::XOrIOp>(a, c), d);
  };
  Value first = arith::ExtUIOp::create(b, loc, b.getI64Type(), counter);
  Value zero = i64(0);
  SmallVector<Value> state = {first, zero,      zero,
                              zero,  low(seed), highWord(seed)};
  auto rounds = e.loop(
      e.index(0), e.index(::kf::kPhiloxRounds), e.index(1), state,
      [&](Value, ValueRange s) {
        Value x = make<arith::MulIOp>(s[0], i64(::kf::kPhiloxMultipliers[0]));
        Value y = make<arith::MulIOp>(s[2], i64(::kf::kPhiloxMultipliers[1]));
        auto grow = [&](Value key, int word) {
          return low(
              make<arith::AddIOp>(key, i64(::kf::kPhiloxKeySteps[word])));
        };
        return SmallVector<Value>{exclusive(highWord(y), s[1], s[4]),
                                  low(y),
                                  exclusive(highWord(x), s[3], s[5]),
                                  low(x),
                                  grow(s[4], 0),
                                  grow(s[5], 1)};
      });
  return make<arith::OrIOp>(rounds.getResult(0),
                            make<arith::ShLIOp>(rounds.getResult(1), i64(32)));
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Its own inverse.
static Value turnNegative(SampleMath &math, Value bits) {
  Value sign = math.make<arith::ShRSIOp>(bits, math.i32(31));
  return math.make<arith::XOrIOp>(
      bits, math.both(sign, math.i32(std::numeric_limits<int32_t>::max())));
}

Value SampleMath::keyOf(Value number) {
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), number);
  return arith::ExtSIOp::create(b, loc, b.getI64Type(),
                                turnNegative(*this, bits));
}

Value SampleMath::floatOf(Value key) {
  Value bits = arith::TruncIOp::create(b, loc, b.getI32Type(), key);
  return arith::BitcastOp::create(b, loc, b.getF32Type(),
                                  turnNegative(*this, bits));
}
