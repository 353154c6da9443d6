//===- Utf8.cpp - UTF-8, valid and not ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Utf8.h"

#include <cassert>
#include <cstring>

using namespace kf;

Utf8Step kf::stepUtf8(std::string_view text) {
  assert(!text.empty() && "nothing to look at");
  auto byteAt = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byteAt(0);
  if (lead < 0x80)
    return {Utf8Step::Kind::Character, 1, lead};
  if (lead < 0xc2 || lead > 0xf4)
    return {Utf8Step::Kind::Invalid, 1};

  size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates, and what lies
  // past U+10FFFF.
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  char32_t character = lead & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {Utf8Step::Kind::Incomplete, i};
    if (byteAt(i) < low || byteAt(i) > high)
      return {Utf8Step::Kind::Invalid, i};
    low = 0x80;
    high = 0xbf;
    character = character << 6 | (byteAt(i) & 0x3f);
  }
  return {Utf8Step::Kind::Character, length, character};
}

size_t kf::validUtf8Prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII bytes at a time.
    uint64_t word;
    if (text.size() - at >= sizeof(word)) {
      std::memcpy(&word, text.data() + at, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof(word);
        continue;
      }
    }
    Utf8Step step = stepUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::Character)
      break;
    at += step.length;
  }
  return at;
}

void kf::appendUtf8(std::string &out, char32_t c) {
  auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

bool kf::isWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::string_view kf::trimLeft(std::string_view text) {
  while (!text.empty()) {
    Utf8Step step = stepUtf8(text);
    if (step.kind != Utf8Step::Kind::Character || !isWhiteSpace(step.character))
      break;
    text.remove_prefix(step.length);
  }
  return text;
}

std::string_view kf::trimRight(std::string_view text) {
  while (!text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && text.size() - start < 4 &&
           (static_cast<uint8_t>(text[start]) & 0xc0) == 0x80)
      --start;
    Utf8Step step = stepUtf8(text.substr(start));
    if (step.kind != Utf8Step::Kind::Character ||
        start + step.length != text.size() || !isWhiteSpace(step.character))
      break;
    text.remove_suffix(step.length);
  }
  return text;
}

std::string kf::toValidUtf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t valid = validUtf8Prefix(bytes);
    result += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty())
      break;
    appendUtf8(result, 0xfffd);
    bytes.remove_prefix(stepUtf8(bytes).length);
  }
  return result;
}
