//===- TileRegistersTest.cpp ----------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/TileRegisters.h"

#include "gtest/gtest.h"

#include <fstream>
#include <string>
#include <thread>

using namespace kf;

namespace {

bool processorHasTiles() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags"))
      return line.find(" amx_tile") != line.npos;
  return false;
}

TEST(TileRegistersTest, AreThoseOfTheProcessor) {
  const bool may = mayUseTiles();
  if (!processorHasTiles()) {
    EXPECT_FALSE(may);
  }
  EXPECT_EQ(mayUseTiles(), may);
  bool inThread = !may;
  std::thread([&] { inThread = mayUseTiles(); }).join();
  EXPECT_EQ(inThread, may);
}

} // namespace
