//===- GpuCostModelTest.cpp - What predictions for GPUs must hold to ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There are no tables of measurements as for CPUs, so that what is tested is
// what no GPU can escape: nothing is faster than memory or the units that
// multiply, and more of either, or less to do, does not take longer. A tuner
// that measures what is ranked first would otherwise spend its time on
// schedules whose costs the formulas leave out.
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Registration.h"
#include "runtime/measure/MachineRates.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/DebugStringHelper.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::kf;

namespace {

/// An H200's numbers, rounded.
constexpr double kRead = 4.0e12, kFlops = 6.0e13, kMmaFlops = 1.0e15;
const std::string kHopper = "#kf.cuda_target<chip = \"sm_90a\", "
                            "multiprocessors = 132, memory = 232448>";

class GpuCostModelTest : public testing::Test {
protected:
  GpuCostModelTest() : context(makeRegistry(), kSingleThread) {
    machine.readBytesPerSecond = kRead;
    machine.f32FlopsPerSecond = kFlops;
  }

  /// The kernel of `text`, for `target`; null after a failure.
  KernelOp parse(const std::string &text, const std::string &target = kHopper) {
    modules.push_back(mlir::parseSourceString<mlir::ModuleOp>(
        "module attributes {kf.target = " + target + "} {" + text + "}",
        mlir::ParserConfig(&context)));
    if (!modules.back()) {
      ADD_FAILURE() << text;
      return {};
    }
    return *modules.back()->getOps<KernelOp>().begin();
  }

  /// x of `rows` rows, times a weight of `columns` x `extent` elements.
  KernelOp parseProduct(int64_t rows, int64_t columns, int64_t extent,
                        const std::string &x, const std::string &weight,
                        const std::string &target = kHopper) {
    auto tensor = [](int64_t first, int64_t second, const std::string &type) {
      return "tensor<" + std::to_string(first) + "x" + std::to_string(second) +
             "x" + type + ">";
    };
    const std::string xType = tensor(rows, extent, x),
                      wType = tensor(columns, extent, weight),
                      type = tensor(rows, columns, "f32");
    return parse("kf.kernel @product(%x: " + xType + ", %w: " + wType +
                     ") -> " + type + " { %0 = kf.matmul %x, %w" +
                     (x == "f32" ? "" : " wide") + " : " + xType + ", " +
                     wType + " kf.yield %0 : " + type + " }",
                 target);
  }

  /// One token's attention to pages of `positions` positions.
  KernelOp parseAttention(int64_t positions) {
    const std::string cache = "!kf.kv_cache<layers = 1, kv_heads = 8, "
                              "head_dim = 128, type = f16, page = 64>";
    const std::string table =
        "tensor<1x" + std::to_string(positions / 64) + "xi32>";
    const std::string q = "tensor<1x32x128xf32>", ids = "tensor<1xi32>";
    return parse("kf.kernel @attention(%q: " + q + ", %c: " + cache +
                 ", %p: " + ids + ", %s: " + ids + ", %t: " + table + ") -> " +
                 q + " { %0 = kf.attention %q, %c, %p, %s, %t {layer = 0 : " +
                 "i64, scale = 0.125 : f32} : " + q + ", " + cache + ", " +
                 ids + ", " + table + " kf.yield %0 : " + q + " }");
  }

  double predict(KernelOp kernel, ScheduleAttrInterface schedule) {
    return getTarget(kernel).predictSeconds(kernel, schedule, 1, machine);
  }
  double predict(KernelOp kernel, const std::string &schedule) {
    auto parsed = mlir::dyn_cast_if_present<ScheduleAttrInterface>(
        mlir::parseAttribute(schedule, &context));
    EXPECT_TRUE(parsed) << schedule;
    const double seconds = parsed ? predict(kernel, parsed) : 0;
    EXPECT_GT(seconds, 0) << schedule << " does not fit the kernel";
    return seconds;
  }
  double predictDefault(KernelOp kernel) {
    auto chosen = getTarget(kernel).selectSchedule(kernel, 1);
    EXPECT_TRUE(chosen);
    return chosen ? predict(kernel, chosen) : 0;
  }

  /// Every candidate takes `least` seconds, and some of them not 20 times that.
  void expectBounded(KernelOp kernel, double least) {
    ASSERT_TRUE(kernel);
    auto candidates = getTarget(kernel).getScheduleCandidates(kernel, 1);
    ASSERT_FALSE(candidates.empty());
    double fastest = std::numeric_limits<double>::infinity();
    for (ScheduleAttrInterface candidate : candidates) {
      const double seconds = predict(kernel, candidate);
      EXPECT_TRUE(std::isfinite(seconds)) << mlir::debugString(candidate);
      EXPECT_GE(seconds, least) << mlir::debugString(candidate);
      fastest = std::min(fastest, seconds);
    }
    EXPECT_LT(fastest, 20 * least);
  }

  static constexpr auto kSingleThread = mlir::MLIRContext::Threading::DISABLED;
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  mlir::MLIRContext context;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  ::kf::MachineRates machine;
};

TEST_F(GpuCostModelTest, noProductOfFewRowsIsFasterThanItsWeightIsRead) {
  constexpr int64_t columns = 14336, extent = 4096;
  constexpr double elements = double(columns) * extent;
  expectBounded(parseProduct(1, columns, extent, "f32", "bf16, #kf.fragments"),
                2 * elements / kRead);
  expectBounded(
      parseProduct(1, columns, extent, "f32", "!kf.quant<q4_k>, #kf.fragments"),
      elements * 144 / 256 / kRead);
  // Rows that warps hold.
  expectBounded(
      parseProduct(16, columns, extent, "bf16", "bf16, #kf.fragments"),
      2 * elements / kRead);
  // Threads alone.
  expectBounded(parseProduct(1, columns, extent, "f32", "f32",
                             "#kf.vulkan_target<threads = 1024, "
                             "memory = 49152, subgroup = 32>"),
                4 * elements / kRead);
}

TEST_F(GpuCostModelTest, noProductOfManyRowsIsFasterThanItsUnits) {
  constexpr double flops = 2.0 * 2048 * 4096 * 4096;
  expectBounded(parseProduct(2048, 4096, 4096, "bf16", "bf16, #kf.fragments"),
                flops / kMmaFlops);
  expectBounded(parseProduct(2048, 4096, 4096, "f32", "f32",
                             "#kf.vulkan_target<threads = 1024, "
                             "memory = 49152, subgroup = 32>"),
                flops / kFlops);
}

TEST_F(GpuCostModelTest, noAttentionIsFasterThanItsKeysAreRead) {
  constexpr double positions = 131072;
  // Half of the pages, as no one knows how many a step has.
  expectBounded(parseAttention(131072),
                positions / 2 * 8 * 128 * 2 * 2 / kRead);
}

TEST_F(GpuCostModelTest, weightsOfFewerBytesAreFaster) {
  double before = std::numeric_limits<double>::infinity();
  for (const char *type : {"bf16", "!kf.quant<q8_0>", "!kf.quant<q4_0>"}) {
    KernelOp kernel = parseProduct(1, 14336, 4096, "f32",
                                   std::string(type) + ", #kf.fragments");
    ASSERT_TRUE(kernel);
    const double seconds = predictDefault(kernel);
    EXPECT_LT(seconds, before) << type;
    before = seconds;
  }
}

TEST_F(GpuCostModelTest, rowsInSlicesAreReadAgain) {
  // With x in parts, warps stage it once more for each of them.
  KernelOp kernel = parseProduct(1, 4096, 14336, "f32", "bf16, #kf.fragments");
  ASSERT_TRUE(kernel);
  const std::string whole = "#kf.stream<workgroup = [1, 16], warps = 8, "
                            "tiles = 2, stages = 4, unit = mma_sync, rows = "
                            "split, held = shared";
  EXPECT_LT(predict(kernel, whole + ">"),
            predict(kernel, whole + ", reduction = 256>"));
}

TEST_F(GpuCostModelTest, rowBlocksInRoundsAreMultipliedToo) {
  KernelOp kernel =
      parseProduct(2, 14336, 4096, "f32", "!kf.quant<q4_k>, #kf.fragments",
                   "#kf.vulkan_target<threads = 1024, memory = 49152, subgroup "
                   "= 32, types = [f16, i16], multiprocessors = 32>");
  ASSERT_TRUE(kernel);
  // Four row blocks of a warp together, or one after the other.
  const std::string lanes = "#kf.lanes<workgroup = [2, 64], warps = 8, tiles = "
                            "1, codes = halves, rounds = ";
  const double together = predict(kernel, lanes + "1>");
  EXPECT_GT(predict(kernel, lanes + "4>"), 0.8 * together);
  EXPECT_LT(predict(kernel, lanes + "4>"), 1.5 * together);
  // Each slice of x has exchanges of its own.
  EXPECT_GT(predict(kernel, lanes + "4, reduction = 2048>"),
            predict(kernel, lanes + "4>"));
  // What the policy takes is about as fast.
  auto candidates = getTarget(kernel).getScheduleCandidates(kernel, 1);
  ASSERT_FALSE(candidates.empty());
  EXPECT_LT(predict(kernel, candidates.front()),
            1.5 * predict(kernel, lanes + "4>"));
}

TEST_F(GpuCostModelTest, moreCopiesOnTheirWayHideMemory) {
  KernelOp few = parseProduct(1, 4096, 4096, "f32", "bf16, #kf.fragments");
  ASSERT_TRUE(few);
  const std::string stream =
      "#kf.stream<workgroup = [1, 32], warps = 8, tiles = 2, unit = mma_sync, "
      "rows = split, held = shared, stages = ";
  EXPECT_LT(predict(few, stream + "4>"), predict(few, stream + "2>"));
  KernelOp many = parseProduct(512, 4096, 4096, "f16", "f16, #kf.fragments");
  ASSERT_TRUE(many);
  const std::string mma = "#kf.mma<workgroup = [64, 128], warps = [1, 4], "
                          "reduction = 32, unit = mma_sync, stages = ";
  EXPECT_LT(predict(many, mma + "4>"), predict(many, mma + "2>"));
}

TEST_F(GpuCostModelTest, fewWorkgroupsLeaveMultiprocessorsIdle) {
  KernelOp kernel = parseProduct(256, 4096, 4096, "f16", "f16, #kf.fragments");
  ASSERT_TRUE(kernel);
  // 32 workgroups for 132 multiprocessors, and 128 of a quarter.
  EXPECT_GT(predict(kernel, "#kf.mma<workgroup = [256, 128], warps = [4, 2], "
                            "reduction = 64, stages = 3, unit = mma_sync>"),
            1.5 * predict(kernel, "#kf.mma<workgroup = [128, 64], warps = [2, "
                                  "2], reduction = 32, stages = 4, unit = "
                                  "mma_sync>"));
  // Eight KV heads are eight workgroups, and clusters of eight for each 64.
  KernelOp attention = parseAttention(131072);
  ASSERT_TRUE(attention);
  const std::string whole =
      "#kf.flash_mma<workgroup = [1, 4], keys = 16, threads = [32, 1, 8], unit "
      "= mma_sync, rows = split, held = registers";
  EXPECT_GT(predict(attention, whole + ">"),
            4 * predict(attention, whole + ", parts = 8>"));
}

TEST_F(GpuCostModelTest, warpgroupsMultiplyFaster) {
  const std::string schedule = "#kf.mma<workgroup = [128, 128], warps = [1, "
                               "8], reduction = 64, stages = 4, unit = ";
  KernelOp kernel =
      parseProduct(2048, 4096, 4096, "bf16", "bf16, #kf.fragments");
  ASSERT_TRUE(kernel);
  EXPECT_LT(1.2 * predict(kernel, schedule + "wgmma>"),
            predict(kernel, schedule + "mma_sync>"));
}

TEST_F(GpuCostModelTest, slowerMachinesTakeLonger) {
  const KernelOp kernels[] = {
      parseProduct(1, 14336, 4096, "f32", "!kf.quant<q4_k>, #kf.fragments"),
      parseProduct(16, 14336, 4096, "bf16", "bf16, #kf.fragments"),
      parseProduct(2048, 4096, 4096, "bf16", "bf16, #kf.fragments"),
      parseAttention(131072),
      parse("kf.kernel @rows(%x: tensor<4096x4096xf32>) -> "
            "tensor<4096x4096xf32> { %0 = kf.softmax %x : "
            "tensor<4096x4096xf32> kf.yield %0 : tensor<4096x4096xf32> }")};
  for (KernelOp kernel : kernels) {
    ASSERT_TRUE(kernel);
    machine.readBytesPerSecond = kRead;
    machine.f32FlopsPerSecond = kFlops;
    const double seconds = predictDefault(kernel);
    machine.readBytesPerSecond = kRead / 4;
    machine.f32FlopsPerSecond = kFlops / 4;
    EXPECT_GT(predictDefault(kernel), 2 * seconds)
        << mlir::debugString(*kernel);
  }
}

TEST_F(GpuCostModelTest, defaultsAreAmongTheBest) {
  // What the policy takes is not measured, if the model knows much better ones.
  for (KernelOp kernel :
       {parseProduct(1, 14336, 4096, "f32", "!kf.quant<q4_k>, #kf.fragments"),
        parseProduct(1, 4096, 14336, "f32", "bf16, #kf.fragments"),
        parseProduct(16, 14336, 4096, "bf16", "bf16, #kf.fragments"),
        parseProduct(2048, 4096, 4096, "bf16", "bf16, #kf.fragments"),
        parseAttention(131072)}) {
    ASSERT_TRUE(kernel);
    auto candidates = getTarget(kernel).getScheduleCandidates(kernel, 1);
    ASSERT_FALSE(candidates.empty());
    const double first = predict(kernel, candidates.front());
    for (ScheduleAttrInterface candidate : candidates)
      EXPECT_LT(first, 1.5 * predict(kernel, candidate))
          << mlir::debugString(candidate) << " for "
          << mlir::debugString(*kernel);
  }
}

} // namespace
