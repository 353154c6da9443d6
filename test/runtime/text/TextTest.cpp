//===- TextTest.cpp - UTF-8, letters, normalization, patterns -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/Nfc.h"
#include "runtime/text/Regex.h"
#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>

using namespace kf;

namespace {

TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(toValidUtf8("aé你🙂"), "aé你🙂");
  EXPECT_EQ(toValidUtf8("\xff"), "\ufffd");
  EXPECT_EQ(toValidUtf8("\xe4\xbd"), "\ufffd");
  EXPECT_EQ(toValidUtf8("\xe4\xbdz"), "\ufffdz");
  EXPECT_EQ(toValidUtf8("\xf0\x9f\x99\xf0\x9f"), "\ufffd\ufffd");
  EXPECT_EQ(toValidUtf8("\xc0\x80"), "\ufffd\ufffd");           // overlong
  EXPECT_EQ(toValidUtf8("\xe0\x9f\xbf"), "\ufffd\ufffd\ufffd"); // overlong
  EXPECT_EQ(toValidUtf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd"); // surrogate
  EXPECT_EQ(toValidUtf8("\xf4\x90\x80\x80"),
            "\ufffd\ufffd\ufffd\ufffd"); // past U+10FFFF
}

TEST(Utf8, FindsTheValidPrefix) {
  EXPECT_EQ(validUtf8Prefix(""), 0u);
  EXPECT_EQ(validUtf8Prefix("0123456789abcdef"), 16u);
  EXPECT_EQ(validUtf8Prefix("0123456789abcdé\x80z"), 16u);
}

TEST(Utf8, EncodesEveryCharacter) {
  for (char32_t c = 0; c < 0x110000; c += c < 0x1000 ? 1 : 37) {
    if (c >= 0xd800 && c < 0xe000)
      continue;
    std::string text;
    appendUtf8(text, c);
    Utf8Step step = stepUtf8(text);
    EXPECT_EQ(step.kind, Utf8Step::Kind::Character);
    EXPECT_EQ(step.length, text.size());
    EXPECT_EQ(step.character, c);
  }
}

TEST(ByteAlphabet, RoundTrips) {
  std::string bytes, back;
  for (int byte = 0; byte < 256; ++byte)
    bytes += static_cast<char>(byte);
  std::string letters = bytesToLetters(bytes);
  ASSERT_TRUE(lettersToBytes(letters, back));
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(bytesToLetters(" a\n"), "ĠaĊ");
  EXPECT_FALSE(lettersToBytes("a b", back));
  EXPECT_FALSE(lettersToBytes("你", back));
  EXPECT_FALSE(lettersToBytes("\xff", back));
}

TEST(Normalizer, Composes) {
  EXPECT_EQ(toNfc("plain é"), "plain é");
  EXPECT_EQ(toNfc("e\u0301"), "é");
  EXPECT_EQ(toNfc("\u1100\u1161\u11a8"), "각");      // Hangul
  EXPECT_EQ(toNfc("\u212b"), "Å");                   // a singleton
  EXPECT_EQ(toNfc("a\u0323\u0302"), "ậ");            // two marks
  EXPECT_EQ(toNfc("a\u0302\u0323"), "ậ");            // in either order
  EXPECT_EQ(toNfc("\u0958"), "\u0915\u093c");        // excluded
  EXPECT_EQ(toNfc("a\u0315\u0300"), "\u00e0\u0315"); // past a higher class
  EXPECT_EQ(toNfc("\u0301e"), "\u0301e");            // nothing before it
  std::string marks = "a";
  for (int i = 0; i < 100000; ++i)
    marks += i % 2 ? "\u0323" : "\u0302";
  EXPECT_EQ(toNfc(marks).size(), marks.size() + 2 - 4);
}

std::string matchesOf(std::string_view pattern, std::string_view text) {
  auto regex = Regex::compile(pattern);
  if (!regex.ok())
    return regex.message();
  auto matches = regex->findAll(text);
  if (!matches.ok())
    return matches.message();
  std::string result;
  for (Regex::Match match : *matches) {
    result += "[";
    result += text.substr(match.begin, match.end - match.begin);
    result += "]";
  }
  return result;
}

TEST(Regex, MatchesUnicode) {
  EXPECT_EQ(matchesOf(R"(\p{L}+)", "naïve 你好1"), "[naïve][你好]");
  EXPECT_EQ(matchesOf(R"(\s+)", "a\u2003\u0085b"), "[\u2003\u0085]");
  // Unicode took U+180E out of White_Space; PCRE2's own \s has it.
  EXPECT_EQ(matchesOf(R"(\s)", "\u180e"), "");
  EXPECT_EQ(matchesOf(R"([^\s]+)", "a\u180e b"), "[a\u180e][b]");
  EXPECT_EQ(matchesOf(R"(\S+)", "ab c"), "[ab][c]");
  EXPECT_EQ(matchesOf(R"(\w+)", "e\u0301_9-x"), "[e\u0301_9][x]");
  EXPECT_EQ(matchesOf(R"([\w-]+\W)", "a-b! c"), "[a-b!]");
  EXPECT_EQ(matchesOf(R"((?i:'s|'LL))", "'S'll's"), "['S]['ll]['s]");
  EXPECT_EQ(matchesOf(R"(\p{N}{1,3})", "12345"), "[123][45]");
  EXPECT_EQ(matchesOf(R"(\x41|\u0042|\x{1F642})", "AB🙂"), "[A][B][🙂]");
  EXPECT_EQ(matchesOf(R"(^a$)", "a\na"), "[a][a]");
}

TEST(Regex, StepsOverEmptyMatches) {
  EXPECT_EQ(matchesOf("a*", "baéa"), "[][a][a]");
  EXPECT_EQ(matchesOf("", "é"), "[][]");
  EXPECT_EQ(matchesOf("a", ""), "");
}

TEST(Regex, RefusesWhatMeansSomethingElse) {
  for (std::string pattern :
       {"[a[b]]",  "[[:alpha:]]", "[a&&b]",        "\\h",
        "\\K",     "\\R",         "\\1",           "\\b",
        "a{1,3}+", "a{,3}",       "(?<n>a)",       "(?i)a",
        "(?(1)a)", "(*ACCEPT)",   "(?R)",          "[]a]",
        "[a",      "\\",          "\\xff",         "\\p",
        "\\pL",    "\\x{}",       "\\x{110000000}"})
    EXPECT_NE(matchesOf(pattern, "a").find(" is not supported"),
              std::string::npos)
        << pattern << ": " << matchesOf(pattern, "a");
  for (std::string pattern :
       {"(", ")", "*", "\\p{NoSuchThing}", "(?<=a+)b", "[b-a]", "\xff"})
    EXPECT_NE(matchesOf(pattern, "a").find("regular expression"),
              std::string::npos)
        << pattern << ": " << matchesOf(pattern, "a");
  EXPECT_NE(Regex::compile(std::string(70000, 'a')).message(), "");
}

TEST(Regex, GivesUpInBoundedTime) {
  std::string text(40, 'a');
  EXPECT_NE(matchesOf("(?:a+)+[xy]", text).find("splitting text at byte"),
            std::string::npos);
}

TEST(Regex, HandlesLongMatches) {
  std::string text(300'000, 'a');
  auto regex = Regex::compile("(?:a|b|cd)+");
  ASSERT_TRUE(regex.ok());
  auto matches = regex->findAll(text);
  ASSERT_TRUE(matches.ok()) << matches.message();
  EXPECT_EQ(matches->size(), 1u);
}

} // namespace
