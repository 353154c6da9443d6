//===- Rules.h - Rules over lexemes -----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_RULES_H
#define KF_RUNTIME_GRAMMAR_RULES_H

#include "runtime/grammar/Expressions.h"
#include "runtime/grammar/Grammar.h"
#include "runtime/grammar/GrammarLimits.h"

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace kf::grammar {

/// What stands in a production: a lexeme, a rule, or its end.
class Symbol {
public:
  static Symbol lexeme(uint32_t number) { return Symbol(number); }
  static Symbol rule(uint32_t number) { return Symbol(kRule | number); }
  /// The end of a production of that rule.
  static Symbol end(uint32_t number) { return Symbol(kEnd | number); }

  bool isLexeme() const { return !(code & (kRule | kEnd)); }
  bool isRule() const { return code & kRule; }
  bool isEnd() const { return code & kEnd; }
  uint32_t number() const { return code & ~(kRule | kEnd); }
  auto operator<=>(const Symbol &) const = default;

private:
  static constexpr uint32_t kRule = uint32_t(1) << 30;
  static constexpr uint32_t kEnd = uint32_t(1) << 31;
  explicit Symbol(uint32_t code) : code(code) {}
  uint32_t code;
};

/// A compiled grammar. Read-only once made.
struct Rules {
  size_t memory() const;

  Expressions expressions;
  std::vector<ExprId> lexemes{}; ///< by lexeme; each is live
  /// Productions one behind another, each with its end; the first is that of
  /// rule 0, which has no other: what the whole text is.
  std::vector<Symbol> symbols{};
  struct Rule {
    std::vector<uint32_t> productions; ///< their places in `symbols`
    bool nullable = false;             ///< matches the empty text
  };
  std::vector<Rule> rules{};
  std::array<uint8_t, 256>
      classes{};                     ///< of bytes, which all lexemes tell apart
  std::vector<uint8_t> classBytes{}; ///< by class, a byte of it
};

/// Puts rules together. Throws Failure where limits are exceeded. What is made
/// in expressions() is paid for with fuel().
class RulesBuilder {
public:
  explicit RulesBuilder(const GrammarLimits &limits);
  RulesBuilder(const RulesBuilder &) = delete;
  RulesBuilder &operator=(const RulesBuilder &) = delete;

  Expressions &expressions() { return made.expressions; }
  Fuel &fuel() { return steps; }
  const GrammarLimits &limits() const { return bounds; }

  /// A rule that has no production yet.
  uint32_t addRule();
  void addProduction(uint32_t rule, std::span<const Symbol> symbols);
  void addProduction(uint32_t rule, std::initializer_list<Symbol> symbols) {
    addProduction(rule, std::span(symbols.begin(), symbols.size()));
  }
  /// What matches texts of `expression`, the empty one too if that does.
  Symbol expression(ExprId expression);
  /// A rule for any number of `item`s.
  Symbol star(Symbol item);
  /// A rule for nothing or `item`.
  Symbol optional(Symbol item);
  /// A rule for `least` to `most` of `item`; `most` may be
  /// Expressions::kUnbounded.
  Symbol repeat(Symbol item, uint32_t least, uint32_t most);

  /// The grammar whose texts are `root`, with what is around it. Drops what no
  /// text can reach. Fails if there is no text at all.
  Rules finish(Symbol root, const TextAround &around);

private:
  void count(size_t more);

  GrammarLimits bounds;
  Fuel steps;
  Rules made;
  size_t size = 0; ///< symbols and rules
  struct Production {
    uint32_t rule;
    std::vector<Symbol> symbols;
  };
  std::vector<Production> productions;
  uint32_t ruleCount = 0;
  std::unordered_map<ExprId, uint32_t> lexemeOf;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_RULES_H
