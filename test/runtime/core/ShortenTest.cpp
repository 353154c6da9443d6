//===- ShortenTest.cpp - Long texts inside error lines --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Shorten.h"

#include <gtest/gtest.h>

#include <string>

using namespace kf;

namespace {

constexpr size_t most = 100;

TEST(ShortenTest, ShortTextsAreKept) {
  EXPECT_EQ(shorten("", most), "");
  EXPECT_EQ(shorten(std::string(most, 'a'), most), std::string(most, 'a'));
}

TEST(ShortenTest, LongTextsKeepTheirEndsAndSayWhatIsLeftOut) {
  const std::string text = "cannot " + std::string(1000, 'a') + " do it";
  EXPECT_EQ(shorten(text, most), "cannot " + std::string(47, 'a') +
                                     "... (942 bytes left out) ..." +
                                     std::string(11, 'a') + " do it");
  const size_t size = shorten(std::string(10'000'000, 'a'), most).size();
  EXPECT_LE(size, most);
  EXPECT_GE(size, most - 3);
}

TEST(ShortenTest, CharactersAreLeftOutAsAWhole) {
  for (const std::string character : {"\u00e9", "\u20ac", "\U0001f600"})
    for (size_t offset = 0; offset < character.size(); ++offset) {
      std::string text(offset, 'a');
      while (text.size() < 1000)
        text += character;
      const std::string cut = shorten(text, most);
      EXPECT_LE(cut.size(), most);
      const size_t note = cut.find("... (");
      const size_t tail = cut.find(") ...") + 5;
      ASSERT_NE(note, std::string::npos);
      EXPECT_EQ((note - offset) % character.size(), 0u) << cut;
      EXPECT_EQ(cut.substr(tail, character.size()), character);
      EXPECT_EQ((cut.size() - tail) % character.size(), 0u) << cut;
      // What the note says and what is shown are the whole text.
      EXPECT_EQ(std::stoul(cut.substr(note + 5)) + note + cut.size() - tail,
                text.size());
    }
}

TEST(ShortenTest, BytesThatAreNoTextAreCutToo) {
  EXPECT_LE(shorten(std::string(5000, '\x80'), most).size(), most);
}

} // namespace
