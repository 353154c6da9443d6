//===- Rules.cpp - Rules over lexemes -------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/Rules.h"

#include <algorithm>
#include <functional>
#include <string>

using namespace kf;
using namespace kf::grammar;

size_t Rules::memory() const {
  size_t bytes = expressions.memory() + lexemes.size() * sizeof(ExprId) +
                 symbols.size() * sizeof(Symbol);
  for (const Rule &rule : rules)
    bytes += sizeof(Rule) + rule.productions.size() * sizeof(uint32_t);
  return bytes;
}

RulesBuilder::RulesBuilder(const GrammarLimits &limits)
    : bounds(limits), steps(limits.maxSteps, limits.cancelled),
      made{.expressions = Expressions(limits.maxSize)} {
  made.expressions.payWith(&steps);
  addRule(); // the whole text
}

void RulesBuilder::count(size_t more) {
  size += more;
  if (size > bounds.maxSize)
    fail("the grammar is larger than the limit of " +
         std::to_string(bounds.maxSize) + " rules and symbols");
  steps.spend(more);
}

uint32_t RulesBuilder::addRule() {
  count(1);
  return ruleCount++;
}

void RulesBuilder::addProduction(uint32_t rule,
                                 std::span<const Symbol> symbols) {
  count(symbols.size() + 1);
  productions.push_back({rule, {symbols.begin(), symbols.end()}});
}

Symbol RulesBuilder::expression(ExprId expression) {
  const auto [place, isNew] = lexemeOf.try_emplace(
      expression, static_cast<uint32_t>(made.lexemes.size()));
  if (isNew) {
    count(1);
    made.lexemes.push_back(expression);
  }
  const Symbol lexeme = Symbol::lexeme(place->second);
  return made.expressions.nullable(expression) ? optional(lexeme) : lexeme;
}

Symbol RulesBuilder::star(Symbol item) {
  // Recursion on the left keeps rows small, however many items there are.
  const uint32_t rule = addRule();
  addProduction(rule, {});
  addProduction(rule, {Symbol::rule(rule), item});
  return Symbol::rule(rule);
}

Symbol RulesBuilder::optional(Symbol item) {
  const uint32_t rule = addRule();
  addProduction(rule, {});
  addProduction(rule, {item});
  return Symbol::rule(rule);
}

Symbol RulesBuilder::repeat(Symbol item, uint32_t least, uint32_t most) {
  // least items, then (item (item ...)?)? or any number.
  Symbol tail = Symbol::lexeme(0);
  bool hasTail = false;
  if (most == Expressions::kUnbounded) {
    tail = star(item);
    hasTail = true;
  } else {
    for (uint32_t i = least; i < most; ++i) {
      const uint32_t rule = addRule();
      addProduction(rule, {});
      if (hasTail)
        addProduction(rule, {item, tail});
      else
        addProduction(rule, {item});
      tail = Symbol::rule(rule);
      hasTail = true;
    }
  }
  count(least);
  std::vector<Symbol> symbols(least, item);
  if (hasTail)
    symbols.push_back(tail);
  const uint32_t rule = addRule();
  addProduction(rule, symbols);
  return Symbol::rule(rule);
}

namespace {

/// Rules that hold `property`, which a production passes on once all symbols of
/// it have it.
std::vector<bool> closeOver(uint32_t ruleCount, size_t productionCount,
                            const std::vector<std::vector<uint32_t>> &uses,
                            std::vector<uint64_t> missing,
                            const std::function<uint32_t(uint32_t)> &ruleOf) {
  std::vector<bool> holds(ruleCount);
  std::vector<uint32_t> todo;
  auto settle = [&](uint32_t production) {
    const uint32_t rule = ruleOf(production);
    if (!holds[rule]) {
      holds[rule] = true;
      todo.push_back(rule);
    }
  };
  for (uint32_t i = 0; i < productionCount; ++i)
    if (!missing[i])
      settle(i);
  while (!todo.empty()) {
    const uint32_t rule = todo.back();
    todo.pop_back();
    for (uint32_t production : uses[rule])
      if (!--missing[production])
        settle(production);
  }
  return holds;
}

} // namespace

Rules RulesBuilder::finish(Symbol root, const TextAround &around) {
  std::vector<Symbol> whole{root};
  if (!around.before.empty())
    whole.insert(whole.begin(),
                 expression(made.expressions.literal(around.before)));
  if (!around.after.empty())
    whole.push_back(expression(made.expressions.literal(around.after)));
  addProduction(0, whole);
  made.classes = made.expressions.byteClasses();
  made.classBytes.resize(std::ranges::max(made.classes) + size_t(1));
  for (int byte = 255; byte >= 0; --byte)
    made.classBytes[made.classes[byte]] = static_cast<uint8_t>(byte);

  std::vector<bool> live(made.lexemes.size());
  for (size_t i = 0; i < live.size(); ++i) {
    const ExprId lexeme = made.lexemes[i];
    // Of at least one byte: rules stand for the empty text.
    live[i] = std::ranges::any_of(made.classBytes, [&](uint8_t byte) {
      return made.expressions.isLive(
          made.expressions.derivative(lexeme, byte, steps), made.classBytes,
          steps);
    });
  }

  // A rule is productive if some text matches it, and nullable if the empty
  // one does.
  constexpr uint64_t kNever = uint64_t(1) << 32;
  const auto ruleOf = [&](uint32_t i) { return productions[i].rule; };
  std::vector<std::vector<uint32_t>> uses(ruleCount);
  std::vector<uint64_t> unproductive(productions.size()),
      notNullable(productions.size());
  for (uint32_t i = 0; i < productions.size(); ++i) {
    for (Symbol symbol : productions[i].symbols) {
      if (symbol.isRule()) {
        uses[symbol.number()].push_back(i);
        ++unproductive[i];
        ++notNullable[i];
      } else {
        unproductive[i] += live[symbol.number()] ? 0 : kNever;
        notNullable[i] += kNever;
      }
    }
  }
  const std::vector<bool> productive =
      closeOver(ruleCount, productions.size(), uses, unproductive, ruleOf);
  const std::vector<bool> nullable =
      closeOver(ruleCount, productions.size(), uses, notNullable, ruleOf);
  if (!productive[0])
    fail("no text satisfies it");

  // Numbers of the rules and lexemes that texts can reach.
  std::vector<std::vector<uint32_t>> own(ruleCount);
  for (uint32_t i = 0; i < productions.size(); ++i)
    if (std::ranges::all_of(productions[i].symbols, [&](Symbol symbol) {
          return symbol.isRule() ? productive[symbol.number()]
                                 : live[symbol.number()];
        }))
      own[productions[i].rule].push_back(i);
  std::vector<uint32_t> order{0}, renamed(ruleCount, InternTable::kNone);
  std::vector<uint32_t> lexemeNames(live.size(), InternTable::kNone);
  std::vector<ExprId> lexemes;
  renamed[0] = 0;
  for (size_t next = 0; next < order.size(); ++next) {
    Rules::Rule &rule = made.rules.emplace_back();
    rule.nullable = nullable[order[next]];
    for (uint32_t i : own[order[next]]) {
      rule.productions.push_back(static_cast<uint32_t>(made.symbols.size()));
      for (Symbol symbol : productions[i].symbols) {
        const uint32_t number = symbol.number();
        if (symbol.isRule()) {
          if (renamed[number] == InternTable::kNone) {
            renamed[number] = static_cast<uint32_t>(order.size());
            order.push_back(number);
          }
          made.symbols.push_back(Symbol::rule(renamed[number]));
        } else {
          if (lexemeNames[number] == InternTable::kNone) {
            lexemeNames[number] = static_cast<uint32_t>(lexemes.size());
            lexemes.push_back(made.lexemes[number]);
          }
          made.symbols.push_back(Symbol::lexeme(lexemeNames[number]));
        }
      }
      made.symbols.push_back(Symbol::end(static_cast<uint32_t>(next)));
    }
  }
  made.lexemes = std::move(lexemes);
  made.expressions.payWith(nullptr);
  return std::move(made);
}
