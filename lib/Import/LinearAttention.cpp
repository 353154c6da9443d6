//===- LinearAttention.cpp - Layers that keep a state ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinearAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// What a layer's matrices make of its rows. K key heads, V value heads.
struct Projections {
  Value q, k; ///< [T, K, dk]
  Value v, z; ///< [T, V, dv]
  Value a, b; ///< [T, V]
};

/// Of one matrix for q, k and v, and one for each of the others.
Projections apart(ModelOps &ops, Value x, const std::string &at) {
  const ::kf::LinearAttentionConfig &linear = ops.config.linear;
  const ::kf::TensorNames &names = ops.names;
  const int64_t keys = linear.keyHeads * linear.keyDim;
  const int64_t values = linear.valueHeads * linear.valueDim;
  Value qkv = ops.linear(x, at + std::string(names.linearQkv));
  auto heads = [&](Value columns, int64_t count, int64_t dim) {
    return ops.toHeads(columns, count, dim);
  };
  Projections made;
  made.q = heads(ops.columns(qkv, 0, keys), linear.keyHeads, linear.keyDim);
  made.k = heads(ops.columns(qkv, keys, keys), linear.keyHeads, linear.keyDim);
  made.v = heads(ops.columns(qkv, 2 * keys, values), linear.valueHeads,
                 linear.valueDim);
  made.z = heads(ops.linear(x, at + std::string(names.linearZ)),
                 linear.valueHeads, linear.valueDim);
  made.a = ops.linear(x, at + std::string(names.linearA));
  made.b = ops.linear(x, at + std::string(names.linearB));
  return made;
}

/// Of two matrices whose rows are in order of the key heads.
Projections byKeyHeads(ModelOps &ops, Value x, const std::string &at) {
  const ::kf::LinearAttentionConfig &linear = ops.config.linear;
  const ::kf::TensorNames &names = ops.names;
  const int64_t dk = linear.keyDim;
  const int64_t shared = linear.valueHeads / linear.keyHeads; // of a key head
  const int64_t values = shared * linear.valueDim;
  Value qkvz = ops.toHeads(ops.linear(x, at + std::string(names.linearQkvz)),
                           linear.keyHeads, 2 * (dk + values));
  auto valueHeads = [&](int64_t first) {
    return ops.toHeads(ops.fromHeads(ops.columns(qkvz, first, values)),
                       linear.valueHeads, linear.valueDim);
  };
  Value ba = ops.toHeads(ops.linear(x, at + std::string(names.linearBa)),
                         linear.keyHeads, 2 * shared);
  Projections made;
  made.q = ops.columns(qkvz, 0, dk);
  made.k = ops.columns(qkvz, dk, dk);
  made.v = valueHeads(2 * dk);
  made.z = valueHeads(2 * dk + values);
  made.b = ops.fromHeads(ops.columns(ba, 0, shared));
  made.a = ops.fromHeads(ops.columns(ba, shared, shared));
  return made;
}

} // namespace

Value mlir::kf::linearAttention(ModelOps &ops, Value x, const std::string &at,
                                const StateRows &rows) {
  const ::kf::TensorNames &names = ops.names;
  const Projections made =
      ops.config.linear.byKeyHeads ? byKeyHeads(ops, x, at) : apart(ops, x, at);
  auto weight = [&](std::string_view name) {
    return ops.weightOf(at + std::string(name));
  };
  OpBuilder &b = ops.b;
  Value result = GatedDeltaOp::create(
      b, ops.loc, made.q, made.k, made.v, made.a, made.b,
      ops.weight(at + std::string(names.convolution)),
      weight(names.linearDecay), weight(names.linearBias), rows.cache,
      rows.positions, rows.sequences, rows.states, /*tile=*/ValueRange(),
      static_cast<uint64_t>(rows.layer));
  result =
      ops.scaleNorm(result, ops.weight(at + std::string(names.linearNorm)));
  Value gate = ActivationOp::create(
      b, ops.loc, made.z,
      ActivationKindAttr::get(b.getContext(), ActivationKind::Silu));
  Value gated =
      arith::MulFOp::create(b, ops.loc, ops.widened(result), ops.widened(gate));
  return ops.linear(ops.fromHeads(ops.rounded(gated)),
                    at + std::string(names.linearOutput));
}
