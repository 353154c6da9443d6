//===- OutputRoles.cpp - What a program's outputs mean --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/OutputRoles.h"

#include "kf/Dialect/KF/IR/KF.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::KernelOutput;

namespace {

/// What the dispatch that makes `output` has the rounded elements in, where
/// these are outliers; null otherwise.
Value findRounded(Value output, ModuleOp module) {
  auto dispatch = output.getDefiningOp<DispatchOp>();
  auto kernel = dispatch ? module.lookupSymbol<KernelOp>(dispatch.getKernel())
                         : KernelOp();
  if (!kernel)
    return nullptr;
  OperandRange results = kernel.getYield().getOperands();
  Value made = results[cast<OpResult>(output).getResultNumber()];
  auto half = made.getDefiningOp<RoundHalfOp>();
  if (!half || half.getOutliers() != made)
    return nullptr;
  auto rounded = llvm::find(results, half.getRounded());
  return rounded == results.end()
             ? Value()
             : dispatch->getResult(rounded - results.begin());
}

} // namespace

std::vector<KernelOutput> mlir::kf::getOutputRoles(ProgramOp program) {
  auto module = program->getParentOfType<ModuleOp>();
  OperandRange outputs = program.getYield().getOperands();
  std::vector<KernelOutput> roles(outputs.size());
  for (auto [output, role] : llvm::zip_equal(outputs, roles)) {
    auto rounded = llvm::find(outputs, findRounded(output, module));
    if (rounded != outputs.end())
      role.rounded = rounded - outputs.begin();
  }
  return roles;
}
