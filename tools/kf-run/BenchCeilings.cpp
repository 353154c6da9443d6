//===- BenchCeilings.cpp - What a test is held against --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchCeilings.h"

#include "Interrupt.h"

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
                                            const MultiplyUnits &units,
                                            double mostBytes) {
  BenchCeilings ceilings(work, units);
  const bool isReference = device.name() == "reference";
  if (device.name() != "cpu" && !isReference) {
    KF_ASSIGN_OR_RETURN(ceilings.rates, measureRates(device, measuring(0)));
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
  rates.readBytesPerSecond =
      std::max(rates.readBytesPerSecond, now.readBytesPerSecond);
  rates.f32FlopsPerSecond =
      std::max(rates.f32FlopsPerSecond, now.f32FlopsPerSecond);
  rates.i8OpsPerSecond = std::max(rates.i8OpsPerSecond, now.i8OpsPerSecond);
  rates.bf16FlopsPerSecond =
      std::max(rates.bf16FlopsPerSecond, now.bf16FlopsPerSecond);
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
                                                   int64_t rows,
                                                   bool isPrompt) const {
  auto reaches = [&](int64_t least) { return least > 0 && rows >= least; };
  WorkAmount least{.bytes = amount.bytes, .flops = amount.floatOperations};
  if (reaches(units.bf16Rows)) {
    least.bf16Flops += amount.bf16Operations;
    least.flops -= amount.bf16Operations;
  }
  (reaches(units.blockTileRows) ? least.bf16Flops
   : units.blocksInBytes        ? least.int8Ops
                                : least.flops) += amount.blockOperations;
  auto isKnown = [](double operations, double rate) {
    return operations == 0 || rate > 0;
  };
  const bool canMultiply = isKnown(least.flops, rates.f32FlopsPerSecond) &&
                           isKnown(least.int8Ops, rates.i8OpsPerSecond) &&
                           isKnown(least.bf16Flops, rates.bf16FlopsPerSecond);
  // The rate that is not known is that of most of the work.
  if (isPrompt ? !canMultiply : rates.readBytesPerSecond == 0)
    return std::nullopt;
  MachineRates known = rates;
  if (!canMultiply)
    known.f32FlopsPerSecond = known.i8OpsPerSecond = known.bf16FlopsPerSecond =
        0;
  const double seconds = leastSeconds(least, known);
  const std::string_view bound = kf::boundOf(least, known);
  if (bound == "i8")
    return BenchCeiling{known.i8OpsPerSecond / 1e9, "GOP/s", seconds};
  if (bound == "bf16")
    return BenchCeiling{known.bf16FlopsPerSecond / 1e9, "GFLOP/s", seconds};
  if (bound == "f32")
    return BenchCeiling{known.f32FlopsPerSecond / 1e9, "GFLOP/s", seconds};
  return BenchCeiling{known.readBytesPerSecond / 1e9, "GB/s", seconds};
}

Result<std::optional<BenchCeiling>> BenchCeilings::end(const Engine &engine) {
  KF_RETURN_IF_ERROR(measure());
  const int64_t most = engine.rowsPerStep();
  // Of the step that has the most rows.
  auto bodyRows = [&](int64_t sequences, int64_t tokens) {
    const int64_t rows = std::min(sequences * tokens, most);
    return engine.bodyRows(rows,
                           static_cast<size_t>((rows + tokens - 1) / tokens));
  };
  std::optional<BenchCeiling> prompt, generated;
  if (test.prompt)
    prompt = boundOf(work.prompt(test.sequences, test.depth, test.prompt, most),
                     bodyRows(test.sequences, test.prompt), true);
  if (test.generated)
    generated = boundOf(
        work.decode(test.sequences, test.depth + test.prompt, test.generated),
        bodyRows(std::min(test.sequences, engine.chosenPerStep()), 1), false);
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
