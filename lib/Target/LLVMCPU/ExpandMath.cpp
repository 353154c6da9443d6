//===- ExpandMath.cpp - Transcendental functions as vector code -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Passes.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDCPUMATH
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

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
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    // What LLVM has no intrinsic for, or none as exact as the C library.
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *op) {
      return !isa<math::AcoshOp, math::AsinhOp, math::AtanhOp, math::CbrtOp,
                  math::ErfOp, math::ErfcOp, math::ExpM1Op, math::Log1pOp>(op);
    });
    RewritePatternSet calls(&getContext());
    populateMathToLibmConversionPatterns(calls);
    if (failed(
            applyPartialConversion(getOperation(), target, std::move(calls))))
      signalPassFailure();
  }
};

} // namespace
