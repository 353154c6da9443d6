//===- EvalReportTest.cpp - Reports of kf-run eval ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/EvalComparison.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
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
  kernel.runs = 3;
  kernel.seconds = 100e-6;
  kernel.deviation = 2e-6;
  kernel.samples = {1, 0.98, 1.02};
  kernel.code = "0a1b";
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
      {"\"version\":3,", "\"version\":2,",
       "version 2 is not known; this is version 3"},
      {"\"version\":3,", "", "'version' is missing"},
      {"\"device\":\"cpu\",", "", "environment: 'device' is missing"},
      {"\"threads\":2", "\"threads\":-2",
       "environment: 'threads' is -2, which is not from 0 to 1e+15"},
      {"\"threads\":2", "\"threads\":2.5",
       "environment: 'threads' is no integer"},
      {"\"seconds\":0.0001", "\"seconds\":null",
       "kernel 0: 'seconds' is no number"},
      {"\"deviation\":2e-06", "\"deviation\":1e300",
       "kernel 0: 'deviation' is 1e+300, which is not from 0 to 1e+30"},
      {"\"samples\":[1.0,", "\"samples\":[0.0,",
       "kernel 0: 'samples' has an element that is no number from 1e-30 to "
       "1e+30"},
      {"\"samples\":[1.0,0.98,1.02]", "\"samples\":1",
       "kernel 0: 'samples' is no array of at most 1000 numbers"},
      {"\"disturbed\":false", "\"disturbed\":0",
       "kernel 0: 'disturbed' is neither true nor false"},
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

TEST(EvalReport, TablesHaveHundredColumns) {
  EvalReport report = sample();
  EvalKernel slow = report.kernels.front();
  slow.name = "quantize_rows_rms_norm_matmul_add_10";
  slow.rows = 8192;
  slow.depth = 16384;
  slow.seconds = 12.3456;
  slow.bytes = 123456789012;
  slow.complaint = "element 3 is 2, not 1";
  report.kernels.push_back(slow);
  const std::string table = tableOf(report);
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("fidelity"))
      EXPECT_LE(line.size(), 100u) << line;
  EXPECT_NE(table.find("12345600.0"), std::string::npos) << table;
  EXPECT_NE(table.find("\n    WRONG: element 3"), std::string::npos) << table;
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
    (void)compareReports(sample(), *report, {});
  }
}

} // namespace
