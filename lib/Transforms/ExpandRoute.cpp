//===- ExpandRoute.cpp - kf.route to reductions ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An expert's rank is how many others of its row come before it. So places are
// found without a sort: who has rank j is in column j of what is chosen. Where
// the target has a kernel that does the same, the op stays.
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
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
    Value x = widened(op.getLogits());
    Value places = isAtPlace(ranksOf(choices(x))); // [T, k, E] of i1
    Value numbers = pick(places, alongRows(iota({top, experts}, 1)));
    Value weights = weightsOf(x, places);
    if (!op.getScales())
      return {numbers, weights};
    Value scales =
        pick(places, broadcast(widened(op.getScales()), {top, experts}));
    return {numbers, arith::MulFOp::create(b, loc, weights, scales)};
  }

private:
  /// By what experts are chosen, [T, E].
  Value choices(Value x) {
    if (!op.getBias())
      return x;
    Value sums = arith::AddFOp::create(
        b, loc, sigmoid(x), broadcast(widened(op.getBias()), {experts}));
    return op.getGroups() ? inKeptGroups(sums) : sums;
  }

  /// x [T, E], -inf in the groups that are not kept.
  Value inKeptGroups(Value x) {
    const auto count = static_cast<int64_t>(*op.getGroups());
    const int64_t size = experts / count;
    // The largest sum of two different elements of a group.
    auto pairs = [&](ArrayRef<int64_t> shape) -> Value {
      return keyOf(broadcast(split(x, shape), {count, size, size}));
    };
    Value sums = arith::AddFOp::create(b, loc, pairs({count, 1, size}),
                                       pairs({count, size, 1}));
    Value isSame =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                              alongRows(iota({count, size, size}, 1)),
                              alongRows(iota({count, size, size}, 2)));
    sums = arith::SelectOp::create(
        b, loc, isSame, filled(b.getF32FloatAttr(-inf), {count, size, size}),
        keyOf(sums));
    Value best = ReduceOp::create(b, loc, sums, ReduceKind::Max, {2, 3}, false);
    Value ranks = broadcast(split(ranksOf(best), {count, 1}), {count, size});
    Value isKept = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::slt, ranks,
        filled(b.getI32IntegerAttr(static_cast<int32_t>(*op.getKeptGroups())),
               {count, size}));
    Value kept =
        arith::SelectOp::create(b, loc, isKept, split(x, {count, size}),
                                filled(b.getF32FloatAttr(-inf), {count, size}));
    return tensor::CollapseShapeOp::create(
        b, loc, x.getType(), kept, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
  }

  /// Of the chosen experts, [T, k].
  Value weightsOf(Value x, Value places) {
    if (!op.getSigmoid() && !op.getNormalized())
      return pick(places, toPlaces(SoftmaxOp::create(b, loc, x)));
    Value chosen = pick(places, toPlaces(x));
    if (!op.getSigmoid())
      return SoftmaxOp::create(b, loc, chosen);
    Value weights = sigmoid(chosen);
    if (!op.getNormalized())
      return weights;
    Value total = ReduceOp::create(b, loc, weights, ReduceKind::Sum, {1}, true);
    total = arith::AddFOp::create(b, loc, total,
                                  filled(b.getF32FloatAttr(1e-20f), {1}));
    return arith::DivFOp::create(b, loc, weights, broadcast(total, {top}));
  }

  /// 1 / (1 + exp(-x)).
  Value sigmoid(Value x) {
    Value one = filled(b.getF32FloatAttr(1),
                       cast<RankedTensorType>(x.getType()).getDimSize(1));
    Value decay = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
    return arith::DivFOp::create(b, loc, one,
                                 arith::AddFOp::create(b, loc, one, decay));
  }

  /// How many columns of the row of x [T, C] come before each, [T, C] of i32.
  /// All is computed of [T, C, C], which no kernel has to be formed of before.
  Value ranksOf(Value x) {
    const int64_t count = cast<RankedTensorType>(x.getType()).getDimSize(1);
    Value others = keyOf(broadcast(split(x, {1, count}), {count, count}));
    Value own = keyOf(broadcast(split(x, {count, 1}), {count, count}));
    auto compare = [&](arith::CmpFPredicate predicate) -> Value {
      return arith::CmpFOp::create(b, loc, predicate, others, own);
    };
    Value isEarlier = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                            alongRows(iota({count, count}, 1)),
                                            alongRows(iota({count, count}, 0)));
    Value isBefore = arith::OrIOp::create(
        b, loc, compare(arith::CmpFPredicate::OGT),
        arith::AndIOp::create(b, loc, compare(arith::CmpFPredicate::OEQ),
                              isEarlier));
    return sum(arith::ExtUIOp::create(
        b, loc, typeOf({count, count}, b.getI32Type()), isBefore));
  }

  /// x, NaN being the least.
  Value keyOf(Value x) {
    Value isNan =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
    Value least =
        filled(b.getF32FloatAttr(-inf),
               cast<RankedTensorType>(x.getType()).getShape().drop_front());
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
  Value toPlaces(Value x) {
    return broadcast(split(x, {1, experts}), {top, experts});
  }

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

  /// x, of any floats, as f32.
  Value widened(Value x) {
    auto type = cast<RankedTensorType>(x.getType());
    if (type.getElementType().isF32())
      return x;
    return arith::ExtFOp::create(b, loc, type.clone(b.getF32Type()), x);
  }

  /// x [T, C] as [T, shape...], which has C elements.
  Value split(Value x, ArrayRef<int64_t> shape) {
    SmallVector<OpFoldResult> sizes = {tensor::getMixedSize(b, loc, x, 0)};
    ReassociationIndices inner;
    for (int64_t size : shape) {
      sizes.push_back(b.getIndexAttr(size));
      inner.push_back(static_cast<int64_t>(sizes.size()) - 1);
    }
    Type element = cast<RankedTensorType>(x.getType()).getElementType();
    return tensor::ExpandShapeOp::create(
        b, loc, typeOf(shape, element), x,
        ArrayRef<ReassociationIndices>{{0}, inner}, sizes);
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

/// The most experts of a row that a GPU's workgroup compares with one another:
/// as many as models have. Only 128 were measured, on CUDA; that reductions by
/// all workgroups take less time with more is a guess.
constexpr int64_t mostRoutedExperts = 512;

/// Whether the target has a kernel that computes `op` as it is: GPUs do.
bool hasKernel(RouteOp op) {
  auto module = op->getParentOfType<ModuleOp>();
  auto target =
      module ? module->getAttrOfType<TargetAttrInterface>(kTargetAttrName)
             : TargetAttrInterface();
  return target && target.getMachine().vectorLanes == 0 && !op.getGroups() &&
         cast<RankedTensorType>(op.getLogits().getType()).getDimSize(1) <=
             mostRoutedExperts;
}

/// route -> reductions, elementwise ops and a softmax, unless it has a kernel
struct ExpandRouteOp : OpRewritePattern<RouteOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RouteOp op,
                                PatternRewriter &rewriter) const override {
    if (hasKernel(op))
      return rewriter.notifyMatchFailure(op, "the target has a kernel for it");
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
