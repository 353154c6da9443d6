//===- Ast.h - A parsed template --------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_AST_H
#define KF_RUNTIME_CHAT_AST_H

#include "runtime/chat/Values.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kf::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

/// What stands in the parentheses of a call, a filter or a test.
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> keywords;
  ExpressionPtr more;         ///< *expression, or null
  ExpressionPtr moreKeywords; ///< **expression, or null
};

struct Expression {
  enum class Kind : uint8_t {
    Constant,  ///< constant
    Name,      ///< name
    List,      ///< operands
    Tuple,     ///< operands
    Dict,      ///< operands: key, value, key, value...
    Attribute, ///< operands[0].name
    Item,      ///< operands[0][operands[1]]
    Slice,     ///< operands[0][operands[1]:operands[2]:operands[3]], or null
    Call,      ///< operands[0](arguments)
    Filter,    ///< operands[0] | name(arguments); operands[0] may be null
    Test,      ///< operands[0] is name(arguments)
    Not,       ///< not operands[0]
    Negative,  ///< -operands[0]
    Positive,  ///< +operands[0]
    And,       ///< operands[0] and operands[1]
    Or,
    Conditional, ///< operands[0] if operands[1] else operands[2], or null
    Binary,      ///< operands[0] name operands[1]; + - * / // % **
    Concat,      ///< operands[0] ~ operands[1] ~ ...
    Compare      ///< operands[0] names[0] operands[1] names[1] ...
  };

  Kind kind;
  int line;
  int depth = 1; ///< of the tree below
  std::string name;
  std::vector<std::string> names;
  Value constant;
  std::vector<ExpressionPtr> operands;
  CallArguments arguments;
};

struct Statement;
using Body = std::vector<std::unique_ptr<Statement>>;

/// What `set` and `for` assign to: a name, an attribute of a namespace, or a
/// tuple of these.
struct Target {
  std::string name;
  std::string attribute;     ///< empty: the name itself
  std::vector<Target> tuple; ///< not empty: instead of the name
  bool isTuple = false;
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise; ///< the default, or null
};

/// What a macro or a call block is called with, and what it does.
struct MacroCode {
  std::string name;
  std::vector<Parameter> parameters;
  /// Names that the body uses without declaring them.
  bool usesArguments = false, usesKeywords = false, usesCaller = false;
  Body body;
};

struct Statement {
  enum class Kind : uint8_t {
    Data,        ///< text
    Print,       ///< expression
    If,          ///< branches; the last one has no condition if it is `else`
    For,         ///< target in expression if condition; body, orElse
    Set,         ///< target = expression
    SetBlock,    ///< target = body | expression
    Macro,       ///< macro
    Call,        ///< expression, a Call, with macro as its caller
    FilterBlock, ///< body | expression
    With,        ///< assignments, body
    Scope,       ///< body with names of its own
    Break,
    Continue
  };
  struct Branch {
    ExpressionPtr condition;
    Body body;
  };

  Kind kind;
  int line;
  std::string text;
  ExpressionPtr expression, condition;
  Target target;
  bool recursive = false;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body, orElse;
  MacroCode macro;
};

/// Parses a template. Throws Failure with the line.
Body parseTemplate(std::string_view source);

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_AST_H
