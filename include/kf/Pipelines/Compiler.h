//===- Compiler.h - From kf functions to executables ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_COMPILER_H
#define KF_PIPELINES_COMPILER_H

#include "kf/Pipelines/Pipelines.h"
#include "runtime/core/Cancellation.h"
#include "runtime/program/Executable.h"
#include "runtime/tuning/TuningDatabase.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir::kf {

class KernelCodes;

/// How far to compile; each phase includes those before it.
enum class Phase {
  Import,    ///< functions of kf ops
  Fused,     ///< projections joined, mlp expanded
  Program,   ///< kernels, and programs of dispatches
  Scheduled, ///< schedules chosen, weights packed, memory planned
  Lowered,   ///< kernels in the target's dialect (LLVM, SPIR-V)
  Binary     ///< an executable
};

/// "import", "fused", "program", "scheduled", "lowered", "binary".
std::optional<Phase> parsePhase(llvm::StringRef name);

struct CompileOptions {
  /// What to compile for, as parseTarget() reads it: "cpu", "cuda:sm_90a".
  std::string target = "cpu";
  /// CPU target: threads that will share a kernel's workgroups; 0: unknown.
  /// Any number of threads can run the result.
  int64_t workers = 0;
  /// Largest n_tokens of functions without `kf.max_tokens`.
  int64_t maxTokens = defaultMaxTokens;
  /// Schedules that kernels without one get. Those of this target, this
  /// compiler and `measured.device` alone count.
  MeasuredSchedules measured;
  /// Takes warnings, a line each; may be empty.
  std::function<void(const std::string &)> onWarning;
  /// Ends compiling between two passes, with an error; the module is spent
  /// then.
  ::kf::CancelFlag cancelled = nullptr;
  /// Has code of kernels, and gets more, where many programs are compiled that
  /// share some. Used for CPUs alone, whose code of a kernel depends on the
  /// kernel and its module's attributes and on nothing else; all other targets
  /// compile as without. Null: none is kept.
  KernelCodes *kernelCodes = nullptr;
};

/// What distinguishes this compiler's output for `options` from that of any
/// other: compiler and LLVM version, ABI, target, CPU and features. Part of the
/// key of the executable cache. Measured schedules come on top of it: which of
/// them count is known once the kernels are (compile()).
llvm::Expected<std::string> fingerprint(const CompileOptions &options);

/// What measured schedules have to hold for to count for `options`, whose
/// database need not be there.
llvm::Expected<::kf::TuningScope> tuningScopeOf(const CompileOptions &options);

/// Whether what `options` are for runs ops as they are written, without
/// schedules.
llvm::Expected<bool> isInterpreted(const CompileOptions &options);

/// Whether this host can run what `options` compile to; an error says what it
/// lacks. Code for another machine can still be compiled.
llvm::Error checkRunsOnHost(const CompileOptions &options);

/// Products of a function that may read their rows in several types.
struct RowChoice {
  ::kf::TuningKey key; ///< that they share
  ::kf::TuningSubject subject;
  std::vector<std::string> rows; ///< "#kf.rows<i8>", the target's own first
};

/// The choices that there are in the functions of `module`, each once, whatever
/// was measured. Runs the phases from `from` to Fused.
llvm::Expected<std::vector<RowChoice>>
findRowChoices(ModuleOp module, const CompileOptions &options, Phase from);

/// Runs the passes from `from` (exclusive) to `to` (inclusive; at most Lowered)
/// on `module` in place. Diagnostics of the passes become the error's text.
llvm::Error runPhases(ModuleOp module, const CompileOptions &options,
                      Phase from, Phase to);

/// Has the functions of `module` return gradients of their losses, which they
/// add to arguments (kf-differentiate). Diagnostics become the error's text.
llvm::Error differentiate(ModuleOp module, GradientPolicy policy,
                          const CompileOptions &options);
/// Has them compute logits by parts of rows (kf-split-rows).
llvm::Error splitRows(ModuleOp module, const CompileOptions &options);

/// Compiles the only function of `module` (a func.func of kf ops; after `from`,
/// what that phase makes of it), which it changes, to an executable. Sets
/// `kernels`, unless that is null, to the keys that measured schedules, and
/// what products read their rows in, are looked up by.
llvm::Expected<::kf::Executable>
compile(ModuleOp module, const CompileOptions &options,
        Phase from = Phase::Import,
        std::vector<::kf::TuningKey> *kernels = nullptr);

} // namespace mlir::kf

#endif // KF_PIPELINES_COMPILER_H
