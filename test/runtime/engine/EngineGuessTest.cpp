//===- EngineGuessTest.cpp - Texts whose tokens are guessed ---------------===//
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

constexpr NgramOptions kGuesses = {.longest = 2, .shortest = 1, .most = 6};
/// What the fake model chooses where it does not vary.
constexpr int32_t kAnswer = kVocab - 1;

/// One of many texts.
struct Guessed {
  Guessed(Fixture &fixture, const SamplerOptions &sampling,
          GenerationOptions options)
      : sequence(fixture.sequence()), sampler(*Sampler::create(sampling)),
        generation(*sequence, sampler, nullptr, std::move(options)) {}

  std::unique_ptr<Sequence> sequence;
  Sampler sampler;
  Generation generation;
};

/// Penalties are of every other one, and guess nothing.
TEST(EngineGuess, TextsAreThoseWithoutGuesses) {
  for (const int64_t rows : {4, 20, 512})
    for (const int64_t pages : {0, 6}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(pages));
      Fixture fixture({.parallel = 8,
                       .pages = pages,
                       .rowsPerStep = rows,
                       .ngrams = kGuesses});
      fixture.device.behavior.varies = true;
      auto prompt = [](size_t i) { return tokens(1 + i * 13 % 90, i); };
      auto count = [](size_t i) { return 40 + i * 53 % 200; };
      std::vector<std::unique_ptr<Guessed>> texts;
      for (size_t i = 0; i < 12; ++i) {
        GenerationOptions options;
        options.maxTokens = static_cast<int64_t>(count(i));
        texts.push_back(std::make_unique<Guessed>(fixture, optionsOf(i),
                                                  std::move(options)));
        ASSERT_TRUE(texts.back()->generation.start(prompt(i)).ok());
      }
      int64_t guessed = 0, agreed = 0;
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
            EXPECT_EQ(result->guessedTokens, 0);
          guessed += result->guessedTokens;
          agreed += result->agreedTokens;
          texts[i].reset(); // others need its pages
          ++done;
        }
      }
      const EngineCounts counts = fixture.engine->counts();
      EXPECT_EQ(agreed, counts.agreed);
      EXPECT_GE(guessed, counts.guessed); // some had no room
      if (rows > 4) {
        EXPECT_GT(counts.agreed, 0);
        EXPECT_LT(counts.agreed, counts.guessed);
      }
      if (pages > 0)
        EXPECT_GT(counts.preemptions, 0);
      EXPECT_EQ(fixture.engine->pages().used(), 0);
    }
}

/// Keys and values of guesses that were wrong are nobody's: what follows, and
/// what others find of it, is as if they had never been.
TEST(EngineGuess, WhatWasReadGoesOn) {
  Fixture fixture({.parallel = 2, .ngrams = kGuesses});
  fixture.device.behavior.varies = true;
  GenerationOptions options;
  options.maxTokens = 120;
  Guessed text(fixture, {}, options);
  ASSERT_TRUE(text.generation.start(tokens(70)).ok());
  fixture.runAll();
  ASSERT_GT(fixture.engine->counts().guessed, fixture.engine->counts().agreed);
  fixture.device.behavior.varies = false; // what expectLogits() knows
  const std::vector<int32_t> more = {1, 2, 3};
  EXPECT_TRUE(expectLogits(*text.sequence, more).ok());
  const std::vector<int32_t> all(text.sequence->tokens().begin(),
                                 text.sequence->tokens().end());
  const auto other = fixture.sequence();
  EXPECT_TRUE(expectLogits(*other, all, all.size() - 1).ok());
  EXPECT_GE(other->reusedTokens(), 128);
}

TEST(EngineGuess, FewStepsWhereGuessesComeTrue) {
  Fixture fixture({.parallel = 1, .ngrams = NgramOptions{.most = 7}});
  GenerationOptions options;
  options.maxTokens = 100;
  Guessed text(fixture, {}, options);
  ASSERT_TRUE(text.generation.start(tokens(5)).ok());
  fixture.runAll();
  const auto result = text.generation.take();
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->ids, std::vector<int32_t>(100, kAnswer));
  EXPECT_EQ(result->agreedTokens, result->guessedTokens);
  EXPECT_LT(fixture.engine->counts().steps, 20);
  EXPECT_EQ(fixture.engine->counts().chosen, 100);
}

/// It is not read, as where nothing is guessed, nor is what follows it told.
TEST(EngineGuess, StopTokenAmongGuesses) {
  Fixture fixture({.parallel = 1, .ngrams = kGuesses});
  std::vector<int32_t> told;
  GenerationOptions options;
  options.onToken = [&](int32_t id) { told.push_back(id); };
  options.stopIds = {kAnswer};
  options.maxTokens = 50;
  Guessed text(fixture, {}, options);
  // A text of what is always chosen: the first one ends it.
  ASSERT_TRUE(
      text.generation.start(std::vector<int32_t>{1, kAnswer, kAnswer}).ok());
  fixture.runAll();
  EXPECT_EQ(told, std::vector<int32_t>({kAnswer}));
  EXPECT_EQ(text.sequence->position(), 3);

  // Stop at the fourth, where three and more are guessed at once.
  told.clear();
  GenerationOptions later;
  std::unique_ptr<Guessed> other;
  later.maxTokens = 50;
  later.onToken = [&](int32_t id) {
    told.push_back(id);
    if (told.size() == 6)
      other->sequence->cancel();
  };
  other = std::make_unique<Guessed>(fixture, SamplerOptions(), later);
  ASSERT_TRUE(
      other->generation.start(std::vector<int32_t>{kAnswer, kAnswer}).ok());
  fixture.runAll();
  ASSERT_TRUE(other->generation.isDone());
  const auto result = other->generation.take();
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->reason, StopReason::Cancelled);
  EXPECT_GE(told.size(), 6u);
}

/// Up to the last position, and not beyond.
TEST(EngineGuess, ContextFull) {
  for (int64_t context : {9, 10, 11, 12, 13, 64, 65}) {
    Fixture fixture({.contextLength = context, .ngrams = kGuesses});
    GenerationOptions options;
    options.maxTokens = 1000;
    Guessed text(fixture, {}, options);
    ASSERT_TRUE(text.generation.start(tokens(4)).ok());
    fixture.runAll();
    const auto result = text.generation.take();
    ASSERT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->reason, StopReason::ContextFull);
    EXPECT_EQ(text.sequence->position(), context);
    EXPECT_EQ(static_cast<int64_t>(result->ids.size()), context - 4 + 1);
  }
}

TEST(EngineGuess, LogitsThatAreNotFinite) {
  Fixture fixture({.ngrams = kGuesses});
  fixture.device.behavior.varies = true;
  fixture.device.behavior.poison = 3;
  const std::unique_ptr<Sequence> sequence = fixture.sequence();
  Sampler sampler = *Sampler::create({});
  Answer answer;
  Reading reading;
  reading.ids = {1, 2, 3, 4}; // 3 is wrong as a guess, or ends it
  reading.guessed = 2;
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

TEST(EngineGuess, WhatIsNotForGuesses) {
  Fixture fixture({.ngrams = kGuesses});
  const std::unique_ptr<Sequence> sequence = fixture.sequence();
  SamplerOptions penalties;
  penalties.presencePenalty = 1;
  const Sampler plain = *Sampler::create({}),
                penalized = *Sampler::create(penalties);
  FakeConstraint constraint;
  auto errorOf = [&](auto change) {
    Reading reading;
    reading.ids = {1, 2};
    reading.guessed = 1;
    reading.sampler = &plain;
    change(reading);
    return sequence->read(std::move(reading)).message();
  };
  const std::string refused = "guesses follow a token, and are for samplers "
                              "that do not depend on tokens, alone";
  EXPECT_EQ(errorOf([](Reading &reading) { reading.guessed = 2; }), refused);
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
            "a number of guessed tokens of 0 is not possible; 1 to 64 are");
}

} // namespace
