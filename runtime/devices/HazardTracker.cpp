//===- HazardTracker.cpp - Which dispatches depend ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/HazardTracker.h"

#include "runtime/devices/GpuInstance.h"

#include <algorithm>

using namespace kf;

Result<std::vector<MemoryAccess>> kf::accessesOf(const Executable &program,
                                                 const DispatchSpec &dispatch,
                                                 const BindingTable &table,
                                                 int64_t pages) {
  std::vector<MemoryAccess> result;
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    const kf_binding &binding = dispatch.bindings[i];
    const BindingAccess known = dispatch.accessOf(i);
    const Buffer *buffer = bufferOf(table, binding);
    KF_ASSIGN_OR_RETURN(uint64_t begin, byteOffsetOf(program, binding, pages));
    uint64_t end = buffer->size();
    if (binding.kind == KF_BINDING_ARENA) {
      end = known.bytes ? begin + known.bytes : program.arenaBytes;
    } else if (binding.kind == KF_BINDING_CACHE) {
      const CacheSpec &cache = program.caches[binding.index];
      KF_ASSIGN_OR_RETURN(int64_t bytes, cache.bytes(pages));
      end = begin + static_cast<uint64_t>(bytes / cache.layers);
    }
    result.push_back({buffer, begin, end, known.writes});
  }
  return result;
}

bool HazardTracker::add(std::span<const MemoryAccess> accesses) {
  const bool needsBarrier = std::ranges::any_of(
      accesses, [&](const MemoryAccess &access) { return conflicts(access); });
  if (needsBarrier)
    uses.clear();
  for (const MemoryAccess &access : accesses) {
    Uses &known = uses[access.buffer];
    (access.writes ? known.writes : known.reads).add(access.begin, access.end);
  }
  return needsBarrier;
}

bool HazardTracker::conflicts(const MemoryAccess &access) const {
  auto found = uses.find(access.buffer);
  if (found == uses.end())
    return false;
  const Uses &known = found->second;
  return known.writes.overlaps(access.begin, access.end) ||
         (access.writes && known.reads.overlaps(access.begin, access.end));
}

bool HazardTracker::ByteSet::overlaps(uint64_t begin, uint64_t end) const {
  if (begin >= end)
    return false;
  // Of those that begin before the end, the last one reaches furthest.
  auto behind = ranges.lower_bound(end);
  return behind != ranges.begin() && std::prev(behind)->second > begin;
}

void HazardTracker::ByteSet::add(uint64_t begin, uint64_t end) {
  if (begin >= end)
    return;
  auto range = ranges.upper_bound(begin);
  if (range != ranges.begin() && std::prev(range)->second >= begin)
    begin = (--range)->first;
  while (range != ranges.end() && range->first <= end) {
    end = std::max(end, range->second);
    range = ranges.erase(range);
  }
  ranges.emplace_hint(range, begin, end);
}

Result<std::vector<bool>> kf::findBarriers(const Executable &program,
                                           const BindingTable &table,
                                           int64_t pages) {
  HazardTracker hazards;
  std::vector<bool> result;
  for (const DispatchSpec &dispatch : program.dispatches) {
    KF_ASSIGN_OR_RETURN(std::vector<MemoryAccess> accesses,
                        accessesOf(program, dispatch, table, pages));
    result.push_back(hazards.add(accesses));
  }
  return result;
}
