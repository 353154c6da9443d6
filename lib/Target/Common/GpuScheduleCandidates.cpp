//===- GpuScheduleCandidates.cpp - Schedules to measure on GPUs -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes around those of GpuSchedules.cpp. What a device cannot run is left out
// by the check that schedules of people meet.
//
//===----------------------------------------------------------------------===//

#include "CoopSchedules.h"
#include "StreamSchedules.h"
#include "WideSchedules.h"

#include "kf/Conversion/KernelLoops.h"
#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuSchedules.h"

#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Rows up to which threads may share the sums of a product.
constexpr int64_t mostRowsOfSharedSums = 32;
/// Products of a thread in one unrolled step.
constexpr int64_t mostProducts = 64;
/// Tokens of a workgroup of attention, and on matrix units.
constexpr int64_t mostTokens = 16, mostMmaTokens = 128;
/// Workgroups along a dimension that every device allows.
constexpr int64_t mostGroups = 65535;

class Candidates {
public:
  Candidates(KernelOp kernel, const MachineDescription &machine, int64_t rows)
      : kernel(kernel), context(kernel.getContext()), machine(machine),
        tokens(rows) {}

  SmallVector<ScheduleAttrInterface> list() {
    ScheduleAttrInterface chosen = selectGpuSchedule(kernel, machine, tokens);
    if (!chosen || failed(verifyGpuSchedule(kernel, chosen, machine, [&] {
          return kernel.emitError();
        })))
      return {};
    schedules.insert(chosen);
    if (find<CacheAttentionInterface>()) {
      addFlash(chosen);
    } else if (auto matmul = find<MatmulOp>()) {
      columnsOfProduct = cast<RankedTensorType>(matmul.getType()).getDimSize(1);
      if (machine.has(MatrixUnit::MmaSync))
        addMma(matmul);
      if (auto mma = dyn_cast<MmaScheduleAttr>(chosen);
          mma && isCooperative(mma.getUnit()))
        addCoop(matmul, mma);
      if (auto stream = dyn_cast<StreamScheduleAttr>(chosen))
        addStream(stream);
      if (auto lanes = selectLanesSchedule(kernel, matmul, machine, tokens))
        addLanes(lanes);
      addShared(matmul);
      addStaged(matmul);
    } else if (auto stream = dyn_cast<StreamScheduleAttr>(chosen)) {
      addStream(stream);
    } else if (auto lanes = dyn_cast<LanesScheduleAttr>(chosen)) {
      addLanes(lanes); // of experts
    } else if (auto simt = dyn_cast<SimtScheduleAttr>(chosen)) {
      addRows(simt);
    }
    return schedules.takeVector();
  }

private:
  template <typename OpTy> OpTy find() {
    auto ops = kernel.getBody().getOps<OpTy>();
    return ops.empty() ? OpTy() : *ops.begin();
  }

  /// What does not verify is left out, and what divides a product's columns
  /// among more workgroups than there can be.
  void add(ScheduleAttrInterface schedule) {
    if (columnsOfProduct &&
        llvm::divideCeil(columnsOfProduct, schedule.getWorkgroup().back()) >
            mostGroups)
      return;
    if (succeeded(verifyGpuSchedule(kernel, schedule, machine, nullptr)))
      schedules.insert(schedule);
  }
  void addSimt(ArrayRef<int64_t> workgroup, ArrayRef<int64_t> threads,
               ArrayRef<int64_t> tile = {}, int64_t reduction = 0,
               int64_t unroll = 1, SumOwner sums = SumOwner::Own) {
    add(SimtScheduleAttr::get(context, workgroup, threads, tile, reduction,
                              unroll, sums));
  }

  int64_t rowsOf(RankedTensorType type) {
    return type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  }

  /// Threads along x share sums, those along y have columns of their own.
  void addShared(MatmulOp op) {
    int64_t rows = rowsOf(cast<RankedTensorType>(op.getType()));
    if (rows > mostRowsOfSharedSums)
      return;
    std::set<int64_t> heights;
    for (int64_t tiles : {1, 2, 4})
      heights.insert(llvm::divideCeil(rows, tiles));
    for (int64_t height : heights)
      for (int64_t x : {16, 32, 64, 128})
        for (int64_t y : {1, 2, 4, 8})
          for (int64_t ofThread : {1, 2, 4})
            for (int64_t unroll : {2, 4, 8})
              if (height * ofThread * unroll <= mostProducts)
                addSimt({height, y * ofThread}, {x, y, 1}, {height, ofThread},
                        0, unroll, SumOwner::Shared);
  }

  /// Threads have elements of a tile each, whose operands are staged.
  void addStaged(MatmulOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t rows = rowsOf(type), columns = type.getDimSize(1);
    if (rows <= 4)
      return;
    for (auto [x, y] : {std::pair{8, 8}, {16, 8}, {16, 16}, {32, 8}})
      for (int64_t height : {1, 2, 4, 8})
        for (int64_t width : {1, 2, 4, 8}) {
          // As many rows and columns more than there are would be padding.
          if (height * width > mostProducts ||
              y * height >= 2 * std::max<int64_t>(rows, 8) ||
              x * width >= 2 * std::max<int64_t>(columns, 8))
            continue;
          for (int64_t reduction : {8, 16, 32})
            addSimt({y * height, x * width}, {x, y, 1}, {height, width},
                    reduction);
        }
  }

  /// Warps have tiles on matrix units.
  void addMma(MatmulOp op) {
    int64_t rows = rowsOf(cast<RankedTensorType>(op.getType()));
    int64_t groups = op.getGlu() ? 2 : 1;
    if (!areForMatrixUnits(op, rows))
      return;
    if (WideFactors::are(op.getX().getType(), op.getW().getType())) {
      for (MmaScheduleAttr schedule : getWideSchedules(
               kernel, {rows, columnsOfProduct, /*batches=*/0}, machine))
        add(schedule);
      return;
    }
    if (machine.has(MatrixUnit::Wgmma))
      for (int64_t height : {32, 48, 64, 80, 96, 128, 192, 256})
        for (int64_t lines : {64, 128})
          for (int64_t stages : {3, 4, 5})
            if (height < 2 * rows)
              addParts(rows, {height, lines / groups},
                       {1, lines / MmaShape::unitLines}, 64, stages,
                       MatrixUnit::Wgmma);
    for (int64_t height : {32, 64, 128, 256})
      for (int64_t lines : {64, 128, 256}) {
        // As many rows more than there are would be padding.
        if (height >= 2 * std::max<int64_t>(rows, 32))
          continue;
        for (auto [y, x] : {std::pair{1, 4}, {2, 2}, {4, 1}, {2, 4}, {4, 2}})
          for (int64_t step : {32, 64})
            for (int64_t stages : {2, 3, 4})
              addParts(rows, {height, lines / groups}, {y, x}, step, stages,
                       MatrixUnit::MmaSync);
      }
  }

  /// Subgroups have tiles on cooperative matrices.
  void addCoop(MatmulOp op, MmaScheduleAttr first) {
    const int64_t rows = rowsOf(cast<RankedTensorType>(op.getType()));
    const int64_t groups = op.getGlu() ? 2 : 1;
    for (int64_t height : {32, 64, 128, 256})
      for (int64_t lines : {64, 128, 256}) {
        if (height >= 2 * std::max<int64_t>(rows, 32))
          continue;
        for (auto [y, x] :
             {std::pair{1, 2}, {1, 4}, {2, 1}, {2, 2}, {2, 4}, {4, 2}})
          add(MmaScheduleAttr::get(context, {height, lines / groups}, {y, x},
                                   first.getReduction(), first.getStages(),
                                   first.getUnit(), /*parts=*/1, /*shares=*/1));
      }
    if (rows > mostRowsOfShares)
      return;
    for (int64_t height : {16, 32, 64})
      for (int64_t lines : {16, 32, 64})
        for (int64_t shares : {1, 2, 4, 8, 16})
          if (height < 2 * std::max(rows, getUnitShape(first.getUnit()).rows))
            add(MmaScheduleAttr::get(context, {height, lines / groups}, {1, 1},
                                     first.getReduction(), first.getStages(),
                                     first.getUnit(), /*parts=*/1, shares));
  }

  /// Tiles whose K is divided where there are few of them, and whole ones.
  void addParts(int64_t rows, ArrayRef<int64_t> workgroup,
                ArrayRef<int64_t> warps, int64_t step, int64_t stages,
                MatrixUnit unit) {
    const int64_t tiles = llvm::divideCeil(rows, workgroup[0]) *
                          llvm::divideCeil(columnsOfProduct, workgroup[1]);
    for (int64_t parts = 1;
         parts <= std::max<int64_t>(machine.clusterWorkgroups, 1); parts *= 2)
      if (parts == 1 || tiles * parts <= 4 * machine.multiprocessors)
        add(MmaScheduleAttr::get(context, workgroup, warps, step, stages, unit,
                                 parts, /*shares=*/1));
  }

  /// Other numbers of row blocks, warps, tiles and stages.
  void addStream(StreamScheduleAttr first) {
    SmallVector<int64_t> workgroup(first.getWorkgroup());
    const int64_t columns = workgroup.back();
    auto op = find<ProductOpInterface>();
    const int64_t ofBlock = op.getGlu() ? 8 : 16;
    std::set<int64_t> widths;
    for (int64_t width : {columns / 2, columns, 2 * columns, 4 * columns})
      if (width >= ofBlock)
        widths.insert(llvm::alignTo(width, ofBlock));
    std::set<int64_t> heights = {workgroup[0]};
    const bool areRounded = first.getRows() == RowForm::Rounded;
    const int64_t mostRows =
        areRounded ? StreamShape::mostRoundedRows : StreamShape::mostRows;
    if (isa<ExpertMatmulOp>(op.getOperation())) // rows that go together
      for (int64_t height = 1; height <= std::min(tokens, mostRows);
           height *= 2)
        heights.insert(height);
    auto shape = getKernelShape(kernel, first, nullptr);
    if (first.getHeld() == OperandPlace::Registers && succeeded(shape))
      return addHeld(*shape->held, first, widths);
    for (int64_t height : heights)
      for (int64_t width : widths)
        for (int64_t warps : {4, 8, 12, 16})
          for (int64_t tiles : {1, 2, 4, 8})
            for (int64_t stages : {2, 3, 4, 6})
              for (int64_t reduction : {int64_t(0), first.getReduction()}) {
                workgroup.front() = height;
                workgroup.back() = width;
                add(getSharedStreamSchedule(op, workgroup, areRounded, warps,
                                            tiles, stages, reduction));
              }
  }

  /// Other numbers of row blocks, warps and tiles, with x whole or in the parts
  /// of the first; of experts, other numbers of rows, too.
  void addLanes(LanesScheduleAttr first) {
    SmallVector<int64_t> workgroup(first.getWorkgroup());
    auto op = find<ProductOpInterface>();
    const int64_t ofBlock = op.getGlu() ? 8 : 16;
    const int64_t mostRounds = machine.hasHalves ? 8 : 1;
    std::set<int64_t> heights = {workgroup[0]};
    if (isa<ExpertMatmulOp>(op.getOperation())) // rows that go together
      for (int64_t height : {1, 2, 4, 8})
        if (height <= tokens)
          heights.insert(height);
    for (int64_t height : heights)
      for (int64_t blocks : {1, 2, 4})
        for (int64_t warps : {2, 4, 8, 16})
          for (int64_t blockWarps : {1, 2, 4})
            for (int64_t tiles : {1, 2, 4, 8, 16})
              for (int64_t reduction : {int64_t(0), first.getReduction()})
                for (int64_t rounds = 1; rounds <= mostRounds; rounds *= 2)
                  if (warps % blockWarps == 0) {
                    workgroup.front() = height;
                    workgroup.back() = rounds * blocks * blockWarps * ofBlock;
                    add(LanesScheduleAttr::get(context, workgroup, warps, tiles,
                                               blockWarps, reduction, rounds,
                                               first.getCodes()));
                  }
  }

  /// Where warps hold rows: other parts of them, too, and clusters that divide
  /// K and have as many more columns.
  void addHeld(const HeldShape &held, StreamScheduleAttr first,
               const std::set<int64_t> &widths) {
    const int64_t rows = first.getWorkgroup()[0];
    SmallVector<int64_t> partsOfCluster = {1};
    if (machine.hasClusters())
      partsOfCluster.append({2, 4, machine.clusterWorkgroups});
    for (int64_t parts : partsOfCluster)
      for (int64_t width : widths) {
        const int64_t columns =
            llvm::alignTo(llvm::divideCeil(width * parts, first.getParts()),
                          held.blockColumns);
        for (int64_t warps : {7, 8, 10, 12, 14, 16})
          for (int64_t ofWarp : {128, 256, 512})
            for (int64_t tiles : {1, 2, 4, 8})
              for (int64_t stages : {2, 3, 4, 6})
                if (ofWarp % (tiles * held.tileColumns) == 0)
                  add(StreamScheduleAttr::get(
                      context, {rows, columns}, warps, tiles, stages,
                      first.getUnit(), first.getRows(), first.getHeld(),
                      /*block_warps=*/1, /*blocks=*/1, warps * ofWarp, parts));
      }
  }

  void addFlash(ScheduleAttrInterface first) {
    auto attention = find<CacheAttentionInterface>();
    auto q = cast<RankedTensorType>(attention.getQ().getType());
    int64_t rows = rowsOf(q);
    bool isPartial = isa<AttentionPartialOp>(attention.getOperation());
    SmallVector<int64_t> workgroup(first.getWorkgroup());
    const int64_t parts = first.getParts();
    // What generates stays as exact as threads are.
    const bool isCoop =
        isForCoop(attention) && !haveOwnKeys(attention, rows) &&
        machine.has(getCoopUnit(attention.getCache().getType()));
    int64_t most =
        machine.has(MatrixUnit::MmaSync) || isCoop ? mostMmaTokens : mostTokens;
    std::set<int64_t> tokensOfGroup = {workgroup[0]};
    if (!isPartial)
      for (int64_t count = 1; count <= std::min(rows, most); count *= 2)
        if (llvm::divideCeil(rows, count) <= mostGroups)
          tokensOfGroup.insert(count);
    for (int64_t count : tokensOfGroup) {
      workgroup[0] = count;
      if (count <= mostTokens)
        for (int64_t threads : {32, 64, 128, 256})
          for (int64_t keys : {8, 16, 32, 64})
            add(FlashScheduleAttr::get(context, workgroup, keys, {threads}));
      if (machine.has(MatrixUnit::MmaSync))
        addFlashMma(workgroup, count == 1 ? parts : 1);
      if (isCoop)
        addFlashCoop(attention, workgroup);
    }
  }

  /// Subgroups for the rows that there are.
  void addFlashCoop(CacheAttentionInterface op, ArrayRef<int64_t> workgroup) {
    const MatrixUnit unit = getCoopUnit(op.getCache().getType());
    const int64_t subgroups =
        llvm::divideCeil(workgroup[0] * workgroup[1], getUnitShape(unit).rows);
    for (int64_t warps : {1, 2, 4, 8})
      for (int64_t keys : {16, 32, 64})
        if (warps < 2 * subgroups)
          add(FlashMmaScheduleAttr::get(
              context, workgroup, keys, {machine.subgroupThreads, warps, 1},
              unit, RowForm::Rounded, OperandPlace::Shared, /*parts=*/1));
  }

  /// Warps for the rows that there are, and others that divide the keys, as
  /// the workgroups of a cluster do.
  void addFlashMma(ArrayRef<int64_t> workgroup, int64_t mostParts) {
    int64_t rowWarps = llvm::divideCeil(workgroup[0] * workgroup[1], 16);
    for (int64_t x : {1, 2, 4, 8})
      for (int64_t y : {1, 2, 4, 8, 16})
        if (x < 2 * rowWarps && x * y <= 16)
          for (int64_t keys : {16, 32, 64})
            for (int64_t parts = mostParts; parts > 0; parts /= 2)
              add(getFlashMmaSchedule(find<CacheAttentionInterface>(), machine,
                                      workgroup, keys, x, y, parts));
  }

  /// Other numbers of threads and of what they ask for at a time, and
  /// workgroups with more of the loop that the default tiles last: the one that
  /// it divides the finest.
  void addRows(SimtScheduleAttr first) {
    SmallVector<int64_t> workgroup(first.getWorkgroup());
    int64_t last = -1;
    for (auto [loop, size] : llvm::enumerate(workgroup))
      if (size > 0)
        last = loop;
    // More of it only: less could make a grid that is too large.
    for (int64_t factor : {1, 2, 4, 8}) {
      if (last < 0 && factor > 1)
        return;
      if (last >= 0)
        workgroup[last] = first.getWorkgroup()[last] * factor;
      for (int64_t threads : {32, 64, 128, 256, 512, 1024})
        for (int64_t unroll : {int64_t(1), int64_t(4), first.getUnroll()})
          addSimt(workgroup, {threads}, {}, 0, unroll);
    }
  }

  KernelOp kernel;
  MLIRContext *context;
  const MachineDescription &machine;
  int64_t tokens;
  int64_t columnsOfProduct = 0; // 0: the kernel has none
  llvm::SetVector<ScheduleAttrInterface, SmallVector<ScheduleAttrInterface>>
      schedules;
};

} // namespace

SmallVector<ScheduleAttrInterface> mlir::kf::getGpuScheduleCandidates(
    KernelOp kernel, const MachineDescription &machine, int64_t rows) {
  return Candidates(kernel, machine, rows).list();
}
