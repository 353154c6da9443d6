//===- ExpertBlock.cpp - A layer's routed feed-forward --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExpertBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

Value ExpertBlock::widen(Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getElementType().isF32())
    return x;
  return arith::ExtFOp::create(b, loc, type.clone(b.getF32Type()), x);
}

/// act(gate) * up of each row's experts, or what a clamp makes of them: [T, k,
/// I].
Value ExpertBlock::inner(Value x, Value experts, const ExpertWeights &weights) {
  if (weights.gateUp) {
    GluClampAttr clamp;
    if (config.clamp)
      clamp = GluClampAttr::get(b.getContext(), APFloat(config.clamp->limit),
                                APFloat(config.clamp->alpha));
    return ExpertMatmulOp::create(b, loc, x, experts, weights.gateUp,
                                  weights.gateUpBias, activation, clamp);
  }
  auto product = [&](Value w, Value bias) -> Value {
    return ExpertMatmulOp::create(b, loc, x, experts, w, bias,
                                  ActivationKindAttr());
  };
  Value gate = product(weights.gate, weights.gateBias);
  Value up = product(weights.up, weights.upBias);
  if (config.clamp)
    return joinClamped(gate, up, *config.clamp);
  gate = ActivationOp::create(b, loc, gate, activation);
  return arith::MulFOp::create(b, loc, gate, up);
}

/// #kf.glu_clamp of [T, k, I], in f32, rounded to what those have.
Value ExpertBlock::joinClamped(Value gate, Value up,
                               const ::kf::GateClamp &clamp) {
  Type type = gate.getType();
  gate = widen(gate);
  up = widen(up);
  auto wide = cast<RankedTensorType>(gate.getType());
  auto number = [&](double value) -> Value {
    auto scalar = RankedTensorType::get({1, 1, 1}, b.getF32Type());
    return BroadcastOp::create(
        b, loc, wide,
        arith::ConstantOp::create(
            b, loc, DenseElementsAttr::get(scalar, static_cast<float>(value))));
  };
  Value limit = number(clamp.limit);
  gate = arith::MinimumFOp::create(b, loc, gate, limit);
  up = arith::MaximumFOp::create(b, loc, up, number(-clamp.limit));
  up = arith::MinimumFOp::create(b, loc, up, limit);
  // g * sigmoid(alpha * g) is silu(alpha * g) / alpha.
  gate = ActivationOp::create(
      b, loc, arith::MulFOp::create(b, loc, gate, number(clamp.alpha)),
      activation);
  gate = arith::MulFOp::create(b, loc, gate, number(1 / clamp.alpha));
  up = arith::AddFOp::create(b, loc, up, number(1));
  Value joined = arith::MulFOp::create(b, loc, gate, up);
  return type == wide ? joined : arith::TruncFOp::create(b, loc, type, joined);
}

Value ExpertBlock::route(Value x, Value logits, const ExpertWeights &weights) {
  auto routed = RouteOp::create(
      b, loc, logits, weights.choiceBias, weights.scales, config.chosen,
      config.sigmoid, config.normalized,
      config.groups ? b.getI64IntegerAttr(config.groups) : IntegerAttr(),
      config.groups ? b.getI64IntegerAttr(config.keptGroups) : IntegerAttr());
  Value experts = routed.getExperts();
  Value shares = split(routed.getWeights(), {config.chosen, 1});
  if (config.weighsInputs)
    x = weighed(x, shares);
  Value results = widen(ExpertMatmulOp::create(
      b, loc, inner(x, experts, weights), experts, weights.down,
      weights.downBias, ActivationKindAttr())); // [T, k, D]
  auto type = cast<RankedTensorType>(results.getType());
  if (!config.weighsInputs)
    results = arith::MulFOp::create(b, loc, results,
                                    BroadcastOp::create(b, loc, type, shares));
  auto sum = RankedTensorType::get({type.getDimSize(0), type.getDimSize(2)},
                                   b.getF32Type());
  Value total = ReduceOp::create(b, loc, sum, results, ReduceKind::Sum, {1},
                                 /*keep_dims=*/false);
  if (config.scale == 1)
    return total;
  auto scalar = RankedTensorType::get({1, 1}, b.getF32Type());
  Value factor = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(scalar, static_cast<float>(config.scale)));
  return arith::MulFOp::create(b, loc, total,
                               BroadcastOp::create(b, loc, sum, factor));
}

Value ExpertBlock::split(Value x, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<OpFoldResult> sizes = {tensor::getMixedSize(b, loc, x, 0),
                                     b.getIndexAttr(shape[0]),
                                     b.getIndexAttr(shape[1])};
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
  return tensor::ExpandShapeOp::create(
      b, loc, getRowsOf(type, shape, type.getElementType()), x, groups, sizes);
}

Value ExpertBlock::weighed(Value x, Value shares) {
  auto type = cast<RankedTensorType>(x.getType());
  const int64_t width = type.getDimSize(1);
  RankedTensorType wide =
      getRowsOf(type, {config.chosen, width}, b.getF32Type());
  x = arith::MulFOp::create(
      b, loc, BroadcastOp::create(b, loc, wide, split(widen(x), {1, width})),
      BroadcastOp::create(b, loc, wide, shares));
  if (type.getElementType().isF32())
    return x;
  return arith::TruncFOp::create(b, loc, wide.clone(type.getElementType()), x);
}

Value mlir::kf::sigmoid(OpBuilder &b, Location loc, Value x) {
  auto scalar = RankedTensorType::get({1, 1}, b.getF32Type());
  Value one = BroadcastOp::create(
      b, loc, x.getType(),
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(scalar, 1.0f)));
  Value decay = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
  return arith::DivFOp::create(b, loc, one,
                               arith::AddFOp::create(b, loc, one, decay));
}

Value ExpertBlock::gate(Value x, Value logits) {
  x = widen(x);
  Value share = sigmoid(b, loc, widen(logits));
  return arith::MulFOp::create(b, loc, x,
                               BroadcastOp::create(b, loc, x.getType(), share));
}
