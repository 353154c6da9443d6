//===- FailEverywhere.cpp - One failing allocation after another ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

/// Each of the first so many allocations fails in a run, every second one of
/// the next so many, and so on: all where it matters, for a fault may be at
/// one.
static constexpr int64_t kEvery = 2000;

void kf::test::failEverywhere(const std::function<Status()> &work,
                              std::initializer_list<Failing> kinds,
                              const std::function<void()> &check) {
  // Makes what is made once, such as tables in static variables.
  ASSERT_EQ(work().message(), "");
  int64_t allocations = 0;
  {
    FailingAllocations none(INT64_MAX, Failing::One);
    Status status = work();
    allocations = none.count();
    ASSERT_EQ(status.message(), "");
  }
  ASSERT_GT(allocations, 0);
  int64_t runs = 0, errors = 0;
  for (Failing which : kinds) {
    for (int64_t first = 0; first < allocations; first += 1 + first / kEvery) {
      Status status;
      bool thrown = false;
      {
        FailingAllocations failing(first, which);
        try {
          status = work();
        } catch (...) {
          thrown = true;
        }
      }
      EXPECT_FALSE(thrown) << "allocation " << first << " of " << allocations;
      EXPECT_TRUE(status.ok() || !status.message().empty());
      if (check)
        check();
      ++runs;
      errors += !status.ok();
    }
  }
  // What does without memory here and there is the exception.
  EXPECT_GT(errors, runs / 2) << "of " << runs;
  EXPECT_EQ(work().message(), "") << "after all";
}
