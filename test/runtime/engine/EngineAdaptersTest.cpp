//===- EngineAdaptersTest.cpp - Sequences with adapters -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "test/runtime/StatusAssertions.h"

using namespace kf;
using namespace kf::test;

namespace {

/// An engine of the fake with two adapters.
struct AdaptedFixture : Fixture {
  explicit AdaptedFixture(EngineOptions options = {})
      : Fixture(options, /*shared=*/true, {}, nullptr, config()) {}

  static ModelConfig config() {
    ModelConfig config = fakeConfig();
    config.adapters.count = 2;
    return config;
  }
  std::unique_ptr<Sequence> sequenceOf(int64_t adapter) {
    return engine->createSequence(adapter).take();
  }
  /// Of all rows since this was last called.
  std::vector<int32_t> newAdapters() {
    return std::exchange(device.behavior.adapters, {});
  }
};

using Numbers = std::vector<int32_t>;

TEST(EngineAdapters, ReachTheRowsOfTheirSequences) {
  AdaptedFixture fixture({.parallel = 3});
  const auto first = fixture.sequenceOf(2), second = fixture.sequenceOf(0),
             third = fixture.sequenceOf(1);
  Answer answers[3];
  ASSERT_TRUE(succeeds(begin(*first, tokens(2), answers[0])));
  ASSERT_TRUE(succeeds(begin(*second, tokens(3), answers[1])));
  ASSERT_TRUE(succeeds(begin(*third, tokens(1), answers[2])));
  fixture.runAll();
  EXPECT_EQ(fixture.newAdapters(), Numbers({2, 2, 0, 0, 0, 1}));
  // The same inputs for other sequences.
  ASSERT_TRUE(succeeds(begin(*second, tokens(1), answers[1])));
  fixture.runAll();
  EXPECT_EQ(fixture.newAdapters(), Numbers({0}));
  ASSERT_TRUE(succeeds(begin(*first, tokens(1), answers[0])));
  fixture.runAll();
  EXPECT_EQ(fixture.newAdapters(), Numbers({2}));
}

TEST(EngineAdapters, ReachRowsOfStepsThatBeginAhead) {
  AdaptedFixture fixture({.runsAhead = true});
  GenerationOptions options;
  options.maxTokens = 6;
  const auto sequence = fixture.sequenceOf(1);
  Sampler sampler = Sampler::create({}).take();
  const auto result =
      generate(*sequence, sampler, nullptr, tokens(3), std::move(options));
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_GT(fixture.engine->counts().ahead, 0);
  for (int32_t adapter : fixture.newAdapters())
    EXPECT_EQ(adapter, 1);
}

TEST(EngineAdapters, SharePrefixesOfTheSameAlone) {
  AdaptedFixture fixture({.parallel = 2});
  const std::vector<int32_t> prompt = tokens(200);
  auto readBy = [&](int64_t adapter) {
    const auto sequence = fixture.sequenceOf(adapter);
    EXPECT_TRUE(succeeds(readAll(*sequence, prompt)));
    return sequence->reusedTokens();
  };
  EXPECT_EQ(readBy(0), 0);
  EXPECT_EQ(readBy(1), 0);
  EXPECT_EQ(readBy(2), 0);
  EXPECT_EQ(readBy(1), 199);
  EXPECT_EQ(readBy(0), 199);
  // Of living ones, too, and of forks.
  const auto sequence = fixture.sequenceOf(2);
  ASSERT_TRUE(succeeds(readAll(*sequence, prompt)));
  EXPECT_EQ(sequence->reusedTokens(), 199);
  const auto fork = sequence->fork().take();
  EXPECT_EQ(fork->adapter(), 2);
}

TEST(EngineAdapters, DoNotWaitForPrefixesOfOthers) {
  // Both prompts go into one step, where one would wait for the other's pages.
  for (int64_t other : {1, 2}) {
    AdaptedFixture fixture({.parallel = 2});
    const auto first = fixture.sequenceOf(1),
               second = fixture.sequenceOf(other);
    Answer answers[2];
    ASSERT_TRUE(succeeds(begin(*first, tokens(200), answers[0])));
    ASSERT_TRUE(succeeds(begin(*second, tokens(200), answers[1])));
    fixture.engine->step();
    EXPECT_EQ(fixture.device.behavior.rows, other == 1 ? 200 : 400);
    fixture.runAll();
    EXPECT_TRUE(answers[1].isDone());
  }
}

TEST(EngineAdapters, RefusesNumbersThatThereAreNot) {
  AdaptedFixture fixture;
  EXPECT_EQ(fixture.engine->createSequence(3).message(),
            "there is no adapter 3; the model was opened with 2");
  EXPECT_FALSE(fixture.engine->createSequence(-1).ok());
  Fixture without;
  EXPECT_FALSE(without.engine->createSequence(1).ok());
}

} // namespace
