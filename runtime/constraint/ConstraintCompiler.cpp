//===- ConstraintCompiler.cpp - Constraints of a model's texts ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/constraint/ConstraintCompiler.h"

#include "runtime/constraint/ForcedTokens.h"
#include "runtime/core/Exceptions.h"
#include "runtime/grammar/GrammarMatcher.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

using namespace kf;

namespace {

/// A grammar takes 25 MB at most, and its compiling as long as that of larger
/// ones.
GrammarLimits compileLimits(CancelFlag cancelled) {
  GrammarLimits limits;
  limits.maxSize = 250'000;
  limits.cancelled = cancelled;
  return limits;
}

/// Others wait for a step in which a mask is made: its limit is some ten times
/// what a walk through a large vocabulary takes.
MatchLimits matchLimits() {
  MatchLimits limits;
  limits.maxSteps = 3'000'000;
  limits.maxBytes = size_t(16) << 20;
  limits.maxRollback = 0;
  return limits;
}

/// A limit of a text's memory is not the machine's.
Status ofText(Status status) {
  if (status.code() == StatusCode::OutOfMemory &&
      status.message() != Status::outOfMemory().message())
    return Status::error(std::string(status.message()));
  return status;
}

/// A text of a grammar.
class GrammarConstraint : public TokenConstraint {
public:
  GrammarConstraint(GrammarMatcher matcher, const Tokenizer &tokenizer,
                    const GrammarVocabulary &vocabulary)
      : matcher(std::move(matcher)), certain(tokenizer, vocabulary),
        mask(vocabulary.maskWords()) {}

  Result<std::span<const uint32_t>> allowed() override {
    using Allowed = Result<std::span<const uint32_t>>;
    return catchExceptions([&]() -> Allowed {
      if (isKnown)
        return Allowed(mask);
      KF_ASSIGN_OR_RETURN(const std::span<const int32_t> next, forced());
      if (next.empty()) {
        KF_RETURN_IF_ERROR(ofText(matcher.fillMask(mask)));
      } else {
        std::ranges::fill(mask, 0);
        mask[next[0] / 32] |= uint32_t(1) << next[0] % 32;
      }
      isKnown = true;
      return Allowed(mask);
    });
  }
  Result<std::span<const int32_t>> forced() override {
    using Forced = Result<std::span<const int32_t>>;
    return catchExceptions([&]() -> Forced {
      Forced next = certain.find(matcher);
      if (!next.ok())
        return ofText(next.status());
      return next;
    });
  }
  Status accept(int32_t id) override {
    return catchExceptions([&]() -> Status {
      KF_ASSIGN_OR_RETURN(const std::span<const int32_t> next, forced());
      if (!next.empty() && next[0] != id)
        return Status::error("token " + std::to_string(id) +
                             " is not the one that the text goes on with");
      KF_RETURN_IF_ERROR(ofText(matcher.accept(id)));
      isKnown = false;
      certain.accept(id);
      return Status();
    });
  }
  bool isComplete() const override { return matcher.isComplete(); }

private:
  GrammarMatcher matcher;
  ForcedTokens certain;
  std::vector<uint32_t> mask;
  bool isKnown = false; ///< `mask` is that of the next token
};

/// Of a grammar, and of the copy that grows in its texts' cache.
size_t bytesOf(const Grammar &grammar) { return 2 * grammar.bytes(); }

/// The texts of a grammar share what makes masks fast.
class GrammarSource : public TokenConstraintSource {
public:
  GrammarSource(Grammar grammar, const Tokenizer &tokenizer,
                std::shared_ptr<const GrammarVocabulary> vocabulary,
                std::shared_ptr<std::atomic<size_t>> living)
      : grammar(std::move(grammar)), tokenizer(tokenizer),
        vocabulary(std::move(vocabulary)), living(std::move(living)),
        bytes(bytesOf(this->grammar)) {
    *this->living += bytes;
  }
  ~GrammarSource() override { *living -= bytes; }

  Result<std::unique_ptr<TokenConstraint>> begin() override {
    using Made = Result<std::unique_ptr<TokenConstraint>>;
    return catchExceptions([&]() -> Made {
      if (!start || !start->hasRoom()) {
        Result<GrammarMatcher> made =
            GrammarMatcher::create(grammar, vocabulary, matchLimits());
        if (!made.ok())
          return ofText(made.status());
        start.emplace(made.take());
      }
      return Made(
          std::make_unique<GrammarConstraint>(*start, tokenizer, *vocabulary));
    });
  }

private:
  Grammar grammar;
  const Tokenizer &tokenizer;
  std::shared_ptr<const GrammarVocabulary> vocabulary;
  std::shared_ptr<std::atomic<size_t>> living;
  size_t bytes;
  std::optional<GrammarMatcher> start; ///< in front of an empty text
};

} // namespace

ConstraintCompiler::ConstraintCompiler(const Tokenizer &tokenizer,
                                       int64_t vocabSize,
                                       std::vector<int64_t> endIds)
    : tokenizer(tokenizer), vocabSize(vocabSize), endIds(std::move(endIds)),
      living(std::make_shared<std::atomic<size_t>>(0)) {}

ConstraintCompiler::~ConstraintCompiler() = default;

Status ConstraintCompiler::makeVocabulary() {
  std::vector<GrammarToken> tokens(static_cast<size_t>(vocabSize));
  const int64_t count = std::min(vocabSize, tokenizer.vocabSize());
  for (int32_t id = 0; id < count; ++id)
    tokens[static_cast<size_t>(id)] = {std::string(tokenizer.bytesOf(id)),
                                       tokenizer.isSpecial(id)};
  std::vector<int32_t> ends;
  for (int64_t id : endIds)
    if (id >= 0 && id < vocabSize)
      ends.push_back(static_cast<int32_t>(id));
  KF_ASSIGN_OR_RETURN(vocabulary,
                      GrammarVocabulary::create(tokens, std::move(ends)));
  return Status();
}

Result<std::shared_ptr<TokenConstraintSource>>
ConstraintCompiler::compile(const OutputFormat &format,
                            CancelFlag cancelled) try {
  const std::scoped_lock lock(mutex);
  const auto found = std::ranges::find_if(kept, [&](const Kept &one) {
    return one.format.kind == format.kind && one.format.text == format.text &&
           one.format.before == format.before &&
           one.format.after == format.after &&
           one.format.documents == format.documents;
  });
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
    return found->source;
  }
  const GrammarLimits limits = compileLimits(cancelled);
  // By name, so that who wrote it learns which part of a request it was.
  const auto named = [&](const Status &status) {
    return status.isCancelled() || format.name.empty() ? status
                                                       : status.in(format.name);
  };
  const TextAround around{format.before, format.after};
  Result<Grammar> grammar =
      format.kind == OutputFormat::Kind::Gbnf
          ? Grammar::fromGbnf(format.text, limits, around)
          : Grammar::fromJsonSchema(
                format.text, limits,
                {.around = around, .documents = format.documents});
  if (!grammar.ok())
    return named(grammar.status());
  const auto fits = [&] { return *living + bytesOf(*grammar) <= kMostBytes; };
  while (!fits() && !kept.empty())
    kept.pop_back(); // which lives on where a text has it
  if (!fits())
    return named(Status::error(
        "the grammars of all requests together take more than " +
            std::to_string(kMostBytes >> 20) + " MiB; try again later",
        StatusCode::Unavailable));
  if (!vocabulary)
    KF_RETURN_IF_ERROR(makeVocabulary());
  std::shared_ptr<TokenConstraintSource> source =
      std::make_shared<GrammarSource>(grammar.take(), tokenizer, vocabulary,
                                      living);
  kept.push_front({format, source});
  if (kept.size() > kMostKept)
    kept.pop_back();
  return source;
} catch (...) {
  return statusOfException();
}
