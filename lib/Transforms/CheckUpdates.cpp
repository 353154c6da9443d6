//===- CheckUpdates.cpp - Results in the memory of arguments --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::kf {
#define GEN_PASS_DEF_CHECKUPDATES
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

struct CheckUpdatesPass : mlir::kf::impl::CheckUpdatesBase<CheckUpdatesPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(check(program)))
        return signalPassFailure();
    for (auto kernel : getOperation().getOps<KernelOp>())
      if (failed(check(kernel)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  /// The arguments that each result updates; nothing where it updates none.
  static FailureOr<SmallVector<std::optional<unsigned>>>
  findUpdates(FunctionOpInterface function) {
    auto fail = [&](unsigned result) {
      return function->emitOpError("kf-check-updates: result ")
             << result << " has kf.updates ";
    };
    SmallVector<std::optional<unsigned>> updates;
    DenseSet<unsigned> taken;
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      updates.emplace_back();
      Attribute attribute = function.getResultAttr(i, kUpdatesAttrName);
      if (!attribute)
        continue;
      auto number = dyn_cast<IntegerAttr>(attribute);
      if (!number || !number.getType().isInteger(64) ||
          !number.getValue().ult(function.getNumArguments()))
        return fail(i) << attribute << ", which is no number of one of the "
                       << function.getNumArguments() << " arguments as an i64";
      const auto argument = static_cast<unsigned>(number.getInt());
      Type type = function.getArgumentTypes()[argument];
      if (type != function.getResultTypes()[i])
        return fail(i) << argument << ", an argument of " << type
                       << ", and is of " << function.getResultTypes()[i]
                       << "; both lie in the same memory";
      if (!taken.insert(argument).second)
        return fail(i) << argument << ", as another result has";
      updates.back() = argument;
    }
    return updates;
  }

  static LogicalResult check(KernelOp kernel) {
    auto updates = findUpdates(kernel);
    if (failed(updates))
      return failure();
    for (const std::optional<unsigned> &argument : *updates)
      if (argument &&
          failed(checkReaders(kernel.getBody().getArgument(*argument))))
        return failure();
    return success();
  }

  /// Whoever reads `argument`, or what was made of it, does so element by
  /// element.
  static LogicalResult checkReaders(BlockArgument argument) {
    SetVector<Operation *> readers(argument.user_begin(), argument.user_end());
    for (size_t i = 0; i < readers.size(); ++i) {
      Operation *reader = readers[i];
      if (isa<YieldOp>(reader))
        continue;
      if (!isElementwise(reader))
        return reader->emitOpError(
            "kf-check-updates: reads what the kernel updates in place, element "
            "by element; only elementwise ops may");
      readers.insert(reader->user_begin(), reader->user_end());
    }
    return success();
  }

  static LogicalResult check(ProgramOp program) {
    auto updates = findUpdates(program);
    if (failed(updates))
      return failure();
    for (auto [number, result] :
         llvm::enumerate(program.getYield().getValues()))
      if (const std::optional<unsigned> &argument = (*updates)[number])
        if (failed(checkUses(program.getBody().getArgument(*argument),
                             cast<OpResult>(result))))
          return failure();
    return success();
  }

  /// Nothing reads `argument` behind the dispatch that makes `result`, which
  /// knows that both may be the same.
  static LogicalResult checkUses(BlockArgument argument, OpResult result) {
    Operation *maker = result.getOwner();
    for (OpOperand &use : argument.getUses()) {
      Operation *reader = use.getOwner();
      if (maker->isBeforeInBlock(reader))
        return reader->emitOpError("kf-check-updates: reads argument ")
               << argument.getArgNumber()
               << ", which a dispatch before it updates in place; let it read "
                  "what that makes";
      if (reader == maker && failed(checkOperand(maker, use, result)))
        return failure();
    }
    return success();
  }

  static LogicalResult checkOperand(Operation *maker, OpOperand &use,
                                    OpResult result) {
    auto dispatch = dyn_cast<DispatchOp>(maker);
    auto kernel = dispatch ? SymbolTable::lookupNearestSymbolFrom<KernelOp>(
                                 dispatch, dispatch.getKernelAttr())
                           : KernelOp();
    auto known = kernel ? dyn_cast_if_present<IntegerAttr>(kernel.getResultAttr(
                              result.getResultNumber(), kUpdatesAttrName))
                        : IntegerAttr();
    if (known && known.getInt() == use.getOperandNumber())
      return success();
    return maker->emitOpError(
               "kf-check-updates: makes what updates its operand ")
           << use.getOperandNumber()
           << " in place, and its kernel does not say "
           << "so: kf.updates of its result is missing";
  }
};

} // namespace
