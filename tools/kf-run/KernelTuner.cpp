//===- KernelTuner.cpp - Schedules of a model's kernels, measured ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTuner.h"

#include "runtime/tuning/KernelMeasurer.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

using namespace kf;

namespace {

/// The first, and the best of the others as they are predicted.
std::vector<ScheduleCandidate> best(std::span<const ScheduleCandidate> all,
                                    size_t most) {
  std::vector<const ScheduleCandidate *> order;
  for (const ScheduleCandidate &candidate : all)
    order.push_back(&candidate);
  // Of those that are predicted alike, the earlier.
  if (order.size() > 1)
    std::ranges::sort(order.begin() + 1, order.end(), {},
                      [](const ScheduleCandidate *candidate) {
                        const double seconds = candidate->predictedSeconds;
                        return std::pair(seconds > 0 ? seconds : HUGE_VAL,
                                         candidate);
                      });
  order.resize(std::min(order.size(), most));
  std::vector<ScheduleCandidate> result;
  for (const ScheduleCandidate *candidate : order)
    result.push_back(*candidate);
  return result;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  char text[16] = "";
  if (localtime_r(&now, &parts))
    std::strftime(text, sizeof(text), "%Y-%m-%d", &parts);
  return text;
}

bool isAmong(const std::string &schedule,
             std::span<const ScheduleCandidate> candidates) {
  return std::ranges::find(candidates, schedule,
                           &ScheduleCandidate::schedule) != candidates.end();
}
bool isAmong(const std::string &schedule, std::span<const TuningTrial> trials) {
  return std::ranges::find(trials, schedule, &TuningTrial::schedule) !=
         trials.end();
}

bool isRejected(const std::string &schedule,
                std::span<const TuningTrial> trials) {
  return std::ranges::any_of(trials, [&](const TuningTrial &trial) {
    return trial.schedule == schedule && !trial.rejected.empty();
  });
}

/// `trials` take the place of those of the same schedules.
void addTrials(TuningEntry &entry, const TuneTask &task,
               std::vector<TuningTrial> trials) {
  for (TuningTrial &trial : trials) {
    trial.rejected = printable(trial.rejected);
    // What was the fastest before has none in the search, to be tried first.
    if (trial.predictedSeconds == 0)
      trial.predictedSeconds = task.predictedSeconds(trial.schedule);
  }
  for (TuningTrial &trial : entry.tried)
    if (!isAmong(trial.schedule, trials))
      trials.push_back(std::move(trial));
  entry.tried = std::move(trials);
}

/// Whether each row of the step is a sequence's next token.
bool isGenerating(const TunedStep &step) {
  return step.sequences == step.tokens;
}

} // namespace

std::string kf::printable(const std::string &text) {
  std::string result = text.substr(0, 1024);
  for (char &c : result)
    if (c < ' ' || c > '~')
      c = '?';
  return result;
}

TuningEntry kf::entryOf(const TuningKey &key, const TuningSubject &subject,
                        const SearchOutcome &outcome,
                        const std::string &schedule) {
  TuningEntry entry;
  entry.key = key;
  entry.subject = subject;
  entry.schedule = schedule;
  entry.seconds = outcome.seconds;
  entry.defaultSeconds = outcome.defaultSeconds;
  entry.error = outcome.error;
  entry.date = today();
  return entry;
}

KernelCase kf::caseOf(const TunedStep &step, const KernelInfo &info,
                      int64_t depth) {
  const bool generates = isGenerating(step);
  KernelCase result;
  result.tokens = step.tokens;
  result.sizes = {{kSequencesSize, step.sequences}, {kRowsSize, step.tokens}};
  result.depth = generates ? depth : 0;
  result.inputs = info.inputs;
  result.outputs = info.outputs;
  return result;
}

std::vector<int64_t> kf::fewerTokens(const TunedStep &step,
                                     const KernelInfo &info,
                                     const Executable &program) {
  std::vector<int64_t> result;
  if (info.rows > 1 && !isGenerating(step))
    for (int64_t part : {4, 16})
      if (const int64_t tokens = step.tokens / part;
          tokens > 1 && tokens >= program.minTokens)
        result.push_back(tokens);
  return result;
}

bool kf::isFinished(const TuningEntry &entry) {
  return entry.defaultSeconds > 0;
}

double TuneTask::predictedSeconds(const std::string &schedule) const {
  auto found =
      std::ranges::find(candidates, schedule, &ScheduleCandidate::schedule);
  return found == candidates.end() ? 0 : found->predictedSeconds;
}

Result<std::vector<TuneTask>>
KernelTuner::tasksOf(std::span<const TunedStep> steps,
                     const MachineRates &rates) {
  std::vector<TuneTask> tasks;
  std::set<TuningKey> keys;
  for (const TunedStep &step : steps) {
    const size_t first = tasks.size();
    double total = 0;
    for (size_t i = 0; i < step.kernels.list().size(); ++i) {
      KF_ASSIGN_OR_RETURN(std::vector<ScheduleCandidate> candidates,
                          step.kernels.candidates(i, rates));
      const KernelInfo &info = step.kernels.list()[i];
      if (candidates.empty() || !keys.insert(info.key).second)
        continue;
      TuneTask &task = tasks.emplace_back();
      task.step = &step;
      task.kernel = i;
      // Without a model, kernels are alike.
      const double seconds = candidates[0].predictedSeconds;
      task.share =
          static_cast<double>(info.dispatches) * (seconds > 0 ? seconds : 1e-6);
      total += task.share;
      task.candidates = best(candidates, kMostCandidates);
    }
    for (size_t i = first; i < tasks.size(); ++i)
      tasks[i].share /= total;
  }
  return tasks;
}

std::vector<ScheduleCandidate>
KernelTuner::untried(const TuneTask &task) const {
  const TuningEntry *entry = database.find(task.info().key);
  if (!entry || options.again)
    return task.candidates;
  std::vector<ScheduleCandidate> rest;
  for (const ScheduleCandidate &candidate : task.candidates)
    if (!isAmong(candidate.schedule, entry->tried))
      rest.push_back(candidate);
  return rest;
}

bool KernelTuner::isDone(const TuneTask &task) const {
  return task.candidates.size() < 2 || (isTuned(task) && untried(task).empty());
}

bool KernelTuner::isTuned(const TuneTask &task) const {
  const TuningEntry *entry = database.find(task.info().key);
  return entry && isFinished(*entry);
}

Status KernelTuner::insertUnfinished(const TuneTask &task,
                                     const SearchOutcome &outcome) {
  const TuningEntry *before = database.find(task.info().key);
  TuningEntry entry = entryOf(task.info().key, task.info().subject, outcome,
                              task.candidates[0].schedule);
  if (before && isRejected(before->schedule, outcome.tried))
    entry.tried = before->tried;
  else if (before)
    entry = *before;
  addTrials(entry, task, outcome.tried);
  return database.insert(entry);
}

Result<TuneResult>
KernelTuner::tune(const TuneTask &task, double seconds,
                  const std::function<void(double)> &onProgress) {
  const Stopwatch begun;
  const KernelInfo &info = task.info();
  const KernelSet &kernels = task.step->kernels;
  // The default, what was the fastest so far, and what is new.
  std::vector<ScheduleCandidate> candidates = untried(task);
  const TuningEntry *before = database.find(info.key);
  const ScheduleCandidate &byDefault = task.candidates[0];
  if (before) {
    if (before->schedule != byDefault.schedule &&
        !isAmong(before->schedule, candidates))
      candidates.insert(candidates.begin(), {before->schedule, 0});
    std::erase_if(candidates, [&](const ScheduleCandidate &candidate) {
      return candidate.schedule == byDefault.schedule;
    });
    candidates.insert(candidates.begin(), byDefault);
  }

  KF_ASSIGN_OR_RETURN(Executable program,
                      kernels.compileForReference(task.kernel));
  KernelRunnerOptions runnerOptions;
  runnerOptions.rotateBytes = options.rotateBytes;
  runnerOptions.packing = {options.pool, options.cancelled};
  KF_ASSIGN_OR_RETURN(
      std::unique_ptr<KernelRunner> runner,
      KernelRunner::create(device, reference, program,
                           caseOf(*task.step, info, options.depth),
                           runnerOptions));
  KernelMeasurer measurer(
      *runner,
      [&](size_t candidate) {
        return kernels.compile(task.kernel, candidates[candidate].schedule);
      },
      options.cancelled, fewerTokens(*task.step, info, program));
  SearchOptions search;
  search.mostCandidates = candidates.size();
  search.seconds = seconds - begun.seconds();
  search.cancelled = options.cancelled;
  search.onProgress = onProgress;
  Status kept;
  search.onCancelled = [&](const SearchOutcome &unfinished) {
    kept = insertUnfinished(task, unfinished);
  };
  Result<SearchOutcome> searched =
      searchSchedules(candidates, measurer, search);
  KF_RETURN_IF_ERROR(kept);
  KF_ASSIGN_OR_RETURN(const SearchOutcome outcome, std::move(searched));

  TuneResult result;
  result.noise = outcome.noise;
  result.disturbed = outcome.disturbed;
  TuningEntry &entry = result.entry;
  const bool wasChosen =
      before && (isFinished(*before) || before->schedule != byDefault.schedule);
  // A busy machine says nothing against what was chosen before, unless that is
  // wrong.
  if (wasChosen && outcome.disturbed &&
      !isRejected(before->schedule, outcome.tried)) {
    entry = *before;
  } else {
    entry = entryOf(info.key, info.subject, outcome,
                    candidates[outcome.winner].schedule);
    if (before)
      entry.tried = before->tried;
  }
  addTrials(entry, task, outcome.tried);
  KF_RETURN_IF_ERROR(database.insert(entry));
  return result;
}
