//===- EvalReportTest.cpp - Reports of kf-run eval ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/EvalReport.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace kf;

namespace {

EvalReport sample() {
  EvalReport report;
  report.environment = {"1.0", "kf-1.0 llvm-22", "cpu", "a \"chip\"", 2};
  report.model = "kf-stories";
  report.rates.readBytesPerSecond = 15e9;
  report.rates.bf16FlopsPerSecond = 2e12;
  EvalKernel kernel;
  kernel.name = "matmul_0";
  kernel.description = "16x64xf32, 96x64xq4_0";
  kernel.rows = 16;
  kernel.runs = 9;
  kernel.seconds = 100e-6;
  kernel.deviation = 2e-6;
  kernel.bytes = 12345;
  kernel.flops = 196608;
  kernel.ceiling = 0.75;
  kernel.maxError = 0.02;
  kernel.meanError = 0.001;
  kernel.cosine = 0.99999;
  report.kernels = {kernel};
  kernel.name = "attention_0";
  kernel.depth = 512;
  report.kernels.push_back(kernel);
  report.fidelity = FidelityResult{64, 0.002, 0.01, 0.98, 1.25, 1.24};
  return report;
}

std::string damaged(const std::string &from, const std::string &to) {
  std::string text = toJson(sample());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(EvalReport, RoundTrips) {
  const std::string text = toJson(sample());
  Result<EvalReport> back = parseEvalReport(text);
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(toJson(*back), text);
  EvalReport less = sample();
  less.fidelity.reset();
  less.kernels.clear();
  back = parseEvalReport(toJson(less));
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_FALSE(back->fidelity);
  EXPECT_TRUE(back->kernels.empty());
}

TEST(EvalReport, SaysWhatIsWrongWithAFile) {
  const std::tuple<const char *, const char *, const char *> cases[] = {
      {"\"version\":2,", "\"version\":1,",
       "version 1 is not known; this is version 2"},
      {"\"version\":2,", "", "'version' is missing"},
      {"\"device\":\"cpu\",", "", "environment: 'device' is missing"},
      {"\"threads\":2", "\"threads\":-2",
       "environment: 'threads' is -2, which is not from 0 to 1e+15"},
      {"\"threads\":2", "\"threads\":2.5",
       "environment: 'threads' is no integer"},
      {"\"seconds\":0.0001", "\"seconds\":null",
       "kernel 0: 'seconds' is no number"},
      {"\"deviation\":2e-06", "\"deviation\":1e300",
       "kernel 0: 'deviation' is 1e+300, which is not from 0 to 1e+30"},
      {"\"cosine\":0.99999", "\"cosine\":2",
       "kernel 0: 'cosine' is 2, which is not from -1.001 to 1.001"},
      {"\"name\":\"matmul_0\"", "\"name\":7", "kernel 0: 'name' is no text"},
      {"\"name\":\"matmul_0\"", "\"name\":\"\\u001b[2J\"",
       "kernel 0: 'name' has characters other than ASCII's that print"},
      {"\"top1_agreement\":0.98", "\"top1_agreement\":98",
       "fidelity: 'top1_agreement' is 98, which is not from 0 to 1"},
      {"\"rates\":{", "\"rates\":[{", "JSON"},
  };
  for (const auto &[from, to, message] : cases) {
    const Result<EvalReport> report = parseEvalReport(damaged(from, to));
    ASSERT_FALSE(report.ok()) << message;
    if (std::string_view(message) != "JSON")
      EXPECT_EQ(report.message(), message);
  }
  EXPECT_FALSE(parseEvalReport("[]").ok());
  EXPECT_FALSE(parseEvalReport("").ok());
}

TEST(EvalReport, DamageNeverCrashes) {
  const std::string good = toJson(sample());
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (int i = 0, n = 1 + random() % 3; i < n; ++i)
      text[random() % text.size()] =
          "0123456789{}[]\",-e.\\\x80"[random() % 21];
    const Result<EvalReport> report = parseEvalReport(text);
    if (!report.ok()) {
      EXPECT_NE(report.message(), "");
      continue;
    }
    tableOf(*report);
    (void)compareReports(*report, sample(), {});
  }
}

EvalComparison compare(const EvalReport &now) {
  Result<EvalComparison> comparison = compareReports(sample(), now, {});
  EXPECT_TRUE(comparison.ok()) << comparison.message();
  return comparison.take();
}

TEST(EvalReport, EqualReportsDoNotDiffer) {
  const EvalComparison comparison = compare(sample());
  EXPECT_EQ(comparison.text, "");
  EXPECT_EQ(comparison.regressions, 0);
}

TEST(EvalReport, TimesAreWorseBeyondThresholdAndNoise) {
  EvalReport now = sample();
  now.kernels[0].seconds = 109e-6; // below the threshold, beyond the noise
  EXPECT_EQ(compare(now).regressions, 0);
  now.kernels[0].seconds = 112e-6;
  EXPECT_EQ(compare(now).text,
            "worse   matmul_0 (16x64xf32, 96x64xq4_0), 16 rows: 112 +- 2 us, "
            "100 +- 2 us before (+12.0%)\n");
  now.kernels[0].deviation = 20e-6; // now within the noise
  EXPECT_EQ(compare(now).regressions, 0);
  now.kernels[0].deviation = 2e-6;
  now.kernels[0].seconds = 80e-6;
  EXPECT_EQ(compare(now).regressions, 0);
  EXPECT_EQ(compare(now).text.substr(0, 8), "better  ");
}

TEST(EvalReport, ARunFarOffHidesNoRegression) {
  EvalReport before = sample(), now = sample();
  before.kernels[0].setTimes(
      std::vector<double>{100e-6, 101e-6, 99e-6, 100e-6, 102e-6});
  now.kernels[0].setTimes(
      std::vector<double>{150e-6, 151e-6, 149e-6, 9000e-6, 152e-6});
  Result<EvalComparison> comparison = compareReports(before, now, {});
  ASSERT_TRUE(comparison.ok()) << comparison.message();
  EXPECT_EQ(comparison->regressions, 1);
  EXPECT_TRUE(comparison->text.starts_with("worse   matmul_0 "))
      << comparison->text;
}

TEST(EvalReport, ErrorsAreWorseBeyondTheirThreshold) {
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

TEST(EvalReport, WhatOnlyOneHasIsNamedAndNotWorse) {
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

TEST(EvalReport, OtherDevicesAndModelsAreNotCompared) {
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
