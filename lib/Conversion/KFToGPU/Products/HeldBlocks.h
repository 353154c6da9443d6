//===- HeldBlocks.h - Blocks times rows in registers ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How a warp multiplies a tile of a block-quantized weight with rows of f16
// that it holds. Sums of a span are in f32 and scaled after it. What codes are
// above their values, or a block's minimums, are multiplied with sums of x, of
// all spans at once.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_HELDBLOCKS_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_HELDBLOCKS_H

#include "../Units/BlockTiles.h"

namespace mlir::kf {

class HeldBlocks : public BlockTiles {
public:
  HeldBlocks(GPUEmitter &emitter, const BlockLanes &lanes,
             const ::kf::BlockFormat &format)
      : BlockTiles(emitter, emitter.shape.held->sumsOfX, lanes, format) {}

  /// The right operands of 8 rows and the columns of a tile, as registers.
  struct Rows {
    SmallVector<SmallVector<Value>> spans; ///< 4 words each
    /// 2 words for 8 sums of spans, or of halves of them: what they are
    /// rounded to, and what that leaves.
    SmallVector<Value> sums;
  };
  /// Of a lane's columns 2 t, 2 t + 8, 2 t + 16 and 2 t + 24 of each span, and
  /// their neighbours.
  Rows hold(ArrayRef<SmallVector<Value>> words);

  /// Adds the products of the tile at `pointer`, which the warp's lanes have
  /// copied together, and `rows` to `sums`, 4 for each.
  void multiply(Value pointer, ArrayRef<Rows> rows,
                MutableArrayRef<Value> sums);

private:
  void addScaled(const Tile &tile, int64_t span, ArrayRef<Rows> rows,
                 MutableArrayRef<Value> sums);
  void subtract(Value pointer, ArrayRef<Rows> rows,
                MutableArrayRef<Value> sums);
  void addMinimums(const Tile &tile, ArrayRef<Rows> rows,
                   MutableArrayRef<Value> sums);
  SmallVector<Value> product(ValueRange left, ValueRange right,
                             ValueRange sums);
  SmallVector<Value> zeros() { return SmallVector<Value>(4, e.f32(0.0)); }
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_HELDBLOCKS_H
