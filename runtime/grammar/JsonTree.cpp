//===- JsonTree.cpp - JSON with its order ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/JsonTree.h"

#include "runtime/core/Quote.h"
#include "runtime/grammar/JsonNumbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

using namespace kf;
using namespace kf::grammar;

using Kind = JsonValue::Kind;

namespace kf::grammar {

/// Takes the parser's events.
class JsonTreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  JsonTreeBuilder(JsonTree &tree, int maxDepth, Fuel &fuel)
      : tree(tree), maxDepth(maxDepth), fuel(fuel) {}

  bool null() override { return put(Kind::Null); }
  bool boolean(bool value) override {
    return put(value ? Kind::True : Kind::False);
  }
  bool number_integer(number_integer_t value) override {
    return put(Kind::Number, std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return put(Kind::Number, std::to_string(value));
  }
  bool number_float(number_float_t, const string_t &digits) override {
    return put(Kind::Number, digits);
  }
  bool string(string_t &value) override {
    return put(Kind::String, std::move(value));
  }
  bool binary(binary_t &) override { return false; }
  bool start_object(std::size_t) override { return open(Kind::Object); }
  bool start_array(std::size_t) override { return open(Kind::Array); }
  bool key(string_t &name) override {
    nextName = std::move(name);
    return true;
  }
  bool end_array() override {
    path.pop_back();
    return true;
  }
  bool end_object() override {
    const JsonId object = path.back();
    path.pop_back();
    std::vector<JsonId> sorted = tree.values[object].parts;
    std::ranges::sort(sorted, {}, name());
    fuel.spend(sorted.size());
    const auto twice = std::ranges::adjacent_find(sorted, {}, name());
    if (twice != sorted.end())
      fail(tree.pointer(object) + ": key " +
           inQuotes(tree.values[*twice].name) + " is there twice");
    tree.values[object].sorted = std::move(sorted);
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::json::exception &) override {
    fail("not valid JSON at byte " + std::to_string(position));
  }

private:
  std::function<const std::string &(JsonId)> name() const {
    return [this](JsonId id) -> const std::string & {
      return tree.values[id].name;
    };
  }
  bool put(Kind kind, std::string text = {}) {
    fuel.spend(1 + text.size() / 16);
    const auto id = static_cast<JsonId>(tree.values.size());
    JsonValue value{.kind = kind, .text = std::move(text), .parent = id};
    if (!path.empty()) {
      JsonValue &above = tree.values[path.back()];
      value.parent = path.back();
      value.name = above.isObject() ? std::move(nextName)
                                    : std::to_string(above.parts.size());
      above.parts.push_back(id);
    }
    tree.values.push_back(std::move(value));
    return true;
  }
  bool open(Kind kind) {
    if (path.size() >= size_t(maxDepth))
      fail(tree.pointer(path.back()) + ": JSON nested more than " +
           std::to_string(maxDepth) + " deep");
    put(kind);
    path.push_back(static_cast<JsonId>(tree.values.size() - 1));
    return true;
  }

  JsonTree &tree;
  int maxDepth;
  Fuel &fuel;
  std::vector<JsonId> path; ///< open containers
  std::string nextName;
};

} // namespace kf::grammar

JsonTree JsonTree::parse(std::string_view text, int maxDepth, Fuel &fuel) {
  JsonTree tree;
  JsonTreeBuilder builder(tree, maxDepth, fuel);
  // The library takes a zero for the end.
  if (const size_t zero = text.find('\0'); zero != text.npos)
    fail("not valid JSON at byte " + std::to_string(zero + 1));
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    fail("not valid JSON");
  return tree;
}

std::optional<JsonId> JsonTree::member(JsonId object,
                                       std::string_view name) const {
  const std::vector<JsonId> &sorted = values[object].sorted;
  const auto found = std::ranges::lower_bound(
      sorted, name, std::less<>(),
      [&](JsonId id) -> std::string_view { return values[id].name; });
  if (found == sorted.end() || values[*found].name != name)
    return std::nullopt;
  return *found;
}

std::string JsonTree::pointer(JsonId id) const {
  std::vector<JsonId> path;
  for (; values[id].parent != id; id = values[id].parent)
    path.push_back(id);
  std::string text;
  for (size_t i = path.size(); i-- > 0;) {
    text += '/';
    for (char c : cutText(values[path[i]].name, 80)) {
      if (c == '~')
        text += "~0";
      else if (c == '/')
        text += "~1";
      else
        text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return text;
}

std::optional<JsonId> JsonTree::find(std::string_view pointer,
                                     JsonId from) const {
  JsonId at = from;
  while (!pointer.empty()) {
    if (pointer[0] != '/')
      return std::nullopt;
    pointer.remove_prefix(1);
    const size_t end = std::min(pointer.find('/'), pointer.size());
    std::string name;
    for (size_t i = 0; i < end; ++i) {
      const std::string_view rest = pointer.substr(i, 2);
      name += rest == "~0" ? '~' : rest == "~1" ? '/' : pointer[i];
      i += rest == "~0" || rest == "~1";
    }
    pointer.remove_prefix(end);
    const JsonValue &value = values[at];
    if (value.isObject()) {
      const std::optional<JsonId> next = member(at, name);
      if (!next)
        return std::nullopt;
      at = *next;
    } else {
      size_t index = 0;
      const auto [last, error] =
          std::from_chars(name.data(), name.data() + name.size(), index);
      if (!value.isArray() || error != std::errc() ||
          last != name.data() + name.size() || index >= value.parts.size())
        return std::nullopt;
      at = value.parts[index];
    }
  }
  return at;
}

/// Whether two numbers, as JSON writes them, are one.
static bool equalNumbers(std::string_view a, std::string_view b) {
  if (a == b)
    return true;
  const std::optional<Decimal> one = Decimal::parse(a),
                               other = Decimal::parse(b);
  return one && other && one->compare(*other) == 0;
}

bool JsonTree::equal(JsonId a, JsonId b, Fuel &fuel) const {
  std::vector<std::pair<JsonId, JsonId>> todo{{a, b}};
  while (!todo.empty()) {
    const auto [left, right] = todo.back();
    todo.pop_back();
    const JsonValue &one = values[left], &other = values[right];
    fuel.spend(1 + (one.text.size() + other.text.size()) / 16);
    if (one.kind != other.kind || one.parts.size() != other.parts.size() ||
        (one.isNumber() ? !equalNumbers(one.text, other.text)
                        : one.text != other.text))
      return false;
    const auto &mine = one.isObject() ? one.sorted : one.parts;
    const auto &its = one.isObject() ? other.sorted : other.parts;
    for (size_t i = 0; i < mine.size(); ++i) {
      if (one.isObject() && values[mine[i]].name != values[its[i]].name)
        return false;
      todo.push_back({mine[i], its[i]});
    }
  }
  return true;
}

std::string kf::grammar::escapeJson(std::string_view text) {
  std::string result;
  for (char c : text) {
    static constexpr std::string_view kPlain = "\"\\\b\f\n\r\t";
    static constexpr std::string_view kLetters = "\"\\bfnrt";
    static constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t which = kPlain.find(c); which != kPlain.npos) {
      result += '\\';
      result += kLetters[which];
    } else if (byte < 0x20 || byte == 0x7f) {
      result += "\\u00";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    } else {
      result += c;
    }
  }
  return result;
}
