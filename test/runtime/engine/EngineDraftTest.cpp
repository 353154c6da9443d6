//===- EngineDraftTest.cpp - Texts whose tokens are drafted ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "runtime/engine/Generation.h"

using namespace kf;
using namespace kf::test;

namespace {

constexpr NgramOptions kDrafts = {.longest = 2, .shortest = 1, .most = 6};
/// What the fake model chooses where it does not vary.
constexpr int32_t kAnswer = kVocab - 1;

/// Penalties are of every other one, and draft nothing.
TEST(EngineDraft, TextsAreThoseWithoutDrafts) {
  for (const int64_t rows : {4, 20, 512})
    for (const int64_t pages : {0, 6}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(pages));
      Fixture fixture({.parallel = 8,
                       .pages = pages,
                       .rowsPerStep = rows,
                       .ngrams = kDrafts});
      fixture.device.behavior.varies = true;
      auto prompt = [](size_t i) { return tokens(1 + i * 13 % 90, i); };
      auto count = [](size_t i) { return 40 + i * 53 % 200; };
      std::vector<std::unique_ptr<GeneratedText>> texts;
      for (size_t i = 0; i < 12; ++i) {
        GenerationOptions options;
        options.maxTokens = static_cast<int64_t>(count(i));
        texts.push_back(std::make_unique<GeneratedText>(fixture, optionsOf(i),
                                                        std::move(options)));
        ASSERT_TRUE(texts.back()->generation.start(prompt(i)).ok());
      }
      int64_t drafted = 0, accepted = 0;
      size_t done = 0;
      while (done < texts.size()) {
        fixture.engine->step();
        for (size_t i = 0; i < texts.size(); ++i) {
          if (!texts[i] || !texts[i]->generation.isDone())
            continue;
          const auto result = texts[i]->generation.take();
          ASSERT_TRUE(result.ok()) << result.message();
          EXPECT_EQ(result->ids, expected(prompt(i), optionsOf(i), count(i),
                                          fixture.device.behavior))
              << "text " << i;
          EXPECT_EQ(result->decodedTokens, static_cast<int64_t>(count(i)) - 1);
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
      const EngineCounts counts = fixture.engine->counts();
      EXPECT_EQ(accepted, counts.accepted);
      EXPECT_GE(drafted, counts.drafted); // some had no room
      if (rows > 4) {
        EXPECT_GT(counts.accepted, 0);
        EXPECT_LT(counts.accepted, counts.drafted);
      }
      if (pages > 0)
        EXPECT_GT(counts.preemptions, 0);
      EXPECT_EQ(fixture.engine->pages().used(), 0);
    }
}

/// Keys and values of drafts that were wrong are nobody's: what follows, and
/// what others find of it, is as if they had never been.
TEST(EngineDraft, WhatWasReadGoesOn) {
  Fixture fixture({.parallel = 2, .ngrams = kDrafts});
  fixture.device.behavior.varies = true;
  GenerationOptions options;
  options.maxTokens = 120;
  GeneratedText text(fixture, {}, options);
  ASSERT_TRUE(text.generation.start(tokens(70)).ok());
  fixture.runAll();
  ASSERT_GT(fixture.engine->counts().drafted,
            fixture.engine->counts().accepted);
  fixture.device.behavior.varies = false; // what expectLogits() knows
  const std::vector<int32_t> more = {1, 2, 3};
  EXPECT_TRUE(expectLogits(*text.sequence, more).ok());
  const std::vector<int32_t> all(text.sequence->tokens().begin(),
                                 text.sequence->tokens().end());
  const auto other = fixture.sequence();
  EXPECT_TRUE(expectLogits(*other, all, all.size() - 1).ok());
  EXPECT_GE(other->reusedTokens(), 128);
}

/// What prompts may have of a step is nothing to drafts.
TEST(EngineDraft, FewStepsWhereDraftsAreAccepted) {
  for (const bool isServed : {false, true}) {
    SCOPED_TRACE(isServed);
    EngineOptions settings = {.parallel = 1, .ngrams = NgramOptions{.most = 7}};
    settings.sharesTime = isServed;
    Fixture fixture(settings);
    GenerationOptions options;
    options.maxTokens = 100;
    GeneratedText text(fixture, {}, options);
    ASSERT_TRUE(text.generation.start(tokens(5)).ok());
    fixture.runAll();
    const auto result = text.generation.take();
    ASSERT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->ids, std::vector<int32_t>(100, kAnswer));
    EXPECT_EQ(result->acceptedDraftTokens, result->draftTokens);
    EXPECT_LT(fixture.engine->counts().steps, 25);
    EXPECT_EQ(fixture.engine->counts().chosen, 100);
  }
}

/// It is not read, as where nothing is drafted, nor is what follows it told.
TEST(EngineDraft, StopTokenAtOnce) {
  Fixture fixture({.parallel = 1, .ngrams = kDrafts});
  std::vector<int32_t> told;
  GenerationOptions options;
  options.onToken = [&](int32_t id) { told.push_back(id); };
  options.stopIds = {kAnswer};
  options.maxTokens = 50;
  GeneratedText text(fixture, {}, options);
  // A text of what is always chosen: the first one ends it.
  ASSERT_TRUE(
      text.generation.start(std::vector<int32_t>{1, kAnswer, kAnswer}).ok());
  fixture.runAll();
  EXPECT_EQ(told, std::vector<int32_t>({kAnswer}));
  EXPECT_EQ(text.sequence->position(), 3);

  // Stop at the fourth, where three and more are drafted at once.
  told.clear();
  GenerationOptions later;
  std::unique_ptr<GeneratedText> other;
  later.maxTokens = 50;
  later.onToken = [&](int32_t id) {
    told.push_back(id);
    if (told.size() == 6)
      other->sequence->cancel();
  };
  other = std::make_unique<GeneratedText>(fixture, SamplerOptions(), later);
  ASSERT_TRUE(
      other->generation.start(std::vector<int32_t>{kAnswer, kAnswer}).ok());
  fixture.runAll();
  ASSERT_TRUE(other->generation.isDone());
  const auto result = other->generation.take();
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->reason, StopReason::Cancelled);
  EXPECT_GE(told.size(), 6u);
}

/// A stop token among drafts that are accepted ends the text as it does without
/// drafts: it is not read, and nothing is told of what follows it.
TEST(EngineDraft, StopTokenAmongDrafts) {
  int64_t amongDrafts = 0;
  for (int32_t stop = 0; stop < kVocab; ++stop)
    for (size_t seed = 0; seed < 8; ++seed) {
      SamplerOptions sampling;
      for (int32_t id : {1, 2, 3, 4}) // which come again and again
        sampling.logitBias.push_back({id, 5.0});
      struct {
        std::vector<int32_t> ids, told;
        StopReason reason = StopReason::Cancelled;
        int64_t position = 0;
      } texts[2];
      for (int drafts = 0; drafts < 2; ++drafts) {
        Fixture fixture(
            {.ngrams = drafts ? std::optional(kDrafts) : std::nullopt});
        fixture.device.behavior.varies = true;
        auto &text = texts[drafts];
        GenerationOptions options;
        options.maxTokens = 80;
        options.stopIds = {stop};
        options.onToken = [&](int32_t id) { text.told.push_back(id); };
        GeneratedText drafted(fixture, sampling, options);
        ASSERT_TRUE(drafted.generation.start(tokens(9, seed)).ok());
        fixture.runAll();
        const auto result = drafted.generation.take();
        ASSERT_TRUE(result.ok()) << result.message();
        text.ids = result->ids;
        text.reason = result->reason;
        text.position = drafted.sequence->position();
        amongDrafts += fixture.engine->counts().chosen >
                       static_cast<int64_t>(result->ids.size());
      }
      EXPECT_EQ(texts[1].ids, texts[0].ids) << stop << " " << seed;
      EXPECT_EQ(texts[1].told, texts[0].told);
      EXPECT_EQ(texts[1].reason, texts[0].reason);
      EXPECT_EQ(texts[1].position, texts[0].position);
    }
  EXPECT_GT(amongDrafts, 0);
}

/// Heads are for as many tokens as there may be, not for those of prompts.
TEST(EngineDraft, HeadsForDraftsOfManySequences) {
  Fixture fixture({.parallel = 16, .ngrams = NgramOptions{.most = 8}});
  EXPECT_EQ(fixture.engine->chosenPerStep(), 144);
  for (const StepShape &shape : fixture.engine->shapesToPrepare())
    if (shape.part != StepPart::Body)
      EXPECT_LE(shape.rows, 256) << nameOf(shape);
}

/// Up to the last position, and not beyond.
TEST(EngineDraft, ContextFull) {
  for (int64_t context : {9, 10, 11, 12, 13, 64, 65}) {
    Fixture fixture({.contextLength = context, .ngrams = kDrafts});
    GenerationOptions options;
    options.maxTokens = 1000;
    GeneratedText text(fixture, {}, options);
    ASSERT_TRUE(text.generation.start(tokens(4)).ok());
    fixture.runAll();
    const auto result = text.generation.take();
    ASSERT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->reason, StopReason::ContextFull);
    EXPECT_EQ(text.sequence->position(), context);
    EXPECT_EQ(static_cast<int64_t>(result->ids.size()), context - 4 + 1);
  }
}

TEST(EngineDraft, LogitsThatAreNotFinite) {
  Fixture fixture({.ngrams = kDrafts});
  fixture.device.behavior.varies = true;
  fixture.device.behavior.poison = 3;
  const std::unique_ptr<Sequence> sequence = fixture.sequence();
  Sampler sampler = *Sampler::create({});
  Answer answer;
  Reading reading;
  reading.ids = {1, 2, 3, 4}; // 3 is wrong as a draft, or ends it
  reading.drafted = 2;
  reading.sampler = &sampler;
  reading.done = answer.take();
  ASSERT_TRUE(sequence->read(std::move(reading)).ok());
  fixture.runAll();
  ASSERT_TRUE(answer.isDone());
  const std::vector<int32_t> alone =
      expected({1, 2}, {}, 1, FakeBehavior{.varies = true});
  if (alone.front() == 3) {
    EXPECT_NE(answer.error(), "");
    EXPECT_EQ(sequence->position(), 0);
  } else {
    EXPECT_EQ(answer.id(), alone.front());
    EXPECT_EQ(sequence->position(), 2);
  }
}

TEST(EngineDraft, WhatIsNotForDrafts) {
  Fixture fixture({.ngrams = kDrafts});
  const std::unique_ptr<Sequence> sequence = fixture.sequence();
  SamplerOptions penalties;
  penalties.presencePenalty = 1;
  const Sampler plain = *Sampler::create({}),
                penalized = *Sampler::create(penalties);
  FakeConstraint constraint;
  auto errorOf = [&](auto change) {
    Reading reading;
    reading.ids = {1, 2};
    reading.drafted = 1;
    reading.sampler = &plain;
    change(reading);
    return sequence->read(std::move(reading)).message();
  };
  const std::string refused = "drafts follow a token, and are for samplers "
                              "that do not depend on tokens, alone";
  EXPECT_EQ(errorOf([](Reading &reading) { reading.drafted = 2; }), refused);
  EXPECT_EQ(errorOf([](Reading &reading) { reading.sampler = nullptr; }),
            refused);
  EXPECT_EQ(errorOf([&](Reading &reading) { reading.sampler = &penalized; }),
            refused);
  EXPECT_EQ(
      errorOf([&](Reading &reading) { reading.constraint = &constraint; }),
      refused);
  EXPECT_EQ(errorOf([](Reading &reading) {
              reading.onLogProbs = [](const ChosenLogProbs &) {};
            }),
            refused);
  EXPECT_EQ(errorOf([](Reading &) {}), "");

  EXPECT_EQ(
      Engine::create(*fixture.model, {.ngrams = NgramOptions{.longest = 65}})
          .message(),
      "n-grams of 65 is not possible; 1 to 64 are");
  EXPECT_EQ(Engine::create(*fixture.model, {.ngrams = NgramOptions{.most = 0}})
                .message(),
            "a number of drafted tokens of 0 is not possible; 1 to 64 are");
}

} // namespace
