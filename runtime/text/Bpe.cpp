//===- Bpe.cpp - Byte pair encoding by a table of merges ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Bpe.h"

#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <bit>

using namespace kf;

//===----------------------------------------------------------------------===//
// MergeTable
//===----------------------------------------------------------------------===//

/// No pair has this key: ids are not negative.
static constexpr uint64_t kNoKey = ~uint64_t(0);

static uint64_t keyOf(int32_t left, int32_t right) {
  return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
}

void MergeTable::reset(size_t count) {
  slots.assign(std::bit_ceil(2 * count + 1), {kNoKey, {}});
}

size_t MergeTable::slotOf(uint64_t key) const {
  size_t mask = slots.size() - 1;
  uint64_t hash = key * 0x9e3779b97f4a7c15u;
  size_t slot = (hash ^ hash >> 32) & mask;
  while (slots[slot].key != kNoKey && slots[slot].key != key)
    slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::add(int32_t left, int32_t right, Merge merge) {
  uint64_t key = keyOf(left, right);
  slots[slotOf(key)] = {key, merge};
}

const MergeTable::Merge *MergeTable::find(int32_t left, int32_t right) const {
  const Slot &slot = slots[slotOf(keyOf(left, right))];
  return slot.key == kNoKey ? nullptr : &slot.merge;
}

//===----------------------------------------------------------------------===//
// Bpe
//===----------------------------------------------------------------------===//

Bpe::Bpe(std::shared_ptr<const Vocabulary> pieces, MergeTable table,
         const BpeOptions &options)
    : vocabulary(std::move(pieces)), merges(std::move(table)),
      options(options) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    char c = static_cast<char>(byte);
    std::string text = options.byteLevel
                           ? bytesToLetters({&c, 1})
                           : bytePiece(static_cast<uint8_t>(byte));
    const Vocabulary::Token *token = vocabulary->findPiece(text);
    byteIds[byte] = token ? token->id : -1;
  }
}

bool Bpe::knowsAllBytes() const {
  return (options.byteLevel || options.byteFallback) &&
         std::find(std::begin(byteIds), std::end(byteIds), -1) ==
             std::end(byteIds);
}

void Bpe::startBytes(std::string_view word,
                     std::vector<Symbol> &symbols) const {
  bool afterUnknown = false;
  for (char c : word) {
    int32_t id = byteIds[static_cast<uint8_t>(c)];
    bool unknown = id < 0;
    if (unknown) {
      if (!options.unknown || (afterUnknown && options.fuseUnknown))
        continue;
      id = *options.unknown;
    }
    symbols.push_back({id, 0, 0});
    afterUnknown = unknown;
  }
}

void Bpe::startCharacters(std::string_view word,
                          std::vector<Symbol> &symbols) const {
  auto put = [&](int32_t id) { symbols.push_back({id, 0, 0}); };
  auto putBytes = [&](std::string_view bytes) {
    if (!options.byteFallback || std::ranges::any_of(bytes, [&](char c) {
          return byteIds[uint8_t(c)] < 0;
        }))
      return false;
    for (char c : bytes)
      put(byteIds[uint8_t(c)]);
    return true;
  };
  // An unknown waits for the next known character or another unknown; bytes
  // that stand between come first, as they do in Hugging Face's tokenizers.
  bool pending = false;
  while (!word.empty()) {
    Utf8Step step = stepUtf8(word);
    std::string_view character = word.substr(0, step.length);
    word.remove_prefix(step.length);
    bool valid = step.kind == Utf8Step::Kind::Character;
    if (!valid && putBytes(character))
      continue;
    if (!valid)
      character = "\xef\xbf\xbd"; // U+FFFD
    if (const Vocabulary::Token *token = vocabulary->findPiece(character)) {
      if (pending)
        put(*options.unknown);
      pending = false;
      put(token->id);
      continue;
    }
    if (putBytes(character) || !options.unknown)
      continue;
    if (pending && !options.fuseUnknown)
      put(*options.unknown);
    pending = true;
  }
  if (pending)
    put(*options.unknown);
}

Status Bpe::mergeAll(std::vector<Symbol> &symbols, CancelFlag cancelled) const {
  struct Candidate {
    uint32_t rank;
    int32_t position; ///< of the left symbol
    int32_t left, right;
  };
  std::vector<Candidate> heap;
  // A heap's front is its greatest element: "greater" is lower rank, then
  // further left.
  auto later = [](const Candidate &a, const Candidate &b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  };
  auto propose = [&](int32_t position) {
    int32_t left = symbols[position].id;
    int32_t right = symbols[symbols[position].next].id;
    const MergeTable::Merge *merge = merges.find(left, right);
    if (merge)
      heap.push_back({merge->rank, position, left, right});
    return merge != nullptr;
  };
  int32_t count = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[i].previous = i - 1;
    symbols[i].next = i + 1 < count ? i + 1 : -1;
  }
  for (int32_t i = 0; i + 1 < count; ++i) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    propose(i);
  }
  std::make_heap(heap.begin(), heap.end(), later);

  while (!heap.empty()) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    std::pop_heap(heap.begin(), heap.end(), later);
    Candidate best = heap.back();
    heap.pop_back();
    // Skip pairs that an earlier merge took apart.
    Symbol &left = symbols[best.position];
    if (left.id != best.left || left.next < 0 ||
        symbols[left.next].id != best.right)
      continue;
    Symbol &right = symbols[left.next];
    left.id = merges.find(best.left, best.right)->id;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) {
      symbols[left.next].previous = best.position;
      if (propose(best.position))
        std::push_heap(heap.begin(), heap.end(), later);
    }
    if (left.previous >= 0 && propose(left.previous))
      std::push_heap(heap.begin(), heap.end(), later);
  }
  return Status();
}

Status Bpe::encode(std::string_view word, std::vector<int32_t> &ids,
                   CancelFlag cancelled) const {
  if (options.ignoreMerges) {
    const Vocabulary::Token *whole =
        options.byteLevel ? vocabulary->findPiece(bytesToLetters(word))
                          : vocabulary->findPiece(word);
    // Text does not become a special token here: those were found before, or
    // were not to be.
    if (whole && !whole->special) {
      ids.push_back(whole->id);
      return Status();
    }
  }
  std::vector<Symbol> symbols;
  if (options.byteLevel)
    startBytes(word, symbols);
  else
    startCharacters(word, symbols);
  if (symbols.empty())
    return Status();
  KF_RETURN_IF_ERROR(mergeAll(symbols, cancelled));
  for (int32_t i = 0; i >= 0; i = symbols[i].next)
    ids.push_back(symbols[i].id);
  return Status();
}
