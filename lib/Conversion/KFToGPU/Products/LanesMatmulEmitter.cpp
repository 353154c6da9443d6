//===- LanesMatmulEmitter.cpp - Products of packed weights by threads -----===//
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
// when all products are summed. Where rows have experts, of any number of rows
// those of one are found first (ExpertPlaces.h), a few at a time, and
// multiplied as the rows of any product.
//
// Workgroup memory: x [slice's units][rows][4 threads] vectors of four f32;
// their sums, likewise, or of the columns that minimums have in common; sums of
// threads [warps][sumsAtOnce][32], twice where there are rounds; and of those,
// where there are slices, sums of elements.
//
//===----------------------------------------------------------------------===//

#include "ExpertPlaces.h"
#include "GPUMatmulEmitter.h"
#include "HalfTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

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
  /// What a thread has of a step: tiles of each row block.
  using Read = SmallVector<SmallVector<LaneTiles::Tile, 0>, 0>;
  /// First tiles of row blocks.
  using Tiles = SmallVector<Value>;

  /// What is read first is on its way while rows are prepared.
  void prepareInput() override {
    allocate();
    lane = e.rem(e.thread, LanesShape::lanes);
    warp = e.div(e.thread, LanesShape::lanes);
    share = e.rem(warp, lanes.shares());
    inGroup = e.rem(lane, LanesShape::sharers);
    const WeightRows weight = findWeightRows(e, product);
    firstBlock = e.div(weight.first, lanes.blockColumns);
    buffer = e.bufferOf(weight.argument);
    const Type element =
        cast<RankedTensorType>(weight.argument.getType()).getElementType();
    Value group = e.div(lane, LanesShape::sharers);
    if (lanes.hasHalves)
      halves.emplace(e, getStorage(cast<QuantType>(element).getFormat()), group,
                     inGroup);
    else
      words.emplace(e, element, group, inGroup, table);
    if (auto experts = dyn_cast<ExpertMatmulOp>(product.getOperation())) {
      places.emplace(e, experts, *lanes.experts);
      auto w = cast<RankedTensorType>(weight.argument.getType());
      blocksOfExpert =
          ::kf::FragmentTile::rowBlocks(shape.groups, w.getShape().end()[-2]);
      return; // which weight is read depends on the rows
    }
    startReading();
    GPUMatmulEmitter::prepareInput();
  }

  void emitProduct() override {
    if (!places)
      return multiplyRows();
    Value before = firstBlock;
    // What is read from workgroup memory last is not written to before the
    // first barrier of the next group.
    places->forGroups(rows, [&](Value together) {
      rows = together;
      firstBlock = e.add(before, e.scaled(places->expert(), blocksOfExpert));
      startReading();
      multiplyRows();
    });
  }

  void startReading() {
    tilesOfRound = findRowBlocks(e.index(0));
    first = load(tilesOfRound, share);
  }

  void multiplyRows() {
    if (lanes.rounds > 1)
      return takeRounds();
    SmallVector<Value> state(lanes.sums(), e.f32(0.0));
    forVectors(first, [&](Value &vector) { state.push_back(vector); });
    auto addSlice = [&](Value slice, ValueRange before) {
      Value firstStep = e.scaled(slice, lanes.sliceSteps);
      stage(firstStep);
      e.barrier();
      return sumSlice(firstStep, before, tilesOfRound, Value());
    };
    if (lanes.slices <= mostUnrolled) {
      for (int64_t slice = 0; slice < lanes.slices; ++slice) {
        if (slice > 0)
          e.barrier();
        state = addSlice(e.index(slice), state);
      }
    } else {
      auto slices = e.loop(e.index(0), e.index(lanes.slices), e.index(1), state,
                           [&](Value slice, ValueRange before) {
                             auto after = addSlice(slice, before);
                             e.barrier();
                             return after;
                           });
      state.assign(slices.result_begin(), slices.result_end());
    }
    storeSums(ArrayRef<Value>(state).take_front(lanes.sums()));
  }

  void allocate() {
    auto vector = VectorType::get({4}, b.getF32Type());
    xs = e.workgroupMemory(lanes.vectors(), vector);
    if (lanes.hasSumsOfX)
      xSums = e.workgroupMemory(lanes.vectors(), b.getF32Type());
    if (lanes.sumColumns)
      groupSums = e.workgroupMemory(lanes.groupSums(), b.getF32Type());
    shared = e.workgroupMemory(lanes.sharedSums(), b.getF32Type());
    if (lanes.totals())
      totals = e.workgroupMemory(lanes.totals(), b.getF32Type());
    table =
        LaneTiles::makeTable(e, getElementTypeOrSelf(product.getW().getType()));
  }

  /// Where tiles of this warp's row blocks of a round begin. Behind the last
  /// one there is nothing to read: its tiles are summed again, and not stored.
  Tiles findRowBlocks(Value round) {
    Value last = e.sub(e.ceilDiv(columns, lanes.blockColumns), e.index(1));
    Value own = e.add(e.scaled(round, lanes.blockWarps * lanes.blocks),
                      e.scaled(e.div(warp, lanes.shares()), lanes.blocks));
    Tiles tiles;
    for (int64_t i = 0; i < lanes.blocks; ++i) {
      Value block = e.add(own, e.index(i));
      block = e.select(e.isLess(block, last), block, last);
      tiles.push_back(e.scaled(e.add(firstBlock, block), lanes.tilesOfRow));
    }
    return tiles;
  }

  //===--- Rounds ---------------------------------------------------------===//

  /// Row blocks one after the other, for each slice of x. The first step of the
  /// next round, or slice, is on its way while sums are exchanged.
  void takeRounds() {
    SmallVector<Value> state;
    forVectors(first, [&](Value &vector) { state.push_back(vector); });
    auto addSlice = [&](Value slice, ValueRange before) {
      Value firstStep = e.scaled(slice, lanes.sliceSteps);
      stage(firstStep);
      e.barrier();
      auto rounds = e.loop(e.index(0), e.index(lanes.rounds), e.index(1),
                           before, [&](Value round, ValueRange vectors) {
                             return takeRound(slice, round, vectors);
                           });
      return SmallVector<Value>(rounds.getResults());
    };
    if (lanes.slices == 1) {
      addSlice(e.index(0), state);
      return;
    }
    e.loop(e.index(0), e.index(lanes.slices), e.index(1), state, addSlice);
  }

  SmallVector<Value> takeRound(Value slice, Value round, ValueRange vectors) {
    Value firstStep = e.scaled(slice, lanes.sliceSteps);
    Value later = e.add(round, e.index(1));
    Value isInside = e.isLess(later, e.index(lanes.rounds));
    tilesOfRound = findRowBlocks(round);
    tilesOfNext = findRowBlocks(e.select(isInside, later, e.index(0)));
    Value next = e.select(isInside, firstStep,
                          e.add(firstStep, e.index(lanes.sliceSteps)));
    SmallVector<Value> state(lanes.sums(), e.f32(0.0));
    llvm::append_range(state, vectors);
    state = sumSlice(firstStep, state, tilesOfNext, e.add(next, share));
    ArrayRef<Value> all(state);
    exchange(slice, round, all.take_front(lanes.sums()));
    return SmallVector<Value>(all.drop_front(lanes.sums()));
  }

  /// Adds what threads have of each element of a round. Exchanges have two
  /// places in turn: who writes to one is past the barrier behind which all
  /// have read it.
  void exchange(Value slice, Value round, ArrayRef<Value> sums) {
    const int64_t count = lanes.exchanges();
    Value before = e.add(e.scaled(slice, lanes.rounds), round);
    for (int64_t i = 0; i < count; ++i) {
      Value number = e.add(e.scaled(before, count), e.index(i));
      Value place = e.scaled(e.rem(number, 2), lanes.exchangedSums());
      const int64_t at = i * lanes.sumsAtOnce();
      const int64_t own = std::min(lanes.sumsAtOnce(), lanes.sums() - at);
      shareSums(place, sums.slice(at, own));
      e.barrier();
      addElements(place, round, at / 2, own / 2, [&](const Element &element) {
        if (!lanes.totals())
          return storeElement(element.row, element.column, element.sums);
        Value first =
            e.scaled(e.add(e.scaled(e.add(e.scaled(round, count), e.index(i)),
                                    lanes.exchangedSums() / lanes.shares() /
                                        LanesShape::sharers / shape.groups),
                           element.number),
                     shape.groups);
        addTotals(slice, element, first);
      });
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
    if (lanes.sumColumns)
      sumGroups();
  }

  /// Sums of x in the columns that minimums have in common.
  void sumGroups() {
    e.barrier();
    const int64_t units = lanes.sumColumns / LanesShape::unitColumns;
    e.forThreads(e.index(lanes.groupSums()), [&](Value number) {
      Value row = e.rem(number, lanes.rows);
      Value unit = e.scaled(e.div(number, lanes.rows), units);
      Value sum;
      for (int64_t i = 0; i < units; ++i)
        for (int64_t j = 0; j < LanesShape::sharers; ++j) {
          Value line =
              e.add(e.scaled(e.add(unit, e.index(i)), lanes.rows), row);
          Value place = e.add(e.scaled(line, LanesShape::sharers), e.index(j));
          Value vector = memref::LoadOp::create(b, loc, xs, place);
          for (int64_t k = 0; k < 4; ++k) {
            Value x = vector::ExtractOp::create(b, loc, vector, k);
            sum = sum ? e.add(sum, x) : x;
          }
        }
      memref::StoreOp::create(b, loc, sum, groupSums, number);
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
    const Type element = getElementTypeOrSelf(product.getW().getType());
    std::optional<ExpertPlaces::Place> place;
    if (places)
      place = places->placeOfRow(row);
    auto loadElement = [&](Value column) {
      return place ? places->loadX(*place, column) : loadX(row, column);
    };
    SmallVector<Value> values;
    for (int64_t i = 0; i < 4; ++i) {
      Value column = e.add(begin, LaneTiles::columnOf(e, element, sharer, i));
      if (isPadded()) {
        Value isInside = e.isLess(column, e.index(extent));
        column = e.select(isInside, column, e.index(0));
        values.push_back(e.select(isInside, loadElement(column), e.f32(0.0)));
      } else {
        values.push_back(loadElement(column));
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

  /// `state`, sums [blocks][rows][2] and the vectors of this warp's first step,
  /// with the products of its steps of the slice that begins with step `first`.
  /// The vectors are then those of step `next` of row blocks `after`; `next` is
  /// null where they are those that the next slice begins with.
  SmallVector<Value> sumSlice(Value first, ValueRange state, const Tiles &after,
                              Value next) {
    const int64_t shares = lanes.shares();
    auto add = [&](Value step, Value isLast, ValueRange before) {
      return addStep(first, step, isLast, before, after, next);
    };
    if (lanes.steps % lanes.sliceSteps == 0 && lanes.sliceSteps % shares == 0) {
      const int64_t count = lanes.sliceSteps / shares;
      if (count == 1)
        return add(share, Value(), state);
      auto all = e.loop(e.index(0), e.index(count), e.index(1), state,
                        [&](Value i, ValueRange before) {
                          Value isLast = e.isLess(e.index(count - 2), i);
                          return add(e.add(share, e.scaled(i, shares)), isLast,
                                     before);
                        });
      return SmallVector<Value>(all.getResults());
    }
    Value end = e.index(std::min(lanes.sliceSteps, lanes.steps));
    if (lanes.steps % lanes.sliceSteps != 0) { // the last one is shorter
      Value left = e.sub(e.index(lanes.steps), first);
      end = e.select(e.isLess(left, end), left, end);
    }
    auto all = e.loop(share, end, e.index(shares), state,
                      [&](Value step, ValueRange before) {
                        Value later = e.add(step, e.index(shares));
                        Value isLast = e.isLess(e.sub(end, e.index(1)), later);
                        return add(step, isLast, before);
                      });
    return SmallVector<Value>(all.getResults());
  }

  static void forVectors(Read &read, function_ref<void(Value &)> body) {
    for (auto &ofBlock : read)
      for (LaneTiles::Tile &tile : ofBlock)
        tile.forVectors(body);
  }

  /// Reads step number `number` of row blocks that begin with `firstTiles`, or
  /// the last step where that is behind it.
  Read load(const Tiles &firstTiles, Value number) {
    auto atMost = [&](Value value, int64_t most) {
      Value last = e.index(most);
      return e.select(e.isLess(value, last), value, last);
    };
    number = atMost(number, lanes.steps - 1);
    Read read;
    for (Value firstTile : firstTiles) {
      SmallVector<LaneTiles::Tile, 0> &ofBlock = read.emplace_back();
      if (halves) {
        ofBlock.push_back(halves->load(buffer, e.add(firstTile, number)));
        continue;
      }
      if (words->hasBlocks()) {
        Value tile = e.add(firstTile, e.div(number, words->parts()));
        ofBlock.push_back(
            words->load(buffer, tile, e.rem(number, words->parts())));
        continue;
      }
      for (int64_t i = 0; i < lanes.tiles; ++i) {
        Value tile = e.add(e.scaled(number, lanes.tiles), e.index(i));
        if (i > 0 && lanes.tilesOfRow % lanes.tiles != 0)
          tile = atMost(tile, lanes.tilesOfRow - 1);
        ofBlock.push_back(words->load(buffer, e.add(firstTile, tile), Value()));
      }
    }
    return read;
  }

  /// The sums, and the vectors of the next step, behind step `inSlice` of the
  /// slice that begins with step `first`. Where it is the last one of its
  /// round, these are of step `nextOfRound` of row blocks `nextTiles`; `isLast`
  /// is null where it is for certain.
  SmallVector<Value> addStep(Value first, Value inSlice, Value isLast,
                             ValueRange before, const Tiles &nextTiles,
                             Value nextOfRound) {
    Value number = e.add(first, inSlice);
    Value following = e.add(number, e.index(lanes.shares()));
    Tiles tiles = tilesOfRound;
    if (nextOfRound) {
      auto choose = [&](Value later, Value usual) {
        return isLast ? e.select(isLast, later, usual) : later;
      };
      following = choose(nextOfRound, following);
      for (auto [tile, later] : llvm::zip(tiles, nextTiles))
        tile = choose(later, tile);
    }
    Read next = load(tiles, following);
    Read read = next;
    size_t at = lanes.sums();
    forVectors(read, [&](Value &vector) { vector = before[at++]; });
    SmallVector<Value> after(before.take_front(lanes.sums()));
    if (halves) {
      addTiles(read, inSlice, after);
    } else {
      if (words->hasBlocks()) {
        Value part = e.rem(number, words->parts());
        for (auto &ofBlock : read)
          ofBlock.front().part = part;
      }
      const int64_t scaled = words->hasBlocks() ? words->unitsOfScale() : 1;
      for (int64_t unit = 0; unit < lanes.unitsOfStep(); unit += scaled)
        addUnits(read, unit, scaled, inSlice, after);
    }
    forVectors(next, [&](Value &vector) { after.push_back(vector); });
    return after;
  }

  /// What this thread has of row `row` of x, and of unit `unit` of step
  /// `inSlice`, in workgroup memory.
  Value placeOfX(Value inSlice, int64_t unit, int64_t row) {
    const int64_t vectors = lanes.rows * LanesShape::sharers;
    Value own =
        e.add(e.scaled(inSlice, lanes.unitsOfStep() * vectors), inGroup);
    return e.add(own, e.index((unit * lanes.rows + row) * LanesShape::sharers));
  }

  void loadX4(Value place, SmallVectorImpl<Value> &x) {
    Value vector = memref::LoadOp::create(b, loc, xs, place);
    for (int64_t i = 0; i < 4; ++i)
      x.push_back(vector::ExtractOp::create(b, loc, vector, i));
  }

  Value &sumOf(MutableArrayRef<Value> sums, int64_t line, int64_t row) {
    return sums[(line / 2 * lanes.rows + row) * 2 + line % 2];
  }

  /// Adds the products of `count` units from `unit` on, which have a scale in
  /// common. A row of x is read when what it is multiplied by is there.
  void addUnits(const Read &read, int64_t unit, int64_t count, Value inSlice,
                MutableArrayRef<Value> sums) {
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
                             words->elementsOf(ofBlock, unit + i, row));
        if (words->hasBlocks())
          line.scale = words->scaleOf(ofBlock.front(), unit, row);
      }
    for (int64_t row = 0; row < lanes.rows; ++row) {
      SmallVector<Value> x;
      Value sumOfX;
      for (int64_t i = 0; i < count; ++i) {
        Value place = placeOfX(inSlice, unit + i, row);
        loadX4(place, x);
        if (!lanes.hasSumsOfX)
          continue;
        Value part = memref::LoadOp::create(b, loc, xSums, place);
        sumOfX = sumOfX ? e.add(sumOfX, part) : part;
      }
      for (auto [number, line] : llvm::enumerate(lines)) {
        Value &sum = sumOf(sums, static_cast<int64_t>(number), row);
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

  /// Adds the products of whole tiles of blocks, whose codes are halves.
  void addTiles(const Read &read, Value inSlice, MutableArrayRef<Value> sums) {
    constexpr int64_t spans = 8, units = 2; // of a tile, of a span
    const int64_t scales =
        ::kf::FragmentTile::span / halves->scaleColumns(); // of a span
    for (int64_t span = 0; span < spans; ++span) {
      SmallVector<HalfTiles::Codes> lines;          // [blocks][2]
      SmallVector<std::array<Value, 2>, 4> factors; // [blocks][scales]
      for (const auto &ofBlock : read) {
        for (int64_t row = 0; row < 2; ++row)
          lines.push_back(halves->codesOf(ofBlock.front(), span, row));
        for (int64_t i = 0; i < scales; ++i)
          factors.push_back(
              halves->factorsOf(ofBlock.front(), span * scales + i));
      }
      for (int64_t row = 0; row < lanes.rows; ++row) {
        SmallVector<Value> x;
        for (int64_t i = 0; i < units; ++i)
          loadX4(placeOfX(inSlice, span * units + i, row), x);
        for (int64_t line = 0; line < 2 * lanes.blocks; ++line)
          for (int64_t i = 0; i < scales; ++i) {
            Value &sum = sumOf(sums, line, row);
            sum = fma(factors[line / 2 * scales + i][line % 2],
                      multiplyCodes(x, lines[line], i * 8 / scales, 8 / scales),
                      sum);
          }
      }
    }
    if (lanes.sumColumns)
      addMinimums(read, inSlice, sums);
  }

  /// The sum of products of `count` codes from number `first` on.
  Value multiplyCodes(ArrayRef<Value> x, const HalfTiles::Codes &codes,
                      int64_t first, int64_t count) {
    std::map<int, Value> sums; // by how much codes are raised
    for (int64_t i = first; i < first + count; ++i) {
      Value &sum = sums[codes.raised[i]];
      sum =
          sum ? fma(x[i], codes.values[i], sum) : e.mul(x[i], codes.values[i]);
    }
    Value all;
    for (auto [raised, sum] : sums) {
      Value scale = e.f32(1.0 / (1 << raised));
      if (raised == 0)
        all = sum;
      else
        all = all ? fma(sum, scale, all) : e.mul(sum, scale);
    }
    return all;
  }

  void addMinimums(const Read &read, Value inSlice,
                   MutableArrayRef<Value> sums) {
    const int64_t ofStep = lanes.stepColumns() / lanes.sumColumns;
    for (int64_t i = 0; i < halves->minimumsOfLane(); ++i) {
      SmallVector<std::array<Value, 2>, 4> minimums;
      for (const auto &ofBlock : read)
        minimums.push_back(halves->minimumsOf(ofBlock.front(), i));
      Value number =
          e.add(e.scaled(inSlice, ofStep), halves->numberOfMinimum(i));
      for (int64_t row = 0; row < lanes.rows; ++row) {
        Value place = e.add(e.scaled(number, lanes.rows), e.index(row));
        Value sumOfX = memref::LoadOp::create(b, loc, groupSums, place);
        for (int64_t line = 0; line < 2 * lanes.blocks; ++line) {
          Value &sum = sumOf(sums, line, row);
          sum = fma(minimums[line / 2][line % 2], sumOfX, sum);
        }
      }
    }
  }

  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, loc, x, y, z);
  }

  //===--- Sums -----------------------------------------------------------===//

  /// Adds what threads have of each element, of `sumsAtOnce` of their sums at a
  /// time, and stores it.
  void storeSums(ArrayRef<Value> sums) {
    for (int64_t first = 0; first < lanes.sums(); first += lanes.sumsAtOnce()) {
      const int64_t count = std::min(lanes.sumsAtOnce(), lanes.sums() - first);
      if (first > 0)
        e.barrier();
      shareSums(e.index(0), sums.slice(first, count));
      e.barrier();
      addElements(e.index(0), e.index(0), first / 2, count / 2,
                  [&](const Element &element) {
                    storeElement(element.row, element.column, element.sums);
                  });
    }
  }

  /// Stores what this thread has to workgroup memory from `place` on.
  void shareSums(Value place, ArrayRef<Value> sums) {
    Value own =
        e.add(e.scaled(warp, lanes.sumsAtOnce() * LanesShape::lanes), lane);
    own = e.add(place, own);
    for (auto [i, sum] : llvm::enumerate(sums))
      memref::StoreOp::create(
          b, loc, sum, shared,
          e.add(own, e.index(static_cast<int64_t>(i) * LanesShape::lanes)));
  }

  /// An element of the product, and its sums, one a group; number `number` of
  /// those that are added up at a time.
  struct Element {
    Value number, row, column;
    SmallVector<Value> sums;
  };

  /// Calls `body` for the elements of `count` pairs of sums of each warp,
  /// [blocks][rows], from pair `first` of round `round` on, whose sums are
  /// shared from `place` on.
  void addElements(Value place, Value round, int64_t first, int64_t count,
                   function_ref<void(const Element &)> body) {
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
      Value warpBlock = e.add(e.scaled(round, lanes.blockWarps), blockWarp);
      Value block =
          e.add(e.scaled(warpBlock, lanes.blocks), e.div(element, lanes.rows));
      Value column = e.add(e.scaled(block, lanes.blockColumns),
                           e.add(e.scaled(line, groups), group));
      Value begin =
          e.add(e.scaled(blockWarp, lanes.shares() * lanes.sumsAtOnce() *
                                        LanesShape::lanes),
                e.add(e.scaled(pair, 2 * LanesShape::lanes),
                      e.scaled(group, LanesShape::sharers)));
      begin = e.add(place, begin);
      SmallVector<Value> sums;
      for (int64_t i = 0; i < shape.groups; ++i)
        sums.push_back(
            total(e.add(begin, e.scaled(shape.groups == 2 ? e.index(i) : line,
                                        LanesShape::lanes))));
      body({number, row, column, sums});
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

  /// Adds the sums of slice `slice` to those of the ones before, from `place`
  /// on, and stores the element behind the last one. The same thread comes for
  /// it with each slice.
  void addTotals(Value slice, const Element &element, Value place) {
    Value isFirst = e.isLess(slice, e.index(1));
    SmallVector<Value> sums;
    for (auto [i, sum] : llvm::enumerate(element.sums)) {
      Value own = e.add(place, e.index(static_cast<int64_t>(i)));
      Value before = memref::LoadOp::create(b, loc, totals, own);
      sums.push_back(e.add(e.select(isFirst, e.f32(0.0), before), sum));
      memref::StoreOp::create(b, loc, sums.back(), totals, own);
    }
    Value isLast = e.isLess(e.index(lanes.slices - 2), slice);
    e.ifThen(isLast, [&] { storeElement(element.row, element.column, sums); });
  }

  Value finishElement(Value row, Value column, ValueRange sums) override {
    return places ? places->finishElement(row, column, sums)
                  : GPUMatmulEmitter::finishElement(row, column, sums);
  }

  SmallVector<Value> resultIndices(Value row, Value column) override {
    return places ? places->resultIndices(row, column)
                  : GPUMatmulEmitter::resultIndices(row, column);
  }

  const LanesShape &lanes;
  std::optional<ExpertParts> places; // where rows have experts
  int64_t blocksOfExpert = 0;        // row blocks of each
  Value lane, warp, share, inGroup; // of this thread: along K, and of a group's
  Value firstBlock, buffer;         // of the weight: vectors of four i32
  std::optional<LaneTiles> words;   // one of these takes it apart
  std::optional<HalfTiles> halves;
  Tiles tilesOfRound, tilesOfNext;
  Read first; // of this warp's first step
  Value xs, xSums, groupSums, shared, totals, table;
};

} // namespace

void mlir::kf::emitLanesMatmul(GPUEmitter &emitter) {
  LanesMatmulEmitter(emitter).emit();
}
