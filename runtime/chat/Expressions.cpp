//===- Expressions.cpp - Evaluates a template's expressions ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Characters.h"
#include "runtime/chat/Interpreter.h"
#include "runtime/core/Quote.h"

#include <algorithm>
#include <cmath>

using namespace kf;
using namespace kf::jinja;

using Node = Expression::Kind;

namespace {

class Nesting {
public:
  explicit Nesting(Budget &budget) : budget(budget) { budget.enter(); }
  Nesting(const Nesting &) = delete;
  Nesting &operator=(const Nesting &) = delete;
  ~Nesting() { budget.leave(); }

private:
  Budget &budget;
};

/// "'dict object'", as Jinja names what has no such attribute.
std::string objectName(const Value &value) {
  return value.isNone() ? "None" : typeName(value) + " object";
}

Value missing(const Value &object, std::string_view name, Budget &budget) {
  return makeUndefined("'" + objectName(object) + "' has no attribute " +
                           quotedName(name),
                       budget);
}
Value missing(const Value &object, const Value &key, Budget &budget) {
  if (key.isString())
    return missing(object, key.text(), budget);
  constexpr size_t most = 80;
  const std::string name = toRepr(key, budget);
  return makeUndefined(objectName(object) + " has no element " +
                           std::string(cutText(name, most)) +
                           (name.size() > most ? "..." : ""),
                       budget);
}

/// Clamps a slice's bound as Python does.
int64_t clampBound(const Value &bound, int64_t length, int64_t least,
                   int64_t most) {
  requireDefined(bound);
  if (!bound.isInt())
    fail("slice indices must be integers or None, not " + typeName(bound));
  int64_t index = bound.integer();
  if (index < 0)
    index = index < -length ? least : index + length;
  return std::clamp(index, least, most);
}

/// What a slice takes: `count` items from `first`, each `stride` further.
struct Slice {
  int64_t first = 0, stride = 1;
  uint64_t count = 0;

  size_t operator[](uint64_t i) const {
    return static_cast<size_t>(first + static_cast<int64_t>(i) * stride);
  }
};

/// A slice of so many items with the bounds start, stop and step.
Slice sliceOf(size_t items, const Value (&bounds)[3]) {
  const auto &[start, stop, step] = bounds;
  requireDefined(step);
  if (!step.isNone() && !step.isInt())
    fail("slice indices must be integers or None, not " + typeName(step));
  Slice slice;
  slice.stride = step.isNone() ? 1 : step.integer();
  if (slice.stride == 0)
    fail("slice step cannot be zero");
  const bool up = slice.stride > 0;
  const auto length = static_cast<int64_t>(items);
  const int64_t least = up ? 0 : -1, most = up ? length : length - 1;
  slice.first = start.isNone() ? (up ? least : most)
                               : clampBound(start, length, least, most);
  const int64_t end = stop.isNone() ? (up ? most : least)
                                    : clampBound(stop, length, least, most);
  const int64_t distance = up ? end - slice.first : slice.first - end;
  const auto bits = static_cast<uint64_t>(slice.stride);
  if (distance > 0)
    slice.count =
        (static_cast<uint64_t>(distance) - 1) / (up ? bits : 0 - bits) + 1;
  return slice;
}

/// The characters of `text` that a slice takes.
std::string sliceText(std::string_view text, const Value (&bounds)[3],
                      Budget &budget) {
  std::vector<uint32_t> offsets; // of the characters; texts are less than 4 GiB
  for (const Character &c : Characters(text, budget))
    offsets.push_back(static_cast<uint32_t>(c.bytes.data() - text.data()));
  const Slice slice = sliceOf(offsets.size(), bounds);
  budget.characters(slice.count);
  std::string result;
  for (uint64_t i = 0; i < slice.count; ++i)
    result += firstCharacter(text.substr(offsets[slice[i]])).bytes;
  return result;
}

} // namespace

//===----------------------------------------------------------------------===//
// Attributes and items
//===----------------------------------------------------------------------===//

Value Interpreter::loopAttribute(const std::shared_ptr<Object> &object,
                                 std::string_view name) {
  const Loop &loop = static_cast<const Loop &>(*object);
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(loop.items.size());
  if (name == "index")
    return Value(index + 1);
  if (name == "index0")
    return Value(index);
  if (name == "revindex")
    return Value(length - index);
  if (name == "revindex0")
    return Value(length - index - 1);
  if (name == "first")
    return Value(index == 0);
  if (name == "last")
    return Value(index + 1 >= length);
  if (name == "length")
    return Value(length);
  if (name == "depth")
    return Value(int64_t(loop.level) + 1);
  if (name == "depth0")
    return Value(int64_t(loop.level));
  if (name == "previtem")
    return index > 0 ? loop.items[loop.index - 1]
                     : makeUndefined("there is no previous item", budget);
  if (name == "nextitem")
    return index + 1 < length ? loop.items[loop.index + 1]
                              : makeUndefined("there is no next item", budget);
  return missing(Value(Kind::Loop, object), name, budget);
}

Value Interpreter::getAttribute(const Value &object, std::string_view name) {
  budget.steps(1);
  budget.bytes(name.size());
  requireDefined(object);
  switch (methodKind(object, name)) {
  case MethodKind::Supported: {
    budget.hold(sizeof(Function));
    auto method = std::make_shared<Function>();
    method->name = name;
    method->isMethod = true;
    method->self = object;
    method->depth = depthAround(0, object);
    return Value(Kind::Function, std::move(method));
  }
  case MethodKind::Unsupported:
    fail("'" + std::string(name) + "' of " + typeName(object) +
         " is not supported in chat templates");
  case MethodKind::Forbidden:
    return makeUndefined("access to attribute " + quotedName(name) + " of '" +
                             typeName(object) + "' object is unsafe",
                         budget);
  case MethodKind::None:
    break;
  }
  if (object.is(Kind::Loop))
    return loopAttribute(object.object(), name);
  if (object.is(Kind::Namespace)) {
    if (const Value *found = object.as<Namespace>().find(name, budget))
      return *found;
  } else if (object.is(Kind::Dict)) {
    if (const Value *found = object.as<Dict>().find(name, budget))
      return *found;
  } else if (object.is(Kind::Macro) && name == "name") {
    return text(object.as<Macro>().code->name);
  } else if (object.is(Kind::Tuple) &&
             object.as<Sequence>().label == kGroupLabel) {
    if (name == "grouper" || name == "list")
      return object.as<Sequence>().items[name == "list"];
  }
  return missing(object, name, budget);
}

Value Interpreter::getItem(const Value &object, const Value &key) {
  budget.steps(1);
  requireDefined(object);
  if (object.is(Kind::Dict)) {
    if (!key.is(Kind::List) && !key.is(Kind::Dict)) {
      requireHashable(key, budget);
      if (const Value *found = object.as<Dict>().find(key, budget))
        return *found;
    }
  } else if (key.isInt()) {
    int64_t index = key.integer();
    const bool indexed = object.is(Kind::List) || object.is(Kind::Tuple) ||
                         object.is(Kind::Range);
    if (indexed) {
      const auto &items = object.as<Sequence>().items;
      const auto length = static_cast<int64_t>(items.size());
      index += index < 0 ? length : 0;
      if (index >= 0 && index < length)
        return items[static_cast<size_t>(index)];
    } else if (object.isString()) {
      std::string_view rest = object.text();
      if (index < 0)
        index += static_cast<int64_t>(countCharacters(rest, budget));
      if (index >= 0)
        rest.remove_prefix(
            bytesOfCharacters(rest, static_cast<size_t>(index), budget));
      if (index >= 0 && !rest.empty())
        return text(std::string(firstCharacter(rest).bytes));
    }
  }
  if (key.isString() && !object.is(Kind::Dict))
    return getAttribute(object, key.text());
  if (key.isString() && methodKind(object, key.text()) != MethodKind::None)
    return getAttribute(object, key.text());
  return missing(object, key, budget);
}

Value Interpreter::evaluateSlice(const Expression &expression) {
  const Value object = evaluate(*expression.operands[0]);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i)
    if (expression.operands[i + 1])
      bounds[i] = evaluate(*expression.operands[i + 1]);
  requireDefined(object);
  if (object.isString())
    return text(sliceText(object.text(), bounds, budget));
  if (!object.is(Kind::List) && !object.is(Kind::Tuple) &&
      !object.is(Kind::Range))
    fail("'" + typeName(object) + "' object cannot be sliced");
  const auto &items = object.as<Sequence>().items;
  const Slice slice = sliceOf(items.size(), bounds);
  budget.steps(slice.count);
  std::vector<Value> result;
  for (uint64_t i = 0; i < slice.count; ++i)
    result.push_back(items[slice[i]]);
  return makeSequence(object.is(Kind::Tuple) ? Kind::Tuple : Kind::List,
                      std::move(result), budget);
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Value Interpreter::evaluate(const Expression &expression) {
  Nesting nesting(budget);
  budget.steps(1);
  line = expression.line;
  switch (expression.kind) {
  case Node::Constant:
    return expression.constant;
  case Node::Name: {
    const Value *found = lookUp(expression.name);
    return found ? *found
                 : makeUndefined("'" + expression.name + "' is undefined",
                                 budget);
  }
  case Node::List:
  case Node::Tuple:
  case Node::Dict:
    return evaluateItems(expression);
  case Node::Attribute:
    return getAttribute(evaluate(*expression.operands[0]), expression.name);
  case Node::Item: {
    const Value object = evaluate(*expression.operands[0]);
    return getItem(object, evaluate(*expression.operands[1]));
  }
  case Node::Slice:
    return evaluateSlice(expression);
  case Node::Call:
    return evaluateCall(expression);
  case Node::Filter:
    return evaluateFilter(expression, nullptr);
  case Node::Test:
    return evaluateTest(expression);
  case Node::Not:
    return Value(!isTrue(evaluate(*expression.operands[0])));
  case Node::Negative:
  case Node::Positive:
    return evaluateUnary(expression);
  case Node::And:
  case Node::Or: {
    Value left = evaluate(*expression.operands[0]);
    if (isTrue(left) == (expression.kind == Node::Or))
      return left;
    return evaluate(*expression.operands[1]);
  }
  case Node::Conditional:
    return evaluateConditional(expression);
  case Node::Binary: {
    const Value left = evaluate(*expression.operands[0]);
    return binary(expression.name, left, evaluate(*expression.operands[1]));
  }
  case Node::Concat:
    return evaluateConcat(expression);
  case Node::Compare:
    return evaluateCompare(expression);
  }
  return Value();
}

Value Interpreter::evaluateItems(const Expression &expression) {
  std::vector<Value> items;
  items.reserve(expression.operands.size());
  for (const ExpressionPtr &operand : expression.operands)
    items.push_back(evaluate(*operand));
  if (expression.kind == Node::List)
    return list(std::move(items));
  if (expression.kind == Node::Tuple)
    return makeSequence(Kind::Tuple, std::move(items), budget);
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0; i < items.size(); i += 2)
    entries.emplace_back(std::move(items[i]), std::move(items[i + 1]));
  return makeDict(std::move(entries), budget);
}

Value Interpreter::evaluateConditional(const Expression &expression) {
  if (isTrue(evaluate(*expression.operands[1])))
    return evaluate(*expression.operands[0]);
  if (expression.operands[2])
    return evaluate(*expression.operands[2]);
  return makeUndefined(
      "the inline if-expression on line " + std::to_string(expression.line) +
          " evaluated to false and no else section was defined",
      budget);
}

Value Interpreter::evaluateConcat(const Expression &expression) {
  std::string result;
  for (const ExpressionPtr &operand : expression.operands) {
    const std::string part = str(evaluate(*operand));
    budget.text(result.size() + part.size(), result.size());
    result += part;
  }
  return makeLiteral(std::move(result));
}

Value Interpreter::evaluateCompare(const Expression &expression) {
  Value left = evaluate(*expression.operands[0]);
  for (size_t i = 0; i < expression.names.size(); ++i) {
    Value right = evaluate(*expression.operands[i + 1]);
    const std::string &op = expression.names[i];
    bool holds;
    if (op == "==" || op == "!=") {
      holds = equals(left, right, budget) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = contains(right, left, budget) == (op == "in");
    } else {
      const int order = compare(left, right, op, budget);
      const bool equal = order == 0;
      holds = order != 2 && (op[0] == '<' ? order < 0 : order > 0);
      holds |= equal && op.size() == 2;
    }
    if (!holds)
      return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evaluateUnary(const Expression &expression) {
  const Value value = evaluate(*expression.operands[0]);
  requireDefined(value);
  const bool negative = expression.kind == Node::Negative;
  if (value.is(Kind::Float))
    return Value(negative ? -value.real() : value.real());
  if (!value.isInt())
    fail(std::string("bad operand type for unary ") + (negative ? "-" : "+") +
         ": '" + typeName(value) + "'");
  if (negative && value.integer() == INT64_MIN)
    fail("a number is too large");
  return Value(negative ? -value.integer() : value.integer());
}

Arguments Interpreter::evaluateArguments(const CallArguments &arguments) {
  Arguments result;
  for (const ExpressionPtr &argument : arguments.positional)
    result.positional.push_back(evaluate(*argument));
  for (const auto &[name, argument] : arguments.keywords)
    result.keywords.emplace_back(name, evaluate(*argument));
  if (arguments.more) {
    const Value more = evaluate(*arguments.more);
    requireDefined(more);
    for (Value &item : iterate(more, budget))
      result.positional.push_back(std::move(item));
  }
  if (arguments.moreKeywords) {
    const Value more = evaluate(*arguments.moreKeywords);
    if (!more.is(Kind::Dict))
      fail("what follows ** must be a mapping, not " + typeName(more));
    budget.items(more.as<Dict>().entries.size());
    for (const auto &[key, value] : more.as<Dict>().entries) {
      if (!key.isString())
        fail("keywords must be strings");
      budget.bytes(key.text().size());
      result.keywords.emplace_back(key.text(), value);
    }
  }
  return result;
}

Value Interpreter::evaluateCall(const Expression &expression) {
  const Value callee = evaluate(*expression.operands[0]);
  const Arguments arguments = evaluateArguments(expression.arguments);
  line = expression.line;
  return call(callee, arguments);
}

Value Interpreter::evaluateFilter(const Expression &expression,
                                  const Value *input) {
  Value value;
  if (!expression.operands[0])
    value = *input;
  else if (input)
    value = evaluateFilter(*expression.operands[0], input);
  else
    value = evaluate(*expression.operands[0]);
  const Arguments arguments = evaluateArguments(expression.arguments);
  line = expression.line;
  return applyFilter(expression.name, value, arguments);
}

Value Interpreter::evaluateTest(const Expression &expression) {
  const Value value = evaluate(*expression.operands[0]);
  const Arguments arguments = evaluateArguments(expression.arguments);
  line = expression.line;
  return Value(applyTest(expression.name, value, arguments));
}

Value Interpreter::applyFilter(std::string_view name, const Value &input,
                               const Arguments &arguments) {
  Nesting nesting(budget);
  budget.steps(1);
  FilterFunction filter = findFilter(name);
  if (!filter)
    filter = findSequenceFilter(name);
  if (!filter)
    fail("filter '" + std::string(name.substr(0, 40)) + "' is not supported");
  return filter(*this, input, arguments);
}

bool Interpreter::applyTest(std::string_view name, const Value &input,
                            const Arguments &arguments) {
  Nesting nesting(budget);
  budget.steps(1);
  TestFunction test = findTest(name);
  if (!test)
    fail("test '" + std::string(name.substr(0, 40)) + "' is not supported");
  return test(*this, input, arguments);
}
