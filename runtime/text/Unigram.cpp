//===- Unigram.cpp - The likeliest pieces ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Unigram.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <limits>
#include <ranges>

using namespace kf;

/// How much less an unknown character scores than the worst piece.
static constexpr float kUnknownPenalty = 10;
/// The id of a node that is an unknown character.
static constexpr int32_t kUnknown = -1;

Unigram::Unigram(ScoredPieces scored) : pieces(std::move(scored)) {
  float lowest = std::numeric_limits<float>::max();
  highestScore = std::numeric_limits<float>::min();
  const Vocabulary &vocabulary = pieces.vocabulary();
  for (const Vocabulary::Token &token : vocabulary.all()) {
    if (ScoredPieces::isReachable(token.kind) &&
        token.kind != TokenKind::Unused)
      trie.add(vocabulary.textOf(token), token.id);
    if (token.kind == TokenKind::Normal) {
      lowest = std::min(lowest, pieces.scoreOf(token.id));
      highestScore = std::max(highestScore, pieces.scoreOf(token.id));
    }
  }
  unknownScore = lowest - kUnknownPenalty;
}

Status Unigram::encode(std::string_view word, std::vector<int32_t> &ids,
                       CancelFlag cancelled) const {
  /// The best way to get to a byte: its last piece and where that starts.
  struct Node {
    float score = 0;
    int32_t id = kUnknown;
    ptrdiff_t begin = -1; ///< -1: no way yet
  };
  std::vector<Node> nodes(word.size() + 1);
  for (size_t at = 0; at < word.size();) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    const float before = nodes[at].score;
    const size_t length = stepUtf8(word.substr(at)).length;
    bool known = false;
    int32_t state = ByteTrie::kRoot;
    auto reach = [&](size_t end, double score, int32_t id) {
      Node &node = nodes[end];
      const float total = static_cast<float>(score + before);
      if (node.begin < 0 || total > node.score)
        node = {total, id, static_cast<ptrdiff_t>(at)};
    };
    for (size_t i = at; i < word.size(); ++i) {
      state = trie.step(state, static_cast<uint8_t>(word[i]));
      if (state == ByteTrie::kNone)
        break;
      const int32_t id = trie.valueAt(state);
      if (id == ByteTrie::kNone)
        continue;
      const size_t size = i + 1 - at;
      // A user-defined piece is to win always.
      bool userDefined =
          pieces.vocabulary().find(id)->kind == TokenKind::UserDefined;
      reach(i + 1, userDefined ? size * highestScore - 0.1 : pieces.scoreOf(id),
            id);
      known |= size == length;
    }
    if (!known)
      reach(at + length, unknownScore, kUnknown);
    at += length;
  }

  std::vector<size_t> ends;
  for (size_t end = word.size(); end > 0;
       end = static_cast<size_t>(nodes[end].begin))
    ends.push_back(end);
  bool afterUnknown = false;
  size_t begin = 0;
  for (size_t end : std::views::reverse(ends)) {
    const int32_t id = nodes[end].id;
    if (id == kUnknown)
      pieces.appendUnknown(word.substr(begin, end - begin), afterUnknown, ids);
    else
      ids.push_back(id);
    afterUnknown = id == kUnknown;
    begin = end;
  }
  return Status();
}
