//===- ExpandMath.cpp - Transcendental functions as vector code -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Passes.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDCPUMATH
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// extf of vectors of f16 -> integers, where LLVM would call a function for
/// each lane
struct ExtendHalf : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isF32() ||
        !getElementTypeOrSelf(op.getIn().getType()).isF16())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType integers = type.clone(b.getI32Type());
    auto number = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(integers, b.getI32IntegerAttr(value)));
    };
    Value bits = arith::ExtUIOp::create(
        b, integers,
        arith::BitcastOp::create(b, type.clone(b.getI16Type()), op.getIn()));
    Value magnitude = arith::AndIOp::create(b, bits, number(0x7fff));
    // In the fields of an f32 the exponent is 112 too small, which holds for
    // subnormal numbers, too, but not for what is not finite.
    Value scaled = arith::MulFOp::create(
        b,
        arith::BitcastOp::create(
            b, type, arith::ShLIOp::create(b, magnitude, number(13))),
        arith::ConstantOp::create(
            b, DenseElementsAttr::get(type, b.getF32FloatAttr(0x1p112f))));
    Value isFinite = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                           magnitude, number(0x7c00));
    Value exponent =
        arith::SelectOp::create(b, isFinite, number(0), number(0x7f800000));
    Value sign = arith::ShLIOp::create(
        b, arith::AndIOp::create(b, bits, number(0x8000)), number(16));
    Value result =
        arith::OrIOp::create(b, arith::BitcastOp::create(b, integers, scaled),
                             arith::OrIOp::create(b, exponent, sign));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, result);
    return success();
  }
};

/// Whether there is an instruction for it: x86 got one with registers of 8
/// lanes.
bool extendsHalf(CpuTargetAttr target) {
  return target.getLanes() != 4 || target.countRegisters() == 32;
}

struct ExpandCpuMathPass
    : mlir::kf::impl::ExpandCpuMathBase<ExpandCpuMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    auto isVectorized = [](StringRef name) {
      return llvm::is_contained({math::ExpOp::getOperationName(),
                                 math::TanhOp::getOperationName(),
                                 math::ErfOp::getOperationName()},
                                name);
    };
    populateMathPolynomialApproximationPatterns(patterns, isVectorized);
    auto target = getOperation()->getAttrOfType<CpuTargetAttr>(kTargetAttrName);
    if (target && !extendsHalf(target))
      patterns.add<ExtendHalf>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    // What LLVM has no intrinsic for, or none as exact as the C library.
    ConversionTarget legal(getContext());
    legal.markUnknownOpDynamicallyLegal([](Operation *op) {
      return !isa<math::AcoshOp, math::AsinhOp, math::AtanhOp, math::CbrtOp,
                  math::ErfOp, math::ErfcOp, math::ExpM1Op, math::Log1pOp>(op);
    });
    RewritePatternSet calls(&getContext());
    populateMathToLibmConversionPatterns(calls);
    if (failed(applyPartialConversion(getOperation(), legal, std::move(calls))))
      signalPassFailure();
  }
};

} // namespace
