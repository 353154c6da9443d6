//===- RowsTuner.cpp - What products read rows in, measured ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowsTuner.h"

#include "runtime/tuning/KernelMeasurer.h"

#include <algorithm>
#include <map>
#include <utility>

using namespace kf;

namespace {

/// A kernel of a way, and how many of its dispatches others have not.
struct Part {
  const TunedStep *step;
  size_t kernel; ///< its number in the step
  double dispatches;
  std::unique_ptr<KernelRunner> runner = nullptr;
  std::unique_ptr<KernelMeasurer> measurer = nullptr;

  const KernelInfo &info() const { return step->kernels.list()[kernel]; }
};

/// One of the types, or why there is no step for it.
using Way = Result<TunedStep>;

/// The parts of each of `ways`, one for each key, which have no runners yet.
std::vector<std::vector<Part>> partsOf(std::span<const Way> ways) {
  struct Use {
    size_t kernel = 0; ///< a kernel of the key
    int64_t dispatches = 0;
  };
  std::map<TuningKey, std::vector<Use>> uses; // by way
  for (size_t way = 0; way < ways.size(); ++way) {
    if (!ways[way].ok())
      continue;
    const std::vector<KernelInfo> &kernels = ways[way]->kernels.list();
    for (size_t kernel = 0; kernel < kernels.size(); ++kernel) {
      std::vector<Use> &ofKey = uses[kernels[kernel].key];
      ofKey.resize(ways.size());
      ofKey[way].kernel = kernel;
      ofKey[way].dispatches += kernels[kernel].dispatches;
    }
  }
  std::vector<std::vector<Part>> parts(ways.size());
  for (const auto &[key, ofKey] : uses) {
    const int64_t shared =
        std::ranges::min(ofKey, {}, &Use::dispatches).dispatches;
    for (size_t way = 0; way < ways.size(); ++way)
      if (const int64_t others = ofKey[way].dispatches - shared; others > 0)
        parts[way].push_back(
            {&*ways[way], ofKey[way].kernel, static_cast<double>(others)});
  }
  return parts;
}

/// A candidate is a way; its time is that of all of its parts.
class RowsMeasurer final : public CandidateMeasurer {
public:
  RowsMeasurer(std::span<const Way> ways, std::vector<std::vector<Part>> parts,
               Device &device, Device &reference, const TunerOptions &options)
      : ways(ways), parts(std::move(parts)), device(device),
        reference(reference), options(options) {}

  /// Finds the other cases, which are those that every part runs with.
  Status findCases();
  /// Seconds that were spent on the reference's results so far.
  double secondsOfReference() const { return referenceSeconds; }

  Result<Verdict> prepare(size_t candidate) override {
    KF_RETURN_IF_ERROR(ways[candidate].status());
    Verdict all;
    for (Part &part : parts[candidate]) {
      KF_RETURN_IF_ERROR(setUp(part).in(part.info().name));
      Result<Verdict> verdict = part.measurer->prepare(0);
      if (!verdict.ok())
        return verdict.status().in(part.info().name);
      all.error = std::max(all.error, verdict->error);
      if (verdict->agrees)
        continue;
      all.agrees = false;
      all.complaint = part.info().name + ": " + verdict->complaint;
      break;
    }
    return all;
  }
  std::vector<std::string> otherCases() const override {
    return namesOfCases(fewer);
  }
  Result<std::vector<double>> measure(size_t candidate, size_t inCase,
                                      int64_t runs) override {
    disturbed = false;
    std::vector<double> sums(static_cast<size_t>(runs));
    for (const Part &part : parts[candidate]) {
      KF_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                          part.measurer->measure(0, inCase, runs));
      for (size_t run = 0; run < sums.size(); ++run)
        sums[run] += part.dispatches * seconds[run];
      disturbed |= part.measurer->wasDisturbed();
    }
    return sums;
  }
  bool wasDisturbed() const override { return disturbed; }
  void release(size_t candidate) override {
    for (Part &part : parts[candidate]) {
      part.measurer.reset();
      part.runner.reset();
    }
  }

private:
  /// Makes what measures `part`.
  Status setUp(Part &part);

  std::span<const Way> ways;
  std::vector<std::vector<Part>> parts; ///< by way
  Device &device, &reference;
  const TunerOptions &options;
  std::vector<int64_t> fewer; ///< rows of the other cases
  double referenceSeconds = 0;
  bool disturbed = false;
};

Status RowsMeasurer::findCases() {
  bool isFirst = true;
  for (size_t way = 0; way < parts.size(); ++way)
    for (const Part &part : parts[way]) {
      const Result<Executable> program =
          part.step->kernels.compileForReference(part.kernel);
      // prepare() says of the others what is wrong with them.
      if (!program.ok() && (way == 0 || program.status().isCancelled()))
        return program.status();
      if (!program.ok())
        continue;
      const std::vector<int64_t> own =
          fewerTokens(*part.step, part.info(), *program);
      if (std::exchange(isFirst, false))
        fewer = own;
      std::erase_if(fewer, [&](int64_t tokens) {
        return std::ranges::find(own, tokens) == own.end();
      });
    }
  return Status();
}

Status RowsMeasurer::setUp(Part &part) {
  const Stopwatch watch;
  KF_ASSIGN_OR_RETURN(const Executable program,
                      part.step->kernels.compileForReference(part.kernel));
  KernelRunnerOptions runnerOptions;
  runnerOptions.rotateBytes = options.rotateBytes;
  runnerOptions.packing = {options.pool, options.cancelled};
  KF_ASSIGN_OR_RETURN(
      part.runner,
      KernelRunner::create(device, reference, program,
                           caseOf(*part.step, part.info(), options.depth),
                           runnerOptions));
  part.measurer = std::make_unique<KernelMeasurer>(
      *part.runner,
      [step = part.step, kernel = part.kernel](size_t) {
        return step->kernels.compile(kernel);
      },
      options.cancelled, fewer);
  referenceSeconds += watch.seconds();
  return Status();
}

/// The steps that `makeWay` makes. Errors: those of the first.
Result<std::vector<Way>> makeWays(const RowChoice &choice,
                                  const MakeWay &makeWay) {
  std::vector<Way> ways;
  for (const std::string &rows : choice.rows) {
    Way way = makeWay(rows);
    if (!way.ok() && (ways.empty() || way.status().isCancelled()))
      return way.status();
    ways.push_back(std::move(way));
  }
  return ways;
}

} // namespace

Result<std::optional<TuneResult>>
kf::tuneRows(const RowChoice &choice, const MakeWay &makeWay, Device &device,
             Device &reference, const TunerOptions &options, double seconds,
             const std::function<void(double)> &onProgress) {
  KF_ASSIGN_OR_RETURN(const std::vector<Way> ways, makeWays(choice, makeWay));
  std::vector<std::vector<Part>> parts = partsOf(ways);
  for (size_t way = 0; way < ways.size(); ++way)
    if (ways[way].ok() && parts[way].empty())
      return std::optional<TuneResult>();
  RowsMeasurer measurer(ways, std::move(parts), device, reference, options);
  KF_RETURN_IF_ERROR(measurer.findCases());
  std::vector<ScheduleCandidate> candidates;
  for (const std::string &rows : choice.rows)
    candidates.push_back({rows, 0});
  const Stopwatch watch;
  SearchOptions search;
  search.mostCandidates = candidates.size();
  search.seconds = seconds;
  search.clock = [&] {
    return watch.seconds() - measurer.secondsOfReference();
  };
  search.cancelled = options.cancelled;
  search.onProgress = onProgress;
  KF_ASSIGN_OR_RETURN(const SearchOutcome outcome,
                      searchSchedules(candidates, measurer, search));
  TuneResult result;
  result.noise = outcome.noise;
  result.disturbed = outcome.disturbed;
  result.entry = entryOf(choice.key, choice.subject, outcome,
                         candidates[outcome.winner].schedule);
  result.entry.tried = outcome.tried;
  for (TuningTrial &trial : result.entry.tried)
    trial.rejected = printable(trial.rejected);
  return std::optional(std::move(result));
}
