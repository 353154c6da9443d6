//===- HalfTiles.cpp - Codes of a packed tile by pairs of f16 -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HalfTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

/// Bytes of a vector, and vectors that a warp reads together.
static constexpr int64_t vectorBytes = 16, warpVectors = 32;
/// Bits of an f16 that are a subnormal number's, and by how much one of 1 in
/// the lowest is too small.
static constexpr int halfBits = 10;
static constexpr double halfUnit = 0x1p-24, fromHalf = 0x1p24;

HalfTiles::HalfTiles(GPUEmitter &emitter, const ::kf::BlockFormat &format,
                     Value group, Value inGroup)
    : e(emitter), b(emitter.b), loc(emitter.loc), format(format),
      scaling(::kf::findFragmentScales(format)),
      tile(*::kf::findFragmentTile(format.type)), group(group),
      inGroup(inGroup) {}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Value HalfTiles::wordAt(ArrayRef<Value> vectors, int64_t number) {
  return vector::ExtractOp::create(b, loc, vectors[number / 4], number % 4);
}

/// The word with this number, of as many as it can be.
Value HalfTiles::pick(ArrayRef<Value> words, Value number) {
  Value word = words.front();
  for (int64_t other = 1; other < static_cast<int64_t>(words.size()); ++other) {
    Value isOther = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          number, e.index(other));
    word = e.select(isOther, words[other], word);
  }
  return word;
}

/// `mask` in both halves of a word.
static int64_t twice(int64_t mask) { return mask << 16 | mask; }

static Value asHalves(GPUEmitter &e, Value word) {
  Value one = vector::FromElementsOp::create(
      e.b, e.loc, VectorType::get({1}, e.b.getI32Type()), word);
  return vector::BitCastOp::create(e.b, e.loc,
                                   VectorType::get({2}, e.b.getF16Type()), one);
}

/// The f16 of a word, in f32.
std::array<Value, 2> HalfTiles::halvesOf(Value word) {
  Value both = asHalves(e, word);
  auto half = [&](int64_t i) {
    return e.widen(vector::ExtractOp::create(b, loc, both, i), b.getF16Type());
  };
  Value first = half(0);
  return {first, half(1)};
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LaneTiles::Tile HalfTiles::load(Value buffer, Value number) {
  auto vectorAt = [&](Value place) {
    return memref::LoadOp::create(b, loc, buffer, place);
  };
  LaneTiles::Tile read;
  Value first = e.scaled(number, tile.bytes / vectorBytes);
  Value own = e.add(first, e.add(e.scaled(group, 4), inGroup));
  for (int64_t i = 0; i < tile.vectors; ++i)
    read.codes.push_back(vectorAt(e.add(own, e.index(warpVectors * i))));
  // Behind all codes, what lies `begin` bytes on, of which each group of lanes
  // has `count` words.
  Value scales = e.add(first, e.index(warpVectors * tile.vectors));
  auto read4 = [&](SmallVectorImpl<Value> &vectors, int64_t begin,
                   int64_t count) {
    Value place = e.add(e.add(scales, e.index(begin / vectorBytes)),
                        e.div(e.scaled(group, count), 4));
    for (int64_t i = 0; i < std::max<int64_t>(count / 4, 1); ++i)
      vectors.push_back(vectorAt(e.add(place, e.index(i))));
  };
  const int64_t ofPair = scaling.pairBytes() / 4;
  read4(read.scales, 0, ofPair);
  if (scaling.integers == 0) {
    if (hasMinimums())
      read4(read.minimums, scaling.minOffset, ofPair);
    return read;
  }
  if (scaling.restOffset != 0)
    read4(read.minimums, scaling.restOffset, ofPair / 2);
  read4(read.blocks, scaling.blockOffset, scaling.blockPairBytes() / 4);
  return read;
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

/// Codes 2 `pair` and behind it, in the halves of a word, from bit `raised` of
/// each on.
Value HalfTiles::pairOfCodes(const LaneTiles::Tile &from, int64_t span,
                             int64_t row, int64_t pair, int &raised) {
  const ::kf::FragmentCode code =
      ::kf::findFragmentCode(format, static_cast<int>(span),
                             static_cast<int>(row), static_cast<int>(2 * pair));
  const int bits = code.low.width + code.high.width;
  // Codes of one word that are moved have their shift in common, where it can
  // be that of a byte. Of 6 bits, those are codes that have no word of their
  // own, and the upper bits of their second pair alone have the shift of
  // another code, for one more multiplication of a sum.
  constexpr int byte = 8;
  const int moved = code.low.bit - byte;
  raised = code.low.bit + bits <= halfBits         ? code.low.bit
           : moved > 0 && moved + bits <= halfBits ? moved
                                                   : 0;
  Value all;
  for (const ::kf::CodeBits *part : {&code.low, &code.high}) {
    if (part->width == 0)
      continue;
    const int to = raised + part->at;
    Value own =
        e.masked(e.shifted(wordAt(from.codes, part->word), part->bit - to),
                 twice(((1 << part->width) - 1) << to));
    all = all ? arith::OrIOp::create(b, loc, all, own) : own;
  }
  return all;
}

HalfTiles::Codes HalfTiles::codesOf(const LaneTiles::Tile &from, int64_t span,
                                    int64_t row) {
  const int zero = format.isSigned ? 128 : format.zero;
  Codes codes;
  for (int64_t pair = 0; pair < 4; ++pair) {
    int raised = 0;
    Value word = pairOfCodes(from, span, row, pair, raised);
    Value both = asHalves(e, word);
    if (zero != 0) { // exact: all are multiples of the least number
      auto type = cast<VectorType>(both.getType());
      llvm::APFloat less(zero * halfUnit * (1 << raised));
      bool losesBits = false;
      less.convert(llvm::APFloat::IEEEhalf(),
                   llvm::APFloat::rmNearestTiesToEven, &losesBits);
      assert(!losesBits && "a subnormal f16 holds what codes are above");
      both = arith::SubFOp::create(
          b, loc, both,
          arith::ConstantOp::create(b, loc,
                                    DenseElementsAttr::get(type, less)));
    }
    for (int64_t i = 0; i < 2; ++i) {
      codes.values.push_back(
          e.widen(vector::ExtractOp::create(b, loc, both, i), b.getF16Type()));
      codes.raised.push_back(raised);
    }
  }
  return codes;
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Word `row` of those that this lane's group has of blocks.
Value HalfTiles::blockWord(const LaneTiles::Tile &from, int64_t row) {
  const int64_t ofPair = scaling.blockPairBytes() / 4;
  SmallVector<Value> words;
  for (int64_t i = row; i < 4; i += ofPair)
    words.push_back(wordAt(from.blocks, i));
  return pick(words, e.rem(group, 4 / ofPair));
}

std::array<Value, 2> HalfTiles::factorsOf(const LaneTiles::Tile &from,
                                          int64_t number) {
  std::array<Value, 2> factors;
  if (scaling.integers == 0) {
    for (int64_t row = 0; row < 2; ++row)
      factors[row] =
          e.mul(halvesOf(wordAt(from.scales, number / 2 * 2 + row))[number % 2],
                e.f32(fromHalf));
    return factors;
  }
  const int64_t word =
      scaling.integers == 8 ? number / 2 : number % 8 / 2 * 2 + number / 8;
  Value pair = e.masked(e.shifted(wordAt(from.scales, word), 8 * (number % 2)),
                        twice((1 << scaling.bits) - 1));
  std::array<Value, 2> integers = halvesOf(pair);
  for (int64_t row = 0; row < 2; ++row) {
    Value d = hasMinimums() ? halvesOf(blockWord(from, row))[0]
                            : halvesOf(blockWord(from, 0))[row];
    Value integer = integers[row];
    if (scaling.above != 0)
      integer = e.sub(integer, e.f32(scaling.above * halfUnit));
    factors[row] = e.mul(e.mul(d, e.f32(fromHalf * fromHalf)), integer);
  }
  return factors;
}

int64_t HalfTiles::minimumsOfLane() const {
  return tile.columns / scaleColumns() / LanesShape::sharers;
}

Value HalfTiles::numberOfMinimum(int64_t i) {
  return e.add(e.scaled(inGroup, 2), e.index(i % 2 + i / 2 * 8));
}

std::array<Value, 2> HalfTiles::minimumsOf(const LaneTiles::Tile &from,
                                           int64_t i) {
  // Word 2 t + `offset` of eight, of this lane's t.
  auto ofLane = [&](ArrayRef<Value> vectors, int64_t offset) {
    SmallVector<Value> words;
    for (int64_t t = 0; t < LanesShape::sharers; ++t)
      words.push_back(wordAt(vectors, 2 * t + offset));
    return pick(words, inGroup);
  };
  std::array<Value, 2> minimums;
  auto signedOf = [&](Value minimum) {
    return format.minIsNegative ? e.sub(e.f32(0.0), minimum) : minimum;
  };
  if (scaling.integers == 0) {
    for (int64_t row = 0; row < 2; ++row)
      minimums[row] = signedOf(halvesOf(ofLane(from.minimums, row))[i % 2]);
    return minimums;
  }
  const int64_t bits = 8 - scaling.bits;
  Value word;
  if (scaling.integers == 8) {
    SmallVector<Value> words;
    for (int64_t t = 0; t < LanesShape::sharers; ++t)
      words.push_back(wordAt(from.scales, t));
    word = pick(words, inGroup);
  } else {
    word = ofLane(from.scales, i / 2);
  }
  Value pair = e.masked(e.shifted(word, 8 * (i % 2) + scaling.bits),
                        twice((1 << bits) - 1));
  if (scaling.restOffset != 0) {
    // Four bits for each of two spans and two rows, for each two lanes a word.
    SmallVector<Value> words;
    for (int64_t number = 0; number < 4; ++number)
      words.push_back(wordAt(from.minimums, number));
    Value rest =
        pick(words, e.add(e.scaled(e.rem(group, 2), 2), e.div(inGroup, 2)));
    Value by = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                          e.scaled(e.rem(inGroup, 2), 16));
    rest = arith::ShRUIOp::create(b, loc, rest, by);
    const int64_t own = 4 * (i % 2), mask = 15 << bits;
    Value low = e.masked(e.shifted(rest, own - bits), mask);
    Value high = e.masked(e.shifted(rest, 8 + own - bits - 16), mask << 16);
    pair = arith::OrIOp::create(b, loc, pair,
                                arith::OrIOp::create(b, loc, low, high));
  }
  std::array<Value, 2> integers = halvesOf(pair);
  for (int64_t row = 0; row < 2; ++row) {
    Value m = e.mul(halvesOf(blockWord(from, row))[1], e.f32(fromHalf));
    minimums[row] = signedOf(e.mul(m, integers[row]));
  }
  return minimums;
}
