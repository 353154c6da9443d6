//===- MatchCache.cpp - Places of texts, and their masks ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/MatchCache.h"

#include <algorithm>

using namespace kf;
using namespace kf::grammar;

using Node = GrammarVocabulary::Node;

/// Nodes of a walk from which on its mask is worth keeping.
static constexpr size_t kDearWalk = 500;
/// Nodes below one from which on it is worth asking whether all are allowed.
static constexpr size_t kLargeSubtree = 32;

MatchCache::MatchCache(std::shared_ptr<const Rules> rules,
                       std::shared_ptr<const GrammarVocabulary> vocabulary,
                       size_t maxBytes, Fuel &fuel)
    : compiled(std::move(rules)), words(std::move(vocabulary)),
      lexer(*compiled, words->maxDepth(), maxBytes),
      rows(*compiled, lexer, maxBytes, fuel), frames(words->maxDepth() + 1),
      maxMasks(std::max<size_t>(
          maxBytes / 4 / (words->maskWords() * sizeof(uint32_t)), 1)),
      base(memory()) {}

Place MatchCache::begin() const {
  Place place;
  place.mayEnd = rows.mayEnd(Rows::kFirst);
  if (const uint32_t start = rows.start(Rows::kFirst); start != Lexer::kDead)
    place.threads.push_back({Rows::kFirst, start});
  return place;
}

/// Puts the threads behind `byte` behind those of `from`. Returns whether the
/// text may end there.
bool MatchCache::stepThreads(Frame from, uint8_t byte, Frame &to, Fuel &fuel) {
  fuel.spend(from.count);
  ended.clear();
  to.begin = from.begin + from.count;
  threads.resize(to.begin);
  for (uint32_t i = from.begin; i < to.begin; ++i) {
    const Thread thread = threads[i];
    const Lexer::Step step = lexer.step(thread.state, byte, fuel);
    if (step.isDead())
      continue;
    const uint32_t state = step.state();
    if (step.accepts())
      ended.push_back({thread.row, lexer.accepts(state)});
    if (lexer.goesOn(state))
      threads.push_back({thread.row, state});
  }
  bool mayEnd = false;
  if (!ended.empty()) {
    // Often the same as the last time.
    if (ended != lastEnded) {
      lastRow = rows.advance(ended, fuel);
      lastEnded = ended;
    }
    const uint32_t row = lastRow;
    mayEnd = rows.mayEnd(row);
    if (uint32_t start = rows.start(row); start != Lexer::kDead) {
      if (isShort)
        start = lexer.relaxed(start, Lexer::Short, fuel);
      threads.push_back({row, start});
    }
  }
  if (threads.size() - to.begin > 1) {
    std::sort(threads.begin() + to.begin, threads.end());
    threads.erase(std::unique(threads.begin() + to.begin, threads.end()),
                  threads.end());
  }
  to.count = static_cast<uint32_t>(threads.size() - to.begin);
  if (to.count)
    to.only = threads[to.begin];
  return mayEnd;
}

Place MatchCache::step(const Place &place, uint8_t byte, Fuel &fuel) {
  isShort = false;
  threads = place.threads;
  Frame to;
  Place next;
  next.mayEnd =
      stepThreads({0, static_cast<uint32_t>(threads.size())}, byte, to, fuel);
  next.threads.assign(threads.begin() + to.begin, threads.end());
  return next;
}

/// Whether all that begins with the node, whose byte leads from the state
/// `from` to `to`, goes on within the lexeme.
bool MatchCache::isWhole(const Node &node, size_t index, uint32_t from,
                         uint32_t to, Fuel &fuel) {
  if (node.longest == 0 || node.end - index <= kLargeSubtree)
    return false;
  const int reach = node.byte < 0x80 ? lexer.plainReach(to, fuel).all
                                     : lexer.reachBehind(from, node.byte, fuel);
  return reach >= node.longest;
}

/// Whether most plain tokens are in whole subtrees behind their first byte.
bool MatchCache::isMostlyWhole(uint32_t state, Fuel &fuel) {
  const std::span<const Node> trie = words->plainTrie();
  size_t whole = 0;
  for (size_t i = 0; i < trie.size(); i = trie[i].end) {
    const Lexer::Step step = lexer.step(state, trie[i].byte, fuel);
    if (!step.isDead() && isWhole(trie[i], i, state, step.state(), fuel))
      whole += trie[i].end - i;
  }
  return whole > trie.size() / 2;
}

void MatchCache::setPlain(const Node &node, size_t index, bool value,
                          std::span<uint32_t> mask, Fuel &fuel) {
  const auto tokens = words->plainTokens(node, index);
  fuel.spend(tokens.size() / 4);
  for (int32_t token : tokens) {
    const uint32_t bit = uint32_t(1) << token % 32;
    uint32_t &word = mask[token / 32];
    word = value ? word | bit : word & ~bit;
  }
}

/// Adds the tokens of a trie that frames[0] allows, but for those of at most
/// `settled` characters. With `areSet`, all tokens are in the mask, and those
/// that are not allowed go; then frames[0] is one thread. Returns how many
/// nodes it looked at.
size_t MatchCache::walk(std::span<const Node> trie, int settled, bool areSet,
                        std::span<uint32_t> mask, Fuel &fuel) {
  size_t visited = 0;
  for (size_t i = 0; i < trie.size();) {
    const Node &node = trie[i];
    if (node.longest <= settled && settled > 0) {
      i = node.end;
      continue;
    }
    ++visited;
    fuel.spend();
    const Frame from = frames[node.depth - 1];
    Frame &to = frames[node.depth];
    const bool isSet = areSet && node.depth == 1;
    bool isAllowed;
    if (from.count == 1) {
      const Lexer::Step step = lexer.step(from.only.state, node.byte, fuel);
      const bool whole = !step.isDead() &&
                         isWhole(node, i, from.only.state, step.state(), fuel);
      if (whole != isSet)
        setPlain(node, i, whole, mask, fuel);
      if (step.isDead() || whole) {
        i = node.end;
        continue;
      }
      if (!step.accepts()) {
        to = {from.begin + 1, 1, {from.only.row, step.state()}};
        isAllowed = true;
      } else {
        if (threads.size() <= from.begin)
          threads.resize(from.begin + 1);
        threads[from.begin] = from.only;
        isAllowed = stepThreads(from, node.byte, to, fuel);
      }
    } else {
      isAllowed = stepThreads(from, node.byte, to, fuel);
    }
    if (!isAllowed && !to.count) {
      i = node.end;
      continue;
    }
    if (node.token >= 0) {
      mask[node.token / 32] |= uint32_t(1) << node.token % 32;
      if (node.hasEqual)
        for (int32_t other = words->nextEqual(node.token); other >= 0;
             other = words->nextEqual(other))
          mask[other / 32] |= uint32_t(1) << other % 32;
    }
    i = to.count ? i + 1 : node.end;
  }
  return visited;
}

/// Adds the tokens of a trie that `place` allows. Returns how many nodes it
/// looked at.
size_t MatchCache::walkFrom(const Place &place, std::span<const Node> trie,
                            int settled, bool areSet, std::span<uint32_t> mask,
                            Fuel &fuel) {
  if (place.threads.empty())
    return 0;
  threads = place.threads;
  frames[0] = {0, static_cast<uint32_t>(threads.size()), threads[0]};
  return walk(trie, settled, areSet, mask, fuel);
}

/// The mask of short tokens.
size_t MatchCache::fillShort(const Place &place, std::span<uint32_t> mask,
                             Fuel &fuel) {
  isShort = true;
  // Plain texts that only go on within lexemes need no walk.
  Lexer::PlainReach reach{0, true};
  for (const Thread &thread : place.threads) {
    const Lexer::PlainReach one = lexer.plainReach(thread.state, fuel);
    reach.all = std::max(reach.all, one.all);
    reach.exact &= one.exact;
  }
  const bool areSet = !reach.all && !reach.exact && place.threads.size() == 1 &&
                      isMostlyWhole(place.threads[0].state, fuel);
  const int settled = areSet ? GrammarVocabulary::kMaxPlain : reach.all;
  if (settled)
    std::ranges::copy(words->plainMask(settled), mask.begin());
  else
    std::ranges::fill(mask, 0);
  size_t visited = 0;
  if (!reach.exact)
    visited +=
        walkFrom(place, words->plainTrie(), reach.all, areSet, mask, fuel);
  visited += walkFrom(place, words->otherTrie(), 0, false, mask, fuel);
  isShort = false;
  return visited;
}

void MatchCache::fillMask(const Place &place, std::span<uint32_t> mask,
                          Fuel &fuel) {
  isShort = false; // fuel may have ended in a walk
  // Short tokens see no difference between places that differ in how far
  // bounds are, and many do: in a string with a bound, each character has a
  // place of its own.
  Place seen = place;
  // Where long tokens see none either, their mask is kept, too.
  bool isSame = true;
  for (Thread &thread : seen.threads) {
    const uint32_t state = thread.state;
    thread.state = lexer.relaxed(state, Lexer::Short, fuel);
    isSame &= lexer.relaxed(state, Lexer::Long, fuel) == thread.state;
  }
  std::ranges::sort(seen.threads);
  uint64_t hash = isSame;
  for (const Thread &thread : seen.threads)
    hash = mixHash(hash, uint64_t(thread.row) << 32 | thread.state);
  const auto known = masks.find(hash);
  if (known != masks.end() && known->second.hasLong == isSame &&
      known->second.threads == seen.threads) {
    std::ranges::copy(known->second.mask, mask.begin());
  } else {
    size_t visited = fillShort(seen, mask, fuel);
    if (isSame)
      visited += walkFrom(place, words->longTrie(), 0, false, mask, fuel);
    if (visited >= kDearWalk) {
      if (masks.size() >= maxMasks)
        masks.clear();
      masks.insert_or_assign(
          hash, KnownMask{seen.threads, isSame, {mask.begin(), mask.end()}});
    }
  }
  if (!isSame)
    walkFrom(place, words->longTrie(), 0, false, mask, fuel);
  if (place.mayEnd)
    for (int32_t id : words->ends())
      mask[id / 32] |= uint32_t(1) << id % 32;
}

int MatchCache::forcedByte(const Place &place, Fuel &fuel) {
  if (place.mayEnd)
    return -1;
  int forced = -1;
  std::array<bool, 256> tried{};
  for (int value = 0; value < 256; ++value) {
    const auto byte = static_cast<uint8_t>(value);
    const uint8_t byteClass = compiled->classes[byte];
    if (tried[byteClass]) {
      // Bytes of one class go the same ways.
      if (forced >= 0 && compiled->classes[forced] == byteClass)
        return -1;
      continue;
    }
    tried[byteClass] = true;
    for (const Thread &thread : place.threads) {
      if (lexer.step(thread.state, byte, fuel).isDead())
        continue;
      if (forced >= 0)
        return -1;
      forced = value;
      break;
    }
  }
  return forced;
}

void MatchCache::copyPlaces(const MatchCache &from,
                            std::span<Place *const> places, Fuel &fuel) {
  std::vector<uint32_t> wanted;
  for (const Place *place : places)
    for (const Thread &thread : place->threads)
      wanted.push_back(thread.row);
  rows.copyRows(from.rows, wanted, fuel);
  size_t next = 0;
  std::unordered_map<uint32_t, uint32_t> states; // here, by those there
  for (Place *place : places) {
    fuel.spend(place->threads.size());
    for (Thread &thread : place->threads) {
      const auto [copy, isNew] = states.try_emplace(thread.state, 0);
      if (isNew)
        copy->second = lexer.copyState(from.lexer, thread.state, fuel);
      thread = {wanted[next++], copy->second};
    }
    std::ranges::sort(place->threads);
  }
}

size_t MatchCache::memory() const {
  return lexer.memory() + rows.memory() +
         masks.size() * (words->maskWords() * sizeof(uint32_t) + 100);
}
