//===- ExpandMlp.cpp - kf.mlp to matmuls and activations ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
    Location loc = op.getLoc();
    auto matmul = [&](Value x, Value w, Value bias) -> Value {
      return MatmulOp::create(rewriter, loc, x, w, bias, ActivationKindAttr());
    };
    auto activate = [&](Value x) -> Value {
      return ActivationOp::create(rewriter, loc, x, op.getActivationAttr());
    };
    Value inner;
    if (op.getGate()) {
      Value gate = activate(matmul(op.getX(), op.getGate(), op.getGateBias()));
      Value up = matmul(op.getX(), op.getUp(), op.getUpBias());
      inner = arith::MulFOp::create(rewriter, loc, gate, up);
    } else {
      inner = activate(matmul(op.getX(), op.getUp(), op.getUpBias()));
    }
    rewriter.replaceOp(op, matmul(inner, op.getDown(), op.getDownBias()));
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
