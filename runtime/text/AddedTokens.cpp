//===- AddedTokens.cpp - Tokens found before any splitting ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/AddedTokens.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace kf;

/// Unicode's White_Space.
static bool isWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/// Where the white space that ends at `end` starts, not before `from`.
static size_t skipSpaceBack(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    size_t start = end - 1;
    while (start > from && end - start < 4 &&
           (static_cast<uint8_t>(text[start]) & 0xc0) == 0x80)
      --start;
    Utf8Step step = stepUtf8(text.substr(start, end - start));
    if (step.kind != Utf8Step::Kind::Character || step.length != end - start ||
        !isWhiteSpace(step.character))
      break;
    end = start;
  }
  return end;
}

/// Where the white space that starts at `begin` ends.
static size_t skipSpace(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    Utf8Step step = stepUtf8(text.substr(begin));
    if (step.kind != Utf8Step::Kind::Character || !isWhiteSpace(step.character))
      break;
    begin += step.length;
  }
  return begin;
}

AddedTokens::AddedTokens() : nodes(1, Node{0, -1}) {
  std::fill(std::begin(firstNodes), std::end(firstNodes), -1);
}

int32_t AddedTokens::childOf(int32_t node, uint8_t byte) const {
  if (node == 0)
    return firstNodes[byte];
  int32_t child = nodes[node].child;
  while (child >= 0 && nodes[child].byte != byte)
    child = nodes[child].sibling;
  return child;
}

void AddedTokens::add(std::string_view content, Token token) {
  int32_t node = 0;
  for (char c : content) {
    uint8_t byte = static_cast<uint8_t>(c);
    int32_t child = childOf(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes.size());
      nodes.push_back({byte, -1, -1, nodes[node].child});
      nodes[node].child = child;
      if (node == 0)
        firstNodes[byte] = child;
    }
    node = child;
  }
  nodes[node].token = static_cast<int32_t>(tokens.size());
  tokens.push_back(token);
}

std::vector<AddedTokens::Piece>
AddedTokens::split(std::string_view text) const {
  std::vector<Piece> pieces;
  size_t done = 0; // what lies before belongs to a piece
  for (size_t at = 0; at < text.size();) {
    int32_t node = 0, longest = -1;
    size_t longestEnd = at;
    for (size_t i = at; i < text.size(); ++i) {
      node = childOf(node, static_cast<uint8_t>(text[i]));
      if (node < 0)
        break;
      if (nodes[node].token >= 0) {
        longest = nodes[node].token;
        longestEnd = i + 1;
      }
    }
    if (longest < 0) {
      ++at;
      continue;
    }
    const Token &token = tokens[longest];
    size_t begin = at, end = longestEnd;
    if (token.stripLeft)
      begin = skipSpaceBack(text, done, begin);
    if (token.stripRight)
      end = skipSpace(text, end);
    if (done < begin)
      pieces.push_back({done, begin, -1});
    pieces.push_back({begin, end, token.id});
    at = done = end;
  }
  if (done < text.size())
    pieces.push_back({done, text.size(), -1});
  return pieces;
}
