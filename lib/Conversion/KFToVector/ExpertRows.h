//===- ExpertRows.h - Which rows of a tile are an expert's ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A workgroup of kf.expert_matmul has one row of the result, or those of some
// tokens and places among their experts. Of several, it sorts the numbers of
// the rows by their experts, and then takes an expert's rows together.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_EXPERTROWS_H
#define KF_LIB_CONVERSION_KFTOVECTOR_EXPERTROWS_H

#include "KernelEmitter.h"

namespace mlir::kf {

class ExpertRows {
public:
  /// `tokens` is the most that the tile has.
  ExpertRows(KernelEmitter &emitter, ExpertMatmulOp op, int64_t tokens);

  /// Calls `body` for rows of one expert, `most` or fewer at a time, until all
  /// have been there. They are numbered from 0 on.
  void forRows(int64_t most, function_ref<void(Value expert, Value rows)> body);

  /// In the body: where row `row` lies in the tile of the result, {token, place
  /// among its experts}; and in that of x, which may have one for the token.
  SmallVector<Value> resultRow(Value row);
  SmallVector<Value> xRow(Value row);

private:
  void sort();
  Value load(Value memref, Value at);
  void store(Value value, Value memref, Value at);

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  ExpertMatmulOp op;
  int64_t tokens, top; // of the tile; experts of each
  Value order;         // scratch: numbers of rows by experts; null: one row
  Value ends;  // scratch: where each expert's begin, then where they end
  Value first; // in `order`, of those that the body has
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_EXPERTROWS_H
