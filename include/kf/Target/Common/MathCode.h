//===- MathCode.h - Functions of f32 in plain arithmetic --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What GPUs' code of functions is made of. All of it rounds as IEEE 754 says,
// so that a CPU finds the errors that a GPU would make.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_COMMON_MATHCODE_H
#define KF_TARGET_COMMON_MATHCODE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

#include <limits>

namespace mlir::kf {

/// Emits arithmetic on scalars of f32, i32 and i64 where `b` inserts.
class MathCode {
public:
  MathCode(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value exp(Value x) { return exponential(x); }
  Value log(Value x);

protected:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  /// 1.5 * 2^23: the integer nearest to x is in the low bits of x + magic.
  static constexpr double magic = 12582912.0;
  static constexpr int32_t magicBits = 0x4b400000;
  static constexpr int32_t signBit = std::numeric_limits<int32_t>::min();
  /// Multiples of it have few bits, so that small ones are exact; with the
  /// rest.
  static constexpr double ln2High = 0.693145751953125,
                          ln2Low = 1.42860682030941723e-6;

  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  Value number(double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value integer(int32_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }
  Value wide(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  }
  template <typename OpTy> Value make(Value lhs, Value rhs) {
    return OpTy::create(b, loc, lhs, rhs);
  }
  Value add(Value x, Value y) { return make<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return make<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return make<arith::MulFOp>(x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value negate(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value abs(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value bits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  }
  Value fromBits(Value x) {
    return arith::BitcastOp::create(b, loc, b.getF32Type(), x);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  /// Comparisons that are false where one side is a NaN.
  Value isLess(Value x, Value y) { return is(arith::CmpFPredicate::OLT, x, y); }
  Value isEqual(Value x, Value y) {
    return is(arith::CmpFPredicate::OEQ, x, y);
  }
  Value is(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  Value hasBit(Value x, int32_t bit) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                 make<arith::AndIOp>(x, integer(bit)),
                                 integer(0));
  }
  Value truncate(Value x) {
    return arith::TruncIOp::create(b, loc, b.getI32Type(), x);
  }
  Value extend(Value x) {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), x);
  }
  Value toNumber(Value x) {
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), x);
  }
  /// By Horner's rule, highest coefficient first.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = number(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, number(coefficient));
    return sum;
  }

  //===--------------------------------------------------------------------===//
  // Parts of functions
  //===--------------------------------------------------------------------===//

  /// 2^doublings * e^(x + rest), where `rest`, if there is one, is small.
  Value exponential(Value x, Value rest = {}, int32_t doublings = 0);
  /// x = n * ln2 + rest, rest in [-ln2/2, ln2/2]; n as a number that is
  /// `magic` too large, whose low bits are n. For |x| < 2^21.
  struct Powers {
    Value shifted, rest;
  };
  Powers powersOf(Value x);
  /// 2^power as an f32, for the powers (i32) of normal numbers.
  Value powerOfTwo(Value power);
  /// A positive x is 2^exponent * (1 + fraction), fraction in [-1/3, 1/3).
  struct Split {
    Value exponent, fraction;
  };
  Split split(Value x);
  /// log(1 + fraction), fraction in [-1/3, 1/3).
  Value logOfFraction(Value fraction);
  /// `value`, where x is a positive number; else what the logarithm of x is.
  Value orSpecialLog(Value x, Value value);

  OpBuilder &b;
  Location loc;
};

/// Replaces an op on scalars of f32 by what `expand`, a method of `Code`, makes
/// of its operands.
template <typename OpTy, typename Code, auto expand>
struct ExpandF32 : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "not a scalar of f32");
    Code code(rewriter, op.getLoc());
    if constexpr (OpTy::template hasTrait<OpTrait::OneOperand>())
      rewriter.replaceOp(op, (code.*expand)(op.getOperand()));
    else
      rewriter.replaceOp(op, (code.*expand)(op.getLhs(), op.getRhs()));
    return success();
  }
};

} // namespace mlir::kf

#endif // KF_TARGET_COMMON_MATHCODE_H
