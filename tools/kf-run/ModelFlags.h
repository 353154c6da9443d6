//===- ModelFlags.h - Options of commands that compile a model --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODELFLAGS_H
#define KF_TOOLS_KF_RUN_MODELFLAGS_H

#include "SessionFlags.h"
#include "TuningFlags.h"

#include "kf/Driver/CompiledSession.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

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
  /// Adds `--tensor-parallel`, `--pipeline-parallel` and `--context-parallel`,
  /// of commands that run whole steps. A launcher's ranks need none.
  void addRanksTo(OptionParser &parser);

  /// What they say of compiling.
  CompileChoice compileChoice() const;

private:
  Status checkRanks();

  std::optional<int64_t> ranksGiven, stagesGiven, sharersGiven;
};

/// Numbers of ranks by what these share, where they were given.
using RanksGiven = std::pair<Parallelism, std::optional<int64_t>>;

/// An error that names two of `given` which are more than 1.
Status checkOneWay(std::span<const RanksGiven> given);

/// Opens the model, or the one that kf-run carries, and prints its
/// configuration's warnings.
Result<ModelFiles> openModel(const ModelChoice &choice, bool withTokenizer);

/// What to compile the model of `flags` with, to run on `device`.
Result<CompilerOptions> compilerOptionsFor(const ModelFlags &flags,
                                           const Device &device);

/// A session whose programs are compiled when they are needed, or come from the
/// cache. Sets `used`, unless that is null, to what they are compiled with.
Result<std::unique_ptr<Session>> openSession(const ModelFlags &flags,
                                             bool withTokenizer,
                                             CompilerOptions *used = nullptr);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODELFLAGS_H
