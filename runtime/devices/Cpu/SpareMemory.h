//===- SpareMemory.h - For code that cannot fail to allocate ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM is compiled without exceptions: std::bad_alloc would pass through it
// without the destructors that unlock its mutexes and put its tables in order.
// While its code runs, an operator new that fails is given memory that was kept
// for this, and the caller learns afterwards that there is no more.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CPU_SPAREMEMORY_H
#define KF_RUNTIME_DEVICES_CPU_SPAREMEMORY_H

#include "runtime/core/Status.h"

#include <atomic>
#include <mutex>
#include <new>

namespace kf {

/// Memory to fall back on; untouched, so that it is address space alone. One
/// thread.
class SpareMemory {
public:
  /// More than the linker takes for any object that the compiler may make.
  static constexpr size_t bytes = size_t(8) << 20;

  SpareMemory() = default;
  SpareMemory(const SpareMemory &) = delete;
  SpareMemory &operator=(const SpareMemory &) = delete;
  ~SpareMemory();

  /// Makes sure that it is there. Error: Status::outOfMemory().
  Status fill();

  /// As long as it lives, a failing operator new, on any thread, takes the
  /// spare memory; once that is gone, it fails as it would have. Another thread
  /// waits for the end of the first one's use; a use within a use changes
  /// nothing.
  class Use {
  public:
    explicit Use(SpareMemory &memory);
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;
    ~Use();

  private:
    std::lock_guard<std::recursive_mutex> lock;
    const bool isOuter;
  };

  /// Whether the spare memory is there, so that nothing has failed.
  bool isFull() const { return block.load() != nullptr; }

private:
  static void release();

  std::atomic<void *> block{nullptr};
  static inline std::recursive_mutex changing;
  static inline std::atomic<SpareMemory *> inUse{nullptr};
  static inline std::atomic<std::new_handler> otherwise{nullptr};
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CPU_SPAREMEMORY_H
