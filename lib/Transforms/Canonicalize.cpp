//===- Canonicalize.cpp - Canonical forms of ops on tensors ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kf {
#define GEN_PASS_DEF_CANONICALIZE
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Whether there are constants of this type: those of tensors have a size.
bool hasConstants(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return !shaped || shaped.hasStaticShape();
}

/// op -> the values that it folds to, or constants, where there are some
struct Fold : RewritePattern {
  explicit Fold(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (op->hasTrait<OpTrait::ConstantLike>())
      return failure();
    SmallVector<OpFoldResult> results;
    rewriter.startOpModification(op);
    if (succeeded(op->fold(results)) && results.empty()) {
      rewriter.finalizeOpModification(op); // it was changed itself
      return success();
    }
    rewriter.cancelOpModification(op);
    if (results.empty())
      return failure();
    for (auto [result, type] : llvm::zip(results, op->getResultTypes()))
      if (isa<Attribute>(result) && !hasConstants(type))
        return rewriter.notifyMatchFailure(op, "a constant has a static shape");
    SmallVector<Value> values;
    for (auto [result, type] : llvm::zip(results, op->getResultTypes()))
      values.push_back(valueOf(result, type, op, rewriter));
    rewriter.replaceOp(op, values);
    return success();
  }

private:
  static Value valueOf(OpFoldResult result, Type type, Operation *op,
                       PatternRewriter &rewriter) {
    if (auto value = dyn_cast<Value>(result))
      return value;
    Operation *constant = op->getDialect()->materializeConstant(
        rewriter, cast<Attribute>(result), type, op->getLoc());
    assert(constant && "dialects whose ops fold to constants make them");
    return constant->getResult(0);
  }
};

struct CanonicalizePass : mlir::kf::impl::CanonicalizeBase<CanonicalizePass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet all(context);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(all);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      op.getCanonicalizationPatterns(all, context);
    all.add<Fold>(context);
    patterns = std::move(all);
    return success();
  }

  void runOnOperation() override {
    // The driver's own folding takes what ops say.
    GreedyRewriteConfig config;
    config.enableFolding(false)
        .setUseTopDownTraversal()
        .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Normal);
    // Without a fixed point it is as sound, and less canonical.
    (void)applyPatternsGreedily(getOperation(), patterns, config);
  }

private:
  FrozenRewritePatternSet patterns;
};

} // namespace
