//===- PagePoolTest.cpp - A pool of pages without memory ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "runtime/engine/PagePool.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

using namespace kf;
using namespace kf::test;

namespace {

/// Sequences that share, copy and find pages.
struct Sequences {
  std::unique_ptr<PagePool> pool;
  std::vector<PagedSequence> living;
  std::vector<PageCopy> copies;

  Status append(PagedSequence &sequence, std::span<const int32_t> ids) {
    KF_RETURN_IF_ERROR(sequence.reserve(ids.size(), copies));
    sequence.commit(ids);
    return Status();
  }

  /// `ids` are read, forked and found again. There is room for all in `living`.
  Status use(std::span<const int32_t> ids) {
    copies = {};
    KF_ASSIGN_OR_RETURN(pool, PagePool::create(16));
    living.emplace_back(*pool);
    KF_RETURN_IF_ERROR(append(living[0], ids));
    KF_ASSIGN_OR_RETURN(PagedSequence fork, living[0].fork());
    living.push_back(std::move(fork));
    KF_RETURN_IF_ERROR(append(living[1], ids));
    living.emplace_back(*pool);
    KF_ASSIGN_OR_RETURN(int64_t reused, living[2].reusePrefix(ids));
    return append(living[2], ids.subspan(reused));
  }
};

} // namespace

TEST(Allocation, PagePool) {
  const std::vector<int32_t> ids(100, 7);
  Sequences sequences;
  sequences.living.reserve(3);
  failEverywhere(
      [&] {
        sequences.living.clear();
        return sequences.use(ids);
      },
      {Failing::One, Failing::Rest},
      [&] {
        if (!sequences.pool)
          return;
        std::vector<const PagedSequence *> living;
        for (const PagedSequence &sequence : sequences.living) {
          EXPECT_TRUE(sequence.length() == 0 || sequence.length() == 100 ||
                      sequence.length() == 99 || sequence.length() == 200);
          living.push_back(&sequence);
        }
        EXPECT_EQ(sequences.pool->check(living).message(), "");
      });
}

TEST(Allocation, AStepWithinAPageTakesNone) {
  const auto pool = PagePool::create(64).take();
  PagedSequence sequence(*pool);
  std::vector<PageCopy> copies;
  const FailingAllocations none(INT64_MAX, Failing::One);
  for (int32_t i = 0; i < 4000; ++i) {
    const int64_t before = none.count();
    ASSERT_TRUE(sequence.reserve(1, copies).ok());
    sequence.commit({&i, 1});
    if (i % kCachePage != 0)
      ASSERT_EQ(none.count(), before) << i;
  }
  // Nor is all that there is copied for each page.
  EXPECT_LT(none.count(), 20);
}
