//===- GrammarVocabulary.cpp - Tokens by their bytes ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/GrammarVocabulary.h"

#include "runtime/core/Exceptions.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <string_view>

using namespace kf;

using Node = GrammarVocabulary::Node;

static constexpr size_t kMaxTokens = size_t(1) << 24;
static constexpr size_t kMaxTokenBytes = 0xffff;
static constexpr size_t kMaxBytes = size_t(1) << 30;

/// Characters of `bytes` if they are plain, or 0.
static int plainCharacters(std::string_view bytes) {
  int characters = 0;
  for (; !bytes.empty(); ++characters) {
    const Utf8Step step = stepUtf8(bytes);
    if (step.kind != Utf8Step::Kind::Character || step.character < 0x20 ||
        step.character == '"' || step.character == '\\' ||
        step.character == 0x7f)
      return 0;
    bytes.remove_prefix(step.length);
  }
  return characters;
}

/// Makes the trie of tokens that are sorted by their bytes. `lengths` are their
/// characters, by token.
static std::vector<Node> makeTrie(const GrammarVocabulary &vocabulary,
                                  const std::vector<int32_t> &sorted,
                                  const std::vector<uint8_t> &lengths) {
  std::vector<Node> nodes;
  std::vector<uint32_t> open; // nodes from the first byte to the last one's
  auto closeTo = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) {
      Node &closed = nodes[open.back()];
      closed.end = static_cast<uint32_t>(nodes.size());
      if (open.size() > 1) {
        Node &above = nodes[open[open.size() - 2]];
        above.longest = std::max<uint8_t>(above.longest, closed.longest);
      }
    }
  };
  std::string_view before;
  for (int32_t token : sorted) {
    const std::string_view bytes = vocabulary.bytes(token);
    const size_t shared =
        std::ranges::mismatch(before, bytes).in1 - before.begin();
    closeTo(shared);
    for (size_t i = shared; i < bytes.size(); ++i) {
      open.push_back(static_cast<uint32_t>(nodes.size()));
      nodes.push_back({0, -1, static_cast<uint16_t>(i + 1),
                       static_cast<uint8_t>(bytes[i]), 0, 0});
    }
    Node &node = nodes[open.back()];
    if (node.token < 0)
      node.token = token;
    else
      node.hasEqual = 1;
    node.longest = std::max<uint8_t>(node.longest, lengths[token]);
    before = bytes;
  }
  closeTo(0);
  return nodes;
}

bool GrammarVocabulary::isEnd(int32_t id) const {
  return std::ranges::binary_search(endIds, id);
}

bool GrammarVocabulary::hasLonger(std::string_view bytes) const {
  const auto goesOn = [&](std::span<const Node> trie) {
    size_t begin = 0, end = trie.size();
    for (char c : bytes) {
      while (begin < end && trie[begin].byte != static_cast<uint8_t>(c))
        begin = trie[begin].end;
      if (begin == end)
        return false;
      end = trie[begin++].end;
    }
    return begin < end;
  };
  return bytes.size() < deepest &&
         (goesOn(plainNodes) || goesOn(otherNodes) || goesOn(longNodes));
}

Result<std::shared_ptr<const GrammarVocabulary>>
GrammarVocabulary::create(std::span<const GrammarToken> tokens,
                          std::vector<int32_t> ends) {
  using Made = Result<std::shared_ptr<const GrammarVocabulary>>;
  return catchExceptions([&]() -> Made {
    if (tokens.empty() || tokens.size() > kMaxTokens)
      return Status::error("a vocabulary of " + std::to_string(tokens.size()) +
                           " tokens; grammars take 1 to " +
                           std::to_string(kMaxTokens));
    auto made = std::make_shared<GrammarVocabulary>();
    GrammarVocabulary &self = *made;
    self.count = tokens.size();
    std::ranges::sort(ends);
    ends.erase(std::ranges::unique(ends).begin(), ends.end());
    for (int32_t id : ends)
      if (id < 0 || size_t(id) >= tokens.size())
        return Status::error("end token " + std::to_string(id) +
                             " is not in the vocabulary of " +
                             std::to_string(tokens.size()) + " tokens");
    self.endIds = std::move(ends);

    std::vector<int32_t> plain, other, longer;
    std::vector<uint8_t> lengths(tokens.size());
    self.starts.reserve(tokens.size() + 1);
    for (size_t id = 0; id < tokens.size(); ++id) {
      self.starts.push_back(static_cast<uint32_t>(self.allBytes.size()));
      const GrammarToken &token = tokens[id];
      if (token.bytes.size() > kMaxTokenBytes)
        return Status::error("token " + std::to_string(id) + " has " +
                             std::to_string(token.bytes.size()) +
                             " bytes; grammars take " +
                             std::to_string(kMaxTokenBytes));
      const auto number = static_cast<int32_t>(id);
      if (token.special || token.bytes.empty() || self.isEnd(number))
        continue;
      self.allBytes += token.bytes;
      if (self.allBytes.size() > kMaxBytes)
        return Status::error("the tokens have more than 1 GiB of bytes");
      self.deepest = std::max(self.deepest, token.bytes.size());
      if (token.bytes.size() <= kMaxShort)
        lengths[id] = static_cast<uint8_t>(plainCharacters(token.bytes));
      if (token.bytes.size() > kMaxShort)
        longer.push_back(number);
      else
        (lengths[id] ? plain : other).push_back(number);
    }
    self.starts.push_back(static_cast<uint32_t>(self.allBytes.size()));

    self.equals.assign(tokens.size(), -1);
    for (std::vector<int32_t> *list : {&plain, &other, &longer}) {
      // By bytes, then by id; std::string_view compares unsigned bytes.
      std::ranges::sort(*list, [&](int32_t a, int32_t b) {
        const int order = self.bytes(a).compare(self.bytes(b));
        return order ? order < 0 : a < b;
      });
      for (size_t i = 1; i < list->size(); ++i)
        if (self.bytes((*list)[i - 1]) == self.bytes((*list)[i]))
          self.equals[(*list)[i - 1]] = (*list)[i];
    }
    self.plainNodes = makeTrie(self, plain, lengths);
    self.otherNodes = makeTrie(self, other, lengths);
    self.longNodes = makeTrie(self, longer, lengths);

    // Tokens lie in the order of the nodes; equal ones follow one another.
    size_t before = 0;
    for (const Node &node : self.plainNodes) {
      self.plainPlaces.push_back(static_cast<uint32_t>(before));
      for (int32_t token = node.token; token >= 0; token = self.equals[token])
        ++before;
    }
    self.plainPlaces.push_back(static_cast<uint32_t>(before));

    const size_t words = self.maskWords();
    self.plainMasks.resize(words * kMaxPlain);
    for (int32_t token : plain)
      for (int length = lengths[token]; length <= kMaxPlain; ++length)
        self.plainMasks[(length - 1) * words + token / 32] |= uint32_t(1)
                                                              << token % 32;
    self.plainOrder = std::move(plain);
    return std::shared_ptr<const GrammarVocabulary>(std::move(made));
  });
}
