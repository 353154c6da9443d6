//===- BenchCeilings.cpp - What a test is held against --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchCeilings.h"

#include "Interrupt.h"
#include "MeasuredCeilings.h"

#include "runtime/measure/Profile.h"

#include <algorithm>
#include <cmath>

using namespace kf;

namespace {

CeilingOptions measuring(uint64_t mostBytes) {
  CeilingOptions options;
  options.mostReadBytes = mostBytes;
  options.cancelled = &interruptFlag();
  return options;
}

} // namespace

double kf::mostStepBytes(const ModelWork &work, const BenchTest &test) {
  return work
      .decode(test.sequences, std::max<int64_t>(test.positions() - 1, 0), 1)
      .bytes;
}

Result<BenchCeilings> BenchCeilings::create(Device &device, int64_t ranks,
                                            const ModelWork &work,
                                            double mostBytes) {
  BenchCeilings ceilings(work);
  const bool isReference = device.name() == "reference";
  if (device.name() != "cpu" && !isReference) {
    KF_ASSIGN_OR_RETURN(ceilings.rates, measureCeilings(device, measuring(0)));
    ceilings.rates = ratesOf(ceilings.rates, ranks);
    return ceilings;
  }
  const uint64_t bytes = static_cast<uint64_t>(std::max(mostBytes, 1.0));
  KF_ASSIGN_OR_RETURN(
      ceilings.host, HostCeilings::create((isReference ? 1 : device.workers()) *
                                              static_cast<int>(ranks),
                                          measuring(bytes)));
  return ceilings;
}

Status BenchCeilings::measure() {
  if (!host)
    return Status();
  KF_ASSIGN_OR_RETURN(
      const MachineRates now,
      host->measure(static_cast<uint64_t>(mostStepBytes(work, test))));
  disturbed &= host->wasDisturbed();
  for (double MachineRates::*rate : kMachineRates)
    rates.*rate = std::max(rates.*rate, now.*rate);
  return Status();
}

Status BenchCeilings::begin(const BenchTest &next) {
  test = next;
  if (host) {
    rates = {};
    disturbed = true; // until one is not
  }
  return measure();
}

std::optional<BenchCeiling> BenchCeilings::boundOf(const StepWork &amount,
                                                   bool isPrompt) const {
  const WorkAmount least{.bytes = amount.bytes,
                         .flops =
                             amount.floatOperations - amount.bf16Operations,
                         .int8Ops = amount.blockOperations,
                         .bf16Flops = amount.bf16Operations};
  // Whatever units the kernels use.
  const MachineRates fastest = fastestUnits(rates);
  // The rate that is not known is that of most of the work.
  if ((isPrompt ? fastest.f32FlopsPerSecond : fastest.readBytesPerSecond) == 0)
    return std::nullopt;
  const double seconds = leastSeconds(least, fastest);
  const std::string_view bound = kf::boundOf(least, fastest);
  if (bound == "i8")
    return BenchCeiling{fastest.i8OpsPerSecond / 1e9, "GOP/s", seconds};
  if (bound == "bf16")
    return BenchCeiling{fastest.bf16FlopsPerSecond / 1e9, "GFLOP/s", seconds};
  if (bound == "f32")
    return BenchCeiling{fastest.f32FlopsPerSecond / 1e9, "GFLOP/s", seconds};
  return BenchCeiling{fastest.readBytesPerSecond / 1e9, "GB/s", seconds};
}

Result<std::optional<BenchCeiling>> BenchCeilings::end(const Engine &engine) {
  KF_RETURN_IF_ERROR(measure());
  std::optional<BenchCeiling> prompt, generated;
  if (test.prompt)
    prompt = boundOf(work.prompt(test.sequences, test.depth, test.prompt,
                                 engine.rowsPerStep()),
                     /*isPrompt=*/true);
  if (test.generated)
    generated = boundOf(
        work.decode(test.sequences, test.depth + test.prompt, test.generated),
        /*isPrompt=*/false);
  if (!test.prompt)
    return generated;
  if (!test.generated)
    return prompt;
  if (!prompt || !generated)
    return std::optional<BenchCeiling>();
  const double seconds = prompt->seconds + generated->seconds;
  return std::optional(BenchCeiling{
      static_cast<double>(test.tokens()) / seconds, "t/s", seconds});
}
