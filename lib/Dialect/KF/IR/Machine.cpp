//===- Machine.cpp - What the machine of a target has ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/Machine.h"

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::kf;

MachineDescription mlir::kf::getMachine(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  if (module)
    if (auto target =
            module->getAttrOfType<TargetAttrInterface>(kTargetAttrName))
      return target.getMachine();
  return {};
}
