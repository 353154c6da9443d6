//===- KernelVariant.cpp - A program that is measured and compared --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelRunner.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/measure/Ceilings.h"

#include <algorithm>
#include <ctime>

using namespace kf;

namespace {

/// Runs that are enqueued before somebody waits for them.
constexpr int64_t kRunsAtOnce = 16;
/// What results are before a run: NaNs, and integers that no kernel gives.
constexpr uint32_t kUnwritten = 0xffffffff;

/// Seconds of a processor that the calling thread has used.
double ownSeconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace

Result<Instance *> KernelVariant::instanceFor(int64_t copy) {
  instances.resize(
      std::max<size_t>(instances.size(), static_cast<size_t>(copy) + 1));
  std::unique_ptr<Instance> &slot = instances[copy];
  if (slot)
    return slot.get();
  KF_ASSIGN_OR_RETURN(BindingTable table,
                      runner.tableOf(loaded->program(), arena.get(), copy));
  KF_ASSIGN_OR_RETURN(slot, loaded->bind(table));
  return slot.get();
}

Result<std::vector<HostTensor>> KernelVariant::run(int64_t tokens) {
  KF_ASSIGN_OR_RETURN(Instance * instance, instanceFor(0));
  KF_RETURN_IF_ERROR(runner.resetCaches(loaded->program()));
  Stream &stream = *runner.stream;
  const KernelRunner::Scalars scalars = runner.scalarsFor(tokens);
  Status status;
  for (const auto &output : runner.outputBuffers)
    if (status.ok())
      status = stream.fill(*output, 0, output->size(), kUnwritten);
  if (status.ok())
    status = stream.enqueue(*instance, scalars);
  Status done = stream.synchronize();
  KF_RETURN_IF_ERROR(status);
  KF_RETURN_IF_ERROR(done);
  return runner.results(loaded->program(), scalars);
}

Result<ResultDifference> KernelVariant::check() try {
  KF_ASSIGN_OR_RETURN(std::vector<HostTensor> found, run(runner.checkTokens));
  KF_ASSIGN_OR_RETURN(ResultDifference difference,
                      compareResults(found, runner.expected, tolerance,
                                     runner.runCase.outputs));
  if (!difference.agrees || runner.checkTokens == runner.runCase.tokens)
    return difference;
  KF_ASSIGN_OR_RETURN(found, run(runner.runCase.tokens));
  auto setStandard = [&] {
    runner.standard = std::move(found);
    runner.standardRoundsPairs = tolerance.roundsPairs;
  };
  if (runner.standard.empty()) {
    setStandard();
    return difference;
  }
  // Both may be off, to either side.
  ResultTolerance twice = tolerance;
  twice.roundsPairs |= runner.standardRoundsPairs;
  twice.scale *= 2;
  KF_ASSIGN_OR_RETURN(
      ResultDifference all,
      compareResults(found, runner.standard, twice, runner.runCase.outputs));
  if (all.agrees) {
    if (runner.standardRoundsPairs && !tolerance.roundsPairs)
      setStandard();
    return difference;
  }
  all.complaint = "with " + std::to_string(runner.runCase.tokens) + " rows, " +
                  all.complaint;
  return all;
} catch (...) {
  return statusOfException();
}

Result<std::vector<double>>
KernelVariant::measure(int64_t runs, CancelFlag cancelled, int64_t tokens) try {
  const int64_t all = runner.runCase.tokens;
  if (tokens > all)
    return Status::error("the case has " + std::to_string(all) + " rows, not " +
                         std::to_string(tokens));
  if (tokens == 0)
    tokens = all;
  if (!isWarm) {
    KF_RETURN_IF_ERROR(runner.makeCopies(loaded->program()));
    double unused;
    KF_RETURN_IF_ERROR(measureSome({&unused, 1}, tokens, cancelled));
    isWarm = true;
  }
  std::vector<double> seconds(runs);
  const bool lacked = runner.lacksWorkers();
  const double used = ownSeconds();
  const Stopwatch watch;
  for (int64_t first = 0; first < runs; first += kRunsAtOnce)
    KF_RETURN_IF_ERROR(measureSome(
        std::span(seconds).subspan(first, std::min(kRunsAtOnce, runs - first)),
        tokens, cancelled));
  const double passed = watch.seconds();
  runner.disturbed =
      lacked || runner.lacksWorkers() ||
      (runner.isCallersWork() && !hadCores(ownSeconds() - used, passed, 1));
  return seconds;
} catch (...) {
  return statusOfException();
}

Status KernelVariant::measureSome(std::span<double> seconds, int64_t tokens,
                                  CancelFlag cancelled) {
  const KernelRunner::Scalars scalars = runner.scalarsFor(tokens);
  std::vector<DispatchTimes> times(seconds.size());
  Status status;
  for (DispatchTimes &time : times) {
    runner.nextCopy = (runner.nextCopy + 1) % runner.copyCount;
    Result<Instance *> instance = instanceFor(runner.nextCopy);
    status = instance.ok()
                 ? runner.stream->enqueue(**instance, scalars, {&time})
                 : instance.status();
    if (!status.ok())
      break;
  }
  // In any case: what was enqueued writes to `times`.
  Status done = runner.stream->synchronize(cancelled);
  KF_RETURN_IF_ERROR(status);
  KF_RETURN_IF_ERROR(done);
  for (size_t i = 0; i < seconds.size(); ++i) {
    uint64_t nanoseconds = 0;
    for (const DispatchTime &time : times[i])
      nanoseconds += time.nanoseconds;
    // Less than the clock shows is not nothing.
    seconds[i] = std::max<double>(static_cast<double>(nanoseconds), 1) * 1e-9;
  }
  return Status();
}
