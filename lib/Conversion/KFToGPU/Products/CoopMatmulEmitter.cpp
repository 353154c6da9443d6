//===- CoopMatmulEmitter.cpp - Products on cooperative matrices -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The workgroup walks along K in steps of 32 columns, of which rows of x and
// lines of the weight are in workgroup memory. What the next step needs is in
// registers while subgroups multiply this one: rows as they are, of the weight
// the words that a lane has of its tiles (FragmentTile), which become elements
// on the way. Sums stay in the subgroups' matrices until the end, and go
// through workgroup memory, 16 rows at a time, to the threads that store them.
//
// Rows of f16 may have outliers (RowRange.h): where sums are not finite, all of
// it is done once more, with rows that are scaled behind each step's copy. A
// loop goes around everything for that, so that there is no second copy of the
// code.
//
// Of few rows, subgroups divide K (`shares`): each goes along columns of its
// own, with rows and lines of its own in workgroup memory, so that none waits
// for another before the end. What limits how many there are is that memory,
// which therefore has as many lines at a time as the subgroup's threads have of
// one tile each: a step takes the others in further passes. Sums of all shares
// are added up, in their order, where their lines were.
//
// Workgroup memory: rows [shares][rows][lineWords / 4] vectors of 16 bytes;
// lines [shares][linesAtOnce][lineWords] words; sums [16][sumStride] f32, which
// those of shares have instead of lines.
//
//===----------------------------------------------------------------------===//

#include "../Units/HalfPairs.h"
#include "../Units/RowRange.h"
#include "CoopRows.h"
#include "GPUMatmulEmitter.h"
#include "LaneTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::kf;

using Tile = ::kf::FragmentTile;

namespace {

/// Elements that a thread finishes before it stores them.
constexpr int64_t mostStoredAtOnce = 8;

/// Columns of a vector of 16 bytes, and vectors of a row's step.
constexpr int64_t vectorColumns = CoopShape::vectorColumns,
                  stepVectors = CoopShape::step / vectorColumns,
                  lineVectors = CoopShape::lineWords / 4;

/// Units of 16 columns of a span.
constexpr int64_t unitsOfSpan = Tile::span / LanesShape::unitColumns;

/// Sums of shares have room where their lines were, of which there are
/// blockLines or more.
constexpr int64_t unitRows = getUnitShape(MatrixUnit::CoopF16).rows;
static_assert(unitRows * (CoopShape::blockLines + CoopShape::sumPadding) <=
                  CoopShape::blockLines * CoopShape::lineWords &&
              unitRows <= CoopShape::lineWords);

class CoopMatmulEmitter : public GPUMatmulEmitter {
public:
  explicit CoopMatmulEmitter(GPUEmitter &emitter)
      : GPUMatmulEmitter(emitter), coop(*shape.coop), source(*findCoopRows(op)),
        outliers(e, op), vectorType(VectorType::get({4}, b.getI32Type())) {}

private:
  void emitProduct() override {
    element = op.getX().getType().getElementType();
    weight = findWeightRows(e, op);
    weightElement =
        cast<RankedTensorType>(weight.argument.getType()).getElementType();
    tile = *getFragmentTile(weightElement);
    tilesOfRow = tile.tilesOf(op.getW().getType().getShape().back());
    lastBlock = e.sub(e.ceilDiv(columns, coop.blockColumns), e.index(1));
    firstRow = e.index(0);
    for (OpFoldResult offset : source.offsets)
      firstRow = e.add(firstRow, e.index(offset));
    allocate();
    // Subgroups are whole, and as wide as the target says (VulkanProgram.cpp).
    const bool isDivided = coop.shares > 1;
    share = isDivided ? e.div(e.thread, coop.shareThreads()) : e.index(0);
    shareThread = isDivided ? e.rem(e.thread, coop.shareThreads()) : e.thread;
    Value warp = e.div(shareThread, coop.subgroup);
    warpRow = e.div(warp, coop.lineWarps);
    warpLine = e.rem(warp, coop.lineWarps);
    firstVector = e.scaled(share, coop.rows * lineVectors);
    firstWord = e.scaled(share, ofShare());
    if (!coop.hasOutliers)
      return multiplyTile();
    untilFinite();
  }

  void allocate() {
    xs = e.workgroupMemory(coop.shares * coop.rows * lineVectors, vectorType);
    ws = e.workgroupMemory(coop.shares * ofShare(), b.getI32Type());
    if (coop.shares == 1)
      sharedSums = e.workgroupMemory(coop.sharedSums(), b.getF32Type());
    table = LaneTiles::makeTable(e, weightElement);
    if (table && coop.shares > 1) // whose steps have barriers of subgroups
      e.barrier();
    if (coop.hasOutliers) {
      range.emplace(e, coop.rows);
      range->reset();
    }
  }

  /// The product, and once more with scaled rows where sums are not finite.
  void untilFinite() {
    const Type bit = b.getI1Type();
    Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    auto passes = scf::WhileOp::create(b, loc, {bit, bit}, ValueRange{yes, no});
    OpBuilder::InsertionGuard guard(b);
    Block *before =
        b.createBlock(&passes.getBefore(), {}, {bit, bit}, {loc, loc});
    scf::ConditionOp::create(b, loc, before->getArgument(0),
                             before->getArguments());
    Block *after =
        b.createBlock(&passes.getAfter(), {}, {bit, bit}, {loc, loc});
    isScaled = after->getArgument(1);
    e.ifThen(isScaled, [&] { findRange(); });
    multiplyTile();
    e.barrier();
    Value isFirst = arith::XOrIOp::create(b, loc, isScaled, yes);
    Value again = arith::AndIOp::create(b, loc, isFirst, range->isNoted());
    scf::YieldOp::create(b, loc, ValueRange{again, yes});
  }

  void findRange() {
    range->findByThreads(
        rows, extent / vectorColumns, [&](Value row, Value part) {
          Value read = memref::LoadOp::create(
              b, loc, e.bufferOf(source.argument), placeOf(row, part));
          return elementsOf(read, row, e.scaled(part, vectorColumns));
        });
  }

  //===--- Steps ----------------------------------------------------------===//

  /// Columns of K that all shares take together at a time.
  int64_t stride() const { return coop.shares * coop.roundColumns; }
  /// Those that they take in all.
  int64_t padded() const { return llvm::alignTo(extent, stride()); }

  void multiplyTile() {
    const int64_t spans = coop.roundColumns / CoopShape::step;
    Value begin = e.scaled(share, coop.roundColumns);
    SmallVector<Value> state = zeros();
    const size_t sums = state.size();
    llvm::append_range(state, loadRows(begin));
    const size_t ofRows = state.size() - sums;
    Read first = loadTiles(begin);
    forVectors(first, [&](Value &each) { state.push_back(each); });
    auto steps =
        e.loop(begin, e.index(padded()), e.index(stride()), state,
               [&](Value k, ValueRange before) {
                 SmallVector<Value> after(before.take_front(sums));
                 SmallVector<Value> vectors(
                     before.drop_front(sums).take_front(ofRows));
                 Value next = e.add(k, e.index(stride()));
                 Read tiles = first;
                 size_t at = sums + ofRows;
                 forVectors(tiles, [&](Value &each) { each = before[at++]; });
                 if (isa<QuantType>(weightElement)) {
                   Value part = e.rem(e.div(k, coop.roundColumns),
                                      tile.columns / coop.roundColumns);
                   for (auto &own : tiles)
                     own.front().part = part;
                 }
                 Read later;
                 SmallVector<Words> ahead;
                 if (isAhead()) {
                   findOwnScales(tiles);
                   ahead = wordsOfPass(tiles, 0, 0);
                 }
                 for (int64_t span = 0; span < spans; ++span) {
                   Value at = e.add(k, e.index(span * CoopShape::step));
                   const bool isLast = span + 1 == spans;
                   Operands left;
                   for (int64_t pass = 0; pass < coop.passes(); ++pass) {
                     stepBarrier();
                     if (pass == 0)
                       storeRows(vectors, at);
                     storePass(tiles, pass, span, ahead);
                     if (pass == 0)
                       scaleRows(at);
                     stepBarrier();
                     if (pass == 0) {
                       vectors = loadRows(
                           isLast ? next : e.add(at, e.index(CoopShape::step)));
                       if (isAhead() ? span == 0 : isLast)
                         later = loadTiles(next);
                     }
                     const bool isLastPass = pass + 1 == coop.passes();
                     if (isAhead() && !(isLast && isLastPass))
                       ahead = isLastPass ? wordsOfPass(tiles, 0, span + 1)
                                          : wordsOfPass(tiles, pass + 1, span);
                     multiplyPass(after, pass, left);
                   }
                 }
                 llvm::append_range(after, vectors);
                 forVectors(later, [&](Value &each) { after.push_back(each); });
                 return after;
               });
    storeTile(steps.getResults().take_front(sums));
  }

  /// Whether the words of a pass are made while units multiply those before it,
  /// and tiles of a round read while those before it are multiplied, from its
  /// first step on. Without shares, registers are for sums.
  bool isAhead() const { return coop.shares > 1; }

  /// Before operands of a step are replaced, and before they are multiplied.
  /// A share's are a subgroup's alone.
  void stepBarrier() {
    if (coop.shares == 1)
      return e.barrier();
    spirv::ControlBarrierOp::create(
        b, loc, spirv::Scope::Subgroup, spirv::Scope::Subgroup,
        spirv::MemorySemantics::AcquireRelease |
            spirv::MemorySemantics::WorkgroupMemory);
  }

  //===--- Rows of x ------------------------------------------------------===//

  /// Divides `size` steps of a loop among the threads of the share.
  void forShare(Value size, function_ref<void(Value)> body) {
    e.loop(shareThread, size, e.index(coop.shareThreads()), {},
           [&](Value number, ValueRange) {
             body(number);
             return SmallVector<Value>();
           });
  }

  /// Where the share has the vector number `part` of row `row` of a step.
  Value stagedAt(Value row, Value part) {
    return e.add(firstVector, e.add(e.scaled(row, lineVectors), part));
  }

  /// The vector number `part` of row `row`, in the argument's memory.
  Value placeOf(Value row, Value part) {
    Value line = e.scaled(e.add(firstRow, row), source.width / vectorColumns);
    return e.add(line, e.add(part, e.index(source.column / vectorColumns)));
  }

  /// Calls `body` with the row and the vector of a step, of each that this
  /// thread copies.
  void forVectorsOfRows(function_ref<void(Value row, Value part)> body) {
    for (int64_t i = 0; i < coop.rows * stepVectors; i += coop.shareThreads()) {
      Value number = e.add(shareThread, e.index(i));
      body(e.div(number, stepVectors), e.rem(number, stepVectors));
    }
  }

  /// What this thread copies of the step at column `k`. Behind the last row it
  /// is that one's, and behind the last column the last ones.
  SmallVector<Value> loadRows(Value k) {
    SmallVector<Value> vectors;
    Value last = e.sub(rows, e.index(1));
    Value lastPart = e.index(extent / vectorColumns - 1);
    forVectorsOfRows([&](Value row, Value part) {
      Value at = e.add(e.div(k, vectorColumns), part);
      at = e.select(e.isLess(at, lastPart), at, lastPart);
      row = e.select(e.isLess(row, last), row, last);
      vectors.push_back(memref::LoadOp::create(
          b, loc, e.bufferOf(source.argument), placeOf(row, at)));
    });
    return vectors;
  }

  /// Stores it, zeros where columns are behind the last one.
  void storeRows(ArrayRef<Value> vectors, Value k) {
    Value none = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vectorType, int32_t(0)));
    size_t at = 0;
    forVectorsOfRows([&](Value row, Value part) {
      Value value = vectors[at++];
      if (padded() != extent) {
        Value column = e.add(k, e.scaled(part, vectorColumns));
        value = e.select(e.isLess(column, e.index(extent)), value, none);
      }
      memref::StoreOp::create(b, loc, value, xs, stagedAt(row, part));
    });
  }

  /// The eight elements (f32) of f16 in `vector`, from column `column` of row
  /// `row` on, with outliers in their places.
  SmallVector<Value> elementsOf(Value vector, Value row, Value column) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < vectorColumns; ++i) {
      Value word = vector::ExtractOp::create(b, loc, vector, i / 2);
      if (i % 2 == 1)
        word = arith::ShRUIOp::create(b, loc, word, e.word(16));
      Value bits = arith::TruncIOp::create(b, loc, b.getI16Type(), word);
      Value half = arith::BitcastOp::create(b, loc, b.getF16Type(), bits);
      elements.push_back(outliers.replace(e.widen(half, b.getF16Type()),
                                          {row, e.add(column, e.index(i))}));
    }
    return elements;
  }

  /// Brings what this thread has stored of the step at column `k` into the
  /// range of f16, where rows are scaled.
  void scaleRows(Value k) {
    if (!coop.hasOutliers)
      return;
    e.ifThen(isScaled, [&] {
      Value all = e.index(coop.rows * stepVectors);
      forShare(all, [&](Value number) {
        Value row = e.div(number, stepVectors);
        Value part = e.rem(number, stepVectors);
        Value column = e.add(k, e.scaled(part, vectorColumns));
        Value isInside = arith::AndIOp::create(
            b, loc, e.isLess(row, rows), e.isLess(column, e.index(extent)));
        e.ifThen(isInside, [&] {
          Value place = stagedAt(row, part);
          Value read = memref::LoadOp::create(b, loc, xs, place);
          Value scale = range->scaleOf(row);
          SmallVector<Value> elements = elementsOf(read, row, column);
          SmallVector<Value> words;
          for (int64_t i = 0; i < vectorColumns; i += 2)
            words.push_back(packHalves(e, e.mul(elements[i], scale),
                                       e.mul(elements[i + 1], scale)));
          memref::StoreOp::create(
              b, loc, vector::FromElementsOp::create(b, loc, vectorType, words),
              xs, place);
        });
      });
    });
  }

  //===--- Lines of the weight --------------------------------------------===//

  /// What a thread has of lines: of each 16, a lane's part of some tiles.
  using Read = SmallVector<SmallVector<LaneTiles::Tile, 0>, 0>;

  static void forVectors(Read &read, function_ref<void(Value &)> body) {
    for (auto &tiles : read)
      for (LaneTiles::Tile &each : tiles)
        each.forVectors(body);
  }

  int64_t countTiles() const {
    return coop.lines / Tile::rows * Tile::lanes / coop.shareThreads();
  }
  Value blockOf(int64_t number) {
    return e.div(e.add(shareThread, e.index(number * coop.shareThreads())),
                 Tile::lanes);
  }
  Value laneOf(int64_t number) {
    return e.rem(e.add(shareThread, e.index(number * coop.shareThreads())),
                 Tile::lanes);
  }
  LaneTiles lanesOf(int64_t number) {
    Value lane = laneOf(number);
    return LaneTiles(e, weightElement, e.div(lane, LanesShape::sharers),
                     e.rem(lane, LanesShape::sharers), table);
  }

  /// Reads what this thread has of the round at column `k`: of blocks, a part
  /// of a tile. Behind the last lines they are read again, and not stored;
  /// behind the last columns they are zeros, as rows are: an infinity of theirs
  /// would make a NaN.
  Read loadTiles(Value k) {
    Read read;
    for (int64_t number = 0; number < countTiles(); ++number) {
      LaneTiles lanes = lanesOf(number);
      Value block = blockOf(number);
      block = e.select(e.isLess(block, lastBlock), block, lastBlock);
      Value first = e.scaled(
          e.add(e.div(weight.first, coop.blockColumns), block), tilesOfRow);
      auto &tiles = read.emplace_back();
      Value buffer = e.bufferOf(weight.argument),
            last = e.index(tilesOfRow - 1);
      auto inRow = [&](Value at) {
        return e.add(first, e.select(e.isLess(at, last), at, last));
      };
      if (lanes.hasBlocks()) {
        Value part = e.div(k, coop.roundColumns);
        Value at = e.div(part, lanes.parts());
        tiles.push_back(
            lanes.load(buffer, inRow(at), e.rem(part, lanes.parts())));
        if (padded() > tilesOfRow * tile.columns)
          zeroUnless(e.isLess(at, e.index(tilesOfRow)), tiles.back());
        continue;
      }
      const int64_t count = CoopShape::step / tile.columns;
      for (int64_t i = 0; i < count; ++i) {
        Value at = e.add(e.div(k, tile.columns), e.index(i));
        tiles.push_back(lanes.load(buffer, inRow(at), Value()));
        // Behind the last one: of a last step, and all of a share's that has
        // none of the last columns.
        if ((i > 0 || coop.shares > 1) && padded() > tilesOfRow * tile.columns)
          zeroUnless(e.isLess(at, e.index(tilesOfRow)), tiles.back());
      }
    }
    return read;
  }

  void zeroUnless(Value condition, LaneTiles::Tile &read) {
    Value none = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vectorType, int32_t(0)));
    read.forVectors(
        [&](Value &each) { each = e.select(condition, each, none); });
  }

  /// Words of lines in workgroup memory that a share has.
  int64_t ofShare() const { return coop.linesAtOnce() * CoopShape::lineWords; }

  /// What lines become of which a thread has a tile, a word for two columns:
  /// [rows g and g + 8][units].
  using Words = std::array<std::pair<Value, Value>, 2 * unitsOfSpan>;

  /// Of span `span` of lines number `number`, which `tiles` are of.
  Words wordsOfLines(ArrayRef<LaneTiles::Tile> tiles, int64_t number,
                     int64_t span) {
    LaneTiles lanes = lanesOf(number);
    Words words;
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < unitsOfSpan; ++i)
        words[row * unitsOfSpan + i] =
            wordsOf(lanes, number, tiles, unitsOfSpan * span + i, row);
    return words;
  }

  int64_t tilesOfPass() const { return countTiles() / coop.passes(); }

  /// Of all lines of pass `pass`.
  SmallVector<Words>
  wordsOfPass(ArrayRef<SmallVector<LaneTiles::Tile, 0>> tiles, int64_t pass,
              int64_t span) {
    SmallVector<Words> words;
    for (int64_t i = 0; i < tilesOfPass(); ++i) {
      const int64_t number = pass * tilesOfPass() + i;
      words.push_back(wordsOfLines(tiles[number], number, span));
    }
    return words;
  }

  /// Stores span `span` of the lines of pass `pass`, which are in `ahead` where
  /// isAhead().
  void storePass(ArrayRef<SmallVector<LaneTiles::Tile, 0>> tiles, int64_t pass,
                 int64_t span, ArrayRef<Words> ahead) {
    for (int64_t i = 0; i < tilesOfPass(); ++i) {
      const int64_t number = pass * tilesOfPass() + i;
      storeLines(isAhead() ? ahead[i]
                           : wordsOfLines(tiles[number], number, span),
                 number);
    }
  }

  /// Stores what this thread has of lines number `number`: of its rows g and
  /// g + 8, four elements of each 16 columns.
  void storeLines(const Words &words, int64_t number) {
    Value lane = laneOf(number);
    Value line = e.add(e.scaled(blockOf(number % tilesOfPass()), Tile::rows),
                       e.div(lane, LanesShape::sharers));
    Value first = e.add(firstWord, e.scaled(line, CoopShape::lineWords));
    first = e.add(first, e.rem(lane, LanesShape::sharers));
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < unitsOfSpan; ++i) {
        auto [low, high] = words[row * unitsOfSpan + i];
        const int64_t at = row * Tile::rows / 2 * CoopShape::lineWords +
                           i * LanesShape::unitColumns / 2;
        memref::StoreOp::create(b, loc, low, ws, e.add(first, e.index(at)));
        memref::StoreOp::create(b, loc, high, ws,
                                e.add(first, e.index(at + 4)));
      }
  }

  /// Of blocks, what this lane's part of the scales of a round is, where lanes
  /// have scales from one another.
  void findOwnScales(ArrayRef<SmallVector<LaneTiles::Tile, 0>> tiles) {
    ownScales.clear();
    for (int64_t number = 0; number < countTiles(); ++number) {
      LaneTiles lanes = lanesOf(number);
      if (!lanes.hasSharedScales())
        return;
      auto &own = ownScales.emplace_back();
      for (int64_t i = 0; i < lanes.scalesOfLane(); ++i)
        own.push_back(lanes.ownScaleOf(tiles[number].front(), i));
    }
  }

  /// By what elements of unit `unit` of row g + 8 `row` of tile number `number`
  /// are multiplied, and what is added.
  LaneTiles::Scale scaleOf(LaneTiles &lanes, int64_t number,
                           const LaneTiles::Tile &tile, int64_t unit,
                           int64_t row) {
    if (ownScales.empty())
      return lanes.scaleOf(tile, unit, row);
    const int64_t i = unit / lanes.unitsOfScale();
    Value own = e.rem(laneOf(number), LanesShape::sharers);
    Value from = e.add(e.sub(e.rem(e.thread, coop.subgroup), own),
                       e.index(row + i % 2 * 2));
    from = arith::IndexCastOp::create(b, loc, b.getI32Type(), from);
    auto shuffled = [&](Value value) -> Value {
      if (!value)
        return {};
      return spirv::GroupNonUniformShuffleOp::create(
          b, loc, value.getType(), spirv::Scope::Subgroup, value, from);
    };
    const LaneTiles::Scale &scale = ownScales[number][i / 2];
    return {shuffled(scale.factor), shuffled(scale.addend)};
  }

  /// The elements of unit `unit` of row g + 8 `row`, as the units multiply
  /// them: the first two and the others.
  std::pair<Value, Value> wordsOf(LaneTiles &lanes, int64_t number,
                                  ArrayRef<LaneTiles::Tile> tiles, int64_t unit,
                                  int64_t row) {
    if (weightElement.isF16() || weightElement.isBF16()) {
      Value codes = tiles[unit].codes.front();
      return {vector::ExtractOp::create(b, loc, codes, row),
              vector::ExtractOp::create(b, loc, codes, row + 2)};
    }
    SmallVector<Value> values = lanes.elementsOf(tiles, unit, row);
    if (lanes.hasBlocks()) {
      const LaneTiles::Scale scale =
          scaleOf(lanes, number, tiles.front(), unit, row);
      for (Value &value : values) {
        value = scale.addend ? math::FmaOp::create(b, loc, scale.factor, value,
                                                   scale.addend)
                                   .getResult()
                             : e.mul(scale.factor, value);
      }
    }
    return {packHalves(e, values[0], values[1]),
            packHalves(e, values[2], values[3])};
  }

  //===--- Units ----------------------------------------------------------===//

  gpu::MMAMatrixType matrixOf(StringRef use) {
    // The type of elements is in the function: gpu.mma_matrix has no bf16.
    return gpu::MMAMatrixType::get(
        {coop.unit, coop.unit},
        use == "COp" ? Type(b.getF32Type()) : b.getF16Type(), use);
  }

  SmallVector<Value> zeros() {
    Value zero = gpu::SubgroupMmaConstantMatrixOp::create(
        b, loc, matrixOf("COp"), e.f32(0.0));
    return SmallVector<Value>(coop.rowTiles() * coop.lineTiles(), zero);
  }

  /// The matrices of rows of a step: of each of its units, and rowTiles.
  using Operands = SmallVector<SmallVector<Value>>;

  /// Adds the products of a step with the lines of pass `pass` to `sums`
  /// [rowTiles][lineTiles]. The first pass loads `left`.
  void multiplyPass(MutableArrayRef<Value> sums, int64_t pass, Operands &left) {
    Value row = e.scaled(warpRow, coop.rowTiles() * coop.unit);
    Value line = e.scaled(warpLine, coop.lineTiles() * coop.unit);
    const int64_t tiles = coop.lineTiles() / coop.passes();
    for (int64_t k = 0; k < CoopShape::step; k += coop.unit) {
      if (pass == 0)
        left.emplace_back();
      for (int64_t i = 0; pass == 0 && i < coop.rowTiles(); ++i) {
        Value first = e.add(row, e.index(i * coop.unit));
        Value place = stagedAt(first, e.index(k / vectorColumns));
        left.back().push_back(gpu::SubgroupMmaLoadMatrixOp::create(
            b, loc, matrixOf("AOp"), xs, place, b.getIndexAttr(lineVectors),
            /*transpose=*/UnitAttr()));
      }
      for (int64_t j = 0; j < tiles; ++j) {
        Value first = e.add(line, e.index(j * coop.unit));
        Value place =
            e.add(firstWord,
                  e.add(e.scaled(first, CoopShape::lineWords), e.index(k / 2)));
        Value right = gpu::SubgroupMmaLoadMatrixOp::create(
            b, loc, matrixOf("BOp"), ws, place,
            b.getIndexAttr(CoopShape::lineWords),
            /*transpose=*/b.getUnitAttr());
        for (int64_t i = 0; i < coop.rowTiles(); ++i) {
          Value &sum = sums[i * coop.lineTiles() + pass * tiles + j];
          sum = gpu::SubgroupMmaComputeOp::create(
              b, loc, matrixOf("COp"), left[k / coop.unit][i], right, sum,
              /*a_transpose=*/UnitAttr(), /*b_transpose=*/UnitAttr());
        }
      }
    }
  }

  //===--- Sums -----------------------------------------------------------===//

  /// Brings 16 rows of the workgroup's tile to workgroup memory at a time, of
  /// as many lines as a pass has, from which threads store elements that are
  /// neighbours.
  void storeTile(ValueRange sums) {
    for (int64_t i = 0; i < coop.rowTiles(); ++i)
      for (int64_t pass = 0; pass < coop.passes(); ++pass)
        e.loop(e.index(coop.rowWarps),
               [&](Value number) { storeStrip(sums, i, pass, number); });
  }

  /// Columns of the product that a pass has.
  int64_t passColumns() const { return shape.columns / coop.passes(); }

  /// The lines of pass `pass` of unit `i` of the subgroups' row `number`.
  void storeStrip(ValueRange sums, int64_t i, int64_t pass, Value number) {
    const int64_t all = coop.unit * passColumns();
    const int64_t atOnce =
        all % coop.threads() == 0
            ? std::gcd(mostStoredAtOnce, all / coop.threads())
            : 1;
    const int64_t tiles = coop.lineTiles() / coop.passes();
    Value line = e.scaled(warpLine, coop.lineTiles() * coop.unit);
    Value place = coop.shares == 1 ? line : e.add(firstWord, line);
    e.barrier();
    Value isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        number, warpRow);
    e.ifThen(isOwn, [&] {
      for (int64_t j = 0; j < tiles; ++j)
        gpu::SubgroupMmaStoreMatrixOp::create(
            b, loc, sums[i * coop.lineTiles() + pass * tiles + j],
            memoryOfSums(), e.add(place, e.index(j * coop.unit)),
            b.getIndexAttr(coop.sumStride()), /*transpose=*/UnitAttr());
    });
    e.barrier();
    Value first = e.add(e.scaled(number, coop.rowTiles() * coop.unit),
                        e.index(i * coop.unit));
    e.forThreads(e.index(all / atOnce), [&](Value thread) {
      SmallVector<Element> elements;
      for (int64_t part = 0; part < atOnce; ++part)
        elements.push_back(elementAt(
            first, pass, e.add(thread, e.index(all / atOnce * part))));
      storeElements(elements);
    });
  }

  /// An element of the workgroup's tile, and its sums.
  struct Element {
    Value row, column;
    SmallVector<Value, 2> sums;
  };

  /// Element `number` of pass `pass` of the 16 rows from row `first` on, whose
  /// sums are in workgroup memory.
  Element elementAt(Value first, int64_t pass, Value number) {
    Value inStrip = e.div(number, passColumns());
    Value line = e.rem(number, passColumns());
    Element element;
    element.row = e.add(first, inStrip);
    element.column = e.add(line, e.index(pass * passColumns()));
    if (shape.groups == 2)
      line = e.add(e.scaled(e.div(line, coop.blockColumns), Tile::rows),
                   e.rem(line, coop.blockColumns));
    Value begin = e.add(e.scaled(inStrip, coop.sumStride()), line);
    for (int64_t i = 0; i < shape.groups; ++i)
      element.sums.push_back(
          sumAt(e.add(begin, e.index(i * coop.blockColumns))));
    return element;
  }

  /// Where sums are in workgroup memory: where K is divided, in each share's
  /// lines of the weight, which have room for them.
  Value memoryOfSums() { return coop.shares == 1 ? sharedSums : ws; }

  /// What all shares have at `place`, added up in their order.
  Value sumAt(Value place) {
    if (coop.shares == 1)
      return memref::LoadOp::create(b, loc, sharedSums, place);
    Value sum;
    for (int64_t number = 0; number < coop.shares; ++number) {
      Value word = memref::LoadOp::create(
          b, loc, ws, e.add(place, e.index(number * ofShare())));
      Value of = arith::BitcastOp::create(b, loc, b.getF32Type(), word);
      sum = sum ? e.add(sum, of) : of;
    }
    return sum;
  }

  /// Finishes elements, of which those behind the last row or column are the
  /// last one's, before the first of them is stored: compilers cannot know that
  /// what is read of the others, as of a residual, is not what that writes.
  void storeElements(MutableArrayRef<Element> elements) {
    if (coop.hasOutliers) {
      SmallVector<Value> all;
      for (const Element &element : elements)
        llvm::append_range(all, element.sums);
      range->checkBits(all);
    }
    Value lastRow = e.sub(rows, e.index(1)),
          lastColumn = e.sub(columns, e.index(1));
    SmallVector<Value> results;
    for (Element &element : elements) {
      Value row =
          e.select(e.isLess(element.row, lastRow), element.row, lastRow);
      Value column = e.select(e.isLess(element.column, lastColumn),
                              element.column, lastColumn);
      if (coop.hasOutliers)
        for (Value &sum : element.sums)
          sum = e.select(isScaled, e.mul(sum, range->inverseOf(element.row)),
                         sum);
      results.push_back(finishElement(row, column, element.sums));
    }
    for (auto [element, result] : llvm::zip_equal(elements, results)) {
      Value isInside =
          arith::AndIOp::create(b, loc, e.isLess(element.row, rows),
                                e.isLess(element.column, columns));
      e.ifThen(isInside,
               [&] { e.storeResult(result, {element.row, element.column}); });
    }
  }

  const CoopShape &coop;
  const CoopRows source;
  OutlierRows outliers;
  VectorType vectorType; // 16 bytes
  Type element, weightElement;
  WeightRows weight;
  Tile tile;
  int64_t tilesOfRow = 0;
  Value firstRow, lastBlock;    // of the argument, and of the weight's
  Value share, shareThread;     // of K, and this thread's number in it
  Value firstVector, firstWord; // of the share's rows and lines
  Value warpRow, warpLine;      // of this subgroup
  Value xs, ws, sharedSums, table;
  SmallVector<SmallVector<LaneTiles::Scale, 4>, 0> ownScales; // [tiles]
  std::optional<RowRange> range;
  Value isScaled; // i1: whether rows are
};

} // namespace

void mlir::kf::emitCoopMatmul(GPUEmitter &emitter) {
  CoopMatmulEmitter(emitter).emit();
}
