//===- SequenceFilters.cpp - Filters of lists and mappings ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"
#include "runtime/chat/Interpreter.h"

#include <algorithm>

using namespace kf;
using namespace kf::jinja;

namespace {

using Run = Interpreter;
using Args = Arguments;

Value generator(Run &run, std::vector<Value> items) {
  return makeSequence(Kind::Generator, std::move(items), run.budget);
}

/// The keys that lead to an attribute: "a.b.0", or an index.
std::vector<Value> pathOf(Run &run, const Value *attribute) {
  std::vector<Value> path;
  if (!attribute || attribute->isNone())
    return path;
  if (!attribute->isString())
    return {*attribute};
  const std::string_view dot = ".";
  for (std::string_view part :
       split(attribute->text(), &dot, -1, false, run.budget)) {
    const bool digits =
        !part.empty() && part.size() < 18 &&
        part.find_first_not_of("0123456789") == std::string_view::npos;
    path.push_back(digits ? Value(int64_t(std::stoll(std::string(part))))
                          : run.text(std::string(part)));
  }
  return path;
}

Value follow(Run &run, Value item, const std::vector<Value> &path,
             const Value *otherwise = nullptr) {
  for (const Value &key : path) {
    item = run.getItem(item, key);
    if (otherwise && item.isUndefined())
      item = *otherwise;
  }
  return item;
}

Value ignoreCase(Run &run, const Value &value, bool caseSensitive) {
  return caseSensitive || !value.isString()
             ? value
             : run.text(toLower(value.text(), run.budget));
}

Value length(Run &run, const Value &input, const Args &arguments) {
  Bound bound("length", arguments, {});
  return Value(lengthOf(input, run.budget));
}

Value toList(Run &run, const Value &input, const Args &arguments) {
  Bound bound("list", arguments, {});
  return run.list(iterate(input, run.budget));
}

Value first(Run &run, const Value &input, const Args &arguments) {
  Bound bound("first", arguments, {});
  if (input.is(Kind::Generator)) {
    auto &sequence = input.as<Sequence>();
    if (!sequence.consumed && !sequence.items.empty()) {
      run.budget.steps(sequence.items.size() / 8);
      Value item = sequence.items.front();
      sequence.items.erase(sequence.items.begin());
      return item;
    }
    return makeUndefined("No first item, sequence was empty.", run.budget);
  }
  const std::vector<Value> items = iterate(input, run.budget);
  return items.empty()
             ? makeUndefined("No first item, sequence was empty.", run.budget)
             : items.front();
}

Value last(Run &run, const Value &input, const Args &arguments) {
  Bound bound("last", arguments, {});
  if (input.is(Kind::Generator))
    fail("'generator' object is not reversible");
  const std::vector<Value> items = iterate(input, run.budget);
  return items.empty()
             ? makeUndefined("No last item, sequence was empty.", run.budget)
             : items.back();
}

Value join(Run &run, const Value &input, const Args &arguments) {
  Bound bound("join", arguments, {"d", "attribute"});
  const std::vector<Value> path = pathOf(run, bound[1]);
  const std::string separator = bound[0] ? run.str(*bound[0]) : "";
  std::string result;
  bool first = true;
  for (const Value &item : iterate(input, run.budget)) {
    const std::string part = run.str(follow(run, item, path));
    run.budget.text(result.size() + part.size() + separator.size(),
                    result.size());
    if (!first)
      result += separator;
    first = false;
    result += part;
  }
  return run.text(std::move(result));
}

Value reverse(Run &run, const Value &input, const Args &arguments) {
  Bound bound("reverse", arguments, {});
  std::vector<Value> items = iterate(input, run.budget);
  std::ranges::reverse(items);
  if (!input.isString())
    return generator(run, std::move(items));
  std::string result;
  for (const Value &item : items)
    result += item.text();
  return run.text(std::move(result));
}

Value items(Run &run, const Value &input, const Args &arguments) {
  Bound bound("items", arguments, {});
  if (input.isUndefined())
    return generator(run, {});
  if (!input.is(Kind::Dict))
    fail("items takes a mapping, not " + typeName(input));
  std::vector<Value> pairs;
  for (const auto &[key, value] : input.as<Dict>().entries)
    pairs.push_back(makeTuple(key, value, run.budget));
  return generator(run, std::move(pairs));
}

std::vector<Value> sorted(Run &run, const std::vector<Value> &items,
                          const std::vector<Value> &keys, bool reverse) {
  auto less = [&](size_t a, size_t b) {
    return compare(keys[a], keys[b], "<", run.budget) == -1;
  };
  std::vector<Value> result;
  for (size_t i : sortedOrder(items.size(), [&](size_t a, size_t b) {
         return reverse ? less(b, a) : less(a, b);
       }))
    result.push_back(items[i]);
  return result;
}

Value dictsort(Run &run, const Value &input, const Args &arguments) {
  Bound bound("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string_view by = bound.text(1, "key");
  if (by != "key" && by != "value")
    fail("dictsort sorts by key or value");
  requireDefined(input);
  if (!input.is(Kind::Dict))
    fail("dictsort takes a mapping, not " + typeName(input));
  std::vector<Value> pairs, keys;
  for (const auto &[key, value] : input.as<Dict>().entries) {
    pairs.push_back(makeTuple(key, value, run.budget));
    keys.push_back(ignoreCase(run, by == "key" ? key : value, bound.flag(0)));
  }
  return run.list(sorted(run, pairs, keys, bound.flag(2)));
}

Value sort(Run &run, const Value &input, const Args &arguments) {
  Bound bound("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const std::vector<Value> items = iterate(input, run.budget);
  std::vector<std::vector<Value>> paths;
  if (bound[2] && bound[2]->isString()) {
    const std::string_view comma = ",";
    for (std::string_view part :
         split(bound[2]->text(), &comma, -1, false, run.budget)) {
      const Value name = run.text(std::string(part));
      paths.push_back(pathOf(run, &name));
    }
  } else {
    paths.push_back(pathOf(run, bound[2]));
  }
  std::vector<Value> keys;
  for (const Value &item : items) {
    std::vector<Value> parts;
    for (const std::vector<Value> &path : paths)
      parts.push_back(ignoreCase(run, follow(run, item, path), bound.flag(1)));
    keys.push_back(run.list(std::move(parts)));
  }
  return run.list(sorted(run, items, keys, bound.flag(0)));
}

Value unique(Run &run, const Value &input, const Args &arguments) {
  Bound bound("unique", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> path = pathOf(run, bound[1]);
  std::vector<Value> seen, result;
  for (const Value &item : iterate(input, run.budget)) {
    const Value key = ignoreCase(run, follow(run, item, path), bound.flag(0));
    requireHashable(key, run.budget);
    if (std::ranges::any_of(seen, [&](const Value &other) {
          return equals(key, other, run.budget);
        }))
      continue;
    seen.push_back(key);
    result.push_back(item);
  }
  return generator(run, std::move(result));
}

/// min and max.
template <bool greatest>
Value extreme(Run &run, const Value &input, const Args &arguments) {
  Bound bound(greatest ? "max" : "min", arguments,
              {"case_sensitive", "attribute"});
  const std::vector<Value> path = pathOf(run, bound[1]);
  const std::vector<Value> items = iterate(input, run.budget);
  if (items.empty())
    return makeUndefined("No aggregated item, sequence was empty.", run.budget);
  size_t best = 0;
  Value bestKey;
  for (size_t i = 0; i < items.size(); ++i) {
    const Value key =
        ignoreCase(run, follow(run, items[i], path), bound.flag(0));
    const int order =
        i ? compare(key, bestKey, greatest ? ">" : "<", run.budget) : 0;
    if (i == 0 || order == (greatest ? 1 : -1)) {
      best = i;
      bestKey = key;
    }
  }
  return items[best];
}

Value sum(Run &run, const Value &input, const Args &arguments) {
  Bound bound("sum", arguments, {"attribute", "start"});
  const std::vector<Value> path = pathOf(run, bound[0]);
  Value total = bound[1] ? *bound[1] : Value(int64_t(0));
  if (total.isString())
    fail("sum cannot add up strings; use join");
  for (const Value &item : iterate(input, run.budget))
    total = run.binary("+", total, follow(run, item, path));
  return total;
}

Value map(Run &run, const Value &input, const Args &arguments) {
  std::vector<Value> result;
  if (arguments.positional.empty()) {
    Bound bound("map", arguments, {"attribute", "default"}, 1);
    const std::vector<Value> path = pathOf(run, bound[0]);
    const Value *otherwise =
        bound[1] && !bound[1]->isNone() ? bound[1] : nullptr;
    for (const Value &item : iterate(input, run.budget))
      result.push_back(follow(run, item, path, otherwise));
    return generator(run, std::move(result));
  }
  const Value &name = arguments.positional.front();
  if (!name.isString())
    fail("map takes the name of a filter, not " + typeName(name));
  Args rest;
  rest.positional.assign(arguments.positional.begin() + 1,
                         arguments.positional.end());
  rest.keywords = arguments.keywords;
  for (const Value &item : iterate(input, run.budget))
    result.push_back(run.applyFilter(name.text(), item, rest));
  return generator(run, std::move(result));
}

/// select, reject, selectattr and rejectattr.
template <bool keep, bool byAttribute>
Value select(Run &run, const Value &input, const Args &arguments) {
  std::vector<Value> result;
  if (!isTrue(input))
    return generator(run, {});
  std::vector<Value> path;
  if (byAttribute) {
    if (arguments.positional.empty())
      fail("selectattr and rejectattr take the name of an attribute");
    path = pathOf(run, &arguments.positional[0]);
  }
  const size_t skip = byAttribute ? 1 : 0;
  std::string test;
  Args rest;
  if (arguments.positional.size() > skip) {
    if (!arguments.positional[skip].isString())
      fail("select and reject take the name of a test, not " +
           typeName(arguments.positional[skip]));
    test = arguments.positional[skip].text();
    rest.positional.assign(arguments.positional.begin() +
                               static_cast<int64_t>(skip) + 1,
                           arguments.positional.end());
    rest.keywords = arguments.keywords;
  }
  for (const Value &item : iterate(input, run.budget)) {
    const Value value = follow(run, item, path);
    const bool holds =
        test.empty() ? isTrue(value) : run.applyTest(test, value, rest);
    if (holds == keep)
      result.push_back(item);
  }
  return generator(run, std::move(result));
}

Value attribute(Run &run, const Value &input, const Args &arguments) {
  Bound bound("attr", arguments, {"name"}, 1);
  requireDefined(input);
  const std::string_view name = bound.text(0, "");
  // Unlike the dot, this does not look for an item of that name.
  if (input.is(Kind::Dict) && methodKind(input, name) == MethodKind::None)
    return makeUndefined("'dict object' has no attribute " + quotedName(name),
                         run.budget);
  return run.getAttribute(input, name);
}

Value batch(Run &run, const Value &input, const Args &arguments) {
  Bound bound("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t size = bound.integer(0, 1);
  std::vector<Value> rows, row;
  for (const Value &item : iterate(input, run.budget)) {
    if (static_cast<int64_t>(row.size()) == size)
      rows.push_back(run.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (bound[1] && !bound[1]->isNone() &&
        size > static_cast<int64_t>(row.size())) {
      run.budget.items(static_cast<uint64_t>(size));
      row.resize(static_cast<size_t>(size), *bound[1]);
    }
    rows.push_back(run.list(std::move(row)));
  }
  return generator(run, std::move(rows));
}

Value slice(Run &run, const Value &input, const Args &arguments) {
  Bound bound("slice", arguments, {"slices", "fill_with"}, 1);
  const int64_t slices = bound.integer(0, 1);
  if (slices == 0)
    fail("integer division or modulo by zero");
  const std::vector<Value> items = iterate(input, run.budget);
  run.budget.items(static_cast<uint64_t>(std::max<int64_t>(slices, 0)));
  std::vector<Value> rows;
  if (slices < 0)
    return generator(run, {});
  const auto count = static_cast<size_t>(slices);
  const size_t each = items.size() / count, more = items.size() % count;
  size_t begin = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t end = begin + each + (i < more);
    std::vector<Value> row(items.begin() + static_cast<int64_t>(begin),
                           items.begin() + static_cast<int64_t>(end));
    if (bound[1] && !bound[1]->isNone() && i >= more)
      row.push_back(*bound[1]);
    rows.push_back(run.list(std::move(row)));
    begin = end;
  }
  return generator(run, std::move(rows));
}

Value groupby(Run &run, const Value &input, const Args &arguments) {
  Bound bound("groupby", arguments, {"attribute", "default", "case_sensitive"},
              1);
  const std::vector<Value> path = pathOf(run, bound[0]);
  const std::vector<Value> items = iterate(input, run.budget);
  const Value *otherwise = bound[1] && !bound[1]->isNone() ? bound[1] : nullptr;
  std::vector<Value> keys;
  for (const Value &item : items)
    keys.push_back(
        ignoreCase(run, follow(run, item, path, otherwise), bound.flag(2)));
  const std::vector<size_t> order =
      sortedOrder(items.size(), [&](size_t a, size_t b) {
        return compare(keys[a], keys[b], "<", run.budget) == -1;
      });
  std::vector<Value> groups;
  for (size_t i = 0; i < order.size();) {
    const size_t begin = i;
    std::vector<Value> group;
    for (; i < order.size() &&
           equals(keys[order[i]], keys[order[begin]], run.budget);
         ++i)
      group.push_back(items[order[i]]);
    if (group.empty()) // a key that does not equal itself
      group.push_back(items[order[i++]]);
    Value name = follow(run, group.front(), path, otherwise);
    groups.push_back(makeSequence(Kind::Tuple,
                                  {std::move(name), run.list(std::move(group))},
                                  run.budget, std::string(kGroupLabel)));
  }
  return run.list(std::move(groups));
}

struct Entry {
  std::string_view name;
  FilterFunction function;
};

constexpr Entry kFilters[] = {
    {"attr", attribute},
    {"batch", batch},
    {"count", length},
    {"dictsort", dictsort},
    {"first", first},
    {"groupby", groupby},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", toList},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"reverse", reverse},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
    {"slice", slice},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

} // namespace

FilterFunction jinja::findSequenceFilter(std::string_view name) {
  const auto it = std::ranges::find(kFilters, name, &Entry::name);
  return it == std::end(kFilters) ? nullptr : it->function;
}
