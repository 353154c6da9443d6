//===- RowBlocks.h - Rows of logits, block by block -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kf.argmax and kf.sample share: one pass over a row that keeps the
// largest value of each lane of each block, from which everything else about a
// few large values is found without reading the row again.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_ROWBLOCKS_H
#define KF_CONVERSION_KFTOVECTOR_ROWBLOCKS_H

#include "../Common/ScalarCode.h"
#include "KernelEmitter.h"

namespace mlir::kf {

/// A row of f32 values in memory, in blocks of kVectors vectors. The values
/// past the last whole block are copied to a block of their own, which -inf
/// fills up. One row at a time.
class RowBlocks : public ScalarCode {
public:
  static constexpr int64_t kVectors = 8;

  RowBlocks(KernelEmitter &e, Value logits);

  /// The row's values where they lie: memref<?xf32, strided<[1], offset: ?>>.
  /// Null if they are computed, or of another type than f32.
  Value inPlace(Value row);
  /// A copy of the row in scratch memory, of the same type.
  Value copy(Value row);
  /// The copy, for changes.
  Value copyBuffer();

  /// Reads the row `values`. What follows is about this row.
  void scan(Value values, bool ignoreNan);
  /// The largest value; -inf where there is none but NaN.
  Value largest;
  /// Whether there is a NaN, unless they are ignored.
  Value hasNan;
  /// The lowest index with the largest value; 0 where there is none. An i32.
  Value firstLargest();

  int64_t columns() const { return size; }
  /// The number of blocks, and of lanes of all of them.
  int64_t blocks() const { return whole + (rest > 0); }
  int64_t maximaCount() const { return blocks() * e.lanes; }
  /// The largest value of each lane of block number `block`.
  Value maximaOf(Value block);

  /// Gives `body` the block's number, the index of its first value, a function
  /// that loads its vectors, and the values that the body before yielded.
  using Load = function_ref<Value(int64_t vector)>;
  using Body = function_ref<SmallVector<Value>(Value block, Value first,
                                               Load load, ValueRange state)>;
  SmallVector<Value> forBlocks(ValueRange state, Body body);

private:
  int64_t blockSize() const { return kVectors * e.lanes; }
  Value anyOffset(Value memref);
  void copyRest();
  /// The integer `value` on every lane of a vector.
  Value splat(Value value) { return e.splat(value, e.lanes); }

  KernelEmitter &e;
  Value logits, values;
  int64_t size, whole, rest; ///< values, whole blocks, values past them
  Value maxima, tail, buffer;
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_ROWBLOCKS_H
