//===- Bpe.h - Byte pair encoding -------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_BPE_H
#define KF_RUNTIME_TEXT_BPE_H

#include "runtime/text/Vocabulary.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kf {

/// Merges of two tokens into one, by rank. Read-only once filled.
class MergeTable {
public:
  struct Merge {
    uint32_t rank;
    int32_t id; ///< of the merged token
  };

  /// Makes room for `count` merges and forgets those it had.
  void reset(size_t count);
  /// Adds a merge; of two for the same pair the later one stays.
  void add(int32_t left, int32_t right, Merge merge);
  /// The merge of `left` and `right`; null if there is none.
  const Merge *find(int32_t left, int32_t right) const;

private:
  struct Slot {
    uint64_t key;
    Merge merge;
  };
  size_t slotOf(uint64_t key) const;

  std::vector<Slot> slots; ///< open addressing, a power of two of them
};

/// Splits words into tokens. Const functions may run on many threads, each
/// with a Workspace of its own.
class Bpe {
public:
  /// Memory that encode reuses from word to word.
  struct Workspace {
    struct Symbol {
      int32_t id; ///< -1 once merged into the symbol before it
      int32_t previous, next;
    };
    struct Candidate {
      uint32_t rank;
      int32_t position; ///< of the left symbol
      int32_t left, right;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  Vocabulary vocabulary;
  MergeTable merges;
  /// A word that is a token is that token, whatever the merges say.
  bool ignoreMerges = false;

  /// Appends the tokens of `word`, at most 2^31 - 1 bytes, to `ids`: merges
  /// the pair of lowest rank, the leftmost of equals, until none is left.
  /// O(n log n) in the word's length.
  void encode(std::string_view word, std::vector<int32_t> &ids,
              Workspace &workspace) const;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_BPE_H
