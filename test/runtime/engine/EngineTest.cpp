//===- EngineTest.cpp - Sequences that are read together ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "runtime/model/TensorList.h"

#include <chrono>
#include <set>
#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

using Names = std::vector<std::string>;

//===----------------------------------------------------------------------===//
// One sequence
//===----------------------------------------------------------------------===//

TEST(Engine, AnyChunkingGivesTheSameLogits) {
  for (bool shared : {true, false})
    for (size_t count : {1, 2, 15, 16, 17, 40, 512, 513, 600, 1030, 1200})
      for (size_t first : {size_t(0), size_t(1), size_t(5), count / 2}) {
        SCOPED_TRACE(std::to_string(first) + " of " + std::to_string(count));
        const std::vector<int32_t> ids = tokens(count);
        const std::span<const int32_t> all(ids);
        Fixture fixture({}, shared);
        auto sequence = fixture.sequence();
        first = std::min(first, count - 1);
        if (first)
          EXPECT_EQ(readAll(*sequence, all.first(first)).message(), "");
        const Status status = expectLogits(*sequence, all.subspan(first));
        EXPECT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(sequence->position(), static_cast<int64_t>(count));
      }
}

TEST(Engine, LogitsFromSomeIdOn) {
  for (size_t first : {0, 1, 16, 17, 90, 99, 100, 101}) {
    Fixture fixture({.rowsPerStep = 30});
    auto sequence = fixture.sequence();
    const Status status = expectLogits(*sequence, tokens(100), first);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(Engine, ProgramsAreAskedForWhenNeeded) {
  Fixture fixture;
  auto read = [&](size_t count) {
    EXPECT_TRUE(readAll(*fixture.sequence(), tokens(count, count)).ok());
    return fixture.asked;
  };
  EXPECT_TRUE(fixture.asked.empty());
  EXPECT_EQ(read(1), Names({"body_1"}));
  EXPECT_EQ(read(5), Names({"body_1", "body_16"}));
  EXPECT_EQ(read(16).size(), 2u);
  EXPECT_EQ(read(17), Names({"body_1", "body_16", "body_64"}));
  EXPECT_TRUE(expectLogits(*fixture.sequence(), tokens(16)).ok());
  EXPECT_EQ(fixture.asked.back(), "head_16");
  EXPECT_TRUE(expectLogits(*fixture.sequence(), tokens(17)).ok());
  EXPECT_EQ(fixture.asked.back(), "head_64");
  EXPECT_EQ(fixture.asked.size(), 5u);
  // What is there serves, rather than being compiled for.
  EXPECT_TRUE(expectLogits(*fixture.sequence(), tokens(5)).ok());
  EXPECT_EQ(fixture.asked.size(), 5u);
  Fixture large;
  EXPECT_TRUE(readAll(*large.sequence(), tokens(512 + 8)).ok());
  EXPECT_EQ(large.asked, Names({"body_512"}));
  // Steps of more rows leave shorter prompts a program of their own.
  Fixture wide({.rowsPerStep = 600});
  EXPECT_TRUE(readAll(*wide.sequence(), tokens(500, 1)).ok());
  EXPECT_TRUE(readAll(*wide.sequence(), tokens(600, 2)).ok());
  EXPECT_EQ(wide.asked, Names({"body_512", "body_2048"}));
  Fixture widest({.rowsPerStep = 600});
  EXPECT_TRUE(readAll(*widest.sequence(), tokens(600 + 100)).ok());
  EXPECT_EQ(widest.asked, Names({"body_2048"}));
  // But not for sequences that generate: those take many steps.
  Fixture several({.parallel = 40});
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Answer> answers(40);
  for (Answer &answer : answers) {
    sequences.push_back(several.sequence());
    EXPECT_TRUE(
        begin(*sequences.back(), tokens(20, sequences.size()), answer).ok());
  }
  several.runAll();
  EXPECT_EQ(several.asked.front(), "body_512");
  EXPECT_EQ(std::ranges::count(several.asked, "body_16"), 0);
  for (size_t count : {size_t(9), size_t(40)}) {
    for (size_t i = 0; i < count; ++i)
      EXPECT_TRUE(begin(*sequences[i], tokens(1), answers[i]).ok());
    several.runAll();
  }
  EXPECT_EQ(std::ranges::count(several.asked, "body_16"), 1);
  EXPECT_EQ(std::ranges::count(several.asked, "body_64"), 1);
}

/// Of which there are few, by the rows that they have room for alone.
TEST(Engine, MixedRequestsTakeTheSamePrograms) {
  using NameSet = std::set<std::string>;
  auto programsOf = [](size_t count, int64_t contextLength) {
    Fixture fixture({.contextLength = contextLength, .parallel = 64});
    fixture.device.behavior.varies = true;
    std::vector<std::unique_ptr<Text>> texts;
    std::vector<std::unique_ptr<Sequence>> others;
    std::vector<Answer> answers(count);
    for (size_t i = 0; i < count; ++i) {
      if (i % 5 == 4) { // logits, of all tokens or of the last one
        Reading reading;
        reading.ids = tokens(90 + i, i);
        reading.firstLogits = i % 2 ? 0 : reading.ids.size() - 1;
        reading.onLogits = [](size_t, std::span<const float>) {
          return Status();
        };
        reading.done = answers[i].take();
        others.push_back(fixture.sequence());
        EXPECT_TRUE(others.back()->read(std::move(reading)).ok());
        continue;
      }
      // Greedy, sampled, penalized and biased ones, of all lengths.
      texts.push_back(std::make_unique<Text>(fixture.sequence(), optionsOf(i),
                                             5 + i * 7 % 20));
      EXPECT_TRUE(texts.back()->read(tokens(100 + i * 13 % 90, i)).ok());
    }
    fixture.runAll();
    for (const auto &text : texts)
      EXPECT_EQ(text->error.message(), "");
    const NameSet names(fixture.asked.begin(), fixture.asked.end());
    EXPECT_EQ(names.size(), fixture.asked.size()) << "compiled twice";
    return names;
  };
  const NameSet all = {"body_1",   "body_16",   "body_64",  "body_512",
                       "head_1",   "head_16",   "head_64",  "head_512",
                       "choose_1", "choose_16", "choose_64"};
  for (size_t count = 1; count <= 64; ++count)
    for (const std::string &name : programsOf(count, 300))
      EXPECT_TRUE(all.contains(name)) << name << " for " << count;
  EXPECT_EQ(programsOf(2, 300), programsOf(3, 300));
  EXPECT_EQ(programsOf(3, 300), programsOf(4, 300));
  for (size_t count : {1, 4, 64})
    EXPECT_EQ(programsOf(count, 300), programsOf(count, 301)) << count;
}

TEST(Engine, RowsOfProgramsAreThoseOfTheProgramsThatRun) {
  auto last = [](const Fixture &fixture) { return fixture.asked.back(); };
  // A context of few positions has programs of the same sizes as a larger one.
  Fixture shortOnes({.contextLength = 100});
  EXPECT_EQ(shortOnes.engine->rowsPerStep(), 100);
  EXPECT_EQ(shortOnes.engine->bodyRows(1, 1), 1);
  EXPECT_EQ(shortOnes.engine->bodyRows(16, 1), 16);
  EXPECT_EQ(shortOnes.engine->bodyRows(17, 1), 64);
  EXPECT_EQ(shortOnes.engine->bodyRows(65, 1), 512);
  EXPECT_TRUE(readAll(*shortOnes.sequence(), tokens(17)).ok());
  EXPECT_EQ(last(shortOnes), "body_64");
  // What is there serves a prompt.
  EXPECT_EQ(shortOnes.engine->bodyRows(16, 1), 64);
  EXPECT_TRUE(readAll(*shortOnes.sequence(), tokens(16, 2)).ok());
  EXPECT_EQ(shortOnes.asked.size(), 1u);

  Fixture several({.parallel = 20});
  EXPECT_EQ(several.engine->rowsPerStep(), 512);
  EXPECT_EQ(several.engine->chosenPerStep(), 20);
  EXPECT_EQ(several.engine->bodyRows(20, 1), 512);
  EXPECT_EQ(several.engine->bodyRows(20, 20), 64);
  EXPECT_EQ(several.engine->bodyRows(65, 20), 512);
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Answer> answers(20);
  for (Answer &answer : answers) {
    sequences.push_back(several.sequence());
    EXPECT_TRUE(
        begin(*sequences.back(), tokens(1, sequences.size()), answer).ok());
  }
  several.runAll();
  EXPECT_EQ(several.asked, Names({"body_64"}));
  // A program that sequences have left serves no others.
  EXPECT_EQ(several.engine->bodyRows(10, 10), 16);
}

/// Of many sequences, rows are mostly of one each; those of prompts are not.
TEST(Engine, ManySequencesHaveProgramsOfTheirOwn) {
  for (const auto &[parallel, rows, sequences, expected] :
       {std::tuple<int64_t, int64_t, size_t, int64_t>(64, 65, 64, 512),
        {65, 65, 65, 128},
        {65, 65, 33, 128},
        {65, 65, 32, 512},
        {128, 129, 128, 512},
        {129, 128, 128, 128},
        {129, 129, 129, 256},
        {256, 256, 256, 256},
        {256, 257, 256, 512},
        {256, 200, 1, 512},
        {1000, 256, 256, 256}}) {
    Fixture fixture({.parallel = parallel, .pages = 1000});
    EXPECT_EQ(fixture.engine->bodyRows(rows, sequences), expected)
        << parallel << " sequences, " << rows << " rows of " << sequences;
    EXPECT_EQ(fixture.engine->chosenPerStep(),
              std::min<int64_t>(parallel, 256));
  }
}

TEST(Engine, AsManyTokensAreChosenAsSequencesGenerate) {
  constexpr size_t count = 200;
  Fixture fixture({.contextLength = 40, .parallel = count, .pages = count});
  std::vector<std::unique_ptr<Text>> texts;
  for (size_t i = 0; i < count; ++i) {
    texts.push_back(
        std::make_unique<Text>(fixture.sequence(), SamplerOptions{}, 3));
    EXPECT_TRUE(texts.back()->read(tokens(1, i)).ok());
  }
  fixture.runAll();
  for (const auto &text : texts)
    EXPECT_EQ(text->error.message(), "");
  EXPECT_EQ(fixture.asked, Names({"body_256", "head_256", "choose_256"}));
  EXPECT_EQ(fixture.engine->counts().chosen, 3 * int64_t(count));
}

TEST(Engine, FewProgramsDoForAllSteps) {
  using Shapes = std::vector<StepShape>;
  constexpr StepPart body = StepPart::Body, head = StepPart::Head,
                     choose = StepPart::Choose;
  auto asked = [](const Shapes &shapes, int64_t parallel, size_t count) {
    Fixture fixture({.parallel = parallel}, true, shapes);
    EXPECT_TRUE(readAll(*fixture.sequence(), tokens(count)).ok());
    return fixture.asked;
  };
  const Shapes two = {{body, 1}, {body, 512}};
  EXPECT_EQ(asked(two, 1, 600), Names({"body_512"}));
  EXPECT_EQ(asked(two, 1, 513), Names({"body_512", "body_1"}));
  EXPECT_EQ(asked(two, 1, 5), Names({"body_512"}));
  EXPECT_EQ(asked({{body, 40}}, 1, 1), Names({"body_40"}));
  EXPECT_EQ(asked({{body, 1}}, 1, 5), Names({"body_1"}));
  // What chooses bounds how many generate in a step.
  Fixture few({.parallel = 20}, true,
              {{body, 1}, {body, 64}, {head, 4}, {head, 9}, {choose, 4}});
  EXPECT_EQ(few.engine->rowsPerStep(), 64);
  EXPECT_EQ(few.engine->chosenPerStep(), 4);
  EXPECT_EQ(few.engine->bodyRows(2, 2), 64);
  Text text(few.sequence(), {}, 3);
  EXPECT_TRUE(text.read(tokens(5)).ok());
  few.runAll();
  EXPECT_EQ(few.asked, Names({"body_64", "head_4", "choose_4", "body_1"}));
  // Logits are computed in as many pieces as a head has room for.
  EXPECT_TRUE(expectLogits(*few.sequence(), tokens(40)).ok());
  EXPECT_EQ(few.asked.back(), "head_9");
}

TEST(Engine, FullContext) {
  Fixture fixture({.contextLength = 20});
  auto sequence = fixture.sequence();
  EXPECT_TRUE(readAll(*sequence, tokens(18)).ok());
  const int runs = fixture.device.behavior.runs;
  EXPECT_EQ(readAll(*sequence, tokens(3)).message(),
            "context is full: 18 of 20 positions are used, no room for 3 more");
  EXPECT_EQ(fixture.device.behavior.runs, runs);
  EXPECT_EQ(sequence->position(), 18);
  EXPECT_TRUE(readAll(*sequence, tokens(2)).ok());
  EXPECT_EQ(readAll(*sequence, tokens(1)).message(),
            "context is full: 20 of 20 positions are used, no room for 1 more");
  EXPECT_TRUE(sequence->rewind(0).ok());
  EXPECT_TRUE(readAll(*sequence, tokens(1)).ok());
}

TEST(Engine, Rewind) {
  Fixture fixture;
  auto sequence = fixture.sequence();
  ASSERT_TRUE(readAll(*sequence, tokens(40)).ok());
  ASSERT_TRUE(sequence->rewind(25).ok());
  EXPECT_EQ(sequence->position(), 25);
  // Others follow the 25: fewer, and then more than there were.
  for (size_t count : {1, 3, 30})
    EXPECT_TRUE(
        expectLogits(*sequence, std::vector<int32_t>(count, count % 7)).ok());
  ASSERT_TRUE(sequence->rewind(0).ok());
  EXPECT_TRUE(expectLogits(*sequence, tokens(1)).ok());
  EXPECT_EQ(sequence->rewind(2).message(),
            "cannot go back to position 2; 1 tokens were read");
  EXPECT_FALSE(sequence->rewind(-1).ok());
  EXPECT_EQ(sequence->position(), 1);
}

TEST(Engine, WhatCannotBeRead) {
  Fixture fixture;
  auto sequence = fixture.sequence();
  EXPECT_EQ(readAll(*sequence, {}).message(),
            "there are no tokens to read; begin with the begin-of-text token");
  EXPECT_EQ(readAll(*sequence, {{kVocab}}).message(),
            "token id 11 is outside the vocabulary of 11");
  EXPECT_EQ(readAll(*sequence, std::vector<int32_t>{0, -1}).message(),
            "token id -1 is outside the vocabulary of 11");
  Answer answer, other;
  EXPECT_TRUE(begin(*sequence, tokens(3), answer).ok());
  const std::string reads =
      "the sequence is reading; wait for the end, or cancel";
  EXPECT_EQ(begin(*sequence, tokens(3), other).message(), reads);
  EXPECT_EQ(sequence->rewind(0).message(), reads);
  EXPECT_EQ(sequence->fork().message(), reads);
  EXPECT_TRUE(fixture.asked.empty());
  fixture.runAll();
  EXPECT_TRUE(answer.outcome->ok());
}

TEST(Engine, WrongOptions) {
  FakeModelDevice device;
  FakeSource source;
  Model model(fakeConfig(), device, source, nullptr);
  for (int64_t context : {int64_t(-1), int64_t(1201), INT64_MAX})
    EXPECT_EQ(Engine::create(model, {.contextLength = context}).message(),
              "a context of " + std::to_string(context) +
                  " positions is not possible; the model was made for 1 to "
                  "1200");
  EXPECT_FALSE(Engine::create(model, {.parallel = 0}).ok());
  EXPECT_FALSE(Engine::create(model, {.parallel = INT64_MAX}).ok());
  EXPECT_FALSE(Engine::create(model, {.rowsPerStep = 0}).ok());
  EXPECT_FALSE(Engine::create(model, {.pages = -1}).ok());
  EXPECT_FALSE(Engine::create(model, {.pages = INT64_MAX}).ok());
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

TEST(Engine, FailureOfTheProvider) {
  Fixture fixture;
  auto sequence = fixture.sequence();
  fixture.failure = Status::error("no compiler");
  EXPECT_EQ(readAll(*sequence, tokens(20)).message(), "no compiler");
  EXPECT_EQ(sequence->position(), 0);
  EXPECT_EQ(fixture.engine->memory().total(), 0u);
  fixture.failure = Status();
  EXPECT_TRUE(expectLogits(*sequence, tokens(20)).ok());
}

/// What was read before the failure is taken back with it.
TEST(Engine, FailureOfTheDevice) {
  Fixture fixture;
  auto sequence = fixture.sequence();
  EXPECT_TRUE(readAll(*sequence, tokens(70)).ok());
  fixture.device.behavior.runs = 0;
  fixture.device.behavior.onRun = [&] {
    if (fixture.device.behavior.runs == 2)
      fixture.device.behavior.failure = Status::error("on fire");
  };
  EXPECT_EQ(readAll(*sequence, tokens(600)).message(), "on fire");
  EXPECT_EQ(sequence->position(), 70);
  fixture.device.behavior.failure = Status();
  fixture.device.behavior.onRun = nullptr;
  EXPECT_TRUE(expectLogits(*sequence, tokens(600)).ok());
}

TEST(Engine, CallbackEndsAReading) {
  Fixture fixture;
  auto sequence = fixture.sequence();
  const Status status = readLogits(
      *sequence, tokens(20), [](size_t index, std::span<const float>) {
        return index == 3 ? Status::error("enough") : Status();
      });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(sequence->position(), 0);
}

/// Between any two steps, and while programs are made.
TEST(Engine, CancelledLeavesThePosition) {
  const std::vector<int32_t> ids = tokens(1100);
  const std::span<const int32_t> all(ids);
  for (int last = 1; last <= 3; ++last) {
    SCOPED_TRACE(last);
    Fixture fixture;
    auto sequence = fixture.sequence();
    EXPECT_TRUE(readAll(*sequence, all.first(5)).ok());
    FakeBehavior &behavior = fixture.device.behavior;
    behavior.runs = 0;
    behavior.onRun = [&] { fixture.cancelled = behavior.runs == last; };
    // Three chunks: 512, 512 and 71.
    EXPECT_TRUE(readAll(*sequence, all.subspan(5)).isCancelled());
    EXPECT_EQ(behavior.runs, last);
    EXPECT_EQ(sequence->position(), 5);
    EXPECT_TRUE(readAll(*sequence, all.subspan(5)).isCancelled());
    EXPECT_EQ(behavior.runs, last);

    behavior.onRun = nullptr;
    fixture.cancelled = false;
    EXPECT_TRUE(expectLogits(*sequence, all.subspan(5)).ok());
  }
  Fixture fixture;
  fixture.cancelled = true;
  auto sequence = fixture.sequence();
  EXPECT_TRUE(readAll(*sequence, all).isCancelled());
  EXPECT_TRUE(fixture.asked.empty());
}

TEST(Engine, StepsThatDoNotFit) {
  const std::function<void(Executable &)> changes[] = {
      [](Executable &step) { step.inputs.pop_back(); },
      [](Executable &step) { step.inputs[0].type = DataType::I64; },
      [](Executable &step) { step.outputs[0].type = DataType::I32; },
      [](Executable &step) { step.outputs.clear(); },
      [](Executable &step) { step.caches.clear(); },
      [](Executable &step) { step.caches[0].kvHeads = 2; },
      [](Executable &step) { step.caches[0].page = 128; },
      [](Executable &step) { step.inputs[3].shape[1] = 1; },
      [](Executable &step) { step.namedSizes = {{"wanted", 0, 4}}; },
      [](Executable &step) { step.maxTokens = 2; }};
  for (const auto &change : changes) {
    Fixture fixture;
    fixture.change = change;
    EXPECT_EQ(readAll(*fixture.sequence(), tokens(1)).message(),
              "the program 'body_1' that was compiled for 'body_1' does not "
              "fit the model");
  }
  // Caches that differ between programs.
  Fixture fixture;
  fixture.change = [](Executable &step) {
    if (step.programName == "body_16")
      step.caches[0].keyBlock = 8;
  };
  auto sequence = fixture.sequence();
  EXPECT_TRUE(readAll(*sequence, tokens(1)).ok());
  EXPECT_EQ(readAll(*sequence, tokens(3)).message(),
            "program 'body_16': two programs of one engine lay cache 0 out "
            "differently; compile them alike");
  EXPECT_EQ(sequence->position(), 1);
}

//===----------------------------------------------------------------------===//
// Many sequences
//===----------------------------------------------------------------------===//

/// Who generates gets a row in every step while a long prompt is read, and the
/// prompt the rest; neither waits for the other to end.
TEST(Engine, PromptsAreReadBesideTexts) {
  Fixture fixture({.contextLength = 1000, .parallel = 4, .rowsPerStep = 10});
  std::vector<std::unique_ptr<Text>> texts;
  for (size_t i = 0; i < 3; ++i) {
    texts.push_back(
        std::make_unique<Text>(fixture.sequence(), SamplerOptions(), 900));
    EXPECT_TRUE(texts.back()->read(tokens(1, i)).ok());
  }
  fixture.engine->step();
  auto prompt = fixture.sequence();
  Answer answer;
  EXPECT_TRUE(begin(*prompt, tokens(700, 3), answer).ok());
  for (int step = 1; step <= 50; ++step) {
    fixture.engine->step();
    EXPECT_EQ(prompt->position(), step * 7);
    for (const auto &text : texts)
      EXPECT_EQ(text->chosen.size(), 1u + step);
  }
}

/// With fewer rows than sequences, they take turns.
TEST(Engine, TurnsAreTaken) {
  Fixture fixture({.contextLength = 400, .parallel = 8, .rowsPerStep = 4});
  std::vector<std::unique_ptr<Text>> texts;
  for (size_t i = 0; i < 8; ++i) {
    texts.push_back(
        std::make_unique<Text>(fixture.sequence(), SamplerOptions(), 300));
    EXPECT_TRUE(texts.back()->read(tokens(1, i)).ok());
  }
  auto prompt = fixture.sequence();
  Answer answer;
  EXPECT_TRUE(begin(*prompt, tokens(40), answer).ok());
  for (int step = 0; step < 180; ++step)
    fixture.engine->step();
  for (const auto &text : texts)
    EXPECT_NEAR(static_cast<double>(text->chosen.size()), 85, 6);
  EXPECT_TRUE(answer.isDone());
}

/// Readings that want logits and readings that want tokens share steps.
TEST(Engine, LogitsBesideTexts) {
  Fixture fixture({.parallel = 2});
  Text text(fixture.sequence(), SamplerOptions(), 100);
  EXPECT_TRUE(text.read(tokens(3)).ok());
  auto sequence = fixture.sequence();
  EXPECT_TRUE(expectLogits(*sequence, tokens(700, 5)).ok());
  EXPECT_EQ(text.chosen.size(), 2u);
  EXPECT_EQ(fixture.engine->counts().steps, 2);
}

TEST(Engine, CommonPrefixesAreReadOnce) {
  const std::vector<int32_t> prefix = tokens(400);
  for (const bool together : {true, false}) {
    Fixture fixture({.parallel = 16, .rowsPerStep = 100});
    fixture.device.behavior.varies = true;
    std::vector<std::unique_ptr<Text>> texts;
    for (size_t i = 0; i < 16; ++i) {
      std::vector<int32_t> ids = prefix;
      // Behind the prefix come tokens that differ from the first on.
      ids.push_back(static_cast<int32_t>(i % kVocab));
      ids.push_back(static_cast<int32_t>(i / kVocab));
      for (int32_t id : tokens(20, i))
        ids.push_back(id);
      texts.push_back(
          std::make_unique<Text>(fixture.sequence(), optionsOf(i), 5));
      EXPECT_TRUE(texts.back()->read(ids).ok());
      if (!together)
        fixture.runAll();
    }
    fixture.runAll();
    int64_t reused = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(texts[i]->error.ok()) << texts[i]->error.message();
      std::vector<int32_t> ids(texts[i]->sequence->tokens().begin(),
                               texts[i]->sequence->tokens().begin() + 422);
      EXPECT_EQ(texts[i]->chosen,
                expected(ids, optionsOf(i), 5, fixture.device.behavior));
      reused += texts[i]->sequence->reusedTokens();
      if (i)
        EXPECT_GE(texts[i]->sequence->reusedTokens(), 400);
    }
    EXPECT_EQ(texts[0]->sequence->reusedTokens(), 0);
    // All rows but those of the prefix, which were read once.
    EXPECT_EQ(fixture.device.behavior.rows, 16 * (422 + 4) - reused);
  }
}

/// Those that want all logits can take over nothing, and wait for nobody.
TEST(Engine, LogitsDoNotWaitForPrefixes) {
  Fixture fixture({.parallel = 4, .rowsPerStep = 400});
  std::vector<std::unique_ptr<Sequence>> sequences;
  for (size_t i = 0; i < 4; ++i) {
    sequences.push_back(fixture.sequence());
    Reading reading;
    reading.ids = tokens(100);
    reading.onLogits = [](size_t, std::span<const float>) { return Status(); };
    EXPECT_TRUE(sequences.back()->read(std::move(reading)).ok());
  }
  fixture.runAll();
  EXPECT_EQ(fixture.engine->counts().steps, 1);
}

/// Of a prompt that is there already, the last token is read again.
TEST(Engine, ASamePromptIsReused) {
  Fixture fixture({.parallel = 2});
  fixture.device.behavior.varies = true;
  std::vector<int32_t> first;
  for (int i = 0; i < 3; ++i) {
    Text text(fixture.sequence(), SamplerOptions(), 4);
    EXPECT_TRUE(text.read(tokens(129)).ok());
    fixture.runAll();
    EXPECT_EQ(text.sequence->reusedTokens(), i ? 128 : 0);
    if (i == 0)
      first = text.chosen;
    EXPECT_EQ(text.chosen, first);
  }
}

TEST(Engine, Forks) {
  Fixture fixture({.parallel = 4});
  fixture.device.behavior.varies = true;
  auto first = fixture.sequence();
  EXPECT_TRUE(readAll(*first, tokens(100)).ok());
  std::vector<std::unique_ptr<Text>> texts;
  for (size_t i = 0; i < 3; ++i) {
    texts.push_back(
        std::make_unique<Text>(first->fork().take(), SamplerOptions(), 90));
    EXPECT_TRUE(texts.back()->read(tokens(i + 1, 5 + i)).ok());
  }
  fixture.runAll();
  for (size_t i = 0; i < 3; ++i) {
    std::vector<int32_t> ids = tokens(100);
    for (int32_t id : tokens(i + 1, 5 + i))
      ids.push_back(id);
    EXPECT_EQ(texts[i]->chosen,
              expected(ids, SamplerOptions(), 90, fixture.device.behavior));
  }
  EXPECT_EQ(first->position(), 100);
}

TEST(Engine, BadLogitsEndTheirSequenceAlone) {
  Fixture fixture({.parallel = 2});
  fixture.device.behavior.varies = true;
  fixture.device.behavior.poison = 7;
  Text bad(fixture.sequence(), SamplerOptions(), 30);
  Text good(fixture.sequence(), {.logitBias = {{7, -INFINITY}}}, 30);
  const std::vector<int32_t> healthy = {1, 2, 3};
  EXPECT_TRUE(bad.read({1, 2, 7}).ok());
  EXPECT_TRUE(good.read(healthy).ok());
  fixture.runAll();
  EXPECT_EQ(bad.error.message(), "model 'the fake': logits are not finite");
  EXPECT_EQ(bad.error.code(), StatusCode::Internal);
  EXPECT_EQ(bad.sequence->position(), 0);
  EXPECT_EQ(bad.sequence->reusedTokens(), 0);
  EXPECT_EQ(good.chosen, expected(healthy, {.logitBias = {{7, -INFINITY}}}, 30,
                                  fixture.device.behavior));
  // Biases may leave nothing to choose.
  SamplerOptions none;
  for (int64_t id = 0; id < kVocab; ++id)
    none.logitBias.push_back({id, -INFINITY});
  Text nothing(fixture.sequence(), none, 1);
  EXPECT_TRUE(nothing.read({1}).ok());
  fixture.runAll();
  EXPECT_EQ(nothing.error.message(),
            "no token can be chosen: logits are not finite, or biases of -inf "
            "exclude all tokens");
}

/// Why logits are not finite, the weights say, and nobody who runs steps reads
/// them: whoever wants to know does, once.
TEST(Engine, BadLogitsAreExplainedLater) {
  Fixture fixture;
  fixture.device.behavior.poison = 7;
  const Model &model = *fixture.model;
  // The tensors of the fake's configuration, one of which has an infinity.
  std::vector<float> values(1 << 12, 1.0f);
  for (const ListedTensor &tensor : listTensors(model.config())) {
    const uint64_t bytes = *checkedByteCount(DataType::F32, tensor.shape);
    ASSERT_LE(bytes, values.size() * 4);
    fixture.source.tensors[tensor.name] = {DataType::F32, tensor.shape,
                                           values.data(), bytes};
  }
  std::vector<float> bad(values);
  bad[1] = INFINITY;
  TensorView &last = fixture.source.tensors.rbegin()->second;
  last.data = bad.data();
  const std::string name = fixture.source.tensors.rbegin()->first;

  Answer answer;
  const Sampler sampler = *Sampler::create({});
  EXPECT_FALSE(model.gaveBadLogits());
  EXPECT_EQ(model.explain(Status::error("another")).message(), "another");
  auto sequence = fixture.sequence();
  EXPECT_TRUE(begin(*sequence, {{1, 7}}, answer, &sampler).ok());
  fixture.runAll();
  EXPECT_EQ(answer.error(), "model 'the fake': logits are not finite");
  EXPECT_TRUE(fixture.source.finds.empty());

  EXPECT_TRUE(model.gaveBadLogits());
  const Status explained = model.explain(answer.outcome->status());
  EXPECT_EQ(explained.message(),
            "model 'the fake': logits are not finite; tensor '" + name +
                "' has an infinity in row 0");
  EXPECT_FALSE(fixture.source.finds.empty());
  fixture.source.finds.clear();
  EXPECT_EQ(model.explain(answer.outcome->status()).message(),
            explained.message());
  EXPECT_TRUE(fixture.source.finds.empty()); // it is known now
}

/// What went wrong once does not go on to others.
TEST(Engine, BadKeysAreNotReused) {
  Fixture fixture({.parallel = 2});
  fixture.device.behavior.poison = 1;
  Text bad(fixture.sequence(), SamplerOptions(), 1);
  EXPECT_TRUE(bad.read(tokens(150)).ok());
  fixture.runAll();
  EXPECT_FALSE(bad.error.ok());
  fixture.device.behavior.poison = -1;
  Text good(fixture.sequence(), SamplerOptions(), 1);
  EXPECT_TRUE(good.read(tokens(150)).ok());
  fixture.runAll();
  EXPECT_TRUE(good.error.ok());
  EXPECT_EQ(good.sequence->reusedTokens(), 0);
}

TEST(Engine, CancelEndsOneReading) {
  Fixture fixture({.parallel = 2, .rowsPerStep = 8});
  auto first = fixture.sequence(), second = fixture.sequence();
  Answer one, two;
  EXPECT_TRUE(begin(*first, tokens(100), one).ok());
  EXPECT_TRUE(begin(*second, tokens(50, 6), two).ok());
  fixture.engine->step();
  fixture.engine->step();
  EXPECT_FALSE(one.isDone());
  first->cancel();
  ASSERT_TRUE(one.isDone());
  EXPECT_TRUE(one.outcome->status().isCancelled());
  EXPECT_EQ(first->position(), 0);
  first->cancel();
  fixture.runAll();
  EXPECT_TRUE(two.outcome->ok());
  EXPECT_TRUE(expectLogits(*first, tokens(100)).ok());
}

/// One that ended in the same step learns at once what came of it.
TEST(Engine, CancelOfWhatHasEnded) {
  Fixture fixture({.parallel = 2});
  auto first = fixture.sequence(), second = fixture.sequence();
  Answer answer;
  Reading reading;
  reading.ids = tokens(3);
  reading.done = [&](const Reading::Outcome &) {
    EXPECT_TRUE(second->isReading());
    second->cancel();
    EXPECT_FALSE(second->isReading());
    EXPECT_TRUE(answer.isDone());
  };
  EXPECT_TRUE(first->read(std::move(reading)).ok());
  EXPECT_TRUE(begin(*second, tokens(3, 4), answer).ok());
  fixture.runAll();
  ASSERT_TRUE(answer.isDone());
  EXPECT_TRUE(answer.outcome->ok());
}

/// Who goes on from `done` does not after a cancel(): within it, or of what has
/// ended and is told by it.
TEST(Engine, CancelKeepsDoneFromReading) {
  Fixture fixture({.parallel = 2});
  auto first = fixture.sequence(), second = fixture.sequence();
  Answer unused;
  Status within, told;
  auto readerOf = [&](Sequence &sequence, Status &status,
                      const std::function<void()> &first) {
    Reading reading;
    reading.ids = tokens(3);
    reading.done = [&, first](const Reading::Outcome &outcome) {
      EXPECT_TRUE(outcome.ok());
      first();
      status = begin(sequence, tokens(2), unused);
    };
    return reading;
  };
  EXPECT_TRUE(first
                  ->read(readerOf(*first, within,
                                  [&] {
                                    second->cancel();
                                    first->cancel();
                                    first->cancel();
                                  }))
                  .ok());
  EXPECT_TRUE(second->read(readerOf(*second, told, [] {})).ok());
  fixture.runAll();
  EXPECT_TRUE(within.isCancelled()) << within.message();
  EXPECT_TRUE(told.isCancelled()) << told.message();
  EXPECT_EQ(first->position(), 3);
  EXPECT_EQ(second->position(), 3);
  // Afterwards they are as good as any.
  EXPECT_TRUE(readAll(*first, tokens(2)).ok());
  EXPECT_TRUE(readAll(*second, tokens(2)).ok());
}

/// A reading that was cancelled says so itself: `done` may begin another one.
TEST(Engine, ReadsOnFromCancelledReading) {
  Fixture fixture({.parallel = 2});
  auto sequence = fixture.sequence();
  Answer again;
  Reading reading;
  reading.ids = tokens(3);
  reading.done = [&](const Reading::Outcome &outcome) {
    EXPECT_TRUE(outcome.status().isCancelled());
    EXPECT_TRUE(begin(*sequence, tokens(2), again).ok());
  };
  EXPECT_TRUE(sequence->read(std::move(reading)).ok());
  sequence->cancel();
  fixture.runAll();
  EXPECT_TRUE(again.isDone());
  EXPECT_EQ(sequence->position(), 2);
}

/// What readings call may begin, cancel and destroy others.
TEST(Engine, CallbacksMayDoAnything) {
  Fixture fixture({.parallel = 8});
  auto other = fixture.sequence(), third = fixture.sequence();
  auto first = fixture.sequence();
  Answer otherAnswer, thirdAnswer, again;
  bool called = false;
  Reading reading;
  reading.ids = tokens(3);
  reading.done = [&](const Reading::Outcome &outcome) {
    called = true;
    EXPECT_TRUE(outcome.ok());
    other.reset();   // has ended in the same step, and is told nothing
    third->cancel(); // likewise, but it is told that it was read
    EXPECT_TRUE(begin(*first, tokens(2), again).ok());
  };
  EXPECT_TRUE(first->read(std::move(reading)).ok());
  EXPECT_TRUE(begin(*other, tokens(3, 4), otherAnswer).ok());
  EXPECT_TRUE(begin(*third, tokens(3, 5), thirdAnswer).ok());
  fixture.runAll();
  EXPECT_TRUE(called);
  EXPECT_FALSE(otherAnswer.isDone());
  ASSERT_TRUE(thirdAnswer.isDone());
  EXPECT_TRUE(thirdAnswer.outcome->ok());
  EXPECT_TRUE(again.isDone());
  EXPECT_EQ(first->position(), 5);

  // Logits are handed out in the middle of a step.
  auto logits = fixture.sequence(), later = fixture.sequence();
  Answer laterAnswer, logitsAnswer;
  Reading wanted;
  wanted.ids = tokens(3, 7);
  wanted.onLogits = [&](size_t index, std::span<const float>) {
    if (index == 1)
      later.reset();
    return Status();
  };
  wanted.done = logitsAnswer.take();
  Reading doomed;
  doomed.ids = tokens(5, 9);
  doomed.onLogits = [&](size_t, std::span<const float>) {
    ADD_FAILURE() << "the sequence is gone";
    return Status();
  };
  EXPECT_TRUE(logits->read(std::move(wanted)).ok());
  EXPECT_TRUE(later->read(std::move(doomed)).ok());
  fixture.runAll();
  EXPECT_TRUE(logitsAnswer.outcome->ok());
}

TEST(Engine, AbandonedReadingsAreForgotten) {
  Fixture fixture({.parallel = 2});
  Answer answer;
  {
    auto sequence = fixture.sequence();
    EXPECT_TRUE(begin(*sequence, tokens(600), answer).ok());
    EXPECT_TRUE(fixture.engine->step());
  }
  EXPECT_TRUE(fixture.engine->isIdle());
  EXPECT_FALSE(fixture.engine->step());
  EXPECT_FALSE(answer.isDone());
  EXPECT_EQ(fixture.engine->pages().used(), 0);
}

//===----------------------------------------------------------------------===//
// Accounting
//===----------------------------------------------------------------------===//

TEST(Engine, Accounting) {
  Fixture fixture({.contextLength = 100});
  fixture.change = [](Executable &) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  EXPECT_EQ(fixture.engine->memory().total(), 0u);
  EXPECT_TRUE(expectLogits(*fixture.sequence(), tokens(3)).ok());
  const EngineMemory memory = fixture.engine->memory();
  EXPECT_EQ(memory.weights, 0u);
  EXPECT_EQ(memory.cache, 2u * 128 * 2 * sizeof(float)); // 100 rounded up
  EXPECT_EQ(memory.arenas, 2u * 256);
  // Ids, positions, sequences, 16 rows of 19 pages; hidden rows of any body;
  // wanted rows, logits.
  EXPECT_EQ(memory.io,
            3u * 64 + 16 * 19 * 4 + 512 * kHidden * 4 + 64 + 16 * kVocab * 4);
  EXPECT_EQ(memory.total(), memory.cache + memory.arenas + memory.io);
  const EngineTimings timings = fixture.engine->timings();
  EXPECT_GE(timings.compile, 0.002);
  EXPECT_GE(timings.load, 0.0);
  EXPECT_EQ(timings.pack, 0.0);
  EXPECT_EQ(fixture.engine->counts().steps, 1);
  EXPECT_EQ(fixture.engine->counts().rows, 3);
  EXPECT_EQ(fixture.engine->counts().mostPages, 1);
}

} // namespace
