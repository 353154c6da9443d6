//===- Unigram.h - The likeliest pieces -------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_UNIGRAM_H
#define KF_RUNTIME_TEXT_UNIGRAM_H

#include "runtime/text/ByteTrie.h"
#include "runtime/text/ScoredPieces.h"
#include "runtime/text/TokenModel.h"

namespace kf {

/// SentencePiece's unigram model: of all ways to cut a word into pieces, the
/// one whose scores sum to most. O(n) times the longest piece's length.
class Unigram : public TokenModel {
public:
  /// Bytes that a piece may have.
  static constexpr size_t kMaxPieceBytes = 4096;

  explicit Unigram(ScoredPieces pieces);

  Status encode(std::string_view word, std::vector<int32_t> &ids,
                CancelFlag cancelled) const override;

private:
  ScoredPieces pieces;
  ByteTrie trie; ///< to ids
  float unknownScore, highestScore;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_UNIGRAM_H
