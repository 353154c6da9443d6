//===- Bpe.cpp - Byte pair encoding ---------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Bpe.h"

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

void Bpe::encode(std::string_view word, std::vector<int32_t> &ids,
                 Workspace &workspace) const {
  if (word.empty())
    return;
  if (ignoreMerges) {
    if (std::optional<int32_t> whole = vocabulary.idOfBytes(word)) {
      ids.push_back(*whole);
      return;
    }
  }

  auto &symbols = workspace.symbols;
  auto &heap = workspace.heap;
  int32_t count = static_cast<int32_t>(word.size());
  symbols.resize(word.size());
  heap.clear();
  for (int32_t i = 0; i < count; ++i)
    symbols[i] = {vocabulary.idOfByte(static_cast<uint8_t>(word[i])), i - 1,
                  i + 1 < count ? i + 1 : -1};

  // A heap's front is its greatest element: "greater" is lower rank, then
  // further left.
  auto later = [](const Workspace::Candidate &a,
                  const Workspace::Candidate &b) {
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
  for (int32_t i = 0; i + 1 < count; ++i)
    propose(i);
  std::make_heap(heap.begin(), heap.end(), later);

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Workspace::Candidate best = heap.back();
    heap.pop_back();
    // Skip pairs that an earlier merge took apart.
    Workspace::Symbol &left = symbols[best.position];
    if (left.id != best.left || left.next < 0 ||
        symbols[left.next].id != best.right)
      continue;
    Workspace::Symbol &right = symbols[left.next];
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

  for (int32_t i = 0; i >= 0; i = symbols[i].next)
    ids.push_back(symbols[i].id);
}
