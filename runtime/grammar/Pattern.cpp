//===- Pattern.cpp - Patterns of strings in JSON --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/Pattern.h"

#include "runtime/core/Quote.h"
#include "runtime/grammar/JsonTree.h"
#include "runtime/grammar/TextCursor.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace kf;
using namespace kf::grammar;

ExprId kf::grammar::jsonCharacter(Expressions &set) {
  const CharacterSet plain =
      CharacterSet({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0x7f, 0x7f}})
          .complement();
  ByteSet letters;
  for (char c : std::string_view("\"\\/bfnrt"))
    letters.add(static_cast<uint8_t>(c));
  auto digits = [&](std::string_view some) {
    ByteSet bytes;
    for (char c : some) {
      bytes.add(static_cast<uint8_t>(c));
      if (c >= 'a')
        bytes.add(static_cast<uint8_t>(c - 'a' + 'A'));
    }
    return set.bytes(bytes);
  };
  const ExprId any = digits("0123456789abcdef"), d = digits("d");
  const ExprId escape = set.literal("\\");
  // What is outside the first plane is a pair of surrogates, as one character.
  const ExprId hex = set.concat(
      set.byte('u'),
      set.either({set.concat({digits("0123456789abcef"), any, any, any}),
                  set.concat({d, digits("01234567"), any, any}),
                  set.concat({d, digits("89ab"), any, any, set.literal("\\u"),
                              d, digits("cdef"), any, any})}));
  return set.either(
      {plain.utf8(set),
       set.concat(escape, set.either({set.bytes(letters), hex}))});
}

ExprId kf::grammar::jsonCharacters(const CharacterSet &characters,
                                   Expressions &set) {
  const CharacterSet escaped(
      {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0x7f, 0x7f}});
  CharacterSet plain;
  plain.add(characters.within(0x20, 0x21));
  plain.add(characters.within(0x23, 0x5b));
  plain.add(characters.within(0x5d, 0x7e));
  plain.add(characters.within(0x80, 0x10ffff));
  std::vector<ExprId> forms{plain.utf8(set)};
  for (char32_t c = 0; c <= 0x7f; ++c)
    if (escaped.has(c) && characters.has(c))
      forms.push_back(set.literal(escapeJson(std::string(1, char(c)))));
  return set.either(std::move(forms));
}

namespace {

/// Most times that a part may be asked for.
constexpr uint32_t kMaxTimes = 1'000'000;

class Parser : TextCursor {
public:
  Parser(std::string_view text, int maxDepth, Expressions &set, Fuel &fuel)
      : TextCursor{text}, maxDepth(maxDepth), set(set), fuel(fuel) {}

  ExprId parse();

private:
  [[noreturn]] void failHere(const std::string &message) const {
    size_t characters = 1;
    for (char c : text.substr(0, next))
      characters += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
    grammar::fail("pattern, character " + std::to_string(characters) + ": " +
                  message);
  }

  ExprId parseChoice(int depth);
  ExprId parseSequence(int depth);
  ExprId parseItem(int depth);
  ExprId parseTimes(ExprId item);
  CharacterSet parseClass();
  char32_t takeCharacter();
  char32_t takeHexadecimal(int digits);
  /// The set of an escape such as \d, whose letter is next; none: another
  /// escape.
  std::optional<CharacterSet> takeSet();
  char32_t takeEscape(bool inClass);
  uint32_t takeNumber();

  int maxDepth;
  Expressions &set;
  Fuel &fuel;
  ExprId anything = Expressions::kNothing; ///< any characters
  // What was made before:
  std::optional<ExprId> dot;
  std::map<char, ExprId> escapes; ///< of sets, by their letters
};

ExprId Parser::parse() {
  anything = set.star(jsonCharacter(set));
  const ExprId whole = parseChoice(0);
  if (!atEnd())
    failHere("')' without '('");
  return whole;
}

ExprId Parser::parseChoice(int depth) {
  if (depth > maxDepth)
    failHere("groups nested more than " + std::to_string(maxDepth) + " deep");
  std::vector<ExprId> parts;
  do {
    fuel.spend();
    // What ^ and $ do not tie may have anything in front or behind.
    const bool isTop = depth == 0;
    const bool isTied = isTop && take("^");
    ExprId part = parseSequence(depth);
    if (isTop) {
      if (!isTied)
        part = set.concat(anything, part);
      if (!take("$"))
        part = set.concat(part, anything);
    }
    parts.push_back(part);
  } while (take("|"));
  return set.either(std::move(parts));
}

ExprId Parser::parseSequence(int depth) {
  std::vector<ExprId> parts;
  while (!atEnd() && peek() != '|' && peek() != ')') {
    if (peek() == '$' && depth == 0 &&
        (next + 1 == text.size() || text[next + 1] == '|'))
      break;
    fuel.spend();
    parts.push_back(parseTimes(parseItem(depth)));
  }
  ExprId whole = Expressions::kEmpty;
  for (size_t i = parts.size(); i-- > 0;)
    whole = set.concat(parts[i], whole);
  return whole;
}

ExprId Parser::parseItem(int depth) {
  switch (peek()) {
  case '(': {
    const size_t start = next;
    ++next;
    if (peek() == '?' && !take("?:")) {
      next = start;
      failHere("groups that look around, have names or flags are not "
               "supported");
    }
    const ExprId group = parseChoice(depth + 1);
    if (!take(")")) {
      next = start;
      failHere("a group without its closing ')'");
    }
    return group;
  }
  case '[':
    return jsonCharacters(parseClass(), set);
  case '.':
    ++next;
    // As ECMAScript has it: any character but those that end lines.
    if (!dot)
      dot = jsonCharacters(
          CharacterSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}})
              .complement(),
          set);
    return *dot;
  case '^':
  case '$':
    failHere("^ and $ are supported at the ends of the pattern and of its "
             "alternatives alone");
  case '*':
  case '+':
  case '?':
    failHere("nothing to repeat");
  case '\\': {
    ++next;
    const char letter = peek();
    if (const auto known = escapes.find(letter); known != escapes.end()) {
      ++next;
      return known->second;
    }
    if (const std::optional<CharacterSet> characters = takeSet())
      return escapes[letter] = jsonCharacters(*characters, set);
    const char32_t c = takeEscape(false);
    return jsonCharacters(CharacterSet({{c, c}}), set);
  }
  default: {
    const char32_t c = takeCharacter();
    return jsonCharacters(CharacterSet({{c, c}}), set);
  }
  }
}

ExprId Parser::parseTimes(ExprId item) {
  const size_t start = next;
  uint32_t least = 0, most = Expressions::kUnbounded;
  if (take("?")) {
    most = 1;
  } else if (take("+")) {
    least = 1;
  } else if (peek() == '{') {
    ++next;
    least = most = takeNumber();
    if (take(","))
      most = peek() == '}' ? Expressions::kUnbounded : takeNumber();
    if (!take("}"))
      failHere("'}' is missing");
    if (most < least) {
      next = start;
      failHere("fewer times at most than at least");
    }
  } else if (!take("*")) {
    return item;
  }
  take("?"); // the lazy form finds the same strings
  if (peek() == '*' || peek() == '+' || peek() == '?' || peek() == '{')
    failHere("nothing to repeat");
  return set.repeat(item, least, most);
}

uint32_t Parser::takeNumber() {
  const size_t start = next;
  uint64_t value = 0;
  while (peek() >= '0' && peek() <= '9') {
    value = std::min<uint64_t>(value * 10 + (text[next] - '0'),
                               uint64_t(kMaxTimes) + 1);
    ++next;
  }
  if (next == start)
    failHere("a number is missing");
  if (value > kMaxTimes)
    failHere("more than " + std::to_string(kMaxTimes) + " times");
  return static_cast<uint32_t>(value);
}

char32_t Parser::takeCharacter() {
  const Utf8Step step = stepUtf8(text.substr(next));
  if (step.kind != Utf8Step::Kind::Character)
    failHere("bytes that are not UTF-8");
  next += step.length;
  return step.character;
}

std::optional<CharacterSet> Parser::takeSet() {
  CharacterSet characters;
  switch (peek()) {
  case 'd':
  case 'D':
    characters = CharacterSet({{'0', '9'}});
    break;
  case 'w':
  case 'W':
    characters = CharacterSet({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
    break;
  case 's':
  case 'S':
    characters = CharacterSet({{'\t', '\r'},
                               {' ', ' '},
                               {0xa0, 0xa0},
                               {0x1680, 0x1680},
                               {0x2000, 0x200a},
                               {0x2028, 0x2029},
                               {0x202f, 0x202f},
                               {0x205f, 0x205f},
                               {0x3000, 0x3000},
                               {0xfeff, 0xfeff}});
    break;
  default:
    return std::nullopt;
  }
  const char letter = text[next++];
  return letter <= 'Z' ? characters.complement() : characters;
}

char32_t Parser::takeHexadecimal(int digits) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i, ++next) {
    const char c = peek();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0)
      failHere("an escape with fewer than " + std::to_string(digits) +
               " hexadecimal digits");
    value = value << 4 | static_cast<char32_t>(digit);
  }
  return value;
}

/// The character of an escape, behind its backslash.
char32_t Parser::takeEscape(bool inClass) {
  if (atEnd())
    failHere("a backslash at the end");
  const char c = peek();
  static constexpr std::string_view kControls = "nrtfv0";
  static constexpr std::string_view kValues("\n\r\t\f\v\0", 6);
  if (const size_t which = kControls.find(c); which != kControls.npos) {
    ++next;
    if (c == '0' && peek() >= '0' && peek() <= '9')
      failHere("octal escapes are not supported");
    return static_cast<char32_t>(kValues[which]);
  }
  if (c == 'x' || c == 'u') {
    ++next;
    if (peek() == '{')
      failHere("\\u{...} is not supported; write the character");
    const char32_t value = takeHexadecimal(c == 'x' ? 2 : 4);
    if (value < 0xd800 || value > 0xdfff)
      return value;
    if (value < 0xdc00 && take("\\u")) {
      const char32_t low = takeHexadecimal(4);
      if (low >= 0xdc00 && low <= 0xdfff)
        return 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
    }
    failHere("an escape of half a surrogate pair");
  }
  if (inClass && c == 'b') {
    ++next;
    return '\b';
  }
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
      (c >= '0' && c <= '9'))
    failHere("\\" + std::string(1, c) + " is not supported");
  return takeCharacter();
}

CharacterSet Parser::parseClass() {
  const size_t start = next++;
  const bool isNegated = take("^");
  CharacterSet characters;
  while (peek() != ']') {
    if (atEnd()) {
      next = start;
      failHere("a class without its closing ']'");
    }
    fuel.spend();
    auto takeOne = [&]() -> std::optional<char32_t> {
      if (peek() != '\\')
        return takeCharacter();
      ++next;
      if (const std::optional<CharacterSet> some = takeSet()) {
        characters.add(*some);
        return std::nullopt;
      }
      return takeEscape(true);
    };
    const std::optional<char32_t> first = takeOne();
    if (peek() != '-' || text.substr(next, 2) == "-]" ||
        next + 1 == text.size()) {
      if (first)
        characters.add(*first, *first);
      continue;
    }
    ++next;
    const std::optional<char32_t> last = takeOne();
    if (!first || !last || *last < *first)
      failHere("a range whose ends are not characters in order");
    characters.add(*first, *last);
  }
  ++next;
  return isNegated ? characters.complement() : characters;
}

} // namespace

ExprId kf::grammar::parsePattern(std::string_view pattern, int maxDepth,
                                 Expressions &expressions, Fuel &fuel) {
  return Parser(pattern, maxDepth, expressions, fuel).parse();
}

std::string_view kf::grammar::formatPattern(std::string_view format) {
#define KF_DATE                                                                \
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"              \
  "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|"        \
  "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|"                              \
  "(?:[02468][048]|[13579][26])00)-02-29)"
#define KF_TIME                                                                \
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\\.[0-9]+)?"            \
  "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define KF_LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define KF_BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define KF_IPV4 KF_BYTE "(?:\\." KF_BYTE "){3}"
#define KF_H16 "[0-9A-Fa-f]{1,4}"
#define KF_LS32 "(?:" KF_H16 ":" KF_H16 "|" KF_IPV4 ")"
  static constexpr struct {
    std::string_view name, pattern;
  } kFormats[] = {
      {"date", "^" KF_DATE "$"},
      {"time", "^" KF_TIME "$"},
      {"date-time", "^" KF_DATE "[Tt]" KF_TIME "$"},
      {"duration",
       "^P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|"
       "[0-9]+D)(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|"
       "[0-9]+S))?|T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|"
       "[0-9]+S))$"},
      {"email", "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
                "(?:\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@" KF_LABEL
                "(?:\\." KF_LABEL ")*$"},
      {"hostname", "^" KF_LABEL "(?:\\." KF_LABEL ")*$"},
      {"ipv4", "^" KF_IPV4 "$"},
      {"ipv6",
       "^(?:(?:" KF_H16 ":){6}" KF_LS32 "|::(?:" KF_H16 ":){5}" KF_LS32
       "|(?:" KF_H16 ")?::(?:" KF_H16 ":){4}" KF_LS32 "|(?:(?:" KF_H16
       ":){0,1}" KF_H16 ")?::(?:" KF_H16 ":){3}" KF_LS32 "|(?:(?:" KF_H16
       ":){0,2}" KF_H16 ")?::(?:" KF_H16 ":){2}" KF_LS32 "|(?:(?:" KF_H16
       ":){0,3}" KF_H16 ")?::" KF_H16 ":" KF_LS32 "|(?:(?:" KF_H16
       ":){0,4}" KF_H16 ")?::" KF_LS32 "|(?:(?:" KF_H16 ":){0,5}" KF_H16
       ")?::" KF_H16 "|(?:(?:" KF_H16 ":){0,6}" KF_H16 ")?::)$"},
      {"uri", "^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#@!$&'()*+,;=-]|"
              "\\[[0-9A-Fa-f:.]+\\]|%[0-9A-Fa-f]{2})+$"},
      {"uuid", "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-"
               "[0-9A-Fa-f]{12}$"}};
#undef KF_DATE
#undef KF_TIME
#undef KF_LABEL
#undef KF_BYTE
#undef KF_IPV4
#undef KF_H16
#undef KF_LS32
  for (const auto &known : kFormats)
    if (known.name == format)
      return known.pattern;
  return {};
}
