//===- AddedTokens.h - Tokens found before any splitting --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_ADDEDTOKENS_H
#define KF_RUNTIME_TEXT_ADDEDTOKENS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Finds added tokens (special ones, mostly) in text: leftmost first, then
/// longest. Read-only once filled.
class AddedTokens {
public:
  struct Token {
    int32_t id;
    bool stripLeft = false;  ///< takes the white space before it
    bool stripRight = false; ///< takes the white space after it
  };
  /// A stretch of text: a token, or what lies between tokens.
  struct Piece {
    size_t begin, end;
    int32_t id; ///< -1: not a token
  };

  AddedTokens();
  /// Adds a token; `content` is not empty.
  void add(std::string_view content, Token token);
  /// Cuts `text`, of any bytes, into pieces in order; none is empty.
  std::vector<Piece> split(std::string_view text) const;

private:
  struct Node {
    uint8_t byte;
    int32_t token; ///< index into tokens, -1: inside a token
    int32_t child = -1, sibling = -1;
  };
  int32_t childOf(int32_t node, uint8_t byte) const;

  std::vector<Token> tokens;
  std::vector<Node> nodes; ///< a trie; node 0 is its root
  int32_t firstNodes[256]; ///< the root's children by byte, -1: none
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_ADDEDTOKENS_H
