//===- RankLinksTest.cpp - A process' connections to other ranks ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankLinks.h"

#include <gtest/gtest.h>

#include <thread>

#include <sys/socket.h>

using namespace kf;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

RankIdentity facts(int64_t rank, int64_t size) {
  return {rank, size, "build", "host" + std::to_string(rank), "0-1"};
}

std::pair<Descriptor, Descriptor> connect() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                         ends),
            0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// Who gives no sign of life for so long is lost: where all do, for longer than
/// a busy machine's threads pause.
RankTimes timesOf(RankTimes::Milliseconds silence) {
  RankTimes times;
  times.heartbeat = 20ms;
  times.silence = silence;
  times.end = 100ms;
  return times;
}

/// What the links of a rank say.
struct Heard {
  std::mutex guard;
  std::string lost;
  std::atomic<bool> overdue{false};

  RankEvents events() {
    return {[this](const Status &status) {
              std::lock_guard<std::mutex> lock(guard);
              lost += status.message() + "\n";
            },
            [this] { overdue = true; }};
  }
  std::string text() {
    std::lock_guard<std::mutex> lock(guard);
    return lost;
  }
  std::string await() {
    for (int i = 0; i < 6000 && text().empty(); ++i)
      std::this_thread::sleep_for(10ms);
    return text();
  }
};

/// Rank 0 of `size`, and the others' ends.
struct Job {
  explicit Job(int64_t size = 2, RankTimes::Milliseconds silence = 20s)
      : times(timesOf(silence)) {
    std::vector<RankPeer> peers;
    for (int64_t rank = 1; rank < size; ++rank) {
      auto [here, there] = connect();
      peers.push_back({facts(rank, size), std::move(here)});
      ends.push_back(std::move(there));
    }
    leader = RankLinks::start(facts(0, size), std::move(peers), times,
                              heard.events())
                 .take();
  }
  std::unique_ptr<RankLinks> follow(int64_t rank, RankEvents events = {}) {
    const int64_t size = static_cast<int64_t>(ends.size()) + 1;
    std::vector<RankPeer> peers;
    peers.push_back(
        {facts(0, size), std::move(ends[static_cast<size_t>(rank - 1)])});
    return RankLinks::start(facts(rank, size), std::move(peers), times,
                            std::move(events))
        .take();
  }

  RankTimes times;
  Heard heard;
  std::vector<Descriptor> ends;
  std::unique_ptr<RankLinks> leader;
};

TEST(RankLinks, HandMessagesOverInOrder) {
  Job job;
  const auto follower = job.follow(1);
  const auto here = job.leader->openChannel(0);
  std::thread other([&] {
    const auto there = follower->openChannel(0);
    for (int i = 0; i < 500; ++i) {
      auto message = there->receive();
      ASSERT_TRUE(message.ok() && *message);
      EXPECT_EQ(**message, std::string(static_cast<size_t>(i) * 997, 'm'));
      EXPECT_TRUE(there->send(std::to_string(i)).ok());
    }
  });
  for (int i = 0; i < 500; ++i)
    EXPECT_TRUE(
        here->send(std::string(static_cast<size_t>(i) * 997, 'm')).ok());
  for (int i = 0; i < 500; ++i)
    EXPECT_EQ(here->receive().take(), std::to_string(i));
  other.join();
  EXPECT_EQ(here->receive().take(), std::nullopt);
}

// A session ends with its channel, on either side, and what it has left unread
// is no part of the next.
TEST(RankLinks, KeepSessionsApart) {
  Job job;
  const auto follower = job.follow(1);
  for (int session = 0; session < 5; ++session) {
    const auto here = job.leader->openChannel(0);
    auto there = follower->openChannel(0);
    EXPECT_TRUE(here->send("read " + std::to_string(session)).ok());
    EXPECT_TRUE(here->send("unread").ok());
    EXPECT_EQ(there->receive().take(), "read " + std::to_string(session));
    EXPECT_TRUE(there->send("last").ok());
    there.reset();
    EXPECT_EQ(here->receive().take(), "last");
    EXPECT_EQ(here->receive().take(), std::nullopt);
    EXPECT_EQ(here->receive().take(), std::nullopt);
  }
  job.leader->bye();
  const auto last = follower->openChannel(0);
  EXPECT_EQ(last->receive().take(), std::nullopt);
  EXPECT_TRUE(follower->hasLeft(0));
  EXPECT_FALSE(follower->hasFailed());
}

TEST(RankLinks, NameRanksThatEnd) {
  Job job(3);
  auto first = job.follow(1);
  const auto second = job.follow(2);
  const auto here = job.leader->openChannel(0);
  EXPECT_TRUE(first->openChannel(0)->send("before").ok());
  std::thread other([&] { // is told by rank 0
    EXPECT_EQ(second->receiveData(0).message(), "rank 1 on host1 has ended");
  });
  EXPECT_EQ(here->receive().take(), "before");
  EXPECT_EQ(here->receive().take(), std::nullopt); // the end of its session
  first.reset();
  EXPECT_EQ(job.heard.await(), "rank 1 on host1 has ended\n");
  const auto next = job.leader->openChannel(0);
  const Result<std::optional<std::string>> received = next->receive();
  EXPECT_EQ(received.message(), "rank 1 on host1 has ended");
  EXPECT_EQ(received.status().code(), StatusCode::Unavailable);
  EXPECT_EQ(next->send("more").message(), "rank 1 on host1 has ended");
  EXPECT_EQ(job.leader->sendData(1, "more").message(),
            "rank 1 on host1 has ended");
  other.join();
  // The links are still there: who has them does not see that it is over.
  for (int i = 0; i < 6000 && !job.heard.overdue; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(job.heard.overdue);
}

TEST(RankLinks, NameRanksThatAbort) {
  Job job(3);
  const auto first = job.follow(1), second = job.follow(2);
  std::thread other([&] {
    EXPECT_EQ(second->receiveData(0).message(),
              "rank 1 on host1: it is broken");
  });
  first->abort("it is broken");
  first->abort("it says so again");
  EXPECT_EQ(job.leader->receiveData(1).message(),
            "rank 1 on host1: it is broken");
  other.join();
  EXPECT_EQ(first->failure().message(), "rank 1 on host1: it is broken");
  // It can say still what came of what it was told.
  EXPECT_TRUE(first->openChannel(0)->send("the answer").ok());
  EXPECT_EQ(job.heard.text(), "");
}

TEST(RankLinks, TellOfFailuresBehindWhatIsBeingSent) {
  Job job;
  std::thread sender([&] { // waits: nobody reads yet
    (void)job.leader->sendData(0, std::string(size_t(1) << 24, 'm'));
  });
  std::this_thread::sleep_for(100ms);
  job.leader->abort("it is broken");
  const auto follower = job.follow(1);
  Result<std::string> received = follower->receiveData(0);
  if (received.ok())
    received = follower->receiveData(0);
  EXPECT_EQ(received.message(), "rank 0 on host0: it is broken");
  sender.join();
}

TEST(RankLinks, NameRanksThatAreSilent) {
  const auto begin = Clock::now();
  Job job(2, 1500ms); // nobody is at the other end
  EXPECT_EQ(job.heard.await(),
            "rank 1 on host1 does not answer: it is stopped, or cut off\n");
  EXPECT_GE(Clock::now() - begin, 1400ms);
  EXPECT_LT(Clock::now() - begin, 30s);
}

// A rank that computes, and looks at no message, is there all the same. Where a
// busy machine pauses its thread for as long as silence may take, a longer one
// shows it; who gives no sign is lost in each.
TEST(RankLinks, WaitForLongSteps) {
  bool isThere = false;
  for (auto silence = 500ms; !isThere && silence <= 16s; silence *= 2) {
    Job job(2, silence);
    const auto follower = job.follow(1);
    std::this_thread::sleep_for(3 * silence);
    isThere = !job.leader->hasFailed() && !follower->hasFailed();
  }
  EXPECT_TRUE(isThere);
}

// What is too much for the connection waits no longer for a rank than for its
// signs of life.
TEST(RankLinks, DoNotHangWhereNobodyReads) {
  Job job(2, 1500ms);
  const auto here = job.leader->openChannel(0);
  const std::string message(size_t(1) << 24, 'm');
  EXPECT_EQ(here->send(message).message(),
            "rank 1 on host1 does not answer: it is stopped, or cut off");
}

TEST(RankLinks, TakeNothingButMessagesOfRanks) {
  struct Case {
    std::string bytes;
    const char *error;
  };
  for (const Case &hostile :
       {Case{std::string(64, '\xff'),
             "rank 1 on host1 sends what is no message of a rank\n"},
        Case{frameHeader(FrameKind::Data, uint64_t(1) << 50),
             "rank 1 on host1 sends a message of 1125899906842624 bytes, of "
             "which 4294967296 are allowed\n"},
        Case{frameHeader(FrameKind::Welcome, 0),
             "rank 1 on host1 says what no rank says\n"}}) {
    Job job;
    EXPECT_TRUE(writeSome(job.ends[0].get(), hostile.bytes).ok());
    EXPECT_EQ(job.heard.await(), hostile.error);
  }
}

TEST(RankLinks, EndWithoutLossWhenAllIsDone) {
  Job job;
  Heard there;
  auto follower = job.follow(1, there.events());
  job.leader->bye();
  EXPECT_EQ(follower->openChannel(0)->receive().take(), std::nullopt);
  follower.reset();
  std::this_thread::sleep_for(100ms);
  EXPECT_FALSE(job.leader->hasFailed());
  EXPECT_EQ(job.heard.text() + there.text(), "");
}

} // namespace
