//===- Compiler.h - The compiler without MLIR -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The border between MLIR and those that run what is compiled: this header
// includes nothing of it, and nothing of MLIR is made before something has to
// be compiled, so that a start from the cache does without.
//
//===----------------------------------------------------------------------===//

#ifndef KF_DRIVER_COMPILER_H
#define KF_DRIVER_COMPILER_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/KeyWindow.h"
#include "runtime/devices/Device.h"
#include "runtime/measure/MachineRates.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/Step.h"
#include "runtime/model/Training.h"
#include "runtime/program/Executable.h"
#include "runtime/tuning/KernelInputs.h"
#include "runtime/tuning/Search.h"
#include "runtime/tuning/TuningDatabase.h"
#include "runtime/weights/WeightSource.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Code for the device as it reports itself, or, where `targetCpu` names
/// another chip than "native", for its name alone, which that goes with:
/// CompilerOptions::target.
std::string targetFor(const Device &device, const std::string &targetCpu);

struct CompilerOptions {
  /// A device's name, or what one reports (Device::target()).
  std::string target = "cpu";
  std::string targetCpu = "native"; ///< as LLVM calls it
  /// Elements of a model's KV cache: f32, f16, bf16 or q8_0.
  std::string cacheType = "f16";
  /// Elements of what the kernels of a model hand on: f32, f16 or bf16.
  std::string activationType = "f32";
  int64_t workers = 0;     ///< Device::workers() of who will run it
  int64_t maxTokens = 512; ///< of functions that do not say `kf.max_tokens`
  /// Schedules that were measured, the file that they are from, and what it
  /// calls who will run the result: Device::description(). Null: none.
  std::shared_ptr<const TuningDatabase> tuning;
  std::string tuningFile, device;
  CancelFlag cancelled = nullptr; ///< ends compiling between two passes
  /// Takes one line: a schedule that cannot be used, and the like. May be
  /// empty.
  std::function<void(const std::string &line)> onWarning = {};
};

/// What ends the process where the compiler cannot go on. Neither returns.
struct CompilerErrorHandlers {
  /// For want of memory: LLVM and MLIR cannot return an error, nor may an
  /// exception pass through them. May use no memory.
  void (*onOutOfMemory)();
  /// What LLVM ends the process for.
  void (*onFatalError)(const char *reason);
};
/// For main(), once. Without it, abort() is called in both cases. While
/// something of this header runs, operator new calls the first one on every
/// thread of the process.
void installCompilerErrorHandlers(const CompilerErrorHandlers &handlers);

/// What distinguishes the programs of this compiler and `options` from others,
/// but for measured schedules.
Result<std::string> compilerFingerprint(const CompilerOptions &options);

/// Whether what `options` are for runs ops as they are written, one by one,
/// without schedules. Errors: a target that there is not.
Result<bool> isInterpreted(const CompilerOptions &options);

/// Elements of a model's KV cache where nobody says: f16, half of f32's memory,
/// and f32 where ops are interpreted, which rounds nothing. Errors: as of
/// isInterpreted().
Result<std::string> defaultCacheType(const CompilerOptions &options);

/// An error if this machine lacks what `options.targetCpu` asks for.
Status checkRunsOnHost(const CompilerOptions &options);

/// The text of a schedule as KernelSet::candidates() has it, without blanks
/// that mean nothing and fields of their default values. Errors: a text that is
/// no schedule.
Result<std::string> normalizeSchedule(const std::string &schedule);

/// What measurements for `options` hold for.
Result<TuningScope> tuningScopeOf(const CompilerOptions &options);

/// An op on a KV cache: which tensors it takes, by their number, and how.
struct CacheUse {
  size_t positions = 0, sequences = 0, pageTable = 0;
  int64_t page = 0; ///< positions of a page
  /// An attention reads the positions of `window` up to a row's; an append
  /// writes the row's alone.
  bool isAttention = false;
  KeyWindow window;

  auto operator<=>(const CacheUse &) const = default;
};

/// An op on a cache of states: the same.
struct StateUse {
  size_t positions = 0, sequences = 0, states = 0;
  int64_t slotPages = 0; ///< pages of KV caches for each slot

  auto operator<=>(const StateUse &) const = default;
};

/// Products of a program that may read their rows in several types.
struct RowChoice {
  TuningKey key; ///< that they share
  TuningSubject subject;
  std::vector<std::string> rows; ///< "#kf.rows<i8>", the target's own first
};

class KernelSet;

/// A module of functions, to be compiled once. Errors are one line; those of
/// the parser begin with their position. One thread.
class CompilerModule {
public:
  /// Reads the .mlir file at `path`, as text alone: functions of kf ops, or
  /// programs that an earlier phase made of them. With `function`, only that
  /// one stays; with `single`, there has to be just one to stay.
  static Result<CompilerModule> parse(const std::string &path,
                                      const std::string &function, bool single);
  /// The same of `text`, which errors call `name`.
  static Result<CompilerModule> parseText(std::string_view text,
                                          const std::string &name,
                                          const std::string &function,
                                          bool single);
  /// Imports one step of a model, with the types that `options` say.
  static Result<CompilerModule> import(const ModelConfig &config,
                                       const WeightSource &source,
                                       const StepShape &shape,
                                       const CompilerOptions &options);
  /// Imports a program that trains a model, with its gradients. Layers hand on
  /// what `options` say; the cache does not matter.
  static Result<CompilerModule> importTraining(const ModelConfig &config,
                                               const WeightSource &source,
                                               const TrainingShape &shape,
                                               const CompilerOptions &options);
  CompilerModule(CompilerModule &&) noexcept;
  CompilerModule &operator=(CompilerModule &&) noexcept;
  ~CompilerModule();

  /// How many ranks run the module together; 1 where it does not say.
  int64_t ranks() const;
  /// What the ops on KV caches of the only function do with the tensors that it
  /// takes, as far as they take positions, sequences and page table as they
  /// come; none for a program that an earlier phase made.
  std::vector<CacheUse> cacheUses() const;
  /// The same of the ops on caches of states, with the slots in the place of a
  /// page table.
  std::vector<StateUse> stateUses() const;
  /// Compiles the module's only function; the module is spent then. Sets
  /// `kernels`, unless that is null, to the keys that measured schedules are
  /// looked up by.
  Result<Executable> compile(const CompilerOptions &options,
                             std::vector<TuningKey> *kernels = nullptr);
  /// What there is to choose of the only function, each key once, whatever was
  /// measured; the module is spent then.
  Result<std::vector<RowChoice>> rowChoices(const CompilerOptions &options);
  /// Leaves the kernel `name` of those that compile(options) would make, in a
  /// program of one dispatch, for the functions below.
  Status isolate(const std::string &name, const CompilerOptions &options);
  /// Takes the kernels that compile(options) would make; the module is spent
  /// then.
  Result<KernelSet> kernels(const CompilerOptions &options);
  /// Runs the phases up to `phase` (import to lowered; of a kernel, program to
  /// lowered) and prints the module, which is spent then.
  Result<std::string> print(const CompilerOptions &options,
                            const std::string &phase);

private:
  friend class KernelSet;
  struct Contents;
  explicit CompilerModule(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents;
};

/// A kernel of a program, alone.
struct KernelInfo {
  std::string name;       ///< as `kf-run emit-mlir` prints it
  int64_t dispatches = 0; ///< in one run of the program
  int64_t rows = 0;       ///< the most that it computes
  /// Its arguments' types: "512x2048xf32, 5632x2048xq4_0"; ? is any extent.
  std::string description;
  TuningSubject subject; ///< the same, apart
  TuningKey key;         ///< of the database
  /// What the tensors are that it takes, to run it with.
  std::vector<KernelInput> inputs;
  /// What those are that it makes, to compare them.
  std::vector<KernelOutput> outputs;
};

/// The kernels of a program, each of which can be compiled as a program of one
/// dispatch, any number of times: its weights are the model's, its caches have
/// one layer, and inputs are what other kernels make. Errors are one line. One
/// thread.
class KernelSet {
public:
  KernelSet(KernelSet &&) noexcept;
  KernelSet &operator=(KernelSet &&) noexcept;
  ~KernelSet();

  /// In the order of their first dispatch.
  const std::vector<KernelInfo> &list() const { return infos; }
  /// Schedules that are worth measuring for list()[kernel], and what they
  /// should take on a machine with `rates`: that which the target chooses by
  /// itself first. None on the reference, which has no schedules.
  Result<std::vector<ScheduleCandidate>>
  candidates(size_t kernel, const MachineRates &rates) const;
  /// list()[kernel] with `schedule`, or, where that is empty, with the one that
  /// compile() of the module takes. An error for one that cannot be read, or
  /// that the target cannot run.
  Result<Executable> compile(size_t kernel,
                             const std::string &schedule = {}) const;
  /// The same kernel for the reference device.
  Result<Executable> compileForReference(size_t kernel) const;

private:
  friend class CompilerModule;
  struct Contents;
  KernelSet(std::unique_ptr<Contents> contents, std::vector<KernelInfo> infos);
  std::unique_ptr<Contents> contents;
  std::vector<KernelInfo> infos;
};

} // namespace kf

#endif // KF_DRIVER_COMPILER_H
