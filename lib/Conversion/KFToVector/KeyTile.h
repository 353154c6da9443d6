//===- KeyTile.h - A tile of keys and values of a page ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where attention reads: the keys of one head at neighbouring positions of one
// page, transposed in blocks of the vector's lanes, and their values.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_KEYTILE_H
#define KF_CONVERSION_KFTOVECTOR_KEYTILE_H

#include "CacheMemory.h"

namespace mlir::kf {

class KeyTile {
public:
  /// Tiles of `keys` keys, which divide a page and are a multiple of the lanes.
  KeyTile(KernelEmitter &emitter, CacheAttentionInterface op,
          CacheMemory &pages, int64_t keys);

  int64_t size() const { return keyCount; }
  /// Vectors of the tile's keys.
  int64_t vectors() const { return keyCount / e.lanes; }

  /// Finds the tile at position `key` of `sequence`, and the next one, for
  /// positions below `end`. What follows is about these.
  void locate(Value sequence, Value key, Value end);

  /// The scales of block `block` of each vector of keys.
  SmallVector<Value> loadKeyScales(Value block);
  /// Element `column` of each vector of keys, times `scales` where there are
  /// any.
  SmallVector<Value> loadKeys(Value column, ArrayRef<Value> scales);
  /// `width` elements from column `column` on of the value of key `number`.
  Value loadValue(Value number, Value column, unsigned width);

  /// Where one is in the tile's values who has read as many elements of them as
  /// its keys have before column `column`.
  Value valuesAt(Value column);
  /// Where key `number` of the next tile begins.
  Value nextKey(Value number);
  /// Asks for `count` elements of the cache from `first` on. A tile is a few
  /// pages of memory somewhere, which no prefetcher of the machine foresees.
  void prefetch(Value first, int64_t count);

private:
  Value findHead(Value sequence, Value key);

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  CacheAttentionInterface op;
  KVCacheType type;
  CacheMemory &pages;
  Value cache; // elements, or bytes of blocks
  int64_t keyCount, dim;
  Value keys, values, nextKeys; // offsets
  Value keyScales, valueScales; // the same of their blocks' scales
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_KEYTILE_H
