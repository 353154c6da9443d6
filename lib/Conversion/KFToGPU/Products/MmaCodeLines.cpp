//===- MmaCodeLines.cpp - Tiles of codes for matrix units -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Codes come to workgroup memory as they are, in tiles of 256 columns, and are
// taken apart in the registers of the lanes that multiply them: nothing is
// stored on the way.
//
// A code in the low bits of 1024, an f16, is 1024 more than it is, so two are
// masked out of a word and made numbers at once. Codes of E2M1 are brought to
// where bf16 has sign, exponent and mantissa, and multiplied by powers of two.
//
//===----------------------------------------------------------------------===//

#include "MmaCodeLines.h"
#include "../Units/BlockTiles.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <array>
#include <vector>

using namespace mlir;
using namespace mlir::kf;
using ::kf::FragmentTile;

namespace {

/// Bytes that a lane reads at a time, and all lanes.
constexpr int64_t laneBytes = 16, vectorBytes = 512;

Type elementOf(BlockArgument argument) {
  return cast<RankedTensorType>(argument.getType()).getElementType();
}

BlockLanes lanesOf(GPUEmitter &e, Value lane) {
  return {lane, e.div(lane, 4), e.rem(lane, 4)};
}

/// The ring of tiles: [slots][row blocks][bytes].
class TileRing {
public:
  TileRing(GPUEmitter &e, MmaFragment &product, BlockArgument argument,
           Value column, Value ring)
      : e(e), code(e), mma(*e.shape.mma),
        tile(*getFragmentTile(elementOf(argument))), lane(product.lane),
        memory(code.advance(ring, mma.stages * mma.stageBytes())) {
    auto type = cast<RankedTensorType>(argument.getType());
    const int64_t groups = type.getRank() == 3 ? 2 : 1;
    tilesOfRow = tile.tilesOf(type.getShape().back());
    const int64_t blocks =
        FragmentTile::rowBlocks(groups, type.getShape().end()[-2]);
    Value first = e.div(column, FragmentTile::rows / groups);
    Value from = code.pointerTo(e.bufferOf(argument));
    Value ofLane = e.scaled(lane, laneBytes);
    Value warp = e.div(e.thread, MmaShape::warp);
    const int64_t warps = mma.rowWarps * mma.lineWarps;
    const int64_t all = mma.lines / MmaShape::unitLines;
    for (int64_t begin = 0; begin < all; begin += warps) {
      Item item;
      Value number = e.add(warp, e.index(begin));
      if (begin + warps > all)
        item.exists = e.isLess(number, e.index(all));
      // What is read past the last row block is multiplied, and not stored.
      Value block = arith::MinUIOp::create(e.b, e.loc, e.add(first, number),
                                           e.index(blocks - 1));
      item.from = code.advance(
          from, e.add(e.scaled(block, tilesOfRow * tile.bytes), ofLane));
      item.to = e.add(e.scaled(number, mma.tileBytes), ofLane);
      items.push_back(item);
    }
    firstOfWarp = e.scaled(e.div(product.firstLine(), MmaShape::unitLines),
                           mma.tileBytes);
  }

  /// Starts to copy the tiles that begin with column `k` of K.
  void copy(Value k) {
    Value slot = slotOf(k);
    Value number = e.div(k, tile.columns);
    for (const Item &item : items) {
      auto body = [&] { copyBlock(item, code.advance(slot, item.to), number); };
      if (item.exists)
        e.ifThen(item.exists, body);
      else
        body();
    }
  }

  /// The tile of this warp's unit number `unit` that has column `k`.
  Value at(Value k, int64_t unit) {
    return code.advance(code.advance(slotOf(k), firstOfWarp),
                        unit * mma.tileBytes);
  }

private:
  /// A row block of which this warp copies the tiles.
  struct Item {
    Value from;   // pointer to what this lane copies of it
    Value to;     // the same in a slot
    Value exists; // i1: false for warps without one; null: all have it
  };

  Value slotOf(Value k) {
    Value number = e.rem(e.div(k, MmaShape::tileColumns), mma.slots());
    return code.advance(memory, e.scaled(number, mma.slotBytes()));
  }

  /// One tile, or as many as have as many columns.
  void copyBlock(const Item &item, Value to, Value number) {
    const int64_t count = MmaShape::tileColumns / tile.columns;
    for (int64_t i = 0; i < count; ++i) {
      Value own = e.add(number, e.index(i)), bytes = e.word(laneBytes);
      if (tilesOfRow % count != 0) { // past the end of K are zeros
        Value isInside = e.isLess(own, e.index(tilesOfRow));
        own = e.select(isInside, own, e.index(0));
        bytes = e.select(isInside, bytes, e.word(0));
      }
      code.copyTile(code.advance(to, i * tile.bytes),
                    code.advance(item.from, e.scaled(own, tile.bytes)),
                    tile.bytes, lane, bytes);
    }
  }

  GPUEmitter &e;
  WarpOps code;
  const MmaShape &mma;
  const FragmentTile tile;
  Value lane;
  int64_t tilesOfRow = 0; // tiles of K
  Value memory;           // pointer
  SmallVector<Item> items;
  Value firstOfWarp; // bytes in a slot
};

/// The span that columns of number `sixteen` of a step are in.
int64_t spanOf(const MmaShape &mma, const MmaStep &step, int64_t sixteen) {
  return (step.number * mma.step + sixteen * MmaShape::unitStep) /
         FragmentTile::span;
}

//===----------------------------------------------------------------------===//
// f8E4M3FN
//===----------------------------------------------------------------------===//

class Float8Lines : public MmaLines {
public:
  Float8Lines(GPUEmitter &e, MmaFragment &product, BlockArgument argument,
              Value column, Value ring)
      : e(e), code(e), tiles(e, product, argument, column, ring),
        ofLane(e.scaled(product.lane, laneBytes)) {}

  void copy(const MmaStep &step) override {
    if (step.number == 0)
      tiles.copy(step.k);
  }

  /// A span is a tile, of whose 4 words each has the codes of two pairs.
  SmallVector<Value> load(const MmaStep &step, int64_t unit,
                          int64_t sixteen) override {
    Value at = code.advance(code.advance(tiles.at(step.k, unit), ofLane),
                            vectorBytes * spanOf(*e.shape.mma, step, sixteen));
    SmallVector<Value> words = code.loadRegisters(at, laneBytes);
    const int64_t half = sixteen % 2;
    auto [upper, upperNext] = code.widenFloat8(words[2 * half]);
    auto [lower, lowerNext] = code.widenFloat8(words[2 * half + 1]);
    return {upper, lower, upperNext, lowerNext};
  }

private:
  GPUEmitter &e;
  WarpOps code;
  TileRing tiles;
  Value ofLane;
};

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

class BlockLines : public MmaLines, private BlockTiles {
public:
  BlockLines(GPUEmitter &e, MmaFragment &product, BlockArgument argument,
             Value column, Value ring)
      : BlockTiles(
            e, StreamShape::Sums::None, lanesOf(e, product.lane),
            getStorage(cast<QuantType>(elementOf(argument)).getFormat())),
        tiles(e, product, argument, column, ring),
        spansOfUnits(e.shape.mma->lineTiles()),
        dividesScales(e.shape.mma->isForWarpgroups && scaling.restOffset != 0) {
  }

  void copy(const MmaStep &step) override {
    if (step.number == 0)
      tiles.copy(step.k);
  }

  SmallVector<Value> load(const MmaStep &step, int64_t unit,
                          int64_t sixteen) override {
    const int64_t half = sixteen % 2;
    if (dividesScales && sixteen == 0) {
      if (step.number == 0)
        ofLane = findPair(scalesAt(step.k, unit), lanes.inGroup);
      ofStep = pairOfLane(step.number);
    }
    const Span &span =
        readSpan(step.k, unit, spanOf(*e.shape.mma, step, sixteen));
    SmallVector<Value> words(4);
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < 2; ++i)
        words[2 * i + row] = valuesOf(span.tile, span.number, row, 2 * half + i,
                                      span.scales[half][row]);
    return words;
  }

private:
  /// Of both rows, pairs of f16, or of bf16 where scales are E8M0: what codes
  /// are multiplied by, and what is added to the products, or null.
  using Scales = std::array<std::pair<Value, Value>, 2>;

  /// What goes with two spans, or with both halves of one, as words: of both
  /// rows, their scales, and what is added to the products, or null.
  struct ScalePair {
    std::array<Value, 2> scales, rests;
  };

  /// A span in registers, of the step that begins with column `k`.
  struct Span {
    Value k;
    int64_t number = 0;
    Tile tile;                    // its codes
    std::array<Scales, 2> scales; // of its halves
  };

  /// Span number `number` of this warp's unit `unit`: both halves are read at
  /// once.
  const Span &readSpan(Value k, int64_t unit, int64_t number) {
    Span &span = spansOfUnits[unit];
    if (span.k == k && span.number == number)
      return span;
    span = {k, number, {}, {}};
    Value pointer = tiles.at(k, unit);
    loadCodes(span.tile, pointer, number, /*isLone=*/true);
    span.scales = findScales(scalesAt(k, unit), number);
    return span;
  }

  /// The scales of the tile of this warp's unit `unit` that has column `k`.
  Value scalesAt(Value k, int64_t unit) {
    return code.advance(tiles.at(k, unit), vectorBytes * tileOf.vectors);
  }

  /// The values of two codes, as a word.
  Value valuesOf(const Tile &tile, int64_t span, int64_t row, int64_t pair,
                 std::pair<Value, Value> scales) {
    auto [scale, rest] = scales;
    if (scaling.areExponents) {
      Value codes = floatsOf(tile, span, row, pair, /*mantissa=*/7);
      return wordOf(times(times(bfloatsOf(codes), bfloatsOf(0x1p126)), scale));
    }
    Value numbers = aboveThousand(codesOf(tile, span, row, pair));
    const auto zero = static_cast<double>(::kf::PackedBlock(format).zero);
    if (const double part = scaleOfPair(pair); part != 1)
      numbers = math::FmaOp::create(b, loc, numbers, pairOf(part),
                                    pairOf(-1024.0 * part - zero));
    else
      numbers = arith::SubFOp::create(b, loc, numbers, pairOf(1024.0 + zero));
    Value values =
        rest ? math::FmaOp::create(b, loc, numbers, scale, rest).getResult()
             : times(numbers, scale);
    return wordOf(values);
  }

  //===--- What scales them -----------------------------------------------===//

  /// Those of the halves of span number `span`.
  std::array<Scales, 2> findScales(Value scales, int64_t span) {
    if (scaling.areExponents)
      return findExponents(scales, span);
    if (!hasSubScales())
      return findScalesOfSpan(scales, span);
    const bool areOfSpans = scaling.integers == 8;
    const int64_t word =
        scaling.integerAt(
            0, 0, static_cast<int>(areOfSpans ? span / 2 * 2 : 2 * span)) /
        4;
    ScalePair both = dividesScales ? ofStep : findPair(scales, e.index(word));
    std::array<Scales, 2> ofHalves;
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t row = 0; row < 2; ++row) {
        const int64_t number = areOfSpans ? span % 2 : half;
        ofHalves[half][row] = {twice(both.scales[row], number),
                               both.rests[row] ? twice(both.rests[row], number)
                                               : Value()};
      }
    return ofHalves;
  }

  /// The same where spans have d and m.
  std::array<Scales, 2> findScalesOfSpan(Value scales, int64_t span) {
    auto load = [&](int64_t first) {
      Value ofGroup =
          code.advance(scales, e.scaled(lanes.group, scaling.pairBytes()));
      return code.loadRegisters(code.advance(ofGroup, first + 8 * (span / 2)),
                                8);
    };
    const bool hasMin = scaling.minOffset != 0;
    SmallVector<Value> d = load(0), m;
    if (hasMin)
      m = load(scaling.minOffset);
    Scales ofSpan;
    for (int64_t row = 0; row < 2; ++row)
      ofSpan[row] = {twice(d[row], span % 2),
                     hasMin ? twice(m[row], span % 2) : Value()};
    return {ofSpan, ofSpan};
  }

  /// The same where spans have powers of two, which are bf16, too.
  std::array<Scales, 2> findExponents(Value scales, int64_t span) {
    Value ofGroup =
        code.advance(scales, e.scaled(lanes.group, scaling.pairBytes()));
    const int64_t at = scaling.integerAt(0, 0, static_cast<int>(span));
    Value both = loadWord(code.advance(ofGroup, at / 4 * 4), 4);
    Scales ofSpan;
    for (int64_t row = 0; row < 2; ++row) {
      Value power = exponent(both, 2 * row + at % 4);
      Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), power);
      ofSpan[row] = {bfloatsOf(code.selectBytes(bits, bits, 0x3232)), Value()};
    }
    return {ofSpan, ofSpan};
  }

  /// What word number `number` of this lane's group has the integers of.
  ScalePair findPair(Value scales, Value number) {
    auto at = [&](int64_t ofGroup, int64_t ofNumber, int64_t first) {
      Value offset = e.scaled(lanes.group, ofGroup);
      if (std::optional<int64_t> known = getConstantIntValue(number))
        first += ofNumber * *known;
      else if (ofNumber != 0)
        offset = e.add(offset, e.scaled(number, ofNumber));
      return code.advance(code.advance(scales, offset), first);
    };
    const int64_t ofPair = scaling.pairBytes(), bits = scaling.bits;
    const int64_t ofBlocks = scaling.blockPairBytes();
    const bool hasMin = scaling.minOffset != 0;
    Value own = loadWord(at(ofPair, 4, 0), 4), rest;
    if (scaling.restOffset != 0)
      rest = loadWord(at(ofPair / 2, 2, scaling.restOffset), 2);
    SmallVector<Value> d =
        code.loadRegisters(at(ofBlocks, 0, scaling.blockOffset), ofBlocks);
    auto lowBits = [&](Value bytes, int64_t count) {
      return e.masked(bytes, ((1 << count) - 1) * int64_t(0x00010001));
    };
    ScalePair both;
    for (int64_t row = 0; row < 2; ++row) {
      Value bytes = code.selectBytes(own, e.word(0), row ? 0x4342 : 0x4140);
      if (!hasMin) {
        both.scales[row] =
            wordOf(times(numbersOf(bytes, scaling.above), twice(d[0], row)));
        continue;
      }
      both.scales[row] =
          wordOf(times(numbersOf(lowBits(bytes, bits), 0), twice(d[row], 0)));
      Value min = rest ? packedMinimums(own, rest, row)
                       : lowBits(e.shifted(bytes, bits), 8 - bits);
      both.rests[row] =
          wordOf(negated(times(numbersOf(min, 0), twice(d[row], 1))));
    }
    return both;
  }

  /// That which lane `number` of this lane's group has found.
  ScalePair pairOfLane(int64_t number) {
    ScalePair both;
    for (int64_t row = 0; row < 2; ++row) {
      both.scales[row] = code.ofGroup(ofLane.scales[row], number);
      both.rests[row] = code.ofGroup(ofLane.rests[row], number);
    }
    return both;
  }

  /// The word of `bytes`, 2 or 4.
  Value loadWord(Value pointer, int64_t bytes) {
    return code.loadRegisters(pointer, bytes).front();
  }

  //===--- Pairs of 16-bit floats -----------------------------------------===//

  /// Two bf16: of a word, and twice the same.
  Value bfloatsOf(Value word) {
    return LLVM::BitcastOp::create(b, loc,
                                   VectorType::get({2}, b.getBF16Type()), word);
  }
  Value bfloatsOf(double value) {
    auto type = VectorType::get({2}, b.getBF16Type());
    auto number = b.getFloatAttr(type.getElementType(), value);
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, number));
  }
  Value times(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value negated(Value pair) { return arith::NegFOp::create(b, loc, pair); }
  /// Half number `number` of a word, twice.
  Value twice(Value word, int64_t number) {
    return pairOf(code.selectBytes(word, word, number ? 0x3232 : 0x1010));
  }
  /// Integers in the low bits of a word's halves, plus 1024.
  Value aboveThousand(Value integers) {
    return pairOf(joined(integers, e.word(0x64006400)));
  }
  /// The same, less `zero`.
  Value numbersOf(Value integers, int64_t zero) {
    return arith::SubFOp::create(b, loc, aboveThousand(integers),
                                 pairOf(1024.0 + static_cast<double>(zero)));
  }

  TileRing tiles;
  std::vector<Span> spansOfUnits; // what was read last
  // Warpgroups take a tile's steps in turn, each of two spans: lane i of four
  // finds the scales of step number i for all of them.
  const bool dividesScales;
  ScalePair ofLane, ofStep;
};

} // namespace

std::unique_ptr<MmaLines>
mlir::kf::createMmaCodeLines(GPUEmitter &e, MmaFragment &product,
                             BlockArgument argument, Value column, Value ring) {
  if (isa<QuantType>(elementOf(argument)))
    return std::make_unique<BlockLines>(e, product, argument, column, ring);
  return std::make_unique<Float8Lines>(e, product, argument, column, ring);
}
