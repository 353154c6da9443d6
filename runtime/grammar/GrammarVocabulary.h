//===- GrammarVocabulary.h - Tokens by their bytes --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_GRAMMARVOCABULARY_H
#define KF_RUNTIME_GRAMMAR_GRAMMARVOCABULARY_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// A token with its bytes.
struct GrammarToken {
  std::string bytes; ///< any; empty: the token stands for no text
  /// What stands for no text of its own, such as a control token: no grammar
  /// allows it. End tokens need not be marked.
  bool special = false;
};

/// The tokens of a model as grammars see them: tries of their bytes. Read-only
/// once made; any number of threads may share one.
class GrammarVocabulary {
public:
  /// Makes the tries of `tokens`, by id; 2^24 tokens of 64 KiB at most. `ends`
  /// are the ids that end a text: each is less than the number of tokens, and
  /// is allowed exactly where a grammar lets the text end.
  static Result<std::shared_ptr<const GrammarVocabulary>>
  create(std::span<const GrammarToken> tokens, std::vector<int32_t> ends);

  /// How many tokens there are, special ones too.
  size_t size() const { return count; }
  /// Words of a mask: ceil(size() / 32).
  size_t maskWords() const { return (count + 31) / 32; }
  std::span<const int32_t> ends() const { return endIds; }
  bool isEnd(int32_t id) const;
  /// The bytes of a token that texts may hold; empty for the others.
  std::string_view bytes(int32_t id) const {
    return {allBytes.data() + starts[id], starts[id + 1] - starts[id]};
  }

  /// A node of a trie. Nodes lie in the order of their strings, so that those
  /// below one follow it, up to its `end`.
  struct Node {
    uint32_t end;   ///< the node behind those below this one
    int32_t token;  ///< the first token of this string, or -1
    uint16_t depth; ///< bytes of the string, from 1
    uint8_t byte;   ///< the last one
    /// Of a plain trie: most characters of a string that begins so.
    uint8_t longest : 7;
    uint8_t hasEqual : 1; ///< more tokens have this string
  };

  /// Bytes of a short token. There are few others.
  static constexpr size_t kMaxShort = 32;
  /// Short tokens of valid UTF-8, without control characters, quotation marks
  /// and backslashes: most strings take all of them, and there are masks for
  /// those of few characters.
  static constexpr int kMaxPlain = kMaxShort;
  std::span<const Node> plainTrie() const { return plainNodes; }
  /// The tokens of the plain trie's node number `index`, and of those below it.
  std::span<const int32_t> plainTokens(const Node &node, size_t index) const {
    return {plainOrder.data() + plainPlaces[index],
            plainOrder.data() + plainPlaces[node.end]};
  }
  /// Other short tokens.
  std::span<const Node> otherTrie() const { return otherNodes; }
  std::span<const Node> longTrie() const { return longNodes; }
  /// The mask of plain tokens of at most `characters` characters, of 1 to
  /// kMaxPlain.
  std::span<const uint32_t> plainMask(int characters) const {
    return {plainMasks.data() + size_t(characters - 1) * maskWords(),
            maskWords()};
  }
  /// The next token with the same bytes as `token`, or -1.
  int32_t nextEqual(int32_t token) const { return equals[token]; }
  size_t maxDepth() const { return deepest; }
  /// Whether a token begins with `bytes`, of which there is one at least, and
  /// goes on behind them.
  bool hasLonger(std::string_view bytes) const;

private:
  size_t count = 0;
  size_t deepest = 0;
  std::vector<int32_t> endIds; ///< sorted, each once
  std::string allBytes;
  std::vector<uint32_t> starts; ///< by token, and one more
  std::vector<int32_t> equals;  ///< by token
  std::vector<Node> plainNodes, otherNodes, longNodes;
  std::vector<int32_t> plainOrder;   ///< tokens of the plain trie, in its order
  std::vector<uint32_t> plainPlaces; ///< by node, and one more, in plainOrder
  std::vector<uint32_t> plainMasks;  ///< [kMaxPlain, maskWords()]
};

} // namespace kf

#endif // KF_RUNTIME_GRAMMAR_GRAMMARVOCABULARY_H
