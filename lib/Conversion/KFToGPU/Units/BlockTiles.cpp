//===- BlockTiles.cpp - Tiles of blocks in registers ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockTiles.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

using Sums = StreamShape::Sums;

BlockTiles::BlockTiles(GPUEmitter &emitter, Sums sumsOfX,
                       const BlockLanes &lanes, const ::kf::BlockFormat &format,
                       bool scaled)
    : e(emitter), b(emitter.b), loc(emitter.loc), code(emitter),
      sumsOfX(sumsOfX), lanes(lanes), format(format),
      tileOf(*::kf::findFragmentTile(format.type)),
      scaling(::kf::findFragmentScales(format)),
      codesAreScaled(scaled && scalesCodes(format)) {}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Value BlockTiles::joined(Value x, Value y) {
  return arith::OrIOp::create(b, loc, x, y);
}

Value BlockTiles::half(Value x, int64_t number) {
  Value pair =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getF16Type()), x);
  Value element = vector::ExtractOp::create(b, loc, pair, number);
  return arith::ExtFOp::create(b, loc, b.getF32Type(), element);
}

Value BlockTiles::byte(Value x, int64_t number, int64_t mask) {
  // In the lowest bits of 2^23.
  Value bits =
      joined(e.masked(e.shifted(x, 8 * number), mask), e.word(0x4b000000));
  return e.sub(arith::BitcastOp::create(b, loc, b.getF32Type(), bits),
               e.f32(0x1p23));
}

Value BlockTiles::exponent(Value x, int64_t number) {
  Value bits = e.masked(e.shifted(x, 8 * number - 23), 0x7f800000);
  // 2^-127 is a subnormal number.
  bits = arith::MaxUIOp::create(b, loc, bits, e.word(0x00400000));
  // An infinity becomes a NaN: 0 times it is one.
  Value power = arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  return fma(power, e.f32(0.0), power);
}

Value BlockTiles::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}

Value BlockTiles::pairOf(Value word) {
  return LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getF16Type()),
                                 word);
}

Value BlockTiles::pairOf(double value) { return pairOf(value, value); }

Value BlockTiles::pairOf(double first, double second) {
  auto type = VectorType::get({2}, b.getF16Type());
  const Attribute numbers[] = {b.getFloatAttr(type.getElementType(), first),
                               b.getFloatAttr(type.getElementType(), second)};
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, ArrayRef(numbers)));
}

Value BlockTiles::scaledPair(Value word, int64_t i) {
  const double scale = scaleOfPair(i);
  if (scale == 1)
    return word;
  return wordOf(arith::MulFOp::create(b, loc, pairOf(word), pairOf(scale)));
}

Value BlockTiles::wordOf(Value pair) {
  return LLVM::BitcastOp::create(b, loc, b.getI32Type(), pair);
}

SmallVector<Value> BlockTiles::loadWords(Value pointer, int64_t count) {
  SmallVector<Value> words;
  const int64_t step = std::min<int64_t>(count, 4);
  for (int64_t at = 0; at < count; at += step)
    llvm::append_range(
        words, code.loadRegisters(code.advance(pointer, 4 * at), 4 * step));
  return words;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

BlockTiles::Tile BlockTiles::load(Value pointer) {
  Tile tile;
  for (int64_t span = 0; span < spans; ++span)
    loadCodes(tile, pointer, span);
  loadScales(tile, pointer);
  return tile;
}

void BlockTiles::loadCodes(Tile &tile, Value pointer, int64_t span,
                           bool isLone) {
  tile.words.resize(4 * tileOf.vectors);
  SmallVector<SmallVector<int64_t>> wanted(tileOf.vectors);
  auto want = [&](const ::kf::CodeBits &bits) {
    SmallVector<int64_t> &ofVector = wanted[bits.word / 4];
    if (bits.width != 0 && !tile.words[bits.word] &&
        !llvm::is_contained(ofVector, bits.word))
      ofVector.push_back(bits.word);
  };
  for (int row = 0; row < 2; ++row)
    for (int j = 0; j < 8; ++j) {
      const auto bits =
          ::kf::findFragmentCode(format, static_cast<int>(span), row, j);
      want(bits.low);
      want(bits.high);
    }
  Value own = code.advance(pointer, e.mul(lanes.lane, e.index(16)));
  for (auto [number, words] : llvm::enumerate(wanted)) {
    if (words.empty())
      continue;
    const auto vector = static_cast<int64_t>(number);
    const bool isWhole = !isLone || words.size() > 1;
    const int64_t first = isWhole ? 4 * vector : words.front();
    Value from = code.advance(own, 512 * vector + first % 4 * 4);
    for (auto [i, word] :
         llvm::enumerate(code.loadRegisters(from, isWhole ? 16 : 4)))
      tile.words[first + static_cast<int64_t>(i)] = word;
  }
}

void BlockTiles::loadScales(Tile &tile, Value pointer) {
  auto at = [&](Value index, int64_t bytes, int64_t first = 0) {
    return code.advance(code.advance(pointer, e.mul(index, e.index(bytes))),
                        first);
  };
  pointer = code.advance(pointer, 512 * tileOf.vectors);
  const int64_t ofPair = scaling.pairBytes(), ofLane = ofPair / 4;
  tile.scales = loadWords(at(lanes.group, ofPair), ofPair / 4);
  const bool hasMinimums = StreamShape::hasMinimums(sumsOfX);
  if (hasMinimums)
    tile.own = loadWords(
        at(lanes.lane, ofLane, hasSubScales() ? 0 : scaling.minOffset),
        ofLane / 4);
  if (hasMinimums && scaling.restOffset != 0)
    llvm::append_range(tile.own, code.loadRegisters(at(lanes.lane, ofLane / 2,
                                                       scaling.restOffset),
                                                    ofLane / 2));
  if (!hasSubScales())
    return;
  const int64_t ofBlocks = scaling.blockPairBytes();
  tile.blocks =
      loadWords(at(lanes.group, ofBlocks, scaling.blockOffset), ofBlocks / 4);
}

SmallVector<Value> BlockTiles::beginTile(const Tile &tile,
                                         ArrayRef<Value> sums) {
  SmallVector<Value> ofTile(sums);
  if (!tile.blocks.empty())
    llvm::fill(ofTile, e.f32(0.0));
  return ofTile;
}

void BlockTiles::endTile(const Tile &tile, ArrayRef<Value> ofTile,
                         MutableArrayRef<Value> sums) {
  if (tile.blocks.empty()) {
    llvm::copy(ofTile, sums.begin());
    return;
  }
  Value upper = half(tile.blocks[0], 0);
  Value lower = tile.blocks.size() > 1 ? half(tile.blocks[1], 0)
                                       : half(tile.blocks[0], 1);
  for (auto [number, sum] : llvm::enumerate(sums))
    sum = fma(number % 4 < 2 ? upper : lower, ofTile[number], sum);
}

SmallVector<Value> BlockTiles::fragment(const Tile &tile, int64_t span,
                                        int64_t half) {
  if (scalesCodes())
    return scaledFragment(tile, span, half);
  SmallVector<Value> fragment(4);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < 2; ++i)
      fragment[2 * i + row] = codesOf(tile, span, row, 2 * half + i);
  return fragment;
}

int64_t BlockTiles::raisedOf(int64_t row, int64_t half) const {
  // Halves lie four bits apart in a word of two bits a code, and rows eight: by
  // as many, or one less, those of the second row are moved. High bits of both
  // rows lie side by side, which one move brings above the low bits of both.
  return 4 * half + (format.high.bits != 0 ? row : 0);
}

/// Codes times their integers, less what they are above times these, in numbers
/// of 2^-24 as codes alone are.
SmallVector<Value> BlockTiles::scaledFragment(const Tile &tile, int64_t span,
                                              int64_t half) {
  const int place = scaling.integerAt(0, 0, static_cast<int>(2 * span + half));
  Value word = tile.scales[place / 4];
  if (scaling.bits < 8)
    word = e.masked(word, ((1 << scaling.bits) - 1) * int64_t(0x01010101));
  // Integers of both rows, in the lowest bits of 1024.
  Value bytes = pairOf(code.selectBytes(word, e.word(0x64646464),
                                        place % 4 == 0 ? 0x4240 : 0x4341));
  const double raised[2] = {static_cast<double>(1 << raisedOf(0, half)),
                            static_cast<double>(1 << raisedOf(1, half))};
  const double above = 1024.0 + scaling.above;
  Value scales =
      raised[0] == 1 && raised[1] == 1
          ? Value(arith::SubFOp::create(b, loc, bytes, pairOf(above)))
          : fma(bytes, pairOf(1 / raised[0], 1 / raised[1]),
                pairOf(-above / raised[0], -above / raised[1]));
  auto twice = [&](Value pair, int64_t number) -> Value {
    return vector::BroadcastOp::create(
        b, loc, VectorType::get({2}, b.getF16Type()),
        vector::ExtractOp::create(b, loc, pair, number));
  };
  SmallVector<Value> fragment(4);
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t pair = 2 * half + i;
    Value less;
    if (const int zero = ::kf::PackedBlock(format).zero) {
      const double of = -zero * codeScale() / scaleOfPair(pair);
      less = arith::MulFOp::create(b, loc, scales,
                                   pairOf(of * raised[0], of * raised[1]));
    }
    for (int64_t row = 0; row < 2; ++row) {
      Value codes = pairOf(codesOf(tile, span, row, pair, raisedOf(row, half)));
      Value scale = twice(scales, row);
      fragment[2 * i + row] =
          wordOf(less ? fma(codes, scale, twice(less, row))
                      : Value(arith::MulFOp::create(b, loc, codes, scale)));
    }
  }
  return fragment;
}

Value BlockTiles::codesOf(const Tile &tile, int64_t span, int64_t row,
                          int64_t pair, int64_t raised) {
  if (::kf::hasE2M1(format))
    return floatsOf(tile, span, row, pair, /*mantissa=*/10);
  const auto bits =
      ::kf::findFragmentCode(format, static_cast<int>(span),
                             static_cast<int>(row), static_cast<int>(2 * pair));
  if (format.table) {
    Value entries = lookUp(tile.words[bits.low.word], 16 * (pair / 2));
    // Every second byte, as a half.
    return code.selectBytes(entries, e.word(0), pair % 2 ? 0x4341 : 0x4240);
  }
  const int64_t place = placeOfPair(pair) + raised;
  Value codes;
  for (const ::kf::CodeBits &own : {bits.low, bits.high}) {
    if (own.width == 0)
      continue;
    const int64_t to = own.at + place;
    Value part = e.masked(e.shifted(tile.words[own.word], own.bit - to),
                          ((1 << own.width) - 1) * int64_t(0x00010001) << to);
    codes = codes ? joined(codes, part) : part;
  }
  return codes;
}

Value BlockTiles::floatsOf(const Tile &tile, int64_t span, int64_t row,
                           int64_t pair, int64_t mantissa) {
  const auto bits =
      ::kf::findFragmentCode(format, static_cast<int>(span),
                             static_cast<int>(row), static_cast<int>(2 * pair));
  constexpr int64_t both = 0x00010001;
  auto part = [&](const ::kf::CodeBits &own, int64_t to, int64_t mask) {
    return e.masked(e.shifted(tile.words[own.word], own.bit - to), mask);
  };
  // Of the mantissa, the highest bit.
  const int64_t to = mantissa - 1, sign = 15;
  const int64_t ofNumber = both * 7 << to, ofSign = both << sign;
  if (bits.low.bit - to == bits.high.bit - sign)
    return part(bits.low, to, ofNumber | ofSign);
  return joined(part(bits.low, to, ofNumber), part(bits.high, sign, ofSign));
}

/// The entries, plus 128, of the table that the four codes from bit `first` of
/// a word on select, a byte each.
Value BlockTiles::lookUp(Value word, int64_t first) {
  Value entries[4];
  for (int64_t i = 0; i < 4; ++i) {
    uint32_t bytes = 0;
    for (int64_t k = 0; k < 4; ++k)
      bytes |= static_cast<uint32_t>(format.table[4 * i + k] + 128) << 8 * k;
    entries[i] = e.word(bytes);
  }
  // Selectors have the low three bits of four codes, and the fourth ones say
  // which eight entries are meant: of the word's eight codes at once.
  Value low = e.shifted(e.masked(word, 0x77777777), first);
  Value which = e.shifted(
      joined(e.masked(e.shifted(word, 1), 0x44444444), e.word(0x32103210)),
      first);
  return code.selectBytes(code.selectBytes(entries[0], entries[1], low),
                          code.selectBytes(entries[2], entries[3], low), which);
}

std::pair<Value, Value> BlockTiles::scalesOf(const Tile &tile, int64_t number) {
  auto placeOf = [&](int row) -> int64_t {
    return scaling.integerAt(0, row, static_cast<int>(number));
  };
  if (scaling.areExponents) {
    auto of = [&](int64_t at) { return exponent(tile.scales[at / 4], at % 4); };
    return {of(placeOf(0)), of(placeOf(1))};
  }
  if (!hasSubScales())
    return {half(tile.scales[number / 2 * 2], number % 2),
            half(tile.scales[number / 2 * 2 + 1], number % 2)};
  auto of = [&](int64_t at) -> Value {
    Value scale = byte(tile.scales[at / 4], at % 4, (1 << scaling.bits) - 1);
    return scaling.above ? e.sub(scale, e.f32(scaling.above)) : scale;
  };
  return {of(placeOf(0)), of(placeOf(1))};
}

SmallVector<SmallVector<Value>> BlockTiles::minimums(const Tile &tile) {
  SmallVector<SmallVector<Value>> operands;
  auto add = [&](Value upper, Value lower) {
    operands.push_back({upper, lower, upper, lower});
  };
  if (!hasSubScales()) {
    add(tile.own[0], tile.own[1]);
    return operands;
  }
  if (scaling.restOffset == 0) { // above their scales
    for (Value bytes : tile.own) {
      Value rows[2];
      for (int64_t row = 0; row < 2; ++row)
        rows[row] = e.masked(
            e.shifted(code.selectBytes(bytes, e.word(0), row ? 0x4342 : 0x4140),
                      scaling.bits),
            0x000f000f);
      add(rows[0], rows[1]);
    }
    return operands;
  }
  add(packedMinimums(tile.own[0], tile.own[1], 0),
      packedMinimums(tile.own[0], tile.own[1], 1));
  return operands;
}

Value BlockTiles::packedMinimums(Value scales, Value rest, int64_t row) {
  Value low = e.shifted(scales, 16 * row), high = e.shifted(rest, 8 * row);
  return joined(joined(e.masked(e.shifted(low, 6), 3),
                       e.masked(e.shifted(low, -2), 0x30000)),
                joined(e.masked(e.shifted(high, -2), 0x3c),
                       e.masked(e.shifted(high, -14), 0x3c0000)));
}

std::pair<Value, Value> BlockTiles::scalesOfMinimums(const Tile &tile,
                                                     double xScale) {
  if (!hasSubScales()) {
    Value scale = e.f32(codeScale() * xScale / minimumScale);
    return {scale, scale};
  }
  auto of = [&](int64_t row) {
    return e.mul(half(tile.blocks[row], 1), e.f32(-xScale / minimumScale));
  };
  return {of(0), of(1)};
}
