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
                       const BlockLanes &lanes, const ::kf::BlockFormat &format)
    : e(emitter), b(emitter.b), loc(emitter.loc), code(emitter),
      sumsOfX(sumsOfX), lanes(lanes), format(format),
      tileOf(*::kf::findFragmentTile(format.type)) {}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Value BlockTiles::masked(Value x, int64_t mask) {
  return arith::AndIOp::create(b, loc, x, e.word(mask));
}

Value BlockTiles::shifted(Value x, int64_t right) {
  if (right == 0)
    return x;
  if (right < 0)
    return arith::ShLIOp::create(b, loc, x, e.word(-right));
  return arith::ShRUIOp::create(b, loc, x, e.word(right));
}

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
  Value bits = joined(masked(shifted(x, 8 * number), mask), e.word(0x4b000000));
  return e.sub(arith::BitcastOp::create(b, loc, b.getF32Type(), bits),
               e.f32(0x1p23));
}

Value BlockTiles::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
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
  loadCodes(tile, pointer, 4 * tileOf.vectors);
  loadScales(tile, pointer);
  return tile;
}

void BlockTiles::loadCodes(Tile &tile, Value pointer, int64_t count) {
  Value own = code.advance(pointer, e.mul(lanes.lane, e.index(16)));
  while (static_cast<int64_t>(tile.words.size()) < count)
    llvm::append_range(
        tile.words,
        loadWords(code.advance(own, 512 * (tile.words.size() / 4)), 4));
}

void BlockTiles::loadScales(Tile &tile, Value pointer) {
  auto at = [&](Value index, int64_t bytes) {
    return code.advance(pointer, e.mul(index, e.index(bytes)));
  };
  pointer = code.advance(pointer, 512 * tileOf.vectors);
  if (sumsOfX != Sums::Minimums) {
    tile.scales = loadWords(at(lanes.group, 32), 8);
    if (sumsOfX == Sums::Halves)
      tile.blocks =
          code.loadRegisters(code.advance(at(lanes.group, 4), 256), 4);
    return;
  }
  tile.scales = loadWords(at(lanes.group, 16), 4);
  tile.own = code.loadRegisters(at(lanes.lane, 4), 4);
  llvm::append_range(
      tile.own, code.loadRegisters(code.advance(at(lanes.lane, 2), 128), 2));
  tile.blocks = loadWords(code.advance(at(lanes.group, 8), 192), 2);
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
  Value lower = sumsOfX == Sums::Minimums ? half(tile.blocks[1], 0)
                                          : half(tile.blocks[0], 1);
  for (auto [number, sum] : llvm::enumerate(sums))
    sum = fma(number % 4 < 2 ? upper : lower, ofTile[number], sum);
}

SmallVector<Value> BlockTiles::fragment(const Tile &tile, int64_t span,
                                        int64_t half) {
  ArrayRef<Value> words = tile.words;
  SmallVector<Value> fragment(4);
  for (int64_t row = 0; row < 2; ++row) {
    if (format.low.bits == 8) {
      Value codes = words[4 * span + 2 * half + row];
      fragment[row] = masked(codes, 0x00ff00ff);
      fragment[2 + row] = masked(shifted(codes, 8), 0x00ff00ff);
    } else if (format.high.bits == 0) {
      Value codes = shifted(words[2 * span + row], 8 * half);
      fragment[row] = masked(codes, 0x000f000f);
      fragment[2 + row] = masked(codes, 0x00f000f0);
    } else if (half == 0 || row == 0) {
      Value codes = words[3 * span + 2 * half + row];
      fragment[row] = masked(codes, 0x003f003f);
      fragment[2 + row] = masked(shifted(codes, 6), 0x003f003f);
    } else {
      for (int64_t i = 0; i < 2; ++i)
        fragment[2 * i + 1] =
            joined(masked(shifted(words[3 * span + i], 12), 0x000f000f),
                   masked(shifted(words[3 * span + 2], 8 + 2 * i), 0x00300030));
    }
  }
  return fragment;
}

std::pair<Value, Value> BlockTiles::scalesOf(const Tile &tile, int64_t number) {
  const int64_t odd = number % 2;
  switch (sumsOfX) {
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

SmallVector<Value> BlockTiles::minimums(const Tile &tile) {
  SmallVector<Value> left;
  for (int64_t row = 0; row < 2; ++row) { // a half of a word for each span
    Value low = shifted(tile.own[0], 16 * row);
    Value high = shifted(tile.own[1], 8 * row);
    left.push_back(joined(
        joined(masked(shifted(low, 6), 3), masked(shifted(low, -2), 0x30000)),
        joined(masked(shifted(high, -2), 0x3c),
               masked(shifted(high, -14), 0x3c0000))));
  }
  llvm::append_range(left, SmallVector<Value>(left));
  return left;
}
