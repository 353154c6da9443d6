//===- Interpreter.cpp - Runs a parsed template's statements --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Interpreter.h"

#include <algorithm>
#include <bit>

using namespace kf;
using namespace kf::jinja;

Scope::~Scope() {
  std::shared_ptr<Scope> next = std::move(parent);
  while (next && next.use_count() == 1) {
    std::shared_ptr<Scope> after = std::move(next->parent);
    next = std::move(after);
  }
}

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

/// Writes into a text of its own as long as it lives.
class Interpreter::Capture {
public:
  explicit Capture(Interpreter &interpreter)
      : interpreter(interpreter), outer(interpreter.out) {
    interpreter.out = &text;
  }
  Capture(const Capture &) = delete;
  Capture &operator=(const Capture &) = delete;
  ~Capture() { interpreter.out = outer; }

  std::string text;

private:
  Interpreter &interpreter;
  std::string *outer;
};

/// Opens a scope as long as it lives. The scope lives on where a macro or a
/// recursive loop has it.
class Interpreter::ScopeGuard {
public:
  ScopeGuard(Interpreter &interpreter, std::shared_ptr<Scope> parent)
      : interpreter(interpreter), outer(interpreter.scope) {
    constexpr uint64_t bytes = sizeof(Scope) + 64;
    interpreter.budget.steps(1);
    interpreter.budget.hold(bytes);
    interpreter.scope = std::make_shared<Scope>(std::move(parent));
    interpreter.scope->held = bytes;
  }
  explicit ScopeGuard(Interpreter &interpreter)
      : ScopeGuard(interpreter, interpreter.scope) {}
  ScopeGuard(const ScopeGuard &) = delete;
  ScopeGuard &operator=(const ScopeGuard &) = delete;
  ~ScopeGuard() {
    if (interpreter.scope.use_count() == 1)
      interpreter.budget.release(interpreter.scope->held);
    interpreter.scope = std::move(outer);
  }

private:
  Interpreter &interpreter;
  std::shared_ptr<Scope> outer;
};

/// Counts a level of nesting as long as it lives.
class Interpreter::Level {
public:
  explicit Level(Interpreter &interpreter) : budget(interpreter.budget) {
    budget.enter();
  }
  Level(const Level &) = delete;
  Level &operator=(const Level &) = delete;
  ~Level() { budget.leave(); }

private:
  Budget &budget;
};

//===----------------------------------------------------------------------===//
// Interpreter
//===----------------------------------------------------------------------===//

Interpreter::Interpreter(const std::tm &now, uint64_t maxSteps,
                         CancelFlag cancelled)
    : budget(maxSteps, cancelled), now(now),
      scope(std::make_shared<Scope>(nullptr)) {
  for (const char *name :
       {"range", "dict", "namespace", "raise_exception", "strftime_now"}) {
    auto function = std::make_shared<Function>();
    function->name = name;
    define(name, Value(Kind::Function, std::move(function)));
  }
}

Interpreter::~Interpreter() {
  // The objects live until all are empty, so that none ends inside another.
  for (const Value &value : owned) {
    if (value.is(Kind::Macro))
      value.as<Macro>().scope.reset();
    else if (value.is(Kind::Loop))
      value.as<Loop>().scope.reset();
    else
      value.as<Namespace>().entries.clear();
  }
}

Value Interpreter::own(Kind kind, std::shared_ptr<Object> object) {
  budget.items(4);
  return owned.emplace_back(kind, std::move(object));
}

void Interpreter::define(std::string name, Value value) {
  budget.bytes(name.size());
  if (auto known = scope->names.find(name); known != scope->names.end()) {
    const Value old = std::exchange(known->second, std::move(value));
    return;
  }
  const uint64_t bytes = sizeof(*scope->names.begin()) + 64 + name.size();
  budget.hold(bytes);
  scope->held += bytes;
  scope->names.emplace(std::move(name), std::move(value));
}

std::string Interpreter::run(const Body &body) {
  try {
    Capture capture(*this);
    ScopeGuard guard(*this);
    execute(body);
    return std::move(capture.text);
  } catch (Failure &failure) {
    if (!failure.line)
      failure.line = line;
    throw;
  }
}

void Interpreter::emit(std::string_view text) {
  budget.text(out->size() + text.size(), out->size());
  *out += text;
}

void Interpreter::emitValue(const Value &value) {
  if (value.isString())
    emit(value.text());
  else
    emit(str(value));
}

const Value *Interpreter::lookUp(std::string_view name) {
  uint64_t scopes = 0;
  for (const Scope *at = scope.get(); at; at = at->parent.get()) {
    budget.steps((++scopes % 4 == 0) + std::bit_width(at->names.size()) / 8);
    auto it = at->names.find(name);
    if (it != at->names.end())
      return &it->second;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

Interpreter::Flow Interpreter::execute(const Body &body) {
  for (const auto &statement : body)
    if (Flow flow = execute(*statement); flow != Flow::Normal)
      return flow;
  return Flow::Normal;
}

Interpreter::Flow Interpreter::execute(const Statement &statement) {
  using Kind = Statement::Kind;
  Level level(*this);
  budget.steps(1);
  line = statement.line;
  switch (statement.kind) {
  case Kind::Data:
    emit(statement.text);
    break;
  case Kind::Print:
    emitValue(evaluate(*statement.expression));
    break;
  case Kind::If:
    return executeIf(statement);
  case Kind::For:
    return executeFor(statement);
  case Kind::Set:
    assign(statement.target, evaluate(*statement.expression));
    break;
  case Kind::SetBlock:
  case Kind::FilterBlock: {
    Value value;
    {
      Capture capture(*this);
      ScopeGuard guard(*this);
      if (Flow flow = execute(statement.body); flow != Flow::Normal)
        return flow;
      value = makeLiteral(std::move(capture.text));
    }
    if (statement.expression)
      value = evaluateFilter(*statement.expression, &value);
    if (statement.kind == Kind::SetBlock)
      assign(statement.target, value);
    else
      emitValue(value);
    break;
  }
  case Kind::Macro:
    define(statement.macro.name, makeMacro(statement.macro));
    break;
  case Kind::Call:
    executeCall(statement);
    break;
  case Kind::With: {
    // The values are those of the scope outside.
    std::vector<Value> values;
    for (const auto &[target, expression] : statement.assignments)
      values.push_back(evaluate(*expression));
    ScopeGuard guard(*this);
    for (size_t i = 0; i < values.size(); ++i)
      assign(statement.assignments[i].first, values[i]);
    return execute(statement.body);
  }
  case Kind::Scope: {
    ScopeGuard guard(*this);
    return execute(statement.body);
  }
  case Kind::Break:
    return Flow::Break;
  case Kind::Continue:
    return Flow::Continue;
  }
  return Flow::Normal;
}

Interpreter::Flow Interpreter::executeIf(const Statement &statement) {
  for (const Statement::Branch &branch : statement.branches)
    if (!branch.condition || isTrue(evaluate(*branch.condition)))
      return execute(branch.body);
  return Flow::Normal;
}

/// The items that the loop's `if` lets through.
std::vector<Value> Interpreter::selectItems(const Statement &statement,
                                            std::vector<Value> items) {
  if (!statement.condition)
    return items;
  std::vector<Value> selected;
  for (Value &item : items) {
    ScopeGuard guard(*this);
    assign(statement.target, item);
    if (isTrue(evaluate(*statement.condition)))
      selected.push_back(std::move(item));
  }
  return selected;
}

void Interpreter::runLoop(const Statement &statement, const Value &iterable,
                          int level, Flow &flow) {
  flow = Flow::Normal;
  auto loop = std::make_shared<Loop>();
  loop->items = selectItems(statement, iterate(iterable, budget));
  loop->depth = depthAround(0, iterable);
  loop->level = level;
  Value variable(Kind::Loop, loop);
  if (statement.recursive) {
    loop->code = &statement;
    loop->scope = scope;
    variable = own(Kind::Loop, loop);
  }
  for (; loop->index < loop->items.size(); ++loop->index) {
    ScopeGuard guard(*this);
    define("loop", variable);
    assign(statement.target, loop->items[loop->index]);
    if (execute(statement.body) == Flow::Break)
      break;
  }
  if (loop->items.empty()) {
    ScopeGuard guard(*this);
    flow = execute(statement.orElse);
  }
}

Interpreter::Flow Interpreter::executeFor(const Statement &statement) {
  Flow flow;
  runLoop(statement, evaluate(*statement.expression), 0, flow);
  return flow;
}

void Interpreter::executeCall(const Statement &statement) {
  const Expression &expression = *statement.expression;
  const Value callee = evaluate(*expression.operands[0]);
  Arguments arguments = evaluateArguments(expression.arguments);
  arguments.keywords.emplace_back("caller", makeMacro(statement.macro));
  emitValue(call(callee, arguments));
}

void Interpreter::assign(const Target &target, const Value &value) {
  if (target.isTuple) {
    requireDefined(value);
    const std::vector<Value> items = iterate(value, budget);
    if (items.size() != target.tuple.size())
      fail(items.size() < target.tuple.size()
               ? "not enough values to unpack (expected " +
                     std::to_string(target.tuple.size()) + ", got " +
                     std::to_string(items.size()) + ")"
               : "too many values to unpack (expected " +
                     std::to_string(target.tuple.size()) + ")");
    for (size_t i = 0; i < items.size(); ++i)
      assign(target.tuple[i], items[i]);
    return;
  }
  if (target.attribute.empty())
    return define(target.name, value);
  const Value *found = lookUp(target.name);
  if (!found || !found->is(Kind::Namespace))
    fail("cannot assign attribute '" + target.attribute + "': '" + target.name +
         "' is no namespace");
  if (target.attribute.starts_with('_'))
    fail("attributes of a namespace do not begin with an underscore, as '" +
         target.attribute + "' does");
  Namespace &names = found->as<Namespace>();
  if (Value *known = names.find(target.attribute, budget)) {
    const Value old = std::exchange(*known, value);
  } else {
    budget.items(2);
    names.entries.emplace_back(target.attribute, value);
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Value Interpreter::makeMacro(const MacroCode &code) {
  auto macro = std::make_shared<Macro>();
  macro->code = &code;
  macro->scope = scope;
  return own(Kind::Macro, std::move(macro));
}

Value Interpreter::callMacro(const Macro &macro, const Arguments &arguments) {
  Level level(*this);
  const MacroCode &code = *macro.code;
  const size_t count = code.parameters.size();
  budget.steps(2 * count + arguments.positional.size() +
               arguments.keywords.size() * (1 + count / 8));
  const std::string where = "macro '" + code.name + "' ";
  std::vector<const Value *> given(count);
  std::vector<std::pair<Value, Value>> more;
  const Value *caller = nullptr;
  for (size_t i = 0; i < std::min(count, arguments.positional.size()); ++i)
    given[i] = &arguments.positional[i];
  for (const auto &[name, value] : arguments.keywords) {
    const auto it = std::ranges::find(code.parameters, name, &Parameter::name);
    const size_t index = static_cast<size_t>(it - code.parameters.begin());
    if (index < count && !given[index])
      given[index] = &value;
    else if (name == "caller" && code.usesCaller)
      caller = &value;
    else if (code.usesKeywords)
      more.emplace_back(text(name), value);
    else
      fail(where + "takes no keyword argument '" + name + "'");
  }
  std::vector<Value> rest;
  if (arguments.positional.size() > count)
    rest.assign(arguments.positional.begin() + static_cast<int64_t>(count),
                arguments.positional.end());
  if (!rest.empty() && !code.usesArguments)
    fail(where + "takes not more than " + std::to_string(count) +
         " argument(s)");

  ScopeGuard guard(*this, macro.scope);
  if (code.usesCaller && caller)
    define("caller", *caller);
  else if (code.usesCaller)
    define("caller", makeUndefined("No caller defined", budget));
  if (code.usesKeywords)
    define("kwargs", makeDict(std::move(more), budget));
  if (code.usesArguments)
    define("varargs", makeSequence(Kind::Tuple, std::move(rest), budget));
  for (size_t i = 0; i < count; ++i) {
    const Parameter &parameter = code.parameters[i];
    if (given[i])
      define(parameter.name, *given[i]);
    else if (parameter.otherwise)
      define(parameter.name, evaluate(*parameter.otherwise));
    else
      define(parameter.name, makeUndefined("parameter '" + parameter.name +
                                               "' was not provided",
                                           budget));
  }
  Capture capture(*this);
  execute(code.body);
  return makeLiteral(std::move(capture.text));
}

/// A recursive loop called with the items of a level below.
Value Interpreter::callLoop(const Loop &loop, const Arguments &arguments) {
  if (!loop.code)
    fail("the loop must have the 'recursive' marker to be called");
  Bound bound("loop", arguments, {"iterable"}, 1);
  Level level(*this);
  ScopeGuard guard(*this, loop.scope);
  Capture capture(*this);
  Flow flow;
  runLoop(*loop.code, *bound[0], loop.level + 1, flow);
  return makeLiteral(std::move(capture.text));
}

Value Interpreter::call(const Value &callee, const Arguments &arguments) {
  budget.steps(1);
  switch (callee.kind()) {
  case Kind::Undefined:
    requireDefined(callee);
    return Value();
  case Kind::Macro: {
    const std::shared_ptr<Object> alive = callee.object();
    return callMacro(static_cast<const Macro &>(*alive), arguments);
  }
  case Kind::Loop: {
    const std::shared_ptr<Object> alive = callee.object();
    return callLoop(static_cast<const Loop &>(*alive), arguments);
  }
  case Kind::Function: {
    const auto &function = callee.as<Function>();
    if (function.isMethod)
      return callMethod(*this, function.self, function.name, arguments);
    return callGlobal(function.name, arguments);
  }
  default:
    fail("'" + typeName(callee) + "' object is not callable");
  }
}

Value Interpreter::makeRange(const Arguments &arguments) {
  constexpr uint64_t most = 100000; // the sandbox's MAX_RANGE
  if (arguments.positional.empty() || arguments.positional.size() > 3 ||
      !arguments.keywords.empty())
    fail("range takes 1 to 3 arguments");
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    requireDefined(arguments.positional[i]);
    if (!arguments.positional[i].isInt())
      fail("range takes integers, not " + typeName(arguments.positional[i]));
    bounds[i] = arguments.positional[i].integer();
  }
  if (arguments.positional.size() == 1)
    std::swap(bounds[0], bounds[1]);
  const auto [start, stop, step] = bounds;
  if (step == 0)
    fail("range's step must not be zero");
  uint64_t count = 0;
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t distance =
      step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
               : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  if (step > 0 ? start < stop : start > stop)
    count = (distance - 1) / stride + 1;
  if (count > most)
    fail("range of " + std::to_string(count) + " items; templates may have " +
         std::to_string(most) + " at most");
  budget.steps(count);
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i)
    items.emplace_back(start + static_cast<int64_t>(i) * step);
  std::string label =
      "range(" + std::to_string(start) + ", " + std::to_string(stop);
  label += step == 1 ? ")" : ", " + std::to_string(step) + ")";
  return makeSequence(Kind::Range, std::move(items), budget, std::move(label));
}

Value Interpreter::callGlobal(std::string_view name,
                              const Arguments &arguments) {
  if (name == "range")
    return makeRange(arguments);
  if (name == "raise_exception") {
    Bound bound(name, arguments, {"message"}, 1);
    throw Failure{str(*bound[0]), line, true};
  }
  if (name == "strftime_now") {
    Bound bound(name, arguments, {"format"}, 1);
    return text(formatTime(now, bound.text(0, ""), budget));
  }
  // dict and namespace: a mapping or pairs, and keywords.
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1)
    fail(std::string(name) + " takes at most 1 positional argument");
  for (const Value &first : arguments.positional) {
    if (first.is(Kind::Dict)) {
      budget.items(2 * first.as<Dict>().entries.size());
      entries = first.as<Dict>().entries;
      continue;
    }
    for (const Value &pair : iterate(first, budget)) {
      const std::vector<Value> items = iterate(pair, budget);
      if (items.size() != 2)
        fail(std::string(name) + " takes a mapping or pairs");
      entries.emplace_back(items[0], items[1]);
    }
  }
  for (const auto &[key, value] : arguments.keywords)
    entries.emplace_back(text(key), value);
  Value dict = makeDict(std::move(entries), budget);
  if (name == "dict")
    return dict;
  auto names = std::make_shared<Namespace>();
  for (const auto &[key, value] : dict.as<Dict>().entries) {
    if (!key.isString() || key.text().starts_with('_'))
      fail("attributes of a namespace are names that do not begin with an "
           "underscore");
    names->entries.emplace_back(key.text(), value);
  }
  return own(Kind::Namespace, std::move(names));
}
