//===- KernelShape.h - What a schedule asks of a GPU workgroup --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reading of a kernel's schedule that convert-kf-to-gpu emits and that a
// target's KernelConfig checks against its device's limits.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KERNELSHAPE_H
#define KF_CONVERSION_KERNELSHAPE_H

#include "kf/Conversion/AttentionShape.h"
#include "kf/Dialect/KF/IR/MatrixUnits.h"

#include <array>
#include <optional>

namespace mlir::kf {

/// Bytes of workgroup memory that say how `rows` rows are scaled, where they
/// may have elements that f16 cannot hold: a word for each, and four for all.
constexpr int64_t rowRangeBytes(int64_t rows) {
  return (4 * (rows + 4) + 15) / 16 * 16;
}

/// What a workgroup of a product on matrix units does at a time; see
/// lib/Conversion/KFToGPU/Products/MmaMatmulEmitter.cpp. Lines of the weight
/// are the rows of the units' tiles, and rows of x their columns. Where a
/// product is gated, 16 lines are 8 of gate and the same 8 of up.
struct MmaShape {
  /// Of the tile that a warp's units compute, along lines, rows and K.
  static constexpr MatrixUnitShape ofWarp = getUnitShape(MatrixUnit::MmaSync);
  static constexpr int64_t unitLines = ofWarp.lines, unitRows = ofWarp.rows,
                           unitStep = ofWarp.step, warp = ofWarp.threads;

  int64_t rowWarps = 1, lineWarps = 1; ///< that divide rows, and lines
  int64_t rows = 0, lines = 0;         ///< of the workgroup's tile
  int64_t step = 0, stages = 0;        ///< of K
  int64_t parts = 1;                   ///< workgroups that divide K
  int64_t steps = 0;                   ///< of a workgroup, at most
  bool hasOutliers = false;            ///< of rows: see RowRange.h
  /// Of weights of codes with `#kf.fragments`: bytes of 16 lines and as many
  /// columns as tileColumns, which are taken apart behind workgroup memory.
  int64_t tileBytes = 0;
  static constexpr int64_t tileColumns = 256;
  /// Whether 4 warps at a time multiply 64 lines with all rows, which they read
  /// from workgroup memory themselves: `unit = wgmma`.
  bool isForWarpgroups = false;

  /// Whether factors are f32, as which stages hold them: see WideFactors.
  bool isWide = false;

  int64_t threads() const { return warp * rowWarps * lineWarps; }
  /// Tiles of a unit that a warp has, along rows of x, and along lines of the
  /// weight.
  int64_t rowTiles() const { return rows / rowWarps / unitRows; }
  int64_t lineTiles() const { return lines / lineWarps / unitLines; }
  /// Sums of a thread.
  int64_t sums() const {
    return rowTiles() * lineTiles() * unitRows * unitLines / warp;
  }
  /// What a stage's address is a multiple of then.
  static constexpr int64_t warpgroupAlignment = 1024;
  /// Bytes of workgroup memory that say how rows are scaled.
  int64_t rangeBytes() const { return hasOutliers ? rowRangeBytes(rows) : 0; }
  /// K of a workgroup, at most.
  int64_t columns() const { return steps * step; }
  /// Steps that are copied before they are multiplied: those that are not read.
  /// Warpgroups' units may still read the one before the last.
  int64_t ahead() const { return stages - (isForWarpgroups ? 2 : 1); }
  /// Steps that have tiles of codes in common.
  int64_t stepsOfTile() const { return tileBytes ? tileColumns / step : 1; }

  int64_t elementBytes() const { return isWide ? 4 : 2; }
  /// Bytes of a step: rows, floats, and lines, which are the same or tiles of
  /// codes.
  int64_t rowBytes() const { return elementBytes() * rows * step; }
  int64_t lineBytes() const {
    return tileBytes ? lines / unitLines * tileBytes / stepsOfTile()
                     : elementBytes() * lines * step;
  }
  /// Bytes of a stage in workgroup memory; tiles of codes have a ring of their
  /// own behind all stages.
  int64_t stageBytes() const {
    return rowBytes() + (tileBytes ? 0 : lineBytes());
  }
  int64_t slotBytes() const { return lines / unitLines * tileBytes; }
  /// Those of the step that is multiplied, and of all that are copied.
  int64_t slots() const {
    return tileBytes ? (ahead() - 1) / stepsOfTile() + 2 : 0;
  }
  int64_t ringBytes() const {
    return stages * stageBytes() + slots() * slotBytes();
  }
};

/// Whether cooperative matrices can multiply rows of `rows` elements with the
/// weight of `op`, once that has `#kf.fragments`.
bool isForCoop(MatmulOp op, Type rows);

/// What a workgroup of a product of few rows does at a time; see
/// lib/Conversion/KFToGPU/Products/StreamMatmulEmitter.cpp. Tiles are those of
/// `#kf.fragments`.
struct StreamShape {
  static constexpr int64_t lanes = 32;
  /// K of what is staged of x at a time: of two tiles of 16-bit floats.
  static constexpr int64_t pairColumns = 32;
  /// The most rows that are split into two numbers of 16 bits each where they
  /// could be rounded: both terms fill a unit's tile.
  static constexpr int64_t mostSplitRows = 4;
  /// The most rows, those that warps hold, and of an expert where they are
  /// rounded.
  static constexpr int64_t mostRows = 16, mostHeldRows = 32,
                           mostRoundedRows = 64;

  /// What scales a span of a block-quantized weight, whose codes matrix units
  /// multiply as they are, and what of x goes with it.
  enum class Sums {
    None,         ///< of plain elements, or where none are used
    Pairs,        ///< a sum of 32 columns, to subtract what codes are above
    Halves,       ///< sums of 16 columns, for the same
    Minimums,     ///< a sum of 32 columns, which minimums are multiplied by
    HalfMinimums, ///< sums of 16 columns, for the same
    Floats        ///< none: blocks whose codes are floats
  };
  static constexpr bool hasHalves(Sums sums) {
    return sums == Sums::Halves || sums == Sums::HalfMinimums;
  }
  /// Whether there are any, of blocks.
  static constexpr bool hasAny(Sums sums) {
    return sums != Sums::None && sums != Sums::Floats;
  }
  static constexpr bool hasMinimums(Sums sums) {
    return sums == Sums::Minimums || sums == Sums::HalfMinimums;
  }

  int64_t warps = 1, tiles = 2, stages = 2;
  MatrixUnit unit = MatrixUnit::MmaSync;
  int64_t tileColumns = 16, tileBytes = 512; ///< of FragmentTile
  Sums sumsOfX = Sums::None;
  int64_t rows = 1;         ///< of x, at most
  int64_t terms = 2;        ///< that an element of x is; 1: it is rounded
  int64_t blocks = 1;       ///< row blocks of the workgroup
  int64_t blockColumns = 1; ///< columns of the product in one of them
  int64_t warpBlocks = 1;   ///< row blocks of a warp at a time
  int64_t rowWarps = 1;     ///< warps that divide row blocks: a divisor
  int64_t tilesOfRow = 0;   ///< tiles of K
  int64_t chunkSteps = 0; ///< steps of which x is in workgroup memory at a time
  int64_t slices = 1;     ///< chunks of a share
  bool hasSquares = false; ///< of rows of x, which a norm scales
  bool hasRange = false;   ///< rows become f16, which may be too narrow
  /// Of experts: tokens among which those are found that have the same one, a
  /// multiple of `rows`; 0: rows have no experts.
  int64_t window = 0;
  int64_t top = 0; ///< experts of a token

  int64_t threads() const { return warps * lanes; }
  /// K is divided into shares, one for each warp, which sum by themselves.
  /// Where warps divide row blocks, those with the same have some shares at a
  /// time. Of experts, it is not where each warp has row blocks of its own.
  int64_t sharesAtOnce() const { return warps / rowWarps; }
  int64_t shares() const { return window && rowWarps == warps ? 1 : warps; }
  int64_t rounds() const { return shares() / sharesAtOnce(); }
  /// Steps of a share.
  int64_t steps() const { return slices * chunkSteps; }
  /// Parts of x that are in workgroup memory one after the other.
  int64_t chunks() const { return rounds() * slices; }
  /// Row blocks of all warps at a time, and how often they take some.
  int64_t passBlocks() const { return rowWarps * warpBlocks; }
  int64_t passes() const { return (blocks + passBlocks() - 1) / passBlocks(); }
  /// Columns of K of a warp's step, of one step of the warps that differ in
  /// shares, of a chunk, and all.
  int64_t stepColumns() const { return tiles * tileColumns; }
  int64_t roundColumns() const { return sharesAtOnce() * stepColumns(); }
  int64_t chunkColumns() const { return chunkSteps * roundColumns(); }
  int64_t paddedColumns() const { return steps() * shares() * stepColumns(); }
  /// K of a sum of squares.
  int64_t lineColumns() const {
    int64_t columns = stepColumns() & -stepColumns();
    return columns < 256 ? columns : 256;
  }
  /// Tiles of 8 columns that a row's terms go to: of 4 rows and both terms, or
  /// of 8 rows and one term.
  int64_t columnTiles() const {
    if (terms == 1)
      return (rows + 7) / 8;
    return isMixed() ? 1 : rows <= 8 ? 2 : 4;
  }
  /// Whether one tile has both terms, and tiles that have the first term alone,
  /// or with the other; they come first.
  bool isMixed() const { return terms == 2 && rows <= mostSplitRows; }
  int64_t highTiles() const { return isMixed() ? 1 : columnTiles() / terms; }
  /// Sums of squares of a row: one for each line.
  int64_t squares() const { return paddedColumns() / lineColumns(); }

  // Elements of workgroup memory: vectors of 16 bytes, and f32.
  int64_t xVectors() const {
    return chunkColumns() / pairColumns * terms * rows * 4;
  }
  int64_t ringVectors() const {
    return warps * stages * warpBlocks * tiles * tileBytes / 16;
  }
  /// Columns that sums of x have for each pair: of all rows and some more,
  /// which fill up a tile's.
  int64_t sumColumns() const {
    return isMixed() ? mostSplitRows : 8 * highTiles();
  }
  /// Words of 32 bits that sums of x take.
  int64_t xSums() const {
    const int64_t pairs = chunkColumns() / pairColumns;
    switch (sumsOfX) {
    case Sums::None:
    case Sums::Floats:
      return 0;
    case Sums::Pairs:
      return pairs * sumColumns();
    case Sums::Halves:
      return 2 * pairs * sumColumns();
    case Sums::Minimums: // two f16
      return pairs * rows;
    case Sums::HalfMinimums:
      return 2 * pairs * rows;
    }
    return 0;
  }
  /// A warp that has all shares of its row blocks adds them itself.
  int64_t sumsOfBlock() const { return sharesAtOnce() == 1 ? 1 : shares(); }
  int64_t sums() const { return blocks * sumsOfBlock() * terms * rows * 16; }
  /// Words of 32 bits that say which rows of x are multiplied together: of each
  /// place of the workgroup's, how many, and their numbers. One is alone.
  int64_t placeWords() const {
    return window && rows > 1 ? rows * (rows + 1) : 0;
  }
  /// And of the experts of all places of the window.
  int64_t expertWords() const {
    return placeWords() > 0 ? (window * top + 3) / 4 * 4 : 0;
  }
  /// All of it: each part begins at a multiple of 16 bytes.
  int64_t bytes() const {
    auto vectors = [](int64_t words) { return (words + 3) / 4; };
    int64_t all = xVectors() + ringVectors() + vectors(sums()) +
                  vectors(xSums()) + vectors(placeWords()) +
                  vectors(expertWords());
    if (hasSquares)
      all += vectors(rows * squares()) + vectors(rows);
    return 16 * all + (hasRange ? rowRangeBytes(rows) : 0);
  }
};

/// What matrix units multiply of weights of `element`: f16 of codes. Of many
/// rows, these are scaled before: where scales are beyond the range of f16, in
/// bf16.
Type getUnitElement(Type element, bool areManyRows = false);

/// The kf.expert_matmul of a kernel that `#kf.stream` and `#kf.lanes` have code
/// for, which has no other loop; null: there is none.
ExpertMatmulOp findExpertProduct(KernelOp kernel);

/// Whether `#kf.stream` can take rows of x as they are, `rows = rounded`: of
/// what matrix units multiply with the weight, in memory.
bool canHoldRows(MatmulOp op);

/// What a workgroup of a product of few rows of 16-bit floats does at a time;
/// see lib/Conversion/KFToGPU/Products/HeldMatmulEmitter.cpp. Tiles are those
/// of `#kf.fragments`.
struct HeldShape {
  static constexpr int64_t lanes = 32;
  static constexpr int64_t spanColumns = 32, unitRows = 8;

  int64_t warps = 1, tiles = 2, stages = 2;
  int64_t tileColumns = 16, tileBytes = 512; ///< of FragmentTile
  StreamShape::Sums sumsOfX = StreamShape::Sums::None;
  int64_t rows = 1;         ///< of x, at most
  int64_t blocks = 1;       ///< row blocks of the workgroup
  int64_t blockColumns = 1; ///< columns of the product in one of them
  int64_t tilesOfRow = 0;   ///< tiles of K
  int64_t steps = 1;        ///< of a warp for a row block and a slice
  int64_t slices = 1;       ///< of K, of which x is held one after the other
  int64_t parts = 1;        ///< workgroups that have as many slices of K each
  bool hasOutliers = false; ///< of rows: see RowRange.h

  int64_t threads() const { return warps * lanes; }
  int64_t slotBytes() const { return tiles * tileBytes; }
  int64_t tilesOfWarp() const { return steps * tiles; }
  int64_t warpColumns() const { return tilesOfWarp() * tileColumns; }
  int64_t sliceColumns() const { return warps * warpColumns(); }
  /// Columns of K of all slices of all workgroups, and whether there are more
  /// than K has.
  int64_t allColumns() const { return parts * slices * sliceColumns(); }
  bool isPadded() const { return allColumns() != tilesOfRow * tileColumns; }
  /// Spans of K that have a fragment of x of 4 words for each tile of rows.
  int64_t spans() const { return warpColumns() / spanColumns; }
  int64_t rowTiles() const { return (rows + unitRows - 1) / unitRows; }
  /// Registers of a lane that x takes.
  int64_t words() const { return 4 * spans() * rowTiles(); }

  // Bytes of workgroup memory. Rows of a warp's x are staged, 8 at a time,
  // where sums are afterwards. Lanes that read a column of them meet different
  // banks.
  int64_t ringBytes() const { return warps * stages * slotBytes(); }
  int64_t stagedRowBytes() const { return 2 * warpColumns() + 16; }
  int64_t stagedBytes() const { return unitRows * stagedRowBytes(); }
  /// Row blocks whose sums are added at a time; those of as many others may
  /// come in meanwhile.
  static constexpr int64_t blocksAtOnce = 2;
  /// f32 elements of 16 lines and 8 rows, with a gap for each two lines.
  static constexpr int64_t tileSums = 140;
  int64_t blockSums() const { return warps * rowTiles() * tileSums; }
  int64_t sharedBytes() const {
    return std::max(warps * stagedBytes(), 8 * blocksAtOnce * blockSums());
  }
  /// Whether elements have their sums in workgroup memory until all of K is
  /// multiplied.
  bool hasTotals() const { return slices * parts > 1; }
  /// f32 elements that they take: lines of a row block lie behind one another.
  int64_t totals() const { return hasTotals() ? rows * blocks * 16 : 0; }
  int64_t rangeBytes() const { return hasOutliers ? rowRangeBytes(0) : 0; }
  int64_t bytes() const {
    return ringBytes() + sharedBytes() + rangeBytes() + 4 * totals();
  }
};

/// How a workgroup of threads finds the rows that it multiplies with the weight
/// of one expert; see lib/Conversion/KFToGPU/Products/ExpertPlaces.h. A place
/// is a token and one of its experts.
struct ExpertGroups {
  int64_t rows = 1;   ///< that are multiplied together, at most
  int64_t window = 1; ///< tokens among which they are found: a multiple of rows
  int64_t top = 1;    ///< experts of a token
  int64_t parts = 1;  ///< of the window's places, each looked at by a thread

  /// Words of 32 bits in workgroup memory: of each place of the workgroup, how
  /// many go with it, and which; the experts of all places of the window; and
  /// how many places of each part have the workgroup's experts. A row that is
  /// alone needs none.
  int64_t listWords() const { return rows > 1 ? rows * (rows + 1) : 0; }
  int64_t numberWords() const { return rows > 1 ? window * top : 0; }
  int64_t countWords() const { return rows > 1 ? rows * parts : 0; }
  int64_t bytes() const {
    return 4 * (listWords() + numberWords() + countWords());
  }
};

/// Spans of a tile of blocks whose codes lie as those of the next ones do,
/// whole vectors behind: what a thread takes of it at a time.
constexpr int64_t getPartSpans(const ::kf::BlockFormat &format) {
  return format.subBlock < ::kf::FragmentTile::span ? 4 : 2;
}

/// What a workgroup of a product of few rows by threads does at a time; see
/// lib/Conversion/KFToGPU/Products/LanesMatmulEmitter.cpp. Tiles are those of
/// `#kf.fragments`.
struct LanesShape {
  static constexpr int64_t lanes = 32;
  /// Columns of K of which a thread has four, and how many threads share them.
  static constexpr int64_t unitColumns = 16, sharers = 4;
  /// Elements of each thread that are added up at a time, and entries of the
  /// table of a format that has one.
  static constexpr int64_t mostSums = 8, tableEntries = 16;

  int64_t warps = 1, tiles = 1;
  int64_t blockWarps = 1;                    ///< that divide row blocks
  int64_t tileColumns = 16, tileBytes = 512; ///< of FragmentTile
  int64_t partColumns =
      0; ///< of a part of a tile of blocks; 0: tiles are whole
  bool hasSumsOfX = false; ///< which minimums, or what codes are above, scale
  bool hasTable = false;
  bool hasHalves = false; ///< of codes, of whole tiles
  /// Of halves with minimums: columns of K of a sum of x; 0: there are none.
  int64_t sumColumns = 0;
  int64_t rounds = 1;       ///< of row blocks, for which x stays
  int64_t rows = 1;         ///< of x, at most
  int64_t blocks = 1;       ///< row blocks of a warp
  int64_t blockColumns = 1; ///< columns of the product in one of them
  int64_t tilesOfRow = 0;   ///< tiles of K
  int64_t steps = 1;        ///< of a row, of all warps
  int64_t sliceSteps = 1;   ///< steps of which x is in workgroup memory
  int64_t slices = 1;
  std::optional<ExpertGroups> experts; ///< none: rows have no experts

  int64_t threads() const { return warps * lanes; }
  /// Warps that divide K.
  int64_t shares() const { return warps / blockWarps; }
  int64_t stepColumns() const {
    return partColumns ? partColumns : tiles * tileColumns;
  }
  int64_t unitsOfStep() const { return stepColumns() / unitColumns; }
  /// Vectors of four elements of x in workgroup memory.
  int64_t vectors() const {
    return sliceSteps * unitsOfStep() * rows * sharers;
  }
  /// Sums of a thread; and those that are added up at a time.
  int64_t sums() const { return 2 * blocks * rows; }
  int64_t sumsAtOnce() const { return sums() < mostSums ? sums() : mostSums; }
  /// In how many exchanges sums are added up.
  int64_t exchanges() const { return (sums() - 1) / sumsAtOnce() + 1; }
  /// Where there are rounds, there is room for two exchanges.
  int64_t exchangedSums() const { return warps * sumsAtOnce() * lanes; }
  int64_t sharedSums() const { return (rounds > 1 ? 2 : 1) * exchangedSums(); }
  /// Of columns of K that minimums have in common, one a row of x.
  int64_t groupSums() const {
    return sumColumns ? sliceSteps * (stepColumns() / sumColumns) * rows : 0;
  }
  /// Sums of elements that slices add to, where there are rounds of them.
  int64_t totals() const {
    return rounds > 1 && slices > 1
               ? rounds * exchanges() * exchangedSums() / shares() / sharers
               : 0;
  }
  int64_t bytes() const {
    return (hasSumsOfX ? 20 : 16) * vectors() +
           4 * (sharedSums() + groupSums() + totals()) +
           (hasTable ? 4 * tableEntries : 0) + (experts ? experts->bytes() : 0);
  }
};

/// What a workgroup of a product on cooperative matrices does at a time; see
/// lib/Conversion/KFToGPU/Products/CoopMatmulEmitter.cpp. Subgroups have tiles
/// of [rows, lines], of which units multiply 16 x 16. Where a product is gated,
/// 16 lines are 8 of gate and the same 8 of up.
struct CoopShape {
  static constexpr int64_t step = 32; ///< columns of K
  /// Elements of 16 bytes, in which rows are read.
  static constexpr int64_t vectorColumns = 8;
  /// Words of a row or line of a step in workgroup memory, with four between
  /// two of them: eight rows of 16 bytes meet in no bank then.
  static constexpr int64_t lineWords = step / 2 + 4;
  /// f32 between two rows of sums in workgroup memory, which has a unit's rows
  /// at a time: with more, tiles of 256 lines would not go into 48 KiB.
  static constexpr int64_t sumPadding = 4;

  /// Lines of the weight that 32 threads have a tile of.
  static constexpr int64_t blockLines = 16;

  int64_t unit = 16; ///< rows, lines and columns of K of a unit
  int64_t rowWarps = 1, lineWarps = 1; ///< subgroups that divide each
  int64_t shares = 1;                  ///< of K: more are a subgroup's each
  int64_t subgroup = 32;               ///< threads
  int64_t rows = 0, lines = 0;         ///< of the workgroup's tile
  int64_t blockColumns = 0;            ///< columns of the product in 16 lines
  /// Columns of K that a thread has of a weight at a time: of a part of a tile
  /// of blocks, or a step.
  int64_t roundColumns = step;
  bool hasTable = false;    ///< of codes of blocks
  bool hasOutliers = false; ///< of rows: see RowRange.h

  int64_t shareThreads() const { return rowWarps * lineWarps * subgroup; }
  int64_t threads() const { return shares * shareThreads(); }
  /// Units of a subgroup.
  int64_t rowTiles() const { return rows / rowWarps / unit; }
  int64_t lineTiles() const { return lines / lineWarps / unit; }
  /// Sums of a thread.
  int64_t sums() const {
    return rowTiles() * lineTiles() * unit * unit / subgroup;
  }
  /// Lines of a step in workgroup memory: where K is divided, those that a
  /// subgroup's threads have of one tile each, in several passes.
  int64_t linesAtOnce() const {
    return shares == 1 ? lines
                       : std::max(blockLines, blockLines * subgroup / 32);
  }
  int64_t passes() const { return lines / linesAtOnce(); }
  int64_t sumStride() const { return linesAtOnce() + sumPadding; }
  /// Those of shares go where their lines were, which are as long.
  int64_t sharedSums() const { return shares == 1 ? unit * sumStride() : 0; }
  int64_t bytes() const {
    return 4 * (shares * lineWords * (rows + linesAtOnce()) + sharedSums()) +
           (hasTable ? 4 * LanesShape::tableEntries : 0) +
           (hasOutliers ? 4 * (rows + 1) : 0);
  }
};

/// The attribute (TypeAttr) of a gpu.func that says what matrices are of which
/// gpu.mma_matrix calls f16: it has no bf16.
inline constexpr llvm::StringLiteral kMatrixTypeAttrName = "kf.matrices";

/// Threads and workgroup memory of one kernel. Of a matmul, a workgroup
/// computes [rows, columns] of the product. Where `sharing` is 1, it goes in
/// steps of `step` along K, which are staged in workgroup memory, and thread
/// (x, y) computes the elements (y + i * threads[1], x + j * threads[0]). Else
/// threads along x, of a reduction all, share the sum of an element: (x, y) has
/// a part of the elements (i, y + j * threads[1]).
struct KernelShape {
  std::array<int64_t, 3> threads = {1, 1, 1};
  int64_t threadCount = 1;

  int64_t rows = 0, columns = 0;         ///< of the workgroup's tile
  int64_t tileRows = 0, tileColumns = 0; ///< elements of a thread
  int64_t step = 0, unroll = 1;
  /// Whether a staged weight has `#kf.fragments` that threads take apart by
  /// words, a span of 32 columns at a time.
  bool stagesSpans = false;
  bool hasTable = false;      ///< whose codes are looked up in a table
  int64_t sharing = 1;        ///< threads that share a sum, or 1
  int64_t sharedElements = 0; ///< elements that threads add up at a time
  int64_t groups = 1;         ///< 2 with glu: gate and up
  int64_t statistics = 0;     ///< per row, of the norm fused into x

  /// Elements between the rows of a staged tile: odd, so that threads which
  /// read a column meet different banks.
  int64_t stride() const { return step | 1; }
  /// Parts of sums that threads add up at a time, and elements between those of
  /// two sums: odd for the same reason.
  int64_t sharedSums() const { return sharedElements * groups * threads[1]; }
  int64_t sharedStride() const { return sharing | 1; }
  /// f32 elements of workgroup memory for one value a thread.
  int64_t partialSums() const { return threadCount; }

  std::optional<FlashShape> flash; ///< of attention
  /// Of attention on matrix units; `flash` is for what it leaves, then.
  std::optional<FlashMmaShape> flashMma;
  /// Of attention on cooperative matrices; the same holds of `flash`.
  std::optional<FlashCoopShape> flashCoop;
  std::optional<StreamShape> stream; ///< of a product of few rows
  std::optional<HeldShape> held;     ///< of one with rows in registers
  std::optional<MmaShape> mma;       ///< of one of many rows, on matrix units
  std::optional<CoopShape> coop;     ///< the same, on cooperative matrices
  std::optional<LanesShape> lanes;   ///< of one of few rows, without them
  int64_t adjustmentWords = 0;       ///< of bits of kf.sample, one for some ids
  int64_t batch = 1; ///< elements that a thread asks for at a time

  int64_t workgroupBytes = 0; ///< all workgroup memory of the kernel
  /// Whether it may begin while the kernels before it are at work, and wait for
  /// them itself, where the target can.
  bool beginsEarly = true;
};

/// Threads of a group of kf.sample, which has a part of the ids: a warp's,
/// where there are some.
int64_t getSampleLanes(int64_t threads);

/// The shape that the kernel's schedule means; a diagnostic on the kernel where
/// it means none.
FailureOr<KernelShape> getKernelShape(KernelOp kernel);
/// The shape that `schedule` means for `kernel`. `emitError` begins the
/// diagnostic where it means none; null: there is no diagnostic.
FailureOr<KernelShape>
getKernelShape(KernelOp kernel, ScheduleAttrInterface schedule,
               function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::kf

#endif // KF_CONVERSION_KERNELSHAPE_H
