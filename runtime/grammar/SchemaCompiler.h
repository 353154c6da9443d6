//===- SchemaCompiler.h - JSON Schema to rules ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_SCHEMACOMPILER_H
#define KF_RUNTIME_GRAMMAR_SCHEMACOMPILER_H

#include "runtime/grammar/Grammar.h"
#include "runtime/grammar/JsonNumbers.h"
#include "runtime/grammar/JsonTree.h"
#include "runtime/grammar/Rules.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kf::grammar {

/// The types that a value may have, as bits.
enum SchemaType : uint8_t {
  kNullType = 1,
  kBooleanType = 2,
  kStringType = 4,
  kIntegerType = 8,   ///< numbers that are integers
  kFractionType = 16, ///< other numbers
  kArrayType = 32,
  kObjectType = 64,
  kAnyType = 127
};

/// A schema of the tree; one whose anyOf or oneOf was dealt with goes on
/// without it, and one whose $ref and allOf were followed without these.
struct SchemaPart {
  JsonId schema;
  bool hasAnyOf = true, hasOneOf = true, hasRefs = true;
  auto operator<=>(const SchemaPart &) const = default;
};
/// Schemas that all hold, sorted, each once; none: any value.
using Schemas = std::vector<SchemaPart>;

/// What the keywords of a list of schemas say together, but for those that
/// other schemas stand in.
struct SchemaFacts {
  uint8_t types = kAnyType;
  std::vector<JsonId> enums;        ///< values of enum, and of const
  std::optional<SchemaPart> choice; ///< the first that has anyOf or oneOf
  // Strings:
  uint32_t minLength = 0, maxLength = Expressions::kUnbounded;
  std::vector<ExprId> patterns; ///< of patterns and formats
  // Numbers:
  NumberBounds bounds;
  // Arrays:
  uint32_t minItems = 0, maxItems = Expressions::kUnbounded;
  size_t prefixItems = 0;
  // Objects:
  std::vector<std::string> names; ///< of properties, then others required
  std::set<std::string, std::less<>> required;
};

/// Reads schemas: what they refer to, and what their keywords say. Throws
/// Failure with the place.
class SchemaReader {
public:
  SchemaReader(const JsonTree &tree, RulesBuilder &builder,
               const JsonOptions &options);

  [[noreturn]] void failAt(JsonId where, const std::string &message) const;

  /// The schemas with those that $ref and allOf name instead of these, without
  /// those that allow everything.
  Schemas expand(const Schemas &schemas) const;
  SchemaFacts gather(const Schemas &schemas) const;
  /// What schemas say of a member that is called `name`, of one that none of
  /// them names, and of an item.
  Schemas ofMember(const Schemas &schemas, std::string_view name) const;
  Schemas ofOtherMembers(const Schemas &schemas) const;
  Schemas ofItem(const Schemas &schemas, size_t index) const;
  /// Whether one of the schemas is `false`.
  bool allowNothing(const Schemas &schemas) const;

private:
  bool isDocument(JsonId schema) const;
  JsonId resolve(JsonId reference) const;
  void readKeyword(JsonId keyword, SchemaFacts &facts) const;
  uint8_t readTypes(JsonId value) const;
  uint32_t readCount(JsonId value) const;
  Decimal readNumber(JsonId value) const;
  const std::vector<JsonId> &readList(JsonId value) const;

  const JsonTree &tree;
  RulesBuilder &builder;
  std::vector<JsonId> documents; ///< those within the schema, sorted
};

/// Makes rules of a schema. Each list of schemas becomes a rule once, from a
/// list of work, so that neither references nor nesting are recursion here.
/// Throws Failure with the place.
class SchemaCompiler {
public:
  SchemaCompiler(const JsonTree &tree, RulesBuilder &builder,
                 const JsonOptions &options);

  Rules compile();

private:
  /// The rule of what `schemas` allow.
  Symbol valueOf(Schemas schemas);
  void compileRule(uint32_t rule, const Schemas &schemas);
  void addChoice(uint32_t rule, SchemaPart choice, const Schemas &schemas);
  void addEnumeration(uint32_t rule, const SchemaFacts &facts,
                      const Schemas &schemas);
  /// What strings and numbers that the facts allow look like, made when they
  /// are asked for.
  struct ScalarForms {
    std::optional<ExprId> strings, numbers;
  };
  bool isAllowed(JsonId value, const SchemaFacts &facts, const Schemas &schemas,
                 ScalarForms &forms);
  void addObject(uint32_t rule, const SchemaFacts &facts,
                 const Schemas &schemas);
  void addArray(uint32_t rule, const SchemaFacts &facts,
                const Schemas &schemas);
  ExprId stringExpression(const SchemaFacts &facts);

  /// A token of JSON, with white space in front.
  Symbol token(ExprId expression);
  Symbol token(std::string_view text) { return token(set.literal(text)); }
  /// A member's name, as it stands between the quotation marks, with its colon.
  Symbol nameToken(ExprId inside);
  ExprId quoted(ExprId inside);
  /// A value as it is written.
  std::vector<Symbol> literalValue(JsonId value);
  std::string scalarText(JsonId value) const;

  const JsonTree &tree;
  RulesBuilder &builder;
  SchemaReader reader;
  Expressions &set;
  const JsonOptions &options;
  ExprId space; ///< white space between tokens
  std::optional<Symbol> spaces;
  std::unordered_map<ExprId, uint32_t> tokens; ///< rules: space, expression
  ExprId character;                            ///< of a string
  std::vector<uint8_t> allBytes;
  std::map<Schemas, uint32_t> rules;
  struct Work {
    uint32_t rule;
    Schemas schemas;
  };
  std::vector<Work> work;
};

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_SCHEMACOMPILER_H
