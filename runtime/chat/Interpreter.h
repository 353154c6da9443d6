//===- Interpreter.h - Runs a parsed template -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_INTERPRETER_H
#define KF_RUNTIME_CHAT_INTERPRETER_H

#include "runtime/chat/Ast.h"
#include "runtime/chat/Values.h"

#include <ctime>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kf::jinja {

/// What a call is called with.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

/// Arguments by the names of a function's parameters, as Python binds them.
class Bound {
public:
  /// Fails on too many arguments, one that is no parameter, or fewer than the
  /// first `required` ones.
  Bound(std::string_view function, const Arguments &arguments,
        std::initializer_list<std::string_view> names, size_t required = 0);

  /// The argument, or null if it was not given.
  const Value *operator[](size_t index) const { return values[index]; }
  bool flag(size_t index, bool otherwise = false) const;
  int64_t integer(size_t index, int64_t otherwise) const;
  /// A text, the argument's own; fails on anything else that was given.
  std::string_view text(size_t index, std::string_view otherwise) const;

private:
  std::string function;
  std::vector<const Value *> values;
};

/// Names and their values. Cleared when the interpreter goes, since macros and
/// namespaces may close a circle.
struct Scope {
  explicit Scope(std::shared_ptr<Scope> parent) : parent(std::move(parent)) {}
  Scope(const Scope &) = delete;
  Scope &operator=(const Scope &) = delete;
  /// Parents that nothing else has go one after the other: a recursive loop
  /// that is called again and again makes a chain of any length.
  ~Scope();

  std::shared_ptr<Scope> parent;
  std::map<std::string, Value, std::less<>> names;
  uint64_t held = 0; ///< bytes that the budget counts for it
};

/// A macro with the names around its definition.
struct Macro : Object {
  const MacroCode *code = nullptr;
  std::shared_ptr<Scope> scope;
};

/// The variable `loop`.
struct Loop : Object {
  std::vector<Value> items;
  size_t index = 0;
  int level = 0;                   ///< of a recursive loop's calls
  const Statement *code = nullptr; ///< of a recursive loop
  std::shared_ptr<Scope> scope;    ///< around a recursive loop
  std::vector<Value> changed;      ///< what changed() was called with last
  bool hasChanged = false;
};

/// A global function, or a method with its object.
struct Function : Object {
  std::string name;
  bool isMethod = false;
  Value self;
};

/// One rendering of one template. The template must outlive it. One thread.
class Interpreter {
public:
  /// `now` is the local time that strftime_now() tells; what takes steps throws
  /// Cancelled soon after `cancelled` is set.
  Interpreter(const std::tm &now, uint64_t maxSteps,
              CancelFlag cancelled = nullptr);
  Interpreter(const Interpreter &) = delete;
  Interpreter &operator=(const Interpreter &) = delete;
  ~Interpreter();

  /// Gives the template a variable.
  void define(std::string name, Value value);
  /// Renders. Throws Failure, with a line, or Cancelled.
  std::string run(const Body &body);

  Budget budget;
  const std::tm now;

  // What filters, tests and methods need.
  Value text(std::string value) { return makeText(std::move(value), budget); }
  Value list(std::vector<Value> items) {
    return makeSequence(Kind::List, std::move(items), budget);
  }
  std::string str(const Value &value) { return toText(value, budget); }
  /// `object[key]` and `object.name` as the sandbox has them: undefined rather
  /// than an error where there is none.
  Value getItem(const Value &object, const Value &key);
  Value getAttribute(const Value &object, std::string_view name);
  Value call(const Value &callee, const Arguments &arguments);
  Value applyFilter(std::string_view name, const Value &input,
                    const Arguments &arguments);
  bool applyTest(std::string_view name, const Value &input,
                 const Arguments &arguments);
  Value binary(std::string_view op, const Value &a, const Value &b);
  /// Keeps what may be part of a circle until the end.
  Value own(Kind kind, std::shared_ptr<Object> object);

private:
  class Level;
  class Capture;
  class ScopeGuard;
  enum class Flow { Normal, Break, Continue };

  // Statements (Interpreter.cpp).
  Flow execute(const Body &body);
  Flow execute(const Statement &statement);
  Flow executeIf(const Statement &statement);
  Flow executeFor(const Statement &statement);
  void runLoop(const Statement &statement, const Value &iterable, int level,
               Flow &flow);
  std::vector<Value> selectItems(const Statement &statement,
                                 std::vector<Value> items);
  void executeCall(const Statement &statement);
  void emit(std::string_view text);
  void emitValue(const Value &value);
  void assign(const Target &target, const Value &value);
  const Value *lookUp(std::string_view name);
  Value makeMacro(const MacroCode &code);
  Value callMacro(const Macro &macro, const Arguments &arguments);
  Value callLoop(const Loop &loop, const Arguments &arguments);
  Value callGlobal(std::string_view name, const Arguments &arguments);
  Value makeRange(const Arguments &arguments);

  // Expressions (Expressions.cpp).
  Value evaluate(const Expression &expression);
  Value evaluateItems(const Expression &expression);
  Value evaluateSlice(const Expression &expression);
  Value evaluateCompare(const Expression &expression);
  Value evaluateConcat(const Expression &expression);
  Value evaluateUnary(const Expression &expression);
  Value evaluateConditional(const Expression &expression);
  Value evaluateCall(const Expression &expression);
  Value evaluateTest(const Expression &expression);
  Value evaluateFilter(const Expression &expression, const Value *input);
  Arguments evaluateArguments(const CallArguments &arguments);
  Value loopAttribute(const std::shared_ptr<Object> &loop,
                      std::string_view name);

  std::shared_ptr<Scope> scope;
  std::string *out = nullptr;
  int line = 0;             ///< that is being run
  std::vector<Value> owned; ///< what may be part of a circle
};

/// Filters.cpp, SequenceFilters.cpp, Tests.cpp: by name, or null.
using FilterFunction = Value (*)(Interpreter &, const Value &,
                                 const Arguments &);
using TestFunction = bool (*)(Interpreter &, const Value &, const Arguments &);
FilterFunction findFilter(std::string_view name);
FilterFunction findSequenceFilter(std::string_view name);
TestFunction findTest(std::string_view name);

/// Methods.cpp: what `object.name` is where it is a method of Python's type.
enum class MethodKind { None, Supported, Unsupported, Forbidden };
MethodKind methodKind(const Value &object, std::string_view name);
Value callMethod(Interpreter &interpreter, const Value &self,
                 std::string_view name, const Arguments &arguments);

/// What it costs to write a real number in digits, or to read one.
inline constexpr uint64_t kRealDigitsSteps = 8;

/// Format.cpp: Python's `format % arguments`, format.format(...) and
/// datetime.strftime(format).
std::string formatPercent(Interpreter &interpreter, std::string_view format,
                          const Value &arguments);
std::string formatBraces(Interpreter &interpreter, std::string_view format,
                         const Arguments &arguments);
std::string formatTime(const std::tm &time, std::string_view format,
                       Budget &budget);

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_INTERPRETER_H
