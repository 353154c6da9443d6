//===- ModelSession.h - A model opened to be run ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODELSESSION_H
#define KF_TOOLS_KF_RUN_MODELSESSION_H

#include "Devices.h"
#include "DummyModel.h"
#include "Model.h"
#include "OptionParser.h"
#include "ProfileFlags.h"
#include "Progress.h"
#include "StepCompiler.h"
#include "Tuning.h"

#include "runtime/core/ThreadPool.h"
#include "runtime/engine/Engine.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// Options of every command that runs a model.
struct ModelFlags {
  std::string model;                ///< empty: the embedded one
  std::optional<std::string> named; ///< the model, as an option says it
  DummyOptions dummy;
  DeviceOptions device;
  int64_t context = 0;       ///< 0: chosen by the command's need
  bool wholeContext = false; ///< as many positions as the model has
  bool noCache = false;
  TuningFlags tuning;
  std::string cacheType; ///< empty: defaultCacheType()
  std::string activationType = "f32";
  Float8Flag float8;
  std::string targetCpu = "native";
  uint64_t cacheMemory = 0; ///< bytes of the KV cache at most; 0: any
  ProfileFlags profile;

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

/// A model, the device that it runs on, and the engine that runs it. One
/// thread.
class ModelSession {
public:
  /// Opens the device and the model.
  static Result<std::unique_ptr<ModelSession>> open(const ModelFlags &options,
                                                    bool withTokenizer);
  /// Makes the engine, which an interrupt ends (Interrupt.h), for `parallel`
  /// sequences at once. Without `--context` one has room for `tokens`, for 4096
  /// if that is more, and in no case for more than the model was made for.
  /// Another call makes another engine of the same programs and weights;
  /// sequences of the one before must be gone.
  Status start(int64_t tokens, int64_t parallel = 1,
               bool reusesPrefixes = true);

  /// After start(): an error if the context has no room for a prompt.
  Status checkFits(std::span<const int32_t> prompt) const;

  /// Does what `--profile` asks for, if it was given, with all steps so far.
  Status showProfile();

  const ModelFiles &files() const { return opened; }
  const Tokenizer &tokenizer() const { return *opened.tokenizer; }
  Device &device() { return *target; }
  /// After start().
  Engine &engine() { return *running; }
  const Engine &engine() const { return *running; }
  const StepCompiler &compiler() const { return *steps; }
  /// What the model is compiled with.
  const CompilerOptions &compilerOptions() const {
    return steps->compilerOptions();
  }

  /// Seconds that open() took.
  double openSeconds() const { return seconds; }

private:
  ModelSession() = default;

  void makeModel();
  Result<int64_t> pageBytes() const;
  Result<int64_t> pagesFor(uint64_t bytes) const;
  Status checkMemory(int64_t pages) const;

  ModelFlags options;
  std::unique_ptr<Device> target;
  std::unique_ptr<ThreadPool> pool;
  std::optional<Progress> packing; ///< while weights are packed
  ModelFiles opened;
  std::optional<StepCompiler> steps;
  std::unique_ptr<Profile> profile; ///< null without --profile
  std::unique_ptr<Model> model;
  std::unique_ptr<Engine> running;
  double seconds = 0;
};

/// encodePrompt(), which an interrupt ends, with progress.
Result<std::vector<int32_t>> promptIds(const ModelFiles &model,
                                       std::string_view text);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODELSESSION_H
