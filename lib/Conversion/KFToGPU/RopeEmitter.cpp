//===- RopeEmitter.cpp - Rotated elements ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element is rotated where it is read: its thread reads the pair, and
// computes the angle from the op's frequencies, which are a constant.
//
//===----------------------------------------------------------------------===//

#include "../Common/RopeFormulas.h"
#include "GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

/// The op's frequencies: memref<(rotary_dim / 2) x f32>.
static Value frequenciesOf(GPUEmitter &e, RopeOp op) {
  SmallVector<float> values = op.getFrequencies();
  auto type =
      MemRefType::get({static_cast<int64_t>(values.size())}, e.b.getF32Type());
  auto data = DenseElementsAttr::get(
      RankedTensorType::get(type.getShape(), e.b.getF32Type()),
      ArrayRef<float>(values));
  return e.constantTable(type, data);
}

/// The rotated element at `indices`, of a column below rotary_dim.
static Value rotated(GPUEmitter &e, RopeOp op, ValueRange indices) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Value column = indices.back();
  int64_t half = op.getRotaryDim() / 2;
  bool isHalf = op.getStyle() == RopeStyle::Half;
  Value by = e.index(isHalf ? half : 2);
  Value quotient = arith::DivUIOp::create(b, loc, column, by),
        rest = arith::RemUIOp::create(b, loc, column, by);
  // The number of the pair, and whether the column is its second.
  Value pair = isHalf ? rest : quotient, second = isHalf ? quotient : rest;
  Value firstColumn = isHalf ? pair : e.mul(pair, e.index(2));
  Value secondColumn = e.add(firstColumn, e.index(isHalf ? half : 1));

  Value frequency = memref::LoadOp::create(b, loc, frequenciesOf(e, op), pair);
  if (Value factors = op.getFactors())
    frequency =
        arith::DivFOp::create(b, loc, frequency, e.load(factors, pair, 0));
  Value position = arith::SIToFPOp::create(
      b, loc, b.getF32Type(), e.load(op.getPositions(), indices[0], 0));
  SinCos angle = sinCos(e, e.mul(position, frequency), FmaRounding::Unknown);
  auto element = [&](Value at) {
    return e.load(op.getX(), {indices[0], indices[1], at}, 0);
  };
  auto [x, y] = rotate(e, element(firstColumn), element(secondColumn), angle);
  Value isSecond = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                         second, e.index(0));
  return e.select(isSecond, y, x);
}

void GPUEmitter::defineRope(RopeOp op) {
  int64_t extent = cast<RankedTensorType>(op.getType()).getDimSize(2);
  auto rotaryDim = static_cast<int64_t>(op.getRotaryDim());
  define(
      op.getResult(), [=, this](ValueRange indices, unsigned, Value) mutable {
        auto turned = [&] { return rotated(*this, op, indices); };
        if (extent == rotaryDim)
          return turned();
        auto kept = [&] { return load(op.getX(), indices, 0); };
        return ifElse(isLess(indices.back(), index(rotaryDim)), turned, kept);
      });
}
