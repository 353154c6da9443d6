//===- kf-opt.cpp - Runs kf passes on .mlir files -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/ForeignDialects.h"
#include "kf/Pipelines/Registration.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ToolOutputFile.h"

namespace {
constexpr llvm::StringLiteral overview =
    "KernelForge optimizer driver\n"
    "Reads MLIR as text or bytecode. Upstream's reader of bytecode is not made "
    "for damaged or hostile files: give it only files that you trust. kf-run "
    "reads text alone. Errors show the line that they are of; "
    "--mlir-print-op-on-diagnostic prints the whole op, too.\n";
} // namespace

/// Errors of kernels and modules would be pages long: the line of the source
/// says which op is meant. Who asks for ops gets them.
static void hideOpsOfErrors() {
  constexpr llvm::StringLiteral name = "mlir-print-op-on-diagnostic";
  llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup(name);
  if (option && option->getNumOccurrences() == 0)
    option->addOccurrence(/*pos=*/0, name, "false");
}

/// What mlir-opt does, and one line more where the input has ops or types that
/// other tools take.
static mlir::LogicalResult run(int argc, char **argv,
                               mlir::DialectRegistry &registry) {
  const auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, overview, registry);
  hideOpsOfErrors();
  const auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses() ||
      (input == "-" && llvm::sys::Process::FileDescriptorIsDisplayed(0)))
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = mlir::openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> out;
  if (file)
    out = mlir::openOutputFile(output, &error);
  if (!out) {
    llvm::errs() << error << "\n";
    return mlir::failure();
  }
  const std::string hint = mlir::kf::explainForeignDialect(
      file->getBuffer(), llvm::to_vector(registry.getDialectNames()));
  if (mlir::failed(
          mlir::MlirOptMain(out->os(), std::move(file), registry, config))) {
    if (!hint.empty() && !config.shouldAllowUnregisteredDialects())
      llvm::errs() << "note: " << hint << "\n";
    return mlir::failure();
  }
  out->keep();
  return mlir::success();
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::kf::registerPasses();
  const llvm::InitLLVM init(argc, argv);
  return mlir::asMainReturnCode(run(argc, argv, registry));
}
