//===- SentencePieceNormalizer.cpp - SentencePiece's normalization --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/SentencePieceNormalizer.h"

#include "runtime/text/Utf8.h"

#include <cstring>

using namespace kf;

static constexpr std::string_view kMark = "\u2581";
/// Bounds of one rule: real ones have at most 18 characters on either side.
static constexpr size_t kMaxRuleBytes = 256;

//===----------------------------------------------------------------------===//
// CharsMap
//===----------------------------------------------------------------------===//

Result<CharsMap> CharsMap::parse(std::string_view blob) {
  uint32_t trieBytes;
  if (blob.size() < sizeof(trieBytes))
    return Status::error("the normalization rules are cut off");
  std::memcpy(&trieBytes, blob.data(), sizeof(trieBytes));
  blob.remove_prefix(sizeof(trieBytes));
  if (trieBytes > blob.size() || trieBytes % sizeof(uint32_t) != 0 ||
      trieBytes == 0)
    return Status::error("the normalization rules have a trie of " +
                         std::to_string(trieBytes) + " bytes in " +
                         std::to_string(blob.size()));
  CharsMap result;
  result.units.resize(trieBytes / sizeof(uint32_t));
  std::memcpy(result.units.data(), blob.data(), trieBytes);
  result.texts = blob.substr(trieBytes);
  size_t begin = 0;
  while (begin < result.texts.size()) {
    size_t end = std::min(result.texts.find('\0', begin), result.texts.size());
    if (end - begin > kMaxRuleBytes)
      return Status::error(
          "a normalization rule makes " + std::to_string(end - begin) +
          " bytes; the limit is " + std::to_string(kMaxRuleBytes));
    begin = end + 1;
  }
  return result;
}

std::optional<CharsMap::Match> CharsMap::find(std::string_view text) const {
  // A unit is the label of the edge that leads to it, whether a value follows,
  // and how far (xor) its children are.
  auto offsetOf = [](uint32_t unit) {
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
  };
  constexpr uint32_t kHasValue = 1 << 8;
  std::optional<Match> longest;
  uint32_t node = offsetOf(units[0]);
  for (size_t i = 0; i < text.size() && i < kMaxRuleBytes; ++i) {
    uint8_t byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units.size())
      break;
    uint32_t unit = units[node];
    if ((unit & (1u << 31 | 0xff)) != byte)
      break;
    node ^= offsetOf(unit);
    if (!(unit & kHasValue))
      continue;
    if (node >= units.size())
      break;
    uint32_t value = units[node] & ~(1u << 31);
    if (value < texts.size())
      longest = {i + 1, std::string_view(texts).substr(
                            value, texts.find('\0', value) - value)};
  }
  return longest;
}

//===----------------------------------------------------------------------===//
// SentencePieceNormalizer
//===----------------------------------------------------------------------===//

SentencePieceNormalizer::Prefix
SentencePieceNormalizer::normalizePrefix(std::string_view text) const {
  ByteTrie::Match symbol = userDefined.longestPrefix(text);
  if (symbol.value != ByteTrie::kNone)
    return {symbol.length, text.substr(0, symbol.length)};
  if (charsMap)
    if (std::optional<CharsMap::Match> rule = charsMap->find(text))
      return {rule->length, rule->by};
  Utf8Step step = stepUtf8(text);
  if (step.kind != Utf8Step::Kind::Character)
    return {1, "\xef\xbf\xbd"}; // U+FFFD
  return {step.length, text.substr(0, step.length)};
}

std::string SentencePieceNormalizer::normalize(std::string_view text) const {
  if (removeExtraWhitespaces) {
    while (!text.empty()) {
      Prefix prefix = normalizePrefix(text);
      if (prefix.by != " ")
        break;
      text.remove_prefix(prefix.length);
    }
  }
  std::string result;
  if (text.empty())
    return result;
  std::string_view space = escapeWhitespaces ? kMark : " ";
  if (addDummyPrefix && !whitespaceAsSuffix)
    result += space;

  bool afterSpace = removeExtraWhitespaces;
  while (!text.empty()) {
    Prefix prefix = normalizePrefix(text);
    text.remove_prefix(prefix.length);
    std::string_view by = prefix.by;
    while (afterSpace && by.starts_with(' '))
      by.remove_prefix(1);
    for (char c : by) {
      if (c == ' ')
        result += space;
      else
        result += c;
    }
    if (!by.empty())
      afterSpace = removeExtraWhitespaces && by.ends_with(' ');
  }
  if (removeExtraWhitespaces)
    while (result.ends_with(space))
      result.resize(result.size() - space.size());
  if (addDummyPrefix && whitespaceAsSuffix)
    result += space;
  return result;
}
