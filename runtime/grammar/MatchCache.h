//===- MatchCache.h - Places of texts, and their masks ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_MATCHCACHE_H
#define KF_RUNTIME_GRAMMAR_MATCHCACHE_H

#include "runtime/grammar/GrammarVocabulary.h"
#include "runtime/grammar/Place.h"
#include "runtime/grammar/Rows.h"

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace kf::grammar {

/// What is known of the texts of a grammar: states of the lexer, rows of the
/// parser, masks. Grows as it is asked. One thread. Throws Failure.
class MatchCache {
public:
  MatchCache(std::shared_ptr<const Rules> rules,
             std::shared_ptr<const GrammarVocabulary> vocabulary,
             size_t maxBytes, Fuel &fuel);

  const GrammarVocabulary &vocabulary() const { return *words; }
  const std::shared_ptr<const Rules> &rules() const { return compiled; }
  const std::shared_ptr<const GrammarVocabulary> &sharedVocabulary() const {
    return words;
  }

  /// The place in front of an empty text.
  Place begin() const;
  /// The place behind `byte`, with no threads and no end where it may not come.
  Place step(const Place &place, uint8_t byte, Fuel &fuel);
  /// Puts the tokens that may come next into `mask`, of the vocabulary's words.
  void fillMask(const Place &place, std::span<uint32_t> mask, Fuel &fuel);
  /// A byte, if each continuation begins with it, or -1.
  int forcedByte(const Place &place, Fuel &fuel);

  /// Puts places of `from`, of the same rules, here.
  void copyPlaces(const MatchCache &from, std::span<Place *const> places,
                  Fuel &fuel);

  /// Bytes beyond those of a cache that was not asked for anything.
  size_t grown() const { return memory() - base; }
  /// Set where an allocation failed in the middle of a change.
  bool broken = false;

private:
  size_t memory() const;

  /// Ways to read the text up to a node of the trie: in `threads`, but for one
  /// that is alone.
  struct Frame {
    uint32_t begin = 0, count = 0;
    Thread only{}; ///< the first
  };

  bool stepThreads(Frame from, uint8_t byte, Frame &to, Fuel &fuel);
  bool isWhole(const GrammarVocabulary::Node &node, size_t index, uint32_t from,
               uint32_t to, Fuel &fuel);
  bool isMostlyWhole(uint32_t state, Fuel &fuel);
  void setPlain(const GrammarVocabulary::Node &node, size_t index, bool value,
                std::span<uint32_t> mask, Fuel &fuel);
  size_t walk(std::span<const GrammarVocabulary::Node> trie, int settled,
              bool areSet, std::span<uint32_t> mask, Fuel &fuel);

  size_t walkFrom(const Place &place,
                  std::span<const GrammarVocabulary::Node> trie, int settled,
                  bool areSet, std::span<uint32_t> mask, Fuel &fuel);
  size_t fillShort(const Place &place, std::span<uint32_t> mask, Fuel &fuel);

  std::shared_ptr<const Rules> compiled;
  std::shared_ptr<const GrammarVocabulary> words;
  Lexer lexer;
  Rows rows;

  // Of a walk:
  std::vector<Thread> threads;
  std::vector<Frame> frames; ///< by depth
  std::vector<Rows::Ended> ended;
  std::vector<Rows::Ended> lastEnded; ///< what led to `lastRow`
  uint32_t lastRow = 0;
  /// What is behind the threads has less than kMaxShort bytes.
  bool isShort = false;

  struct KnownMask {
    std::vector<Thread> threads;
    bool hasLong; ///< and of long tokens
    std::vector<uint32_t> mask;
  };
  std::unordered_map<uint64_t, KnownMask> masks; ///< of short tokens
  size_t maxMasks;
  size_t base; ///< memory() of the grammar alone
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_MATCHCACHE_H
