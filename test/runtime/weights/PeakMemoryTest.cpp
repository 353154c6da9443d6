//===- PeakMemoryTest.cpp - How much memory loading takes -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Safetensors.h"
#include "runtime/weights/WeightStore.h"
#include "test/runtime/FakeDevice.h"
#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

using namespace kf;
using kf::test::FakeDevice;
using kf::test::TempFolder;

namespace {

constexpr uint64_t mebibyte = uint64_t(1) << 20;

/// A line of /proc/self/status, in bytes.
uint64_t statusOf(const std::string &wanted) {
  std::ifstream file("/proc/self/status");
  std::string name, rest;
  for (uint64_t kibibytes = 0; file >> name; std::getline(file, rest))
    if (name == wanted && file >> kibibytes)
      return kibibytes << 10;
  return 0;
}

/// Lets the peak begin anew; whether the system can.
bool forgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

/// A checkpoint of 192 MiB: pages of a file with a hole count as others do.
std::string writeCheckpoint(const TempFolder &folder) {
  const std::string header = R"({"large":{"dtype":"BF16","shape":[65536,1024],)"
                             R"("data_offsets":[0,134217728]},)"
                             R"("gate":{"dtype":"BF16","shape":[16384,1024],)"
                             R"("data_offsets":[134217728,167772160]},)"
                             R"("up":{"dtype":"BF16","shape":[16384,1024],)"
                             R"("data_offsets":[167772160,201326592]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes[1] = static_cast<char>(header.size() >> 8);
  const std::string path = folder.write("model.safetensors", bytes + header);
  std::filesystem::resize_file(path, 8 + header.size() + 192 * mebibyte);
  return path;
}

/// A model is in memory about once while it is loaded: what was packed of the
/// file is given back meanwhile, of one large tensor, too.
TEST(PeakMemory, IsThatOfTheWeights) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
  GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
#endif
  const TempFolder folder;
  const std::string path = writeCheckpoint(folder);
  WeightSpec large, stacked;
  large.names = {"large"};
  large.shape = {65536, 1024};
  large.type = stacked.type = DataType::BF16;
  large.layout = stacked.layout = {WeightLayout::Kind::Panels, 32, 0};
  stacked.names = {"gate", "up"};
  stacked.stacked = true;
  stacked.shape = {2, 16384, 1024};
  for (const int threads : {1, 3}) {
    auto pool = ThreadPool::create(threads).take();
    auto source = Safetensors::open(path);
    ASSERT_TRUE(source.ok()) << source.message();
    FakeDevice device;
    WeightStore store(device, source->get(), {.pool = pool.get()});
    if (!forgetPeak())
      GTEST_SKIP() << "the system keeps the peak";
    const uint64_t before = statusOf("VmRSS:");
    auto made = store.getAll(std::vector{large, stacked});
    ASSERT_TRUE(made.ok()) << made.message();
    const uint64_t peak = statusOf("VmHWM:");
    ASSERT_GT(before, 0u);
    EXPECT_GE(peak - before, 192 * mebibyte);
    EXPECT_LE(peak - before, (192 + 64 + 24) * mebibyte);
    // Of the file there is next to nothing left.
    EXPECT_LE(statusOf("VmRSS:") - before, (192 + 8) * mebibyte);
  }
}

} // namespace
