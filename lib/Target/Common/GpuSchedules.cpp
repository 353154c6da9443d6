//===- GpuSchedules.cpp - Schedules for GPUs ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The policy of all GPU targets: the schedule of each kernel, with matrix units
// where a GPU has them, and without subgroup operations elsewhere. What GPUs
// can run is decided in GpuSupport.cpp and Conversion/KernelSupport.h.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuSchedules.h"

#include "CoopSchedules.h"
#include "StreamSchedules.h"
#include "WideSchedules.h"

#include "kf/Conversion/DeltaThreads.h"
#include "kf/Conversion/KernelLoops.h"
#include "kf/Conversion/KernelShape.h"
#include "kf/Conversion/KernelSupport.h"
#include "kf/Conversion/Occupancy.h"
#include "kf/Target/Common/GpuCosts.h"
#include "kf/Target/Common/SplitAttention.h"
#include "runtime/core/FragmentTile.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Threads of a workgroup that takes rows or elements: at least, and at most.
constexpr int64_t rowThreads = 64, mostRowThreads = 1024;
/// Rows of a state's column that a thread of kf.gated_delta holds, at least.
constexpr int64_t rowsOfDelta = 16;
/// Elements that a thread asks for at a time, and the most of a row.
constexpr int64_t batchOfThread = 8, mostOfRow = 16;
/// Elements of a sum that are worth a workgroup, and the most sums along a
/// dimension that has no workgroups of its own, which are one after another.
constexpr int64_t leastShared = 128, mostSumsInTurn = 4;
/// Elements that such a workgroup should have before another one starts.
constexpr int64_t elementsPerGroup = 1024;
/// Threads that share the sums of a product with few rows.
constexpr int64_t sharingThreads = 32;

/// Threads of a workgroup of attention, and of one that chooses a token.
constexpr int64_t attentionThreads = 128, sampleThreads = 512;
/// Elements of a token's keys that a thread appends, and the most threads that
/// append codes.
constexpr int64_t appendOfThread = 4, blockAppendThreads = 512;
/// Logits of a thread that are worth another one.
constexpr int64_t logitsOfThread = 16;
/// Keys of one softmax block, and query rows that share it.
constexpr int64_t keyTile = 32, queryRows = 8;
/// Keys of a block on matrix units, and warps that divide those of one token.
constexpr int64_t mmaKeys = 16, mmaKeyWarps = 8;
/// Warps of a multiprocessor that read keys, and those of a workgroup's rows at
/// least: a sequence of thousands of keys may be beside many of few, which end
/// before it. Of more than so many rows, half of them.
constexpr int64_t attentionWarps = 4, leastKeyWarps = 4, rowsOfKeyWarps = 128;
/// Of many tokens: the most keys of a block, half as many where queries that
/// are turned, or wide heads and several sequences, take registers as well, and
/// mmaKeys where heads are wider than that; and rows that share it.
constexpr int64_t stagedKeys = 64, wideHead = 128;
constexpr int64_t stagedRows = 128, fewStagedRows = 64;

/// Attention to keys that are tensors: warps of a workgroup, and keys of a
/// block; fewer where sums of gradients take registers, too.
constexpr int64_t batchWarps = 4, batchKeys = 64, batchGradientKeys = 32;

/// Warps of a multiprocessor that parts of products are made for, and of a
/// workgroup that does better beside another one.
constexpr int64_t dividedWarps = 8, loneWarps = 4;

/// Query rows of a workgroup of attention on cooperative matrices, and keys of
/// its blocks: as many as go into 48 KiB with heads of 128 columns.
constexpr int64_t coopRows = 64, mostCoopKeys = 64;

/// A schedule while it is put together.
struct Draft {
  SmallVector<int64_t> workgroup, tile, threads;
  int64_t reduction = 0, unroll = 1;
  SumOwner sums = SumOwner::Own;

  SimtScheduleAttr get(MLIRContext *context) const {
    return SimtScheduleAttr::get(context, workgroup, threads, tile, reduction,
                                 unroll, sums);
  }
};

/// Ops that reduce rows and decide the loops of their kernel.
bool isRowOp(Operation *op) {
  return isa<RmsNormOp, LayerNormOp, SoftmaxOp, ArgmaxOp>(op);
}

class Policy {
public:
  Policy(KernelOp kernel, const MachineDescription &machine)
      : kernel(kernel), context(kernel.getContext()), machine(machine) {}

  ScheduleAttrInterface select(int64_t rows) {
    auto attentions = kernel.getBody().getOps<CacheAttentionInterface>();
    if (!attentions.empty()) {
      if (FlashMmaScheduleAttr schedule =
              selectFlashMma(*attentions.begin(), rows))
        return schedule;
      if (FlashMmaScheduleAttr schedule =
              selectFlashCoop(*attentions.begin(), rows))
        return schedule;
      return selectFlash(*attentions.begin(), rows);
    }
    for (auto batches : kernel.getBody().getOps<BatchAttentionInterface>())
      return getBatchAttentionSchedule(batches);
    for (auto matmul : kernel.getBody().getOps<MatmulOp>()) {
      if (auto stream = selectStreamSchedule(kernel, matmul, machine, rows))
        return stream;
      if (MmaScheduleAttr coop =
              selectFewCoopSchedule(kernel, matmul, machine, rows))
        return coop;
      if (auto lanes = selectLanesSchedule(kernel, matmul, machine, rows))
        return lanes;
      if (MmaScheduleAttr mma = selectMma(matmul, rows))
        return mma;
      if (MmaScheduleAttr coop =
              selectCoopSchedule(kernel, matmul, machine, rows))
        return coop;
    }
    if (ExpertMatmulOp experts = findExpertProduct(kernel)) {
      if (auto stream = selectStreamSchedule(kernel, experts, machine, rows))
        return stream;
      if (auto lanes = selectLanesSchedule(kernel, experts, machine, rows))
        return lanes;
    }
    if (BatchMatmulOp batches = findBatchProduct(kernel))
      if (MmaScheduleAttr mma = selectMma(batches))
        return mma;
    return selectSimt(rows);
  }

private:
  SimtScheduleAttr selectSimt(int64_t tokens) {
    auto matmuls = kernel.getBody().getOps<MatmulOp>();
    if (!matmuls.empty()) {
      MatmulOp op = *matmuls.begin();
      auto type = cast<RankedTensorType>(op.getType());
      int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
      return rows <= kGpuFewRows ? selectFewRows(op, rows) : selectMatmul(op);
    }
    for (auto append : kernel.getBody().getOps<KVAppendOp>())
      return selectAppend(append.getCache().getType());
    for (auto delta : kernel.getBody().getOps<GatedDeltaOp>())
      return selectDelta(delta);
    for (auto sample : kernel.getBody().getOps<SampleOp>())
      return selectSample(sample);
    for (auto route : kernel.getBody().getOps<RouteOp>())
      return selectRoute(route);
    for (auto combine : kernel.getBody().getOps<AttentionCombineOp>())
      return selectCombine(combine);
    for (auto rope : kernel.getBody().getOps<RopeOp>())
      return selectRotation(cast<RankedTensorType>(rope.getType()));
    for (Operation &op : kernel.getBody().front())
      if (isRowOp(&op))
        return selectRows(&op);
    if (SimtScheduleAttr schedule = selectReduction())
      return schedule;
    return selectElements(cast<RankedTensorType>(kernel.getResultTypes()[0]));
  }

  /// All rows and a few columns: each element of the weight is read once, by
  /// neighbouring threads, several at a time so that memory is kept busy.
  SimtScheduleAttr selectFewRows(MatmulOp op, int64_t rows) {
    bool hasBlocks = isa<QuantType, Float8E4M3FNType>(
        cast<RankedTensorType>(op.getW().getType()).getElementType());
    Draft draft;
    int64_t columns = rows <= 4 ? 2 : 1, y = 4;
    int64_t x = std::min<int64_t>(sharingThreads, machine.threads);
    // Parts of 8 elements of gate and up; statistics and sums of a fused norm.
    auto bytes = [&] { return 4 * (16 * (x + 1) * y + 2 * rows + x * y); };
    while (y > 1 && (x * y > machine.threads || bytes() > machine.memory))
      y /= 2;
    int64_t all = cast<RankedTensorType>(op.getType()).getDimSize(1);
    columns = std::max<int64_t>(columns,
                                llvm::divideCeil(all, y * groupsPerDimension));
    draft.workgroup = {rows, columns * y};
    draft.tile = {rows, columns};
    draft.threads = {x, y, 1};
    draft.unroll = hasBlocks || rows > 4 ? 2 : rows > 2 ? 4 : 8;
    draft.sums = SumOwner::Shared;
    return draft.get(context);
  }

  /// The tile by which all multiprocessors together should take the least time,
  /// and in how many parts; null where matrix units cannot do it, or would be
  /// idle for the most part.
  MmaScheduleAttr selectMma(MatmulOp op, int64_t tokens) {
    auto type = cast<RankedTensorType>(op.getType());
    auto x = cast<RankedTensorType>(op.getX().getType());
    auto w = cast<RankedTensorType>(op.getW().getType());
    const int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
    if (!areForMatrixUnits(op, rows))
      return {};
    return selectMma({rows, type.getDimSize(1), x.getDimSize(1), /*batches=*/0,
                      op.getGlu() ? 2 : 1, WideFactors::are(x, w),
                      isa<QuantType, Float8E4M3FNType>(w.getElementType())});
  }

  /// The same of the product of each batch.
  MmaScheduleAttr selectMma(BatchMatmulOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    auto x = cast<RankedTensorType>(op.getX().getType());
    if (!isForMatrixUnits(op))
      return {};
    return selectMma({type.getDimSize(1), type.getDimSize(2), x.getDimSize(2),
                      type.getDimSize(0), /*groups=*/1,
                      WideFactors::are(x, op.getW().getType()),
                      /*hasCodes=*/false});
  }

  /// What matrix units are to multiply.
  struct Product {
    int64_t rows, columns, extent; ///< extent: K
    int64_t batches;               ///< 0: not of batches
    int64_t groups;                ///< 2: gate and up
    bool isWide;                   ///< of f32
    bool hasCodes;                 ///< in the weight
  };

  MmaScheduleAttr selectMma(const Product &product) {
    if (!machine.has(MatrixUnit::MmaSync))
      return {};
    if (product.isWide)
      return selectWideSchedule(
          kernel, {product.rows, product.columns, product.batches}, machine);
    const GpuCosts costs = getGpuCosts(machine);
    const bool hasCodes = product.hasCodes;
    const auto extent = static_cast<double>(product.extent);
    MmaScheduleAttr best;
    double least = 0;
    for (const MmaTileCost &cost : costs.tiles) {
      const MmaTile &tile = cost.tile;
      const int64_t columns = tile.lines / product.groups;
      const int64_t tiles = std::max<int64_t>(product.batches, 1) *
                            llvm::divideCeil(product.rows, tile.rows) *
                            llvm::divideCeil(product.columns, columns);
      const int64_t most =
          product.batches ? 1 : mostMmaParts(tile, tiles, hasCodes);
      SmallVector<int64_t> workgroup = {tile.rows, columns};
      if (product.batches)
        workgroup.insert(workgroup.begin(), 1);
      for (int64_t parts = 1; parts <= most; parts *= 2) {
        auto schedule = MmaScheduleAttr::get(
            context, workgroup, {tile.rowWarps, tile.lineWarps}, tile.step,
            tile.stages, tile.unit, parts, /*shares=*/1);
        if (failed(verifyGpuSchedule(kernel, schedule, machine, nullptr)) ||
            (parts > 1 && !fitAtOnce(costs, schedule, tiles)))
          continue;
        const double time = timeOf(costs, cost, tiles, parts, extent, hasCodes);
        if (!best || time < least) {
          best = schedule;
          least = time;
        }
      }
    }
    return best;
  }

  /// The most parts of `tiles` tiles: such that each multiprocessor has some
  /// warps. By measurement, units of a warp gain nothing where there are those
  /// of warpgroups, nor do workgroups of many warps that take codes apart.
  int64_t mostMmaParts(const MmaTile &tile, int64_t tiles, bool hasCodes) {
    const int64_t warps = tile.rowWarps * tile.lineWarps;
    if ((hasCodes && warps > loneWarps) ||
        (tile.unit == MatrixUnit::MmaSync && machine.has(MatrixUnit::Wgmma)))
      return 1;
    const int64_t most =
        dividedWarps * machine.multiprocessors / std::max(tiles * warps, warps);
    return std::clamp<int64_t>(most, 1, machine.clusterWorkgroups);
  }

  /// Whether multiprocessors have room for a cluster for each of `tiles` tiles:
  /// one that waits for others to end takes as long again. Where each has room
  /// for two workgroups, clusters share those that none would have alone.
  bool fitAtOnce(const GpuCosts &costs, MmaScheduleAttr schedule,
                 int64_t tiles) {
    auto shape = getKernelShape(kernel, schedule, nullptr);
    assert(succeeded(shape) && "the schedule has been verified");
    return holdsTwo(*shape, machine) ||
           tiles <= costs.countClustersAtOnce(machine, schedule.getParts());
  }

  /// How long `tiles` tiles take in `parts` parts each, for each of `extent`
  /// columns of K.
  double timeOf(const GpuCosts &costs, const MmaTileCost &cost, int64_t tiles,
                int64_t parts, double extent, bool hasCodes) {
    const MmaTile &tile = cost.tile;
    const auto tileRows = static_cast<double>(tile.rows);
    // Warps that divide rows take apart the same codes each.
    const double ofWarp = tileRows / static_cast<double>(tile.rowWarps);
    double slowness = cost.slowness;
    if (hasCodes)
      slowness += costs.dequantization * 128 / ofWarp;
    const auto units = static_cast<double>(machine.multiprocessors);
    const auto ofProduct = static_cast<double>(parts);
    const double rounds = static_cast<double>(tiles) * ofProduct / units;
    // Parts that are more than multiprocessors share them.
    double time = (parts > 1 ? std::max(rounds, 1.0) : std::ceil(rounds)) *
                  tileRows * static_cast<double>(tile.lines) * slowness /
                  ofProduct;
    if (rounds <= 1 && tile.rowWarps * tile.lineWarps <= loneWarps)
      time *= costs.alone;
    return time * (1 + costs.exchange * (ofProduct - 1) * ofProduct /
                           (slowness * extent));
  }

  /// The heads of a KV head and a few tokens to a workgroup; of one token,
  /// where each has a part of its keys.
  FlashScheduleAttr selectFlash(CacheAttentionInterface op, int64_t rows) {
    KVCacheType cache = op.getCache().getType();
    auto q = cast<RankedTensorType>(op.getQ().getType());
    int64_t group = std::max<int64_t>(q.getDimSize(1) / cache.getKvHeads(), 1);
    int64_t tokens =
        rows <= kGpuFewRows ? 1 : std::max<int64_t>(queryRows / group, 1);
    if (!q.isDynamicDim(0))
      tokens = std::max<int64_t>(
          tokens, llvm::divideCeil(q.getDimSize(0), groupsPerDimension));
    int64_t threads = llvm::bit_floor<uint64_t>(
        std::min<int64_t>(attentionThreads, machine.threads));
    SmallVector<int64_t> workgroup = {tokens, group};
    if (isa<AttentionPartialOp>(op.getOperation()))
      workgroup = {1, group, 1};
    return FlashScheduleAttr::get(
        context, workgroup, std::gcd(keyTile, cache.getPage()), {threads});
  }

  /// Warps of a workgroup that divides the keys of its rows; of many rows, as
  /// many as keep multiprocessors busy when there are half of them, or the
  /// least.
  int64_t keyWarpsOf(KVCacheType cache, int64_t rows) {
    if (rows <= kGpuFewRows)
      return mmaKeyWarps;
    const int64_t groups = llvm::divideCeil(rows, 2) * cache.getKvHeads();
    const int64_t wanted = attentionWarps * machine.multiprocessors / groups;
    return llvm::bit_floor<uint64_t>(std::clamp<int64_t>(
        wanted, rows > rowsOfKeyWarps ? leastKeyWarps / 2 : leastKeyWarps,
        mmaKeyWarps));
  }

  /// The same on matrix units; null where the kernel or the device is not for
  /// them.
  FlashMmaScheduleAttr selectFlashMma(CacheAttentionInterface op,
                                      int64_t rows) {
    if (!machine.has(MatrixUnit::MmaSync) || !isForMatrixUnits(op))
      return {};
    KVCacheType cache = op.getCache().getType();
    auto q = cast<RankedTensorType>(op.getQ().getType());
    int64_t group = std::max<int64_t>(q.getDimSize(1) / cache.getKvHeads(), 1);
    if (!q.isDynamicDim(0))
      rows = q.getDimSize(0);
    bool isPartial = isa<AttentionPartialOp>(op.getOperation());
    bool isFew = isPartial || haveOwnKeys(op, rows);
    // Many rows for each copy of the keys, where all multiprocessors have some.
    // Warpgroups do better alone: one is at products while the other of a
    // multiprocessor weighs scores.
    const bool byWarpgroups =
        machine.has(MatrixUnit::Wgmma) && isForWarpgroups(q.getDimSize(2));
    int64_t most = byWarpgroups ? fewStagedRows : stagedRows;
    int64_t groups = llvm::divideCeil(rows * group, most) * cache.getKvHeads();
    // Sums of wider heads leave no registers for what fewer warps would copy.
    const bool isWider = q.getDimSize(2) > wideHead;
    if (isFew || (groups < machine.multiprocessors && !isWider))
      most = fewStagedRows;
    int64_t tokens = isFew ? 1 : std::max<int64_t>(most / group, 1);
    if (!q.isDynamicDim(0) && !isPartial)
      tokens = std::max<int64_t>(
          tokens, llvm::divideCeil(q.getDimSize(0), groupsPerDimension));
    SmallVector<int64_t> workgroup = {tokens, group};
    if (isPartial)
      workgroup.push_back(1);
    int64_t rowWarps =
        std::min<int64_t>(llvm::divideCeil(tokens * group, 16), most / 16);
    int64_t keyWarps = 1;
    if (isFew) // several warps of rows alone would share keys of many rows
      keyWarps = std::max<int64_t>(keyWarpsOf(cache, rows) / rowWarps,
                                   rowWarps > 1 ? 2 : 1);
    int64_t keys = mmaKeys;
    // Turned queries, too, take registers, and so do rows of several sequences
    // and codes on their way.
    const bool isTurned = !kernel.getBody().getOps<RopeOp>().empty();
    const bool hasSequences =
        cast<RankedTensorType>(op.getPageTable().getType()).getDimSize(0) != 1;
    const int64_t widest = !hasSequences || byWarpgroups ? wideHead
                           : cache.isQuantized()         ? wideHead / 2
                                                         : wideHead - 1;
    if (!isFew && !isWider)
      keys = isTurned || q.getDimSize(2) > widest ? stagedKeys / 2 : stagedKeys;
    while (keys > mmaKeys && cache.getPage() % keys != 0)
      keys /= 2;
    const int64_t parts =
        !isPartial && tokens == 1 ? countClusterParts(op, rows, machine) : 1;
    // Memory may be too small for as many: whichever there are more of.
    while (true) {
      FlashMmaScheduleAttr schedule = getFlashMmaSchedule(
          op, machine, workgroup, keys, rowWarps, keyWarps, parts);
      if (succeeded(verifyGpuSchedule(kernel, schedule, machine, nullptr)))
        return schedule;
      if (keys > mmaKeys) {
        keys /= 2;
        continue;
      }
      if (rowWarps * keyWarps == 1)
        return {};
      (rowWarps > keyWarps ? rowWarps : keyWarps) /= 2;
    }
  }

  /// The same on cooperative matrices: of many rows, so that each copy of the
  /// keys is for several subgroups, or for fewer where multiprocessors would
  /// have none. Null where the kernel or the device is not for them, or a token
  /// has keys of its own.
  FlashMmaScheduleAttr selectFlashCoop(CacheAttentionInterface op,
                                       int64_t rows) {
    KVCacheType cache = op.getCache().getType();
    auto q = cast<RankedTensorType>(op.getQ().getType());
    if (!q.isDynamicDim(0))
      rows = q.getDimSize(0);
    if (!isForCoop(op) || !machine.has(getCoopUnit(cache)) ||
        haveOwnKeys(op, rows))
      return {};
    const int64_t group =
        std::max<int64_t>(q.getDimSize(1) / cache.getKvHeads(), 1);
    int64_t most = coopRows;
    const int64_t groups =
        llvm::divideCeil(rows * group, most) * cache.getKvHeads();
    if (groups < machine.multiprocessors)
      most /= 2;
    const int64_t unit = getUnitShape(getCoopUnit(cache)).rows;
    // Memory may be too small for as many.
    for (int64_t warps = most / unit; warps > 0; warps /= 2) {
      int64_t tokens = std::max<int64_t>(warps * unit / group, 1);
      if (!q.isDynamicDim(0))
        tokens = std::max<int64_t>(
            tokens, llvm::divideCeil(q.getDimSize(0), groupsPerDimension));
      for (int64_t keys = mostCoopKeys; keys >= unit; keys /= 2) {
        auto schedule = FlashMmaScheduleAttr::get(
            context, {tokens, group}, keys, {machine.subgroupThreads, warps, 1},
            getCoopUnit(cache), RowForm::Rounded, OperandPlace::Shared,
            /*parts=*/1);
        if (succeeded(verifyGpuSchedule(kernel, schedule, machine, nullptr)))
          return schedule;
      }
    }
    return {};
  }

  /// A head to a workgroup: each of its threads visits all parts.
  SimtScheduleAttr selectCombine(AttentionCombineOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    Draft draft;
    draft.workgroup = {1, 1};
    if (!type.isDynamicDim(0))
      draft.workgroup[0] = stepFor(type.getDimSize(0), 1);
    draft.workgroup[1] = stepFor(type.getDimSize(1), 1);
    draft.threads = {std::min<int64_t>(
        machine.threads,
        std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(type.getDimSize(2)), 32,
                            attentionThreads))};
    return draft.get(context);
  }

  /// Threads for `elements`, of which each has a batch.
  int64_t threadsFor(int64_t elements, int64_t batch) {
    int64_t threads = llvm::bit_ceil<uint64_t>(
        llvm::divideCeil(std::max<int64_t>(elements, 1), batch));
    return std::min(std::clamp(threads, rowThreads, mostRowThreads),
                    machine.threads);
  }

  /// A token to a workgroup, whose threads have some elements of its keys each.
  SimtScheduleAttr selectAppend(KVCacheType cache) {
    Draft draft;
    draft.workgroup = {1};
    int64_t elements = cache.getKvHeads() * cache.getHeadDim();
    draft.threads = {threadsFor(elements, appendOfThread)};
    // Each has a block of codes in registers, and more would have too few.
    if (cache.isQuantized())
      draft.threads[0] = std::min(draft.threads[0], blockAppendThreads);
    draft.unroll = appendOfThread;
    return draft.get(context);
  }

  /// A sequence and a head to a workgroup, whose threads have columns of the
  /// state, or parts of them.
  SimtScheduleAttr selectDelta(GatedDeltaOp op) {
    Draft draft;
    draft.workgroup = {1, 1};
    const int64_t columns = std::min<int64_t>(
        std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(op.getValueDim()), 32,
                            mostRowThreads),
        machine.threads);
    const int64_t dk = op.getKeyDim(),
                  most = std::min(machine.threads, DeltaThreads::mostThreads);
    int64_t parts = 1;
    while (dk % (2 * parts) == 0 && dk / parts > rowsOfDelta &&
           2 * parts * columns <= most)
      parts *= 2;
    draft.threads = {columns};
    if (parts > 1 && DeltaThreads(op, {columns, parts, 1}).held > 0)
      draft.threads.push_back(parts);
    return draft.get(context);
  }

  /// A token to a workgroup, whose threads have some pairs of its heads each.
  SimtScheduleAttr selectRotation(RankedTensorType type) {
    Draft draft;
    draft.workgroup = {stepFor(type.getDimSize(0), 1), 0, 0};
    draft.threads = {
        threadsFor(type.getDimSize(1) * type.getDimSize(2) / 2, batchOfThread)};
    draft.unroll = batchOfThread;
    return draft.get(context);
  }

  /// A row to a workgroup. All that is waited for is its share of the row, so
  /// that there are as many threads as the device has memory for.
  SimtScheduleAttr selectSample(SampleOp op) {
    auto logits = cast<RankedTensorType>(op.getLogits().getType());
    Draft draft;
    draft.workgroup = {1};
    draft.unroll = batchOfThread;
    int64_t threads =
        std::min(std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(
                                         logits.getDimSize(1) / logitsOfThread),
                                     8, sampleThreads),
                 machine.threads);
    while (true) {
      draft.threads = {threads};
      SimtScheduleAttr schedule = draft.get(context);
      if (threads == 1 ||
          succeeded(verifyGpuSchedule(kernel, schedule, machine, nullptr)))
        return schedule;
      threads /= 2;
    }
  }

  /// A row to a workgroup, whose threads have an expert each.
  SimtScheduleAttr selectRoute(RouteOp op) {
    auto logits = cast<RankedTensorType>(op.getLogits().getType());
    Draft draft;
    draft.workgroup = {stepFor(logits.getDimSize(0), 1)};
    draft.threads = {std::min<int64_t>(
        llvm::alignTo(logits.getDimSize(1), rowThreads), machine.threads)};
    return draft.get(context);
  }

  /// A square of the product. Threads keep a square of it each, so that a
  /// staged element is used more than once.
  SimtScheduleAttr selectMatmul(MatmulOp op) {
    const bool isPacked =
        hasFragments(op.getW().getType()) && !machine.has(MatrixUnit::MmaSync);
    Draft draft;
    int64_t x = 16, y = 16, rows = 32, columns = 32;
    while (x * y > machine.threads)
      (y > 1 ? y : x) /= 2;
    draft.workgroup = {rows, columns};
    draft.tile = {rows / y, columns / x};
    draft.threads = {x, y, 1};
    // Threads take spans of a packed weight apart.
    draft.reduction = isPacked ? ::kf::FragmentTile::span : 16;
    while (draft.reduction > 1 && stagedBytes(op, draft) > machine.memory)
      draft.reduction /= 2;
    return draft.get(context);
  }

  int64_t stagedBytes(MatmulOp op, const Draft &draft) {
    int64_t lines =
        draft.workgroup[0] + draft.workgroup[1] * (op.getGlu() ? 2 : 1);
    const Type weight = op.getW().getType();
    auto quant = dyn_cast<QuantType>(getElementTypeOrSelf(weight));
    const int64_t table =
        quant && hasFragments(weight) && getStorage(quant.getFormat()).table
            ? LanesShape::tableEntries
            : 0;
    // Statistics and sums of a fused norm come on top.
    return 4 * (lines * (draft.reduction + 1) + table + 2 * draft.workgroup[0] +
                draft.threads[0] * draft.threads[1]);
  }

  /// A row to a workgroup, more where the grid would become too large.
  SimtScheduleAttr selectRows(Operation *op) {
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    Draft draft;
    int64_t columns = type.getShape().back();
    draft.threads = {threadsFor(columns, batchOfThread)};
    int64_t ofThread = llvm::divideCeil(columns, draft.threads[0]);
    draft.unroll =
        ofThread <= mostOfRow ? std::max<int64_t>(ofThread, 1) : batchOfThread;
    for (int64_t extent : type.getShape().drop_back().take_front(3))
      draft.workgroup.push_back(stepFor(extent, 1));
    return draft.get(context);
  }

  /// An element of a reduction to a workgroup, whose threads have some of the
  /// many that it is made of; null where it is no such reduction.
  SimtScheduleAttr selectReduction() {
    ReduceOp op = findSharedReduction(kernel);
    if (!op)
      return {};
    auto x = cast<RankedTensorType>(op.getX().getType());
    int64_t count = 1;
    for (int64_t dim : op.getDims())
      count *= x.isDynamicDim(dim) ? 1 : x.getDimSize(dim);
    if (count < leastShared)
      return {};
    Draft draft;
    draft.threads = {threadsFor(count, batchOfThread)};
    draft.unroll = batchOfThread;
    draft.sums = SumOwner::Shared;
    auto type = cast<RankedTensorType>(kernel.getResultTypes()[0]);
    if (draft.threads[0] == 1)
      return {};
    int64_t grid = 3; // its dimensions
    for (int64_t extent : type.getShape()) {
      const bool isWhole = extent == 1 || grid-- <= 0;
      if (isWhole && (ShapedType::isDynamic(extent) || extent > mostSumsInTurn))
        return {};
      draft.workgroup.push_back(isWhole ? 0 : stepFor(extent, 1));
    }
    draft.workgroup = byLoop(draft.workgroup);
    return draft.get(context);
  }

  /// The tile of each loop of the op that makes the result, which may have more
  /// than the result has dimensions.
  SmallVector<int64_t> byLoop(ArrayRef<int64_t> byDimension) {
    Operation *root = kernel.getYield().getOperand(0).getDefiningOp();
    auto loops = dyn_cast_or_null<LoopOpInterface>(root);
    if (!loops)
      return SmallVector<int64_t>(byDimension);
    SmallVector<int64_t> tiles(loops.getLoopTypes().size(), 0);
    AffineMap map = loops.getLoopMaps().back();
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        tiles[loop.getPosition()] = byDimension[dim];
    return tiles;
  }

  /// Whether an op of the kernel computes this dimension in order: rows of a
  /// table are looked up whole.
  bool mustBeWhole(int64_t dim) {
    return llvm::any_of(
        kernel.getBody().getOps<LoopOpInterface>(), [&](LoopOpInterface op) {
          if (isa<ReduceOp>(op.getOperation())) // its result has other dims
            return false;
          SmallVector<utils::IteratorType> types = op.getLoopTypes();
          return dim < static_cast<int64_t>(types.size()) &&
                 types[dim] != utils::IteratorType::parallel;
        });
  }

  /// The largest step of at most `most` that leaves `dim` no remainder where an
  /// op of the kernel has no tiles of unlike sizes: experts of a row are as
  /// many in each (C2 of kf.expert_matmul). Else, `most`.
  int64_t evenStep(RankedTensorType type, int64_t dim, int64_t most) {
    constexpr int64_t ofExperts = 1; // of rows, experts, columns
    auto hasExperts = [&](ExpertMatmulOp op) {
      return cast<ShapedType>(op.getType()).getShape() == type.getShape();
    };
    if (dim != ofExperts ||
        llvm::none_of(kernel.getBody().getOps<ExpertMatmulOp>(), hasExperts))
      return most;
    const int64_t extent = type.getDimSize(dim);
    int64_t step = std::min(most, extent);
    while (extent % step != 0)
      --step;
    return step;
  }

  /// Whether the code of an element is long: it has loops, or decodes blocks.
  bool hasLongElements() {
    return llvm::any_of(kernel.getBody().front(),
                        [](Operation &op) {
                          return isa<ReduceOp, BatchMatmulOp, ExpertMatmulOp,
                                     MatmulWgradOp, ScatterAddOp>(op);
                        }) ||
           llvm::any_of(kernel.getArgumentTypes(), [](Type type) {
             auto tensor = dyn_cast<RankedTensorType>(type);
             return tensor && isa<QuantType>(tensor.getElementType());
           });
  }

  /// Elements to a workgroup, whole rows where they are short.
  SimtScheduleAttr selectElements(RankedTensorType type) {
    Draft draft;
    int64_t rest = elementsPerGroup;
    draft.workgroup.assign(type.getRank(), 0);
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      int64_t extent = type.getDimSize(dim);
      bool isWhole = (!ShapedType::isDynamic(extent) && extent <= rest) ||
                     mustBeWhole(dim);
      // A grid has three dimensions; the first is always one of them.
      if (dim > 0 && (isWhole || dim > 2))
        rest = std::max<int64_t>(rest / std::max<int64_t>(extent, 1), 1);
      else
        draft.workgroup[dim] =
            evenStep(type, dim, stepFor(extent, std::exchange(rest, 1)));
    }
    // Of a workgroup; more than those make no difference.
    const int64_t most = mostRowThreads * batchOfThread;
    int64_t elements = 1;
    for (auto [size, extent] : llvm::zip(draft.workgroup, type.getShape()))
      elements = std::min(
          elements * std::clamp<int64_t>(size > 0 ? size : extent, 1, most),
          most);
    draft.unroll = hasLongElements() ? 1 : batchOfThread;
    draft.threads = {threadsFor(elements, batchOfThread)};
    draft.workgroup = byLoop(draft.workgroup);
    return draft.get(context);
  }

  /// A tile of at least `step` that keeps a static grid in bounds.
  int64_t stepFor(int64_t extent, int64_t step) {
    if (ShapedType::isDynamic(extent))
      return step;
    return std::max<int64_t>(step,
                             llvm::divideCeil(extent, groupsPerDimension));
  }

  KernelOp kernel;
  MLIRContext *context;
  const MachineDescription &machine;
};

} // namespace

FlashMmaScheduleAttr mlir::kf::getFlashMmaSchedule(
    CacheAttentionInterface op, const MachineDescription &machine,
    ArrayRef<int64_t> workgroup, int64_t keys, int64_t rowWarps,
    int64_t keyWarps, int64_t parts) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  int64_t tokens = workgroup[0];
  if (!q.isDynamicDim(0))
    tokens = std::clamp<int64_t>(q.getDimSize(0), 1, tokens);
  const bool isShared =
      rowWarps > 1 && keyWarps == 1 && tokens * workgroup[1] > 8;
  const bool byWarpgroups = isShared && machine.has(MatrixUnit::Wgmma) &&
                            rowWarps % 4 == 0 &&
                            isForWarpgroups(q.getDimSize(2));
  return FlashMmaScheduleAttr::get(
      op.getContext(), workgroup, keys, {32, rowWarps, keyWarps},
      byWarpgroups ? MatrixUnit::Wgmma : MatrixUnit::MmaSync,
      isShared ? RowForm::Rounded : RowForm::Split,
      isShared ? OperandPlace::Shared : OperandPlace::Registers,
      isShared ? 1 : parts);
}

FlashMmaScheduleAttr
mlir::kf::getBatchAttentionSchedule(BatchAttentionInterface op) {
  auto q = cast<RankedTensorType>(op.getQ().getType());
  const bool isForward = isa<ScaledDotProductAttentionOp>(op.getOperation());
  SmallVector<int64_t> workgroup(q.getRank() - 1, 1);
  workgroup.back() = batchWarps * BatchAttentionShape::rowsOfWarp;
  return FlashMmaScheduleAttr::get(
      op.getContext(), workgroup, isForward ? batchKeys : batchGradientKeys,
      {BatchAttentionShape::warp, batchWarps, 1}, MatrixUnit::MmaSync,
      RowForm::Rounded, OperandPlace::Shared, /*parts=*/1);
}

ScheduleAttrInterface
mlir::kf::selectGpuSchedule(KernelOp kernel, const MachineDescription &machine,
                            int64_t rows) {
  if (failed(checkGpuSupport(kernel, machine, rows)))
    return {};
  return Policy(kernel, machine).select(rows);
}
