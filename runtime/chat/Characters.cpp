//===- Characters.cpp - Python's strings over UTF-8 -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"

#include "runtime/text/Utf8.h"

#include <algorithm>
#include <iterator>

using namespace kf;
using namespace kf::jinja;

namespace {

/// Every `step`th code point from `first` to `last`.
struct Run {
  char32_t first, last;
  uint32_t step;
};
/// The same, and what leads to the character that they map to.
struct Mapping {
  char32_t first, last;
  uint32_t step;
  int32_t delta;
};
/// A character that maps to something else than one other character.
struct Special {
  char32_t code;
  const char *text;
};

#include "CharacterTables.inc"

bool contains(const Run &run, char32_t c) {
  return c >= run.first && c <= run.last && (c - run.first) % run.step == 0;
}

template <size_t N> bool isIn(const Run (&runs)[N], char32_t c) {
  auto it = std::upper_bound(
      std::begin(runs), std::end(runs), c,
      [](char32_t value, const Run &run) { return value < run.first; });
  return it != std::begin(runs) && contains(*std::prev(it), c);
}

template <size_t N, size_t M>
void appendMapped(std::string &out, const Character &character,
                  const Mapping (&mappings)[N], const Special (&specials)[M]) {
  const char32_t c = character.code;
  for (const Special &special : specials)
    if (special.code == c) {
      out += special.text;
      return;
    }
  for (const Mapping &m : mappings)
    if (contains({m.first, m.last, m.step}, c)) {
      appendUtf8(out, static_cast<char32_t>(static_cast<int64_t>(c) + m.delta));
      return;
    }
  out += character.bytes;
}

bool isAscii(char32_t c) { return c < 0x80; }

void appendUpper(std::string &out, const Character &c) {
  if (isAscii(c.code))
    out += c.code >= 'a' && c.code <= 'z' ? static_cast<char>(c.code - 32)
                                          : c.bytes[0];
  else
    appendMapped(out, c, kUpper, kSpecialUpper);
}

void appendTitle(std::string &out, const Character &c) {
  for (const Special &special : kSpecialTitle)
    if (special.code == c.code) {
      out += special.text;
      return;
    }
  appendUpper(out, c);
}

/// Lower case of `text[i]`, which a sigma owes to its neighbours.
void appendLower(std::string &out, const std::vector<Character> &text,
                 size_t i) {
  constexpr char32_t sigma = 0x3a3, finalSigma = 0x3c2;
  const Character &c = text[i];
  if (isAscii(c.code)) {
    out += c.code >= 'A' && c.code <= 'Z' ? static_cast<char>(c.code + 32)
                                          : c.bytes[0];
  } else if (c.code == sigma && i > 0 && isCased(text[i - 1].code) &&
             (i + 1 == text.size() || !isCased(text[i + 1].code))) {
    appendUtf8(out, finalSigma);
  } else {
    appendMapped(out, c, kLower, kSpecialLower);
  }
}

bool isIn(const std::vector<Character> &set, const Character &c) {
  return std::ranges::any_of(
      set, [&](const Character &other) { return other.bytes == c.bytes; });
}

/// A line ends after `text[i]`.
bool endsLine(const std::vector<Character> &text, size_t i) {
  switch (text[i].code) {
  case '\r':
    return i + 1 == text.size() || text[i + 1].code != '\n';
  case '\n':
  case 0x0b:
  case 0x0c:
  case 0x1c:
  case 0x1d:
  case 0x1e:
  case 0x85:
  case 0x2028:
  case 0x2029:
    return true;
  default:
    return false;
  }
}

/// The words of `text`, at most `limit` cut off; the rest stays in one piece.
std::vector<std::string_view> splitAtSpace(std::string_view text, int64_t limit,
                                           bool fromRight) {
  std::vector<std::string_view> words;
  const char *begin = nullptr;
  for (const Character &c : charactersOf(text)) {
    const bool space = isSpace(c.code);
    if (!space && !begin)
      begin = c.bytes.data();
    if (space && begin) {
      words.emplace_back(begin, static_cast<size_t>(c.bytes.data() - begin));
      begin = nullptr;
    }
  }
  const char *end = text.data() + text.size();
  if (begin)
    words.emplace_back(begin, static_cast<size_t>(end - begin));
  if (limit < 0 || static_cast<uint64_t>(limit) >= words.size())
    return words;
  const size_t cut = static_cast<size_t>(limit);
  if (fromRight) {
    const std::string_view last = words[words.size() - cut - 1];
    const char *stop = last.data() + last.size();
    words.erase(words.begin(), words.end() - static_cast<int64_t>(cut) - 1);
    words.front() = text.substr(0, static_cast<size_t>(stop - text.data()));
  } else {
    const char *start = words[cut].data();
    words.resize(cut + 1);
    words.back() = std::string_view(start, static_cast<size_t>(end - start));
  }
  return words;
}

} // namespace

std::vector<Character> jinja::charactersOf(std::string_view text) {
  std::vector<Character> result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = stepUtf8(text);
    const bool valid = step.kind == Utf8Step::Kind::Character;
    const size_t length = valid ? step.length : 1;
    result.push_back({text.substr(0, length), valid ? step.character : 0xfffd});
    text.remove_prefix(length);
  }
  return result;
}

size_t jinja::countCharacters(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    const Utf8Step step = stepUtf8(text);
    text.remove_prefix(step.kind == Utf8Step::Kind::Character ? step.length
                                                              : 1);
    ++count;
  }
  return count;
}

bool jinja::isSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
         c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool jinja::isPrintable(char32_t c) { return !isIn(kUnprintable, c); }
bool jinja::isAlphabetic(char32_t c) { return isIn(kAlphabetic, c); }
bool jinja::isNumeric(char32_t c) { return isIn(kNumeric, c); }
bool jinja::isDigit(char32_t c) { return isIn(kDigit, c); }
bool jinja::isLower(char32_t c) { return isIn(kIsLower, c); }
bool jinja::isUpper(char32_t c) { return isIn(kIsUpper, c); }
bool jinja::isCased(char32_t c) {
  return isLower(c) || isUpper(c) || isIn(kTitlecase, c);
}

std::string jinja::toUpper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const Character &c : charactersOf(text))
    appendUpper(out, c);
  return out;
}

std::string jinja::toLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<Character> characters = charactersOf(text);
  for (size_t i = 0; i < characters.size(); ++i)
    appendLower(out, characters, i);
  return out;
}

std::string jinja::toCapitalized(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<Character> characters = charactersOf(text);
  for (size_t i = 0; i < characters.size(); ++i)
    if (i == 0)
      appendTitle(out, characters[i]);
    else
      appendLower(out, characters, i);
  return out;
}

std::string jinja::toTitle(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const std::vector<Character> characters = charactersOf(text);
  bool inside = false;
  for (size_t i = 0; i < characters.size(); ++i) {
    if (inside)
      appendLower(out, characters, i);
    else
      appendTitle(out, characters[i]);
    inside = isCased(characters[i].code);
  }
  return out;
}

std::string_view jinja::strip(std::string_view text,
                              const std::string_view *chars, bool left,
                              bool right) {
  std::vector<Character> set;
  if (chars)
    set = charactersOf(*chars);
  auto goes = [&](const Character &c) {
    return chars ? isIn(set, c) : isSpace(c.code);
  };
  while (left && !text.empty()) {
    const Utf8Step step = stepUtf8(text);
    const bool valid = step.kind == Utf8Step::Kind::Character;
    const size_t length = valid ? step.length : 1;
    if (!goes({text.substr(0, length), valid ? step.character : 0xfffd}))
      break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    // Back to where the last character begins.
    size_t start = text.size() - 1;
    for (size_t back = 1; back <= 4 && back <= text.size(); ++back) {
      const size_t at = text.size() - back;
      if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80) {
        const Utf8Step step = stepUtf8(text.substr(at));
        if (step.kind == Utf8Step::Kind::Character && step.length == back)
          start = at;
        break;
      }
    }
    const Utf8Step step = stepUtf8(text.substr(start));
    const bool valid = step.kind == Utf8Step::Kind::Character;
    if (!goes({text.substr(start), valid ? step.character : 0xfffd}))
      break;
    text = text.substr(0, start);
  }
  return text;
}

std::vector<std::string_view> jinja::split(std::string_view text,
                                           const std::string_view *separator,
                                           int64_t limit, bool fromRight) {
  if (!separator)
    return splitAtSpace(text, limit, fromRight);
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at =
        fromRight ? text.rfind(*separator) : text.find(*separator);
    if (at == std::string_view::npos)
      break;
    if (fromRight) {
      parts.push_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    } else {
      parts.push_back(text.substr(0, at));
      text = text.substr(at + separator->size());
    }
  }
  parts.push_back(text);
  if (fromRight)
    std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string_view> jinja::splitLines(std::string_view text,
                                                bool keepEnds) {
  std::vector<std::string_view> lines;
  const std::vector<Character> characters = charactersOf(text);
  const char *begin = text.data();
  for (size_t i = 0; i < characters.size(); ++i) {
    if (!endsLine(characters, i))
      continue;
    const std::string_view mark = characters[i].bytes;
    const char *end = mark.data() + mark.size();
    const char *stop = keepEnds ? end : mark.data();
    if (!keepEnds && mark == "\n" && i > 0 && characters[i - 1].code == '\r')
      --stop;
    lines.emplace_back(begin, static_cast<size_t>(stop - begin));
    begin = end;
  }
  if (begin != text.data() + text.size())
    lines.emplace_back(begin,
                       static_cast<size_t>(text.data() + text.size() - begin));
  return lines;
}
