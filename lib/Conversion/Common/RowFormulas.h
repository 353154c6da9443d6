//===- RowFormulas.h - Formulas of rows and products ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Norms, softmax and what follows a product, for every target: over elements
// that TileEmitter::load gives and TileEmitter::reduceRow combines.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_ROWFORMULAS_H
#define KF_CONVERSION_COMMON_ROWFORMULAS_H

#include "TileEmitter.h"

namespace mlir::kf {

/// Whether the elements of the op's rows depend on statistics of the row: those
/// of norms and of softmax.
bool hasRowStatistics(Operation *op);

/// The statistics of row `row` (indices but the last) of such an op, whose
/// input is loadable. `keep` gets what softmax sums up, from a column on.
SmallVector<Value>
rowStatistics(TileEmitter &e, Operation *op, ValueRange row,
              function_ref<void(Value column, Value exponentials)> keep = {});

/// Elements of such an op, given its row's statistics; see TileEmitter::LoadFn.
Value normalize(TileEmitter &e, Operation *op, ValueRange statistics,
                ValueRange indices, unsigned width, Value mask = Value());

/// Factors of normalized elements from `column` on: the weight, or 1 more.
Value normWeight(TileEmitter &e, RmsNormOp op, Value column, unsigned width,
                 Value mask = Value());

/// `total`, the sum of a row's exponentials less `maximum`, with that of the
/// sink of `head`, which may be larger than the maximum: then the sum may be
/// infinite, and what is divided by it 0.
Value addSink(TileEmitter &e, Value total, Value sinks, Value head,
              Value maximum);

/// Which of the experts there are is nearest to the one that `token` has in
/// place `place`, an index.
Value nearestExpert(TileEmitter &e, ExpertMatmulOp op, Value token,
                    Value place);

/// Elements of the product from its sums, one a group: adds the bias, that of
/// `expert` where rows have experts, and applies the gate.
Value finishProduct(TileEmitter &e, ProductOpInterface op, ValueRange sums,
                    Value column, unsigned width, Value mask = Value(),
                    Value expert = Value());

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_ROWFORMULAS_H
