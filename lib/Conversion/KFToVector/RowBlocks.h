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

#include "KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::kf {

/// Arithmetic on integers and vectors of them, and choices, for emitters.
class ScalarCode {
public:
  explicit ScalarCode(KernelEmitter &e) : e(e), b(e.b), loc(e.loc) {}

  /// A constant of an integer type, or a splat of a vector of one.
  Value number(Type type, int64_t value);
  Value i32(int64_t value) { return number(b.getI32Type(), value); }
  Value i64(int64_t value) { return number(b.getI64Type(), value); }
  /// The integer `value` on every lane of a vector.
  Value splat(Value value) { return e.splat(value, e.lanes); }
  Value toI64(Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  }
  Value toIndex(Value integer) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), integer);
  }
  /// A binary op of arith whose result has the type of `lhs`.
  template <typename OpTy> Value make(Value lhs, Value rhs) {
    return OpTy::create(b, loc, lhs, rhs);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  Value both(Value lhs, Value rhs) { return make<arith::AndIOp>(lhs, rhs); }
  /// Whether a lane of `mask` is set.
  Value any(Value mask);
  /// The value of the branch that is taken.
  Value ifElse(Value condition, function_ref<Value()> yes,
               function_ref<Value()> no);

  KernelEmitter &e;
  RewriterBase &b;
  Location loc;
};

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
  FailureOr<Value> copy(Value row);
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

  Value logits, values;
  int64_t size, whole, rest; ///< values, whole blocks, values past them
  Value maxima, tail, buffer;
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_ROWBLOCKS_H
