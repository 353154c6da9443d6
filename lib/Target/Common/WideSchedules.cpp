//===- WideSchedules.cpp - Products of f32 on matrix units ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tile takes f32 as two numbers of bf16. Many such products have a long
// side and a short one, as adapters of low rank have: what takes time is
// reading the long side once, so that tiles are as narrow as the short one, and
// K is divided until there is enough on its way.
//
//===----------------------------------------------------------------------===//

#include "WideSchedules.h"

#include "kf/Conversion/KernelLoops.h"
#include "kf/Conversion/KernelShape.h"
#include "kf/Conversion/Occupancy.h"
#include "kf/Target/Common/GpuCosts.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

struct WideTile {
  int64_t rows, lines, rowWarps, lineWarps;
};
constexpr WideTile tiles[] = {
    {128, 128, 2, 4}, {128, 64, 4, 2}, {64, 128, 2, 4}, {64, 64, 2, 2},
    {128, 32, 4, 1},  {64, 32, 4, 1},  {32, 128, 1, 4}, {32, 64, 1, 4},
    {128, 16, 4, 1},  {64, 16, 4, 1},  {16, 128, 1, 4}, {16, 64, 1, 4},
    {8, 128, 1, 4},   {8, 64, 1, 4}};

// On an NVIDIA H200, by 8192 rows of 4096 columns and ranks of 16 to 256; what
// these say is within a third of what was measured there.

/// Bytes that a multiprocessor has in a cycle at most, and of memory when all
/// ask for as much, where they are copied without registers. Factors of batches
/// come through these, for which nothing was measured.
constexpr double bytesPerCycle = 40, memoryBytesPerCycle = 18;
/// Cycles until what is asked for is there, those of a workgroup's begin and
/// end, and those in which a cluster's workgroups read one another's sums.
constexpr double latency = 1200, begin = 3000, exchange = 2000;
/// Instructions for an element that a lane takes apart; how many all warps of a
/// multiprocessor have in a cycle, and cycles of one of a warp by itself.
constexpr double instructions = 7, issues = 4, ofWarp = 4;
/// How much of what takes less time than the most is not hidden behind it.
constexpr double alone = 0.2;
/// Registers of a thread beside its sums and what is multiplied, now and next.
constexpr int64_t otherRegisters = 64;

class WidePolicy {
public:
  WidePolicy(KernelOp kernel, const MachineDescription &machine,
             const WideProduct &product)
      : kernel(kernel), machine(machine), product(product) {}

  SmallVector<MmaScheduleAttr> list() {
    SmallVector<MmaScheduleAttr> all;
    const int64_t most = product.batches ? 1 : machine.clusterWorkgroups;
    for (const WideTile &tile : tiles)
      for (int64_t step : {32, 16})
        for (int64_t stages : {4, 3, 2})
          for (int64_t parts = 1; parts <= most; parts *= 2) {
            MmaScheduleAttr schedule = getSchedule(tile, step, stages, parts);
            if (succeeded(
                    verifyGpuSchedule(kernel, schedule, machine, nullptr)))
              all.push_back(schedule);
          }
    return all;
  }

  MmaScheduleAttr select() {
    MmaScheduleAttr best;
    double least = 0;
    for (MmaScheduleAttr schedule : list()) {
      const std::optional<double> time = timeOf(schedule);
      if (time && (!best || *time < least)) {
        best = schedule;
        least = *time;
      }
    }
    return best;
  }

private:
  MmaScheduleAttr getSchedule(const WideTile &tile, int64_t step,
                              int64_t stages, int64_t parts) {
    SmallVector<int64_t> workgroup = {tile.rows, tile.lines};
    if (product.batches)
      workgroup.insert(workgroup.begin(), 1);
    return MmaScheduleAttr::get(kernel.getContext(), workgroup,
                                {tile.rowWarps, tile.lineWarps}, step, stages,
                                MatrixUnit::MmaSync, parts, /*shares=*/1);
  }

  /// Workgroups of `shape` that a multiprocessor has at once.
  int64_t countAtOnce(const KernelShape &shape) {
    const MmaShape &mma = *shape.mma;
    const int64_t words = 8 * mma.lineTiles() + 4 * mma.rowTiles();
    const int64_t registers = std::min(
        machine.registersOfThread, otherRegisters + mma.sums() + 5 * words / 2);
    return std::max<int64_t>(
        1, std::min(machine.ofEach.memory /
                        (shape.workgroupBytes + kReservedWorkgroupBytes),
                    machine.ofEach.registers / (registers * mma.threads())));
  }

  /// Cycles of a multiprocessor; nothing where a cluster would wait for others
  /// to end.
  std::optional<double> timeOf(MmaScheduleAttr schedule) {
    auto shape = getKernelShape(kernel, schedule, nullptr);
    assert(succeeded(shape) && "the schedule has been verified");
    const MmaShape &mma = *shape->mma;
    const int64_t all = std::max<int64_t>(product.batches, 1) *
                        llvm::divideCeil(product.rows, mma.rows) *
                        llvm::divideCeil(product.columns, shape->columns) *
                        mma.parts;
    const int64_t atOnce = countAtOnce(*shape);
    // Not all multiprocessors can be in a cluster of more than two.
    const int64_t fitting =
        atOnce > 1
            ? atOnce * machine.multiprocessors
            : mma.parts *
                  getGpuCosts(machine).countClustersAtOnce(machine, mma.parts);
    if (mma.parts > 1 && all > fitting)
      return std::nullopt;
    const int64_t ofEach = llvm::divideCeil(all, machine.multiprocessors);
    const auto count = static_cast<double>(ofEach);
    const auto together = static_cast<double>(std::min(atOnce, ofEach));
    const auto columns = static_cast<double>(mma.columns());
    const auto rows = static_cast<double>(std::min(mma.rows, product.rows)),
               lines = static_cast<double>(
                   std::min(mma.lines, shape->groups * product.columns));
    const double copied = 4 * (rows + lines) * columns;
    // Results are as many bytes, which some are added to. Nothing is copied
    // meanwhile by a workgroup alone.
    const double stored = (together > 1 ? 2 : 4) * 4 * rows * lines /
                          static_cast<double>(shape->groups * mma.parts);
    const double onTheWay =
        together * static_cast<double>((mma.stages - 1) * mma.stageBytes());
    const double copying =
        count * (copied / std::min(bytesPerCycle, onTheWay / latency) +
                 stored / memoryBytesPerCycle);
    const auto tile = static_cast<double>(mma.rows * mma.lines);
    const double multiplying =
        count * WideFactors::products * tile * columns /
        static_cast<double>(machine.productsPerCycle(MatrixUnit::MmaSync));
    const auto apart = static_cast<double>(mma.rows * mma.lineWarps +
                                           mma.lines * mma.rowWarps);
    const double warps =
        together * static_cast<double>(mma.threads() / MmaShape::warp);
    const double splitting = count * apart * columns * instructions /
                             (MmaShape::warp * issues) *
                             std::max(1.0, issues * ofWarp / warps);
    // Some of what could be done at the same time is not.
    const double most = std::max({copying, multiplying, splitting});
    const double rest = copying + multiplying + splitting - most;
    return most + alone * rest + count / together * begin +
           (mma.parts > 1 ? exchange : 0);
  }

  KernelOp kernel;
  const MachineDescription &machine;
  const WideProduct &product;
};

} // namespace

MmaScheduleAttr
mlir::kf::selectWideSchedule(KernelOp kernel, const WideProduct &product,
                             const MachineDescription &machine) {
  return WidePolicy(kernel, machine, product).select();
}

SmallVector<MmaScheduleAttr>
mlir::kf::getWideSchedules(KernelOp kernel, const WideProduct &product,
                           const MachineDescription &machine) {
  return WidePolicy(kernel, machine, product).list();
}
