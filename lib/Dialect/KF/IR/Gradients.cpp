//===- Gradients.cpp - Derivatives of the ops of kf -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op's derivative in reverse mode (Griewank and Walther, "Evaluating
// Derivatives", 2008), as formulas of ops. dy is the gradient of the result.
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/Gradients.h"

#include "kf/Dialect/KF/IR/Expansions.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <numbers>

using namespace mlir;
using namespace mlir::kf;

static RankedTensorType typeOf(Value value) {
  return TensorBuilder::typeOf(value);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

RankedTensorType mlir::kf::getGradientType(RankedTensorType type) {
  if (type.getElementType().isF64())
    return type;
  return type.clone(Float32Type::get(type.getContext()));
}

void Gradients::add(Value value, Value gradient) {
  assert(wants(value) && "derivatives ask what is wanted");
  assert(gradient.getType() == getGradientType(typeOf(value)) &&
         "gradients have the shapes of their values");
  Value &sum = sums[value];
  sum = sum ? TensorBuilder(builder, gradient.getLoc()).add(sum, gradient)
            : gradient;
}

void Gradients::recompute(function_ref<void()> build) {
  Block *block = builder.getInsertionBlock();
  Block::iterator place = builder.getInsertionPoint();
  Operation *before = place == block->begin() ? nullptr : &*std::prev(place);
  build();
  auto first = before ? std::next(before->getIterator()) : block->begin();
  for (Operation &op : llvm::make_range(first, place))
    if (!isView(&op))
      op.setAttr(kRecomputedAttrName, builder.getUnitAttr());
}

/// Begins to say what has none.
static InFlightDiagnostic hasNone(Operation *op) {
  return op->emitOpError("kf-differentiate: has no derivative for ");
}

//===----------------------------------------------------------------------===//
// embedding
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::buildGradients(Gradients &gradients) {
  if (!gradients.wants(getTable()))
    return success();
  RankedTensorType table = typeOf(getTable());
  if (!table.hasStaticShape() || isa<QuantType>(table.getElementType()))
    return hasNone(*this) << "a table of " << table;
  gradients.add(getTable(), gradients.at(*this).make<ScatterAddOp>(
                                getGradientType(table), getIds(),
                                gradients.get(getResult())));
  return success();
}

//===----------------------------------------------------------------------===//
// matmul, mlp, batch_matmul
//===----------------------------------------------------------------------===//

Value MlpOp::expandForGradients(OpBuilder &builder, bool) {
  TensorBuilder build(builder, getLoc());
  return expandMlp(*this, build);
}

LogicalResult MlpOp::buildGradients(Gradients &) {
  llvm_unreachable("its parts are differentiated");
}

Value MatmulOp::expandForGradients(OpBuilder &builder, bool) {
  if (!getGlu() || !isOfMatrices() || getWeightScales() || getScales() ||
      getWide())
    return {};
  TensorBuilder build(builder, getLoc());
  return expandGlu(*this, build);
}

/// The sum of dy^T x over all batches and rows, [?, ..., N] and [?, ..., K] ->
/// [N, K]: a product for each place behind the `?`, so that none has a weight's
/// size for each batch.
static Value sumOfWgrads(Value dy, Value x, TensorBuilder &build) {
  auto join = [&](Value value) {
    RankedTensorType type = typeOf(value);
    const int64_t rank = type.getRank(), columns = type.getShape().back();
    int64_t places = 1;
    SmallVector<ReassociationIndices> groups = {{0}, {}, {rank - 1}};
    for (int64_t dim = 1; dim + 1 < rank; ++dim) {
      places *= type.getDimSize(dim);
      groups[1].push_back(dim);
    }
    return build.reshape(value, {type.getDimSize(0), places, columns}, groups);
  };
  dy = join(dy);
  x = join(x);
  auto rowsAt = [&](Value value, int64_t place) {
    RankedTensorType type = typeOf(value);
    return build.reshape(build.slice(value, 1, place, 1),
                         {type.getDimSize(0), type.getDimSize(2)},
                         {{0, 1}, {2}});
  };
  Value sum;
  for (int64_t place = 0; place < typeOf(x).getDimSize(1); ++place) {
    Value part = build.make<MatmulWgradOp>(rowsAt(dy, place), rowsAt(x, place));
    sum = sum ? build.add(sum, part) : part;
  }
  return sum;
}

/// Of y = x w^T: dx = dy w, dw = dy^T x.
LogicalResult MatmulOp::buildGradients(Gradients &gradients) {
  Value w = getW();
  RankedTensorType x = typeOf(getX()), weight = typeOf(w);
  const bool isQuantized = isa<QuantType>(weight.getElementType());
  if (getGlu() && isQuantized && isOfMatrices())
    return hasNone(*this)
           << "a gate in one weight of " << weight.getElementType()
           << "; have both sides as names of a stacked kf.weight";
  if (getScales() || getOutliers() || getWide() || getGlu())
    return hasNone(*this) << "rows that are rounded, and gates of batches";
  if (gradients.wants(w) && (isQuantized || getWeightScales()))
    return hasNone(*this) << "a weight of " << weight.getElementType();
  if (gradients.wants(getX()) && isa<Float8E4M3FNType>(weight.getElementType()))
    return hasNone(*this) << "rows of a product with a weight of "
                          << weight.getElementType() << "; have it in bf16";
  TensorBuilder build = gradients.at(*this);
  Value dy = gradients.get(getResult());
  if (getBias() && gradients.wants(getBias()))
    gradients.add(getBias(), build.sumTo(dy, typeOf(getBias())));
  const bool isShared = weight.getRank() == 2;
  if (isShared && (x.getRank() == 2 || x.hasStaticShape())) {
    // All batches are rows of one product.
    SmallVector<ReassociationIndices> groups(2);
    for (int64_t dim = 0; dim + 1 < x.getRank(); ++dim)
      groups[0].push_back(dim);
    groups[1] = {x.getRank() - 1};
    auto rowsOf = [&](Value value) {
      RankedTensorType type = typeOf(value);
      if (type.getRank() == 2)
        return value;
      const int64_t columns = type.getShape().back();
      return build.reshape(value, {type.getNumElements() / columns, columns},
                           groups);
    };
    Value rows = rowsOf(dy);
    if (gradients.wants(getX()))
      gradients.add(getX(), build.reshape(build.make<MatmulDgradOp>(rows, w),
                                          x.getShape(), groups));
    if (gradients.wants(w))
      gradients.add(w, build.make<MatmulWgradOp>(rows, rowsOf(getX())));
    return success();
  }
  if (gradients.wants(getX())) {
    if (isQuantized)
      w = build.make<DequantizeOp>(w);
    SmallVector<int64_t> shape(x.getShape().drop_back(2));
    llvm::append_range(shape, typeOf(w).getShape().take_back(2));
    w = build.broadcast(
        w, RankedTensorType::get(shape, x.getElementType(), getSize(x)));
    gradients.add(getX(), build.make<BatchMatmulOp>(dy, build.swapLast(w)));
  }
  if (gradients.wants(getW()))
    gradients.add(getW(), isShared ? sumOfWgrads(dy, getX(), build)
                                   : build.sumTo(build.make<BatchMatmulOp>(
                                                     build.swapLast(dy),
                                                     build.swapLast(getX())),
                                                 weight));
  return success();
}

LogicalResult BatchMatmulOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  Value dy = gradients.get(getResult());
  if (gradients.wants(getX()))
    gradients.add(getX(),
                  build.make<BatchMatmulOp>(dy, build.swapLast(getW())));
  if (gradients.wants(getW()))
    gradients.add(getW(), build.make<BatchMatmulOp>(build.swapLast(dy),
                                                    build.swapLast(getX())));
  return success();
}

//===----------------------------------------------------------------------===//
// rms_norm, layer_norm, softmax
//===----------------------------------------------------------------------===//

/// 1 / sqrt(mean of squares of each row + eps), in the shape of x.
static Value inverseRoot(Value x, const APFloat &eps, TensorBuilder &build) {
  Value squares = build.reduceRows(ReduceKind::Mean, build.mul(x, x));
  Value root =
      build.make<math::RsqrtOp>(build.add(squares, eps.convertToDouble()));
  return build.broadcast(root, typeOf(x));
}

/// The mean of each row, in the shape of x.
static Value meanOfRows(Value x, TensorBuilder &build) {
  return build.broadcast(build.reduceRows(ReduceKind::Mean, x), typeOf(x));
}

/// With u = x r the normalized rows, y = u w, g = dy w:
/// dx = r (g - u mean(g u)), dw = sum over rows of dy u.
LogicalResult RmsNormOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  Value dy = gradients.get(getResult()), x = build.widen(getX());
  RankedTensorType type = typeOf(x);
  Value inverse = inverseRoot(x, getEps(), build);
  Value normalized = build.mul(x, inverse);
  if (gradients.wants(getX())) {
    Value weight = build.widen(getWeight());
    if (getZeroCentered())
      weight = build.add(weight, 1.0);
    Value g = build.mul(dy, build.broadcast(weight, type));
    Value along =
        build.mul(normalized, meanOfRows(build.mul(g, normalized), build));
    gradients.add(getX(), build.mul(inverse, build.sub(g, along)));
  }
  if (gradients.wants(getWeight()))
    gradients.add(getWeight(),
                  build.sumTo(build.mul(dy, normalized), typeOf(getWeight())));
  return success();
}

/// As for rms_norm, of x less its mean: dx = r (g - mean(g) - u mean(g u)).
LogicalResult LayerNormOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  Value dy = gradients.get(getResult()), x = build.widen(getX());
  RankedTensorType type = typeOf(x);
  if (getBias() && gradients.wants(getBias()))
    gradients.add(getBias(), build.sumTo(dy, typeOf(getBias())));
  if (!gradients.wants(getX()) && !gradients.wants(getWeight()))
    return success();
  Value centered = build.sub(x, meanOfRows(x, build));
  Value inverse = inverseRoot(centered, getEps(), build);
  Value normalized = build.mul(centered, inverse);
  if (gradients.wants(getX())) {
    Value g = build.mul(dy, build.broadcast(build.widen(getWeight()), type));
    Value along =
        build.mul(normalized, meanOfRows(build.mul(g, normalized), build));
    Value rest = build.sub(g, meanOfRows(g, build));
    gradients.add(getX(), build.mul(inverse, build.sub(rest, along)));
  }
  if (gradients.wants(getWeight()))
    gradients.add(getWeight(),
                  build.sumTo(build.mul(dy, normalized), typeOf(getWeight())));
  return success();
}

LogicalResult SoftmaxOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  gradients.add(getX(),
                buildSoftmaxGradient(build.widen(getResult()),
                                     gradients.get(getResult()), build));
  return success();
}

//===----------------------------------------------------------------------===//
// activation
//===----------------------------------------------------------------------===//

/// The derivative of the activation at x; null where it is 1.
static Value slopeOf(ActivationKind kind, Value x, TensorBuilder &build) {
  RankedTensorType type = typeOf(x);
  switch (kind) {
  case ActivationKind::Identity:
    return {};
  case ActivationKind::Relu:
    return build.select(
        build.compare(arith::CmpFPredicate::OGT, x, build.constant(type, 0.0)),
        build.constant(type, 1.0), build.constant(type, 0.0));
  case ActivationKind::Silu: {
    // s (1 + x (1 - s)), s = 1 / (1 + exp(-x))
    Value s =
        build.div(1.0, build.add(build.make<math::ExpOp>(build.neg(x)), 1.0));
    return build.mul(s, build.add(build.mul(x, build.sub(1.0, s)), 1.0));
  }
  case ActivationKind::Gelu: {
    // (1 + erf(x / sqrt 2)) / 2 + x exp(-x^2 / 2) / sqrt(2 pi)
    Value erf = build.make<math::ErfOp>(build.mul(x, 1 / std::numbers::sqrt2));
    Value part = build.mul(build.add(erf, 1.0), 0.5);
    Value power = build.make<math::ExpOp>(build.mul(build.mul(x, x), -0.5));
    const double density = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return build.add(part, build.mul(build.mul(x, power), density));
  }
  case ActivationKind::GeluTanh: {
    // (1 + t) / 2 + x (1 - t^2) u' / 2, t = tanh(u), u = a (x + b x^3)
    const double a = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const double b = 0.044715;
    Value square = build.mul(x, x);
    Value u = build.mul(build.mul(x, build.add(build.mul(square, b), 1.0)), a);
    Value t = build.make<math::TanhOp>(u);
    Value slope = build.mul(build.add(build.mul(square, 3 * b), 1.0), a / 2);
    Value rest =
        build.mul(build.sub(1.0, build.mul(t, t)), build.mul(x, slope));
    return build.add(build.mul(build.add(t, 1.0), 0.5), rest);
  }
  }
  llvm_unreachable("every activation has a derivative");
}

LogicalResult ActivationOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  Value dy = gradients.get(getResult());
  Value slope = slopeOf(getKind(), build.widen(getX()), build);
  gradients.add(getX(), slope ? build.mul(dy, slope) : dy);
  return success();
}

//===----------------------------------------------------------------------===//
// rope, rotary_embedding
//===----------------------------------------------------------------------===//

/// The transpose of a rotation is that by the opposite angle.
LogicalResult RopeOp::buildGradients(Gradients &gradients) {
  if (getFactors() && gradients.wants(getFactors()))
    return hasNone(*this) << "its factors";
  TensorBuilder build = gradients.at(*this);
  Value back = build.make<arith::SubIOp>(
      build.constant(typeOf(getPositions()), 0), getPositions());
  Value dy = gradients.get(getResult());
  gradients.add(getX(),
                build.make<RopeOp>(dy, back, getFactors(), getThetaAttr(),
                                   getRotaryDimAttr(), getStyleAttr(),
                                   getScalingAttr(), getMagnitudeAttr()));
  return success();
}

LogicalResult RotaryEmbeddingOp::buildGradients(Gradients &gradients) {
  if (gradients.wants(getCos()) || gradients.wants(getSin()))
    return hasNone(*this) << "its tables of cosines and sines";
  TensorBuilder build = gradients.at(*this);
  gradients.add(getX(), build.make<RotaryEmbeddingOp>(
                            gradients.get(getResult()), getCos(),
                            build.neg(getSin()), getStyleAttr()));
  return success();
}

//===----------------------------------------------------------------------===//
// scaled_dot_product_attention
//===----------------------------------------------------------------------===//

/// Where what is between the parts is kept, these are differentiated.
Value ScaledDotProductAttentionOp::expandForGradients(OpBuilder &builder,
                                                      bool stores) {
  if (!stores)
    return {};
  TensorBuilder build(builder, getLoc());
  return expandAttention(*this, build);
}

/// Ops of their own, which compute the weights again. A mask that is added to
/// scores has the gradient of these, all of which are in memory then.
LogicalResult
ScaledDotProductAttentionOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  Value dy = gradients.get(getResult());
  if (getMask() && gradients.wants(getMask())) {
    AttentionWeights parts;
    gradients.recompute([&] { parts = buildAttentionWeights(*this, build); });
    gradients.add(
        getMask(),
        build.sumTo(buildScoreGradients(*this, parts, dy, build).added,
                    typeOf(getMask())));
  }
  const bool wantsOthers = gradients.wants(getK()) || gradients.wants(getV());
  if (!gradients.wants(getQ()) && !wantsOthers)
    return success();
  auto ofQueries = AttentionQgradOp::create(
      build.b, getLoc(), getQ(), getK(), getV(), dy, getMask(), getScaleAttr(),
      getSoftcapAttr(), getCausalAttr(), getOffsetAttr(), getWindowAttr());
  if (gradients.wants(getQ()))
    gradients.add(getQ(), ofQueries.getDq());
  if (!wantsOthers)
    return success();
  auto ofKeys = AttentionKvgradOp::create(
      build.b, getLoc(), getQ(), getK(), getV(), dy, ofQueries.getLse(),
      ofQueries.getDelta(), getMask(), getScaleAttr(), getSoftcapAttr(),
      getCausalAttr(), getOffsetAttr(), getWindowAttr());
  if (gradients.wants(getK()))
    gradients.add(getK(), ofKeys.getDk());
  if (gradients.wants(getV()))
    gradients.add(getV(), ofKeys.getDv());
  return success();
}

//===----------------------------------------------------------------------===//
// cross_entropy
//===----------------------------------------------------------------------===//

/// The softmax less 1 at the label, times dy; 0 where the label does not count,
/// whatever the row's logits are.
LogicalResult CrossEntropyOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  Value x;
  LabelPlaces places;
  gradients.recompute([&] {
    x = build.widen(getLogits());
    places = buildLabelPlaces(*this, build);
  });
  RankedTensorType type = typeOf(x);
  auto spread = [&](Value rows) {
    rows = build.insertOnes(rows, {type.getDimSize(0), 1},
                            [](int64_t dim) { return dim == 1; });
    return build.broadcast(rows, type);
  };
  Value softmax = build.make<SoftmaxOp>(x);
  Value slope = build.select(places.isLabel, build.add(softmax, -1.0), softmax);
  Value dx = build.mul(slope, spread(gradients.get(getResult())));
  gradients.add(getLogits(), build.select(spread(places.counts), dx,
                                          build.constant(type, 0.0)));
  return success();
}

//===----------------------------------------------------------------------===//
// transpose, broadcast, copy, reduce
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::buildGradients(Gradients &gradients) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = static_cast<int64_t>(to);
  gradients.add(getX(), gradients.at(*this).make<TransposeOp>(
                            gradients.get(getResult()), inverse));
  return success();
}

LogicalResult BroadcastOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  gradients.add(getX(),
                build.sumTo(gradients.get(getResult()), typeOf(getX())));
  return success();
}

/// The same elements are left out. Which they are is found again.
LogicalResult DropoutOp::buildGradients(Gradients &gradients) {
  Value dx;
  gradients.recompute([&] {
    dx = gradients.at(*this).make<DropoutOp>(gradients.get(getResult()),
                                             getDraw(), getPAttr());
  });
  gradients.add(getX(), dx);
  return success();
}

LogicalResult CopyOp::buildGradients(Gradients &gradients) {
  gradients.add(getX(), gradients.get(getResult()));
  return success();
}

/// How many elements of x make one of the result, as a tensor of rank 0.
static Value countReduced(ReduceOp op, Type element, TensorBuilder &build) {
  RankedTensorType x = typeOf(op.getX());
  int64_t known = 1;
  for (int64_t dim : op.getDims())
    known *= x.isDynamicDim(dim) ? 1 : x.getDimSize(dim);
  const auto number = RankedTensorType::get({}, element);
  Value count = build.constant(number, static_cast<double>(known));
  if (!x.isDynamicDim(0) || !op.isReduced(0))
    return count;
  auto rows =
      RankedTensorType::get({ShapedType::kDynamic}, element, x.getEncoding());
  Value counted = build.reduce(ReduceKind::Sum, build.constant(rows, 1.0), 0,
                               /*keepDims=*/false);
  return build.mul(count, counted);
}

LogicalResult ReduceOp::buildGradients(Gradients &gradients) {
  TensorBuilder build = gradients.at(*this);
  RankedTensorType x = getGradientType(typeOf(getX()));
  auto spread = [&](Value result) {
    if (typeOf(result).getRank() > 0)
      result = build.insertOnes(result, x.getShape(),
                                [&](int64_t dim) { return isReduced(dim); });
    return build.broadcast(result, x);
  };
  Value dy = gradients.get(getResult());
  switch (getKind()) {
  case ReduceKind::Sum:
    gradients.add(getX(), spread(dy));
    return success();
  case ReduceKind::Mean: {
    Value count = countReduced(*this, x.getElementType(), build);
    gradients.add(getX(),
                  spread(build.div(dy, build.broadcast(count, typeOf(dy)))));
    return success();
  }
  case ReduceKind::Max:
  case ReduceKind::Min: {
    // Equal ones share it.
    Value isExtreme =
        build.compare(arith::CmpFPredicate::OEQ, build.widen(getX()),
                      spread(build.widen(getResult())));
    Value chosen =
        build.select(isExtreme, build.constant(x, 1.0), build.constant(x, 0.0));
    Value count =
        build.reduce(ReduceKind::Sum, chosen, getDims(), getKeepDims());
    gradients.add(getX(), build.mul(chosen, spread(build.div(dy, count))));
    return success();
  }
  case ReduceKind::Prod:
    return hasNone(*this) << "products of elements";
  }
  llvm_unreachable("every reduction is handled");
}
