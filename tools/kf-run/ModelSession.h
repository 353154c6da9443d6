//===- ModelSession.h - A model opened to be run ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODELSESSION_H
#define KF_TOOLS_KF_RUN_MODELSESSION_H

#include "Session.h"
#include "StepCompiler.h"
#include "Tuning.h"

#include <memory>
#include <optional>
#include <string>

namespace kf {

/// Options of every command that compiles and runs a model.
struct ModelFlags : SessionFlags {
  bool noCache = false;
  TuningFlags tuning;
  std::string cacheType; ///< empty: defaultCacheType()
  std::string activationType = "f32";
  std::string targetCpu = "native";

  /// Adds MODEL and the options to `parser`; `-t` only with `withThreads`.
  void addTo(OptionParser &parser, bool withThreads = true);

private:
  std::optional<int64_t> contextGiven; ///< 0: all of the model
};

/// What to compile the model of `flags` with, to run on `device`: with the
/// tuning database that they name. Errors: loadTuning()'s, and a CPU that this
/// machine is not.
Result<CompilerOptions> compilerOptionsFor(const ModelFlags &flags,
                                           const Device &device);

/// A session whose programs are compiled when they are needed, or come from the
/// cache.
class ModelSession : public Session {
public:
  /// Opens the device and the model.
  static Result<std::unique_ptr<ModelSession>> open(const ModelFlags &options,
                                                    bool withTokenizer);

  const StepCompiler &compiler() const { return *steps; }
  /// What the model is compiled with.
  const CompilerOptions &compilerOptions() const {
    return steps->compilerOptions();
  }

private:
  ModelSession() = default;

  std::optional<StepCompiler> steps;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODELSESSION_H
