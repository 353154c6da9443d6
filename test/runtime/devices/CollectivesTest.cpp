//===- CollectivesTest.cpp - Programs that ranks run together -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Devices of the host, each a rank of a ThreadGroup, run one program.
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/ThreadGroup.h"
#include "runtime/devices/Cpu/CpuDevice.h"
#include "runtime/devices/Reference/ReferenceDevice.h"
#include "test/runtime/devices/RankedProgram.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

std::string scaleCode(const std::string &target) {
  if (target == "cpu") {
    std::ifstream file(KF_TEST_KERNELS, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  return referenceScaleCode();
}

struct RanksCase {
  std::string device;
  int threads;
  int64_t ranks;
};

std::unique_ptr<Device> openDevice(const RanksCase &test) {
  if (test.device == "reference")
    return createReferenceDevice();
  return createCpuDevice({.threads = test.threads}).take();
}

class Collectives : public testing::TestWithParam<RanksCase> {
protected:
  /// Calls run(rank's device, its group) on a thread for each rank.
  void onEachRank(const std::function<void(RankRun &, Group &)> &run) {
    auto groups = createThreadGroup(GetParam().ranks);
    ASSERT_TRUE(groups.ok()) << groups.message();
    std::vector<std::thread> threads;
    for (auto &group : *groups)
      threads.emplace_back([&run, group = std::move(group)] {
        auto rank = RankRun::create(openDevice(GetParam()),
                                    scaleCode(GetParam().device), *group);
        ASSERT_TRUE(rank.ok()) << rank.message();
        run(**rank, *group);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
};

TEST_P(Collectives, RanksHaveTheSameResults) {
  const int64_t ranks = GetParam().ranks;
  onEachRank([&](RankRun &rank, Group &group) {
    for (int64_t tokens : {1, 200, 3, 1000, 200}) {
      const std::vector<float> values = rankedInput(tokens, group.rank());
      std::vector<float> result;
      for (int round = 0; round < 2; ++round) {
        ASSERT_EQ(rank.run(values, result).message(), "");
        for (int64_t i = 0; i < tokens; ++i)
          for (int64_t other = 0; other < ranks; ++other)
            ASSERT_EQ(result[i * ranks + other], rankedResult(i, other, ranks))
                << "row " << i;
      }
    }
  });
}

TEST_P(Collectives, StagesHandRowsOn) {
  const int64_t ranks = GetParam().ranks;
  onEachRank([&](RankRun &rank, Group &group) {
    ASSERT_EQ(rank.loadStage(scaleCode(GetParam().device), group).message(),
              "");
    for (int64_t tokens : {1, 200, 3, 1000}) {
      std::vector<float> result;
      DispatchTimes times;
      ASSERT_EQ(rank.run(rankedInput(tokens, 0), result, &times).message(), "");
      EXPECT_EQ(times[0].kernel, group.rank() == 1 ? "scale" : "receive");
      EXPECT_EQ(times.back().kernel, group.rank() == 0 ? "scale" : "send");
      for (int64_t i = 0; group.rank() == 0 && i < tokens; ++i)
        ASSERT_EQ(result[static_cast<size_t>(i)], stagedResult(i, ranks));
    }
    // One that ends would end the others, which may be at work.
    char own = 0;
    std::vector<char> all(static_cast<size_t>(ranks));
    EXPECT_TRUE(group.allGather(&own, all.data(), 1).ok());
  });
}

TEST_P(Collectives, AStageThatIsGoneEndsTheRunsOfOthers) {
  onEachRank([&](RankRun &rank, Group &group) {
    ASSERT_EQ(rank.loadStage(scaleCode(GetParam().device), group).message(),
              "");
    std::vector<float> result;
    if (group.rank() == 0)
      EXPECT_EQ(rank.run(rankedInput(3, 0), result).message(),
                "rank 1 has ended");
    else if (group.rank() != 1)
      EXPECT_FALSE(rank.run(rankedInput(3, 0), result).ok());
  });
}

TEST_P(Collectives, TimesNameThem) {
  onEachRank([&](RankRun &rank, Group &) {
    const std::vector<float> values = {1, 2};
    std::vector<float> result;
    DispatchTimes times;
    ASSERT_EQ(rank.run(values, result, &times).message(), "");
    std::vector<std::string> names;
    for (const DispatchTime &time : times)
      names.push_back(time.kernel);
    EXPECT_EQ(names, (std::vector<std::string>{"scale", "all_reduce", "scale",
                                               "all_gather"}));
    if (GetParam().device == "cpu") {
      ASSERT_EQ(times[1].workers.size(), 1u);
      EXPECT_EQ(times[1].workers[0].thread, 0u);
    }
  });
}

TEST_P(Collectives, ARankThatIsGoneEndsTheRunOfOthers) {
  const std::string last = "rank " + std::to_string(GetParam().ranks - 1);
  onEachRank([&](RankRun &rank, Group &group) {
    const std::vector<float> values(300, 1.0f);
    std::vector<float> result;
    ASSERT_EQ(rank.run(values, result).message(), "");
    if (group.rank() + 1 == group.size())
      return;
    const Status status = rank.run(values, result);
    EXPECT_EQ(status.message(), last + " has ended");
    EXPECT_EQ(status.code(), StatusCode::Unavailable);
    EXPECT_EQ(rank.run(values, result).message(), last + " has ended");
  });
}

TEST_P(Collectives, ARunThatIsDroppedEndsTheRunsOfOthers) {
  onEachRank([&](RankRun &rank, Group &group) {
    const std::vector<float> values(300, 1.0f);
    std::vector<float> result;
    ASSERT_EQ(rank.run(values, result).message(), "");
    const std::atomic<bool> cancelled = true;
    if (group.rank() == 0)
      EXPECT_TRUE(rank.run(values, result, nullptr, &cancelled).isCancelled());
    else
      EXPECT_EQ(rank.run(values, result).message(), "rank 0: cancelled");
  });
}

/// A flag that is set at any time of a run: between its dispatches, too, where
/// threads wait in a collective that the first one does not come to.
TEST_P(Collectives, ARunThatIsCancelledMeanwhileHangsNobody) {
  for (int round = 0; round < 40; ++round)
    onEachRank([&](RankRun &rank, Group &group) {
      const std::vector<float> values(1000, 1.0f);
      std::vector<float> result;
      std::atomic<bool> cancelled = false;
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(10 * round));
        cancelled = group.rank() == 0;
      });
      Status status;
      while (status.ok() && !cancelled)
        status = rank.run(values, result, nullptr, &cancelled);
      group.abort("done");
      other.join();
    });
}

TEST_P(Collectives, ARunThatIsNotEnqueuedEndsTheRunsOfOthers) {
  onEachRank([&](RankRun &rank, Group &group) {
    if (group.rank() == 0) {
      auto stream = rank.device->createStream();
      ASSERT_TRUE(stream.ok()) << stream.message();
      EXPECT_FALSE(
          (*stream)->enqueue(*rank.instance, scalarsFor(maxTokens + 1)).ok());
      return;
    }
    const std::vector<float> values(300, 1.0f);
    std::vector<float> result;
    EXPECT_TRUE(rank.run(values, result).message().starts_with("rank 0: "));
  });
}

TEST_P(Collectives, ADeviceIsARankOfOneGroup) {
  onEachRank([&](RankRun &rank, Group &group) {
    EXPECT_EQ(rank.device->join(group).message(),
              "the device is a rank of a group already");
  });
}

/// Ranks that end or are cancelled at any run: all runs return, and those that
/// fail say whose fault it was.
TEST_P(Collectives, RanksThatEndAtAnyTimeHangNobody) {
  const bool isReference = GetParam().device == "reference";
  for (unsigned round = 0; round < (isReference ? 10u : 25u); ++round) {
    std::mt19937 random(round);
    std::vector<unsigned> lifetimes;
    for (int64_t rank = 0; rank < GetParam().ranks; ++rank)
      lifetimes.push_back(random() % 8);
    onEachRank([&](RankRun &rank, Group &group) {
      const std::vector<float> values(200, 1.0f);
      std::vector<float> result;
      for (unsigned run = 0;; ++run) {
        const bool isLast = run == lifetimes[group.rank()];
        if (isLast && round % 2)
          return;
        const std::atomic<bool> cancelled = isLast;
        const Status status = rank.run(values, result, nullptr, &cancelled);
        if (status.ok()) {
          // a_r is r + 1.
          ASSERT_EQ(result.front() * static_cast<float>(group.size()),
                    result.back());
          continue;
        }
        EXPECT_EQ(isLast, status.isCancelled()) << status.message();
        if (!isLast)
          EXPECT_TRUE(status.message().starts_with("rank "))
              << status.message();
        return;
      }
    });
  }
}

TEST_P(Collectives, ProgramsAreForTheGroupsRanks) {
  const std::unique_ptr<Device> device = openDevice(GetParam());
  EXPECT_EQ(
      device->load(rankedProgram(device->name(), scaleCode(device->name()), 2))
          .message(),
      "the program 'ranked' was compiled for 2 ranks, and here is one");
  auto groups = createThreadGroup(3);
  ASSERT_TRUE(device->join(*groups->front()).ok());
  EXPECT_EQ(device->group(), groups->front().get());
  EXPECT_EQ(
      device->load(rankedProgram(device->name(), scaleCode(device->name()), 2))
          .message(),
      "the program 'ranked' was compiled for 2 ranks, and here are 3");
  EXPECT_TRUE(
      device->load(scaleTwice(device->name(), scaleCode(device->name()))).ok());
}

INSTANTIATE_TEST_SUITE_P(All, Collectives,
                         testing::Values(RanksCase{"reference", 1, 2},
                                         RanksCase{"reference", 1, 3},
                                         RanksCase{"cpu", 1, 2},
                                         RanksCase{"cpu", 1, 3},
                                         RanksCase{"cpu", 3, 2}),
                         [](const testing::TestParamInfo<RanksCase> &info) {
                           return info.param.device +
                                  std::to_string(info.param.threads) + "_" +
                                  std::to_string(info.param.ranks) + "_ranks";
                         });

} // namespace
