//===- Characters.cpp - Python's strings over UTF-8 -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"

#include "runtime/chat/TextSearch.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

char32_t firstOf(const Run &row) { return row.first; }
char32_t firstOf(const Mapping &row) { return row.first; }
char32_t firstOf(const Special &row) { return row.code; }

bool contains(const Run &run, char32_t c) {
  return c >= run.first && c <= run.last && (c - run.first) % run.step == 0;
}

/// The row that may have `c`, or null; rows do not overlap.
template <typename Row, size_t N>
const Row *findRow(const Row (&rows)[N], char32_t c) {
  auto it = std::upper_bound(
      std::begin(rows), std::end(rows), c,
      [](char32_t value, const Row &row) { return value < firstOf(row); });
  return it == std::begin(rows) ? nullptr : &*std::prev(it);
}

template <size_t N> bool isIn(const Run (&runs)[N], char32_t c) {
  const Run *run = findRow(runs, c);
  return run && contains(*run, c);
}

/// Appends what `c` is by the table, if it is there.
template <size_t N>
bool appendSpecial(std::string &out, char32_t c, const Special (&specials)[N]) {
  const Special *special = findRow(specials, c);
  if (!special || special->code != c)
    return false;
  out += special->text;
  return true;
}

template <size_t N, size_t M>
void appendMapped(std::string &out, const Character &character,
                  const Mapping (&mappings)[N], const Special (&specials)[M]) {
  const char32_t c = character.code;
  if (appendSpecial(out, c, specials))
    return;
  const Mapping *m = findRow(mappings, c);
  if (m && contains({m->first, m->last, m->step}, c))
    appendUtf8(out, static_cast<char32_t>(static_cast<int64_t>(c) + m->delta));
  else
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
  if (isAscii(c.code) || !appendSpecial(out, c.code, kSpecialTitle))
    appendUpper(out, c);
}

/// Lower case of `c`, which a sigma owes to its neighbours' code points.
void appendLower(std::string &out, const Character &c, char32_t before,
                 char32_t after) {
  constexpr char32_t sigma = 0x3a3, finalSigma = 0x3c2;
  if (isAscii(c.code))
    out += c.code >= 'A' && c.code <= 'Z' ? static_cast<char>(c.code + 32)
                                          : c.bytes[0];
  else if (c.code == sigma && isCased(before) && !isCased(after))
    appendUtf8(out, finalSigma);
  else
    appendMapped(out, c, kLower, kSpecialLower);
}

/// A line ends after the character `c`, which `after` follows.
bool endsLine(char32_t c, char32_t after) {
  switch (c) {
  case '\r':
    return after != '\n';
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

/// The last character of `text`, which is not empty.
Character lastCharacter(std::string_view text) {
  for (size_t back = 1; back <= 4 && back <= text.size(); ++back) {
    const std::string_view end = text.substr(text.size() - back);
    if ((static_cast<unsigned char>(end[0]) & 0xc0) == 0x80)
      continue;
    const Character c = firstCharacter(end);
    if (c.bytes.size() == back)
      return c;
    break;
  }
  return {text.substr(text.size() - 1), 0xfffd};
}

/// `text` without the characters at its ends that `goes` says.
template <typename Goes>
std::string_view stripWhere(std::string_view text, bool left, bool right,
                            Goes goes) {
  while (left && !text.empty()) {
    const Character c = firstCharacter(text);
    if (!goes(c))
      break;
    text.remove_prefix(c.bytes.size());
  }
  while (right && !text.empty()) {
    const Character c = lastCharacter(text);
    if (!goes(c))
      break;
    text.remove_suffix(c.bytes.size());
  }
  return text;
}

/// The words of `text`, at most `limit` cut off; the rest stays in one piece.
std::vector<std::string_view> splitAtSpace(std::string_view text, int64_t limit,
                                           bool fromRight, Budget &budget) {
  std::vector<std::string_view> words;
  auto add = [&](const char *begin, const char *end) {
    budget.item();
    words.emplace_back(begin, static_cast<size_t>(end - begin));
  };
  const char *begin = nullptr;
  for (const Character &c : Characters(text, budget)) {
    const bool space = isSpace(c.code);
    if (!space && !begin)
      begin = c.bytes.data();
    if (space && begin) {
      add(begin, c.bytes.data());
      begin = nullptr;
    }
  }
  const char *end = text.data() + text.size();
  if (begin)
    add(begin, end);
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

size_t jinja::countCharacters(std::string_view text, Budget &budget) {
  size_t count = 0;
  for ([[maybe_unused]] const Character &c : Characters(text, budget))
    ++count;
  return count;
}

size_t jinja::bytesOfCharacters(std::string_view text, size_t count,
                                Budget &budget) {
  constexpr size_t block = 256;
  size_t bytes = 0;
  for (size_t i = 0; i < count && bytes < text.size(); ++i) {
    if (i % block == 0)
      budget.characters(std::min(block, count - i));
    bytes += firstCharacter(text.substr(bytes)).bytes.size();
  }
  return bytes;
}

bool jinja::isSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
         c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// ASCII, which most texts are, needs no table.
bool jinja::isPrintable(char32_t c) {
  return isAscii(c) ? c >= 0x20 && c != 0x7f : !isIn(kUnprintable, c);
}
bool jinja::isAlphabetic(char32_t c) {
  return isAscii(c) ? isLower(c) || isUpper(c) : isIn(kAlphabetic, c);
}
bool jinja::isNumeric(char32_t c) {
  return isAscii(c) ? c >= '0' && c <= '9' : isIn(kNumeric, c);
}
bool jinja::isDigit(char32_t c) {
  return isAscii(c) ? c >= '0' && c <= '9' : isIn(kDigit, c);
}
bool jinja::isLower(char32_t c) {
  return isAscii(c) ? c >= 'a' && c <= 'z' : isIn(kIsLower, c);
}
bool jinja::isUpper(char32_t c) {
  return isAscii(c) ? c >= 'A' && c <= 'Z' : isIn(kIsUpper, c);
}
bool jinja::isCased(char32_t c) {
  return isLower(c) || isUpper(c) || (!isAscii(c) && isIn(kTitlecase, c));
}

std::string jinja::toUpper(std::string_view text, Budget &budget) {
  std::string out;
  for (const Character &c : Characters(text, budget))
    appendUpper(out, c);
  return out;
}

namespace {

/// Every character lower, but for those that `isTitle(before)` says, where
/// `before` is the code point before, 0 at the start.
template <typename IsTitle>
std::string lowerBut(std::string_view text, Budget &budget, IsTitle isTitle) {
  std::string out;
  char32_t before = 0;
  const Characters characters(text, budget);
  for (auto it = characters.begin(); it != characters.end(); ++it) {
    if (isTitle(before))
      appendTitle(out, *it);
    else
      appendLower(out, *it, before, it.nextCode());
    before = it->code;
  }
  return out;
}

} // namespace

std::string jinja::toLower(std::string_view text, Budget &budget) {
  return lowerBut(text, budget, [](char32_t) { return false; });
}

std::string jinja::toCapitalized(std::string_view text, Budget &budget) {
  bool first = true;
  return lowerBut(text, budget,
                  [&](char32_t) { return std::exchange(first, false); });
}

std::string jinja::toTitle(std::string_view text, Budget &budget) {
  return lowerBut(text, budget,
                  [](char32_t before) { return !isCased(before); });
}

std::string jinja::swapCase(std::string_view text, Budget &budget) {
  std::string out;
  for (const Character &c : Characters(text, budget))
    if (isUpper(c.code))
      appendLower(out, c, 0, 0);
    else
      appendUpper(out, c);
  return out;
}

std::string_view jinja::stripSpace(std::string_view text, bool left,
                                   bool right) {
  return stripWhere(text, left, right,
                    [](const Character &c) { return isSpace(c.code); });
}

std::string_view jinja::strip(std::string_view text,
                              const std::string_view *chars, bool left,
                              bool right, Budget &budget) {
  std::vector<std::string_view> set;
  if (chars)
    for (const Character &c : Characters(*chars, budget)) {
      budget.item();
      set.push_back(c.bytes);
    }
  return stripWhere(text, left, right, [&](const Character &c) {
    budget.steps(1 + set.size() / 16);
    return chars ? std::ranges::find(set, c.bytes) != set.end()
                 : isSpace(c.code);
  });
}

std::vector<std::string_view> jinja::split(std::string_view text,
                                           const std::string_view *separator,
                                           int64_t limit, bool fromRight,
                                           Budget &budget) {
  if (!separator)
    return splitAtSpace(text, limit, fromRight, budget);
  const TextSearch search(*separator, fromRight, budget);
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = search.find(text);
    if (at == std::string_view::npos)
      break;
    budget.item();
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
                                                bool keepEnds, Budget &budget) {
  std::vector<std::string_view> lines;
  const char *begin = text.data(), *const last = begin + text.size();
  auto add = [&](const char *stop) {
    budget.item();
    lines.emplace_back(begin, static_cast<size_t>(stop - begin));
  };
  const Characters characters(text, budget);
  char32_t before = 0;
  for (auto it = characters.begin(); it != characters.end(); ++it) {
    const std::string_view mark = it->bytes;
    if (endsLine(it->code, it.nextCode())) {
      const char *end = mark.data() + mark.size();
      const bool two = it->code == '\n' && before == '\r';
      add(keepEnds ? end : mark.data() - (two ? 1 : 0));
      begin = end;
    }
    before = it->code;
  }
  if (begin != last)
    add(last);
  return lines;
}
