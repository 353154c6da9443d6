//===- FragmentReader.cpp - Single elements of tiles ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements of weights in the order of matrix units (FragmentTile), one by one:
// slow, for schedules that know nothing of tiles.
//
//===----------------------------------------------------------------------===//

#include "../GPUEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class FragmentReader {
public:
  /// Of the element at `indices` of `argument`.
  FragmentReader(GPUEmitter &emitter, BlockArgument argument,
                 ValueRange indices)
      : e(emitter), b(e.b), loc(e.loc), buffer(e.bufferOf(argument)),
        type(cast<RankedTensorType>(argument.getType())),
        tile(*getFragmentTile(type.getElementType())) {
    constexpr int64_t half = ::kf::FragmentTile::rows / 2;
    const bool isPair = type.getRank() == 3;
    Value line = indices.drop_back().back(), column = indices.back();
    Value block = e.div(line, isPair ? half : 2 * half);
    g = e.rem(line, half);
    row = isPair ? indices.front() : e.div(e.rem(line, 2 * half), half);
    k = e.rem(column, tile.columns);
    number = e.add(e.scaled(block, tile.tilesOf(type.getShape().back())),
                   e.div(column, tile.columns));
  }

  Value read() {
    auto quant = dyn_cast<QuantType>(type.getElementType());
    return quant ? readBlock(getStorage(quant.getFormat())) : readPlain();
  }

private:
  Value readPlain() {
    // Words of 32 bits: of the row in the tile, then of the lane.
    const int64_t perWord = tile.columns / ::kf::FragmentTile::lineWords;
    Value word = e.div(k, perWord);
    Value lane = e.add(e.scaled(g, 4), e.rem(word, 4));
    Value ofLane = e.add(row, e.scaled(e.div(word, 4), 2));
    Value place = e.add(e.scaled(number, tile.bytes / 4),
                        e.add(e.scaled(lane, 4), ofLane));
    return e.loadBuffer(buffer,
                        e.add(e.scaled(place, perWord), e.rem(k, perWord)),
                        type.getElementType());
  }

  Value readBlock(const ::kf::BlockFormat &format) {
    begin = e.scaled(number, tile.bytes);
    scales = e.add(begin, e.index(512 * tile.vectors));
    u = e.div(k, 32);
    Value ofSpan = e.rem(k, 32);
    lane = e.add(e.scaled(g, 4), e.div(e.rem(ofSpan, 16), 4));
    j = e.add(e.scaled(e.div(ofSpan, 16), 4), e.rem(ofSpan, 4));
    Value p = e.add(e.scaled(g, 4), e.div(u, 2));
    Value q = e.add(e.scaled(row, 2), e.rem(u, 2));
    switch (format.type) {
    case ::kf::DataType::Q4_0:
      return e.mul(half(e.add(e.scaled(p, 8), e.scaled(q, 2))),
                   number32(nibble(), 8));
    case ::kf::DataType::Q8_0:
      return e.mul(half(e.add(e.scaled(p, 8), e.scaled(q, 2))),
                   number32(wholeByte(), 128));
    case ::kf::DataType::Q4_K:
      return readQ4K(p, q);
    case ::kf::DataType::Q6_K:
      return readQ6K();
    default:
      llvm_unreachable("no other blocks have tiles");
    }
  }

  Value readQ4K(Value p, Value q) {
    Value first = byteOf(scales, e.add(e.scaled(p, 4), q));
    Value rest =
        byteOf(e.add(scales, e.index(128)), e.add(e.scaled(p, 2), row));
    Value nibbleOfRest =
        masked(shifted(rest, i32(e.scaled(e.rem(u, 2), 4))), 15);
    Value min = joined(shifted(first, e.word(6)), nibbleOfRest, 2);
    Value d = e.add(e.index(192), e.add(e.scaled(g, 8), e.scaled(row, 4)));
    Value scale = e.mul(half(d), number32(masked(first, 63), 0));
    Value product = e.mul(scale, number32(nibble(), 0));
    return e.sub(product, e.mul(half(e.add(d, e.index(2))), number32(min, 0)));
  }

  Value readQ6K() {
    Value isLast = arith::AndIOp::create(b, loc, e.isLess(e.index(0), row),
                                         e.isLess(e.index(3), j));
    Value first = e.scaled(u, 3), pairOfHalf = e.rem(e.div(j, 2), 2);
    Value isSecondHalf = e.div(j, 4);
    // Words of row g, of row g + 8, and what shares those with the last codes.
    Value own = e.select(e.isLess(e.index(0), row), e.index(1),
                         e.scaled(isSecondHalf, 2));
    Value codes = halfWord(e.add(first, e.select(isLast, pairOfHalf, own)));
    Value above = halfWord(e.add(first, e.index(2)));
    Value plain = masked(shifted(codes, i32(e.scaled(pairOfHalf, 6))), 63);
    Value high = masked(
        shifted(above, i32(e.add(e.scaled(pairOfHalf, 2), e.index(12)))), 3);
    Value last = joined(shifted(codes, e.word(12)), high, 4);
    Value s = e.div(k, 16);
    Value place =
        e.add(e.add(e.scaled(e.add(e.scaled(g, 4), e.div(e.rem(s, 8), 2)), 8),
                    e.scaled(e.div(s, 8), 4)),
              e.add(e.scaled(row, 2), e.rem(s, 2)));
    Value d =
        half(e.add(e.index(256), e.add(e.scaled(g, 4), e.scaled(row, 2))));
    Value scale = e.mul(d, number32(byteOf(scales, place), 128));
    return e.mul(scale, number32(e.select(isLast, last, plain), 32));
  }

  /// The code of 4 bits.
  Value nibble() {
    Value at = wordPlace(e.add(e.scaled(u, 2), row));
    Value codes = byteOf(at, e.add(e.div(j, 4), e.scaled(e.rem(j, 2), 2)));
    return masked(shifted(codes, i32(e.scaled(e.rem(e.div(j, 2), 2), 4))), 15);
  }
  Value wholeByte() {
    Value at =
        wordPlace(e.add(e.scaled(u, 4), e.add(e.scaled(e.div(j, 4), 2), row)));
    return byteOf(at, e.add(e.div(e.rem(j, 4), 2), e.scaled(e.rem(j, 2), 2)));
  }
  /// The half of a word of the lane that has odd codes or the others.
  Value halfWord(Value ofLane) {
    Value at = e.add(wordPlace(ofLane), e.scaled(e.rem(j, 2), 2));
    return joined(byteOf(at, e.index(0)), byteOf(at, e.index(1)), 8);
  }

  Value wordPlace(Value ofLane) {
    return e.add(e.add(begin, e.scaled(e.div(ofLane, 4), 512)),
                 e.add(e.scaled(lane, 16), e.scaled(e.rem(ofLane, 4), 4)));
  }
  Value byteOf(Value base, Value offset) {
    Value byte = memref::LoadOp::create(b, loc, buffer, e.add(base, offset));
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), byte);
  }
  Value half(Value offset) { return e.loadHalf(buffer, e.add(scales, offset)); }
  /// A code, less `zero`, in f32.
  Value number32(Value code, int64_t zero) {
    Value value = arith::SubIOp::create(b, loc, code, e.word(zero));
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), value);
  }

  Value i32(Value index) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  }
  Value shifted(Value x, Value by) {
    return arith::ShRUIOp::create(b, loc, x, by);
  }
  Value masked(Value x, int64_t mask) {
    return arith::AndIOp::create(b, loc, x, e.word(mask));
  }
  Value joined(Value low, Value high, int64_t bit) {
    return arith::OrIOp::create(
        b, loc, low, arith::ShLIOp::create(b, loc, high, e.word(bit)));
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  Value buffer;
  RankedTensorType type;
  const ::kf::FragmentTile tile;
  Value number, g, row, k; // of the tile; in it, row g + 8 * row
  Value begin, scales;     // of the tile, in bytes
  Value u, lane, j;        // span, lane and number of the code
};

} // namespace

Value GPUEmitter::loadFragments(BlockArgument argument, ValueRange indices) {
  return FragmentReader(*this, argument, indices).read();
}
