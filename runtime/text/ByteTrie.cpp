//===- ByteTrie.cpp - Strings by their bytes ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/ByteTrie.h"

#include <algorithm>
#include <utility>

using namespace kf;

/// No edge has this key: nodes are not negative.
static constexpr uint64_t kNoKey = ~uint64_t(0);

ByteTrie::ByteTrie() : slots(16, Slot{kNoKey}), values(1, kNone) {
  std::fill(std::begin(roots), std::end(roots), kNone);
}

size_t ByteTrie::slotOf(uint64_t key) const {
  size_t mask = slots.size() - 1;
  uint64_t hash = key * 0x9e3779b97f4a7c15u;
  size_t slot = (hash ^ hash >> 32) & mask;
  while (slots[slot].key != kNoKey && slots[slot].key != key)
    slot = (slot + 1) & mask;
  return slot;
}

void ByteTrie::grow() {
  std::vector<Slot> old =
      std::exchange(slots, std::vector<Slot>(2 * slots.size(), Slot{kNoKey}));
  for (const Slot &slot : old)
    if (slot.key != kNoKey)
      slots[slotOf(slot.key)] = slot;
}

void ByteTrie::add(std::string_view key, int32_t value) {
  int32_t node = kRoot;
  for (char c : key) {
    uint8_t byte = static_cast<uint8_t>(c);
    int32_t child = step(node, byte);
    if (child == kNone) {
      child = static_cast<int32_t>(values.size());
      values.push_back(kNone);
      if (node == kRoot) {
        roots[byte] = child;
      } else {
        if (2 * ++edges > slots.size())
          grow();
        uint64_t edge = keyOf(node, byte);
        slots[slotOf(edge)] = {edge, child};
      }
    }
    node = child;
  }
  values[node] = value;
}

ByteTrie::Match ByteTrie::longestPrefix(std::string_view text) const {
  Match longest;
  int32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = step(node, static_cast<uint8_t>(text[i]));
    if (node == kNone)
      break;
    if (values[node] != kNone)
      longest = {i + 1, values[node]};
  }
  return longest;
}
