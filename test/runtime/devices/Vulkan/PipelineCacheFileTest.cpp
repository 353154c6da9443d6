//===- PipelineCacheFileTest.cpp - Compiled pipelines on disk -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/PipelineCacheFile.h"

#include "test/runtime/TempFile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace kf;
namespace fs = std::filesystem;

namespace {

class PipelineCacheFileTest : public testing::Test {
protected:
  void SetUp() override {
    device.vendorID = 0x10de;
    device.deviceID = 7;
    device.driverVersion = 3;
    device.pipelineCacheUUID[15] = 9;
  }

  PipelineCacheFile file() {
    return PipelineCacheFile(
        root + "/a/b", device,
        [this](std::string_view line) { warnings.emplace_back(line); });
  }

  /// What the device's driver could give, `text` behind the header.
  std::string dataWith(std::string_view text) {
    VkPipelineCacheHeaderVersionOne header{};
    header.headerSize = sizeof(header);
    header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
    header.vendorID = device.vendorID;
    header.deviceID = device.deviceID;
    std::memcpy(header.pipelineCacheUUID, device.pipelineCacheUUID,
                sizeof(header.pipelineCacheUUID));
    return std::string(reinterpret_cast<const char *>(&header),
                       sizeof(header)) +
           std::string(text);
  }

  /// Whether the only warning since the last time has `text` in it.
  testing::AssertionResult warnedOf(std::string_view text) {
    std::vector<std::string> lines;
    lines.swap(warnings);
    if (lines.size() == 1 && lines[0].find(text) != std::string::npos)
      return testing::AssertionSuccess();
    auto failure = testing::AssertionFailure() << lines.size() << " warnings:";
    for (const std::string &line : lines)
      failure << "\n  " << line;
    return failure;
  }

  std::string readFile() {
    std::ifstream stream(file().path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  void writeFile(const std::string &bytes) {
    std::ofstream(file().path(), std::ios::binary) << bytes;
  }

  const test::TempFolder temporary;
  const std::string root = temporary.path();
  VkPhysicalDeviceProperties device{};
  std::vector<std::string> warnings;
};

TEST_F(PipelineCacheFileTest, KeepsDataForItsDeviceAndDriver) {
  EXPECT_EQ(file().load(), "");
  file().store(dataWith("code"));
  EXPECT_EQ(file().load(), dataWith("code"));
  file().store(dataWith("more code"));
  EXPECT_EQ(file().load(), dataWith("more code"));
  ++device.driverVersion;
  EXPECT_EQ(file().load(), "");
  --device.driverVersion;
  ++device.pipelineCacheUUID[0];
  EXPECT_EQ(file().load(), "");
  EXPECT_TRUE(warnings.empty()) << warnings.front();
}

TEST_F(PipelineCacheFileTest, WithoutFolderIsNothing) {
  PipelineCacheFile none("", device, [](std::string_view) { FAIL(); });
  none.store(dataWith("code"));
  EXPECT_EQ(none.load(), "");
}

TEST_F(PipelineCacheFileTest, DropsDamage) {
  file().store(dataWith("code"));
  const std::string whole = readFile();
  for (size_t length = 0; length < whole.size(); length += 7) {
    writeFile(whole.substr(0, length));
    EXPECT_EQ(file().load(), "") << length;
    EXPECT_TRUE(warnedOf("it is damaged")) << length;
    EXPECT_FALSE(fs::exists(file().path()));
  }
  for (size_t at = 0; at < whole.size(); at += 5) {
    std::string changed = whole;
    changed[at] ^= 0x20;
    writeFile(changed);
    EXPECT_EQ(file().load(), "") << at;
    EXPECT_TRUE(warnedOf("it is damaged")) << at;
  }
  writeFile(whole + "x");
  EXPECT_EQ(file().load(), "");
  EXPECT_TRUE(warnedOf("removed the pipeline cache"));
}

/// Data that are whole, but not what the device's driver would have given.
TEST_F(PipelineCacheFileTest, ChecksTheDriversHeader) {
  file().store("short");
  EXPECT_EQ(file().load(), "");
  EXPECT_TRUE(warnedOf("its data end within their header"));
  struct {
    size_t byte;
    const char *message;
  } cases[] = {{0, "unknown header"},
               {4, "unknown header"},
               {8, "another device's"},
               {12, "another device's"},
               {16, "another device's"}};
  for (auto [byte, message] : cases) {
    std::string data = dataWith("code");
    data[byte] ^= 1;
    file().store(data);
    EXPECT_EQ(file().load(), "") << byte;
    EXPECT_TRUE(warnedOf(message)) << byte;
  }
}

TEST_F(PipelineCacheFileTest, TakesNothingThatOthersMayHaveWritten) {
  file().store(dataWith("code"));
  ASSERT_EQ(::chmod(file().path().c_str(), 0666), 0);
  EXPECT_EQ(file().load(), "");
  EXPECT_TRUE(warnedOf("removed the pipeline cache"));
  file().store(dataWith("code"));
  ASSERT_EQ(::chmod((root + "/a/b").c_str(), 0777), 0);
  EXPECT_EQ(file().load(), "");
  EXPECT_TRUE(warnedOf("nothing in it is safe"));
  file().store(dataWith("code"));
  EXPECT_TRUE(warnedOf("could not keep the compiled pipelines"));
}

TEST_F(PipelineCacheFileTest, HasALimit) {
  file().store(dataWith("code"));
  ASSERT_EQ(::truncate(file().path().c_str(), PipelineCacheFile::maxBytes + 1),
            0);
  EXPECT_EQ(file().load(), "");
  EXPECT_TRUE(warnedOf("bytes, more than"));
  EXPECT_FALSE(fs::exists(file().path()));
}

} // namespace
