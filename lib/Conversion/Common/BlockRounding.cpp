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

using namespace mlir;
using namespace mlir::kf;
using ::kf::kLargestCode;

CodeScale mlir::kf::codeScale(TileEmitter &e, Value largest) {
  Value scale = arith::DivFOp::create(e.b, e.loc, largest, e.f32(kLargestCode));
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
