//===- ExpressionsTest.cpp - Regular expressions of bytes -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/Expressions.h"
#include "runtime/grammar/CharacterSet.h"
#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::grammar;

namespace {

class ExpressionsTest : public testing::Test {
protected:
  bool matches(ExprId id, std::string_view text) {
    return set.matches(id, text, fuel);
  }
  bool isLive(ExprId id) {
    std::vector<uint8_t> bytes;
    for (int byte = 0; byte < 256; ++byte)
      bytes.push_back(static_cast<uint8_t>(byte));
    return set.isLive(id, bytes, fuel);
  }

  Expressions set{100'000};
  Fuel fuel{10'000'000, nullptr};
};

TEST_F(ExpressionsTest, EqualOnesAreOne) {
  const ExprId a = set.byte('a'), b = set.byte('b'), c = set.byte('c');
  EXPECT_EQ(set.concat(set.concat(a, b), c), set.literal("abc"));
  EXPECT_EQ(set.either({a, b}), set.bytes(ByteSet::range('a', 'b')));
  EXPECT_EQ(set.either({a, Expressions::kNothing}), a);
  EXPECT_EQ(set.both({a, Expressions::kAnything}), a);
  EXPECT_EQ(set.both({a, b}), Expressions::kNothing);
  EXPECT_EQ(set.complement(set.complement(a)), a);
  EXPECT_EQ(set.complement(Expressions::kNothing), Expressions::kAnything);
  EXPECT_EQ(set.concat(a, Expressions::kNothing), Expressions::kNothing);
  EXPECT_EQ(set.repeat(a, 1, 1), a);
  EXPECT_EQ(set.repeat(Expressions::kNothing, 0, 3), Expressions::kEmpty);
}

TEST_F(ExpressionsTest, Matches) {
  const ExprId words = set.literals({"a", "ab", "abc", "b", ""}, fuel);
  for (const char *text : {"a", "ab", "abc", "b", ""})
    EXPECT_TRUE(matches(words, text)) << text;
  for (const char *text : {"c", "abcd", "ba"})
    EXPECT_FALSE(matches(words, text)) << text;

  const ExprId counted = set.repeat(set.literal("ab"), 2, 3);
  EXPECT_FALSE(matches(counted, "ab"));
  EXPECT_TRUE(matches(counted, "abab"));
  EXPECT_TRUE(matches(counted, "ababab"));
  EXPECT_FALSE(matches(counted, "abababab"));

  const ExprId other = set.both(
      {set.star(set.bytes(ByteSet::range('a', 'z'))), set.complement(words)});
  EXPECT_TRUE(matches(other, "abcd"));
  EXPECT_FALSE(matches(other, "ab"));
  EXPECT_FALSE(matches(other, "A"));

  const ExprId sevens = set.multiple(7);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(matches(sevens, std::to_string(i)), i % 7 == 0) << i;
}

TEST_F(ExpressionsTest, IntersectionsWithoutATextAreDead) {
  const ExprId letters = set.star(set.bytes(ByteSet::range('a', 'z')));
  const ExprId four = set.repeat(set.bytes(ByteSet::all()), 4, 4);
  EXPECT_TRUE(isLive(set.both({letters, four})));
  EXPECT_FALSE(isLive(set.both({set.repeat(set.literal("abc"), 1, 9), four})));
  EXPECT_FALSE(isLive(set.concat(
      set.byte('x'), set.both({set.repeat(set.literal("abc"), 1, 9), four}))));
  // 40 or 60 of them, but at most 50: only a's begin so.
  const ExprId some = set.both({set.either({set.repeat(set.byte('a'), 40, 40),
                                            set.repeat(set.byte('b'), 60, 60)}),
                                set.repeat(set.bytes(ByteSet::all()), 0, 50)});
  EXPECT_TRUE(isLive(set.derivative(some, 'a', fuel)));
  EXPECT_FALSE(isLive(set.derivative(some, 'b', fuel)));
}

TEST_F(ExpressionsTest, FarBoundsAreNone) {
  const ExprId a = set.byte('a'), end = set.byte('!');
  auto counted = [&](uint32_t least, uint32_t most) {
    return set.relaxed(set.concat(set.repeat(a, least, most), end), 32, fuel);
  };
  EXPECT_EQ(counted(0, 33), counted(0, 100000));
  EXPECT_EQ(counted(50, 60), counted(70, 100000));
  EXPECT_NE(counted(0, 32), counted(0, 33));
  EXPECT_NE(counted(32, 100), counted(33, 100));
  // Whether an intersection is empty depends on them.
  const ExprId both =
      set.both({set.repeat(a, 0, 50), set.star(set.literal("aa"))});
  EXPECT_EQ(set.relaxed(both, 32, fuel), both);
}

TEST_F(ExpressionsTest, Characters) {
  const CharacterSet some({{'a', 'c'},
                           {0x7f, 0x801},
                           {0xd000, 0xe123},
                           {0xfff0, 0x100ff},
                           {0x10fffe, 0x10ffff}});
  const ExprId inside = some.utf8(set), outside = some.complement().utf8(set);
  for (char32_t c = 0; c <= 0x10ffff; c += c < 0x900 ? 1 : 0x3d) {
    if (c >= 0xd800 && c <= 0xdfff)
      continue;
    std::string text;
    appendUtf8(text, c);
    EXPECT_EQ(matches(inside, text), some.has(c)) << uint32_t(c);
    EXPECT_EQ(matches(outside, text), !some.has(c)) << uint32_t(c);
  }
  EXPECT_FALSE(matches(inside, "\xed\xa0\x80")); // a surrogate
  EXPECT_FALSE(matches(outside, "\xc0\x80"));    // overlong
}

TEST_F(ExpressionsTest, LimitsAreFailures) {
  Expressions small(100);
  EXPECT_THROW(small.literal(std::string(1000, 'a')), Failure);
  ExprId nested = set.byte('a');
  EXPECT_THROW(
      {
        for (int i = 0; i < 1000; ++i)
          nested = set.complement(set.repeat(nested, 1, 2));
      },
      Failure);
  Fuel little(10, nullptr);
  EXPECT_THROW(
      set.matches(set.star(set.byte('a')), std::string(100, 'a'), little),
      Failure);
}

// What is made of expressions that are there already has a price, too.
TEST_F(ExpressionsTest, MakingAndCopyingArePaidFor) {
  const size_t common = set.size();
  Expressions grown = set;
  const ExprId text = grown.literal(std::string(1000, 'a') + "b");
  std::vector<ExprId> copied;
  {
    Fuel little(500, nullptr);
    EXPECT_THROW(set.copyFrom(grown, {text}, common, copied, little), Failure);
  }
  set.copyFrom(grown, {text}, common, copied, fuel);
  EXPECT_TRUE(matches(copied[0], std::string(1000, 'a') + "b"));

  Fuel some(2500, nullptr);
  grown.payWith(&some);
  EXPECT_EQ(grown.concat(text, Expressions::kEmpty), text);
  grown.concat(text, text);
  EXPECT_THROW(grown.concat(text, text), Failure);
  grown.payWith(nullptr);
  EXPECT_NE(grown.concat(text, text), text);
}

} // namespace
