//===- StreamBlocks.cpp - Tiles of blocks on matrix units -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamBlocks.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::kf;

using Sums = StreamShape::Sums;

/// By what sums of x are scaled that minimums are multiplied by.
static constexpr double minimumScale = 0x1p-4;
/// Units of a tile.
static constexpr int64_t units = 8;

StreamBlocks::StreamBlocks(GPUEmitter &emitter, const StreamOperands &operands,
                           const ::kf::BlockFormat &format)
    : e(emitter), b(emitter.b), loc(emitter.loc), code(emitter),
      stream(*emitter.shape.stream), operands(operands), format(format),
      tileOf(*::kf::findFragmentTile(format.type)) {}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Value StreamBlocks::masked(Value x, int64_t mask) {
  return arith::AndIOp::create(b, loc, x, e.word(mask));
}

/// Right; left where it is negative.
Value StreamBlocks::shifted(Value x, int64_t right) {
  if (right == 0)
    return x;
  if (right < 0)
    return arith::ShLIOp::create(b, loc, x, e.word(-right));
  return arith::ShRUIOp::create(b, loc, x, e.word(right));
}

Value StreamBlocks::joined(Value x, Value y) {
  return arith::OrIOp::create(b, loc, x, y);
}

/// Half number `number` of a word, an f16, in f32.
Value StreamBlocks::half(Value x, int64_t number) {
  Value pair =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getF16Type()), x);
  Value element = vector::ExtractOp::create(b, loc, pair, number);
  return arith::ExtFOp::create(b, loc, b.getF32Type(), element);
}

/// The bits `mask` of a byte, in f32.
Value StreamBlocks::byte(Value x, int64_t number, int64_t mask) {
  // In the lowest bits of 2^23.
  Value bits = joined(masked(shifted(x, 8 * number), mask), e.word(0x4b000000));
  return e.sub(arith::BitcastOp::create(b, loc, b.getF32Type(), bits),
               e.f32(0x1p23));
}

Value StreamBlocks::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}

Value StreamBlocks::loadWord(Value pointer, Type type, int64_t alignment) {
  return LLVM::LoadOp::create(b, loc, type, pointer, alignment);
}

/// `count` words, a multiple of 4 at a multiple of 16 bytes, or 2 at one of 8.
SmallVector<Value> StreamBlocks::loadWords(Value pointer, int64_t count) {
  SmallVector<Value> words;
  const int64_t step = std::min<int64_t>(count, 4);
  for (int64_t at = 0; at < count; at += step) {
    Value vector = loadWord(code.advance(pointer, 4 * at),
                            VectorType::get({step}, b.getI32Type()), 4 * step);
    for (int64_t i = 0; i < step; ++i)
      words.push_back(vector::ExtractOp::create(b, loc, vector, i));
  }
  return words;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

StreamBlocks::Tile StreamBlocks::load(Value pointer) {
  Tile tile;
  auto at = [&](Value index, int64_t bytes) {
    return code.advance(pointer, e.mul(index, e.index(bytes)));
  };
  for (int64_t i = 0; i < tileOf.vectors; ++i)
    llvm::append_range(
        tile.words, loadWords(code.advance(at(operands.lane, 16), 512 * i), 4));
  pointer = code.advance(pointer, 512 * tileOf.vectors);
  if (stream.sumsOfX != Sums::Minimums) {
    tile.scales = loadWords(at(operands.group, 32), 8);
    if (stream.sumsOfX == Sums::Halves)
      tile.blocks = {loadWord(code.advance(at(operands.group, 4), 256),
                              b.getI32Type(), 4)};
    return tile;
  }
  tile.scales = loadWords(at(operands.group, 16), 4);
  tile.own = {loadWord(at(operands.lane, 4), b.getI32Type(), 4)};
  Value high =
      loadWord(code.advance(at(operands.lane, 2), 128), b.getI16Type(), 2);
  tile.own.push_back(arith::ExtUIOp::create(b, loc, b.getI32Type(), high));
  tile.blocks = loadWords(code.advance(at(operands.group, 8), 192), 2);
  return tile;
}

/// The left operand: 16 columns of unit `unit`.
SmallVector<Value> StreamBlocks::fragment(const Tile &tile, int64_t unit,
                                          int64_t half) {
  ArrayRef<Value> words = tile.words;
  SmallVector<Value> fragment(4);
  for (int64_t row = 0; row < 2; ++row) {
    if (format.low.bits == 8) {
      Value codes = words[4 * unit + 2 * half + row];
      fragment[row] = masked(codes, 0x00ff00ff);
      fragment[2 + row] = masked(shifted(codes, 8), 0x00ff00ff);
    } else if (format.high.bits == 0) {
      Value codes = shifted(words[2 * unit + row], 8 * half);
      fragment[row] = masked(codes, 0x000f000f);
      fragment[2 + row] = masked(codes, 0x00f000f0);
    } else if (half == 0 || row == 0) {
      Value codes = words[3 * unit + 2 * half + row];
      fragment[row] = masked(codes, 0x003f003f);
      fragment[2 + row] = masked(shifted(codes, 6), 0x003f003f);
    } else {
      for (int64_t i = 0; i < 2; ++i)
        fragment[2 * i + 1] =
            joined(masked(shifted(words[3 * unit + i], 12), 0x000f000f),
                   masked(shifted(words[3 * unit + 2], 8 + 2 * i), 0x00300030));
    }
  }
  return fragment;
}

/// The scales of both rows for sum number `number`: of a unit, or half of one.
std::pair<Value, Value> StreamBlocks::scalesOf(const Tile &tile,
                                               int64_t number) {
  const int64_t odd = number % 2;
  switch (stream.sumsOfX) {
  case Sums::Halves: {
    Value scales = tile.scales[number % 8 / 2 * 2 + number / 8];
    auto of = [&](int64_t row) {
      return e.sub(byte(scales, 2 * row + odd, 0xff), e.f32(128));
    };
    return {of(0), of(1)};
  }
  case Sums::Minimums: {
    Value scales = tile.scales[number / 2];
    return {byte(scales, odd, 63), byte(scales, 2 + odd, 63)};
  }
  default:
    return {half(tile.scales[number / 2 * 2], odd),
            half(tile.scales[number / 2 * 2 + 1], odd)};
  }
}

/// Whether a column tile has what rounding leaves of no row.
bool StreamBlocks::isHighTile(int64_t number) const {
  return number < std::max<int64_t>(stream.columnTiles() / 2, 1);
}

/// What the sums of a unit, or half of one, begin with in column tile `tile`.
SmallVector<Value> StreamBlocks::firstSums(Value pair, int64_t number,
                                           int64_t tile) {
  Value zero = e.f32(0.0);
  if (stream.sumsOfX == Sums::Minimums || !isHighTile(tile))
    return SmallVector<Value>(4, zero);
  const int64_t ofPair = stream.sumsOfX == Sums::Halves ? 2 : 1;
  const bool isMixed = stream.columnTiles() == 1;
  Value column = operands.inGroup;
  if (isMixed)
    column = arith::RemUIOp::create(b, loc, column, e.index(2));
  Value place = e.add(e.mul(pair, e.index(ofPair * stream.sumColumns())),
                      e.mul(column, e.index(2)));
  place =
      e.add(place, e.index(number % ofPair * stream.sumColumns() + 8 * tile));
  Value sums = loadWord(code.advance(operands.xSums, e.mul(place, e.index(4))),
                        VectorType::get({2}, b.getF32Type()), 8);
  SmallVector<Value> first;
  for (int64_t i = 0; i < 2; ++i) {
    Value sum = vector::ExtractOp::create(b, loc, sums, i);
    if (isMixed)
      sum = e.select(e.isLess(operands.inGroup, e.index(2)), sum, zero);
    first.push_back(sum);
  }
  llvm::append_range(first, SmallVector<Value>(first));
  return first;
}

void StreamBlocks::multiply(const Tile &tile, Value pair,
                            MutableArrayRef<Value> sums) {
  const Type element = b.getF16Type();
  const bool hasBlockScale = !tile.blocks.empty();
  SmallVector<Value> ofTile(sums);
  if (hasBlockScale)
    llvm::fill(ofTile, e.f32(0.0));
  const int64_t halves = stream.sumsOfX == Sums::Halves ? 2 : 1;
  for (int64_t unit = 0; unit < units; ++unit) {
    Value here = e.add(pair, e.index(unit));
    const SmallVector<Value> left[2] = {fragment(tile, unit, 0),
                                        fragment(tile, unit, 1)};
    Value place = e.mul(here, e.index(2 * stream.rows * 4));
    for (auto [number, column] : llvm::enumerate(operands.xOfLane)) {
      Value vector =
          memref::LoadOp::create(b, loc, operands.x, e.add(place, column));
      SmallVector<Value> x;
      for (int64_t i = 0; i < 4; ++i)
        x.push_back(vector::ExtractOp::create(b, loc, vector, i));
      for (int64_t part = 0; part < halves; ++part) {
        SmallVector<Value> products =
            firstSums(here, halves * unit + part, number);
        for (int64_t half = 0; half < 2; ++half)
          if (halves == 1 || half == part)
            products = code.multiplyAdd(
                element, left[half], ArrayRef(x).slice(2 * half, 2), products);
        auto [upper, lower] = scalesOf(tile, halves * unit + part);
        for (int64_t i = 0; i < 4; ++i) {
          Value &sum = ofTile[4 * number + i];
          sum = fma(i < 2 ? upper : lower, products[i], sum);
        }
      }
    }
  }
  if (!hasBlockScale) {
    llvm::copy(ofTile, sums.begin());
    return;
  }
  const bool hasMinimums = stream.sumsOfX == Sums::Minimums;
  Value upper = half(tile.blocks[0], 0);
  Value lower = hasMinimums ? half(tile.blocks[1], 0) : half(tile.blocks[0], 1);
  for (auto [number, sum] : llvm::enumerate(sums))
    sum = fma(number % 4 < 2 ? upper : lower, ofTile[number], sum);
  if (hasMinimums)
    addMinimums(tile, pair, sums);
}

//===----------------------------------------------------------------------===//
// Sums of x
//===----------------------------------------------------------------------===//

/// The minimums of a row for this lane's two units, a half of a word each.
Value StreamBlocks::minimums(const Tile &tile, int64_t row) {
  Value low = shifted(tile.own[0], 16 * row);
  Value high = shifted(tile.own[1], 8 * row);
  return joined(
      joined(masked(shifted(low, 6), 3), masked(shifted(low, -2), 0x30000)),
      joined(masked(shifted(high, -2), 0x3c),
             masked(shifted(high, -14), 0x3c0000)));
}

void StreamBlocks::addMinimums(const Tile &tile, Value pair,
                               MutableArrayRef<Value> sums) {
  SmallVector<Value> left = {minimums(tile, 0), minimums(tile, 1)};
  llvm::append_range(left, SmallVector<Value>(left));
  // Products are scaled as those of codes.
  auto scale = [&](int64_t row) {
    return e.mul(half(tile.blocks[row], 1), e.f32(-xScale / minimumScale));
  };
  Value upper = scale(0), lower = scale(1);
  const bool isMixed = stream.columnTiles() == 1;
  for (int64_t number = 0; number < stream.columnTiles(); ++number) {
    if (!isHighTile(number))
      continue;
    Value row = e.add(operands.group, e.index(8 * number));
    Value isThere = e.isLess(row, e.index(stream.rows));
    // [tiles][rows][4 lanes] of two words.
    Value place =
        e.add(e.mul(pair, e.index(stream.rows)),
              e.mul(e.select(isThere, row, e.index(0)), e.index(units)));
    place = e.add(place, e.mul(operands.inGroup, e.index(2)));
    SmallVector<Value> right =
        loadWords(code.advance(operands.xSums, e.mul(place, e.index(4))), 2);
    if (isMixed)
      for (Value &value : right)
        value =
            e.select(e.isLess(operands.group, e.index(4)), value, e.word(0));
    SmallVector<Value> products = code.multiplyAdd(
        b.getF16Type(), left, right, SmallVector<Value>(4, e.f32(0.0)));
    for (int64_t i = 0; i < 4; ++i) {
      Value &sum = sums[4 * number + i];
      sum = fma(i < 2 ? upper : lower, products[i], sum);
    }
  }
}

void StreamBlocks::storeSums(Value pair, Value row, ArrayRef<Value> parts) {
  SmallVector<Value> sums(parts);
  if (stream.sumsOfX != Sums::Halves)
    sums = {e.add(parts[0], parts[1])};
  for (Value &sum : sums)
    sum = code.combineLanes(sum, 0, 2,
                            [&](Value x, Value y) { return e.add(x, y); });
  auto store = [&](Value value, Value place, int64_t bytes) {
    LLVM::StoreOp::create(
        b, loc, value,
        code.advance(operands.xSums, e.mul(place, e.index(bytes))), bytes);
  };
  e.ifThen(e.isLess(operands.inGroup, e.index(1)), [&] {
    if (stream.sumsOfX != Sums::Minimums) {
      // What codes are above values is subtracted.
      const int64_t zero = ::kf::PackedBlock(format).zero;
      for (auto [number, sum] : llvm::enumerate(sums)) {
        Value column =
            e.add(e.mul(pair, e.index(sums.size())), e.index(number));
        store(
            e.mul(sum, e.f32(-static_cast<double>(zero) * xScale * codeScale)),
            e.add(e.mul(column, e.index(stream.sumColumns())), row), 4);
      }
      return;
    }
    Value sum = e.mul(sums[0], e.f32(minimumScale));
    Value high = arith::TruncFOp::create(b, loc, b.getF16Type(), sum);
    Value rest =
        e.sub(sum, arith::ExtFOp::create(b, loc, b.getF32Type(), high));
    Value low = arith::TruncFOp::create(b, loc, b.getF16Type(), rest);
    auto div = [&](Value x, int64_t by) -> Value {
      return arith::DivUIOp::create(b, loc, x, e.index(by));
    };
    auto rem = [&](Value x, int64_t by) -> Value {
      return arith::RemUIOp::create(b, loc, x, e.index(by));
    };
    // Halves: [tiles][rows][pairs of units][high, low][2].
    Value place = e.add(e.mul(div(pair, units), e.index(stream.rows)), row);
    place = e.add(e.mul(place, e.index(4)), div(rem(pair, units), 2));
    place = e.add(e.mul(place, e.index(4)), rem(pair, 2));
    store(high, place, 2);
    store(low, e.add(place, e.index(2)), 2);
  });
}
