//===- KernelTuner.h - Schedules of a model's kernels, measured -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_KERNELTUNER_H
#define KF_TOOLS_KF_RUN_KERNELTUNER_H

#include "kf/Driver/Compiler.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/devices/Device.h"
#include "runtime/measure/MachineRates.h"
#include "runtime/tuning/KernelInputs.h"
#include "runtime/tuning/Search.h"
#include "runtime/tuning/TuningDatabase.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// The most schedules of a kernel that are tried.
inline constexpr size_t kMostCandidates = 16;

/// A program whose kernels are tuned.
struct TunedStep {
  std::string name; ///< "body_512"
  int64_t tokens;   ///< rows that it is made fast for
  /// Sequences that these rows are of, as many of each. Where each has one row,
  /// they generate, behind TunerOptions::depth others.
  int64_t sequences;
  double weight; ///< of its time, against that of other steps
  KernelSet kernels;
};

/// A kernel of a step.
struct TuneTask {
  const TunedStep *step = nullptr;
  size_t kernel = 0; ///< its number in the step
  /// The default first; a single one leaves nothing to choose.
  std::vector<ScheduleCandidate> candidates;
  double share = 0; ///< of the step's time, by what is predicted

  /// What its time counts.
  double weight() const { return share * step->weight; }

  const KernelInfo &info() const { return step->kernels.list()[kernel]; }
  /// Seconds that `schedule` should take, by the same rates as all others of
  /// the kernel; 0: not known.
  double predictedSeconds(const std::string &schedule) const;
  /// "body_1 matmul_0".
  std::string name() const { return step->name + " " + info().name; }
};

/// How the search for a kernel's schedule went.
struct TuneResult {
  TuningEntry entry;
  double noise = 0;       ///< of the times, relative
  bool disturbed = false; ///< as SearchOutcome has it
};

/// How a kernel of `step` runs, behind `depth` positions where it generates.
KernelCase caseOf(const TunedStep &step, const KernelInfo &info, int64_t depth);

/// A program for many rows is run for what is left of a prompt, and for short
/// prompts as well: a quarter and a sixteenth of its rows stand for these. None
/// where the kernel computes a single row in any case, `program` takes no
/// fewer, or the step is of tokens that sequences generate, for fewer of which
/// there are smaller programs.
std::vector<int64_t> fewerTokens(const TunedStep &step, const KernelInfo &info,
                                 const Executable &program);

/// What a search found, as of today, without what was tried.
TuningEntry entryOf(const TuningKey &key, const TuningSubject &subject,
                    const SearchOutcome &outcome, const std::string &schedule);
/// Text of an error as an entry holds it.
std::string printable(const std::string &text);

/// Whether the schedule of `entry` was measured beside the default, in turns.
/// That of a search that was interrupted was not.
bool isFinished(const TuningEntry &entry);

struct TunerOptions {
  double budget = 60;         ///< seconds, from the tuner's making on
  int64_t depth = 512;        ///< positions before a token that is generated
  uint64_t rotateBytes = 0;   ///< as KernelRunnerOptions has it
  bool again = false;         ///< tries what was tried before, too
  ThreadPool *pool = nullptr; ///< packs weights; may be null
  CancelFlag cancelled = nullptr;
};

/// Tunes kernels on a device, one after the other. The devices, `database` and
/// steps must outlive it. One thread.
class KernelTuner {
public:
  KernelTuner(Device &device, Device &reference, TuningDatabase &database,
              const TunerOptions &options)
      : device(device), reference(reference), database(database),
        options(options) {}

  /// The kernels of `steps`, each key once, with what there is to choose from.
  static Result<std::vector<TuneTask>> tasksOf(std::span<const TunedStep> steps,
                                               const MachineRates &rates);

  /// Whether the database holds all that could be tried.
  bool isDone(const TuneTask &task) const;
  /// Whether a search for the kernel's schedule came to its end.
  bool isTuned(const TuneTask &task) const;
  /// Seconds of the budget that are left.
  double left() const { return options.budget - watch.seconds(); }

  /// Searches for `seconds`, and inserts what is found, with what was tried
  /// before. With fewer rows than the step's no schedule is chosen that is
  /// slower than the default. What was chosen before stays where other
  /// processes disturb. `onProgress` as in SearchOptions. Where it is
  /// cancelled, what need not be tried again is inserted.
  Result<TuneResult> tune(const TuneTask &task, double seconds,
                          const std::function<void(double)> &onProgress);

private:
  std::vector<ScheduleCandidate> untried(const TuneTask &task) const;
  Status insertUnfinished(const TuneTask &task, const SearchOutcome &outcome);

  Device &device, &reference;
  TuningDatabase &database;
  TunerOptions options;
  Stopwatch watch;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_KERNELTUNER_H
