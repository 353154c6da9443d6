//===- PackedMatmulEmitter.h - Products with tiles of weights ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What products of few rows with a weight with `#kf.fragments` begin with: each
// warp copies tiles of its own, 16 bytes a lane, to a ring in workgroup memory.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_PACKEDMATMULEMITTER_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_PACKEDMATMULEMITTER_H

#include "../Units/WarpOps.h"
#include "GPUMatmulEmitter.h"

namespace mlir::kf {

class PackedMatmulEmitter : public GPUMatmulEmitter {
protected:
  static constexpr int64_t lanes = 32, vectorBytes = 16;

  explicit PackedMatmulEmitter(GPUEmitter &emitter)
      : GPUMatmulEmitter(emitter), code(emitter) {}

  void findWeight();
  /// Numbers this thread, and counts row blocks of `blockColumns` columns.
  void numberThread(int64_t blockColumns);
  /// Lets this lane's copies begin in tile number `tile`, each of `bytes`.
  void startCopiesAt(Value tile, int64_t bytes);

  /// Stores each element of the tile from its sums, one a group: `sumsOf` its
  /// row, its row block of `blockColumns` columns, and its line in that.
  void
  storeTile(int64_t blockColumns,
            function_ref<SmallVector<Value>(Value row, Value block, Value line)>
                sumsOf);

  WarpOps code;
  WeightRows weight;
  QuantType quant; // of the weight; null: it has no blocks
  Type element;    // what is multiplied: f16 for blocks and f8E4M3FN

  Value lane, warp, group, inGroup; // of this thread; 4 lanes are a group
  Value blocks;                     // row blocks that there are
  Value ofLane;                     // bytes to this lane's part of a tile
  Value source;                     // of this lane's copies
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_PACKEDMATMULEMITTER_H
