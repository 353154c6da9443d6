//===- SpirvModuleTest.cpp - What is read from SPIR-V modules -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Vulkan/SpirvModule.h"

#include "SpirvTestModules.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <gtest/gtest.h>

using namespace kf;
using kf::test::failsWith;
using kf::test::lengthPrefixed;

namespace {

TEST(SpirvModule, ReadsWhatTheDeviceChecks) {
  Result<SpirvModule> module = parseSpirv(readSpirv("scale"));
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(module->minorVersion, 3u);
  EXPECT_EQ(module->capabilities, std::vector<uint32_t>{1});
  EXPECT_EQ(module->maxBinding, 3);
  EXPECT_EQ(module->maxSet, 0);
  const SpirvEntryPoint *entry = module->find("scale");
  ASSERT_NE(entry, nullptr);
  EXPECT_TRUE(entry->compute);
  EXPECT_EQ(entry->localSize, (std::array<uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(module->find("scal"), nullptr);
}

TEST(SpirvModule, ReadsWhichFloatsKeepSubnormals) {
  Result<SpirvModule> module = parseSpirv(readSpirv("scale"));
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_TRUE(module->denormPreserve.empty());
  module = parseSpirv(
      withDenormPreserve(withDenormPreserve(readSpirv("scale"), 16), 32));
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(module->denormPreserve, (std::vector<uint32_t>{32, 16}));
  EXPECT_TRUE(module->roundToNearest.empty());
}

TEST(SpirvModule, ReadsWhichFloatsAreRoundedToTheNearest) {
  Result<SpirvModule> module = parseSpirv(readSpirv("scale"));
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_TRUE(module->roundToNearest.empty());
  module = parseSpirv(
      withRoundingModeRTE(withRoundingModeRTE(readSpirv("scale"), 16), 64));
  ASSERT_TRUE(module.ok()) << module.message();
  EXPECT_EQ(module->roundToNearest, (std::vector<uint32_t>{64, 16}));
  EXPECT_TRUE(module->denormPreserve.empty());
}

TEST(SpirvModule, RejectsDamagedHeaders) {
  const std::string good = readSpirv("scale");
  EXPECT_TRUE(failsWith(parseSpirv("").status(), "less than a header"));
  EXPECT_TRUE(failsWith(parseSpirv(good.substr(0, good.size() - 1)).status(),
                        "not a multiple of 4"));
  std::string bad = good;
  setWord(bad, 0, 0x03022307);
  EXPECT_TRUE(failsWith(parseSpirv(bad).status(), "magic"));
  bad = good;
  setWord(bad, 1, 0x00020000);
  EXPECT_TRUE(failsWith(parseSpirv(bad).status(), "version"));
  bad = good;
  setWord(bad, 3, 0xffffffff);
  EXPECT_TRUE(failsWith(parseSpirv(bad).status(), "id bound"));
}

TEST(SpirvModule, RejectsBrokenInstructions) {
  std::string bad = readSpirv("scale");
  setWord(bad, 5, 17); // OpCapability of length 0
  EXPECT_TRUE(failsWith(parseSpirv(bad).status(), "length of 0"));
  setWord(bad, 5, 0xffff0011);
  EXPECT_TRUE(failsWith(parseSpirv(bad).status(), "length of 65535"));
  setWord(bad, 5, 0x00030011);
  EXPECT_TRUE(failsWith(parseSpirv(bad).status(), "OpCapability"));
}

TEST(SpirvModule, EveryTruncationIsAnErrorOrASmallerModule) {
  const std::string good = readSpirv("scale");
  for (size_t size = 0; size < good.size(); ++size) {
    Result<SpirvModule> module = parseSpirv(good.substr(0, size));
    if (size % 4 != 0 || size < 20)
      EXPECT_FALSE(module.ok()) << size;
    std::string whole = lengthPrefixed(good);
    EXPECT_FALSE(parseSpirvModules(whole.substr(0, size), 1).ok()) << size;
  }
}

TEST(SpirvModule, EveryFlippedByteIsReadSafely) {
  const std::string good = readSpirv("scale");
  for (size_t i = 0; i < good.size(); ++i)
    for (int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      Result<SpirvModule> module = parseSpirv(bad);
      if (!module)
        EXPECT_TRUE(failsWith(module.status(), ""));
    }
}

TEST(SpirvModule, SplitsAndChecksLengths) {
  const std::string one = lengthPrefixed(readSpirv("scale"));
  Result<std::vector<SpirvModule>> two = parseSpirvModules(one + one, 2);
  ASSERT_TRUE(two.ok()) << two.message();
  EXPECT_EQ(two->size(), 2u);
  EXPECT_TRUE(failsWith(parseSpirvModules(one, 2).status(),
                        "module 1: the binary ends before it"));
  EXPECT_TRUE(
      failsWith(parseSpirvModules(one + one, 1).status(), "follow the last"));
  std::string hostile = one;
  setWord(hostile, 1, 0xffffffff); // the length's high half
  EXPECT_TRUE(failsWith(parseSpirvModules(hostile, 1).status(), "states"));
}

} // namespace
