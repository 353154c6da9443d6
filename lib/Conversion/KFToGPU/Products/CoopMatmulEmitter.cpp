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
// Workgroup memory: rows [rows][lineWords / 4] vectors of 16 bytes; lines
// [lines][lineWords] words; sums [16][sumStride] f32.
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
    Value warp = e.div(e.thread, coop.subgroup);
    warpRow = e.div(warp, coop.lineWarps);
    warpLine = e.rem(warp, coop.lineWarps);
    if (!coop.hasOutliers)
      return multiplyTile();
    untilFinite();
  }

  void allocate() {
    xs = e.workgroupMemory(coop.rows * lineVectors, vectorType);
    ws = e.workgroupMemory(coop.lines * CoopShape::lineWords, b.getI32Type());
    sharedSums = e.workgroupMemory(coop.sharedSums(), b.getF32Type());
    table = LaneTiles::makeTable(e, weightElement);
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

  void multiplyTile() {
    const int64_t spans = coop.roundColumns / CoopShape::step;
    const int64_t padded = llvm::alignTo(extent, coop.roundColumns);
    SmallVector<Value> state = zeros();
    const size_t sums = state.size();
    llvm::append_range(state, loadRows(e.index(0)));
    const size_t ofRows = state.size() - sums;
    Read first = loadTiles(e.index(0));
    forVectors(first, [&](Value &each) { state.push_back(each); });
    auto steps =
        e.loop(e.index(0), e.index(padded), e.index(coop.roundColumns), state,
               [&](Value k, ValueRange before) {
                 SmallVector<Value> after(before.take_front(sums));
                 SmallVector<Value> vectors(
                     before.drop_front(sums).take_front(ofRows));
                 Value next = e.add(k, e.index(coop.roundColumns));
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
                 for (int64_t span = 0; span < spans; ++span) {
                   Value own = e.add(k, e.index(span * CoopShape::step));
                   e.barrier();
                   storeRows(vectors, own, padded);
                   for (auto [number, read] : llvm::enumerate(tiles))
                     storeLines(read, number, span);
                   scaleRows(own);
                   e.barrier();
                   vectors = loadRows(e.add(own, e.index(CoopShape::step)));
                   if (span + 1 == spans)
                     later = loadTiles(next);
                   multiplyAdd(after);
                 }
                 llvm::append_range(after, vectors);
                 forVectors(later, [&](Value &each) { after.push_back(each); });
                 return after;
               });
    storeTile(steps.getResults().take_front(sums));
  }

  //===--- Rows of x ------------------------------------------------------===//

  /// The vector number `part` of row `row`, in the argument's memory.
  Value placeOf(Value row, Value part) {
    Value line = e.scaled(e.add(firstRow, row), source.width / vectorColumns);
    return e.add(line, e.add(part, e.index(source.column / vectorColumns)));
  }

  /// Calls `body` with the row and the vector of a step, of each that this
  /// thread copies.
  void forVectorsOfRows(function_ref<void(Value row, Value part)> body) {
    for (int64_t i = 0; i < coop.rows * stepVectors; i += coop.threads()) {
      Value number = e.add(e.thread, e.index(i));
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
      Value own = e.add(e.div(k, vectorColumns), part);
      own = e.select(e.isLess(own, lastPart), own, lastPart);
      row = e.select(e.isLess(row, last), row, last);
      vectors.push_back(memref::LoadOp::create(
          b, loc, e.bufferOf(source.argument), placeOf(row, own)));
    });
    return vectors;
  }

  /// Stores it, zeros where columns are behind the last one.
  void storeRows(ArrayRef<Value> vectors, Value k, int64_t padded) {
    Value none = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vectorType, int32_t(0)));
    size_t at = 0;
    forVectorsOfRows([&](Value row, Value part) {
      Value value = vectors[at++];
      if (padded != extent) {
        Value column = e.add(k, e.scaled(part, vectorColumns));
        value = e.select(e.isLess(column, e.index(extent)), value, none);
      }
      memref::StoreOp::create(b, loc, value, xs,
                              e.add(e.scaled(row, lineVectors), part));
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
      e.forThreads(e.index(coop.rows * stepVectors), [&](Value number) {
        Value row = e.div(number, stepVectors);
        Value part = e.rem(number, stepVectors);
        Value column = e.add(k, e.scaled(part, vectorColumns));
        Value isInside = arith::AndIOp::create(
            b, loc, e.isLess(row, rows), e.isLess(column, e.index(extent)));
        e.ifThen(isInside, [&] {
          Value place = e.add(e.scaled(row, lineVectors), part);
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
    return coop.lines / Tile::rows * Tile::lanes / coop.threads();
  }
  Value blockOf(int64_t number) {
    return e.div(e.add(e.thread, e.index(number * coop.threads())),
                 Tile::lanes);
  }
  LaneTiles lanesOf(int64_t number) {
    Value lane =
        e.rem(e.add(e.thread, e.index(number * coop.threads())), Tile::lanes);
    return LaneTiles(e, weightElement, e.div(lane, LanesShape::sharers),
                     e.rem(lane, LanesShape::sharers), table);
  }

  /// Reads what this thread has of the round at column `k`: of blocks, a part
  /// of a tile. Behind the last lines they are read again, and not stored;
  /// behind the last columns they are multiplied by zeros.
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
        tiles.push_back(lanes.load(buffer, inRow(e.div(part, lanes.parts())),
                                   e.rem(part, lanes.parts())));
        continue;
      }
      const int64_t count = CoopShape::step / tile.columns;
      for (int64_t i = 0; i < count; ++i) {
        Value at = e.add(e.div(k, tile.columns), e.index(i));
        tiles.push_back(lanes.load(buffer, inRow(at), Value()));
        // Of a last step, the tile behind the last one.
        if (i > 0 && tilesOfRow % count != 0)
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

  /// Stores what this thread has of span `span` of lines number `number`: of
  /// its rows g and g + 8, four elements of each 16 columns.
  void storeLines(ArrayRef<LaneTiles::Tile> tiles, int64_t number,
                  int64_t span) {
    constexpr int64_t units = Tile::span / LanesShape::unitColumns;
    LaneTiles lanes = lanesOf(number);
    Value lane =
        e.rem(e.add(e.thread, e.index(number * coop.threads())), Tile::lanes);
    Value line = e.add(e.scaled(blockOf(number), Tile::rows),
                       e.div(lane, LanesShape::sharers));
    Value own = e.add(e.scaled(line, CoopShape::lineWords),
                      e.rem(lane, LanesShape::sharers));
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < units; ++i) {
        std::pair<Value, Value> words =
            wordsOf(lanes, tiles, units * span + i, row);
        const int64_t at = row * Tile::rows / 2 * CoopShape::lineWords +
                           i * LanesShape::unitColumns / 2;
        memref::StoreOp::create(b, loc, words.first, ws,
                                e.add(own, e.index(at)));
        memref::StoreOp::create(b, loc, words.second, ws,
                                e.add(own, e.index(at + 4)));
      }
  }

  /// The elements of unit `unit` of row g + 8 `row`, as the units multiply
  /// them: the first two and the others.
  std::pair<Value, Value> wordsOf(LaneTiles &lanes,
                                  ArrayRef<LaneTiles::Tile> tiles, int64_t unit,
                                  int64_t row) {
    if (weightElement.isF16() || weightElement.isBF16()) {
      Value codes = tiles[unit].codes.front();
      return {vector::ExtractOp::create(b, loc, codes, row),
              vector::ExtractOp::create(b, loc, codes, row + 2)};
    }
    SmallVector<Value> values = lanes.elementsOf(tiles, unit, row);
    if (lanes.hasBlocks()) {
      const LaneTiles::Scale scale = lanes.scaleOf(tiles.front(), unit, row);
      for (Value &value : values) {
        value = scale.addend ? math::FmaOp::create(b, loc, scale.factor, value,
                                                   scale.addend)
                                   .getResult()
                             : e.mul(scale.factor, value);
        value = roundToHalf(e, value);
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

  /// Adds the products of a step to `sums` [rowTiles][lineTiles].
  void multiplyAdd(MutableArrayRef<Value> sums) {
    Value row = e.scaled(warpRow, coop.rowTiles() * coop.unit);
    Value line = e.scaled(warpLine, coop.lineTiles() * coop.unit);
    for (int64_t k = 0; k < CoopShape::step; k += coop.unit) {
      SmallVector<Value> left;
      for (int64_t i = 0; i < coop.rowTiles(); ++i) {
        Value first = e.add(row, e.index(i * coop.unit));
        Value place =
            e.add(e.scaled(first, lineVectors), e.index(k / vectorColumns));
        left.push_back(gpu::SubgroupMmaLoadMatrixOp::create(
            b, loc, matrixOf("AOp"), xs, place, b.getIndexAttr(lineVectors),
            /*transpose=*/UnitAttr()));
      }
      for (int64_t j = 0; j < coop.lineTiles(); ++j) {
        Value first = e.add(line, e.index(j * coop.unit));
        Value place =
            e.add(e.scaled(first, CoopShape::lineWords), e.index(k / 2));
        Value right = gpu::SubgroupMmaLoadMatrixOp::create(
            b, loc, matrixOf("BOp"), ws, place,
            b.getIndexAttr(CoopShape::lineWords),
            /*transpose=*/b.getUnitAttr());
        for (int64_t i = 0; i < coop.rowTiles(); ++i) {
          Value &sum = sums[i * coop.lineTiles() + j];
          sum = gpu::SubgroupMmaComputeOp::create(
              b, loc, matrixOf("COp"), left[i], right, sum,
              /*a_transpose=*/UnitAttr(), /*b_transpose=*/UnitAttr());
        }
      }
    }
  }

  //===--- Sums -----------------------------------------------------------===//

  /// Brings 16 rows of the workgroup's tile to workgroup memory at a time, from
  /// which threads store elements that are neighbours.
  void storeTile(ValueRange sums) {
    const int64_t all = coop.unit * shape.columns;
    const int64_t atOnce =
        all % coop.threads() == 0
            ? std::gcd(mostStoredAtOnce, all / coop.threads())
            : 1;
    Value own = e.scaled(warpLine, coop.lineTiles() * coop.unit);
    for (int64_t i = 0; i < coop.rowTiles(); ++i)
      e.loop(e.index(coop.rowWarps), [&](Value number) {
        e.barrier();
        Value isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            number, warpRow);
        e.ifThen(isOwn, [&] {
          for (int64_t j = 0; j < coop.lineTiles(); ++j)
            gpu::SubgroupMmaStoreMatrixOp::create(
                b, loc, sums[i * coop.lineTiles() + j], sharedSums,
                e.add(own, e.index(j * coop.unit)),
                b.getIndexAttr(coop.sumStride()), /*transpose=*/UnitAttr());
        });
        e.barrier();
        Value first = e.add(e.scaled(number, coop.rowTiles() * coop.unit),
                            e.index(i * coop.unit));
        e.forThreads(e.index(all / atOnce), [&](Value thread) {
          SmallVector<Element> elements;
          for (int64_t part = 0; part < atOnce; ++part)
            elements.push_back(
                elementAt(first, e.add(thread, e.index(all / atOnce * part))));
          storeElements(elements);
        });
      });
  }

  /// An element of the workgroup's tile, and its sums.
  struct Element {
    Value row, column;
    SmallVector<Value, 2> sums;
  };

  /// Element `number` of the 16 rows from row `first` on, whose sums are in
  /// workgroup memory.
  Element elementAt(Value first, Value number) {
    Value inStrip = e.div(number, shape.columns);
    Element element;
    element.row = e.add(first, inStrip);
    element.column = e.rem(number, shape.columns);
    Value line = element.column;
    if (shape.groups == 2)
      line = e.add(e.scaled(e.div(line, coop.blockColumns), Tile::rows),
                   e.rem(line, coop.blockColumns));
    Value begin = e.add(e.scaled(inStrip, coop.sumStride()), line);
    for (int64_t i = 0; i < shape.groups; ++i)
      element.sums.push_back(memref::LoadOp::create(
          b, loc, sharedSums, e.add(begin, e.index(i * coop.blockColumns))));
    return element;
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
  Value firstRow, lastBlock; // of the argument, and of the weight's
  Value warpRow, warpLine;   // of this subgroup
  Value xs, ws, sharedSums, table;
  std::optional<RowRange> range;
  Value isScaled; // i1: whether rows are
};

} // namespace

void mlir::kf::emitCoopMatmul(GPUEmitter &emitter) {
  CoopMatmulEmitter(emitter).emit();
}
