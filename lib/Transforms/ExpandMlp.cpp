//===- ExpandMlp.cpp - kf.mlp to matmuls and activations ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/Expansions.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDMLP
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// mlp -> matmul, activation, (matmul, mulf,) matmul
struct ExpandMlpOp : OpRewritePattern<MlpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MlpOp op,
                                PatternRewriter &rewriter) const override {
    TensorBuilder build(rewriter, op.getLoc());
    rewriter.replaceOp(op, expandMlp(op, build));
    return success();
  }
};

struct ExpandMlpPass : mlir::kf::impl::ExpandMlpBase<ExpandMlpPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandMlpOp>(&getContext());
    // kf-canonicalize folds, which asks whether there are such constants.
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns),
                                  GreedyRewriteConfig().enableFolding(false))))
      signalPassFailure();
  }
};

} // namespace
