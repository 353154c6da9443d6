//===- StepCompiler.h - Steps from the cache or the compiler ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_DRIVER_STEPCOMPILER_H
#define KF_DRIVER_STEPCOMPILER_H

#include "kf/Driver/Compiler.h"
#include "runtime/core/Observer.h"
#include "runtime/engine/ModelFiles.h"
#include "runtime/program/ExecutableCache.h"

#include <optional>
#include <span>
#include <string>

namespace kf {

/// Provides the programs of a model, those that train it, too: from the
/// executable cache where it has them, else compiled and stored there. One
/// thread.
class StepCompiler {
public:
  /// `model` must outlive it, and so must `observer`, which may be null and is
  /// told what is compiled. Without `useCache` nothing is looked up or stored.
  /// A cache that cannot be had is a warning. Errors: options that the compiler
  /// does not know.
  static Result<StepCompiler> create(const ModelFiles &model,
                                     CompilerOptions options, bool useCache,
                                     Observer *observer);

  Result<Executable> compile(const StepShape &shape);
  Result<Executable> compile(const TrainingShape &shape);

  /// What programs are compiled with.
  const CompilerOptions &compilerOptions() const { return options; }

  /// How many programs were compiled, and how many were in the cache.
  int64_t compiled() const { return compiledCount; }
  int64_t cached() const { return cachedCount; }

private:
  StepCompiler(const ModelFiles &model, CompilerOptions options,
               Observer *observer)
      : model(&model), options(std::move(options)), observer(observer) {}

  void warn(const std::string &line) const;

  /// Sets the cache; an error says why there is none.
  Status openCache();
  /// Of a program that `text` tells from the model's others.
  std::string keyOf(const std::vector<std::string> &text) const;
  /// The program that `text` is the key of, called `name`; `import` makes its
  /// module.
  Result<Executable>
  provide(const std::vector<std::string> &text, const std::string &name,
          const std::function<Result<CompilerModule>()> &import);
  /// A hash of the measured schedules for `kernels`; empty: there are none.
  std::string digestOf(std::span<const TuningKey> kernels) const;
  /// The program in the cache, if it has that. Its entry is under `key`, or,
  /// compiled with other measured schedules than the one there, under a key
  /// that `key` becomes; what is compiled instead goes there.
  Result<std::optional<Executable>> lookup(std::string &key) const;

  const ModelFiles *model;
  CompilerOptions options;
  Observer *observer;
  std::optional<ExecutableCache> cache;
  bool keeps = true; ///< the cache can be written to
  /// What keys are made of, where there is a cache.
  std::string fingerprint, signature, identity;
  TuningScope scope; ///< of measured schedules, where there are any
  int64_t compiledCount = 0, cachedCount = 0;
};

} // namespace kf

#endif // KF_DRIVER_STEPCOMPILER_H
