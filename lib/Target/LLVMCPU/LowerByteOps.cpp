//===- LowerByteOps.cpp - Instructions on bytes ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::kf {
#define GEN_PASS_DEF_LOWERCPUBYTEOPS
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

Value callIntrinsic(OpBuilder &b, Location loc, const Twine &name, Type result,
                    ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name),
                                       operands)
      .getResult(0);
}

/// dp4a -> vpdpbusd
struct LowerDp4a : OpRewritePattern<Dp4aOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(Dp4aOp op,
                                PatternRewriter &rewriter) const override {
    int64_t lanes = op.getSum().getType().getNumElements();
    if (lanes != 4 && lanes != 8 && lanes != 16)
      return op.emitOpError("kf-cpu-lower-byte-ops: needs 4, 8 or 16 lanes, "
                            "found ")
             << lanes;
    rewriter.replaceOp(
        op, callIntrinsic(rewriter, op.getLoc(),
                          "llvm.x86.avx512.vpdpbusd." + Twine(32 * lanes),
                          op.getType(), op.getOperands()));
    return success();
  }
};

/// look_up -> pshufb, whose table is the same for each 16 bytes
struct LowerLookUp : OpRewritePattern<LookUpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LookUpOp op,
                                PatternRewriter &rewriter) const override {
    VectorType type = op.getCodes().getType();
    int64_t bytes = type.getNumElements();
    if (bytes != 16 && bytes != 32 && bytes != 64)
      return op.emitOpError("kf-cpu-lower-byte-ops: needs 16, 32 or 64 codes, "
                            "found ")
             << bytes;
    StringRef name = bytes == 64   ? "llvm.x86.avx512.pshuf.b.512"
                     : bytes == 32 ? "llvm.x86.avx2.pshuf.b"
                                   : "llvm.x86.ssse3.pshuf.b.128";
    SmallVector<int8_t> entries;
    for (int64_t i = 0; i < bytes; i += 16)
      llvm::append_range(entries, op.getTable());
    Value table = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        DenseElementsAttr::get(type, ArrayRef<int8_t>(entries)));
    rewriter.replaceOp(op, callIntrinsic(rewriter, op.getLoc(), name, type,
                                         {table, op.getCodes()}));
    return success();
  }
};

struct LowerCpuByteOpsPass
    : mlir::kf::impl::LowerCpuByteOpsBase<LowerCpuByteOpsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerDp4a, LowerLookUp>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation().walk([&](Operation *op) {
      if (isa<Dp4aOp, LookUpOp>(op))
        signalPassFailure();
    });
  }
};

} // namespace
