//===- StreamOps.cpp - Several hidden rows of a token ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;

/// The least mean square that a row is divided by.
static constexpr float kLeastSquare = 1e-5f;

/// Of x of f32: [T, 1].
Value StreamOps::meanSquare(Value x) {
  return ReduceOp::create(b, ops.loc, arith::MulFOp::create(b, ops.loc, x, x),
                          ReduceKind::Mean, ArrayRef<int64_t>{1},
                          /*keep_dims=*/true);
}

/// x [T, D] of f32 times `column` [T, 1].
Value StreamOps::times(Value x, Value column) {
  return arith::MulFOp::create(
      b, ops.loc, x, BroadcastOp::create(b, ops.loc, x.getType(), column));
}

/// x with the mean square of `other`.
Value StreamOps::asLongAs(Value x, Value other) {
  x = ops.widened(x);
  Value square = meanSquare(x);
  auto type = cast<RankedTensorType>(square.getType());
  auto scalar = RankedTensorType::get({1, 1}, b.getF32Type());
  Value least = arith::ConstantOp::create(
      b, ops.loc, DenseElementsAttr::get(scalar, kLeastSquare));
  square = arith::MaximumFOp::create(
      b, ops.loc, square, BroadcastOp::create(b, ops.loc, type, least));
  Value wanted =
      math::SqrtOp::create(b, ops.loc, meanSquare(ops.widened(other)));
  Value factor = arith::MulFOp::create(
      b, ops.loc, wanted, math::RsqrtOp::create(b, ops.loc, square));
  return ops.rounded(times(x, factor));
}

/// What the model takes x for, tanh of a few products: [T, streams].
Value StreamOps::modalities(Value x, const std::string &at) {
  Value row = ops.scaled(ops.rmsNorm(x, at + std::string(ops.names.streamNorm)),
                         1.0 / static_cast<double>(ops.config.hiddenSize));
  return math::TanhOp::create(
      b, ops.loc, ops.linear(row, at + std::string(ops.names.streamRouter)));
}

SmallVector<Value> StreamOps::begin(Value x) {
  SmallVector<Value> streams = {x};
  for (int64_t i = 1; i < ops.config.streams.count; ++i)
    streams.push_back(asLongAs(
        ops.linear(x, ops.names.ofStream(ops.names.streamProjections, i)), x));
  return streams;
}

SmallVector<Value> StreamOps::predict(ArrayRef<Value> streams,
                                      const std::string &at) {
  const int64_t count = ops.config.streams.count;
  Value active = streams[static_cast<size_t>(ops.config.streams.active)];
  Value shares = ops.widened(ops.linear(
      modalities(active, at), at + std::string(ops.names.streamPredictions)));
  SmallVector<Value> wide;
  for (Value stream : streams)
    wide.push_back(ops.widened(stream));
  SmallVector<Value> predictions;
  for (int64_t to = 0; to < count; ++to) {
    Value sum = wide[static_cast<size_t>(to)];
    for (int64_t from = 0; from < count; ++from)
      sum = arith::AddFOp::create(
          b, ops.loc, sum,
          times(wide[static_cast<size_t>(from)],
                ops.columns(shares, to * count + from, 1)));
    predictions.push_back(ops.rounded(sum));
  }
  return predictions;
}

SmallVector<Value> StreamOps::correct(ArrayRef<Value> predictions,
                                      Value computed, const std::string &at) {
  Value active = predictions[static_cast<size_t>(ops.config.streams.active)];
  Value news = arith::SubFOp::create(b, ops.loc, ops.widened(computed),
                                     ops.widened(active));
  Value shares = ops.widened(ops.linear(
      modalities(computed, at), at + std::string(ops.names.streamCorrections)));
  SmallVector<Value> streams;
  for (auto [i, prediction] : llvm::enumerate(predictions)) {
    Value sum =
        arith::AddFOp::create(b, ops.loc, ops.widened(prediction), news);
    sum = arith::AddFOp::create(
        b, ops.loc, sum,
        times(news, ops.columns(shares, static_cast<int64_t>(i), 1)));
    streams.push_back(ops.rounded(sum));
  }
  return streams;
}

Value StreamOps::gateInput(ArrayRef<Value> streams, const std::string &at) {
  Value x = streams[static_cast<size_t>(ops.config.streams.active)];
  return ops.config.streams.scaled
             ? ops.scaledBy(
                   x, ops.weightOf(at + std::string(ops.names.streamScale)))
             : x;
}

Value StreamOps::end(ArrayRef<Value> streams) {
  Value sum = ops.widened(streams.front());
  for (auto [i, stream] : llvm::enumerate(streams.drop_front())) {
    const std::string name =
        ops.names.ofStream(ops.names.streamEnds, static_cast<int64_t>(i) + 1);
    sum = arith::AddFOp::create(
        b, ops.loc, sum,
        ops.widened(asLongAs(ops.linear(stream, name), streams.front())));
  }
  return ops.rounded(
      ops.scaled(sum, 1.0 / static_cast<double>(streams.size())));
}
