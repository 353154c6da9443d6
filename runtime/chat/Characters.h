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
// counts as one character and is left as it is.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_CHARACTERS_H
#define KF_RUNTIME_CHAT_CHARACTERS_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf::jinja {

/// One character: its bytes, and its code point (0xFFFD for a stray byte).
struct Character {
  std::string_view bytes;
  char32_t code;
};
std::vector<Character> charactersOf(std::string_view text);
size_t countCharacters(std::string_view text);

/// Python's str.isspace, isprintable... of one character.
bool isSpace(char32_t c);
bool isPrintable(char32_t c);
bool isAlphabetic(char32_t c);
bool isNumeric(char32_t c); ///< isdecimal, isdigit or isnumeric
bool isDigit(char32_t c);
bool isLower(char32_t c);
bool isUpper(char32_t c);
bool isCased(char32_t c);

std::string toUpper(std::string_view text);
std::string toLower(std::string_view text);
/// The first character as a title's, the others lower.
std::string toCapitalized(std::string_view text);
/// Python's str.title: the first cased character of every word.
std::string toTitle(std::string_view text);

/// `text` without the characters in `chars` (nullptr: white space) at its ends.
std::string_view strip(std::string_view text, const std::string_view *chars,
                       bool left, bool right);

/// Python's str.split and rsplit; `limit` < 0 is none. `separator` nullptr
/// splits at white space; it is never empty.
std::vector<std::string_view> split(std::string_view text,
                                    const std::string_view *separator,
                                    int64_t limit, bool fromRight);
/// Python's str.splitlines.
std::vector<std::string_view> splitLines(std::string_view text, bool keepEnds);

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_CHARACTERS_H
