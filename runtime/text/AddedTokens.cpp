//===- AddedTokens.cpp - Tokens found before any splitting ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/AddedTokens.h"

#include "runtime/text/Regex.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace kf;

/// Whether `text` is a character of words, as Rust's \w has it.
static bool isWordCharacter(std::string_view text) {
  static const Result<Regex> word =
      Regex::compile("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]");
  if (!word.ok() || validUtf8Prefix(text) != text.size())
    return false;
  auto found = word->findAll(text);
  return found.ok() && !found->empty();
}

static bool standsAlone(std::string_view text, size_t begin, size_t end) {
  size_t before = begin;
  while (before > 0 && begin - before < 4)
    if ((static_cast<uint8_t>(text[--before]) & 0xc0) != 0x80)
      break;
  if (isWordCharacter(text.substr(before, begin - before)))
    return false;
  return end == text.size() ||
         !isWordCharacter(text.substr(end, stepUtf8(text.substr(end)).length));
}

static bool overlaps(std::span<const AddedTokens::Range> ranges, size_t begin,
                     size_t end) {
  const auto it =
      std::ranges::upper_bound(ranges, begin, {}, &AddedTokens::Range::end);
  return it != ranges.end() && it->begin < end;
}

void AddedTokens::add(std::string_view content, Token token) {
  contents.add(content, static_cast<int32_t>(tokens.size()));
  tokens.push_back(token);
}

std::vector<AddedTokens::Piece>
AddedTokens::split(std::string_view text, bool parseSpecial,
                   std::span<const Range> literal) const {
  std::vector<Piece> pieces;
  size_t done = 0; // what lies before belongs to a piece
  for (size_t at = 0; at < text.size() && !contents.empty();) {
    ByteTrie::Match match = contents.longestPrefix(text.substr(at));
    if (match.value == ByteTrie::kNone) {
      ++at;
      continue;
    }
    const Token &token = tokens[match.value];
    size_t begin = at, end = at + match.length;
    // What is passed over is text to its end, whatever else begins inside.
    if ((token.special && (!parseSpecial || overlaps(literal, begin, end))) ||
        (token.singleWord && !standsAlone(text, begin, end))) {
      at = end;
      continue;
    }
    if (token.stripLeft)
      begin = done + trimRight(text.substr(done, begin - done)).size();
    if (token.stripRight)
      end = text.size() - trimLeft(text.substr(end)).size();
    if (done < begin)
      pieces.push_back({done, begin, -1});
    pieces.push_back({begin, end, token.id});
    at = done = end;
  }
  if (done < text.size())
    pieces.push_back({done, text.size(), -1});
  return pieces;
}
