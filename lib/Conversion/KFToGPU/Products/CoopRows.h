//===- CoopRows.h - Rows that cooperative matrices multiply -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_COOPROWS_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_COOPROWS_H

#include "kf/Conversion/KernelShape.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::kf {

/// Where an argument of a kernel has the rows of a product: in its memory as
/// rows of `width` elements, from `column` on.
struct CoopRows {
  BlockArgument argument;
  int64_t width = 0, column = 0;
  SmallVector<OpFoldResult> offsets; ///< of rows, which add up
};

/// Through slices of whole vectors of 16 bytes, of an argument or of a reshape
/// of one, which nothing else reads. Null where that is not so.
inline std::optional<CoopRows> findCoopRows(MatmulOp op) {
  constexpr int64_t vector = CoopShape::vectorColumns;
  CoopRows rows;
  Value source = op.getX();
  Operation *reader = op;
  // Sizes are asked for as well, by what a tiled kernel has outside of its
  // tile.
  auto isForOp = [&] {
    return llvm::none_of(source.getUsers(), [&](Operation *user) {
      return user != reader && !isa<tensor::DimOp>(user) &&
             user->getBlock() == op->getBlock();
    });
  };
  while (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>()) {
    std::optional<int64_t> column =
        getConstantIntValue(slice.getMixedOffsets().back());
    if (!isForOp() || !slice.hasUnitStride() ||
        slice.getSourceType().getRank() != 2 ||
        slice.getType().getRank() != 2 || !column || *column % vector != 0)
      return std::nullopt;
    rows.column += *column;
    rows.offsets.push_back(slice.getMixedOffsets().front());
    reader = slice;
    source = slice.getSource();
  }
  auto type = cast<RankedTensorType>(source.getType());
  rows.width = type.getShape().back();
  if (type.getRank() != 2 || rows.width % vector != 0)
    return std::nullopt;
  if (auto collapse = source.getDefiningOp<tensor::CollapseShapeOp>();
      collapse && isForOp()) {
    reader = collapse;
    source = collapse.getSrc();
  }
  if (auto expand = source.getDefiningOp<tensor::ExpandShapeOp>();
      expand && isForOp()) {
    reader = expand;
    source = expand.getSrc();
  }
  rows.argument = dyn_cast<BlockArgument>(source);
  if (!rows.argument || !isForOp() ||
      !isa<KernelOp>(rows.argument.getOwner()->getParentOp()))
    return std::nullopt;
  return rows;
}

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_COOPROWS_H
