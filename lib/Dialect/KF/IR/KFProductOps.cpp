//===- KFProductOps.cpp - Products of rows and a weight -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Those of experts are in KFExpertOps.cpp.
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::kf;

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *context,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  auto w = cast<RankedTensorType>(adaptor.getW().getType());
  if (x.getRank() < 2 || x.getRank() > 4)
    return cannotInfer<MatmulOp>(loc, "C1: x must have rank 2 to 4", x);
  if (w.getRank() < 2)
    return cannotInfer<MatmulOp>(
        loc, "C2: w must have rank 2, 3 with glu, or the rank of x", w);
  SmallVector<int64_t> shape(x.getShape().drop_front());
  shape.back() = w.getDimSize(w.getRank() - 2);
  Type element = adaptor.getScales() || adaptor.getWide()
                     ? Float32Type::get(context)
                     : x.getElementType();
  types.push_back(getRowsOf(x, shape, element));
  return success();
}

RankedTensorType MatmulOp::getPartRead(OpOperand &operand) {
  return operand.get() == getOutliers() ? RankedTensorType()
                                        : tensorType(operand.get());
}

bool MatmulOp::isOfMatrices() {
  return tensorType(getX()).getRank() == 2 &&
         tensorType(getW()).getRank() == (getGlu() ? 3 : 2);
}

/// Whether each batch of `x` has one of `w`, which is the same for all along a
/// dimension of 1.
static bool hasBatchesOf(RankedTensorType w, RankedTensorType x) {
  if (w.getRank() != x.getRank() || !isFloatTensor(w))
    return false;
  for (int64_t dim = 0; dim < w.getRank() - 2; ++dim)
    if (w.getDimSize(dim) != 1 && w.getDimSize(dim) != x.getDimSize(dim))
      return false;
  return !w.isDynamicDim(0) || haveSameRows(w, x);
}

LogicalResult mlir::kf::verifyCodes(Operation *op, Value x, Value w,
                                    Value scales, Value sums) {
  if (!scales || !sums)
    return op->emitOpError("C6: scales and sums come together");
  const RankedTensorType codes = tensorType(x), weight = tensorType(w);
  auto quant = dyn_cast<QuantType>(weight.getElementType());
  if (!quant)
    return op->emitOpError("C6: with scales, w must be of a quantized type, "
                           "found ")
           << weight;
  Builder b(op->getContext());
  for (auto [name, value, elements, type] :
       {std::tuple<StringRef, Value, int64_t, Type>{
            "scales", scales, ::kf::PackedBlock::unit, b.getF32Type()},
        {"sums", sums, getStorage(quant.getFormat()).subBlock, b.getI32Type()}})
    if (RankedTensorType wanted =
            getRowsOf(codes, codes.getDimSize(1) / elements, type);
        value.getType() != wanted)
      return op->emitOpError("C6: ")
             << name << " must be " << wanted << ", found " << value.getType();
  return success();
}

LogicalResult mlir::kf::verifyRows(ProductOpInterface op, bool areMatrices,
                                   StringRef constraint) {
  RowsAttr rows = op.getRowsAttr();
  if (!rows)
    return success();
  const RankedTensorType x = tensorType(op.getX()), w = tensorType(op.getW());
  if (!areMatrices || !x.getElementType().isF32())
    return op->emitOpError(constraint)
           << ": with rows, x must be a rank 2 tensor of f32, and w have no "
              "batches, found "
           << x << " and " << w;
  if (rows.getElement().isSignlessInteger(8) &&
      !isa<QuantType>(w.getElementType()))
    return op->emitOpError(constraint)
           << ": rows<i8> is for w of a quantized type, found " << w;
  if (isa<KernelOp>(op->getParentOp()))
    return op->emitOpError(constraint)
           << ": kernels read what they are given; leave rows out here";
  return success();
}

LogicalResult MatmulOp::verify() {
  RankedTensorType x = tensorType(getX()), w = tensorType(getW());
  bool hasCodes = getScales() || getSums();
  if (hasCodes ? x.getRank() != 2 || !x.getElementType().isInteger(8)
               : x.getRank() < 2 || x.getRank() > 4 || !isFloatTensor(x))
    return emitOpError("C1: x must be a ")
           << (hasCodes ? "rank 2 tensor of i8 with scales"
                        : "tensor of rank 2 to 4 of f32, f16 or bf16")
           << ", found " << x;
  int64_t rank = getGlu() ? 3 : 2;
  bool hasBatches = !getGlu() && w.getRank() > 2 && hasBatchesOf(w, x);
  bool isFloat8 = isa<Float8E4M3FNType>(w.getElementType());
  if ((w.getRank() != rank && !hasBatches) ||
      (!isWeightTensor(w) && !isFloat8) || (getGlu() && w.getDimSize(0) != 2))
    return emitOpError("C2: w must be ")
           << (getGlu() ? "[2, N, K] with glu"
                        : "[N, K], or [..., N, K] with the batches of x,")
           << " of f32, f16, bf16 or, without batches, f8E4M3FN or whole "
              "blocks "
              "of a quantized type, found "
           << w;
  int64_t k = w.getShape().back();
  if (ShapedType::isDynamic(k) || x.getShape().back() != k)
    return emitOpError("C3: last dimensions of x and w must be equal and "
                       "static, found ")
           << x << " and " << w;
  if (getBias() && (hasBatches || !isFloatOfShape(getBias().getType(),
                                                  w.getShape().drop_back())))
    return emitOpError("C4: bias must have w's shape without its last "
                       "dimension and float elements, and w no batches, "
                       "found ")
           << getBias().getType() << " for w " << w;
  if (getWide() && (x.getRank() != 2 || x.getElementTypeBitWidth() != 16))
    return emitOpError("C7: with wide, x must be a rank 2 tensor of f16 or "
                       "bf16, found ")
           << x;
  if (isFloat8 && x.getRank() != 2)
    return emitOpError("C8: with w of f8E4M3FN, x must have rank 2, found ")
           << x;
  auto hasScaleOfEachRow = [&](RankedTensorType scales) {
    return isFloat8 && scales.getElementType().isF32() &&
           scales.getShape() == w.getShape().drop_back();
  };
  if (getOutliers() &&
      (!getWide() || !x.getElementType().isF16() ||
       getOutliers().getType() != x.clone(Float32Type::get(getContext()))))
    return emitOpError("C9: outliers must be f32 elements in the shape of x, "
                       "which is of f16 then, with wide, found ")
           << getOutliers().getType() << " for x " << x;
  if (getWeightScales() && !hasScaleOfEachRow(tensorType(getWeightScales())))
    return emitOpError("C8: weight_scales must have w's shape without its last "
                       "dimension and f32 elements, and w those of f8E4M3FN, "
                       "found ")
           << getWeightScales().getType() << " for w " << w;
  if (failed(verifyRows(*this, isOfMatrices(), "C10")))
    return failure();
  return hasCodes ? verifyCodes(*this, getX(), getW(), getScales(), getSums())
                  : success();
}

SmallVector<utils::IteratorType> MatmulOp::getLoopTypes() {
  return {parallel(), parallel(), reduction()};
}

/// Of matrices: kernels have no others.
SmallVector<AffineMap> MatmulOp::getLoopMaps() {
  MLIRContext *c = getContext();
  bool glu = static_cast<bool>(getGlu());
  SmallVector<AffineMap> maps = {loopMap(c, 3, {0, 2}),
                                 glu ? loopMap(c, 3, {-1, 1, 2})
                                     : loopMap(c, 3, {1, 2})};
  AffineMap ofColumns = glu ? loopMap(c, 3, {-1, 1}) : loopMap(c, 3, {1});
  if (getBias())
    maps.push_back(ofColumns);
  if (getScales())
    maps.append(2, loopMap(c, 3, {0, -1})); // and sums
  if (getWeightScales())
    maps.push_back(ofColumns);
  if (getOutliers())
    maps.push_back(loopMap(c, 3, {0, 2}));
  maps.push_back(loopMap(c, 3, {0, 1}));
  return maps;
}

namespace {
/// matmul bias(0) -> matmul
struct DropZeroBias : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getBias() || !matchPattern(op.getBias(), m_AnyZeroFloat()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getBiasMutable().clear(); });
    return success();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<DropZeroBias>(context);
}
