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

/// Of one row and with minimums, whose sums of x are there in any case, fewer
/// operations of scales do not make up for those of codes (docs/GPU.md).
static bool scalesCodesOf(const StreamShape &stream,
                          const ::kf::BlockFormat &format) {
  return stream.rows > 1 || format.minOffset < 0;
}

StreamBlocks::StreamBlocks(GPUEmitter &emitter, const StreamOperands &operands,
                           const ::kf::BlockFormat &format)
    : BlockTiles(emitter, emitter.shape.stream->sumsOfX, operands, format,
                 scalesCodesOf(*emitter.shape.stream, format)),
      stream(*emitter.shape.stream), operands(operands) {}

/// Whether a column tile has what rounding leaves of no row.
bool StreamBlocks::isHighTile(int64_t number) const {
  return number < stream.highTiles();
}

/// What the sums of a span, or half of one, begin with in column tile `tile`.
SmallVector<Value> StreamBlocks::firstSums(Value pair, int64_t number,
                                           int64_t tile) {
  Value zero = e.f32(0.0);
  if (!StreamShape::hasAny(sumsOfX) || StreamShape::hasMinimums(sumsOfX) ||
      !isHighTile(tile))
    return SmallVector<Value>(4, zero);
  const int64_t ofPair = sumsOfX == Sums::Halves ? 2 : 1;
  const bool isMixed = stream.isMixed();
  Value column = operands.inGroup;
  if (isMixed)
    column = e.rem(column, 2);
  Value place = e.add(e.mul(pair, e.index(ofPair * stream.sumColumns())),
                      e.mul(column, e.index(2)));
  place =
      e.add(place, e.index(number % ofPair * stream.sumColumns() + 8 * tile));
  Value sums = LLVM::LoadOp::create(
      b, loc, VectorType::get({2}, b.getF32Type()),
      code.advance(operands.xSums, e.mul(place, e.index(4))), 8);
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
  SmallVector<Value> ofTile = beginTile(tile, sums);
  // Of scaled codes: those of halves by themselves, for a product waits for the
  // one that it is added to.
  SmallVector<Value> ofHalves[2] = {ofTile, ofTile};
  const int64_t halves = StreamShape::hasHalves(sumsOfX) ? 2 : 1;
  for (int64_t span = 0; span < spans; ++span) {
    Value here = e.add(pair, e.index(span));
    const SmallVector<Value> left[2] = {fragment(tile, span, 0),
                                        fragment(tile, span, 1)};
    Value place = e.mul(here, e.index(stream.terms * stream.rows * 4));
    for (auto [number, column] : llvm::enumerate(operands.xOfLane)) {
      Value vector =
          memref::LoadOp::create(b, loc, operands.x, e.add(place, column));
      SmallVector<Value> x;
      for (int64_t i = 0; i < 4; ++i)
        x.push_back(vector::ExtractOp::create(b, loc, vector, i));
      if (scalesCodes()) {
        for (int64_t half = 0; half < 2; ++half) {
          auto own = MutableArrayRef(ofHalves[half]).slice(4 * number, 4);
          llvm::copy(code.multiplyAdd(element, left[half],
                                      ArrayRef(x).slice(2 * half, 2), own),
                     own.begin());
        }
        continue;
      }
      for (int64_t part = 0; part < halves; ++part) {
        SmallVector<Value> products =
            firstSums(here, halves * span + part, number);
        for (int64_t half = 0; half < 2; ++half)
          if (halves == 1 || half == part)
            products = code.multiplyAdd(
                element, left[half], ArrayRef(x).slice(2 * half, 2), products);
        auto [upper, lower] = scalesOf(tile, halves * span + part);
        for (int64_t i = 0; i < 4; ++i) {
          Value &sum = ofTile[4 * number + i];
          sum = fma(i < 2 ? upper : lower, products[i], sum);
        }
      }
    }
  }
  if (scalesCodes())
    for (auto [sum, one, other] :
         llvm::zip_equal(ofTile, ofHalves[0], ofHalves[1]))
      sum = e.add(one, other);
  endTile(tile, ofTile, sums);
  if (StreamShape::hasMinimums(sumsOfX))
    addMinimums(tile, pair, sums);
}

//===----------------------------------------------------------------------===//
// Sums of x
//===----------------------------------------------------------------------===//

void StreamBlocks::addMinimums(const Tile &tile, Value pair,
                               MutableArrayRef<Value> sums) {
  const SmallVector<SmallVector<Value>> left = minimums(tile);
  auto [upper, lower] = scalesOfMinimums(tile, xScaleOf(stream));
  const bool isMixed = stream.isMixed();
  const int64_t wordsOfRow = spans * int64_t(left.size());
  for (int64_t number = 0; number < stream.columnTiles(); ++number) {
    if (!isHighTile(number))
      continue;
    Value row = e.add(operands.group, e.index(8 * number));
    Value isThere = e.isLess(row, e.index(stream.rows));
    // [tiles][rows][eight sums][4 lanes] of two words.
    Value place =
        e.add(e.mul(pair, e.index(stream.rows * left.size())),
              e.mul(e.select(isThere, row, e.index(0)), e.index(wordsOfRow)));
    place = e.add(place, e.mul(operands.inGroup, e.index(2)));
    SmallVector<Value> products(4, e.f32(0.0));
    for (const SmallVector<Value> &operand : left) {
      SmallVector<Value> right =
          loadWords(code.advance(operands.xSums, e.mul(place, e.index(4))), 2);
      if (isMixed)
        for (Value &value : right)
          value =
              e.select(e.isLess(operands.group, e.index(4)), value, e.word(0));
      products = code.multiplyAdd(b.getF16Type(), operand, right, products);
      place = e.add(place, e.index(spans));
    }
    for (int64_t i = 0; i < 4; ++i) {
      Value &sum = sums[4 * number + i];
      sum = fma(i < 2 ? upper : lower, products[i], sum);
    }
  }
}

void StreamBlocks::storeSums(Value pair, Value half, Value row,
                             ArrayRef<Value> parts) {
  if (!StreamShape::hasAny(sumsOfX))
    return;
  if (StreamShape::hasHalves(sumsOfX)) {
    for (auto [i, part] : llvm::enumerate(parts))
      storeSum(e.add(e.scaled(e.add(pair, e.index(i * pairsApart)), 2), half),
               row, part);
    return;
  }
  // Of neighbouring groups, each has one of the pairs.
  Value isFirst = e.isLess(half, e.index(1));
  Value own = e.select(isFirst, parts[0], parts[1]);
  Value others = e.select(isFirst, parts[1], parts[0]);
  storeSum(e.add(pair, e.scaled(half, pairsApart)), row,
           e.add(own, code.exchange(others, 4)));
}

/// Stores sum number `number` of a row, of which the lanes of a group have
/// `part`.
void StreamBlocks::storeSum(Value number, Value row, Value part) {
  Value sum = code.combineLanes(part, 0, 2,
                                [&](Value x, Value y) { return e.add(x, y); });
  auto store = [&](Value value, Value place, int64_t bytes) {
    LLVM::StoreOp::create(
        b, loc, value,
        code.advance(operands.xSums, e.mul(place, e.index(bytes))), bytes);
  };
  e.ifThen(e.isLess(operands.inGroup, e.index(1)), [&] {
    if (!StreamShape::hasMinimums(sumsOfX)) {
      // What codes are above values is subtracted.
      const int64_t zero = ::kf::PackedBlock(format).zero;
      const double scale = xScaleOf(stream) * codeScale();
      store(e.mul(sum, e.f32(-static_cast<double>(zero) * scale)),
            e.add(e.mul(number, e.index(stream.sumColumns())), row), 4);
      return;
    }
    Value scaled = e.mul(sum, e.f32(minimumScale));
    Value high = arith::TruncFOp::create(b, loc, b.getF16Type(), scaled);
    Value rest =
        e.sub(scaled, arith::ExtFOp::create(b, loc, b.getF32Type(), high));
    Value low = arith::TruncFOp::create(b, loc, b.getF16Type(), rest);
    // Halves: [tiles][rows][pairs of sums][high, low][2].
    const int64_t ofTile = StreamShape::hasHalves(sumsOfX) ? 2 * spans : spans;
    Value inTile = e.rem(number, ofTile);
    Value place = e.add(e.scaled(e.div(number, ofTile), stream.rows), row);
    place = e.add(e.scaled(place, ofTile / 2), e.div(inTile, 2));
    place = e.add(e.scaled(place, 4), e.rem(inTile, 2));
    store(high, place, 2);
    store(low, e.add(place, e.index(2)), 2);
  });
}
