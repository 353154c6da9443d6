//===- MmaBlockLines.cpp - Tiles of blocks for matrix units ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A code in the low bits of 1024, an f16, is 1024 more than it is: so two are
// masked out of a word and made numbers at once.
//
// A stage has [16 lines][steps of 16] tiles of 512 bytes. In each, lanes have
// what they multiply side by side, in places that leave no two lanes of a store
// in one bank: lane 4 g + t has place 4 g + (t xor g / 2 % 2).
//
//===----------------------------------------------------------------------===//

#include "MmaBlockLines.h"
#include "../Units/WarpOps.h"

#include "runtime/core/BlockFormat.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::FragmentTile;

namespace {

/// Bytes of a step of 16 of 16 lines, and of a lane's words of it.
constexpr int64_t stepBytes = 512, laneBytes = 16;
/// Bytes of 16 for each lane of a tile.
constexpr int64_t vectorBytes = 512;

class BlockLines : public MmaLines {
public:
  BlockLines(GPUEmitter &e, MmaFragment &product, BlockArgument argument,
             Value column, int64_t offset)
      : e(e), b(e.b), loc(e.loc), code(e), mma(*e.shape.mma),
        format(formatOf(elementOf(argument))),
        tile(*getFragmentTile(elementOf(argument))), lane(product.lane) {
    auto type = cast<RankedTensorType>(argument.getType());
    const int64_t groups = type.getRank() == 3 ? 2 : 1;
    blockTiles = tile.tilesOf(type.getShape().back());
    const int64_t blocks =
        FragmentTile::rowBlocks(groups, type.getShape().end()[-2]);
    lastColumn = llvm::divideCeil(type.getShape().back(), mma.step) * mma.step -
                 mma.step;
    group = e.div(lane, 4);
    inGroup = e.rem(lane, 4);
    Value turned =
        arith::XOrIOp::create(b, loc, inGroup, e.rem(e.div(group, 2), 2));
    Value own = e.add(e.scaled(group, 4), turned);
    const int64_t unitSteps = mma.step / MmaShape::unitStep;
    Value unit = e.div(product.firstLine(), MmaShape::unitLines);
    ownWords = e.add(
        e.add(e.scaled(unit, unitSteps * stepBytes), e.scaled(own, laneBytes)),
        e.index(offset));

    // A lane has neighbouring columns of 4, and stores those of 2 for each of
    // two lanes: columns 2 c and 2 c + 1 are of lane c % 4, in half c / 4.
    for (int64_t pair = 0; pair < 2; ++pair) {
      Value c = e.add(e.scaled(inGroup, 2), e.index(pair));
      Value to =
          arith::XOrIOp::create(b, loc, e.rem(c, 4), e.rem(e.div(group, 2), 2));
      pairPlaces.push_back(
          e.add(e.scaled(e.add(e.scaled(group, 4), to), laneBytes),
                e.scaled(e.div(c, 4), laneBytes / 2)));
    }

    Value first = e.div(column, FragmentTile::rows / groups);
    Value from = code.pointerTo(e.bufferOf(argument));
    const int64_t perLine = mma.step / FragmentTile::span;
    const int64_t warps = mma.rowWarps * mma.lineWarps;
    const int64_t all = mma.lines / MmaShape::unitLines * perLine;
    Value warp = e.div(e.thread, MmaShape::warp);
    for (int64_t begin = 0; begin < all; begin += warps) {
      Item item;
      Value number = e.add(warp, e.index(begin));
      if (begin + warps > all)
        item.exists = e.isLess(number, e.index(all));
      // What is read past the last row block is multiplied, and not stored.
      Value block = arith::MinUIOp::create(
          b, loc, e.add(first, e.div(number, perLine)), e.index(blocks - 1));
      item.from = code.advance(from, e.scaled(block, blockTiles * tile.bytes));
      item.span = e.rem(number, perLine);
      item.place = e.add(
          e.scaled(number, FragmentTile::span / MmaShape::unitStep * stepBytes),
          e.index(offset));
      items.push_back(item);
    }
  }

  void copy(Value, Value) override {}

  SmallVector<Value> fetch(Value k) override {
    k = arith::MinUIOp::create(b, loc, k, e.index(lastColumn));
    SmallVector<Value> fetched;
    if (!format) { // a span is a tile
      for (const Item &item : items) {
        // Past the last one, x is 0.
        Value number = arith::MinUIOp::create(
            b, loc, e.add(e.div(k, FragmentTile::span), item.span),
            e.index(blockTiles - 1));
        Value place =
            e.add(e.scaled(number, tile.bytes), e.scaled(lane, laneBytes));
        llvm::append_range(
            fetched,
            code.loadRegisters(code.advance(item.from, place), laneBytes));
      }
      return fetched;
    }
    Value number = e.div(k, tile.columns);
    Value first = e.div(e.rem(k, tile.columns), FragmentTile::span);
    for (const Item &item : items)
      llvm::append_range(
          fetched,
          fetchSpan(code.advance(item.from, e.scaled(number, tile.bytes)),
                    e.add(first, item.span)));
    return fetched;
  }

  void store(Value stage, ArrayRef<Value> fetched, int64_t part,
             int64_t parts) override {
    const int64_t count = items.size(), size = fetched.size() / count;
    for (int64_t i = part * count / parts; i < (part + 1) * count / parts;
         ++i) {
      auto body = [&] {
        storeSpan(code.advance(stage, items[i].place),
                  fetched.slice(i * size, size));
      };
      if (items[i].exists)
        e.ifThen(items[i].exists, body);
      else
        body();
    }
  }

  SmallVector<Value> load(Value stage, int64_t unit, int64_t step) override {
    const int64_t number = unit * (mma.step / MmaShape::unitStep) + step;
    return code.loadRegisters(
        code.advance(code.advance(stage, ownWords), number * stepBytes),
        laneBytes);
  }

private:
  /// A span that this warp takes of each stage.
  struct Item {
    Value from;   // pointer to the row block
    Value span;   // of the stage
    Value place;  // in the stage
    Value exists; // i1: false for warps without one; null: all have it
  };

  /// Null for f8E4M3FN.
  static const ::kf::BlockFormat *formatOf(Type element) {
    auto quant = dyn_cast<QuantType>(element);
    return quant ? &getStorage(quant.getFormat()) : nullptr;
  }
  static Type elementOf(BlockArgument argument) {
    return cast<RankedTensorType>(argument.getType()).getElementType();
  }

  //===--------------------------------------------------------------------===//
  // From memory
  //===--------------------------------------------------------------------===//

  /// This lane's words of codes of span `u` of a tile, then what scales them.
  SmallVector<Value> fetchSpan(Value from, Value u) {
    SmallVector<Value> words;
    Value ofLane = e.scaled(lane, laneBytes);
    const int64_t count = wordsOfSpan();
    // So many words lie together as are never in two vectors.
    const int64_t together = count == 3 ? 1 : count;
    for (int64_t i = 0; i < count; i += together) {
      Value word = e.add(e.scaled(u, count), e.index(i));
      Value place = e.add(e.scaled(e.div(word, 4), vectorBytes),
                          e.add(ofLane, e.scaled(e.rem(word, 4), 4)));
      llvm::append_range(
          words, code.loadRegisters(code.advance(from, place), 4 * together));
    }
    Value scales = code.advance(from, tile.vectors * vectorBytes);
    Value p = e.add(e.scaled(group, 4), e.div(u, 2)), odd = e.rem(u, 2);
    switch (format->type) {
    case ::kf::DataType::Q4_0:
    case ::kf::DataType::Q8_0: {
      Value at = code.advance(scales, e.add(e.scaled(p, 8), e.scaled(odd, 2)));
      words.push_back(load(at, 2));
      words.push_back(load(code.advance(at, 4), 2));
      break;
    }
    case ::kf::DataType::Q4_K: {
      Value all = load(code.advance(scales, e.scaled(p, 4)), 4);
      words.push_back(shifted(all, e.scaled(odd, 8)));
      Value rest =
          load(code.advance(scales, e.add(e.scaled(p, 2), e.index(128))), 2);
      words.push_back(shifted(rest, e.scaled(odd, 4)));
      llvm::append_range(
          words,
          code.loadRegisters(
              code.advance(scales, e.add(e.scaled(group, 8), e.index(192))),
              8));
      break;
    }
    case ::kf::DataType::Q6_K: {
      Value place = e.add(e.scaled(e.add(e.scaled(group, 4), e.rem(u, 4)), 8),
                          e.scaled(e.div(u, 4), 4));
      words.push_back(load(code.advance(scales, place), 4));
      words.push_back(load(
          code.advance(scales, e.add(e.scaled(group, 4), e.index(256))), 4));
      break;
    }
    default:
      llvm_unreachable("no other blocks have tiles");
    }
    return words;
  }

  int64_t wordsOfSpan() const { return format ? tile.vectors / 2 : 4; }

  /// The word of `bytes`, 2 or 4.
  Value load(Value pointer, int64_t bytes) {
    return code.loadRegisters(pointer, bytes).front();
  }

  //===--------------------------------------------------------------------===//
  // To shared memory
  //===--------------------------------------------------------------------===//

  /// Stores what the words of a span stand for from `to` on, as f16.
  void storeSpan(Value to, ArrayRef<Value> fetched) {
    if (!format)
      return storeFloat8(to, fetched);
    ArrayRef<Value> words = fetched.take_front(wordsOfSpan());
    ArrayRef<Value> scales = fetched.drop_front(wordsOfSpan());
    for (int64_t half = 0; half < 2; ++half) {
      std::pair<Value, Value> ofRow[2];
      for (int64_t row = 0; row < 2; ++row)
        ofRow[row] = scalesOf(scales, row, half);
      for (int64_t pair = 0; pair < 2; ++pair) {
        SmallVector<Value> values;
        for (int64_t row = 0; row < 2; ++row)
          values.push_back(
              valuesOf(codesOf(words, row, half, pair), ofRow[row]));
        storePair(to, half, pair, values);
      }
    }
  }

  /// The same of f8E4M3FN, of whose 4 words each has the codes of two pairs.
  void storeFloat8(Value to, ArrayRef<Value> words) {
    for (int64_t half = 0; half < 2; ++half) {
      auto [upper, upperNext] = code.widenFloat8(words[2 * half]);
      auto [lower, lowerNext] = code.widenFloat8(words[2 * half + 1]);
      storePair(to, half, 0, {upper, lower});
      storePair(to, half, 1, {upperNext, lowerNext});
    }
  }

  /// Stores two words, of a line and of that 8 below.
  void storePair(Value to, int64_t half, int64_t pair, ValueRange values) {
    Value both = vector::FromElementsOp::create(
        b, loc, VectorType::get({2}, b.getI32Type()), values);
    Value place = e.add(pairPlaces[pair], e.index(half * stepBytes));
    LLVM::StoreOp::create(b, loc, both, code.advance(to, place), 8);
  }

  /// Two codes of line `row` (0, or 1 for that 8 below), in the low bits of a
  /// word's halves: of pair number `pair` in half number `half` of the span.
  Value codesOf(ArrayRef<Value> words, int64_t row, int64_t half,
                int64_t pair) {
    if (format->low.bits == 8)
      return masked(shifted(words[2 * half + row], 8 * pair), 0x00ff00ff);
    if (format->high.bits == 0)
      return masked(shifted(words[row], 8 * half + 4 * pair), 0x000f000f);
    if (half == 0 || row == 0)
      return masked(shifted(words[2 * half + row], 6 * pair), 0x003f003f);
    return arith::OrIOp::create(
        b, loc, masked(shifted(words[pair], 12), 0x000f000f),
        masked(shifted(words[2], 8 + 2 * pair), 0x00300030));
  }

  /// Pairs of f16: what a row's codes are multiplied by, and what is added to
  /// the products, or null.
  std::pair<Value, Value> scalesOf(ArrayRef<Value> scales, int64_t row,
                                   int64_t half) {
    switch (format->type) {
    case ::kf::DataType::Q4_K: {
      Value own = shifted(scales[0], 16 * row);
      Value rest = masked(shifted(scales[1], 8 * row), 15);
      Value min =
          arith::OrIOp::create(b, loc, masked(shifted(own, 6), 3),
                               arith::ShLIOp::create(b, loc, rest, e.word(2)));
      Value d = scales[2 + row];
      Value scale = e.mul(float32(masked(own, 63)), halfOf(d, 0));
      Value below = e.mul(float32(min), halfOf(d, 1));
      return {rounded(scale), rounded(e.sub(e.f32(0.0), below))};
    }
    case ::kf::DataType::Q6_K: {
      Value own = masked(shifted(scales[0], 16 * row + 8 * half), 0xff);
      Value scale = arith::SubIOp::create(b, loc, own, e.word(128));
      return {rounded(e.mul(float32(scale), halfOf(scales[1], row))), Value()};
    }
    default:
      // Both halves of the word.
      return {pairOf(arith::OrIOp::create(
                  b, loc, scales[row],
                  arith::ShLIOp::create(b, loc, scales[row], e.word(16)))),
              Value()};
    }
  }

  /// The values of two codes, as a word.
  Value valuesOf(Value codes, std::pair<Value, Value> scales) {
    auto [scale, rest] = scales;
    const int64_t zero = ::kf::PackedBlock(*format).zero;
    Value numbers =
        pairOf(arith::OrIOp::create(b, loc, codes, e.word(0x64006400)));
    numbers = arith::SubFOp::create(b, loc, numbers,
                                    halves(1024.0 + static_cast<double>(zero)));
    Value values =
        rest ? math::FmaOp::create(b, loc, numbers, scale, rest).getResult()
             : arith::MulFOp::create(b, loc, numbers, scale).getResult();
    return LLVM::BitcastOp::create(b, loc, b.getI32Type(), values);
  }

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  VectorType pairType() { return VectorType::get({2}, b.getF16Type()); }
  Value pairOf(Value word) {
    return LLVM::BitcastOp::create(b, loc, pairType(), word);
  }
  Value halves(double value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(pairType(), b.getF16FloatAttr(value)));
  }
  /// Both halves of a pair.
  Value rounded(Value value) {
    Value half = arith::TruncFOp::create(b, loc, b.getF16Type(), value);
    return vector::FromElementsOp::create(b, loc, pairType(),
                                          ValueRange{half, half});
  }
  Value halfOf(Value word, int64_t number) {
    Value half = vector::ExtractOp::create(b, loc, pairOf(word), number);
    return arith::ExtFOp::create(b, loc, b.getF32Type(), half);
  }
  Value float32(Value word) {
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), word);
  }

  Value masked(Value x, int64_t mask) {
    return arith::AndIOp::create(b, loc, x, e.word(mask));
  }
  Value shifted(Value x, int64_t right) {
    return right == 0 ? x : arith::ShRUIOp::create(b, loc, x, e.word(right));
  }
  Value shifted(Value x, Value right) {
    Value by = arith::IndexCastOp::create(b, loc, b.getI32Type(), right);
    return arith::ShRUIOp::create(b, loc, x, by);
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  WarpOps code;
  const MmaShape &mma;
  const ::kf::BlockFormat *format;
  const FragmentTile tile;
  Value lane, group, inGroup; // of this thread; 4 lanes are a group
  int64_t blockTiles = 0;     // of K
  int64_t lastColumn = 0;     // with which a stage begins
  SmallVector<Item> items;
  SmallVector<Value> pairPlaces; // [2], in a step's tile
  Value ownWords; // of its warp's first tile of a stage, in the stage
};

} // namespace

std::unique_ptr<MmaLines> mlir::kf::createMmaBlockLines(GPUEmitter &e,
                                                        MmaFragment &product,
                                                        BlockArgument argument,
                                                        Value column,
                                                        int64_t offset) {
  return std::make_unique<BlockLines>(e, product, argument, column, offset);
}
