//===- FailingAllocations.h - Memory that ends on demand --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces operator new of the whole program, and malloc, mmap, aligned_alloc
// and posix_memalign where objects of this project call them (CMakeLists.txt),
// with ones that can be told to fail.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ALLOCATION_FAILINGALLOCATIONS_H
#define KF_TEST_RUNTIME_ALLOCATION_FAILINGALLOCATIONS_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <initializer_list>

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

/// Does `work` again and again, each time with another of its allocations
/// failing: each of the first ones, ever fewer of those behind. Fails the
/// current test where something is thrown, where an error says nothing, and
/// where `work` fails with all allocations before or after. Calls `check` after
/// each run.
void failEverywhere(const std::function<Status()> &work,
                    std::initializer_list<Failing> kinds = {Failing::One,
                                                            Failing::Rest},
                    const std::function<void()> &check = {});

} // namespace kf::test

#endif // KF_TEST_RUNTIME_ALLOCATION_FAILINGALLOCATIONS_H
