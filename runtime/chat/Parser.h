//===- Parser.h - Tokens to a tree ------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_PARSER_H
#define KF_RUNTIME_CHAT_PARSER_H

#include "runtime/chat/Ast.h"
#include "runtime/chat/Lexer.h"

#include <initializer_list>
#include <span>

namespace kf::jinja {

/// A recursive-descent parser with Jinja's grammar and precedences. Throws
/// Failure.
class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  Body parseTemplate();

private:
  /// How deep expressions and statements may be nested.
  static constexpr int kMaxDepth = 200;
  /// Counts a level of nesting as long as it lives.
  class Level {
  public:
    explicit Level(Parser &parser) : parser(parser) {
      if (++parser.depth > kMaxDepth)
        parser.failHere("the template is nested more than " +
                        std::to_string(kMaxDepth) + " deep");
    }
    Level(const Level &) = delete;
    Level &operator=(const Level &) = delete;
    ~Level() { --parser.depth; }

  private:
    Parser &parser;
  };

  // Tokens.
  const Token &current() const { return tokens[at]; }
  const Token &next() const {
    return tokens[at + 1 < tokens.size() ? at + 1 : at];
  }
  Token take();
  bool isName(std::string_view name) const;
  bool isOperator(std::string_view op) const;
  bool skipName(std::string_view name);
  bool skipOperator(std::string_view op);
  void expectName(std::string_view name);
  void expectOperator(std::string_view op);
  void expect(Token::Kind kind);
  std::string takeName();
  [[noreturn]] void failHere(const std::string &message) const;
  [[noreturn]] void failUnexpected(const std::string &expected) const;

  // Statements.
  Body parseBody(std::initializer_list<std::string_view> ends);
  Body parseStatements(std::initializer_list<std::string_view> ends);
  std::unique_ptr<Statement> parseStatement();
  void parseIf(Statement &statement);
  void parseFor(Statement &statement);
  void parseSet(Statement &statement);
  void parseWith(Statement &statement);
  void parseSignature(MacroCode &macro);
  void parseMacro(Statement &statement);
  void parseCallBlock(Statement &statement);
  void parseMacroBody(MacroCode &macro, std::string_view end);
  Target parseTarget(bool withAttribute, std::string_view end);
  Target parseTargetItem(bool withAttribute);

  // Expressions, loosest first.
  ExpressionPtr parseTuple(bool conditional = true, bool parentheses = false,
                           std::string_view end = {});
  ExpressionPtr parseExpression(bool conditional = true);
  ExpressionPtr parsePrinted();
  ExpressionPtr parseOr();
  ExpressionPtr parseAnd();
  ExpressionPtr parseNot();
  ExpressionPtr parseCompare();
  ExpressionPtr parseSum();
  ExpressionPtr parseConcat();
  ExpressionPtr parseProduct();
  ExpressionPtr parsePower();
  ExpressionPtr parseUnary(bool withFilter = true);
  ExpressionPtr parsePrimary();
  ExpressionPtr parseList();
  ExpressionPtr parseDict();
  ExpressionPtr parsePostfix(ExpressionPtr node);
  ExpressionPtr parseFilters(ExpressionPtr node);
  ExpressionPtr parseSubscript(ExpressionPtr node);
  ExpressionPtr parseFilter(ExpressionPtr node);
  ExpressionPtr parseTest(ExpressionPtr node);
  ExpressionPtr parseCall(ExpressionPtr node);
  CallArguments parseArguments();
  std::string parseDottedName();

  using Parse = ExpressionPtr (Parser::*)();
  ExpressionPtr parseBinary(std::initializer_list<std::string_view> ops,
                            Parse operand);
  /// A node over `operands`, any of which may be null.
  template <typename... Operands>
  ExpressionPtr make(Expression::Kind kind, int line, Operands... operands);
  ExpressionPtr constant(Value value, int line);
  void addOperand(Expression &node, ExpressionPtr operand);
  /// Counts the arguments into the node's depth.
  void closeArguments(Expression &node);

  std::vector<Token> tokens;
  size_t at = 0;
  int depth = 0;
  int loops = 0;                   ///< around the statement being parsed
  std::vector<MacroCode *> macros; ///< around it, outermost first
};

} // namespace kf::jinja

#endif // KF_RUNTIME_CHAT_PARSER_H
