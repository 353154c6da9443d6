//===- Parser.cpp - Statements to a tree ----------------------------------===//
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

using TokenKind = Token::Kind;

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static std::string describe(const Token &token) {
  switch (token.kind) {
  case TokenKind::Data:
    return "text";
  case TokenKind::VariableBegin:
    return "'{{'";
  case TokenKind::VariableEnd:
    return "'}}'";
  case TokenKind::BlockBegin:
    return "'{%'";
  case TokenKind::BlockEnd:
    return "'%}'";
  case TokenKind::End:
    return "the end of the template";
  case TokenKind::String:
    return "a string";
  default:
    return quotedName(token.text);
  }
}

Token Parser::take() {
  Token token = current();
  if (token.kind != TokenKind::End)
    ++at;
  return token;
}

bool Parser::isName(std::string_view name) const {
  return current().kind == TokenKind::Name && current().text == name;
}
bool Parser::isOperator(std::string_view op) const {
  return current().kind == TokenKind::Operator && current().text == op;
}
bool Parser::skipName(std::string_view name) {
  const bool found = isName(name);
  at += found;
  return found;
}
bool Parser::skipOperator(std::string_view op) {
  const bool found = isOperator(op);
  at += found;
  return found;
}
void Parser::expectName(std::string_view name) {
  if (!skipName(name))
    failUnexpected("'" + std::string(name) + "'");
}
void Parser::expectOperator(std::string_view op) {
  if (!skipOperator(op))
    failUnexpected("'" + std::string(op) + "'");
}
void Parser::expect(TokenKind kind) {
  if (current().kind != kind) {
    Token wanted;
    wanted.kind = kind;
    failUnexpected(describe(wanted));
  }
  take();
}
std::string Parser::takeName() {
  if (current().kind != TokenKind::Name)
    failUnexpected("a name");
  return take().text;
}

void Parser::failHere(const std::string &message) const {
  fail(message, current().line);
}
void Parser::failUnexpected(const std::string &expected) const {
  failHere("expected " + expected + ", got " + describe(current()));
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

Body jinja::parseTemplate(std::string_view source) {
  return Parser(tokenize(source)).parseTemplate();
}

Body Parser::parseTemplate() { return parseBody({}); }

/// Statements up to a tag whose name is in `ends`; its name is the current
/// token then. With no ends, up to the end of the template.
Body Parser::parseBody(std::initializer_list<std::string_view> ends) {
  Level level(*this);
  const int begin = current().line;
  Body body;
  auto add = [&](Statement::Kind kind) -> Statement & {
    body.push_back(std::make_unique<Statement>());
    body.back()->kind = kind;
    body.back()->line = current().line;
    return *body.back();
  };
  for (;;) {
    switch (current().kind) {
    case TokenKind::Data:
      add(Statement::Kind::Data).text = current().text;
      take();
      break;
    case TokenKind::VariableBegin: {
      Statement &print = add(Statement::Kind::Print);
      take();
      print.expression = parseTuple();
      expect(TokenKind::VariableEnd);
      break;
    }
    case TokenKind::BlockBegin:
      take();
      for (std::string_view end : ends)
        if (isName(end))
          return body;
      body.push_back(parseStatement());
      expect(TokenKind::BlockEnd);
      break;
    default:
      if (ends.size())
        fail("expected {% " + std::string(*(ends.end() - 1)) +
                 " %} before the end of the template",
             begin);
      return body;
    }
  }
}

/// What follows a tag's head: its end, and statements up to one of `ends`.
Body Parser::parseStatements(std::initializer_list<std::string_view> ends) {
  skipOperator(":");
  expect(TokenKind::BlockEnd);
  return parseBody(ends);
}

std::unique_ptr<Statement> Parser::parseStatement() {
  using Kind = Statement::Kind;
  auto result = std::make_unique<Statement>();
  Statement &statement = *result;
  statement.line = current().line;
  if (current().kind != TokenKind::Name)
    failUnexpected("the name of a tag");
  const std::string tag = current().text;
  take();
  if (tag == "if") {
    statement.kind = Kind::If;
    parseIf(statement);
  } else if (tag == "for") {
    statement.kind = Kind::For;
    parseFor(statement);
  } else if (tag == "set") {
    parseSet(statement);
  } else if (tag == "macro") {
    statement.kind = Kind::Macro;
    parseMacro(statement);
  } else if (tag == "call") {
    statement.kind = Kind::Call;
    parseCallBlock(statement);
  } else if (tag == "filter") {
    statement.kind = Kind::FilterBlock;
    statement.expression = parseFilter(nullptr);
    statement.body = parseStatements({"endfilter"});
    take();
  } else if (tag == "with") {
    statement.kind = Kind::With;
    parseWith(statement);
  } else if (tag == "generation") {
    statement.kind = Kind::Scope;
    const int outer = std::exchange(loops, 0);
    statement.body = parseStatements({"endgeneration"});
    loops = outer;
    take();
  } else if (tag == "print") {
    statement.kind = Kind::Print;
    statement.expression = parsePrinted();
  } else if (tag == "break" || tag == "continue") {
    statement.kind = tag == "break" ? Kind::Break : Kind::Continue;
    if (!loops)
      fail("{% " + tag + " %} outside a loop", statement.line);
  } else {
    for (std::string_view known :
         {"block", "extends", "include", "import", "from", "autoescape", "do",
          "trans", "debug"})
      if (tag == known)
        fail("{% " + tag + " %} is not supported in chat templates",
             statement.line);
    fail("unknown tag {% " + tag.substr(0, 40) + " %}", statement.line);
  }
  return result;
}

void Parser::parseIf(Statement &statement) {
  for (bool conditional = true;;) {
    Statement::Branch &branch = statement.branches.emplace_back();
    if (conditional) {
      branch.condition = parseTuple(false);
      branch.body = parseStatements({"elif", "else", "endif"});
    } else {
      branch.body = parseStatements({"endif"});
    }
    const std::string end = take().text;
    if (end == "endif")
      return;
    conditional = end == "elif";
  }
}

void Parser::parseFor(Statement &statement) {
  statement.target = parseTarget(false, "in");
  expectName("in");
  statement.expression = parseTuple(false, false, "recursive");
  if (skipName("if"))
    statement.condition = parseExpression();
  statement.recursive = skipName("recursive");
  ++loops;
  statement.body = parseStatements({"else", "endfor"});
  --loops;
  if (take().text == "else") {
    statement.orElse = parseStatements({"endfor"});
    take();
  }
}

void Parser::parseSet(Statement &statement) {
  statement.target = parseTarget(true, {});
  if (skipOperator("=")) {
    statement.kind = Statement::Kind::Set;
    statement.expression = parseTuple();
    return;
  }
  statement.kind = Statement::Kind::SetBlock;
  if (skipOperator("|"))
    statement.expression = parseFilter(nullptr);
  statement.body = parseStatements({"endset"});
  take();
}

void Parser::parseWith(Statement &statement) {
  while (current().kind != TokenKind::BlockEnd) {
    if (!statement.assignments.empty())
      expectOperator(",");
    Target target = parseTarget(false, {});
    expectOperator("=");
    statement.assignments.emplace_back(std::move(target), parseExpression());
  }
  statement.body = parseStatements({"endwith"});
  take();
}

void Parser::parseSignature(MacroCode &macro) {
  expectOperator("(");
  while (!isOperator(")")) {
    if (!macro.parameters.empty())
      expectOperator(",");
    Parameter parameter;
    parameter.name = takeName();
    if (skipOperator("="))
      parameter.otherwise = parseExpression();
    else if (!macro.parameters.empty() && macro.parameters.back().otherwise)
      failHere("parameter '" + parameter.name +
               "' without a default follows one with a default");
    macro.parameters.push_back(std::move(parameter));
  }
  expectOperator(")");
}

/// The body up to the tag `end`, which is taken.
void Parser::parseMacroBody(MacroCode &macro, std::string_view end) {
  macros.push_back(&macro);
  const int outer = std::exchange(loops, 0);
  macro.body = parseStatements({end});
  take();
  loops = outer;
  macros.pop_back();
}

void Parser::parseMacro(Statement &statement) {
  statement.macro.name = takeName();
  parseSignature(statement.macro);
  parseMacroBody(statement.macro, "endmacro");
}

void Parser::parseCallBlock(Statement &statement) {
  statement.macro.name = "caller";
  if (isOperator("("))
    parseSignature(statement.macro);
  statement.expression = parseExpression();
  if (statement.expression->kind != Expression::Kind::Call)
    fail("{% call %} expects a call", statement.line);
  parseMacroBody(statement.macro, "endcall");
}

Target Parser::parseTargetItem(bool withAttribute) {
  Level level(*this);
  Target target;
  if (skipOperator("(")) {
    target = parseTarget(withAttribute, {});
    expectOperator(")");
    return target;
  }
  const int line = current().line;
  target.name = takeName();
  for (std::string_view word :
       {"true", "false", "none", "True", "False", "None"})
    if (target.name == word)
      fail("cannot assign to '" + target.name + "'", line);
  if (withAttribute && skipOperator("."))
    target.attribute = takeName();
  return target;
}

/// A target, maybe a tuple; it ends before the name `end`, if given.
Target Parser::parseTarget(bool withAttribute, std::string_view end) {
  Target first = parseTargetItem(withAttribute);
  if (!isOperator(","))
    return first;
  Target tuple;
  tuple.isTuple = true;
  tuple.tuple.push_back(std::move(first));
  while (skipOperator(",")) {
    if (isOperator(")") || isOperator("=") || (!end.empty() && isName(end)) ||
        current().kind == TokenKind::BlockEnd)
      break;
    tuple.tuple.push_back(parseTargetItem(withAttribute));
  }
  return tuple;
}
