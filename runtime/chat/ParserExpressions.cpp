//===- ParserExpressions.cpp - Expressions to a tree ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/Parser.h"

#include <algorithm>

using namespace kf;
using namespace kf::jinja;

using Node = Expression::Kind;
using TokenKind = Token::Kind;

void Parser::addOperand(Expression &node, ExpressionPtr operand) {
  if (operand)
    node.depth = std::max(node.depth, operand->depth + 1);
  // Chains of operators nest without the parser's doing so.
  if (node.depth > kMaxDepth)
    fail("an expression is nested more than " + std::to_string(kMaxDepth) +
             " deep",
         node.line);
  node.operands.push_back(std::move(operand));
}

template <typename... Operands>
ExpressionPtr Parser::make(Node kind, int line, Operands... operands) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  (addOperand(*node, std::move(operands)), ...);
  return node;
}

ExpressionPtr Parser::constant(Value value, int line) {
  ExpressionPtr node = make(Node::Constant, line);
  node->constant = std::move(value);
  return node;
}

void Parser::closeArguments(Expression &node) {
  auto count = [&](const ExpressionPtr &argument) {
    if (argument)
      node.depth = std::max(node.depth, argument->depth + 1);
  };
  for (const ExpressionPtr &argument : node.arguments.positional)
    count(argument);
  for (const auto &[name, argument] : node.arguments.keywords)
    count(argument);
  count(node.arguments.more);
  count(node.arguments.moreKeywords);
  if (node.depth > kMaxDepth)
    fail("an expression is nested more than " + std::to_string(kMaxDepth) +
             " deep",
         node.line);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Expressions separated by commas, which make a tuple; with `parentheses` none
/// are one too. The name `end`, if given, ends them.
ExpressionPtr Parser::parseTuple(bool conditional, bool parentheses,
                                 std::string_view end) {
  Level level(*this);
  const int line = current().line;
  auto ends = [&] {
    return current().kind == TokenKind::VariableEnd ||
           current().kind == TokenKind::BlockEnd || isOperator(")") ||
           (!end.empty() && isName(end));
  };
  std::vector<ExpressionPtr> items;
  bool isTuple = false;
  while (!ends()) {
    items.push_back(parseExpression(conditional));
    if (!skipOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple && items.size() == 1)
    return std::move(items.front());
  if (!isTuple && !parentheses)
    failUnexpected("an expression");
  ExpressionPtr node = make(Node::Tuple, line);
  for (ExpressionPtr &item : items)
    addOperand(*node, std::move(item));
  return node;
}

ExpressionPtr Parser::parseExpression(bool conditional) {
  Level level(*this);
  int line = current().line;
  ExpressionPtr node = parseOr();
  while (conditional && skipName("if")) {
    ExpressionPtr condition = parseOr();
    ExpressionPtr otherwise;
    if (skipName("else"))
      otherwise = parseExpression();
    node = make(Node::Conditional, line, std::move(node), std::move(condition),
                std::move(otherwise));
    line = current().line;
  }
  return node;
}

/// The expressions of a print statement, one after the other.
ExpressionPtr Parser::parsePrinted() {
  ExpressionPtr node = make(Node::Concat, current().line);
  do
    addOperand(*node, parseExpression());
  while (skipOperator(","));
  return node;
}

ExpressionPtr Parser::parseOr() {
  const int line = current().line;
  ExpressionPtr node = parseAnd();
  while (skipName("or"))
    node = make(Node::Or, line, std::move(node), parseAnd());
  return node;
}

ExpressionPtr Parser::parseAnd() {
  const int line = current().line;
  ExpressionPtr node = parseNot();
  while (skipName("and"))
    node = make(Node::And, line, std::move(node), parseNot());
  return node;
}

ExpressionPtr Parser::parseNot() {
  const int line = current().line;
  if (!skipName("not"))
    return parseCompare();
  Level level(*this);
  return make(Node::Not, line, parseNot());
}

ExpressionPtr Parser::parseCompare() {
  constexpr std::string_view ops[] = {"==", "!=", "<", "<=", ">", ">="};
  ExpressionPtr first = parseSum();
  ExpressionPtr node;
  for (;;) {
    std::string op;
    if (current().kind == TokenKind::Operator &&
        std::ranges::find(ops, current().text) != std::end(ops)) {
      op = take().text;
    } else if (skipName("in")) {
      op = "in";
    } else if (isName("not") && next().kind == TokenKind::Name &&
               next().text == "in") {
      at += 2;
      op = "not in";
    } else {
      break;
    }
    if (!node) {
      const int line = first->line;
      node = make(Node::Compare, line, std::move(first));
    }
    node->names.push_back(std::move(op));
    addOperand(*node, parseSum());
  }
  return node ? std::move(node) : std::move(first);
}

ExpressionPtr Parser::parseBinary(std::initializer_list<std::string_view> ops,
                                  Parse operand) {
  ExpressionPtr node = (this->*operand)();
  while (current().kind == TokenKind::Operator &&
         std::ranges::find(ops, current().text) != ops.end()) {
    const Token op = take();
    node = make(Node::Binary, op.line, std::move(node), (this->*operand)());
    node->name = op.text;
  }
  return node;
}

ExpressionPtr Parser::parseSum() {
  return parseBinary({"+", "-"}, &Parser::parseConcat);
}

ExpressionPtr Parser::parseConcat() {
  const int line = current().line;
  ExpressionPtr first = parseProduct();
  if (!isOperator("~"))
    return first;
  ExpressionPtr node = make(Node::Concat, line, std::move(first));
  while (skipOperator("~"))
    addOperand(*node, parseProduct());
  return node;
}

ExpressionPtr Parser::parseProduct() {
  return parseBinary({"*", "/", "//", "%"}, &Parser::parsePower);
}

ExpressionPtr Parser::parsePower() {
  const int line = current().line;
  ExpressionPtr node = parseUnary();
  while (skipOperator("**")) {
    node = make(Node::Binary, line, std::move(node), parseUnary());
    node->name = "**";
  }
  return node;
}

ExpressionPtr Parser::parseUnary(bool withFilter) {
  const int line = current().line;
  ExpressionPtr node;
  if (isOperator("-") || isOperator("+")) {
    Level level(*this);
    const bool minus = take().text == "-";
    node =
        make(minus ? Node::Negative : Node::Positive, line, parseUnary(false));
  } else {
    node = parsePrimary();
  }
  node = parsePostfix(std::move(node));
  return withFilter ? parseFilters(std::move(node)) : std::move(node);
}

//===----------------------------------------------------------------------===//
// Primaries
//===----------------------------------------------------------------------===//

ExpressionPtr Parser::parsePrimary() {
  const Token token = current();
  switch (token.kind) {
  case TokenKind::Name: {
    take();
    if (token.text == "true" || token.text == "True")
      return constant(Value(true), token.line);
    if (token.text == "false" || token.text == "False")
      return constant(Value(false), token.line);
    if (token.text == "none" || token.text == "None")
      return constant(Value(), token.line);
    for (MacroCode *macro : macros) {
      macro->usesArguments |= token.text == "varargs";
      macro->usesKeywords |= token.text == "kwargs";
      macro->usesCaller |= token.text == "caller";
    }
    ExpressionPtr node = make(Node::Name, token.line);
    node->name = token.text;
    return node;
  }
  case TokenKind::String: {
    std::string text;
    while (current().kind == TokenKind::String)
      text += take().text;
    return constant(makeLiteral(std::move(text)), token.line);
  }
  case TokenKind::Integer:
    take();
    return constant(Value(token.integer), token.line);
  case TokenKind::Float:
    take();
    return constant(Value(token.real), token.line);
  case TokenKind::Operator:
    if (token.text == "(") {
      take();
      ExpressionPtr node = parseTuple(true, true);
      expectOperator(")");
      return node;
    }
    if (token.text == "[")
      return parseList();
    if (token.text == "{")
      return parseDict();
    break;
  default:
    break;
  }
  failUnexpected("an expression");
}

ExpressionPtr Parser::parseList() {
  ExpressionPtr node = make(Node::List, take().line);
  while (!isOperator("]")) {
    if (!node->operands.empty()) {
      expectOperator(",");
      if (isOperator("]"))
        break;
    }
    addOperand(*node, parseExpression());
  }
  take();
  return node;
}

ExpressionPtr Parser::parseDict() {
  ExpressionPtr node = make(Node::Dict, take().line);
  while (!isOperator("}")) {
    if (!node->operands.empty()) {
      expectOperator(",");
      if (isOperator("}"))
        break;
    }
    addOperand(*node, parseExpression());
    expectOperator(":");
    addOperand(*node, parseExpression());
  }
  take();
  return node;
}

ExpressionPtr Parser::parsePostfix(ExpressionPtr node) {
  for (;;) {
    if (isOperator(".") || isOperator("["))
      node = parseSubscript(std::move(node));
    else if (isOperator("("))
      node = parseCall(std::move(node));
    else
      return node;
  }
}

ExpressionPtr Parser::parseFilters(ExpressionPtr node) {
  for (;;) {
    if (skipOperator("|"))
      node = parseFilter(std::move(node));
    else if (isName("is"))
      node = parseTest(std::move(node));
    else if (isOperator("("))
      node = parseCall(std::move(node));
    else
      return node;
  }
}

ExpressionPtr Parser::parseSubscript(ExpressionPtr node) {
  const int line = current().line;
  if (skipOperator(".")) {
    if (current().kind == TokenKind::Integer) {
      Value index(take().integer);
      return make(Node::Item, line, std::move(node),
                  constant(std::move(index), line));
    }
    std::string name = takeName();
    ExpressionPtr result = make(Node::Attribute, line, std::move(node));
    result->name = std::move(name);
    return result;
  }
  expectOperator("[");
  auto bound = [&]() -> ExpressionPtr {
    if (isOperator(":") || isOperator("]"))
      return nullptr;
    return parseExpression();
  };
  ExpressionPtr first = bound();
  if (isOperator(",") || (!first && isOperator("]")))
    failHere("a subscript takes one expression or a slice");
  if (!skipOperator(":")) {
    expectOperator("]");
    return make(Node::Item, line, std::move(node), std::move(first));
  }
  ExpressionPtr second = bound();
  ExpressionPtr third;
  if (skipOperator(":"))
    third = bound();
  expectOperator("]");
  return make(Node::Slice, line, std::move(node), std::move(first),
              std::move(second), std::move(third));
}

std::string Parser::parseDottedName() {
  std::string name = takeName();
  while (skipOperator("."))
    name += "." + takeName();
  return name;
}

/// One filter, whose `|` is taken, over `node`, which may be null.
ExpressionPtr Parser::parseFilter(ExpressionPtr node) {
  const bool alone = !node;
  do {
    const int line = current().line;
    std::string name = parseDottedName();
    node = make(Node::Filter, line, std::move(node));
    node->name = std::move(name);
    if (isOperator("("))
      node->arguments = parseArguments();
    closeArguments(*node);
  } while (alone && skipOperator("|"));
  return node;
}

ExpressionPtr Parser::parseTest(ExpressionPtr node) {
  const int line = take().line;
  const bool negated = skipName("not");
  std::string name = parseDottedName();
  node = make(Node::Test, line, std::move(node));
  node->name = std::move(name);
  const Token &token = current();
  const bool takesOne =
      token.kind == TokenKind::Name || token.kind == TokenKind::String ||
      token.kind == TokenKind::Integer || token.kind == TokenKind::Float ||
      isOperator("[") || isOperator("{");
  if (isOperator("(")) {
    node->arguments = parseArguments();
  } else if (takesOne && !isName("else") && !isName("or") && !isName("and")) {
    if (isName("is"))
      failHere("tests cannot be chained with 'is'");
    node->arguments.positional.push_back(parsePostfix(parsePrimary()));
  }
  closeArguments(*node);
  return negated ? make(Node::Not, line, std::move(node)) : std::move(node);
}

ExpressionPtr Parser::parseCall(ExpressionPtr node) {
  node = make(Node::Call, current().line, std::move(node));
  node->arguments = parseArguments();
  closeArguments(*node);
  return node;
}

CallArguments Parser::parseArguments() {
  CallArguments arguments;
  expectOperator("(");
  bool first = true;
  while (!isOperator(")")) {
    if (!first) {
      expectOperator(",");
      if (isOperator(")"))
        break;
    }
    first = false;
    const bool named = current().kind == TokenKind::Name &&
                       next().kind == TokenKind::Operator && next().text == "=";
    if (arguments.moreKeywords ||
        (arguments.more && !named && !isOperator("**")) ||
        (!arguments.keywords.empty() && !named && !isOperator("*") &&
         !isOperator("**")))
      failHere("a positional argument follows keyword arguments");
    if (skipOperator("*")) {
      arguments.more = parseExpression();
    } else if (skipOperator("**")) {
      arguments.moreKeywords = parseExpression();
    } else if (named) {
      std::string name = takeName();
      take();
      arguments.keywords.emplace_back(std::move(name), parseExpression());
    } else {
      arguments.positional.push_back(parseExpression());
    }
  }
  take();
  return arguments;
}
