//===- ThreadGroupTest.cpp - Ranks in one process -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/ThreadGroup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>

using namespace kf;

namespace {

using Groups = std::vector<std::unique_ptr<Group>>;

/// Calls run(group) for each rank on a thread of its own. A rank ends when its
/// call returns.
void onEachRank(int64_t ranks, const std::function<void(Group &)> &run) {
  Result<Groups> groups = createThreadGroup(ranks);
  ASSERT_TRUE(groups.ok()) << groups.message();
  std::vector<std::thread> threads;
  for (std::unique_ptr<Group> &group : *groups)
    threads.emplace_back([&run, group = std::move(group)] { run(*group); });
  for (std::thread &thread : threads)
    thread.join();
}

std::vector<float> valuesOf(int64_t rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

TEST(ThreadGroup, KnowsItsRanks) {
  Result<Groups> groups = createThreadGroup(3);
  ASSERT_TRUE(groups.ok()) << groups.message();
  ASSERT_EQ(groups->size(), 3u);
  for (int64_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ((*groups)[rank]->rank(), rank);
    EXPECT_EQ((*groups)[rank]->size(), 3);
  }
  EXPECT_EQ(createThreadGroup(1).message(),
            "a group of 1 ranks; 2 to 1024 are possible");
  EXPECT_EQ(createThreadGroup(1025).message(),
            "a group of 1025 ranks; 2 to 1024 are possible");
}

TEST(ThreadGroup, SumsInTheOrderOfRanks) {
  constexpr size_t count = 2500; // no multiple of anything
  for (int64_t ranks : {2, 3, 5}) {
    std::vector<float> expected = valuesOf(0, count);
    for (int64_t rank = 1; rank < ranks; ++rank) {
      const std::vector<float> values = valuesOf(rank, count);
      for (size_t i = 0; i < count; ++i)
        expected[i] += values[i];
    }
    onEachRank(ranks, [&](Group &group) {
      const std::vector<float> source = valuesOf(group.rank(), count);
      for (int round = 0; round < 5; ++round) {
        std::vector<float> target(count);
        ASSERT_TRUE(
            group.allReduce(DataType::F32, source.data(), target.data(), count)
                .ok());
        EXPECT_EQ(target, expected); // to the bit
      }
    });
  }
}

TEST(ThreadGroup, SumsHalvesInFloatAndRoundsOnce) {
  // 2048 + 1 + 1: rounded after each addition it would stay 2048 in f16.
  for (DataType type : {DataType::F16, DataType::BF16})
    onEachRank(3, [&](Group &group) {
      const float large = type == DataType::F16 ? 2048.0f : 256.0f;
      const float value = group.rank() == 0 ? large : 1.0f;
      uint16_t source = 0, target = 0;
      ASSERT_TRUE(convertFromFloat(type, &value, 1, &source).ok());
      ASSERT_TRUE(group.allReduce(type, &source, &target, 1).ok());
      float sum = 0;
      ASSERT_TRUE(convertToFloat(type, &target, 1, &sum).ok());
      EXPECT_EQ(sum, large + 2);
    });
}

TEST(ThreadGroup, KeepsWhatIsNoNumber) {
  onEachRank(2, [](Group &group) {
    const float infinity = std::numeric_limits<float>::infinity();
    const float own[] = {group.rank() ? -0.0f : 0.0f,
                         group.rank() ? -infinity : infinity,
                         group.rank() ? 1.0f : infinity};
    float sum[3];
    ASSERT_TRUE(group.allReduce(DataType::F32, own, sum, 3).ok());
    EXPECT_EQ(sum[0], 0.0f);
    EXPECT_TRUE(std::isnan(sum[1]));
    EXPECT_EQ(sum[2], infinity);
  });
}

TEST(ThreadGroup, GathersInTheOrderOfRanks) {
  onEachRank(4, [](Group &group) {
    for (int round = 0; round < 20; ++round) {
      const char own[3] = {char('a' + group.rank()), char('0' + round), '.'};
      char all[13] = {};
      ASSERT_TRUE(group.allGather(own, all, 3).ok());
      const char digit = static_cast<char>('0' + round);
      for (int rank = 0; rank < 4; ++rank)
        EXPECT_EQ(std::string(all + 3 * rank, 3),
                  (std::string{char('a' + rank), digit, '.'}));
    }
  });
}

TEST(ThreadGroup, NothingToSumAndNothingToGatherIsFine) {
  onEachRank(2, [](Group &group) {
    EXPECT_TRUE(group.allReduce(DataType::F32, nullptr, nullptr, 0).ok());
  });
}

TEST(ThreadGroup, HandsOnWhatIsSentInItsOrder) {
  onEachRank(3, [](Group &group) {
    EXPECT_EQ(group.next(), (group.rank() + 1) % 3);
    EXPECT_EQ(group.previous(), (group.rank() + 2) % 3);
    for (int round = 0; round < 20; ++round) {
      const std::vector<float> sent =
          valuesOf(group.rank() + 3 * round, static_cast<size_t>(round));
      ASSERT_TRUE(group.send(sent.data(), sent.size() * sizeof(float)).ok());
    }
    for (int round = 0; round < 20; ++round) {
      std::vector<float> found(static_cast<size_t>(round));
      ASSERT_TRUE(
          group.receive(found.data(), found.size() * sizeof(float)).ok());
      EXPECT_EQ(found, valuesOf(group.previous() + 3 * round, found.size()));
    }
    // One that ends would end the others, which send still.
    char own = 0, all[3];
    EXPECT_TRUE(group.allGather(&own, all, 1).ok());
  });
}

TEST(ThreadGroup, WhatIsSentBeforeTheEndArrives) {
  onEachRank(2, [](Group &group) {
    char value = 'a';
    if (group.rank() == 1) {
      ASSERT_TRUE(group.send(&value, 1).ok());
      return;
    }
    ASSERT_TRUE(group.receive(&value, 1).ok());
    EXPECT_EQ(group.receive(&value, 1).message(), "rank 1 has ended");
  });
}

TEST(ThreadGroup, ReceivesNothingOfAnotherSize) {
  onEachRank(2, [](Group &group) {
    const char sent[3] = {};
    char found[4];
    if (group.rank() == 1) {
      ASSERT_TRUE(group.send(sent, 3).ok());
      EXPECT_FALSE(group.receive(found, 4).ok());
      return;
    }
    EXPECT_EQ(group.receive(found, 4).message(),
              "rank 1 sends 3 bytes where rank 0 receives 4 bytes");
  });
}

// Who waits for it is told.
TEST(ThreadGroup, ASendThatFailsEndsTheGroup) {
  onEachRank(2, [](Group &group) {
    char value = 'a';
    if (group.rank() == 1) {
      EXPECT_EQ(group.send(&value, UINT64_MAX).code(), StatusCode::OutOfMemory);
      EXPECT_FALSE(group.failure().ok());
      return;
    }
    const Status status = group.receive(&value, 1);
    EXPECT_EQ(status.message(), "rank 1: no memory left");
    EXPECT_EQ(status.code(), StatusCode::Unavailable);
  });
}

TEST(ThreadGroup, ARankThatEndsIsNamed) {
  std::atomic<int> failures = 0;
  onEachRank(3, [&](Group &group) {
    float own = 1, sum = 0;
    ASSERT_TRUE(group.allReduce(DataType::F32, &own, &sum, 1).ok());
    EXPECT_EQ(sum, 3);
    if (group.rank() == 1)
      return;
    const Status status = group.allReduce(DataType::F32, &own, &sum, 1);
    // The one that ends as it fails is not what anybody reports.
    EXPECT_EQ(status.message(), "rank 1 has ended");
    EXPECT_EQ(status.code(), StatusCode::Unavailable);
    EXPECT_EQ(group.allGather(&own, &sum, 0).message(), "rank 1 has ended");
    ++failures;
  });
  EXPECT_EQ(failures, 2);
}

TEST(ThreadGroup, ARankThatAbortsIsNamedWithItsReason) {
  onEachRank(2, [&](Group &group) {
    if (group.rank() == 1) {
      group.abort("no memory left");
      group.abort("and more");
    }
    float own = 1, sum = 0;
    EXPECT_EQ(group.allReduce(DataType::F32, &own, &sum, 1).message(),
              "rank 1: no memory left");
  });
}

/// Also for ranks that make no calls.
TEST(ThreadGroup, SaysWhyItHasEnded) {
  Result<Groups> groups = createThreadGroup(3);
  ASSERT_TRUE(groups.ok());
  for (const auto &group : *groups)
    EXPECT_TRUE(group->failure().ok());
  (*groups)[2].reset();
  (*groups)[1]->abort("later");
  for (size_t rank : {0, 1}) {
    EXPECT_EQ((*groups)[rank]->failure().message(), "rank 2 has ended");
    EXPECT_EQ((*groups)[rank]->failure().code(), StatusCode::Unavailable);
  }
}

TEST(ThreadGroup, AbortEndsAWaitFromAnotherThread) {
  Result<Groups> groups = createThreadGroup(2);
  ASSERT_TRUE(groups.ok());
  std::thread waiting([&] {
    float own = 1, sum = 0;
    EXPECT_EQ((*groups)[0]->allReduce(DataType::F32, &own, &sum, 1).message(),
              "rank 0: interrupted");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  (*groups)[0]->abort("interrupted");
  waiting.join();
}

TEST(ThreadGroup, CallsThatDifferAreAnErrorOnAllRanks) {
  std::atomic<int> failures = 0;
  onEachRank(2, [&](Group &group) {
    float own[4] = {}, target[8] = {};
    const Status status = group.rank() == 0
                              ? group.allReduce(DataType::F32, own, target, 4)
                              : group.allGather(own, target, 16);
    EXPECT_EQ(status.message(), "rank 1 gathers 16 bytes where rank 0 sums up "
                                "4 elements of f32");
    EXPECT_FALSE(group.allReduce(DataType::F32, own, target, 4).ok());
    ++failures;
  });
  EXPECT_EQ(failures, 2);
}

/// Ranks that end at any time, of their own or by another thread's abort: all
/// calls return, what succeeds is right, and nothing is read of a rank that is
/// gone (the sanitizers' part).
TEST(ThreadGroup, RanksThatEndAtAnyTimeHangNobody) {
  constexpr size_t count = 64;
  for (unsigned round = 0; round < 200; ++round) {
    std::mt19937 random(round);
    const int64_t ranks = 2 + round % 3;
    std::vector<unsigned> lifetimes;
    for (int64_t rank = 0; rank < ranks; ++rank)
      lifetimes.push_back(random() % 20);
    onEachRank(ranks, [&](Group &group) {
      for (unsigned call = 0;; ++call) {
        if (call == lifetimes[group.rank()]) {
          if (round % 2)
            group.abort("enough");
          return;
        }
        // Memory of this call alone.
        auto own = std::make_unique<std::array<float, count>>();
        auto sum = std::make_unique<std::array<float, count>>();
        own->fill(static_cast<float>(group.rank() + call));
        const Status status =
            group.allReduce(DataType::F32, own->data(), sum->data(), count);
        if (!status.ok()) {
          EXPECT_EQ(status.code(), StatusCode::Unavailable);
          return;
        }
        float expected = 0;
        for (int64_t rank = 0; rank < ranks; ++rank)
          expected += static_cast<float>(rank + call);
        EXPECT_EQ((*sum)[count - 1], expected);
      }
    });
  }
}

} // namespace
