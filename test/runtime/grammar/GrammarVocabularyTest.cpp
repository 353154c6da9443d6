//===- GrammarVocabularyTest.cpp - Tokens by their bytes ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/GrammarVocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace kf;

namespace {

/// The tokens of a trie by walking it, with their bytes.
std::vector<std::pair<std::string, int32_t>>
walk(const GrammarVocabulary &vocabulary,
     std::span<const GrammarVocabulary::Node> trie) {
  std::vector<std::pair<std::string, int32_t>> found;
  std::string text;
  for (size_t i = 0; i < trie.size(); ++i) {
    text.resize(trie[i].depth - 1);
    text += static_cast<char>(trie[i].byte);
    EXPECT_GT(trie[i].end, i);
    for (int32_t token = trie[i].token; token >= 0;
         token = vocabulary.nextEqual(token))
      found.push_back({text, token});
  }
  return found;
}

TEST(GrammarVocabulary, EachTokenIsInOneTrie) {
  std::vector<GrammarToken> tokens;
  for (const char *bytes :
       {"b", "a", "ab", "abc", "a", "\"", "\n", "\xc3\xa9", "\xc3", "a\"b",
        "abcdefghijabcdefghijabcdefghijabc", "\xff"})
    tokens.push_back({bytes, false});
  tokens.push_back({"special", true});
  tokens.push_back({"</s>", false});
  tokens.push_back({"", false});
  const auto end = static_cast<int32_t>(tokens.size() - 2);
  const auto vocabulary = GrammarVocabulary::create(tokens, {end, end}).take();
  EXPECT_EQ(vocabulary->size(), tokens.size());
  EXPECT_EQ(vocabulary->maskWords(), 1u);
  EXPECT_TRUE(vocabulary->isEnd(end));
  EXPECT_FALSE(vocabulary->isEnd(0));
  EXPECT_EQ(vocabulary->ends().size(), 1u);

  std::vector<int32_t> seen;
  auto check = [&](std::span<const GrammarVocabulary::Node> trie) {
    for (const auto &[text, token] : walk(*vocabulary, trie)) {
      EXPECT_EQ(text, tokens[token].bytes);
      EXPECT_EQ(text, vocabulary->bytes(token));
      seen.push_back(token);
    }
    return walk(*vocabulary, trie).size();
  };
  EXPECT_EQ(check(vocabulary->plainTrie()), 6u);
  EXPECT_EQ(check(vocabulary->otherTrie()), 5u);
  EXPECT_EQ(check(vocabulary->longTrie()), 1u);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));

  // b, a, a and é; ab, too; abc, too.
  EXPECT_EQ(vocabulary->plainMask(1)[0], 1u | 2 | 16 | 128);
  EXPECT_EQ(vocabulary->plainMask(2)[0], 1u | 2 | 16 | 128 | 4);
  EXPECT_EQ(vocabulary->plainMask(GrammarVocabulary::kMaxPlain)[0],
            1u | 2 | 16 | 128 | 4 | 8);
  // What begins with "a": a twice, ab, abc.
  const auto below = vocabulary->plainTokens(vocabulary->plainTrie()[0], 0);
  EXPECT_EQ(std::vector<int32_t>(below.begin(), below.end()),
            (std::vector<int32_t>{1, 4, 2, 3}));
  EXPECT_EQ(vocabulary->plainTrie()[0].longest, 3);
}

TEST(GrammarVocabulary, Faults) {
  EXPECT_NE(GrammarVocabulary::create({}, {}).message().find("0 tokens"),
            std::string::npos);
  const std::vector<GrammarToken> one{{"a", false}};
  EXPECT_NE(GrammarVocabulary::create(one, {1}).message().find("end token 1"),
            std::string::npos);
  EXPECT_FALSE(GrammarVocabulary::create(one, {-1}).ok());
  const std::vector<GrammarToken> large{{std::string(100000, 'a'), false}};
  EXPECT_NE(GrammarVocabulary::create(large, {}).message().find(
                "token 0 has 100000 bytes"),
            std::string::npos);
}

} // namespace
