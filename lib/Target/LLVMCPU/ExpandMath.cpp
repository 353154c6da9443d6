//===- ExpandMath.cpp - Transcendental functions as vector code -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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
      signalPassFailure();
  }
};

} // namespace
