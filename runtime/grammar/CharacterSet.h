//===- CharacterSet.h - Sets of Unicode characters --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_CHARACTERSET_H
#define KF_RUNTIME_GRAMMAR_CHARACTERSET_H

#include "runtime/grammar/Expressions.h"

#include <utility>
#include <vector>

namespace kf::grammar {

/// Characters as ranges. Surrogates are none.
class CharacterSet {
public:
  using Range = std::pair<char32_t, char32_t>; ///< first and last

  CharacterSet() = default;
  CharacterSet(std::initializer_list<Range> ranges) : ranges(ranges) {}

  void add(char32_t first, char32_t last) { ranges.push_back({first, last}); }
  void add(const CharacterSet &other) {
    ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end());
  }
  /// All characters that are not in the set.
  CharacterSet complement() const;
  /// Those of the set that lie from `first` to `last`.
  CharacterSet within(char32_t first, char32_t last) const;
  bool has(char32_t character) const;

  /// What matches one of the characters in UTF-8.
  ExprId utf8(Expressions &expressions) const;

private:
  /// Sorted, apart from one another, and without surrogates.
  std::vector<Range> normalized() const;

  std::vector<Range> ranges;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_CHARACTERSET_H
