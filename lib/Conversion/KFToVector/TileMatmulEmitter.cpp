//===- TileMatmulEmitter.cpp - Products of tiles --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dot = bf16: tiles of 16 rows of x and 32 elements of K (a step) are
// multiplied with tiles of as many elements and 16 columns, and summed up in
// tiles of f32. Rows of x are converted once for a workgroup, a panel of the
// weight once for all its rows. docs/decisions/tiles.md says why in bf16.
//
// With a reduction, all panels are multiplied for a part of K before the next
// part begins: rows and what is unpacked of a part stay in the second-level
// cache, and the sums of a workgroup wait in scratch.
//
// Where a workgroup has many rows, vector units unpack the next panel while
// tiles multiply this one: both are in one loop.
//
//===----------------------------------------------------------------------===//

#include "MatmulEmitter.h"
#include "PackedPanel.h"
#include "TileCode.h"

#include "kf/Conversion/VectorSchedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Elements of K that a tile has: two in each of its columns.
constexpr int64_t step = 2 * amxTile;
constexpr int64_t lineBytes = 64;
/// A quad of a step is unpacked beside each step of a turn.
constexpr int64_t turn = amxTurn;
static_assert(turn == PackedPanel::quadsPerUnit);

class TileMatmulEmitter : public MatmulEmitter {
public:
  /// `format` is null where the weight is bf16.
  TileMatmulEmitter(KernelEmitter &e, const ::kf::BlockFormat *format)
      : MatmulEmitter(e), tiles(e), format(format) {
    if (format)
      blocks.emplace(e, *format);
  }

private:
  //===--- Rows -----------------------------------------------------------===//

  void computeRows(int64_t most) override {
    mostRows = most;
    x = e.scratch({most / amxTile, steps(), amxTile, step}, b.getBF16Type());
    if (!op.getScales() && e.isLoadable(op.getX())) {
      e.loop(e.ceilDiv(rows, amxTile), [&](Value tile) { loadTiles(tile); });
      return;
    }
    e.loop(rows, [&](Value row) {
      if (extent % step != 0)
        clearLastStep(row);
      emitRow(row, [&](Value column, unsigned, Value values) {
        storeElements(placeOf(row, column), values);
      });
    });
  }

  /// Rows of tile `tile` that are in memory: a tile is written after the other,
  /// where whole rows would write a line of all tiles each.
  void loadTiles(Value tile) {
    Value firstRow = e.mul(tile, e.index(amxTile));
    Value count =
        arith::MinUIOp::create(b, loc, e.sub(rows, firstRow), e.index(amxTile));
    auto loadStep = [&](Value number, int64_t size) {
      Value first = e.mul(number, e.index(step));
      e.loop(count, [&](Value line) {
        Value row = e.add(firstRow, line);
        if (size < step)
          clearLastStep(row);
        e.forPiecesStatic(size, [&](int64_t at, unsigned width) {
          Value column = e.add(first, e.index(at));
          storeElements({tile, number, line, e.index(at)},
                        e.load(op.getX(), {row, column}, width));
        });
      });
    };
    e.loop(e.index(extent / step),
           [&](Value number) { loadStep(number, step); });
    if (extent % step != 0)
      loadStep(e.index(extent / step), extent % step);
  }

  /// Of x and of each panel; the last one may be filled up with zeros.
  int64_t steps() const { return llvm::divideCeil(extent, step); }

  /// Of an element in `x`.
  SmallVector<Value> placeOf(Value row, Value column) {
    auto divide = [&](Value value, int64_t by) -> Value {
      return arith::DivUIOp::create(b, loc, value, e.index(by));
    };
    auto remainder = [&](Value value, int64_t by) -> Value {
      return arith::RemUIOp::create(b, loc, value, e.index(by));
    };
    return {divide(row, amxTile), divide(column, step), remainder(row, amxTile),
            remainder(column, step)};
  }
  void clearLastStep(Value row) {
    VectorType type = e.vectorType(step, b.getBF16Type());
    Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    vector::StoreOp::create(b, loc, zeros, x,
                            placeOf(row, e.index(extent - extent % step)));
  }

  void storeElements(ArrayRef<Value> place, Value values) {
    vector::StoreOp::create(b, loc, e.narrow(values, b.getBF16Type()), x,
                            place);
  }

  /// What a sub-block's values are made of: code * scale + offset, where
  /// offsets are null without any.
  struct SubBlock {
    SmallVector<Value> scales, offsets;
  };

  //===--- Parts of K -----------------------------------------------------===//

  /// What is summed up before the next panel: steps [first, first + count).
  struct Part {
    Value first, count;
    Value isFirst, isLast, number; // null: there is one part
  };

  void computePanels(Value firstPanel, Value panels) override {
    int64_t reduction = e.schedule.getReduction();
    int64_t perPart = reduction ? std::min(reduction / step, steps()) : steps();
    int64_t count = llvm::divideCeil(steps(), perPart);
    mostSteps = perPart;
    overlaps = unpacksAhead(mostTiles, mostPanels(), extent,
                            e.schedule.getReduction());
    w = e.scratch({overlaps ? 2 : 1, vectorsPerRow(), perPart, amxTile, step},
                  b.getBF16Type());
    // What is multiplied meanwhile has brought the panel nearer.
    if (blocks)
      blocks->bind(weights, panel, extent, kNearPrefetch);
    waits = count > 1;
    if (!waits) {
      sums = e.scratch({tileRows / amxTile, vectorsPerRow(), amxTile, amxTile});
      computePart(firstPanel, panels,
                  {e.index(0), e.index(perPart), Value(), Value(), Value()});
      return;
    }
    sums = e.scratch(
        {mostRows / amxTile, mostPanels() * vectorsPerRow(), amxTile, amxTile});
    e.loop(e.index(count), [&](Value number) {
      Value first = e.mul(number, e.index(perPart));
      Value rest = e.sub(e.index(steps()), first);
      auto is = [&](int64_t other) -> Value {
        return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                                     e.index(other));
      };
      Value size = arith::MinUIOp::create(b, loc, rest, e.index(perPart));
      computePart(firstPanel, panels,
                  {first, size, is(0), is(count - 1), number});
    });
  }

  /// Of a workgroup.
  int64_t mostPanels() {
    ArrayRef<int64_t> sizes = e.schedule.getWorkgroup();
    int64_t columns = sizes.size() > 1 ? sizes[1] : 0;
    return llvm::divideCeil(columns ? columns : wholeColumns(), panel);
  }

  void computePart(Value firstPanel, Value panels, const Part &part) {
    if (overlaps) {
      auto first = [&] {
        unpackSteps(
            {firstPanel, part.first, part.count, part.count, e.index(0)},
            e.index(0));
      };
      if (part.isFirst)
        e.ifThen(part.isFirst, first);
      else
        first();
    }
    e.loop(panels, [&](Value p) {
      Value weightPanel = e.add(firstPanel, p);
      Ahead ahead;
      if (overlaps)
        ahead = following(firstPanel, p, panels, part);
      else if (blocks)
        unpackBlocks(weightPanel, part);
      else
        unpackHalves(weightPanel, part);
      Value tileCount = e.ceilDiv(rows, tileRows);
      e.loop(tileCount, [&](Value tile) {
        for (int64_t group = 0; group < groups; ++group)
          multiply(p, weightPanel, tile, group, part, ahead);
        if (part.isLast)
          e.ifThen(part.isLast, [&] { storeRows(p, tile); });
        else
          storeRows(p, tile);
      });
      if (overlaps)
        unpackSteps(ahead, e.mul(tileCount, stepsPerTile(part)));
    });
  }

  //===--- Panels that are unpacked meanwhile -----------------------------===//

  /// Steps [first, first + count) of a panel, the half of `w` that they are
  /// unpacked to, and where those end that are wanted: there, or at 0.
  struct Ahead {
    Value panel, first, count, end, half;
  };

  Value stepsPerTile(const Part &part) {
    return arith::DivUIOp::create(b, loc, part.count, e.index(turn));
  }

  /// What is multiplied behind panel `p` of `part`. At the end that is the same
  /// again: memory that is there, for what comes beside products. Nothing of it
  /// is wanted behind them.
  Ahead following(Value firstPanel, Value p, Value panels, const Part &part) {
    Value next = e.add(p, e.index(1));
    Value isLast =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next, panels);
    Value first = part.first, count = part.count, number = p, isEnd = isLast;
    if (waits) {
      number = e.add(e.mul(part.number, panels), p);
      Value behind = e.add(part.first, part.count);
      isEnd = arith::AndIOp::create(b, loc, isLast, part.isLast);
      first = e.select(isEnd, first, e.select(isLast, behind, first));
      count = arith::MinUIOp::create(b, loc, e.sub(e.index(steps()), first),
                                     e.index(mostSteps));
      next = e.select(isLast, e.index(0), next);
    } else {
      next = e.select(isLast, p, next);
    }
    Value half =
        arith::RemUIOp::create(b, loc, e.add(number, e.index(1)), e.index(2));
    Value end = e.select(isEnd, e.index(0), count);
    return {e.add(firstPanel, next), first, count, end, half};
  }

  /// Unpacks what is wanted from step `from` on.
  void unpackSteps(const Ahead &ahead, Value from) {
    e.loop(from, ahead.end, e.index(1), {}, [&](Value at, ValueRange) {
      for (int64_t group = 0; group < groups; ++group) {
        startStep(ahead, group, at);
        for (int64_t quad = 0; quad < turn; ++quad)
          unpackQuad(ahead, group, at, quad);
      }
      return SmallVector<Value>();
    });
  }

  void startStep(const Ahead &ahead, int64_t group, Value at) {
    if (blocks)
      blocks->moveTo(ahead.panel, {group * columnTiles(), columnTiles()},
                     e.add(ahead.first, at));
  }

  /// The four rows of K that quad `quad` of blocks has, of the step that was
  /// started last.
  void unpackQuad(const Ahead &ahead, int64_t group, Value at, int64_t quad) {
    if (blocks) {
      if (quad % blocks->quadsPerSubBlock() == 0)
        current = subBlock(quad / blocks->quadsPerSubBlock());
      storeQuad(current, quad, ahead.half, group * columnTiles(), at);
      return;
    }
    Value first = e.mul(e.add(ahead.first, at), e.index(step));
    for (int64_t line = 2 * quad; line < 2 * quad + 2; ++line)
      unpackLine(ahead.panel, group, first, step, line, ahead.half, at);
  }

  //===--- Panels ---------------------------------------------------------===//

  /// Stores pairs of K for the columns of vector `v`, the first of a pair in
  /// the low half of a lane, to line `line` of the tile of step `at`.
  void storePairs(Value bits, Value half, int64_t v, Value at, int64_t line) {
    Value pairs = vector::BitCastOp::create(
        b, loc, e.vectorType(step, b.getBF16Type()), bits);
    vector::StoreOp::create(
        b, loc, pairs, w,
        ValueRange{half, e.index(v), at, e.index(line), e.index(0)});
  }

  //===--- Panels of bf16 -------------------------------------------------===//

  /// Lanes of a row hold columns that are 16 apart; those of a tile hold two
  /// rows.
  void unpackHalves(Value p, const Part &part) {
    Value whole = part.count;
    if (extent % step != 0)
      whole = arith::MinUIOp::create(b, loc, whole,
                                     e.sub(e.index(extent / step), part.first));
    e.loop(whole,
           [&](Value at) { unpackStep(p, e.add(part.first, at), at, step); });
    if (extent % step == 0)
      return;
    auto last = [&] {
      Value number = e.index(extent / step);
      unpackStep(p, number, e.sub(number, part.first), extent % step);
    };
    if (part.isLast)
      e.ifThen(part.isLast, last);
    else
      last();
  }

  /// `size` rows from step `number` on, and zeros, to the tiles of step `at`.
  void unpackStep(Value p, Value number, Value at, int64_t size) {
    Value first = e.mul(number, e.index(step));
    for (int64_t group = 0; group < groups; ++group)
      for (int64_t line = 0; line < amxTile; ++line)
        unpackLine(p, group, first, size, line, e.index(0), at);
  }

  /// Two rows of the `size` from `first` on, and zeros behind these, to line
  /// `line` of a group's tiles of step `at`.
  void unpackLine(Value p, int64_t group, Value first, int64_t size,
                  int64_t line, Value half, Value at) {
    auto load = [&](int64_t k) -> Value {
      if (k >= size)
        return splatBits(0);
      return loadHalves(
          {p, e.index(group), e.add(first, e.index(k)), e.index(0)});
    };
    for (auto [number, pairs] :
         llvm::enumerate(pairRows(load(2 * line), load(2 * line + 1))))
      storePairs(pairs, half,
                 group * columnTiles() + static_cast<int64_t>(number), at,
                 line);
  }

  //===--- Panels of blocks -----------------------------------------------===//

  void unpackBlocks(Value p, const Part &part) {
    static_assert(step == PackedPanel::unit);
    int64_t perBlock = format->elements / step;
    Value first = arith::DivUIOp::create(b, loc, part.first, e.index(perBlock));
    Value end = e.ceilDiv(e.add(part.first, part.count), perBlock);
    auto unpackUnit = [&](Value unit, ValueRange) {
      Value at = e.sub(unit, part.first);
      SubBlock sub;
      for (int64_t quad = 0; quad < PackedPanel::quadsPerUnit; ++quad) {
        if (quad % blocks->quadsPerSubBlock() == 0)
          sub = subBlock(quad / blocks->quadsPerSubBlock());
        storeQuad(sub, quad, e.index(0), 0, at);
      }
      return SmallVector<Value>();
    };
    blocks->forUnits(p, {0, vectorsPerRow()}, {}, unpackUnit, {first, end});
  }

  /// Lines of four elements of K, of vectors from `first` on.
  void storeQuad(const SubBlock &sub, int64_t quad, Value half, int64_t first,
                 Value at) {
    for (auto [v, codes] : llvm::enumerate(blocks->codes(quad))) {
      Value quadCodes = format->table ? lookUp(codes) : codes;
      for (int64_t pair = 0; pair < 2; ++pair)
        storePairs(
            arith::OrIOp::create(
                b, loc, lowFromHigh(roundedBits(sub, v, quadCodes, 2 * pair)),
                upperAsFloat(roundedBits(sub, v, quadCodes, 2 * pair + 1))),
            half, first + static_cast<int64_t>(v), at, 2 * quad + pair);
    }
  }

  SubBlock subBlock(int64_t number) {
    auto [scales, mins] = blocks->scales(number);
    SubBlock result;
    int64_t zero = format->table ? 0 : blocks->packed.zero;
    for (Value scale : scales) {
      result.scales.push_back(canonical(scale));
      if (zero)
        result.offsets.push_back(
            e.mul(result.scales.back(),
                  e.splat(e.f32(-zero - (isShifted() ? 1 << codeBits() : 0)),
                          lanes)));
    }
    for (Value min : mins)
      result.offsets.push_back(canonical(min));
    return result;
  }

  int64_t codeBits() const { return format->codeBits(); }
  /// Whether codes are floats as 2^bits + code, whose mantissa they are in: the
  /// offset takes as much away.
  bool isShifted() const {
    return !format->table && blocks->packed.zero && !blocks->hasMins();
  }
  /// Code `j` of a quad so.
  Value shiftedCode(Value codes, int64_t j) {
    int64_t place = 23 - codeBits(), by = place - 8 * j;
    if (by > 0)
      codes = arith::ShLIOp::create(b, loc, codes, splatBits(by));
    else if (by < 0)
      codes = arith::ShRUIOp::create(b, loc, codes, splatBits(-by));
    uint32_t mask = ((1u << codeBits()) - 1) << place;
    codes = arith::AndIOp::create(b, loc, codes, splatBits(mask));
    codes = arith::OrIOp::create(
        b, loc, codes,
        splatBits(static_cast<uint32_t>(127 + codeBits()) << 23));
    return vector::BitCastOp::create(b, loc, e.vectorType(lanes), codes);
  }

  /// `value`, or the NaN whose bits roundedBits() leaves one.
  Value canonical(Value value) {
    Value isNan =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
    Value nan = e.splat(e.f32(std::numeric_limits<double>::quiet_NaN()), lanes);
    return e.select(isNan, nan, value);
  }

  /// Bits of element `j` of a quad, the upper half of which are those of the
  /// nearest bf16.
  Value roundedBits(const SubBlock &sub, size_t v, Value codes, int64_t j) {
    Value value = isShifted()
                      ? shiftedCode(codes, j)
                      : blocks->toFloat(format->table ? entry(codes, j)
                                                      : blocks->code(codes, j));
    value = sub.offsets.empty()
                ? e.mul(value, sub.scales[v])
                : vector::FMAOp::create(b, loc, value, sub.scales[v],
                                        sub.offsets[v]);
    Value bits = vector::BitCastOp::create(b, loc, bitsType(), value);
    return arith::AddIOp::create(b, loc, bits, splatBits(0x8000));
  }

  /// Entry `j` of a quad, which has a sign.
  Value entry(Value quad, int64_t j) {
    if (j < 3)
      quad = arith::ShLIOp::create(b, loc, quad, splatBits(24 - 8 * j));
    return arith::ShRSIOp::create(b, loc, quad, splatBits(24));
  }

  /// The table's entries at the bytes of `codes`.
  Value lookUp(Value codes) {
    Value bytes = vector::BitCastOp::create(
        b, loc, e.vectorType(4 * lanes, b.getI8Type()), codes);
    Value found =
        LookUpOp::create(b, loc, bytes, ArrayRef<int8_t>(format->table, 16));
    return vector::BitCastOp::create(b, loc, bitsType(), found);
  }

  //===--- Sums -----------------------------------------------------------===//

  int64_t rowTiles() const { return tileRows / amxTile; }
  int64_t columnTiles() const { return panel / amxTile; }

  /// Indices of a tile in `sums`.
  SmallVector<Value> sumAt(Value p, Value tile, int64_t rowTile, int64_t v) {
    if (!waits)
      return {e.index(rowTile), e.index(v)};
    return {e.add(e.mul(tile, e.index(rowTiles())), e.index(rowTile)),
            e.add(e.mul(p, e.index(vectorsPerRow())), e.index(v))};
  }

  /// Asks for what step `number` of the next panel that is to be unpacked is
  /// made of, for each of the workgroup's tiles of rows an equal part: memory
  /// is idle meanwhile. Where the next is unpacked beside this one, that is the
  /// one after it: nothing asks for a workgroup's second panel then, nor for
  /// the first two of a further part. Behind the last panel comes another
  /// workgroup's, or nothing.
  void prefetchNext(Value p, Value tile, int64_t group, Value number) {
    auto type = cast<MemRefType>(weights.getType());
    // [panels, groups, K, columns], or [panels, groups, blocks, bytes]
    ArrayRef<int64_t> sizes = type.getShape();
    int64_t elementBytes = type.getElementTypeBitWidth() / 8;
    int64_t stepBytes =
        llvm::divideCeil(sizes[2] * sizes[3] * elementBytes, steps());
    int64_t lines = llvm::divideCeil(stepBytes, lineBytes * mostTiles);
    Value first = e.add(e.mul(number, e.index(stepBytes)),
                        e.mul(tile, e.index(lines * lineBytes)));
    for (int64_t line = 0; line < lines; ++line) {
      Value at = e.add(first, e.index(line * lineBytes));
      if (elementBytes > 1)
        at = arith::DivUIOp::create(b, loc, at, e.index(elementBytes));
      memref::PrefetchOp::create(b, loc, weights,
                                 ValueRange{e.add(p, e.index(overlaps ? 2 : 1)),
                                            e.index(group), e.index(0), at},
                                 /*isWrite=*/false, /*localityHint=*/2,
                                 /*isDataCache=*/true);
    }
  }

  /// Adds the products of a part of K to a group's sums. The panel's tiles are
  /// wanted again for the next rows, those of x for another panel.
  void multiply(Value p, Value panelOfWeight, Value tile, int64_t group,
                const Part &part, const Ahead &ahead) {
    auto forTiles = [&](function_ref<void(int64_t number, ValueRange at)> fn) {
      for (int64_t row = 0; row < rowTiles(); ++row)
        for (int64_t column = 0; column < columnTiles(); ++column)
          fn(row * columnTiles() + column,
             sumAt(p, tile, row, group * columnTiles() + column));
    };
    SmallVector<Value> inits;
    forTiles([&](int64_t, ValueRange at) {
      if (!waits) {
        inits.push_back(tiles.zero());
        return;
      }
      inits.push_back(e.ifElse(
          part.isFirst, [&] { return tiles.zero(); },
          [&] { return tiles.load(sums, at); }));
    });
    Value half = e.index(0);
    if (overlaps)
      half = e.sub(e.index(1), ahead.half);
    auto multiplyStep = [&](Value at, MutableArrayRef<Value> results) {
      SmallVector<Value> columns;
      for (int64_t column = 0; column < columnTiles(); ++column)
        columns.push_back(
            tiles.load(w, {half, e.index(group * columnTiles() + column), at}));
      Value number = e.add(part.first, at);
      prefetchNext(panelOfWeight, tile, group, number);
      for (int64_t row = 0; row < rowTiles(); ++row) {
        Value rowTile = e.add(e.mul(tile, e.index(rowTiles())), e.index(row));
        Value ofRow = tiles.loadOnce(x, {rowTile, number});
        for (auto [column, ofColumn] : llvm::enumerate(columns)) {
          Value &sum = results[row * columnTiles() + column];
          sum = tiles.multiply(sum, ofRow, ofColumn);
        }
      }
    };
    auto multiplyTurn = [&](Value at, ValueRange state) {
      SmallVector<Value> results(state);
      if (!overlaps) {
        multiplyStep(at, results);
        return results;
      }
      // The next part may have fewer steps, of which the last comes again.
      Value share = e.add(e.mul(tile, stepsPerTile(part)),
                          arith::DivUIOp::create(b, loc, at, e.index(turn)));
      Value toUnpack =
          arith::MinUIOp::create(b, loc, share, e.sub(ahead.count, e.index(1)));
      startStep(ahead, group, toUnpack);
      for (int64_t number = 0; number < turn; ++number) {
        unpackQuad(ahead, group, toUnpack, number);
        multiplyStep(e.add(at, e.index(number)), results);
      }
      return results;
    };
    auto loop = e.loop(e.index(0), part.count, e.index(overlaps ? turn : 1),
                       inits, multiplyTurn);
    forTiles([&](int64_t number, ValueRange at) {
      tiles.store(loop.getResult(number), sums, at);
    });
  }

  void storeRows(Value p, Value tile) {
    Value firstRow = e.mul(tile, e.index(tileRows));
    Value count = arith::MinUIOp::create(b, loc, e.sub(rows, firstRow),
                                         e.index(tileRows));
    e.loop(count, [&](Value row) {
      Value rowTile = arith::DivUIOp::create(b, loc, row, e.index(amxTile));
      Value line = arith::RemUIOp::create(b, loc, row, e.index(amxTile));
      storeRow(e.add(firstRow, row), p, [&](int64_t group, int64_t vector) {
        SmallVector<Value> at =
            sumAt(p, tile, 0, group * columnTiles() + vector);
        at[0] = e.add(at[0], rowTile);
        at.push_back(line);
        at.push_back(e.index(0));
        return e.loadMemref(sums, at, lanes);
      });
    });
  }

  TileCode tiles;
  const ::kf::BlockFormat *format;
  std::optional<PackedPanel> blocks;
  int64_t mostRows = 0;
  int64_t mostSteps = 0; // of a part
  bool overlaps = false; // tiles' products and unpacking the next panel
  SubBlock current;      // that is unpacked beside products
  bool waits = false;    // sums, of a workgroup, for the next part of K
  Value x;               // scratch [row tiles, steps, 16, 32] of bf16
  Value w;               // scratch [halves, vectors, steps, 16, 32] of bf16
  Value sums;            // scratch [row tiles, vectors, 16, 16]
};

} // namespace

void mlir::kf::emitTileMatmulKernel(KernelEmitter &emitter) {
  auto type = cast<RankedTensorType>(emitter.find<MatmulOp>().getW().getType());
  auto quant = dyn_cast<QuantType>(type.getElementType());
  TileMatmulEmitter(emitter, quant ? &getStorage(quant.getFormat()) : nullptr)
      .emit();
}
