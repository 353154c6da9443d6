//===- ByteTrie.h - Strings by their bytes ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_BYTETRIE_H
#define KF_RUNTIME_TEXT_BYTETRIE_H

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kf {

/// Maps strings to numbers and walks them byte by byte. Read-only once filled.
class ByteTrie {
public:
  static constexpr int32_t kRoot = 0;
  static constexpr int32_t kNone = -1;

  /// What was found at the start of a text.
  struct Match {
    size_t length = 0;
    int32_t value = kNone; ///< kNone: nothing
  };

  ByteTrie();
  /// Adds `key`, not empty; of two equal keys the later value stays. `value`
  /// is not negative.
  void add(std::string_view key, int32_t value);
  bool empty() const { return values.size() == 1; }

  /// The node that `byte` leads to from `node`, or kNone.
  int32_t step(int32_t node, uint8_t byte) const {
    if (node == kRoot)
      return roots[byte];
    return slots[slotOf(keyOf(node, byte))].child;
  }
  /// The value of the key that ends at `node`, or kNone.
  int32_t valueAt(int32_t node) const { return values[node]; }
  /// The longest key that `text` starts with.
  Match longestPrefix(std::string_view text) const;

private:
  struct Slot {
    uint64_t key;
    int32_t child = kNone;
  };
  static uint64_t keyOf(int32_t node, uint8_t byte) {
    return uint64_t(uint32_t(node)) << 8 | byte;
  }
  size_t slotOf(uint64_t key) const;
  void grow();

  int32_t roots[256];          ///< the root's children
  std::vector<Slot> slots;     ///< edges below; open addressing
  std::vector<int32_t> values; ///< by node
  size_t edges = 0;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_BYTETRIE_H
