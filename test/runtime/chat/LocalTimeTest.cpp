//===- LocalTimeTest.cpp - Times without a zone ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/LocalTime.h"

#include "../StatusAssertions.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

TEST(LocalTimeTest, ATextIsAllOfATime) {
  for (const char *text : {"2026-11-29T20:13:11", "2024-02-29T00:00:00",
                           "1969-12-31T23:59:59", "0001-01-01T00:00:00"}) {
    const Result<std::tm> time = parseLocalTime(text);
    ASSERT_TRUE(time.ok()) << time.message();
    EXPECT_EQ(localTimeText(*time), text);
  }
  const std::tm time = *parseLocalTime("2026-11-29T20:13:11");
  char text[64];
  std::strftime(text, sizeof(text), "%A %d %B %Y, day %j, %H:%M:%S", &time);
  EXPECT_STREQ(text, "Sunday 29 November 2026, day 333, 20:13:11");
}

TEST(LocalTimeTest, ThePresent) {
  const std::string text = localTimeText(localTimeNow());
  const Result<std::tm> time = parseLocalTime(text);
  ASSERT_TRUE(time.ok()) << time.message();
  EXPECT_EQ(localTimeText(*time), text);
}

TEST(LocalTimeTest, Errors) {
  for (const char *text :
       {"", "2026-11-29", "2026-11-29 20:13:11", "2026-11-29T20:13:1",
        "2026-02-29T20:13:11", "2026-13-01T20:13:11", "2026-11-29T24:00:00",
        "2026-11-29T20:60:11", "2026-11-29T20:13:60", "2026-11--9T20:13:11",
        "202x-11-29T20:13:11", "2026-11-29T20:13:111"})
    EXPECT_TRUE(failsWith(parseLocalTime(text).status(),
                          "a time as 2026-11-29T20:13:11 is expected, not '" +
                              std::string(text) + "'"));
}
