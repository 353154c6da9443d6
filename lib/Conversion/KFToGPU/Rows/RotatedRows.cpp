//===- RotatedRows.cpp - Rotated elements ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element is rotated where it is read: its thread reads the pair, and
// computes the angle from the op's frequencies, which are a constant. Where the
// op is a kernel of its own, a thread has the same pair of several heads, which
// share the angle.
//
//===----------------------------------------------------------------------===//

#include "../../Common/RopeFormulas.h"
#include "../GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kf;

/// Pairs of a head that a thread turns in code of their own; more are a loop.
static constexpr int64_t mostUnrolled = 4;

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

/// The angle of pair `pair` of the tile's token `token`.
static SinCos angleOf(GPUEmitter &e, RopeOp op, Value token, Value pair) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Value frequency = memref::LoadOp::create(b, loc, frequenciesOf(e, op), pair);
  if (Value factors = op.getFactors())
    frequency =
        arith::DivFOp::create(b, loc, frequency, e.load(factors, pair, 0));
  Value position = arith::SIToFPOp::create(b, loc, b.getF32Type(),
                                           e.load(op.getPositions(), token, 0));
  return scaled(e, sinCos(e, e.mul(position, frequency), FmaRounding::Unknown),
                op.getMagnitude());
}

/// The columns of pair `pair`.
static std::pair<Value, Value> columnsOf(GPUEmitter &e, RopeOp op, Value pair) {
  const bool isHalf = op.getStyle() == RopeStyle::Half;
  Value first = isHalf ? pair : e.scaled(pair, 2);
  return {first, e.add(first, e.index(isHalf ? op.getRotaryDim() / 2 : 1))};
}

/// The rotated element at `indices`, of a column below rotary_dim.
static Value rotated(GPUEmitter &e, RopeOp op, ValueRange indices) {
  OpBuilder &b = e.b;
  Location loc = e.loc;
  Value column = indices.back();
  int64_t half = op.getRotaryDim() / 2;
  bool isHalf = op.getStyle() == RopeStyle::Half;
  Value quotient = e.div(column, isHalf ? half : 2),
        rest = e.rem(column, isHalf ? half : 2);
  // The number of the pair, and whether the column is its second.
  Value pair = isHalf ? rest : quotient, second = isHalf ? quotient : rest;
  auto [firstColumn, secondColumn] = columnsOf(e, op, pair);
  SinCos angle = angleOf(e, op, indices[0], pair);
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

/// The pairs of a token: threads side by side along a head have some pairs each
/// of the heads that they take.
static void rotateToken(GPUEmitter &e, RopeOp op, Value token, Value heads) {
  const int64_t half = static_cast<int64_t>(op.getRotaryDim()) / 2;
  const int64_t across = std::gcd(e.shape.threadCount, half);
  const int64_t step = e.shape.threadCount / across;
  // Heads whose pairs a thread reads before it stores the first.
  int64_t batch = 1;
  if (std::optional<int64_t> count = getConstantIntValue(heads))
    for (batch = e.shape.batch; batch > 1 && *count % (batch * step) != 0;)
      batch /= 2;
  auto visit = [&](Value pair) {
    SinCos angle = angleOf(e, op, token, pair);
    auto [first, second] = columnsOf(e, op, pair);
    auto turn = [&, first = first, second = second](Value head, ValueRange) {
      SmallVector<std::pair<Value, Value>> turned;
      SmallVector<Value> own;
      for (int64_t i = 0; i < batch; ++i) {
        own.push_back(e.add(head, e.index(i * step)));
        Value x = e.load(op.getX(), {token, own.back(), first}, 0);
        Value y = e.load(op.getX(), {token, own.back(), second}, 0);
        turned.emplace_back(x, y);
      }
      for (auto &[x, y] : turned)
        std::tie(x, y) = rotate(e, x, y, angle);
      for (auto [at, values] : llvm::zip(own, turned)) {
        e.storeResult(values.first, {token, at, first});
        e.storeResult(values.second, {token, at, second});
      }
      return SmallVector<Value>();
    };
    e.loop(e.div(e.thread, across), heads, e.index(batch * step), {}, turn);
  };
  Value own = e.rem(e.thread, across);
  if (half / across <= mostUnrolled) {
    for (int64_t begin = 0; begin < half; begin += across)
      visit(e.add(own, e.index(begin)));
    return;
  }
  e.loop(own, e.index(half), e.index(across), {}, [&](Value pair, ValueRange) {
    visit(pair);
    return SmallVector<Value>();
  });
}

/// Whether the kernel does nothing but rotate, and round what it has rotated.
bool mlir::kf::isGPURotation(GPUEmitter &e, RopeOp op) {
  return op && e.isLoadable(op.getX()) && e.unroundedResult() == op.getResult();
}

void mlir::kf::emitGPURotation(GPUEmitter &e, RopeOp op) {
  SmallVector<Value> sizes = e.sizesOf(op.getX());
  const int64_t dim = cast<RankedTensorType>(op.getType()).getDimSize(2);
  const auto turned = static_cast<int64_t>(op.getRotaryDim());
  e.loop(sizes[0], [&](Value token) {
    rotateToken(e, op, token, sizes[1]);
    if (turned == dim)
      return;
    const int64_t rest = dim - turned;
    e.forThreads(e.scaled(sizes[1], rest), [&](Value number) {
      Value column = e.add(e.rem(number, rest), e.index(turned));
      SmallVector<Value> at = {token, e.div(number, rest), column};
      e.storeResult(e.load(op.getX(), at, 0), at);
    });
  });
}
