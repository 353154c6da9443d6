//===- HazardTracker.h - Which dispatches depend ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds out where a list of dispatches needs barriers. It knows of no device:
// memory is what a program's bindings say.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_HAZARDTRACKER_H
#define KF_RUNTIME_DEVICES_HAZARDTRACKER_H

#include "runtime/devices/Device.h"

#include <map>
#include <span>
#include <vector>

namespace kf {

/// Bytes [begin, end) of a buffer that a dispatch reads, or may write.
struct MemoryAccess {
  const Buffer *buffer = nullptr;
  uint64_t begin = 0, end = 0;
  bool writes = false;
};

/// What `dispatch`, one of a verified program's, does with the buffers of
/// `table`; the caches have `pages`, which were checked against them.
Result<std::vector<MemoryAccess>> accessesOf(const Executable &program,
                                             const DispatchSpec &dispatch,
                                             const BindingTable &table,
                                             int64_t pages);

/// What happened to memory since the last barrier. A copyable value; one thread
/// at a time.
class HazardTracker {
public:
  /// Adds a dispatch behind all that were added. True if a barrier has to come
  /// between it and them, since it reads what one writes or writes what one
  /// reads or writes; what is ahead of the barrier is forgotten then.
  bool add(std::span<const MemoryAccess> accesses);

private:
  /// Bytes as ranges that neither overlap nor touch: their ends by beginning.
  class ByteSet {
  public:
    bool overlaps(uint64_t begin, uint64_t end) const;
    void add(uint64_t begin, uint64_t end);

  private:
    std::map<uint64_t, uint64_t> ranges;
  };
  struct Uses {
    ByteSet reads, writes;
  };

  bool conflicts(const MemoryAccess &access) const;

  std::map<const Buffer *, Uses> uses;
};

/// For each dispatch of a verified program, whether a barrier has to come
/// before it. The arguments are those of accessesOf().
Result<std::vector<bool>> findBarriers(const Executable &program,
                                       const BindingTable &table,
                                       int64_t pages);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_HAZARDTRACKER_H
