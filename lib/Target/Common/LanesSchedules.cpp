//===- LanesSchedules.cpp - Schedules of products by threads --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The policy of `#kf.lanes`: products of few rows where a GPU has no matrix
// units that code is written for.
//
//===----------------------------------------------------------------------===//

#include "StreamSchedules.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuSchedules.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Warps of a workgroup, and vectors of plain elements that a thread has on
/// their way: on an H200, 8 take a tenth less time than 4.
constexpr int64_t mostWarps = 8, vectorsAhead = 4, mostVectorsAhead = 8;
/// Workgroup memory that leaves room for other workgroups.
constexpr int64_t lanesMemory = 48 * 1024;
/// Workgroups of a multiprocessor that warps with more row blocks leave, and
/// that rounds leave: as many as its registers are enough for, on an H200.
constexpr int64_t groupsOfMultiprocessor = 4, groupsOfRounds = 2;
/// The most rows of a workgroup. Code grows with them, and so does what drivers
/// take to compile it; several workgroups find the weight in a cache.
constexpr int64_t mostRows = 4;
/// What staging x takes, as a share of what a row block does, and the most
/// rounds.
constexpr double staging = 0.5;
constexpr int64_t mostRounds = 64;

/// How codes of a weight with these elements become floats.
LaneCodes codesOf(Type element, const MachineDescription &machine) {
  auto quant = dyn_cast<QuantType>(element);
  return quant && machine.hasHalves && !getStorage(quant.getFormat()).table
             ? LaneCodes::Halves
             : LaneCodes::Words;
}

class LanesPolicy {
public:
  LanesPolicy(KernelOp kernel, MatmulOp op, const MachineDescription &machine,
              int64_t rows, int64_t rowGroups)
      : kernel(kernel), machine(machine), rows(rows), rowGroups(rowGroups),
        budget(std::min(machine.memory, lanesMemory)) {
    auto w = cast<RankedTensorType>(op.getW().getType());
    tile = *getFragmentTile(w.getElementType());
    ofBlock = ::kf::FragmentTile::rows / (op.getGlu() ? 2 : 1);
    blocks = llvm::divideCeil(
        cast<RankedTensorType>(op.getType()).getDimSize(1), ofBlock);
    tilesOfRow = tile.tilesOf(w.getShape().back());
    const int64_t least =
        std::max<int64_t>(LanesShape::unitColumns / tile.columns, 1);
    tiles = isa<QuantType>(w.getElementType()) ? 1
            : machine.hasHalves                ? mostVectorsAhead
                                               : vectorsAhead;
    while (tiles > least && tiles > tilesOfRow)
      tiles /= 2;
    stepColumns = tiles * tile.columns;
    if (auto quant = dyn_cast<QuantType>(w.getElementType())) {
      const ::kf::BlockFormat &format = getStorage(quant.getFormat());
      stepColumns = getPartSpans(format) * ::kf::FragmentTile::span;
      codes = codesOf(quant, machine);
      if (codes == LaneCodes::Halves)
        stepColumns = tile.columns;
    }
    steps = llvm::divideCeil(w.getShape().back(), stepColumns);
  }

  LanesScheduleAttr select() {
    const int64_t most =
        std::min(mostWarps, machine.threads / LanesShape::lanes);
    for (int64_t shares = llvm::bit_floor<uint64_t>(most); shares > 0;
         shares /= 2)
      if (shares == 1 || shares < 2 * steps)
        if (LanesScheduleAttr schedule = select(shares, most / shares))
          return schedule;
    return {};
  }

private:
  /// Rows of x as whole as they fit, where `shares` warps divide K and up to
  /// `most` the row blocks.
  LanesScheduleAttr select(int64_t shares, int64_t most) {
    const int64_t rounds = llvm::divideCeil(steps, shares);
    const int64_t bytesOfX = 4 * rows * steps * stepColumns;
    const int64_t leastSlices = std::max<int64_t>(
        llvm::divideCeil(bytesOfX, std::max<int64_t>(budget, 1)), 1);
    for (int64_t blockWarps = llvm::bit_floor<uint64_t>(most); blockWarps > 0;
         blockWarps /= 2)
      for (int64_t width = mostWidth(); width > 0; --width) {
        const int64_t wide = blockWarps * width;
        const int64_t groups = llvm::divideCeil(blocks, wide);
        if (wide > 1 &&
            groups < groupsOfMultiprocessor * machine.multiprocessors)
          continue;
        for (int64_t slices = leastSlices; slices <= rounds; ++slices)
          if (auto schedule = get(shares, blockWarps, width, slices))
            return schedule;
      }
    return {};
  }

  /// Row blocks of a warp. With two, a thread has so many registers for whole
  /// tiles of codes that multiprocessors have half the warps.
  int64_t mostWidth() const { return codes == LaneCodes::Halves ? 1 : 2; }

  /// Null where it does not fit.
  LanesScheduleAttr get(int64_t shares, int64_t blockWarps, int64_t width,
                        int64_t slices) {
    // Of very wide weights, more columns, so that the grid stays in bounds.
    width = std::max<int64_t>(
        width, llvm::divideCeil(blocks, groupsPerDimension * blockWarps));
    const int64_t rounds = llvm::divideCeil(steps, shares);
    const int64_t round = shares * stepColumns;
    const int64_t times =
        roundsOf(llvm::divideCeil(blocks, blockWarps * width));
    auto schedule = LanesScheduleAttr::get(
        kernel.getContext(), {rows, times * blockWarps * width * ofBlock},
        shares * blockWarps, tiles, blockWarps,
        slices == 1 ? 0 : llvm::divideCeil(rounds, slices) * round, times,
        codes);
    auto shape = getKernelShape(kernel, schedule, nullptr);
    return succeeded(shape) && shape->workgroupBytes <= budget
               ? schedule
               : LanesScheduleAttr();
  }

  /// In how many rounds a workgroup takes row blocks, of which there would be
  /// `groups` workgroups in one, for each of `rowGroups` groups of rows: so
  /// that multiprocessors are done at the same time, with little staging.
  /// Devices without f16 are taken for CPUs, whose drivers keep in memory what
  /// is there at a barrier in a loop.
  int64_t roundsOf(int64_t groups) {
    if (!machine.hasHalves)
      return 1;
    const int64_t units = machine.multiprocessors;
    int64_t best = 1;
    double least = 0;
    for (int64_t times = 1; times <= mostRounds; ++times) {
      const int64_t each =
          llvm::divideCeil(llvm::divideCeil(groups, times) * rowGroups, units);
      if (times > 1 && each < groupsOfRounds)
        break;
      const double time =
          static_cast<double>(each) * (static_cast<double>(times) + staging);
      if (times == 1 || time < least) {
        best = times;
        least = time;
      }
    }
    return best;
  }

  KernelOp kernel;
  const MachineDescription &machine;
  LaneCodes codes = LaneCodes::Words;
  int64_t rows, rowGroups, budget;
  ::kf::FragmentTile tile;    // of the weight
  int64_t ofBlock, blocks;    // columns of a row block, row blocks
  int64_t tilesOfRow, tiles;  // of K, of a step
  int64_t stepColumns, steps; // of all warps
};

} // namespace

LanesScheduleAttr
mlir::kf::selectLanesSchedule(KernelOp kernel, MatmulOp op,
                              const MachineDescription &machine,
                              int64_t tokens) {
  auto type = cast<RankedTensorType>(op.getType());
  const int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  if (machine.has(MatrixUnit::MmaSync) || !hasFragments(op.getW().getType()) ||
      rows > kGpuFewRows || op.getScales())
    return {};
  const int64_t groups = std::max<int64_t>(llvm::divideCeil(rows, mostRows), 1);
  const int64_t ofGroup = std::max<int64_t>(llvm::divideCeil(rows, groups), 1);
  return LanesPolicy(kernel, op, machine, ofGroup, groups).select();
}
