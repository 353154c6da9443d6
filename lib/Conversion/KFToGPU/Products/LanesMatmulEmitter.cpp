//===- LanesMatmulEmitter.cpp - Products of few rows by threads -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With few rows the time goes into reading the weight. Its tiles lie in memory
// as 32 lanes read them, 16 bytes each, so that any device reads whole lines,
// and many vectors are on their way before the first is used. Rows of x come to
// workgroup memory, four elements together that a thread multiplies by the same
// vector, and beside them their sums. A warp is 32 threads here, whatever the
// device's subgroups are: nothing is exchanged but through workgroup memory,
// when all products are summed.
//
// Workgroup memory: x [slice's units][rows][4 threads] vectors of four f32;
// their sums, likewise; sums of threads [warps][sumsAtOnce][32].
//
//===----------------------------------------------------------------------===//

#include "GPUMatmulEmitter.h"
#include "LaneTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Slices of K that have code of their own: drivers for CPUs keep in memory
/// what is there when a barrier in a loop is passed.
constexpr int64_t mostUnrolled = 2;

class LanesMatmulEmitter : public GPUMatmulEmitter {
public:
  explicit LanesMatmulEmitter(GPUEmitter &emitter)
      : GPUMatmulEmitter(emitter), lanes(*shape.lanes) {}

private:
  void emitProduct() override {
    allocate();
    Value lane = e.rem(e.thread, LanesShape::lanes);
    Value warp = e.div(e.thread, LanesShape::lanes);
    share = e.rem(warp, lanes.shares());
    inGroup = e.rem(lane, LanesShape::sharers);
    const WeightRows weight = findWeightRows(e, op);
    buffer = e.bufferOf(weight.argument);
    auto type = cast<RankedTensorType>(weight.argument.getType());
    LaneTiles tiles(e, type.getElementType(), e.div(lane, LanesShape::sharers),
                    inGroup, table);
    findRowBlocks(weight.first, e.div(warp, lanes.shares()));
    SmallVector<Value> sums(lanes.sums(), e.f32(0.0));
    auto addSlice = [&](Value first, ValueRange before) {
      stage(first);
      e.barrier();
      return sumSlice(tiles, first, before);
    };
    if (lanes.slices <= mostUnrolled) {
      for (int64_t slice = 0; slice < lanes.slices; ++slice) {
        if (slice > 0)
          e.barrier();
        sums = addSlice(e.index(slice * lanes.sliceSteps), sums);
      }
    } else {
      auto slices = e.loop(e.index(0), e.index(lanes.slices), e.index(1), sums,
                           [&](Value slice, ValueRange before) {
                             auto after = addSlice(
                                 e.scaled(slice, lanes.sliceSteps), before);
                             e.barrier();
                             return after;
                           });
      sums.assign(slices.result_begin(), slices.result_end());
    }
    storeSums(warp, lane, sums);
  }

  void allocate() {
    auto vector = VectorType::get({4}, b.getF32Type());
    xs = e.workgroupMemory(lanes.vectors(), vector);
    if (lanes.hasSumsOfX)
      xSums = e.workgroupMemory(lanes.vectors(), b.getF32Type());
    shared = e.workgroupMemory(lanes.sharedSums(), b.getF32Type());
    table = LaneTiles::makeTable(e, op.getW().getType().getElementType());
  }

  /// Where tiles of this warp's row blocks begin. Behind the last one there is
  /// nothing to read: its tiles are summed again, and not stored.
  void findRowBlocks(Value firstRow, Value blockWarp) {
    Value last = e.sub(e.ceilDiv(columns, lanes.blockColumns), e.index(1));
    Value before = e.div(firstRow, lanes.blockColumns);
    for (int64_t i = 0; i < lanes.blocks; ++i) {
      Value block = e.add(e.scaled(blockWarp, lanes.blocks), e.index(i));
      block = e.select(e.isLess(block, last), block, last);
      firstTiles.push_back(e.scaled(e.add(before, block), lanes.tilesOfRow));
    }
  }

  //===--- Rows of x ------------------------------------------------------===//

  /// Brings x of the slice from step `first` on to workgroup memory, zeros
  /// behind its end.
  void stage(Value first) {
    e.forBatches(e.index(lanes.vectors()), {},
                 [&](const GPUEmitter::Batch &batch, ValueRange) {
                   SmallVector<SmallVector<Value>> vectors;
                   for (Value number : batch.numbers)
                     vectors.push_back(loadVector(first, number));
                   for (auto [i, number] : llvm::enumerate(batch.numbers)) {
                     auto store = [&, number = number, &values = vectors[i]] {
                       storeVector(number, values);
                     };
                     if (Value isInside = batch.isInside[i])
                       e.ifThen(isInside, store);
                     else
                       store();
                   }
                   return SmallVector<Value>();
                 });
  }

  /// Elements of vector `number` of a slice.
  SmallVector<Value> loadVector(Value first, Value number) {
    Value sharer = e.rem(number, LanesShape::sharers);
    Value line = e.div(number, LanesShape::sharers);
    Value row = e.rem(line, lanes.rows), unit = e.div(line, lanes.rows);
    unit = e.add(unit, e.scaled(first, lanes.unitsOfStep()));
    Value begin = e.scaled(unit, LanesShape::unitColumns);
    row = e.select(e.isLess(row, rows), row, e.index(0));
    const Type element = op.getW().getType().getElementType();
    SmallVector<Value> values;
    for (int64_t i = 0; i < 4; ++i) {
      Value column = e.add(begin, LaneTiles::columnOf(e, element, sharer, i));
      if (isPadded()) {
        Value isInside = e.isLess(column, e.index(extent));
        column = e.select(isInside, column, e.index(0));
        values.push_back(e.select(isInside, loadX(row, column), e.f32(0.0)));
      } else {
        values.push_back(loadX(row, column));
      }
    }
    return values;
  }

  /// Whether there are more columns in steps than in K.
  bool isPadded() const {
    return lanes.slices * lanes.sliceSteps * lanes.stepColumns() != extent;
  }

  void storeVector(Value number, ValueRange values) {
    auto type = VectorType::get({4}, b.getF32Type());
    Value vector = vector::FromElementsOp::create(b, loc, type, values);
    memref::StoreOp::create(b, loc, vector, xs, number);
    if (!lanes.hasSumsOfX)
      return;
    Value sum = e.add(e.add(values[0], values[1]), e.add(values[2], values[3]));
    memref::StoreOp::create(b, loc, sum, xSums, number);
  }

  //===--- Products -------------------------------------------------------===//

  /// `sums` [blocks][rows][2], with the products of this warp's steps of the
  /// slice that begins with step `first`.
  SmallVector<Value> sumSlice(LaneTiles &tiles, Value first, ValueRange sums) {
    Value end = e.index(std::min(lanes.sliceSteps, lanes.steps));
    if (lanes.steps % lanes.sliceSteps != 0) { // the last one is shorter
      Value left = e.sub(e.index(lanes.steps), first);
      end = e.select(e.isLess(left, end), left, end);
    }
    // Vectors of the next step are on their way while this one's are used.
    Read read = load(tiles, e.add(first, share));
    SmallVector<Value> state(sums);
    forVectors(read, [&](Value &vector) { state.push_back(vector); });
    auto all = e.loop(share, end, e.index(lanes.shares()), state,
                      [&](Value step, ValueRange before) {
                        return addStep(tiles, first, step, before);
                      });
    SmallVector<Value> after(all.getResults());
    after.resize(lanes.sums());
    return after;
  }

  /// What a thread has of a step: tiles of each row block.
  using Read = SmallVector<SmallVector<LaneTiles::Tile, 0>, 0>;

  static void forVectors(Read &read, function_ref<void(Value &)> body) {
    for (auto &ofBlock : read)
      for (LaneTiles::Tile &tile : ofBlock)
        tile.forVectors(body);
  }

  /// Reads step number `number`, or the last one where that is behind it.
  Read load(LaneTiles &tiles, Value number) {
    auto atMost = [&](Value value, int64_t most) {
      Value last = e.index(most);
      return e.select(e.isLess(value, last), value, last);
    };
    number = atMost(number, lanes.steps - 1);
    Read read;
    for (Value firstTile : firstTiles) {
      SmallVector<LaneTiles::Tile, 0> &ofBlock = read.emplace_back();
      if (tiles.hasBlocks()) {
        Value tile = e.add(firstTile, e.div(number, tiles.parts()));
        ofBlock.push_back(
            tiles.load(buffer, tile, e.rem(number, tiles.parts())));
        continue;
      }
      for (int64_t i = 0; i < lanes.tiles; ++i) {
        Value tile = e.add(e.scaled(number, lanes.tiles), e.index(i));
        if (i > 0 && lanes.tilesOfRow % lanes.tiles != 0)
          tile = atMost(tile, lanes.tilesOfRow - 1);
        ofBlock.push_back(tiles.load(buffer, e.add(firstTile, tile), Value()));
      }
    }
    return read;
  }

  /// The sums, and the vectors of the next step, behind step `inSlice` of the
  /// slice that begins with step `first`.
  SmallVector<Value> addStep(LaneTiles &tiles, Value first, Value inSlice,
                             ValueRange before) {
    Value number = e.add(first, inSlice);
    Read next = load(tiles, e.add(number, e.index(lanes.shares())));
    Read read = next;
    size_t at = lanes.sums();
    forVectors(read, [&](Value &vector) { vector = before[at++]; });
    if (tiles.hasBlocks()) {
      Value part = e.rem(number, tiles.parts());
      for (auto &ofBlock : read)
        ofBlock.front().part = part;
    }
    const int64_t vectors = lanes.rows * LanesShape::sharers;
    Value own =
        e.add(e.scaled(inSlice, lanes.unitsOfStep() * vectors), inGroup);
    SmallVector<Value> after(before.take_front(lanes.sums()));
    const int64_t scaled = tiles.hasBlocks() ? tiles.unitsOfScale() : 1;
    for (int64_t unit = 0; unit < lanes.unitsOfStep(); unit += scaled)
      addUnits(tiles, read, unit, scaled, own, after);
    forVectors(next, [&](Value &vector) { after.push_back(vector); });
    return after;
  }

  /// Adds the products of `count` units from `unit` on, which have a scale in
  /// common. A row of x is read when what it is multiplied by is there.
  void addUnits(LaneTiles &tiles, const Read &read, int64_t unit, int64_t count,
                Value own, MutableArrayRef<Value> sums) {
    struct Line {
      SmallVector<Value> elements;
      LaneTiles::Scale scale;
    };
    SmallVector<Line> lines; // [blocks][2]
    for (const auto &ofBlock : read)
      for (int64_t row = 0; row < 2; ++row) {
        Line &line = lines.emplace_back();
        for (int64_t i = 0; i < count; ++i)
          llvm::append_range(line.elements,
                             tiles.elementsOf(ofBlock, unit + i, row));
        if (tiles.hasBlocks())
          line.scale = tiles.scaleOf(ofBlock.front(), unit, row);
      }
    for (int64_t row = 0; row < lanes.rows; ++row) {
      SmallVector<Value> x;
      Value sumOfX;
      for (int64_t i = 0; i < count; ++i) {
        Value place = e.add(own, e.index(((unit + i) * lanes.rows + row) *
                                         LanesShape::sharers));
        Value vector = memref::LoadOp::create(b, loc, xs, place);
        for (int64_t j = 0; j < 4; ++j)
          x.push_back(vector::ExtractOp::create(b, loc, vector, j));
        if (!lanes.hasSumsOfX)
          continue;
        Value part = memref::LoadOp::create(b, loc, xSums, place);
        sumOfX = sumOfX ? e.add(sumOfX, part) : part;
      }
      for (auto [number, line] : llvm::enumerate(lines)) {
        const auto place = static_cast<int64_t>(number);
        Value &sum = sums[(place / 2 * lanes.rows + row) * 2 + place % 2];
        Value products = line.scale.factor ? Value() : sum;
        for (auto [left, right] : llvm::zip(x, line.elements))
          products = products ? fma(left, right, products) : e.mul(left, right);
        sum = line.scale.factor ? fma(line.scale.factor, products, sum)
                                : products;
        if (line.scale.addend)
          sum = fma(line.scale.addend, sumOfX, sum);
      }
    }
  }

  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }

  //===--- Sums -----------------------------------------------------------===//

  /// Adds what threads have of each element, of `sumsAtOnce` of their sums at a
  /// time, and stores it.
  void storeSums(Value warp, Value lane, ValueRange sums) {
    Value own =
        e.add(e.scaled(warp, lanes.sumsAtOnce() * LanesShape::lanes), lane);
    for (int64_t first = 0; first < lanes.sums(); first += lanes.sumsAtOnce()) {
      const int64_t count = std::min(lanes.sumsAtOnce(), lanes.sums() - first);
      if (first > 0)
        e.barrier();
      for (auto [i, sum] : llvm::enumerate(sums.slice(first, count)))
        memref::StoreOp::create(
            b, loc, sum, shared,
            e.add(own, e.index(static_cast<int64_t>(i) * LanesShape::lanes)));
      e.barrier();
      storeElements(first / 2, count / 2);
    }
  }

  /// Stores the elements of `count` pairs of sums of each warp, [blocks][rows],
  /// from pair `first` on, whose sums are shared.
  void storeElements(int64_t first, int64_t count) {
    constexpr int64_t groups = LanesShape::lanes / LanesShape::sharers;
    const int64_t lines = 2 / shape.groups; // elements of a pair
    const int64_t each = groups * lines;
    e.forThreads(e.index(lanes.blockWarps * count * each), [&](Value number) {
      Value group = e.rem(number, groups);
      Value line = e.rem(e.div(number, groups), lines);
      Value pair = e.rem(e.div(number, each), count);
      Value blockWarp = e.div(number, each * count);
      Value element = e.add(pair, e.index(first));
      Value row = e.rem(element, lanes.rows);
      Value block =
          e.add(e.scaled(blockWarp, lanes.blocks), e.div(element, lanes.rows));
      Value column = e.add(e.scaled(block, lanes.blockColumns),
                           e.add(e.scaled(line, groups), group));
      Value begin =
          e.add(e.scaled(blockWarp, lanes.shares() * lanes.sumsAtOnce() *
                                        LanesShape::lanes),
                e.add(e.scaled(pair, 2 * LanesShape::lanes),
                      e.scaled(group, LanesShape::sharers)));
      SmallVector<Value> totals;
      for (int64_t i = 0; i < shape.groups; ++i)
        totals.push_back(
            total(e.add(begin, e.scaled(shape.groups == 2 ? e.index(i) : line,
                                        LanesShape::lanes))));
      storeElement(row, column, totals);
    });
  }

  Value total(Value begin) {
    Value sum;
    for (int64_t i = 0; i < lanes.shares(); ++i)
      for (int64_t j = 0; j < LanesShape::sharers; ++j) {
        Value place = e.add(
            begin, e.index(i * lanes.sumsAtOnce() * LanesShape::lanes + j));
        Value part = memref::LoadOp::create(b, loc, shared, place);
        sum = sum ? e.add(sum, part) : part;
      }
    return sum;
  }

  const LanesShape &lanes;
  Value share, inGroup; // of this thread: along K, and of a group's
  Value buffer;         // of the weight: vectors of four i32
  SmallVector<Value> firstTiles;
  Value xs, xSums, shared, table;
};

} // namespace

void mlir::kf::emitLanesMatmul(GPUEmitter &emitter) {
  LanesMatmulEmitter(emitter).emit();
}
