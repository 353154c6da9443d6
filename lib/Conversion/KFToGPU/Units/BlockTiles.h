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
// so nothing is converted.
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
  /// What a sum of products with codes is too small by.
  static constexpr double codeScale = 0x1p-24;

  /// What values of pair number `i` of a lane's columns, of 4, are scaled by:
  /// codes of 4 bits are multiplied where they lie, some 16 times too large.
  double scaleOfPair(int64_t i) const {
    return format.low.bits == 4 && format.high.bits == 0 && i % 2 == 1 ? 0x1p-4
                                                                       : 1;
  }

  /// A tile in registers.
  struct Tile {
    SmallVector<Value> words;  ///< of codes
    SmallVector<Value> scales; ///< of both rows, as they are stored
    SmallVector<Value> own;    ///< q4_k: what mins of this lane are in
    SmallVector<Value> blocks; ///< d, or d and m, of both rows
  };
  /// Reads the tile that begins at `tile`, a pointer; the warp's lanes have
  /// copied it together.
  Tile load(Value tile);

protected:
  /// The same in parts: at least `count` words of codes, and what scales them.
  void loadCodes(Tile &tile, Value pointer, int64_t count);
  void loadScales(Tile &tile, Value pointer);

  /// By what sums of x are scaled that minimums are multiplied by: 32 of the
  /// largest f16 are one.
  static constexpr double minimumScale = 0x1p-5;
  /// Units of a tile.
  static constexpr int64_t spans = 8;

  BlockTiles(GPUEmitter &emitter, StreamShape::Sums sumsOfX,
             const BlockLanes &lanes, const ::kf::BlockFormat &format);

  /// The left operand: 16 columns of span `span`.
  SmallVector<Value> fragment(const Tile &tile, int64_t span, int64_t half);
  /// The scales of both rows for sum number `number`: of a span, or half of
  /// one.
  std::pair<Value, Value> scalesOf(const Tile &tile, int64_t number);
  /// q4_k: the left operand whose columns are the minimums of all spans, twice.
  SmallVector<Value> minimums(const Tile &tile);

  /// What the sums of the tile's products begin with: 0 where they are scaled
  /// by blocks' scales before they join `sums`.
  SmallVector<Value> beginTile(const Tile &tile, ArrayRef<Value> sums);
  /// Makes what is summed of the tile's products a part of `sums`.
  void endTile(const Tile &tile, ArrayRef<Value> ofTile,
               MutableArrayRef<Value> sums);

  /// `count` words, a multiple of 4 at a multiple of 16 bytes, or 2 at one
  /// of 8.
  SmallVector<Value> loadWords(Value pointer, int64_t count);
  Value masked(Value x, int64_t mask);
  /// Right; left where it is negative.
  Value shifted(Value x, int64_t right);
  Value joined(Value a, Value b);
  /// Half number `number` of a word, an f16, in f32.
  Value half(Value x, int64_t number);
  /// The bits `mask` of a byte, in f32.
  Value byte(Value x, int64_t number, int64_t mask);
  Value fma(Value a, Value b, Value c);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  WarpOps code;
  const StreamShape::Sums sumsOfX;
  const BlockLanes lanes;
  const ::kf::BlockFormat &format;
  const ::kf::FragmentTile tileOf;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_UNITS_BLOCKTILES_H
