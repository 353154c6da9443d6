//===- CeilingsTest.cpp ---------------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/Ceilings.h"

#include "runtime/core/UsableThreads.h"

#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Cuda/CudaDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/TempFile.h"
#include "test/runtime/devices/Cuda/FakeCuda.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

using namespace kf;
using namespace kf::test;

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

/// As little as measuring takes.
const CeilingOptions kShort = {.readBytes = kMiB, .seconds = 0};

void writeCache(const TempFolder &root, int index, const std::string &size) {
  const std::filesystem::path folder =
      root.path() + "/sys/devices/system/cpu/cpu0/cache/index" +
      std::to_string(index);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "size") << size << "\n";
}

} // namespace

TEST(LastLevelCache, IsTheLargest) {
  TempFolder root;
  writeCache(root, 0, "48K");
  writeCache(root, 1, "32K");
  writeCache(root, 2, "2M");
  writeCache(root, 3, "266240K");
  EXPECT_EQ(lastLevelCacheBytes(root.path()), 260 * kMiB);
}

TEST(LastLevelCache, IsNotKnownWhereTheSystemDoesNotTell) {
  TempFolder root;
  EXPECT_EQ(lastLevelCacheBytes(root.path()), 0u);
  writeCache(root, 0, "large");
  EXPECT_EQ(lastLevelCacheBytes(root.path()), 0u);
}

TEST(LastCache, IsTheHostsOrALargeOneWhereNothingTells) {
  TempFolder root;
  auto host = createReferenceDevice();
  EXPECT_EQ(lastCacheBytes(*host, root.path()), 256 * kMiB);
  writeCache(root, 3, "266240K");
  EXPECT_EQ(lastCacheBytes(*host, root.path()), 260 * kMiB);
  FakeCuda driver;
  auto gpu = createCudaDevice({.device = {}, .driver = &driver.functions()});
  ASSERT_TRUE(succeeds(gpu.status()));
  EXPECT_EQ(lastCacheBytes(**gpu, root.path()), 256 * kMiB);
}

TEST(UncachedBytes, AreFarBeyondTheCacheAndNotAllMemory) {
  EXPECT_EQ(uncachedBytes(100 * kMiB, 64 * 1024 * kMiB), 400 * kMiB);
  EXPECT_EQ(uncachedBytes(0, 64 * 1024 * kMiB), 256 * kMiB);
  EXPECT_EQ(uncachedBytes(100 * kMiB, 1000 * kMiB), 250 * kMiB);
  EXPECT_EQ(uncachedBytes(UINT64_MAX, 1000 * kMiB), 250 * kMiB);
}

TEST(HostCeilings, GiveEveryRateOfEveryNumberOfThreads) {
  for (int threads : {1, 2, 3}) {
    auto host = HostCeilings::create(threads, kShort);
    ASSERT_TRUE(succeeds(host.status()));
    // The best of some: so short a measurement may wait for the processor for
    // longer than it takes.
    MachineRates best;
    auto isPlausible = [&] {
      return best.readBytesPerSecond > 1e6 && best.f32FlopsPerSecond > 1e6 &&
             (best.bf16FlopsPerSecond == 0 ||
              best.bf16FlopsPerSecond > best.f32FlopsPerSecond);
    };
    for (int i = 0; i < 50 && !isPlausible(); ++i) {
      const Result<MachineRates> rates = (*host)->measure();
      ASSERT_TRUE(succeeds(rates.status()));
      EXPECT_EQ(rates->threads, threads);
      for (double MachineRates::*rate : kMachineRates)
        best.*rate = std::max(best.*rate, (*rates).*rate);
    }
    // A processor of any kind reads and multiplies faster than this, and none
    // as fast as that.
    EXPECT_GT(best.readBytesPerSecond, 1e6);
    EXPECT_LT(best.readBytesPerSecond, 1e14);
    EXPECT_GT(best.f32FlopsPerSecond, 1e6);
    EXPECT_LT(best.f32FlopsPerSecond, 1e14);
    EXPECT_LT(best.i8OpsPerSecond, 1e15);
    EXPECT_LT(best.i8TileOpsPerSecond, 1e16);
    // Tiles are there to multiply faster.
    if (best.bf16FlopsPerSecond != 0)
      EXPECT_GT(best.bf16FlopsPerSecond, best.f32FlopsPerSecond);
    EXPECT_LT(best.bf16FlopsPerSecond, 1e15);
  }
}

TEST(HostCeilings, ReadAsMuchAsIsAsked) {
  auto host = HostCeilings::create(1, {.readBytes = 3 * kMiB + 100});
  ASSERT_TRUE(succeeds(host.status()));
  EXPECT_EQ((*host)->arrayBytes(), 3 * kMiB + 64);
  for (uint64_t bytes : {uint64_t(1), kMiB, 100 * kMiB})
    EXPECT_GT(*(*host)->readBytesPerSecond(bytes), 0);
  host = HostCeilings::create(1, {.mostReadBytes = 3 * kMiB});
  ASSERT_TRUE(succeeds(host.status()));
  EXPECT_EQ((*host)->arrayBytes(), 3 * kMiB);
  host = HostCeilings::create(1, {.readBytes = 1});
  ASSERT_TRUE(succeeds(host.status()));
  EXPECT_EQ((*host)->arrayBytes(), 64u);
  EXPECT_GT(*(*host)->readBytesPerSecond(), 0);
}

TEST(HostCeilings, EndWhenTheyAreCancelled) {
  std::atomic<bool> cancelled{false};
  CeilingOptions options = kShort;
  options.cancelled = &cancelled;
  auto host = HostCeilings::create(1, options);
  ASSERT_TRUE(succeeds(host.status()));
  cancelled = true;
  EXPECT_TRUE((*host)->measure().status().isCancelled());
  EXPECT_TRUE(HostCeilings::create(1, options).status().isCancelled());
}

TEST(HostCeilings, TellWhenOthersHaveTheCores) {
  std::atomic<bool> ended{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 4 * usableThreads(); ++i)
    others.emplace_back([&] {
      while (!ended)
        ;
    });
  CeilingOptions options = kShort;
  options.seconds = 0.3;
  auto host = HostCeilings::create(1, options);
  bool disturbed = false;
  if (host.ok()) {
    EXPECT_GT(*(*host)->f32FlopsPerSecond(), 0);
    disturbed = (*host)->wasDisturbed();
  }
  ended = true;
  for (std::thread &other : others)
    other.join();
  ASSERT_TRUE(succeeds(host.status()));
  EXPECT_TRUE(disturbed);
}

TEST(HostCeilings, TellQuietFromBusy) {
  EXPECT_TRUE(hadCores(0.99, 1, 1));
  EXPECT_TRUE(hadCores(1.9, 1, 2));
  EXPECT_FALSE(hadCores(0.99, 1, 2));
  EXPECT_FALSE(hadCores(0.5, 1, 1));
  EXPECT_TRUE(hadCores(0.19, 0.1, 2));
}

TEST(HostCeilings, RefuseWhatCannotBeHad) {
  EXPECT_TRUE(failsWith(HostCeilings::create(-1, kShort).status(),
                        "cannot use -1 threads"));
  EXPECT_TRUE(
      failsWith(HostCeilings::create(1, {.readBytes = UINT64_MAX}).status(),
                "no memory for a buffer of"));
}

TEST(MeasureRates, AreTheHostsForDevicesInItsMemory) {
  auto cpu = createCpuDevice({.threads = 2});
  ASSERT_TRUE(succeeds(cpu.status()));
  const Result<MachineRates> rates = measureRates(**cpu, kShort);
  ASSERT_TRUE(succeeds(rates.status()));
  EXPECT_EQ(rates->threads, 2);
  EXPECT_GT(rates->f32FlopsPerSecond, 0);

  const Result<MachineRates> reference =
      measureRates(*createReferenceDevice(), kShort);
  ASSERT_TRUE(succeeds(reference.status()));
  EXPECT_EQ(reference->threads, 1);
  EXPECT_GT(reference->readBytesPerSecond, 0);
}

TEST(MeasureRates, OfSeveralDevicesAreAllTheirs) {
  const MachineRates rates = ratesOf({.readBytesPerSecond = 1,
                                      .f32FlopsPerSecond = 2,
                                      .i8OpsPerSecond = 3,
                                      .i8TileOpsPerSecond = 7,
                                      .bf16FlopsPerSecond = 4,
                                      .threads = 5},
                                     3);
  EXPECT_EQ(rates.readBytesPerSecond, 3);
  EXPECT_EQ(rates.f32FlopsPerSecond, 6);
  EXPECT_EQ(rates.i8OpsPerSecond, 9);
  EXPECT_EQ(rates.i8TileOpsPerSecond, 21);
  EXPECT_EQ(rates.bf16FlopsPerSecond, 12);
  EXPECT_EQ(rates.threads, 15);
}

TEST(MeasureRates, FastestUnitsCountWhateverTheyAre) {
  // No unit but f32's.
  MachineRates rates = fastestUnits({.f32FlopsPerSecond = 2});
  EXPECT_EQ(rates.i8OpsPerSecond, 2);
  EXPECT_EQ(rates.bf16FlopsPerSecond, 2);
  // Bytes in vectors, and pairs of bf16.
  rates = fastestUnits(
      {.f32FlopsPerSecond = 2, .i8OpsPerSecond = 8, .bf16FlopsPerSecond = 4});
  EXPECT_EQ(rates.f32FlopsPerSecond, 2);
  EXPECT_EQ(rates.i8OpsPerSecond, 8);
  EXPECT_EQ(rates.bf16FlopsPerSecond, 4);
  // Tiles of bf16 alone, then of bytes as well.
  rates = fastestUnits(
      {.f32FlopsPerSecond = 2, .i8OpsPerSecond = 8, .bf16FlopsPerSecond = 32});
  EXPECT_EQ(rates.i8OpsPerSecond, 32);
  rates.i8TileOpsPerSecond = 64;
  EXPECT_EQ(fastestUnits(rates).i8OpsPerSecond, 64);
}

TEST(MeasureRates, OfAnotherDeviceAreThoseOfCopies) {
  FakeCuda driver;
  auto device = createCudaDevice({.device = {}, .driver = &driver.functions()});
  ASSERT_TRUE(succeeds(device.status()));
  const Result<MachineRates> rates = measureRates(**device, kShort);
  ASSERT_TRUE(succeeds(rates.status()));
  EXPECT_GT(rates->readBytesPerSecond, 0);
  EXPECT_EQ(rates->f32FlopsPerSecond, 0);
  EXPECT_EQ(rates->i8OpsPerSecond, 0);
  EXPECT_EQ(rates->threads, 0);
  (*device).reset();
  EXPECT_EQ(driver.violations, std::vector<std::string>());
}

TEST(MeasureRates, OfAnotherDeviceAreThoseOfKernelsWhereThereAreSome) {
  FakeCuda driver;
  FakeCuda::Kernel scale = driver.kernels.at("scale");
  int64_t runs = 0;
  driver.kernels["scale"] = [&](auto... launch) {
    ++runs;
    scale(launch...);
  };
  // Copies that take much longer than a kernel.
  driver.answer = [](const std::string &function) {
    if (function.starts_with("cuMemcpyDtoD"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return CUDA_SUCCESS;
  };
  auto device = createCudaDevice({.device = {}, .driver = &driver.functions()});
  ASSERT_TRUE(succeeds(device.status()));
  CeilingOptions options = kShort;
  const Result<MachineRates> copies = measureRates(**device, options);
  ASSERT_TRUE(succeeds(copies.status()));
  EXPECT_EQ(runs, 0);

  options.copyProgram = [](const Device &, int64_t rows) -> Result<Executable> {
    EXPECT_EQ(rows, static_cast<int64_t>(kMiB / (kCopyWidth * 4)));
    Executable program = scaleOnce("cuda", scaleImage());
    program.maxTokens = rows;
    program.weights.clear();
    program.inputs = program.outputs = {{DataType::F32, {-1, kCopyWidth}}};
    program.dispatches[0].bindings[1] = {KF_BINDING_INPUT, 0, 0};
    return program;
  };
  const Result<MachineRates> rates = measureRates(**device, options);
  ASSERT_TRUE(succeeds(rates.status()));
  EXPECT_GE(runs, 5);
  EXPECT_GT(rates->readBytesPerSecond, copies->readBytesPerSecond);

  options.copyProgram = [](const Device &, int64_t) -> Result<Executable> {
    return Status::error("no program");
  };
  EXPECT_TRUE(
      failsWith(measureRates(**device, options).status(), "no program"));
  (*device).reset();
  EXPECT_EQ(driver.violations, std::vector<std::string>());
}
