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

namespace {
constexpr llvm::StringLiteral overview =
    "KernelForge optimizer driver\n"
    "Reads MLIR as text or bytecode. Upstream's reader of bytecode is not made "
    "for damaged or hostile files: give it only files that you trust. kf-run "
    "reads text alone.\n";
} // namespace

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::kf::registerPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, overview, registry));
}
