//===- EngineConstraintTest.cpp - Texts that are held to something --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "runtime/engine/Generation.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

// Constrained texts beside free ones, with penalties, biases and temperatures.
void expectObeyed(bool runsAhead) {
  auto options = [](size_t i) {
    SamplerOptions options = optionsOf(i);
    options.logitBias = {{int64_t(i % kVocab), 4.0}};
    return options;
  };
  expectAsAlone(runsAhead, options, [](size_t i) { return i % 3 != 0; });
}

TEST(EngineConstraint, MasksAreObeyed) { expectObeyed(/*runsAhead=*/false); }
TEST(EngineConstraint, MasksAreObeyedAhead) {
  expectObeyed(/*runsAhead=*/true);
}

// The choice alone waits for masks: no step is run twice, and none of another
// text.
TEST(EngineConstraint, StepsOfConstrainedTextsRunAhead) {
  Fixture fixture({.parallel = 2, .runsAhead = true});
  Text text(fixture.sequence(), {}, 8, std::make_unique<FakeConstraint>());
  Text free(fixture.sequence(), {}, 8);
  EXPECT_TRUE(text.read({1, 2}).ok());
  EXPECT_TRUE(free.read({1, 2, 3}).ok());
  fixture.runAll();
  EXPECT_EQ(text.chosen.size(), 8u);
  EXPECT_EQ(free.chosen.size(), 8u);
  EXPECT_EQ(fixture.engine->counts().steps, 8);
  EXPECT_EQ(fixture.engine->counts().ahead, 7);
  EXPECT_EQ(fixture.device.behavior.runs, 8);
}

// A text that cannot go on ends alone.
TEST(EngineConstraint, ErrorsEndTheirText) {
  Fixture fixture({.parallel = 4});
  fixture.device.behavior.varies = true;
  auto failing = std::make_unique<FakeConstraint>();
  failing->failsAfter = 3;
  Text bad(fixture.sequence(), {}, 8, std::move(failing));
  Text good(fixture.sequence(), {}, 8, std::make_unique<FakeConstraint>());
  EXPECT_TRUE(bad.read({1, 2}).ok());
  EXPECT_TRUE(good.read({1, 2}).ok());
  fixture.runAll();
  EXPECT_EQ(bad.error.message(), "the constraint has failed");
  EXPECT_EQ(bad.chosen.size(), 3u);
  FakeConstraint constraint;
  EXPECT_EQ(good.chosen,
            expected({1, 2}, {}, 8, fixture.device.behavior, &constraint));

  // Biases exclude what is allowed.
  SamplerOptions none;
  for (int64_t id = 0; id < kVocab; ++id)
    none.logitBias.push_back({id, -INFINITY});
  none.logitBias.erase(none.logitBias.begin() + 2); // not allowed at first
  Text excluded(fixture.sequence(), none, 8,
                std::make_unique<FakeConstraint>());
  EXPECT_TRUE(excluded.read({1, 2}).ok());
  fixture.runAll();
  EXPECT_NE(excluded.error.message().find("grammar allows"), std::string::npos)
      << excluded.error.message();
}

TEST(EngineConstraint, OtherVocabulariesAreErrors) {
  class Wide : public FakeConstraint {
    Result<std::span<const uint32_t>> allowed() override {
      return std::span<const uint32_t>(words);
    }
    std::array<uint32_t, 2> words{};
  };
  Fixture fixture;
  Text text(fixture.sequence(), {}, 2, std::make_unique<Wide>());
  EXPECT_TRUE(text.read({1}).ok());
  fixture.runAll();
  EXPECT_EQ(text.error.code(), StatusCode::Internal);
}

// One that lost its pages reads again, and goes on as if nothing had happened.
TEST(EngineConstraint, GoesOnAfterPreemption) {
  Fixture fixture({.contextLength = 400, .parallel = 4, .pages = 9});
  fixture.device.behavior.varies = true;
  std::vector<std::unique_ptr<Text>> texts;
  for (size_t i = 0; i < 4; ++i) {
    texts.push_back(std::make_unique<Text>(fixture.sequence(), optionsOf(2 * i),
                                           300,
                                           std::make_unique<FakeConstraint>()));
    EXPECT_TRUE(texts.back()->read(tokens(40, i)).ok());
  }
  while (fixture.engine->step())
    for (const std::unique_ptr<Text> &text : texts)
      if (text->isDone())
        text->sequence.reset();
  EXPECT_GT(fixture.engine->counts().preemptions, 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    FakeConstraint constraint;
    EXPECT_EQ(texts[i]->error.message(), "");
    EXPECT_EQ(texts[i]->chosen, expected(tokens(40, i), optionsOf(2 * i), 300,
                                         fixture.device.behavior, &constraint));
  }
}

TEST(EngineConstraint, GenerationsEndWhereTheyAreComplete) {
  Fixture fixture;
  auto constraint = std::make_shared<FakeConstraint>();
  constraint->completeAt = 4;
  auto generateHeld = [&](int64_t maxTokens) {
    GenerationOptions options;
    options.maxTokens = maxTokens;
    options.constraint = constraint;
    std::unique_ptr<Sequence> sequence = fixture.sequence();
    Sampler sampler = *Sampler::create({});
    return generate(*sequence, sampler, nullptr, std::vector<int32_t>{1, 2},
                    std::move(options));
  };
  const Result<GenerationResult> whole = generateHeld(100);
  ASSERT_TRUE(whole.ok()) << whole.message();
  EXPECT_EQ(whole->reason, StopReason::Complete);
  EXPECT_EQ(nameOf(whole->reason), "complete");
  EXPECT_EQ(finishReasonOf(whole->reason), "stop");
  EXPECT_EQ(whole->ids.size(), 4u);

  // Also where the last token is the last one that there may be, and not where
  // there are too few.
  *constraint = FakeConstraint();
  constraint->completeAt = 4;
  EXPECT_EQ(generateHeld(4)->reason, StopReason::Complete);
  *constraint = FakeConstraint();
  constraint->completeAt = 4;
  EXPECT_EQ(generateHeld(3)->reason, StopReason::MaxTokens);
  // A prompt alone asks for nothing.
  *constraint = FakeConstraint();
  EXPECT_EQ(generateHeld(0)->reason, StopReason::MaxTokens);
  EXPECT_EQ(constraint->asked, 0);
}

// Six tokens of nine are certain: 3 to 7 together, and the first.
class ForcingConstraint : public FakeConstraint {
public:
  Result<std::span<const uint32_t>> allowed() override {
    if (!isForced(length))
      return FakeConstraint::allowed();
    bits = uint32_t(1) << idAt(length);
    return std::span<const uint32_t>(&bits, 1);
  }
  Result<std::span<const int32_t>> forced() override {
    ids.clear();
    for (int32_t at = length; isForced(at); ++at)
      ids.push_back(idAt(at));
    return std::span<const int32_t>(ids);
  }

  static bool isForced(int32_t at) {
    return at % 9 == 0 || (at % 9 >= 3 && at % 9 <= 7);
  }
  static int32_t idAt(int32_t at) { return (at * 5 + 1) % kVocab; }

private:
  uint32_t bits = 0;
  std::vector<int32_t> ids;
};

// Tokens that are certain are read without being chosen, and the text is the
// one that it would be if they were.
TEST(EngineConstraint, StepsOfForcedTokensAreSkipped) {
  for (const bool runsAhead : {false, true})
    for (const int64_t count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 40})
      for (const size_t i : {0, 1, 4}) {
        SCOPED_TRACE(std::to_string(runsAhead) + " " + std::to_string(count) +
                     " " + std::to_string(i));
        Fixture fixture({.runsAhead = runsAhead});
        fixture.device.behavior.varies = true;
        SamplerOptions sampling = optionsOf(i);
        sampling.logitBias.clear();
        std::vector<std::vector<int32_t>> texts;
        std::vector<int64_t> steps;
        for (const bool isAsked : {false, true}) {
          GenerationOptions options;
          options.maxTokens = count;
          options.constraint = std::make_shared<ForcingConstraint>();
          std::vector<int32_t> told;
          options.onToken = [&](int32_t id) { told.push_back(id); };
          if (isAsked) // how likely each token is, of all
            options.onLogProbs = [](const TextLogProbs &) {};
          std::unique_ptr<Sequence> sequence = fixture.sequence();
          Sampler sampler = *Sampler::create(sampling);
          const int64_t before = fixture.engine->counts().steps;
          const Result<GenerationResult> result =
              generate(*sequence, sampler, nullptr, tokens(9), options);
          ASSERT_TRUE(result.ok()) << result.message();
          EXPECT_EQ(result->reason, StopReason::MaxTokens);
          EXPECT_EQ(result->promptTokens, 9);
          EXPECT_EQ(told, result->ids);
          texts.push_back(result->ids);
          steps.push_back(fixture.engine->counts().steps - before);
        }
        ForcingConstraint constraint;
        EXPECT_EQ(texts[0], expected(tokens(9), sampling, size_t(count),
                                     fixture.device.behavior, &constraint));
        EXPECT_EQ(texts[1], texts[0]);
        if (count == 40) {
          EXPECT_EQ(steps[1], 40);
          EXPECT_LE(steps[0], runsAhead ? 26 : 16);
        }
      }
}

TEST(EngineConstraint, TextsMayBeForcedToTheirEnd) {
  Fixture fixture;
  for (const int32_t end : {1, 8, 17}) {
    GenerationOptions options;
    auto constraint = std::make_shared<ForcingConstraint>();
    constraint->completeAt = end;
    options.constraint = constraint;
    std::unique_ptr<Sequence> sequence = fixture.sequence();
    Sampler sampler = *Sampler::create({});
    const Result<GenerationResult> result =
        generate(*sequence, sampler, nullptr, tokens(3), options);
    ASSERT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->reason, StopReason::Complete);
    EXPECT_EQ(static_cast<int32_t>(result->ids.size()), end);
  }
  // A bias that excludes what is certain is an error, as it was.
  GenerationOptions options;
  options.constraint = std::make_shared<ForcingConstraint>();
  std::unique_ptr<Sequence> sequence = fixture.sequence();
  Sampler sampler = *Sampler::create(
      {.logitBias = {{ForcingConstraint::idAt(3), -INFINITY}}});
  const Result<GenerationResult> result =
      generate(*sequence, sampler, nullptr, tokens(3), options);
  EXPECT_NE(result.message().find("grammar allows"), std::string::npos)
      << result.message();
}

} // namespace
