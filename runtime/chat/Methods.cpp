//===- Methods.cpp - Methods of Python's types ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"
#include "runtime/chat/Interpreter.h"

#include <algorithm>
#include <span>

using namespace kf;
using namespace kf::jinja;

namespace {

using Run = Interpreter;
using Args = Arguments;
using Method = Value (*)(Run &, const Value &, const Args &);

template <std::string (*function)(std::string_view)>
Value mapText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("the method", arguments, {});
  run.budget.steps(self.text().size() / 8);
  return run.text(function(self.text()));
}

std::string swapCase(std::string_view text) {
  std::string result;
  for (const Character &c : charactersOf(text))
    result += isUpper(c.code) ? toLower(c.bytes) : toUpper(c.bytes);
  return result;
}

template <bool left, bool right>
Value stripText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("strip", arguments, {"chars"});
  run.budget.steps(self.text().size() / 64);
  if (!bound[0] || bound[0]->isNone())
    return run.text(std::string(strip(self.text(), nullptr, left, right)));
  const std::string chars = bound.text(0, "");
  run.budget.steps(chars.size() * (1 + self.text().size() / 256));
  const std::string_view view = chars;
  return run.text(std::string(strip(self.text(), &view, left, right)));
}

Value listOf(Run &run, const std::vector<std::string_view> &parts) {
  run.budget.items(parts.size());
  std::vector<Value> items;
  for (std::string_view part : parts)
    items.push_back(run.text(std::string(part)));
  return run.list(std::move(items));
}

template <bool fromRight>
Value splitText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("split", arguments, {"sep", "maxsplit"});
  run.budget.steps(self.text().size() / 16);
  const int64_t limit = bound.integer(1, -1);
  if (!bound[0] || bound[0]->isNone())
    return listOf(run, split(self.text(), nullptr, limit, fromRight));
  const std::string separator = bound.text(0, "");
  if (separator.empty())
    fail("empty separator");
  const std::string_view view = separator;
  return listOf(run, split(self.text(), &view, limit, fromRight));
}

Value splitLinesText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("splitlines", arguments, {"keepends"});
  run.budget.steps(self.text().size() / 16);
  return listOf(run, splitLines(self.text(), bound.flag(0)));
}

template <bool fromRight>
Value partition(Run &run, const Value &self, const Args &arguments) {
  Bound bound("partition", arguments, {"sep"}, 1);
  const std::string separator = bound.text(0, "");
  if (separator.empty())
    fail("empty separator");
  const std::string &text = self.text();
  const size_t at = fromRight ? text.rfind(separator) : text.find(separator);
  std::vector<std::string> parts = {text, "", ""};
  if (at != std::string::npos)
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  else if (fromRight)
    parts = {"", "", text};
  return makeSequence(
      Kind::Tuple, {run.text(parts[0]), run.text(parts[1]), run.text(parts[2])},
      run.budget);
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
  const std::string affix = bound.text(0, "");
  std::string text = self.text();
  if (suffix && text.ends_with(affix))
    text.resize(text.size() - affix.size());
  else if (!suffix && text.starts_with(affix))
    text.erase(0, affix.size());
  return run.text(std::move(text));
}

Value replaceText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const std::string old = bound.text(0, ""), with = bound.text(1, "");
  int64_t left = bound.integer(2, -1);
  const std::string &text = self.text();
  std::string result;
  run.budget.steps(text.size() / 16);
  auto append = [&](std::string_view part) {
    run.budget.text(result.size() + part.size(), result.size());
    result += part;
  };
  size_t at = 0;
  if (old.empty()) {
    // Before every character, and at the end.
    uint64_t times = left < 0 ? UINT64_MAX : static_cast<uint64_t>(left);
    for (const Character &c : charactersOf(text)) {
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
  while (!old.empty() && left-- != 0) {
    const size_t found = text.find(old, at);
    if (found == std::string::npos)
      break;
    run.budget.steps(1);
    append(std::string_view(text).substr(at, found - at));
    append(with);
    at = found + old.size();
  }
  append(std::string_view(text).substr(at));
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
  const std::string sub = bound.text(0, "");
  const std::string &text = self.text();
  run.budget.steps(text.size() / 16);
  // Positions count characters.
  const std::vector<Character> characters = charactersOf(text);
  const auto length = static_cast<int64_t>(characters.size());
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max(at, -length) + length : at, 0,
                               length);
  };
  auto offset = [&](int64_t at) {
    return at == length ? text.size()
                        : static_cast<size_t>(
                              characters[static_cast<size_t>(at)].bytes.data() -
                              text.data());
  };
  const int64_t start = clamp(bound.integer(1, 0));
  const int64_t end = clamp(bound.integer(2, length));
  size_t found = std::string::npos;
  if (start <= end && bound.integer(1, 0) <= length) {
    const std::string_view part = std::string_view(text).substr(
        offset(start), offset(end) - offset(start));
    found = how == Find::RFind || how == Find::RIndex ? part.rfind(sub)
                                                      : part.find(sub);
    if (found != std::string_view::npos)
      return Value(
          start + static_cast<int64_t>(countCharacters(part.substr(0, found))));
  }
  if (how == Find::Index || how == Find::RIndex)
    fail("substring not found");
  return Value(int64_t(-1));
}

Value countText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("count", arguments, {"sub"}, 1);
  const std::string sub = bound.text(0, "");
  run.budget.steps(self.text().size() / 16);
  if (sub.empty())
    return Value(static_cast<int64_t>(countCharacters(self.text())) + 1);
  int64_t count = 0;
  for (size_t at = self.text().find(sub); at != std::string::npos;
       at = self.text().find(sub, at + sub.size()))
    ++count;
  return Value(count);
}

Value formatText(Run &run, const Value &self, const Args &arguments) {
  return run.text(formatBraces(run, self.text(), arguments));
}

/// All characters pass, and there is one.
template <bool (*test)(char32_t)>
Value areAll(Run &run, const Value &self, const Args &arguments) {
  Bound bound("the method", arguments, {});
  run.budget.steps(self.text().size() / 8);
  const std::vector<Character> characters = charactersOf(self.text());
  return Value(!characters.empty() &&
               std::ranges::all_of(characters, [](const Character &c) {
                 return test(c.code);
               }));
}
bool isAlnum(char32_t c) { return isAlphabetic(c) || isNumeric(c); }
bool isAscii(char32_t c) { return c < 0x80; }

template <bool upper>
Value isCase(Run &run, const Value &self, const Args &arguments) {
  Bound bound("the method", arguments, {});
  run.budget.steps(self.text().size() / 8);
  Args none;
  return Value(run.applyTest(upper ? "upper" : "lower", self, none));
}

/// ljust, rjust, center and zfill.
enum class Pad { Left, Right, Center, Zero };
template <Pad how>
Value padText(Run &run, const Value &self, const Args &arguments) {
  Bound bound("a justifying method", arguments, {"width", "fillchar"}, 1);
  const std::string fill = bound.text(1, how == Pad::Zero ? "0" : " ");
  if (countCharacters(fill) != 1)
    fail("the fill character must be exactly one character long");
  const auto length = static_cast<int64_t>(countCharacters(self.text()));
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
  std::string result, text = self.text();
  if (how == Pad::Zero && (text.starts_with('-') || text.starts_with('+'))) {
    result = text.substr(0, 1);
    text.erase(0, 1);
  }
  for (uint64_t i = 0; i < left; ++i)
    result += fill;
  result += text;
  for (uint64_t i = left; i < margin; ++i)
    result += fill;
  return run.text(std::move(result));
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
  requireHashable(*bound[0]);
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
