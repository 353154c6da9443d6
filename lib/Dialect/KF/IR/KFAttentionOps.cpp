//===- KFAttentionOps.cpp - Rotary embedding, attention, cache ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "runtime/model/ConfigLimits.h"

#include "mlir/IR/PatternMatch.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

/// [T, heads, D] with the last two dimensions static.
static bool isHeads(RankedTensorType type) {
  return type.getRank() == 3 && isFloatTensor(type) && !type.isDynamicDim(1) &&
         !type.isDynamicDim(2);
}

LogicalResult RopeOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!isHeads(x))
    return emitOpError("C1: x must be [T, heads, D] of float elements, the "
                       "last two dimensions static, found ")
           << x;
  if (!isPerRow(getPositions(), x))
    return emitOpError("C2: positions must be i32, one for each row of x, "
                       "found ")
           << getPositions().getType();
  int64_t rotary = getRotaryDim();
  int64_t most = std::min(x.getDimSize(2), ::kf::kMaxHeadDim);
  if (rotary <= 0 || rotary % 2 != 0 || rotary > most)
    return emitOpError("C3: rotary_dim must be even, positive and at most ")
           << most << ", found " << rotary;
  if (!isFiniteAndNotNegative(getTheta()) || getTheta().isZero())
    return emitOpError("C4: theta must be positive and finite");
  if (getFactors() && !isFloatOfShape(getFactors().getType(), {rotary / 2}))
    return emitOpError("C6: factors must be [")
           << rotary / 2 << "] of a float type, found "
           << getFactors().getType();
  if (std::optional<APFloat> magnitude = getMagnitude())
    if (auto value = static_cast<float>(magnitude->convertToDouble());
        !std::isfinite(value) || value <= 0)
      return emitOpError("C7: magnitude must be positive and finite as f32");
  return success();
}

SmallVector<utils::IteratorType> RopeOp::getLoopTypes() {
  return {parallel(), parallel(), reduction()};
}

SmallVector<AffineMap> RopeOp::getLoopMaps() {
  MLIRContext *c = getContext();
  SmallVector<AffineMap> maps = {loopMap(c, 3, {0, 1, 2}), loopMap(c, 3, {0})};
  if (getFactors())
    maps.push_back(loopMap(c, 3, {-1}));
  maps.push_back(loopMap(c, 3, {0, 1, 2}));
  return maps;
}

SmallVector<float> RopeOp::getFrequencies() {
  int64_t half = getRotaryDim() / 2;
  double theta = getTheta().convertToDouble();
  RopeScalingAttr scaling = getScalingAttr();
  SmallVector<float> frequencies;
  for (int64_t i = 0; i < half; ++i) {
    float exponent = static_cast<float>(2 * i) / static_cast<float>(2 * half);
    float frequency =
        1.0f /
        static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    if (scaling && scaling.getKind() == RopeScalingKind::Linear)
      frequency /= static_cast<float>(scaling.getFactor().convertToDouble());
    if (scaling && scaling.getKind() == RopeScalingKind::Llama3) {
      double context = static_cast<double>(scaling.getOriginalContext());
      double low = scaling.getLowFreqFactor().convertToDouble();
      double high = scaling.getHighFreqFactor().convertToDouble();
      double factor = scaling.getFactor().convertToDouble();
      double wavelength = 2 * std::numbers::pi / frequency;
      if (wavelength > context / low) {
        frequency = static_cast<float>(frequency / factor);
      } else if (wavelength > context / high) {
        double smooth = (context / wavelength - low) / (high - low);
        frequency = static_cast<float>((1 - smooth) * frequency / factor +
                                       smooth * frequency);
      }
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}

namespace {
/// rope scaling(linear, 1) -> rope
struct DropUnitScaling : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    RopeScalingAttr scaling = op.getScalingAttr();
    if (!scaling || scaling.getKind() != RopeScalingKind::Linear ||
        !scaling.getFactor().isExactlyValue(1.0))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.removeScalingAttr(); });
    return success();
  }
};
} // namespace

void RopeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<DropUnitScaling>(context);
}

//===----------------------------------------------------------------------===//
// attention, kv_append
//===----------------------------------------------------------------------===//

/// Whether `table` is [S, P] of i32, P static.
static bool isPageTable(Value table) {
  RankedTensorType type = tensorType(table);
  return type.getRank() == 2 && !type.isDynamicDim(1) &&
         type.getElementType().isInteger(32);
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getQ().getType());
  return success();
}

/// C1 to C9 of the ops on a cache's keys, but for what they result in.
static LogicalResult verifyCacheAttention(CacheAttentionInterface op) {
  RankedTensorType q = tensorType(op.getQ());
  KVCacheType cache = op.getCache().getType();
  auto fail = [&] { return op->emitOpError(); };
  if (!isHeads(q))
    return fail() << "C1: q must be [T, heads, D] of float elements, the last "
                     "two dimensions static, found "
                  << q;
  if (q.getDimSize(2) != cache.getHeadDim())
    return fail() << "C2: head dimension of q (" << q.getDimSize(2)
                  << ") differs from the cache's (" << cache.getHeadDim()
                  << ")";
  if (!op.getKvHead() && q.getDimSize(1) % cache.getKvHeads() != 0)
    return fail() << "C3: heads of q (" << q.getDimSize(1)
                  << ") must be a multiple of the cache's kv_heads ("
                  << cache.getKvHeads() << ")";
  if (!isPerRow(op.getPositions(), q))
    return fail() << "C4: positions must be i32, one for each row of q, found "
                  << op.getPositions().getType();
  int64_t layer = op.getLayer();
  if (layer < 0 || layer >= cache.getLayers())
    return fail() << "C5: layer " << layer << " is outside the cache's "
                  << cache.getLayers();
  if (op.getWindow() && static_cast<int64_t>(*op.getWindow()) <= 0)
    return fail() << "C6: window must be positive";
  if (op.getChunked() && !op.getWindow())
    return fail() << "C6: chunked needs window";
  if (std::optional<APFloat> cap = op.getSoftcap();
      cap && (!cap->isFinite() || cap->isNegative() || cap->isZero()))
    return fail() << "C6: softcap must be positive and finite";
  if (!isPageTable(op.getPageTable()))
    return fail() << "C9: page_table must be [S, P] of i32, P static, found "
                  << op.getPageTable().getType();
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyCacheAttention(*this)))
    return failure();
  const int64_t heads = tensorType(getQ()).getDimSize(1);
  if (getSinks() && !isFloatOfShape(getSinks().getType(), {heads}))
    return emitOpError("C10: sinks must be [")
           << heads << "] of a float type, found " << getSinks().getType();
  return success();
}

SmallVector<utils::IteratorType> AttentionOp::getLoopTypes() {
  return {parallel(), parallel()};
}

SmallVector<AffineMap> AttentionOp::getLoopMaps() {
  MLIRContext *c = getContext();
  SmallVector<AffineMap> maps = {loopMap(c, 2, {0, 1, -1}), loopMap(c, 2, {}),
                                 loopMap(c, 2, {0}), loopMap(c, 2, {0}),
                                 loopMap(c, 2, {-1, -1})};
  if (getSinks())
    maps.push_back(loopMap(c, 2, {1}));
  if (getKvHead())
    maps.push_back(loopMap(c, 2, {}));
  maps.push_back(loopMap(c, 2, {0, 1, -1}));
  return maps;
}

LogicalResult AttentionPartialOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  auto q = cast<RankedTensorType>(adaptor.getQ().getType());
  if (!isHeads(q))
    return cannotInfer<AttentionPartialOp>(
        loc,
        "C1: q must be [T, heads, D] of float elements, the last two "
        "dimensions static",
        q);
  constexpr int64_t most = 65536;
  int64_t splits = adaptor.getSplits();
  if (splits < 1 || splits > most)
    return emitOptionalError(loc, "'", getOperationName(),
                             "' op C10: splits must be in [1, ", most,
                             "], found ", splits);
  if (!adaptor.getTile().empty())
    splits = 1;
  int64_t heads = q.getDimSize(1), dim = q.getDimSize(2);
  Type f32 = Float32Type::get(context);
  types.append(2, getRowsOf(q, {heads, splits}, f32));
  types.push_back(getRowsOf(q, {heads, splits, dim}, f32));
  return success();
}

LogicalResult AttentionPartialOp::verify() {
  if (!getTile().empty() && getTile().size() != 2)
    return emitOpError("C10: tile must name a KV head and a split, found ")
           << getTile().size() << " entries";
  return verifyCacheAttention(*this);
}

SmallVector<utils::IteratorType> AttentionPartialOp::getLoopTypes() {
  return {parallel(), parallel(), parallel()};
}

SmallVector<AffineMap> AttentionPartialOp::getLoopMaps() {
  MLIRContext *c = getContext();
  SmallVector<AffineMap> maps = {loopMap(c, 3, {0, 1, -1}), loopMap(c, 3, {}),
                                 loopMap(c, 3, {0}), loopMap(c, 3, {0}),
                                 loopMap(c, 3, {-1, -1})};
  maps.append(getTile().size(), loopMap(c, 3, {}));
  maps.append(2, loopMap(c, 3, {0, 1, 2}));
  maps.push_back(loopMap(c, 3, {0, 1, 2, -1}));
  return maps;
}

LogicalResult AttentionCombineOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  auto values = cast<RankedTensorType>(adaptor.getValues().getType());
  if (values.getRank() != 4)
    return cannotInfer<AttentionCombineOp>(
        loc, "C1: values must be [T, heads, splits, D] of f32", values);
  types.push_back(getRowsOf(values,
                            {values.getDimSize(1), values.getDimSize(3)},
                            Float32Type::get(context)));
  return success();
}

LogicalResult AttentionCombineOp::verify() {
  RankedTensorType values = tensorType(getValues());
  if (!isRowsTensor(values) || !values.getElementType().isF32())
    return emitOpError("C1: values must be [T, heads, splits, D] of f32, all "
                       "but T static, found ")
           << values;
  RankedTensorType wanted =
      getRowsOf(values, values.getShape().slice(1, 2), values.getElementType());
  if (getMaxima().getType() != wanted)
    return emitOpError("C2: maxima and totals must be ")
           << wanted << ", found " << getMaxima().getType();
  if (getSinks() &&
      !isFloatOfShape(getSinks().getType(), {values.getDimSize(1)}))
    return emitOpError("C4: sinks must be [")
           << values.getDimSize(1) << "] of a float type, found "
           << getSinks().getType();
  return success();
}

SmallVector<utils::IteratorType> AttentionCombineOp::getLoopTypes() {
  return {parallel(), parallel()};
}

SmallVector<AffineMap> AttentionCombineOp::getLoopMaps() {
  MLIRContext *c = getContext();
  SmallVector<AffineMap> maps = {loopMap(c, 2, {0, 1, -1}),
                                 loopMap(c, 2, {0, 1, -1}),
                                 loopMap(c, 2, {0, 1, -1, -1})};
  if (getSinks())
    maps.push_back(loopMap(c, 2, {1}));
  maps.push_back(loopMap(c, 2, {0, 1, -1}));
  return maps;
}

LogicalResult KVAppendOp::verify() {
  RankedTensorType k = tensorType(getK());
  KVCacheType cache = getCache().getType();
  const int64_t heads = getKvHead() ? 1 : cache.getKvHeads();
  if (!isHeads(k) || k.getDimSize(1) != heads ||
      k.getDimSize(2) != cache.getHeadDim())
    return emitOpError("C1: k and v must be [T, ")
           << heads << ", " << cache.getHeadDim()
           << "] of float elements, found " << k;
  if (!isPerRow(getPositions(), k))
    return emitOpError("C2: positions must be i32, one for each row of k, "
                       "found ")
           << getPositions().getType();
  int64_t layer = getLayer();
  if (layer < 0 || layer >= cache.getLayers())
    return emitOpError("C3: layer ")
           << layer << " is outside the cache's " << cache.getLayers();
  if (!isPageTable(getPageTable()))
    return emitOpError("C5: page_table must be [S, P] of i32, P static, found ")
           << getPageTable().getType();
  return success();
}

RowBytes KVAppendOp::getCacheBytes() {
  return {getK(), getPositionBytes(getCache().getType())};
}

SmallVector<utils::IteratorType> KVAppendOp::getLoopTypes() {
  return {parallel()};
}

SmallVector<AffineMap> KVAppendOp::getLoopMaps() {
  MLIRContext *c = getContext();
  SmallVector<AffineMap> maps = {
      loopMap(c, 1, {}),          loopMap(c, 1, {0, -1, -1}),
      loopMap(c, 1, {0, -1, -1}), loopMap(c, 1, {0}),
      loopMap(c, 1, {0}),         loopMap(c, 1, {-1, -1})};
  if (getKvHead())
    maps.push_back(loopMap(c, 1, {}));
  return maps;
}

bool mlir::kf::isAppendFor(KVAppendOp append,
                           CacheAttentionInterface attention) {
  return append.getCache() == attention.getCache() &&
         append.getLayer() == attention.getLayer() &&
         append.getPositions() == attention.getPositions() &&
         append.getSequences() == attention.getSequences() &&
         append.getPageTable() == attention.getPageTable();
}
