//===- ExpertBlock.h - A layer's routed feed-forward ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_EXPERTBLOCK_H
#define KF_LIB_IMPORT_EXPERTBLOCK_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/Builders.h"
#include "runtime/model/ModelConfig.h"

namespace mlir::kf {

/// 1 / (1 + exp(-x)) of a tensor of f32.
Value sigmoid(OpBuilder &b, Location loc, Value x);

/// The weights of a layer's experts: E of width I, for rows of D elements.
struct ExpertWeights {
  Value gateUp;   ///< [2, E, I, D]; null where both have types of their own
  Value gate, up; ///< then, [1, E, I, D]
  Value down;     ///< [1, E, D, I]
  // Biases, [2, E, I], [1, E, I] and [1, E, D]; null where there are none.
  Value gateUpBias, gateBias, upBias, downBias;
  Value choiceBias; ///< [E]; null where there is none
  Value scales;     ///< of what they give, [E]; null where there are none
};

/// Writes the ops of a layer's experts: T rows, of which each goes through k.
class ExpertBlock {
public:
  ExpertBlock(OpBuilder &b, Location loc, const ::kf::ExpertsConfig &config,
              ActivationKindAttr activation)
      : b(b), loc(loc), config(config), activation(activation) {}

  /// What the experts that `logits` [T, E] choose give of x [T, D], added up by
  /// their weights: [T, D] of f32.
  Value route(Value x, Value logits, const ExpertWeights &weights);

  /// sigmoid(logits) * x of f32, for logits [T, 1] and x [T, D].
  Value gate(Value x, Value logits);

  /// x as f32.
  Value widen(Value x);

private:
  Value inner(Value x, Value experts, const ExpertWeights &weights);
  /// x [T, A * B] -> [T, A, B] of `shape` {A, B}.
  Value split(Value x, ArrayRef<int64_t> shape);
  /// x [T, D] times `shares` [T, k, 1], rounded to what x has: [T, k, D].
  Value weighed(Value x, Value shares);
  Value joinClamped(Value gate, Value up, const ::kf::GateClamp &clamp);

  OpBuilder &b;
  Location loc;
  const ::kf::ExpertsConfig &config;
  ActivationKindAttr activation;
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_EXPERTBLOCK_H
