//===- GenerationTest.cpp - Streaming, stopping, statistics ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Generation.h"

#include "FakeModel.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

/// The fake model's highest logit is always that of the last id.
constexpr int32_t kAnswer = kVocab - 1;

struct Fixture {
  explicit Fixture(int64_t context = 100, int64_t parallel = 1)
      : tokenizer(*Tokenizer::open(KF_SOURCE_DIR
                                   "/models/kf-stories/tokenizer.json")),
        sampler(*Sampler::create({})) {
    auto provider = [](const StepShape &shape) -> Result<Executable> {
      return fakeStep(shape);
    };
    model = std::make_unique<Model>(fakeConfig(), device, source, provider);
    engine = Engine::create(*model, {.contextLength = context,
                                     .parallel = parallel,
                                     .cancelled = &cancelled})
                 .take();
    sequence = engine->createSequence().take();
  }

  Result<GenerationResult> run(std::vector<int32_t> prompt,
                               const GenerationOptions &options) {
    return generate(*sequence, sampler, &tokenizer, prompt, options);
  }

  FakeModelDevice device;
  FakeSource source;
  Tokenizer tokenizer;
  Sampler sampler;
  std::atomic<bool> cancelled{false};
  std::unique_ptr<Model> model;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Sequence> sequence;
};

GenerationOptions limit(int64_t maxTokens) {
  GenerationOptions options;
  options.maxTokens = maxTokens;
  return options;
}

TEST(Generation, StreamsWhatItGenerates) {
  Fixture fixture;
  std::string streamed;
  GenerationOptions options = limit(5);
  options.onText = [&](std::string_view text) { streamed += text; };
  auto result = fixture.run({1, 2, 3}, options);
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->ids, std::vector<int32_t>(5, kAnswer));
  EXPECT_EQ(result->text, fixture.tokenizer.decode(result->ids));
  EXPECT_EQ(streamed, result->text);
  EXPECT_EQ(result->reason, StopReason::MaxTokens);
  EXPECT_EQ(result->promptTokens, 3);
  EXPECT_EQ(result->decodedTokens, 4); // nothing is read after the last token
  EXPECT_EQ(fixture.sequence->position(), 7);
  EXPECT_GT(result->prefillSeconds, 0.0);
}

TEST(Generation, StopTokenIsTheLast) {
  Fixture fixture;
  GenerationOptions options = limit(5);
  options.stopIds = {3, kAnswer};
  auto result = fixture.run({1, 2, 3}, options);
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->ids, std::vector<int32_t>{kAnswer});
  EXPECT_EQ(result->reason, StopReason::StopToken);
  EXPECT_EQ(result->decodedTokens, 0);
}

/// The text of n answers, which a stop text may span.
TEST(Generation, StopTextIsCutOff) {
  const std::string one = Fixture().tokenizer.decode({{kAnswer}});
  ASSERT_GE(one.size(), 1u);
  for (const std::string &stop : {one + one + one, one + one.substr(0, 1)}) {
    Fixture fixture;
    std::string streamed;
    GenerationOptions options = limit(9);
    options.stopTexts = {"nowhere", stop};
    options.onText = [&](std::string_view text) {
      EXPECT_FALSE(text.empty());
      streamed += text;
    };
    auto result = fixture.run({1, 2, 3}, options);
    ASSERT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->reason, StopReason::StopText);
    EXPECT_EQ(result->text, "");
    EXPECT_EQ(streamed, "");
    EXPECT_LT(result->ids.size(), 9u);
  }
}

/// What only begins a stop text is there when nothing follows.
TEST(Generation, HeldTextComesAtTheEnd) {
  const std::string one = Fixture().tokenizer.decode({{kAnswer}});
  Fixture fixture;
  std::string streamed;
  GenerationOptions options = limit(3);
  options.stopTexts = {one + one + one + one};
  options.onText = [&](std::string_view text) { streamed += text; };
  auto result = fixture.run({1, 2, 3}, options);
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->reason, StopReason::MaxTokens);
  EXPECT_EQ(result->text, fixture.tokenizer.decode(result->ids));
  EXPECT_EQ(streamed, result->text);
}

TEST(Generation, ContextFull) {
  Fixture fixture(8);
  auto result = fixture.run({1, 2, 3}, limit(100));
  ASSERT_TRUE(result.ok()) << result.message();
  // The token after the last position is known, but cannot be read.
  EXPECT_EQ(result->ids.size(), 6u);
  EXPECT_EQ(result->reason, StopReason::ContextFull);
  EXPECT_EQ(fixture.sequence->position(), 8);
}

TEST(Generation, NothingToGenerate) {
  Fixture fixture;
  auto result = fixture.run({1}, limit(0));
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_TRUE(result->ids.empty());
  EXPECT_EQ(result->reason, StopReason::MaxTokens);
}

TEST(Generation, Cancelled) {
  Fixture fixture;
  GenerationOptions options = limit(50);
  int pieces = 0;
  options.onText = [&](std::string_view) { fixture.cancelled = ++pieces == 3; };
  auto result = fixture.run({1, 2}, options);
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->reason, StopReason::Cancelled);
  EXPECT_EQ(result->ids.size(), 3u);
  EXPECT_EQ(result->promptTokens, 2);
}

TEST(Generation, CancelledWithinThePrompt) {
  Fixture fixture(1000);
  fixture.device.behavior.onRun = [&] { fixture.cancelled = true; };
  auto result = fixture.run(std::vector<int32_t>(800, 1), limit(50));
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->reason, StopReason::Cancelled);
  EXPECT_TRUE(result->ids.empty());
  EXPECT_EQ(result->promptTokens, 0);
  EXPECT_EQ(fixture.device.behavior.runs, 1);
  EXPECT_EQ(fixture.sequence->position(), 0);
}

TEST(Generation, Errors) {
  Fixture fixture(4);
  EXPECT_NE(fixture.run({}, limit(5)).message().find("no tokens"),
            std::string::npos);
  EXPECT_NE(
      fixture.run({1, 2, 3, 4, 5}, limit(5)).message().find("context is full"),
      std::string::npos);
}

/// One that cannot begin leaves the other's reading alone.
TEST(Generation, SequenceOfAnother) {
  Fixture fixture;
  Generation first(*fixture.sequence, fixture.sampler, nullptr, limit(3));
  ASSERT_TRUE(first.start({{1, 2}}).ok());
  {
    Sampler sampler = *Sampler::create({});
    Generation second(*fixture.sequence, sampler, nullptr, limit(3));
    EXPECT_NE(second.start({{1}}).message().find("is reading"),
              std::string::npos);
  }
  while (!first.isDone())
    fixture.engine->step();
  EXPECT_EQ(first.take()->reason, StopReason::MaxTokens);
}

/// By another one, in the step that both get a token of.
TEST(Generation, Destroyed) {
  Fixture fixture(100, 2);
  auto other = fixture.engine->createSequence().take();
  Sampler sampler = *Sampler::create({});
  auto second =
      std::make_unique<Generation>(*other, sampler, nullptr, limit(9));
  GenerationOptions options = limit(9);
  options.onToken = [&](int32_t) {
    second.reset();
    EXPECT_FALSE(other->isReading());
  };
  Generation first(*fixture.sequence, fixture.sampler, nullptr, options);
  ASSERT_TRUE(first.start({{1, 2}}).ok());
  ASSERT_TRUE(second->start({{3, 4}}).ok());
  while (!first.isDone())
    fixture.engine->step();
  EXPECT_EQ(other->position(), 2);
}

/// From a callback of its own: the token that it is called for is the last.
TEST(Generation, CancelledByItself) {
  for (bool byText : {false, true}) {
    Fixture fixture;
    int calls = 0;
    auto cancel = [&] {
      if (++calls == 3)
        fixture.sequence->cancel();
    };
    GenerationOptions options = limit(50);
    std::string streamed;
    options.onText = [&](std::string_view text) {
      streamed += text;
      if (byText)
        cancel();
    };
    if (!byText)
      options.onToken = [&](int32_t) { cancel(); };
    auto result = fixture.run({1, 2}, options);
    ASSERT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(result->reason, StopReason::Cancelled);
    EXPECT_EQ(result->ids.size(), 3u);
    EXPECT_EQ(result->text, fixture.tokenizer.decode(result->ids));
    EXPECT_EQ(streamed, result->text);
    EXPECT_EQ(fixture.sequence->position(), 4); // the last was not read
    EXPECT_FALSE(fixture.sequence->isReading());
    // It is as good as any other.
    EXPECT_EQ(fixture.run({3}, limit(2))->ids.size(), 2u);
  }
}

/// A text that is over is what it is.
TEST(Generation, CancelledAtItsEnd) {
  Fixture fixture;
  GenerationOptions options = limit(1);
  options.onToken = [&](int32_t) { fixture.sequence->cancel(); };
  auto result = fixture.run({1, 2}, options);
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->reason, StopReason::MaxTokens);
}

/// By another one, in the step that both get a token of: whoever is called
/// first.
TEST(Generation, CancelledByAnother) {
  Fixture fixture(100, 2);
  auto other = fixture.engine->createSequence().take();
  Sampler sampler = *Sampler::create({});
  Generation second(*other, sampler, nullptr, limit(9));
  GenerationOptions options = limit(9);
  options.onToken = [&](int32_t) { other->cancel(); };
  Generation first(*fixture.sequence, fixture.sampler, nullptr, options);
  ASSERT_TRUE(first.start({{1, 2}}).ok());
  ASSERT_TRUE(second.start({{3, 4}}).ok());
  fixture.engine->step();
  ASSERT_TRUE(second.isDone());
  auto result = second.take();
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->reason, StopReason::Cancelled);
  EXPECT_EQ(result->ids.size(), 1u);
  EXPECT_EQ(other->position(), 2);
  while (!first.isDone())
    fixture.engine->step();
  EXPECT_EQ(first.take()->ids.size(), 9u);
}

/// By a callback of its own, with all that it refers to. What the callback
/// holds lives until it returns; the address sanitizer sees what does not.
TEST(Generation, DestroyedByItself) {
  enum Callback { OnToken, OnText, OnLastText };
  for (Callback callback : {OnToken, OnText, OnLastText}) {
    Fixture fixture;
    auto tokenizer = std::make_unique<Tokenizer>(
        *Tokenizer::open(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json"));
    auto sampler = std::make_unique<Sampler>(*Sampler::create({}));
    std::unique_ptr<Generation> generation;
    int calls = 0;
    auto destroy = [&, held = std::make_unique<int>(7)]() mutable {
      ++calls;
      generation.reset();
      fixture.sequence.reset();
      sampler.reset();
      tokenizer.reset();
      EXPECT_EQ(*held, 7);
    };
    auto shared = std::make_shared<decltype(destroy)>(std::move(destroy));
    GenerationOptions options = limit(3);
    if (callback == OnToken)
      options.onToken = [shared = shared](int32_t) { (*shared)(); };
    else
      options.onText = [shared = shared](std::string_view) { (*shared)(); };
    // All text is held back until the end.
    if (callback == OnLastText)
      options.stopTexts = {tokenizer->decode(std::vector(4, kAnswer))};
    shared.reset(); // the options alone hold it
    generation = std::make_unique<Generation>(*fixture.sequence, *sampler,
                                              tokenizer.get(), options);
    options = {};
    ASSERT_TRUE(generation->start({{1, 2}}).ok());
    while (fixture.engine->step()) {
    }
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(generation, nullptr);
  }
}

/// The sequence goes on with another text, from the callback of the first.
TEST(Generation, ReplacedByItself) {
  Fixture fixture;
  std::unique_ptr<Generation> generation;
  GenerationOptions options = limit(5);
  options.onToken = [&](int32_t) {
    generation = std::make_unique<Generation>(
        *fixture.sequence, fixture.sampler, nullptr, limit(2));
    EXPECT_TRUE(generation->start({{5}}).ok());
  };
  generation = std::make_unique<Generation>(*fixture.sequence, fixture.sampler,
                                            nullptr, options);
  ASSERT_TRUE(generation->start({{1, 2}}).ok());
  while (!generation->isDone())
    fixture.engine->step();
  EXPECT_EQ(generation->take()->ids.size(), 2u);
  EXPECT_EQ(fixture.sequence->position(), 4); // 1, 2, 5 and the first answer
}

} // namespace
