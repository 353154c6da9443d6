//===- ForcedTokens.cpp - Tokens that a grammar leaves no choice of -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/constraint/ForcedTokens.h"

#include <bit>
#include <utility>

using namespace kf;

namespace {

/// Bytes of the text that the tokenizer is shown in front of those it cuts.
constexpr size_t kMostBefore = 64;

bool isInsideCharacter(char byte) { return (byte & 0xc0) == 0x80; }

/// Leaves whole characters: what is cut off is the beginning of one.
std::string_view wholeCharacters(std::string_view bytes) {
  size_t end = bytes.size();
  while (end > 0 && bytes.size() - end < 3 && isInsideCharacter(bytes[end - 1]))
    --end;
  if (end == 0)
    return {};
  const auto first = static_cast<unsigned char>(bytes[end - 1]);
  const size_t length = first < 0xc0 ? 1 : std::countl_one(first);
  return bytes.size() - (end - 1) < length ? bytes.substr(0, end - 1) : bytes;
}

} // namespace

/// The tokens of `bytes` behind the text, as far as they are those bytes.
std::vector<int32_t> ForcedTokens::cut(std::string_view bytes) const {
  // Behind a line, for some tokenizers begin a text as no other place.
  const std::string context = "\n" + before;
  std::string text = context;
  text += bytes;
  const Result<std::vector<int32_t>> encoded =
      tokenizer.encode(text, EncodeOptions{.parseSpecial = false});
  // What no tokenizer can cut is left to the model.
  if (!encoded.ok())
    return {};
  const std::vector<int32_t> &all = *encoded;
  // From behind, for what is in front of the context may be anything.
  std::vector<int32_t> found;
  size_t length = 0;
  for (size_t i = all.size(); i > 0 && length < bytes.size(); --i) {
    if (static_cast<size_t>(all[i - 1]) >= vocabulary.size())
      return {}; // a token that the model has no logit of
    const std::string_view piece = vocabulary.bytes(all[i - 1]);
    length += piece.size();
    if (piece.empty() || length > bytes.size() ||
        bytes.substr(bytes.size() - length, piece.size()) != piece)
      return {};
    found.insert(found.begin(), all[i - 1]);
  }
  if (length != bytes.size())
    found.clear();
  return found;
}

/// How many of `ids`, which are `bytes`, the tokenizer makes of them whatever
/// follows: no token that the grammar allows takes a part of them and more.
Result<size_t> ForcedTokens::countCertain(GrammarMatcher matcher,
                                          std::span<const int32_t> ids,
                                          std::string_view bytes) const {
  std::vector<uint32_t> mask;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (vocabulary.hasLonger(bytes)) {
      mask.resize(vocabulary.maskWords());
      KF_RETURN_IF_ERROR(matcher.fillMask(mask));
      for (size_t word = 0; word < mask.size(); ++word)
        for (uint32_t bits = mask[word]; bits; bits &= bits - 1)
          if (vocabulary.bytes(int32_t(word * 32) + std::countr_zero(bits))
                  .size() > bytes.size())
            return i;
    }
    KF_RETURN_IF_ERROR(matcher.accept(ids[i]));
    bytes.remove_prefix(vocabulary.bytes(ids[i]).size());
  }
  return ids.size();
}

Result<std::span<const int32_t>> ForcedTokens::find(GrammarMatcher &matcher) {
  if (!isKnown) {
    ids.clear();
    next = 0;
    KF_ASSIGN_OR_RETURN(const std::string bytes,
                        matcher.forcedBytes(kMostBytes));
    const std::string_view whole = wholeCharacters(bytes);
    if (!whole.empty()) {
      std::vector<int32_t> found = cut(whole);
      KF_ASSIGN_OR_RETURN(const size_t count,
                          countCertain(matcher, found, whole));
      found.resize(count);
      ids = std::move(found);
    }
    isKnown = true;
  }
  return std::span<const int32_t>(ids).subspan(next);
}

void ForcedTokens::accept(int32_t id) {
  before += vocabulary.bytes(id);
  if (before.size() > 2 * kMostBefore) {
    size_t cut = before.size() - kMostBefore;
    while (cut < before.size() && isInsideCharacter(before[cut]))
      ++cut;
    before.erase(0, cut);
  }
  if (next < ids.size())
    ++next;
  // What is known of the last bytes may change as others follow.
  isKnown = next < ids.size();
}
