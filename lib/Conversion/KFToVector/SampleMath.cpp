//===- SampleMath.cpp - Sampling in vectors and wide integers -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SampleMath.h"

#include "runtime/core/SamplingMath.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

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

/// In 64 bits, of which products need no half to be taken apart.
Value SampleMath::powerOfTwo(Value fraction) {
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
  return narrow(powers, cast<VectorType>(fraction.getType()));
}

Words SampleMath::split(Value value) {
  auto word = [&](Value part) -> Value {
    return arith::TruncIOp::create(b, loc, b.getI32Type(), part);
  };
  return {word(value), word(make<arith::ShRUIOp>(value, i64(32)))};
}

Value SampleMath::join(const Words &words) {
  auto wide = [&](Value word) -> Value {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), word);
  };
  return make<arith::OrIOp>(wide(words.low),
                            make<arith::ShLIOp>(wide(words.high), i64(32)));
}

Value SampleMath::topPSum(Value sum, Value topP) {
  return join(SampleFormulas::topPSum(split(sum), topP));
}

Value SampleMath::drawPoint(Value sum, Value bits) {
  return join(SampleFormulas::drawPoint(split(sum), split(bits)));
}

Value SampleMath::randomBits(Value seed, Value counter) {
  return join(SampleFormulas::randomBits(split(seed), counter));
}

Value SampleMath::keyOf(Value number) {
  return arith::ExtSIOp::create(b, loc, b.getI64Type(), orderOf(number));
}

Value SampleMath::floatOf(Value key) {
  return numberOf(arith::TruncIOp::create(b, loc, b.getI32Type(), key));
}
