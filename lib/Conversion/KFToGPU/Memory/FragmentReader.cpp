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
    const bool isOfExperts = type.getRank() == 4;
    const bool isPair = type.getRank() > 2 && type.getDimSize(0) == 2;
    Value line = indices.drop_back().back(), column = indices.back();
    Value block = e.div(line, isPair ? half : 2 * half);
    if (isOfExperts)
      block = e.add(
          block, e.scaled(indices[1], ::kf::FragmentTile::rowBlocks(
                                          isPair ? 2 : 1, type.getDimSize(2))));
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
  using Scales = ::kf::FragmentScales;

  Value readPlain() {
    // Words of 32 bits: of the row in the tile, then of the lane.
    const int64_t perWord = tile.columns / ::kf::FragmentTile::lineWords;
    Value word = e.div(k, perWord), inWord = e.rem(k, perWord);
    if (isa<Float8E4M3FNType>(type.getElementType())) {
      Value inHalf = e.rem(k, 16);
      word = e.add(e.scaled(e.div(k, 16), 4), e.div(e.rem(inHalf, 8), 2));
      inWord = e.add(e.scaled(e.div(inHalf, 8), 2), e.rem(k, 2));
    }
    Value lane = e.add(e.scaled(g, 4), e.rem(word, 4));
    Value ofLane = e.add(row, e.scaled(e.div(word, 4), 2));
    Value place = e.add(e.scaled(number, tile.bytes / 4),
                        e.add(e.scaled(lane, 4), ofLane));
    return e.loadBuffer(buffer, e.add(e.scaled(place, perWord), inWord),
                        type.getElementType());
  }

  Value readBlock(const ::kf::BlockFormat &format) {
    begin = e.scaled(number, tile.bytes);
    scales = e.add(begin, e.index(512 * tile.vectors));
    u = e.div(k, 32);
    half = e.rem(e.div(k, 16), 2);
    pair = e.rem(e.div(k, 8), 2);
    odd = e.rem(k, 2);
    lane = e.add(e.scaled(g, 4), e.div(e.rem(k, 8), 2));
    return scaled(::kf::findFragmentScales(format), valueOf(format));
  }

  /// `value` by what scales it, and the minimum that goes with it.
  Value scaled(const Scales &own, Value value) {
    Value two = e.div(u, 2);
    if (own.integers == 0) {
      Value d = placeOf(own, &Scales::blockAt, two, e.rem(u, 2));
      Value product = e.mul(halfAt(d), value);
      return own.minOffset == 0 ? product : e.add(product, minimumOf(own, d));
    }
    Value integer = byteOf(scales, placeOfInteger(own));
    if (own.areExponents)
      return e.mul(e.widenHalvedE8M0(integer), value);
    Value min;
    if (own.minOffset != 0 && own.restOffset == 0) {
      min = shifted(integer, e.word(own.bits));
    } else if (own.restOffset != 0) {
      Value rest = byteOf(e.add(scales, e.index(own.restOffset)),
                          placeOf(own, &Scales::restAt, two, Value()));
      rest = masked(shifted(rest, i32(e.scaled(e.rem(u, 2), 4))), 15);
      min = joined(shifted(integer, e.word(own.bits)), rest, 8 - own.bits);
    }
    Value d = e.add(e.index(own.blockOffset),
                    e.add(e.scaled(g, own.blockPairBytes()),
                          e.scaled(row, own.blockPairBytes() / 2)));
    if (!min)
      return e.mul(e.mul(halfAt(d), number32(integer, own.above)), value);
    Value scale = masked(integer, (1 << own.bits) - 1);
    Value product = e.mul(e.mul(halfAt(d), number32(scale, 0)), value);
    return e.sub(product, e.mul(minimumOf(own, d), number32(min, 0)));
  }

  /// The m that goes with the d at `d`.
  Value minimumOf(const Scales &own, Value d) {
    return halfAt(e.add(d, e.index(own.minOffset)));
  }

  Value placeOfInteger(const Scales &own) {
    if (own.integers == 8)
      return placeOf(own, &Scales::integerAt, e.div(u, 2), e.rem(u, 2));
    Value s = e.div(k, 16);
    Value place =
        placeOf(own, &Scales::integerAt, e.div(e.rem(s, 8), 2), e.rem(s, 2));
    return e.add(place, e.scaled(e.div(s, 8), own.integerAt(0, 0, 8)));
  }

  /// How far behind the first what `at` says for this row is, where lane
  /// `ofGroup` of the group has it: lanes lie behind one another, and in a lane
  /// rows, each with an even and an odd number; `odd` is null where there is
  /// one alone.
  Value placeOf(const Scales &own, int (Scales::*at)(int, int, int) const,
                Value ofGroup, Value odd) {
    const int first = (own.*at)(0, 0, 0);
    const int ofLane = ((own.*at)(1, 0, 0) - first) / 4;
    const int ofRow = (own.*at)(0, 1, 0) - first;
    Value all = e.add(e.scaled(g, 4), ofGroup);
    Value inLane = odd ? e.add(e.scaled(row, 2), odd) : row;
    return e.add(e.scaled(all, ofLane),
                 e.scaled(inLane, odd ? ofRow / 2 : ofRow));
  }

  /// value(code), in f32.
  Value valueOf(const ::kf::BlockFormat &format) {
    // Where codes lie is a sum over the digits of their numbers, but for those
    // of the second half of row 1.
    Value code;
    if (format.codeBits() == 6) {
      Value isLast = e.isLess(e.index(1), e.add(row, half));
      // As if it were in the first half where that is not taken: their word
      // could lie behind the tile.
      Value inFirst = e.select(isLast, e.index(0), half);
      code = e.select(isLast, codeOf(format, /*isLast=*/true, half),
                      codeOf(format, /*isLast=*/false, inFirst));
    } else {
      code = codeOf(format, /*isLast=*/false, half);
    }
    if (format.table)
      return e.lookUp(format.table, code);
    return number32(code, format.isSigned ? 128 : format.zero);
  }

  /// The code, where it is in the second half of row 1, or is not; `inHalf` is
  /// the half.
  Value codeOf(const ::kf::BlockFormat &format, bool isLast, Value inHalf) {
    using Code = ::kf::FragmentCode;
    using Bits = ::kf::CodeBits;
    using Member = Bits Code::*;
    const Code first = at(format, 0, isLast, isLast, 0, 0);
    auto sumOf = [&](Member part, int Bits::*number) {
      auto weightOf = [&](const Code &other) {
        return other.*part.*number - first.*part.*number;
      };
      Value sum = e.index(first.*part.*number);
      auto add = [&](Value digit, int weight) {
        if (weight != 0)
          sum = e.add(sum, e.scaled(digit, weight));
      };
      add(e.rem(u, 2), weightOf(at(format, 1, isLast, isLast, 0, 0)));
      add(e.div(u, 2), weightOf(at(format, 2, isLast, isLast, 0, 0)));
      if (!isLast) {
        add(row, weightOf(at(format, 0, 1, 0, 0, 0)));
        add(inHalf, weightOf(at(format, 0, 0, 1, 0, 0)));
      }
      add(pair, weightOf(at(format, 0, isLast, isLast, 1, 0)));
      add(odd, weightOf(at(format, 0, isLast, isLast, 0, 1)));
      return sum;
    };
    Value code = e.word(0);
    for (Member part : {&Code::low, &Code::high}) {
      const Bits &own = first.*part;
      if (own.width == 0)
        continue;
      // A half of a word has all bits.
      Value bit = sumOf(part, &Bits::bit);
      Value place = e.add(wordPlace(sumOf(part, &Bits::word)),
                          e.scaled(e.div(bit, 16), 2));
      Value bits =
          joined(byteOf(place, e.index(0)), byteOf(place, e.index(1)), 8);
      bits = masked(shifted(bits, i32(e.rem(bit, 16))), (1 << own.width) - 1);
      code = joined(code, bits, own.at);
    }
    return code;
  }

  static ::kf::FragmentCode at(const ::kf::BlockFormat &format, int span,
                               int row, int half, int pair, int odd) {
    return ::kf::findFragmentCode(format, span, row, 4 * half + 2 * pair + odd);
  }

  Value wordPlace(Value ofLane) {
    return e.add(e.add(begin, e.scaled(e.div(ofLane, 4), 512)),
                 e.add(e.scaled(lane, 16), e.scaled(e.rem(ofLane, 4), 4)));
  }
  Value byteOf(Value base, Value offset) {
    Value byte = memref::LoadOp::create(b, loc, buffer, e.add(base, offset));
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), byte);
  }
  Value halfAt(Value offset) {
    return e.loadHalf(buffer, e.add(scales, offset));
  }
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
  Value lane, u;           // of the code: who has it, and its span
  Value half, pair, odd;   // digits of its number in the span
};

} // namespace

Value GPUEmitter::loadFragments(BlockArgument argument, ValueRange indices) {
  return FragmentReader(*this, argument, indices).read();
}
