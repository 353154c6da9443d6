//===- ThreadTeamTest.cpp - Threads that are left out, and come back ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/ThreadTeam.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>

using namespace kf;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using Clock = ThreadTeam::Clock;

class ThreadTeamTest : public testing::Test {
protected:
  void SetUp() override {
    auto made = ThreadPool::create(2);
    ASSERT_TRUE(made.ok()) << made.message();
    pool = made.take();
    if (!pool->cpuTime(1))
      GTEST_SKIP() << "the system does not tell a thread's processor time";
    team.emplace(*pool);
  }

  /// Says that the caller's thread has waited a minute for the other one, which
  /// sleeps: it had no core.
  void reportStall() {
    ThreadTeam::Watch(*team, 1).report(0, Clock::now() + seconds(60));
  }

  static constexpr microseconds ofToken{100};
  static constexpr milliseconds ofPrompt{10};
  std::unique_ptr<ThreadPool> pool;
  std::optional<ThreadTeam> team;
  const Clock::time_point start = Clock::now();
};

TEST_F(ThreadTeamTest, LeavesOutWhoHadNoCore) {
  reportStall();
  EXPECT_EQ(team->size(), 2);
  team->update(start, ofToken);
  EXPECT_EQ(team->size(), 1);
  EXPECT_EQ(team->rankOf(0), 0);
  EXPECT_LT(team->rankOf(1), 0);
  team->update(start + milliseconds(49), ofToken);
  EXPECT_EQ(team->size(), 1);
  team->update(start + milliseconds(50), ofToken);
  EXPECT_EQ(team->size(), 2);

  // Soon after that, for twice as long.
  reportStall();
  team->update(start + milliseconds(60), ofToken);
  team->update(start + milliseconds(159), ofToken);
  EXPECT_EQ(team->size(), 1);
  team->update(start + milliseconds(160), ofToken);
  EXPECT_EQ(team->size(), 2);
}

TEST_F(ThreadTeamTest, TakesAllForLongDispatches) {
  reportStall();
  team->update(start, ofPrompt);
  EXPECT_EQ(team->size(), 2);
  EXPECT_EQ(team->readySize(), 1);
  // What was reported then is no reason later.
  team->update(start, ofToken);
  EXPECT_EQ(team->size(), 2);
  EXPECT_EQ(team->readySize(), 2);

  reportStall();
  team->update(start, ofToken);
  EXPECT_EQ(team->size(), 1);
  team->update(start, Clock::duration::max());
  EXPECT_EQ(team->size(), 2);
}

} // namespace
