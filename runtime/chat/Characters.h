//===- Characters.h - Python's strings over UTF-8 ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// What Python's str does, which templates are written for: characters instead
// of bytes, Unicode's white space, full case mappings. A byte that is no UTF-8
// counts as one character and is left as it is. The budget pays for all that
// goes through a text.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_CHARACTERS_H
#define KF_RUNTIME_CHAT_CHARACTERS_H

#include "runtime/chat/Budget.h"
#include "runtime/text/Utf8.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace kf::jinja {

/// One character: its bytes, and its code point (0xFFFD for a stray byte).
struct Character {
  std::string_view bytes;
  char32_t code = 0;
};
/// The first character of `text`, which is not empty.
inline Character firstCharacter(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) < 0x80)
    return {text.substr(0, 1), static_cast<char32_t>(text[0])};
  const Utf8Step step = stepUtf8(text);
  if (step.kind == Utf8Step::Kind::Character)
    return {text.substr(0, step.length), step.character};
  return {text.substr(0, 1), 0xfffd};
}

/// The characters of a text, one after the other, which the budget has paid
/// for: `for (const Character &c : Characters(text, budget))`.
class Characters {
public:
  class Iterator {
  public:
    using value_type = Character;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(std::string_view text) : rest(text) { read(); }
    const Character &operator*() const { return current; }
    const Character *operator->() const { return &current; }
    Iterator &operator++() {
      rest.remove_prefix(current.bytes.size());
      read();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return rest.empty(); }
    /// The code point of the character behind this one; 0 behind the last.
    char32_t nextCode() const {
      const std::string_view next = rest.substr(current.bytes.size());
      return next.empty() ? 0 : firstCharacter(next).code;
    }

  private:
    void read() {
      if (!rest.empty())
        current = firstCharacter(rest);
    }
    std::string_view rest;
    Character current;
  };

  Characters(std::string_view text, Budget &budget) : text(text) {
    budget.characters(text);
  }
  Iterator begin() const { return Iterator(text); }
  std::default_sentinel_t end() const { return {}; }

private:
  std::string_view text;
};

size_t countCharacters(std::string_view text, Budget &budget);
/// Bytes of the first `count` characters of `text`, or of all. Pays for these
/// alone.
size_t bytesOfCharacters(std::string_view text, size_t count, Budget &budget);

/// Python's str.isspace, isprintable... of one character.
bool isSpace(char32_t c);
bool isPrintable(char32_t c);
bool isAlphabetic(char32_t c);
bool isNumeric(char32_t c); ///< isdecimal, isdigit or isnumeric
bool isDigit(char32_t c);
bool isLower(char32_t c);
bool isUpper(char32_t c);
bool isCased(char32_t c);

std::string toUpper(std::string_view text, Budget &budget);
std::string toLower(std::string_view text, Budget &budget);
/// The first character as a title's, the others lower.
std::string toCapitalized(std::string_view text, Budget &budget);
/// Python's str.title: the first cased character of every word.
std::string toTitle(std::string_view text, Budget &budget);
std::string swapCase(std::string_view text, Budget &budget);

/// `text` without white space at its ends, in the time that what is taken away
/// needs, which the caller pays for.
std::string_view stripSpace(std::string_view text, bool left, bool right);
/// `text` without the characters in `chars` (nullptr: white space) at its ends.
std::string_view strip(std::string_view text, const std::string_view *chars,
                       bool left, bool right, Budget &budget);

/// Python's str.split and rsplit; `limit` < 0 is none. `separator` nullptr
/// splits at white space; it is never empty.
std::vector<std::string_view> split(std::string_view text,
                                    const std::string_view *separator,
                                    int64_t limit, bool fromRight,
                                    Budget &budget);
/// Python's str.splitlines.
std::vector<std::string_view> splitLines(std::string_view text, bool keepEnds,
                                         Budget &budget);

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_CHARACTERS_H
