//===- SharedContext.h - Attention to keys of several ranks -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of n ranks that share the positions of sequences, position p is that of rank
// p / 64 mod n, which counts its own from 0 on: its place there. A row's keys
// are stored by the one rank that has a place for it, and a row attends on each
// rank to the places up to the last one that is not behind it. What ranks give
// is gathered, and put together in their order, by all of them alike.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_SHAREDCONTEXT_H
#define KF_LIB_IMPORT_SHAREDCONTEXT_H

#include "ModelOps.h"

namespace mlir::kf {

/// Writes the ops around such attention, of config.contextRanks ranks.
class SharedContext {
public:
  /// Positions are [T] of i32.
  SharedContext(ModelOps &ops, Value positions);

  /// [T] of i32: the places of the rows' own positions, -1 of those that other
  /// ranks have, and the last places that rows see, -1 where there are none.
  Value places() const { return ownPlaces; }
  Value lastPlaces() const { return seenPlaces; }

  /// What rows attend to, [T, heads, D] of f32, of the part that each rank has
  /// of it. `sinks` are [heads], or null.
  Value combine(AttentionPartialOp part, Value sinks);

private:
  Value number(int64_t value);
  Value held(Value x);
  Value rowOf(AttentionPartialOp part);

  ModelOps &ops;
  OpBuilder &b;
  RankedTensorType type; ///< of the positions
  Value ownPlaces, seenPlaces;
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_SHAREDCONTEXT_H
