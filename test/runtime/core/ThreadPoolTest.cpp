//===- ThreadPoolTest.cpp - Worker threads --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/ThreadPool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

using namespace kf;

namespace {

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (int threads : {1, 2, 4, 7}) {
    Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool.ok()) << pool.message();
    ASSERT_EQ((*pool)->size(), threads);
    for (int64_t count : {0, 1, 2, 5, 100}) {
      std::vector<std::atomic<int>> runs(count);
      (*pool)->parallelFor(count, [&](int64_t i) { ++runs[i]; });
      for (int64_t i = 0; i < count; ++i)
        EXPECT_EQ(runs[i], 1) << i << " of " << count;
    }
  }
}

TEST(ThreadPool, SurvivesManySmallJobs) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(4);
  ASSERT_TRUE(pool.ok());
  int64_t total = 0;
  std::atomic<int64_t> sum{0};
  for (int round = 0; round < 5000; ++round) {
    int64_t count = round % 9;
    (*pool)->parallelFor(count, [&](int64_t i) { sum += i + round; });
    total += count * (count - 1) / 2 + count * round;
    if (round % 500 == 0) // long enough for workers to fall asleep
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(sum, total);
}

TEST(ThreadPool, RunGivesEachPartItsNumber) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.ok());
  std::vector<std::atomic<int>> parts(3);
  (*pool)->run([&](int part, int count) {
    EXPECT_EQ(count, 3);
    ++parts[part];
  });
  for (std::atomic<int> &part : parts)
    EXPECT_EQ(part, 1);
}

TEST(ThreadPool, ResultsOfWorkersAreVisible) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(4);
  ASSERT_TRUE(pool.ok());
  std::vector<int64_t> values(64);
  for (int64_t round = 1; round < 500; ++round) {
    (*pool)->parallelFor(64, [&](int64_t i) { values[i] += i * round; });
    for (int64_t i = 0; i < 64; ++i)
      ASSERT_EQ(values[i], i * round * (round + 1) / 2);
  }
}

TEST(ThreadPool, CreatingAndDestroyingIsQuick) {
  for (int i = 0; i < 100; ++i) {
    Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(4);
    ASSERT_TRUE(pool.ok());
    if (i % 2)
      (*pool)->parallelFor(4, [](int64_t) {});
  }
}

TEST(ThreadPool, NumberOfThreads) {
  EXPECT_EQ(ThreadPool::create(-1).message(),
            "cannot use -1 threads; 0 (all) to 1024 are possible");
  EXPECT_FALSE(ThreadPool::create(1025).ok());
  Result<std::unique_ptr<ThreadPool>> all = ThreadPool::create(0);
  ASSERT_TRUE(all.ok());
  EXPECT_GE((*all)->size(), 1);
}

} // namespace
