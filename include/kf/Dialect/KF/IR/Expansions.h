//===- Expansions.h - Ops made of other ops ---------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kf-expand-mlp and kf-expand-tensors rewrite ops to, for whoever wants
// the same without a pass: derivatives read what is between the parts. Each
// builds the op's result in front of `build`'s place, and changes nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_EXPANSIONS_H
#define KF_DIALECT_KF_IR_EXPANSIONS_H

#include "kf/Dialect/KF/IR/TensorBuilder.h"

namespace mlir::kf {

/// Products, the activation, and with a gate the product of both sides.
Value expandMlp(MlpOp op, TensorBuilder &build);

/// A gated product of matrices, [2, N, K], as a product for each of them; null
/// for blocks, unless each side has its name in a kf.weight.
Value expandGlu(MatmulOp op, TensorBuilder &build);

/// What attention weighs its values by. All are of f32, and have a head of keys
/// and values for each head of queries.
struct AttentionWeights {
  Value q, k, v;
  Value capped; ///< tanh(score / softcap), [..., H, T, S]; null without softcap
  Value scores; ///< [..., H, T, S]; the lowest f32 where a key is hidden
  Value weights; ///< [..., H, T, S]; zeros where a query attends to no key
};
AttentionWeights buildAttentionWeights(BatchAttentionInterface op,
                                       TensorBuilder &build);

/// The gradient of scores before they are scaled, [..., H, T, S], of the
/// result's `dy` and what the weights are made of; also the gradient of a mask
/// that is added, and the sums of each row that are taken away.
struct ScoreGradients {
  Value scores, added, sums;
};
ScoreGradients buildScoreGradients(BatchAttentionInterface op,
                                   const AttentionWeights &parts, Value dy,
                                   TensorBuilder &build);

/// Gradients of queries, keys and values, of `ds`, that of scores.
Value buildQueryGradient(const AttentionWeights &parts, Value ds,
                         TensorBuilder &build);
Value buildKeyGradient(BatchAttentionInterface op,
                       const AttentionWeights &parts, Value ds,
                       TensorBuilder &build);
Value buildValueGradient(BatchAttentionInterface op,
                         const AttentionWeights &parts, Value dy,
                         TensorBuilder &build);

/// Of y = softmax(x): dx = y (dy - sum of the row's dy y). `sums` gets the
/// sums,
/// [..., 1], where it is not null.
Value buildSoftmaxGradient(Value y, Value dy, TensorBuilder &build,
                           Value *sums = nullptr);

/// Products with a softmax between them.
Value expandAttention(ScaledDotProductAttentionOp op, TensorBuilder &build);

/// Results of the gradients of attention, by products that compute its weights
/// again.
SmallVector<Value> expandQgrad(AttentionQgradOp op, TensorBuilder &build);
SmallVector<Value> expandKvgrad(AttentionKvgradOp op, TensorBuilder &build);

/// Where the labels of a kf.cross_entropy are.
struct LabelPlaces {
  Value isLabel; ///< i1 [T, V]: the column is the row's label
  Value counts;  ///< i1 [T]: the row's label is a column
};
LabelPlaces buildLabelPlaces(CrossEntropyOp op, TensorBuilder &build);

/// Reductions and elementwise ops.
Value expandCrossEntropy(CrossEntropyOp op, TensorBuilder &build);

/// Elementwise ops on the numbers of rows and columns.
Value expandDropout(DropoutOp op, TensorBuilder &build);

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_EXPANSIONS_H
