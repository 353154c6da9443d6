//===- Search.cpp - The fastest of a kernel's schedules -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/Search.h"

#include "runtime/core/Exceptions.h"
#include "runtime/measure/Statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

using namespace kf;

namespace {

/// Shares of the time: until candidates are ready, and until the last round.
constexpr double kReadyShare = 0.5, kHalvingShare = 0.75;
/// Runs that tell what a candidate costs, roughly.
constexpr int64_t kFirstRuns = 3;
/// Slower than the best by so much at first sight: out at once.
constexpr double kHopeless = 2;
/// Turns that candidates take in a round, and in the last one.
constexpr int kTurns = 6, kLastTurns = 15;
/// Turns at least, and so many undisturbed ones if any schedule but the default
/// is to win.
constexpr size_t kLeastTurns = 5;
/// Runs of one turn at most: more of a short kernel say no more.
constexpr int64_t kMostRunsOfTurn = 40;
/// Candidates beside the default that the last round has.
constexpr size_t kLast = 2;
/// What a schedule has to gain at least to be preferred to the default.
constexpr double kLeastGain = 0.01;

double median(std::span<const double> samples) {
  return statisticsOf(samples).median;
}

/// How sure the median of `samples` is: its standard error, which samples far
/// off do not move.
double errorOfMedian(std::span<const double> samples) {
  // A mean's, times 1.25 for the median of normal numbers.
  return 1.25 * statisticsOf(samples).spread /
         std::sqrt(static_cast<double>(std::max<size_t>(samples.size(), 1)));
}

class Search {
public:
  Search(std::span<const ScheduleCandidate> candidates,
         CandidateMeasurer &measurer, const SearchOptions &options)
      : candidates(candidates), measurer(measurer), options(options) {}

  Result<SearchOutcome> run();

private:
  /// A candidate that is still in.
  struct Runner {
    Runner(size_t candidate, size_t trial)
        : candidate(candidate), trial(trial) {}

    size_t candidate;
    size_t trial;               ///< in outcome.tried
    double seconds = 0;         ///< as the last round has it
    std::vector<double> turns;  ///< medians of the turns of a round
    std::vector<double> leasts; ///< the fastest runs of these
  };

  std::vector<size_t> order() const;
  Status makeReady();
  Status makeReady(size_t candidate);
  Status measureFirst(Runner &runner);
  void dropHopeless();
  Status halve();
  /// Lets `runners` take turns until `until`: every one has the same number.
  /// Those that are disturbed are taken again, and count if there are no
  /// others.
  Status takeTurns(int turns, double until);
  /// Returns whether it was disturbed.
  Result<bool> takeTurn(bool backwards, int64_t runs);
  void dropTurns(const std::vector<bool> &dropped);
  void keepFastest(size_t count);
  void decide();

  double now() const {
    if (options.clock)
      return options.clock() - began;
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count() -
           began;
  }
  void report() const {
    if (options.onProgress)
      options.onProgress(
          std::min(now() / std::max(options.seconds, 1e-9), 1.0));
  }

  std::span<const ScheduleCandidate> candidates;
  CandidateMeasurer &measurer;
  const SearchOptions &options;
  double began = 0;
  std::vector<Runner> runners; ///< the default first
  SearchOutcome outcome;
};

/// The default, then those that somebody names without a prediction, and the
/// others as the model likes them.
std::vector<size_t> Search::order() const {
  std::vector<size_t> numbers(candidates.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  std::ranges::sort(numbers.begin() + 1, numbers.end(), {}, [&](size_t i) {
    return std::pair(candidates[i].predictedSeconds, i);
  });
  numbers.resize(
      std::min(numbers.size(), std::max<size_t>(options.mostCandidates, 1)));
  return numbers;
}

Status Search::makeReady(size_t candidate) {
  TuningTrial &trial = outcome.tried.emplace_back();
  trial.schedule = candidates[candidate].schedule;
  trial.predictedSeconds = candidates[candidate].predictedSeconds;
  const bool isDefault = outcome.tried.size() == 1;
  Result<CandidateMeasurer::Verdict> verdict = measurer.prepare(candidate);
  if (verdict.ok() && verdict->agrees) {
    trial.error = verdict->error;
    runners.emplace_back(candidate, outcome.tried.size() - 1);
    if (Status status = measureFirst(runners.back()); !status.ok()) {
      if (status.isCancelled() || isDefault)
        return status;
      trial.rejected = status.message();
      runners.pop_back();
      measurer.release(candidate);
    }
    return Status();
  }
  if (verdict.status().isCancelled())
    return verdict.status();
  trial.rejected = verdict.ok() ? verdict->complaint : verdict.message();
  trial.error = verdict.ok() ? verdict->error : 0;
  measurer.release(candidate);
  return isDefault
             ? Status::error("the default schedule: " + trial.rejected,
                             verdict.status().code() == StatusCode::OutOfMemory
                                 ? StatusCode::OutOfMemory
                                 : StatusCode::Failed)
             : Status();
}

Status Search::measureFirst(Runner &runner) {
  KF_ASSIGN_OR_RETURN(std::vector<double> seconds,
                      measurer.measure(runner.candidate, kFirstRuns));
  runner.seconds = median(seconds);
  outcome.tried[runner.trial].seconds = runner.seconds;
  return Status();
}

/// At least the default and one more are made ready, however long it takes.
Status Search::makeReady() {
  for (size_t candidate : order()) {
    if (isCancelled(options.cancelled))
      return Status::cancelled();
    if (runners.size() > 1 && now() > kReadyShare * options.seconds)
      break;
    KF_RETURN_IF_ERROR(makeReady(candidate));
    report();
  }
  return Status();
}

void Search::dropHopeless() {
  double best = HUGE_VAL;
  for (const Runner &runner : runners)
    best = std::min(best, runner.seconds);
  for (size_t i = runners.size(); i-- > 1;)
    if (runners[i].seconds > kHopeless * best) {
      measurer.release(runners[i].candidate);
      runners.erase(runners.begin() + static_cast<ptrdiff_t>(i));
    }
}

Result<bool> Search::takeTurn(bool backwards, int64_t runs) {
  bool disturbed = false;
  for (size_t i = 0; i < runners.size(); ++i) {
    if (isCancelled(options.cancelled))
      return Status::cancelled();
    Runner &runner = runners[backwards ? runners.size() - 1 - i : i];
    KF_ASSIGN_OR_RETURN(std::vector<double> seconds,
                        measurer.measure(runner.candidate, runs));
    disturbed |= measurer.wasDisturbed();
    const Statistics statistics = statisticsOf(seconds);
    runner.turns.push_back(statistics.median);
    runner.leasts.push_back(statistics.least);
  }
  return disturbed;
}

void Search::dropTurns(const std::vector<bool> &dropped) {
  for (Runner &runner : runners)
    for (size_t turn = dropped.size(); turn-- > 0;)
      if (dropped[turn]) {
        runner.turns.erase(runner.turns.begin() + static_cast<ptrdiff_t>(turn));
        runner.leasts.erase(runner.leasts.begin() +
                            static_cast<ptrdiff_t>(turn));
      }
}

Status Search::takeTurns(int turns, double until) {
  double total = 0;
  for (Runner &runner : runners) {
    runner.turns.clear();
    runner.leasts.clear();
    total += runner.seconds;
  }
  const double perTurn = std::max(until - now(), 0.0) / turns;
  const int64_t runs = std::clamp<int64_t>(
      static_cast<int64_t>(perTurn / total), 1, kMostRunsOfTurn);
  std::vector<bool> disturbed;
  int quiet = 0;
  while (quiet < turns && (disturbed.size() < kLeastTurns || now() <= until)) {
    // Every other turn backwards: none always follows the same one.
    KF_ASSIGN_OR_RETURN(const bool wasDisturbed,
                        takeTurn(disturbed.size() % 2, runs));
    disturbed.push_back(wasDisturbed);
    quiet += !wasDisturbed;
    report();
  }
  outcome.disturbed = quiet < static_cast<int>(kLeastTurns);
  if (!outcome.disturbed)
    dropTurns(disturbed);
  for (Runner &runner : runners) {
    runner.seconds = median(runner.turns);
    outcome.tried[runner.trial].seconds = runner.seconds;
  }
  return Status();
}

/// The default and the `count` fastest of the others stay.
void Search::keepFastest(size_t count) {
  std::ranges::sort(runners.begin() + 1, runners.end(), {},
                    [](const Runner &runner) {
                      return std::pair(runner.seconds, runner.trial);
                    });
  while (runners.size() > count + 1) {
    measurer.release(runners.back().candidate);
    runners.pop_back();
  }
}

Status Search::halve() {
  dropHopeless();
  int rounds = 0;
  for (size_t left = runners.size() - 1; left > kLast; left = (left + 1) / 2)
    ++rounds;
  for (; rounds > 0; --rounds) {
    const double left = kHalvingShare * options.seconds - now();
    if (left <= 0) {
      keepFastest(kLast);
      break;
    }
    KF_RETURN_IF_ERROR(takeTurns(kTurns, now() + left / rounds));
    keepFastest(std::max(kLast, runners.size() / 2));
  }
  return Status();
}

/// The fastest of the others wins if it was faster than the default in the same
/// turn by more than such differences vary, and at its best, too, in turns that
/// nobody disturbed: while another process has the second thread's core, code
/// for one thread looks good.
void Search::decide() {
  const Runner &base = runners[0];
  std::vector<double> gains;
  const Runner *best = &base;
  for (const Runner &runner : runners)
    if (runner.seconds < best->seconds)
      best = &runner;
  for (size_t turn = 0; turn < base.turns.size(); ++turn)
    gains.push_back(1 - best->turns[turn] / base.turns[turn]);
  // Where the default is the fastest, its turns are held against one another.
  std::vector<double> relative;
  for (double turn : base.turns)
    relative.push_back(turn / base.seconds);
  outcome.noise =
      2 * (best == &base ? errorOfMedian(relative) : errorOfMedian(gains));
  const double gain = median(gains);
  const bool isFaster =
      gain > std::max(kLeastGain, outcome.noise) &&
      std::ranges::min(best->leasts) < std::ranges::min(base.leasts);
  const Runner &winner = isFaster && !outcome.disturbed ? *best : base;
  outcome.winner = winner.candidate;
  outcome.seconds = winner.seconds;
  outcome.defaultSeconds = base.seconds;
  outcome.error = outcome.tried[winner.trial].error;
}

Result<SearchOutcome> Search::run() {
  began = now();
  KF_RETURN_IF_ERROR(makeReady());
  KF_RETURN_IF_ERROR(halve());
  if (runners.size() > 1)
    KF_RETURN_IF_ERROR(takeTurns(kLastTurns, options.seconds));
  else
    KF_RETURN_IF_ERROR(takeTurns(kLeastTurns, now()));
  decide();
  for (const Runner &runner : runners)
    measurer.release(runner.candidate);
  return std::move(outcome);
}

} // namespace

Result<SearchOutcome>
kf::searchSchedules(std::span<const ScheduleCandidate> candidates,
                    CandidateMeasurer &measurer,
                    const SearchOptions &options) try {
  if (candidates.empty())
    return Status::error("there is no schedule to measure");
  return Search(candidates, measurer, options).run();
} catch (...) {
  return statusOfException();
}
