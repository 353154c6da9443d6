//===- KernelTurnsTest.cpp - Two kernels that take turns ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a machine that is made up: its clock goes on with what runs take.
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelTurns.h"

#include "test/runtime/StatusAssertions.h"
#include "gtest/gtest.h"

#include <random>

using namespace kf;

namespace {

struct Machine {
  explicit Machine(unsigned seed) : random(seed) {}

  std::mt19937 random;
  double time = 0;
  int64_t runs = 0;
  double jitter = 0.02;
  double drift = 0; ///< by what runs take longer each second
  /// Seconds of the slices of another process, which has half of the machine
  /// in every other one.
  double slice = 0;
  double pauses = 0; ///< of 5 ms, each second, in which nothing runs

  /// A run of a kernel that takes `seconds` on an idle machine.
  double run(double seconds) {
    std::normal_distribution<double> normal;
    std::poisson_distribution<int> events(pauses * seconds);
    const double began = time;
    double left =
        seconds * std::exp(jitter * normal(random)) * (1 + drift * time);
    if (pauses > 0)
      time += 5e-3 * events(random);
    while (slice > 0 && left > 0) {
      const int64_t number = static_cast<int64_t>(time / slice);
      const double speed = number % 2 ? 0.5 : 1;
      const double rest =
          std::max(static_cast<double>(number + 1) * slice - time, 1e-9);
      const double part = std::min(rest, left / speed);
      time += part;
      left -= part * speed;
    }
    time += std::max(left, 0.0);
    ++runs;
    return time - began;
  }

  MeasureRuns kernel(double seconds) {
    return [this, seconds](int64_t count) -> Result<std::vector<double>> {
      std::vector<double> all;
      for (int64_t i = 0; i < count; ++i)
        all.push_back(run(seconds));
      return all;
    };
  }

  TimeVerdict judge(double before, double now) {
    TurnOptions options;
    options.clock = [this] { return time; };
    auto ratio = ratioInTurns(kernel(now), kernel(before), options);
    EXPECT_TRUE(ratio.ok()) << ratio.message();
    return verdictOf(ratio.ok() ? *ratio : TimeRatio(), options.slower);
  }
};

/// Of 20 machines with kernels of these seconds, whether all say `clean` of
/// equal ones and Slower of one that takes 1.5 times as long, but for as many
/// that are unclear.
void expectVerdicts(const std::function<void(Machine &)> &change,
                    double seconds, int mostUnclear) {
  int unclear = 0;
  for (unsigned seed = 0; seed < 20; ++seed)
    for (const double factor : {1.0, 1.5}) {
      Machine machine(seed);
      change(machine);
      const TimeVerdict verdict = machine.judge(seconds, factor * seconds);
      unclear += verdict == TimeVerdict::Unclear;
      if (verdict != TimeVerdict::Unclear)
        EXPECT_EQ(verdict, factor > 1 ? TimeVerdict::Slower : TimeVerdict::Same)
            << seed << ", " << seconds << " s, factor " << factor;
    }
  EXPECT_LE(unclear, mostUnclear) << seconds;
}

constexpr double kKernels[] = {2e-6, 50e-6, 1e-3, 30e-3};

TEST(KernelTurns, OnAnIdleMachine) {
  for (const double seconds : kKernels)
    expectVerdicts([](Machine &) {}, seconds, 0);
}

TEST(KernelTurns, OnOneThatBecomesSlower) {
  for (const double seconds : kKernels)
    expectVerdicts([](Machine &machine) { machine.drift = 1; }, seconds, 0);
}

TEST(KernelTurns, BesideAnotherProcess) {
  // Slices as long as the system gives, shorter and longer than the kernels.
  for (const double seconds : kKernels)
    for (const double slice : {1e-3, 3e-3, 10e-3})
      expectVerdicts(
          [&](Machine &machine) {
            machine.jitter = 0.1;
            machine.slice = slice;
          },
          seconds, 1);
}

TEST(KernelTurns, WithPausesNowAndThen) {
  for (const double seconds : kKernels)
    expectVerdicts(
        [](Machine &machine) {
          machine.jitter = 0.1;
          machine.pauses = 100;
        },
        seconds, seconds > 10e-3 ? 8 : 1);
}

TEST(KernelTurns, SaysWhereNothingIsCertain) {
  Machine machine(1);
  machine.jitter = 3;
  EXPECT_EQ(machine.judge(1e-3, 1e-3), TimeVerdict::Unclear);
}

TEST(KernelTurns, EndsWhenItIsCertain) {
  Machine machine(1);
  EXPECT_EQ(machine.judge(1e-3, 3e-3), TimeVerdict::Slower);
  EXPECT_EQ(machine.runs, 2 + 2 * 24);
  EXPECT_EQ(machine.judge(1e-3, 1e-3), TimeVerdict::Same);
  EXPECT_EQ(machine.runs, 2 * (2 + 2 * 24));
}

TEST(KernelTurns, Errors) {
  Machine machine(1);
  std::atomic<bool> cancelled = true;
  TurnOptions options;
  options.cancelled = &cancelled;
  EXPECT_TRUE(ratioInTurns(machine.kernel(1), machine.kernel(1), options)
                  .status()
                  .isCancelled());
  auto broken = [](int64_t) -> Result<std::vector<double>> {
    return Status::error("it broke");
  };
  EXPECT_TRUE(test::failsWith(
      ratioInTurns(machine.kernel(1), broken, {}).status(), "it broke"));
}

} // namespace
