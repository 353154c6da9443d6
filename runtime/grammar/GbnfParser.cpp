//===- GbnfParser.cpp - GBNF to a tree ------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/GbnfParser.h"

#include "runtime/core/Quote.h"
#include "runtime/grammar/CharacterSet.h"
#include "runtime/grammar/TextCursor.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace kf;
using namespace kf::grammar;

namespace {

/// Most times that a part may be asked for.
constexpr uint32_t kMaxTimes = 1'000'000;
/// Of * + ? {} behind an item.
constexpr int kMaxTimesInARow = 2;

class Parser : TextCursor {
public:
  Parser(std::string_view text, RulesBuilder &builder)
      : TextCursor{text}, builder(builder) {}

  GbnfTree parse();

private:
  using Kind = GbnfNode::Kind;

  [[noreturn]] void failAt(size_t where, const std::string &message) const;
  /// Skips spaces and comments, and line ends where `lines`.
  void skip(bool lines);
  std::string_view takeName();
  char32_t takeCharacter();
  uint32_t takeNumber();

  uint32_t add(GbnfNode node);
  uint32_t ruleNamed(std::string_view name, size_t where);
  /// A rule's right side; goes `depth` deep.
  uint32_t parseChoice(int depth);
  uint32_t parseSequence(int depth);
  std::optional<uint32_t> parseItem(int depth);
  ExprId parseClass();
  uint32_t parseTimes(uint32_t node, int depth);

  RulesBuilder &builder;
  GbnfTree tree;
  struct Known {
    uint32_t rule;
    size_t where; ///< of the first use
    bool isDefined = false;
  };
  std::map<std::string, Known, std::less<>> known;
};

void Parser::failAt(size_t where, const std::string &message) const {
  const std::string_view before = text.substr(0, where);
  const size_t line = 1 + std::ranges::count(before, '\n');
  const size_t start = before.rfind('\n') + 1; // npos + 1 is 0
  grammar::fail("line " + std::to_string(line) + ", column " +
                std::to_string(where - start + 1) + ": " + message);
}

void Parser::skip(bool lines) {
  while (!atEnd()) {
    const char c = peek();
    if (c == '#')
      next = std::min(text.find('\n', next), text.size());
    else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
      ++next;
    else
      return;
  }
}

std::string_view Parser::takeName() {
  const size_t start = next;
  while (!atEnd()) {
    const char c = peek();
    if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') &&
        c != '-' && c != '_')
      break;
    ++next;
  }
  return text.substr(start, next - start);
}

/// A character of a literal or a class, perhaps escaped.
char32_t Parser::takeCharacter() {
  const size_t start = next;
  if (peek() != '\\') {
    const Utf8Step step = stepUtf8(text.substr(next));
    if (step.kind != Utf8Step::Kind::Character)
      failAt(start, "bytes that are not UTF-8");
    next += step.length;
    return step.character;
  }
  ++next;
  const char kind = peek();
  if (!atEnd())
    ++next;
  switch (kind) {
  case 'n':
    return '\n';
  case 'r':
    return '\r';
  case 't':
    return '\t';
  case '\\':
  case '"':
  case '[':
  case ']':
  case '-':
  case '^':
    return static_cast<char32_t>(kind);
  case 'x':
  case 'u':
  case 'U':
    break;
  default:
    failAt(start,
           "an escape that is not known; there are \\n \\r \\t \\\\ \\\" "
           "\\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH");
  }
  char32_t value = 0;
  const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  for (int i = 0; i < digits; ++i) {
    const char c = peek();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0)
      failAt(start, "an escape with fewer than " + std::to_string(digits) +
                        " hexadecimal digits");
    value = value << 4 | static_cast<char32_t>(digit);
    ++next;
  }
  if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
    failAt(start, "an escape of what is no character of Unicode");
  return value;
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
    failAt(start, "a number is missing");
  if (value > kMaxTimes)
    failAt(start, "more than " + std::to_string(kMaxTimes) + " times");
  return static_cast<uint32_t>(value);
}

uint32_t Parser::add(GbnfNode node) {
  builder.fuel().spend(1 + node.parts.size());
  if (tree.nodes.size() >= builder.limits().maxSize)
    grammar::fail("the grammar is larger than the limit");
  tree.nodes.push_back(std::move(node));
  return static_cast<uint32_t>(tree.nodes.size() - 1);
}

uint32_t Parser::ruleNamed(std::string_view name, size_t where) {
  const auto found = known.find(name);
  if (found != known.end())
    return found->second.rule;
  const auto rule = static_cast<uint32_t>(tree.rules.size());
  tree.rules.push_back({.name = std::string(name)});
  known.emplace(std::string(name), Known{rule, where});
  return rule;
}

GbnfTree Parser::parse() {
  for (skip(true); !atEnd(); skip(true)) {
    const size_t start = next;
    const std::string_view name = takeName();
    if (name.empty())
      failAt(start, "a rule's name is missing");
    skip(false);
    if (!take("::="))
      failAt(next, "'::=' is missing behind the name " + inQuotes(name));
    const uint32_t rule = ruleNamed(name, start);
    Known &entry = known.find(name)->second;
    if (entry.isDefined)
      failAt(start, "rule " + inQuotes(name) + " is there twice");
    entry.isDefined = true;
    skip(true);
    const uint32_t node = parseChoice(0);
    tree.rules[rule].node = node;
    if (!atEnd() && peek() != '\n' && peek() != '\r')
      failAt(next, peek() == ')' ? "')' without '('"
                                 : "what is neither an item nor a line's end");
  }
  for (const auto &[name, entry] : known)
    if (!entry.isDefined)
      failAt(entry.where, "there is no rule " + inQuotes(name));
  const auto root = known.find("root");
  if (root == known.end())
    failAt(text.size(), "there is no rule 'root'");
  tree.root = root->second.rule;
  return std::move(tree);
}

uint32_t Parser::parseChoice(int depth) {
  if (depth > builder.limits().maxDepth)
    failAt(next, "groups nested more than " +
                     std::to_string(builder.limits().maxDepth) + " deep");
  GbnfNode choice{.kind = Kind::Choice};
  for (;;) {
    skip(true);
    choice.parts.push_back(parseSequence(depth));
    // The next alternative may be on the next line.
    const size_t end = next;
    skip(true);
    if (take("|"))
      continue;
    next = end;
    break;
  }
  return choice.parts.size() == 1 ? choice.parts[0] : add(std::move(choice));
}

uint32_t Parser::parseSequence(int depth) {
  GbnfNode sequence{.kind = Kind::Sequence};
  for (;;) {
    // In a group lines may end anywhere.
    skip(depth > 0);
    const std::optional<uint32_t> item = parseItem(depth);
    if (!item)
      break;
    sequence.parts.push_back(parseTimes(*item, depth));
  }
  return sequence.parts.size() == 1 ? sequence.parts[0]
                                    : add(std::move(sequence));
}

std::optional<uint32_t> Parser::parseItem(int depth) {
  const size_t start = next;
  const char c = peek();
  if (c == '"') {
    ++next;
    std::string literal;
    while (peek() != '"') {
      if (atEnd())
        failAt(start, "a literal without its closing '\"'");
      builder.fuel().spend();
      appendUtf8(literal, takeCharacter());
    }
    ++next;
    return add({.kind = Kind::Text,
                .expression = builder.expressions().literal(literal)});
  }
  if (c == '[')
    return add({.kind = Kind::Text, .expression = parseClass()});
  if (c == '.') {
    ++next;
    return add({.kind = Kind::Text,
                .expression =
                    CharacterSet({{0, 0x10ffff}}).utf8(builder.expressions())});
  }
  if (c == '(') {
    ++next;
    const uint32_t group = parseChoice(depth + 1);
    skip(true);
    if (!take(")"))
      failAt(atEnd() ? start : next, "a group without its closing ')'");
    return group;
  }
  if (c == '<' || c == '!')
    failAt(start, "tokens by name or number are not supported; write their "
                  "text");
  const std::string_view name = takeName();
  if (name.empty())
    return std::nullopt;
  return add({.kind = Kind::Rule, .rule = ruleNamed(name, start)});
}

ExprId Parser::parseClass() {
  const size_t start = next++;
  const bool isNegated = take("^");
  CharacterSet set;
  bool isEmpty = true;
  while (peek() != ']') {
    if (atEnd() || peek() == '\n')
      failAt(start, "a class without its closing ']'");
    builder.fuel().spend();
    const size_t where = next;
    const char32_t first = takeCharacter();
    char32_t last = first;
    if (peek() == '-' && next + 1 < text.size() && text[next + 1] != ']') {
      ++next;
      if (peek() == '\n')
        failAt(start, "a class without its closing ']'");
      last = takeCharacter();
    }
    if (last < first)
      failAt(where, "a range whose end comes before its beginning");
    set.add(first, last);
    isEmpty = false;
  }
  ++next;
  if (isEmpty && !isNegated)
    failAt(start, "a class without characters");
  return (isNegated ? set.complement() : set).utf8(builder.expressions());
}

/// The node as often as what stands behind it says, perhaps behind white space.
uint32_t Parser::parseTimes(uint32_t node, int depth) {
  for (int times = 1;; ++times) {
    skip(depth > 0);
    const size_t start = next;
    uint32_t least = 0, most = Expressions::kUnbounded;
    if (take("?")) {
      most = 1;
    } else if (take("+")) {
      least = 1;
    } else if (take("{")) {
      skip(false);
      least = most = takeNumber();
      skip(false);
      if (take(",")) {
        skip(false);
        most = peek() == '}' ? Expressions::kUnbounded : takeNumber();
        skip(false);
      }
      if (!take("}"))
        failAt(next, "'}' is missing");
      if (most < least)
        failAt(start, "fewer times at most than at least");
    } else if (!take("*")) {
      return node;
    }
    node = add(
        {.kind = Kind::Repeat, .least = least, .most = most, .parts = {node}});
    if (times > kMaxTimesInARow) // each nests the others
      failAt(start, "more than " + std::to_string(kMaxTimesInARow) +
                        " of * + ? {} in a row");
  }
}

} // namespace

GbnfTree kf::grammar::parseGbnf(std::string_view text, RulesBuilder &builder) {
  return Parser(text, builder).parse();
}
