//===- EventStreamTest.cpp - Events, whole and in pieces ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/EventStream.h"

#include <gtest/gtest.h>

#include <vector>

using namespace kf;

namespace {

using Events = std::vector<std::string>;

/// The events of `text`, which comes in pieces of `size` bytes.
Events read(std::string_view text, size_t size) {
  Events events;
  EventStream stream([&](std::string_view data) {
    events.emplace_back(data);
    return Status();
  });
  for (size_t at = 0; at < text.size(); at += size) {
    const Status status = stream.push(text.substr(at, size));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return events;
}

TEST(EventStream, EventsAreTheSameHoweverTheyCome) {
  const std::string_view text =
      "\xef\xbb\xbf"
      "data: a\n\ndata:b\r\n\r\n: ping\n\nevent: x\ndata: c\ndata:  d\n\n"
      "data\r\rid: 7\n\nother: data\n\ndata: e\r\n\ndata: lost";
  const Events expected = {"a", "b", "c\n d", "", "e"};
  for (size_t size : {1, 2, 3, 5, 1000})
    EXPECT_EQ(read(text, size), expected) << size;
}

TEST(EventStream, TheMarkIsOfTheBeginAlone) {
  EXPECT_EQ(read("\n\xef\xbb\xbf"
                 "data: a\n\n",
                 1000),
            Events());
}

TEST(EventStream, LinesHaveALimit) {
  EventStream stream([](std::string_view) { return Status(); });
  const std::string part(EventStream::kMostBytes / 2, 'x');
  EXPECT_TRUE(stream.push(part).ok());
  EXPECT_TRUE(stream.push(part).ok());
  const Status status = stream.push("x");
  EXPECT_EQ(status.message(), "a stream with a line of more than 4 MiB");
}

TEST(EventStream, EventsHaveALimit) {
  EventStream stream([](std::string_view) { return Status(); });
  const std::string line =
      "data: " + std::string(EventStream::kMostBytes / 2, 'x') + "\n";
  EXPECT_TRUE(stream.push(line).ok());
  const Status status = stream.push(line);
  EXPECT_EQ(status.message(), "a stream with an event of more than 4 MiB");
}

TEST(EventStream, AnErrorEndsIt) {
  int calls = 0;
  EventStream stream([&](std::string_view) {
    ++calls;
    return Status::error("enough");
  });
  EXPECT_EQ(stream.push("data: a\n\ndata: b\n\n").message(), "enough");
  EXPECT_EQ(calls, 1);
}

} // namespace
