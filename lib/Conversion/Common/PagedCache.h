//===- PagedCache.h - Where positions of sequences lie ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel sees one layer of the cache: [pages][2][kv_heads][page][head_dim].
// Page tables and sequences come from outside. What they say is never trusted
// with memory: a sequence or page that does not exist is told apart, or another
// one is taken. How elements are read and written is the target's.
//
//===----------------------------------------------------------------------===//

#ifndef KF_CONVERSION_COMMON_PAGEDCACHE_H
#define KF_CONVERSION_COMMON_PAGEDCACHE_H

#include "TileEmitter.h"

namespace mlir::kf {

class PagedCache {
public:
  /// Reads what the kernel is given; `sequences` [T] and `pageTable` [S, P] are
  /// operands of the op on `cache`.
  PagedCache(TileEmitter &emitter, TypedValue<KVCacheType> cache,
             Value sequences, Value pageTable);

  /// Positions that a sequence may have: those of its P pages.
  Value limit() const;
  /// Elements, or bytes of blocks, that hold K, or V, of one head of one page.
  int64_t headSize() const;
  /// Those between a page's K and its V.
  int64_t valuesOffset() const { return headSize() * type.getKvHeads(); }
  /// Whether all rows belong to one sequence, as the table has but one.
  bool hasOneSequence() const;

  /// The sequence of row `row` as it was given, an index.
  Value sequenceOf(Value row);
  /// Where the page begins that holds `position`, in [0, limit), of `sequence`.
  /// A sequence or a page that does not exist is taken for the last one.
  Value findPage(Value sequence, Value position);
  /// Calls `body` with the same if both exist; `position` may be any.
  void ifExists(Value sequence, Value position, function_ref<void(Value)> body);

  //===--- Blocks; see !kf.kv_cache --------------------------------------===//

  /// Bytes of a block's scale, an f16.
  static constexpr int64_t scaleBytes = 2;

  /// Elements of a block, and blocks of a row.
  int64_t blockSize() const;
  int64_t blocksOfRow() const { return type.getHeadDim() / blockSize(); }
  int64_t scaleBytesOfRow() const { return blocksOfRow() * scaleBytes; }
  /// Where the scales begin of K, or of V, of the head of a page that begins at
  /// `head`.
  Value scalesOf(Value head) const;

private:
  Value pageNumber(Value sequence, Value position);
  Value offsetOf(Value number);
  Value isBelow(Value value, Value end);
  Value atMost(Value value, Value last);
  Value loadIndex(Value tensor, ValueRange indices);

  TileEmitter &e;
  OpBuilder &b;
  Location loc;
  KVCacheType type;
  Value pages, sequences, table;
  Value sequenceCount; // S
  int64_t tablePages;  // P
};

/// Where a row of keys or values goes, or lies: its first element, or code;
/// `step` elements on lies the next. The same of its scales, if it has any.
struct CacheRow {
  Value first, firstScale;
  int64_t step = 1;
};

/// The row at place `place` of the head of a page that begins at `head`, with
/// positions in blocks of `step`.
CacheRow locateCacheRow(TileEmitter &emitter, const PagedCache &pages,
                        KVCacheType type, Value head, Value place,
                        int64_t step);

} // namespace mlir::kf

#endif // KF_CONVERSION_COMMON_PAGEDCACHE_H
