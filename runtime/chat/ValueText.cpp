//===- ValueText.cpp - str, repr and json.dumps ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"
#include "runtime/chat/Values.h"
#include "runtime/core/Quote.h"

#include <charconv>
#include <cmath>
#include <numeric>

using namespace kf;
using namespace kf::jinja;

namespace {

void appendHex(std::string &out, const char *prefix, uint32_t value,
               int digits) {
  out += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out += "0123456789abcdef"[value >> shift & 15];
}

/// Appends to a text that the budget pays for piece by piece.
class Writer {
public:
  explicit Writer(Budget &budget) : budget(budget) {}
  void put(std::string_view text) {
    budget.steps(1);
    budget.text(out.size() + text.size(), out.size());
    out += text;
  }
  std::string take() { return std::move(out); }

  Budget &budget;

private:
  std::string out;
};

void writeRepr(Writer &out, const Value &value);

void writeItems(Writer &out, const std::vector<Value> &items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i)
      out.put(", ");
    writeRepr(out, items[i]);
  }
}

void writeRepr(Writer &out, const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
    return out.put("Undefined");
  case Kind::None:
    return out.put("None");
  case Kind::Bool:
    return out.put(value.boolean() ? "True" : "False");
  case Kind::Int:
    return out.put(std::to_string(value.integer()));
  case Kind::Float:
    return out.put(floatText(value.real()));
  case Kind::String:
    return out.put(quoted(value.text(), out.budget));
  case Kind::List:
    out.put("[");
    writeItems(out, value.as<Sequence>().items);
    return out.put("]");
  case Kind::Tuple: {
    const auto &items = value.as<Sequence>().items;
    out.put("(");
    writeItems(out, items);
    return out.put(items.size() == 1 ? ",)" : ")");
  }
  case Kind::Range:
    return out.put(value.as<Sequence>().label);
  case Kind::View:
    out.put(value.as<Sequence>().label + "([");
    writeItems(out, value.as<Sequence>().items);
    return out.put("])");
  case Kind::Dict: {
    out.put("{");
    bool first = true;
    for (const auto &[key, item] : value.as<Dict>().entries) {
      if (!first)
        out.put(", ");
      first = false;
      writeRepr(out, key);
      out.put(": ");
      writeRepr(out, item);
    }
    return out.put("}");
  }
  default:
    // Python prints an address here, which no template can mean.
    fail("a " + typeName(value) + " has no text");
  }
}

void writeJsonText(Writer &out, std::string_view text, bool ascii) {
  std::string quote = "\"";
  for (const Character &c : Characters(text, out.budget)) {
    switch (c.code) {
    case '"':
      quote += "\\\"";
      continue;
    case '\\':
      quote += "\\\\";
      continue;
    case '\n':
      quote += "\\n";
      continue;
    case '\r':
      quote += "\\r";
      continue;
    case '\t':
      quote += "\\t";
      continue;
    case '\b':
      quote += "\\b";
      continue;
    case '\f':
      quote += "\\f";
      continue;
    }
    if (c.code < 0x20 || (ascii && c.code > 0x7e && c.code < 0x10000)) {
      appendHex(quote, "\\u", c.code, 4);
    } else if (ascii && c.code >= 0x10000) {
      appendHex(quote, "\\u", 0xd800 + ((c.code - 0x10000) >> 10), 4);
      appendHex(quote, "\\u", 0xdc00 + ((c.code - 0x10000) & 0x3ff), 4);
    } else {
      quote += c.bytes;
    }
  }
  out.put(quote + "\"");
}

std::string jsonFloat(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "Infinity" : "-Infinity";
  return floatText(value);
}

std::string jsonKey(const Value &key) {
  switch (key.kind()) {
  case Kind::String:
    return key.text();
  case Kind::None:
    return "null";
  case Kind::Bool:
    return key.boolean() ? "true" : "false";
  case Kind::Int:
    return std::to_string(key.integer());
  case Kind::Float:
    return jsonFloat(key.real());
  default:
    fail("keys must be str, int, float, bool or None, not " + typeName(key));
  }
}

void writeJson(Writer &out, const Value &value, const JsonStyle &style,
               int level);

/// What comes before an item of a container, or at its end.
void breakLine(Writer &out, const JsonStyle &style, int level) {
  if (!style.indented)
    return;
  out.put("\n");
  for (int i = 0; i < level; ++i)
    out.put(style.indent);
}

void writeJsonDict(Writer &out, const Dict &dict, const JsonStyle &style,
                   int level) {
  const auto &entries = dict.entries;
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t(0));
  if (style.sortKeys)
    order = sortedOrder(entries.size(), [&](size_t a, size_t b) {
      return compare(entries[a].first, entries[b].first, "<", out.budget) == -1;
    });
  out.put("{");
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i)
      out.put(style.itemSeparator);
    breakLine(out, style, level + 1);
    writeJsonText(out, jsonKey(entries[order[i]].first), style.ascii);
    out.put(style.keySeparator);
    writeJson(out, entries[order[i]].second, style, level + 1);
  }
  if (!entries.empty())
    breakLine(out, style, level);
  out.put("}");
}

void writeJson(Writer &out, const Value &value, const JsonStyle &style,
               int level) {
  switch (value.kind()) {
  case Kind::None:
    return out.put("null");
  case Kind::Bool:
    return out.put(value.boolean() ? "true" : "false");
  case Kind::Int:
    return out.put(std::to_string(value.integer()));
  case Kind::Float:
    return out.put(jsonFloat(value.real()));
  case Kind::String:
    return writeJsonText(out, value.text(), style.ascii);
  case Kind::List:
  case Kind::Tuple: {
    const auto &items = value.as<Sequence>().items;
    out.put("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i)
        out.put(style.itemSeparator);
      breakLine(out, style, level + 1);
      writeJson(out, items[i], style, level + 1);
    }
    if (!items.empty())
      breakLine(out, style, level);
    return out.put("]");
  }
  case Kind::Dict:
    return writeJsonDict(out, value.as<Dict>(), style, level);
  default:
    fail("Object of type " + typeName(value) + " is not JSON serializable");
  }
}

} // namespace

std::string jinja::quoted(std::string_view text, Budget &budget) {
  const bool single = text.find('\'') == std::string_view::npos;
  const char quote =
      single || text.find('"') != std::string_view::npos ? '\'' : '"';
  std::string out(1, quote);
  for (const Character &c : Characters(text, budget)) {
    if (c.code == static_cast<char32_t>(quote) || c.code == '\\') {
      out += '\\';
      out += c.bytes;
    } else if (c.code == '\n') {
      out += "\\n";
    } else if (c.code == '\r') {
      out += "\\r";
    } else if (c.code == '\t') {
      out += "\\t";
    } else if (isPrintable(c.code)) {
      out += c.bytes;
    } else if (c.code < 0x100) {
      appendHex(out, "\\x", c.code, 2);
    } else if (c.code < 0x10000) {
      appendHex(out, "\\u", c.code, 4);
    } else {
      appendHex(out, "\\U", c.code, 8);
    }
  }
  return out + quote;
}

std::string jinja::quotedName(std::string_view text) {
  constexpr size_t most = 80;
  Budget budget(UINT64_MAX);
  const std::string shown = quoted(cutText(text, most), budget);
  return text.size() > most ? shown + "..." : shown;
}

std::string jinja::floatText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  // The shortest digits that read back, as "d.ddde+xx".
  char buffer[64];
  auto [end, code] = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                   std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(end - buffer));
  const size_t mark = shortest.find('e');
  int exponent = 0;
  const char *digits = shortest.data() + mark + 1;
  std::from_chars(digits + (*digits == '+'), end, exponent);
  if (exponent < -4 || exponent >= 16)
    return std::string(shortest);
  char fixed[64];
  auto [last, unused] = std::to_chars(fixed, fixed + sizeof(fixed), value,
                                      std::chars_format::fixed);
  std::string text(fixed, last);
  if (text.find('.') == std::string::npos)
    text += ".0";
  return text;
}

std::string jinja::toRepr(const Value &value, Budget &budget) {
  Writer out(budget);
  writeRepr(out, value);
  return out.take();
}

std::string jinja::toText(const Value &value, Budget &budget) {
  if (value.isString()) {
    budget.bytes(value.text().size());
    return value.text();
  }
  if (value.isUndefined())
    return "";
  return toRepr(value, budget);
}

std::string jinja::toJson(const Value &value, const JsonStyle &style,
                          Budget &budget) {
  Writer out(budget);
  writeJson(out, value, style, 0);
  return out.take();
}
