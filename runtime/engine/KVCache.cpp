//===- KVCache.cpp - Keys and values of past positions --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/KVCache.h"

using namespace kf;

Result<Buffer *> KVCache::get(size_t index, const CacheSpec &spec) {
  if (index >= entries.size())
    entries.resize(index + 1);
  Entry &entry = entries[index];
  if (!entry.buffer) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, spec.bytes(poolPages));
    KF_ASSIGN_OR_RETURN(entry.buffer, device.allocate(bytes));
    entry.spec = spec;
  }
  if (entry.spec != spec)
    return Status::error("two programs of one session lay cache " +
                         std::to_string(index) +
                         " out differently; compile them alike");
  return entry.buffer.get();
}

uint64_t KVCache::bytes() const {
  uint64_t total = 0;
  for (const Entry &entry : entries)
    total += entry.buffer ? entry.buffer->size() : 0;
  return total;
}
