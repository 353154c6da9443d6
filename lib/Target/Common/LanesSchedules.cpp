//===- LanesSchedules.cpp - Schedules of products by threads --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The policy of `#kf.lanes`: products of few rows where a GPU has no matrix
// units that code is written for, and those of any number of rows that choose
// experts.
//
//===----------------------------------------------------------------------===//

#include "StreamSchedules.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuSchedules.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Warps of a workgroup, and vectors of plain elements that a thread has on
/// their way: on an H200, 8 take a tenth less time than 4.
constexpr int64_t mostWarps = 8, vectorsAhead = 4, mostVectorsAhead = 8;
/// Workgroup memory that leaves room for other workgroups.
constexpr int64_t lanesMemory = 48 * 1024;
/// Workgroups of a multiprocessor that warps with more row blocks leave: as
/// many as its registers are enough for, on an H200.
constexpr int64_t groupsOfMultiprocessor = 4;
/// The same of experts.
constexpr int64_t groupsOfExperts = 2;
/// Workgroups of a multiprocessor that rounds leave.
constexpr int64_t groupsOfRounds = 2;
/// The same of experts, for some have no rows.
constexpr int64_t expertGroupsOfRounds = 3;
/// The most rows of a workgroup. Code grows with them, and so does what drivers
/// take to compile it; several workgroups find the weight in a cache.
constexpr int64_t mostRows = 4;
/// What staging x takes, as a share of what a row block does, and the most
/// rounds.
constexpr double staging = 0.5;
constexpr int64_t mostRounds = 64;
/// Rows that each expert has where all have as many, from which on some go
/// together.
constexpr int64_t leastOfExpert = 4;
/// The most rounds of experts, whose sums take memory; and of one row and codes
/// of a table, whose steps are short beside what rounds exchange.
constexpr int64_t mostExpertRounds = 16, mostTableRounds = 2;
/// Warps that divide K of experts whose codes are those of a table.
constexpr int64_t tableShares = 2;

/// Rows of an expert at a time. Those that are not there are multiplied, too,
/// and to find rows takes time: of few for each expert, one that is alone is
/// faster, though a weight is read again, from a cache.
int64_t rowsOfExpert(ExpertMatmulOp op, int64_t tokens) {
  const int64_t places =
      tokens * cast<RankedTensorType>(op.getType()).getDimSize(1);
  return places < leastOfExpert * op.countExperts()
             ? 1
             : std::min<int64_t>(mostRows, llvm::bit_ceil<uint64_t>(tokens));
}

/// How codes of a weight with these elements become floats.
LaneCodes codesOf(Type element, const MachineDescription &machine) {
  auto quant = dyn_cast<QuantType>(element);
  return quant && machine.hasHalves && !getStorage(quant.getFormat()).table
             ? LaneCodes::Halves
             : LaneCodes::Words;
}

class LanesPolicy {
public:
  LanesPolicy(KernelOp kernel, ProductOpInterface op,
              const MachineDescription &machine, int64_t rows,
              int64_t rowGroups)
      : kernel(kernel), machine(machine), rows(rows), rowGroups(rowGroups),
        budget(std::min(machine.memory, lanesMemory)),
        isOfExperts(isa<ExpertMatmulOp>(op.getOperation())) {
    auto w = cast<RankedTensorType>(op.getW().getType());
    tile = *getFragmentTile(w.getElementType());
    ofBlock = ::kf::FragmentTile::rows / (op.getGlu() ? 2 : 1);
    blocks = llvm::divideCeil(
        cast<RankedTensorType>(op.getResult().getType()).getShape().back(),
        ofBlock);
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
      hasTable = format.table != nullptr;
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
    if (isOfExperts)
      return most > 0 ? selectExperts(most) : LanesScheduleAttr();
    for (int64_t shares = llvm::bit_floor<uint64_t>(most); shares > 0;
         shares /= 2)
      if (shares == 1 || shares < 2 * steps)
        if (LanesScheduleAttr schedule = select(shares, most / shares))
          return schedule;
    return {};
  }

private:
  /// Weights of experts have few columns and little of K: as many warps divide
  /// it as leave few of them without a step, the others row blocks. Of more
  /// than one row, of which there are workgroups enough, as few as can: sums
  /// are added up for fewer then. Of codes of a table, whose steps are short,
  /// two; and more where there are too few row blocks for the others.
  LanesScheduleAttr selectExperts(int64_t most) {
    auto counts = llvm::to_vector(llvm::seq_inclusive<int64_t>(1, most));
    if (hasTable) {
      const int64_t mostShares =
          std::min(most, std::max<int64_t>(steps, 1)); // each has a step
      int64_t shares = std::min(tableShares, mostShares);
      while (shares < mostShares &&
             int64_t(llvm::divideCeil(blocks * shares, most)) * rowGroups <
                 groupsOfExperts * machine.multiprocessors)
        shares = std::min(2 * shares, mostShares);
      std::swap(counts.front(), counts[shares - 1]);
    }
    if (rows == 1 && !hasTable)
      llvm::stable_sort(counts, [&](int64_t one, int64_t other) {
        return costOfWarps(steps, one, most) < costOfWarps(steps, other, most);
      });
    for (int64_t shares : counts)
      if (LanesScheduleAttr schedule = select(shares, most / shares))
        return schedule;
    return {};
  }

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
        const int64_t groups =
            llvm::divideCeil(blocks, wide) * (isOfExperts ? rowGroups : 1);
        const int64_t least =
            isOfExperts ? groupsOfExperts : groupsOfMultiprocessor;
        if (wide > 1 && groups < least * machine.multiprocessors)
          continue;
        for (int64_t slices = leastSlices; slices <= rounds; ++slices)
          if (auto schedule = get(shares, blockWarps, width, slices))
            return schedule;
      }
    return {};
  }

  /// Row blocks of a warp. With two, a thread has so many registers for whole
  /// tiles of codes that multiprocessors have half the warps.
  int64_t mostWidth() const {
    return codes == LaneCodes::Halves || (isOfExperts && hasTable) ? 1 : 2;
  }

  /// Null where it does not fit.
  LanesScheduleAttr get(int64_t shares, int64_t blockWarps, int64_t width,
                        int64_t slices) {
    // Of very wide weights, more columns, so that the grid stays in bounds.
    width = std::max<int64_t>(
        width, llvm::divideCeil(blocks, groupsPerDimension * blockWarps));
    int64_t times = roundsOf(llvm::divideCeil(blocks, blockWarps * width));
    // Fewer rounds leave memory for more of K. Of experts, slices of K are
    // preferred to none: rows are found, and brought there, once for all
    // rounds.
    const bool isWanted = isOfExperts && times > 1;
    for (; isOfExperts && times > 1; times /= 2)
      if (auto schedule = get(shares, blockWarps, width, slices, times))
        return schedule;
    const bool isLast = slices == int64_t(llvm::divideCeil(steps, shares));
    return isWanted && !isLast ? LanesScheduleAttr()
                               : get(shares, blockWarps, width, slices, times);
  }

  /// The same in `times` rounds.
  LanesScheduleAttr get(int64_t shares, int64_t blockWarps, int64_t width,
                        int64_t slices, int64_t times) {
    const int64_t rounds = llvm::divideCeil(steps, shares);
    const int64_t round = shares * stepColumns;
    SmallVector<int64_t> workgroup = {rows,
                                      times * blockWarps * width * ofBlock};
    if (isOfExperts)
      workgroup.insert(workgroup.begin() + 1, 1);
    auto schedule = LanesScheduleAttr::get(
        kernel.getContext(), workgroup, shares * blockWarps, tiles, blockWarps,
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
    const int64_t leastEach =
        isOfExperts ? expertGroupsOfRounds : groupsOfRounds;
    const int64_t mostTimes = !isOfExperts            ? mostRounds
                              : hasTable && rows == 1 ? mostTableRounds
                                                      : mostExpertRounds;
    int64_t best = 1;
    double least = 0;
    for (int64_t times = 1; times <= mostTimes; ++times) {
      const int64_t each =
          llvm::divideCeil(llvm::divideCeil(groups, times) * rowGroups, units);
      if (times > 1 && each < leastEach)
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
  bool isOfExperts, hasTable = false;
  ::kf::FragmentTile tile;    // of the weight
  int64_t ofBlock, blocks;    // columns of a row block, row blocks
  int64_t tilesOfRow, tiles;  // of K, of a step
  int64_t stepColumns, steps; // of all warps
};

} // namespace

LanesScheduleAttr
mlir::kf::selectLanesSchedule(KernelOp kernel, ProductOpInterface op,
                              const MachineDescription &machine,
                              int64_t tokens) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  const int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  if (machine.has(MatrixUnit::MmaSync) || !hasFragments(op.getW().getType()) ||
      op.getScales())
    return {};
  if (auto experts = dyn_cast<ExpertMatmulOp>(op.getOperation())) {
    if (type.getDimSize(1) > groupsPerDimension)
      return {};
    // One that is alone needs no memory for numbers of experts.
    for (int64_t together = rowsOfExpert(experts, rows); together > 0;
         together /= 2) {
      const int64_t groups = llvm::divideCeil(rows, together);
      if (groups > groupsPerDimension)
        return {}; // fewer together are more
      if (LanesScheduleAttr schedule =
              LanesPolicy(kernel, op, machine, together,
                          groups * type.getDimSize(1))
                  .select())
        return schedule;
    }
    return {};
  }
  if (rows > kGpuFewRows)
    return {};
  const int64_t groups = std::max<int64_t>(llvm::divideCeil(rows, mostRows), 1);
  const int64_t ofGroup = std::max<int64_t>(llvm::divideCeil(rows, groups), 1);
  return LanesPolicy(kernel, op, machine, ofGroup, groups).select();
}
