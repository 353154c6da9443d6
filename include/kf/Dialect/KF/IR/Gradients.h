//===- Gradients.h - Gradients of the values of a function ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a DifferentiableOpInterface reads and adds to. The gradient of a value v
// is the derivative of one number, the loss, by each element of v. It has v's
// shape; its elements are f32 for a v of f16, bf16 or f32, so that sums of
// gradients are not rounded on their way, and f64 for f64.
//
// Ops are built at one place, behind all of the function's own, whose values
// they read as these are. Whether what they read is kept in memory until then,
// or computed again, is decided when all are built (kf-differentiate).
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_GRADIENTS_H
#define KF_DIALECT_KF_IR_GRADIENTS_H

#include "kf/Dialect/KF/IR/TensorBuilder.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::kf {

/// The attribute of an op whose results stay in memory until the backward pass
/// where all that lies between two of them is computed again: what one layer
/// hands to the next (kf-differentiate).
constexpr llvm::StringLiteral kKeptAttrName = "kf.kept";

/// The type of the gradient of a value of `type`, a tensor of floats.
RankedTensorType getGradientType(RankedTensorType type);

class Gradients {
public:
  /// Ops are built at `builder`'s place.
  explicit Gradients(OpBuilder &builder) : builder(builder) {}

  /// Builds ops of the derivative of `op`.
  TensorBuilder at(Operation *op) { return {builder, op->getLoc()}; }

  /// Says that the gradient of `value` is wanted.
  void want(Value value) { wanted.insert(value); }
  /// Whether anybody wants the gradient of `value`.
  bool wants(Value value) const { return wanted.contains(value); }

  /// The gradient of `value`, as far as it is summed up; null where the loss
  /// does not depend on it.
  Value get(Value value) const { return sums.lookup(value); }
  /// Adds `gradient`, of getGradientType(), to that of `value`, which is
  /// wanted: a value has one for each use of it.
  void add(Value value, Value gradient);

  /// Calls `build` for ops that compute again what the forward pass has
  /// computed, and marks those that are no views with kf.recomputed.
  void recompute(function_ref<void()> build);

private:
  OpBuilder &builder;
  DenseSet<Value> wanted;
  DenseMap<Value, Value> sums;
};

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_GRADIENTS_H
