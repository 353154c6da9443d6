//===- ProfileTest.cpp - Sums, table and trace of a profile ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/Profile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

using namespace kf;

namespace {

using Scalars = std::array<int64_t, KF_SCALAR_COUNT>;

/// "product" twice around "attention", whose rows' positions and sequences are
/// inputs 0 and 1.
Executable program() {
  Executable executable;
  executable.programName = "step_16";
  KernelSpec product;
  product.name = "matmul_0";
  product.work.emplace();
  product.work->bytes.constant = 1000;
  product.work->bytes.perSize[KF_SCALAR_N_TOKENS] = 10;
  product.work->flops.perSize[KF_SCALAR_N_TOKENS] = 500;
  KernelSpec attention;
  attention.name = "attention_0";
  attention.work.emplace();
  attention.work->keys = {
      .positions = 1, .sequences = 2, .bytesPerKey = 4, .flopsPerKey = 8};
  executable.kernels = {product, attention};
  DispatchSpec outer, inner;
  inner.kernel = 1;
  inner.bindings = {{KF_BINDING_ARENA, 0, 0},
                    {KF_BINDING_INPUT, 0, 0},
                    {KF_BINDING_INPUT, 1, 0}};
  executable.dispatches = {outer, inner, outer};
  return executable;
}

DispatchTimes times(uint64_t scale) {
  DispatchTimes result = {{"matmul_0", 100 * scale, 0},
                          {"attention_0", 300 * scale, 100 * scale},
                          {"matmul_0", 200 * scale, 400 * scale}};
  result[1].workers = {{0, 100 * scale, 250 * scale, 3},
                       {1, 120 * scale, 280 * scale, 2}};
  return result;
}

class ProfileTest : public ::testing::Test {
protected:
  /// A run of two rows of one sequence, at positions 8 and 9.
  void add(Profile &profile, uint64_t scale) {
    const DispatchTimes measured = times(scale);
    profile.add(executable, {scalars, inputs, measured, begin, 1e-6 * scale});
  }

  Executable executable = program();
  Scalars scalars = {2};
  const int32_t positions[2] = {8, 9}, sequences[2] = {0, 0};
  std::map<uint32_t, std::span<const int32_t>> inputs = {{0, positions},
                                                         {1, sequences}};
  std::chrono::steady_clock::time_point begin;
};

TEST_F(ProfileTest, AddsUpCallsTimesAndWork) {
  Profile profile;
  add(profile, 1);
  add(profile, 10);
  ASSERT_EQ(profile.programs().size(), 1u);
  const ProgramProfile &sum = profile.programs()[0];
  EXPECT_EQ(sum.program, "step_16");
  EXPECT_EQ(sum.runs, 2u);
  EXPECT_DOUBLE_EQ(sum.seconds, 11e-6);
  EXPECT_DOUBLE_EQ(sum.kernelSeconds(), 600 * 11e-9);
  ASSERT_EQ(sum.kernels.size(), 2u);
  EXPECT_EQ(sum.kernels[0].kernel, "matmul_0");
  EXPECT_EQ(sum.kernels[0].calls, 4u);
  EXPECT_DOUBLE_EQ(sum.kernels[0].seconds, 300 * 11e-9);
  EXPECT_EQ(sum.kernels[0].work.bytes, 4 * 1020);
  EXPECT_EQ(sum.kernels[0].work.flops, 4 * 1000);
  EXPECT_EQ(sum.kernels[1].calls, 2u);
  EXPECT_EQ(sum.kernels[1].work.bytes, 2 * 10 * 4); // each key once
  EXPECT_EQ(sum.bytesOfRun(), 2 * 1020 + 10 * 4);
  EXPECT_EQ(sum.kernels[1].work.flops, 2 * (9 + 10) * 8); // for each row
}

TEST_F(ProfileTest, ProgramsAreApart) {
  Profile profile;
  add(profile, 1);
  executable.programName = "step_1";
  add(profile, 1);
  ASSERT_EQ(profile.programs().size(), 2u);
  EXPECT_EQ(profile.programs()[1].program, "step_1");
  EXPECT_EQ(profile.programs()[1].kernels[0].calls, 2u);
}

TEST_F(ProfileTest, WorkThatIsNotKnownIsNotMadeUp) {
  Profile profile;
  inputs.erase(1);
  executable.kernels[0].work.reset();
  add(profile, 1);
  for (const KernelProfile &kernel : profile.programs()[0].kernels) {
    EXPECT_EQ(kernel.unknown, kernel.calls);
    EXPECT_FALSE(kernel.hasWork());
  }
  EXPECT_NE(profile.table({}).find("attention_0      1  0.000   50.0%"),
            std::string::npos)
      << profile.table({});
}

TEST_F(ProfileTest, TableHasRatesAndTheShareOfTheCeiling) {
  Profile profile;
  add(profile, 1000); // matmul_0: 2 calls, 300 us
  const std::string table = profile.table(
      {.readBytesPerSecond = 20e6, .f32FlopsPerSecond = 1e9, .threads = 2});
  // 2040 bytes at 20 MB/s take 102 us; attention's 40 bytes 2 us.
  EXPECT_EQ(
      table,
      "step_16: 1 run, 1.000 ms, 0.600 ms of it in kernels\n"
      "kernel       calls     ms   share  bytes  flops  GB/s  GFLOP/s  "
      "ceiling\n"
      "matmul_0         2  0.300   50.0%  1.02k  1.00k  0.01     0.01    "
      "34.0% read\n"
      "attention_0      1  0.300   50.0%     40    152  0.00     0.00     "
      "0.7% read\n"
      "all              3  0.600  100.0%    693    717  0.00     0.00    "
      "17.3% read\n"
      "ceilings: read 0.0 GB/s, f32 1.0 GFLOP/s, of 2 threads\n");
}

TEST_F(ProfileTest, ImplausibleSharesAreExplained) {
  Profile profile;
  add(profile, 1000);
  // matmul_0 reads 2040 bytes in 300 us, and computes 2000.
  const std::string cached = "more than 100% of read: ",
                    busy = "more than 100% of what is computed: ";
  auto has = [&](const MachineRates &rates, const std::string &text) {
    return profile.table(rates).find(text) != std::string::npos;
  };
  const MachineRates slowToRead = {.readBytesPerSecond = 6e6, .threads = 2};
  EXPECT_TRUE(has(slowToRead, cached + "what the kernel reads may stay in a "
                                       "cache,\nor the machine was slower "
                                       "while the ceilings were measured\n"));
  EXPECT_FALSE(has(slowToRead, busy));
  // What is known of GPUs is how fast they copy, which is no bound of reading.
  const MachineRates slowToCopy = {.readBytesPerSecond = 6e6};
  EXPECT_TRUE(has(slowToCopy, cached + "what the kernel reads may stay in a "
                                       "cache,\nor the device reads faster "
                                       "than it copies\n"));
  EXPECT_FALSE(has(slowToCopy, busy));
  const MachineRates slowToCompute = {.f32FlopsPerSecond = 6e6, .threads = 2};
  EXPECT_TRUE(has(slowToCompute, busy));
  EXPECT_FALSE(has(slowToCompute, cached));
  const MachineRates nearly = {
      .readBytesPerSecond = 6.5e6, .f32FlopsPerSecond = 6.5e6, .threads = 2};
  EXPECT_FALSE(has(nearly, "more than"));
}

TEST_F(ProfileTest, CeilingsThatWereDisturbedExplainNothing) {
  Profile profile;
  add(profile, 1000);
  const MachineRates slow = {
      .readBytesPerSecond = 6e6, .f32FlopsPerSecond = 6e6, .threads = 2};
  const std::string table = profile.table(slow, /*disturbed=*/true);
  EXPECT_EQ(table.find("more than 100%"), std::string::npos) << table;
  EXPECT_NE(table.find("ceilings: read 0.0 GB/s, f32 0.0 GFLOP/s, of 2 threads"
                       "\nother processes had cores while the ceilings were "
                       "measured, which may be higher:"),
            std::string::npos)
      << table;
  EXPECT_EQ(profile.table(slow).find("other processes"), std::string::npos);
}

TEST_F(ProfileTest, ReadsOfOtherDevicesAreThoseOfCopies) {
  EXPECT_EQ(Profile().table({.readBytesPerSecond = 4e12}),
            "ceilings: read 4000.0 GB/s (of copies)\n");
}

TEST_F(ProfileTest, TraceIsJsonWithATrackForEachThread) {
  Profile profile(/*withTrace=*/true);
  add(profile, 1);
  begin += std::chrono::microseconds(5);
  add(profile, 1);
  const auto json = nlohmann::json::parse(profile.trace("cpu \"x\""));
  std::set<std::string> tracks;
  std::map<std::string, int> names;
  double last = 0;
  for (const auto &event : json["traceEvents"]) {
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name")
        tracks.insert(event["args"]["name"].get<std::string>());
      continue;
    }
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), 0);
    last = std::max(last, event["ts"].get<double>());
    ++names[event["name"].get<std::string>()];
  }
  EXPECT_EQ(tracks, (std::set<std::string>{"steps", "stream of cpu \"x\"",
                                           "thread 0", "thread 1"}));
  EXPECT_EQ(names, (std::map<std::string, int>{
                       {"step_16", 2}, {"matmul_0", 4}, {"attention_0", 6}}));
  EXPECT_DOUBLE_EQ(last, 5.4);
}

TEST_F(ProfileTest, ATraceHasABound) {
  Profile profile(/*withTrace=*/true, /*mostEvents=*/3);
  add(profile, 1);
  EXPECT_EQ(profile.droppedEvents(), 3u);
  const auto json = nlohmann::json::parse(profile.trace("cpu"));
  EXPECT_EQ(json["otherData"]["dropped_events"], 3);
  EXPECT_EQ(profile.programs()[0].kernels[0].calls, 2u);
}

TEST(LeastSeconds, ReadingAndComputingOverlap) {
  const MachineRates rates = {.readBytesPerSecond = 10,
                              .f32FlopsPerSecond = 100,
                              .i8OpsPerSecond = 1000};
  EXPECT_EQ(leastSeconds({50, 100, 0}, rates), 5);
  EXPECT_EQ(boundOf({50, 100, 0}, rates), "read");
  EXPECT_EQ(leastSeconds({50, 600, 1000}, rates), 7);
  EXPECT_EQ(boundOf({50, 600, 1000}, rates), "f32");
  EXPECT_EQ(boundOf({50, 0, 9000}, rates), "i8");
  EXPECT_EQ(boundOf({50, 0, 9000}, MachineRates()), "");
  const MachineRates tiles = {.f32FlopsPerSecond = 100,
                              .bf16FlopsPerSecond = 10000};
  EXPECT_EQ(leastSeconds({50, 200, 0, 50000}, tiles), 7);
  EXPECT_EQ(boundOf({50, 200, 0, 50000}, tiles), "bf16");
  EXPECT_EQ(boundOf({50, 600, 0, 50000}, tiles), "f32");
  EXPECT_EQ(leastSeconds({50, 0, 9000}, MachineRates()), 0);
}

TEST_F(ProfileTest, TablesFitATerminal) {
  executable.kernels[0].name = "embedding_" + std::string(60, 'x') + "_0";
  Profile profile;
  add(profile, 1);
  MachineRates rates;
  rates.readBytesPerSecond = 1e9;
  const std::string table = profile.table(rates);
  size_t longest = 0;
  for (size_t begin = 0; begin < table.size();) {
    const size_t end = table.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  EXPECT_LE(longest, 100u) << table;
  // The name stands above its numbers, and the other one beside them.
  EXPECT_NE(table.find("x_0\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nattention_0 "), std::string::npos) << table;
}

} // namespace
