//===- ForeignGradients.cpp - Derivatives of arith, math and tensor -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise ops, each a formula of its operands, its result and the gradient
// of that, and views, whose gradients are views. Where a function has a corner,
// its derivative is that of the side with more, or the mean of both where they
// are equal: 1/2 for each of two equal ones of arith.maximumf, 0 for math.absf
// of 0.
//
//===----------------------------------------------------------------------===//

#include "Elementwise.h"

#include "kf/Dialect/KF/IR/Gradients.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;
using namespace mlir::kf;

static RankedTensorType typeOf(Value value) {
  return TensorBuilder::typeOf(value);
}

namespace {

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

using arith::CmpFPredicate;

/// Has the formulas of ops with one operand, and of others.
class Elementwise {
public:
  Elementwise(Operation *op, Gradients &gradients)
      : op(op), gradients(gradients), build(gradients.at(op)) {}

  LogicalResult add() {
    if (!isElementwise(op)) // of numbers, or with one condition for all
      return op->emitOpError("kf-differentiate: has a derivative for tensors "
                             "alone");
    dy = gradients.get(op->getResult(0));
    if (isConstant() || isOfSeveral())
      return success();
    Value x = operand(0), y = build.widen(op->getResult(0));
    give(0, [&] { return ofOne(x, y); });
    return success();
  }

private:
  Value operand(unsigned number) { return build.widen(op->getOperand(number)); }

  Value constantLike(Value x, double value) {
    return build.constant(typeOf(x), value);
  }

  /// Adds what `gradient` builds to operand `number`, if it is wanted.
  void give(unsigned number, function_ref<Value()> gradient) {
    if (gradients.wants(op->getOperand(number)))
      gradients.add(op->getOperand(number), gradient());
  }

  /// Steps: their derivatives are 0.
  bool isConstant() {
    return isa<math::CeilOp, math::FloorOp, math::RoundOp, math::RoundEvenOp,
               math::TruncOp>(op);
  }

  /// The part of dy that goes to `x` where the larger one of x and y does: 1,
  /// 1/2 where both are equal, or 0.
  Value whereMore(Value x, Value y) {
    Value isMore = build.compare(CmpFPredicate::OGT, x, y);
    Value isEqual = build.compare(CmpFPredicate::OEQ, x, y);
    Value share =
        build.select(isEqual, constantLike(x, 0.5), constantLike(x, 0.0));
    return build.mul(dy, build.select(isMore, constantLike(x, 1.0), share));
  }

  /// Ops with two or three operands.
  bool isOfSeveral() {
    if (op->getNumOperands() == 1)
      return false;
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      Value condition = select.getCondition(), zero = constantLike(dy, 0.0);
      give(1, [&] { return build.select(condition, dy, zero); });
      give(2, [&] { return build.select(condition, zero, dy); });
      return true;
    }
    Value x = operand(0), y = operand(1);
    TypeSwitch<Operation *>(op)
        .Case([&](arith::AddFOp) {
          give(0, [&] { return dy; });
          give(1, [&] { return dy; });
        })
        .Case([&](arith::SubFOp) {
          give(0, [&] { return dy; });
          give(1, [&] { return build.neg(dy); });
        })
        .Case([&](arith::MulFOp) {
          give(0, [&] { return build.mul(dy, y); });
          give(1, [&] { return build.mul(dy, x); });
        })
        .Case([&](arith::DivFOp) {
          give(0, [&] { return build.div(dy, y); });
          give(1, [&] {
            Value result = build.widen(op->getResult(0));
            return build.neg(build.div(build.mul(dy, result), y));
          });
        })
        .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
          give(0, [&] { return whereMore(x, y); });
          give(1, [&] { return whereMore(y, x); });
        })
        .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
          give(0, [&] { return whereMore(y, x); });
          give(1, [&] { return whereMore(x, y); });
        })
        .Case([&](math::PowFOp) { ofPower(x, y); })
        .Case([&](math::Atan2Op) {
          // x is the first operand, the ordinate.
          Value length = build.add(build.mul(x, x), build.mul(y, y));
          Value each = build.div(dy, length);
          give(0, [&] { return build.mul(each, y); });
          give(1, [&] { return build.neg(build.mul(each, x)); });
        })
        .Case([&](math::FmaOp) {
          give(0, [&] { return build.mul(dy, y); });
          give(1, [&] { return build.mul(dy, x); });
          give(2, [&] { return dy; });
        })
        .Default([](Operation *) {
          llvm_unreachable("ops with the interface have a formula");
        });
    return true;
  }

  void ofPower(Value x, Value y) {
    // To the power of 0, all are 1, 0 included.
    give(0, [&] {
      Value less = build.add(y, -1.0);
      Value slope = build.mul(y, build.make<math::PowFOp>(x, less));
      Value zero = constantLike(y, 0.0);
      Value isZero = build.compare(CmpFPredicate::OEQ, y, zero);
      return build.mul(dy, build.select(isZero, zero, slope));
    });
    // Of a power of 0, the exponent makes no difference.
    give(1, [&] {
      Value power = build.widen(op->getResult(0));
      Value slope = build.mul(power, build.make<math::LogOp>(x));
      Value zero = constantLike(x, 0.0);
      Value isZero = build.compare(CmpFPredicate::OEQ, x, zero);
      return build.mul(dy, build.select(isZero, zero, slope));
    });
  }

  /// dy times the derivative at x, where the result is y.
  Value ofOne(Value x, Value y) {
    auto square = [&](Value v) { return build.mul(v, v); };
    auto root = [&](Value v) { return build.make<math::SqrtOp>(v); };
    auto times = [&](Value slope) { return build.mul(dy, slope); };
    auto over = [&](Value by) { return build.div(dy, by); };
    constexpr double ln2 = std::numbers::ln2, ln10 = std::numbers::ln10;
    // exp(-x^2) 2 / sqrt(pi)
    auto bell = [&] {
      Value power = build.make<math::ExpOp>(build.neg(square(x)));
      return build.mul(power, 2 * std::numbers::inv_sqrtpi);
    };
    return TypeSwitch<Operation *, Value>(op)
        .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
          return convert(dy, getGradientType(typeOf(op->getOperand(0))));
        })
        .Case([&](arith::NegFOp) { return build.neg(dy); })
        .Case([&](math::AbsFOp) {
          Value zero = constantLike(x, 0.0);
          Value isLess = build.compare(CmpFPredicate::OLT, x, zero);
          Value isMore = build.compare(CmpFPredicate::OGT, x, zero);
          return build.select(isMore, dy,
                              build.select(isLess, build.neg(dy), zero));
        })
        .Case([&](math::SqrtOp) { return over(build.mul(y, 2.0)); })
        .Case([&](math::RsqrtOp) {
          return times(build.mul(build.mul(square(y), y), -0.5));
        })
        .Case([&](math::CbrtOp) { return over(build.mul(square(y), 3.0)); })
        .Case([&](math::ExpOp) { return times(y); })
        .Case([&](math::Exp2Op) { return times(build.mul(y, ln2)); })
        .Case([&](math::ExpM1Op) { return times(build.add(y, 1.0)); })
        .Case([&](math::LogOp) { return over(x); })
        .Case([&](math::Log2Op) { return over(build.mul(x, ln2)); })
        .Case([&](math::Log10Op) { return over(build.mul(x, ln10)); })
        .Case([&](math::Log1pOp) { return over(build.add(x, 1.0)); })
        .Case([&](math::ErfOp) { return times(bell()); })
        .Case([&](math::ErfcOp) { return build.neg(times(bell())); })
        .Case([&](math::SinOp) { return times(build.make<math::CosOp>(x)); })
        .Case([&](math::CosOp) {
          return build.neg(times(build.make<math::SinOp>(x)));
        })
        .Case([&](math::TanOp) { return times(build.add(square(y), 1.0)); })
        .Case(
            [&](math::AsinOp) { return over(root(build.sub(1.0, square(x)))); })
        .Case([&](math::AcosOp) {
          return build.neg(over(root(build.sub(1.0, square(x)))));
        })
        .Case([&](math::AtanOp) { return over(build.add(square(x), 1.0)); })
        .Case([&](math::SinhOp) { return times(build.make<math::CoshOp>(x)); })
        .Case([&](math::CoshOp) { return times(build.make<math::SinhOp>(x)); })
        .Case([&](math::TanhOp) { return times(build.sub(1.0, square(y))); })
        .Case([&](math::AsinhOp) {
          return over(root(build.add(square(x), 1.0)));
        })
        .Case([&](math::AcoshOp) {
          return over(root(build.add(square(x), -1.0)));
        })
        .Case([&](math::AtanhOp) { return over(build.sub(1.0, square(x))); })
        .Default([](Operation *) -> Value {
          llvm_unreachable("ops with the interface have a formula");
        });
  }

  /// Between f32 and f64.
  Value convert(Value gradient, RankedTensorType to) {
    if (gradient.getType() == to)
      return gradient;
    if (to.getElementType().isF64())
      return build.make<arith::ExtFOp>(to, gradient);
    return build.make<arith::TruncFOp>(to, gradient);
  }

  Operation *op;
  Gradients &gradients;
  TensorBuilder build;
  Value dy;
};

using DifferentiableOps =
    OpList<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
           arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
           arith::MinNumFOp, arith::NegFOp, arith::SelectOp, arith::ExtFOp,
           arith::TruncFOp, math::AbsFOp, math::CeilOp, math::FloorOp,
           math::RoundOp, math::RoundEvenOp, math::TruncOp, math::SqrtOp,
           math::RsqrtOp, math::CbrtOp, math::ExpOp, math::Exp2Op,
           math::ExpM1Op, math::LogOp, math::Log2Op, math::Log10Op,
           math::Log1pOp, math::PowFOp, math::ErfOp, math::ErfcOp, math::SinOp,
           math::CosOp, math::TanOp, math::AsinOp, math::AcosOp, math::AtanOp,
           math::Atan2Op, math::SinhOp, math::CoshOp, math::TanhOp,
           math::AsinhOp, math::AcoshOp, math::AtanhOp, math::FmaOp>;

template <typename OpTy>
struct ElementwiseGradient
    : DifferentiableOpInterface::ExternalModel<ElementwiseGradient<OpTy>,
                                               OpTy> {
  LogicalResult buildGradients(Operation *op, Gradients &gradients) const {
    return Elementwise(op, gradients).add();
  }
};

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

/// A view that shows every element once, in another shape.
template <typename OpTy>
struct ReshapeGradient
    : DifferentiableOpInterface::ExternalModel<ReshapeGradient<OpTy>, OpTy> {
  LogicalResult buildGradients(Operation *op, Gradients &gradients) const {
    auto reshape = cast<OpTy>(op);
    gradients.add(reshape.getSrc(),
                  gradients.at(op).reshape(gradients.get(op->getResult(0)),
                                           reshape.getSrcType().getShape(),
                                           reshape.getReassociationIndices()));
    return success();
  }
};

struct ConcatGradient
    : DifferentiableOpInterface::ExternalModel<ConcatGradient,
                                               tensor::ConcatOp> {
  LogicalResult buildGradients(Operation *op, Gradients &gradients) const {
    auto concat = cast<tensor::ConcatOp>(op);
    const auto dim = static_cast<int64_t>(concat.getDim());
    if (concat.getType().isDynamicDim(dim))
      return op->emitOpError("kf-differentiate: has no derivative for tensors "
                             "joined along a `?`");
    TensorBuilder build = gradients.at(op);
    int64_t offset = 0;
    for (Value part : concat.getInputs()) {
      const int64_t extent = typeOf(part).getDimSize(dim);
      if (gradients.wants(part))
        gradients.add(part, build.slice(gradients.get(op->getResult(0)), dim,
                                        offset, extent));
      offset += extent;
    }
    return success();
  }
};

/// Zeros around what is shown, and between its elements.
struct SliceGradient
    : DifferentiableOpInterface::ExternalModel<SliceGradient,
                                               tensor::ExtractSliceOp> {
  LogicalResult buildGradients(Operation *op, Gradients &gradients) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    TensorBuilder build = gradients.at(op);
    RankedTensorType source = slice.getSourceType();
    const llvm::SmallBitVector dropped = slice.getDroppedDims();
    SmallVector<int64_t> shape;
    for (int64_t dim = 0, kept = 0; dim < source.getRank(); ++dim)
      shape.push_back(dropped.test(dim) ? 1
                                        : slice.getType().getDimSize(kept++));
    Value gradient =
        build.insertOnes(gradients.get(op->getResult(0)), shape,
                         [&](int64_t dim) { return dropped.test(dim); });
    for (int64_t dim = 0; dim < source.getRank(); ++dim) {
      const std::optional<int64_t> offset =
          getConstantIntValue(slice.getMixedOffsets()[dim]);
      const std::optional<int64_t> stride =
          getConstantIntValue(slice.getMixedStrides()[dim]);
      const bool isWhole =
          shape[dim] == source.getDimSize(dim) && offset == 0 && stride == 1 &&
          (dim > 0 || getSize(source) == getSize(slice.getType()));
      if (isWhole)
        continue;
      if (stride && *stride < 1)
        return op->emitOpError("kf-differentiate: has no derivative for a "
                               "stride below 1, found ")
               << *stride;
      if (!offset || !stride || ShapedType::isDynamic(shape[dim]) ||
          source.isDynamicDim(dim))
        return op->emitOpError("kf-differentiate: has no derivative for some "
                               "rows of a `?`, or slices at places that are "
                               "not constant");
      gradient =
          place(gradient, dim, *offset, *stride, source.getDimSize(dim), build);
    }
    gradients.add(slice.getSource(), gradient);
    return success();
  }

private:
  /// `x` with its elements along `dim` at `offset` and `stride` of `extent`,
  /// zeros elsewhere.
  static Value place(Value x, int64_t dim, int64_t offset, int64_t stride,
                     int64_t extent, TensorBuilder &build) {
    RankedTensorType type = typeOf(x);
    auto zeros = [&](ArrayRef<int64_t> shape) {
      return build.constant(RankedTensorType::get(shape, type.getElementType(),
                                                  type.getEncoding()),
                            0.0);
    };
    SmallVector<int64_t> shape(type.getShape());
    if (stride > 1 && shape[dim] > 1) {
      SmallVector<ReassociationIndices> groups;
      for (int64_t i = 0; i < type.getRank(); ++i)
        groups.push_back(i == dim ? ReassociationIndices{i, i + 1}
                                  : ReassociationIndices{i > dim ? i + 1 : i});
      SmallVector<int64_t> apart(shape), gaps;
      apart.insert(apart.begin() + dim + 1, 1);
      gaps = apart;
      gaps[dim + 1] = stride - 1;
      x = build.concat(dim + 1, {build.reshape(x, apart, groups), zeros(gaps)});
      shape[dim] *= stride;
      x = build.reshape(x, shape, groups);
    }
    if (const int64_t room = extent - offset; shape[dim] > room) {
      x = build.slice(x, dim, 0, room); // zeros behind the last
      shape[dim] = room;
    }
    SmallVector<Value> parts;
    auto addZeros = [&](int64_t count) {
      SmallVector<int64_t> of(shape);
      of[dim] = count;
      if (count > 0)
        parts.push_back(zeros(of));
    };
    addZeros(offset);
    parts.push_back(x);
    addZeros(extent - offset - shape[dim]);
    return build.concat(dim, parts);
  }
};

template <typename... OpTys>
void attachToAll(OpList<OpTys...>, MLIRContext *context) {
  (OpTys::template attachInterface<ElementwiseGradient<OpTys>>(*context), ...);
}

} // namespace

void mlir::kf::registerDifferentiableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *context, arith::ArithDialect *, math::MathDialect *) {
        attachToAll(DifferentiableOps(), context);
      });
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    tensor::ExpandShapeOp::attachInterface<
        ReshapeGradient<tensor::ExpandShapeOp>>(*context);
    tensor::CollapseShapeOp::attachInterface<
        ReshapeGradient<tensor::CollapseShapeOp>>(*context);
    tensor::ConcatOp::attachInterface<ConcatGradient>(*context);
    tensor::ExtractSliceOp::attachInterface<SliceGradient>(*context);
  });
}
