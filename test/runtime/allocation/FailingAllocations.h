//===- FailingAllocations.h - Memory that ends on demand --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces operator new of the whole program, and mmap, aligned_alloc and
// posix_memalign of what is linked statically (see CMakeLists.txt), with ones
// that can be told to fail.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ALLOCATION_FAILINGALLOCATIONS_H
#define KF_TEST_RUNTIME_ALLOCATION_FAILINGALLOCATIONS_H

#include <cstdint>

namespace kf::test {

/// Which allocations fail.
enum class Failing {
  One, ///< the n-th alone
  Rest ///< the n-th and all that follow
};

/// As long as it lives, allocations of all threads are counted, and fail from
/// number `first` (from 0) on. One at a time.
class FailingAllocations {
public:
  FailingAllocations(int64_t first, Failing which);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations &) = delete;
  FailingAllocations &operator=(const FailingAllocations &) = delete;

  /// How many there were so far.
  int64_t count() const;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_ALLOCATION_FAILINGALLOCATIONS_H
