//===- EngineDraftModelTest.cpp - Texts that another model drafts ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "runtime/engine/Generation.h"

#include <string>

using namespace kf;
using namespace kf::test;

namespace {

/// Steps of a model that is ten times as fast, and of one that takes no longer
/// for more rows.
DraftTimes times() {
  DraftTimes times;
  for (int i = 0; i < 2; ++i) {
    times.drafting.add(1, 0.1);
    times.reading.add(1, 1);
  }
  return times;
}

/// Two engines of the fake model, one of which drafts for the other, and errs
/// in so many of 1024 texts.
struct Pair {
  explicit Pair(EngineOptions options, uint64_t errs = 0, size_t most = 4,
                int64_t vocabulary = kVocab, EngineOptions drafting = {},
                int64_t smallVocabulary = kVocab,
                ModelConfig config = fakeConfig())
      : small(
            [&] {
              drafting.parallel = options.parallel;
              return drafting;
            }(),
            /*shared=*/true, {}, nullptr,
            [&] {
              config.vocabSize = smallVocabulary;
              return config;
            }()),
        drafts(*small.engine, most, vocabulary, times()), large([&] {
          options.draftModel = &drafts;
          return options;
        }()) {
    small.device.behavior.varies = large.device.behavior.varies = true;
    small.device.behavior.errs = errs;
  }

  Fixture small;
  DraftModel drafts;
  Fixture large;
};

GenerationOptions ofTokens(int64_t count) {
  GenerationOptions options;
  options.maxTokens = count;
  return options;
}

/// Runs one text; checks that it is the one without drafts.
GenerationResult textOf(Pair &pair, const std::vector<int32_t> &prompt,
                        const SamplerOptions &sampling, int64_t count) {
  GeneratedText text(pair.large, sampling, ofTokens(count));
  EXPECT_TRUE(text.generation.start(prompt).ok());
  pair.large.runAll();
  Result<GenerationResult> result = text.generation.take();
  EXPECT_TRUE(result.ok()) << result.message();
  if (!result.ok())
    return {};
  EXPECT_EQ(result->ids, expected(prompt, sampling, static_cast<size_t>(count),
                                  pair.large.device.behavior));
  return result.take();
}

/// Whatever the one that drafts errs in, with draws, penalties, which draft
/// nothing, few rows and few pages.
TEST(EngineDraftModel, TextsAreThoseWithoutDrafts) {
  for (const int64_t rows : {4, 20, 512})
    for (const int64_t pages : {0, 6})
      for (const uint64_t errs : {0, 200, 1024}) {
        const bool ahead = errs != 200;
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(pages) +
                     " pages, " + std::to_string(errs) + " errors");
        Pair pair({.parallel = 8,
                   .pages = pages,
                   .rowsPerStep = rows,
                   .runsAhead = ahead},
                  errs, 4, kVocab, {.runsAhead = ahead});
        auto prompt = [](size_t i) { return tokens(1 + i * 13 % 90, i); };
        auto count = [](size_t i) { return 40 + i * 53 % 200; };
        std::vector<std::unique_ptr<GeneratedText>> texts;
        for (size_t i = 0; i < 12; ++i) {
          texts.push_back(std::make_unique<GeneratedText>(
              pair.large, optionsOf(i),
              ofTokens(static_cast<int64_t>(count(i)))));
          ASSERT_TRUE(texts.back()->generation.start(prompt(i)).ok());
        }
        int64_t drafted = 0, accepted = 0;
        size_t done = 0;
        while (done < texts.size()) {
          pair.large.engine->step();
          for (size_t i = 0; i < texts.size(); ++i) {
            if (!texts[i] || !texts[i]->generation.isDone())
              continue;
            const auto result = texts[i]->generation.take();
            ASSERT_TRUE(result.ok()) << result.message();
            EXPECT_EQ(result->ids, expected(prompt(i), optionsOf(i), count(i),
                                            pair.large.device.behavior))
                << "text " << i;
            EXPECT_EQ(result->decodedTokens,
                      static_cast<int64_t>(count(i)) - 1);
            EXPECT_EQ(texts[i]->sequence->position(),
                      static_cast<int64_t>(prompt(i).size() + count(i)) - 1);
            if (texts[i]->sampler.dependsOnTokens())
              EXPECT_EQ(result->draftTokens, 0);
            drafted += result->draftTokens;
            accepted += result->acceptedDraftTokens;
            texts[i].reset(); // others need its pages
            ++done;
          }
        }
        const EngineCounts counts = pair.large.engine->counts();
        EXPECT_EQ(drafted, counts.drafted);
        EXPECT_EQ(accepted, counts.accepted);
        if (rows > 4 && errs < 1024)
          EXPECT_GT(accepted, 0);
        if (errs == 0)
          EXPECT_EQ(accepted, drafted);
        if (pages > 0 && errs == 0)
          EXPECT_GT(counts.preemptions, 0);
        EXPECT_EQ(pair.large.engine->pages().used(), 0);
        EXPECT_EQ(pair.small.engine->pages().used(), 0);
      }
}

/// Draws are the same where both models see the same, so all are accepted.
TEST(EngineDraftModel, DrawsAreDraftedToo) {
  Pair pair({});
  SamplerOptions sampling;
  sampling.temperature = 1;
  sampling.topK = 5;
  sampling.seed = 3;
  const GenerationResult text = textOf(pair, tokens(9), sampling, 300);
  EXPECT_GT(text.draftTokens, 100);
  EXPECT_EQ(text.acceptedDraftTokens, text.draftTokens);
  EXPECT_LT(pair.large.engine->counts().steps, 200);
}

/// What is drafted is read on from what the draft model has of the text.
TEST(EngineDraftModel, ReadsATextOnce) {
  Pair pair({}, /*errs=*/100);
  const GenerationResult text = textOf(pair, tokens(500), {}, 100);
  // Two rows for each draft at most, which are its own and a wrong one's.
  EXPECT_LT(pair.small.device.behavior.rows, 500 + 100 + 2 * text.draftTokens);
}

/// `count` tokens, for each of which the small model runs few steps from now
/// on.
GenerationOptions ofTokensWithFewSteps(const Pair &pair, int64_t count) {
  GenerationOptions options = ofTokens(count);
  const Engine &small = *pair.small.engine;
  options.onToken = [&small, before = small.counts().steps](int32_t) mutable {
    const int64_t steps = small.counts().steps;
    EXPECT_LE(steps - before, 8);
    before = steps;
  };
  return options;
}

/// A long prompt is read a step at a time, beside the other engine's.
TEST(EngineDraftModel, NobodyWaitsForAPrompt) {
  Pair pair({.parallel = 2}, 0, 4, kVocab, {.rowsPerStep = 16});
  const GenerationOptions options = ofTokensWithFewSteps(pair, 150);
  GeneratedText text(pair.large, {}, options);
  ASSERT_TRUE(text.generation.start(tokens(700)).ok());
  pair.large.runAll();
  const auto result = text.generation.take();
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->ids,
            expected(tokens(700), {}, 150, pair.large.device.behavior));
  EXPECT_GT(result->acceptedDraftTokens, 30);
}

/// Nor for what is read again, where windows' pages of the small model have
/// been used for something else.
TEST(EngineDraftModel, NobodyWaitsForWhatWindowsHaveLost) {
  Pair pair({.parallel = 1}, 0, 4, kVocab, {.rowsPerStep = 16}, kVocab,
            windowedConfig());
  const GenerationOptions options = ofTokensWithFewSteps(pair, 150);
  GeneratedText text(pair.large, {}, options);
  ASSERT_TRUE(text.generation.start(tokens(700)).ok());
  pair.large.runAll();
  ASSERT_TRUE(text.generation.take().ok());
  ASSERT_TRUE(text.sequence->rewind(300).ok());
  Sampler sampler = *Sampler::create({});
  Generation generation(*text.sequence, sampler, nullptr,
                        ofTokensWithFewSteps(pair, 150));
  ASSERT_TRUE(generation.start(std::vector<int32_t>{1, 2, 3}).ok());
  pair.large.runAll();
  const auto result = generation.take();
  ASSERT_TRUE(result.ok()) << result.message();
  std::vector<int32_t> all = tokens(300);
  all.insert(all.end(), {1, 2, 3});
  EXPECT_EQ(result->ids, expected(all, {}, 150, pair.large.device.behavior));
  EXPECT_GT(result->acceptedDraftTokens, 30);
}

/// What is cut off is forgotten, and rests with it.
TEST(EngineDraftModel, TextsThatAreCutAndForked) {
  Pair pair({.parallel = 2}, /*errs=*/512);
  for (int round = 0; round < 3; ++round) {
    GeneratedText text(pair.large, {}, ofTokens(60));
    ASSERT_TRUE(text.generation.start(tokens(30)).ok());
    pair.large.runAll();
    ASSERT_TRUE(text.sequence->rewind(20).ok());
    auto fork = text.sequence->fork().take();
    for (Sequence *sequence : {text.sequence.get(), fork.get()}) {
      Sampler sampler = *Sampler::create({});
      std::vector<int32_t> more = tokens(30);
      more.erase(more.begin(), more.begin() + 20);
      more.push_back(round);
      Generation generation(*sequence, sampler, nullptr, ofTokens(50));
      ASSERT_TRUE(generation.start(more).ok());
      pair.large.runAll();
      const auto result = generation.take();
      ASSERT_TRUE(result.ok()) << result.message();
      std::vector<int32_t> all = tokens(30);
      all.push_back(round);
      EXPECT_EQ(result->ids, expected(all, {}, 50, pair.large.device.behavior));
      EXPECT_GT(result->draftTokens, 0);
    }
  }
}

/// A text of tokens that the small model has no rows for.
TEST(EngineDraftModel, TokensOfTheLargeModelAlone) {
  Pair pair({}, 0, 4, kVocab, {}, /*smallVocabulary=*/kVocab - 4);
  const GenerationResult text = textOf(pair, tokens(5), {}, 200);
  EXPECT_LT(text.draftTokens, 100); // until one comes
}

/// Its logits are not finite behind a token: texts go on without it.
TEST(EngineDraftModel, LogitsOfTheSmallModelThatAreNotFinite) {
  Pair pair({});
  pair.small.device.behavior.poison = 3;
  const GenerationResult text = textOf(pair, tokens(5), {}, 200);
  EXPECT_GE(text.draftTokens, 0);
}

/// As long as all of what is drafted is wrong.
TEST(EngineDraftModel, RestsWhereDraftsAreWrong) {
  Pair pair({}, /*errs=*/1024);
  const GenerationResult text = textOf(pair, tokens(5), {}, 900);
  EXPECT_GT(text.draftTokens, 0);
  EXPECT_LT(text.draftTokens, 450);
}

TEST(EngineDraftModel, TokensOfTheSmallerModelAlone) {
  Pair pair({}, 0, 4, /*vocabulary=*/kVocab - 3);
  const GenerationResult text = textOf(pair, tokens(5), {}, 200);
  for (int32_t id : text.ids)
    EXPECT_LT(id, kVocab);
  EXPECT_GT(text.draftTokens, 0);
}

/// Up to the last position of either, and not beyond.
TEST(EngineDraftModel, ContextFull) {
  for (const int64_t context : {9, 10, 11, 12, 64, 65})
    for (const int64_t small : {6, 10, 64, 100}) {
      Pair pair({.contextLength = context}, 0, 4, kVocab,
                {.contextLength = small});
      GeneratedText text(pair.large, {}, ofTokens(1000));
      ASSERT_TRUE(text.generation.start(tokens(4)).ok());
      pair.large.runAll();
      const auto result = text.generation.take();
      ASSERT_TRUE(result.ok()) << result.message();
      EXPECT_EQ(result->reason, StopReason::ContextFull);
      EXPECT_EQ(text.sequence->position(), context);
    }
}

/// Texts that the small model's cache has no pages for go on without drafts.
TEST(EngineDraftModel, TooFewPagesToDraftForAll) {
  Pair pair({.parallel = 4}, 0, 4, kVocab, {.pages = 3});
  std::vector<std::unique_ptr<GeneratedText>> texts;
  for (size_t i = 0; i < 4; ++i) {
    texts.push_back(std::make_unique<GeneratedText>(
        pair.large, SamplerOptions(), ofTokens(300)));
    ASSERT_TRUE(texts.back()->generation.start(tokens(50, i)).ok());
  }
  pair.large.runAll();
  for (size_t i = 0; i < 4; ++i) {
    const auto result = texts[i]->generation.take();
    ASSERT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->ids,
              expected(tokens(50, i), {}, 300, pair.large.device.behavior));
  }
  EXPECT_GT(pair.large.engine->counts().accepted, 0);
}

TEST(EngineDraftModel, CancelledAndDestroyedMeanwhile) {
  Pair pair({.parallel = 3}, /*errs=*/300);
  std::vector<std::unique_ptr<GeneratedText>> texts;
  for (size_t i = 0; i < 3; ++i) {
    GenerationOptions options = ofTokens(200);
    options.onToken = [&, i, told = 0](int32_t) mutable {
      ++told;
      if (i == 0 && told == 20)
        texts[0]->sequence->cancel();
      if (i == 0 && told == 10)
        texts[2].reset();
    };
    texts.push_back(
        std::make_unique<GeneratedText>(pair.large, SamplerOptions(), options));
    ASSERT_TRUE(texts.back()->generation.start(tokens(5, i)).ok());
  }
  pair.large.runAll();
  const auto first = texts[0]->generation.take();
  ASSERT_TRUE(first.ok()) << first.message();
  EXPECT_EQ(first->reason, StopReason::Cancelled);
  EXPECT_GE(first->ids.size(), 20u);
  const auto second = texts[1]->generation.take();
  ASSERT_TRUE(second.ok()) << second.message();
  EXPECT_EQ(second->ids,
            expected(tokens(5, 1), {}, 200, pair.large.device.behavior));
}

TEST(EngineDraftModel, FailureOfTheSmallModel) {
  Pair pair({});
  pair.small.device.behavior.failure =
      Status::error("the small one is lost", StatusCode::Unavailable);
  GeneratedText text(pair.large, {}, ofTokens(50));
  ASSERT_TRUE(text.generation.start(tokens(5)).ok());
  pair.large.runAll();
  ASSERT_TRUE(text.generation.isDone());
  EXPECT_NE(text.generation.take().message().find("the small one is lost"),
            std::string::npos);
  EXPECT_EQ(pair.large.engine->isIdle(), true);
}

TEST(EngineDraftModel, WhatAnEngineRefuses) {
  Fixture small;
  DraftModel many(*small.engine, 65, kVocab), some(*small.engine, 4, kVocab);
  EXPECT_EQ(Engine::create(*small.model, {.draftModel = &many}).message(),
            "a number of drafted tokens of 65 is not possible; 1 to 64 are");
  EXPECT_EQ(Engine::create(*small.model,
                           {.ngrams = NgramOptions(), .draftModel = &some})
                .message(),
            "tokens are drafted by n-grams or by a model, not by both");
}

} // namespace
