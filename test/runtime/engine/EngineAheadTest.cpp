//===- EngineAheadTest.cpp - Steps that begin before they are asked for ---===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include <random>

using namespace kf;
using namespace kf::test;

namespace {

//===----------------------------------------------------------------------===//
// What is the same without them
//===----------------------------------------------------------------------===//

void expectIndependentTexts(bool runsAhead) {
  expectAsAlone(runsAhead, optionsOf, [](size_t) { return false; });
}

TEST(Engine, TextsDoNotDependOnOneAnother) {
  expectIndependentTexts(/*runsAhead=*/false);
}
TEST(EngineAhead, TextsDoNotDependOnOneAnother) {
  expectIndependentTexts(/*runsAhead=*/true);
}

/// As with Sampler::sample(), however many there are.
void expectBiasesOfNoTokenIgnored(bool runsAhead) {
  Fixture fixture({.parallel = 2, .runsAhead = runsAhead});
  SamplerOptions options;
  options.logitBias = {{3, -INFINITY}};
  for (int64_t id = 0; id < 100; ++id)
    options.logitBias.push_back({kVocab + id, 5.0});
  Text text(fixture.sequence(), options, 5);
  EXPECT_TRUE(text.read({1, 2}).ok());
  for (int step = 0; step < 10; ++step)
    fixture.engine->step();
  EXPECT_EQ(text.chosen, expected({1, 2}, options, 5, fixture.device.behavior));
  // But for the first step of each program.
  EXPECT_EQ(fixture.engine->counts().ahead, runsAhead ? 3 : 0);
}

TEST(Engine, BiasesOfNoTokenAreIgnored) {
  expectBiasesOfNoTokenIgnored(/*runsAhead=*/false);
}
TEST(EngineAhead, BiasesOfNoTokenAreIgnored) {
  expectBiasesOfNoTokenIgnored(/*runsAhead=*/true);
}

//===----------------------------------------------------------------------===//
// At random
//===----------------------------------------------------------------------===//

/// Texts come, are forked, cancelled, rewound and dropped at random, with fewer
/// pages than they would like to have. Every token has to be the one that the
/// text's own tokens lead to, and no page may be lost. Where it is `tight`,
/// most texts lose their pages before they end.
void stress(bool runsAhead, bool isTight) {
  std::mt19937 random(17);
  auto below = [&](size_t n) { return random() % n; };
  Fixture fixture({.contextLength = 400,
                   .parallel = 12,
                   .pages = isTight ? 12 : 16,
                   .rowsPerStep = 96,
                   .runsAhead = runsAhead});
  fixture.device.behavior.varies = true;
  struct Job {
    std::unique_ptr<Text> text;
    std::vector<int32_t> prompt; ///< all that it read before it chose
    SamplerOptions options;
    size_t count;
    bool checked = false;
  };
  std::vector<Job> jobs;
  int64_t ended = 0, finished = 0, full = 0, cancelled = 0, forked = 0;
  auto check = [&](const Job &job) {
    const std::vector<int32_t> want =
        expected(job.prompt, job.options, job.text->chosen.size(),
                 fixture.device.behavior);
    ASSERT_EQ(job.text->chosen, want);
  };
  while (fixture.engine->counts().steps < 10000) {
    if (jobs.size() < 12 && below(2) == 0) {
      Job job;
      job.options = optionsOf(below(30));
      job.count = isTight ? 200 + below(150) : 1 + below(60);
      if (!isTight && !jobs.empty() && below(3) == 0) {
        // A fork of one that does not read.
        Job &origin = jobs[below(jobs.size())];
        Result<std::unique_ptr<Sequence>> fork = origin.text->sequence->fork();
        if (fork.ok()) {
          const std::span<const int32_t> read = (*fork)->tokens();
          job.prompt.assign(read.begin(), read.end());
          job.text =
              std::make_unique<Text>(fork.take(), job.options, job.count);
          ++forked;
        }
      }
      if (!job.text)
        job.text =
            std::make_unique<Text>(fixture.sequence(), job.options, job.count);
      // Few different beginnings, so that they are often the same.
      std::vector<int32_t> ids =
          tokens(1 + below(isTight ? 20 : 150), below(4));
      const size_t room = 400 - job.prompt.size();
      if (ids.size() + job.count > room) {
        job.text.reset();
      } else {
        // The sampler has to know what a fork has read.
        job.prompt.insert(job.prompt.end(), ids.begin(), ids.end());
        job.text->know(
            std::span(job.prompt).first(job.prompt.size() - ids.size()));
        ASSERT_TRUE(job.text->read(ids).ok());
        jobs.push_back(std::move(job));
      }
    }
    if (!jobs.empty() && below(isTight ? 400 : 40) == 0) {
      Job &job = jobs[below(jobs.size())];
      job.text->sequence->cancel();
    }
    fixture.engine->step();
    for (size_t i = jobs.size(); i-- > 0;) {
      Job &job = jobs[i];
      if (!job.text->isDone())
        continue;
      if (!job.checked) {
        check(job);
        job.checked = true;
        ++ended;
        const Status &error = job.text->error;
        finished += error.ok();
        full += error.code() == StatusCode::OutOfMemory;
        cancelled += error.isCancelled();
      }
      // They stay for a while, to be forked.
      if (isTight || below(10) == 0)
        jobs.erase(jobs.begin() + static_cast<ptrdiff_t>(i));
    }
    if (fixture.engine->counts().steps % 500 == 0) {
      const PagePool &pool = fixture.engine->pages();
      ASSERT_EQ(pool.used() + pool.cached() + pool.free(), pool.total());
    }
  }
  // Only texts that have ended and are kept may have what one needs.
  EXPECT_EQ(full + finished + cancelled, ended);
  EXPECT_LT(full, isTight ? 1 : finished / 20);
  EXPECT_GT(finished, isTight ? 100 : 1000);
  EXPECT_GT(cancelled, isTight ? 10 : 50);
  EXPECT_GT(forked, isTight ? -1 : 50);
  if (isTight)
    EXPECT_GT(fixture.engine->counts().preemptions, 50);
  jobs.clear();
  EXPECT_EQ(fixture.engine->pages().used(), 0);
  EXPECT_TRUE(fixture.engine->pages().check({}).ok());
  EXPECT_EQ(fixture.engine->counts().ahead > 500, runsAhead);
}

TEST(Engine, Stress) { stress(/*runsAhead=*/false, /*isTight=*/false); }
TEST(EngineAhead, Stress) { stress(/*runsAhead=*/true, /*isTight=*/false); }
TEST(Engine, StressOnPages) { stress(/*runsAhead=*/false, /*isTight=*/true); }
TEST(EngineAhead, StressOnPages) {
  stress(/*runsAhead=*/true, /*isTight=*/true);
}

//===----------------------------------------------------------------------===//
// What is not
//===----------------------------------------------------------------------===//

/// Every step but the prompt's, and those for which a program has to be made
/// first; what is computed of a text that has ended is not counted.
TEST(EngineAhead, StepsOfTextsBeginEarly) {
  Fixture fixture({.parallel = 4, .runsAhead = true});
  fixture.device.behavior.varies = true;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Text>> texts;
    for (size_t i = 0; i < 3; ++i) {
      SamplerOptions options;
      options.temperature = static_cast<double>(i);
      options.seed = i;
      texts.push_back(std::make_unique<Text>(fixture.sequence(), options, 100));
      EXPECT_TRUE(texts.back()->read(tokens(90, 3 * round + i)).ok());
    }
    const EngineCounts before = fixture.engine->counts();
    const int runs = fixture.device.behavior.runs;
    fixture.runAll();
    const EngineCounts after = fixture.engine->counts();
    EXPECT_EQ(after.steps - before.steps, 100);
    EXPECT_EQ(after.rows - before.rows, 3 * (90 + 99));
    EXPECT_EQ(after.chosen - before.chosen, 300);
    EXPECT_EQ(after.ahead - before.ahead, round == 0 ? 98 : 99);
    EXPECT_EQ(fixture.device.behavior.runs - runs, 100);
    for (size_t i = 0; i < 3; ++i) {
      SamplerOptions options;
      options.temperature = static_cast<double>(i);
      options.seed = i;
      EXPECT_EQ(texts[i]->chosen, expected(tokens(90, 3 * round + i), options,
                                           100, fixture.device.behavior));
    }
  }
}

/// Penalties are not known before the tokens are: the step waits for them where
/// it chooses, and nowhere else, for whoever has none, too.
TEST(EngineAhead, PenaltiesAreSaidWhenTokensAreChosen) {
  Fixture fixture({.parallel = 4, .runsAhead = true});
  fixture.device.behavior.varies = true;
  std::vector<SamplerOptions> options(3);
  options[1].repetitionPenalty = 1.5;
  options[1].frequencyPenalty = 0.3;
  options[2].temperature = 1;
  options[2].presencePenalty = 2;
  options[2].penaltyWindow = 5;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Text>> texts;
    for (size_t i = 0; i < 3; ++i) {
      texts.push_back(
          std::make_unique<Text>(fixture.sequence(), options[i], 100));
      EXPECT_TRUE(texts.back()->read(tokens(90, 3 * round + i)).ok());
    }
    const EngineCounts before = fixture.engine->counts();
    fixture.runAll();
    const EngineCounts after = fixture.engine->counts();
    EXPECT_EQ(after.steps - before.steps, 100);
    EXPECT_EQ(after.ahead - before.ahead, round == 0 ? 98 : 99);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(texts[i]->chosen,
                expected(tokens(90, 3 * round + i), options[i], 100,
                         fixture.device.behavior));
  }
}

/// Callers may do what they did not say they would; pages are theirs again.
TEST(EngineAhead, ReadingsMayBeOthers) {
  Fixture fixture({.contextLength = 300, .parallel = 2, .runsAhead = true});
  fixture.device.behavior.varies = true;
  const Sampler sampler = *Sampler::create({});
  auto sequence = fixture.sequence();
  Answer answer;
  std::vector<int32_t> ids;
  /// Reads a token that was not chosen, and has another one chosen.
  auto choose = [&] {
    const int32_t id = (answer.id() + 1) % kVocab;
    answer = {};
    Reading reading;
    reading.ids = {id};
    reading.sampler = &sampler;
    reading.goesOn = true;
    reading.done = answer.take();
    ids.push_back(id);
    ASSERT_TRUE(sequence->read(std::move(reading)).ok());
    fixture.engine->step();
    ASSERT_GE(answer.id(), 0);
    EXPECT_TRUE(std::ranges::equal(sequence->tokens(), ids));
  };
  auto readMore = [&](std::span<const int32_t> more) {
    EXPECT_EQ(readAll(*sequence, more).message(), "");
    ids.insert(ids.end(), more.begin(), more.end());
  };
  for (int i = 0; i < 5; ++i)
    choose();
  readMore(tokens(5)); // another reading
  choose();
  ASSERT_TRUE(sequence->rewind(4).ok());
  ids.resize(4);
  readMore(tokens(59));
  choose(); // the last one of the page
  const PagePool &pool = fixture.engine->pages();
  EXPECT_EQ(pool.used(), 1);
  choose();
  EXPECT_EQ(pool.used(), 2);
  auto fork = sequence->fork().take();
  choose();
  EXPECT_EQ(readAll(*fork, tokens(4)).message(), "");
  fork.reset();
  // What the tokens left behind is what they are.
  const int32_t last = answer.id();
  EXPECT_EQ(last, expected(ids, {}, 1, fixture.device.behavior).front());
  sequence.reset();
  EXPECT_EQ(fixture.engine->pages().used(), 0);
  EXPECT_EQ(fixture.engine->counts().ahead, 0);
  EXPECT_GT(fixture.device.behavior.runs, fixture.engine->counts().steps)
      << "steps that nobody asked for have begun";
}

/// A step that fails, or is cancelled, ends what was read in it; nobody finds
/// what it should have written, and what is behind it is nobody's.
TEST(EngineAhead, FailuresTakeReadingsBack) {
  for (const bool isCancelled : {false, true}) {
    Fixture fixture({.parallel = 2, .runsAhead = true});
    fixture.device.behavior.varies = true;
    Text warm(fixture.sequence(), SamplerOptions(), 3);
    EXPECT_TRUE(warm.read(tokens(1)).ok());
    fixture.runAll();
    Text text(fixture.sequence(), SamplerOptions(), 200);
    EXPECT_TRUE(text.read(tokens(60, 5)).ok());
    while (text.chosen.size() < 30)
      fixture.engine->step();
    const int64_t position = text.sequence->position();
    if (isCancelled)
      fixture.cancelled = true;
    else
      fixture.device.behavior.failure = Status::error("out of order");
    fixture.runAll();
    EXPECT_EQ(text.error.isCancelled(), isCancelled);
    EXPECT_EQ(text.sequence->position(), position);
    fixture.cancelled = false;
    fixture.device.behavior.failure = Status();
    // As if nothing had been.
    std::vector<int32_t> all = tokens(60, 5);
    all.insert(all.end(), text.chosen.begin(), text.chosen.end());
    Text again(fixture.sequence(), SamplerOptions(), 40);
    EXPECT_TRUE(again.read(all).ok());
    fixture.runAll();
    EXPECT_EQ(again.chosen,
              expected(all, SamplerOptions(), 40, fixture.device.behavior));
    EXPECT_LE(again.sequence->reusedTokens(), position);
  }
}

/// What a step that has begun was to find in its inputs was dropped with it,
/// and is written again: a new page in its table, for one.
TEST(EngineAhead, DroppedInputsAreWrittenAgain) {
  for (const bool isCancelled : {false, true}) {
    Fixture fixture({.runsAhead = true});
    fixture.device.behavior.varies = true;
    Text text(fixture.sequence(), SamplerOptions(), 20);
    EXPECT_TRUE(text.read(tokens(50)).ok());
    // The last position of a page; the step behind it has another one.
    while (text.sequence->position() < kCachePage - 1)
      fixture.engine->step();
    if (isCancelled)
      fixture.device.behavior.onRun = [&] { fixture.cancelled = true; };
    else
      fixture.device.behavior.failure = Status::error("out of order");
    fixture.runAll();
    EXPECT_EQ(text.error.isCancelled(), isCancelled);
    EXPECT_EQ(text.sequence->position(), kCachePage - 1);
    fixture.device.behavior.onRun = nullptr;
    fixture.device.behavior.failure = Status();
    fixture.cancelled = false;
    text.error = Status();
    EXPECT_TRUE(text.read({text.chosen.back()}).ok());
    fixture.runAll();
    EXPECT_EQ(text.chosen, expected(tokens(50), SamplerOptions(), 20,
                                    fixture.device.behavior));
  }
}

} // namespace
