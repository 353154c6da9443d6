//===- GrammarTest.cpp - Grammars without memory --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "runtime/constraint/ConstraintCompiler.h"
#include "runtime/core/Exceptions.h"
#include "runtime/grammar/GrammarMatcher.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

/// Reads `text` with a mask in front of each byte.
Status readText(const Result<Grammar> &grammar, std::string_view text,
                const std::shared_ptr<const GrammarVocabulary> &vocabulary) {
  KF_RETURN_IF_ERROR(grammar.status());
  KF_ASSIGN_OR_RETURN(GrammarMatcher matcher,
                      GrammarMatcher::create(*grammar, vocabulary));
  uint32_t mask[8];
  for (char c : text) {
    KF_RETURN_IF_ERROR(matcher.fillMask(mask));
    KF_RETURN_IF_ERROR(matcher.forcedBytes(4).status());
    KF_RETURN_IF_ERROR(matcher.accept(static_cast<uint8_t>(c)));
    // What is refused is told of in a text that may find no memory either.
    const Status refused = matcher.accept('\x01');
    if (refused.ok())
      return Status::error("a control character was accepted");
    if (refused.code() != StatusCode::Invalid)
      return refused;
  }
  return matcher.rollback(1);
}

/// Compiles a format, or finds it, and holds `ids` to it.
Status holdText(const OutputFormat &format, const Tokenizer &tokenizer,
                std::span<const int32_t> ids) {
  std::optional<ConstraintCompiler> compiler;
  KF_RETURN_IF_ERROR(catchExceptions([&] {
    compiler.emplace(tokenizer, tokenizer.vocabSize(), std::vector<int64_t>{0});
    return Status();
  }));
  for (int time = 0; time < 2; ++time) {
    KF_ASSIGN_OR_RETURN(const auto source, compiler->compile(format));
    KF_ASSIGN_OR_RETURN(const auto constraint, source->begin());
    for (int32_t id : ids) {
      KF_RETURN_IF_ERROR(constraint->allowed().status());
      KF_RETURN_IF_ERROR(constraint->accept(id));
    }
    if (!constraint->isComplete())
      return Status::error("the text is not complete");
  }
  return Status();
}

TEST(Allocation, Constraints) {
  const Tokenizer tokenizer =
      Tokenizer::open(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json").take();
  const std::vector<int32_t> ids =
      tokenizer.encode("<{\"a\":[1]}", false).take();
  const OutputFormat format{.text = R"({"type": "object", "required": ["a"]})",
                            .before = "<",
                            .name = "'json_schema'"};
  failEverywhere([&] { return holdText(format, tokenizer, ids); });
}

TEST(Allocation, Grammars) {
  std::vector<GrammarToken> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({std::string(1, static_cast<char>(byte)), false});
  failEverywhere(
      [&] { return GrammarVocabulary::create(tokens, {}).status(); });
  const auto vocabulary = GrammarVocabulary::create(tokens, {}).take();
  failEverywhere([&] {
    return readText(Grammar::fromJsonSchema(
                        R"({"type": "object", "required": ["a"], "properties":
                    {"a": {"type": "string", "pattern": "^[a-c]b+",
                           "maxLength": 9}}})"),
                    R"({ "a": "cbb"})", vocabulary);
  });
  failEverywhere([&] {
    return readText(Grammar::fromGbnf("root ::= \"(\" root? \")\" [x-z]{2}"),
                    "(()xy)zz", vocabulary);
  });
}

} // namespace
