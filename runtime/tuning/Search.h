//===- Search.h - The fastest of a kernel's schedules -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the fastest of a few schedules by measuring them:
//
//   1. The default and those that the cost model likes best are made ready and
//      compared with the reference. One that does not agree is out, for good.
//   2. Successive halving: those that are left run a few times, the slower half
//      goes, the rest run more often. They take turns, so that a machine that
//      becomes slower does so for all.
//   3. The last ones and the default take turns for the rest of the time. The
//      default wins, unless another is faster by more than what was measured
//      twice differs. Turns that other processes disturbed do not count; where
//      nearly all were, the default wins.
//
// A kernel may run in several cases, such as with 512 rows and with 128. What
// is said above is about the first one. In the others a schedule has to be as
// fast as the default: one that is clearly slower at first sight is out, and so
// is one that is slower in a round by more than the noise.
//
// docs/decisions/schedule-search.md says why.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_SEARCH_H
#define KF_RUNTIME_TUNING_SEARCH_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Status.h"
#include "runtime/tuning/TuningDatabase.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// A schedule that may be the fastest.
struct ScheduleCandidate {
  std::string schedule;        ///< "#kf.vector<...>"
  double predictedSeconds = 0; ///< of one run; 0: not known, tried first
};

/// What measures candidates, by their number. Calls come from the search's
/// thread.
class CandidateMeasurer {
public:
  virtual ~CandidateMeasurer() = default;

  /// How a candidate's results compare with the reference's.
  struct Verdict {
    bool agrees = true;
    double error = 0;      ///< the largest difference
    std::string complaint; ///< where it does not agree
  };
  /// Makes a candidate ready and compares it. An error rejects it, but for
  /// one that is cancelled.
  virtual Result<Verdict> prepare(size_t candidate) = 0;
  /// The cases beside the one that is optimized, as in "slower with 128 rows".
  virtual std::vector<std::string> otherCases() const { return {}; }
  /// Seconds of each of `runs` runs of a candidate that agreed. Case 0 is the
  /// one that is optimized, case i otherCases()[i - 1].
  virtual Result<std::vector<double>> measure(size_t candidate, size_t inCase,
                                              int64_t runs) = 0;
  /// Whether other processes had a part of the machine in the last measure(),
  /// so that it says little about schedules for several threads.
  virtual bool wasDisturbed() const { return false; }
  /// It is not measured any more.
  virtual void release(size_t /*candidate*/) {}
};

struct SearchOutcome;

struct SearchOptions {
  size_t mostCandidates = 16; ///< that are made ready, the default among them
  double seconds = 5;         ///< for all of it; little more is taken
  CancelFlag cancelled = nullptr;
  /// Seconds since any point; empty: the system's steady clock.
  std::function<double()> clock;
  /// Called now and then with the share that is done, from 0 to 1.
  std::function<void(double)> onProgress;
  /// Called where the search is cancelled after the default was measured: with
  /// the default as the winner, and, of what was tried, what need not be tried
  /// again. That is the default, what was rejected, and what was slower than
  /// others.
  std::function<void(const SearchOutcome &)> onCancelled;
};

/// What a search found.
struct SearchOutcome {
  size_t winner = 0; ///< a candidate's number
  /// Of one run in the first case, measured in turns.
  double seconds = 0, defaultSeconds = 0;
  /// What part of a run's time two measurements of one schedule may differ by.
  double noise = 0;
  /// Too few turns were undisturbed to say anything against the default.
  bool disturbed = false;
  double error = 0; ///< of the winner, against the reference
  /// What was tried, the default first, by what was predicted.
  std::vector<TuningTrial> tried;
};

/// Searches among `candidates`, of which the first is the default. Errors: the
/// default cannot run, or is wrong; measuring fails; it is cancelled.
Result<SearchOutcome>
searchSchedules(std::span<const ScheduleCandidate> candidates,
                CandidateMeasurer &measurer, const SearchOptions &options = {});

} // namespace kf

#endif // KF_RUNTIME_TUNING_SEARCH_H
