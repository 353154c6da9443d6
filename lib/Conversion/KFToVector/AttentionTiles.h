//===- AttentionTiles.h - Attention's products by tiles of AMX --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// dot = bf16: 16 query rows are multiplied with 16 keys, 32 elements of a head
// at a time, and their weights with 16 columns of the values, 32 keys at a
// time. Keys and values of a tile become bf16, in the order that tiles read,
// once for all rows of a workgroup; queries and weights are rounded.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_ATTENTIONTILES_H
#define KF_LIB_CONVERSION_KFTOVECTOR_ATTENTIONTILES_H

#include "KeyTile.h"
#include "TileCode.h"

#include "kf/Conversion/VectorSchedule.h"

namespace mlir::kf {

class AttentionTiles {
public:
  /// Of heads of `dim` elements and at most `rows` query rows, whole tiles; of
  /// a cache of blocks, or of elements.
  AttentionTiles(KernelEmitter &emitter, CacheMemory &pages, KeyTile &tile,
                 int64_t dim, int64_t rows, bool isOfBlocks);

  /// Stores `values`, elements of query row `row` from column `column` on.
  void storeQuery(Value values, Value row, Value column);
  /// Stores the weights of row `row` of the tile for the keys from `key` on.
  void storeWeights(Value values, Value row, Value key);

  /// Brings the keys and values of the located tile to the order of tiles.
  void unpack();
  /// Whether all of the tile's values are finite: only then has one that a row
  /// does not see, and gives no weight, no part in the row's sums.
  Value areFinite();

  /// scores[r, j] = q[row + r] . k[j]; `scores` is a memref [16, keys].
  void multiplyKeys(Value row, Value scores);
  /// sums[row + r] += weights[r, j] * v[j]; `sums` is a memref [rows, dim].
  void addValues(Value row, Value sums);

private:
  void unpackKeys();
  void unpackValues();
  /// Two vectors, lane by lane next to one another in bf16.
  Value pairsOf(Value even, Value odd);
  Value magnitudes(Value pairs);

  int64_t keyTiles() const { return tile.size() / amxTile; }
  int64_t keySteps() const { return tile.size() / step; }
  int64_t columnTiles() const { return dim / amxTile; }
  int64_t columnSteps() const { return dim / step; }

  /// Elements that are summed up in a product of tiles.
  static constexpr int64_t step = 2 * amxTile;

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  CacheMemory &pages;
  KeyTile &tile;
  TileCode code;
  int64_t dim;
  bool isOfBlocks;
  Value queries; // scratch [rows, dim] of bf16
  Value weights; // scratch [16, keys] of bf16
  Value keys;    // scratch [tiles of keys, steps of dim, 16, 32] of bf16
  Value values;  // scratch [tiles of dim, steps of keys, 16, 32] of bf16
  Value largest; // scratch [32] of i16: bits of the values, without signs
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_ATTENTIONTILES_H
