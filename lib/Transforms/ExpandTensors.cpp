//===- ExpandTensors.cpp - Ops on batches to ops of kernels ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/Expansions.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDTENSORS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

/// matmul of batches -> matmul of matrices, or batch_matmul
struct ExpandMatmul : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (op.isOfMatrices())
      return failure();
    TensorBuilder build(rewriter, op.getLoc());
    RankedTensorType x = typeOf(op.getX()), w = typeOf(op.getW());
    bool isShared = op.getGlu() || w.getRank() == 2;
    if (isShared && x.hasStaticShape()) {
      rewriter.replaceOp(op, multiplyRows(op, build));
      return success();
    }
    if (op.getGlu() ||
        llvm::any_of(x.getShape().drop_front(), ShapedType::isDynamic))
      return failure(); // checkLeft() says so
    Value weight = op.getW();
    if (isa<QuantType>(w.getElementType()))
      weight = DequantizeOp::create(rewriter, op.getLoc(), weight);
    SmallVector<int64_t> shape(x.getShape().drop_back(2));
    llvm::append_range(shape, w.getShape().take_back(2));
    weight = build.broadcast(
        weight, RankedTensorType::get(shape, x.getElementType(), getSize(x)));
    Value product =
        BatchMatmulOp::create(rewriter, op.getLoc(), op.getX(), weight);
    if (op.getBias()) {
      Value bias = build.broadcast(
          build.narrow(build.widen(op.getBias()), x.getElementType()),
          typeOf(product));
      product = arith::AddFOp::create(rewriter, op.getLoc(), product, bias);
    }
    rewriter.replaceOp(op, product);
    return success();
  }

  /// All batches are rows of one product.
  static Value multiplyRows(MatmulOp op, TensorBuilder &build) {
    RankedTensorType x = typeOf(op.getX());
    auto result = cast<RankedTensorType>(op.getType());
    SmallVector<ReassociationIndices> groups(2);
    for (int64_t dim = 0; dim + 1 < x.getRank(); ++dim)
      groups[0].push_back(dim);
    groups[1] = {x.getRank() - 1};
    int64_t rows = x.getNumElements() / x.getShape().back();
    Value flat = build.reshape(op.getX(), {rows, x.getShape().back()}, groups);
    Value product = MatmulOp::create(build.b, op.getLoc(), flat, op.getW(),
                                     op.getBias(), op.getGluAttr());
    return build.reshape(product, result.getShape(), groups);
  }
};

//===----------------------------------------------------------------------===//
// scaled_dot_product_attention
//===----------------------------------------------------------------------===//

/// What the target's kernel of `op` multiplies; null: it has none.
Type getKernelType(BatchAttentionInterface op) {
  auto module = op->getParentOfType<ModuleOp>();
  auto target =
      module ? module->getAttrOfType<TargetAttrInterface>(kTargetAttrName)
             : TargetAttrInterface();
  if (!target)
    return Type();
  RankedTensorType q = typeOf(op.getQ());
  const int64_t rows = q.getNumElements() / q.getShape().back();
  const Type type = target.getRowTypes(op, rows).front();
  return type.isF32() ? Type() : type;
}

/// What a kernel of attention reads: `x`, rounded to `type`.
Value readyForKernel(Value x, Type type, TensorBuilder &build) {
  Type element = typeOf(x).getElementType();
  return isa<FloatType>(element) && element != type
             ? build.narrow(build.widen(x), type)
             : x;
}

/// Gives `op`, which has a kernel that multiplies `type`, what that reads.
/// Fails where there is nothing to do.
LogicalResult prepareForKernel(BatchAttentionInterface op, Type type,
                               PatternRewriter &rewriter) {
  TensorBuilder build(rewriter, op.getLoc());
  SmallVector<Value> operands;
  bool changes = false;
  for (OpOperand &operand : op->getOpOperands()) {
    // Numbers of rows are no factors.
    const bool isFactor =
        typeOf(operand.get()).getRank() == typeOf(op.getQ()).getRank() &&
        operand.get() != op.getMask();
    Type own = isFactor ? type : typeOf(operand.get()).getElementType();
    operands.push_back(readyForKernel(operand.get(), own, build));
    changes |= operands.back() != operand.get();
  }
  if (!changes)
    return rewriter.notifyMatchFailure(op, "a kernel reads it as it is");
  rewriter.modifyOpInPlace(op, [&] { op->setOperands(operands); });
  return success();
}

/// attention on tensors -> one on what a kernel of the target reads, or
/// products, softmax and elementwise ops
struct ExpandAttention : OpRewritePattern<ScaledDotProductAttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScaledDotProductAttentionOp op,
                                PatternRewriter &rewriter) const override {
    TensorBuilder build(rewriter, op.getLoc());
    const Type type = getKernelType(op);
    const Type element = typeOf(op.getQ()).getElementType();
    if (!type) {
      rewriter.replaceOp(op, expandAttention(op, build));
      return success();
    }
    if (type == element)
      return prepareForKernel(op, type, rewriter);
    auto rounded = [&](Value x) { return readyForKernel(x, type, build); };
    Value result = build.make<ScaledDotProductAttentionOp>(
        rounded(op.getQ()), rounded(op.getK()), rounded(op.getV()),
        op.getMask(), op.getScaleAttr(), op.getSoftcapAttr(),
        op.getCausalAttr(), op.getOffsetAttr(), op.getWindowAttr());
    rewriter.replaceOp(op, build.narrow(build.widen(result), element));
    return success();
  }
};

/// gradients of attention -> those of what a kernel of the target reads, or
/// products, a softmax and elementwise ops
template <typename OpTy,
          SmallVector<Value> (*expand)(OpTy op, TensorBuilder &build)>
struct ExpandGradient : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    TensorBuilder build(rewriter, op.getLoc());
    if (const Type type = getKernelType(op))
      return prepareForKernel(op, type, rewriter);
    rewriter.replaceOp(op, expand(op, build));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// rotary_embedding
//===----------------------------------------------------------------------===//

/// rotary_embedding -> slices, elementwise ops and concat
struct ExpandRotary : OpRewritePattern<RotaryEmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RotaryEmbeddingOp op,
                                PatternRewriter &rewriter) const override {
    TensorBuilder build(rewriter, op.getLoc());
    Location loc = op.getLoc();
    Value x = build.widen(op.getX());
    int64_t half = typeOf(op.getCos()).getShape().back();
    int64_t columns = typeOf(x).getShape().back();
    bool isHalf = op.getStyle() == RopeStyle::Half;
    Value a = isHalf ? build.sliceColumns(x, 0, half)
                     : build.sliceColumns(x, 0, half, 2);
    Value c = isHalf ? build.sliceColumns(x, half, half)
                     : build.sliceColumns(x, 1, half, 2);
    auto table = [&](Value of) {
      return build.widen(build.broadcast(of, typeOf(a)));
    };
    Value cos = table(op.getCos()), sin = table(op.getSin());
    auto mul = [&](Value lhs, Value rhs) -> Value {
      return arith::MulFOp::create(rewriter, loc, lhs, rhs);
    };
    Value first =
        arith::SubFOp::create(rewriter, loc, mul(a, cos), mul(c, sin));
    Value second =
        arith::AddFOp::create(rewriter, loc, mul(c, cos), mul(a, sin));
    SmallVector<Value> parts = {first, second};
    if (!isHalf)
      parts = {interleave(first, second, build)};
    if (2 * half < columns)
      parts.push_back(build.sliceColumns(x, 2 * half, columns - 2 * half));
    Value result = build.concatColumns(parts);
    rewriter.replaceOp(
        op, build.narrow(result, typeOf(op.getX()).getElementType()));
    return success();
  }

  /// Elements of both in turn.
  static Value interleave(Value first, Value second, TensorBuilder &build) {
    RankedTensorType type = typeOf(first);
    SmallVector<ReassociationIndices> groups;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      groups.push_back({dim});
    groups.back().push_back(type.getRank());
    SmallVector<int64_t> apart(type.getShape()), joined(type.getShape());
    apart.push_back(1);
    joined.back() *= 2;
    Value pairs = build.concatColumns({build.reshape(first, apart, groups),
                                       build.reshape(second, apart, groups)});
    return build.reshape(pairs, joined, groups);
  }
};

//===----------------------------------------------------------------------===//
// cross_entropy, dropout, matmul_dgrad
//===----------------------------------------------------------------------===//

/// cross_entropy -> reductions and elementwise ops
struct ExpandCrossEntropy : OpRewritePattern<CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CrossEntropyOp op,
                                PatternRewriter &rewriter) const override {
    TensorBuilder build(rewriter, op.getLoc());
    rewriter.replaceOp(op, expandCrossEntropy(op, build));
    return success();
  }
};

/// dropout -> elementwise ops
struct ExpandDropout : OpRewritePattern<DropoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DropoutOp op,
                                PatternRewriter &rewriter) const override {
    TensorBuilder build(rewriter, op.getLoc());
    rewriter.replaceOp(op, expandDropout(op, build));
    return success();
  }
};

/// matmul_dgrad -> matmul with the transposed weight
struct ExpandDgrad : OpRewritePattern<MatmulDgradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulDgradOp op,
                                PatternRewriter &rewriter) const override {
    TensorBuilder build(rewriter, op.getLoc());
    Value w = op.getW();
    if (RankedTensorType type = typeOf(w);
        isa<QuantType>(type.getElementType())) {
      // Widened row by row: the rows of a table.
      auto ids =
          RankedTensorType::get({type.getDimSize(0)}, rewriter.getI32Type());
      w = build.make<EmbeddingOp>(build.make<IotaOp>(ids, int64_t(0)), w);
    }
    rewriter.replaceOp(op, build.make<MatmulOp>(op.getDy(), build.swapLast(w),
                                                Value(), ActivationKindAttr()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// concat
//===----------------------------------------------------------------------===//

/// Tensors that one kernel joins. Its code grows with them, and devices differ
/// in how many buffers a kernel may have.
constexpr size_t maxParts = 16;

/// concat of many -> concat of copied concats
struct ExpandConcat : OpRewritePattern<tensor::ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ConcatOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    const auto dim = static_cast<int64_t>(op.getDim());
    if (op.getInputs().size() <= maxParts)
      return rewriter.notifyMatchFailure(op, "one kernel joins its operands");
    if (isa<QuantType>(type.getElementType()) ||
        llvm::any_of(op.getInputs(), [&](Value part) {
          return typeOf(part).isDynamicDim(dim);
        }))
      return rewriter.notifyMatchFailure(op, "later passes name what is wrong");
    SmallVector<Value> joined;
    for (ValueRange rest = op.getInputs(); !rest.empty();) {
      const size_t count = std::min(maxParts, rest.size());
      joined.push_back(
          join(rest.take_front(count), type, dim, op.getLoc(), rewriter));
      rest = rest.drop_front(count);
    }
    rewriter.replaceOpWithNewOp<tensor::ConcatOp>(op, type, dim, joined);
    return success();
  }

private:
  /// In memory.
  static Value join(ValueRange parts, RankedTensorType type, int64_t dim,
                    Location loc, PatternRewriter &rewriter) {
    if (parts.size() == 1)
      return parts[0];
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 0;
    for (Value part : parts)
      shape[dim] += typeOf(part).getDimSize(dim);
    auto of =
        RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
    return CopyOp::create(
        rewriter, loc, tensor::ConcatOp::create(rewriter, loc, of, dim, parts));
  }
};

struct ExpandTensorsPass
    : mlir::kf::impl::ExpandTensorsBase<ExpandTensorsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandMatmul, ExpandAttention,
                 ExpandGradient<AttentionQgradOp, expandQgrad>,
                 ExpandGradient<AttentionKvgradOp, expandKvgrad>, ExpandRotary,
                 ExpandCrossEntropy, ExpandDropout, ExpandDgrad, ExpandConcat>(
        &getContext());
    // kf-canonicalize folds, which asks whether there are such constants.
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns),
                                  GreedyRewriteConfig().enableFolding(false))))
      return signalPassFailure();
    if (failed(checkLeft()))
      signalPassFailure();
  }

private:
  /// Names what has no expansion.
  LogicalResult checkLeft() {
    for (Block &block : getOperation().getBody())
      for (auto matmul : block.getOps<MatmulOp>())
        if (!matmul.isOfMatrices())
          return matmul.emitOpError("kf-expand-tensors: batches with a `?` "
                                    "behind the first dimension, or with glu, "
                                    "have no kernel; use static ones");
    return success();
  }
};

} // namespace
