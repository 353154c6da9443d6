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
/// their way.
constexpr int64_t mostWarps = 8, vectorsAhead = 4;
/// Workgroup memory that leaves room for other workgroups.
constexpr int64_t lanesMemory = 48 * 1024;
/// Workgroups of a multiprocessor that warps with more row blocks leave.
constexpr int64_t groupsOfMultiprocessor = 4;
/// The most rows of a workgroup. Code grows with them, and so does what drivers
/// take to compile it; several workgroups find the weight in a cache.
constexpr int64_t mostRows = 4;

class LanesPolicy {
public:
  LanesPolicy(KernelOp kernel, MatmulOp op, const MachineDescription &machine,
              int64_t rows)
      : kernel(kernel), machine(machine), rows(rows),
        budget(std::min(machine.memory, lanesMemory)) {
    auto w = cast<RankedTensorType>(op.getW().getType());
    tile = *getFragmentTile(w.getElementType());
    ofBlock = ::kf::FragmentTile::rows / (op.getGlu() ? 2 : 1);
    blocks = llvm::divideCeil(
        cast<RankedTensorType>(op.getType()).getDimSize(1), ofBlock);
    tilesOfRow = tile.tilesOf(w.getShape().back());
    const int64_t least =
        std::max<int64_t>(LanesShape::unitColumns / tile.columns, 1);
    tiles = isa<QuantType>(w.getElementType()) ? 1 : vectorsAhead;
    while (tiles > least && tiles > tilesOfRow)
      tiles /= 2;
    stepColumns = tiles * tile.columns;
    if (auto quant = dyn_cast<QuantType>(w.getElementType()))
      stepColumns = getPartSpans(getStorage(quant.getFormat())) *
                    ::kf::FragmentTile::span;
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
      for (int64_t width : {2, 1}) {
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

  /// Null where it does not fit.
  LanesScheduleAttr get(int64_t shares, int64_t blockWarps, int64_t width,
                        int64_t slices) {
    // Of very wide weights, more columns, so that the grid stays in bounds.
    width = std::max<int64_t>(
        width, llvm::divideCeil(blocks, groupsPerDimension * blockWarps));
    const int64_t rounds = llvm::divideCeil(steps, shares);
    const int64_t round = shares * stepColumns;
    auto schedule = LanesScheduleAttr::get(
        kernel.getContext(), {rows, blockWarps * width * ofBlock},
        shares * blockWarps, tiles, blockWarps,
        slices == 1 ? 0 : llvm::divideCeil(rounds, slices) * round);
    auto shape = getKernelShape(kernel, schedule, nullptr);
    return succeeded(shape) && shape->workgroupBytes <= budget
               ? schedule
               : LanesScheduleAttr();
  }

  KernelOp kernel;
  const MachineDescription &machine;
  int64_t rows, budget;
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
  return LanesPolicy(kernel, op, machine, ofGroup).select();
}
