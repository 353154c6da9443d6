//===- CacheMemory.h - Vectors of a paged cache -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes vectors of codes and their scales, where a paged cache has
// blocks.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_KFTOVECTOR_CACHEMEMORY_H
#define KF_CONVERSION_KFTOVECTOR_CACHEMEMORY_H

#include "../Common/PagedCache.h"
#include "KernelEmitter.h"

namespace mlir::kf {

class CacheMemory : public PagedCache {
public:
  CacheMemory(KernelEmitter &emitter, TypedValue<KVCacheType> cache,
              Value sequences, Value pageTable)
      : PagedCache(emitter, cache, sequences, pageTable), e(emitter), b(e.b),
        loc(e.loc), cache(e.memrefOf(mlir::cast<BlockArgument>(cache))) {}

  /// The cache's elements, flat; its bytes if they lie in blocks.
  Value memref() const { return cache; }
  /// `width` scales (0: one scalar) from byte `offset` on, as f32.
  Value loadScales(Value offset, unsigned width) const;
  void storeScale(Value scale, Value offset) const;
  /// `width` codes from byte `offset` on, as f32.
  Value loadCodes(Value offset, unsigned width) const;

private:
  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  Value cache;
};

} // namespace mlir::kf

#endif // KF_CONVERSION_KFTOVECTOR_CACHEMEMORY_H
