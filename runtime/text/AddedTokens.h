//===- AddedTokens.h - Tokens found before any splitting --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_ADDEDTOKENS_H
#define KF_RUNTIME_TEXT_ADDEDTOKENS_H

#include "runtime/text/ByteTrie.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kf {

/// Finds added tokens (special ones, mostly) in text: leftmost first, then
/// longest. Read-only once filled.
class AddedTokens {
public:
  struct Token {
    int32_t id;
    bool special = false;
    bool stripLeft = false;  ///< takes the white space before it
    bool stripRight = false; ///< takes the white space after it
    bool singleWord = false; ///< only where no word touches it
  };
  /// A stretch of text.
  struct Range {
    size_t begin, end;
  };
  /// A stretch of text: a token, or what lies between tokens.
  struct Piece {
    size_t begin, end;
    int32_t id; ///< -1: not a token
  };

  /// Adds a token; `content` is not empty.
  void add(std::string_view content, Token token);
  /// Cuts `text`, of any bytes, into pieces in order; none is empty. Special
  /// tokens are left in the text unless `parseSpecial`, and where they reach
  /// into one of `literal`, which are in order and apart.
  std::vector<Piece> split(std::string_view text, bool parseSpecial,
                           std::span<const Range> literal = {}) const;

private:
  std::vector<Token> tokens;
  ByteTrie contents; ///< to indices into tokens
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_ADDEDTOKENS_H
