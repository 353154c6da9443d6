//===- ReadAheadTest.cpp - Which cache lines are asked for, and when ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/ReadAhead.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace kf {
namespace {

constexpr int64_t line = 64;

/// Keeps what is asked for.
struct Record {
  void operator()(const std::byte *at) const { asked->push_back(at); }
  std::vector<const std::byte *> *asked;
};

/// Two panels of `count` rows of `rowBytes` bytes, each at an odd address.
class Panels {
public:
  Panels(size_t count, int64_t rowBytes)
      : rowBytes(rowBytes), memory(2 * count * (rowBytes + 1) + 1) {
    for (size_t row = 0; row < 2 * count; ++row)
      (row < count ? rows : next)
          .push_back(memory.data() + 1 + row * (rowBytes + 1));
  }

  ReadAhead<Record> read(bool wereNext) {
    return ReadAhead<Record>({rows, next, wereNext}, rowBytes, {&asked});
  }
  /// What has been asked for since the last call.
  std::vector<const std::byte *> take() { return std::exchange(asked, {}); }
  /// Bytes [begin, end) of each row that there is, row by row.
  std::vector<const std::byte *>
  linesOf(const std::vector<const std::byte *> &panel, int64_t begin,
          int64_t end) {
    std::vector<const std::byte *> lines;
    for (const std::byte *row : panel)
      for (int64_t at = begin; row && at < end; at += line)
        lines.push_back(row + at);
    return lines;
  }

  int64_t rowBytes;
  std::vector<const std::byte *> rows, next;

private:
  std::vector<std::byte> memory;
  std::vector<const std::byte *> asked;
};

/// Rows of one stretch: those that nobody asked for at once, then the next.
TEST(ReadAhead, AsksForTheFirstRowsAtOnce) {
  Panels panels(4, 200);
  ReadAhead<Record> ahead = panels.read(/*wereNext=*/false);
  EXPECT_EQ(panels.take(), panels.linesOf(panels.rows, 0, 200));
  ahead.step(10 * 200);
  EXPECT_EQ(panels.take(), panels.linesOf(panels.next, 0, 200));
}

TEST(ReadAhead, AsksForTheNextRowsAtThePaceOfPacking) {
  Panels panels(4, 200);
  ReadAhead<Record> ahead = panels.read(/*wereNext=*/true);
  EXPECT_TRUE(panels.take().empty());
  const auto lines = panels.linesOf(panels.next, 0, 200);
  ahead.step(line - 1);
  EXPECT_TRUE(panels.take().empty());
  ahead.step(1);
  EXPECT_EQ(panels.take(), std::vector(lines.begin(), lines.begin() + 1));
  ahead.step(5 * line);
  EXPECT_EQ(panels.take(), std::vector(lines.begin() + 1, lines.begin() + 6));
  ahead.step(1 << 20);
  EXPECT_EQ(panels.take(), std::vector(lines.begin() + 6, lines.end()));
  ahead.step(1 << 20);
  EXPECT_TRUE(panels.take().empty());
}

/// A stretch of each row, the next one, which ends with the rows, and then the
/// first one of the next rows.
TEST(ReadAhead, AsksForStretchesOfWideRows) {
  constexpr int64_t stretch = 128 * 1024 / 4, rowBytes = 2 * stretch + 100;
  for (bool wereNext : {false, true}) {
    Panels panels(4, rowBytes);
    ReadAhead<Record> ahead = panels.read(wereNext);
    EXPECT_EQ(panels.take(),
              panels.linesOf(panels.rows, 0, wereNext ? 0 : stretch));
    ahead.step(4 * stretch);
    EXPECT_EQ(panels.take(), panels.linesOf(panels.rows, stretch, 2 * stretch));
    ahead.step(4 * 2 * line);
    EXPECT_EQ(panels.take(),
              panels.linesOf(panels.rows, 2 * stretch, rowBytes));
    ahead.step(4 * rowBytes);
    EXPECT_EQ(panels.take(), panels.linesOf(panels.next, 0, stretch));
  }
}

TEST(ReadAhead, PassesOverRowsThatAreAbsent) {
  Panels panels(4, 128);
  panels.rows[1] = panels.next[0] = nullptr;
  ReadAhead<Record> ahead = panels.read(/*wereNext=*/false);
  EXPECT_EQ(panels.take(), panels.linesOf(panels.rows, 0, 128));
  ahead.step(2 * line);
  EXPECT_TRUE(panels.take().empty());
  ahead.step(6 * line);
  EXPECT_EQ(panels.take(), panels.linesOf(panels.next, 0, 128));
}

TEST(ReadAhead, EndsWithTheRowsWhereNoneAreNext) {
  Panels panels(3, 128);
  panels.next.clear();
  ReadAhead<Record> ahead = panels.read(/*wereNext=*/false);
  EXPECT_EQ(panels.take(), panels.linesOf(panels.rows, 0, 128));
  ahead.step(1 << 20);
  EXPECT_TRUE(panels.take().empty());
}

TEST(ReadAhead, OfNoRowsAsksForNothing) {
  for (bool wereNext : {false, true}) {
    Panels panels(0, 128);
    ReadAhead<Record> ahead = panels.read(wereNext);
    ahead.step(1 << 20);
    EXPECT_TRUE(panels.take().empty());
  }
}

} // namespace
} // namespace kf
