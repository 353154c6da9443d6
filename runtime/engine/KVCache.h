//===- KVCache.h - Keys and values of past positions ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_KVCACHE_H
#define KF_RUNTIME_ENGINE_KVCACHE_H

#include "runtime/devices/Device.h"
#include "runtime/engine/PagePool.h"

#include <memory>
#include <span>
#include <vector>

namespace kf {

/// The cache buffers that the programs of an engine share, by their index in
/// Executable::caches. Owns them; `device` must outlive it. One thread.
class KVCache {
public:
  /// `pages` is the number of pages of each cache, which hold `positions`
  /// positions of sequences in all: as many as a layer's pages, or more where
  /// ranks share positions, or fewer where layers share pages. Nothing is
  /// allocated yet.
  KVCache(Device &device, int64_t pages, int64_t positions)
      : device(device), poolPages(pages), heldPositions(positions) {}

  /// Cache number `index`, zeros when it is first asked for. Errors: it was
  /// made with another `spec`; no memory, with the positions that there is room
  /// for.
  Result<Buffer *> get(size_t index, const CacheSpec &spec);

  /// Copies whole pages of all caches, one after the other.
  Status copyPages(Stream &stream, std::span<const PageCopy> copies);

  int64_t pages() const { return poolPages; }
  /// Of sequences, in all pages.
  int64_t positions() const { return heldPositions; }
  uint64_t bytes() const;

private:
  Status explain(const Status &error, const CacheSpec &spec,
                 int64_t bytes) const;

  struct Entry {
    CacheSpec spec;
    std::unique_ptr<Buffer> buffer;
  };

  Device &device;
  int64_t poolPages;
  int64_t heldPositions;
  std::vector<Entry> entries; ///< by index; `buffer` is null until asked for
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_KVCACHE_H
