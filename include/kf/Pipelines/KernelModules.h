//===- KernelModules.h - The kernels of a module, each alone ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is measured or checked is a kernel alone, as a program of one dispatch:
// its weights stay `kf.weight`, its caches stay caches, of one layer, and what
// other kernels make is an argument. Such a module compiles for any target from
// Phase::Program on; the reference runs its ops as they are written.
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_KERNELMODULES_H
#define KF_PIPELINES_KERNELMODULES_H

#include "kf/Pipelines/Compiler.h"
#include "runtime/measure/MachineRates.h"

#include <vector>

namespace mlir::kf {

/// A module, as of Phase::Program, of one kernel and a program of one dispatch.
struct KernelModule {
  std::string name;       ///< as the whole module has it
  int64_t dispatches = 0; ///< of it, in all programs
  int64_t rows = 0;       ///< the most that it computes, as schedules see it
  OwningOpRef<ModuleOp> module;

  KernelOp getKernel() const;
};

/// A module with a copy of `kernel`, which is in a module of any phase, and
/// that module's attributes, but for those that no kernel needs.
OwningOpRef<ModuleOp> copyKernelAlone(KernelOp kernel);

/// The kernels that programs of `module`, as of Phase::Program, dispatch, in
/// the order of their first dispatch. Errors: a module without a program.
llvm::Expected<std::vector<KernelModule>> splitKernels(ModuleOp module);

/// A copy of `kernel`'s module for the target of `options` with layouts set, as
/// kf-select-schedules sees it.
llvm::Expected<OwningOpRef<ModuleOp>> layOut(const KernelModule &kernel,
                                             const CompileOptions &options);

/// A schedule that is worth measuring.
struct ScheduleCandidate {
  std::string schedule;        ///< as MLIR prints it
  double predictedSeconds = 0; ///< of one run; 0: the target has no model
};

/// Schedules for `kernel` on the target of `options`, and what they should take
/// on a machine with `rates`: that which the target chooses by itself first.
/// None where kernels have no schedule.
llvm::Expected<std::vector<ScheduleCandidate>>
scheduleCandidates(const KernelModule &kernel, const CompileOptions &options,
                   const ::kf::MachineRates &rates);

/// `schedule` as MLIR prints it. Errors: a text that is no schedule.
llvm::Expected<std::string> normalizeSchedule(StringRef schedule);

/// Compiles `kernel` for the target of `options`, with `schedule` as MLIR
/// prints it, or, where that is empty, with the one that a compilation of the
/// whole module takes. Errors: a schedule that cannot be read, or that the
/// target cannot run.
llvm::Expected<::kf::Executable> compile(const KernelModule &kernel,
                                         StringRef schedule,
                                         const CompileOptions &options);

} // namespace mlir::kf

#endif // KF_PIPELINES_KERNELMODULES_H
