//===- BlockTiles.h - Tiles of blocks in registers --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a warp has of a tile of a block-quantized weight (FragmentTile), and the
// operands of matrix units that it makes of it. A code that is masked out of
// its word is a subnormal f16, code * 2^-24, which matrix units take as it is:
// so nothing is converted. A code of E2M1 has its bits where f16 has them, and
// is 2^-14 of its value, as f16's exponents are so much larger.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_UNITS_BLOCKTILES_H
#define KF_LIB_CONVERSION_KFTOGPU_UNITS_BLOCKTILES_H

#include "WarpOps.h"

namespace mlir::kf {

/// Lanes of a warp, of which 4 are a group.
struct BlockLanes {
  Value lane, group, inGroup; ///< of this thread
};

class BlockTiles {
public:
  /// Whether codes become what they stand for, in numbers of 2^-24 and but for
  /// their block's d, before matrix units multiply them: less their zero and
  /// times the integer of their half of a span. That is exact where an f16's 11
  /// bits hold it. One operation for two codes is less than what sums of each
  /// half take, products of all spans add up in the matrix units, and no sums
  /// of x go with a zero. Words of codes are those of two bits: see raisedOf().
  static bool scalesCodes(const ::kf::BlockFormat &format) {
    return format.low.bits == 2 &&
           ::kf::findFragmentScales(format).integers == 16 &&
           format.codeBits() + format.subScaleBits() <= 11;
  }

  /// What a sum of products with codes is too small by.
  double codeScale() const { return ::kf::hasE2M1(format) ? 0x1p-14 : 0x1p-24; }

  /// What values of pair number `i` of a lane's columns, of 4, are scaled by:
  /// codes are multiplied where they lie, some a power of two too large.
  double scaleOfPair(int64_t i) const {
    return 1.0 / static_cast<double>(1 << placeOfPair(i));
  }
  /// Such a pair, a word of two f16, scaled so.
  Value scaledPair(Value word, int64_t i);

  /// A tile in registers.
  struct Tile {
    SmallVector<Value> words;  ///< of codes; null: not read
    SmallVector<Value> scales; ///< of both rows, as they are stored
    SmallVector<Value> own;    ///< what minimums of this lane are in
    SmallVector<Value> blocks; ///< d, or d and m, of both rows of K formats
  };
  /// Reads the tile that begins at `tile`, a pointer; the warp's lanes have
  /// copied it together.
  Tile load(Value tile);

protected:
  /// The same in parts: words of codes of span `span` that are not there yet,
  /// and what scales them. Of words alone in their vector, no more than those
  /// where `isLone`: else all of it, which other spans have some of.
  void loadCodes(Tile &tile, Value pointer, int64_t span, bool isLone = false);
  void loadScales(Tile &tile, Value pointer);

  /// By what sums of x are scaled that minimums are multiplied by: 32 of the
  /// largest f16 are one.
  static constexpr double minimumScale = 0x1p-5;
  /// Units of a tile.
  static constexpr int64_t spans = 8;

  /// `scaled`: whether codes are, of a format that scalesCodes().
  BlockTiles(GPUEmitter &emitter, StreamShape::Sums sumsOfX,
             const BlockLanes &lanes, const ::kf::BlockFormat &format,
             bool scaled = true);

  /// The bit at which codes of pair number `i` of a lane's columns begin: that
  /// where they lie in their word, or 8 or 16 below.
  int64_t placeOfPair(int64_t i) const {
    return i % 2 == 1 && !format.table && format.codeBits() < 6
               ? format.low.bits
               : 0;
  }
  /// The left operand: 16 columns of span `span`.
  SmallVector<Value> fragment(const Tile &tile, int64_t span, int64_t half);
  bool scalesCodes() const { return codesAreScaled; }
  /// The two codes of pair number `pair` of row `row` in span `span`, at bit
  /// placeOfPair() and `raised` of halves of a word; of a table, its entries
  /// plus 128; of E2M1, f16 that are 2^-14 of what they stand for.
  Value codesOf(const Tile &tile, int64_t span, int64_t row, int64_t pair,
                int64_t raised = 0);
  /// The codes of E2M1 of such a pair, as floats of 16 bits whose exponents
  /// end above `mantissa` bits.
  Value floatsOf(const Tile &tile, int64_t span, int64_t row, int64_t pair,
                 int64_t mantissa);
  /// The scales of both rows for sum number `number`: of a span, or half of
  /// one.
  std::pair<Value, Value> scalesOf(const Tile &tile, int64_t number);
  /// Whether d and m have sub-blocks with integer scales.
  bool hasSubScales() const {
    return scaling.integers != 0 && !scaling.areExponents;
  }
  /// Left operands whose columns are the minimums of eight spans, or halves of
  /// them, twice: f16, or integers as codes are.
  SmallVector<SmallVector<Value>> minimums(const Tile &tile);
  /// Those of two spans of row `row`, where a part of them lies apart: integers
  /// in a word's halves, from the word of their scales and that part.
  Value packedMinimums(Value scales, Value rest, int64_t row);
  /// What the products of minimums of both rows and of sums of x that are
  /// scaled by minimumScale are multiplied by, to be added to those of codes.
  /// `xScale` is what x is scaled by in those.
  std::pair<Value, Value> scalesOfMinimums(const Tile &tile, double xScale = 1);

  /// What the sums of the tile's products begin with: 0 where they are scaled
  /// by blocks' scales before they join `sums`.
  SmallVector<Value> beginTile(const Tile &tile, ArrayRef<Value> sums);
  /// Makes what is summed of the tile's products a part of `sums`.
  void endTile(const Tile &tile, ArrayRef<Value> ofTile,
               MutableArrayRef<Value> sums);

  /// The bit above placeOfPair() at which codes of half `half` of a span begin
  /// that are scaled, so that they are moved once for a word, or not at all.
  int64_t raisedOf(int64_t row, int64_t half) const;
  SmallVector<Value> scaledFragment(const Tile &tile, int64_t span,
                                    int64_t half);
  Value lookUp(Value word, int64_t first);
  /// `count` words, a multiple of 4 at a multiple of 16 bytes, or 2 at one
  /// of 8.
  SmallVector<Value> loadWords(Value pointer, int64_t count);
  Value joined(Value a, Value b);
  /// Half number `number` of a word, an f16, in f32.
  Value half(Value x, int64_t number);
  /// The bits `mask` of a byte, in f32.
  Value byte(Value x, int64_t number, int64_t mask);
  /// What a byte of E8M0 stands for, in f32.
  Value exponent(Value x, int64_t number);
  Value fma(Value a, Value b, Value c);
  /// Two f16: of a word, and twice the same; and the word of two.
  Value pairOf(Value word);
  Value pairOf(double value);
  Value pairOf(double first, double second);
  Value wordOf(Value pair);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  WarpOps code;
  const StreamShape::Sums sumsOfX;
  const BlockLanes lanes;
  const ::kf::BlockFormat &format;
  const ::kf::FragmentTile tileOf;
  const ::kf::FragmentScales scaling;
  const bool codesAreScaled;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_UNITS_BLOCKTILES_H
