//===- ScoredPieces.cpp - The pieces of SentencePiece models --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/ScoredPieces.h"

#include <algorithm>

using namespace kf;

ScoredPieces::ScoredPieces(std::shared_ptr<const Vocabulary> vocabulary,
                           std::vector<float> scores)
    : tokens(std::move(vocabulary)), scores(std::move(scores)) {
  for (const Vocabulary::Token &token : tokens->all()) {
    longest = std::max<size_t>(longest, token.textLength);
    if (token.kind == TokenKind::Unknown && !unknown)
      unknown = token.id;
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const Vocabulary::Token *token =
        tokens->find(bytePiece(static_cast<uint8_t>(byte)));
    bool found = token && token->kind == TokenKind::Byte;
    byteIds[byte] = found ? token->id : -1;
    byteFallback &= found;
  }
}

const Vocabulary::Token *ScoredPieces::find(std::string_view text) const {
  if (text.size() > longest)
    return nullptr;
  const Vocabulary::Token *token = tokens->find(text);
  return token && isReachable(token->kind) ? token : nullptr;
}

void ScoredPieces::appendUnknown(std::string_view text, bool afterUnknown,
                                 std::vector<int32_t> &ids) const {
  if (byteFallback) {
    for (char c : text)
      ids.push_back(byteIds[static_cast<uint8_t>(c)]);
  } else if (unknown && !afterUnknown) {
    ids.push_back(*unknown);
  }
}
