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
  FakeModelDevice device;
  EXPECT_EQ(programRows(600, 1, config, device), Rows({1, 16, 64, 512, 2048}));
  EXPECT_EQ(programRows(8192, 1, config, device),
            Rows({1, 16, 64, 512, 2048, 8192}));
  config.hiddenSize = 5120;
  EXPECT_EQ(programRows(600, 1, config, device), Rows({1, 16, 64, 512, 2048}));
  EXPECT_EQ(programRows(4096, 1, config, device),
            Rows({1, 16, 64, 512, 2048, 4096}));
  EXPECT_EQ(programRows(8192, 1, config, device),
            Rows({1, 16, 64, 512, 2048, 4096}));

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

TEST(EnginePrograms, SizesForManySequencesAreThoseOfThem) {
  using Rows = std::vector<int64_t>;
  const ModelConfig config = fakeConfig();
  FakeModelDevice device;
  EXPECT_EQ(programRows(512, 64, config, device), Rows({1, 16, 64, 512}));
  EXPECT_EQ(programRows(512, 65, config, device), Rows({1, 16, 64, 128, 512}));
  EXPECT_EQ(programRows(512, 128, config, device), Rows({1, 16, 64, 128, 512}));
  EXPECT_EQ(programRows(512, 129, config, device),
            Rows({1, 16, 64, 128, 256, 512}));
}

TEST(EnginePrograms, MoreSizesWhereRowsAreTakenInTiles) {
  using Rows = std::vector<int64_t>;
  const ModelConfig config = fakeConfig();
  FakeModelDevice device;
  device.isInTiles = true;
  EXPECT_EQ(programRows(512, 1, config, device),
            Rows({1, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(programRows(512, 129, config, device),
            Rows({1, 16, 32, 64, 128, 256, 512}));
  device.isBetween = true;
  EXPECT_EQ(programRows(512, 1, config, device),
            Rows({1, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(programRows(512, 16, config, device), Rows({1, 16, 32, 64, 512}));
  EXPECT_EQ(programRows(512, 32, config, device),
            Rows({1, 16, 24, 32, 64, 512}));
  EXPECT_EQ(programRows(512, 33, config, device),
            Rows({1, 16, 24, 32, 48, 64, 512}));
  EXPECT_EQ(programRows(512, 65, config, device),
            Rows({1, 16, 24, 32, 48, 64, 80, 128, 512}));
  EXPECT_EQ(programRows(512, 129, config, device),
            Rows({1, 16, 24, 32, 48, 64, 80, 96, 128, 192, 256, 512}));
}

/// Logits of a step are one tensor, which devices bound.
TEST(EnginePrograms, AsManyAreChosenAsLogitsHaveRoomFor) {
  for (const auto &[parallel, rows, expected] :
       {std::tuple<int64_t, int64_t, int64_t>(256, 256, 256),
        {256, 255, 128},
        {256, 127, 64},
        {100, 127, 64},
        {100, 128, 100},
        {256, 63, 16},
        {256, 0, 1}}) {
    FakeModelDevice device;
    FakeSource source;
    ModelConfig config = fakeConfig();
    device.mostBytes = sizeof(float) * rows * config.vocabSize;
    Model model(config, device, source, nullptr);
    const auto engine =
        Engine::create(model, {.parallel = parallel, .pages = 1000});
    ASSERT_TRUE(engine.ok()) << engine.message();
    EXPECT_EQ((*engine)->chosenPerStep(), expected)
        << parallel << " sequences, " << rows << " rows";
    for (const StepShape &shape : (*engine)->shapesToPrepare())
      if (shape.part != StepPart::Body)
        EXPECT_LE(shape.rows, std::max<int64_t>(rows, 1)) << nameOf(shape);
  }
}

/// Rows of each program have room in tensors, or the device refuses all of it.
TEST(EnginePrograms, PromptsHaveManyRowsWhereTensorsHaveRoom) {
  ModelConfig config = fakeConfig(20000);
  config.hiddenSize = 3584;
  config.intermediateSize = 18944;
  FakeModelDevice device;
  device.rowsOfPrompts = 2048;
  auto rowsWith = [&](uint64_t bytes) {
    device.mostBytes = bytes;
    return promptRowsOf(config, device);
  };
  const uint64_t bytes = sizeof(float) * 2048 * 18944;
  EXPECT_EQ(rowsWith(UINT64_MAX), 2048);
  EXPECT_EQ(rowsWith(bytes), 2048);
  EXPECT_EQ(rowsWith(bytes - 1), 512);
  EXPECT_EQ(rowsWith(uint64_t(128) << 20), 512);
  EXPECT_EQ(rowsWith(1), 512);
  // The engine's steps and pages are of as many.
  FakeSource source;
  Model model(config, device, source, nullptr);
  for (auto [most, expected] :
       {std::pair<uint64_t, int64_t>(bytes, 2048), {bytes - 1, 512}}) {
    device.mostBytes = most;
    const auto engine = Engine::create(model);
    ASSERT_TRUE(engine.ok()) << engine.message();
    EXPECT_EQ((*engine)->rowsPerStep(), expected);
  }
  // A device's own number stays, where it is no more than others'.
  device.rowsOfPrompts = 256;
  EXPECT_EQ(rowsWith(1), 256);
  // So does what a step of the model can have.
  device.rowsOfPrompts = 2048;
  config.hiddenSize = 1 << 18;
  EXPECT_EQ(rowsWith(UINT64_MAX), 128);
  EXPECT_EQ(rowsWith(1), 128);
}

} // namespace
