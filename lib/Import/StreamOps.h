//===- StreamOps.h - Several hidden rows of a token -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_STREAMOPS_H
#define KF_LIB_IMPORT_STREAMOPS_H

#include "ModelOps.h"

namespace mlir::kf {

/// Writes what a model with several hidden rows of a token, its *streams*, does
/// around its layers, of which each computes one of them (Baykal et al.,
/// "Alternating Updates for Efficient Transformers", 2023). All streams are
/// [T, D] of what layers hand on; f32 computes.
class StreamOps {
public:
  explicit StreamOps(ModelOps &ops) : ops(ops), b(ops.b) {}

  /// The streams of embeddings x [T, D]: x, and products of it that are made as
  /// long as it is.
  SmallVector<Value> begin(Value x);
  /// What the layer whose names begin with `at` is expected to make of
  /// `streams`: each of them, and a mix of all.
  SmallVector<Value> predict(ArrayRef<Value> streams, const std::string &at);
  /// `predictions`, moved by what `computed`, the layer's result, differs from
  /// that of the active stream.
  SmallVector<Value> correct(ArrayRef<Value> predictions, Value computed,
                             const std::string &at);
  /// What the layer's input of the token is gated by.
  Value gateInput(ArrayRef<Value> streams, const std::string &at);
  /// The mean of all: the first, and products of the others that are made as
  /// long as that is.
  Value end(ArrayRef<Value> streams);

private:
  Value modalities(Value x, const std::string &at);
  Value asLongAs(Value x, Value other);
  Value meanSquare(Value x);
  Value times(Value x, Value column);

  ModelOps &ops;
  OpBuilder &b;
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_STREAMOPS_H
