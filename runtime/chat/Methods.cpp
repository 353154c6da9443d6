//===- Methods.cpp - Methods of Python's types ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"
#include "runtime/chat/Interpreter.h"
#include "runtime/chat/TextSearch.h"

#include <algorithm>
#include <span>

using namespace kf;
using namespace kf::jinja;

namespace {

using Run = Interpreter;
using Args = Arguments;
using Method = Value (*)(Run &, const Value &, const Args &);

template <std::string (*function)(std::string_view, Budget &)>
Value mapText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("the method", arguments, {});
  return run.text(function(self.text(), run.budget));
}

template <bool left, bool right>
Value stripText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("strip", arguments, {"chars"});
  const bool given = bound[0] && !bound[0]->isNone();
  const std::string_view chars = given ? bound.text(0, "") : "";
  return run.text(std::string(
      strip(self.text(), given ? &chars : nullptr, left, right, run.budget)));
}

Value listOf(Run &run, const std::vector<std::string_view> &parts) {
  std::vector<Value> items;
  for (std::string_view part : parts)
    items.push_back(run.text(std::string(part)));
  return run.list(std::move(items));
}

template <bool fromRight>
Value splitText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("split", arguments, {"sep", "maxsplit"});
  const int64_t limit = bound.integer(1, -1);
  const bool given = bound[0] && !bound[0]->isNone();
  const std::string_view separator = given ? bound.text(0, "") : " ";
  if (separator.empty())
    fail("empty separator");
  return listOf(run, split(self.text(), given ? &separator : nullptr, limit,
                           fromRight, run.budget));
}

Value splitLinesText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("splitlines", arguments, {"keepends"});
  return listOf(run, splitLines(self.text(), bound.flag(0), run.budget));
}

template <bool fromRight>
Value partition(Run &run, const Value &self, const Args &arguments) {
  Bound bound("partition", arguments, {"sep"}, 1);
  const std::string_view separator = bound.text(0, ""), text = self.text();
  if (separator.empty())
    fail("empty separator");
  const size_t at = TextSearch(separator, fromRight, run.budget).find(text);
  std::string_view parts[3];
  if (at != std::string_view::npos) {
    parts[0] = text.substr(0, at);
    parts[1] = separator;
    parts[2] = text.substr(at + separator.size());
  } else {
    parts[fromRight ? 2 : 0] = text;
  }
  std::vector<Value> items;
  for (std::string_view part : parts)
    items.push_back(run.text(std::string(part)));
  return makeSequence(Kind::Tuple, std::move(items), run.budget);
}

/// startswith and endswith, with a string or a tuple of them.
template <bool atEnd>
Value hasAffix(Run &run, const Value &self, const Args &arguments) {
  const std::string_view name = atEnd ? "endswith" : "startswith";
  Bound bound(name, arguments, {"affix", "start", "end"}, 1);
  if (bound[1] || bound[2])
    fail(std::string(name) + " with positions is not supported");
  requireDefined(*bound[0]);
  std::vector<Value> affixes = {*bound[0]};
  if (bound[0]->is(Kind::Tuple))
    affixes = iterate(*bound[0], run.budget);
  for (const Value &affix : affixes) {
    if (!affix.isString())
      fail(std::string(name) + " takes a string or a tuple of strings, not " +
           typeName(affix));
    run.budget.bytes(affix.text().size());
    if (atEnd ? self.text().ends_with(affix.text())
              : self.text().starts_with(affix.text()))
      return Value(true);
  }
  return Value(false);
}

template <bool suffix>
Value removeAffix(Run &run, const Value &self, const Args &arguments) {
  Bound bound(suffix ? "removesuffix" : "removeprefix", arguments, {"affix"},
              1);
  const std::string_view affix = bound.text(0, "");
  std::string_view text = self.text();
  run.budget.bytes(affix.size());
  if (suffix && text.ends_with(affix))
    text.remove_suffix(affix.size());
  else if (!suffix && text.starts_with(affix))
    text.remove_prefix(affix.size());
  return run.text(std::string(text));
}

Value replaceText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const std::string_view old = bound.text(0, ""), with = bound.text(1, "");
  int64_t left = bound.integer(2, -1);
  const std::string_view text = self.text();
  std::string result;
  auto append = [&](std::string_view part) {
    run.budget.text(result.size() + part.size(), result.size());
    result += part;
  };
  size_t at = 0;
  if (old.empty()) {
    // Before every character, and at the end.
    uint64_t times = left < 0 ? UINT64_MAX : static_cast<uint64_t>(left);
    for (const Character &c : Characters(text, run.budget)) {
      if (times == 0)
        break;
      --times;
      run.budget.steps(1);
      append(with);
      append(c.bytes);
      at += c.bytes.size();
    }
    if (times > 0)
      append(with);
  }
  const TextSearch search(old, false, run.budget);
  while (!old.empty() && left-- != 0) {
    const size_t found = search.find(text.substr(at));
    if (found == std::string_view::npos)
      break;
    append(text.substr(at, found));
    append(with);
    at += found + old.size();
  }
  append(text.substr(at));
  return makeLiteral(std::move(result));
}

Value joinText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("join", arguments, {"iterable"}, 1);
  requireDefined(*bound[0]);
  std::string result;
  bool first = true;
  for (const Value &item : iterate(*bound[0], run.budget)) {
    requireDefined(item);
    if (!item.isString())
      fail("join takes strings, not " + typeName(item));
    run.budget.text(result.size() + item.text().size() + self.text().size(),
                    result.size());
    if (!first)
      result += self.text();
    first = false;
    result += item.text();
  }
  return makeLiteral(std::move(result));
}

enum class Find { Find, RFind, Index, RIndex };
template <Find how>
Value findText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("find", arguments, {"sub", "start", "end"}, 1);
  const std::string_view sub = bound.text(0, ""), text = self.text();
  // Positions count characters.
  const auto length = static_cast<int64_t>(countCharacters(text, run.budget));
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max(at, -length) + length : at, 0,
                               length);
  };
  const int64_t start = clamp(bound.integer(1, 0));
  const int64_t end = clamp(bound.integer(2, length));
  if (start <= end && bound.integer(1, 0) <= length) {
    const size_t begin =
        bytesOfCharacters(text, static_cast<size_t>(start), run.budget);
    std::string_view part = text.substr(begin);
    part =
        part.substr(0, bytesOfCharacters(part, static_cast<size_t>(end - start),
                                         run.budget));
    const size_t found =
        TextSearch(sub, how == Find::RFind || how == Find::RIndex, run.budget)
            .find(part);
    if (found != std::string_view::npos)
      return Value(start + static_cast<int64_t>(countCharacters(
                               part.substr(0, found), run.budget)));
  }
  if (how == Find::Index || how == Find::RIndex)
    fail("substring not found");
  return Value(int64_t(-1));
}

Value countText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("count", arguments, {"sub"}, 1);
  const std::string_view sub = bound.text(0, "");
  std::string_view text = self.text();
  if (sub.empty())
    return Value(static_cast<int64_t>(countCharacters(text, run.budget)) + 1);
  const TextSearch search(sub, false, run.budget);
  int64_t count = 0;
  for (size_t at = search.find(text); at != std::string_view::npos;
       at = search.find(text)) {
    text.remove_prefix(at + sub.size());
    ++count;
  }
  return Value(count);
}

Value formatText(Run &run, const Value &self, const Args &arguments) {
  return run.text(formatBraces(run, self.text(), arguments));
}

/// All characters pass, and there is one.
template <bool (*test)(char32_t)>
Value areAll(Run &run, const Value &self, const Args &arguments) {
  Bound bound("the method", arguments, {});
  for (const Character &c : Characters(self.text(), run.budget))
    if (!test(c.code))
      return Value(false);
  return Value(!self.text().empty());
}
bool isAlnum(char32_t c) { return isAlphabetic(c) || isNumeric(c); }
bool isAscii(char32_t c) { return c < 0x80; }

template <bool upper>
Value isCase(Run &run, const Value &self, const Args &arguments) {
  Bound bound("the method", arguments, {});
  Args none;
  return Value(run.applyTest(upper ? "upper" : "lower", self, none));
}

/// ljust, rjust, center and zfill.
enum class Pad { Left, Right, Center, Zero };
template <Pad how>
Value padText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("a justifying method", arguments, {"width", "fillchar"}, 1);
  const std::string_view fill = bound.text(1, how == Pad::Zero ? "0" : " ");
  if (countCharacters(fill, run.budget) != 1)
    fail("the fill character must be exactly one character long");
  std::string_view text = self.text();
  const auto length = static_cast<int64_t>(countCharacters(text, run.budget));
  const int64_t width = bound.integer(0, 0);
  if (width <= length)
    return self;
  const auto margin = static_cast<uint64_t>(width - length);
  if (margin > Budget::kMaxText / 4)
    fail("a width of " + std::to_string(width) + " is too much");
  uint64_t left = 0;
  if (how == Pad::Right || how == Pad::Zero)
    left = margin;
  if (how == Pad::Center)
    left = margin / 2 + (margin & static_cast<uint64_t>(width) & 1);
  run.budget.characters(margin);
  run.budget.text(text.size() + margin * fill.size());
  std::string result;
  if (how == Pad::Zero && (text.starts_with('-') || text.starts_with('+'))) {
    result = text.substr(0, 1);
    text.remove_prefix(1);
  }
  for (uint64_t i = 0; i < left; ++i)
    result += fill;
  result += text;
  for (uint64_t i = left; i < margin; ++i)
    result += fill;
  return makeLiteral(std::move(result));
}

//===----------------------------------------------------------------------===//
// Mappings and lists
//===----------------------------------------------------------------------===//

enum class View { Keys, Values, Items };
template <View what>
Value viewDict(Run &run, const Value &self, const Args &arguments) {
  Bound bound("a mapping's method", arguments, {});
  std::vector<Value> items;
  for (const auto &[key, value] : self.as<Dict>().entries)
    items.push_back(what == View::Keys     ? key
                    : what == View::Values ? value
                                           : makeTuple(key, value, run.budget));
  return makeSequence(Kind::View, std::move(items), run.budget,
                      what == View::Keys     ? "dict_keys"
                      : what == View::Values ? "dict_values"
                                             : "dict_items");
}

Value getKey(Run &run, const Value &self, const Args &arguments) {
  Bound bound("get", arguments, {"key", "default"}, 1);
  requireHashable(*bound[0], run.budget);
  if (const Value *found = self.as<Dict>().find(*bound[0], run.budget))
    return *found;
  return bound[1] ? *bound[1] : Value();
}

Value copyOf(Run &, const Value &self, const Args &arguments) {
  Bound bound("copy", arguments, {});
  return self;
}

template <bool count>
Value findItem(Run &run, const Value &self, const Args &arguments) {
  Bound bound(count ? "count" : "index", arguments, {"value"}, 1);
  int64_t found = 0;
  const auto &items = self.as<Sequence>().items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!equals(items[i], *bound[0], run.budget))
      continue;
    if (!count)
      return Value(static_cast<int64_t>(i));
    ++found;
  }
  if (!count)
    fail("the value is not in the list");
  return Value(found);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value cycle(Run &, const Value &self, const Args &arguments) {
  if (arguments.positional.empty())
    fail("no items for cycling given");
  return arguments
      .positional[self.as<Loop>().index % arguments.positional.size()];
}

Value changed(Run &run, const Value &self, const Args &arguments) {
  Loop &loop = self.as<Loop>();
  const auto same = [&](const Value &a, const Value &b) {
    return equals(a, b, run.budget);
  };
  if (loop.hasChanged &&
      std::ranges::equal(loop.changed, arguments.positional, same))
    return Value(false);
  for (const Value &value : arguments.positional)
    if (value.object() && !value.isString())
      fail("loop.changed takes numbers and strings");
  loop.hasChanged = true;
  loop.changed = arguments.positional;
  return Value(true);
}

struct Entry {
  std::string_view name;
  Method method; ///< null: Python has it, templates do not get it
};

constexpr Entry kTextMethods[] = {
    {"capitalize", mapText<toCapitalized>},
    {"casefold", nullptr},
    {"center", padText<Pad::Center>},
    {"count", countText},
    {"encode", nullptr},
    {"endswith", hasAffix<true>},
    {"expandtabs", nullptr},
    {"find", findText<Find::Find>},
    {"format", formatText},
    {"format_map", nullptr},
    {"index", findText<Find::Index>},
    {"isalnum", areAll<isAlnum>},
    {"isalpha", areAll<isAlphabetic>},
    {"isascii", areAll<isAscii>},
    {"isdecimal", nullptr},
    {"isdigit", areAll<isDigit>},
    {"isidentifier", nullptr},
    {"islower", isCase<false>},
    {"isnumeric", areAll<isNumeric>},
    {"isprintable", nullptr},
    {"isspace", areAll<isSpace>},
    {"istitle", nullptr},
    {"isupper", isCase<true>},
    {"join", joinText},
    {"ljust", padText<Pad::Left>},
    {"lower", mapText<toLower>},
    {"lstrip", stripText<true, false>},
    {"maketrans", nullptr},
    {"partition", partition<false>},
    {"removeprefix", removeAffix<false>},
    {"removesuffix", removeAffix<true>},
    {"replace", replaceText},
    {"rfind", findText<Find::RFind>},
    {"rindex", findText<Find::RIndex>},
    {"rjust", padText<Pad::Right>},
    {"rpartition", partition<true>},
    {"rsplit", splitText<true>},
    {"rstrip", stripText<false, true>},
    {"split", splitText<false>},
    {"splitlines", splitLinesText},
    {"startswith", hasAffix<false>},
    {"strip", stripText<true, true>},
    {"swapcase", mapText<swapCase>},
    {"title", mapText<toTitle>},
    {"translate", nullptr},
    {"upper", mapText<toUpper>},
    {"zfill", padText<Pad::Zero>},
};
constexpr Entry kDictMethods[] = {
    {"copy", copyOf},
    {"fromkeys", nullptr},
    {"get", getKey},
    {"items", viewDict<View::Items>},
    {"keys", viewDict<View::Keys>},
    {"values", viewDict<View::Values>},
};
constexpr Entry kListMethods[] = {
    {"copy", copyOf},
    {"count", findItem<true>},
    {"index", findItem<false>},
};
constexpr Entry kTupleMethods[] = {
    {"count", findItem<true>},
    {"index", findItem<false>},
};
constexpr Entry kLoopMethods[] = {
    {"changed", changed},
    {"cycle", cycle},
};

/// What the sandbox refuses, since it changes the object.
constexpr std::string_view kDictChanges[] = {"clear", "pop", "popitem",
                                             "setdefault", "update"};
constexpr std::string_view kListChanges[] = {
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};

std::span<const Entry> methodsOf(const Value &object) {
  switch (object.kind()) {
  case Kind::String:
    return kTextMethods;
  case Kind::Dict:
    return kDictMethods;
  case Kind::List:
    return kListMethods;
  case Kind::Tuple:
  case Kind::Range:
    return kTupleMethods;
  case Kind::Loop:
    return kLoopMethods;
  default:
    return {};
  }
}

bool isIn(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

} // namespace

MethodKind jinja::methodKind(const Value &object, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__") &&
      !object.is(Kind::Dict) && !object.is(Kind::Namespace))
    return MethodKind::Forbidden;
  if ((object.is(Kind::Dict) && isIn(kDictChanges, name)) ||
      (object.is(Kind::List) && isIn(kListChanges, name)))
    return MethodKind::Forbidden;
  const std::span<const Entry> methods = methodsOf(object);
  const auto it = std::ranges::find(methods, name, &Entry::name);
  if (it == methods.end())
    return MethodKind::None;
  return it->method ? MethodKind::Supported : MethodKind::Unsupported;
}

Value jinja::callMethod(Interpreter &interpreter, const Value &self,
                        std::string_view name, const Arguments &arguments) {
  const std::span<const Entry> methods = methodsOf(self);
  const auto it = std::ranges::find(methods, name, &Entry::name);
  if (it == methods.end() || !it->method)
    fail("'" + std::string(name) + "' of " + typeName(self) +
         " is not supported in chat templates");
  return it->method(interpreter, self, arguments);
}
