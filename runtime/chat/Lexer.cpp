//===- Lexer.cpp - A template's text to tokens ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Lexer.h"

#include "runtime/chat/Characters.h"
#include "runtime/chat/Values.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <charconv>

using namespace kf;
using namespace kf::jinja;

namespace {

constexpr size_t npos = std::string_view::npos;
constexpr size_t kMaxName = 1000;

std::string normalizeLines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r')
      text += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      text += '\n';
  }
  if (text.ends_with('\n'))
    text.pop_back();
  return text;
}

bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool isDecimal(char c) { return c >= '0' && c <= '9'; }

class Lexer {
public:
  explicit Lexer(std::string source)
      : source(std::move(source)), text(this->source) {}

  std::vector<Token> run() {
    while (at < text.size())
      readData();
    push(Token::Kind::End);
    return std::move(tokens);
  }

private:
  Token &push(Token::Kind kind, std::string value = {}) {
    Token token;
    token.kind = kind;
    token.line = line;
    token.text = std::move(value);
    tokens.push_back(std::move(token));
    return tokens.back();
  }
  /// Moves on to `end`, counting lines.
  void advance(size_t end) {
    line +=
        static_cast<int>(std::ranges::count(text.substr(at, end - at), '\n'));
    if (end > at)
      lineStarts = text[end - 1] == '\n';
    at = end;
  }
  void pushData(std::string_view data) {
    if (!data.empty())
      push(Token::Kind::Data, std::string(data));
  }
  size_t skipSpace(size_t from) const {
    return text.size() - stripSpace(text.substr(from), true, false).size();
  }
  bool startsWith(size_t from, std::string_view what) const {
    return text.substr(std::min(from, text.size())).starts_with(what);
  }

  void readData();
  bool readRaw(size_t open);
  void readComment();
  void readTag(bool block);
  size_t tagEnd(size_t from, std::string_view mark, bool trim, bool plus) const;
  void readExpressionToken();
  void readNumber();
  void readString();
  char32_t readHex(size_t &from, size_t digits, size_t end);
  void readOperator();

  /// `data`, which stands before a tag with `sign`, without the white space
  /// that the tag takes.
  std::string_view beforeTag(std::string_view data, char sign,
                             bool variable) const {
    if (sign == '-')
      return stripSpace(data, false, true);
    if (sign == '+' || variable)
      return data;
    const size_t newline = data.rfind('\n');
    const size_t begin = newline == npos ? 0 : newline + 1;
    if ((begin > 0 || lineStarts) &&
        stripSpace(data.substr(begin), true, false).empty())
      return data.substr(0, begin);
    return data;
  }

  const std::string source;
  const std::string_view text;
  size_t at = 0;
  int line = 1;
  bool lineStarts = true; ///< what was read last ends with a line break
  std::vector<Token> tokens;
  std::string open; ///< brackets that wait for their closing ones
};

/// Data up to the next tag, and the tag.
void Lexer::readData() {
  size_t tag = at;
  for (;; ++tag) {
    tag = text.find('{', tag);
    if (tag == npos || tag + 1 == text.size()) {
      tag = npos;
      break;
    }
    const char next = text[tag + 1];
    if (next == '{' || next == '%' || next == '#')
      break;
  }
  if (tag == npos) {
    pushData(text.substr(at));
    advance(text.size());
    return;
  }
  const char type = text[tag + 1];
  const char mark = tag + 2 < text.size() ? text[tag + 2] : '\0';
  const char sign = mark == '-' || mark == '+' ? mark : '\0';
  pushData(beforeTag(text.substr(at, tag - at), sign, type == '{'));
  advance(tag);
  if (type == '%' && readRaw(tag + 2 + (sign != 0)))
    return;
  if (type != '#')
    push(type == '{' ? Token::Kind::VariableBegin : Token::Kind::BlockBegin);
  advance(tag + 2 + (sign != 0));
  if (type == '#')
    readComment();
  else
    readTag(type == '%');
}

/// Where a tag that ends at `from` ends with the white space that it takes;
/// npos if it does not end there.
size_t Lexer::tagEnd(size_t from, std::string_view mark, bool trim,
                     bool plus) const {
  const char sign = from < text.size() ? text[from] : '\0';
  const bool minus = sign == '-';
  if ((minus || (plus && sign == '+')) && startsWith(from + 1, mark)) {
    const size_t end = from + 1 + mark.size();
    return minus ? skipSpace(end) : end;
  }
  if (!startsWith(from, mark))
    return npos;
  const size_t end = from + mark.size();
  return trim && startsWith(end, "\n") ? end + 1 : end;
}

/// Reads a raw block whose tag's text begins at `begin`, if it is one.
bool Lexer::readRaw(size_t begin) {
  const size_t word = skipSpace(begin);
  if (!startsWith(word, "raw"))
    return false;
  const size_t after = tagEnd(skipSpace(word + 3), "%}", false, false);
  if (after == npos)
    return false;
  advance(after);
  for (size_t tag = text.find("{%", at); tag != npos;
       tag = text.find("{%", tag + 1)) {
    const char mark = tag + 2 < text.size() ? text[tag + 2] : '\0';
    const char sign = mark == '-' || mark == '+' ? mark : '\0';
    const size_t name = skipSpace(tag + 2 + (sign != 0));
    if (!startsWith(name, "endraw"))
      continue;
    const size_t end = tagEnd(skipSpace(name + 6), "%}", true, true);
    if (end == npos)
      continue;
    pushData(beforeTag(text.substr(at, tag - at), sign, false));
    advance(end);
    return true;
  }
  fail("{% raw %} without {% endraw %}", line);
}

void Lexer::readComment() {
  const size_t close = text.find("#}", at);
  if (close == npos)
    fail("a comment without its end, #}", line);
  const bool sign =
      close > at && (text[close - 1] == '-' || text[close - 1] == '+');
  advance(tagEnd(close - sign, "#}", true, true));
}

void Lexer::readTag(bool block) {
  const int begin = line;
  for (;;) {
    advance(skipSpace(at));
    if (at == text.size())
      fail(std::string("unexpected end of the template inside a tag ") +
               (block ? "{% ... %}" : "{{ ... }}"),
           begin);
    if (open.empty()) {
      const size_t end = tagEnd(at, block ? "%}" : "}}", block, block);
      if (end != npos) {
        push(block ? Token::Kind::BlockEnd : Token::Kind::VariableEnd);
        advance(end);
        return;
      }
    }
    readExpressionToken();
  }
}

void Lexer::readExpressionToken() {
  const char c = text[at];
  if (isDecimal(c))
    return readNumber();
  if (c == '\'' || c == '"')
    return readString();
  if (!isNameStart(c))
    return readOperator();
  size_t end = at;
  while (end < text.size() && (isNameStart(text[end]) || isDecimal(text[end])))
    ++end;
  // Names are compared whenever one is looked up.
  if (end - at > kMaxName)
    fail("a name has " + std::to_string(end - at) + " bytes; at most " +
             std::to_string(kMaxName) + " are supported",
         line);
  push(Token::Kind::Name, std::string(text.substr(at, end - at)));
  advance(end);
}

void Lexer::readNumber() {
  auto digitsFrom = [&](size_t from, auto isDigit) {
    while (
        from < text.size() &&
        (isDigit(text[from]) || (text[from] == '_' && from + 1 < text.size() &&
                                 isDigit(text[from + 1]))))
      ++from;
    return from;
  };
  auto clean = [&](size_t from, size_t end) {
    std::string digits(text.substr(from, end - from));
    std::erase(digits, '_');
    return digits;
  };
  int base = 10;
  size_t begin = at;
  const char mark =
      text[at] == '0' && at + 1 < text.size() ? text[at + 1] | 0x20 : '\0';
  if (mark == 'x' || mark == 'o' || mark == 'b') {
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
    begin = at + 2;
  }
  size_t end = digitsFrom(begin, [&](char c) {
    const char lower = static_cast<char>(c | 0x20);
    const int digit = isDecimal(c)                   ? c - '0'
                      : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                     : 99;
    return digit < base;
  });
  bool real = false;
  const bool afterDot = at > 0 && text[at - 1] == '.';
  if (base == 10 && !afterDot) {
    if (end + 1 < text.size() && text[end] == '.' && isDecimal(text[end + 1])) {
      real = true;
      end = digitsFrom(end + 1, isDecimal);
    }
    size_t power = end + 1;
    if (end < text.size() && (text[end] | 0x20) == 'e') {
      if (power < text.size() && (text[power] == '+' || text[power] == '-'))
        ++power;
      if (power < text.size() && isDecimal(text[power])) {
        real = true;
        end = digitsFrom(power, isDecimal);
      }
    }
  }
  const std::string digits = clean(begin, end);
  const char *last = digits.data() + digits.size();
  Token &token = push(real ? Token::Kind::Float : Token::Kind::Integer,
                      std::string(text.substr(at, end - at)));
  const auto [stop, code] =
      real ? std::from_chars(digits.data(), last, token.real)
           : std::from_chars(digits.data(), last, token.integer, base);
  if (code != std::errc() || stop != last)
    fail("the number " + token.text.substr(0, 40) + " is not supported", line);
  advance(end);
}

char32_t Lexer::readHex(size_t &from, size_t digits, size_t end) {
  uint32_t value = 0;
  const char *first = text.data() + from, *last = first + digits;
  if (end - from < digits ||
      std::from_chars(first, last, value, 16).ptr != last)
    fail("a string has an escape with too few hexadecimal digits", line);
  from += digits;
  if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
    fail("a string has an escape that is no character", line);
  return value;
}

void Lexer::readString() {
  const char quote = text[at];
  size_t end = at + 1;
  while (end < text.size() && text[end] != quote)
    end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size())
    fail("a string without its closing quote", line);
  std::string value;
  for (size_t i = at + 1; i < end;) {
    if (text[i] != '\\') {
      value += text[i++];
      continue;
    }
    const char c = text[i + 1];
    i += 2;
    constexpr std::string_view names = "abfnrtv\\'\"";
    constexpr std::string_view meant = "\a\b\f\n\r\t\v\\'\"";
    if (c == 'x' || c == 'u' || c == 'U') {
      appendUtf8(value, readHex(i, c == 'x' ? 2 : c == 'u' ? 4 : 8, end));
    } else if (c >= '0' && c <= '7') {
      uint32_t code = static_cast<uint32_t>(c - '0');
      for (int k = 0; k < 2 && i < end && text[i] >= '0' && text[i] <= '7'; ++k)
        code = code * 8 + static_cast<uint32_t>(text[i++] - '0');
      appendUtf8(value, code);
    } else if (c == 'N') {
      fail("the escape \\N in a string is not supported", line);
    } else if (const size_t known = names.find(c); known != npos) {
      value += meant[known];
    } else if (c != '\n') {
      value += '\\';
      value += c;
    }
  }
  push(Token::Kind::String, std::move(value));
  advance(end + 1);
}

void Lexer::readOperator() {
  constexpr std::string_view twos[] = {"//", "**", "==", "!=", ">=", "<="};
  constexpr std::string_view ones = "+-/*%~[](){}><=.:|,;";
  std::string_view found = text.substr(at, 1);
  for (std::string_view two : twos)
    if (startsWith(at, two))
      found = two;
  if (found.size() == 1 && ones.find(found[0]) == npos)
    fail("unexpected character " + quotedName(found), line);
  if (found == "(" || found == "[" || found == "{") {
    open += found == "(" ? ')' : found == "[" ? ']' : '}';
  } else if (found == ")" || found == "]" || found == "}") {
    if (open.empty() || open.back() != found[0])
      fail("unexpected " + quotedName(found), line);
    open.pop_back();
  }
  push(Token::Kind::Operator, std::string(found));
  advance(at + found.size());
}

} // namespace

std::vector<Token> jinja::tokenize(std::string_view source) {
  return Lexer(normalizeLines(source)).run();
}
