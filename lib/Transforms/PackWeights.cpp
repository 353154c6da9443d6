//===- PackWeights.cpp - Weight layouts from schedules --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/Passes.h"

#include "mlir/IR/SymbolTable.h"

namespace mlir::kf {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// The argument of `kernel` that is the weight of its matmul, where the
/// schedule asks for panels; -1 otherwise.
int64_t findWeightArgument(KernelOp kernel) {
  ScheduleAttr schedule = kernel.getScheduleAttr();
  if (!schedule || schedule.getTile().size() != 2)
    return -1;
  for (auto matmul : kernel.getBody().getOps<MatmulOp>())
    if (auto argument = dyn_cast<BlockArgument>(matmul.getW()))
      return argument.getArgNumber();
  return -1;
}

/// Panels of the register tile's columns; halves of 16-bit panels interleave
/// by the vector's lanes.
LayoutAttr layoutFor(ScheduleAttr schedule, Type element) {
  int64_t panel = schedule.getTile()[1], lanes = schedule.getVector();
  bool interleave = element.isBF16() && panel % (2 * lanes) == 0;
  return LayoutAttr::get(schedule.getContext(), panel, interleave ? lanes : 0);
}

struct PackWeightsPass : mlir::kf::impl::PackWeightsBase<PackWeightsPass> {
  void runOnOperation() override {
    DenseMap<StringAttr, int64_t> packed; // kernel -> argument
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      int64_t number = findWeightArgument(kernel);
      if (number < 0)
        continue;
      BlockArgument argument = kernel.getArgument(number);
      auto type = cast<RankedTensorType>(argument.getType());
      if (type.getEncoding())
        continue;
      auto packedType = RankedTensorType::get(
          type.getShape(), type.getElementType(),
          layoutFor(kernel.getScheduleAttr(), type.getElementType()));
      argument.setType(packedType);
      SmallVector<Type> inputs(kernel.getArgumentTypes());
      inputs[number] = packedType;
      kernel.setFunctionType(
          FunctionType::get(&getContext(), inputs, kernel.getResultTypes()));
      packed[kernel.getSymNameAttr()] = number;
    }
    WalkResult result = getOperation().walk([&](DispatchOp dispatch) {
      return WalkResult(pack(dispatch, packed));
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// Packs the weight operand: at load where it is a kf.weight, else by a
  /// dispatch of a pack kernel.
  LogicalResult pack(DispatchOp dispatch,
                     const DenseMap<StringAttr, int64_t> &packed) {
    auto it = packed.find(dispatch.getKernelAttr().getAttr());
    if (it == packed.end())
      return success();
    Value source = dispatch.getOperands_()[it->second];
    auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
        dispatch, dispatch.getKernelAttr());
    Type type = kernel.getArgument(it->second).getType();
    OpBuilder builder(dispatch);
    Value result;
    if (auto weight = source.getDefiningOp<WeightOp>()) {
      result = WeightOp::create(builder, weight.getLoc(), type,
                                weight.getNamesAttr(), weight.getStackedAttr(),
                                weight.getTransposedAttr());
    } else if (isa<QuantType>(cast<RankedTensorType>(type).getElementType())) {
      return dispatch.emitOpError("kf-pack-weights: operand ")
             << it->second << " is quantized, and only the blocks of a "
             << "kf.weight can be packed";
    } else {
      KernelOp packKernel =
          getPackKernel(dispatch.getLoc(), source.getType(), type);
      result = DispatchOp::create(builder, dispatch.getLoc(), TypeRange(type),
                                  SymbolRefAttr::get(packKernel), source,
                                  DenseI64ArrayAttr())
                   .getResult(0);
    }
    dispatch->setOperand(it->second, result);
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
    // A panel of the rows, the last loop but one, to each workgroup.
    SmallVector<int64_t> workgroup(cast<RankedTensorType>(result).getRank() - 1,
                                   0);
    workgroup.back() = getLayout(result).getPanel();
    auto schedule = ScheduleAttr::get(&getContext(), workgroup, {}, 0, 1, 1, 1,
                                      {}, 1, 1, DotKind::F32);
    auto kernel = KernelOp::create(
        builder, loc, builder.getStringAttr("pack"),
        TypeAttr::get(builder.getFunctionType(source, result)), schedule,
        GridAttr(), StringAttr(), ArrayAttr(), ArrayAttr());
    Block *block = builder.createBlock(&kernel.getBody(), {}, source, loc);
    Value packed = PackOp::create(builder, loc, result, block->getArgument(0));
    YieldOp::create(builder, loc, packed);
    SymbolTable(getOperation())
        .insert(kernel, getOperation().getBody()->begin());
    return kernel;
  }
};

} // namespace
