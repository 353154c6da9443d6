//===- Grammar.h - What a text may be ---------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A grammar says which texts are allowed; a GrammarMatcher says of a text that
// is being generated which tokens may come next. Grammars come from requests:
// what compiling one may take is bounded, and each keyword or construct that is
// not known is an error that names it and its place.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_GRAMMAR_H
#define KF_RUNTIME_GRAMMAR_GRAMMAR_H

#include "runtime/core/Status.h"
#include "runtime/grammar/GrammarLimits.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kf {

namespace grammar {
struct Rules;
} // namespace grammar

/// What stands right before and behind a text of a grammar, as it is.
struct TextAround {
  std::string_view before = {}, after = {};
};

/// How JSON is written.
struct JsonOptions {
  /// In front of each token of JSON (not behind the value) there may be a space
  /// or a tab, or one or two line ends and up to so many of these. That keeps
  /// models from writing nothing else. 0: none at all.
  uint32_t maxIndent = 20;
  TextAround around = {};
  /// JSON pointers of schemas within the schema that are documents of their
  /// own: references below them begin there.
  std::span<const std::string> documents = {};
};

/// A compiled grammar. Cheap to copy; any number of threads may use one.
class Grammar {
public:
  /// Texts that are one JSON value which `schema` allows, with draft 2020-12's
  /// meaning of these keywords:
  ///
  /// - of any value: type, enum, const, $ref (of its document: "#", "#/..."),
  ///   $defs, definitions, anyOf, allOf (merged), oneOf (taken as anyOf);
  /// - of objects: properties, required, additionalProperties. Members come in
  ///   the order of the schema, then required ones that it does not list, then
  ///   others, whose names may come twice;
  /// - of arrays: items, prefixItems, minItems, maxItems;
  /// - of strings: minLength, maxLength, pattern (below), format: date, time,
  ///   date-time, duration, email, hostname, ipv4, ipv6, uri, uuid;
  /// - of numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum,
  ///   multipleOf. With one of them numbers have no exponent;
  /// - title, description, default, example, examples, deprecated, readOnly,
  ///   writeOnly, $schema, $id (of the root; below it is an error), $comment,
  ///   contentEncoding and contentMediaType say nothing.
  ///
  /// Others are errors, unless they say nothing there (uniqueItems: false,
  /// minProperties: 0).
  /// Keywords of one type allow all values of others, as JSON Schema has it.
  /// Names and strings of enum, const and pattern are written in one way, with
  /// the shortest escapes; integers have no point. No string holds a raw DEL
  /// (0x7f): it is written as an escape, as other control characters are.
  ///
  /// A pattern matches anywhere in the string, if ^ and $ do not tie it. They
  /// may stand at the ends of it or of its alternatives. It has characters,
  /// escapes (\d \w \s \D \W \S \n \r \t \f \v \xHH \uHHHH), `.`, classes,
  /// groups, |, * + ? {m,n}, and lazy forms of these, which are the same. What
  /// looks around or back is an error.
  ///
  /// An error gives the place as a JSON pointer: "/properties/a/type: ...".
  static Result<Grammar> fromJsonSchema(std::string_view schema,
                                        const GrammarLimits &limits = {},
                                        const JsonOptions &options = {});
  /// Any JSON object.
  static Result<Grammar> jsonObject(const JsonOptions &options = {});

  /// Texts of the rule `root` of a grammar in llama.cpp's notation (GBNF):
  /// `name ::= ...` with "literals", which may hold line ends, [classes], `.`,
  /// names, groups, |, and * + ? {m} {m,} {m,n}, perhaps behind white space; #
  /// comments. Characters are those of UTF-8. An error gives the line and the
  /// column, from 1.
  static Result<Grammar> fromGbnf(std::string_view text,
                                  const GrammarLimits &limits = {},
                                  const TextAround &around = {});

  /// About as many bytes as it takes.
  size_t bytes() const;

private:
  friend class GrammarMatcher;
  explicit Grammar(std::shared_ptr<const grammar::Rules> rules)
      : rules(std::move(rules)) {}

  std::shared_ptr<const grammar::Rules> rules; ///< never null
};

} // namespace kf

#endif // KF_RUNTIME_GRAMMAR_GRAMMAR_H
