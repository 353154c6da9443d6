//===- GpuCostModel.cpp - How long kernels take on GPUs -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/decisions/cost-model.md says what is counted and where the constants
// come from. Time of a multiprocessor is counted in cycles, in each of which it
// does one multiply-add on every lane.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuCostModel.h"

#include "StreamSchedules.h"

#include "kf/Conversion/KernelLoops.h"
#include "kf/Conversion/KernelShape.h"
#include "kf/Transforms/ArenaBytes.h"
#include "kf/Transforms/CountWork.h"
#include "runtime/measure/MachineRates.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Cycles until memory answers, workgroup memory does, a barrier is passed, by
/// a workgroup or by a cluster.
constexpr double kMemoryLatency = 600, kSharedLatency = 30, kBarrier = 40,
                 kClusterBarrier = 200;
/// Cycles of a multiprocessor for a warp's instruction.
constexpr double kWarpCycles = 0.25;
/// Multiply-adds in the time of one load from workgroup memory.
constexpr double kSharedLoad = 4;
/// How much faster than memory the second-level cache is.
constexpr double kCacheRate = 3;
/// Seconds to start a workgroup, over all multiprocessors, and a kernel.
constexpr double kGroupSeconds = 2e-9, kKernelSeconds = 3e-6;

/// What one workgroup does.
struct GroupCost {
  double cycles = 0;     ///< of all lanes
  double latency = 0;    ///< cycles that it waits when it is alone
  double bytes = 0;      ///< from memory or a cache
  double registers = 32; ///< of a thread
};

struct Gpu {
  Gpu(const ::kf::MachineRates &rates, const MachineDescription &machine)
      : machine(machine), lanes(static_cast<double>(machine.ofEach.lanes)),
        multiprocessors(static_cast<double>(machine.multiprocessors)) {
    hertz = rates.f32FlopsPerSecond > 0
                ? rates.f32FlopsPerSecond / (2 * lanes * multiprocessors)
                : machine.usualHertz;
    read = rates.readBytesPerSecond > 0
               ? rates.readBytesPerSecond
               : machine.usualReadBytesPerSecond * multiprocessors;
  }

  /// Workgroups that a multiprocessor holds at a time.
  double resident(const KernelShape &shape, double registers) const {
    const Multiprocessor &each = machine.ofEach;
    double threads = std::max<double>(shape.threadCount, 32);
    double most =
        std::min({static_cast<double>(each.workgroups),
                  static_cast<double>(each.threads) / threads,
                  static_cast<double>(each.registers) / (threads * registers)});
    if (shape.workgroupBytes > 0)
      most = std::min(most, static_cast<double>(each.memory) /
                                static_cast<double>(shape.workgroupBytes));
    return std::max(std::floor(most), 1.0);
  }

  /// `groups` workgroups of `group` each; `unique` bytes come from memory, what
  /// is read again from the cache.
  double seconds(const KernelShape &shape, const GroupCost &group,
                 double groups, double unique) const {
    const auto registers = static_cast<double>(machine.registersOfThread);
    double held = resident(shape, std::min(group.registers, registers));
    // Few workgroups leave multiprocessors, and their latency, uncovered.
    held = std::clamp(std::ceil(groups / multiprocessors), 1.0, held);
    // More registers than there are go to memory and back.
    double cycles = group.cycles * (group.registers > registers ? 4 : 1);
    double ofRound = std::max(held * cycles, group.latency + cycles);
    double rounds = std::ceil(groups / (multiprocessors * held));
    double compute = rounds * ofRound / hertz;
    double memory =
        unique / read +
        std::max(group.bytes * groups - unique, 0.0) / (kCacheRate * read);
    return std::max(compute, memory) + 0.2 * std::min(compute, memory) +
           groups * kGroupSeconds + kKernelSeconds;
  }

  /// Multiply-adds of matrix units in a cycle of a multiprocessor.
  double products(MatrixUnit unit) const {
    return static_cast<double>(machine.productsPerCycle(unit));
  }

  const MachineDescription &machine;
  double lanes, multiprocessors, hertz, read;
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Workgroups of a product.
double groupsOf(MatmulOp op, const KernelShape &shape, int64_t tokens) {
  auto type = cast<RankedTensorType>(op.getType());
  double rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  double columns = type.getDimSize(1);
  const double parts = shape.held  ? shape.held->parts
                       : shape.mma ? shape.mma->parts
                                   : 1;
  return std::ceil(rows / shape.rows) * std::ceil(columns / shape.columns) *
         parts;
}

/// Those of a product of experts that have rows.
double groupsOf(ExpertMatmulOp op, const KernelShape &shape, int64_t tokens) {
  auto type = cast<RankedTensorType>(op.getType());
  const int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  return static_cast<double>(
      countExpertGroups(op, rows, shape.rows) *
      int64_t(llvm::divideCeil(type.getDimSize(2), shape.columns)));
}

/// Those of either.
double groupsOf(ProductOpInterface op, const KernelShape &shape,
                int64_t tokens) {
  auto experts = dyn_cast<ExpertMatmulOp>(op.getOperation());
  return experts ? groupsOf(experts, shape, tokens)
                 : groupsOf(cast<MatmulOp>(op.getOperation()), shape, tokens);
}

/// Of a product of few rows on matrix units: what a workgroup has on its way is
/// what memory can be kept busy with.
double secondsOfStream(KernelOp kernel, ProductOpInterface op,
                       const KernelShape &shape, const Gpu &gpu,
                       int64_t tokens) {
  const StreamShape &stream = *shape.stream;
  const double groups = groupsOf(op, shape, tokens);
  const double extent =
      cast<RankedTensorType>(op.getX().getType()).getShape().back();
  const double steps =
      stream.passes() * stream.rounds() * stream.steps() * stream.warpBlocks;
  // In parts, x is staged for all row blocks that warps take at a time.
  const double stagings = stream.chunks() > 1 ? stream.passes() : 1;
  const double staged = stagings * stream.rows * extent;
  GroupCost group;
  group.bytes =
      steps * stream.warps * stream.tiles * stream.tileBytes + 4 * staged;
  // A step's index arithmetic, and what a tile takes: of blocks, codes are
  // masked out of words, and sums are scaled; f32 is split, as is its x.
  const double ofTile = stream.sumsOfX != StreamShape::Sums::None
                            ? 130 + 70 * stream.columnTiles()
                        : getElementTypeOrSelf(op.getW().getType()).isF32()
                            ? 24 + 8 * stream.columnTiles()
                            : 4 + 3 * stream.columnTiles();
  group.cycles =
      stream.warps * steps * (24 + stream.tiles * ofTile) * 32 / gpu.lanes +
      staged * 4 / gpu.lanes;
  group.latency =
      stagings * stream.chunks() * (2 * kMemoryLatency + 2 * kBarrier) +
      steps * kMemoryLatency / (stream.stages - 1);
  group.registers += 8 * stream.tiles + 8 * stream.columnTiles();
  return gpu.seconds(shape, group, groups, countBytes(kernel, tokens));
}

/// A few rows that warps hold: what a tile takes, and what adding up sums does.
double secondsOfHeld(KernelOp kernel, MatmulOp op, const KernelShape &shape,
                     const Gpu &gpu, int64_t tokens) {
  const HeldShape &held = *shape.held;
  const double groups = groupsOf(op, shape, tokens);
  const double blocks = static_cast<double>(held.blocks * held.slices);
  const double steps = blocks * held.steps;
  const double staged = 2.0 * held.rows * held.slices * held.sliceColumns();
  GroupCost group;
  group.bytes = steps * held.warps * held.slotBytes() + staged;
  const double ofTile = held.sumsOfX == StreamShape::Sums::None
                            ? 2 + held.rowTiles()
                            : 130 + 50 * held.rowTiles();
  group.cycles =
      held.warps *
          (steps * (24 + held.tiles * ofTile) + blocks * 10 * held.rowTiles()) *
          32 / gpu.lanes +
      staged / gpu.lanes;
  group.latency = held.slices * (2 * kMemoryLatency + 2 * kBarrier) +
                  blocks / HeldShape::blocksAtOnce * kBarrier +
                  steps * kMemoryLatency / static_cast<double>(held.stages - 1);
  if (held.parts > 1) // they wait for one another, twice, and read their sums
    group.latency += 2 * kClusterBarrier + kMemoryLatency;
  group.registers += static_cast<double>(held.words() + 4 * held.rowTiles());
  return gpu.seconds(shape, group, groups, countBytes(kernel, tokens));
}

/// Of a product of few rows by threads: what they take apart, and multiply.
double secondsOfLanes(KernelOp kernel, ProductOpInterface op,
                      const KernelShape &shape, const Gpu &gpu,
                      int64_t tokens) {
  const LanesShape &lanes = *shape.lanes;
  const double groups = groupsOf(op, shape, tokens);
  const auto extent = static_cast<double>(
      cast<RankedTensorType>(op.getX().getType()).getShape().back());
  const auto rows = static_cast<double>(lanes.rows);
  const double steps = std::ceil(static_cast<double>(lanes.steps) /
                                 static_cast<double>(lanes.shares())) *
                       static_cast<double>(lanes.blocks * lanes.rounds);
  // Sums are exchanged once, or where there are rounds, in each and of each
  // slice.
  const auto exchanges =
      static_cast<double>(lanes.rounds > 1 ? lanes.rounds * lanes.slices : 1);
  const double ofStep = static_cast<double>(lanes.tileBytes) *
                        static_cast<double>(lanes.stepColumns()) /
                        static_cast<double>(lanes.tileColumns);
  // Of an element: its field and what makes it a float; of a plain one less.
  const double decode = lanes.partColumns > 0 ? 4 : 1;
  const double elements =
      2.0 * static_cast<double>(lanes.unitsOfStep()) * LanesShape::sharers;
  GroupCost group;
  group.bytes =
      steps * static_cast<double>(lanes.warps) * ofStep + 4 * rows * extent;
  group.cycles = static_cast<double>(shape.threadCount) / gpu.lanes *
                     (steps * (elements * (decode + 1.25 * rows) + 24) +
                      exchanges * static_cast<double>(4 * lanes.sums())) +
                 rows * extent * 2 / gpu.lanes;
  group.latency =
      static_cast<double>(lanes.slices) * (2 * kMemoryLatency + 2 * kBarrier) +
      steps * kMemoryLatency / 2 + exchanges * 2 * kBarrier;
  group.registers += static_cast<double>(
      lanes.sums() + 8 * (lanes.tiles + 2) * lanes.blocks + 16);
  return gpu.seconds(shape, group, groups, countBytes(kernel, tokens));
}

double secondsOfMatmul(KernelOp kernel, MatmulOp op, const KernelShape &shape,
                       const Gpu &gpu, int64_t tokens) {
  auto w = cast<RankedTensorType>(op.getW().getType());
  double columns = cast<RankedTensorType>(op.getType()).getDimSize(1);
  double extent = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  double groups = groupsOf(op, shape, tokens);
  double weightBytes =
      getArenaBytes(w, tokens).value_or(0) / (columns * shape.groups);
  bool hasBlocks = isa<QuantType, Float8E4M3FNType>(w.getElementType());
  // To take an element of a weight apart: field, scale, conversion.
  double decode = hasBlocks ? 8 : w.getElementType().isF32() ? 0 : 1;
  double sums = shape.tileRows * shape.tileColumns * shape.groups;
  double lines = shape.rows + shape.columns * shape.groups;

  GroupCost group;
  group.bytes =
      shape.rows * extent * 4 + shape.columns * shape.groups * weightBytes;
  double loads = shape.tileRows + shape.tileColumns * shape.groups;
  if (shape.sharing > 1) {
    double steps = std::ceil(extent / (shape.sharing * shape.unroll));
    double ofStep = shape.unroll * (sums + 2 * loads +
                                    shape.tileColumns * shape.groups * decode) +
                    4;
    double shares = std::ceil(sums / std::max<double>(shape.sharedElements, 1));
    group.cycles = shape.threadCount / gpu.lanes *
                   (steps * ofStep + shares * (shape.sharing + 8));
    group.latency = steps * kMemoryLatency + shares * 2 * kBarrier;
    group.registers += sums + loads * shape.unroll;
  } else {
    double steps = std::ceil(extent / shape.step);
    double staged = lines * shape.step / shape.threadCount;
    double ofStep =
        shape.step * (sums + kSharedLoad * loads + 4.0 / shape.unroll) +
        staged * (4 + decode * shape.columns * shape.groups / lines);
    group.cycles = shape.threadCount / gpu.lanes * steps * ofStep;
    group.latency = steps * (kMemoryLatency + 2 * kBarrier + kSharedLatency);
    group.registers +=
        sums + loads * std::min<double>(shape.unroll, 4) + staged;
  }
  // Statistics of a fused norm: its rows once more.
  if (shape.statistics > 0)
    group.cycles += shape.rows * extent * 2 / gpu.lanes;
  return gpu.seconds(shape, group, groups, countBytes(kernel, tokens));
}

/// What a workgroup on matrix units does with `seen` keys of each of its
/// `rows` rows.
GroupCost costOfFlashMma(const FlashMmaShape &mma, const Gpu &gpu, double rows,
                         double seen) {
  double dim = mma.headDim;
  double blocks = std::max(seen / (mma.keys * mma.keyWarps), 1.0) + 0.5;
  double passes = std::ceil(rows / mma.rows());
  // Of a warp's block: products of the units, loads, and what is done with
  // scores and, for each new maximum, with sums.
  double products = 2 * mma.terms() * dim * mma.keys * 16;
  double loads = 4 * mma.keys * dim * (mma.isQuantized ? 1 : 2) / 512;
  double scores = mma.keys * 16 / 32 * 8 + dim / 2 + 60;
  double decode = mma.isQuantized ? 2.5 * mma.keys * dim / 16 : 0;
  if (mma.isStaged) {
    // A warp's part of the copies, and what it reads of them.
    double read = mma.isForWarpgroups ? 0 : 4 * mma.keys * dim * 2 / 512;
    loads = 3 * loads / mma.rowWarps + read;
    decode /= mma.rowWarps;
  }
  const double rate = gpu.products(mma.isForWarpgroups ? MatrixUnit::Wgmma
                                                       : MatrixUnit::MmaSync);
  GroupCost group;
  group.cycles = passes * blocks * mma.rowWarps * mma.keyWarps *
                 (products / rate + kWarpCycles * (loads + scores + decode));
  group.latency = passes * (blocks * (kMemoryLatency + 8 * kSharedLatency) +
                            kMemoryLatency + 6 * kBarrier);
  group.registers += dim / 2 + mma.keys + dim / 2;
  return group;
}

/// The same on cooperative matrices.
GroupCost costOfFlashCoop(const FlashCoopShape &coop, const Gpu &gpu,
                          double rows, double seen) {
  const auto columns = static_cast<double>(coop.columns());
  const auto keys = static_cast<double>(coop.keys);
  const double blocks = std::max(seen / keys, 1.0) + 0.5;
  const double passes = std::ceil(rows / static_cast<double>(coop.rows()));
  // Of a block: products with keys and with values, of which every subgroup
  // reads all; scores, which threads read, weigh and write.
  const double products = 2 * columns * keys * static_cast<double>(coop.rows());
  const double read =
      2 * columns * keys * 2 * static_cast<double>(coop.warps + 2);
  const double scores = keys * static_cast<double>(coop.rows()) * 16;
  const double decode =
      coop.isQuantized ? 2 * keys * static_cast<double>(coop.headDim) * 8 : 0;
  const auto sharedRate =
      static_cast<double>(gpu.machine.ofEach.memoryBytesPerCycle);
  GroupCost group;
  group.cycles = passes * blocks *
                 (std::max(products / gpu.products(MatrixUnit::CoopF16),
                           read / sharedRate) +
                  (scores + decode) / gpu.lanes + 5 * kBarrier);
  group.latency = passes * (blocks * (kMemoryLatency / 2 + 4 * kSharedLatency) +
                            kMemoryLatency + 8 * kBarrier);
  group.registers += columns + keys;
  return group;
}

double secondsOfMma(KernelOp kernel, MatmulOp op, const KernelShape &shape,
                    const Gpu &gpu, int64_t tokens) {
  const MmaShape &mma = *shape.mma;
  const auto steps = static_cast<double>(mma.steps);
  double groups = groupsOf(op, shape, tokens);
  // Every warp reads its rows and lines from shared memory; warpgroups' units
  // read rows.
  double warps = mma.rowWarps * mma.lineWarps;
  double ofWarp = mma.rowTiles() * MmaShape::unitRows;
  if (mma.isForWarpgroups)
    ofWarp /= 4;
  ofWarp += mma.lineTiles() * MmaShape::unitLines;
  double read =
      static_cast<double>(mma.elementBytes() * mma.step) * warps * ofWarp;
  double rate = gpu.products(mma.isForWarpgroups ? MatrixUnit::Wgmma
                                                 : MatrixUnit::MmaSync);
  const auto sharedRate =
      static_cast<double>(gpu.machine.ofEach.memoryBytesPerCycle);
  // Factors of f32 are products of pairs of bf16.
  double products = static_cast<double>(mma.rows) * mma.lines * mma.step *
                    (mma.isWide ? WideFactors::products : 1);
  GroupCost group;
  group.cycles = steps * std::max(products / rate, read / sharedRate) +
                 steps * kBarrier / 2 + mma.sums() * warps;
  group.latency = steps * (kMemoryLatency / static_cast<double>(mma.ahead()) +
                           kBarrier + 2 * kSharedLatency);
  if (mma.parts > 1) // they wait for one another, twice, and read their sums
    group.latency += 2 * kClusterBarrier + kMemoryLatency;
  const auto ofStep = static_cast<double>(mma.rowBytes() + mma.lineBytes());
  group.bytes = steps * ofStep + 4.0 * shape.rows * shape.columns;
  // Beside sums and operands, the places of each of its copies.
  const auto copies = ofStep / static_cast<double>(gpu.machine.asyncCopyBytes) /
                      static_cast<double>(mma.threads());
  group.registers +=
      mma.sums() + 4 * mma.lineTiles() + 2 * mma.rowTiles() + copies;
  return gpu.seconds(shape, group, groups, countBytes(kernel, tokens));
}

double secondsOfCoop(KernelOp kernel, MatmulOp op, const KernelShape &shape,
                     const Gpu &gpu, int64_t tokens) {
  const CoopShape &coop = *shape.coop;
  const double extent =
      cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  const auto shares = static_cast<double>(coop.shares);
  // Of blocks, shares take parts of tiles in turn.
  const auto round = static_cast<double>(coop.roundColumns);
  const double steps =
      std::ceil(extent / (round * shares)) * round / CoopShape::step;
  const double subgroups = coop.rowWarps * coop.lineWarps * coop.shares;
  const double ofSubgroup = (coop.rowTiles() + coop.lineTiles()) * coop.unit;
  const double read =
      2.0 * CoopShape::step *
      (subgroups * ofSubgroup + shares * (coop.rows + coop.lines));
  const auto sharedRate =
      static_cast<double>(gpu.machine.ofEach.memoryBytesPerCycle);
  const double products = shares * coop.rows * coop.lines * CoopShape::step;
  GroupCost group;
  group.cycles = steps * (std::max(products / gpu.products(MatrixUnit::CoopF16),
                                   read / sharedRate) +
                          (coop.shares == 1 ? 2 * kBarrier : 0));
  group.latency = steps * (kMemoryLatency / 2 + 2 * kSharedLatency);
  group.bytes =
      2.0 * steps * shares * CoopShape::step * (coop.rows + coop.lines) +
      4.0 * shape.rows * shape.columns;
  group.registers += coop.sums() + 4 * (coop.lineTiles() + coop.rowTiles());
  return gpu.seconds(shape, group, groupsOf(op, shape, tokens),
                     countBytes(kernel, tokens));
}

double secondsOfFlash(CacheAttentionInterface op, const KernelShape &shape,
                      ArrayRef<int64_t> workgroup, const Gpu &gpu,
                      int64_t tokens) {
  const FlashShape &flash = *shape.flash;
  auto q = cast<RankedTensorType>(op.getQ().getType());
  KVCacheType cache = op.getCache().getType();
  double rows = q.isDynamicDim(0) ? tokens : q.getDimSize(0);
  double dim = q.getDimSize(2), heads = q.getDimSize(1);
  auto table = cast<RankedTensorType>(op.getPageTable().getType());
  double context = static_cast<double>(table.getDimSize(1)) * cache.getPage();
  double sequences = table.isDynamicDim(0) ? 1 : table.getDimSize(0);
  double seen = (rows > sequences ? std::min(rows, context) : context) / 2;
  double parts = 1;
  if (auto partial = dyn_cast<AttentionPartialOp>(op.getOperation()))
    parts = partial.getSplits();
  else if (shape.flashMma)
    parts = shape.flashMma->parts;
  double rowsOfGroup = std::min<double>(workgroup[0], rows) * workgroup[1];
  double passes = std::ceil(rowsOfGroup / flash.rows);
  double tiles = std::max(seen / parts / flash.keys, 1.0) + 0.5;
  double threads = shape.threadCount;

  double products = flash.rows * flash.keys * dim;
  // Each product reads a query from workgroup memory, and each row a weight.
  double ofTile = 2 * products / threads +
                  kSharedLoad *
                      (products / flash.keysOfThread() +
                       flash.rows * flash.keys * dim / flash.columnsOfThread) /
                      threads +
                  std::ceil(flash.rows * flash.keys / threads) *
                      (kSharedLoad * (flash.shares + 3) + 20);
  GroupCost group;
  group.cycles = passes * tiles * ofTile * threads / gpu.lanes;
  group.latency = passes * tiles *
                  (2 * kMemoryLatency +
                   (3 + flash.queryChunks(dim) + flash.passes(dim)) * kBarrier);
  group.registers +=
      flash.rows * (flash.keysOfThread() + flash.columnsOfThread);
  if (shape.flashMma) {
    group = costOfFlashMma(*shape.flashMma, gpu, rowsOfGroup, seen / parts);
    passes = std::ceil(rowsOfGroup / shape.flashMma->rows()) *
             shape.flashMma->rowWarps;
  }
  if (shape.flashCoop) {
    group = costOfFlashCoop(*shape.flashCoop, gpu, rowsOfGroup, seen);
    passes =
        std::ceil(rowsOfGroup / static_cast<double>(shape.flashCoop->rows()));
  }
  double elementBytes = 4;
  if (auto quant = dyn_cast<QuantType>(cache.getType()))
    elementBytes = static_cast<double>(getStorage(quant.getFormat()).bytes) /
                   getStorage(quant.getFormat()).elements;
  else
    elementBytes = cache.getType().getIntOrFloatBitWidth() / 8.0;
  group.bytes = passes * seen / parts * dim * 2 * elementBytes;
  double groups =
      std::ceil(rows / workgroup[0]) * std::ceil(heads / workgroup[1]) * parts;
  double unique =
      sequences * seen * dim * 2 * cache.getKvHeads() * elementBytes +
      2 * rows * heads * dim * 4;
  return gpu.seconds(shape, group, groups, unique);
}

double secondsOfRows(KernelOp kernel, const KernelShape &shape,
                     ArrayRef<int64_t> workgroup, const Gpu &gpu,
                     int64_t rows) {
  double bytes = countBytes(kernel, rows), groups = 1;
  RankedTensorType tiled;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && (!tiled || kernel.getNumResults() > 0))
      tiled = tensor;
  if (tiled)
    for (auto [dim, size] : llvm::enumerate(workgroup))
      if (size > 0 && dim < static_cast<size_t>(tiled.getRank()))
        groups *= llvm::divideCeil(
            tiled.isDynamicDim(dim) ? rows : tiled.getDimSize(dim), size);
  GroupCost group;
  group.bytes = bytes / groups;
  double ofThread = std::ceil(group.bytes / 4 / shape.threadCount);
  group.cycles = std::max(shape.threadCount / gpu.lanes, 0.25) * ofThread * 8;
  group.latency =
      ofThread * kMemoryLatency / 4 +
      (shape.workgroupBytes > 0 ? std::log2(shape.threadCount) * kBarrier : 0);
  return gpu.seconds(shape, group, groups, bytes);
}

} // namespace

double mlir::kf::predictGpuSeconds(KernelOp kernel,
                                   ScheduleAttrInterface schedule, int64_t rows,
                                   const ::kf::MachineRates &rates,
                                   const MachineDescription &machine) {
  FailureOr<KernelShape> shape = getKernelShape(kernel, schedule, nullptr);
  if (failed(shape))
    return 0;
  Gpu gpu(rates, machine);
  for (Operation &op : kernel.getBody().front()) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      return shape->stream ? secondsOfStream(kernel, matmul, *shape, gpu, rows)
             : shape->held ? secondsOfHeld(kernel, matmul, *shape, gpu, rows)
             : shape->mma  ? secondsOfMma(kernel, matmul, *shape, gpu, rows)
             : shape->coop ? secondsOfCoop(kernel, matmul, *shape, gpu, rows)
             : shape->lanes
                 ? secondsOfLanes(kernel, matmul, *shape, gpu, rows)
                 : secondsOfMatmul(kernel, matmul, *shape, gpu, rows);
    if (auto experts = dyn_cast<ExpertMatmulOp>(op)) {
      if (shape->stream)
        return secondsOfStream(kernel, experts, *shape, gpu, rows);
      if (shape->lanes)
        return secondsOfLanes(kernel, experts, *shape, gpu, rows);
    }
    if (auto attention = dyn_cast<CacheAttentionInterface>(op))
      return secondsOfFlash(attention, *shape, schedule.getWorkgroup(), gpu,
                            rows);
  }
  return secondsOfRows(kernel, *shape, schedule.getWorkgroup(), gpu, rows);
}
