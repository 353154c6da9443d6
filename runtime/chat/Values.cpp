//===- Values.cpp - What a template's expressions compute -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Values.h"

#include "runtime/chat/Characters.h"
#include "runtime/chat/TextSearch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace kf;
using namespace kf::jinja;

/// Containers inside containers; what Python's own limit would allow is more
/// than any template needs.
static constexpr int kMaxNesting = 100;

//===----------------------------------------------------------------------===//
// Making values
//===----------------------------------------------------------------------===//

const std::string &Value::text() const { return as<Text>().text; }

int jinja::depthAround(int depth, const Value &item) {
  const int around = item.depth() + 1;
  if (around > kMaxNesting)
    fail("values are nested more than " + std::to_string(kMaxNesting) +
         " deep");
  return std::max(depth, around);
}

Value jinja::makeUndefined(std::string why, Budget &budget) {
  budget.hold(sizeof(UndefinedInfo) + why.size());
  auto info = std::make_shared<UndefinedInfo>();
  info->why = std::move(why);
  return Value(Kind::Undefined, std::move(info));
}

Value jinja::makeLiteral(std::string text) {
  auto object = std::make_shared<Text>();
  object->text = std::move(text);
  return Value(Kind::String, std::move(object));
}

Value jinja::makeText(std::string text, Budget &budget) {
  budget.text(text.size());
  budget.steps(1);
  budget.hold(sizeof(Text));
  return makeLiteral(std::move(text));
}

Value jinja::makeSequence(Kind kind, std::vector<Value> items, Budget &budget,
                          std::string label) {
  budget.items(items.size());
  auto sequence = std::make_shared<Sequence>();
  for (const Value &item : items)
    sequence->depth = depthAround(sequence->depth, item);
  sequence->items = std::move(items);
  sequence->label = std::move(label);
  return Value(kind, std::move(sequence));
}

Value jinja::makeTuple(Value first, Value second, Budget &budget) {
  std::vector<Value> items = {std::move(first), std::move(second)};
  return makeSequence(Kind::Tuple, std::move(items), budget);
}

Value jinja::makeDict(std::vector<std::pair<Value, Value>> entries,
                      Budget &budget) {
  budget.items(2 * entries.size());
  auto dict = std::make_shared<Dict>();
  dict->entries.reserve(entries.size());
  for (auto &[key, value] : entries) {
    requireHashable(key, budget);
    dict->depth = depthAround(depthAround(dict->depth, key), value);
    if (const Value *known = dict->find(key, budget))
      *const_cast<Value *>(known) = std::move(value);
    else
      dict->entries.emplace_back(std::move(key), std::move(value));
  }
  return Value(Kind::Dict, std::move(dict));
}

const Value *Dict::find(const Value &key, Budget &budget) const {
  for (const auto &[name, value] : entries)
    if (equals(name, key, budget))
      return &value;
  return nullptr;
}

const Value *Dict::find(std::string_view key, Budget &budget) const {
  budget.steps(entries.size() / 4);
  for (const auto &[name, value] : entries)
    if (name.isString() && name.text().size() == key.size()) {
      budget.bytes(key.size());
      if (name.text() == key)
        return &value;
    }
  return nullptr;
}

Value *Namespace::find(std::string_view name, Budget &budget) {
  budget.steps(entries.size() / 4);
  for (auto &[key, value] : entries)
    if (key.size() == name.size()) {
      budget.bytes(name.size());
      if (key == name)
        return &value;
    }
  return nullptr;
}

void jinja::requireDefined(const Value &value) {
  if (value.isUndefined())
    fail(value.as<UndefinedInfo>().why);
}

void jinja::requireHashable(const Value &key, Budget &budget) {
  budget.steps(1);
  switch (key.kind()) {
  case Kind::List:
  case Kind::Dict:
    fail("unhashable type: '" + typeName(key) + "'");
  case Kind::Tuple:
    for (const Value &item : key.as<Sequence>().items)
      requireHashable(item, budget);
    return;
  default:
    return;
  }
}

//===----------------------------------------------------------------------===//
// Looking at values
//===----------------------------------------------------------------------===//

std::string jinja::typeName(const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
    return "Undefined";
  case Kind::None:
    return "NoneType";
  case Kind::Bool:
    return "bool";
  case Kind::Int:
    return "int";
  case Kind::Float:
    return "float";
  case Kind::String:
    return "str";
  case Kind::List:
    return "list";
  case Kind::Tuple:
    return "tuple";
  case Kind::Range:
    return "range";
  case Kind::View:
    return value.as<Sequence>().label;
  case Kind::Generator:
    return "generator";
  case Kind::Dict:
    return "dict";
  case Kind::Namespace:
    return "Namespace";
  case Kind::Macro:
    return "Macro";
  case Kind::Loop:
    return "LoopContext";
  case Kind::Function:
    return "function";
  }
  return "";
}

bool jinja::isTrue(const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return false;
  case Kind::Bool:
  case Kind::Int:
    return value.integer() != 0;
  case Kind::Float:
    return value.real() != 0;
  case Kind::String:
    return !value.text().empty();
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
  case Kind::View:
    return !value.as<Sequence>().items.empty();
  case Kind::Dict:
    return !value.as<Dict>().entries.empty();
  default:
    return true;
  }
}

int64_t jinja::lengthOf(const Value &value, Budget &budget) {
  switch (value.kind()) {
  case Kind::Undefined:
    return 0;
  case Kind::String:
    return static_cast<int64_t>(countCharacters(value.text(), budget));
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
  case Kind::View:
    return static_cast<int64_t>(value.as<Sequence>().items.size());
  case Kind::Dict:
    return static_cast<int64_t>(value.as<Dict>().entries.size());
  default:
    fail("object of type '" + typeName(value) + "' has no len()");
  }
}

std::vector<Value> jinja::iterate(const Value &value, Budget &budget) {
  std::vector<Value> items;
  switch (value.kind()) {
  case Kind::Undefined:
    break;
  case Kind::String: {
    for (const Character &c : Characters(value.text(), budget)) {
      budget.item();
      items.push_back(makeText(std::string(c.bytes), budget));
    }
    break;
  }
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
  case Kind::View:
  case Kind::Generator: {
    Sequence &sequence = value.as<Sequence>();
    if (sequence.consumed)
      break;
    sequence.consumed = value.is(Kind::Generator);
    budget.items(sequence.items.size());
    items = sequence.items;
    break;
  }
  case Kind::Dict:
    budget.items(value.as<Dict>().entries.size());
    for (const auto &[key, unused] : value.as<Dict>().entries)
      items.push_back(key);
    break;
  default:
    fail("'" + typeName(value) + "' object is not iterable");
  }
  return items;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// -1, 0, 1, or 2 if unordered.
static int compareNumbers(const Value &a, const Value &b) {
  if (a.isInt() && b.isInt())
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  const long double x =
      a.isInt() ? static_cast<long double>(a.integer()) : a.real();
  const long double y =
      b.isInt() ? static_cast<long double>(b.integer()) : b.real();
  if (std::isnan(x) || std::isnan(y))
    return 2;
  return x < y ? -1 : x > y;
}

bool jinja::equals(const Value &a, const Value &b, Budget &budget) {
  budget.steps(1);
  if (a.isNumber() && b.isNumber())
    return compareNumbers(a, b) == 0;
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Kind::Undefined:
  case Kind::None:
    return true;
  case Kind::String:
    if (a.text().size() != b.text().size())
      return false;
    budget.bytes(a.text().size());
    return a.text() == b.text();
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range: {
    const auto &x = a.as<Sequence>().items, &y = b.as<Sequence>().items;
    return std::ranges::equal(x, y, [&](const Value &p, const Value &q) {
      return equals(p, q, budget);
    });
  }
  case Kind::Dict: {
    const Dict &x = a.as<Dict>(), &y = b.as<Dict>();
    if (x.entries.size() != y.entries.size())
      return false;
    for (const auto &[key, value] : x.entries) {
      const Value *other = y.find(key, budget);
      if (!other || !equals(value, *other, budget))
        return false;
    }
    return true;
  }
  default:
    return a.object() == b.object();
  }
}

int jinja::compare(const Value &a, const Value &b, std::string_view op,
                   Budget &budget) {
  budget.steps(1);
  requireDefined(a);
  requireDefined(b);
  if (a.isNumber() && b.isNumber())
    return compareNumbers(a, b);
  if (a.isString() && b.isString()) {
    budget.bytes(std::min(a.text().size(), b.text().size()));
    const int order = a.text().compare(b.text());
    return order < 0 ? -1 : order > 0;
  }
  if (a.kind() == b.kind() && (a.is(Kind::List) || a.is(Kind::Tuple))) {
    const auto &x = a.as<Sequence>().items, &y = b.as<Sequence>().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equals(x[i], y[i], budget))
        return compare(x[i], y[i], op, budget);
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  fail("'" + std::string(op) + "' not supported between instances of '" +
       typeName(a) + "' and '" + typeName(b) + "'");
}

bool jinja::contains(const Value &haystack, const Value &needle,
                     Budget &budget) {
  switch (haystack.kind()) {
  case Kind::String:
    if (!needle.isString())
      fail("'in <string>' requires string as left operand, not " +
           typeName(needle));
    return TextSearch(needle.text(), false, budget).find(haystack.text()) !=
           std::string::npos;
  case Kind::Dict:
    requireHashable(needle, budget);
    return haystack.as<Dict>().find(needle, budget) != nullptr;
  case Kind::Undefined:
    return false;
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
  case Kind::View:
  case Kind::Generator: {
    Sequence &sequence = haystack.as<Sequence>();
    if (sequence.consumed)
      return false;
    sequence.consumed = haystack.is(Kind::Generator);
    return std::ranges::any_of(sequence.items, [&](const Value &item) {
      return equals(item, needle, budget);
    });
  }
  default:
    fail("argument of type '" + typeName(haystack) + "' is not iterable");
  }
}

std::vector<size_t>
jinja::sortedOrder(size_t count,
                   const std::function<bool(size_t, size_t)> &less) {
  std::vector<size_t> order(count), merged(count);
  std::iota(order.begin(), order.end(), size_t(0));
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = std::min(begin + width, count);
      const size_t end = std::min(begin + 2 * width, count);
      size_t left = begin, right = middle;
      for (size_t at = begin; at < end; ++at) {
        const bool fromRight =
            left == middle || (right < end && less(order[right], order[left]));
        merged[at] = order[fromRight ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}
