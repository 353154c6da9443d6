//===- ScoredPieces.h - The pieces of SentencePiece models ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_SCOREDPIECES_H
#define KF_RUNTIME_TEXT_SCOREDPIECES_H

#include "runtime/text/Vocabulary.h"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace kf {

/// Pieces with scores, and what becomes of text that has none. Read-only once
/// made: any number of threads may use it at once.
class ScoredPieces {
public:
  /// `vocabulary` is finished, with ids from 0 on without holes; `scores`
  /// [size], finite.
  ScoredPieces(std::shared_ptr<const Vocabulary> vocabulary,
               std::vector<float> scores);

  const Vocabulary &vocabulary() const { return *tokens; }
  float scoreOf(int32_t id) const { return scores[id]; }
  /// The piece that text can become; null if there is none.
  const Vocabulary::Token *find(std::string_view text) const;
  /// Whether text can become such a token.
  static bool isReachable(TokenKind kind) {
    return kind == TokenKind::Normal || kind == TokenKind::UserDefined ||
           kind == TokenKind::Unused;
  }

  /// Appends what stands for text without a piece: its bytes if each of the
  /// 256 has a token, else the unknown token, once for a run of them.
  void appendUnknown(std::string_view text, bool afterUnknown,
                     std::vector<int32_t> &ids) const;

private:
  std::shared_ptr<const Vocabulary> tokens;
  std::vector<float> scores;
  std::optional<int32_t> unknown;
  bool byteFallback = true;
  int32_t byteIds[256];
  size_t longest = 0; ///< bytes of the longest piece
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_SCOREDPIECES_H
