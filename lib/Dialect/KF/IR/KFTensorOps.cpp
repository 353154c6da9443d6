//===- KFTensorOps.cpp - Ops on tensors of any rank -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"
#include "OpChecks.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

//===----------------------------------------------------------------------===//
// What ops are to kernels
//===----------------------------------------------------------------------===//

template <typename... OpTys>
static bool isOneOf(OpList<OpTys...>, Operation *op) {
  return isa<OpTys...>(op);
}

bool mlir::kf::isElementwise(Operation *op) {
  if (!isa<ActivationOp, CopyOp, RoundHalfOp, PhiloxOp>(op) &&
      !isOneOf(ElementwiseOps(), op))
    return false;
  // Of numbers, or with the condition of arith.select alone one, they are not.
  return llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

bool mlir::kf::isRounding(Operation *op) {
  return isa_and_nonnull<arith::TruncFOp, RoundHalfOp>(op);
}

bool mlir::kf::isView(Operation *op) {
  return isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp, tensor::ConcatOp, tensor::DimOp,
             arith::ConstantOp, TransposeOp, BroadcastOp, IotaOp>(op);
}

StringRef mlir::kf::describeTensorOps() {
  return "kf ops, the elementwise ops of arith and math on tensors, and "
         "tensor.{extract_slice,expand_shape,collapse_shape,concat,cast,dim}";
}

Operation *mlir::kf::findFloat8Arithmetic(KernelOp kernel) {
  auto isFloat8 = [](Type type) {
    return isa<Float8E4M3FNType>(getElementTypeOrSelf(type));
  };
  Operation *found = nullptr;
  kernel.getBody().walk([&](Operation *op) {
    if (isa<MatmulOp, tensor::ExtractSliceOp>(op) ||
        !(llvm::any_of(op->getOperandTypes(), isFloat8) ||
          llvm::any_of(op->getResultTypes(), isFloat8)))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// Whether elements lie in blocks, which cannot be taken apart.
static bool isQuantized(RankedTensorType type) {
  return isa<QuantType>(type.getElementType());
}

static LogicalResult failQuantized(Operation *op, StringRef constraint,
                                   Type type) {
  return op->emitOpError(constraint)
         << ": elements must not lie in blocks, found " << type
         << "; kf.dequantize them first";
}

bool mlir::kf::isBroadcastable(RankedTensorType from, RankedTensorType to) {
  int64_t missing = to.getRank() - from.getRank();
  if (missing < 0)
    return false;
  for (auto [dim, extent] : llvm::enumerate(from.getShape())) {
    int64_t other = to.getDimSize(dim + missing);
    if (extent != 1 && extent != other)
      return false;
    if (ShapedType::isDynamic(extent) && getSize(from) != getSize(to))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// transpose, broadcast, iota, copy
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  SmallVector<bool> seen(x.getRank());
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= x.getRank() || std::exchange(seen[dim], true))
      break;
    shape.push_back(x.getDimSize(dim));
  }
  if (static_cast<int64_t>(shape.size()) != x.getRank() ||
      shape.size() != permutation.size())
    return cannotInfer<TransposeOp>(
        loc, "C1: permutation must have each dimension of x once", x);
  bool keepsSize = !shape.empty() && ShapedType::isDynamic(shape.front());
  types.push_back(RankedTensorType::get(shape, x.getElementType(),
                                        keepsSize ? getSize(x) : SizeAttr()));
  return success();
}

LogicalResult TransposeOp::verify() {
  if (isQuantized(tensorType(getX())))
    return failQuantized(*this, "C2", getX().getType());
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [number, dim] : llvm::enumerate(getPermutation()))
    if (static_cast<int64_t>(number) != dim)
      return {};
  return getX().getType() == getType() ? OpFoldResult(getX()) : OpFoldResult();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType x = tensorType(getX());
  auto result = cast<RankedTensorType>(getType());
  if (x.getElementType() != result.getElementType())
    return emitOpError("C1: x and the result must have the same elements, "
                       "found ")
           << x << " and " << result;
  if (isQuantized(x))
    return failQuantized(*this, "C1", x);
  if (result.getRank() < x.getRank())
    return emitOpError("C2: the result must have at least as many dimensions "
                       "as x, found ")
           << x << " and " << result;
  if (!isBroadcastable(x, result))
    return emitOpError("C3: each dimension of x must be 1 or that of the "
                       "result, found ")
           << x << " and " << result;
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? OpFoldResult(getX()) : OpFoldResult();
}

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (!type.hasStaticShape() || !(type.getElementType().isInteger(32) ||
                                  type.getElementType().isInteger(64)))
    return emitOpError("C1: the result must be a static tensor of i32 or i64, "
                       "found ")
           << type;
  int64_t dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= type.getRank())
    return emitOpError("C2: dim ") << dim << " is not one of " << type;
  return success();
}

LogicalResult CopyOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult CopyOp::verify() {
  if (isQuantized(tensorType(getX())))
    return failQuantized(*this, "C1", getX().getType());
  return success();
}

SmallVector<utils::IteratorType> CopyOp::getLoopTypes() {
  return SmallVector<utils::IteratorType>(tensorType(getX()).getRank(),
                                          parallel());
}

SmallVector<AffineMap> CopyOp::getLoopMaps() {
  return {2, rowMap(tensorType(getX()))};
}

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

/// Whether `dims` are dimensions of `x` in ascending order, at least one.
static bool areDims(ArrayRef<int64_t> dims, RankedTensorType x) {
  int64_t last = -1;
  for (int64_t dim : dims) {
    if (dim <= last || dim >= x.getRank())
      return false;
    last = dim;
  }
  return !dims.empty();
}

LogicalResult ReduceOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  if (!areDims(adaptor.getDims(), x))
    return cannotInfer<ReduceOp>(
        loc, "C1: dims must be dimensions of x in ascending order", x);
  SmallVector<int64_t> shape;
  for (auto [dim, extent] : llvm::enumerate(x.getShape())) {
    if (!llvm::is_contained(adaptor.getDims(), dim))
      shape.push_back(extent);
    else if (adaptor.getKeepDims())
      shape.push_back(1);
  }
  bool keepsSize = llvm::any_of(shape, ShapedType::isDynamic);
  types.push_back(RankedTensorType::get(shape, x.getElementType(),
                                        keepsSize ? getSize(x) : SizeAttr()));
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType x = tensorType(getX());
  Type element = x.getElementType();
  bool isNumber = isa<FloatType, IntegerType>(element);
  bool isExtreme = getKind() == ReduceKind::Max || getKind() == ReduceKind::Min;
  if (!isNumber || (element.isInteger(1) && !isExtreme) ||
      (getKind() == ReduceKind::Mean && !isa<FloatType>(element)))
    return emitOpError("C2: there is no ")
           << stringifyReduceKind(getKind()) << " of " << x
           << "; elements are floats or integers, mean needs floats, and of i1 "
              "there are max and min";
  return success();
}

SmallVector<utils::IteratorType> ReduceOp::getLoopTypes() {
  SmallVector<utils::IteratorType> types;
  for (int64_t dim = 0; dim < tensorType(getX()).getRank(); ++dim)
    types.push_back(isReduced(dim) ? reduction() : parallel());
  return types;
}

SmallVector<AffineMap> ReduceOp::getLoopMaps() {
  RankedTensorType x = tensorType(getX());
  SmallVector<int> result;
  for (int64_t dim = 0; dim < x.getRank(); ++dim) {
    if (!isReduced(dim))
      result.push_back(dim);
    else if (getKeepDims())
      result.push_back(-1);
  }
  return {rowMap(x), loopMap(getContext(), x.getRank(), result)};
}

//===----------------------------------------------------------------------===//
// batch_matmul
//===----------------------------------------------------------------------===//

LogicalResult BatchMatmulOp::inferReturnTypes(MLIRContext *,
                                              std::optional<Location> loc,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  auto w = cast<RankedTensorType>(adaptor.getW().getType());
  if (x.getRank() < 3 || x.getRank() > 4)
    return cannotInfer<BatchMatmulOp>(loc, "C1: x must have rank 3 or 4", x);
  if (w.getRank() != x.getRank())
    return cannotInfer<BatchMatmulOp>(loc, "C2: w must have the rank of x", w);
  SmallVector<int64_t> shape(x.getShape());
  shape.back() = w.getShape().end()[-2];
  types.push_back(
      getRowsOf(x, ArrayRef(shape).drop_front(), x.getElementType()));
  return success();
}

LogicalResult BatchMatmulOp::verify() {
  RankedTensorType x = tensorType(getX()), w = tensorType(getW());
  // Tiles of it may be of any number of rows.
  if (!isFloatTensor(x) || ShapedType::isDynamic(x.getShape().back()))
    return emitOpError("C1: x must be of f32, f16 or bf16, its last dimension "
                       "static, found ")
           << x;
  if (!isFloatTensor(w) ||
      w.getShape().drop_back(2) != x.getShape().drop_back(2) ||
      (w.isDynamicDim(0) && !haveSameRows(w, x)))
    return emitOpError("C2: w must have the batches of x and f32, f16 or bf16 "
                       "elements, found ")
           << x << " and " << w;
  if (x.getShape().back() != w.getShape().back())
    return emitOpError("C3: the last dimensions of x and w must be equal, "
                       "found ")
           << x << " and " << w;
  return success();
}

SmallVector<utils::IteratorType> BatchMatmulOp::getLoopTypes() {
  SmallVector<utils::IteratorType> types(tensorType(getX()).getRank() + 1,
                                         parallel());
  types.back() = reduction();
  return types;
}

SmallVector<AffineMap> BatchMatmulOp::getLoopMaps() {
  int rank = static_cast<int>(tensorType(getX()).getRank());
  SmallVector<int> x, w, result;
  for (int batch = 0; batch < rank - 2; ++batch)
    for (SmallVector<int> *map : {&x, &w, &result})
      map->push_back(batch);
  int m = rank - 2, n = rank - 1, k = rank;
  x.append({m, k});
  w.append({n, k});
  result.append({m, n});
  MLIRContext *c = getContext();
  return {loopMap(c, rank + 1, x), loopMap(c, rank + 1, w),
          loopMap(c, rank + 1, result)};
}

//===----------------------------------------------------------------------===//
// scaled_dot_product_attention
//===----------------------------------------------------------------------===//

LogicalResult ScaledDotProductAttentionOp::inferReturnTypes(
    MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  auto q = cast<RankedTensorType>(adaptor.getQ().getType());
  auto v = cast<RankedTensorType>(adaptor.getV().getType());
  if (q.getRank() < 3 || q.getRank() > 4)
    return cannotInfer<ScaledDotProductAttentionOp>(
        loc, "C1: q must be [B, H, T, D] or [H, T, D]", q);
  if (v.getRank() != q.getRank())
    return cannotInfer<ScaledDotProductAttentionOp>(
        loc, "C3: v must have the rank of q", v);
  SmallVector<int64_t> shape(q.getShape());
  shape.back() = v.getShape().back();
  types.push_back(RankedTensorType::get(shape, q.getElementType()));
  return success();
}

double mlir::kf::getScaleFactor(BatchAttentionInterface op) {
  if (std::optional<APFloat> scale = op.getScale())
    return scale->convertToDouble();
  return 1.0 / std::sqrt(static_cast<double>(
                   tensorType(op.getQ()).getShape().back()));
}

bool mlir::kf::isInTile(Operation *op) {
  return op->getParentOfType<scf::ForallOp>() &&
         op->getParentOfType<KernelOp>();
}

LogicalResult mlir::kf::verifyBatchAttention(BatchAttentionInterface op) {
  RankedTensorType q = tensorType(op.getQ()), k = tensorType(op.getK()),
                   v = tensorType(op.getV());
  const int64_t rank = q.getRank();
  // Tiles of it have some of the queries, or of the keys.
  const bool isTile = isInTile(op);
  if (!isFloatTensor(q) || !(isTile || q.hasStaticShape()))
    return op->emitOpError("C1: q must be a static tensor of f32, f16 or bf16, "
                           "found ")
           << q;
  auto batches = [rank](RankedTensorType type) {
    return type.getShape().take_front(rank - 3);
  };
  auto heads = [rank](RankedTensorType type) {
    return type.getDimSize(rank - 3);
  };
  if (k.getRank() != rank || k.getElementType() != q.getElementType() ||
      k.getShape().back() != q.getShape().back() ||
      (!isTile && (!k.hasStaticShape() || batches(k) != batches(q) ||
                   heads(q) % heads(k) != 0)))
    return op->emitOpError("C2: k must be [B, G, S, D] for q [B, H, T, D], H a "
                           "multiple of G, found ")
           << q << " and " << k;
  if (v.getRank() != rank ||
      v.getShape().drop_back() != k.getShape().drop_back() ||
      ShapedType::isDynamic(v.getShape().back()) ||
      v.getElementType() != k.getElementType())
    return op->emitOpError(
               "C3: v must be [B, G, S, E] for k [B, G, S, D], found ")
           << k << " and " << v;
  if (Value masking = op.getMask(); masking && !isTile) {
    RankedTensorType mask = tensorType(masking);
    SmallVector<int64_t> scores(q.getShape());
    scores.back() = k.getDimSize(rank - 2);
    if (!(isFloatTensor(mask) || mask.getElementType().isInteger(1)) ||
        !isBroadcastable(mask,
                         RankedTensorType::get(scores, mask.getElementType())))
      return op->emitOpError("C4: mask must be i1 or of f32, f16 or bf16 and "
                             "broadcast to the scores, ")
             << RankedTensorType::get(scores, mask.getElementType())
             << ", found " << mask;
  }
  auto isPositive = [](std::optional<APFloat> value) {
    return !value ||
           (value->isFinite() && !value->isNegative() && value->isNonZero());
  };
  if (op.getScale() && !op.getScale()->isFinite())
    return op->emitOpError("C5: scale must be finite");
  if (!isPositive(op.getSoftcap()))
    return op->emitOpError("C5: softcap must be positive and finite");
  // Differences of both stay within 64 bits.
  constexpr int64_t mostKeys = int64_t(1) << 31;
  auto offset = static_cast<int64_t>(op.getOffset());
  if (offset < -mostKeys || offset > mostKeys)
    return op->emitOpError("C5: offset must be in [-")
           << mostKeys << ", " << mostKeys << "], found " << offset;
  auto window = static_cast<int64_t>(op.getWindow().value_or(1));
  if (window < 1 || window > mostKeys)
    return op->emitOpError("C5: window must be in [1, ")
           << mostKeys << "], found " << window;
  if (op.getWindow() && !op.getCausal())
    return op->emitOpError("C5: window needs causal");
  return success();
}

LogicalResult ScaledDotProductAttentionOp::verify() {
  return verifyBatchAttention(*this);
}

SmallVector<utils::IteratorType> mlir::kf::getBatchAttentionLoops(Value rows) {
  return SmallVector<utils::IteratorType>(tensorType(rows).getRank() - 1,
                                          parallel());
}

/// A map that slices the batch, the head and rows where `heads` and `rows` say
/// so, and takes `columns` whole, if there are any.
static AffineMap attentionMap(RankedTensorType type, bool hasHeads,
                              bool hasRows, bool hasColumns) {
  const int64_t rank = type.getRank() + !hasColumns, loops = rank - 1;
  SmallVector<int> dims;
  for (int64_t dim = 0; dim < loops; ++dim)
    dims.push_back(dim < rank - 3 || (dim == rank - 3 ? hasHeads : hasRows)
                       ? static_cast<int>(dim)
                       : -1);
  if (hasColumns)
    dims.push_back(-1);
  return loopMap(type.getContext(), loops, dims);
}

AffineMap mlir::kf::getOwnRowsMap(Value rows, bool hasColumns) {
  return attentionMap(tensorType(rows), true, true, hasColumns);
}

AffineMap mlir::kf::getOtherRowsMap(Value rows, bool hasColumns) {
  return attentionMap(tensorType(rows), false, false, hasColumns);
}

AffineMap mlir::kf::getMaskMap(Value mask, Value rows) {
  return loopMap(mask.getContext(), tensorType(rows).getRank() - 1,
                 SmallVector<int>(tensorType(mask).getRank(), -1));
}

ElementWork mlir::kf::getAttentionWork(BatchAttentionInterface op,
                                       uint64_t products) {
  // Of each query, products with all keys, or half of them.
  RankedTensorType k = tensorType(op.getK());
  const auto keys = static_cast<uint64_t>(k.getDimSize(k.getRank() - 2));
  return {op.getQ(), products * keys * (op.getCausal() ? 1 : 2)};
}

ElementWork ScaledDotProductAttentionOp::getElementWork() {
  return getAttentionWork(*this, /*products=*/2);
}

SmallVector<utils::IteratorType> ScaledDotProductAttentionOp::getLoopTypes() {
  return getBatchAttentionLoops(getQ());
}

SmallVector<AffineMap> ScaledDotProductAttentionOp::getLoopMaps() {
  SmallVector<AffineMap> maps = {getOwnRowsMap(getQ()), getOtherRowsMap(getK()),
                                 getOtherRowsMap(getV())};
  if (getMask())
    maps.push_back(getMaskMap(getMask(), getQ()));
  maps.push_back(getOwnRowsMap(getResult()));
  return maps;
}

//===----------------------------------------------------------------------===//
// rotary_embedding
//===----------------------------------------------------------------------===//

LogicalResult
RotaryEmbeddingOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                    Adaptor adaptor,
                                    SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult RotaryEmbeddingOp::verify() {
  RankedTensorType x = tensorType(getX()), cos = tensorType(getCos());
  if (x.getRank() < 2 || !isFloatTensor(x) ||
      llvm::any_of(x.getShape().drop_front(), ShapedType::isDynamic))
    return emitOpError("C1: x must have rank 2 or more, f32, f16 or bf16 "
                       "elements, and static dimensions but for the first, "
                       "found ")
           << x;
  SmallVector<int64_t> table(x.getShape());
  if (cos.getRank() > 0)
    table.back() = cos.getShape().back();
  if (cos.getRank() == 0 || !isFloatTensor(cos) ||
      !isBroadcastable(
          cos, RankedTensorType::get(table, cos.getElementType(), getSize(x))))
    return emitOpError("C2: cos and sin must be of f32, f16 or bf16 and "
                       "broadcast to x with half of the rotated elements, "
                       "found ")
           << cos << " for x " << x;
  if (cos.getShape().back() > x.getShape().back() / 2)
    return emitOpError("C3: tables rotate ")
           << 2 * cos.getShape().back() << " elements, and rows of x have "
           << x.getShape().back();
  return success();
}
