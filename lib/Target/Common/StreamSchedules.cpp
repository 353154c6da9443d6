//===- StreamSchedules.cpp - Schedules of products of few rows ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamSchedules.h"

#include "kf/Conversion/KernelShape.h"
#include "kf/Target/Common/GpuCosts.h"
#include "kf/Target/Common/GpuSchedules.h"

#include <utility>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Columns of 16 rows that a warp holds, or as many of fewer.
constexpr int64_t heldColumns = 256;
/// Warps of a workgroup that holds rows.
constexpr int64_t mostHeldWarps = 16;
/// The most rows of blocks that are faster held than in tiles: not alone, but
/// weights are on their way while the kernels before are at work. Where there
/// are no clusters, one workgroup would take all slices of K in turn.
constexpr int64_t mostHeldOfBlocks = 24;
/// Rows of an expert at a time, at most, where they are split and rounded; how
/// many there are for each that it has if all have as many; and row blocks of a
/// workgroup, at most, of a few rows and of more.
constexpr int64_t mostExpertSplitRows = 16, mostExpertRoundedRows = 32,
                  spareOfExpert = 2, mostFewBlocks = 8, mostExpertBlocks = 16;
/// Workgroups for each multiprocessor where rows are few.
constexpr int64_t expertGroups = 3;
/// Row blocks that few enough lines make for K to be what a workgroup is busy
/// with, as of A of adapters; warps that divide it; and columns of so short a K
/// that to find rows takes longer than to read an expert's again, as of B.
constexpr int64_t narrowBlocks = 16, narrowWarps = 16, shortColumns = 256;
/// Columns of a K that is taken whole where rows are many, and of its parts, at
/// least.
constexpr int64_t wholeColumns = 1024, leastColumns = 32;
/// Lines of a weight of f32 that tiles of many rows read again: 128 of 2048
/// columns were measured, beside which more, and a longer K, are a guess.
constexpr int64_t mostNarrowColumns = 512;
/// Workgroup memory that #kf.stream does with where it can have as much.
constexpr int64_t streamMemory = 48 * 1024;

class StreamPolicy {
public:
  StreamPolicy(KernelOp kernel, ProductOpInterface op,
               const MachineDescription &machine, int64_t rows)
      : kernel(kernel), op(op), machine(machine), rows(rows) {
    auto w = cast<RankedTensorType>(op.getW().getType());
    tile = *getFragmentTile(w.getElementType());
    extent = w.getShape().back();
    hasBlocks = isa<QuantType>(w.getElementType());
    ofBlock = ::kf::FragmentTile::rows / (op.getGlu() ? 2 : 1);
    blocks = llvm::divideCeil(
        cast<RankedTensorType>(op.getResult().getType()).getShape().back(),
        ofBlock);
    if (auto product = dyn_cast<ExpertMatmulOp>(op.getOperation())) {
      setExperts(product);
    } else if (rows > kGpuFewRows && !hasBlocks) { // blocks: selectHeld()
      copies = llvm::divideCeil(rows, kGpuFewRows);
      this->rows = kGpuFewRows;
    }
  }

  StreamScheduleAttr select() {
    auto matmul = dyn_cast<MatmulOp>(op.getOperation());
    if (matmul && rows > StreamShape::mostSplitRows && canHoldRows(matmul))
      return selectHeld();
    if (rows > 8 && machine.memory <= streamMemory && !isOfExperts)
      rows = llvm::divideCeil(rows, 2);
    if (isShort() && rows <= StreamShape::mostSplitRows)
      if (StreamScheduleAttr own = selectShort())
        return own;
    if (rows <= StreamShape::mostSplitRows)
      if (StreamScheduleAttr whole = selectWhole())
        return whole;
    if (isNarrow())
      if (StreamScheduleAttr own = selectNarrow())
        return own;
    return isOfExperts ? selectExpertParts() : selectParts();
  }

private:
  //===--- Rows with experts ----------------------------------------------===//

  /// Rows of an expert at a time: as many as an expert has where all have as
  /// many, and some more, for some have. Fewer warps where K has too few tiles
  /// for all of them.
  void setExperts(ExpertMatmulOp product) {
    const int64_t top =
        cast<RankedTensorType>(product.getExperts().getType()).getDimSize(1);
    const int64_t tokens = rows, places = tokens * top;
    const int64_t all = std::max<int64_t>(product.countExperts(), 1);
    isOfExperts = true;
    isOfAdapters = top == 1 && !hasBlocks;
    // As rows of other products are that have codes.
    isRounded = hasBlocks && tokens > kGpuFewRows;
    const int64_t most =
        isRounded ? mostExpertRoundedRows : mostExpertSplitRows;
    rows = StreamShape::mostSplitRows;
    while (rows < most && rows * all < spareOfExpert * places)
      rows *= 2;
    rows = std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(tokens), 1, rows);
    rows = std::min(rows, rowsForAll(places));
    copies = countExpertGroups(product, tokens, rows);
    const int64_t units = llvm::divideCeil(extent, tiles() * tile.columns);
    warps = isNarrow() ? narrowWarps : mostWarps;
    for (int64_t all = warps, count = all; count > 0; --count)
      if (costOfWarps(units, count, all) < costOfWarps(units, warps, all))
        warps = count;
  }

  /// Whether K is read at once, as that of an adapter's B.
  bool isShort() const { return isOfAdapters && extent <= shortColumns; }

  /// Whether an expert has few lines, as an adapter's A has.
  bool isNarrow() const {
    return isOfAdapters && !isShort() && blocks <= narrowBlocks;
  }

  /// Rows of an expert at a time, at most, with which all multiprocessors have
  /// something to do. A workgroup takes the experts of its rows one after the
  /// other: with few lines, or a K that is read at once, it is better to have a
  /// workgroup for each row, though two may read the same expert.
  int64_t rowsForAll(int64_t places) const {
    if (!isShort() && !isNarrow())
      return mostExpertRoundedRows;
    const int64_t groups =
        isNarrow() ? blocks : llvm::divideCeil(blocks, mostExpertBlocks);
    // A short K is read at once, so that only another workgroup hides its wait.
    const int64_t wanted =
        (isShort() ? 2 : 1) * expertGroups * machine.multiprocessors;
    int64_t rows = mostExpertRoundedRows;
    while (rows > 1 &&
           static_cast<int64_t>(llvm::divideCeil(places, rows)) * groups <
               wanted)
      rows /= 2;
    return rows;
  }

  /// Columns of K at a time, the most first: all where K is short, for a second
  /// part would be past its end for the most; else as many parts as 512, 256
  /// and so on make, whose sizes are equal multiples of `unit`. What has fewer
  /// stages is tried later, so that of a K that fits whole with these alone
  /// parts are taken.
  SmallVector<int64_t> findPartsOfK(int64_t unit) const {
    SmallVector<int64_t> sizes;
    const int64_t all = llvm::alignTo(extent, unit);
    if (all <= wholeColumns)
      sizes.push_back(all);
    for (int64_t most = wholeColumns / 2; most >= leastColumns; most /= 2) {
      const int64_t parts = llvm::divideCeil(all, llvm::alignTo(most, unit));
      const int64_t size = llvm::alignTo(llvm::divideCeil(all, parts), unit);
      if (!llvm::is_contained(sizes, size))
        sizes.push_back(size);
    }
    return sizes;
  }

  /// Of so few lines that parts of K would leave most warps nothing: fewer rows
  /// at a time, and then fewer warps, with all of K.
  StreamScheduleAttr selectNarrow() {
    if (2 * llvm::divideCeil(blocks, 2) >= mostWarps)
      return {};
    const int64_t allRows = rows, allWarps = warps;
    for (; warps >= std::min(allWarps, mostWarps / 2); warps /= 2)
      for (rows = std::min(allRows, StreamShape::mostSplitRows); rows > 0;
           rows /= 2)
        if (StreamScheduleAttr whole = selectWhole())
          return whole;
    rows = allRows;
    warps = allWarps;
    return {};
  }

  /// Of a short K, each warp has two row blocks, which it takes in one step:
  /// there is nothing to divide or to wait for twice.
  StreamScheduleAttr selectShort() {
    const int64_t all = llvm::alignTo(extent, tiles() * tile.columns);
    const int64_t each =
        llvm::divideCeil(blocks * copies, 4 * machine.multiprocessors);
    const int64_t width = std::min({2 * each, mostExpertBlocks, blocks});
    const int64_t others = std::exchange(warps, llvm::divideCeil(width, 2));
    for (int64_t stages : {3, 2})
      if (auto schedule = get(width, stages, all);
          fits(schedule, machine.memory))
        return schedule;
    warps = others;
    return {};
  }

  /// Of more rows, warps have row blocks of their own, and all of K: as many
  /// warps as there is memory for, and of x as much at a time as there is.
  StreamScheduleAttr selectExpertParts() {
    const int64_t ofWarp = hasBlocks ? 1 : 2;
    const SmallVector<int64_t> sizes = findPartsOfK(tiles() * tile.columns);
    for (int64_t width = std::min(blocks, mostExpertBlocks); width > 0;
         width = width == 1 ? 0 : llvm::divideCeil(width, 2)) {
      warps = llvm::divideCeil(width, ofWarp);
      for (int64_t stages : {3, 2})
        for (int64_t columns : sizes)
          if (auto schedule = get(width, stages, columns);
              fits(schedule, machine.memory))
            return schedule;
    }
    return {};
  }

  //===--- Rows that are split --------------------------------------------===//

  static constexpr int64_t mostWarps = 8;

  /// Tiles of a step. Sums depend on them, so that they are the same for all
  /// rows that are multiplied as two numbers.
  int64_t tiles() const {
    if (hasBlocks)
      return 1;
    const int64_t least = StreamShape::pairColumns / tile.columns;
    return std::max<int64_t>(least, machine.memory >= 2 * streamMemory ? 4 : 2);
  }

  StreamScheduleAttr get(int64_t width, int64_t stages, int64_t reduction) {
    SmallVector<int64_t> workgroup = {rows, width * ofBlock};
    if (isOfExperts)
      workgroup.insert(workgroup.begin() + 1, 1);
    return getSharedStreamSchedule(op, workgroup, isRounded, warps, tiles(),
                                   stages, reduction);
  }
  FailureOr<KernelShape> shapeOf(StreamScheduleAttr schedule) {
    return getKernelShape(kernel, schedule, nullptr);
  }
  bool fits(StreamScheduleAttr schedule, int64_t budget) {
    auto shape = shapeOf(schedule);
    return succeeded(shape) && shape->workgroupBytes <= budget &&
           (!isOfExperts ||
            shape->stream->blocks * groupsPerDimension >= blocks);
  }

  int64_t groupsOf(int64_t width) const {
    return llvm::divideCeil(blocks, width) * copies;
  }

  /// Row blocks of each of `groups` workgroups, no more than there are; of
  /// experts, whose rows are not known, no more than leave others something.
  int64_t widthFor(int64_t groups) const {
    const int64_t width = llvm::divideCeil(blocks * copies, groups);
    return std::min({width, blocks, isOfExperts ? mostFewBlocks : blocks});
  }

  /// Row blocks of a workgroup where multiprocessors have several, one after
  /// the other.
  SmallVector<int64_t> findWidths() const {
    SmallVector<int64_t> widths;
    for (int64_t each : {1, 2, 3, 4, 6, 8, 12, 16})
      widths.push_back(widthFor(each * machine.multiprocessors));
    widths.push_back(1);
    llvm::erase_if(widths, [&](int64_t width) {
      return int64_t(llvm::divideCeil(blocks, width)) > groupsPerDimension;
    });
    return widths;
  }

  /// The same where all are there at once, one or two for each multiprocessor:
  /// what leaves the least to the one that has most, and then the fewest.
  SmallVector<int64_t> findResidentWidths() const {
    const int64_t multiprocessors = machine.multiprocessors;
    auto mostOf = [&](int64_t width) -> int64_t {
      return llvm::divideCeil(groupsOf(width), multiprocessors) * width;
    };
    SmallVector<int64_t> widths;
    for (int64_t width = llvm::divideCeil(blocks, 2 * multiprocessors);
         groupsOf(width) > multiprocessors; ++width)
      widths.push_back(width);
    widths.push_back(llvm::divideCeil(blocks, multiprocessors));
    llvm::sort(widths, [&](int64_t one, int64_t other) {
      return std::pair(mostOf(one), one) < std::pair(mostOf(other), other);
    });
    return widths;
  }

  /// Whole rows of x in workgroup memory: two workgroups for each
  /// multiprocessor with half its memory each, or one that takes more. Where it
  /// has one and room for two, those of the next kernel, which begins early,
  /// would come in pairs to some.
  StreamScheduleAttr selectWhole() {
    const int64_t memory = machine.memory;
    const int64_t half = memory > streamMemory ? memory / 2 - 512 : memory;
    if (isOfExperts) { // by measurement: a ring of three stages
      for (int64_t width :
           {widthFor(expertGroups * machine.multiprocessors), int64_t(1)})
        for (int64_t stages : {4, 3, 2})
          if (stages < 4 || isNarrow())
            if (auto schedule = get(width, stages, 0); fits(schedule, memory))
              return schedule;
      return {};
    }
    for (int64_t width : findResidentWidths())
      if (groupsOf(width) > machine.multiprocessors) {
        for (int64_t stages : {4, 3, 2})
          if (auto schedule = get(width, stages, 0); fits(schedule, half))
            return schedule;
      } else {
        for (int64_t stages : {4, 5, 6, 8})
          if (auto schedule = get(width, stages, 0);
              fits(schedule, memory) && !fits(schedule, half))
            return schedule;
      }
    for (int64_t width : findWidths())
      for (int64_t stages : {4, 3, 2})
        if (auto schedule = get(width, stages, 0); fits(schedule, memory))
          return schedule;
    return {};
  }

  /// Parts of rows, as few as fit, which are a multiple of what all warps take.
  StreamScheduleAttr selectParts() {
    const int64_t unit = tiles() * tile.columns;
    const int64_t steps = llvm::divideCeil(extent, warps * unit);
    const SmallVector<int64_t> widths = findWidths();
    for (int64_t stages : {4, 3, 2})
      for (int64_t width : widths) {
        auto shape = shapeOf(get(width, stages, warps * unit));
        if (failed(shape))
          continue;
        const int64_t shares = shape->stream->sharesAtOnce();
        for (int64_t slices = 1; slices <= steps; ++slices)
          if (auto schedule =
                  get(width, stages,
                      llvm::divideCeil(steps, slices) * shares * unit);
              fits(schedule, machine.memory))
            return schedule;
      }
    return {};
  }

  //===--- Rows that are held ---------------------------------------------===//

  /// Workgroups of a cluster, which divide `slices` slices of K: as many as
  /// have some each, but a power of two, and where memory is to be kept busy
  /// only two, which leave no multiprocessor out.
  int64_t partsOf(int64_t slices) const {
    if (!machine.hasClusters())
      return 1;
    int64_t parts = hasBlocks ? 4 : 2;
    auto slicesOfEach = [&] { return llvm::divideCeil(slices, parts); };
    while (parts != int64_t(llvm::divideCeil(slices, slicesOfEach())))
      parts /= 2;
    return parts;
  }

  /// Of rows of 16 bits, which warps hold: one workgroup for each
  /// multiprocessor, or one of a cluster, with as few slices of K as registers
  /// allow; or two, where rows take no more than half of these, and all no more
  /// than half of its memory.
  StreamScheduleAttr selectHeld() {
    // Of blocks, few warps that have more each are faster: sums are added up
    // for fewer.
    const int64_t mostWarps = hasBlocks ? mostHeldWarps / 2 : mostHeldWarps;
    const int64_t heldRows = llvm::divideCeil(rows, 8); // tiles of them
    const int64_t most =
        llvm::bit_floor<uint64_t>(heldColumns * (hasBlocks ? 4 : 2) / heldRows);
    struct Division {
      int64_t warps, columns;
      double cost;
    };
    SmallVector<Division> divisions;
    const int64_t least = std::max(tile.columns, heldColumns / 2);
    for (int64_t warps = mostWarps; warps > 0; --warps)
      for (int64_t columns = most; columns >= least; columns /= 2) {
        const int64_t slices = llvm::divideCeil(extent, warps * columns);
        // What is read past the end, what it costs to read x, and warps that
        // there could be more of.
        const double padded = static_cast<double>(slices * warps * columns);
        divisions.push_back(
            {warps, columns,
             padded * (1 + 0.04 * static_cast<double>(slices) +
                       0.02 * static_cast<double>(mostWarps - warps))});
      }
    llvm::sort(divisions, [](const Division &one, const Division &two) {
      return std::tie(one.cost, two.warps) < std::tie(two.cost, one.warps);
    });
    const int64_t half =
        machine.memory > streamMemory ? machine.memory / 2 - 512 : 0;
    // Of more rows, tiles do better than what leaves warps idle, or takes
    // several rounds.
    const bool isWhole = rows > kGpuFewRows;
    if (isWhole)
      divisions.truncate(1);
    // Of wide weights on little memory, narrower workgroups, whose sums fit.
    for (int64_t each : {1, 2, 4, 8}) {
      if (isWhole && each > 1)
        break;
      for (const Division &division : divisions)
        for (int64_t stages : {4, 3, 2}) {
          const int64_t reduction = division.warps * division.columns;
          const int64_t slices = llvm::divideCeil(extent, reduction);
          const int64_t parts = partsOf(slices);
          // Of a slice's blocks, all tiles at a time: steps of one take more
          // registers.
          const int64_t atOnce =
              hasBlocks && slices > 1 ? division.columns : heldColumns / 4;
          const int64_t tiles = std::max<int64_t>(atOnce / tile.columns, 1);
          auto getHeld = [&](int64_t groups) {
            int64_t width =
                std::max(llvm::divideCeil(blocks, groups),
                         llvm::divideCeil(blocks, groupsPerDimension));
            return StreamScheduleAttr::get(
                kernel.getContext(), {rows, width * ofBlock}, division.warps,
                tiles, stages, MatrixUnit::MmaSync, RowForm::Rounded,
                OperandPlace::Registers, /*block_warps=*/1, /*blocks=*/1,
                reduction, parts);
          };
          auto bytesOf = [&](StreamScheduleAttr schedule) {
            auto shape = shapeOf(schedule);
            return failed(shape) ? INT64_MAX : shape->workgroupBytes;
          };
          const int64_t groups =
              each * costs.countClustersAtOnce(machine, parts);
          if (auto two = getHeld(2 * groups);
              division.warps <= mostHeldWarps / 2 &&
              reduction * heldRows <= mostHeldWarps * heldColumns &&
              blocks > groups && bytesOf(two) <= half)
            return two;
          if (auto one = getHeld(groups); bytesOf(one) <= machine.memory)
            return one;
        }
    }
    return {};
  }

  KernelOp kernel;
  ProductOpInterface op;
  const MachineDescription &machine;
  const GpuCosts costs = getGpuCosts(machine);
  int64_t rows;
  ::kf::FragmentTile tile; // of the weight
  int64_t extent = 0;      // K
  bool hasBlocks = false;  // the weight
  int64_t ofBlock = 0;     // columns of a row block
  int64_t blocks = 0;      // row blocks
  int64_t warps = mostWarps;
  bool isOfExperts = false, isOfAdapters = false, isRounded = false;
  int64_t copies = 1; // workgroups that have the same columns
};

} // namespace

/// What multiplies few rows by weights of `element`.
static MatrixUnit unitFor(Type element) {
  const SmallVector<MatrixUnit> units = findUnits(kForFewRows);
  const MatrixUnit *unit = llvm::find_if(units, [&](MatrixUnit unit) {
    return multiplies(unit, getUnitElement(element));
  });
  assert(unit != units.end() && "weights with fragments have a unit");
  return *unit;
}

StreamScheduleAttr mlir::kf::getSharedStreamSchedule(
    ProductOpInterface op, ArrayRef<int64_t> workgroup, bool areRounded,
    int64_t warps, int64_t tiles, int64_t stages, int64_t reduction) {
  const Type w = getElementTypeOrSelf(op.getW().getType());
  const int64_t ofBlock = ::kf::FragmentTile::rows / (op.getGlu() ? 2 : 1);
  const int64_t all = workgroup.back() / ofBlock;
  int64_t blocks = 1, blockWarps = 1;
  if (workgroup[0] > StreamShape::mostSplitRows || reduction != 0) {
    if (!isa<QuantType>(w))
      blocks = std::clamp<int64_t>(all, 1, 2);
    while (blocks * blockWarps < all && blockWarps < warps)
      do
        ++blockWarps;
      while (warps % blockWarps != 0);
  }
  const MatrixUnit unit = unitFor(w);
  const RowForm rows = areRounded                      ? RowForm::Rounded
                       : takesRows(unit, RowForm::F32) ? RowForm::F32
                                                       : RowForm::Split;
  return StreamScheduleAttr::get(op->getContext(), workgroup, warps, tiles,
                                 stages, unit, rows, OperandPlace::Shared,
                                 blockWarps, blocks, reduction, /*parts=*/1);
}

int64_t mlir::kf::countExpertGroups(ExpertMatmulOp op, int64_t tokens,
                                    int64_t rows) {
  const int64_t places =
      tokens * cast<RankedTensorType>(op.getType()).getDimSize(1);
  return std::min(places,
                  std::max<int64_t>(op.countExperts(), 1) + places / rows);
}

/// Whether many rows of f32 are multiplied with few lines of f32, as a router
/// has: in tiles of few rows, for which a weight of this size comes from the
/// nearer cache again. Products of training, whose rows are known, have
/// schedules of their own.
static bool isNarrowOfSingles(ProductOpInterface op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  return getElementTypeOrSelf(op.getX().getType()).isF32() &&
         getElementTypeOrSelf(op.getW().getType()).isF32() &&
         type.isDynamicDim(0) && type.getShape().back() <= mostNarrowColumns;
}

StreamScheduleAttr
mlir::kf::selectStreamSchedule(KernelOp kernel, ProductOpInterface op,
                               const MachineDescription &machine,
                               int64_t tokens) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto w = cast<RankedTensorType>(op.getW().getType());
  const int64_t rows = type.isDynamicDim(0) ? tokens : type.getDimSize(0);
  const bool isOfExperts = isa<ExpertMatmulOp>(op.getOperation());
  if (isOfExperts && type.getDimSize(1) > groupsPerDimension)
    return {};
  if (!machine.has(MatrixUnit::MmaSync) || !hasFragments(w) || op.getScales())
    return {};
  auto matmul = dyn_cast<MatmulOp>(op.getOperation());
  const bool isFew =
      rows <= kGpuFewRows ||
      (rows <= mostHeldOfBlocks && machine.hasClusters() &&
       isa<QuantType>(w.getElementType()) && matmul && canHoldRows(matmul));
  if (!isFew && !isOfExperts && !isNarrowOfSingles(op))
    return {};
  return StreamPolicy(kernel, op, machine, rows).select();
}
