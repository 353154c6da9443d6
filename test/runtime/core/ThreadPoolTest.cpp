//===- ThreadPoolTest.cpp - Worker threads --------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/ThreadPool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <latch>
#include <new>
#include <stdexcept>
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
      Status status = (*pool)->parallelFor(count, [&](int64_t i) {
        ++runs[i];
        return Status();
      });
      EXPECT_TRUE(status.ok()) << status.message();
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
    EXPECT_TRUE((*pool)
                    ->parallelFor(count,
                                  [&](int64_t i) {
                                    sum += i + round;
                                    return Status();
                                  })
                    .ok());
    total += count * (count - 1) / 2 + count * round;
    if (round % 500 == 0) // long enough for workers to fall asleep
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(sum, total);
}

TEST(ThreadPool, AnErrorIsTheLastCallOfOneThread) {
  std::unique_ptr<ThreadPool> pool = ThreadPool::create(1).take();
  for (int64_t bad : {0, 1, 50, 99}) {
    int64_t calls = 0;
    Status status = pool->parallelFor(100, [&](int64_t i) {
      ++calls;
      return i == bad ? Status::error("no " + std::to_string(i)) : Status();
    });
    EXPECT_EQ(status.message(), "no " + std::to_string(bad));
    EXPECT_EQ(calls, bad + 1);
  }
}

TEST(ThreadPool, AnErrorOfAnyCallIsReturned) {
  for (int threads : {2, 4}) {
    std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads).take();
    for (int64_t bad : {0, 1, 50, 99}) {
      Status status = pool->parallelFor(100, [&](int64_t i) {
        return i == bad ? Status::error("no " + std::to_string(i)) : Status();
      });
      EXPECT_EQ(status.message(), "no " + std::to_string(bad));
    }
    EXPECT_TRUE(pool->parallelFor(7, [](int64_t) { return Status(); }).ok());
  }
}

/// Each thread is in a call when one of these calls fails. The others are
/// waited for; if they are followed by others, then by those alone that begin
/// before the error is noted, which takes no more than moments.
TEST(ThreadPool, NoCallBeginsAfterAnError) {
  for (int threads : {2, 4}) {
    std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads).take();
    constexpr int64_t count = 10'000;
    std::atomic<int64_t> begun{0}, ended{0};
    std::latch all(threads);
    Status status = pool->parallelFor(count, [&](int64_t) {
      const int64_t number = begun++;
      if (number < threads)
        all.arrive_and_wait();
      if (number == 0)
        return Status::error("the first");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++ended;
      return Status();
    });
    EXPECT_EQ(status.message(), "the first");
    EXPECT_EQ(ended, begun - 1);
    EXPECT_LT(begun, count / 2);
  }
}

/// A thread whose call fails begins no other one: there are no more calls than
/// threads where each of them fails.
TEST(ThreadPool, OneOfManyErrorsIsReturned) {
  for (int threads : {1, 2, 4}) {
    std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads).take();
    std::atomic<int64_t> begun{0};
    Status status = pool->parallelFor(1000, [&](int64_t) {
      ++begun;
      return Status::error("failed");
    });
    EXPECT_EQ(status.message(), "failed");
    EXPECT_LE(begun, threads);
  }
}

/// What a call throws, on the caller's thread or a worker's, neither ends the
/// process nor leaves workers behind that use what is gone by then.
TEST(ThreadPool, ExceptionsAreErrors) {
  for (int threads : {1, 2, 4}) {
    std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads).take();
    for (int round = 0; round < 50; ++round) {
      std::vector<int64_t> values(64);
      std::atomic<int> running{0};
      Status status = pool->parallelFor(64, [&](int64_t i) -> Status {
        ++running;
        values[i] = i;
        --running;
        if (i == round)
          throw std::bad_alloc();
        return Status();
      });
      EXPECT_EQ(running, 0);
      EXPECT_EQ(status.message(), Status::outOfMemory().message());
    }
    EXPECT_EQ(pool->parallelFor(2,
                                [](int64_t) -> Status {
                                  throw std::runtime_error(
                                      "a reason of some length");
                                })
                  .message(),
              "a reason of some length");
    EXPECT_EQ(
        pool->parallelFor(1, [](int64_t) -> Status { throw 3; }).message(),
        "an exception of unknown type");
    std::atomic<int> runs{0};
    EXPECT_TRUE(pool->parallelFor(100,
                                  [&](int64_t) {
                                    ++runs;
                                    return Status();
                                  })
                    .ok());
    EXPECT_EQ(runs, 100);
  }
}

TEST(ThreadPool, ResultsOfWorkersAreVisible) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(4);
  ASSERT_TRUE(pool.ok());
  std::vector<int64_t> values(64);
  for (int64_t round = 1; round < 500; ++round) {
    Status status = (*pool)->parallelFor(64, [&](int64_t i) {
      values[i] += i * round;
      return Status();
    });
    ASSERT_TRUE(status.ok());
    for (int64_t i = 0; i < 64; ++i)
      ASSERT_EQ(values[i], i * round * (round + 1) / 2);
  }
}

TEST(ThreadPool, CreatingAndDestroyingIsQuick) {
  for (int i = 0; i < 100; ++i) {
    Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(4);
    ASSERT_TRUE(pool.ok());
    if (i % 2)
      EXPECT_TRUE(
          (*pool)->parallelFor(4, [](int64_t) { return Status(); }).ok());
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
