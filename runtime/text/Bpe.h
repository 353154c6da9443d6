//===- Bpe.h - Byte pair encoding by a table of merges ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_BPE_H
#define KF_RUNTIME_TEXT_BPE_H

#include "runtime/text/TokenModel.h"
#include "runtime/text/Vocabulary.h"

#include <memory>
#include <optional>

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

/// What a word's merging starts from.
struct BpeOptions {
  /// Bytes, each written as a letter of GPT-2's alphabet; else characters.
  bool byteLevel = false;
  /// A character without a token is the tokens <0xNN> of its bytes.
  bool byteFallback = false;
  /// Stands for what has no token otherwise; without one that is left out.
  std::optional<int32_t> unknown;
  bool fuseUnknown = false; ///< a run of unknowns is one token
  /// A word that is a token is that token, whatever the merges say.
  bool ignoreMerges = false;
};

/// BPE as Hugging Face's tokenizers do it: merges the pair of lowest rank, the
/// leftmost of equals, until none is left. O(n log n) in the word's length.
class Bpe : public TokenModel {
public:
  /// `vocabulary` is finished; a merge's text joins those of its sides.
  Bpe(std::shared_ptr<const Vocabulary> vocabulary, MergeTable merges,
      const BpeOptions &options);

  Status encode(std::string_view word, std::vector<int32_t> &ids,
                CancelFlag cancelled) const override;

  /// Whether every byte has a token, so that no text is unknown.
  bool knowsAllBytes() const;

private:
  struct Symbol {
    int32_t id; ///< -1 once merged into the symbol before it
    int32_t previous, next;
  };
  void startBytes(std::string_view word, std::vector<Symbol> &symbols) const;
  void startCharacters(std::string_view word,
                       std::vector<Symbol> &symbols) const;
  Status mergeAll(std::vector<Symbol> &symbols, CancelFlag cancelled) const;

  std::shared_ptr<const Vocabulary> vocabulary;
  MergeTable merges;
  BpeOptions options;
  int32_t byteIds[256]; ///< letters or <0xNN>; -1: there is none
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_BPE_H
