//===- Tests.cpp - What stands after 'is' ---------------------------------===//
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

const Value &operand(std::string_view test, const Args &arguments) {
  if (arguments.positional.size() != 1 || !arguments.keywords.empty())
    fail("test '" + std::string(test) + "' takes one argument");
  return arguments.positional[0];
}

void noOperand(std::string_view test, const Args &arguments) {
  if (!arguments.positional.empty() || !arguments.keywords.empty())
    fail("test '" + std::string(test) + "' takes no argument");
}

int64_t modulo(Run &run, const Value &value, const Value &divisor) {
  const Value rest = run.binary("%", value, divisor);
  return rest.isNumber() && rest.real() == 0 ? 0 : 1;
}

/// A test by the kinds that pass it.
template <Kind... kinds>
bool isKind(Run &, const Value &value, const Args &arguments) {
  noOperand("by type", arguments);
  return (value.is(kinds) || ...);
}

bool isDefined(Run &, const Value &value, const Args &arguments) {
  noOperand("defined", arguments);
  return !value.isUndefined();
}
bool isBoolean(Run &, const Value &value, const Args &arguments) {
  noOperand("boolean", arguments);
  return value.is(Kind::Bool);
}
bool isTrueTest(Run &, const Value &value, const Args &arguments) {
  noOperand("true", arguments);
  return value.is(Kind::Bool) && value.boolean();
}
bool isFalseTest(Run &, const Value &value, const Args &arguments) {
  noOperand("false", arguments);
  return value.is(Kind::Bool) && !value.boolean();
}
bool isNever(Run &, const Value &, const Args &) { return false; }

bool isOdd(Run &run, const Value &value, const Args &arguments) {
  noOperand("odd", arguments);
  return equals(run.binary("%", value, Value(int64_t(2))), Value(int64_t(1)),
                run.budget);
}
bool isEven(Run &run, const Value &value, const Args &arguments) {
  noOperand("even", arguments);
  return modulo(run, value, Value(int64_t(2))) == 0;
}
bool isDivisible(Run &run, const Value &value, const Args &arguments) {
  return modulo(run, value, operand("divisibleby", arguments)) == 0;
}

bool hasCase(Run &run, const Value &value, bool (*wanted)(char32_t),
             bool (*other)(char32_t)) {
  bool found = false;
  const std::string text = run.str(value);
  for (const Character &c : Characters(text, run.budget)) {
    if (other(c.code))
      return false;
    found |= wanted(c.code);
  }
  return found;
}
bool isLowerTest(Run &run, const Value &value, const Args &) {
  return hasCase(run, value, isLower, isUpper);
}
bool isUpperTest(Run &run, const Value &value, const Args &) {
  return hasCase(run, value, isUpper, isLower);
}

bool isIn(Run &run, const Value &value, const Args &arguments) {
  return contains(operand("in", arguments), value, run.budget);
}
bool isSame(Run &run, const Value &value, const Args &arguments) {
  const Value &other = operand("sameas", arguments);
  if (value.kind() != other.kind())
    return false;
  return value.object() || other.object() ? value.object() == other.object()
                                          : equals(value, other, run.budget);
}
bool isEqual(Run &run, const Value &value, const Args &arguments) {
  return equals(value, operand("eq", arguments), run.budget);
}
bool isDifferent(Run &run, const Value &value, const Args &arguments) {
  return !equals(value, operand("ne", arguments), run.budget);
}
bool isLess(Run &run, const Value &value, const Args &arguments) {
  return compare(value, operand("lt", arguments), "<", run.budget) == -1;
}
bool isAtMost(Run &run, const Value &value, const Args &arguments) {
  return compare(value, operand("le", arguments), "<=", run.budget) <= 0;
}
bool isGreater(Run &run, const Value &value, const Args &arguments) {
  return compare(value, operand("gt", arguments), ">", run.budget) == 1;
}
bool isAtLeast(Run &run, const Value &value, const Args &arguments) {
  const int order = compare(value, operand("ge", arguments), ">=", run.budget);
  return order == 0 || order == 1;
}

bool isFilter(Run &, const Value &value, const Args &) {
  return value.isString() &&
         (findFilter(value.text()) || findSequenceFilter(value.text()));
}
bool isTest(Run &, const Value &value, const Args &) {
  return value.isString() && findTest(value.text());
}

struct Entry {
  std::string_view name;
  TestFunction function;
};

constexpr Entry kTests[] = {
    {"!=", isDifferent},
    {"<", isLess},
    {"<=", isAtMost},
    {"==", isEqual},
    {">", isGreater},
    {">=", isAtLeast},
    {"boolean", isBoolean},
    {"callable",
     isKind<Kind::Undefined, Kind::Macro, Kind::Loop, Kind::Function>},
    {"defined", isDefined},
    {"divisibleby", isDivisible},
    {"eq", isEqual},
    {"equalto", isEqual},
    {"escaped", isNever},
    {"even", isEven},
    {"false", isFalseTest},
    {"filter", isFilter},
    {"float", isKind<Kind::Float>},
    {"ge", isAtLeast},
    {"greaterthan", isGreater},
    {"gt", isGreater},
    {"in", isIn},
    {"integer", isKind<Kind::Int>},
    {"iterable",
     isKind<Kind::Undefined, Kind::String, Kind::List, Kind::Tuple, Kind::Range,
            Kind::View, Kind::Generator, Kind::Dict, Kind::Loop>},
    {"le", isAtMost},
    {"lessthan", isLess},
    {"lower", isLowerTest},
    {"lt", isLess},
    {"mapping", isKind<Kind::Dict>},
    {"ne", isDifferent},
    {"none", isKind<Kind::None>},
    {"number", isKind<Kind::Int, Kind::Float, Kind::Bool>},
    {"odd", isOdd},
    {"sameas", isSame},
    {"sequence", isKind<Kind::String, Kind::List, Kind::Tuple, Kind::Range,
                        Kind::Dict, Kind::Undefined>},
    {"string", isKind<Kind::String>},
    {"test", isTest},
    {"true", isTrueTest},
    {"undefined", isKind<Kind::Undefined>},
    {"upper", isUpperTest},
};

} // namespace

TestFunction jinja::findTest(std::string_view name) {
  const auto it = std::ranges::find(kTests, name, &Entry::name);
  return it == std::end(kTests) ? nullptr : it->function;
}
