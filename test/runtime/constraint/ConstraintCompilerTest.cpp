//===- ConstraintCompilerTest.cpp - Formats, and what texts they allow ----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/constraint/ConstraintCompiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <span>
#include <vector>

using namespace kf;

namespace {

using Source = std::shared_ptr<TokenConstraintSource>;

class ConstraintCompilerTest : public testing::Test {
protected:
  Source compile(const OutputFormat &format) {
    Result<Source> source = compiler.compile(format);
    EXPECT_TRUE(source.ok()) << source.message();
    return source.ok() ? *source : nullptr;
  }
  /// Whether a text of `source` may be all of `text`, in the tokens that the
  /// tokenizer makes of it; what is wrong otherwise.
  std::string refusal(const Source &source, const std::string &text) {
    std::unique_ptr<TokenConstraint> constraint = source->begin().take();
    const std::vector<int32_t> ids = *tokenizer.encode(text, false);
    for (int32_t id : ids) {
      const auto mask = constraint->allowed();
      if (!mask.ok())
        return std::string(mask.message());
      if (!((*mask)[id / 32] >> id % 32 & 1))
        return "no " + std::string(tokenizer.bytesOf(id));
      if (Status status = constraint->accept(id); !status.ok())
        return std::string(status.message());
    }
    if (constraint->isComplete())
      return "";
    const auto mask = constraint->allowed();
    return mask.ok() && ((*mask)[end / 32] >> end % 32 & 1) ? "" : "no end";
  }

  Tokenizer tokenizer =
      *Tokenizer::open(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json");
  /// More than there are tokens, as models have it.
  int64_t vocabSize = tokenizer.vocabSize() + 50;
  int32_t end = 0;
  ConstraintCompiler compiler{tokenizer, vocabSize, {end, -1, vocabSize}};
};

TEST_F(ConstraintCompilerTest, HoldsTextsToFormats) {
  const Source object = compile(OutputFormat::jsonObject(""));
  EXPECT_EQ(refusal(object, R"({"a": [1, {}]})"), "");
  EXPECT_NE(refusal(object, "[1]"), "");
  EXPECT_EQ(refusal(object, "{\"a\": 1"), "no end");

  const Source grammar = compile({.kind = OutputFormat::Kind::Gbnf,
                                  .text = "root ::= [0-9]+",
                                  .before = "n=",
                                  .after = ";"});
  EXPECT_EQ(refusal(grammar, "n=12;"), "");
  EXPECT_NE(refusal(grammar, "12;"), "");
  EXPECT_EQ(refusal(grammar, "n=12"), "no end");

  // References of a document within another one.
  const Source tool =
      compile({.text = R"({"properties": {"a": {"$ref": "#/$defs/x", "$defs":
                  {"x": {"const": 1}}}}, "$defs": {"x": {"const": 2}},
                  "required": ["a"], "type": "object"})",
               .before = "<call>",
               .documents = {"/properties/a"}});
  EXPECT_EQ(refusal(tool, "<call>{\"a\":1}"), "");
  EXPECT_NE(refusal(tool, "<call>{\"a\":2}"), "");

  // Each text by itself, with as many words as the model's vocabulary has.
  std::unique_ptr<TokenConstraint> one = object->begin().take();
  std::unique_ptr<TokenConstraint> other = object->begin().take();
  const int32_t brace = tokenizer.encode("{}", false)->front();
  ASSERT_TRUE(one->accept(brace).ok());
  EXPECT_EQ(static_cast<int64_t>(other->allowed()->size()),
            (vocabSize + 31) / 32);
  EXPECT_TRUE(other->accept(brace).ok());
  EXPECT_FALSE(other->accept(-1).ok());
}

TEST_F(ConstraintCompilerTest, KeepsTheLastOnes) {
  auto format = [](size_t number) {
    return OutputFormat{.text = "{\"const\": " + std::to_string(number) + "}"};
  };
  const Source first = compile(format(0));
  EXPECT_EQ(compile(format(0)), first);
  OutputFormat other = format(0);
  other.after = "!";
  EXPECT_NE(compile(other), first);
  for (size_t i = 1; i < ConstraintCompiler::kMostKept - 1; ++i)
    compile(format(i));
  EXPECT_EQ(compile(format(0)), first);
  for (size_t i = 1; i <= ConstraintCompiler::kMostKept; ++i)
    compile(format(i));
  EXPECT_NE(compile(format(0)), first);
  EXPECT_EQ(refusal(first, "0"), ""); // it lives on
}

TEST_F(ConstraintCompilerTest, Errors) {
  auto errorOf = [&](const OutputFormat &format) {
    return compiler.compile(format).status();
  };
  EXPECT_EQ(
      errorOf({.text = R"({"typ": 1})", .name = "'json_schema'"}).message(),
      "'json_schema': /typ: there is no such keyword");
  EXPECT_EQ(errorOf({.text = "", .name = "--json-schema"}).code(),
            StatusCode::Invalid);
  // What exceeds a limit is the request's fault, and soon known.
  std::string long1 = R"({"type": "string", "pattern": ")" +
                      std::string(1'000'000, '.') + "\"}";
  const Status large = errorOf({.text = long1});
  EXPECT_EQ(large.code(), StatusCode::Invalid);
  EXPECT_NE(large.message().find("limit"), std::string::npos);
  const std::atomic<bool> cancelled = true;
  EXPECT_TRUE(compiler.compile(OutputFormat::jsonObject("a"), &cancelled)
                  .status()
                  .isCancelled());
}

// Grammars that live together are bounded; those that nobody has are dropped.
TEST_F(ConstraintCompilerTest, MemoryIsBounded) {
  std::vector<Source> held;
  Status status;
  for (size_t i = 0; i < 100 && status.ok(); ++i) {
    std::string text = "root ::= ";
    for (size_t j = 0; j < 900; ++j)
      text += (j ? " | \"" : "\"") + std::string(200, char('a' + i % 26)) +
              std::to_string(i * 1000 + j) + "\"";
    Result<Source> source =
        compiler.compile({.kind = OutputFormat::Kind::Gbnf, .text = text});
    status = source.status();
    if (source.ok())
      held.push_back(source.take());
  }
  EXPECT_EQ(status.code(), StatusCode::Unavailable) << status.message();
  EXPECT_GT(held.size(), 5u);
  held.clear();
  EXPECT_TRUE(compile(OutputFormat::jsonObject("")));
}

// What is certain is cut as the tokenizer cuts it, and as no other tokens: the
// text in its tokens is allowed at each place, and skips some of them.
TEST_F(ConstraintCompilerTest, ForcesTheTokenizersTokens) {
  const Source source = compile({.text = R"({"type": "object", "properties": {
      "name": {"type": "string"}, "height in metres": {"type": "number"},
      "kind": {"enum": ["a longer word", "a longer day", 17]},
      "fixed": {"const": ["whatever this says", {"\u00e9t\u00e9": null}]}},
      "required": ["name", "height in metres", "kind", "fixed"],
      "additionalProperties": false})"});
  size_t forced = 0, all = 0;
  for (
      const char *text :
      {R"({"name":"Ann","height in metres":1.5,"kind":"a longer word","fixed":)"
       R"(["whatever this says",{"été":null}]})",
       R"({"name":"","height in metres":-2e3,"kind":17,"fixed":)"
       R"(["whatever this says",{"été":null}]})",
       R"({"name":"Once upon a time, \"x\"","height in metres":0,"kind":)"
       R"("a longer day","fixed":["whatever this says",{"été":null}]})"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(refusal(source, text), "");
    std::unique_ptr<TokenConstraint> constraint = source->begin().take();
    const std::vector<int32_t> ids = *tokenizer.encode(text, false);
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto certain = constraint->forced();
      ASSERT_TRUE(certain.ok()) << certain.message();
      forced += !certain->empty();
      ++all;
      for (size_t j = 0; j < certain->size(); ++j) {
        ASSERT_LT(i + j, ids.size());
        EXPECT_EQ((*certain)[j], ids[i + j]) << "behind " << i << " tokens";
      }
      if (!certain->empty()) {
        size_t count = 0;
        const std::span<const uint32_t> mask = *constraint->allowed();
        for (uint32_t word : mask)
          count += static_cast<size_t>(std::popcount(word));
        EXPECT_EQ(count, 1u);
        EXPECT_FALSE(constraint->accept(ids[i] + 1).ok());
      }
      ASSERT_TRUE(constraint->accept(ids[i]).ok());
    }
    EXPECT_TRUE(constraint->isComplete());
  }
  EXPECT_GT(2 * forced, all);
}

// A tokenizer may have tokens that the model has no logits of.
TEST_F(ConstraintCompilerTest, ForcesNothingThatTheModelLacks) {
  const OutputFormat format = {
      .kind = OutputFormat::Kind::Gbnf,
      .text = R"(root ::= "the little girl and the big dog.")"};
  const std::vector<int32_t> ids =
      *tokenizer.encode("the little girl and the big dog.", false);
  const int32_t last = *std::ranges::max_element(ids);
  const auto forcedOf = [&](int64_t size) {
    ConstraintCompiler sized(tokenizer, size, {end});
    const Source source = sized.compile(format).take();
    std::unique_ptr<TokenConstraint> constraint = source->begin().take();
    EXPECT_TRUE(constraint->allowed().ok());
    const auto forced = constraint->forced();
    EXPECT_TRUE(forced.ok()) << forced.message();
    return std::vector<int32_t>(forced->begin(), forced->end());
  };
  EXPECT_EQ(forcedOf(last), std::vector<int32_t>());
  EXPECT_EQ(forcedOf(last + 1), ids);
}

// A text that was cut otherwise goes on as the model likes until the tokenizer
// would begin a token.
TEST_F(ConstraintCompilerTest, ForcesNothingWithinATokenOfTheTokenizer) {
  const Source source =
      compile({.kind = OutputFormat::Kind::Gbnf,
               .text = R"(root ::= "the little girl and the big dog" [a-z]*)"});
  const std::vector<int32_t> whole =
      *tokenizer.encode("the little girl and the big dog", false);
  std::unique_ptr<TokenConstraint> constraint = source->begin().take();
  std::string text;
  // Letter by letter, where that is left to the model.
  for (size_t i = 0; i < 100 && text.size() < 31; ++i) {
    const std::vector<int32_t> certain(constraint->forced()->begin(),
                                       constraint->forced()->end());
    const auto mask = *constraint->allowed();
    int32_t shortest = certain.empty() ? -1 : certain[0];
    for (int32_t id = 0; certain.empty() && id < tokenizer.vocabSize(); ++id)
      if ((mask[id / 32] >> id % 32 & 1) &&
          (shortest < 0 ||
           tokenizer.bytesOf(id).size() < tokenizer.bytesOf(shortest).size()))
        shortest = id;
    ASSERT_GE(shortest, 0);
    ASSERT_TRUE(constraint->accept(shortest).ok());
    text += tokenizer.bytesOf(shortest);
  }
  EXPECT_EQ(text.substr(0, 31), "the little girl and the big dog");
}

} // namespace
