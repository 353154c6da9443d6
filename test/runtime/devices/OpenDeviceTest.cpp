//===- OpenDeviceTest.cpp - Devices by name -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/OpenDevice.h"

#include "test/runtime/StatusAssertions.h"

#include <gtest/gtest.h>

#include <vector>

using namespace kf;
using namespace kf::test;

namespace {

class Notes : public Observer {
public:
  void onNote(const std::string &line) override { lines.push_back(line); }

  std::vector<std::string> lines;
};

std::string nameOf(const DeviceChoice &choice) {
  Result<std::unique_ptr<Device>> device = openDevice(choice, nullptr);
  return device.ok() ? (*device)->name() : device.message();
}

TEST(OpenDevice, OpensWhatIsNamed) {
  EXPECT_EQ(nameOf({}), "cpu");
  EXPECT_EQ(nameOf({.device = "cpu:0"}), "cpu");
  EXPECT_EQ(nameOf({.device = "reference"}), "reference");
  Result<std::unique_ptr<Device>> device = openDevice({.threads = 2}, nullptr);
  ASSERT_TRUE(device.ok()) << device.message();
  EXPECT_EQ((*device)->workers(), 2);
}

TEST(OpenDevice, RefusesOtherNames) {
  for (const char *name : {"", "gpu", "CPU", ":", "cpu1", "vulkanic:1"}) {
    EXPECT_TRUE(failsWith(checkDeviceName(name),
                          "--device takes one of cpu, reference, vulkan, cuda, "
                          "auto, not '" +
                              std::string(name)))
        << name;
    EXPECT_TRUE(failsWith(openDevice({.device = name}, nullptr).status(),
                          "--device takes one of"));
  }
  for (const char *name : {"vulkan:", "cuda:x", "cuda:-1", "vulkan:9999"})
    EXPECT_TRUE(failsWith(checkDeviceName(name),
                          "--device takes a device's number behind ':'"))
        << name;
  EXPECT_TRUE(failsWith(checkDeviceName("auto:1"), "chooses by itself"));
  EXPECT_TRUE(failsWith(checkDeviceName("cpu:1"), "there is one cpu device"));
}

TEST(OpenDevice, RefusesThreadsThatCannotBe) {
  EXPECT_TRUE(failsWith(
      openDevice({.device = "reference", .threads = 2}, nullptr).status(),
      "-t 2: threads are the CPU device's"));
  for (const int64_t threads : {int64_t(-1), int64_t(1) << 32, INT64_MAX})
    EXPECT_FALSE(openDevice({.threads = threads}, nullptr).ok()) << threads;
}

TEST(OpenDevice, RanksHaveAGpuEach) {
  EXPECT_TRUE(failsWith(
      openDevice({.device = "cuda:1", .ranks = 2}, nullptr).status(),
      "--device cuda:1 is one GPU, and each of 2 ranks has its own: leave the "
      "number out, and let CUDA_VISIBLE_DEVICES say which"));
}

TEST(OpenDevice, NotesWhatAutoTakes) {
  Notes notes;
  Result<std::unique_ptr<Device>> device =
      openDevice({.device = "auto"}, &notes);
  ASSERT_TRUE(device.ok()) << device.message();
  ASSERT_EQ(notes.lines.size(), 1u);
  EXPECT_TRUE(notes.lines[0].starts_with("--device auto takes " +
                                         (*device)->name() + ": "))
      << notes.lines[0];
}

} // namespace
