//===- FuseProjections.cpp - Join matmuls that read the same rows ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoredWeights.h"

#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

namespace mlir::kf {
#define GEN_PASS_DEF_FUSEPROJECTIONS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

#define DEBUG_TYPE "kf-fuse-projections"

namespace {

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether `op` multiplies rows as they are: not batches of them, which become
/// rows before, nor codes, which targets make of them after, nor in a type that
/// somebody has chosen for this product.
bool isOfPlainRows(MatmulOp op) {
  return op.isOfMatrices() && !op.getScales() && !op.getWide() &&
         !op.getRowsAttr();
}

/// Whether weights can be joined at load: all `kf.weight`, unstacked, of one
/// element type, stored the same way; to be stacked, of one tensor each.
bool areJoinable(ArrayRef<Value> weights, bool stacked) {
  auto first = weights.front().getDefiningOp<WeightOp>();
  return llvm::all_of(weights, [&](Value value) {
    auto weight = value.getDefiningOp<WeightOp>();
    return first && weight && !weight.getStacked() &&
           (!stacked || weight.getNames().size() == 1) &&
           weight.getTransposed() == first.getTransposed() &&
           !isPacked(weight.getType()) &&
           tensorType(weight).getElementType() ==
               tensorType(first).getElementType();
  });
}

/// Whether somebody reads the weight from its other side, as gradients of rows
/// do, on a target that keeps packed weights of 16 bits beside stored ones:
/// products that read it as it is stored need no copy of it.
bool isReadFromBothSides(Value weight) {
  auto target = weight.getDefiningOp()
                    ->getParentOfType<ModuleOp>()
                    ->getAttrOfType<TargetAttrInterface>(kTargetAttrName);
  return target && canReadAsStored(target, tensorType(weight)) &&
         llvm::any_of(weight.getUsers(),
                      [](Operation *user) { return isa<TransposeOp>(user); });
}

/// Why products stay apart.
constexpr StringLiteral weightsApart =
    "their weights are not loaded alike: as kf.weight of one type, without a "
    "layout";
constexpr StringLiteral bothSides =
    "their weights are read from the other side, too, as they are stored";
constexpr StringLiteral othersApart =
    "their biases or scales are not loaded alike, or some have none";

/// One weight with the names of `parts`, concatenated along dimension 0 or
/// stacked in a new leading dimension.
Value joinWeights(OpBuilder &builder, Location loc, ArrayRef<Value> parts,
                  bool stacked) {
  SmallVector<Attribute> names;
  int64_t rows = 0;
  for (Value part : parts) {
    llvm::append_range(names, part.getDefiningOp<WeightOp>().getNames());
    rows += tensorType(part).getDimSize(0);
  }
  RankedTensorType type = tensorType(parts.front());
  SmallVector<int64_t> shape(type.getShape());
  if (stacked)
    shape.insert(shape.begin(), parts.size());
  else
    shape[0] = rows;
  UnitAttr transposed =
      parts.front().getDefiningOp<WeightOp>().getTransposedAttr();
  return WeightOp::create(
      builder, loc, type.clone(shape), builder.getArrayAttr(names),
      stacked ? builder.getUnitAttr() : UnitAttr(), transposed);
}

/// The biases or the scales of `parts`, as `get` says: none, or one of each;
/// fails where they cannot be joined.
FailureOr<SmallVector<Value>> findOthers(ArrayRef<MatmulOp> parts, bool stacked,
                                         function_ref<Value(MatmulOp)> get) {
  SmallVector<Value> others;
  for (MatmulOp part : parts)
    if (get(part))
      others.push_back(get(part));
  if (!others.empty() &&
      (others.size() != parts.size() || !areJoinable(others, stacked)))
    return failure();
  return others;
}

/// The product of `parts`, whose weights can be joined; null where their biases
/// or scales cannot.
Value joinProducts(OpBuilder &builder, Location loc, ArrayRef<MatmulOp> parts,
                   bool stacked, ActivationKindAttr glu) {
  auto biasOf = [](MatmulOp op) -> Value { return op.getBias(); };
  auto scalesOf = [](MatmulOp op) -> Value { return op.getWeightScales(); };
  auto biases = findOthers(parts, stacked, biasOf);
  auto scales = findOthers(parts, stacked, scalesOf);
  if (failed(biases) || failed(scales))
    return Value();
  SmallVector<Value> weights;
  for (MatmulOp part : parts)
    weights.push_back(part.getW());
  auto join = [&](ArrayRef<Value> values) {
    return values.empty() ? Value()
                          : joinWeights(builder, loc, values, stacked);
  };
  Value bias = join(*biases), scale = join(*scales), weight = join(weights);
  MatmulOp first = parts.front();
  return MatmulOp::create(builder, loc, first.getX(), weight, bias, glu, scale);
}

struct FuseProjectionsPass
    : mlir::kf::impl::FuseProjectionsBase<FuseProjectionsPass> {
  using FuseProjectionsBase::FuseProjectionsBase;

  void runOnOperation() override {
    SmallVector<arith::MulFOp> products;
    getOperation().walk([&](arith::MulFOp op) { products.push_back(op); });
    for (arith::MulFOp op : products)
      if (std::optional<GatedProduct> gated = matchGated(op)) {
        Location loc = op.getLoc();
        report(loc, "gate and up", joinGateAndUp(op, *gated));
      }

    llvm::MapVector<std::tuple<Block *, Value, Type>, SmallVector<MatmulOp>>
        byRows;
    getOperation().walk([&](MatmulOp op) {
      if (isOfPlainRows(op) && !op.getGlu() &&
          op.getW().getDefiningOp<WeightOp>())
        byRows[{op->getBlock(), op.getX(),
                tensorType(op.getW()).getElementType()}]
            .push_back(op);
    });
    for (auto &[rows, group] : byRows)
      if (group.size() > 1) {
        Location loc = group.front().getLoc();
        report(loc, "products of the same rows", concatenate(group));
      }

    auto module = getOperation()->getParentOfType<ModuleOp>();
    auto target = module->getAttrOfType<TargetAttrInterface>(kTargetAttrName);
    if (!target || !target.getFusionRules().sumsIntoExperts)
      return;
    SmallVector<arith::AddFOp> sums;
    getOperation().walk([&](arith::AddFOp op) { sums.push_back(op); });
    for (arith::AddFOp op : sums)
      addToAdapter(op);
    products.clear();
    getOperation().walk([&](arith::MulFOp op) { products.push_back(op); });
    for (arith::MulFOp op : products)
      sinkViews(op);
  }

private:
  /// mulf(act(matmul x, gate), matmul x, up), whose parts nobody else reads.
  struct GatedProduct {
    ActivationOp activation;
    MatmulOp gate, up;
  };

  static std::optional<GatedProduct> matchGated(arith::MulFOp product) {
    GatedProduct parts;
    parts.activation = product.getLhs().getDefiningOp<ActivationOp>();
    parts.up = product.getRhs().getDefiningOp<MatmulOp>();
    if (!parts.activation || !parts.up) {
      parts.activation = product.getRhs().getDefiningOp<ActivationOp>();
      parts.up = product.getLhs().getDefiningOp<MatmulOp>();
    }
    if (!parts.activation || !parts.up || !parts.activation->hasOneUse() ||
        !parts.up->hasOneUse())
      return std::nullopt;
    parts.gate = parts.activation.getX().getDefiningOp<MatmulOp>();
    if (!parts.gate || !parts.gate->hasOneUse() ||
        parts.gate.getX() != parts.up.getX())
      return std::nullopt;
    return parts;
  }

  /// The [T, 1, N] that nobody but `value` shows as [T, N]; null: it is none.
  static Value findRowsOfOne(Value value) {
    auto view = value.getDefiningOp<tensor::CollapseShapeOp>();
    if (!view || !view->hasOneUse() || !view.getSrc().hasOneUse() ||
        view.getResultType().getRank() != 2)
      return Value();
    const RankedTensorType type = view.getSrcType();
    return type.getRank() == 3 && type.getDimSize(1) == 1 ? view.getSrc()
                                                          : Value();
  }

  /// A part of a joined product, whose slices have no epilogue, plus the view
  /// of what adapters make -> the view of their sum, which is the epilogue of
  /// the adapters' product.
  static void addToAdapter(arith::AddFOp sum) {
    auto slice = sum.getLhs().getDefiningOp<tensor::ExtractSliceOp>();
    Value added = findRowsOfOne(sum.getRhs());
    if (!slice || !slice.getSource().getDefiningOp<MatmulOp>() || !added ||
        !added.getDefiningOp<ExpertMatmulOp>())
      return;
    OpBuilder builder(sum);
    Location loc = sum.getLoc();
    auto view = sum.getRhs().getDefiningOp<tensor::CollapseShapeOp>();
    const SmallVector<ReassociationIndices> groups =
        view.getReassociationIndices();
    SmallVector<OpFoldResult> shape =
        tensor::getMixedSizes(builder, loc, slice.getResult());
    shape.insert(shape.begin() + 1, builder.getIndexAttr(1));
    Value part = tensor::ExpandShapeOp::create(builder, loc, added.getType(),
                                               slice, groups, shape);
    Value whole = arith::AddFOp::create(builder, loc, part, added);
    sum.replaceAllUsesWith(tensor::CollapseShapeOp::create(
                               builder, loc, sum.getType(), whole, groups)
                               .getResult());
    sum.erase();
    view.erase();
  }

  /// act(view of gate) * view of up -> view of act(gate) * up, where both are
  /// what adapters add to: so it is the epilogue of the last product of theirs,
  /// which no op behind a view is.
  static void sinkViews(arith::MulFOp product) {
    auto activation = product.getLhs().getDefiningOp<ActivationOp>();
    Value other = product.getRhs();
    if (!activation) {
      activation = product.getRhs().getDefiningOp<ActivationOp>();
      other = product.getLhs();
    }
    if (!activation || !activation->hasOneUse())
      return;
    Value gate = findRowsOfOne(activation.getX()), up = findRowsOfOne(other);
    if (!gate || !up)
      return;
    OpBuilder builder(product);
    Location loc = product.getLoc();
    auto view = activation.getX().getDefiningOp<tensor::CollapseShapeOp>();
    Value active =
        ActivationOp::create(builder, loc, gate, activation.getKind());
    Value whole = arith::MulFOp::create(builder, loc, active, up);
    product.replaceAllUsesWith(
        tensor::CollapseShapeOp::create(builder, loc, product.getType(), whole,
                                        view.getReassociationIndices())
            .getResult());
    Operation *views[] = {view, other.getDefiningOp()};
    product.erase();
    activation.erase();
    for (Operation *op : views)
      op->erase();
  }

  /// Says what was joined; `reason` is why it was not.
  void report(Location loc, StringRef what, StringRef reason) {
    auto options = remark::RemarkOpts::name("Projections")
                       .category(DEBUG_TYPE)
                       .function(getOperation().getSymName());
    if (reason.empty()) {
      LDBG() << what << " become one product at " << loc;
      remark::passed(loc, options) << remark::add("{0} joined", what);
      return;
    }
    LDBG() << what << " stay apart at " << loc << ": " << reason;
    remark::missed(loc, options)
        << remark::add("{0} apart", what) << remark::reason("{0}", reason);
  }

  /// A gated product -> matmul x, [gate, up] glu(act). Returns why not, or
  /// nothing.
  StringRef joinGateAndUp(arith::MulFOp product, GatedProduct parts) {
    auto [activation, gate, up] = parts;
    if (!isOfPlainRows(gate) || !isOfPlainRows(up) || gate.getGlu() ||
        up.getGlu())
      return "they are no products of plain rows";
    if (gate.getW().getType() != up.getW().getType() ||
        !areJoinable({gate.getW(), up.getW()}, /*stacked=*/true))
      return weightsApart;
    if (isReadFromBothSides(gate.getW()) || isReadFromBothSides(up.getW()))
      return bothSides;

    OpBuilder builder(product);
    Value fused = joinProducts(builder, product.getLoc(), {gate, up},
                               /*stacked=*/true, activation.getKindAttr());
    if (!fused)
      return othersApart;
    product.replaceAllUsesWith(fused);
    eraseDead({product, activation, gate, up});
    return "";
  }

  /// Products of one x -> slices of one product with the joined weight. Returns
  /// why not, or nothing.
  StringRef concatenate(ArrayRef<MatmulOp> group) {
    SmallVector<Value> weights;
    for (MatmulOp op : group)
      weights.push_back(op.getW());
    if (!areJoinable(weights, /*stacked=*/false))
      return weightsApart;
    if (llvm::any_of(weights, isReadFromBothSides))
      return bothSides;
    MatmulOp first = group.front();
    OpBuilder builder(first);
    Location loc = first.getLoc();
    Value joined = joinProducts(builder, loc, group, /*stacked=*/false,
                                ActivationKindAttr());
    if (!joined)
      return othersApart;
    OpFoldResult rows = tensor::getMixedSize(builder, loc, joined, 0);
    OpFoldResult one = builder.getIndexAttr(1), zero = builder.getIndexAttr(0);
    int64_t column = 0;
    for (MatmulOp op : group) {
      int64_t columns = tensorType(op).getDimSize(1);
      Value slice = tensor::ExtractSliceOp::create(
          builder, loc, joined,
          ArrayRef<OpFoldResult>{zero, builder.getIndexAttr(column)},
          ArrayRef<OpFoldResult>{rows, builder.getIndexAttr(columns)},
          ArrayRef<OpFoldResult>{one, one});
      column += columns;
      op.replaceAllUsesWith(slice);
    }
    for (MatmulOp op : group)
      eraseDead({op});
    return "";
  }

  void eraseDead(ArrayRef<Operation *> ops) {
    for (Operation *op : ops)
      op->erase();
  }
};

} // namespace
