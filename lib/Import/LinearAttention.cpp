//===- LinearAttention.cpp - Layers that keep a state ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinearAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// What a layer's matrices make of its rows. K key heads, V value heads.
struct Projections {
  Value q, k; ///< [T, K, dk]
  Value v, z; ///< [T, V, dv]
  Value a, b; ///< [T, V]
};

/// x [T, N], `count` times one behind the other: [T, count * N].
Value repeated(ModelOps &ops, Value x, int64_t count) {
  if (count == 1)
    return x;
  return tensor::ConcatOp::create(ops.b, ops.loc, /*dim=*/1,
                                  SmallVector<Value>(count, x));
}

/// q, k, v and z of one matrix for q, k and v, and one for z.
void projectApart(ModelOps &ops, Value x, const std::string &at,
                  Projections &made) {
  const ::kf::LinearAttentionConfig &linear = ops.config.linear;
  const ::kf::TensorNames &names = ops.names;
  const int64_t keys = linear.keyHeads * linear.keyDim;
  const int64_t values = linear.valueHeads * linear.valueDim;
  // Where value heads take turns at the key heads, each has one of its own.
  const int64_t times =
      names.tiledHeads ? linear.valueHeads / linear.keyHeads : 1;
  Value qkv = ops.linear(x, at + std::string(names.linearQkv));
  auto keyHeads = [&](int64_t first) {
    return ops.toHeads(repeated(ops, ops.columns(qkv, first, keys), times),
                       times * linear.keyHeads, linear.keyDim);
  };
  auto valueHeads = [&](Value columns) {
    return ops.toHeads(columns, linear.valueHeads, linear.valueDim);
  };
  made.q = keyHeads(0);
  made.k = keyHeads(keys);
  made.v = valueHeads(ops.columns(qkv, 2 * keys, values));
  made.z = valueHeads(ops.linear(x, at + std::string(names.linearZ)));
}

/// The same of one matrix whose rows are in order of the key heads.
void projectByKeyHeads(ModelOps &ops, Value x, const std::string &at,
                       Projections &made) {
  const ::kf::LinearAttentionConfig &linear = ops.config.linear;
  const int64_t dk = linear.keyDim;
  const int64_t values = // of a key head
      linear.valueHeads / linear.keyHeads * linear.valueDim;
  Value qkvz =
      ops.toHeads(ops.linear(x, at + std::string(ops.names.linearQkvz)),
                  linear.keyHeads, 2 * (dk + values));
  auto valueHeads = [&](int64_t first) {
    return ops.toHeads(ops.fromHeads(ops.columns(qkvz, first, values)),
                       linear.valueHeads, linear.valueDim);
  };
  made.q = ops.columns(qkvz, 0, dk);
  made.k = ops.columns(qkvz, dk, dk);
  made.v = valueHeads(2 * dk);
  made.z = valueHeads(2 * dk + values);
}

/// a and b, of a matrix for each or of one in order of the key heads.
void projectRates(ModelOps &ops, Value x, const std::string &at,
                  Projections &made) {
  const ::kf::LinearAttentionConfig &linear = ops.config.linear;
  const ::kf::TensorNames &names = ops.names;
  if (!linear.byKeyHeads) {
    made.a = ops.linear(x, at + std::string(names.linearA));
    made.b = ops.linear(x, at + std::string(names.linearB));
    return;
  }
  const int64_t shared = linear.valueHeads / linear.keyHeads; // of a key head
  Value ba = ops.toHeads(ops.linear(x, at + std::string(names.linearBa)),
                         linear.keyHeads, 2 * shared);
  made.b = ops.fromHeads(ops.columns(ba, 0, shared));
  made.a = ops.fromHeads(ops.columns(ba, shared, shared));
}

Projections project(ModelOps &ops, Value x, const std::string &at) {
  Projections made;
  if (ops.names.joinsQkvz(ops.config.linear))
    projectByKeyHeads(ops, x, at, made);
  else
    projectApart(ops, x, at, made);
  projectRates(ops, x, at, made);
  return made;
}

} // namespace

Value mlir::kf::linearAttention(ModelOps &ops, Value x, const std::string &at,
                                const StateRows &rows) {
  const ::kf::TensorNames &names = ops.names;
  const Projections made = project(ops, x, at);
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
