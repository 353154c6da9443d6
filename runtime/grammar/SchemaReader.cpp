//===- SchemaReader.cpp - What keywords of JSON Schema say ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Quote.h"
#include "runtime/grammar/Pattern.h"
#include "runtime/grammar/SchemaCompiler.h"

#include <algorithm>
#include <charconv>

using namespace kf;
using namespace kf::grammar;

using Kind = JsonValue::Kind;

/// Keywords that say nothing about a value, or what $ref finds.
static constexpr std::string_view kAnnotations[] = {
    "$comment",    "$defs",           "$id",
    "$schema",     "contentEncoding", "contentMediaType",
    "default",     "definitions",     "deprecated",
    "description", "example",         "examples",
    "readOnly",    "title",           "writeOnly"};

/// Keywords that are known from JSON Schema, and not supported.
static constexpr std::string_view kUnsupported[] = {"$anchor",
                                                    "$dynamicAnchor",
                                                    "$dynamicRef",
                                                    "$recursiveAnchor",
                                                    "$recursiveRef",
                                                    "$vocabulary",
                                                    "additionalItems",
                                                    "contains",
                                                    "contentSchema",
                                                    "dependencies",
                                                    "dependentRequired",
                                                    "dependentSchemas",
                                                    "else",
                                                    "if",
                                                    "maxContains",
                                                    "maxProperties",
                                                    "minContains",
                                                    "not",
                                                    "patternProperties",
                                                    "propertyNames",
                                                    "then",
                                                    "unevaluatedItems",
                                                    "unevaluatedProperties"};

void SchemaReader::failAt(JsonId where, const std::string &message) const {
  const std::string pointer = tree.pointer(where);
  fail(pointer.empty() ? "the schema: " + message : pointer + ": " + message);
}

SchemaReader::SchemaReader(const JsonTree &tree, RulesBuilder &builder,
                           const JsonOptions &options)
    : tree(tree), builder(builder) {
  for (const std::string &pointer : options.documents) {
    const std::optional<JsonId> schema = tree.find(pointer);
    if (!schema)
      fail("there is no document at " + inQuotes(pointer));
    documents.push_back(*schema);
  }
  std::ranges::sort(documents);
}

bool SchemaReader::isDocument(JsonId schema) const {
  return schema == JsonTree::kRoot ||
         std::ranges::binary_search(documents, schema);
}

JsonId SchemaReader::resolve(JsonId reference) const {
  const JsonValue &value = tree[reference];
  if (!value.isString())
    failAt(reference, "a reference is a string");
  std::string_view text = value.text;
  builder.fuel().spend(1 + text.size() / 16);
  if (!text.starts_with('#') || (text.size() > 1 && text[1] != '/'))
    failAt(reference, "reference " + inQuotes(text) +
                          " is not supported; \"#\" and \"#/...\" are");
  // The pointer may be percent-encoded, as a part of a URI.
  std::string pointer;
  for (size_t i = 1; i < text.size(); ++i) {
    unsigned byte = 0;
    const char *digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      pointer += static_cast<char>(byte);
      i += 2;
    } else {
      pointer += text[i];
    }
  }
  JsonId document = value.parent; // as deep as the limit
  while (!isDocument(document))
    document = tree[document].parent;
  const std::optional<JsonId> target = tree.find(pointer, document);
  if (!target)
    failAt(reference, "there is nothing at " + inQuotes(text));
  return *target;
}

Schemas SchemaReader::expand(const Schemas &schemas) const {
  struct Step {
    SchemaPart part;
    size_t from; ///< the step that led here, or itself
  };
  std::vector<Step> steps;
  std::set<JsonId> reached;
  auto add = [&](SchemaPart part, size_t from, JsonId where) {
    // One that was reached may be among those that led here.
    if (reached.contains(part.schema)) {
      for (size_t i = from;; i = steps[i].from) {
        builder.fuel().spend();
        if (steps[i].part.schema == part.schema)
          failAt(where, "this leads back to itself");
        if (steps[i].from == i)
          break;
      }
    }
    steps.push_back({part, from});
  };
  for (SchemaPart part : schemas)
    steps.push_back({part, steps.size()});
  std::set<SchemaPart> seen;
  Schemas result;
  for (size_t next = 0; next < steps.size(); ++next) {
    const SchemaPart part = steps[next].part;
    builder.fuel().spend();
    if (!seen.insert(part).second)
      continue;
    reached.insert(part.schema);
    const JsonValue &schema = tree[part.schema];
    if (schema.kind == Kind::True)
      continue;
    if (schema.kind == Kind::False) {
      result.push_back(part);
      continue;
    }
    if (!schema.isObject())
      failAt(part.schema, "a schema is an object, true or false");
    // What refers to others is followed once: those that were found may have
    // been dealt with since.
    bool says = false;
    SchemaPart own = part;
    for (JsonId keyword : schema.parts) {
      const std::string &name = tree[keyword].name;
      // References below would be to what it names, and not to the root.
      if (name == "$id" && !isDocument(part.schema))
        failAt(keyword, "this keyword is supported at the root alone");
      if (name == "$ref" || name == "allOf") {
        own.hasRefs = false;
        if (part.hasRefs && name == "$ref")
          add({resolve(keyword)}, next, keyword);
        else if (part.hasRefs)
          for (JsonId one : readList(keyword))
            add({one}, next, keyword);
      } else {
        says |= (part.hasAnyOf || name != "anyOf") &&
                (part.hasOneOf || name != "oneOf") &&
                std::ranges::find(kAnnotations, name) == std::end(kAnnotations);
      }
    }
    if (says)
      result.push_back(own);
  }
  std::ranges::sort(result);
  result.erase(std::ranges::unique(result).begin(), result.end());
  return result;
}

const std::vector<JsonId> &SchemaReader::readList(JsonId value) const {
  if (!tree[value].isArray() || tree[value].parts.empty())
    failAt(value, "an array with at least one item is wanted");
  return tree[value].parts;
}

uint8_t SchemaReader::readTypes(JsonId value) const {
  if (tree[value].isArray()) {
    uint8_t types = 0;
    for (JsonId one : readList(value)) {
      if (!tree[one].isString())
        failAt(one, "a type's name is wanted");
      types |= readTypes(one);
    }
    return types;
  }
  if (!tree[value].isString())
    failAt(value, "a type's name, or an array of them, is wanted");
  static constexpr struct {
    std::string_view name;
    uint8_t types;
  } kTypes[] = {{"null", kNullType},
                {"boolean", kBooleanType},
                {"string", kStringType},
                {"integer", kIntegerType},
                {"number", kIntegerType | kFractionType},
                {"array", kArrayType},
                {"object", kObjectType}};
  for (const auto &type : kTypes)
    if (type.name == tree[value].text)
      return type.types;
  failAt(value, "there is no type " + inQuotes(tree[value].text));
}

Decimal SchemaReader::readNumber(JsonId value) const {
  if (!tree[value].isNumber())
    failAt(value, "a number is wanted");
  const std::optional<Decimal> number = Decimal::parse(tree[value].text);
  if (!number)
    failAt(value, "the number has too many digits");
  return *number;
}

uint32_t SchemaReader::readCount(JsonId value) const {
  const Decimal number = readNumber(value);
  if (number.isNegative || !number.isInteger())
    failAt(value, "an integer that is not negative is wanted");
  // What is longer than any text is as good as no bound.
  if (number.whole.size() > 9)
    return Expressions::kUnbounded;
  uint32_t count = 0;
  for (char digit : number.whole)
    count = count * 10 + static_cast<uint32_t>(digit - '0');
  return count;
}

void SchemaReader::readKeyword(JsonId keyword, SchemaFacts &facts) const {
  const JsonValue &value = tree[keyword];
  const std::string &name = value.name;
  // What it says is read again in each list of schemas that it is in.
  builder.fuel().spend(1 + value.text.size() / 16 + value.parts.size());
  auto wantSchema = [&](JsonId schema) {
    if (!tree[schema].isObject() && !tree[schema].isBoolean())
      failAt(schema, tree[schema].isArray()
                         ? "a schema is wanted; those of single items are "
                           "prefixItems"
                         : "a schema is an object, true or false");
  };
  if (name == "type") {
    facts.types &= readTypes(keyword);
  } else if (name == "enum") {
    readList(keyword);
    facts.enums.push_back(keyword);
  } else if (name == "const") {
    facts.enums.push_back(keyword);
  } else if (name == "minLength") {
    facts.minLength = std::max(facts.minLength, readCount(keyword));
  } else if (name == "maxLength") {
    facts.maxLength = std::min(facts.maxLength, readCount(keyword));
  } else if (name == "minItems") {
    facts.minItems = std::max(facts.minItems, readCount(keyword));
  } else if (name == "maxItems") {
    facts.maxItems = std::min(facts.maxItems, readCount(keyword));
  } else if (name == "pattern" || name == "format") {
    if (!value.isString())
      failAt(keyword, "a string is wanted");
    std::string_view pattern = value.text;
    if (name == "format") {
      pattern = formatPattern(value.text);
      if (pattern.empty())
        failAt(keyword, "format " + inQuotes(value.text) +
                            " is not supported; date, time, date-time, "
                            "duration, email, hostname, ipv4, ipv6, uri and "
                            "uuid are");
    }
    try {
      facts.patterns.push_back(parsePattern(pattern, builder.limits().maxDepth,
                                            builder.expressions(),
                                            builder.fuel()));
    } catch (Failure &failure) {
      throw Failure{failure.status.in(tree.pointer(keyword))};
    }
  } else if (name == "minimum" || name == "exclusiveMinimum") {
    facts.bounds.addLeast({readNumber(keyword), name != "minimum"});
  } else if (name == "maximum" || name == "exclusiveMaximum") {
    facts.bounds.addMost({readNumber(keyword), name != "maximum"});
  } else if (name == "multipleOf") {
    const Decimal divisor = readNumber(keyword);
    if (divisor.compare(Decimal()) <= 0)
      failAt(keyword, "a number greater than 0 is wanted");
    if (divisor.whole.size() + divisor.fraction.size() >
        Decimal::kMaxDivisorDigits)
      failAt(keyword, "at most " + std::to_string(Decimal::kMaxDivisorDigits) +
                          " digits are supported");
    facts.bounds.divisors.push_back(divisor);
  } else if (name == "properties") {
    if (!value.isObject())
      failAt(keyword, "an object is wanted");
    for (JsonId property : value.parts)
      facts.names.push_back(tree[property].name);
  } else if (name == "required") {
    if (!value.isArray())
      failAt(keyword, "an array is wanted");
    for (JsonId one : value.parts) {
      if (!tree[one].isString())
        failAt(one, "a member's name is wanted");
      builder.fuel().spend(tree[one].text.size() / 16);
      facts.required.insert(tree[one].text);
    }
  } else if (name == "additionalProperties" || name == "items") {
    wantSchema(keyword);
  } else if (name == "prefixItems") {
    facts.prefixItems = std::max(facts.prefixItems, readList(keyword).size());
  } else if (name == "anyOf" || name == "oneOf") {
    readList(keyword);
  } else if ((name == "uniqueItems" && value.kind == Kind::False) ||
             (name == "minProperties" && readCount(keyword) == 0)) {
    // says nothing
  } else if (name == "uniqueItems" || name == "minProperties" ||
             std::ranges::find(kUnsupported, name) != std::end(kUnsupported)) {
    failAt(keyword, "this keyword is not supported");
  } else if (std::ranges::find(kAnnotations, name) == std::end(kAnnotations) &&
             name != "$ref" && name != "allOf") {
    failAt(keyword, "there is no such keyword");
  }
}

SchemaFacts SchemaReader::gather(const Schemas &schemas) const {
  SchemaFacts facts;
  for (SchemaPart part : schemas) {
    for (JsonId keyword : tree[part.schema].parts)
      readKeyword(keyword, facts);
    if (!facts.choice &&
        ((part.hasAnyOf && tree.member(part.schema, "anyOf")) ||
         (part.hasOneOf && tree.member(part.schema, "oneOf"))))
      facts.choice = part;
  }
  // Each name once, where it came first; then those that are only required.
  std::set<std::string, std::less<>> seen;
  std::erase_if(facts.names, [&](const std::string &name) {
    return !seen.insert(name).second;
  });
  for (SchemaPart part : schemas)
    if (const std::optional<JsonId> list = tree.member(part.schema, "required"))
      for (JsonId one : tree[*list].parts)
        if (seen.insert(tree[one].text).second)
          facts.names.push_back(tree[one].text);
  builder.fuel().spend(facts.names.size());
  return facts;
}

Schemas SchemaReader::ofMember(const Schemas &schemas,
                               std::string_view name) const {
  builder.fuel().spend(schemas.size());
  Schemas result;
  for (SchemaPart part : schemas) {
    const std::optional<JsonId> own = tree.member(part.schema, "properties");
    const std::optional<JsonId> named =
        own ? tree.member(*own, name) : std::nullopt;
    if (named)
      result.push_back({*named});
    else if (const auto others =
                 tree.member(part.schema, "additionalProperties"))
      result.push_back({*others});
  }
  return result;
}

Schemas SchemaReader::ofOtherMembers(const Schemas &schemas) const {
  builder.fuel().spend(schemas.size());
  Schemas result;
  for (SchemaPart part : schemas)
    if (const auto others = tree.member(part.schema, "additionalProperties"))
      result.push_back({*others});
  return result;
}

Schemas SchemaReader::ofItem(const Schemas &schemas, size_t index) const {
  builder.fuel().spend(schemas.size());
  Schemas result;
  for (SchemaPart part : schemas) {
    const std::optional<JsonId> prefix =
        tree.member(part.schema, "prefixItems");
    if (prefix && index < tree[*prefix].parts.size())
      result.push_back({tree[*prefix].parts[index]});
    else if (const auto items = tree.member(part.schema, "items"))
      result.push_back({*items});
  }
  return result;
}

bool SchemaReader::allowNothing(const Schemas &schemas) const {
  return std::ranges::any_of(schemas, [&](SchemaPart part) {
    return tree[part.schema].kind == Kind::False;
  });
}
