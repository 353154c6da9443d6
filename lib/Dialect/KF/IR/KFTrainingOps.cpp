//===- KFTrainingOps.cpp - Losses, and what gradients are made of ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::kf;

/// Rows of floats, whose length is static.
static bool isFloatMatrix(RankedTensorType type) {
  return type.getRank() == 2 && isFloatTensor(type) && !type.isDynamicDim(1);
}

//===----------------------------------------------------------------------===//
// cross_entropy
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> loc,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto logits = cast<RankedTensorType>(adaptor.getLogits().getType());
  if (logits.getRank() != 2)
    return cannotInfer<CrossEntropyOp>(loc, "C1: logits must have rank 2",
                                       logits);
  types.push_back(getRowsOf(logits, {}, Float32Type::get(context)));
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  RankedTensorType logits = tensorType(getLogits());
  if (!isFloatMatrix(logits) || logits.getDimSize(1) > maxSize)
    return emitOpError("C1: logits must be [T, V] of f32, f16 or bf16, V "
                       "static and below 2^31, found ")
           << logits;
  if (!isPerRow(getLabels(), logits))
    return emitOpError("C2: labels must be i32, one a row of ")
           << logits << ", found " << getLabels().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// dropout, philox
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult DropoutOp::verify() {
  RankedTensorType x = tensorType(getX()), draw = tensorType(getDraw());
  if (!isFloatMatrix(x) || !x.hasStaticShape() || x.getDimSize(0) > maxSize ||
      x.getDimSize(1) > maxSize)
    return emitOpError("C1: x must be a static [T, D] of f32, f16 or bf16, "
                       "both below 2^31, found ")
           << x;
  if (draw.getShape() != ArrayRef<int64_t>{4})
    return emitOpError("C2: draw must be a tensor<4xi32>, found ") << draw;
  // The comparison is false for NaN.
  const double p = getP().convertToDouble();
  if (!(p >= 0 && p < 1))
    return emitOpError("C3: p must be from 0 to below 1, found ") << p;
  return success();
}

SmallVector<utils::IteratorType> PhiloxOp::getLoopTypes() {
  return SmallVector<utils::IteratorType>(tensorType(getResult()).getRank(),
                                          parallel());
}

SmallVector<AffineMap> PhiloxOp::getLoopMaps() {
  return SmallVector<AffineMap>(7, rowMap(tensorType(getResult())));
}

//===----------------------------------------------------------------------===//
// scatter_add
//===----------------------------------------------------------------------===//

LogicalResult ScatterAddOp::verify() {
  RankedTensorType ids = tensorType(getIds()), rows = tensorType(getRows());
  auto result = cast<RankedTensorType>(getType());
  if (ids.getRank() != 1 || !ids.getElementType().isInteger(32))
    return emitOpError("C1: ids must be a rank 1 tensor of i32, found ") << ids;
  // Tiles of it may be of any number of rows and columns.
  const bool isTile = isInTile(*this);
  if (rows.getRank() != 2 || !isFloatTensor(rows) ||
      (rows.isDynamicDim(1) && !isTile) || !haveSameRows(rows, ids))
    return emitOpError("C2: rows must be [T, D] of f32, f16 or bf16, D static, "
                       "for ids ")
           << ids << ", found " << rows;
  if (result.getRank() != 2 || (!result.hasStaticShape() && !isTile) ||
      result.getDimSize(1) != rows.getDimSize(1) ||
      !result.getElementType().isF32() || result.getEncoding())
    return emitOpError("C3: the result must be a static [V, ")
           << rows.getDimSize(1) << "] of f32, found " << result;
  return success();
}

/// Every row of the result looks at all ids.
SmallVector<utils::IteratorType> ScatterAddOp::getLoopTypes() {
  return {parallel(), parallel()};
}

SmallVector<AffineMap> ScatterAddOp::getLoopMaps() {
  MLIRContext *c = getContext();
  return {loopMap(c, 2, {-1}), loopMap(c, 2, {-1, 1}), loopMap(c, 2, {0, 1})};
}

//===----------------------------------------------------------------------===//
// matmul_dgrad, matmul_wgrad
//===----------------------------------------------------------------------===//

LogicalResult MatmulDgradOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location> loc,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  auto dy = cast<RankedTensorType>(adaptor.getDy().getType());
  auto w = cast<RankedTensorType>(adaptor.getW().getType());
  if (dy.getRank() != 2)
    return cannotInfer<MatmulDgradOp>(loc, "C1: dy must have rank 2", dy);
  if (w.getRank() != 2)
    return cannotInfer<MatmulDgradOp>(loc, "C2: w must have rank 2", w);
  types.push_back(getRowsOf(dy, w.getDimSize(1), dy.getElementType()));
  return success();
}

LogicalResult MatmulDgradOp::verify() {
  RankedTensorType dy = tensorType(getDy()), w = tensorType(getW());
  if (!isFloatMatrix(dy))
    return emitOpError("C1: dy must be [M, N] of f32, f16 or bf16, N static, "
                       "found ")
           << dy;
  if (!isWeightTensor(w) || !w.hasStaticShape() ||
      w.getDimSize(0) != dy.getDimSize(1))
    return emitOpError("C2: w must be a static [")
           << dy.getDimSize(1)
           << ", K] of f32, f16, bf16 or whole blocks of a quantized type, "
              "found "
           << w;
  return success();
}

LogicalResult MatmulWgradOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location> loc,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  auto dy = cast<RankedTensorType>(adaptor.getDy().getType());
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  if (dy.getRank() != 2)
    return cannotInfer<MatmulWgradOp>(loc, "C1: dy must have rank 2", dy);
  if (x.getRank() != 2)
    return cannotInfer<MatmulWgradOp>(loc, "C2: x must have rank 2", x);
  types.push_back(RankedTensorType::get({dy.getDimSize(1), x.getDimSize(1)},
                                        Float32Type::get(context)));
  return success();
}

LogicalResult MatmulWgradOp::verify() {
  RankedTensorType dy = tensorType(getDy()), x = tensorType(getX());
  // Tiles of it may be of any number of columns.
  const bool isTile = isInTile(*this);
  if (dy.getRank() != 2 || !isFloatTensor(dy) ||
      (dy.isDynamicDim(1) && !isTile))
    return emitOpError("C1: dy must be [M, N] of f32, f16 or bf16, N static, "
                       "found ")
           << dy;
  if (x.getRank() != 2 || !isFloatTensor(x) || (x.isDynamicDim(1) && !isTile) ||
      x.getDimSize(0) != dy.getDimSize(0) || getSize(x) != getSize(dy))
    return emitOpError(
               "C2: x must be [M, K] of f32, f16 or bf16, K static, with "
               "the rows of dy ")
           << dy << ", found " << x;
  return success();
}

SmallVector<utils::IteratorType> MatmulWgradOp::getLoopTypes() {
  return {parallel(), parallel(), reduction()};
}

SmallVector<AffineMap> MatmulWgradOp::getLoopMaps() {
  MLIRContext *c = getContext();
  return {loopMap(c, 3, {2, 0}), loopMap(c, 3, {2, 1}), loopMap(c, 3, {0, 1})};
}

//===----------------------------------------------------------------------===//
// attention_qgrad, attention_kvgrad
//===----------------------------------------------------------------------===//

/// What f32 rows, one a row of `rows`, are without their columns.
static RankedTensorType numberOfRows(RankedTensorType rows) {
  return RankedTensorType::get(rows.getShape().drop_back(),
                               Float32Type::get(rows.getContext()));
}

LogicalResult AttentionQgradOp::inferReturnTypes(MLIRContext *context,
                                                 std::optional<Location> loc,
                                                 Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  auto q = cast<RankedTensorType>(adaptor.getQ().getType());
  if (q.getRank() < 3 || q.getRank() > 4)
    return cannotInfer<AttentionQgradOp>(
        loc, "C1: q must be [B, H, T, D] or [H, T, D]", q);
  types.push_back(q.clone(Float32Type::get(context)));
  types.append(2, numberOfRows(q));
  return success();
}

/// Checks the gradient of the result of attention.
static LogicalResult verifyGradient(BatchAttentionInterface op, Value dy) {
  RankedTensorType q = tensorType(op.getQ());
  SmallVector<int64_t> shape(q.getShape());
  shape.back() = tensorType(op.getV()).getShape().back();
  if (isFloatOfShape(dy.getType(), shape))
    return success();
  return op->emitOpError(
             "C6: dy must be [B, H, T, E] of f32, f16 or bf16 for q "
             "[B, H, T, D] and v [B, G, S, E], found ")
         << dy.getType();
}

LogicalResult AttentionQgradOp::verify() {
  if (failed(verifyBatchAttention(*this)))
    return failure();
  return verifyGradient(*this, getDy());
}

ElementWork AttentionQgradOp::getElementWork() {
  return getAttentionWork(*this, /*products=*/3);
}

SmallVector<utils::IteratorType> AttentionQgradOp::getLoopTypes() {
  return getBatchAttentionLoops(getQ());
}

SmallVector<AffineMap> AttentionQgradOp::getLoopMaps() {
  SmallVector<AffineMap> maps = {getOwnRowsMap(getQ()), getOtherRowsMap(getK()),
                                 getOtherRowsMap(getV()),
                                 getOwnRowsMap(getDy())};
  if (getMask())
    maps.push_back(getMaskMap(getMask(), getQ()));
  maps.push_back(getOwnRowsMap(getDq()));
  maps.append(2, getOwnRowsMap(getLse(), /*hasColumns=*/false));
  return maps;
}

LogicalResult AttentionKvgradOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  auto k = cast<RankedTensorType>(adaptor.getK().getType());
  auto v = cast<RankedTensorType>(adaptor.getV().getType());
  if (k.getRank() < 3 || k.getRank() > 4)
    return cannotInfer<AttentionKvgradOp>(
        loc, "C2: k must be [B, G, S, D] or [G, S, D]", k);
  types.push_back(k.clone(Float32Type::get(context)));
  types.push_back(v.clone(Float32Type::get(context)));
  return success();
}

LogicalResult AttentionKvgradOp::verify() {
  if (failed(verifyBatchAttention(*this)) ||
      failed(verifyGradient(*this, getDy())))
    return failure();
  RankedTensorType rows = numberOfRows(tensorType(getQ()));
  if (getLse().getType() != rows)
    return emitOpError("C7: lse and delta must be ")
           << rows << ", found " << getLse().getType();
  return success();
}

ElementWork AttentionKvgradOp::getElementWork() {
  return getAttentionWork(*this, /*products=*/4);
}

SmallVector<utils::IteratorType> AttentionKvgradOp::getLoopTypes() {
  return getBatchAttentionLoops(getK());
}

SmallVector<AffineMap> AttentionKvgradOp::getLoopMaps() {
  SmallVector<AffineMap> maps = {getOtherRowsMap(getQ()), getOwnRowsMap(getK()),
                                 getOwnRowsMap(getV()),
                                 getOtherRowsMap(getDy())};
  maps.append(2, getOtherRowsMap(getLse(), /*hasColumns=*/false));
  if (getMask())
    maps.push_back(getMaskMap(getMask(), getK()));
  maps.push_back(getOwnRowsMap(getDk()));
  maps.push_back(getOwnRowsMap(getDv()));
  return maps;
}
