//===- Expansions.cpp - Ops made of other ops -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/Expansions.h"

#include "kf/Dialect/KF/IR/Gradients.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::kf;

static RankedTensorType typeOf(Value value) {
  return TensorBuilder::typeOf(value);
}

//===----------------------------------------------------------------------===//
// mlp, matmul with glu
//===----------------------------------------------------------------------===//

Value mlir::kf::expandMlp(MlpOp op, TensorBuilder &build) {
  auto matmul = [&](Value x, Value w, Value bias) {
    return build.make<MatmulOp>(x, w, bias, ActivationKindAttr());
  };
  auto activate = [&](Value x) {
    return build.make<ActivationOp>(x, op.getActivationAttr());
  };
  Value inner;
  if (op.getGate()) {
    Value gate = activate(matmul(op.getX(), op.getGate(), op.getGateBias()));
    Value up = matmul(op.getX(), op.getUp(), op.getUpBias());
    inner = build.mul(gate, up);
  } else {
    inner = activate(matmul(op.getX(), op.getUp(), op.getUpBias()));
  }
  return matmul(inner, op.getDown(), op.getDownBias());
}

/// Slice `number` of the first dimension, without it.
static Value sliceOfFirst(Value x, int64_t number, TensorBuilder &build) {
  RankedTensorType type = typeOf(x);
  OpBuilder &b = build.b;
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes,
      strides(type.getRank(), b.getIndexAttr(1));
  for (int64_t extent : type.getShape())
    sizes.push_back(b.getIndexAttr(extent));
  offsets[0] = b.getIndexAttr(number);
  sizes[0] = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(
      b, build.loc,
      RankedTensorType::get(type.getShape().drop_front(),
                            type.getElementType()),
      x, offsets, sizes, strides);
}

/// Whether `x` is two tensors of the checkpoint.
static bool isPairOfNames(Value x) {
  auto weight = x.getDefiningOp<WeightOp>();
  return weight && weight.getStacked() && weight.getNames().size() == 2;
}

/// One side of a gated product's weight, under its own name if it has one.
static Value sideOf(Value w, int64_t number, TensorBuilder &build) {
  if (!isPairOfNames(w))
    return sliceOfFirst(w, number, build);
  auto pair = w.getDefiningOp<WeightOp>();
  RankedTensorType type = typeOf(w);
  return build.make<WeightOp>(
      RankedTensorType::get(type.getShape().drop_front(),
                            type.getElementType()),
      build.b.getArrayAttr(pair.getNames()[number]), /*stacked=*/UnitAttr(),
      pair.getTransposedAttr());
}

Value mlir::kf::expandGlu(MatmulOp op, TensorBuilder &build) {
  // Blocks have no slices.
  if (isa<QuantType>(typeOf(op.getW()).getElementType()) &&
      !isPairOfNames(op.getW()))
    return {};
  auto side = [&](int64_t number) {
    return build.make<MatmulOp>(
        op.getX(), sideOf(op.getW(), number, build),
        op.getBias() ? sliceOfFirst(op.getBias(), number, build) : Value(),
        ActivationKindAttr());
  };
  Value gate = build.make<ActivationOp>(side(0), op.getGluAttr());
  return build.mul(gate, side(1));
}

//===----------------------------------------------------------------------===//
// scaled_dot_product_attention
//===----------------------------------------------------------------------===//

/// Each group of keys or values for all heads that read it.
static Value shareHeads(Value x, int64_t heads, TensorBuilder &build) {
  RankedTensorType type = typeOf(x);
  int64_t rank = type.getRank(), groups = type.getDimSize(rank - 3);
  if (groups == heads)
    return x;
  SmallVector<ReassociationIndices> dims;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t first = dim > rank - 3 ? dim + 1 : dim;
    dims.push_back(dim == rank - 3 ? ReassociationIndices{dim, dim + 1}
                                   : ReassociationIndices{first});
  }
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + rank - 2, 1);
  Value apart = build.reshape(x, shape, dims);
  shape[rank - 2] = heads / groups;
  Value repeated = build.broadcast(
      apart, RankedTensorType::get(shape, type.getElementType()));
  SmallVector<int64_t> joined(type.getShape());
  joined[rank - 3] = heads;
  return build.reshape(repeated, joined, dims);
}

/// Scores of keys that a query does not attend to are -inf.
static Value hide(BatchAttentionInterface op, Value scores,
                  TensorBuilder &build) {
  RankedTensorType type = typeOf(scores);
  auto keep = [&](Value isSeen) {
    Value hidden =
        build.constant(type, -std::numeric_limits<double>::infinity());
    scores = build.select(isSeen, scores, hidden);
  };
  if (Value mask = op.getMask()) {
    if (typeOf(mask).getElementType().isInteger(1))
      keep(build.broadcast(mask, type));
    else
      scores = build.add(scores, build.widen(build.broadcast(mask, type)));
  }
  if (!op.getCausal())
    return scores;
  RankedTensorType numbers = type.clone(build.b.getI64Type());
  Value query = build.make<IotaOp>(numbers, type.getRank() - 2);
  Value key = build.make<IotaOp>(numbers, type.getRank() - 1);
  Value ahead = build.make<arith::SubIOp>(key, query);
  auto compare = [&](arith::CmpIPredicate predicate, int64_t limit) {
    keep(build.make<arith::CmpIOp>(
        predicate, ahead, build.constant(numbers, static_cast<double>(limit))));
  };
  int64_t offset = static_cast<int64_t>(op.getOffset());
  compare(arith::CmpIPredicate::sle, offset);
  if (std::optional<uint64_t> window = op.getWindow())
    compare(arith::CmpIPredicate::sgt, offset - static_cast<int64_t>(*window));
  return scores;
}

AttentionWeights mlir::kf::buildAttentionWeights(BatchAttentionInterface op,
                                                 TensorBuilder &build) {
  AttentionWeights parts;
  parts.q = build.widen(op.getQ());
  int64_t heads = typeOf(parts.q).getShape().end()[-3];
  parts.k = build.widen(shareHeads(op.getK(), heads, build));
  parts.v = build.widen(shareHeads(op.getV(), heads, build));
  Value scores = build.make<BatchMatmulOp>(parts.q, parts.k);
  RankedTensorType type = typeOf(scores);
  scores = build.mul(scores, getScaleFactor(op));
  if (std::optional<APFloat> cap = op.getSoftcap()) {
    double limit = cap->convertToDouble();
    parts.capped = build.make<math::TanhOp>(build.mul(scores, 1 / limit));
    scores = build.mul(parts.capped, limit);
  }
  scores = hide(op, scores, build);
  // Rows of nothing but -inf have zeros, and no NaN from their softmax.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double lowest = std::numeric_limits<float>::lowest();
  Value finite =
      build.make<arith::MaximumFOp>(scores, build.constant(type, lowest));
  Value isHidden = build.compare(arith::CmpFPredicate::OEQ, scores,
                                 build.constant(type, -infinity));
  Value none = build.constant(type, 0.0);
  parts.weights = build.select(isHidden, none, build.make<SoftmaxOp>(finite));
  parts.scores = finite;
  return parts;
}

/// Weights of the forward pass, computed again.
static AttentionWeights buildWeightsAgain(BatchAttentionInterface op,
                                          TensorBuilder &build) {
  AttentionWeights parts;
  Gradients(build.b).recompute(
      [&] { parts = buildAttentionWeights(op, build); });
  return parts;
}

Value mlir::kf::expandAttention(ScaledDotProductAttentionOp op,
                                TensorBuilder &build) {
  // What is computed again has gradients of the same layer that read its
  // weights: marked as theirs are, CSE makes both one.
  AttentionWeights parts = op->hasAttr(kRecomputedAttrName)
                               ? buildWeightsAgain(op, build)
                               : buildAttentionWeights(op, build);
  Value result =
      build.make<BatchMatmulOp>(parts.weights, build.swapLast(parts.v));
  return build.narrow(result, typeOf(op.getQ()).getElementType());
}

//===----------------------------------------------------------------------===//
// attention_qgrad, attention_kvgrad
//===----------------------------------------------------------------------===//

Value mlir::kf::buildSoftmaxGradient(Value y, Value dy, TensorBuilder &build,
                                     Value *sums) {
  Value ofRows = build.reduceRows(ReduceKind::Sum, build.mul(dy, y));
  if (sums)
    *sums = ofRows;
  return build.mul(y, build.sub(dy, build.broadcast(ofRows, typeOf(y))));
}

/// Sums of the heads that read a group of keys or values.
static Value sumHeads(Value x, RankedTensorType groups, TensorBuilder &build) {
  RankedTensorType type = typeOf(x);
  const int64_t rank = type.getRank(), heads = type.getDimSize(rank - 3),
                count = groups.getDimSize(rank - 3);
  if (heads == count)
    return x;
  SmallVector<int64_t> shape(type.getShape());
  shape[rank - 3] = count;
  shape.insert(shape.begin() + rank - 2, heads / count);
  SmallVector<ReassociationIndices> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    dims.push_back(dim == rank - 3
                       ? ReassociationIndices{dim, dim + 1}
                       : ReassociationIndices{dim > rank - 3 ? dim + 1 : dim});
  return build.reduce(ReduceKind::Sum, build.reshape(x, shape, dims), rank - 2,
                      /*keepDims=*/false);
}

/// The product of x^T and y.
static Value multiplyColumns(Value x, Value y, TensorBuilder &build) {
  return build.make<BatchMatmulOp>(build.swapLast(x), build.swapLast(y));
}

/// With p the weights and s the scores: dv = p^T dy, dp = dy v^T,
/// ds = p (dp - sum of the row's dp p), dq = scale ds k, dk = scale ds^T q.
/// Where p is 0 nothing of ds is left, so that masks need not be looked at (Dao
/// et al., "FlashAttention", 2022, appendix B).
ScoreGradients mlir::kf::buildScoreGradients(BatchAttentionInterface op,
                                             const AttentionWeights &parts,
                                             Value dy, TensorBuilder &build) {
  ScoreGradients gradients;
  Value ds = buildSoftmaxGradient(parts.weights,
                                  build.make<BatchMatmulOp>(dy, parts.v), build,
                                  &gradients.sums);
  gradients.added = ds;
  if (parts.capped)
    ds = build.mul(ds, build.sub(1.0, build.mul(parts.capped, parts.capped)));
  gradients.scores = build.mul(ds, getScaleFactor(op));
  return gradients;
}

Value mlir::kf::buildQueryGradient(const AttentionWeights &parts, Value ds,
                                   TensorBuilder &build) {
  return build.make<BatchMatmulOp>(ds, build.swapLast(parts.k));
}

Value mlir::kf::buildKeyGradient(BatchAttentionInterface op,
                                 const AttentionWeights &parts, Value ds,
                                 TensorBuilder &build) {
  return sumHeads(multiplyColumns(ds, parts.q, build), typeOf(op.getK()),
                  build);
}

Value mlir::kf::buildValueGradient(BatchAttentionInterface op,
                                   const AttentionWeights &parts, Value dy,
                                   TensorBuilder &build) {
  return sumHeads(multiplyColumns(parts.weights, dy, build), typeOf(op.getV()),
                  build);
}

/// The logarithm of the sum of exp(score) of each row; 0 of rows without keys.
static Value buildLogOfSums(const AttentionWeights &parts,
                            TensorBuilder &build) {
  RankedTensorType type = typeOf(parts.scores);
  Value most = build.reduceRows(ReduceKind::Max, parts.scores);
  Value sums = build.reduceRows(
      ReduceKind::Sum, build.make<math::ExpOp>(build.sub(
                           parts.scores, build.broadcast(most, type))));
  constexpr double lowest = std::numeric_limits<float>::lowest();
  Value isNone = build.compare(arith::CmpFPredicate::OEQ, most,
                               build.constant(typeOf(most), lowest));
  return build.select(isNone, build.constant(typeOf(most), 0.0),
                      build.add(most, build.make<math::LogOp>(sums)));
}

SmallVector<Value> mlir::kf::expandQgrad(AttentionQgradOp op,
                                         TensorBuilder &build) {
  AttentionWeights parts = buildWeightsAgain(op, build);
  ScoreGradients gradients =
      buildScoreGradients(op, parts, build.widen(op.getDy()), build);
  auto asRows = [&](Value numbers, Value like) {
    RankedTensorType type = typeOf(like);
    SmallVector<ReassociationIndices> groups;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      groups.push_back({dim});
    groups.back().push_back(type.getRank());
    return build.reshape(numbers, type.getShape(), groups);
  };
  SmallVector<Value> results = {
      buildQueryGradient(parts, gradients.scores, build)};
  // Nobody reads them where keys and values have no gradient, or no kernel.
  results.push_back(asRows(buildLogOfSums(parts, build), op.getLse()));
  results.push_back(asRows(gradients.sums, op.getDelta()));
  return results;
}

SmallVector<Value> mlir::kf::expandKvgrad(AttentionKvgradOp op,
                                          TensorBuilder &build) {
  AttentionWeights parts = buildWeightsAgain(op, build);
  Value dy = build.widen(op.getDy());
  Value ds = buildScoreGradients(op, parts, dy, build).scores;
  return {buildKeyGradient(op, parts, ds, build),
          buildValueGradient(op, parts, dy, build)};
}

//===----------------------------------------------------------------------===//
// cross_entropy
//===----------------------------------------------------------------------===//

LabelPlaces mlir::kf::buildLabelPlaces(CrossEntropyOp op,
                                       TensorBuilder &build) {
  RankedTensorType logits = typeOf(op.getLogits()),
                   labels = typeOf(op.getLabels());
  Type i32 = build.b.getI32Type();
  const int64_t rows = logits.getDimSize(0), columns = logits.getDimSize(1);
  RankedTensorType each = logits.clone(i32);
  Value column =
      build.make<IotaOp>(RankedTensorType::get({columns}, i32), int64_t(0));
  Value label = build.insertOnes(op.getLabels(), {rows, 1},
                                 [](int64_t dim) { return dim == 1; });
  LabelPlaces places;
  places.isLabel = build.make<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                             build.broadcast(column, each),
                                             build.broadcast(label, each));
  places.counts = build.make<arith::CmpIOp>(
      arith::CmpIPredicate::ult, op.getLabels(),
      build.constant(labels, static_cast<double>(columns)));
  return places;
}

Value mlir::kf::expandCrossEntropy(CrossEntropyOp op, TensorBuilder &build) {
  Value x = build.widen(op.getLogits());
  RankedTensorType type = typeOf(x);
  LabelPlaces places = buildLabelPlaces(op, build);
  Value most = build.reduceRows(ReduceKind::Max, x);
  Value powers =
      build.make<math::ExpOp>(build.sub(x, build.broadcast(most, type)));
  auto sumOfRow = [&](Value of) {
    return build.reduce(ReduceKind::Sum, of, 1, /*keepDims=*/false);
  };
  Value logOfSum = build.make<math::LogOp>(sumOfRow(powers));
  Value label =
      sumOfRow(build.select(places.isLabel, x, build.constant(type, 0.0)));
  RankedTensorType row = typeOf(label);
  Value largest = build.reshape(most, row.getShape(), {{0, 1}});
  Value loss = build.add(logOfSum, build.sub(largest, label));
  return build.select(places.counts, loss, build.constant(row, 0.0));
}

//===----------------------------------------------------------------------===//
// dropout
//===----------------------------------------------------------------------===//

/// What is computed again must not become the value that was there before.
Value mlir::kf::expandDropout(DropoutOp op, TensorBuilder &build) {
  auto again = [&](Value value) {
    if (Attribute which = op->getAttr(kRecomputedAttrName);
        which && value != op.getX())
      value.getDefiningOp()->setAttr(kRecomputedAttrName, which);
    return value;
  };
  Value x = again(build.widen(op.getX()));
  RankedTensorType words = typeOf(x).clone(build.b.getI32Type());
  auto number = [&](int64_t dim) {
    RankedTensorType line =
        RankedTensorType::get({dim == 0 ? words.getDimSize(0) : 1,
                               dim == 1 ? words.getDimSize(1) : 1},
                              words.getElementType());
    return build.broadcast(build.make<IotaOp>(line, dim), words);
  };
  auto word = [&](int64_t place) {
    return build.broadcast(build.slice(op.getDraw(), 0, place, 1), words);
  };
  Value bits = again(build.make<PhiloxOp>(number(1), number(0), word(0),
                                          word(1), word(2), word(3)));
  const float p = op.getP().convertToFloat();
  const auto bound =
      static_cast<int32_t>(static_cast<uint32_t>(std::nearbyint(p * 0x1p32)));
  Value isKept = build.make<arith::CmpIOp>(arith::CmpIPredicate::uge, bits,
                                           build.constant(words, bound));
  // In this order nothing but x is what several of the same rows share.
  Value left = build.select(isKept, x, build.constant(typeOf(x), 0));
  return build.narrow(build.mul(left, 1 / (1 - p)),
                      typeOf(op.getX()).getElementType());
}
