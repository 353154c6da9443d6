//===- KernelCode.cpp - The code of each kernel by itself -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelCode.h"

#include "PassRun.h"

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/KernelCodes.h"
#include "kf/Pipelines/KernelModules.h"
#include "kf/Pipelines/Pipelines.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/core/UsableThreads.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <string>
#include <vector>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// A kernel, and what came of it.
struct Piece {
  explicit Piece(const ::kf::KernelSpec &kernel) { made.kernels = {kernel}; }

  ::kf::Executable made; ///< its binary and features, and this kernel alone
  int64_t ops = 0;
  std::vector<std::string> warnings;
  std::string error = "compilation failed";
  bool failed = true; ///< until it is made
};

/// Leaves of the kernels of `module` that named `name`. Programs, whose
/// dispatches say what its buffers are, find others as functions.
void keepKernel(ModuleOp module, StringRef name) {
  for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>())) {
    if (kernel.getSymName() == name)
      continue;
    OpBuilder builder(kernel);
    auto other =
        func::FuncOp::create(builder, kernel.getLoc(), kernel.getSymName(),
                             builder.getFunctionType({}, {}));
    other.setPrivate();
    kernel.erase();
  }
}

/// Has `module` compiled to the code of `piece`.
void compileAnew(ModuleOp module, TargetAttrInterface target,
                 const CompileOptions &options, Piece &piece) {
  FirstError errors(
      module->getContext(), ": ",
      [&](const std::string &warning) { piece.warnings.push_back(warning); });
  piece.failed =
      failed(runPasses(module, options,
                       [&](OpPassManager &passes) {
                         buildLowerPipeline(passes, target);
                       })) ||
      failed(target.serialize(module, piece.made, options.cancelled));
  if (piece.failed)
    piece.error = llvm::toString(failureOf(errors));
}

/// What was made of the same `module` before is taken from `codes`.
void compileOnce(ModuleOp module, TargetAttrInterface target,
                 const CompileOptions &options, KernelCodes &codes,
                 Piece &piece) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  if (auto known = codes.lookup(text)) {
    piece.made = known->made;
    piece.warnings = known->warnings;
    piece.failed = false;
    return;
  }
  compileAnew(module, target, options, piece);
  if (!piece.failed)
    codes.add(text, {piece.made, piece.warnings});
}

/// `all` is left as it is.
void makeCode(ModuleOp all, TargetAttrInterface target,
              const CompileOptions &options, Piece &piece) {
  const std::string &name = piece.made.kernels.front().name;
  // GPUs' code depends on the programs that dispatch a kernel.
  if (target.getDevice() != "cpu") {
    OwningOpRef<ModuleOp> module = all.clone();
    keepKernel(*module, name);
    return compileAnew(*module, target, options, piece);
  }
  OwningOpRef<ModuleOp> module =
      copyKernelAlone(all.lookupSymbol<KernelOp>(name));
  if (options.kernelCodes)
    compileOnce(*module, target, options, *options.kernelCodes, piece);
  else
    compileAnew(*module, target, options, piece);
}

/// Makes the code of pieces on all threads, the largest kernels first.
class Workers {
public:
  Workers(ModuleOp module, TargetAttrInterface target,
          const CompileOptions &options, std::vector<Piece> &pieces)
      : module(module), target(target), options(options) {
    for (Piece &piece : pieces) {
      auto kernel =
          module.lookupSymbol<KernelOp>(piece.made.kernels.front().name);
      kernel.walk([&](Operation *) { ++piece.ops; });
      order.push_back(&piece);
    }
    llvm::sort(order, [](const Piece *a, const Piece *b) {
      return std::pair(-a->ops, a) < std::pair(-b->ops, b);
    });
  }

  llvm::Error run() {
    const int threads = std::min<int64_t>(::kf::usableThreads(), order.size());
    // Without others, the caller does all.
    auto pool = threads > 1 ? ::kf::ThreadPool::create(threads)
                            : ::kf::Status::error("");
    if (pool.ok()) {
      module.getContext()->getDialectRegistry().appendTo(registry);
      llvm::raw_string_ostream stream(bytecode);
      if (failed(writeBytecodeToFile(module, stream)))
        return llvm::createStringError("kernels cannot be written");
      (void)(*pool)->parallelFor(threads, [&](int64_t worker) {
        if (worker == 0)
          take(module, target);
        else
          takeInOwnContext();
        return ::kf::Status();
      });
    }
    take(module, target); // all, or those of whoever could not begin
    if (isUnreadable)
      return llvm::createStringError(
          "kernels that were written cannot be read");
    return llvm::Error::success();
  }

private:
  void take(ModuleOp source, TargetAttrInterface into) {
    source.getContext()->loadDialect<func::FuncDialect>();
    for (size_t i; (i = next++) < order.size();)
      makeCode(source, into, options, *order[i]);
  }

  /// A context is of one thread.
  void takeInOwnContext() {
    if (next >= order.size())
      return;
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
    OwningOpRef<ModuleOp> copy =
        parseSourceString<ModuleOp>(bytecode, ParserConfig(&context));
    if (copy)
      take(*copy, (*copy)->getAttrOfType<TargetAttrInterface>(kTargetAttrName));
    else
      isUnreadable = true;
  }

  ModuleOp module;
  TargetAttrInterface target;
  const CompileOptions &options;
  std::vector<Piece *> order;
  DialectRegistry registry; ///< the context's, which grows while it is used
  std::string bytecode;
  std::atomic<size_t> next = 0;
  std::atomic<bool> isUnreadable = false;
};

} // namespace

llvm::Error mlir::kf::makeKernelCode(ModuleOp module,
                                     TargetAttrInterface target,
                                     const CompileOptions &options,
                                     ::kf::Executable &executable) {
  std::vector<Piece> pieces(executable.kernels.begin(),
                            executable.kernels.end());
  if (llvm::Error error = Workers(module, target, options, pieces).run())
    return error;
  std::vector<std::string> codes;
  for (auto [piece, kernel] : llvm::zip_equal(pieces, executable.kernels)) {
    if (options.onWarning)
      for (const std::string &warning : piece.warnings)
        options.onWarning(warning);
    if (piece.failed)
      return llvm::createStringError(piece.error);
    kernel = std::move(piece.made.kernels.front());
    codes.push_back(std::move(piece.made.binary));
  }
  if (!pieces.empty()) // of the target, not of the kernel
    executable.features = std::move(pieces.front().made.features);
  executable.binary = target.joinCode(codes);
  return llvm::Error::success();
}
