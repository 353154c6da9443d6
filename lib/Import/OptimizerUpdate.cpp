//===- OptimizerUpdate.cpp - What an optimizer makes of gradients ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OptimizerUpdate.h"

#include "kf/Dialect/KF/IR/TensorBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;
using ::kf::OptimizerOptions;
using ::kf::TrainedTensor;

namespace {

class UpdateBuilder {
public:
  UpdateBuilder(MLIRContext &context, const ::kf::TrainingShape &shape,
                ArrayRef<TrainedTensor> trained)
      : b(&context), build(b, NameLoc::get(b.getStringAttr(nameOf(shape)))),
        name(nameOf(shape)), options(shape.optimizer), trained(trained) {}

  OwningOpRef<ModuleOp> buildModule() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(build.loc);
    b.setInsertionPointToEnd(module->getBody());
    const bool isAdam = options.kind == OptimizerOptions::Kind::AdamW;
    SmallVector<Type> inputs = {vector(1), vector(1)};
    if (isAdam)
      inputs.push_back(vector(2));
    const size_t scalars = inputs.size(), count = trained.size();
    SmallVector<Type> tensors;
    for (const TrainedTensor &tensor : trained)
      tensors.push_back(RankedTensorType::get(tensor.shape, b.getF32Type()));
    const auto updated = static_cast<size_t>(1 + options.states());
    for (size_t i = 0; i < 1 + updated; ++i)
      llvm::append_range(inputs, tensors);
    auto func =
        func::FuncOp::create(b, build.loc, name, b.getFunctionType(inputs, {}));
    func->setAttr("kf.max_tokens", b.getI64IntegerAttr(1));
    b.setInsertionPointToStart(func.addEntryBlock());

    auto argument = [&](size_t list, size_t i) -> Value {
      return func.getArgument(
          static_cast<unsigned>(scalars + list * count + i));
    };
    SmallVector<Value> gradients;
    for (size_t i = 0; i < count; ++i)
      gradients.push_back(argument(0, i));
    rate = func.getArgument(0);
    Value norm = limitNorm(gradients, func.getArgument(1));
    if (isAdam)
      correct(func.getArgument(2));
    SmallVector<SmallVector<Value>> lists(updated);
    for (size_t i = 0; i < count; ++i) {
      SmallVector<Value> olds;
      for (size_t list = 1; list <= updated; ++list)
        olds.push_back(argument(list, i));
      const SmallVector<Value> news =
          isAdam ? adamW(gradients[i], olds, decayOf(trained[i]))
                 : sgd(gradients[i], olds, decayOf(trained[i]));
      for (size_t list = 0; list < updated; ++list)
        lists[list].push_back(news[list]);
    }
    SmallVector<Value> results = {norm};
    for (const SmallVector<Value> &list : lists)
      llvm::append_range(results, list);
    func::ReturnOp::create(b, build.loc, results);
    func.setType(b.getFunctionType(inputs, TypeRange(ValueRange(results))));
    for (size_t i = 0; i < updated * count; ++i)
      func.setResultAttr(
          static_cast<unsigned>(1 + i), kUpdatesAttrName,
          b.getI64IntegerAttr(static_cast<int64_t>(scalars + count + i)));
    return module;
  }

private:
  RankedTensorType vector(int64_t size) {
    return RankedTensorType::get({size}, b.getF32Type());
  }

  double decayOf(const TrainedTensor &tensor) const {
    return tensor.decays || options.decaysAll ? options.weightDecay : 0;
  }

  /// `x` [1] in the shape of `like`.
  Value spread(Value x, Value like) {
    return build.broadcast(x, TensorBuilder::typeOf(like));
  }

  /// Of all elements, [1]. Rows are added up first, on all threads.
  Value sumOfSquares(Value x) {
    Value sums = build.mul(x, x);
    while (TensorBuilder::typeOf(sums).getRank() > 1)
      sums = build.reduce(ReduceKind::Sum, sums,
                          {TensorBuilder::typeOf(sums).getRank() - 1},
                          /*keepDims=*/false);
    return build.reduce(ReduceKind::Sum, sums, {0}, /*keepDims=*/true);
  }

  /// Sets what gradients are multiplied by, so that they are those of the mean
  /// and no longer than they may be (Pascanu et al., "On the difficulty of
  /// training recurrent neural networks", 2013): a number below 0 where their
  /// norm is not finite. Returns their norm before that, [].
  Value limitNorm(ArrayRef<Value> gradients, Value share) {
    Value sum;
    for (Value gradient : gradients) {
      Value own = sumOfSquares(gradient);
      sum = sum ? build.add(sum, own) : own;
    }
    Value norm = build.mul(build.make<math::SqrtOp>(sum), share);
    factor = share;
    if (options.clipNorm > 0) {
      Value most = build.constant(vector(1), options.clipNorm);
      Value limit = build.div(most, build.add(norm, 1e-6));
      factor = build.mul(share, build.make<arith::MinimumFOp>(
                                    limit, build.constant(vector(1), 1.0)));
    }
    Value isFinite = build.compare(
        arith::CmpFPredicate::OLT, norm,
        build.constant(vector(1), std::numeric_limits<float>::infinity()));
    factor = build.select(isFinite, factor, build.constant(vector(1), -1.0));
    return build.reduce(ReduceKind::Sum, norm, {0}, /*keepDims=*/false);
  }

  /// `next`, or where gradients have no finite norm `old`, which they would
  /// otherwise have spoilt once and for all.
  Value replaced(Value old, Value next) {
    Value counts =
        build.compare(arith::CmpFPredicate::OGE, spread(factor, old),
                      build.constant(TensorBuilder::typeOf(old), 0.0));
    // Each kernel compares by itself: equal ops would be a mask in memory.
    counts.getDefiningOp()->setAttr(kRecomputedAttrName,
                                    b.getI64IntegerAttr(++comparisons));
    return build.select(counts, next, old);
  }

  /// Takes apart what the moments of step t are divided by.
  void correct(Value step) {
    stepSize = build.mul(rate, build.slice(step, 0, 0, 1));
    rootCorrection = build.make<math::SqrtOp>(build.slice(step, 0, 1, 1));
  }

  /// The gradient that counts. Two kernels compute it, one for each moment:
  /// `again`, it is not the same value, which would be kept in memory.
  Value limited(Value gradient, bool again = false) {
    Value product = build.mul(gradient, spread(factor, gradient));
    if (again)
      product.getDefiningOp()->setAttr(kRecomputedAttrName, b.getUnitAttr());
    return product;
  }

  /// `old` + share * (`next` - old).
  Value mix(Value old, Value next, double share) {
    return build.add(old, build.mul(build.sub(next, old), share));
  }

  /// With g the gradient, of weights and both moments `olds`, unless they stay
  /// as they are:
  ///   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,
  ///   w = (1 - rate decay) w - rate m / c1 / (sqrt(v / c2) + eps).
  SmallVector<Value> adamW(Value gradient, ArrayRef<Value> olds, double decay) {
    Value first =
        replaced(olds[1], mix(olds[1], limited(gradient), 1 - options.beta1));
    Value g = limited(gradient, /*again=*/true);
    Value second = replaced(
        olds[2], build.add(build.mul(olds[2], options.beta2),
                           build.mul(build.mul(g, g), 1 - options.beta2)));
    Value root = build.mul(build.make<math::SqrtOp>(second),
                           spread(rootCorrection, second));
    Value change = build.mul(build.div(first, build.add(root, options.epsilon)),
                             spread(stepSize, first));
    Value w = olds[0];
    if (decay != 0)
      w = build.mul(w, spread(build.sub(1.0, build.mul(rate, decay)), w));
    return {replaced(olds[0], build.sub(w, change)), first, second};
  }

  /// m = momentum m + g + decay w, w = w - rate m, unless they stay.
  SmallVector<Value> sgd(Value gradient, ArrayRef<Value> olds, double decay) {
    Value g = limited(gradient);
    if (decay != 0)
      g = build.add(g, build.mul(olds[0], decay));
    Value first =
        replaced(olds[1], build.add(build.mul(olds[1], options.momentum), g));
    Value w = build.sub(olds[0], build.mul(first, spread(rate, first)));
    return {replaced(olds[0], w), first};
  }

  OpBuilder b;
  TensorBuilder build;
  std::string name;
  const OptimizerOptions &options;
  ArrayRef<TrainedTensor> trained;
  Value rate, factor;             ///< [1]
  Value stepSize, rootCorrection; ///< [1]
  int64_t comparisons = 0;        ///< of factor with 0
};

} // namespace

OwningOpRef<ModuleOp> mlir::kf::buildUpdate(MLIRContext &context,
                                            const ::kf::TrainingShape &shape,
                                            ArrayRef<TrainedTensor> trained) {
  return UpdateBuilder(context, shape, trained).buildModule();
}
