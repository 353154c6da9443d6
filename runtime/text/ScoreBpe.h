//===- ScoreBpe.h - Byte pair encoding by scores ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_SCOREBPE_H
#define KF_RUNTIME_TEXT_SCOREBPE_H

#include "runtime/text/ByteTrie.h"
#include "runtime/text/ScoredPieces.h"
#include "runtime/text/TokenModel.h"

namespace kf {

/// BPE as SentencePiece does it: of all neighbours whose joined text is a
/// piece, joins those of the highest score, the leftmost of equals, until none
/// is left. O(n log n) in the word's length.
class ScoreBpe : public TokenModel {
public:
  explicit ScoreBpe(ScoredPieces pieces);

  Status encode(std::string_view word, std::vector<int32_t> &ids,
                CancelFlag cancelled) const override;

private:
  struct Symbol {
    size_t begin, length; ///< in the word; length 0 once joined to another
    int32_t previous, next;
    bool frozen; ///< a user-defined piece, which joins nothing
  };
  std::vector<Symbol> cut(std::string_view word) const;

  ScoredPieces pieces;
  ByteTrie userDefined;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_SCOREBPE_H
