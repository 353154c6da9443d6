//===- KFExpertOps.cpp - Feed-forward blocks of several experts -----------===//
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

/// Experts that a router chooses among.
static constexpr int64_t maxExperts = 1 << 16;

//===----------------------------------------------------------------------===//
// route
//===----------------------------------------------------------------------===//

LogicalResult RouteOp::inferReturnTypes(MLIRContext *context,
                                        std::optional<Location> loc,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto logits = cast<RankedTensorType>(adaptor.getLogits().getType());
  if (logits.getRank() != 2)
    return cannotInfer<RouteOp>(loc, "C1: logits must have rank 2", logits);
  const int64_t top = static_cast<int64_t>(adaptor.getTop());
  if (top < 1)
    return emitOptionalError(loc, "'", getOperationName(),
                             "' op C2: top must be positive, found ", top);
  types.push_back(getRowsOf(logits, top, IntegerType::get(context, 32)));
  types.push_back(getRowsOf(logits, top, Float32Type::get(context)));
  return success();
}

LogicalResult RouteOp::verify() {
  RankedTensorType logits = tensorType(getLogits());
  if (logits.getRank() != 2 || !hasStaticFloatRows(logits) ||
      logits.getDimSize(1) > maxExperts)
    return emitOpError("C1: logits must be a rank 2 tensor of f32, f16 or bf16 "
                       "with a static number of columns, at most ")
           << maxExperts << ", found " << logits;
  if (static_cast<int64_t>(getTop()) > logits.getDimSize(1))
    return emitOpError("C2: top must be at most ")
           << logits.getDimSize(1) << ", found " << getTop();
  const int64_t experts = logits.getDimSize(1);
  for (auto [name, numbers] :
       {std::pair("scales", getScales()), std::pair("bias", getBias())})
    if (numbers && !isFloatOfShape(numbers.getType(), {experts}))
      return emitOpError("C4: ")
             << name << " must be [" << experts << "] of a float type, found "
             << numbers.getType();
  if (getBias() && !getSigmoid())
    return emitOpError("C5: bias needs sigmoid");
  return getGroups() || getKeptGroups() ? verifyGroups() : success();
}

LogicalResult RouteOp::verifyGroups() {
  if (!getBias())
    return emitOpError("C5: groups needs bias");
  const int64_t experts = tensorType(getLogits()).getDimSize(1);
  const auto count = static_cast<int64_t>(getGroups().value_or(0));
  const auto kept = static_cast<int64_t>(getKeptGroups().value_or(0));
  if (count < 1 || experts % count != 0 || experts / count < 2)
    return emitOpError("C5: groups must divide ")
           << experts << " experts into groups of two or more, found " << count;
  if (kept < 1 || kept > count)
    return emitOpError("C5: kept groups must be in [1, ")
           << count << "], found " << kept;
  if (kept * (experts / count) < static_cast<int64_t>(getTop()))
    return emitOpError("C5: ")
           << kept << " groups have " << kept * (experts / count)
           << " experts, fewer than the " << getTop() << " of top";
  return success();
}

//===----------------------------------------------------------------------===//
// expert_matmul
//===----------------------------------------------------------------------===//

LogicalResult ExpertMatmulOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location> loc,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  auto experts = cast<RankedTensorType>(adaptor.getExperts().getType());
  auto w = cast<RankedTensorType>(adaptor.getW().getType());
  if (x.getRank() != 2 && x.getRank() != 3)
    return cannotInfer<ExpertMatmulOp>(loc, "C1: x must have rank 2 or 3", x);
  if (experts.getRank() != 2)
    return cannotInfer<ExpertMatmulOp>(loc, "C2: experts must have rank 2",
                                       experts);
  if (w.getRank() != 4)
    return cannotInfer<ExpertMatmulOp>(loc, "C3: w must have rank 4", w);
  types.push_back(getRowsOf(x, {experts.getDimSize(1), w.getDimSize(2)},
                            adaptor.getScales() ? Float32Type::get(context)
                                                : x.getElementType()));
  return success();
}

LogicalResult ExpertMatmulOp::verify() {
  RankedTensorType x = tensorType(getX()), experts = tensorType(getExperts()),
                   w = tensorType(getW());
  const bool hasCodes = getScales() || getSums();
  if (hasCodes ? x.getRank() != 2 || !x.getElementType().isInteger(8)
               : (x.getRank() != 2 && x.getRank() != 3) || !isFloatTensor(x))
    return emitOpError("C1: x must be a ")
           << (hasCodes ? "rank 2 tensor of i8 with scales"
                        : "tensor of rank 2 or 3 of f32, f16 or bf16")
           << ", found " << x;
  if (experts.getRank() != 2 || !experts.getElementType().isInteger(32) ||
      experts.isDynamicDim(1) || !haveSameRows(experts, x) ||
      (x.getRank() == 3 && x.getDimSize(1) != experts.getDimSize(1)))
    return emitOpError("C2: experts must be [T, k] of i32 for x [T, K] or "
                       "[T, k, K], found ")
           << experts << " for x " << x;
  if (w.getRank() != 4 || !isWeightTensor(w) ||
      w.getDimSize(0) != (getGlu() ? 2 : 1) ||
      ShapedType::isDynamic(w.getDimSize(1)) || w.getDimSize(1) > maxExperts)
    return emitOpError("C3: w must be [")
           << (getGlu() ? "2" : "1") << ", E, N, K]"
           << (getGlu() ? " with glu" : "") << ", E at most " << maxExperts
           << ", of f32, f16, bf16 or whole blocks of a quantized type, found "
           << w;
  const int64_t k = w.getShape().back();
  if (ShapedType::isDynamic(k) || x.getShape().back() != k)
    return emitOpError("C4: last dimensions of x and w must be equal and "
                       "static, found ")
           << x << " and " << w;
  if (getBias() &&
      !isFloatOfShape(getBias().getType(), w.getShape().drop_back()))
    return emitOpError("C5: bias must have w's shape without its last "
                       "dimension and float elements, found ")
           << getBias().getType() << " for w " << w;
  if (getClamp() && getGlu() != ActivationKind::Silu)
    return emitOpError("C8: clamped is for glu(silu)");
  const RowsAttr rows = getRowsAttr();
  if (rows && !rows.getElement().isF32() &&
      !rows.getElement().isSignlessInteger(8))
    return emitOpError("C9: rows must be f32 or i8, found ")
           << rows.getElement();
  if (failed(verifyRows(*this, x.getRank() == 2, "C9")))
    return failure();
  return hasCodes ? verifyCodes(*this, getX(), getW(), getScales(), getSums())
                  : success();
}

/// Rows, their experts, columns, and K.
SmallVector<utils::IteratorType> ExpertMatmulOp::getLoopTypes() {
  return {parallel(), parallel(), parallel(), reduction()};
}

SmallVector<AffineMap> ExpertMatmulOp::getLoopMaps() {
  MLIRContext *c = getContext();
  SmallVector<AffineMap> maps = {
      hasRowForEach() ? loopMap(c, 4, {0, 1, 3}) : loopMap(c, 4, {0, 3}),
      loopMap(c, 4, {0, 1}), loopMap(c, 4, {-1, -1, 2, 3})};
  if (getBias())
    maps.push_back(loopMap(c, 4, {-1, -1, 2}));
  if (getScales())
    maps.append(2, loopMap(c, 4, {0, -1})); // and sums
  maps.push_back(loopMap(c, 4, {0, 1, 2}));
  return maps;
}

RankedTensorType ExpertMatmulOp::getPartRead(OpOperand &operand) {
  const RankedTensorType type = tensorType(operand.get());
  const RankedTensorType experts = tensorType(getExperts());
  if (operand.get() != getW() || !experts.hasStaticShape())
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[1] = std::min(shape[1], experts.getNumElements());
  return type.clone(shape);
}

int64_t ExpertMatmulOp::countExperts() {
  return tensorType(getW()).getDimSize(1);
}

bool ExpertMatmulOp::hasRowForEach() {
  return tensorType(getX()).getRank() == 3;
}
