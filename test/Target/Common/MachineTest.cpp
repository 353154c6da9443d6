//===- MachineTest.cpp - What targets say of their machines ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one account of each machine, and that what is shared by all targets asks
// it and not a target.
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Dialect/KF/IR/MatrixUnits.h"
#include "kf/Pipelines/Registration.h"
#include "kf/Target/Common/GpuCosts.h"
#include "kf/Target/Targets.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <regex>

using namespace mlir::kf;
namespace fs = std::filesystem;

namespace {

using Units = std::vector<MatrixUnit>;

class MachineTest : public testing::Test {
protected:
  MachineTest() : context(makeRegistry(), kSingleThread) {}

  MachineDescription describe(const std::string &target) {
    auto parsed = parseTarget(target, &context);
    EXPECT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    return parsed ? parsed->getMachine() : MachineDescription();
  }

  static Units unitsOf(const MachineDescription &machine) {
    return Units(machine.units.begin(), machine.units.end());
  }

  static constexpr auto kSingleThread = mlir::MLIRContext::Threading::DISABLED;
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  mlir::MLIRContext context;
};

struct CudaCase {
  const char *chip;
  int64_t memory, memoryOfEach, threadsOfEach, clusterWorkgroups;
  bool hasWarpgroups;
};

TEST_F(MachineTest, nvidiaGpus) {
  // Of the programming guide's table of compute capabilities.
  for (const CudaCase &each : {CudaCase{"sm_80", 163, 164, 2048, 1, false},
                               {"sm_86", 99, 100, 1536, 1, false},
                               {"sm_89", 99, 100, 1536, 1, false},
                               {"sm_90", 227, 228, 2048, 8, false},
                               {"sm_90a", 227, 228, 2048, 8, true},
                               {"sm_100a", 227, 228, 2048, 8, false},
                               {"sm_120", 99, 100, 1536, 8, false}}) {
    SCOPED_TRACE(each.chip);
    const MachineDescription machine =
        describe("cuda:" + std::string(each.chip));
    EXPECT_EQ(machine.name, "CUDA");
    Units units = {MatrixUnit::MmaSync, MatrixUnit::Tf32Pairs};
    if (each.hasWarpgroups)
      units.push_back(MatrixUnit::Wgmma);
    EXPECT_EQ(unitsOf(machine), units);
    EXPECT_EQ(machine.memory, each.memory * 1024);
    EXPECT_EQ(machine.ofEach.memory, each.memoryOfEach * 1024);
    EXPECT_EQ(machine.ofEach.threads, each.threadsOfEach);
    EXPECT_EQ(machine.ofEach.registers, 65536);
    EXPECT_EQ(machine.registersOfThread, 255);
    EXPECT_EQ(machine.threads, 1024);
    EXPECT_EQ(machine.indexBits, 64);
    EXPECT_EQ(machine.clusterWorkgroups, each.clusterWorkgroups);
    EXPECT_EQ(machine.hasClusters(), each.clusterWorkgroups > 1);
    EXPECT_EQ(machine.hasDependentLaunch, machine.hasClusters());
    EXPECT_EQ(machine.convertsFloat8, machine.hasClusters());
    EXPECT_EQ(machine.asyncCopyBytes, 16);
    EXPECT_EQ(machine.warpThreads, 32);
    EXPECT_TRUE(machine.sharesRegisters);
    EXPECT_EQ(machine.productsPerCycle(MatrixUnit::Wgmma),
              2 * machine.productsPerCycle(MatrixUnit::MmaSync));
  }
}

TEST_F(MachineTest, whatADeviceReportsGoesBeforeItsChip) {
  const MachineDescription machine = describe(
      "#kf.cuda_target<chip = \"sm_90a\", multiprocessors = 132, memory = 1>");
  EXPECT_EQ(machine.multiprocessors, 132);
  EXPECT_EQ(machine.memory, 1);
  EXPECT_EQ(describe("cuda:sm_90a").multiprocessors, 128);
}

TEST_F(MachineTest, codeForEveryNvidiaGpuTakesNoMoreMemoryThanEachHas) {
  EXPECT_EQ(describe("cuda").memory, 99 * 1024);
  // As does code for chips that the table lacks.
  EXPECT_EQ(describe("#kf.cuda_target<chip = \"sm_999\">").memory, 48 * 1024);
}

TEST_F(MachineTest, vulkanDevices) {
  const MachineDescription machine =
      describe("#kf.vulkan_target<threads = 1024, memory = 49152, subgroup = "
               "32, types = [f16, i8]>");
  EXPECT_EQ(machine.name, "Vulkan");
  EXPECT_TRUE(machine.units.empty());
  EXPECT_EQ(machine.threads, 1024);
  EXPECT_EQ(machine.memory, 49152);
  EXPECT_EQ(machine.indexBits, 32);
  ASSERT_TRUE(machine.integers);
  EXPECT_EQ(
      std::vector<int64_t>(machine.integers->begin(), machine.integers->end()),
      std::vector<int64_t>{8});
  EXPECT_FALSE(machine.hasClusters());
  EXPECT_FALSE(machine.hasDependentLaunch);
  EXPECT_FALSE(machine.sharesRegisters);
  EXPECT_EQ(machine.warpThreads, 0);
  EXPECT_EQ(machine.asyncCopyBytes, 0);
}

TEST_F(MachineTest, cpus) {
  struct Case {
    const char *target;
    int64_t lanes, registers;
    bool fuses;
    Units units;
  };
  for (const Case &each :
       {Case{"cpu:x86-64", 4, 16, false, {MatrixUnit::Bytes}},
        {"cpu:haswell", 8, 16, true, {MatrixUnit::Bytes}},
        {"cpu:cascadelake", 16, 32, true, {MatrixUnit::Bytes}},
        {"cpu:znver4",
         16,
         32,
         true,
         {MatrixUnit::Bytes, MatrixUnit::Bf16Pairs}},
        {"cpu:sapphirerapids",
         16,
         32,
         true,
         {MatrixUnit::Bytes, MatrixUnit::Amx}},
        {"cpu:aarch64-linux-gnu/cortex-a76",
         4,
         32,
         true,
         {MatrixUnit::Bytes}}}) {
    SCOPED_TRACE(each.target);
    const MachineDescription machine = describe(each.target);
    EXPECT_EQ(machine.name, "CPU");
    EXPECT_EQ(machine.vectorLanes, each.lanes);
    EXPECT_EQ(machine.vectorRegisters, each.registers);
    EXPECT_EQ(machine.fusesMultiplyAdd, each.fuses);
    EXPECT_EQ(unitsOf(machine), each.units);
    EXPECT_EQ(machine.caches.second, 1024 * 1024);
  }
  EXPECT_EQ(
      describe("#kf.cpu_target<cpu = \"znver4\", workers = 3>").multiprocessors,
      3);
}

TEST_F(MachineTest, theReferenceHasNothingThatKernelsCouldUse) {
  const MachineDescription machine = describe("reference");
  EXPECT_TRUE(machine.units.empty());
  EXPECT_FALSE(machine.hasClusters());
}

TEST_F(MachineTest, ofAnOpItIsThatOfItsModulesTarget) {
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  // Nobody says: a usual GPU's.
  EXPECT_TRUE(getMachine(*module).units.empty());
  EXPECT_TRUE(getMachine(*module).sharesRegisters);
  auto target = parseTarget("cuda:sm_90a", &context);
  ASSERT_TRUE(bool(target));
  (*module)->setAttr(kTargetAttrName, *target);
  EXPECT_TRUE(getMachine(*module).has(MatrixUnit::Wgmma));
}

TEST_F(MachineTest, unitsMultiplyTypes) {
  mlir::Builder b(&context);
  const mlir::Type f32 = b.getF32Type(), f16 = b.getF16Type(),
                   bf16 = b.getBF16Type(), i8 = b.getI8Type();
  struct Case {
    MatrixUnit unit;
    int64_t threads, lines, rows, step;
    std::vector<mlir::Type> types;
  };
  for (const Case &each :
       {Case{MatrixUnit::MmaSync, 32, 16, 8, 16, {f16, bf16}},
        {MatrixUnit::Tf32Pairs, 32, 16, 8, 8, {f32}},
        {MatrixUnit::Wgmma, 128, 64, 8, 16, {f16, bf16}},
        {MatrixUnit::Amx, 1, 16, 16, 32, {bf16}},
        {MatrixUnit::Bf16Pairs, 1, 1, 1, 2, {bf16}},
        {MatrixUnit::Bytes, 1, 1, 1, 4, {i8}}}) {
    SCOPED_TRACE(stringifyMatrixUnit(each.unit).str());
    const MatrixUnitShape shape = getUnitShape(each.unit);
    EXPECT_EQ(shape.threads, each.threads);
    EXPECT_EQ(shape.lines, each.lines);
    EXPECT_EQ(shape.rows, each.rows);
    EXPECT_EQ(shape.step, each.step);
    for (mlir::Type type : {f32, f16, bf16, i8})
      EXPECT_EQ(multiplies(each.unit, type),
                llvm::is_contained(each.types, type));
  }
}

TEST_F(MachineTest, costsOfAMeasuredChipAreThoseOfItsFile) {
  for (const char *target : {"cuda:sm_90", "cuda:sm_90a"}) {
    const GpuCosts costs = getGpuCosts(describe(target));
    EXPECT_EQ(costs.measuredOn, "NVIDIA H200");
    EXPECT_EQ(costs.tiles[0].slowness, 1.0);
    EXPECT_EQ(costs.tiles[1].slowness, 0.88);
    EXPECT_EQ(costs.tiles.back().slowness, 0.84);
    EXPECT_EQ(costs.exchange, 250);
    auto parsed = parseTarget(target, &context);
    ASSERT_TRUE(bool(parsed));
    EXPECT_EQ(parsed->getMeasuredMachine(), "NVIDIA H200");
  }
}

TEST_F(MachineTest, costsOfOtherChipsAreEstimatedFromWhatTheyHave) {
  const GpuCosts measured = getGpuCosts(describe("cuda:sm_90"));
  // Units of a warp do as much there, so that tiles cost the same.
  const GpuCosts same = getGpuCosts(describe("cuda:sm_80"));
  EXPECT_EQ(same.measuredOn, "");
  ASSERT_EQ(same.tiles.size(), measured.tiles.size());
  for (auto [one, other] : llvm::zip_equal(same.tiles, measured.tiles))
    EXPECT_EQ(one.slowness, other.slowness);
  // With slower units, what is copied matters less: small tiles are less slow,
  // and large ones gain less.
  const GpuCosts slower = getGpuCosts(describe("cuda:sm_89"));
  EXPECT_EQ(slower.measuredOn, "");
  EXPECT_EQ(slower.tiles[0].slowness, 1.0);
  for (auto [one, other] : llvm::zip_equal(slower.tiles, measured.tiles)) {
    const MmaTile &tile = one.tile;
    if (tile.unit == MatrixUnit::Wgmma)
      continue;
    const double bytes =
        double(tile.rows + tile.lines) / (tile.rows * tile.lines);
    if (bytes < 2.0 / 128)
      EXPECT_GT(one.slowness, other.slowness);
    else if (bytes > 2.0 / 128)
      EXPECT_LT(one.slowness, other.slowness);
  }
  for (const char *target : {"vulkan", "cpu:haswell", "reference"}) {
    auto parsed = parseTarget(target, &context);
    ASSERT_TRUE(bool(parsed));
    EXPECT_EQ(parsed->getMeasuredMachine(), "") << target;
  }
  auto xeon = parseTarget("cpu:emeraldrapids", &context);
  ASSERT_TRUE(bool(xeon));
  EXPECT_EQ(xeon->getMeasuredMachine(), "Xeon (Emerald Rapids)");
}

// Facts of machines stand in lib/Target, once.
TEST(MachineSourcesTest, conversionsAndTransformsNameNoTarget) {
  const std::regex named("(Cpu|Cuda|Reference|Vulkan)TargetAttr|"
                         "\"(cpu|cuda|reference|vulkan)\"");
  size_t files = 0;
  for (const char *folder : {"lib/Conversion", "lib/Transforms",
                             "include/kf/Conversion", "include/kf/Transforms"})
    for (const fs::directory_entry &entry :
         fs::recursive_directory_iterator(fs::path(KF_SOURCE_DIR) / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h")
        continue;
      ++files;
      std::ifstream stream(entry.path());
      int64_t number = 0;
      for (std::string line; std::getline(stream, line);) {
        ++number;
        EXPECT_FALSE(std::regex_search(line, named))
            << entry.path() << ":" << number << ": " << line
            << "\nask getMachine(), or a method of TargetAttrInterface";
      }
    }
  EXPECT_GT(files, 100u);
}

} // namespace
