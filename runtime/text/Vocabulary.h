//===- Vocabulary.h - Token ids and their bytes -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_VOCABULARY_H
#define KF_RUNTIME_TEXT_VOCABULARY_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What a token is for. The numbers are those of SentencePiece and GGUF.
enum class TokenKind : uint8_t {
  Normal = 1,
  Unknown = 2,     ///< stands for what has no token
  Control = 3,     ///< marks, as begin of text; never made from text
  UserDefined = 4, ///< always one token, wherever it stands
  Unused = 5,
  Byte = 6 ///< one byte, written <0x0A>
};

/// The tokens of a model: ids (not necessarily dense), the text that its files
/// write for each, and the bytes that each stands for. Built once by `add` and
/// `finish`, then read-only: any number of threads may look up at once.
class Vocabulary {
public:
  struct Token {
    int32_t id;
    uint32_t textOffset, textLength;           ///< in `pool`
    uint32_t bytesOffset = 0, bytesLength = 0; ///< in `pool`, once finished
    TokenKind kind = TokenKind::Normal;
    /// It is a piece of the model; others are found in text as they are.
    bool inModel = true;
    bool special = false; ///< decoding may skip it
  };

  /// Adds a piece of the model.
  Status add(std::string_view text, int32_t id,
             TokenKind kind = TokenKind::Normal, bool special = false);
  /// Adds a token besides the model's. The model may have the same one, under
  /// the same id.
  Status addAdded(std::string_view text, int32_t id, bool special);
  /// Sorts the tokens, builds the lookup, and asks `bytesOf` what each token
  /// stands for. Fails if two tokens share an id or a text.
  using BytesOf = std::function<std::string(const Token &, std::string_view)>;
  Status finish(const BytesOf &bytesOf);

  size_t size() const { return tokens.size(); }
  /// By id.
  const std::vector<Token> &all() const { return tokens; }
  int32_t highestId() const { return tokens.empty() ? -1 : tokens.back().id; }
  /// The token of `id`; null if there is none.
  const Token *find(int32_t id) const;
  /// The token that files write as `text`; null if there is none.
  const Token *find(std::string_view text) const;
  /// The same for pieces of the model only.
  const Token *findPiece(std::string_view text) const {
    const Token *token = find(text);
    return token && token->inModel ? token : nullptr;
  }
  std::string_view textOf(const Token &token) const {
    return std::string_view(pool).substr(token.textOffset, token.textLength);
  }
  std::string_view bytesOf(const Token &token) const {
    return std::string_view(pool).substr(token.bytesOffset, token.bytesLength);
  }

private:
  Status append(std::string_view text, Token token);
  Status mergeSameIds();
  Status indexTexts();
  size_t slotOf(std::string_view text) const;

  std::string pool;
  std::vector<Token> tokens;   ///< by id, once finished
  std::vector<uint32_t> slots; ///< open addressing: index into tokens, plus 1
};

/// The byte that `text`, as "<0x0A>", stands for.
std::optional<uint8_t> parseBytePiece(std::string_view text);
/// The inverse, with upper-case digits.
std::string bytePiece(uint8_t byte);

} // namespace kf

#endif // KF_RUNTIME_TEXT_VOCABULARY_H
