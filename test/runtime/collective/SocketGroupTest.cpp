//===- SocketGroupTest.cpp - Collectives over connections -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/SocketGroup.h"

#include "runtime/collective/ThreadGroup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include <sys/socket.h>

using namespace kf;

namespace {

using Groups = std::vector<std::unique_ptr<Group>>;

RankIdentity facts(int64_t rank, int64_t size) {
  return {rank, size, "build", "host", "0"};
}

/// Links of rank 0 and of all others.
std::vector<std::unique_ptr<RankLinks>> connect(int64_t size) {
  std::vector<std::unique_ptr<RankLinks>> links(1);
  std::vector<RankPeer> followers;
  for (int64_t rank = 1; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                           0, ends),
              0);
    followers.push_back({facts(rank, size), Descriptor(ends[0])});
    std::vector<RankPeer> leader;
    leader.push_back({facts(0, size), Descriptor(ends[1])});
    links.push_back(
        RankLinks::start(facts(rank, size), std::move(leader), RankTimes(), {})
            .take());
  }
  links[0] =
      RankLinks::start(facts(0, size), std::move(followers), RankTimes(), {})
          .take();
  return links;
}

void onEachRank(const Groups &groups, const std::function<void(Group &)> &run) {
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Group> &group : groups)
    threads.emplace_back([&] { run(*group); });
  for (std::thread &thread : threads)
    thread.join();
}

/// Elements of `type` that differ from rank to rank.
std::vector<std::byte> valuesOf(DataType type, int64_t rank, size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  std::vector<std::byte> bytes(count * sizeOf(type));
  EXPECT_TRUE(convertFromFloat(type, values.data(), static_cast<int64_t>(count),
                               bytes.data())
                  .ok());
  return bytes;
}

/// Results of sums and gathers, by rank.
std::vector<std::vector<std::byte>> results(const Groups &groups) {
  std::vector<std::vector<std::byte>> all(groups.size());
  onEachRank(groups, [&](Group &group) {
    std::vector<std::byte> &own = all[static_cast<size_t>(group.rank())];
    for (const DataType type : {DataType::F32, DataType::F16, DataType::BF16})
      for (const size_t count : {size_t(0), size_t(1), size_t(5000)}) {
        const auto source = valuesOf(type, group.rank(), count);
        std::vector<std::byte> sum(source.size());
        ASSERT_TRUE(
            group.allReduce(type, source.data(), sum.data(), count).ok());
        std::vector<std::byte> rows(source.size() *
                                    static_cast<size_t>(group.size()));
        ASSERT_TRUE(
            group.allGather(source.data(), rows.data(), source.size()).ok());
        own.insert(own.end(), sum.begin(), sum.end());
        own.insert(own.end(), rows.begin(), rows.end());
      }
  });
  return all;
}

Groups groupsOf(const std::vector<std::unique_ptr<RankLinks>> &links) {
  Groups groups;
  for (size_t rank = 0; rank < links.size(); ++rank)
    groups.push_back(createSocketGroup(static_cast<int64_t>(rank),
                                       static_cast<int64_t>(links.size()),
                                       *links[rank]));
  return groups;
}

TEST(SocketGroup, GivesTheBitsOfThreads) {
  for (const int64_t size : {2, 3, 5}) {
    const auto links = connect(size);
    const auto wanted = results(createThreadGroup(size).take());
    const auto found = results(groupsOf(links));
    for (const auto &bytes : found)
      EXPECT_TRUE(bytes == wanted[0]) << size << " ranks";
  }
}

// From rank 1 to rank 0, through all others: rank 0 passes on what these send.
TEST(SocketGroup, HandsOnWhatStagesSend) {
  for (const int64_t size : {2, 3, 5}) {
    const auto links = connect(size);
    onEachRank(groupsOf(links), [&](Group &group) {
      for (int round = 0; round < 20; ++round) {
        std::vector<int64_t> values(static_cast<size_t>(1000 * (round % 3)),
                                    round);
        const uint64_t bytes = values.size() * sizeof(int64_t);
        if (group.rank() != 1) {
          std::vector<int64_t> found(values.size());
          ASSERT_EQ(group.receive(found.data(), bytes).message(), "");
          for (int64_t &value : values)
            value += group.previous();
          EXPECT_EQ(found, values);
        }
        std::ranges::fill(values, round + group.rank());
        if (group.rank() != 0)
          ASSERT_EQ(group.send(values.data(), bytes).message(), "");
      }
    });
  }
}

TEST(SocketGroup, ReceivesNothingOfAnotherSize) {
  const auto links = connect(2);
  onEachRank(groupsOf(links), [](Group &group) {
    const float values[4] = {};
    float found[4];
    if (group.rank() == 1) {
      EXPECT_TRUE(group.send(values, 12).ok());
      return;
    }
    EXPECT_EQ(group.receive(found, 16).message(),
              "rank 1 sends 12 bytes where rank 0 receives 16 bytes");
  });
}

TEST(SocketGroup, NamesCallsThatDiffer) {
  const auto links = connect(2);
  onEachRank(groupsOf(links), [](Group &group) {
    const float source[2] = {};
    float target[4] = {};
    const Status status =
        group.rank() == 0 ? group.allReduce(DataType::F32, source, target, 2)
                          : group.allGather(source, target, 8);
    EXPECT_EQ(status.message(),
              group.rank() == 0
                  ? "rank 1 gathers 8 bytes where rank 0 sums up 2 elements of "
                    "f32"
                  : "rank 0 on host: rank 1 gathers 8 bytes where rank 0 sums "
                    "up 2 elements of f32");
  });
}

TEST(SocketGroup, EndsWithARank) {
  auto links = connect(3);
  const Groups groups = groupsOf(links);
  std::thread first([&] {
    float value = 1, sum = 0;
    EXPECT_EQ(groups[0]->allReduce(DataType::F32, &value, &sum, 1).message(),
              "rank 2 on host has ended");
  });
  std::thread second([&] {
    float value = 1, sum = 0;
    EXPECT_EQ(groups[1]->allReduce(DataType::F32, &value, &sum, 1).message(),
              "rank 2 on host has ended");
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  links[2].reset();
  first.join();
  second.join();
}

TEST(SocketGroup, EndsByAbort) {
  const auto links = connect(3);
  const Groups groups = groupsOf(links);
  std::thread first([&] {
    float value = 1, sum = 0;
    EXPECT_EQ(groups[0]->allReduce(DataType::F32, &value, &sum, 1).message(),
              "rank 1 on host: enough");
  });
  groups[1]->abort("enough");
  first.join();
}

// What a rank sends may be anything.
TEST(SocketGroup, TakesNothingButCalls) {
  for (const std::string &bytes :
       {std::string(), std::string(10, '\xff'),
        // a sum of 1 element, without it
        std::string("\0\0\1\0\0\0\0\0\0\0", 10),
        std::string("\0\0\1\0\0\0\0\0\0\0more than that", 24)}) {
    const auto links = connect(2);
    const Groups groups = groupsOf(links);
    EXPECT_TRUE(links[1]->sendData(0, bytes).ok());
    float value = 1, sum = 0;
    EXPECT_EQ(groups[0]->allReduce(DataType::F32, &value, &sum, 1).message(),
              "rank 1 on host sends what is no part of a collective");
  }
}

} // namespace
