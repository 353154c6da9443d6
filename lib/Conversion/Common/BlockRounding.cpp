//===- BlockRounding.cpp - Rounding to 8-bit codes ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockRounding.h"

#include "runtime/core/BlockRounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;
using ::kf::kLargestCode;

CodeScale mlir::kf::codeScale(TileEmitter &e, Value largest) {
  // Infinite scales would hide what they are of: the sum of 32 codes may be
  // multiplied by it, and weigh nothing.
  Value isHeld = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT,
                                       largest, e.f32(::kf::kTooLargeForBlock));
  Value scale = e.select(
      isHeld, arith::DivFOp::create(e.b, e.loc, largest, e.f32(kLargestCode)),
      e.f32(std::numeric_limits<double>::quiet_NaN()));
  Value isZero = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT,
                                       largest, e.f32(::kf::kLeastOfBlock));
  Value inverse = e.select(
      isZero, e.f32(0.0), arith::DivFOp::create(e.b, e.loc, e.f32(1.0), scale));
  return {scale, inverse};
}

Value mlir::kf::roundToCodes(TileEmitter &e, Value x) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Type floats = x.getType(), ints = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(floats))
    ints = vector.clone(ints);
  x = arith::MaxNumFOp::create(b, loc, x, constantLike(e, x, -kLargestCode));
  x = arith::MinNumFOp::create(b, loc, x, constantLike(e, x, kLargestCode));
  Value whole = arith::FPToSIOp::create(b, loc, ints, x);
  Value rest = e.sub(x, arith::SIToFPOp::create(b, loc, floats, whole));
  auto isBeyond = [&](arith::CmpFPredicate predicate, double half) -> Value {
    Value is = arith::CmpFOp::create(b, loc, predicate, rest,
                                     constantLike(e, x, half));
    return arith::ExtUIOp::create(b, loc, ints, is);
  };
  Value up = isBeyond(arith::CmpFPredicate::OGE, 0.5);
  Value down = isBeyond(arith::CmpFPredicate::OLE, -0.5);
  return arith::SubIOp::create(b, loc, arith::AddIOp::create(b, loc, whole, up),
                               down);
}

RowScale mlir::kf::rowScale(TileEmitter &e, Value largest) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  auto number = [&](double value) { return constantLike(e, largest, value); };
  Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT,
                                       largest, number(::kf::kLeastOfBlock));
  Value scale =
      e.select(isZero, number(0.0), e.mul(largest, number(1.0 / kLargestCode)));
  Value inverse =
      e.select(isZero, number(0.0),
               arith::DivFOp::create(b, loc, number(kLargestCode), largest));
  // inf / inf and NaN: nothing to round.
  Value isFinite =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, largest,
                            number(std::numeric_limits<float>::infinity()));
  inverse = e.select(isFinite, inverse, number(0.0));
  scale = e.select(isFinite, scale,
                   number(std::numeric_limits<float>::quiet_NaN()));
  return {scale, inverse, isFinite};
}

Value mlir::kf::roundToRowCode(TileEmitter &e, Value x, const RowScale &scale) {
  Value scaled = e.mul(x, scale.inverse);
  Value rounded = math::RoundEvenOp::create(e.b, e.loc, scaled);
  // NaN times 0 stays NaN, which has no integer.
  rounded = e.select(scale.isFinite, rounded, e.f32(0.0));
  return arith::FPToSIOp::create(e.b, e.loc, e.b.getI32Type(), rounded);
}
