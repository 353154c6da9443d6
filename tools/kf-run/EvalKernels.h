//===- EvalKernels.h - Kernels one by one -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_EVALKERNELS_H
#define KF_TOOLS_KF_RUN_EVALKERNELS_H

#include "ModelFlags.h"

#include "runtime/measure/EvalComparison.h"
#include "runtime/program/ExecutableCache.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace kf {

/// Which kernels are measured, and how.
struct KernelEvalOptions {
  std::vector<int64_t> rows; ///< of steps
  /// Positions before a step's rows, of kernels that read a KV cache.
  std::vector<int64_t> depths;
  std::vector<DataType> types; ///< of weights where there is no model
  std::string typesText;       ///< as the command line has them
  int64_t runs = 15;           ///< of each kernel that are timed

  /// Adds the options to `parser`.
  void addTo(OptionParser &parser);
};

/// The code of a report's kernels, in a folder beside the report `file`, by
/// EvalKernel::code.
ExecutableCache codeBeside(const std::string &file);

/// What kernels are held against while they are measured.
struct KernelBaseline {
  const EvalReport &report;
  ExecutableCache code; ///< of its kernels, as far as it was kept
  double slower = 0.1;  ///< EvalThresholds::slower
};

struct KernelEvaluation {
  std::vector<EvalKernel> kernels;
  std::map<std::string, Executable> code; ///< by EvalKernel::code
  /// Of kernels whose code is not the baseline's, and that ran in turns with
  /// it.
  TurnRatios turns;
  /// Kernels that did not, as the baseline's code was not kept.
  int64_t withoutCode = 0;

  /// Takes what `again` measured better: where less disturbed it.
  void merge(KernelEvaluation again);
};

/// Runs each kernel of the model's steps alone on `device`, compares what it
/// computes with the reference, and times it. Without a model, the kernels are
/// those of one layer of a transformer of TinyLlama's width, for each type of
/// weights; what they have in common is run once. `rates` are the device's.
/// Kernels that are others than the `baseline`'s, unless that is null, take
/// turns with these. `only` is the keys of those that are measured, null for
/// all. Errors: those of the compiler and the device; a kernel that computes
/// something else is no error but has a complaint.
Result<KernelEvaluation>
evaluateKernels(const ModelFlags &flags, const KernelEvalOptions &options,
                Device &device, const MachineRates &rates,
                const KernelBaseline *baseline = nullptr,
                const std::set<std::string> *only = nullptr);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_EVALKERNELS_H
