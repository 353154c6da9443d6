//===- EvalKernels.h - Kernels one by one -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_EVALKERNELS_H
#define KF_TOOLS_KF_RUN_EVALKERNELS_H

#include "ModelSession.h"

#include "runtime/measure/EvalReport.h"

#include <cstdint>
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

/// Runs each kernel of the model's steps alone on `device`, compares what it
/// computes with the reference, and times it. Without a model, the kernels are
/// those of one layer of a transformer of TinyLlama's width, for each type of
/// weights; what they have in common is run once. `rates` are the device's.
/// Errors: those of the compiler and the device; a kernel that computes
/// something else is no error but has a complaint.
Result<std::vector<EvalKernel>>
evaluateKernels(const ModelFlags &flags, const KernelEvalOptions &options,
                Device &device, const MachineRates &rates);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_EVALKERNELS_H
