//===- KVCache.cpp - Keys and values of past positions --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/KVCache.h"

#include <algorithm>

using namespace kf;

/// What the device says where it has no room for a cache, and for how much it
/// has.
Status KVCache::explain(const Status &error, const CacheSpec &spec,
                        int64_t bytes) const {
  const Status named =
      error.in("the KV cache of " + std::to_string(heldPositions) +
               " positions, " + std::to_string(bytes) + " bytes");
  const Result<DeviceMemory> memory = device.memory();
  const Result<int64_t> page = spec.bytes(1);
  if (error.code() != StatusCode::OutOfMemory || !memory.ok() || !page.ok())
    return named;
  // What else a program needs is small beside it.
  const uint64_t bytesFree = std::min(memory->free, memory->largestBuffer);
  const int64_t room =
      static_cast<int64_t>(bytesFree / static_cast<uint64_t>(*page));
  return Status::error(
      named.message() + "; there is room for a context of " +
          std::to_string(static_cast<int64_t>(
              static_cast<double>(room) *
              static_cast<double>(std::max<int64_t>(spec.slotPages, 1)) *
              static_cast<double>(heldPositions) /
              static_cast<double>(poolPages))) +
          " positions in all",
      StatusCode::OutOfMemory);
}

Result<Buffer *> KVCache::get(size_t index, const CacheSpec &spec) {
  if (index >= entries.size())
    entries.resize(index + 1);
  Entry &entry = entries[index];
  if (!entry.buffer) {
    KF_ASSIGN_OR_RETURN(int64_t bytes, spec.bytes(poolPages));
    Result<std::unique_ptr<Buffer>> made = device.allocate(bytes);
    if (!made.ok())
      return explain(made.status(), spec, bytes);
    entry.buffer = made.take();
    entry.spec = spec;
  }
  if (entry.spec != spec)
    return Status::error("two programs of one engine lay cache " +
                         std::to_string(index) +
                         " out differently; compile them alike");
  return entry.buffer.get();
}

Status KVCache::copyPages(Stream &stream, std::span<const PageCopy> copies) {
  for (const Entry &entry : entries) {
    if (!entry.buffer || entry.spec.isOfStates())
      continue;
    // A layer has the pages one behind the other.
    const uint64_t pages = static_cast<uint64_t>(poolPages);
    const uint64_t layers = static_cast<uint64_t>(entry.spec.layers);
    const uint64_t bytes = entry.buffer->size() / layers / pages;
    for (const PageCopy &copy : copies)
      for (uint64_t layer = 0; layer < layers; ++layer) {
        auto offset = [&](int32_t page) {
          return (layer * pages + static_cast<uint64_t>(page)) * bytes;
        };
        KF_RETURN_IF_ERROR(stream.copy(*entry.buffer, offset(copy.to),
                                       *entry.buffer, offset(copy.from),
                                       bytes));
      }
  }
  return Status();
}

uint64_t KVCache::bytes() const {
  uint64_t total = 0;
  for (const Entry &entry : entries)
    total += entry.buffer ? entry.buffer->size() : 0;
  return total;
}
