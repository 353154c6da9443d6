//===- CostModel.cpp - How long kernels take on CPUs ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/decisions/cost-model.md says what is counted and where the constants
// come from. Time within a thread is counted in slots: one is the time of a
// multiply-add of vectors at the machine's full rate, of which usual cores do
// two a cycle.
//
//===----------------------------------------------------------------------===//

#include "CostModel.h"

#include "kf/Conversion/VectorSchedule.h"
#include "kf/Transforms/CountWork.h"
#include "runtime/measure/MachineRates.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

/// Bytes that a core takes from its second cache a slot, and from the third.
constexpr double kSecondCacheRate = 16, kThirdCacheRate = 5;

/// Slots: from an addition to one that needs it; what is issued in one.
constexpr double kLatency = 8, kIssued = 3;
/// Of a product of tiles: its operations, its slots where the rate is not
/// known, and how many times as long it takes until its sum can be added to.
constexpr double kTileFlops = 2.0 * amxTile * amxTile * 2 * amxTile,
                 kTileProduct = 32, kTileLatency = 3.25;
/// Bytes of a tile, and how many of them the nearest cache gives a slot.
constexpr double kTileBytes = 1024, kFirstCacheRate = 64;
/// Slots that a workgroup takes to be claimed and called.
constexpr double kGroupSlots = 1500;

struct Core {
  Core(const MachineDescription &machine, const ::kf::MachineRates &rates,
       const CpuCosts &costs)
      : costs(costs), lanes(machine.vectorLanes),
        registers(machine.vectorRegisters),
        threads(rates.threads > 0 ? rates.threads : machine.multiprocessors),
        caches(machine.caches) {
    slotsPerSecond = 2 * machine.usualHertz;
    if (rates.f32FlopsPerSecond > 0)
      slotsPerSecond = rates.f32FlopsPerSecond / threads / (2.0 * lanes);
    if (rates.i8OpsPerSecond > 0)
      dotSlots =
          slotsPerSecond / (rates.i8OpsPerSecond / threads / (8.0 * lanes));
    if (rates.bf16FlopsPerSecond > 0) {
      double flops = rates.bf16FlopsPerSecond / threads;
      tileSlots = slotsPerSecond / (flops / kTileFlops);
      pairSlots = slotsPerSecond / (flops / (4.0 * lanes));
    }
    double read = rates.readBytesPerSecond > 0
                      ? rates.readBytesPerSecond
                      : machine.usualReadBytesPerSecond * threads;
    memoryRate = read / threads / slotsPerSecond;
  }

  const CpuCosts &costs;
  double lanes;
  double registers;
  int64_t threads;
  CacheSizes caches;
  double slotsPerSecond;
  double dotSlots = 1; // of a vector of 4-byte products
  double tileSlots = kTileProduct;
  double pairSlots = 1;  // of a vector of products of pairs
  double memoryRate = 1; // bytes a slot, while all threads read

  /// Two of what runs at the same time: the shorter one does not hide entirely
  /// behind the other.
  double overlap(double a, double b) const {
    return std::max(a, b) + costs.overlap * std::min(a, b);
  }

  /// Slots to bring `bytes` to the first-level cache from the cache where a
  /// working set of `workingSet` bytes stays.
  double reload(double bytes, double workingSet) const {
    if (workingSet <= caches.first)
      return 0;
    if (workingSet <= caches.second)
      return bytes / kSecondCacheRate;
    return bytes / std::max(memoryRate,
                            workingSet <= caches.third ? kThirdCacheRate : 0);
  }

  /// Slots of a loop's step: what its ports, its chain of additions and its
  /// front end take, whichever is the longest.
  double step(double arithmetic, double loads, double chain,
              double others) const {
    return std::max(
        {arithmetic, loads, chain, (arithmetic + loads + others) / kIssued});
  }

  /// Seconds of `count` workgroups that take `slots` altogether: all workers
  /// are busy until the last round, which is not full.
  double seconds(double slots, int64_t count) const {
    double rounds = llvm::divideCeil(count, threads);
    return (slots + kGroupSlots * count) * rounds / count / slotsPerSecond;
  }
};

/// Parts of `extent` that tiles of `size` make: whole ones, and the last one's
/// size, if it is smaller.
struct Parts {
  Parts(int64_t extent, int64_t size)
      : size(size), whole(extent / size), rest(extent % size) {}
  int64_t size, whole, rest;
  int64_t count() const { return whole + (rest > 0); }

  /// The sum of `of(size)` over all parts.
  template <typename Fn> double sum(Fn of) const {
    return (whole ? whole * of(size) : 0.0) + (rest ? of(rest) : 0.0);
  }
};

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

class MatmulCost {
public:
  MatmulCost(ProductOpInterface op, VectorScheduleAttr schedule,
             const Core &core, int64_t tokens)
      : op(op), schedule(schedule), core(core),
        weight(cast<RankedTensorType>(op.getW().getType())),
        quant(dyn_cast<QuantType>(weight.getElementType())) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    rows = x.isDynamicDim(0) ? tokens : x.getDimSize(0);
    extent = x.getShape().back();
    columns = weight.getShape().end()[-2];
    tileRows = schedule.getTile()[0];
    panel = schedule.getTile()[1];
    vectors = (op.getGlu() ? 2 : 1) * panel / schedule.getLanes();
    ArrayRef<int64_t> workgroup = schedule.getWorkgroup();
    groupRows = workgroup.empty() || workgroup[0] == 0 ? rows : workgroup[0];
    if (auto product = dyn_cast<ExpertMatmulOp>(op.getOperation()))
      setExperts(product);
    int8 = multipliesBytes(schedule.getDot());
    inTiles = schedule.getDot() == DotKind::BF16;
    inPairs = schedule.getDot() == DotKind::BF16Pairs;
    if (op.getGlu() && (int8 || schedule.getGroups() == GroupOrder::InTurn))
      turns = 2;
    unpacks = schedule.getPanels() == PanelUse::Unpacked;
    // Of a known number of rows the measured tables fit better without.
    shares = schedule.getPanels() == PanelUse::Shared && x.isDynamicDim(0);
  }

  double seconds() {
    auto sizeOf = [&](size_t loop, int64_t whole) {
      ArrayRef<int64_t> sizes = schedule.getWorkgroup();
      int64_t size = loop < sizes.size() ? sizes[loop] : 0;
      return size ? std::min(size, whole) : whole;
    };
    Parts rowGroups(rows, std::min(groupRows, rows));
    Parts columnGroups(columns,
                       sizeOf(experts ? 2 : 1, llvm::alignTo(columns, panel)));
    // The first group of rows has panels from memory, others from where the
    // weight stays.
    double all = columns * vectors * schedule.getLanes() / panel * extent *
                 weightBytes();
    freshRate =
        rowGroups.count() /
        (1 / core.memoryRate + (rowGroups.count() - 1) * core.reload(1, all));
    double slots = rowGroups.sum([&](int64_t groupRows) {
      return columnGroups.sum([&](int64_t groupColumns) {
        return ofGroup(groupRows, llvm::divideCeil(groupColumns, panel));
      });
    });
    if (experts)
      return core.seconds(slots * experts, columnGroups.count() * placesApart);
    return core.seconds(slots, rowGroups.count() * columnGroups.count());
  }

private:
  /// Rows are those of one expert then, of as many experts as rows choose, all
  /// alike.
  void setExperts(ExpertMatmulOp product) {
    const int64_t top =
        cast<RankedTensorType>(product.getExperts().getType()).getDimSize(1);
    experts = std::min(rows * top, product.countExperts());
    placesApart = schedule.getWorkgroup()[1] == 1 ? top : 1;
    groupRows = schedule.getTile()[2];
    rows = llvm::divideCeil(rows * top, experts);
  }

  double ofGroup(int64_t groupRows, int64_t panels) {
    if (inTiles)
      return ofTiles(groupRows, panels);
    // Rows that are left make smaller tiles.
    double tiles = static_cast<double>(groupRows) / tileRows;
    double elements = vectors * schedule.getLanes() * extent;
    double panelBytes = elements * weightBytes();
    double rowBytes = extent * (int8 ? 1.25 : inPairs ? 2.0 : 4.0);
    double compute = turns * (sums() + kLatency * 4) + tileRows * vectors * 4;
    // Each panel comes from afar for the first tile, or to be unpacked, and
    // stays in a cache beside the rows of the next; all rows come by once a
    // panel.
    double fetch = panelBytes / freshRate, first = 0;
    if (unpacks) {
      panelBytes = elements * (int8 ? 1.3 : inPairs ? 2.0 : 4.0);
      first = core.overlap(unpackSlots(), fetch);
    }
    // Units come once for all tiles, which find them in the nearest cache.
    if (shares)
      return groupRows * rowSlots() +
             panels * core.overlap(unpackSlots() + tiles * compute, fetch);
    double tileBytes = tileRows * rowBytes;
    double ofRows = core.reload(tileBytes, panelBytes + groupRows * rowBytes);
    double others = core.overlap(
        compute, core.reload(panelBytes, panelBytes + tileBytes) + ofRows);
    if (!unpacks) {
      const double whole = std::min(tiles, 1.0);
      first = core.overlap(whole * compute, fetch + whole * ofRows);
      tiles -= whole;
    }
    return groupRows * rowSlots() + panels * (first + tiles * others);
  }

  /// Whether code for the schedule unpacks panels while tiles multiply, whose
  /// workgroups may have fewer rows at the end.
  bool unpacksMeanwhile() const {
    ArrayRef<int64_t> workgroup = schedule.getWorkgroup();
    const int64_t size = workgroup.size() > 1 ? workgroup[1] : 0;
    return unpacksAhead(llvm::divideCeil(groupRows, tileRows),
                        llvm::divideCeil(size ? size : columns, panel), extent,
                        schedule.getReduction());
  }

  /// Products of tiles: all panels for a part of K, and then the next part.
  double ofTiles(int64_t groupRows, int64_t panels) {
    double tiles = llvm::divideCeil(groupRows, tileRows);
    double rowTiles = tileRows / amxTile, columnTiles = panel / amxTile;
    double steps = llvm::divideCeil(extent, 2 * amxTile), ofPart = steps;
    if (schedule.getReduction())
      ofPart = std::min(steps, schedule.getReduction() / (2.0 * amxTile));
    double independent = rowTiles * columnTiles;
    double products = independent * core.tileSlots *
                      std::max(1.0, kTileLatency / independent);
    // A step of the weight's panel comes for every tile of rows, and one of x
    // for every panel.
    double ofWeight = columnTiles * kTileBytes, ofX = rowTiles * kTileBytes;
    const bool overlaps = unpacksMeanwhile();
    // The next panel is written beside the one that is multiplied.
    double weightSet = ofPart * ofWeight * (overlaps ? 2 : 1);
    double xSet = ofPart * ofX * tiles;
    double loads = (ofWeight + ofX) / kFirstCacheRate +
                   core.reload(ofWeight, weightSet + ofPart * ofX) +
                   core.reload(ofX, weightSet + xSet);
    double multiplied = steps * core.overlap(products, loads);
    // Sums go to the second-level cache and come back for each part.
    double stored = std::ceil(steps / ofPart) * independent * kTileBytes /
                    kSecondCacheRate * 2;
    double groupsOfPanel = vectors * schedule.getLanes() / panel;
    double fetch =
        vectors * schedule.getLanes() * extent * weightBytes() / freshRate;
    double unpack = core.overlap(unpackSlots(), fetch);
    multiplied *= groupsOfPanel * tiles;
    stored *= groupsOfPanel * tiles;
    if (overlaps) {
      // Beside rows that are there; the rest comes behind them, but for the
      // first panel, which comes before them.
      const double beside = unpack * std::min(tiles / amxTurn, 1.0);
      return groupRows * rowSlots() + unpack +
             panels * (core.overlap(multiplied, beside) + stored) +
             (panels - 1) * (unpack - beside);
    }
    return groupRows * rowSlots() + panels * (unpack + multiplied + stored);
  }

  /// Slots to write bytes or floats for a panel's elements.
  double unpackSlots() const {
    if (!quant)
      return extent * vectors * (inTiles || inPairs ? 2 : conversion() + 1.5);
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    double unit = ::kf::PackedBlock::unit;
    // Codes with an offset of the format's own are floats an instruction
    // sooner.
    const double ofTile = format.minOffset < 0 && !format.table ? 18 : 22;
    double ofVector = unit / 4 *
                          (codesOfQuad(format) + (int8      ? 1
                                                  : inTiles ? ofTile
                                                            : 14)) +
                      unit / format.subBlock * (scalesOfSubBlock(format) + 3);
    return extent / unit * vectors * ofVector;
  }

  /// Slots to make floats of a vector of a dense weight: halves of pairs, or a
  /// conversion that takes two ports, behind what makes halves of bytes.
  double conversion() const {
    if (isa<Float8E4M3FNType>(weight.getElementType()))
      return 8;
    return weight.getElementType().isBF16()  ? 1
           : weight.getElementType().isF16() ? 2
                                             : 0;
  }

  /// Bytes of an element of the weight.
  double weightBytes() const {
    if (!quant)
      return weight.getElementTypeBitWidth() / 8.0;
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    return static_cast<double>(format.bytes) / format.elements;
  }

  /// Slots to make a row of x ready, which every workgroup does for itself.
  double rowSlots() {
    double ofVector = 3;
    if (Operation *norm = op.getX().getDefiningOp())
      ofVector += isa<RmsNormOp, LayerNormOp>(norm) ? 5 : 2;
    if (int8)
      ofVector = op.getScales() ? 0.5 : ofVector + 9;
    if (inTiles)
      ofVector += 2;
    if (inPairs)
      ofVector += 1;
    return extent / core.lanes * ofVector;
  }

  /// Vectors of a row of the tile that are summed up in one turn.
  double vectorsAtOnce() const { return vectors / turns; }

  /// Slots of a turn, which sums up a register tile over all of K.
  double sums() {
    if (!quant)
      return inPairs ? extent / 2.0 * pairStep() : extent * denseStep();
    return extent / ::kf::PackedBlock::unit * (int8 ? int8Unit() : floatUnit());
  }

  double spilled(double needed) const {
    return std::max(needed - core.registers, 0.0);
  }

  /// One k of a dense product.
  double denseStep() const {
    double ofRow = vectorsAtOnce(), sums = tileRows * ofRow;
    double bits = unpacks ? 32 : weight.getElementTypeBitWidth();
    double conversions = unpacks ? 0 : ofRow * conversion();
    double over = spilled(sums * schedule.getAccumulators() + ofRow + 2);
    double loads = ofRow * std::max(bits / 32.0, 0.5) + tileRows;
    return core.step(sums + conversions + core.costs.spill * over, loads,
                     kLatency / schedule.getAccumulators(),
                     2.0 / schedule.getUnroll());
  }

  /// Two k of a dense product of pairs, whose lanes are put together from
  /// halves of two rows.
  double pairStep() const {
    double ofRow = vectorsAtOnce(), sums = tileRows * ofRow;
    double conversions = unpacks ? 0 : ofRow * 2;
    double over = spilled(sums * schedule.getAccumulators() + ofRow + 1);
    return core.step(sums * core.pairSlots + conversions +
                         core.costs.spill * over,
                     ofRow + tileRows, kLatency / schedule.getAccumulators(),
                     2.0 / schedule.getUnroll());
  }

  /// Slots to take the codes of four neighbours, for each vector.
  double codesOfQuad(const ::kf::BlockFormat &format) const {
    auto plane = [](int bits) {
      // A load serves 8 / bits quads; all but the first are shifted.
      return bits == 0 ? 0.0 : bits / 8.0 + (1 - bits / 8.0) + (bits < 8);
    };
    double slots = plane(format.low.bits) + plane(format.high.bits);
    return slots + (format.high.bits ? 2 : 0) + (format.table ? 1 : 0);
  }

  /// Slots to take scales and minimums of a sub-block, for each vector.
  static double scalesOfSubBlock(const ::kf::BlockFormat &format) {
    if (format.subScales == ::kf::SubScales::None)
      return 2;
    return format.minOffset < 0 ? 3 : 6;
  }

  /// 32 k of a product in 8 bits.
  double int8Unit() {
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    double ofRow = vectorsAtOnce(), sums = tileRows * ofRow;
    double subBlocks = ::kf::PackedBlock::unit / format.subBlock;
    double quads = ::kf::PackedBlock::unit / 4.0;
    bool hasMins = format.minOffset >= 0;
    // Sums of blocks wait in memory where tiles share units.
    double over = (shares ? sums + spilled(sums + ofRow + 2)
                          : spilled(2 * sums + ofRow + 2)) *
                  2 * subBlocks;
    double decoded = unpacks || shares
                         ? 0
                         : quads * codesOfQuad(format) +
                               subBlocks * (scalesOfSubBlock(format) + 1);
    double arithmetic = ofRow * decoded + quads * sums * core.dotSlots +
                        subBlocks * sums * (hasMins ? 3 : 2);
    double loads = quads * (tileRows + ofRow) +
                   subBlocks * ((hasMins ? 3 : 2) * tileRows + 3 * ofRow) +
                   over;
    double chain = (quads + 2) * kLatency / 2 * subBlocks / 2;
    return core.step(arithmetic, loads, chain, subBlocks * 2 * tileRows);
  }

  /// 32 k with codes that become floats.
  double floatUnit() const {
    const ::kf::BlockFormat &format = getStorage(quant.getFormat());
    double unit = ::kf::PackedBlock::unit, ofRow = vectorsAtOnce();
    double sums = tileRows * ofRow;
    double subBlocks = unit / format.subBlock;
    bool hasMins = format.minOffset >= 0;
    double ofCode =
        unpacks ? 0 : 3.5 + (hasMins ? 1 : 0) + (format.table ? 2 : 0);
    double over =
        spilled(sums + ofRow * (hasMins ? 4 : 3) + 1) * core.costs.spill * unit;
    double decoded = unpacks ? 0
                             : unit / 4 * codesOfQuad(format) +
                                   subBlocks * scalesOfSubBlock(format);
    double arithmetic = over + ofRow * decoded + unit * (sums + ofRow * ofCode);
    return core.step(arithmetic,
                     unit * (tileRows + (unpacks ? 1 : 0.2) * ofRow),
                     unit * kLatency, subBlocks * 2);
  }

  ProductOpInterface op;
  VectorScheduleAttr schedule;
  const Core &core;
  RankedTensorType weight;
  QuantType quant; // null: floats
  int64_t rows, extent, columns;
  int64_t groupRows;               // that are made ready at once
  int64_t experts = 0;             // that rows choose; 0: there are none
  int64_t placesApart = 1;         // workgroups of a token's experts
  double tileRows, panel, vectors; // of a row of the tile
  double turns = 1;     // in which groups, as gate and up, are summed up
  double freshRate = 1; // bytes a slot, of panels that come from afar
  bool int8, inTiles, inPairs;
  bool unpacks, shares; // panels, and units of them, among register tiles
};

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

class AttentionCost {
public:
  AttentionCost(CacheAttentionInterface op, VectorScheduleAttr schedule,
                const Core &core, int64_t tokens)
      : op(op), schedule(schedule), core(core), cache(op.getCache().getType()) {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    rows = q.isDynamicDim(0) ? tokens : q.getDimSize(0);
    dim = q.getDimSize(2);
    group = q.getDimSize(1) / cache.getKvHeads();
    auto table = cast<RankedTensorType>(op.getPageTable().getType());
    double context = static_cast<double>(table.getDimSize(1)) * cache.getPage();
    // Of a prompt, rows see half of it; a few rows, half of a full context.
    sequences = table.isDynamicDim(0) ? 1 : table.getDimSize(0);
    seen = rows > sequences ? std::min<double>(rows, context) / 2 : context / 2;
  }

  double seconds() {
    ArrayRef<int64_t> workgroup = schedule.getWorkgroup();
    int64_t rowsOfGroup = workgroup.empty() || workgroup[0] == 0
                              ? rows
                              : std::min(workgroup[0], rows);
    double parts = 1;
    if (auto partial = dyn_cast<AttentionPartialOp>(op.getOperation()))
      parts = partial.getSplits();
    Parts groups(rows, rowsOfGroup);
    double slots = groups.sum([&](int64_t tokens) {
      return cache.getKvHeads() * parts * ofGroup(tokens, seen / parts);
    });
    return core.seconds(slots, groups.count() * cache.getKvHeads() * parts);
  }

private:
  /// A workgroup of `tokens` tokens that see `keys` keys.
  double ofGroup(int64_t tokens, double keys) {
    double tileKeys = schedule.getReduction();
    // Tokens of many sequences are alone.
    bool alone = sequences > 1 && rows <= 2 * sequences;
    double runs = alone ? tokens : 1, runRows = group * (alone ? 1 : tokens);
    double height = alone ? schedule.getTile().back() : schedule.getTile()[0];
    double blocks = std::ceil(runRows / height);
    // Of the last tile, and of the one that rows see in part, all is computed.
    double tiles = std::max(keys / tileKeys, 1.0) + 0.5;
    const bool inTiles = schedule.getDot() == DotKind::BF16 &&
                         !(alone && schedule.getTile().size() > 1);
    double tileBytes = 2 * tileKeys * dim * elementBytes();
    double compute = inTiles
                         ? unpackSlots(tileKeys) + blocks * ofTiles(tileKeys)
                         : blocks * ofBlock(height, tileKeys);
    double state = runRows * dim * 8;
    double memory = tileBytes / core.memoryRate +
                    core.reload(runRows * dim * 8, state + tileBytes);
    double prepare = runRows * dim / core.lanes * 8 + runRows * 20;
    return runs * (tiles * core.overlap(compute, memory) + prepare);
  }

  /// Keys and values of a tile, two vectors of which make a line of a tile.
  double unpackSlots(double keys) const {
    const double lines = keys * dim / amxTile;
    return lines * (4 + (elementBytes() < 2 ? 6 : 0));
  }

  /// 16 query rows and a tile of keys: products of tiles, which sums of values
  /// are brought to and back, and weights.
  double ofTiles(double keys) const {
    const double products = 2 * keys * dim / amxTile / (2 * amxTile);
    const double sums = dim / amxTile, scores = keys / amxTile;
    const double moved =
        (products + 2 * sums + 2 * scores) * kTileBytes / kFirstCacheRate;
    const double weights = amxTile * (keys / core.lanes * 24 + 60);
    return core.overlap(products * core.tileSlots, moved) + weights + 40;
  }

  /// `height` query rows and a tile of keys: scores, weights, sums of values.
  double ofBlock(double height, double keys) const {
    double lanes = schedule.getLanes(), vectors = keys / lanes;
    double over =
        std::max(height * vectors + vectors + 1 - core.registers, 0.0);
    double conversion = elementBytes() < 4 ? 1 : 0;
    double scores = dim * core.step(height * vectors + conversion * vectors +
                                        core.costs.spill * over,
                                    vectors + height, kLatency, 1);
    double weights = height * (vectors * 24 + 60);
    double pieces = std::ceil(dim / lanes);
    double atOnce = std::min(pieces, 8.0);
    double rowsAtOnce =
        std::clamp(std::floor((lanes == 16 ? 24 : 16) / atOnce), 1.0, height);
    while (std::fmod(height, rowsAtOnce) != 0)
      --rowsAtOnce;
    double values = keys * (height / rowsAtOnce) * (pieces / atOnce) *
                        core.step(rowsAtOnce * atOnce + conversion * atOnce,
                                  atOnce + rowsAtOnce, kLatency, 4) +
                    height * pieces * 4;
    return scores + weights + values + 40;
  }

  double elementBytes() const {
    if (auto quant = dyn_cast<QuantType>(cache.getType())) {
      const ::kf::BlockFormat &format = getStorage(quant.getFormat());
      return static_cast<double>(format.bytes) / format.elements;
    }
    return cache.getType().getIntOrFloatBitWidth() / 8.0;
  }

  CacheAttentionInterface op;
  VectorScheduleAttr schedule;
  const Core &core;
  KVCacheType cache;
  int64_t rows, sequences;
  double dim, group, seen;
};

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// What is read and written, once, and the workgroups that do it.
double secondsOfRows(KernelOp kernel, VectorScheduleAttr schedule,
                     const Core &core, int64_t rows) {
  double bytes = countBytes(kernel, rows);
  RankedTensorType tiled; // whose loops the workgroup tiles
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && (!tiled || kernel.getNumResults() > 0))
      tiled = tensor;
  double slots = std::max(bytes / core.memoryRate, bytes / 4 / core.lanes * 4);
  int64_t groups = 1;
  if (tiled)
    for (auto [dim, size] : llvm::enumerate(schedule.getWorkgroup()))
      if (size > 0 && dim < static_cast<size_t>(tiled.getRank()))
        groups *= llvm::divideCeil(
            tiled.isDynamicDim(dim) ? rows : tiled.getDimSize(dim), size);
  return core.seconds(slots, std::max<int64_t>(groups, 1));
}

} // namespace

const CpuCosts &mlir::kf::getCpuCosts() {
  static constexpr CpuCosts costs = {
#include "costs/emeraldrapids.inc"
  };
  return costs;
}

double mlir::kf::predictCpuSeconds(KernelOp kernel, VectorScheduleAttr schedule,
                                   const MachineDescription &machine,
                                   int64_t rows,
                                   const ::kf::MachineRates &rates,
                                   const CpuCosts &costs) {
  Core core(machine, rates, costs);
  for (Operation &op : kernel.getBody().front()) {
    if (auto product = dyn_cast<ProductOpInterface>(op))
      return MatmulCost(product, schedule, core, rows).seconds();
    if (auto attention = dyn_cast<CacheAttentionInterface>(op))
      return AttentionCost(attention, schedule, core, rows).seconds();
  }
  return secondsOfRows(kernel, schedule, core, rows);
}
