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
  std::unique_ptr<KernelRunner> runner;
  std::unique_ptr<KernelMeasurer> measurer;

  const KernelInfo &info() const { return step->kernels.list()[kernel]; }
};

/// The parts of each of `ways`, which have no runners yet.
std::vector<std::vector<Part>> partsOf(std::span<const TunedStep> ways) {
  std::map<TuningKey, std::vector<int64_t>> dispatches; // by way
  for (size_t way = 0; way < ways.size(); ++way)
    for (const KernelInfo &info : ways[way].kernels.list()) {
      std::vector<int64_t> &counts = dispatches[info.key];
      counts.resize(ways.size());
      counts[way] += info.dispatches;
    }
  std::vector<std::vector<Part>> parts(ways.size());
  for (size_t way = 0; way < ways.size(); ++way)
    for (size_t kernel = 0; kernel < ways[way].kernels.list().size();
         ++kernel) {
      const KernelInfo &info = ways[way].kernels.list()[kernel];
      const int64_t others =
          info.dispatches - std::ranges::min(dispatches[info.key]);
      if (others > 0)
        parts[way].push_back(
            {&ways[way], kernel, static_cast<double>(others), {}, {}});
    }
  return parts;
}

/// A candidate is a way; its time is that of all of its parts.
class RowsMeasurer final : public CandidateMeasurer {
public:
  static Result<std::unique_ptr<RowsMeasurer>>
  create(std::span<const TunedStep> ways, Device &device, Device &reference,
         const TunerOptions &options);

  Result<Verdict> prepare(size_t candidate) override {
    Verdict all;
    for (const Part &part : parts[candidate]) {
      KF_ASSIGN_OR_RETURN(Verdict verdict, part.measurer->prepare(0));
      all.error = std::max(all.error, verdict.error);
      if (verdict.agrees)
        continue;
      all.agrees = false;
      all.complaint = part.info().name + ": " + verdict.complaint;
      break;
    }
    return all;
  }
  std::vector<std::string> otherCases() const override {
    for (const std::vector<Part> &ofWay : parts)
      for (const Part &part : ofWay)
        return part.measurer->otherCases();
    return {};
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
    for (const Part &part : parts[candidate])
      part.measurer->release(0);
  }

private:
  explicit RowsMeasurer(std::vector<std::vector<Part>> parts)
      : parts(std::move(parts)) {}

  std::vector<std::vector<Part>> parts; ///< by way
  bool disturbed = false;
};

Result<std::unique_ptr<RowsMeasurer>>
RowsMeasurer::create(std::span<const TunedStep> ways, Device &device,
                     Device &reference, const TunerOptions &options) {
  std::vector<std::vector<Part>> parts = partsOf(ways);
  KernelRunnerOptions runnerOptions;
  runnerOptions.rotateBytes = options.rotateBytes;
  runnerOptions.packing = {options.pool, options.cancelled};
  // Those that every part runs with.
  std::vector<int64_t> fewer;
  bool isFirst = true;
  for (std::vector<Part> &ofWay : parts)
    for (Part &part : ofWay) {
      KF_ASSIGN_OR_RETURN(const Executable program,
                          part.step->kernels.compileForReference(part.kernel));
      KF_ASSIGN_OR_RETURN(
          part.runner,
          KernelRunner::create(device, reference, program,
                               caseOf(*part.step, part.info(), options.depth),
                               runnerOptions));
      const std::vector<int64_t> own =
          fewerTokens(*part.step, part.info(), program);
      if (std::exchange(isFirst, false))
        fewer = own;
      std::erase_if(fewer, [&](int64_t tokens) {
        return std::ranges::find(own, tokens) == own.end();
      });
    }
  for (std::vector<Part> &ofWay : parts)
    for (Part &part : ofWay)
      part.measurer = std::make_unique<KernelMeasurer>(
          *part.runner,
          [step = part.step, kernel = part.kernel](size_t) {
            return step->kernels.compile(kernel);
          },
          options.cancelled, fewer);
  return std::unique_ptr<RowsMeasurer>(new RowsMeasurer(std::move(parts)));
}

} // namespace

Result<TuneResult> kf::tuneRows(const RowChoice &choice,
                                std::span<const TunedStep> ways, Device &device,
                                Device &reference, const TunerOptions &options,
                                double seconds,
                                const std::function<void(double)> &onProgress) {
  const Stopwatch begun;
  KF_ASSIGN_OR_RETURN(const std::unique_ptr<RowsMeasurer> measurer,
                      RowsMeasurer::create(ways, device, reference, options));
  std::vector<ScheduleCandidate> candidates;
  for (const std::string &rows : choice.rows)
    candidates.push_back({rows, 0});
  SearchOptions search;
  search.mostCandidates = candidates.size();
  search.seconds = seconds - begun.seconds();
  search.cancelled = options.cancelled;
  search.onProgress = onProgress;
  KF_ASSIGN_OR_RETURN(const SearchOutcome outcome,
                      searchSchedules(candidates, *measurer, search));
  TuneResult result;
  result.noise = outcome.noise;
  result.disturbed = outcome.disturbed;
  result.entry = entryOf(choice.key, choice.subject, outcome,
                         candidates[outcome.winner].schedule);
  result.entry.tried = outcome.tried;
  for (TuningTrial &trial : result.entry.tried)
    trial.rejected = printable(trial.rejected);
  return result;
}
