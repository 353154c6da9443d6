//===- SetLayouts.cpp - Layouts of weights and KV caches ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Support/DebugStringHelper.h"

namespace mlir::kf {
#define GEN_PASS_DEF_SETLAYOUTS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// The matmul of `kernel` whose weight is an argument; null if there is none.
MatmulOp findMatmul(KernelOp kernel) {
  for (auto matmul : kernel.getBody().getOps<MatmulOp>())
    if (isa<BlockArgument>(matmul.getW()))
      return matmul;
  return nullptr;
}

struct SetLayoutsPass : mlir::kf::impl::SetLayoutsBase<SetLayoutsPass> {
  void runOnOperation() override {
    TargetAttrInterface target = getTarget(getOperation());
    if (!target)
      return signalPassFailure();
    if (target.isInterpreted())
      return;
    if (failed(setCacheLayouts(target)))
      return signalPassFailure();
    DenseMap<StringAttr, PackedArgument> packed; // by kernel
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      MatmulOp matmul = findMatmul(kernel);
      if (!matmul || tensorType(matmul.getW()).getEncoding())
        continue;
      LayoutAttr layout = target.getWeightLayout(tensorType(matmul.getW()));
      remark::passed(kernel.getLoc(), remark::RemarkOpts::name("Layout")
                                          .category(getArgument())
                                          .function(kernel.getSymName()))
          << remark::add("{0} weight", layout ? "packed" : "plain")
          << remark::metric("Layout", layout ? debugString(layout) : "none");
      if (layout)
        packed[kernel.getSymNameAttr()] = packArgument(kernel, matmul, layout);
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

  /// Makes the weight of `matmul` a packed argument of `kernel`.
  PackedArgument packArgument(KernelOp kernel, MatmulOp matmul,
                              LayoutAttr layout) {
    auto argument = cast<BlockArgument>(matmul.getW());
    unsigned source = argument.getArgNumber();
    RankedTensorType type = tensorType(argument);
    auto packedType =
        RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    if (argument.hasOneUse())
      argument.setType(packedType);
    else
      argument = kernel.getBody().addArgument(packedType, argument.getLoc());
    matmul.getWMutable().assign(argument);
    kernel.setFunctionType(
        FunctionType::get(&getContext(), kernel.getBody().getArgumentTypes(),
                          kernel.getResultTypes()));
    return {source, argument.getArgNumber()};
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
             << "kf.weight can be packed";
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
    OpBuilder builder(&getContext());
    auto kernel =
        KernelOp::create(builder, loc, builder.getStringAttr("pack"),
                         TypeAttr::get(builder.getFunctionType(source, result)),
                         ScheduleAttrInterface(), GridAttr(), StringAttr(),
                         ArrayAttr(), ArrayAttr());
    Block *block = builder.createBlock(&kernel.getBody(), {}, source, loc);
    Value packed = PackOp::create(builder, loc, result, block->getArgument(0));
    YieldOp::create(builder, loc, packed);
    SymbolTable(getOperation())
        .insert(kernel, getOperation().getBody()->begin());
    return kernel;
  }
};

} // namespace
