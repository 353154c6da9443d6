//===- StreamBlocks.h - Tiles of blocks on matrix units ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a warp multiplies a tile of a block-quantized weight with x in workgroup
// memory. Sums of a span are in f32 and scaled after it, but where codes were
// scaled before. What codes are above their values, or a block's minimums, are
// multiplied with sums of x.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_STREAMBLOCKS_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_STREAMBLOCKS_H

#include "../Units/BlockTiles.h"

namespace mlir::kf {

/// Where a lane finds what it multiplies.
struct StreamOperands : BlockLanes {
  Value x;                    ///< memref of vectors
  SmallVector<Value> xOfLane; ///< in a pair's vectors, by column tile
  Value xSums;                ///< pointer
};

class StreamBlocks : public BlockTiles {
public:
  /// By what x is scaled before it becomes f16: of two terms, the second has
  /// what is lost of small elements then; rounded ones stay as they are.
  static constexpr double xScaleOf(const StreamShape &stream) {
    return stream.terms == 2 ? 0x1p-8 : 1;
  }

  StreamBlocks(GPUEmitter &emitter, const StreamOperands &operands,
               const ::kf::BlockFormat &format);

  /// Adds the products of a tile whose x begins at pair `pair` to `sums`, 4 for
  /// each column tile.
  void multiply(const Tile &tile, Value pair, MutableArrayRef<Value> sums);

  /// How far the two pairs are apart of which lanes have columns at a time.
  static constexpr int64_t pairsApart = 4;
  /// Stores what goes with half `half` of a row's pair number `pair`, and of
  /// the one pairsApart behind, of which the lanes of a group have `parts`;
  /// neighbouring groups have both halves.
  void storeSums(Value pair, Value half, Value row, ArrayRef<Value> parts);

private:
  void storeSum(Value number, Value row, Value part);
  SmallVector<Value> firstSums(Value pair, int64_t number, int64_t tile);
  void addMinimums(const Tile &tile, Value pair, MutableArrayRef<Value> sums);
  bool isHighTile(int64_t number) const;

  const StreamShape &stream;
  const StreamOperands &operands;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_STREAMBLOCKS_H
