//===- Vocabulary.h - Token ids and their bytes -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_VOCABULARY_H
#define KF_RUNTIME_TEXT_VOCABULARY_H

#include "runtime/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The tokens of a byte-level BPE model: ids (not necessarily dense) to bytes
/// and back. Built once by `add` and `finish`, then read-only: any number of
/// threads may look up at once.
class Vocabulary {
public:
  struct Token {
    int32_t id;
    uint32_t offset, length; ///< its bytes, in `pool`
    /// Its text is no string of the byte alphabet (some special tokens), so it
    /// stands for the text itself and BPE never makes it.
    bool literal;
    bool special = false; ///< an added token that decoding may skip
  };

  /// Adds the token that tokenizer.json's model writes as `piece`.
  Status add(std::string_view piece, int32_t id);
  /// Adds an added token: its text is taken as it is. The model may have the
  /// same token, under the same id.
  Status addLiteral(std::string_view content, int32_t id, bool special);
  /// Sorts the tokens and builds the lookup; fails if two tokens share an id or
  /// a text, or if a byte has no token.
  Status finish();

  size_t size() const { return tokens.size(); }
  int32_t highestId() const { return tokens.empty() ? -1 : tokens.back().id; }
  /// The token of `id`; null if there is none.
  const Token *find(int32_t id) const;
  std::string_view bytesOf(const Token &token) const {
    return std::string_view(pool).substr(token.offset, token.length);
  }
  /// The id of the token that BPE can make with exactly these bytes.
  std::optional<int32_t> idOfBytes(std::string_view bytes) const;
  /// The same for a piece as tokenizer.json writes it, or a literal token's
  /// text; looks through all tokens.
  std::optional<int32_t> idOfPiece(std::string_view piece) const;
  int32_t idOfByte(uint8_t byte) const { return byteIds[byte]; }

private:
  Status append(std::string_view bytes, Token token);
  Status mergeSameIds();
  Status indexBytes();
  Status checkLiterals();
  size_t slotOf(std::string_view bytes) const;

  std::string pool;
  std::vector<Token> tokens;   ///< by id, once finished
  std::vector<uint32_t> slots; ///< open addressing: index into tokens, plus 1
  int32_t byteIds[256] = {};
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_VOCABULARY_H
