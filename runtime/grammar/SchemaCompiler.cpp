//===- SchemaCompiler.cpp - JSON Schema to rules --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/SchemaCompiler.h"

#include "runtime/core/Exceptions.h"
#include "runtime/grammar/Pattern.h"

#include <algorithm>
#include <span>

using namespace kf;
using namespace kf::grammar;

using Kind = JsonValue::Kind;

SchemaCompiler::SchemaCompiler(const JsonTree &tree, RulesBuilder &builder,
                               const JsonOptions &options)
    : tree(tree), builder(builder), reader(tree, builder, options),
      set(builder.expressions()), options(options),
      character(jsonCharacter(set)) {
  space = Expressions::kEmpty;
  if (options.maxIndent > 0) {
    const ExprId blank = set.either({set.byte(' '), set.byte('\t')});
    const ExprId line =
        set.concat(set.optional(set.byte('\r')), set.byte('\n'));
    space = set.optional(set.either(
        {blank, set.concat(set.repeat(line, 1, 2),
                           set.repeat(blank, 0, options.maxIndent))}));
  }
  for (int byte = 0; byte < 256; ++byte)
    allBytes.push_back(static_cast<uint8_t>(byte));
}

Rules SchemaCompiler::compile() {
  const Symbol root = valueOf({{JsonTree::kRoot}});
  while (!work.empty()) {
    const Work next = std::move(work.back());
    work.pop_back();
    compileRule(next.rule, next.schemas);
  }
  return builder.finish(root, options.around);
}

Symbol SchemaCompiler::valueOf(Schemas schemas) {
  std::ranges::sort(schemas);
  schemas.erase(std::ranges::unique(schemas).begin(), schemas.end());
  builder.fuel().spend(schemas.size());
  const auto [place, isNew] = rules.try_emplace(std::move(schemas), 0);
  if (isNew) {
    place->second = builder.addRule();
    work.push_back({place->second, place->first});
  }
  return Symbol::rule(place->second);
}

void SchemaCompiler::compileRule(uint32_t rule, const Schemas &unexpanded) {
  const Schemas schemas = reader.expand(unexpanded);
  if (reader.allowNothing(schemas))
    return;
  if (schemas != unexpanded) {
    // What others refer to is one rule for all.
    builder.addProduction(rule, {valueOf(schemas)});
    return;
  }
  const SchemaFacts facts = reader.gather(schemas);
  if (facts.choice) {
    addChoice(rule, *facts.choice, schemas);
    return;
  }
  if (!facts.enums.empty()) {
    addEnumeration(rule, facts, schemas);
    return;
  }
  std::vector<ExprId> scalars;
  if (facts.types & kNullType)
    scalars.push_back(set.literal("null"));
  if (facts.types & kBooleanType)
    scalars.insert(scalars.end(), {set.literal("true"), set.literal("false")});
  if (facts.types & (kIntegerType | kFractionType))
    scalars.push_back(
        numberExpression(facts.bounds, !(facts.types & kFractionType), set));
  if (facts.types & kStringType)
    scalars.push_back(quoted(stringExpression(facts)));
  if (!scalars.empty())
    builder.addProduction(rule, {token(set.either(std::move(scalars)))});
  if (facts.types & kArrayType)
    addArray(rule, facts, schemas);
  if (facts.types & kObjectType)
    addObject(rule, facts, schemas);
}

void SchemaCompiler::addChoice(uint32_t rule, SchemaPart choice,
                               const Schemas &schemas) {
  Schemas rest = schemas;
  SchemaPart &part = *std::ranges::find(rest, choice);
  const std::optional<JsonId> anyOf =
      choice.hasAnyOf ? tree.member(choice.schema, "anyOf") : std::nullopt;
  const JsonId list = anyOf ? *anyOf : *tree.member(choice.schema, "oneOf");
  (anyOf ? part.hasAnyOf : part.hasOneOf) = false;
  rest = reader.expand(rest);
  for (JsonId one : tree[list].parts) {
    Schemas both = rest;
    both.push_back({one});
    builder.addProduction(rule, {valueOf(std::move(both))});
  }
}

ExprId SchemaCompiler::stringExpression(const SchemaFacts &facts) {
  if (facts.minLength > facts.maxLength)
    return Expressions::kNothing;
  std::vector<ExprId> parts = facts.patterns;
  if (parts.size() == 1) {
    // Some characters any number of times, of which so many are wanted.
    const auto form = set.repetition(parts[0]);
    if (form && !set.isLive(set.both({form->item, set.complement(character)}),
                            allBytes, builder.fuel())) {
      const uint32_t least = std::max(form->least, facts.minLength);
      const uint32_t most = std::min(form->most, facts.maxLength);
      return least > most ? Expressions::kNothing
                          : set.repeat(form->item, least, most);
    }
  }
  if (parts.empty() || facts.minLength > 0 ||
      facts.maxLength != Expressions::kUnbounded)
    parts.push_back(set.repeat(character, facts.minLength, facts.maxLength));
  return set.both(std::move(parts));
}

ExprId SchemaCompiler::quoted(ExprId inside) {
  return set.concat({set.byte('"'), inside, set.byte('"')});
}

Symbol SchemaCompiler::token(ExprId expression) {
  const Symbol lexeme = builder.expression(expression);
  if (space == Expressions::kEmpty)
    return lexeme;
  // White space is a lexeme of its own: where many tokens are possible, its
  // count is not one of each.
  const auto [place, isNew] = tokens.try_emplace(expression, 0);
  if (isNew) {
    if (!spaces)
      spaces = builder.expression(space);
    place->second = builder.addRule();
    builder.addProduction(place->second, {*spaces, lexeme});
  }
  return Symbol::rule(place->second);
}

Symbol SchemaCompiler::nameToken(ExprId inside) {
  return token(set.concat({quoted(inside), space, set.byte(':')}));
}

std::string SchemaCompiler::scalarText(JsonId value) const {
  switch (tree[value].kind) {
  case Kind::Null:
    return "null";
  case Kind::True:
    return "true";
  case Kind::False:
    return "false";
  case Kind::String:
    return '"' + escapeJson(tree[value].text) + '"';
  default:
    return tree[value].text;
  }
}

std::vector<Symbol> SchemaCompiler::literalValue(JsonId value) {
  struct Open {
    JsonId value;
    size_t next = 0; ///< part
  };
  std::vector<Symbol> symbols;
  std::vector<Open> path;
  auto begin = [&](JsonId one) {
    builder.fuel().spend(1 + tree[one].text.size());
    if (tree[one].isObject() || tree[one].isArray()) {
      symbols.push_back(token(tree[one].isObject() ? "{" : "["));
      path.push_back({one});
    } else {
      symbols.push_back(token(scalarText(one)));
    }
  };
  begin(value);
  while (!path.empty()) {
    Open &top = path.back();
    const JsonValue &container = tree[top.value];
    if (top.next == container.parts.size()) {
      symbols.push_back(token(container.isObject() ? "}" : "]"));
      path.pop_back();
      continue;
    }
    if (top.next > 0)
      symbols.push_back(token(","));
    const JsonId part = container.parts[top.next++];
    if (container.isObject())
      symbols.push_back(nameToken(set.literal(escapeJson(tree[part].name))));
    begin(part);
  }
  return symbols;
}

/// Whether a value of an enum satisfies the other keywords.
bool SchemaCompiler::isAllowed(JsonId value, const SchemaFacts &facts,
                               const Schemas &schemas, ScalarForms &forms) {
  const JsonValue &one = tree[value];
  builder.fuel().spend(1 + one.text.size() / 16);
  switch (one.kind) {
  case Kind::Null:
    return facts.types & kNullType;
  case Kind::True:
  case Kind::False:
    return facts.types & kBooleanType;
  case Kind::String:
    if (!(facts.types & kStringType))
      return false;
    if (!forms.strings)
      forms.strings = stringExpression(facts);
    return set.matches(*forms.strings, escapeJson(one.text), builder.fuel());
  case Kind::Number: {
    const std::optional<Decimal> number = Decimal::parse(one.text);
    if (!number)
      reader.failAt(value, "the number has too many digits");
    if (!(facts.types & (number->isInteger() ? kIntegerType : kFractionType)))
      return false;
    std::string plain = number->whole.empty() ? "0" : number->whole;
    if (!number->isInteger())
      plain += '.' + number->fraction;
    if (facts.bounds.empty())
      return true;
    if (!forms.numbers)
      forms.numbers = numberExpression(facts.bounds, false, set);
    return set.matches(*forms.numbers, (number->isNegative ? "-" : "") + plain,
                       builder.fuel());
  }
  case Kind::Array:
  case Kind::Object:
    break;
  }
  builder.fuel().spend(schemas.size());
  for (SchemaPart part : schemas)
    for (const char *keyword :
         {"additionalProperties", "items", "maxItems", "minItems",
          "prefixItems", "properties", "required"})
      if (const auto other = tree.member(part.schema, keyword))
        reader.failAt(*other, "this keyword is not supported beside an enum or "
                              "const of arrays or objects");
  return facts.types & (one.isArray() ? kArrayType : kObjectType);
}

void SchemaCompiler::addEnumeration(uint32_t rule, const SchemaFacts &facts,
                                    const Schemas &schemas) {
  auto valuesOf = [&](const JsonId &list) {
    return tree[list].name == "enum" ? std::span<const JsonId>(tree[list].parts)
                                     : std::span<const JsonId>(&list, 1);
  };
  ScalarForms forms;
  std::vector<std::string> scalars;
  for (JsonId value : valuesOf(facts.enums[0])) {
    bool isInAll = isAllowed(value, facts, schemas, forms);
    for (size_t i = 1; i < facts.enums.size() && isInAll; ++i)
      isInAll = std::ranges::any_of(valuesOf(facts.enums[i]), [&](JsonId one) {
        return tree.equal(value, one, builder.fuel());
      });
    if (!isInAll)
      continue;
    if (tree[value].isArray() || tree[value].isObject())
      builder.addProduction(rule, literalValue(value));
    else
      scalars.push_back(scalarText(value));
  }
  if (!scalars.empty())
    builder.addProduction(
        rule, {token(set.literals(std::move(scalars), builder.fuel()))});
}

void SchemaCompiler::addObject(uint32_t rule, const SchemaFacts &facts,
                               const Schemas &schemas) {
  const Symbol comma = token(",");
  // What may come from some member on, with a comma in front, or without one
  // since it is the first.
  const uint32_t nothing = builder.addRule();
  builder.addProduction(nothing, {});
  Symbol after = Symbol::rule(nothing), first = after;
  const Schemas others = reader.ofOtherMembers(schemas);
  if (!reader.allowNothing(reader.expand(others))) {
    ExprId name = set.star(character);
    if (!facts.names.empty()) {
      // With the shortest escapes alone, none of the names is written in
      // another way.
      std::vector<std::string> names;
      for (const std::string &own : facts.names)
        names.push_back(escapeJson(own));
      const ExprId plain = jsonCharacters(CharacterSet({{0, 0x10ffff}}), set);
      name = set.both(
          {set.star(plain),
           set.complement(set.literals(std::move(names), builder.fuel()))});
    }
    const Symbol key = nameToken(name), value = valueOf(others);
    const uint32_t more = builder.addRule(), one = builder.addRule();
    builder.addProduction(more, {comma, key, value});
    after = builder.star(Symbol::rule(more));
    builder.addProduction(one, {key, value, after});
    first = builder.optional(Symbol::rule(one));
  }
  for (size_t i = facts.names.size(); i-- > 0;) {
    const std::string &name = facts.names[i];
    const Symbol key = nameToken(set.literal(escapeJson(name)));
    const Symbol value = valueOf(reader.ofMember(schemas, name));
    const uint32_t newAfter = builder.addRule(), newFirst = builder.addRule();
    builder.addProduction(newAfter, {comma, key, value, after});
    builder.addProduction(newFirst, {key, value, after});
    if (!facts.required.contains(name)) {
      builder.addProduction(newAfter, {after});
      builder.addProduction(newFirst, {first});
    }
    after = Symbol::rule(newAfter);
    first = Symbol::rule(newFirst);
  }
  builder.addProduction(rule, {token("{"), first, token("}")});
}

void SchemaCompiler::addArray(uint32_t rule, const SchemaFacts &facts,
                              const Schemas &schemas) {
  if (facts.minItems > facts.maxItems)
    return;
  const Symbol comma = token(",");
  const uint32_t nothing = builder.addRule();
  builder.addProduction(nothing, {});
  // Items behind those that have schemas of their own.
  const auto prefix = static_cast<uint32_t>(
      std::min<size_t>(facts.prefixItems, facts.maxItems));
  const uint32_t least = facts.minItems > prefix ? facts.minItems - prefix : 0;
  const uint32_t most = facts.maxItems == Expressions::kUnbounded
                            ? Expressions::kUnbounded
                            : facts.maxItems - prefix;
  const Symbol item = valueOf(reader.ofItem(schemas, prefix));
  const uint32_t more = builder.addRule();
  builder.addProduction(more, {comma, item});
  Symbol after = most ? builder.repeat(Symbol::rule(more), least, most)
                      : Symbol::rule(nothing);
  Symbol first = Symbol::rule(nothing);
  if (prefix == 0 && most > 0) {
    const uint32_t some = builder.addRule();
    builder.addProduction(
        some, {item, builder.repeat(
                         Symbol::rule(more), least ? least - 1 : 0,
                         most == Expressions::kUnbounded ? most : most - 1)});
    first = least ? Symbol::rule(some) : builder.optional(Symbol::rule(some));
  }
  for (uint32_t i = prefix; i-- > 0;) {
    const Symbol own = valueOf(reader.ofItem(schemas, i));
    const uint32_t newAfter = builder.addRule(), newFirst = builder.addRule();
    builder.addProduction(newAfter, {comma, own, after});
    builder.addProduction(newFirst, {own, after});
    if (i >= facts.minItems) {
      builder.addProduction(newAfter, {});
      builder.addProduction(newFirst, {});
    }
    after = Symbol::rule(newAfter);
    first = Symbol::rule(newFirst);
  }
  builder.addProduction(rule, {token("["), first, token("]")});
}

Result<Grammar> Grammar::fromJsonSchema(std::string_view schema,
                                        const GrammarLimits &limits,
                                        const JsonOptions &options) {
  return catchExceptions([&]() -> Result<Grammar> {
    return catchFailure([&]() -> Result<Grammar> {
      if (schema.size() > limits.maxBytes)
        return Status::error("a schema of " + std::to_string(schema.size()) +
                             " bytes; the limit is " +
                             std::to_string(limits.maxBytes));
      RulesBuilder builder(limits);
      const JsonTree tree =
          JsonTree::parse(schema, limits.maxDepth, builder.fuel());
      return Grammar(std::make_shared<const Rules>(
          SchemaCompiler(tree, builder, options).compile()));
    });
  });
}

Result<Grammar> Grammar::jsonObject(const JsonOptions &options) {
  return fromJsonSchema(R"({"type": "object"})", {}, options);
}
