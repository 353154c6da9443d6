//===- InternTable.h - Equal things once ------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_INTERNTABLE_H
#define KF_RUNTIME_GRAMMAR_INTERNTABLE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kf::grammar {

/// Mixes `value` into `hash`.
inline uint64_t mixHash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

/// Finds things that are numbered from 0 by their contents, which lie with the
/// caller.
class InternTable {
public:
  static constexpr uint32_t kNone = 0xffffffff;

  /// The number of the thing with `hash` for which `isEqual(number)`, or kNone.
  template <typename Equal>
  uint32_t find(uint64_t hash, Equal &&isEqual) const {
    if (slots.empty())
      return kNone;
    for (size_t i = hash & (slots.size() - 1);;
         i = (i + 1) & (slots.size() - 1)) {
      if (slots[i].number == kNone)
        return kNone;
      if (slots[i].hash == hash && isEqual(slots[i].number))
        return slots[i].number;
    }
  }

  /// Adds a thing that is not there.
  void add(uint64_t hash, uint32_t number) {
    if (count * 2 >= slots.size())
      grow();
    put({hash, number});
    ++count;
  }

  size_t bytes() const { return slots.capacity() * sizeof(Slot); }

private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t number = kNone;
  };

  void put(Slot slot) {
    size_t i = slot.hash & (slots.size() - 1);
    while (slots[i].number != kNone)
      i = (i + 1) & (slots.size() - 1);
    slots[i] = slot;
  }
  void grow() {
    std::vector<Slot> before(slots.empty() ? 64 : slots.size() * 2);
    before.swap(slots);
    for (const Slot &slot : before)
      if (slot.number != kNone)
        put(slot);
  }

  std::vector<Slot> slots;
  size_t count = 0;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_INTERNTABLE_H
