//===- SetLayouts.cpp - Layouts of weights and KV caches ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoredWeights.h"

#include "kf/Dialect/KF/IR/Machine.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

namespace mlir::kf {
#define GEN_PASS_DEF_SETLAYOUTS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

#define DEBUG_TYPE "kf-set-layouts"

bool mlir::kf::canReadAsStored(TargetAttrInterface target,
                               RankedTensorType weight) {
  return isa<Float16Type, BFloat16Type>(weight.getElementType()) &&
         isa_and_nonnull<FragmentsAttr>(target.getWeightLayout(weight)) &&
         target.getMachine().has(MatrixUnit::MmaSync);
}

namespace {

/// The first matmul of `kernel`; null if there is none.
ProductOpInterface findMatmul(KernelOp kernel) {
  auto matmuls = kernel.getBody().getOps<ProductOpInterface>();
  return matmuls.empty() ? ProductOpInterface() : *matmuls.begin();
}

/// The views through which a kernel reads `value`, in order, and the arguments
/// that they read; nothing where something else computes it.
struct ViewChain {
  SetVector<Operation *> ops;
  SetVector<BlockArgument> arguments;

  static std::optional<ViewChain> of(Value value) {
    ViewChain chain;
    SmallVector<Value> open = {value};
    while (!open.empty()) {
      Value next = open.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(next)) {
        chain.arguments.insert(argument);
        continue;
      }
      Operation *op = next.getDefiningOp();
      if (!isView(op) && !isa<tensor::CastOp>(op))
        return std::nullopt;
      if (chain.ops.insert(op))
        llvm::append_range(open, op->getOperands());
    }
    SmallVector<Operation *> ops = chain.ops.takeVector();
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    chain.ops.insert_range(ops);
    return chain;
  }
};

struct SetLayoutsPass : mlir::kf::impl::SetLayoutsBase<SetLayoutsPass> {
  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (target.isInterpreted())
      return;
    if (failed(setCacheLayouts(target)))
      return signalPassFailure();
    const DenseSet<Attribute> turned = findTurnedWeights(target);
    DenseMap<StringAttr, PackedArgument> packed; // by kernel
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      ProductOpInterface matmul = findMatmul(kernel);
      if (!matmul || tensorType(matmul.getW()).getEncoding()) {
        LDBG() << kernel.getSymName() << ": "
               << (matmul ? "its weight has a layout"
                          : "no weight of a matmul");
        continue;
      }
      bool isArgument = isa<BlockArgument>(matmul.getW());
      if (!isArgument && failed(checkViewed(matmul)))
        return signalPassFailure();
      Attribute layout = target.getWeightLayout(tensorType(matmul.getW()));
      if (isa_and_nonnull<FragmentsAttr>(layout) &&
          (!isLoaded(kernel, matmul) || isStored(kernel, matmul, turned)))
        layout = {};
      LDBG() << kernel.getSymName() << ": " << tensorType(matmul.getW())
             << " as " << (layout ? debugString(layout) : "it is stored");
      remark::passed(kernel.getLoc(), remark::RemarkOpts::name("Layout")
                                          .category(DEBUG_TYPE)
                                          .function(kernel.getSymName()))
          << remark::add("{0} weight", layout ? "packed" : "plain")
          << remark::metric("Layout", layout ? debugString(layout) : "none");
      if (layout && isArgument)
        packed[kernel.getSymNameAttr()] = packArgument(kernel, matmul, layout);
      else if (layout)
        packView(kernel, matmul, layout);
    }
    WalkResult result = getOperation().walk([&](DispatchOp dispatch) {
      return WalkResult(pack(dispatch, packed));
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult setCacheLayouts(TargetAttrInterface target) {
    KVCacheType unfit;
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](KVCacheType type) -> Type {
      KVCacheType layout = target.getCacheLayout(type);
      if (!layout)
        unfit = type;
      LDBG() << "cache " << type << " as " << layout;
      return layout ? layout : type;
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    if (!unfit)
      return success();
    return getOperation().emitError("kf-set-layouts: pages of ")
           << unfit.getPage() << " positions cannot be laid out for " << target
           << "; page must be a multiple of its vector's lanes";
  }

  /// Where a dispatch takes the weight from, and where its kernel wants it
  /// packed: behind the others if the kernel reads the weight as it is, too.
  struct PackedArgument {
    unsigned source, target;
  };

  static RankedTensorType tensorType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  /// Whether every weight of `matmul` is one that is packed at load.
  bool isLoaded(KernelOp kernel, ProductOpInterface matmul) {
    auto argument = dyn_cast<BlockArgument>(matmul.getW());
    if (!argument)
      return false;
    WalkResult walk = getOperation().walk([&](DispatchOp dispatch) {
      bool isOther =
          dispatch.getKernelAttr().getAttr() != kernel.getSymNameAttr();
      return WalkResult(
          success(isOther || dispatch.getOperands_()[argument.getArgNumber()]
                                 .getDefiningOp<WeightOp>()));
    });
    return !walk.wasInterrupted();
  }

  /// Names of weights that products read from their other side, as they are
  /// stored, and others can read so, too.
  DenseSet<Attribute> findTurnedWeights(TargetAttrInterface target) {
    DenseMap<StringAttr, SmallVector<unsigned>> arguments; // by kernel
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      ProductOpInterface matmul = findMatmul(kernel);
      if (!matmul || isa<BlockArgument>(matmul.getW()))
        continue;
      if (auto chain = ViewChain::of(matmul.getW()))
        for (BlockArgument argument : chain->arguments)
          arguments[kernel.getSymNameAttr()].push_back(argument.getArgNumber());
    }
    DenseSet<Attribute> names;
    getOperation().walk([&](DispatchOp dispatch) {
      for (unsigned number :
           arguments.lookup(dispatch.getKernelAttr().getAttr()))
        if (auto weight =
                dispatch.getOperands_()[number].getDefiningOp<WeightOp>();
            weight && canReadAsStored(target, tensorType(weight)))
          names.insert_range(weight.getNames());
    });
    return names;
  }

  /// Whether a dispatch of `kernel` has one of `turned` for the weight: as it
  /// is stored, it is in memory once.
  bool isStored(KernelOp kernel, ProductOpInterface matmul,
                const DenseSet<Attribute> &turned) {
    const unsigned number = cast<BlockArgument>(matmul.getW()).getArgNumber();
    WalkResult walk = getOperation().walk([&](DispatchOp dispatch) {
      if (dispatch.getKernelAttr().getAttr() != kernel.getSymNameAttr())
        return WalkResult::advance();
      auto weight = dispatch.getOperands_()[number].getDefiningOp<WeightOp>();
      return WalkResult(failure(
          weight && llvm::any_of(weight.getNames(), [&](Attribute name) {
            return turned.contains(name);
          })));
    });
    return walk.wasInterrupted();
  }

  /// Makes the weight of `matmul` a packed argument of `kernel`.
  PackedArgument packArgument(KernelOp kernel, ProductOpInterface matmul,
                              Attribute layout) {
    auto argument = cast<BlockArgument>(matmul.getW());
    unsigned source = argument.getArgNumber();
    RankedTensorType type = tensorType(argument);
    auto packedType =
        RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    if (argument.hasOneUse())
      argument.setType(packedType);
    else
      argument = kernel.getBody().addArgument(packedType, argument.getLoc());
    matmul.getWMutable().set(argument);
    kernel.setFunctionType(
        FunctionType::get(&getContext(), kernel.getBody().getArgumentTypes(),
                          kernel.getResultTypes()));
    return {source, argument.getArgNumber()};
  }

  /// Blocks cannot be taken apart, and f8E4M3FN is packed when it is loaded.
  static LogicalResult checkViewed(ProductOpInterface matmul) {
    Type element = tensorType(matmul.getW()).getElementType();
    if (isa<QuantType>(element))
      return matmul->emitOpError(
          "kf-set-layouts: its weight is a view of blocks, and kernels read "
          "those of whole tensors alone; kf.dequantize the tensor and view "
          "that");
    if (isa<Float8E4M3FNType>(element))
      return matmul->emitOpError(
          "kf-set-layouts: its weight is a view of "
          "f8E4M3FN, which products take as it is loaded "
          "alone; have it in bf16, which holds the same "
          "numbers");
    return success();
  }

  /// Makes a weight that `matmul` reads through views a packed argument of
  /// `kernel`, behind the others: a kernel of its own packs what the views
  /// show.
  void packView(KernelOp kernel, ProductOpInterface matmul, Attribute layout) {
    std::optional<ViewChain> chain = ViewChain::of(matmul.getW());
    if (!chain) // computed in the kernel; convert-kf-to-vector says so
      return;
    RankedTensorType type = tensorType(matmul.getW());
    auto packedType =
        RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    KernelOp packKernel =
        createViewKernel(matmul->getLoc(), *chain, matmul.getW(), packedType);
    BlockArgument argument =
        kernel.getBody().addArgument(packedType, matmul->getLoc());
    matmul.getWMutable().set(argument);
    for (Operation *op : llvm::reverse(chain->ops))
      if (op->use_empty())
        op->erase();
    kernel.setFunctionType(
        FunctionType::get(&getContext(), kernel.getBody().getArgumentTypes(),
                          kernel.getResultTypes()));
    getOperation().walk([&](DispatchOp dispatch) {
      if (dispatch.getKernelAttr().getAttr() != kernel.getSymNameAttr())
        return;
      SmallVector<Value> operands;
      for (BlockArgument source : chain->arguments)
        operands.push_back(dispatch.getOperands_()[source.getArgNumber()]);
      OpBuilder builder(dispatch);
      Value packed =
          DispatchOp::create(builder, dispatch.getLoc(), TypeRange(packedType),
                             SymbolRefAttr::get(packKernel), operands,
                             DenseI64ArrayAttr())
              .getResult(0);
      dispatch.getOperands_Mutable().append(packed);
    });
  }

  /// A kernel that packs what `chain` shows of its arguments as `view`.
  KernelOp createViewKernel(Location loc, const ViewChain &chain, Value view,
                            RankedTensorType packedType) {
    SmallVector<Type> types;
    for (BlockArgument argument : chain.arguments)
      types.push_back(argument.getType());
    return createPackKernel(
        loc, types, packedType, [&](OpBuilder &builder, Block *block) {
          IRMapping values;
          for (auto [argument, copy] :
               llvm::zip_equal(chain.arguments, block->getArguments()))
            values.map(argument, copy);
          for (Operation *op : chain.ops)
            builder.clone(*op, values);
          return values.lookup(view);
        });
  }

  /// Packs the weight operand: at load where it is a kf.weight, else by a
  /// dispatch of a pack kernel.
  LogicalResult pack(DispatchOp dispatch,
                     const DenseMap<StringAttr, PackedArgument> &packed) {
    auto it = packed.find(dispatch.getKernelAttr().getAttr());
    if (it == packed.end())
      return success();
    auto [number, target] = it->second;
    Value source = dispatch.getOperands_()[number];
    auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
        dispatch, dispatch.getKernelAttr());
    Type type = kernel.getArgument(target).getType();
    OpBuilder builder(dispatch);
    Value result;
    if (auto weight = source.getDefiningOp<WeightOp>()) {
      result = WeightOp::create(builder, weight.getLoc(), type,
                                weight.getNamesAttr(), weight.getStackedAttr(),
                                weight.getTransposedAttr());
    } else if (isa<QuantType>(cast<RankedTensorType>(type).getElementType())) {
      return dispatch.emitOpError("kf-set-layouts: operand ")
             << number << " is quantized, and only the blocks of a "
             << "kf.weight can be packed; kf.dequantize it first";
    } else if (isa<Float8E4M3FNType>(
                   cast<RankedTensorType>(type).getElementType())) {
      return dispatch.emitOpError("kf-set-layouts: operand ")
             << number << " is of f8E4M3FN, of which only a kf.weight can be "
             << "packed; load it, or use --device=reference";
    } else {
      KernelOp packKernel =
          getPackKernel(dispatch.getLoc(), source.getType(), type);
      result = DispatchOp::create(builder, dispatch.getLoc(), TypeRange(type),
                                  SymbolRefAttr::get(packKernel), source,
                                  DenseI64ArrayAttr())
                   .getResult(0);
    }
    if (target == dispatch.getOperands_().size())
      dispatch.getOperands_Mutable().append(result);
    else
      dispatch->setOperand(target, result);
    if (auto weight = source.getDefiningOp<WeightOp>())
      if (weight->use_empty())
        weight->erase();
    return success();
  }

  /// The kernel that packs at run time; one for each pair of types.
  KernelOp getPackKernel(Location loc, Type source, Type result) {
    for (auto kernel : getOperation().getOps<KernelOp>())
      if (kernel.getArgumentTypes() == ArrayRef(source) &&
          kernel.getResultTypes() == ArrayRef(result) &&
          isa<PackOp>(kernel.getBody().front().front()))
        return kernel;
    return createPackKernel(
        loc, source, cast<RankedTensorType>(result),
        [](OpBuilder &, Block *block) { return block->getArgument(0); });
  }

  /// A kernel that packs what `makeSource` makes of its arguments.
  KernelOp
  createPackKernel(Location loc, TypeRange types, RankedTensorType result,
                   function_ref<Value(OpBuilder &, Block *)> makeSource) {
    OpBuilder builder(&getContext());
    auto kernel =
        KernelOp::create(builder, loc, builder.getStringAttr("pack"),
                         TypeAttr::get(builder.getFunctionType(types, result)),
                         ScheduleAttrInterface(), GridAttr(), StringAttr(),
                         ArrayAttr(), ArrayAttr());
    Block *block = builder.createBlock(
        &kernel.getBody(), {}, types, SmallVector<Location>(types.size(), loc));
    Value packed =
        PackOp::create(builder, loc, result, makeSource(builder, block));
    YieldOp::create(builder, loc, packed);
    SymbolTable(getOperation())
        .insert(kernel, getOperation().getBody()->begin());
    return kernel;
  }
};

} // namespace
