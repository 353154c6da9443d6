//===- ModelOps.cpp - The ops that a model's layers are made of -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelOps.h"

#include "ExpertBlock.h"

#include "runtime/model/RopeFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::kf;

static ActivationKind activationKind(::kf::Activation activation) {
  switch (activation) {
  case ::kf::Activation::Silu:
    return ActivationKind::Silu;
  case ::kf::Activation::Gelu:
    return ActivationKind::Gelu;
  case ::kf::Activation::GeluTanh:
    return ActivationKind::GeluTanh;
  case ::kf::Activation::Relu:
    return ActivationKind::Relu;
  }
  llvm_unreachable("unknown activation");
}

static RopeScalingAttr scalingAttr(MLIRContext *context,
                                   const ::kf::RopeConfig &rope) {
  using Scaling = ::kf::RopeConfig::Scaling;
  if (rope.scaling == Scaling::Linear)
    return RopeScalingAttr::get(context, RopeScalingKind::Linear,
                                APFloat(rope.factor), APFloat(0.0),
                                APFloat(0.0), 0);
  if (rope.scaling == Scaling::Llama3)
    return RopeScalingAttr::get(
        context, RopeScalingKind::Llama3, APFloat(rope.factor),
        APFloat(rope.lowFreqFactor), APFloat(rope.highFreqFactor),
        rope.originalContext);
  return {}; // the others are factors
}

Value ModelOps::summed(Value x) {
  if (config.ranks == 1)
    return x;
  return AllReduceOp::create(b, loc, x, DenseI64ArrayAttr());
}

Value ModelOps::gathered(Value x, int64_t columns) {
  if (config.ranks == 1)
    return x;
  auto rows = cast<RankedTensorType>(x.getType());
  return AllGatherOp::create(b, loc,
                             getRowsOf(rows, {columns}, rows.getElementType()),
                             x, DenseI64ArrayAttr());
}

Value ModelOps::widthNorm(Value x, const Twine &name) {
  if (config.ranks == 1)
    return rmsNorm(x, name);
  assert(!config.zeroCenteredNorms && "no model has both");
  auto type = cast<RankedTensorType>(x.getType());
  RankedTensorType wide = type.clone(b.getF32Type());
  x = widened(x);
  Value squares = arith::MulFOp::create(b, loc, x, x);
  Value mean = ReduceOp::create(b, loc, squares, ReduceKind::Mean,
                                ArrayRef<int64_t>{1}, /*keep_dims=*/true);
  mean = scaled(summed(mean), 1.0 / static_cast<double>(config.ranks));
  auto meanType = cast<RankedTensorType>(mean.getType());
  Value epsilon = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(RankedTensorType::get({1, 1}, b.getF32Type()),
                             static_cast<float>(config.normEps)));
  Value factor = math::RsqrtOp::create(
      b, loc,
      arith::AddFOp::create(b, loc, mean,
                            BroadcastOp::create(b, loc, meanType, epsilon)));
  x = arith::MulFOp::create(b, loc, x,
                            BroadcastOp::create(b, loc, wide, factor));
  x = arith::MulFOp::create(
      b, loc, x, BroadcastOp::create(b, loc, wide, widened(weight(name))));
  return type == wide ? x : arith::TruncFOp::create(b, loc, type, x);
}

Value ModelOps::norm(Value x, const Twine &name) {
  if (config.norm == ::kf::Norm::Rms)
    return rmsNorm(x, name);
  Value scale = weight(name), shift = bias(name);
  return LayerNormOp::create(b, loc, x, scale, shift, eps());
}

Value ModelOps::rmsNorm(Value x, const Twine &name) {
  return rmsNorm(x, weight(name));
}

Value ModelOps::plainNorm(Value x) {
  const int64_t size = cast<RankedTensorType>(x.getType()).getShape().back();
  Value ones = constant(SmallVector<float>(static_cast<size_t>(size), 1.0f));
  return RmsNormOp::create(b, loc, x, ones, eps(), UnitAttr());
}

Value ModelOps::scaleNorm(Value x, Value weight) {
  return RmsNormOp::create(b, loc, x, weight, eps(), UnitAttr());
}

Value ModelOps::rmsNorm(Value x, Value weight) {
  return RmsNormOp::create(b, loc, x, weight, eps(),
                           config.zeroCenteredNorms ? b.getUnitAttr()
                                                    : UnitAttr());
}

FloatAttr ModelOps::eps() {
  return b.getF32FloatAttr(static_cast<float>(config.normEps));
}

Value ModelOps::linear(Value x, const Twine &name) {
  Value w = weight(name), shift = bias(name);
  return MatmulOp::create(b, loc, x, w, shift, ActivationKindAttr(),
                          scales(name));
}

bool ModelOps::isProductAlone(const Twine &name) { return hasScales(name); }

Value ModelOps::rope(Value x, Value positions, const ::kf::RopeConfig &rope) {
  RopeStyle style = rope.interleaved ? RopeStyle::Interleaved : RopeStyle::Half;
  Value factors;
  if (rope.frequencyFactors)
    factors = weight(names.ropeFactors);
  else if (auto table = ::kf::ropeFactors(rope); !table.empty())
    factors = constant(table);
  FloatAttr magnitude;
  const int64_t headDim = cast<RankedTensorType>(x.getType()).getDimSize(2);
  if (rope.magnitude != 1 && rope.dim != headDim)
    magnitude = b.getF64FloatAttr(rope.magnitude);
  return RopeOp::create(
      b, loc, x, positions, factors, b.getF64FloatAttr(rope.theta),
      b.getI64IntegerAttr(rope.dim), RopeStyleAttr::get(b.getContext(), style),
      scalingAttr(b.getContext(), rope), magnitude);
}

FloatAttr ModelOps::attentionScale(const ::kf::LayerConfig &layer,
                                   int64_t headDim) {
  const double magnitude =
      layer.rope && layer.rope->dim == headDim ? layer.rope->magnitude : 1;
  return b.getF32FloatAttr(
      static_cast<float>(config.attentionScale * magnitude * magnitude));
}

Value ModelOps::gatedBy(Value x, Value gate) {
  return rounded(arith::MulFOp::create(b, loc, widened(x),
                                       sigmoid(b, loc, widened(gate))));
}

Value ModelOps::widened(Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  if (type.getElementType().isF32())
    return x;
  return arith::ExtFOp::create(b, loc, type.clone(b.getF32Type()), x);
}

Value ModelOps::rounded(Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  if (activation.isF32())
    return x;
  return arith::TruncFOp::create(b, loc, type.clone(activation), x);
}

Value ModelOps::scaledBy(Value x, Value factor) {
  RankedTensorType wide =
      cast<RankedTensorType>(x.getType()).clone(b.getF32Type());
  Value product = arith::MulFOp::create(
      b, loc, widened(x), BroadcastOp::create(b, loc, wide, widened(factor)));
  return rounded(product);
}

Value ModelOps::scaled(Value x, double factor) {
  if (factor == 1)
    return x;
  auto type = cast<RankedTensorType>(x.getType());
  RankedTensorType wide = type.clone(b.getF32Type());
  auto scalar = RankedTensorType::get({1, 1}, b.getF32Type());
  Value one = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(scalar, static_cast<float>(factor)));
  Value product = arith::MulFOp::create(b, loc, widened(x),
                                        BroadcastOp::create(b, loc, wide, one));
  return type == wide ? product
                      : arith::TruncFOp::create(b, loc, type, product);
}

Value ModelOps::capped(Value x, double cap) {
  if (cap == 0)
    return x;
  return scaled(math::TanhOp::create(b, loc, scaled(x, 1 / cap)), cap);
}

Value ModelOps::constant(ArrayRef<float> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    b.getF32Type());
  return arith::ConstantOp::create(b, loc,
                                   DenseElementsAttr::get(type, values));
}

Value ModelOps::weight(const Twine &name) {
  Value value = weightOf((name + ".weight").str());
  assert(value && "the checkpoint's check covers every weight");
  return value;
}

Value ModelOps::bias(const Twine &name) {
  return weightOf((name + ".bias").str());
}

bool ModelOps::hasScales(const Twine &name) {
  const Checkpoint::Tensor *tensor = checkpoint.find((name + ".weight").str());
  return tensor && !tensor->scales.empty();
}

Value ModelOps::scales(const Twine &name) {
  if (!hasScales(name))
    return {};
  const Checkpoint::Tensor *tensor = checkpoint.find((name + ".weight").str());
  auto type =
      RankedTensorType::get({tensor->type.getDimSize(0)}, b.getF32Type());
  return WeightOp::create(b, loc, type,
                          b.getStrArrayAttr({StringRef(tensor->scales)}),
                          /*stacked=*/UnitAttr(), /*transposed=*/UnitAttr());
}

Value ModelOps::weightOf(StringRef name) {
  const Checkpoint::Tensor *tensor = checkpoint.find(name);
  if (!tensor)
    return {};
  UnitAttr transposed = tensor->transposed ? b.getUnitAttr() : UnitAttr();
  return WeightOp::create(b, loc, tensor->type,
                          b.getStrArrayAttr({StringRef(tensor->name)}),
                          /*stacked=*/UnitAttr(), transposed);
}

Value ModelOps::stack(ArrayRef<SmallVector<std::string>> parts) {
  SmallVector<Attribute> all;
  const Checkpoint::Tensor *one = nullptr;
  for (const SmallVector<std::string> &members : parts)
    for (const std::string &name : members) {
      one = checkpoint.find(name);
      assert(one && "the checkpoint's check covers every weight");
      assert(one->scales.empty() && "stacks have no scales (isFactor)");
      all.push_back(b.getStringAttr(one->name));
    }
  SmallVector<int64_t> shape = {static_cast<int64_t>(parts.size()),
                                static_cast<int64_t>(parts.front().size())};
  llvm::append_range(shape, one->type.getShape());
  return WeightOp::create(
      b, loc, RankedTensorType::get(shape, one->type.getElementType()),
      b.getArrayAttr(all), b.getUnitAttr(),
      one->transposed ? b.getUnitAttr() : UnitAttr());
}

ActivationKindAttr ModelOps::activationAttr() {
  return ActivationKindAttr::get(b.getContext(),
                                 activationKind(config.activation));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static SmallVector<ReassociationIndices> headGroups() { return {{0}, {1, 2}}; }

void ModelOps::setRows(Value argument) {
  rows = tensor::getMixedSize(b, loc, argument, 0);
}

Value ModelOps::inMemory(Value x) {
  return ReduceOp::create(
      b, loc, toHeads(x, 1, cast<RankedTensorType>(x.getType()).getDimSize(1)),
      ReduceKind::Sum, ArrayRef<int64_t>{1}, /*keep_dims=*/false);
}

Value ModelOps::toHeads(Value x, int64_t heads, int64_t dim) {
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  auto type = RankedTensorType::get({rowCount, heads, dim}, element);
  SmallVector<OpFoldResult> shape = {rows, b.getIndexAttr(heads),
                                     b.getIndexAttr(dim)};
  return tensor::ExpandShapeOp::create(b, loc, type, x, headGroups(), shape);
}

Value ModelOps::fromHeads(Value x) {
  auto heads = cast<RankedTensorType>(x.getType());
  auto type = RankedTensorType::get(
      {rowCount, heads.getDimSize(1) * heads.getDimSize(2)},
      heads.getElementType());
  return tensor::CollapseShapeOp::create(b, loc, type, x, headGroups());
}

Value ModelOps::asColumn(Value x) {
  Type element = cast<RankedTensorType>(x.getType()).getElementType();
  SmallVector<ReassociationIndices> groups = {{0, 1}};
  SmallVector<OpFoldResult> shape = {rows, b.getIndexAttr(1)};
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get({rowCount, 1}, element), x, groups, shape);
}

Value ModelOps::columns(Value x, int64_t first, int64_t count) {
  auto whole = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape(whole.getShape());
  shape.front() = rowCount;
  shape.back() = count;
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      strides(shape.size(), b.getIndexAttr(1)), sizes = {rows};
  for (int64_t size : ArrayRef(shape).drop_front())
    sizes.push_back(b.getIndexAttr(size));
  offsets.back() = b.getIndexAttr(first);
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, whole.getElementType()), x, offsets,
      sizes, strides);
}
