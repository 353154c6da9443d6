//===- GrammarTest.cpp - What grammars allow ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/GrammarMatcher.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <ctime>
#include <fstream>
#include <functional>

using namespace kf;
/// Keeps members in their order.
using json = nlohmann::ordered_json;

namespace {

/// A token for each byte, some longer ones, and one that ends texts.
constexpr int32_t kEnd = 256;
const std::vector<std::string> kLonger = {
    "\"a", "\":", "\",\"", "}}", "],", "{\"", "true", "null", "abc", "\xc3",
    "\xc3\xa9", " \n", "12", "0.", "  ", "hello world", "abc", "\",", "é\"",
    "☃", "\"}", "1}", "\x98\x83",
    // Longer than what bounds of short tokens are seen by.
    std::string(40, 'w'), std::string(39, 'w') + "\""};

std::shared_ptr<const GrammarVocabulary> byteVocabulary() {
  static const auto vocabulary = [] {
    std::vector<GrammarToken> tokens;
    for (int byte = 0; byte < 256; ++byte)
      tokens.push_back({std::string(1, static_cast<char>(byte)), false});
    tokens.push_back({"</s>", true});
    for (const std::string &bytes : kLonger)
      tokens.push_back({bytes, false});
    // So many that begin alike that they are not looked at one by one.
    for (char a = 'a'; a <= 'z'; ++a)
      for (char b = 'a'; b <= 'z'; ++b)
        tokens.push_back({std::string{'w', a, b}, false});
    tokens.push_back({"<special>", true});
    tokens.push_back({"", false});
    return GrammarVocabulary::create(tokens, {kEnd}).take();
  }();
  return vocabulary;
}

Result<Grammar> schema(const std::string &text,
                       const GrammarLimits &limits = {}) {
  return Grammar::fromJsonSchema(text, limits, {.maxIndent = 0});
}

GrammarMatcher matcherOf(const Result<Grammar> &grammar,
                         const MatchLimits &limits = {}) {
  EXPECT_TRUE(grammar.ok()) << grammar.message();
  Result<GrammarMatcher> matcher =
      GrammarMatcher::create(*grammar, byteVocabulary(), limits);
  EXPECT_TRUE(matcher.ok()) << matcher.message();
  return matcher.take();
}

bool has(const std::vector<uint32_t> &mask, int32_t id) {
  return mask[id / 32] >> id % 32 & 1;
}

std::vector<uint32_t> maskOf(GrammarMatcher &matcher) {
  std::vector<uint32_t> mask(byteVocabulary()->maskWords());
  const Status status = matcher.fillMask(mask);
  EXPECT_TRUE(status.ok()) << status.message();
  return mask;
}

/// Reads `text` byte by byte; whether the grammar allows all of it.
bool accepts(GrammarMatcher matcher, const std::string &text) {
  for (char c : text)
    if (!matcher.accept(static_cast<uint8_t>(c)).ok())
      return false;
  return matcher.mayEnd() && matcher.accept(kEnd).ok() && matcher.isFinished();
}

json cases() {
  std::ifstream file(KF_SOURCE_DIR "/test/runtime/grammar/cases.json");
  return json::parse(file);
}

Result<Grammar> grammarOf(const json &one) {
  return one.contains("schema")
             ? schema(one["schema"].dump())
             : Grammar::fromGbnf(one["gbnf"].get<std::string>());
}

TEST(Grammar, AcceptsAndRejects) {
  for (const json &one : cases()) {
    SCOPED_TRACE(one.dump());
    const Result<Grammar> grammar = grammarOf(one);
    ASSERT_TRUE(grammar.ok()) << grammar.message();
    const GrammarMatcher matcher = matcherOf(grammar);
    for (const std::string text : one["accepts"])
      EXPECT_TRUE(accepts(matcher, text)) << text;
    for (const std::string text : one["rejects"])
      EXPECT_FALSE(accepts(matcher, text)) << text;
  }
}

// At each place of each text a token is in the mask if, and only if, its bytes
// can be read one by one.
TEST(Grammar, MasksSayWhatIsAccepted) {
  for (const json &one : cases()) {
    SCOPED_TRACE(one.dump());
    for (const std::string text : one["accepts"]) {
      if (text.size() > 56)
        continue;
      GrammarMatcher matcher = matcherOf(grammarOf(one));
      for (size_t i = 0; i <= text.size(); ++i) {
        const std::vector<uint32_t> mask = maskOf(matcher);
        for (int32_t id = 0; id < int32_t(byteVocabulary()->size()); ++id) {
          bool expected = !byteVocabulary()->bytes(id).empty();
          GrammarMatcher copy = matcher;
          for (char c : byteVocabulary()->bytes(id))
            expected = expected && copy.accept(static_cast<uint8_t>(c)).ok();
          if (id == kEnd)
            expected = matcher.mayEnd();
          EXPECT_EQ(has(mask, id), expected)
              << text.substr(0, i) << " then token " << id;
        }
        if (i < text.size()) {
          ASSERT_TRUE(matcher.accept(static_cast<uint8_t>(text[i])).ok());
        }
      }
    }
  }
}

TEST(Grammar, WhiteSpaceIsBounded) {
  const Result<Grammar> grammar =
      Grammar::fromJsonSchema(R"({"type": "array"})", {}, {.maxIndent = 2});
  const GrammarMatcher matcher = matcherOf(grammar);
  EXPECT_TRUE(accepts(matcher, "[ 1\t,\n  2\r\n\n \t]"));
  EXPECT_TRUE(accepts(matcher, "\n[]"));
  for (const char *other :
       {"[  ]", "[ \n]", "[\n   ]", "[\n\n\n]", "[\r]", "[] ", "[\n \n]"})
    EXPECT_FALSE(accepts(matcher, other)) << other;
}

TEST(Grammar, JsonObject) {
  const GrammarMatcher matcher = matcherOf(Grammar::jsonObject());
  EXPECT_TRUE(accepts(matcher, "{ \"a\" : [ {} ] }"));
  EXPECT_FALSE(accepts(matcher, "[]"));
}

struct Fault {
  const char *text, *message;
};

TEST(Grammar, FaultsOfSchemas) {
  const Fault faults[] = {
      {"", "not valid JSON at byte"},
      {"{", "not valid JSON at byte"},
      {"3", "the schema: a schema is an object, true or false"},
      {R"({"type": "objekt"})", "/type: there is no type 'objekt'"},
      {R"({"type": 3})", "/type: a type's name"},
      {R"({"type": []})", "/type: an array with at least one item"},
      {R"({"properties": {"a": {"typo": 1}}, "type": "object"})",
       "/properties/a/typo: there is no such keyword"},
      {R"({"not": {}})", "/not: this keyword is not supported"},
      {R"({"type": "array", "uniqueItems": true})",
       "/uniqueItems: this keyword is not supported"},
      {R"({"type": "object", "minProperties": "0"})",
       "/minProperties: a number is wanted"},
      {R"({"type": "object", "minProperties": 1})",
       "/minProperties: this keyword is not supported"},
      {R"({"type": "array", "items": {"$id": "a", "type": "null"}})",
       "/items/$id: this keyword is supported at the root alone"},
      {R"({"patternProperties": {}})",
       "/patternProperties: this keyword is not supported"},
      {R"({"type": "string", "format": "iri"})",
       "/format: format 'iri' is not supported"},
      {R"-({"type": "string", "pattern": "a(?=b)"})-",
       "/pattern: pattern, character 2: groups that look around"},
      {R"({"type": "string", "pattern": "é\\b"})",
       "/pattern: pattern, character 3: \\b is not supported"},
      {R"({"type": "string", "pattern": "a^b"})", "/pattern: pattern, "},
      {R"({"type": "string", "pattern": "(a"})", "without its closing"},
      {R"({"type": "string", "pattern": "[a"})", "without its closing"},
      {R"-({"type": "string", "pattern": "a)"})-", "')' without '('"},
      {R"({"type": "string", "pattern": "*"})", "nothing to repeat"},
      {R"({"type": "string", "pattern": "a{3,2}"})", "fewer times"},
      {R"({"type": "string", "pattern": "\\ud800"})", "surrogate"},
      {R"({"$ref": "http://example.com/a"})", "is not supported"},
      {R"({"$ref": "#/$defs/a"})", "/$ref: there is nothing at '#/$defs/a'"},
      {R"({"$ref": "#"})", "/$ref: this leads back to itself"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]},
           "b": {"$ref": "#/$defs/a"}}})",
       "leads back to itself"},
      {R"({"type": "string", "minLength": -1})", "/minLength: an integer"},
      {R"({"type": "string", "maxLength": 1.5})", "/maxLength: an integer"},
      {R"({"type": "number", "minimum": "1"})", "/minimum: a number"},
      {R"({"type": "number", "exclusiveMinimum": true})",
       "/exclusiveMinimum: a number"},
      {R"({"type": "number", "minimum": 1e500})", "not valid JSON"},
      {R"({"type": "number", "multipleOf": 0})",
       "/multipleOf: a number greater"},
      {R"({"type": "number", "multipleOf": 0.123456789})", "at most 8 digits"},
      {R"({"enum": []})", "/enum: an array with at least one item"},
      {R"({"enum": [{}], "required": []})", "beside an enum or const"},
      {R"({"required": "a"})", "/required: an array"},
      {R"({"items": [{}]})", "prefixItems"},
      {R"({"anyOf": {}})", "/anyOf: an array"},
      {R"({"type": "string", "type": "null"})", "is there twice"},
      // What no text satisfies:
      {"false", "no text satisfies it"},
      {R"({"allOf": [{"type": "string"}, {"type": "null"}]})",
       "no text satisfies it"},
      {R"({"type": "integer", "minimum": 3, "maximum": 4, "multipleOf": 5})",
       "no text satisfies it"},
      {R"({"type": "string", "pattern": "^a$", "minLength": 2})",
       "no text satisfies it"},
      {R"({"type": "object", "properties": {"a": {"$ref": "#"}},
           "required": ["a"]})",
       "no text satisfies it"},
      {R"({"type": "array", "minItems": 3, "maxItems": 2})",
       "no text satisfies it"},
      {R"({"const": 1, "type": "string"})", "no text satisfies it"}};
  for (const Fault &fault : faults) {
    const Result<Grammar> grammar = schema(fault.text);
    ASSERT_FALSE(grammar.ok()) << fault.text;
    EXPECT_NE(grammar.message().find(fault.message), std::string::npos)
        << fault.text << "\n"
        << grammar.message();
  }
}

TEST(Grammar, TextsAreReadToTheirEnds) {
  const std::string cut("{}\0{", 4);
  EXPECT_EQ(schema(cut).message(), "not valid JSON at byte 3");
}

TEST(Grammar, FaultsOfGbnf) {
  const Fault faults[] = {
      {"", "line 1, column 1: there is no rule 'root'"},
      {"a ::= \"x\"\n", "there is no rule 'root'"},
      {"root ::= \"x\n", "line 1, column 10: a literal without"},
      {"root = \"x\"", "line 1, column 6: '::=' is missing"},
      {"root ::= other", "line 1, column 10: there is no rule 'other'"},
      {"root ::= \"x\"\nroot ::= \"y\"",
       "line 2, column 1: rule 'root' is there twice"},
      {"root ::= (\"x\"", "line 1, column 10: a group without"},
      {"root ::= \"x\")", "line 1, column 13: ')' without '('"},
      {"root ::= [a", "a class without"},
      {"root ::= []", "a class without characters"},
      {"root ::= [z-a]", "line 1, column 11: a range"},
      {"root ::= \"\\q\"", "line 1, column 11: an escape that is not known"},
      {"root ::= \"\\x1\"", "hexadecimal"},
      {"root ::= \"\\ud800\"", "no character"},
      {"root ::= \"\xff\"", "not UTF-8"},
      {"root ::= \"x\"{2,1}", "fewer times"},
      {"root ::= \"x\"{2", "'}' is missing"},
      {"root ::= \"x\"{99999999999999999999}", "more than 1000000 times"},
      {"root ::= \"x\"****", "in a row"},
      {"root ::= <think>", "tokens by name"},
      {"root ::= \"a\" root", "no text satisfies it"},
      {"::= \"a\"", "a rule's name is missing"}};
  for (const Fault &fault : faults) {
    const Result<Grammar> grammar = Grammar::fromGbnf(fault.text);
    ASSERT_FALSE(grammar.ok()) << fault.text;
    EXPECT_NE(grammar.message().find(fault.message), std::string::npos)
        << fault.text << "\n"
        << grammar.message();
  }
}

std::string nested(const std::string &open, const std::string &inside,
                   const std::string &close, int times) {
  std::string text;
  for (int i = 0; i < times; ++i)
    text += open;
  text += inside;
  for (int i = 0; i < times; ++i)
    text += close;
  return text;
}

/// Seconds of the CPU that a grammar and its masks may take: some times what
/// they do, for sanitizers.
constexpr double kMaxSeconds = 20;

enum class End { Grammar, Limit };

/// Compiles what a stranger sent and makes masks of it. It ends soon: as a
/// grammar, or with an error that speaks of a limit.
void expectEnd(const char *what, End end,
               const std::function<Result<Grammar>()> &compile) {
  SCOPED_TRACE(what);
  const std::clock_t start = std::clock();
  const Result<Grammar> grammar = compile();
  EXPECT_EQ(grammar.ok(), end == End::Grammar) << grammar.message();
  if (!grammar.ok()) {
    const std::string message(grammar.message());
    EXPECT_TRUE(message.find("limit") != message.npos ||
                message.find("nested more than") != message.npos)
        << message;
  } else {
    GrammarMatcher matcher = matcherOf(grammar);
    std::vector<uint32_t> mask(byteVocabulary()->maskWords());
    for (int step = 0; step < 50 && !matcher.isFinished(); ++step) {
      const Status status = matcher.fillMask(mask);
      if (!status.ok()) {
        EXPECT_NE(status.message().find("limit"), std::string::npos)
            << status.message();
        break;
      }
      int32_t id = 0;
      while (!has(mask, id))
        ++id;
      EXPECT_TRUE(matcher.accept(id).ok());
    }
  }
  EXPECT_LT(double(std::clock() - start) / CLOCKS_PER_SEC, kMaxSeconds);
}

void expectSchemaEnds(const char *what, End end, const std::string &text) {
  expectEnd(what, end, [&] { return schema(text); });
}

void expectGbnfEnds(const char *what, End end, const std::string &text) {
  expectEnd(what, end, [&] { return Grammar::fromGbnf(text); });
}

/// `count` texts one behind another, with `between` between them.
std::string join(int count, const std::string &between,
                 const std::function<std::string(int)> &one) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i ? between : "") + one(i);
  return text;
}

TEST(Grammar, HostileSchemasEnd) {
  auto named = [](const char *before, int i, const char *behind) {
    return before + std::to_string(i) + behind;
  };
  expectSchemaEnds(
      "many properties", End::Grammar,
      R"({"type": "object", "properties": {)" + join(2000, ", ", [&](int i) {
        return named("\"p", i, R"(": {"type": "string"})");
      }) + "}}");
  expectSchemaEnds(
      "a chain of references", End::Grammar,
      R"({"$ref": "#/$defs/d0", "$defs": {)" + join(5000, "", [&](int i) {
        return named("\"d", i, R"(": {"$ref": "#/$defs/d)") +
               named("", i + 1, "\"}, ");
      }) + R"("d5000": {"type": "null"}}})");
  std::string text = R"({"type": "null"})";
  for (int i = 0; i < 14; ++i)
    text = R"({"anyOf": [)" + text + ", " + text + "]}";
  expectSchemaEnds("choices in choices", End::Grammar, text);
  expectSchemaEnds(
      "2^16 ways through references", End::Grammar,
      R"({"$ref": "#/$defs/d0", "$defs": {)" + join(16, "", [&](int i) {
        const std::string next = named(R"({"$ref": "#/$defs/d)", i + 1, "\"}");
        return named("\"d", i, R"(": {"anyOf": [)") + next + ", " + next +
               "]}, ";
      }) + R"("d16": {"type": "null"}}})");
  for (const char *one :
       {R"({"type": "string", "maxLength": 100000})",
        R"({"type": "string", "minLength": 100000})",
        R"({"type": "array", "minItems": 100000, "maxItems": 100001})",
        R"({"type": "string", "pattern": "^((a{0,1000}){0,1000}){0,1000}$"})",
        R"({"type": "string", "pattern": "^(a|b)*a(a|b){200}$"})",
        R"({"type": "string", "pattern": "(x+x+)+y", "maxLength": 50})",
        R"({"type": "integer", "multipleOf": 99999999})"})
    expectSchemaEnds(one, End::Grammar, one);
  expectSchemaEnds("many items", End::Limit,
                   R"({"type": "array", "maxItems": 1000000})");
  expectSchemaEnds("nested schemas", End::Limit,
                   nested(R"({"type": "array", "items": )", "{}", "}", 10000));
  expectSchemaEnds("nested arrays", End::Limit, nested("[", "", "]", 100000));
  expectSchemaEnds("a pattern of many dots", End::Limit,
                   R"({"type": "string", "pattern": ")" +
                       std::string(1'000'000, '.') + "\"}");
  // A number with many digits, read again in each of 2^12 combinations.
  expectSchemaEnds("a long number in many combinations", End::Limit,
                   R"({"minimum": 1.)" + std::string(900'000, '0') +
                       R"(e50, "allOf": [)" +
                       join(12, ", ",
                            [&](int i) {
                              return named(R"({"anyOf": [{"maxLength": )",
                                           i + 9, R"(}, {"minLength": 1}]})");
                            }) +
                       "]}");
  expectSchemaEnds(
      "many properties of many schemas", End::Limit,
      R"({"allOf": [)" +
          join(20000, ",", [](int) { return R"({"minItems":1})"; }) +
          R"(], "properties": {)" +
          join(20000, ",", [&](int i) { return named("\"p", i, "\":{}"); }) +
          "}}");
  expectSchemaEnds(
      "an enum of many numbers with bounds", End::Grammar,
      R"({"minimum": 0.5, "multipleOf": 7, "enum": [)" +
          join(10000, ",", [&](int i) { return named("", i, ""); }) + "]}");
}

TEST(Grammar, HostileGbnfEnds) {
  expectGbnfEnds("nested groups", End::Limit,
                 "root ::= " + nested("(", "\"a\"", ")", 100000));
  expectGbnfEnds("nested repetitions", End::Grammar,
                 "root ::= " + nested("(", "\"a\"", ")*", 50));
  expectGbnfEnds("many ways", End::Grammar,
                 "root ::= root root | \"a\" | \"aa\"");
  const std::string doubled = join(40, "", [](int i) {
    const std::string next = "r" + std::to_string(i + 1);
    return (i ? "r" + std::to_string(i) : "root") + " ::= " + next + " " +
           next + "\n";
  });
  expectGbnfEnds("2^40 rules in one another", End::Grammar,
                 doubled + "r40 ::= \"a\" | r1");
  expectGbnfEnds("2^40 letters", End::Limit, doubled + "r40 ::= \"a\"");
  // Long lists in alternatives, and long sequences, again and again.
  const std::string pairs = join(676, " | ", [](int i) {
    return std::string{'"', char('a' + i / 26), char('a' + i % 26), '"'};
  });
  expectGbnfEnds("equal alternatives", End::Grammar,
                 "root ::= " + join(100'000, " | ", [](int) { return "x"; }) +
                     "\nx ::= " + pairs + "\n");
  std::string text = "a0 ::= \"a\"\na1 ::= a0 a0\n";
  for (int i = 2; i <= 18; ++i) {
    const std::string before = "a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + " ::= " + before + " " + before + "\n";
  }
  expectGbnfEnds("long sequences", End::Limit,
                 text + "root ::= " + join(100'000, "|", [](int) {
                   return "a18\"b\"";
                 }) + "\n");
}

TEST(Grammar, LimitsAreErrors) {
  GrammarLimits limits;
  limits.maxSteps = 100;
  const std::string object = R"({"type": "object"})";
  EXPECT_NE(schema(object, limits).message().find("more steps"),
            std::string::npos);
  limits = {};
  limits.maxSize = 50;
  EXPECT_NE(schema(object, limits).message().find("limit"), std::string::npos);
  limits = {};
  limits.maxBytes = 10;
  EXPECT_NE(schema(object, limits).message().find("the limit is 10"),
            std::string::npos);
  EXPECT_FALSE(Grammar::fromGbnf("root ::= \"x\"", limits).ok());
  limits = {};
  const std::atomic<bool> cancelled = true;
  limits.cancelled = &cancelled;
  EXPECT_TRUE(schema(object, limits).status().isCancelled());
}

TEST(Matcher, FuelAndCancellation) {
  const Result<Grammar> grammar = schema(R"({"type": "string"})");
  MatchLimits limits;
  limits.maxSteps = 200;
  GrammarMatcher matcher = matcherOf(grammar, limits);
  std::vector<uint32_t> mask(byteVocabulary()->maskWords());
  ASSERT_TRUE(matcher.accept('"').ok());
  const Status status = matcher.fillMask(mask);
  EXPECT_NE(status.message().find("more steps"), std::string::npos);
  EXPECT_TRUE(matcher.accept('x').ok());

  std::atomic<bool> cancelled = false;
  limits = {};
  limits.cancelled = &cancelled;
  GrammarMatcher other = matcherOf(grammar, limits);
  cancelled = true;
  EXPECT_TRUE(other.fillMask(mask).isCancelled());
  cancelled = false;
  EXPECT_TRUE(other.fillMask(mask).ok());
}

TEST(Matcher, EmptyMaskIsAnError) {
  // No token has a letter.
  const auto digits =
      GrammarVocabulary::create(
          std::vector<GrammarToken>{{"1"}, {"2"}, {"", true}}, {2})
          .take();
  const Result<Grammar> grammar = Grammar::fromGbnf("root ::= \"1a\"");
  GrammarMatcher matcher = GrammarMatcher::create(*grammar, digits).take();
  std::vector<uint32_t> mask(1);
  EXPECT_TRUE(matcher.fillMask(mask).ok());
  EXPECT_EQ(mask[0], 1u);
  ASSERT_TRUE(matcher.accept(0).ok());
  EXPECT_NE(matcher.fillMask(mask).message().find("no token of the vocabulary"),
            std::string::npos);
}

TEST(Matcher, RefusesWhatIsNotAllowed) {
  GrammarMatcher matcher = matcherOf(schema(R"({"const": "ab"})"));
  EXPECT_FALSE(matcher.accept(-1).ok());
  EXPECT_FALSE(matcher.accept(100000).ok());
  EXPECT_NE(matcher.accept(kEnd).message().find("which ends the text"),
            std::string::npos);
  EXPECT_NE(matcher.accept('x').message().find("'x'"), std::string::npos);
  const auto special = static_cast<int32_t>(byteVocabulary()->size()) - 2;
  EXPECT_FALSE(*matcher.allows(special));
  EXPECT_FALSE(*matcher.allows(special + 1));
  std::vector<uint32_t> small(1);
  EXPECT_FALSE(matcher.fillMask(small).ok());
  for (char c : std::string("\"ab\""))
    ASSERT_TRUE(matcher.accept(c).ok());
  ASSERT_TRUE(matcher.accept(kEnd).ok());
  EXPECT_TRUE(matcher.isFinished());
  EXPECT_FALSE(matcher.accept(kEnd).ok());
  EXPECT_FALSE(matcher.accept('x').ok());
  std::vector<uint32_t> mask(byteVocabulary()->maskWords());
  EXPECT_NE(matcher.fillMask(mask).message().find("finished"),
            std::string::npos);
}

TEST(Matcher, Rollback) {
  MatchLimits limits;
  limits.maxRollback = 3;
  GrammarMatcher matcher = matcherOf(schema(R"({"type": "integer"})"), limits);
  const std::vector<uint32_t> first = maskOf(matcher);
  for (char c : std::string("-12"))
    ASSERT_TRUE(matcher.accept(c).ok());
  ASSERT_TRUE(matcher.accept(kEnd).ok());
  EXPECT_EQ(matcher.length(), 4u);
  EXPECT_FALSE(matcher.rollback(4).ok());
  ASSERT_TRUE(matcher.rollback(1).ok());
  EXPECT_FALSE(matcher.isFinished());
  EXPECT_TRUE(matcher.mayEnd());
  ASSERT_TRUE(matcher.rollback(2).ok());
  EXPECT_EQ(matcher.length(), 1u);
  EXPECT_FALSE(matcher.mayEnd());
  EXPECT_FALSE(matcher.accept('-').ok());
  EXPECT_TRUE(matcher.accept('7').ok());
}

TEST(Matcher, ForcedBytes) {
  GrammarMatcher matcher = matcherOf(schema(
      R"({"type": "object", "properties": {"name": {"enum": ["ab", "ac"]}},
          "required": ["name"], "additionalProperties": false})"));
  EXPECT_EQ(*matcher.forcedBytes(100), "{\"name\":\"a");
  EXPECT_EQ(*matcher.forcedBytes(3), "{\"n");
  EXPECT_FALSE(*matcher.forcedToken()); // { and {"
  for (char c : std::string("{\"n"))
    ASSERT_TRUE(matcher.accept(c).ok());
  EXPECT_EQ(*matcher.forcedToken(), 'a');
  for (char c : std::string("ame\":\"ac"))
    ASSERT_TRUE(matcher.accept(c).ok());
  EXPECT_EQ(*matcher.forcedBytes(100), "\"}");
}

// Past its memory's limit a matcher drops what can be made again, and goes on.
TEST(Matcher, MemoryIsBounded) {
  MatchLimits limits;
  limits.maxBytes = 300'000;
  const Result<Grammar> grammar = schema(
      R"({"type": "array", "items": {"type": "string", "maxLength": 100000}})");
  GrammarMatcher matcher = matcherOf(grammar, limits);
  const GrammarMatcher start = matcher;
  ASSERT_TRUE(matcher.accept('[').ok());
  for (int item = 0; item < 3; ++item) {
    ASSERT_TRUE(matcher.accept('"').ok());
    for (int i = 0; i < 20000; ++i) {
      ASSERT_TRUE(matcher.accept(i % 26 + 'a').ok()) << i;
      if (i % 100 == 0) {
        const std::vector<uint32_t> mask = maskOf(matcher);
        EXPECT_TRUE(has(mask, '"'));
        EXPECT_TRUE(has(mask, 'x'));
        EXPECT_FALSE(has(mask, '\n'));
      }
    }
    ASSERT_TRUE(matcher.rollback(10).ok());
    ASSERT_TRUE(matcher.accept('"').ok());
    ASSERT_TRUE(matcher.accept(',').ok());
  }
  ASSERT_TRUE(matcher.accept('"').ok());
  ASSERT_TRUE(matcher.accept('"').ok());
  ASSERT_TRUE(matcher.accept(']').ok());
  EXPECT_TRUE(matcher.mayEnd());
  EXPECT_TRUE(accepts(start, "[\"x\"]"));

  // What the grammar itself takes is not counted, nor are its lists.
  std::string properties;
  for (int i = 0; i < 2000; ++i)
    properties += (i ? ", \"p" : "\"p") + std::to_string(i) + "\": true";
  limits.maxBytes = 500'000;
  EXPECT_TRUE(accepts(matcherOf(schema(R"({"type": "object", "properties": {)" +
                                       properties + "}}"),
                                limits),
                      "{\"p7\":1,\"p1999\":[2]}"));
  std::string rules = "root ::= \"(\" (";
  for (int i = 0; i < 150; ++i)
    rules += (i ? " | r" : "r") + std::to_string(i) + " \"" +
             std::to_string(i) + "\"";
  rules += ") \")\"\n";
  for (int i = 0; i < 150; ++i) {
    rules += "r" + std::to_string(i) + " ::= \"zz\"";
    for (int j = i; j < 150; ++j)
      rules +=
          std::string(" | \"") + char('a' + j / 26) + char('a' + j % 26) + "\"";
    rules += "\n";
  }
  EXPECT_TRUE(accepts(matcherOf(Grammar::fromGbnf(rules), limits), "(ft149)"));

  // What cannot be dropped is an error: rows of open arrays.
  GrammarMatcher deep = matcherOf(schema(R"({"type": "array"})"), limits);
  Status status;
  for (int i = 0; i < 100000 && status.ok(); ++i)
    status = deep.accept('[');
  EXPECT_EQ(status.code(), StatusCode::OutOfMemory);
  EXPECT_NE(status.message().find("limit"), std::string::npos);
}

} // namespace
