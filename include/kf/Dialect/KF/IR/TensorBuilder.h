//===- TensorBuilder.h - Builds ops on tensors at one place -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short names for the ops that expansions and derivatives are made of. Shapes
// are those of their operands; a first dimension may be a size of the step.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DIALECT_KF_IR_TENSORBUILDER_H
#define KF_DIALECT_KF_IR_TENSORBUILDER_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace mlir::kf {

class TensorBuilder {
public:
  TensorBuilder(OpBuilder &builder, Location loc) : b(builder), loc(loc) {}

  OpBuilder &b;
  Location loc;

  static RankedTensorType typeOf(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  /// An op of the type that its operands have, or say.
  template <typename OpTy, typename... Args> Value make(Args &&...args) {
    return OpTy::create(b, loc, std::forward<Args>(args)...)->getResult(0);
  }

  //===--- Moving elements ------------------------------------------------===//

  /// `x` in `shape`, static but for a first dimension that stays; `groups` are
  /// the dimensions of the larger of both.
  Value reshape(Value x, ArrayRef<int64_t> shape,
                ArrayRef<ReassociationIndices> groups);
  /// `x` with more dimensions of 1, so that it has those of `shape`: the
  /// dimensions `added` of it, which may come first if it is static.
  Value insertOnes(Value x, ArrayRef<int64_t> shape,
                   function_ref<bool(int64_t)> added);
  /// `count` elements of dimension `dim`, from `offset` on.
  Value slice(Value x, int64_t dim, int64_t offset, int64_t count,
              int64_t stride = 1);
  /// The same of the last dimension.
  Value sliceColumns(Value x, int64_t offset, int64_t count,
                     int64_t stride = 1) {
    return slice(x, typeOf(x).getRank() - 1, offset, count, stride);
  }
  /// One behind the other along dimension `dim`, which is static.
  Value concat(int64_t dim, ValueRange parts);
  Value concatColumns(ValueRange parts) {
    return concat(typeOf(parts[0]).getRank() - 1, parts);
  }
  /// In the shape of `shape`, its own element type kept.
  Value broadcast(Value x, RankedTensorType shape);
  /// The last two dimensions in each other's place.
  Value swapLast(Value x);

  //===--- Elements -------------------------------------------------------===//

  /// f16 and bf16 as f32; others as they are.
  Value widen(Value x);
  /// f32 rounded to `element`.
  Value narrow(Value x, Type element);
  /// A number, or an integer, in each element; a view where the type has a size
  /// of the step.
  Value constant(RankedTensorType type, double value);
  Value add(Value x, Value y) { return make<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return make<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return make<arith::MulFOp>(x, y); }
  Value div(Value x, Value y) { return make<arith::DivFOp>(x, y); }
  Value neg(Value x) { return make<arith::NegFOp>(x); }
  Value add(Value x, double y) { return add(x, constant(typeOf(x), y)); }
  Value sub(double x, Value y) { return sub(constant(typeOf(y), x), y); }
  Value mul(Value x, double y) { return mul(x, constant(typeOf(x), y)); }
  Value div(double x, Value y) { return div(constant(typeOf(y), x), y); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return make<arith::CmpFOp>(predicate, x, y);
  }
  Value select(Value condition, Value yes, Value no) {
    return make<arith::SelectOp>(condition, yes, no);
  }

  //===--- Sums -----------------------------------------------------------===//

  Value reduce(ReduceKind kind, Value x, ArrayRef<int64_t> dims, bool keepDims);
  /// Of each row, [..., D] -> [..., 1].
  Value reduceRows(ReduceKind kind, Value x) {
    return reduce(kind, x, typeOf(x).getRank() - 1, /*keepDims=*/true);
  }
  /// Sums of the elements that kf.broadcast makes of each one of `shape`.
  Value sumTo(Value x, RankedTensorType shape);
};

} // namespace mlir::kf

#endif // KF_DIALECT_KF_IR_TENSORBUILDER_H
