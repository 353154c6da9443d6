//===- ExpandRoute.cpp - kf.route to reductions ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An expert's rank is how many others of its row come before it. So places are
// found without a sort: who has rank j is in column j of what is chosen.
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

namespace mlir::kf {
#define GEN_PASS_DEF_EXPANDROUTE
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Writes the ops for one kf.route. T rows, E experts, of which k are chosen.
class RouteBuilder {
public:
  RouteBuilder(RouteOp op, PatternRewriter &b)
      : op(op), b(b), loc(op.getLoc()),
        rows(cast<RankedTensorType>(op.getLogits().getType())),
        experts(rows.getDimSize(1)), top(static_cast<int64_t>(op.getTop())) {}

  SmallVector<Value> build() {
    Value x = op.getLogits();
    if (!rows.getElementType().isF32())
      x = arith::ExtFOp::create(b, loc, rows.clone(b.getF32Type()), x);
    Value places = isAtPlace(ranksOf(x)); // [T, k, E] of i1
    Value numbers = pick(places, alongRows(iota({top, experts}, 1)));
    Value weights;
    if (op.getNormalized())
      weights = SoftmaxOp::create(b, loc, pick(places, toPlaces(x)));
    else
      weights = pick(places, toPlaces(SoftmaxOp::create(b, loc, x)));
    if (!op.getScales())
      return {numbers, weights};
    Value scales = op.getScales(); // [E]
    auto type = cast<RankedTensorType>(scales.getType());
    if (!type.getElementType().isF32())
      scales =
          arith::ExtFOp::create(b, loc, type.clone(b.getF32Type()), scales);
    scales = pick(places, broadcast(scales, {top, experts}));
    return {numbers, arith::MulFOp::create(b, loc, weights, scales)};
  }

private:
  /// How many columns of the row come before each, [T, E] of i32. All is
  /// computed of [T, E, E], which no kernel has to be formed of before.
  Value ranksOf(Value x) {
    Value others = keyOf(broadcast(insert(x, 1), {experts, experts}));
    Value own = keyOf(broadcast(insert(x, 2), {experts, experts}));
    auto compare = [&](arith::CmpFPredicate predicate) -> Value {
      return arith::CmpFOp::create(b, loc, predicate, others, own);
    };
    Value isEarlier =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                              alongRows(iota({experts, experts}, 1)),
                              alongRows(iota({experts, experts}, 0)));
    Value isBefore = arith::OrIOp::create(
        b, loc, compare(arith::CmpFPredicate::OGT),
        arith::AndIOp::create(b, loc, compare(arith::CmpFPredicate::OEQ),
                              isEarlier));
    return sum(arith::ExtUIOp::create(
        b, loc, typeOf({experts, experts}, b.getI32Type()), isBefore));
  }

  /// x [T, E, E], NaN being the least.
  Value keyOf(Value x) {
    Value isNan =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
    Value least = filled(b.getF32FloatAttr(-inf), {experts, experts});
    return arith::SelectOp::create(b, loc, isNan, least, x);
  }

  /// Whether column i has rank j, [T, k, E] of i1.
  Value isAtPlace(Value ranks) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                 toPlaces(ranks),
                                 alongRows(iota({top, experts}, 0)));
  }

  /// The one element of each place's row of `x` [T, k, E].
  Value pick(Value places, Value x) {
    Type element = cast<RankedTensorType>(x.getType()).getElementType();
    Value zero =
        filled(cast<TypedAttr>(b.getZeroAttr(element)), {top, experts});
    return sum(arith::SelectOp::create(b, loc, places, x, zero));
  }

  /// [T, E] for each of k places.
  Value toPlaces(Value x) { return broadcast(insert(x, 1), {top, experts}); }

  //===--- Tensors --------------------------------------------------------===//

  /// [T, shape...].
  RankedTensorType typeOf(ArrayRef<int64_t> shape, Type element) {
    return getRowsOf(rows, shape, element);
  }

  Value sum(Value x) {
    return ReduceOp::create(
        b, loc, x, ReduceKindAttr::get(b.getContext(), ReduceKind::Sum),
        b.getDenseI64ArrayAttr(2), /*keep_dims=*/UnitAttr());
  }

  /// x [T, E] with a dimension of 1 in front of or behind its columns.
  Value insert(Value x, int64_t dim) {
    SmallVector<int64_t> shape = {1, experts};
    SmallVector<OpFoldResult> sizes = {tensor::getMixedSize(b, loc, x, 0),
                                       b.getIndexAttr(1),
                                       b.getIndexAttr(experts)};
    if (dim == 2) {
      std::swap(shape[0], shape[1]);
      std::swap(sizes[1], sizes[2]);
    }
    Type element = cast<RankedTensorType>(x.getType()).getElementType();
    return tensor::ExpandShapeOp::create(
        b, loc, typeOf(shape, element), x,
        ArrayRef<ReassociationIndices>{{0}, {1, 2}}, sizes);
  }

  /// x, whose rows are 1 or T, or which has none, as [T, shape...].
  Value broadcast(Value x, ArrayRef<int64_t> shape) {
    Type element = cast<RankedTensorType>(x.getType()).getElementType();
    return b.createOrFold<BroadcastOp>(loc, typeOf(shape, element), x);
  }

  /// A static tensor for each row.
  Value alongRows(Value x) {
    return broadcast(x, cast<RankedTensorType>(x.getType()).getShape());
  }

  Value iota(ArrayRef<int64_t> shape, int64_t dim) {
    return IotaOp::create(b, loc, RankedTensorType::get(shape, b.getI32Type()),
                          dim);
  }

  /// [T, shape...] of one element.
  Value filled(TypedAttr element, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get({1}, element.getType());
    Value one = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, Attribute(element)));
    return broadcast(one, shape);
  }

  static constexpr float inf = std::numeric_limits<float>::infinity();

  RouteOp op;
  PatternRewriter &b;
  Location loc;
  RankedTensorType rows; // of logits
  int64_t experts, top;
};

/// route -> reductions, elementwise ops and a softmax
struct ExpandRouteOp : OpRewritePattern<RouteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RouteOp op,
                                PatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, RouteBuilder(op, rewriter).build());
    return success();
  }
};

struct ExpandRoutePass : mlir::kf::impl::ExpandRouteBase<ExpandRoutePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandRouteOp>(&getContext());
    // kf-canonicalize folds, which asks whether there are such constants.
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns),
                                  GreedyRewriteConfig().enableFolding(false))))
      signalPassFailure();
  }
};

} // namespace
