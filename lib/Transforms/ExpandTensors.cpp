//===- ExpandTensors.cpp - Ops on batches to ops of kernels ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

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

/// Builds tensor ops at one place.
struct Builder {
  PatternRewriter &b;
  Location loc;

  /// `x` in `shape`, static but for a first dimension that stays; `groups` are
  /// the dimensions of the larger of both.
  Value reshape(Value x, ArrayRef<int64_t> shape,
                ArrayRef<ReassociationIndices> groups) {
    RankedTensorType from = typeOf(x);
    auto to = RankedTensorType::get(shape, from.getElementType(), sizeOf(x));
    if (to == from)
      return x;
    if (to.getRank() <= from.getRank())
      return tensor::CollapseShapeOp::create(b, loc, to, x, groups);
    SmallVector<OpFoldResult> sizes;
    for (int64_t extent : shape)
      sizes.push_back(
          ShapedType::isDynamic(extent)
              ? OpFoldResult(tensor::DimOp::create(b, loc, x, 0).getResult())
              : b.getIndexAttr(extent));
    return tensor::ExpandShapeOp::create(b, loc, to, x, groups, sizes);
  }

  /// `count` elements of the last dimension, from `offset` on.
  Value slice(Value x, int64_t offset, int64_t count, int64_t stride = 1) {
    RankedTensorType from = typeOf(x);
    SmallVector<OpFoldResult> offsets(from.getRank(), b.getIndexAttr(0)), sizes,
        strides(from.getRank(), b.getIndexAttr(1));
    for (int64_t dim = 0; dim < from.getRank(); ++dim)
      sizes.push_back(tensor::getMixedSize(b, loc, x, dim));
    offsets.back() = b.getIndexAttr(offset);
    sizes.back() = b.getIndexAttr(count);
    strides.back() = b.getIndexAttr(stride);
    SmallVector<int64_t> shape(from.getShape());
    shape.back() = count;
    return tensor::ExtractSliceOp::create(
        b, loc, RankedTensorType::get(shape, from.getElementType(), sizeOf(x)),
        x, offsets, sizes, strides);
  }

  Value concatColumns(ValueRange parts) {
    if (parts.size() == 1)
      return parts[0];
    RankedTensorType first = typeOf(parts[0]);
    SmallVector<int64_t> shape(first.getShape());
    shape.back() = 0;
    for (Value part : parts)
      shape.back() += typeOf(part).getShape().back();
    auto type = RankedTensorType::get(shape, first.getElementType(),
                                      first.getEncoding());
    return tensor::ConcatOp::create(b, loc, type, first.getRank() - 1, parts);
  }

  Value broadcast(Value x, RankedTensorType shape) {
    auto to = RankedTensorType::get(
        shape.getShape(), typeOf(x).getElementType(), shape.getEncoding());
    return b.createOrFold<BroadcastOp>(loc, to, x);
  }

  Value swapLast(Value x) {
    SmallVector<int64_t> order =
        llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank()));
    std::swap(order.end()[-1], order.end()[-2]);
    return TransposeOp::create(b, loc, x, order);
  }

  Value toF32(Value x) {
    if (typeOf(x).getElementType().isF32())
      return x;
    return arith::ExtFOp::create(b, loc, typeOf(x).clone(b.getF32Type()), x);
  }
  Value fromF32(Value x, Type element) {
    if (element.isF32())
      return x;
    return arith::TruncFOp::create(b, loc, typeOf(x).clone(element), x);
  }

  Value constant(RankedTensorType type, double value) {
    Attribute element =
        isa<FloatType>(type.getElementType())
            ? Attribute(b.getFloatAttr(type.getElementType(), value))
            : b.getIntegerAttr(type.getElementType(),
                               static_cast<int64_t>(value));
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, element));
  }

private:
  static Attribute sizeOf(Value x) { return typeOf(x).getEncoding(); }
};

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
    Builder build{rewriter, op.getLoc()};
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
          build.fromF32(build.toF32(op.getBias()), x.getElementType()),
          typeOf(product));
      product = arith::AddFOp::create(rewriter, op.getLoc(), product, bias);
    }
    rewriter.replaceOp(op, product);
    return success();
  }

  /// All batches are rows of one product.
  static Value multiplyRows(MatmulOp op, Builder &build) {
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

/// attention on tensors -> products, softmax and elementwise ops
struct ExpandAttention : OpRewritePattern<ScaledDotProductAttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScaledDotProductAttentionOp op,
                                PatternRewriter &rewriter) const override {
    Builder build{rewriter, op.getLoc()};
    Location loc = op.getLoc();
    Value q = build.toF32(op.getQ());
    int64_t heads = typeOf(q).getShape().end()[-3];
    Value k = build.toF32(shareHeads(op.getK(), heads, build));
    Value v = build.toF32(shareHeads(op.getV(), heads, build));
    Value scores = BatchMatmulOp::create(rewriter, loc, q, k);
    RankedTensorType type = typeOf(scores);
    auto scale = [&](Value x, double by) -> Value {
      return arith::MulFOp::create(rewriter, loc, x, build.constant(type, by));
    };
    scores = scale(scores, op.getScaleFactor());
    if (std::optional<APFloat> cap = op.getSoftcap()) {
      double limit = cap->convertToDouble();
      Value tanh =
          math::TanhOp::create(rewriter, loc, scale(scores, 1 / limit));
      scores = scale(tanh, limit);
    }
    scores = hide(op, scores, build);
    // Rows of nothing but -inf have zeros, and no NaN from their softmax.
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double lowest = std::numeric_limits<float>::lowest();
    Value finite = arith::MaximumFOp::create(rewriter, loc, scores,
                                             build.constant(type, lowest));
    Value isHidden =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OEQ, scores,
                              build.constant(type, -infinity));
    Value weights = arith::SelectOp::create(
        rewriter, loc, isHidden, build.constant(type, 0.0),
        SoftmaxOp::create(rewriter, loc, finite));
    Value result =
        BatchMatmulOp::create(rewriter, loc, weights, build.swapLast(v));
    rewriter.replaceOp(
        op, build.fromF32(result, typeOf(op.getQ()).getElementType()));
    return success();
  }

  /// Each group of keys or values for all heads that read it.
  static Value shareHeads(Value x, int64_t heads, Builder &build) {
    RankedTensorType type = typeOf(x);
    int64_t rank = type.getRank(), groups = type.getDimSize(rank - 3);
    if (groups == heads)
      return x;
    SmallVector<ReassociationIndices> dims;
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t first = dim > rank - 3 ? dim + 1 : dim;
      dims.push_back(dim == rank - 3 ? ReassociationIndices{dim, dim + 1}
                                     : ReassociationIndices{first});
    }
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin() + rank - 2, 1);
    Value apart = build.reshape(x, shape, dims);
    shape[rank - 2] = heads / groups;
    Value repeated = build.broadcast(
        apart, RankedTensorType::get(shape, type.getElementType()));
    SmallVector<int64_t> joined(type.getShape());
    joined[rank - 3] = heads;
    return build.reshape(repeated, joined, dims);
  }

  /// Scores of keys that a query does not attend to are -inf.
  static Value hide(ScaledDotProductAttentionOp op, Value scores,
                    Builder &build) {
    Location loc = op.getLoc();
    PatternRewriter &b = build.b;
    RankedTensorType type = typeOf(scores);
    auto keep = [&](Value isSeen) {
      Value hidden =
          build.constant(type, -std::numeric_limits<double>::infinity());
      scores = arith::SelectOp::create(b, loc, isSeen, scores, hidden);
    };
    if (Value mask = op.getMask()) {
      if (typeOf(mask).getElementType().isInteger(1))
        keep(build.broadcast(mask, type));
      else
        scores = arith::AddFOp::create(
            b, loc, scores, build.toF32(build.broadcast(mask, type)));
    }
    if (!op.getCausal())
      return scores;
    RankedTensorType numbers = type.clone(b.getI64Type());
    Value query = IotaOp::create(b, loc, numbers, type.getRank() - 2);
    Value key = IotaOp::create(b, loc, numbers, type.getRank() - 1);
    Value ahead = arith::SubIOp::create(b, loc, key, query);
    auto compare = [&](arith::CmpIPredicate predicate, int64_t limit) {
      keep(arith::CmpIOp::create(b, loc, predicate, ahead,
                                 build.constant(numbers, limit)));
    };
    int64_t offset = static_cast<int64_t>(op.getOffset());
    compare(arith::CmpIPredicate::sle, offset);
    if (std::optional<uint64_t> window = op.getWindow())
      compare(arith::CmpIPredicate::sgt,
              offset - static_cast<int64_t>(*window));
    return scores;
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
    Builder build{rewriter, op.getLoc()};
    Location loc = op.getLoc();
    Value x = build.toF32(op.getX());
    int64_t half = typeOf(op.getCos()).getShape().back();
    int64_t columns = typeOf(x).getShape().back();
    bool isHalf = op.getStyle() == RopeStyle::Half;
    Value a = isHalf ? build.slice(x, 0, half) : build.slice(x, 0, half, 2);
    Value c = isHalf ? build.slice(x, half, half) : build.slice(x, 1, half, 2);
    auto table = [&](Value of) {
      return build.toF32(build.broadcast(of, typeOf(a)));
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
      parts.push_back(build.slice(x, 2 * half, columns - 2 * half));
    Value result = build.concatColumns(parts);
    rewriter.replaceOp(
        op, build.fromF32(result, typeOf(op.getX()).getElementType()));
    return success();
  }

  /// Elements of both in turn.
  static Value interleave(Value first, Value second, Builder &build) {
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
    patterns.add<ExpandMatmul, ExpandAttention, ExpandRotary, ExpandConcat>(
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
