//===- HeldMatmulEmitter.cpp - Products of some rows on matrix units ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With some rows of x, as many as matrix units take at a time, a product could
// still be as fast as its weight is read, but x must not be read from workgroup
// memory for each tile of the weight. So a warp has a part of K, and holds what
// x has of it in registers, as the right operand, while tiles of all row blocks
// pass: the warp copies them to workgroup memory of its own, steps ahead. What
// warps have of some row blocks is added in workgroup memory, in their order;
// a second place for sums is filled meanwhile, so that there is one barrier for
// each time.
//
// Where registers do not hold all of K, it is divided into slices, one after
// the other, and elements have their sums in workgroup memory. Workgroups of a
// cluster may have some of the slices each, and as many more row blocks: x is
// read less often then. They store the sum of what all of them have, each a
// part of the elements.
//
//===----------------------------------------------------------------------===//

#include "../Units/RowRange.h"
#include "HeldBlocks.h"
#include "MmaStaging.h"
#include "PackedMatmulEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

using Tile = ::kf::FragmentTile;

class HeldMatmulEmitter : public PackedMatmulEmitter {
public:
  explicit HeldMatmulEmitter(GPUEmitter &emitter)
      : PackedMatmulEmitter(emitter), held(*emitter.shape.held),
        outliers(emitter, op) {}

private:
  void emitProduct() override {
    findWeight();
    ring = code.workgroupBytes(held.ringBytes());
    shared = code.workgroupBytes(held.sharedBytes());
    if (held.hasTotals())
      totals = e.workgroupMemory(held.totals(), b.getF32Type());
    if (held.hasOutliers) {
      range.emplace(e, /*rows=*/0);
      range->reset();
    }
    e.useAllRegisters();
    MmaOperand x(e, op.getX(), element);
    emitTile(x);
    if (range)
      range->unlessNoted({}, [&] {
        emitElements();
        return SmallVector<Value>();
      });
  }

  void emitTile(MmaOperand &x) {
    numberThread(held.blockColumns);
    if (quant)
      blockTiles.emplace(e, BlockLanes{lane, group, inGroup},
                         getStorage(quant.getFormat()));
    startCopiesAt(
        e.scaled(e.div(weight.first, held.blockColumns), held.tilesOfRow),
        held.tileBytes);
    ringOfWarp = e.scaled(warp, held.stages * held.slotBytes());
    ringOfLane = code.advance(ring, e.add(ringOfWarp, ofLane));
    // Weights are on their way while the kernels before this one end.
    for (int64_t stage = 0; stage + 1 < held.stages; ++stage)
      startCopies(e.index(0), e.index(0), stage, e.index(stage));
    e.waitForInputs();
    emitSlices(x);
  }

  //===--------------------------------------------------------------------===//
  // The weight
  //===--------------------------------------------------------------------===//

  /// What warps have before this one, in this workgroup's slice number `slice`.
  Value partsBefore(Value slice) {
    if (e.part)
      slice = e.add(slice, e.scaled(e.part, held.slices));
    return e.add(e.scaled(slice, held.warps), warp);
  }

  /// Starts the copies of the step that is `ahead` steps behind the first one
  /// of row block `block` in slice `slice`, if there is one, into slot number
  /// `slot`: a group of copies.
  void startCopies(Value slice, Value block, int64_t ahead, Value slot) {
    const int64_t step = ahead % held.steps;
    block = e.add(block, e.index(ahead / held.steps));
    Value exists;
    if (held.slices == 1) {
      exists = e.isLess(block, blocks);
    } else {
      // Behind the last row block comes the first one of the next slice.
      for (int64_t i = 0; i < ahead / held.steps; ++i) {
        Value isInside = e.isLess(block, blocks);
        block = e.select(isInside, block, e.sub(block, blocks));
        slice = e.select(isInside, slice, e.add(slice, e.index(1)));
      }
      exists = e.isLess(slice, e.index(held.slices));
    }
    e.ifThen(exists, [&] {
      Value inRow = e.add(e.scaled(partsBefore(slice), held.tilesOfWarp()),
                          e.index(step * held.tiles));
      Value offset = e.scaled(e.add(e.scaled(block, held.tilesOfRow), inRow),
                              held.tileBytes);
      Value to = code.advance(ringOfLane, e.scaled(slot, held.slotBytes()));
      for (int64_t i = 0; i < held.tiles; ++i) {
        Value from = e.add(offset, e.index(i * held.tileBytes));
        Value bytes = e.word(vectorBytes);
        if (held.isPadded()) {
          Value isInside =
              e.isLess(e.add(inRow, e.index(i)), e.index(held.tilesOfRow));
          bytes = e.select(isInside, bytes, e.word(0));
          from = e.select(isInside, from, e.index(0));
        }
        code.copyTile(code.advance(to, i * held.tileBytes),
                      code.advance(source, from), held.tileBytes, lane, bytes);
      }
    });
    code.commitCopies();
  }

  //===--------------------------------------------------------------------===//
  // Rows of x
  //===--------------------------------------------------------------------===//

  /// Reads what this warp has of x in slice number `slice`: all there is, then
  /// 8 rows at a time go to the lanes that multiply them.
  void holdRows(MmaOperand &x, Value slice) {
    Value first = e.scaled(partsBefore(slice), held.warpColumns());
    const int64_t chunks = held.warpColumns() / chunkColumns;
    SmallVector<std::pair<Value, SmallVector<Value>>> loaded; // with its place
    for (int64_t tile = 0; tile < held.rowTiles(); ++tile)
      for (int64_t i = 0; i < held.spans(); ++i) {
        Value number = e.add(lane, e.index(i * HeldShape::lanes));
        Value row = e.div(number, chunks), chunk = e.rem(number, chunks);
        Value place = e.add(e.scaled(row, held.stagedRowBytes()),
                            e.scaled(chunk, vectorBytes));
        row = e.add(row, e.index(tile * HeldShape::unitRows));
        // Nobody reads the sums of rows that there are not.
        row = e.select(e.isLess(row, rows), row, e.index(0));
        Value column = e.add(first, e.scaled(chunk, chunkColumns));
        loaded.emplace_back(place, loadChunk(x, row, column));
      }

    Value staged = code.advance(shared, e.scaled(warp, held.stagedBytes()));
    Value ofGroup =
        code.advance(staged, e.add(e.scaled(group, held.stagedRowBytes()),
                                   e.scaled(inGroup, 4)));
    rowsOfTiles.clear();
    for (int64_t tile = 0; tile < held.rowTiles(); ++tile) {
      if (tile > 0)
        code.syncLanes();
      for (auto &[place, words] :
           ArrayRef(loaded).slice(tile * held.spans(), held.spans()))
        code.storeRegisters(words, code.advance(staged, place));
      code.syncLanes();
      SmallVector<SmallVector<Value>> &spans = rowsOfTiles.emplace_back();
      for (int64_t span = 0; span < held.spans(); ++span)
        spans.push_back(loadSpan(code.advance(
            ofGroup, span * HeldShape::spanColumns * elementBytes)));
    }
    if (!blockTiles)
      return;
    const int64_t ofTile = held.tileColumns / HeldShape::spanColumns;
    blockRows.assign(held.tilesOfWarp(), {});
    for (ArrayRef<SmallVector<Value>> spans : rowsOfTiles)
      for (auto [number, all] : llvm::enumerate(blockRows))
        all.push_back(blockTiles->hold(spans.slice(number * ofTile, ofTile)));
  }

  /// Eight columns of a row from `column` on, 0 past the end.
  SmallVector<Value> loadChunk(MmaOperand &x, Value row, Value column) {
    const bool isPadded = held.allColumns() != extent;
    SmallVector<Value> words;
    if (x.isInPlace()) { // then K is a multiple of eight columns
      Value isInside;
      if (isPadded) {
        isInside = e.isLess(column, e.index(extent));
        column = e.select(isInside, column, e.index(0));
      }
      words = code.loadRegisters(
          code.advance(x.rowPointer(row), e.scaled(column, elementBytes)),
          vectorBytes);
      if (isInside)
        for (Value &word : words)
          word = e.select(isInside, word, e.word(0));
      return words;
    }
    for (int64_t i = 0; i < chunkColumns; i += 2) {
      Value halves[2];
      for (int64_t k = 0; k < 2; ++k) {
        Value at = e.add(column, e.index(i + k));
        Value isInside = e.isLess(at, e.index(extent));
        at = e.select(isInside, at, e.index(0));
        Value bits = arith::ExtUIOp::create(b, loc, b.getI32Type(),
                                            x.loadBits({row, at}));
        halves[k] = e.select(isInside, bits, e.word(0));
      }
      words.push_back(arith::OrIOp::create(
          b, loc, halves[0],
          arith::ShLIOp::create(b, loc, halves[1], e.word(16))));
    }
    return words;
  }

  /// This lane's words of a span: of columns 2 t, 2 t + 8, 2 t + 16 and 2 t +
  /// 24.
  SmallVector<Value> loadSpan(Value pointer) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < 4; ++i)
      llvm::append_range(words,
                         code.loadRegisters(code.advance(pointer, 16 * i), 4));
    return words;
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  void emitSlices(MmaOperand &x) {
    // The number of the slot that is next goes from one to the other.
    auto emitSlice = [&](Value slice, ValueRange slot) -> SmallVector<Value> {
      if (held.slices > 1)
        e.barrier(); // sums of the slice before are read
      holdRows(x, slice);
      e.barrier();
      auto loop =
          e.loop(e.index(0), blocks, e.index(1), slot,
                 [&](Value block, ValueRange slot) -> SmallVector<Value> {
                   return {emitBlock(slice, block, slot[0])};
                 });
      return SmallVector<Value>(loop.getResults());
    };
    if (held.slices > 1)
      e.loop(e.index(0), e.index(held.slices), e.index(1), e.index(0),
             emitSlice);
    else
      emitSlice(e.index(0), e.index(0));
    if (held.hasTotals())
      storeTotals();
  }

  /// Adds a row block's products, from slot `slot` on; the slot behind.
  Value emitBlock(Value slice, Value block, Value slot) {
    SmallVector<Value> sums(4 * held.rowTiles(), e.f32(0.0));
    for (int64_t step = 0; step < held.steps; ++step) {
      emitStep(slice, block, step, slot, sums);
      Value next = e.add(slot, e.index(1));
      slot = e.select(e.isLess(next, e.index(held.stages)), next, e.index(0));
    }
    storeSums(block, sums);
    Value next = e.add(block, e.index(1));
    constexpr int64_t count = HeldShape::blocksAtOnce;
    Value isLastAtOnce = e.isLess(e.index(count - 2), e.rem(block, count));
    Value goesOn = e.isLess(next, blocks);
    Value isEnd = arith::OrIOp::create(
        b, loc, isLastAtOnce,
        arith::XOrIOp::create(
            b, loc, goesOn,
            arith::ConstantOp::create(b, loc, b.getBoolAttr(true))));
    e.ifThen(isEnd, [&] {
      e.barrier();
      Value first = e.sub(block, e.rem(block, count));
      if (held.hasTotals())
        addTotals(slice, first);
      else
        storeElements(first);
    });
    return slot;
  }

  /// Adds the products of the tiles in slot `slot` to `sums`.
  void emitStep(Value slice, Value block, int64_t step, Value slot,
                MutableArrayRef<Value> sums) {
    code.waitForCopies(held.stages - 2);
    Value place = e.add(ringOfWarp, e.scaled(slot, held.slotBytes()));
    SmallVector<SmallVector<Value>> tiles;
    if (blockTiles)
      code.syncLanes(); // they read what others have copied
    else
      for (int64_t i = 0; i < held.tiles; ++i)
        tiles.push_back(code.loadRegisters(
            code.advance(ringOfLane, e.add(e.scaled(slot, held.slotBytes()),
                                           e.index(i * held.tileBytes))),
            vectorBytes));
    // The slot before this one was read in the step before.
    Value isFirst = e.isLess(slot, e.index(1));
    startCopies(
        slice, block, step + held.stages - 1,
        e.select(isFirst, e.index(held.stages - 1), e.sub(slot, e.index(1))));
    for (int64_t i = 0; i < held.tiles; ++i) {
      const int64_t tile = step * held.tiles + i;
      if (blockTiles) {
        blockTiles->multiply(
            code.advance(ring, e.add(place, e.index(i * held.tileBytes))),
            blockRows[tile], sums);
        continue;
      }
      for (auto [number, spans] : llvm::enumerate(rowsOfTiles)) {
        MutableArrayRef<Value> own = sums.slice(4 * number, 4);
        llvm::copy(code.multiplyAdd(
                       element, tiles[i],
                       ArrayRef(spans[tile / 2]).slice(tile % 2 * 2, 2), own),
                   own.begin());
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // Sums
  //===--------------------------------------------------------------------===//

  /// Where the sums of a row block are, in f32 elements: [warps][tiles of
  /// rows][16 lines and 8 rows]. Two times as many as are added at once have
  /// places of their own.
  Value placeOf(Value block) {
    return e.scaled(e.rem(block, 2 * HeldShape::blocksAtOnce),
                    held.blockSums());
  }

  /// A lane's four sums lie behind one another.
  void storeSums(Value block, ArrayRef<Value> sums) {
    auto vector = VectorType::get({4}, b.getF32Type());
    Value place = e.add(placeOf(block),
                        e.scaled(warp, held.rowTiles() * HeldShape::tileSums));
    place = e.add(place, e.add(e.scaled(lane, 4), gapBefore(group)));
    for (int64_t tile = 0; tile < held.rowTiles(); ++tile) {
      Value all = vector::FromElementsOp::create(b, loc, vector,
                                                 sums.slice(4 * tile, 4));
      Value at = e.add(place, e.index(tile * HeldShape::tileSums));
      LLVM::StoreOp::create(b, loc, all, code.advance(shared, e.scaled(at, 4)),
                            vectorBytes);
    }
  }

  /// So that lines of a row have banks of their own.
  Value gapBefore(Value line) { return e.scaled(e.div(line, 2), 4); }

  /// The sum of an element of row block `block`: of all warps.
  Value sumOf(Value block, Value row, Value line) {
    constexpr int64_t unitRows = HeldShape::unitRows, half = Tile::rows / 2;
    Value group = e.rem(line, half), inTile = e.rem(row, unitRows);
    Value lane = e.add(e.scaled(group, 4), e.div(inTile, 2));
    Value place = e.add(placeOf(block),
                        e.scaled(e.div(row, unitRows), HeldShape::tileSums));
    place = e.add(place, e.add(e.scaled(lane, 4), gapBefore(group)));
    place =
        e.add(place, e.add(e.scaled(e.div(line, half), 2), e.rem(inTile, 2)));
    Value first = code.advance(shared, e.scaled(place, 4));
    Value sum;
    for (int64_t warp = 0; warp < held.warps; ++warp) {
      const int64_t offset = 4 * warp * held.rowTiles() * HeldShape::tileSums;
      Value part = LLVM::LoadOp::create(b, loc, b.getF32Type(),
                                        code.advance(first, offset), 4);
      sum = sum ? e.add(sum, part) : part;
    }
    return sum;
  }

  /// Notes sums of rows that have outliers.
  void checkRange(Value column, ValueRange sums) {
    if (range)
      e.ifThen(e.isLess(column, columns),
               [&] { range->checkForCluster(sums); });
  }

  Value scaled(Value sum) {
    return blockTiles ? e.mul(sum, e.f32(1 / blockTiles->codeScale())) : sum;
  }

  /// Stores the elements of the row blocks from `first` on.
  void storeElements(Value first) {
    constexpr int64_t count = HeldShape::blocksAtOnce;
    Value width = e.index(count * held.blockColumns);
    e.forThreads(e.mul(rows, width), [&](Value number) {
      Value row = e.div(number, count * held.blockColumns);
      Value inBlocks = e.rem(number, count * held.blockColumns);
      Value block = e.add(first, e.div(inBlocks, held.blockColumns));
      Value line = e.rem(inBlocks, held.blockColumns);
      SmallVector<Value> sums;
      for (int64_t group = 0; group < shape.groups; ++group)
        sums.push_back(scaled(sumOf(
            block, row, e.add(line, e.index(group * held.blockColumns)))));
      Value column = e.add(e.scaled(first, held.blockColumns), inBlocks);
      checkRange(column, sums);
      storeElement(row, column, sums);
    });
  }

  /// Adds the sums of the row blocks from `first` on to those of slices before.
  void addTotals(Value slice, Value first) {
    constexpr int64_t lines = HeldShape::blocksAtOnce * Tile::rows;
    e.forThreads(e.scaled(rows, lines), [&](Value number) {
      Value row = e.div(number, lines), inBlocks = e.rem(number, lines);
      Value block = e.add(first, e.div(inBlocks, Tile::rows));
      Value line = e.rem(inBlocks, Tile::rows);
      e.ifThen(e.isLess(block, blocks), [&] {
        Value sum = sumOf(block, row, line);
        Value place = totalPlace(block, row, line);
        Value before = memref::LoadOp::create(b, loc, totals, place);
        // What is added to -0 stays as it is.
        Value isFirst = e.isLess(slice, e.index(1));
        before = e.select(isFirst, e.f32(-0.0), before);
        memref::StoreOp::create(b, loc, e.add(before, sum), totals, place);
      });
    });
  }

  /// The elements of the tile once more, each product in f32: warps have some
  /// columns each, and lanes share K. No copy of the code above, which would
  /// take registers from it.
  void emitElements() {
    constexpr int64_t atOnce = 8; // rows
    numberThread(held.blockColumns);
    Value first = warp;
    if (e.part)
      first = e.add(first, e.scaled(e.part, held.warps));
    Value count = e.mul(columns, e.ceilDiv(rows, atOnce));
    e.loop(
        first, count, e.index(held.warps * held.parts), {},
        [&](Value number, ValueRange) -> SmallVector<Value> {
          Value column = arith::RemUIOp::create(b, loc, number, columns);
          Value begin =
              e.scaled(arith::DivUIOp::create(b, loc, number, columns), atOnce);
          SmallVector<Value> own; // one more of the first where there is none
          for (int64_t i = 0; i < atOnce; ++i) {
            Value row = e.add(begin, e.index(i));
            own.push_back(e.select(e.isLess(row, rows), row, begin));
          }
          SmallVector<Value> sums = sumUpRows(own, column);
          e.ifThen(e.isLess(lane, e.index(1)), [&] {
            for (auto [i, row] : llvm::enumerate(own))
              storeElement(
                  row, column,
                  ArrayRef(sums).slice(i * shape.groups, shape.groups));
          });
          return {};
        });
  }

  /// Of each row, and each group, the sum for `column`.
  SmallVector<Value> sumUpRows(ArrayRef<Value> ofRows, Value column) {
    SmallVector<Value> zeros(ofRows.size() * shape.groups, e.f32(0.0));
    auto loop = e.loop(lane, e.index(extent), e.index(HeldShape::lanes), zeros,
                       [&](Value k, ValueRange args) {
                         SmallVector<Value> sums(args), weights;
                         for (int64_t group = 0; group < shape.groups; ++group)
                           weights.push_back(e.load(
                               op.getW(), groupIndices(group, {column, k}), 0));
                         for (auto [i, row] : llvm::enumerate(ofRows)) {
                           Value x = outliers.load({row, k});
                           for (auto [group, w] : llvm::enumerate(weights)) {
                             Value &sum = sums[i * shape.groups + group];
                             sum = math::FmaOp::create(b, loc, w, x, sum);
                           }
                         }
                         return sums;
                       });
    SmallVector<Value> sums;
    for (Value sum : loop.getResults())
      sums.push_back(code.combineLanes(
          sum, 0, 5, [&](Value x, Value y) { return e.add(x, y); }));
    return sums;
  }

  Value totalPlace(Value block, Value row, Value line) {
    return e.add(e.scaled(row, held.blocks * Tile::rows),
                 e.add(e.scaled(block, Tile::rows), line));
  }

  void storeTotals() {
    const SmallVector<Value> all = code.inEachPart(code.pointerTo(totals));
    code.synchronizeTile();
    auto totalAt = [&](Value place) {
      Value sum;
      for (Value memory : all) {
        Value part = LLVM::LoadOp::create(
            b, loc, b.getF32Type(), code.advance(memory, e.scaled(place, 4)));
        sum = sum ? e.add(sum, part) : part;
      }
      return sum;
    };
    storeTile(held.blockColumns, [&](Value row, Value block, Value line) {
      SmallVector<Value> sums;
      for (int64_t group = 0; group < shape.groups; ++group)
        sums.push_back(scaled(totalAt(totalPlace(
            block, row, e.add(line, e.index(group * held.blockColumns))))));
      checkRange(e.add(e.scaled(block, held.blockColumns), line), sums);
      return sums;
    });
    // What others read must be there until they have.
    if (e.part)
      code.clusterBarrier();
  }

  static constexpr int64_t elementBytes = 2;
  static constexpr int64_t chunkColumns = vectorBytes / elementBytes;

  const HeldShape &held;
  OutlierRows outliers;
  std::optional<HeldBlocks> blockTiles; // where the weight has blocks

  Value ring, shared, totals;    // workgroup memory
  std::optional<RowRange> range; // whether there were outliers
  Value ringOfWarp;              // bytes to its first slot
  Value ringOfLane;              // pointer to this lane's part of it

  // What this lane holds: by tile of rows, and span; where the weight has
  // blocks, by tile of the weight, and of rows.
  SmallVector<SmallVector<SmallVector<Value>>> rowsOfTiles;
  SmallVector<SmallVector<HeldBlocks::Rows>> blockRows;
};

} // namespace

void mlir::kf::emitHeldMatmul(GPUEmitter &emitter) {
  HeldMatmulEmitter(emitter).emit();
}
