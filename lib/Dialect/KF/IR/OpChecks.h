//===- OpChecks.h - What ops ask of their operands --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds, checks of types, and the loops of ops on rows, that verifiers,
// inference and loop interfaces of several ops and attributes share.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_DIALECT_KF_IR_OPCHECKS_H
#define KF_LIB_DIALECT_KF_IR_OPCHECKS_H

#include "kf/Dialect/KF/IR/KF.h"

namespace mlir::kf {

/// Bounds that keep products of sizes within 64 bits.
inline constexpr int64_t maxTile = 1 << 16;
inline constexpr int64_t maxSize = (int64_t(1) << 31) - 1;

inline RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether `op` is in a tile of a kernel, and has some of its rows or columns.
bool isInTile(Operation *op);

inline bool isFloatTensor(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return element.isF32() || element.isF16() || element.isBF16();
}

/// Floats, or rows of whole blocks.
inline bool isWeightTensor(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto quant = dyn_cast<QuantType>(tensor.getElementType());
  if (!quant)
    return isFloatTensor(type);
  int64_t columns = tensor.getRank() ? tensor.getShape().back() : 1;
  return !ShapedType::isDynamic(columns) &&
         columns % getStorage(quant.getFormat()).elements == 0;
}

/// Whether `type` has the given shape and float elements.
inline bool isFloatOfShape(Type type, ArrayRef<int64_t> shape) {
  return isFloatTensor(type) &&
         cast<RankedTensorType>(type).getShape() == shape;
}

/// A rank >= 1 float tensor whose last dimension is static.
inline bool hasStaticFloatRows(RankedTensorType type) {
  return type.getRank() >= 1 && isFloatTensor(type) &&
         !ShapedType::isDynamic(type.getShape().back());
}

/// `positions`-like operands: rank 1 of i32, one entry a row of `rows`.
inline bool isPerRow(Value value, RankedTensorType rows) {
  RankedTensorType type = tensorType(value);
  return type.getRank() == 1 && haveSameRows(type, rows) &&
         type.getElementType().isInteger(32);
}

/// Checks what is beside codes of rows `x` [T, K] in a product `op` with blocks
/// `w`: `scales` and `sums` of their parts.
LogicalResult verifyCodes(Operation *op, Value x, Value w, Value scales,
                          Value sums);

/// Checks `rows` of a product: `areMatrices` is whether x is of rank 2, and w
/// has no batches.
LogicalResult verifyRows(ProductOpInterface op, bool areMatrices,
                         StringRef constraint);

/// Checks C1 to C5 of attention to keys that are tensors.
LogicalResult verifyBatchAttention(BatchAttentionInterface op);
/// Loops over batches, heads and rows of `rows`, [..., heads, rows, columns].
SmallVector<utils::IteratorType> getBatchAttentionLoops(Value rows);
/// Of a tensor that is tiled by these: its rows, which have columns or are
/// numbers; of one whose heads and rows every tile may read; and of a mask.
AffineMap getOwnRowsMap(Value rows, bool hasColumns = true);
AffineMap getOtherRowsMap(Value rows, bool hasColumns = true);
AffineMap getMaskMap(Value mask, Value rows);
/// Of as many products of queries with keys.
ElementWork getAttentionWork(BatchAttentionInterface op, uint64_t products);

inline bool isFiniteAndNotNegative(const APFloat &value) {
  return value.isFinite() && !(value.isNegative() && value.isNonZero());
}

/// What inference says when operands have no result type: the parser infers
/// before the op is verified.
template <typename OpTy>
LogicalResult cannotInfer(std::optional<Location> loc, const Twine &message,
                          Type found) {
  return emitOptionalError(loc, "'", OpTy::getOperationName(), "' op ", message,
                           ", found ", found);
}

inline utils::IteratorType parallel() { return utils::IteratorType::parallel; }
inline utils::IteratorType reduction() {
  return utils::IteratorType::reduction;
}

/// Builds a map over `loops` dims; entry >= 0 is that dim, -1 a whole dim.
inline AffineMap loopMap(MLIRContext *context, unsigned loops,
                         ArrayRef<int> results) {
  SmallVector<AffineExpr> exprs;
  for (int result : results)
    exprs.push_back(result >= 0 ? getAffineDimExpr(result, context)
                                : getAffineConstantExpr(0, context));
  return AffineMap::get(loops, 0, exprs, context);
}

/// Loops of an op on rows: parallel but for the last dimension, which is whole.
inline SmallVector<utils::IteratorType> rowLoopTypes(RankedTensorType type) {
  SmallVector<utils::IteratorType> types(type.getRank(), parallel());
  types.back() = reduction();
  return types;
}

inline AffineMap rowMap(RankedTensorType type) {
  return AffineMap::getMultiDimIdentityMap(type.getRank(), type.getContext());
}

/// A vector operand along the rows' last dimension.
inline AffineMap lastDimMap(RankedTensorType type) {
  return loopMap(type.getContext(), type.getRank(),
                 {static_cast<int>(type.getRank()) - 1});
}

} // namespace mlir::kf

#endif // KF_LIB_DIALECT_KF_IR_OPCHECKS_H
