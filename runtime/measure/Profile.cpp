//===- Profile.cpp - Where the time of programs goes ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/Profile.h"

#include <algorithm>
#include <cassert>
#include <optional>

using namespace kf;

namespace {

/// What an operand of a dispatch held, where that is known.
std::optional<std::span<const int32_t>>
heldBy(const DispatchSpec &dispatch, uint32_t operand, const ProfiledRun &run) {
  const kf_binding &binding = dispatch.bindings[operand];
  if (binding.kind != KF_BINDING_INPUT)
    return std::nullopt;
  auto found = run.inputs.find(binding.index);
  if (found == run.inputs.end())
    return std::nullopt;
  return found->second;
}

/// What a dispatch had to do, where that is known.
std::optional<WorkAmount> workOf(const Executable &program,
                                 const DispatchSpec &dispatch,
                                 const ProfiledRun &run) {
  const KernelSpec *kernel = program.kernelOf(dispatch);
  if (!kernel || !kernel->work)
    return std::nullopt;
  const std::optional<KernelWork> &work = kernel->work;
  KeyCounts counts;
  if (work->keys) {
    auto positions = heldBy(dispatch, work->keys->positions, run);
    auto sequences = heldBy(dispatch, work->keys->sequences, run);
    if (!positions || !sequences)
      return std::nullopt;
    counts = countKeys(*positions, *sequences, work->keys->window);
  }
  return amountOf(*work, run.scalars, counts);
}

/// Where `list` has the entry whose `field` is `name`, made if need be.
template <typename T>
size_t numberOf(std::vector<T> &list, std::string T::*field,
                const std::string &name) {
  const auto found = std::ranges::find(list, name, field);
  if (found != list.end())
    return static_cast<size_t>(found - list.begin());
  list.emplace_back().*field = name;
  return list.size() - 1;
}

} // namespace

double ProgramProfile::kernelSeconds() const {
  double sum = 0;
  for (const KernelProfile &kernel : kernels)
    sum += kernel.seconds;
  return sum;
}

double ProgramProfile::bytesOfRun() const {
  double sum = 0;
  for (const KernelProfile &kernel : kernels)
    sum += kernel.work.bytes;
  return runs ? sum / static_cast<double>(runs) : 0;
}

void Profile::addEvent(const Event &event) {
  if (events.size() < mostEvents)
    events.push_back(event);
  else
    ++dropped;
}

void Profile::add(const Executable &program, const ProfiledRun &run) {
  assert(run.times.size() == program.dispatches.size() &&
         "a time for each dispatch");
  if (sums.empty())
    first = run.begin;
  const size_t number =
      numberOf(sums, &ProgramProfile::program, program.programName);
  ProgramProfile &sum = sums[number];
  ++sum.runs;
  sum.seconds += run.seconds;
  const uint32_t programNumber = static_cast<uint32_t>(number);
  const double began = std::chrono::duration<double>(run.begin - first).count();
  auto track = [](Event::Track track) { return static_cast<uint32_t>(track); };
  if (withTrace)
    addEvent({track(Event::Track::Runs),
              programNumber,
              0,
              began,
              run.seconds,
              {static_cast<double>(run.scalars[KF_SCALAR_N_TOKENS]), 0}});
  for (size_t i = 0; i < run.times.size(); ++i) {
    const DispatchSpec &dispatch = program.dispatches[i];
    const DispatchTime &time = run.times[i];
    const size_t kernelNumber =
        numberOf(sum.kernels, &KernelProfile::kernel, program.nameOf(dispatch));
    KernelProfile &kernel = sum.kernels[kernelNumber];
    const double seconds = static_cast<double>(time.nanoseconds) * 1e-9;
    ++kernel.calls;
    kernel.seconds += seconds;
    const std::optional<WorkAmount> work = workOf(program, dispatch, run);
    if (work)
      kernel.work += *work;
    else
      ++kernel.unknown;
    if (!withTrace)
      continue;
    const WorkAmount amount = work.value_or(WorkAmount());
    addEvent({track(Event::Track::Dispatches),
              programNumber,
              static_cast<uint32_t>(kernelNumber),
              began + static_cast<double>(time.begin) * 1e-9,
              seconds,
              {amount.bytes, amount.operations()}});
    for (const WorkerTime &worker : time.workers)
      addEvent({track(Event::Track::FirstThread) + worker.thread,
                programNumber,
                static_cast<uint32_t>(kernelNumber),
                began + static_cast<double>(worker.begin) * 1e-9,
                static_cast<double>(worker.nanoseconds) * 1e-9,
                {static_cast<double>(worker.workgroups), 0}});
  }
}

namespace {

double secondsFor(double amount, double rate) {
  return rate > 0 ? amount / rate : 0;
}

} // namespace

double kf::leastSeconds(const WorkAmount &work, const MachineRates &rates) {
  return std::max(secondsFor(work.bytes, rates.readBytesPerSecond),
                  secondsFor(work.flops, rates.f32FlopsPerSecond) +
                      secondsFor(work.int8Ops, rates.i8OpsPerSecond) +
                      secondsFor(work.bf16Flops, rates.bf16FlopsPerSecond));
}

std::string_view kf::boundOf(const WorkAmount &work,
                             const MachineRates &rates) {
  const double read = secondsFor(work.bytes, rates.readBytesPerSecond);
  const double f32 = secondsFor(work.flops, rates.f32FlopsPerSecond);
  const double int8 = secondsFor(work.int8Ops, rates.i8OpsPerSecond);
  const double bf16 = secondsFor(work.bf16Flops, rates.bf16FlopsPerSecond);
  if (read == 0 && f32 == 0 && int8 == 0 && bf16 == 0)
    return {};
  if (read >= f32 + int8 + bf16)
    return "read";
  if (bf16 > std::max(f32, int8))
    return "bf16";
  return f32 >= int8 ? "f32" : "i8";
}
