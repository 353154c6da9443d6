//===- RankFrameTest.cpp - How messages of ranks are told apart -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/RankFrame.h"

#include <gtest/gtest.h>

#include <limits>

using namespace kf;

namespace {

std::string frame(FrameKind kind, const std::string &payload) {
  return frameHeader(kind, payload.size()) + payload;
}

TEST(RankFrame, IsFoundHoweverItArrives) {
  std::string stream = frame(FrameKind::Message, "abc");
  stream += frame(FrameKind::Heartbeat, "");
  stream += frame(FrameKind::Data, std::string(300, 'x'));
  for (size_t step = 1; step <= stream.size(); ++step) {
    FrameReader reader(300);
    std::string found;
    for (size_t i = 0; i < stream.size(); i += step) {
      reader.append(std::string_view(stream).substr(i, step));
      for (;;) {
        auto next = reader.next();
        ASSERT_TRUE(next.ok()) << next.message();
        if (!*next)
          break;
        found += frame((*next)->kind, (*next)->payload);
      }
    }
    EXPECT_EQ(found, stream);
  }
}

TEST(RankFrame, SaysHowMuchIsMissing) {
  const std::string whole = frame(FrameKind::Message, "abcdef");
  FrameReader reader(10);
  uint64_t taken = 0;
  while (!*reader.next()) {
    ASSERT_GT(reader.missing(), 0u);
    reader.append(std::string_view(whole).substr(taken, reader.missing()));
    taken += reader.missing();
  }
  EXPECT_EQ(taken, whole.size());
}

// What is too long is refused by its header, before anything is kept for it.
TEST(RankFrame, IsBounded) {
  for (uint64_t length : {uint64_t(11), uint64_t(1) << 40,
                          std::numeric_limits<uint64_t>::max()}) {
    FrameReader reader(10);
    reader.append(frameHeader(FrameKind::Message, length));
    EXPECT_EQ(reader.next().message(), "a message of " +
                                           std::to_string(length) +
                                           " bytes, of which 10 are allowed");
  }
}

TEST(RankFrame, HasAKnownKind) {
  for (int kind = static_cast<int>(FrameKind::Bye) + 1; kind < 256; ++kind) {
    FrameReader reader(10);
    reader.append(std::string(1, static_cast<char>(kind)) +
                  std::string(8, '\0'));
    EXPECT_EQ(reader.next().message(), "what is no message of a rank");
  }
}

} // namespace
