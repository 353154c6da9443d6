//===- EngineProgramsTest.cpp - Sizes of the programs that steps run ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

using namespace kf;
using namespace kf::test;

namespace {

TEST(EnginePrograms, WideModelsHaveFewerRows) {
  using Rows = std::vector<int64_t>;
  ModelConfig config = fakeConfig(20000);
  EXPECT_EQ(programRows(600, 1, config), Rows({1, 16, 64, 512, 2048}));
  EXPECT_EQ(programRows(8192, 1, config), Rows({1, 16, 64, 512, 2048, 8192}));
  config.hiddenSize = 5120;
  EXPECT_EQ(programRows(600, 1, config), Rows({1, 16, 64, 512, 2048}));
  EXPECT_EQ(programRows(4096, 1, config), Rows({1, 16, 64, 512, 2048, 4096}));
  EXPECT_EQ(programRows(8192, 1, config), Rows({1, 16, 64, 512, 2048, 4096}));

  FakeModelDevice device;
  FakeSource source;
  Model wide(config, device, source, nullptr);
  EXPECT_EQ(Engine::create(wide, {.rowsPerStep = 4097}).message(),
            "a number of rows of 4097 is not possible; 1 to 4096 are");
  EXPECT_TRUE(Engine::create(wide, {.rowsPerStep = 4096}).ok());
  // The device's rows are more than those of this one.
  config.hiddenSize = 1 << 18;
  Model widest(config, device, source, nullptr);
  const auto engine = Engine::create(widest);
  ASSERT_TRUE(engine.ok()) << engine.message();
  EXPECT_EQ((*engine)->rowsPerStep(), 128);
}

} // namespace
