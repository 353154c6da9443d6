//===- EngineStagesTest.cpp - Steps under way in several stages -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankedFixture.h"

#include <array>
#include <chrono>
#include <random>

using namespace kf;
using namespace kf::test;

namespace {

Ranked stages(size_t count, EngineOptions options,
              const ModelConfig &config = fakeConfig()) {
  return Ranked(options, /*areStages=*/true, count - 1, config);
}

/// When something that must come is given up, however busy the machine is.
std::chrono::steady_clock::time_point longDeadline() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

/// Ends all, and expects of each follower that it has run what the leader has.
void expectRunsOfTheLeader(Ranked &ranked) {
  const std::vector<int32_t> ids = ranked.fixture->device.behavior.ids;
  ranked.finish();
  for (const std::unique_ptr<Follower> &follower : ranked.followers) {
    EXPECT_TRUE(succeeds(follower->end));
    EXPECT_EQ(follower->device.behavior.ids, ids);
  }
}

/// While the last stage computes a step, those before it are told of as many as
/// there are of them.
TEST(EngineStages, StepsAreUnderWayInAll) {
  for (const size_t count : {2, 3}) {
    SCOPED_TRACE(count);
    std::atomic<int> told = 0; // that the first follower has run
    int own = 0, mostBehind = 0;
    Ranked ranked = stages(count, {.parallel = 6});
    ranked.followers[0]->device.behavior.onRun = [&] { ++told; };
    FakeBehavior &behavior = ranked.fixture->device.behavior;
    behavior.onRun = [&, end = longDeadline()] {
      ++own;
      // The first one, of all prompts, has none behind it, nor have the last.
      while (own > 1 && own <= 3 * static_cast<int>(count) &&
             told - own < static_cast<int>(count) - 1 &&
             std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
      mostBehind = std::max(mostBehind, told - own);
    };
    std::vector<std::unique_ptr<Text>> texts;
    for (size_t i = 0; i < 6; ++i) {
      texts.push_back(std::make_unique<Text>(ranked.fixture->sequence(),
                                             SamplerOptions(), 5));
      EXPECT_TRUE(succeeds(texts.back()->read(tokens(2, i))));
    }
    ranked.fixture->runAll();
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(texts[i]->chosen, expected(tokens(2, i), {}, 5, behavior));
    EXPECT_EQ(mostBehind, static_cast<int>(count) - 1);
    texts.clear();
    expectRunsOfTheLeader(ranked);
  }
}

/// Those that generate are shared out evenly, also where more begin and end.
TEST(EngineStages, StepsHaveTheirShareOfTexts) {
  Ranked ranked = stages(2, {.parallel = 8});
  FakeBehavior &behavior = ranked.fixture->device.behavior;
  std::vector<int64_t> rows; // of steps
  behavior.onRun = [&, before = int64_t(0)]() mutable {
    rows.push_back(behavior.rows - before);
    before = behavior.rows;
  };
  std::vector<std::unique_ptr<Text>> texts;
  auto begin = [&](size_t count) {
    texts.push_back(std::make_unique<Text>(ranked.fixture->sequence(),
                                           SamplerOptions(), count));
    EXPECT_TRUE(succeeds(texts.back()->read({1})));
  };
  for (size_t i = 0; i < 5; ++i)
    begin(40);
  for (int i = 0; i < 10; ++i)
    ranked.engine().step();
  begin(40);
  for (int i = 0; i < 10; ++i)
    ranked.engine().step();
  std::vector<int64_t> last(rows.end() - 4, rows.end());
  EXPECT_EQ(last, std::vector<int64_t>({3, 3, 3, 3}));
  for (size_t i = 1; i < texts.size(); ++i)
    texts[i]->sequence->cancel();
  ranked.fixture->runAll();
  EXPECT_EQ(texts[0]->chosen, expected({1}, {}, 40, behavior));
  EXPECT_EQ(rows.back(), 1);
  texts.clear();
  expectRunsOfTheLeader(ranked);
}

/// The chunks of a prompt follow one another through the stages, and one
/// sequence takes no more steps than on one rank.
TEST(EngineStages, ChunksOfAPromptAreUnderWay) {
  std::array<EngineCounts, 2> counts;
  for (const size_t count : {1, 2}) {
    Ranked ranked = stages(count, {.rowsPerStep = 16});
    std::atomic<int> told = 0;
    int own = 0, mostBehind = 0;
    if (count == 2) {
      ranked.followers[0]->device.behavior.onRun = [&] { ++told; };
      ranked.fixture->device.behavior.onRun = [&, end = longDeadline()] {
        ++own;
        // All is through when the program is bound that the last one chooses
        // by.
        while (own < 6 && told <= own && std::chrono::steady_clock::now() < end)
          std::this_thread::yield();
        mostBehind = std::max(mostBehind, told - own);
      };
    }
    {
      Text text(ranked.fixture->sequence(), {}, 12);
      EXPECT_TRUE(succeeds(text.read(tokens(100))));
      ranked.fixture->runAll();
      EXPECT_EQ(text.chosen,
                expected(tokens(100), {}, 12, ranked.fixture->device.behavior));
    }
    counts[count - 1] = ranked.engine().counts();
    EXPECT_EQ(mostBehind, static_cast<int>(count) - 1);
    expectRunsOfTheLeader(ranked);
  }
  EXPECT_EQ(counts[0].steps, counts[1].steps);
  EXPECT_EQ(counts[0].rows, counts[1].rows);
}

/// Steps behind which none begins, as the host gets rows of theirs, have all
/// that generate.
TEST(EngineStages, NobodyWaitsBesideRowsForTheHost) {
  Ranked ranked = stages(2, {.parallel = 5, .rowsPerStep = 20});
  std::vector<std::unique_ptr<Text>> texts;
  for (int32_t i = 0; i < 4; ++i) {
    texts.push_back(std::make_unique<Text>(ranked.fixture->sequence(),
                                           SamplerOptions(), 60));
    EXPECT_TRUE(succeeds(texts.back()->read({i})));
  }
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(ranked.engine().step());
  const EngineCounts before = ranked.engine().counts();
  {
    auto sequence = ranked.fixture->sequence();
    EXPECT_TRUE(succeeds(expectLogits(*sequence, tokens(160))));
  }
  const EngineCounts after = ranked.engine().counts();
  EXPECT_GE(after.steps - before.steps, 10);
  EXPECT_GT(after.chosen - before.chosen, 3 * (after.steps - before.steps));
  ranked.fixture->runAll();
  for (int32_t i = 0; i < 4; ++i)
    EXPECT_EQ(texts[static_cast<size_t>(i)]->chosen,
              expected({i}, {}, 60, ranked.fixture->device.behavior));
  texts.clear();
  expectRunsOfTheLeader(ranked);
}

/// Logits of all rows come to the host, and those behind them, beside texts.
TEST(EngineStages, RowsForTheHost) {
  Ranked ranked = stages(3, {.parallel = 4, .rowsPerStep = 20});
  {
    Text first(ranked.fixture->sequence(), {}, 60),
        second(ranked.fixture->sequence(), {}, 60);
    EXPECT_TRUE(succeeds(first.read({1, 2})));
    EXPECT_TRUE(succeeds(second.read({3})));
    auto sequence = ranked.fixture->sequence();
    EXPECT_TRUE(succeeds(expectLogits(*sequence, tokens(90))));
    const std::vector<int32_t> prompt = tokens(70);
    std::vector<std::vector<float>> rows;
    auto embedded = ranked.fixture->sequence();
    Reading reading;
    reading.ids = prompt;
    reading.onEmbedding = [&](size_t, std::span<const float> row) {
      rows.emplace_back(row.begin(), row.end());
      return Status();
    };
    EXPECT_TRUE(readAlone(*embedded, std::move(reading)).ok());
    ASSERT_EQ(rows.size(), 70u);
    for (size_t i = 0; i < rows.size(); ++i)
      EXPECT_TRUE(std::ranges::equal(
          rows[i], fakeEmbedding(std::span(prompt).first(i + 1))));
    ranked.fixture->runAll();
    const FakeBehavior &own = ranked.fixture->device.behavior;
    EXPECT_EQ(first.chosen, expected({1, 2}, {}, 60, own));
    EXPECT_EQ(second.chosen, expected({3}, {}, 60, own));
  }
  expectRunsOfTheLeader(ranked);
}

/// Texts of all lengths, which begin alike or not, beside one another, with
/// room for all or for few of them, so that they lose their pages, and are
/// cancelled, destroyed and begun at any time: each gets what it would get
/// alone.
TEST(EngineStages, TextsAreThoseOfOneRank) {
  for (const size_t count : {1, 2, 3}) {
    int64_t preemptions = 0;
    for (const ModelConfig &config :
         {fakeConfig(), windowedConfig(), statefulConfig()})
      for (const bool isScarce : {true, false}) {
        const int64_t pages = !isScarce ? 400 : config.layers == 3 ? 36 : 10;
        SCOPED_TRACE(std::to_string(count) + " stages, " +
                     std::to_string(pages) + " pages, " +
                     std::to_string(config.layers) + " layers");
        std::mt19937 random(static_cast<uint32_t>(7 * count + pages));
        Ranked ranked = stages(
            count, {.parallel = 6, .pages = pages, .rowsPerStep = 40}, config);
        for (const std::unique_ptr<Follower> &follower : ranked.followers)
          follower->device.behavior.varies = true;
        FakeBehavior &behavior = ranked.fixture->device.behavior;
        behavior.varies = true;
        auto prompt = [](size_t i) { return tokens(1 + i * 37 % 230, i % 3); };
        // Each begins with a page more than it needs.
        auto length = [=](size_t i) {
          return 5 + i * 7 % 60 + (isScarce ? 150 : 0);
        };
        std::vector<std::unique_ptr<Text>> texts(40);
        size_t begun = 0, compared = 0;
        while (begun < texts.size() || !ranked.engine().isIdle()) {
          if (begun < texts.size() && random() % 3 == 0) {
            texts[begun] = std::make_unique<Text>(
                ranked.fixture->sequence(), optionsOf(begun), length(begun));
            EXPECT_TRUE(succeeds(texts[begun]->read(prompt(begun))));
            ++begun;
          }
          ranked.engine().step();
          for (std::unique_ptr<Text> &text : texts)
            if (text && text->isDone())
              text->sequence.reset(); // others have use for its pages
          if (begun == 0 || random() % 12 != 0)
            continue;
          std::unique_ptr<Text> &text = texts[random() % begun];
          if (text && !text->isDone() && random() % 2)
            text.reset();
          else if (text && !text->isDone())
            text->sequence->cancel();
        }
        for (size_t i = 0; i < texts.size(); ++i) {
          if (!texts[i])
            continue;
          std::vector<int32_t> whole =
              expected(prompt(i), optionsOf(i), length(i), behavior);
          if (texts[i]->error.isCancelled())
            whole.resize(texts[i]->chosen.size());
          else
            EXPECT_EQ(texts[i]->error.message(), "");
          EXPECT_EQ(texts[i]->chosen, whole) << "text " << i;
          ++compared;
        }
        EXPECT_GT(compared, 15u);
        preemptions += ranked.engine().counts().preemptions;
        texts.clear();
        expectRunsOfTheLeader(ranked);
      }
    EXPECT_GT(preemptions, 0);
  }
}

/// Drafts are taken back while other steps are under way.
TEST(EngineStages, Drafts) {
  Ranked ranked = stages(2, {.parallel = 4, .ngrams = NgramOptions{}});
  std::vector<std::unique_ptr<GeneratedText>> texts;
  for (size_t i = 0; i < 4; ++i) {
    GenerationOptions options;
    options.maxTokens = 30;
    texts.push_back(std::make_unique<GeneratedText>(*ranked.fixture,
                                                    SamplerOptions(), options));
    EXPECT_TRUE(succeeds(texts.back()->generation.start(tokens(60, i))));
  }
  ranked.fixture->runAll();
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(texts[i]->generation.take()->ids,
              expected(tokens(60, i), {}, 30, ranked.fixture->device.behavior));
  EXPECT_GT(ranked.engine().counts().drafted, 0);
  texts.clear();
  expectRunsOfTheLeader(ranked);
}

/// A step that fails takes those behind it with it, and nobody finds what they
/// were to compute.
TEST(EngineStages, AStepThatFailsFailsAllBehindIt) {
  for (int runs = 1; runs < 12; ++runs) {
    SCOPED_TRACE(runs);
    Ranked ranked = stages(3, {.parallel = 4, .rowsPerStep = 30});
    FakeBehavior &behavior = ranked.fixture->device.behavior;
    behavior.onRun = [&, left = runs]() mutable {
      if (--left == 0)
        behavior.failure = Status::error("the power is off");
    };
    const std::vector<int32_t> prompt = tokens(200);
    Text first(ranked.fixture->sequence(), {}, 40),
        second(ranked.fixture->sequence(), {}, 40),
        gone(ranked.fixture->sequence(), {}, 40);
    EXPECT_TRUE(succeeds(first.read({1, 2})));
    EXPECT_TRUE(succeeds(second.read(prompt)));
    EXPECT_TRUE(succeeds(gone.read(tokens(150, 2))));
    ranked.engine().step();
    gone.sequence->cancel();
    ranked.fixture->runAll();
    EXPECT_EQ(first.error.message(), "the power is off");
    EXPECT_EQ(second.error.message(), "the power is off");
    EXPECT_TRUE(ranked.engine().isIdle());

    behavior.onRun = nullptr;
    behavior.failure = Status();
    Text again(ranked.fixture->sequence(), {}, 10),
        another(ranked.fixture->sequence(), {}, 10);
    EXPECT_TRUE(succeeds(again.read(prompt)));
    EXPECT_TRUE(succeeds(another.read(tokens(150, 2))));
    ranked.fixture->runAll();
    EXPECT_EQ(again.chosen, expected(prompt, {}, 10, behavior));
    EXPECT_EQ(another.chosen, expected(tokens(150, 2), {}, 10, behavior));
  }
}

/// A step that has begun, and cannot choose, takes the place of no other one's
/// results: those that are under way, and those that follow, have their own.
TEST(EngineStages, AStepThatCannotChoose) {
  Ranked ranked = stages(3, {.parallel = 9, .rowsPerStep = 12});
  FakeModelDevice &device = ranked.fixture->device;
  device.behavior.varies = true;
  std::vector<std::unique_ptr<Text>> texts;
  auto begin = [&](std::vector<int32_t> ids) {
    texts.push_back(std::make_unique<Text>(ranked.fixture->sequence(),
                                           SamplerOptions(), 40));
    EXPECT_TRUE(succeeds(texts.back()->read(std::move(ids))));
  };
  for (int32_t i = 0; i < 6; ++i)
    begin({i});
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(ranked.engine().step());
  const Sampler greedy = *Sampler::create({});
  auto fetching = ranked.fixture->sequence();
  Answer answer;
  Reading reading;
  reading.ids = {7, 8};
  reading.sampler = &greedy;
  reading.onLogProbs = [](const ChosenLogProbs &) {};
  reading.done = answer.take();
  EXPECT_TRUE(succeeds(fetching->read(std::move(reading))));
  device.refusesPinned = true;
  EXPECT_TRUE(ranked.engine().step());
  device.refusesPinned = false;
  EXPECT_EQ(answer.error(), "no pinned memory is left");
  for (size_t i = 0; i < 2; ++i)
    begin(tokens(10, i));
  ranked.fixture->runAll();
  size_t failed = 0; // those of its step
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<int32_t> ids =
        i < 6 ? std::vector<int32_t>{static_cast<int32_t>(i)}
              : tokens(10, i - 6);
    if (!texts[i]->error.ok())
      ++failed;
    else
      EXPECT_EQ(texts[i]->chosen, expected(ids, {}, 40, device.behavior)) << i;
  }
  EXPECT_EQ(failed, 2u);
  texts.clear();
  fetching.reset();
  expectRunsOfTheLeader(ranked);
}

/// A sequence that has lost its pages, and is cancelled while a step reads for
/// it again, keeps nothing of what that step may never compute.
TEST(EngineStages, CancelledWhileItReadsAgain) {
  Ranked ranked = stages(2, {.parallel = 2, .pages = 8, .rowsPerStep = 16});
  FakeBehavior &behavior = ranked.fixture->device.behavior;
  std::atomic<bool> fails = false;
  behavior.onRun = [&] {
    if (fails)
      behavior.failure = Status::error("the power is off");
  };
  auto first =
      std::make_unique<Text>(ranked.fixture->sequence(), SamplerOptions(), 505);
  Text second(ranked.fixture->sequence(), {}, 400);
  EXPECT_TRUE(succeeds(first->read({1})));
  EXPECT_TRUE(succeeds(second.read(tokens(200))));
  while (ranked.engine().counts().preemptions == 0)
    ASSERT_TRUE(ranked.engine().step());
  const int64_t lost =
      200 + static_cast<int64_t>(second.chosen.size()); // read by now
  while (!first->isDone()) // it takes all pages that there are
    ASSERT_TRUE(ranked.engine().step());
  EXPECT_EQ(first->chosen, expected({1}, {}, 505, behavior));
  first.reset();
  Text third(ranked.fixture->sequence(), {}, 40);
  EXPECT_TRUE(succeeds(third.read({2, 3})));
  while (second.sequence->position() == 0 ||
         second.sequence->position() % kCachePage == 0)
    ASSERT_TRUE(ranked.engine().step());
  ASSERT_LT(second.sequence->position(), lost - 1);
  second.sequence->cancel();
  EXPECT_TRUE(second.error.isCancelled());
  EXPECT_EQ(second.sequence->position(), 0);

  fails = true;
  ranked.fixture->runAll();
  EXPECT_EQ(third.error.message(), "the power is off");
  fails = false;
  behavior.failure = Status();
  Text again(std::move(second.sequence), {}, 10);
  EXPECT_TRUE(succeeds(again.read(tokens(200))));
  ranked.fixture->runAll();
  EXPECT_EQ(again.chosen, expected(tokens(200), {}, 10, behavior));
}

/// What is cancelled as a whole leaves no rank in a step.
TEST(EngineStages, Cancelled) {
  Ranked ranked = stages(3, {.parallel = 6});
  std::vector<std::unique_ptr<Text>> texts;
  for (size_t i = 0; i < 6; ++i) {
    texts.push_back(std::make_unique<Text>(ranked.fixture->sequence(),
                                           SamplerOptions(), 50));
    EXPECT_TRUE(succeeds(texts.back()->read(tokens(20, i))));
  }
  for (int i = 0; i < 9; ++i)
    EXPECT_TRUE(ranked.engine().step());
  ranked.fixture->cancelled = true;
  EXPECT_FALSE(ranked.engine().step());
  EXPECT_TRUE(ranked.engine().isIdle());
  for (const std::unique_ptr<Text> &text : texts)
    EXPECT_TRUE(text->error.isCancelled());
  texts.clear();
  expectRunsOfTheLeader(ranked);
}

/// Readings that are all cancelled between two steps leave none, either.
TEST(EngineStages, NobodyIsLeftInAStep) {
  Ranked ranked = stages(2, {.parallel = 2});
  Text first(ranked.fixture->sequence(), {}, 50),
      second(ranked.fixture->sequence(), {}, 50);
  EXPECT_TRUE(succeeds(first.read({1})));
  EXPECT_TRUE(succeeds(second.read({2})));
  for (int i = 0; i < 5; ++i)
    ranked.engine().step();
  first.sequence->cancel();
  second.sequence->cancel();
  EXPECT_FALSE(ranked.engine().isIdle()) << "a step is under way";
  EXPECT_FALSE(ranked.engine().step());
  EXPECT_TRUE(ranked.engine().isIdle());
}

} // namespace
