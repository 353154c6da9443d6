//===- LatentAttention.cpp - Attention to rows that make keys -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LatentAttention.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

/// Of the norms of both rows, whatever the model's is.
static constexpr float kLatentEps = 1e-6f;

LatentAttention::LatentAttention(ModelOps &ops, Value positions)
    : ops(ops), b(ops.b), latent(ops.config.latent), positions(positions) {
  const int64_t count = ops.config.heads;
  auto type = cast<RankedTensorType>(positions.getType());
  Value numbers = IotaOp::create(
      b, ops.loc, RankedTensorType::get({count}, b.getI32Type()), 0);
  heads = ops.inMemory(BroadcastOp::create(
      b, ops.loc, getRowsOf(type, count, b.getI32Type()), numbers));
}

Value LatentAttention::norm(Value x, const std::string &name) {
  return RmsNormOp::create(b, ops.loc, x, ops.weight(name),
                           b.getF32FloatAttr(kLatentEps), UnitAttr());
}

/// x [T, heads, K], each head times its matrix `part`: [T, heads, N].
Value LatentAttention::perHead(Value x, const std::string &at, StringRef part) {
  SmallVector<std::string> names;
  for (int64_t head = 0; head < ops.config.heads; ++head)
    names.push_back(at + ops.names.ofHead(part, head) + ".weight");
  return ExpertMatmulOp::create(b, ops.loc, x, heads, ops.stack({names}),
                                /*bias=*/Value(), ActivationKindAttr());
}

/// Elements [first, first + count) of each head of x [T, heads, K].
Value LatentAttention::part(Value x, int64_t first, int64_t count) {
  auto type = cast<RankedTensorType>(x.getType());
  const int64_t rows = type.getDimSize(1);
  SmallVector<OpFoldResult> offsets = {b.getIndexAttr(0), b.getIndexAttr(0),
                                       b.getIndexAttr(first)};
  SmallVector<OpFoldResult> sizes = {tensor::getMixedSize(b, ops.loc, x, 0),
                                     b.getIndexAttr(rows),
                                     b.getIndexAttr(count)};
  SmallVector<OpFoldResult> strides(3, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(
      b, ops.loc, getRowsOf(type, {rows, count}, type.getElementType()), x,
      offsets, sizes, strides);
}

/// [T, heads, turned dim] and [T, heads, C]: [T, heads, K].
Value LatentAttention::join(Value turned, Value others) {
  return tensor::ConcatOp::create(b, ops.loc, /*dim=*/2,
                                  ValueRange{turned, others});
}

Value LatentAttention::queries(Value x, const std::string &at,
                               const ::kf::RopeConfig &rope) {
  const ::kf::TensorNames &names = ops.names;
  if (latent.queryWidth) {
    x = norm(ops.linear(x, at + std::string(names.queryLatent)),
             at + std::string(names.queryLatentNorm));
    x = ops.linear(x, at + std::string(names.queryOfLatent));
  } else {
    x = ops.linear(x, at + std::string(names.query));
  }
  x = ops.toHeads(x, ops.config.heads, latent.plainDim + latent.turnedDim);
  Value plain = perHead(part(x, 0, latent.plainDim), at, "keys");
  return ops.rope(join(part(x, latent.plainDim, latent.turnedDim), plain),
                  positions, rope);
}

Value LatentAttention::keys(Value x, const std::string &at,
                            const ::kf::RopeConfig &rope) {
  x = ops.linear(x, at + std::string(ops.names.keyLatent));
  Value row = norm(ops.columns(x, 0, latent.width),
                   at + std::string(ops.names.keyLatentNorm));
  Value turned = ops.columns(x, latent.width, latent.turnedDim);
  return ops.rope(join(ops.toHeads(turned, 1, latent.turnedDim),
                       ops.toHeads(row, 1, latent.width)),
                  positions, rope);
}

Value LatentAttention::values(Value attended, const std::string &at) {
  Value rows = part(attended, latent.turnedDim, latent.width);
  return ops.fromHeads(perHead(rows, at, "values"));
}
