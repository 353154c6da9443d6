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
#include <cstdio>
#include <numeric>
#include <set>

using namespace kf;

namespace {

/// Shares of the time: until candidates are ready, and until the last round.
constexpr double kReadyShare = 0.5, kHalvingShare = 0.75;
/// Runs that tell what a candidate costs, roughly.
constexpr int64_t kFirstRuns = 3;
/// Slower than the best by so much at first sight: out at once.
constexpr double kHopeless = 2;
/// Slower than the default by so much in another case at first sight: the same.
constexpr double kClearlySlower = 1.25;
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
/// What a schedule has to lose in another case at least to be out, and how many
/// times the noise, in a round and in the last one: schedules are often equal
/// there, and several have to stay. The noise of few turns is hardly known.
constexpr double kLeastLoss = 0.02, kNoisesLost = 3, kLastNoisesLost = 1.5;

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

/// What two schedules' turns say of them.
struct Comparison {
  double gain = 0;  ///< part of the other's time that a schedule saves
  double noise = 0; ///< what that may differ by, measured twice
};

/// Of `turns` beside `others`, those of another schedule at the same times.
Comparison compare(std::span<const double> turns,
                   std::span<const double> others) {
  std::vector<double> gains;
  for (size_t turn = 0; turn < turns.size(); ++turn)
    gains.push_back(1 - turns[turn] / others[turn]);
  return {median(gains), 2 * errorOfMedian(gains)};
}

class Search {
public:
  Search(std::span<const ScheduleCandidate> candidates,
         CandidateMeasurer &measurer, const SearchOptions &options)
      : candidates(candidates), measurer(measurer), options(options),
        otherCases(measurer.otherCases()) {}

  Result<SearchOutcome> run();

private:
  /// How long a candidate takes in a case.
  struct Times {
    double seconds = 0;         ///< as the last round has it
    std::vector<double> turns;  ///< medians of the turns of a round
    std::vector<double> leasts; ///< the fastest runs of these
  };
  /// A candidate that is still in.
  struct Runner {
    Runner(size_t candidate, size_t trial, size_t cases)
        : candidate(candidate), trial(trial), times(cases) {}

    size_t candidate;
    size_t trial;             ///< in outcome.tried
    std::vector<Times> times; ///< [cases]

    Times &main() { return times[0]; }
    const Times &main() const { return times[0]; }
  };

  size_t caseCount() const { return otherCases.size() + 1; }
  std::vector<size_t> order() const;
  Status makeReady();
  Status makeReady(size_t candidate);
  Status measureFirst(Runner &runner);
  /// Measures the runner beside the default in another case, and says in its
  /// trial if it is clearly slower.
  Status measureFirst(Runner &runner, size_t inCase);
  void drop(size_t runner);
  void dropHopeless();
  /// Drops what the last round showed to be slower than the default in another
  /// case, by so many times the noise.
  void dropSlowerElsewhere(double noises);
  void reject(const Runner &runner, size_t inCase, double times);
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
  Status findFastest();
  void keepSettled();

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
  const std::vector<std::string> otherCases;
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
    runners.emplace_back(candidate, outcome.tried.size() - 1, caseCount());
    if (Status status = measureFirst(runners.back()); !status.ok()) {
      if (isDefault)
        return status;
      if (status.isCancelled()) {
        // It was not tried: what it has so far says nothing of others either.
        trial.seconds = 0;
        runners.pop_back();
        measurer.release(candidate);
        return status;
      }
      trial.rejected = status.message();
    }
    if (!trial.rejected.empty()) {
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
  return isDefault ? Status::error("the default schedule: " + trial.rejected,
                                   verdict.ok() ? StatusCode::Internal
                                                : verdict.status().code())
                   : Status();
}

Status Search::measureFirst(Runner &runner) {
  KF_ASSIGN_OR_RETURN(std::vector<double> seconds,
                      measurer.measure(runner.candidate, 0, kFirstRuns));
  runner.main().seconds = median(seconds);
  outcome.tried[runner.trial].seconds = runner.main().seconds;
  for (size_t i = 1; i < caseCount(); ++i) {
    KF_RETURN_IF_ERROR(measureFirst(runner, i));
    if (!outcome.tried[runner.trial].rejected.empty())
      break;
  }
  return Status();
}

Status Search::measureFirst(Runner &runner, size_t inCase) {
  KF_ASSIGN_OR_RETURN(
      std::vector<double> base,
      measurer.measure(runners[0].candidate, inCase, kFirstRuns));
  bool disturbed = measurer.wasDisturbed();
  if (&runner == &runners[0]) {
    runner.times[inCase].seconds = median(base);
    return Status();
  }
  KF_ASSIGN_OR_RETURN(std::vector<double> seconds,
                      measurer.measure(runner.candidate, inCase, kFirstRuns));
  disturbed |= measurer.wasDisturbed();
  runner.times[inCase].seconds = median(seconds);
  // All of its runs: a single slow one says nothing.
  const double times = std::ranges::min(seconds) / median(base);
  if (times > kClearlySlower && !disturbed)
    reject(runner, inCase, times);
  return Status();
}

void Search::reject(const Runner &runner, size_t inCase, double times) {
  char factor[32];
  std::snprintf(factor, sizeof(factor), "%.2f", times);
  outcome.tried[runner.trial].rejected = "slower " + otherCases[inCase - 1] +
                                         ", " + factor +
                                         " times the default's time";
}

/// At least the default and one more are measured, however long it takes.
Status Search::makeReady() {
  size_t measured = 0;
  for (size_t candidate : order()) {
    if (isCancelled(options.cancelled))
      return Status::cancelled();
    if (measured > 1 && now() > kReadyShare * options.seconds)
      break;
    KF_RETURN_IF_ERROR(makeReady(candidate));
    measured += outcome.tried.back().seconds > 0;
    report();
  }
  return Status();
}

void Search::dropHopeless() {
  double best = HUGE_VAL;
  for (const Runner &runner : runners)
    best = std::min(best, runner.main().seconds);
  for (size_t i = runners.size(); i-- > 1;)
    if (runners[i].main().seconds > kHopeless * best)
      drop(i);
}

void Search::drop(size_t runner) {
  measurer.release(runners[runner].candidate);
  runners.erase(runners.begin() + static_cast<ptrdiff_t>(runner));
}

void Search::dropSlowerElsewhere(double noises) {
  if (outcome.disturbed)
    return;
  for (size_t i = runners.size(); i-- > 1;)
    for (size_t inCase = 1; inCase < caseCount(); ++inCase) {
      const Comparison comparison = compare(runners[i].times[inCase].turns,
                                            runners[0].times[inCase].turns);
      if (-comparison.gain <= std::max(kLeastLoss, noises * comparison.noise))
        continue;
      reject(runners[i], inCase, 1 - comparison.gain);
      drop(i);
      break;
    }
}

Result<bool> Search::takeTurn(bool backwards, int64_t runs) {
  bool disturbed = false;
  for (size_t inCase = 0; inCase < caseCount(); ++inCase)
    for (size_t i = 0; i < runners.size(); ++i) {
      if (isCancelled(options.cancelled))
        return Status::cancelled();
      Runner &runner = runners[backwards ? runners.size() - 1 - i : i];
      KF_ASSIGN_OR_RETURN(std::vector<double> seconds,
                          measurer.measure(runner.candidate, inCase, runs));
      disturbed |= measurer.wasDisturbed();
      const Statistics statistics = statisticsOf(seconds);
      runner.times[inCase].turns.push_back(statistics.median);
      runner.times[inCase].leasts.push_back(statistics.least);
    }
  return disturbed;
}

void Search::dropTurns(const std::vector<bool> &dropped) {
  for (Runner &runner : runners)
    for (Times &times : runner.times)
      for (size_t turn = dropped.size(); turn-- > 0;)
        if (dropped[turn]) {
          times.turns.erase(times.turns.begin() + static_cast<ptrdiff_t>(turn));
          times.leasts.erase(times.leasts.begin() +
                             static_cast<ptrdiff_t>(turn));
        }
}

Status Search::takeTurns(int turns, double until) {
  double total = 0;
  for (Runner &runner : runners)
    for (Times &times : runner.times) {
      times.turns.clear();
      times.leasts.clear();
      total += times.seconds;
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
    for (Times &times : runner.times)
      times.seconds = median(times.turns);
    outcome.tried[runner.trial].seconds = runner.main().seconds;
  }
  return Status();
}

/// The default and the `count` fastest of the others stay.
void Search::keepFastest(size_t count) {
  std::ranges::sort(runners.begin() + 1, runners.end(), {},
                    [](const Runner &runner) {
                      return std::pair(runner.main().seconds, runner.trial);
                    });
  while (runners.size() > count + 1)
    drop(runners.size() - 1);
}

Status Search::halve() {
  dropHopeless();
  int rounds = 0;
  for (size_t left = runners.size() - 1; left > kLast; left = (left + 1) / 2)
    ++rounds;
  for (; rounds > 0 && runners.size() > kLast + 1; --rounds) {
    const double left = kHalvingShare * options.seconds - now();
    if (left <= 0) {
      keepFastest(kLast);
      break;
    }
    KF_RETURN_IF_ERROR(takeTurns(kTurns, now() + left / rounds));
    dropSlowerElsewhere(kNoisesLost);
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
  const Runner *best = &base;
  for (const Runner &runner : runners)
    if (runner.main().seconds < best->main().seconds)
      best = &runner;
  // Where the default is the fastest, its turns are held against one another.
  const std::vector<double> always(base.main().turns.size(),
                                   base.main().seconds);
  const Comparison comparison =
      compare(best->main().turns, best == &base ? always : base.main().turns);
  outcome.noise = comparison.noise;
  const bool isFaster = comparison.gain > std::max(kLeastGain, outcome.noise) &&
                        std::ranges::min(best->main().leasts) <
                            std::ranges::min(base.main().leasts);
  const Runner &winner = isFaster && !outcome.disturbed ? *best : base;
  outcome.winner = winner.candidate;
  outcome.seconds = winner.main().seconds;
  outcome.defaultSeconds = base.main().seconds;
  outcome.error = outcome.tried[winner.trial].error;
}

Status Search::findFastest() {
  KF_RETURN_IF_ERROR(makeReady());
  KF_RETURN_IF_ERROR(halve());
  if (runners.size() > 1)
    KF_RETURN_IF_ERROR(takeTurns(kLastTurns, options.seconds));
  else
    KF_RETURN_IF_ERROR(takeTurns(kLeastTurns, now()));
  dropSlowerElsewhere(kLastNoisesLost);
  decide();
  return Status();
}

/// Leaves, of what was tried, the default and what is out.
void Search::keepSettled() {
  dropHopeless();
  std::set<size_t> undecided;
  for (size_t i = 1; i < runners.size(); ++i)
    undecided.insert(runners[i].trial);
  std::vector<TuningTrial> settled;
  for (size_t trial = 0; trial < outcome.tried.size(); ++trial) {
    const TuningTrial &tried = outcome.tried[trial];
    // One that was interrupted has neither.
    if (!undecided.contains(trial) &&
        (tried.seconds > 0 || !tried.rejected.empty()))
      settled.push_back(tried);
  }
  outcome.tried = std::move(settled);
  outcome.winner = runners[0].candidate;
  outcome.seconds = outcome.tried[0].seconds;
  outcome.error = outcome.tried[0].error;
}

Result<SearchOutcome> Search::run() {
  began = now();
  if (Status status = findFastest(); !status.ok()) {
    if (status.isCancelled() && options.onCancelled && !runners.empty() &&
        outcome.tried[0].seconds > 0) {
      keepSettled();
      options.onCancelled(outcome);
    }
    return status;
  }
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
