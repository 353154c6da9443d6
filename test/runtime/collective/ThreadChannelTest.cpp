//===- ThreadChannelTest.cpp - Messages within a process ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankChannel.h"

#include <gtest/gtest.h>

#include <thread>

using namespace kf;

namespace {

TEST(ThreadChannel, HandsMessagesOverInOrder) {
  auto [here, there] = createThreadChannel();
  std::thread other([&end = *there] {
    for (int i = 0; i < 2000; ++i) {
      auto message = end.receive();
      ASSERT_TRUE(message.ok() && *message);
      EXPECT_EQ(**message, std::to_string(i));
      if (i % 100 == 99)
        EXPECT_TRUE(end.send("so far " + **message).ok());
    }
  });
  for (int i = 0; i < 2000; ++i)
    EXPECT_TRUE(here->send(std::to_string(i)).ok());
  for (int i = 99; i < 2000; i += 100)
    EXPECT_EQ(here->receive().take(), "so far " + std::to_string(i));
  other.join();
}

TEST(ThreadChannel, TellsThatTheOtherEndIsGone) {
  auto [here, there] = createThreadChannel();
  EXPECT_TRUE(there->send("last").ok());
  there.reset();
  const Status status = here->send("too late");
  EXPECT_EQ(status.message(), "the connection is closed");
  EXPECT_EQ(status.code(), StatusCode::Unavailable);
  EXPECT_EQ(here->receive().take(), "last");
  EXPECT_EQ(here->receive().take(), std::nullopt);
  EXPECT_EQ(here->receive().take(), std::nullopt);
}

TEST(ThreadChannel, WakesWhoeverWaitsWhenItIsClosed) {
  auto [here, there] = createThreadChannel();
  std::thread other(
      [&end = *there] { EXPECT_EQ(end.receive().take(), std::nullopt); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  here.reset();
  other.join();
}

} // namespace
