//===- ScoreBpe.cpp - Byte pair encoding by scores ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/ScoreBpe.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <unordered_map>

using namespace kf;

ScoreBpe::ScoreBpe(ScoredPieces scored) : pieces(std::move(scored)) {
  const Vocabulary &vocabulary = pieces.vocabulary();
  for (const Vocabulary::Token &token : vocabulary.all())
    if (token.kind == TokenKind::UserDefined)
      userDefined.add(vocabulary.textOf(token), token.id);
}

std::vector<ScoreBpe::Symbol> ScoreBpe::cut(std::string_view word) const {
  std::vector<Symbol> symbols;
  for (size_t at = 0; at < word.size();) {
    std::string_view rest = word.substr(at);
    ByteTrie::Match match = userDefined.longestPrefix(rest);
    bool frozen = match.value != ByteTrie::kNone;
    size_t length = frozen ? match.length : stepUtf8(rest).length;
    int32_t index = static_cast<int32_t>(symbols.size());
    symbols.push_back({at, length, index - 1, index + 1, frozen});
    at += length;
  }
  if (!symbols.empty())
    symbols.back().next = -1;
  return symbols;
}

Status ScoreBpe::encode(std::string_view word, std::vector<int32_t> &ids,
                        CancelFlag cancelled) const {
  struct Candidate {
    float score;
    int32_t left, right;
    size_t length;
  };
  // A heap's front is its greatest element.
  auto later = [](const Candidate &a, const Candidate &b) {
    return a.score != b.score ? a.score < b.score : a.left > b.left;
  };
  std::vector<Symbol> symbols = cut(word);
  std::vector<Candidate> heap;
  /// How long the left side was of pieces that are not to be used.
  std::unordered_map<std::string_view, size_t> unused;
  auto propose = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0 || symbols[left].frozen || symbols[right].frozen)
      return false;
    size_t length = symbols[left].length + symbols[right].length;
    std::string_view text = word.substr(symbols[left].begin, length);
    const Vocabulary::Token *token = pieces.find(text);
    if (!token)
      return false;
    heap.push_back({pieces.scoreOf(token->id), left, right, length});
    if (token->kind == TokenKind::Unused)
      unused[text] = symbols[left].length;
    return true;
  };
  for (size_t i = 1; i < symbols.size(); ++i) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    propose(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  }
  std::make_heap(heap.begin(), heap.end(), later);

  while (!heap.empty()) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    std::pop_heap(heap.begin(), heap.end(), later);
    Candidate best = heap.back();
    heap.pop_back();
    Symbol &left = symbols[best.left];
    Symbol &right = symbols[best.right];
    // Skip pairs that an earlier join took apart.
    if (left.length == 0 || right.length == 0 ||
        left.length + right.length != best.length)
      continue;
    left.length = best.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0)
      symbols[left.next].previous = best.left;
    if (propose(left.previous, best.left))
      std::push_heap(heap.begin(), heap.end(), later);
    if (propose(best.left, left.next))
      std::push_heap(heap.begin(), heap.end(), later);
  }

  bool afterUnknown = false;
  std::vector<std::string_view> stack;
  for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[i].next) {
    stack.push_back(word.substr(symbols[i].begin, symbols[i].length));
    while (!stack.empty()) {
      std::string_view text = stack.back();
      stack.pop_back();
      const Vocabulary::Token *token = pieces.find(text);
      auto split = token && token->kind == TokenKind::Unused ? unused.find(text)
                                                             : unused.end();
      if (split != unused.end()) {
        stack.push_back(text.substr(split->second));
        stack.push_back(text.substr(0, split->second));
        continue;
      }
      if (token)
        ids.push_back(token->id);
      else
        pieces.appendUnknown(text, afterUnknown, ids);
      afterUnknown = !token;
    }
  }
  return Status();
}
