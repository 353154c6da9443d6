//===- StreamBlocks.h - Tiles of blocks on matrix units ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a warp multiplies a tile of a block-quantized weight (FragmentTile). A
// code that is masked out of its word is a subnormal f16, code * 2^-24, which
// matrix units take as it is: so nothing is converted. Sums of a unit are in
// f32 and scaled after it. What codes are above their values, or a block's
// minimums, are multiplied with sums of x.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_STREAMBLOCKS_H
#define KF_LIB_CONVERSION_KFTOGPU_STREAMBLOCKS_H

#include "WarpOps.h"

namespace mlir::kf {

/// Where a lane finds what it multiplies.
struct StreamOperands {
  Value lane, group, inGroup; ///< of this thread; 4 lanes are a group
  Value x;                    ///< memref of vectors
  SmallVector<Value> xOfLane; ///< in a pair's vectors, by column tile
  Value xSums;                ///< pointer
};

class StreamBlocks {
public:
  /// What a sum is too small by, beside what x is scaled by.
  static constexpr double codeScale = 0x1p-24;
  /// By what x is scaled before it is rounded to f16.
  static constexpr double xScale = 0x1p-8;

  StreamBlocks(GPUEmitter &emitter, const StreamOperands &operands,
               const ::kf::BlockFormat &format);

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
  /// Adds the products of a tile whose x begins at pair `pair` to `sums`, 4 for
  /// each column tile.
  void multiply(const Tile &tile, Value pair, MutableArrayRef<Value> sums);

  /// Stores what goes with a pair of a row, of which the lanes of a group have
  /// `parts`, of each half of the columns; lanes of a warp have pairs that
  /// follow each other.
  void storeSums(Value pair, Value row, ArrayRef<Value> parts);

private:
  SmallVector<Value> fragment(const Tile &tile, int64_t unit, int64_t half);
  SmallVector<Value> firstSums(Value pair, int64_t number, int64_t tile);
  std::pair<Value, Value> scalesOf(const Tile &tile, int64_t number);
  void addMinimums(const Tile &tile, Value pair, MutableArrayRef<Value> sums);
  Value minimums(const Tile &tile, int64_t row);

  bool isHighTile(int64_t number) const;
  Value loadWord(Value pointer, Type type, int64_t alignment);
  SmallVector<Value> loadWords(Value pointer, int64_t count);
  Value masked(Value x, int64_t mask);
  Value shifted(Value x, int64_t right);
  Value joined(Value a, Value b);
  Value half(Value x, int64_t number);
  Value byte(Value x, int64_t number, int64_t mask);
  Value fma(Value a, Value b, Value c);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  WarpOps code;
  const StreamShape &stream;
  const StreamOperands &operands;
  const ::kf::BlockFormat &format;
  const ::kf::FragmentTile tileOf;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_STREAMBLOCKS_H
