//===- Gbnf.cpp - Grammars in llama.cpp's notation ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is not recursive, as far as rules go, is a regular expression: so
// lexemes become as long as can be, and the parser has little to do. The rest
// are productions.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/grammar/GbnfParser.h"
#include "runtime/grammar/Grammar.h"

#include <algorithm>
#include <optional>

using namespace kf;
using namespace kf::grammar;

namespace {

using Kind = GbnfNode::Kind;

class Compiler {
public:
  Compiler(const GbnfTree &tree, RulesBuilder &builder)
      : tree(tree), builder(builder), set(builder.expressions()) {}

  Rules compile(const TextAround &around);

private:
  /// A rule that calls itself only at its end, or only at its beginning:
  /// `again` in front of (or behind) itself, or `done`.
  struct Linear {
    ExprId again = Expressions::kNothing, done = Expressions::kNothing;
  };

  void findRegular();
  std::optional<ExprId> findLinear(uint32_t rule);
  std::optional<Linear> linear(uint32_t node, uint32_t self, bool atEnd);
  /// What a node matches, if it calls no rule that is not known as one; goes
  /// as deep as nodes are nested.
  std::optional<ExprId> expressionOf(uint32_t node);
  Symbol symbolOf(uint32_t node);
  void addProductions(uint32_t rule, uint32_t node);

  const GbnfTree &tree;
  RulesBuilder &builder;
  Expressions &set;
  std::vector<std::optional<ExprId>> regular; ///< by rule
  std::vector<uint32_t> rules;                ///< by rule that is not regular
};

std::optional<ExprId> Compiler::expressionOf(uint32_t index) {
  builder.fuel().spend();
  const GbnfNode &node = tree.nodes[index];
  switch (node.kind) {
  case Kind::Text:
    return node.expression;
  case Kind::Rule:
    return regular[node.rule];
  case Kind::Sequence: {
    ExprId whole = Expressions::kEmpty;
    for (size_t i = node.parts.size(); i-- > 0;) {
      const std::optional<ExprId> part = expressionOf(node.parts[i]);
      if (!part)
        return std::nullopt;
      whole = set.concat(*part, whole);
    }
    return whole;
  }
  case Kind::Choice: {
    std::vector<ExprId> parts;
    for (uint32_t i : node.parts) {
      const std::optional<ExprId> part = expressionOf(i);
      if (!part)
        return std::nullopt;
      parts.push_back(*part);
    }
    return set.either(std::move(parts));
  }
  case Kind::Repeat: {
    const std::optional<ExprId> part = expressionOf(node.parts[0]);
    if (!part)
      return std::nullopt;
    return set.repeat(*part, node.least, node.most);
  }
  }
  return std::nullopt;
}

std::optional<Compiler::Linear> Compiler::linear(uint32_t index, uint32_t self,
                                                 bool atEnd) {
  if (const std::optional<ExprId> whole = expressionOf(index))
    return Linear{.done = *whole};
  const GbnfNode &node = tree.nodes[index];
  switch (node.kind) {
  case Kind::Rule:
    if (node.rule == self)
      return Linear{.again = Expressions::kEmpty};
    return std::nullopt;
  case Kind::Choice: {
    Linear all;
    for (uint32_t i : node.parts) {
      const std::optional<Linear> part = linear(i, self, atEnd);
      if (!part)
        return std::nullopt;
      all.again = set.either({all.again, part->again});
      all.done = set.either({all.done, part->done});
    }
    return all;
  }
  case Kind::Sequence: {
    ExprId others = Expressions::kEmpty;
    const size_t own = atEnd ? node.parts.size() - 1 : 0;
    for (size_t i = node.parts.size(); i-- > 0;) {
      if (i == own)
        continue;
      const std::optional<ExprId> part = expressionOf(node.parts[i]);
      if (!part)
        return std::nullopt;
      others = set.concat(*part, others);
    }
    const std::optional<Linear> part = linear(node.parts[own], self, atEnd);
    if (!part)
      return std::nullopt;
    return atEnd ? Linear{set.concat(others, part->again),
                          set.concat(others, part->done)}
                 : Linear{set.concat(part->again, others),
                          set.concat(part->done, others)};
  }
  case Kind::Repeat: {
    if (node.least != 0 || node.most != 1)
      return std::nullopt;
    std::optional<Linear> part = linear(node.parts[0], self, atEnd);
    if (part)
      part->done = set.optional(part->done);
    return part;
  }
  case Kind::Text:
    break;
  }
  return std::nullopt;
}

std::optional<ExprId> Compiler::findLinear(uint32_t rule) {
  const uint32_t node = tree.rules[rule].node;
  if (const std::optional<Linear> form = linear(node, rule, true))
    return set.concat(set.star(form->again), form->done);
  if (const std::optional<Linear> form = linear(node, rule, false))
    return set.concat(form->done, set.star(form->again));
  return std::nullopt;
}

/// Finds the rules that are regular expressions: those that call only such, and
/// themselves at most at one end.
void Compiler::findRegular() {
  // Of each rule, how many others it calls that are not known, and who calls
  // it.
  const size_t count = tree.rules.size();
  std::vector<std::vector<uint32_t>> callers(count);
  std::vector<size_t> missing(count);
  for (uint32_t rule = 0; rule < count; ++rule) {
    std::vector<uint32_t> todo{tree.rules[rule].node}, called;
    while (!todo.empty()) {
      builder.fuel().spend();
      const GbnfNode &node = tree.nodes[todo.back()];
      todo.pop_back();
      if (node.kind == Kind::Rule && node.rule != rule)
        called.push_back(node.rule);
      todo.insert(todo.end(), node.parts.begin(), node.parts.end());
    }
    std::ranges::sort(called);
    called.erase(std::ranges::unique(called).begin(), called.end());
    missing[rule] = called.size();
    for (uint32_t other : called)
      callers[other].push_back(rule);
  }
  regular.assign(count, std::nullopt);
  std::vector<uint32_t> todo;
  for (uint32_t rule = 0; rule < count; ++rule)
    if (!missing[rule])
      todo.push_back(rule);
  while (!todo.empty()) {
    const uint32_t rule = todo.back();
    todo.pop_back();
    regular[rule] = findLinear(rule);
    if (!regular[rule])
      continue;
    for (uint32_t caller : callers[rule])
      if (!--missing[caller])
        todo.push_back(caller);
  }
}

Symbol Compiler::symbolOf(uint32_t index) {
  if (const std::optional<ExprId> whole = expressionOf(index))
    return builder.expression(*whole);
  const GbnfNode &node = tree.nodes[index];
  if (node.kind == Kind::Rule)
    return Symbol::rule(rules[node.rule]);
  if (node.kind == Kind::Repeat)
    return builder.repeat(symbolOf(node.parts[0]), node.least, node.most);
  const uint32_t rule = builder.addRule();
  addProductions(rule, index);
  return Symbol::rule(rule);
}

void Compiler::addProductions(uint32_t rule, uint32_t index) {
  const GbnfNode &node = tree.nodes[index];
  if (node.kind == Kind::Choice) {
    std::vector<ExprId> texts;
    for (uint32_t part : node.parts)
      if (const std::optional<ExprId> text = expressionOf(part))
        texts.push_back(*text);
      else
        addProductions(rule, part);
    if (!texts.empty())
      builder.addProduction(rule,
                            {builder.expression(set.either(std::move(texts)))});
    return;
  }
  if (node.kind != Kind::Sequence) {
    builder.addProduction(rule, {symbolOf(index)});
    return;
  }
  std::vector<Symbol> symbols;
  ExprId text = Expressions::kEmpty; // what is not among the symbols yet
  auto flush = [&] {
    if (text != Expressions::kEmpty)
      symbols.push_back(builder.expression(text));
    text = Expressions::kEmpty;
  };
  for (uint32_t part : node.parts) {
    if (const std::optional<ExprId> own = expressionOf(part)) {
      text = set.concat(text, *own);
    } else {
      flush();
      symbols.push_back(symbolOf(part));
    }
  }
  flush();
  builder.addProduction(rule, symbols);
}

Rules Compiler::compile(const TextAround &around) {
  findRegular();
  rules.assign(tree.rules.size(), 0);
  for (size_t rule = 0; rule < rules.size(); ++rule)
    if (!regular[rule])
      rules[rule] = builder.addRule();
  for (size_t rule = 0; rule < rules.size(); ++rule)
    if (!regular[rule])
      addProductions(rules[rule], tree.rules[rule].node);
  const std::optional<ExprId> whole = regular[tree.root];
  return builder.finish(whole ? builder.expression(*whole)
                              : Symbol::rule(rules[tree.root]),
                        around);
}

} // namespace

Result<Grammar> Grammar::fromGbnf(std::string_view text,
                                  const GrammarLimits &limits,
                                  const TextAround &around) {
  return catchExceptions([&]() -> Result<Grammar> {
    return catchFailure([&]() -> Result<Grammar> {
      if (text.size() > limits.maxBytes)
        return Status::error("a grammar of " + std::to_string(text.size()) +
                             " bytes; the limit is " +
                             std::to_string(limits.maxBytes));
      RulesBuilder builder(limits);
      const GbnfTree tree = parseGbnf(text, builder);
      return Grammar(std::make_shared<const Rules>(
          Compiler(tree, builder).compile(around)));
    });
  });
}
