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

/// act(gate) * up of each row's experts: [T, k, I].
Value ExpertBlock::inner(Value x, Value experts, const ExpertWeights &weights) {
  if (weights.gateUp)
    return ExpertMatmulOp::create(b, loc, x, experts, weights.gateUp,
                                  /*bias=*/Value(), activation);
  auto product = [&](Value w) -> Value {
    return ExpertMatmulOp::create(b, loc, x, experts, w, /*bias=*/Value(),
                                  ActivationKindAttr());
  };
  Value gate = ActivationOp::create(b, loc, product(weights.gate), activation);
  return arith::MulFOp::create(b, loc, gate, product(weights.up));
}

Value ExpertBlock::route(Value x, Value logits, const ExpertWeights &weights) {
  auto routed =
      RouteOp::create(b, loc, logits, config.chosen, config.normalized);
  Value experts = routed.getExperts(), shares = routed.getWeights();
  Value results = widen(ExpertMatmulOp::create(
      b, loc, inner(x, experts, weights), experts, weights.down,
      /*bias=*/Value(), ActivationKindAttr())); // [T, k, D]
  auto type = cast<RankedTensorType>(results.getType());
  auto column = RankedTensorType::get({type.getDimSize(0), config.chosen, 1},
                                      b.getF32Type());
  SmallVector<OpFoldResult> shape = {tensor::getMixedSize(b, loc, x, 0),
                                     b.getIndexAttr(config.chosen),
                                     b.getIndexAttr(1)};
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
  shares = tensor::ExpandShapeOp::create(b, loc, column, shares, groups, shape);
  results = arith::MulFOp::create(b, loc, results,
                                  BroadcastOp::create(b, loc, type, shares));
  auto sum = RankedTensorType::get({type.getDimSize(0), type.getDimSize(2)},
                                   b.getF32Type());
  return ReduceOp::create(b, loc, sum, results, ReduceKind::Sum, {1},
                          /*keep_dims=*/false);
}

Value ExpertBlock::gate(Value x, Value logits) {
  x = widen(x);
  logits = widen(logits);
  auto scalar = RankedTensorType::get({1, 1}, b.getF32Type());
  Value one = BroadcastOp::create(
      b, loc, logits.getType(),
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(scalar, 1.0f)));
  Value decay =
      math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, logits));
  Value share = arith::DivFOp::create(
      b, loc, one, arith::AddFOp::create(b, loc, one, decay));
  return arith::MulFOp::create(b, loc, x,
                               BroadcastOp::create(b, loc, x.getType(), share));
}
