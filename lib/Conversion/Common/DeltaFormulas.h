//===- DeltaFormulas.h - What kernels of kf.gated_delta share ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A head's state in memory: its matrix [dk][dv], then the last taps - 1 rows of
// its channels that the convolution looks back at, the oldest one first,
// [taps - 1][channels]. A head's channels are those of its q, k and v; heads
// that share a key head have its channels each, so that none waits for another.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_DELTAFORMULAS_H
#define KF_CONVERSION_COMMON_DELTAFORMULAS_H

#include "TileEmitter.h"

namespace mlir::kf {

/// The sequence and the head that a tile of kf.gated_delta names.
class DeltaHead {
public:
  DeltaHead(TileEmitter &emitter, GatedDeltaOp op);

  /// Where its matrix, and the rows behind it, begin in the cache. A slot that
  /// does not exist is another one.
  Value matrix, window;
  Value head;

  /// Channels of `tensor` that the head has: `size` from number `offset` on,
  /// as row `row` of head `head` of the tensor has them, and from row `line`
  /// of the convolution on.
  struct Part {
    Value tensor, head, line;
    int64_t size, offset;
  };
  SmallVector<Part, 3> parts; ///< q, k and v

  /// Calls `body` for each row of the sequence, in their order, with whether it
  /// is the first one. What leads there is the same for all of a workgroup.
  void forRows(function_ref<void(Value row, Value isFirst)> body);
  /// The same with values that go from row to row, from `inits` on; returns the
  /// last ones.
  SmallVector<Value>
  forRows(ValueRange inits,
          function_ref<SmallVector<Value>(Value row, Value isFirst, ValueRange)>
              body);
  /// What the matrix is multiplied by for row `row`, and the share of the
  /// difference that is added.
  std::pair<Value, Value> gatesOf(Value row);
  /// 1 / sqrt(sum + 1e-6).
  Value inverseNorm(Value sumOfSquares);
  /// What q is multiplied by, beside that.
  Value queryScale();

private:
  Value loadIndex(Value tensor, Value at);

  TileEmitter &e;
  OpBuilder &b;
  Location loc;
  GatedDeltaOp op;
  Value sequence;
  Value rate, bias; ///< exp(decay), and what is added to `a`
};

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_DELTAFORMULAS_H
