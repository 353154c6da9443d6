//===- CoopSchedules.cpp - Products on cooperative matrices ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CoopSchedules.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuSchedules.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Tiles on cooperative matrices, and the time of a product of each, as a
/// factor that no other device than an H200 was measured for. Those of the
/// first three are by their kernels, where the first is 1: of bf16 (4096 x 4096
/// x 4096) 262, 253 and 163 TFLOP/s, with one workgroup on a multiprocessor
/// whatever there is room for. Those of the others are by a prototype, where
/// one of 128 x 128 is 1 (260 TFLOP/s of f16; 142 and 130 for the next two):
/// comparable with one another, and with the first three by guess.
struct CoopTile {
  int64_t rows, lines, rowWarps, lineWarps;
  double slowness;
};
constexpr CoopTile coopTiles[] = {{128, 256, 2, 4, 1},  {256, 128, 4, 2, 1.04},
                                  {64, 128, 2, 2, 1.6}, {64, 64, 2, 2, 1.8},
                                  {32, 128, 1, 4, 2},   {32, 64, 1, 2, 2.4}};

/// Subgroups that divide K for few rows, of codes, which each takes longer to
/// take apart, and of others, and lines of the weight that each has: what was
/// fastest for llama-3-8b in q4_k and bf16 on an H200.
constexpr int64_t codeShares = 16, coopShares = 8, shareLines = 32;
/// The same of more rows, of codes in tiles of 32 rows: wide tiles, of which a
/// multiprocessor has several at once, have few.
constexpr int64_t tileRows = 32, wideLines = 64, wideShares = 4;

} // namespace

MmaScheduleAttr mlir::kf::selectCoopSchedule(KernelOp kernel, MatmulOp op,
                                             const MachineDescription &machine,
                                             int64_t tokens) {
  auto type = cast<RankedTensorType>(op.getType());
  const int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  if (rows <= kGpuFewRows)
    return {};
  const int64_t groups = op.getGlu() ? 2 : 1;
  MmaScheduleAttr best;
  double least = 0;
  for (const CoopTile &tile : coopTiles) {
    const int64_t columns = tile.lines / groups;
    const MatrixUnit unit = op.getX().getType().getElementType().isBF16()
                                ? MatrixUnit::CoopBF16
                                : MatrixUnit::CoopF16;
    auto schedule =
        MmaScheduleAttr::get(kernel.getContext(), {tile.rows, columns},
                             {tile.rowWarps, tile.lineWarps}, CoopShape::step,
                             /*stages=*/2, unit, /*parts=*/1, /*shares=*/1);
    if (failed(verifyGpuSchedule(kernel, schedule, machine, nullptr)))
      continue;
    const int64_t tiles = llvm::divideCeil(rows, tile.rows) *
                          llvm::divideCeil(type.getDimSize(1), columns);
    const auto rounds =
        static_cast<double>(llvm::divideCeil(tiles, machine.multiprocessors));
    const double time =
        rounds * static_cast<double>(tile.rows * tile.lines) * tile.slowness;
    if (!best || time < least) {
      best = schedule;
      least = time;
    }
  }
  return best;
}

MmaScheduleAttr
mlir::kf::selectFewCoopSchedule(KernelOp kernel, MatmulOp op,
                                const MachineDescription &machine,
                                int64_t tokens) {
  auto type = cast<RankedTensorType>(op.getType());
  const int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  if (rows <= kGpuThreadRows || rows > mostRowsOfShares)
    return {};
  const int64_t groups = op.getGlu() ? 2 : 1;
  const int64_t extent = op.getX().getType().getShape().back();
  const bool hasCodes =
      isa<QuantType, Float8E4M3FNType>(op.getW().getType().getElementType());
  const MatrixUnit unit = op.getX().getType().getElementType().isBF16()
                              ? MatrixUnit::CoopBF16
                              : MatrixUnit::CoopF16;
  const int64_t unitRows = getUnitShape(unit).rows;
  const bool areFew = rows <= kGpuFewRows;
  // Rows of others than codes are read once with the lines.
  const int64_t height = areFew                         ? unitRows
                         : hasCodes || rows <= tileRows ? tileRows
                                                        : mostRowsOfShares;
  // Those of which the subgroup's threads have one tile each.
  const int64_t least =
      std::max(unitRows, CoopShape::blockLines * machine.subgroupThreads / 32);
  // Tiles of the first rows are counted alone: what was measured has half of
  // the lines where second ones would do.
  int64_t lines = hasCodes && !areFew ? wideLines : shareLines;
  while (lines > least &&
         static_cast<int64_t>(llvm::divideCeil(
             type.getDimSize(1), lines / groups)) < machine.multiprocessors)
    lines /= 2;
  const int64_t most = lines == wideLines   ? wideShares
                       : hasCodes && areFew ? codeShares
                                            : coopShares;
  // More rows without shares are for tiles of several subgroups.
  for (int64_t shares = most; shares > (areFew ? 0 : 1); shares /= 2) {
    auto schedule = MmaScheduleAttr::get(
        kernel.getContext(), {height, lines / groups}, {1, 1}, CoopShape::step,
        /*stages=*/2, unit, /*parts=*/1, shares);
    if (failed(verifyGpuSchedule(kernel, schedule, machine, nullptr)))
      continue;
    auto shape = getKernelShape(kernel, schedule, nullptr);
    if (shares == 1 || 2 * shares * shape->coop->roundColumns <= extent)
      return schedule;
  }
  return {};
}
