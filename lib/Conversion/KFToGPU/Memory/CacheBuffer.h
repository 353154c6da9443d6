//===- CacheBuffer.h - Elements of a paged cache ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes single elements of a paged cache, whose rows of keys and
// values both lie one after another. Where a kernel's buffer of the cache is of
// vectors of 16 bytes, it is only read.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_MEMORY_CACHEBUFFER_H
#define KF_LIB_CONVERSION_KFTOGPU_MEMORY_CACHEBUFFER_H

#include "../../Common/PagedCache.h"
#include "../GPUEmitter.h"

namespace mlir::kf {

class CacheBuffer : public PagedCache {
public:
  CacheBuffer(GPUEmitter &emitter, TypedValue<KVCacheType> cache,
              Value sequences, Value pageTable);

  bool isQuantized() const { return type.isQuantized(); }
  /// The row of place `place` of the head of a page that begins at `head`.
  CacheRow locate(Value head, Value place) {
    return locateCacheRow(e, *this, type, head, place, /*step=*/1);
  }

  /// The element of a row at `column` as f32; the code where there are blocks.
  Value load(const CacheRow &row, Value column);
  /// What the codes of block `block` of a row are multiplied by, as f32.
  Value loadScale(const CacheRow &row, Value block);
  /// Stores an f32, rounded.
  void store(Value value, const CacheRow &row, Value column);
  /// Stores a code (i32), and a block's scale (f32).
  void storeCode(Value code, const CacheRow &row, Value column);
  void storeScale(Value scale, const CacheRow &row, Value block);

private:
  Value scalePlace(const CacheRow &row, Value block);
  Value wordAt(Value byte);
  Value halfAt(Value byte);

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  KVCacheType type;
  Value buffer;
  bool hasVectors; // of 16 bytes
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_MEMORY_CACHEBUFFER_H
