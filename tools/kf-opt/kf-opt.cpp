//===- kf-opt.cpp - Runs kf passes on .mlir files -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::kf::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "KernelForge optimizer driver\n", registry));
}
