//===- RankMeetingTest.cpp - How ranks of a job find one another ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankMeeting.h"

#include "runtime/collective/RankFrame.h"

#include <gtest/gtest.h>

#include <thread>

using namespace kf;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char *kKey = "a key of the tests alone";

RankIdentity facts(int64_t rank, int64_t size, std::string build = "build") {
  return {rank, size, std::move(build), "host" + std::to_string(rank), "0-1"};
}

RankTimes shortTimes() {
  RankTimes times;
  times.meeting = 60s;
  times.stranger = 2s; // a busy machine's threads pause for less
  return times;
}

class RankMeetingTest : public testing::Test {
protected:
  RankMeetingTest() : listener(Listener::open("127.0.0.1", 0).take()) {}

  Result<std::vector<RankPeer>> lead(int64_t size,
                                     RankTimes times = shortTimes()) {
    return meetFollowers(listener, JobKey::of(kKey).take(), facts(0, size),
                         times);
  }
  Result<MetLeader> follow(const RankIdentity &own, const char *key = kKey) {
    return meetLeader("127.0.0.1", listener.port(), JobKey::of(key).take(), own,
                      shortTimes());
  }
  /// Connects, and says `bytes`.
  Descriptor call(std::string_view bytes) {
    Descriptor made =
        connectTo("127.0.0.1", listener.port(), Clock::now() + 60s).take();
    EXPECT_EQ(writeSome(made.get(), bytes).take(), bytes.size());
    return made;
  }

  Listener listener;
};

TEST_F(RankMeetingTest, TellsEachRankOfAll) {
  std::vector<std::thread> others;
  for (int64_t rank = 1; rank < 4; ++rank)
    others.emplace_back([&, rank] {
      Result<MetLeader> met = follow(facts(rank, 4));
      ASSERT_TRUE(met.ok()) << met.message();
      ASSERT_EQ(met->all.size(), 4u);
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(nameOf(met->all[static_cast<size_t>(i)]),
                  "rank " + std::to_string(i) + " on host" + std::to_string(i));
      EXPECT_EQ(nameOf(met->leader.facts), "rank 0 on host0");
    });
  const Result<std::vector<RankPeer>> peers = lead(4);
  for (std::thread &other : others)
    other.join();
  ASSERT_TRUE(peers.ok()) << peers.message();
  ASSERT_EQ(peers->size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ((*peers)[i].facts.rank, static_cast<int64_t>(i) + 1);
}

// Whatever a stranger says, it hears a random number at most, and the ranks
// meet all the same.
TEST_F(RankMeetingTest, GivesStrangersNothing) {
  const std::string greeting = "kf-ranks-1" + std::string(32, 'n');
  const std::string good = frameHeader(FrameKind::Greeting, greeting.size());
  std::vector<Descriptor> strangers;
  strangers.push_back(call("")); // says nothing
  strangers.push_back(call("GET / HTTP/1.1\r\n\r\n"));
  strangers.push_back(
      call(frameHeader(FrameKind::Greeting, uint64_t(1) << 60)));
  strangers.push_back(call(frameHeader(FrameKind::Message, 0)));
  strangers.push_back(call(good + greeting + frameHeader(FrameKind::Proof, 64) +
                           std::string(64, 'p')));
  strangers.push_back(call(good + greeting)); // goes no further
  std::thread wrongKey([&] {
    EXPECT_EQ(follow(facts(1, 2), "some key of another job").message(),
              "rank 0 at 127.0.0.1:" + std::to_string(listener.port()) +
                  " has another job key (KF_JOB_KEY, KF_JOB_KEY_FILE), or "
                  "ended before all ranks were there");
  });
  std::thread other([&] { // when it was sent away
    wrongKey.join();
    EXPECT_TRUE(follow(facts(1, 2)).ok());
  });
  EXPECT_TRUE(lead(2).ok());
  other.join();
  for (const Descriptor &stranger : strangers) {
    std::string heard;
    char room[4096];
    for (;;) {
      ASSERT_TRUE(awaitReadable(stranger.get(), Clock::now() + 60s));
      const Result<size_t> count = readSome(stranger.get(), room);
      if (!count.ok())
        break;
      heard.append(room, *count);
    }
    EXPECT_TRUE(heard.empty() || heard.size() == kFrameHeader + 32)
        << heard.size();
  }
}

TEST_F(RankMeetingTest, DoesNotWaitForStrangers) {
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 20; ++i)
    strangers.push_back(call(""));
  const auto begin = Clock::now();
  std::thread other([&] { EXPECT_TRUE(follow(facts(1, 2)).ok()); });
  EXPECT_TRUE(lead(2).ok());
  other.join();
  // One after the other they would take 40 s.
  EXPECT_LT(Clock::now() - begin, 30s);
}

TEST_F(RankMeetingTest, NamesRanksThatHaveNotCome) {
  RankTimes times = shortTimes();
  times.meeting = 5s;
  std::thread other([&] { EXPECT_FALSE(follow(facts(2, 4)).ok()); });
  std::thread stranger([&] {
    EXPECT_FALSE(follow(facts(1, 4), "some key of another job").ok());
  });
  const Result<std::vector<RankPeer>> peers = lead(4, times);
  listener = Listener();
  other.join();
  stranger.join();
  EXPECT_EQ(peers.message(),
            "of 4 ranks, these have not come in time: 1, 3 (1 connections did "
            "not prove the job's key; KF_JOB_KEY or KF_JOB_KEY_FILE has to be "
            "the same for all ranks)");
  EXPECT_EQ(peers.status().code(), StatusCode::Unavailable);
}

TEST_F(RankMeetingTest, RefusesRanksOfAnotherJob) {
  struct Case {
    RankIdentity other;
    const char *error;
  };
  for (const Case &wrong :
       {Case{facts(1, 2, "other"),
             "rank 1 on host1 is another build of this program than rank 0 on "
             "host0; install the same on all hosts"},
        Case{facts(1, 3), "rank 1 on host1 is one of 3 ranks, and rank 0 on "
                          "host0 of 2; start all with the same number"},
        Case{facts(5, 2), "rank 5 on host5 is none of 2"}}) {
    std::thread other([&] { EXPECT_FALSE(follow(wrong.other).ok()); });
    EXPECT_EQ(lead(2).message(), wrong.error);
    other.join();
  }
  std::thread first([&] { EXPECT_FALSE(follow(facts(1, 3)).ok()); });
  std::thread second([&] { EXPECT_FALSE(follow(facts(1, 3)).ok()); });
  EXPECT_EQ(lead(3).message(), "two processes say that they are rank 1, on "
                               "host1 and on host1");
  first.join();
  second.join();
}

TEST_F(RankMeetingTest, FollowersFindNobodyElse) {
  // Listens, and says nothing.
  EXPECT_EQ(follow(facts(1, 2)).message(),
            "rank 0 at 127.0.0.1:" + std::to_string(listener.port()) +
                " is no rank of this program: no answer");
  EXPECT_TRUE(listener.accept(Clock::now() + 60s).take().ok()); // that one
  // Knows the protocol and not the key.
  std::thread impostor([&] {
    const Descriptor made = listener.accept(Clock::now() + 60s).take();
    char room[4096];
    auto hear = [&] {
      ASSERT_TRUE(awaitReadable(made.get(), Clock::now() + 60s));
      ASSERT_TRUE(readSome(made.get(), room).ok());
    };
    auto say = [&](FrameKind kind, size_t count) {
      (void)writeSome(made.get(),
                      frameHeader(kind, count) + std::string(count, 'x'));
    };
    hear();
    say(FrameKind::Challenge, 32);
    hear();
    say(FrameKind::Welcome, 100);
  });
  EXPECT_EQ(follow(facts(1, 2)).message(),
            "rank 0 at 127.0.0.1:" + std::to_string(listener.port()) +
                " does not prove the job's key");
  impostor.join();
}

TEST(Socket, NamesWhereNobodyIs) {
  EXPECT_EQ(connectTo("127.0.0.1", 1, Clock::now() + 200ms).message(),
            "cannot connect to 127.0.0.1:1: Connection refused");
  EXPECT_EQ(Listener::open("192.0.2.1", 4000).message(),
            "cannot listen at 192.0.2.1:4000: Cannot assign requested address");
}

} // namespace
