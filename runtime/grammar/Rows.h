//===- Rows.h - What a grammar expects at places of a text ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Earley's algorithm over lexemes. A row holds the items (a place in a
// production, and the row where it began) that hold at a place of the text. It
// does not know the place: rows with the same items are one row. So the rows of
// a list are few, however long it is, and only nesting makes more of them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_ROWS_H
#define KF_RUNTIME_GRAMMAR_ROWS_H

#include "runtime/grammar/Lexer.h"

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace kf::grammar {

/// The rows of one grammar, made as they are needed. One thread. Throws Failure
/// where fuel ends.
class Rows {
public:
  static constexpr uint32_t kFirst = 0; ///< the row of the text's beginning

  /// Takes at most some more than `maxBytes`; more is a Failure, OutOfMemory.
  Rows(const Rules &rules, Lexer &lexer, size_t maxBytes, Fuel &fuel);

  /// Lexemes that end at a place: some that a row expected.
  struct Ended {
    uint32_t row;
    uint32_t lexemes; ///< a list of the lexer
    bool operator==(const Ended &) const = default;
  };
  /// The row behind the lexemes, which the rows expected.
  uint32_t advance(std::span<const Ended> ended, Fuel &fuel);

  /// Whether the text may end here.
  bool mayEnd(uint32_t row) const { return rows[row].mayEnd; }
  /// The lexer's state in front of what is expected, or Lexer::kDead.
  uint32_t start(uint32_t row) const { return rows[row].start; }

  /// Puts rows of `from` here, of the same grammar: the numbers in `wanted`
  /// become those of this object.
  void copyRows(const Rows &from, std::vector<uint32_t> &wanted, Fuel &fuel);

  size_t memory() const;

private:
  static constexpr uint32_t kSelf = 0xffffffff; ///< began in the same row

  struct Item {
    uint32_t place; ///< in the symbols
    uint32_t origin;
    auto operator<=>(const Item &) const = default;
  };
  struct Row {
    size_t begin = 0, kernelEnd = 0,
           end = 0; ///< in `items`; the kernel came from before
    bool mayEnd = false;
    uint32_t start = Lexer::kDead;
  };

  void addItem(Item item, Fuel &fuel);
  bool isNew(Item item);
  uint32_t makeRow(Fuel &fuel);
  std::span<const Item> expecting(uint32_t row, Symbol symbol) const;

  const Rules &rules;
  Lexer &lexer;
  size_t maxBytes;
  std::vector<Row> rows;
  /// Of each row its kernel, sorted, then all of its items that expect
  /// something, sorted by what they expect.
  std::vector<Item> items;
  InternTable rowTable;
  std::unordered_map<uint64_t, uint32_t> single; ///< by row and list
  struct Advance {
    size_t begin, end; ///< in `advanceKeys`
    uint32_t row;
  };
  std::vector<Advance> advances; ///< of several rows
  std::vector<Ended> advanceKeys;
  InternTable advanceTable;

  // Of the row that is being made:
  std::vector<Item> kernel, todo;
  std::vector<uint64_t> seen; ///< open addressing; kSelf twice: free
  size_t seenCount = 0;
  std::vector<uint32_t> predicted; ///< by rule: the last row that did
  uint32_t predictions = 0;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_ROWS_H
