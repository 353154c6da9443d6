//===- LaneTiles.cpp - What a thread has of a packed tile -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

/// Bits of a code from which on 2^c is taken off at once.
static constexpr int64_t exactBits = 6;
/// Bytes of a vector, and vectors that a warp reads together.
static constexpr int64_t vectorBytes = 16, warpVectors = 32;

/// Whether codes are 2^c too large while they are summed.
static bool isRaised(const ::kf::BlockFormat &format) {
  return !format.table && format.codeBits() < exactBits;
}

bool mlir::kf::needsSumsOfX(const ::kf::BlockFormat &format) {
  return isRaised(format) || format.minOffset >= 0;
}

LaneTiles::LaneTiles(GPUEmitter &emitter, Type element, Value group,
                     Value inGroup, Value table)
    : e(emitter), b(emitter.b), loc(emitter.loc), element(element),
      tile(*getFragmentTile(element)), group(group), inGroup(inGroup),
      table(table) {
  if (auto quant = dyn_cast<QuantType>(element)) {
    format = &getStorage(quant.getFormat());
    scaling = ::kf::findFragmentScales(*format);
  }
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Value LaneTiles::vectorAt(Value place) {
  return memref::LoadOp::create(b, loc, buffer, place);
}

Value LaneTiles::wordAt(ArrayRef<Value> vectors, int64_t number) {
  return vector::ExtractOp::create(b, loc, vectors[number / 4], number % 4);
}

/// Word `first` + `stride` * `number` of a vector, where `number` is below
/// `count`.
Value LaneTiles::wordOf(Value vector, int64_t first, int64_t stride,
                        int64_t count, Value number) {
  Value word = wordAt(vector, first);
  for (int64_t other = 1; other < count; ++other) {
    Value isOther = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          number, e.index(other));
    word = e.select(isOther, wordAt(vector, first + stride * other), word);
  }
  return word;
}

/// The f16 in half `number` of a word, in f32.
Value LaneTiles::half(Value word, int64_t number) {
  Value bits = arith::TruncIOp::create(b, loc, b.getI16Type(),
                                       e.shifted(word, 16 * number));
  return e.widen(arith::BitcastOp::create(b, loc, b.getF16Type(), bits),
                 b.getF16Type());
}

/// The bits of `mask` from bit `bit` of a word on, as a number in f32; with
/// those of `more`, which are in their place from bit `at` on.
Value LaneTiles::field(Value word, int64_t bit, int64_t mask) {
  return arith::UIToFPOp::create(b, loc, b.getF32Type(),
                                 e.masked(e.shifted(word, bit), mask));
}

Value LaneTiles::field(Value word, int64_t bit, int64_t mask, Value more,
                       int64_t at) {
  Value low = e.masked(e.shifted(word, bit), mask);
  Value all = arith::OrIOp::create(b, loc, low, e.shifted(more, -at));
  return arith::UIToFPOp::create(b, loc, b.getF32Type(), all);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value LaneTiles::makeTable(GPUEmitter &e, Type element) {
  constexpr int64_t entries = LanesShape::tableEntries;
  auto quant = dyn_cast<QuantType>(element);
  if (!quant || !getStorage(quant.getFormat()).table)
    return {};
  const Type f32 = e.b.getF32Type();
  Value table = e.workgroupMemory(entries, f32);
  SmallVector<float> values(getStorage(quant.getFormat()).table,
                            getStorage(quant.getFormat()).table + entries);
  Value constant = e.constantTable(
      MemRefType::get({entries}, f32),
      DenseElementsAttr::get(RankedTensorType::get({entries}, f32),
                             ArrayRef<float>(values)));
  e.forThreads(e.index(entries), [&](Value i) {
    Value value = memref::LoadOp::create(e.b, e.loc, constant, i);
    memref::StoreOp::create(e.b, e.loc, value, table, i);
  });
  return table;
}

void LaneTiles::Tile::forVectors(function_ref<void(Value &)> body) {
  for (auto *vectors : {&codes, &high, &scales, &minimums, &blocks})
    for (Value &vector : *vectors)
      body(vector);
}

/// Words of low bits that a lane has of a part of blocks of `format`.
static int64_t wordsOfPart(const ::kf::BlockFormat &format) {
  const int64_t bits =
      format.codeBits() == 6 ? format.codeBits() : format.low.bits;
  return getPartSpans(format) * bits / 2;
}

LaneTiles::Tile LaneTiles::load(Value from, Value number, Value part) {
  buffer = from;
  Tile read;
  read.part = part;
  Value first = e.scaled(number, tile.bytes / vectorBytes);
  Value own = e.add(first, e.add(e.scaled(group, 4), inGroup));
  if (!format) {
    read.codes.push_back(vectorAt(own));
    return read;
  }
  const int64_t vectors = wordsOfPart(*format) / 4;
  assert(wordsOfPart(*format) % 4 == 0 && "a part has whole vectors");
  Value ofPart = e.add(own, e.scaled(part, warpVectors * vectors));
  for (int64_t i = 0; i < vectors; ++i)
    read.codes.push_back(vectorAt(e.add(ofPart, e.index(warpVectors * i))));
  if (format->high.bits == 1) // of all parts, behind all others
    read.high.push_back(
        vectorAt(e.add(own, e.index(warpVectors * format->low.bits))));
  // Behind all codes, what lies `begin` bytes on, of which each group of lanes
  // has `count` words.
  Value scales = e.add(first, e.index(warpVectors * tile.vectors));
  auto vectorOf = [&](int64_t begin, int64_t count) {
    Value place = e.add(scales, e.index(begin / vectorBytes));
    return e.add(place, e.div(e.scaled(group, count), 4));
  };
  const int64_t ofPair = scaling.pairBytes() / 4;
  if (scaling.integers == 0) {
    Value half = e.div(part, 2);
    read.scales.push_back(vectorAt(e.add(vectorOf(0, ofPair), half)));
    if (scaling.minOffset != 0)
      read.minimums.push_back(
          vectorAt(e.add(vectorOf(scaling.minOffset, ofPair), half)));
    return read;
  }
  for (int64_t i = 0; i < ofPair / 4; ++i)
    read.scales.push_back(vectorAt(e.add(vectorOf(0, ofPair), e.index(i))));
  if (scaling.restOffset != 0)
    read.minimums.push_back(vectorAt(vectorOf(scaling.restOffset, ofPair / 2)));
  if (scaling.areExponents)
    return read;
  read.blocks.push_back(
      vectorAt(vectorOf(scaling.blockOffset, scaling.blockPairBytes() / 4)));
  return read;
}

Value LaneTiles::columnOf(GPUEmitter &e, Type element, Value inGroup,
                          int64_t i) {
  if (element.isF32())
    return e.add(inGroup, e.index(4 * i));
  return e.add(e.scaled(inGroup, 2), e.index(i % 2 + i / 2 * 8));
}

SmallVector<Value> LaneTiles::elementsOf(ArrayRef<Tile> tiles, int64_t unit,
                                         int64_t row) {
  SmallVector<Value> elements;
  if (format) {
    for (int64_t j = 0; j < 4; ++j)
      elements.push_back(elementOfCode(tiles.front(), unit, row, j));
    return elements;
  }
  if (element.isF32()) { // a unit is two tiles
    for (int64_t i = 0; i < 4; ++i)
      elements.push_back(arith::BitcastOp::create(
          b, loc, b.getF32Type(),
          wordAt(tiles[2 * unit + i / 2].codes, row + i % 2 * 2)));
    return elements;
  }
  if (isa<Float8E4M3FNType>(element)) {
    Value word = wordAt(tiles[unit / 2].codes, row + unit % 2 * 2);
    for (int64_t i = 0; i < 4; ++i)
      elements.push_back(e.widenFloat8(arith::TruncIOp::create(
          b, loc, b.getI8Type(), e.shifted(word, 8 * i))));
    return elements;
  }
  for (int64_t pair = 0; pair < 2; ++pair) {
    Value word = wordAt(tiles[unit].codes, row + 2 * pair);
    for (int64_t i = 0; i < 2; ++i)
      elements.push_back(
          element.isF16()
              ? half(word, i)
              : arith::BitcastOp::create(b, loc, b.getF32Type(),
                                         i == 0 ? e.shifted(word, -16)
                                                : e.masked(word, 0xffff0000)));
  }
  return elements;
}

/// The code with its highest bit below those of a float's exponent, and 2^c
/// there.
Value LaneTiles::codeBits(const Tile &tile, int64_t unit, int64_t row,
                          int64_t j) {
  constexpr int64_t mantissa = 23, bias = 127;
  const int64_t bits = format->codeBits();
  const ::kf::FragmentCode code = ::kf::findFragmentCode(
      *format, static_cast<int>(unit / 2), static_cast<int>(row),
      static_cast<int>(unit % 2 * 4 + j));
  Value all = e.word((bias + bits) << mantissa);
  for (const ::kf::CodeBits *part : {&code.low, &code.high}) {
    if (part->width == 0)
      continue;
    const bool isBehind = part == &code.high && !tile.high.empty();
    Value word =
        isBehind ? wordOf(tile.high.front(), part->word - 4 * format->low.bits,
                          getPartSpans(*format) / 2, parts(), tile.part)
                 : wordAt(tile.codes, part->word);
    const int64_t to = mantissa - bits + part->at;
    Value own = e.masked(e.shifted(word, part->bit - to),
                         ((1 << part->width) - 1) << to);
    all = arith::OrIOp::create(b, loc, all, own);
  }
  return all;
}

Value LaneTiles::elementOfCode(const Tile &tile, int64_t unit, int64_t row,
                               int64_t j) {
  if (format->table) {
    const ::kf::FragmentCode code = ::kf::findFragmentCode(
        *format, static_cast<int>(unit / 2), static_cast<int>(row),
        static_cast<int>(unit % 2 * 4 + j));
    Value entry = e.word(0);
    for (const ::kf::CodeBits &part : {code.low, code.high})
      if (part.width != 0)
        entry = arith::OrIOp::create(
            b, loc, entry,
            e.masked(
                e.shifted(wordAt(tile.codes, part.word), part.bit - part.at),
                ((1 << part.width) - 1) << part.at));
    return memref::LoadOp::create(b, loc, table,
                                  ValueRange(arith::IndexCastOp::create(
                                      b, loc, b.getIndexType(), entry)));
  }
  Value raised = arith::BitcastOp::create(b, loc, b.getF32Type(),
                                          codeBits(tile, unit, row, j));
  if (isRaised(*format))
    return raised;
  const int zero = format->isSigned ? 128 : format->zero;
  return e.sub(raised, e.f32((1 << format->codeBits()) + zero));
}

/// The rest of minimums, which a vector has for two parts of each of two
/// groups: four bits of each row and span, from bit 0 on.
Value LaneTiles::restOf(const Tile &tile) {
  Value rest = wordOf(tile.minimums.front(), 0, 1, 4,
                      e.add(e.scaled(e.rem(group, 2), 2), e.div(tile.part, 2)));
  Value by = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                        e.scaled(e.rem(tile.part, 2), 16));
  return arith::ShRUIOp::create(b, loc, rest, by);
}

/// The scale of the integer that begins with bit `bit` of `word`, and of the
/// minimum's behind it. `block` makes the word of what their block multiplies
/// both by; without minimums it is one number, in half `number`. `rest` makes
/// what minimums have of their integers elsewhere, from bit 0 on.
LaneTiles::Scale LaneTiles::scaleOfInteger(Value word, int64_t bit,
                                           int64_t number,
                                           function_ref<Value()> block,
                                           function_ref<Value()> rest) {
  Value integer = field(word, bit, (1 << scaling.bits) - 1);
  Value d = block();
  if (scaling.minOffset == 0)
    return scaleBy(e.mul(half(d, number), e.sub(integer, e.f32(scaling.above))),
                   Value());
  Value factor = e.mul(half(d, 0), integer), ofMinimum = half(d, 1);
  const int64_t bits = 8 - scaling.bits, mask = (1 << bits) - 1;
  Value minimum =
      scaling.restOffset == 0
          ? field(word, bit + scaling.bits, mask)
          : field(word, bit + scaling.bits, mask, e.masked(rest(), 15), bits);
  return scaleBy(factor, e.mul(ofMinimum, minimum));
}

LaneTiles::Scale LaneTiles::scaleOf(const Tile &tile, int64_t unit,
                                    int64_t row) {
  const bool hasMin = scaling.minOffset != 0;
  Value factor, minimum;
  if (scaling.integers == 0) {
    Value second = e.rem(tile.part, 2);
    factor = half(wordOf(tile.scales.front(), row, 2, 2, second), unit / 2);
    if (hasMin)
      minimum =
          half(wordOf(tile.minimums.front(), row, 2, 2, second), unit / 2);
  } else {
    // Of blocks, word `number` of those that this lane's group has.
    const int64_t ofPair = scaling.blockPairBytes() / 4;
    auto ofBlock = [&](int64_t number) {
      return wordOf(tile.blocks.front(), number, ofPair, 4 / ofPair,
                    e.rem(group, 4 / ofPair));
    };
    // A part has a word for each two of its integers.
    const bool isOfSpan = scaling.integers == 8;
    const int64_t number = isOfSpan ? unit / 2 : unit;
    Value word = isOfSpan
                     ? wordOf(tile.scales.front(), 0, 1, parts(), tile.part)
                     : wordOf(tile.scales[number / 4], number / 2 * 2 % 4, 1,
                              parts(), tile.part);
    const int64_t bit = 8 * (2 * row + number % 2);
    if (scaling.areExponents)
      return {e.widenHalvedE8M0(e.masked(e.shifted(word, bit), 255)), Value()};
    return scaleOfInteger(
        word, bit, row, [&] { return ofBlock(hasMin ? row : 0); },
        [&] { return e.shifted(restOf(tile), bit / 2); });
  }
  return scaleBy(factor, minimum);
}

int64_t LaneTiles::scalesOfLane() const {
  return 2 * getPartSpans(*format) * (::kf::FragmentTile::span / 16) /
         unitsOfScale() / LanesShape::sharers;
}

LaneTiles::Scale LaneTiles::ownScaleOf(const Tile &tile, int64_t number) {
  const bool hasMin = scaling.minOffset != 0;
  Value row = e.rem(inGroup, 2), odd = e.div(inGroup, 2);
  auto shift = [&](Value word, Value by) -> Value {
    return arith::ShRUIOp::create(
        b, loc, word, arith::IndexCastOp::create(b, loc, b.getI32Type(), by));
  };
  // A word has two neighbours of row g, and then of row g + 8.
  Value word =
      wordOf(tile.scales[number / 2], 2 * number % 4, 1, parts(), tile.part);
  word = shift(word, e.add(e.scaled(row, 16), e.scaled(odd, 8)));
  auto ofBlock = [&](Value place) {
    return wordOf(tile.blocks.front(), 0, 1, 4, place);
  };
  return scaleOfInteger(
      word, 0, 0,
      [&] {
        return hasMin ? ofBlock(e.add(e.scaled(e.rem(group, 2), 2), row))
                      : shift(ofBlock(e.rem(group, 4)), e.scaled(row, 16));
      },
      [&] {
        return shift(restOf(tile), e.add(e.scaled(row, 8), e.scaled(odd, 4)));
      });
}

/// `minimum` is null where there are none.
LaneTiles::Scale LaneTiles::scaleBy(Value factor, Value minimum) {
  Scale scale = {factor, Value()};
  if (isRaised(*format))
    scale.addend =
        e.mul(factor, e.f32(-(1 << format->codeBits()) - format->zero));
  if (!minimum)
    return scale;
  if (!scale.addend)
    scale.addend = e.f32(0.0);
  scale.addend = format->minIsNegative ? e.sub(scale.addend, minimum)
                                       : e.add(scale.addend, minimum);
  return scale;
}
