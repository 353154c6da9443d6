//===- TensorBuilder.cpp - Builds ops on tensors at one place -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/TensorBuilder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

Value TensorBuilder::reshape(Value x, ArrayRef<int64_t> shape,
                             ArrayRef<ReassociationIndices> groups) {
  RankedTensorType from = typeOf(x);
  auto to =
      RankedTensorType::get(shape, from.getElementType(), from.getEncoding());
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

Value TensorBuilder::insertOnes(Value x, ArrayRef<int64_t> shape,
                                function_ref<bool(int64_t)> added) {
  RankedTensorType from = typeOf(x);
  const auto rank = static_cast<int64_t>(shape.size());
  if (from.getRank() == rank)
    return x;
  if (from.getRank() == 0)
    return broadcast(x, RankedTensorType::get(SmallVector<int64_t>(rank, 1),
                                              from.getElementType()));
  SmallVector<int64_t> to;
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices first; // ones in front go with what follows
  for (int64_t dim = 0; dim < rank; ++dim) {
    const bool isAdded = added(dim);
    to.push_back(isAdded ? 1 : shape[dim]);
    if (isAdded && groups.empty()) {
      first.push_back(dim);
    } else if (isAdded) {
      groups.back().push_back(dim);
    } else {
      groups.push_back(std::exchange(first, {}));
      groups.back().push_back(dim);
    }
  }
  return reshape(x, to, groups);
}

Value TensorBuilder::slice(Value x, int64_t dim, int64_t offset, int64_t count,
                           int64_t stride) {
  RankedTensorType from = typeOf(x);
  SmallVector<OpFoldResult> offsets(from.getRank(), b.getIndexAttr(0)), sizes,
      strides(from.getRank(), b.getIndexAttr(1));
  for (int64_t i = 0; i < from.getRank(); ++i)
    sizes.push_back(tensor::getMixedSize(b, loc, x, i));
  offsets[dim] = b.getIndexAttr(offset);
  sizes[dim] = b.getIndexAttr(count);
  strides[dim] = b.getIndexAttr(stride);
  SmallVector<int64_t> shape(from.getShape());
  shape[dim] = count;
  return tensor::ExtractSliceOp::create(
      b, loc,
      RankedTensorType::get(shape, from.getElementType(), from.getEncoding()),
      x, offsets, sizes, strides);
}

Value TensorBuilder::concat(int64_t dim, ValueRange parts) {
  if (parts.size() == 1)
    return parts[0];
  RankedTensorType first = typeOf(parts[0]);
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = 0;
  for (Value part : parts)
    shape[dim] += typeOf(part).getDimSize(dim);
  auto type =
      RankedTensorType::get(shape, first.getElementType(), first.getEncoding());
  return tensor::ConcatOp::create(b, loc, type, dim, parts);
}

Value TensorBuilder::broadcast(Value x, RankedTensorType shape) {
  auto to = RankedTensorType::get(shape.getShape(), typeOf(x).getElementType(),
                                  shape.getEncoding());
  return b.createOrFold<BroadcastOp>(loc, to, x);
}

Value TensorBuilder::swapLast(Value x) {
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, typeOf(x).getRank()));
  std::swap(order.end()[-1], order.end()[-2]);
  return TransposeOp::create(b, loc, x, order);
}

Value TensorBuilder::widen(Value x) {
  Type element = typeOf(x).getElementType();
  if (!element.isF16() && !element.isBF16())
    return x;
  return arith::ExtFOp::create(b, loc, typeOf(x).clone(b.getF32Type()), x);
}

Value TensorBuilder::narrow(Value x, Type element) {
  if (typeOf(x).getElementType() == element)
    return x;
  return arith::TruncFOp::create(b, loc, typeOf(x).clone(element), x);
}

Value TensorBuilder::constant(RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute each = isa<FloatType>(element)
                       ? Attribute(b.getFloatAttr(element, value))
                       : b.getIntegerAttr(element, static_cast<int64_t>(value));
  if (type.hasStaticShape())
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, each));
  auto one = RankedTensorType::get({1}, element);
  Value number =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(one, each));
  return broadcast(number, type);
}

Value TensorBuilder::reduce(ReduceKind kind, Value x, ArrayRef<int64_t> dims,
                            bool keepDims) {
  return ReduceOp::create(b, loc, x, kind, dims, keepDims);
}

Value TensorBuilder::sumTo(Value x, RankedTensorType shape) {
  const int64_t leading = typeOf(x).getRank() - shape.getRank();
  if (leading > 0)
    x = reduce(ReduceKind::Sum, x,
               llvm::to_vector(llvm::seq<int64_t>(0, leading)),
               /*keepDims=*/false);
  SmallVector<int64_t> repeated;
  for (auto [dim, extent] : llvm::enumerate(shape.getShape()))
    if (extent == 1 && typeOf(x).getDimSize(dim) != 1)
      repeated.push_back(static_cast<int64_t>(dim));
  return repeated.empty() ? x
                          : reduce(ReduceKind::Sum, x, repeated,
                                   /*keepDims=*/true);
}
