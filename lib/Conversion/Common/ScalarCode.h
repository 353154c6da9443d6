//===- ScalarCode.h - Integers, comparisons and choices ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_SCALARCODE_H
#define KF_CONVERSION_COMMON_SCALARCODE_H

#include "TileEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::kf {

/// Arithmetic on integers and vectors of them, and choices, for emitters.
class ScalarCode {
public:
  explicit ScalarCode(TileEmitter &e) : b(e.b), loc(e.loc), tile(e) {}

  /// A constant of an integer type, or a splat of a vector of one.
  Value number(Type type, int64_t value);
  Value i32(int64_t value) { return number(b.getI32Type(), value); }
  Value i64(int64_t value) { return number(b.getI64Type(), value); }
  Value toI32(Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  }
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
  /// See kf::philox: four words of four and two, i32s or vectors of i32.
  SmallVector<Value> philox(ValueRange counter, ValueRange key);
  /// Whether a lane of `mask` is set.
  Value any(Value mask);
  /// The value of the branch that is taken.
  Value ifElse(Value condition, function_ref<Value()> yes,
               function_ref<Value()> no) {
    return tile.ifElse(condition, yes, no);
  }

  RewriterBase &b;
  Location loc;

protected:
  TileEmitter &tile;
};

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_SCALARCODE_H
