//===- EvalComparisonTest.cpp - Comparing reports of kf-run eval ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs are made up: of an idle machine, of a busy one, and of one whose speed
// changes, with and without a kernel that became slower.
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/EvalComparison.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

using namespace kf;

namespace {

EvalReport sample() {
  EvalReport report;
  report.environment = {"1.0", "kf-1.0 llvm-22", "cpu", "a \"chip\"", 2};
  report.model = "kf-stories";
  report.rates.readBytesPerSecond = 15e9;
  EvalKernel kernel;
  kernel.name = "matmul_0";
  kernel.description = "16x64xf32, 96x64xq4_0";
  kernel.rows = 16;
  kernel.setTimes(std::vector<double>(15, 100e-6));
  kernel.deviation = 2e-6;
  kernel.meanError = 0.001;
  kernel.cosine = 0.99999;
  report.kernels = {kernel};
  kernel.name = "attention_0";
  kernel.depth = 512;
  report.kernels.push_back(kernel);
  report.fidelity = FidelityResult{64, 0.002, 0.01, 0.98, 1.25, 1.24};
  return report;
}

EvalComparison compare(const EvalReport &now, const TurnRatios &turns = {}) {
  Result<EvalComparison> comparison = compareReports(sample(), now, {}, turns);
  EXPECT_TRUE(comparison.ok()) << comparison.message();
  return comparison.take();
}

TEST(EvalComparison, EqualReportsDoNotDiffer) {
  const EvalComparison comparison = compare(sample());
  EXPECT_EQ(comparison.text, "");
  EXPECT_EQ(comparison.regressions, 0);
  EXPECT_EQ(comparison.unclear, 0);
}

TEST(EvalComparison, TimesAreWorseBeyondThresholdAndSpread) {
  EvalReport now = sample();
  now.kernels[0].seconds = 109e-6; // below the threshold
  EXPECT_EQ(compare(now).regressions, 0);
  now.kernels[0].seconds = 115e-6; // within what kernels differ by anyway
  EXPECT_EQ(compare(now).regressions, 0);
  now.kernels[0].seconds = 125e-6;
  EvalComparison comparison = compare(now);
  EXPECT_EQ(comparison.text,
            "worse   matmul_0 (16x64xf32, 96x64xq4_0), 16 rows: 125 +- 2 us, "
            "100 +- 2 us before, 1.25 times as long (1.18 to 1.33)\n");
  EXPECT_EQ(comparison.again, std::set<std::string>{now.kernels[0].key()});
  // Of long ones, too, it is in microseconds.
  now.kernels[0].seconds = 24310.4e-6;
  EXPECT_NE(compare(now).text.find("24310 +- 2 us, 100 +- 2 us before"),
            std::string::npos)
      << compare(now).text;
  now.kernels[0].seconds = 125e-6;
  // What others disturbed is not said to be worse.
  now.kernels[0].disturbed = true;
  comparison = compare(now);
  EXPECT_EQ(comparison.regressions, 0);
  EXPECT_EQ(comparison.unclear, 1);
  // But that explains only so much.
  now.kernels[0].seconds = 900e-6;
  EXPECT_EQ(compare(now).regressions, 1);
  now.kernels[0].disturbed = false;
  now.kernels[0].seconds = 80e-6;
  EXPECT_EQ(compare(now).regressions, 0);
  EXPECT_EQ(compare(now).text.substr(0, 8), "better  ");
}

TEST(EvalComparison, TurnsSayMoreThanRuns) {
  EvalReport now = sample();
  now.kernels[0].seconds = 300e-6;
  const std::string key = now.kernels[0].key();
  EXPECT_EQ(compare(now, {{key, {1.01, 0.97, 1.05}}}).text, "");
  EvalComparison comparison = compare(sample(), {{key, {1.5, 1.44, 1.6}}});
  EXPECT_EQ(comparison.text,
            "worse   matmul_0 (16x64xf32, 96x64xq4_0), 16 rows: 1.5 times as "
            "long as the baseline's kernel, in turns (1.44 to 1.6)\n");
  EXPECT_EQ(comparison.regressions, 1);
  EXPECT_TRUE(comparison.again.empty());
  comparison = compare(sample(), {{key, {1.1, 0.9, 1.9}}});
  EXPECT_EQ(comparison.regressions, 0);
  EXPECT_EQ(comparison.unclear, 1);
  EXPECT_EQ(comparison.again, std::set<std::string>{key});
}

TEST(EvalComparison, ARunFarOffHidesNoRegression) {
  EvalReport before = sample(), now = sample();
  std::vector<double> seconds(15, 150e-6);
  seconds[3] = 9000e-6;
  now.kernels[0].setTimes(seconds);
  Result<EvalComparison> comparison = compareReports(before, now, {});
  ASSERT_TRUE(comparison.ok()) << comparison.message();
  EXPECT_EQ(comparison->regressions, 1);
  EXPECT_TRUE(comparison->text.starts_with("worse   matmul_0 "))
      << comparison->text;
}

//===----------------------------------------------------------------------===//
// Machines that are made up
//===----------------------------------------------------------------------===//

/// Makes reports of `kernels` kernels with 15 runs each.
class Machine {
public:
  explicit Machine(unsigned seed) : random(seed) {}

  double jitter = 0.02;   ///< deviation of a run
  double drift = 1;       ///< of all runs of a report
  double apart = 0.02;    ///< deviation of kernels from one report to the next
  double bursts = 0;      ///< chance that others have a core in a kernel's runs
  double burstFactor = 2; ///< what runs take then
  bool tells = false;     ///< whether the device sees it

  EvalReport measure(const std::string &code, size_t planted = SIZE_MAX,
                     double factor = 1) {
    EvalReport report = sample();
    report.fidelity.reset();
    report.kernels.clear();
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    for (size_t i = 0; i < 60; ++i) {
      EvalKernel kernel;
      kernel.name = "kernel_" + std::to_string(i);
      kernel.rows = 1;
      kernel.code =
          i == planted && factor != 1 && !code.empty() ? code + "slow" : code;
      const double typical = 1e-6 * std::exp(0.1 * static_cast<double>(i)) *
                             drift * (i == planted ? factor : 1) *
                             std::exp(apart * normal(random));
      const bool isBurst = uniform(random) < bursts;
      std::vector<double> seconds;
      for (int run = 0; run < 15; ++run)
        seconds.push_back(typical *
                          std::exp(std::abs(jitter * normal(random))) *
                          (isBurst && uniform(random) < 0.8 ? burstFactor : 1));
      kernel.setTimes(seconds);
      kernel.disturbed = isBurst && tells;
      report.kernels.push_back(std::move(kernel));
    }
    return report;
  }

private:
  std::mt19937 random;
};

struct Verdicts {
  int worse = 0, unclear = 0, fine = 0;
};

Verdicts judge(const std::function<void(Machine &, bool isNow)> &change,
               double factor, bool hasCode) {
  Verdicts verdicts;
  for (unsigned seed = 0; seed < 20; ++seed) {
    Machine machine(seed);
    change(machine, false);
    const EvalReport before = machine.measure(hasCode ? "code" : "");
    change(machine, true);
    const EvalReport now =
        machine.measure(hasCode ? "code" : "", seed % 60, factor);
    Result<EvalComparison> comparison = compareReports(before, now, {});
    EXPECT_TRUE(comparison.ok());
    ++(comparison->regressions ? verdicts.worse
       : comparison->unclear   ? verdicts.unclear
                               : verdicts.fine);
  }
  return verdicts;
}

TEST(EvalComparison, OnAnIdleMachine) {
  auto idle = [](Machine &, bool) {};
  EXPECT_EQ(judge(idle, 1, false).fine, 20);
  EXPECT_EQ(judge(idle, 1.5, false).worse, 20);
}

TEST(EvalComparison, SpeedOfTheMachineIsLeftOut) {
  auto slower = [](Machine &machine, bool isNow) {
    machine.drift = isNow ? 1.4 : 1;
  };
  // With the same code there is nothing else that it could be.
  EXPECT_EQ(judge(slower, 1.5, false).worse, 20);
  EXPECT_EQ(judge(slower, 1.5, true).worse, 20);
  Machine machine(1);
  const EvalReport before = machine.measure("code");
  machine.drift = 1.4;
  EvalReport now = machine.measure("code");
  Result<EvalComparison> comparison = compareReports(before, now, {});
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(comparison->regressions, 0);
  EXPECT_EQ(comparison->unclear, 0);
  EXPECT_TRUE(comparison->text.starts_with("note    all kernels: 1.4"))
      << comparison->text;
  // Beyond what a busy machine explains it is not known to be the machine.
  machine.drift = 3;
  comparison = compareReports(before, machine.measure("code"), {});
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(comparison->regressions, 0);
  EXPECT_EQ(comparison->unclear, 1);
  machine.drift = 1.4;
  // Of other code nobody knows, unless the machine's rates fell as much.
  now = machine.measure("other");
  comparison = compareReports(before, now, {});
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(comparison->regressions, 0);
  EXPECT_EQ(comparison->unclear, 1);
  EXPECT_TRUE(comparison->text.starts_with("unclear all kernels: 1.4"))
      << comparison->text;
  now.rates.readBytesPerSecond /= 1.35;
  comparison = compareReports(before, now, {});
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(comparison->unclear, 0);
  EXPECT_TRUE(comparison->text.starts_with("note    all kernels: 1.4"))
      << comparison->text;
}

TEST(EvalComparison, OnABusyMachine) {
  // A third of the kernels runs beside another process, whether the device
  // sees it or not: then the spread of all tells.
  for (const bool tells : {false, true}) {
    auto busy = [&](Machine &machine, bool) {
      machine.jitter = 0.1;
      machine.apart = 0.05;
      machine.bursts = 0.35;
      machine.tells = tells;
    };
    EXPECT_EQ(judge(busy, 1, true).fine, 20);
    const Verdicts clean = judge(busy, 1, false);
    EXPECT_EQ(clean.worse, 0);
    const Verdicts planted = judge(busy, 1.5, false);
    EXPECT_EQ(planted.fine, 0);
  }
}

TEST(EvalComparison, ErrorsAreWorseBeyondTheirThreshold) {
  EvalReport now = sample();
  now.kernels[0].meanError = 0.0014;
  EXPECT_EQ(compare(now).regressions, 0);
  now.kernels[0].meanError = 0.0016;
  EXPECT_EQ(compare(now).regressions, 1);
  now.kernels[1].cosine = 0.9999;
  EXPECT_EQ(compare(now).regressions, 2);
  now.fidelity->klMean = 0.0031;
  EXPECT_EQ(compare(now).regressions, 3);
  now.fidelity->top1Agreement = 0.96;
  EXPECT_EQ(compare(now).regressions, 4);
  now.kernels[1].complaint = "result 0, element 3 is nan";
  EXPECT_EQ(compare(now).regressions, 5);
}

TEST(EvalComparison, WhatOnlyOneHasIsNamedAndNotWorse) {
  EvalReport now = sample();
  EXPECT_EQ(compare(now).compared, 3);
  now.kernels[0].rows = 1;
  EvalComparison comparison = compare(now);
  EXPECT_EQ(comparison.text,
            "note    matmul_0 (16x64xf32, 96x64xq4_0), 1 row: not in the "
            "baseline\n"
            "note    matmul_0 (16x64xf32, 96x64xq4_0), 16 rows: not measured, "
            "but in the baseline\n");
  EXPECT_EQ(comparison.regressions, 0);
  EXPECT_EQ(comparison.compared, 2);
  EXPECT_EQ(comparison.onlyBaseline, 1);
  EXPECT_EQ(comparison.onlyNow, 1);
  // A wrong result is worse, wherever it is.
  now.kernels[0].complaint = "result 0, element 3 is nan";
  EXPECT_EQ(compare(now).regressions, 1);

  now = sample();
  now.fidelity.reset();
  comparison = compare(now);
  EXPECT_EQ(comparison.text,
            "note    fidelity: not measured, but in the baseline\n");
  EXPECT_EQ(comparison.onlyBaseline, 1);
}

TEST(EvalComparison, OtherDevicesAndModelsAreNotCompared) {
  EvalReport now = sample();
  now.environment.device = "vulkan";
  EXPECT_EQ(compareReports(sample(), now, {}).message(),
            "the baseline was measured on 'cpu', this on 'vulkan'");
  now = sample();
  now.model.clear();
  EXPECT_EQ(compareReports(sample(), now, {}).message(),
            "the baseline is of 'kf-stories', this without MODEL");
  EXPECT_EQ(compareReports(now, sample(), {}).message(),
            "the baseline is without MODEL, this of 'kf-stories'");
  now = sample();
  now.fidelity.reset();
  now.kernels.resize(1);
  now.kernels[0].name = "other";
  EXPECT_EQ(compareReports(sample(), now, {}).message(),
            "the baseline has nothing of what was measured");
  now = sample();
  now.environment.threads = 8;
  EXPECT_EQ(compare(now).text,
            "note    the baseline was measured on 'a \"chip\"' with 2 threads; "
            "times say little\n");
}

} // namespace
