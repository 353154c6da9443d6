//===- EngineStatesTest.cpp - Engines of models that keep states ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake fails where a row finds another state than that of the tokens before
// it, and its steps write states even where they fail.
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "runtime/model/LayerCaches.h"
#include "test/runtime/StatusAssertions.h"

using namespace kf;
using namespace kf::test;

namespace {

/// Of so many positions that there is a slot for 64 pages.
ModelConfig config() { return statefulConfig(/*maxPositions=*/10000); }

/// An engine of the fake that keeps states, with room for `slots`, or as many
/// as there are sequences.
struct StatefulFixture : Fixture {
  explicit StatefulFixture(EngineOptions options = {}, int64_t slots = 0)
      : Fixture(
            [&] {
              options.pages = slots * statePagesOf(config());
              return options;
            }(),
            /*shared=*/true, {}, nullptr, config()) {}

  /// Rows of all steps since this was last called.
  int64_t newRows() {
    return device.behavior.rows -
           std::exchange(rowsBefore, device.behavior.rows);
  }

private:
  int64_t rowsBefore = 0;
};

TEST(EngineStates, GoOnFromOneReadingToTheNext) {
  StatefulFixture fixture({.rowsPerStep = 20});
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(70))));
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(3, 2))));
  EXPECT_EQ(fixture.newRows(), 73);
}

TEST(EngineStates, AreReadAgainWhereASequenceGoesBack) {
  StatefulFixture fixture;
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(70))));
  // Back by nothing is no way back.
  ASSERT_TRUE(succeeds(sequence->rewind(70)));
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(1))));
  EXPECT_EQ(fixture.newRows(), 71);
  ASSERT_TRUE(succeeds(sequence->rewind(20)));
  EXPECT_EQ(sequence->position(), 20);
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(5, 3))));
  EXPECT_EQ(fixture.newRows(), 25);
  ASSERT_TRUE(succeeds(sequence->rewind(0)));
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(5, 4))));
  EXPECT_EQ(fixture.newRows(), 5);
}

TEST(EngineStates, AForkReadsItsTokensAgain) {
  StatefulFixture fixture({}, /*slots=*/2);
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(70))));
  const auto fork = sequence->fork().take();
  EXPECT_EQ(fork->position(), 70);
  ASSERT_TRUE(succeeds(expectLogits(*fork, tokens(2, 3))));
  EXPECT_EQ(fixture.newRows(), 70 + 72);
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(2, 4))));
  EXPECT_EQ(fixture.newRows(), 2);
}

TEST(EngineStates, NothingIsTakenOver) {
  StatefulFixture fixture({.parallel = 2});
  const auto first = fixture.sequence(), second = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*first, tokens(100))));
  // Only behind the last token, so that all others could be taken over.
  ASSERT_TRUE(succeeds(expectLogits(*second, tokens(100), 99)));
  EXPECT_EQ(second->reusedTokens(), 0);
  EXPECT_EQ(fixture.newRows(), 200);
}

/// A step that fails has written a state, which is not read.
TEST(EngineStates, AreReadAgainBehindAStepThatFailed) {
  StatefulFixture fixture({.parallel = 2, .rowsPerStep = 30});
  const auto sequence = fixture.sequence(), other = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*other, tokens(10, 5))));
  fixture.newRows();
  // The first step of all, and one in the middle.
  fixture.device.behavior.failure = Status::error("out of order");
  EXPECT_TRUE(failsWith(readAll(*sequence, tokens(50)), "out of order"));
  EXPECT_EQ(sequence->position(), 0);
  fixture.device.behavior.failure = Status();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(50))));
  fixture.newRows();
  int left = 2;
  fixture.device.behavior.onRun = [&] {
    if (--left == 0)
      fixture.device.behavior.failure = Status::error("out of order");
  };
  EXPECT_TRUE(failsWith(readAll(*sequence, tokens(50, 2)), "out of order"));
  EXPECT_EQ(sequence->position(), 50);
  fixture.device.behavior.onRun = nullptr;
  fixture.device.behavior.failure = Status();
  fixture.newRows();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(7, 3))));
  EXPECT_EQ(fixture.newRows(), 57);
  // Whoever was in none of these has its state.
  ASSERT_TRUE(succeeds(expectLogits(*other, tokens(1))));
  EXPECT_EQ(fixture.newRows(), 1);
}

TEST(EngineStates, AreReadAgainBehindACancelledReading) {
  StatefulFixture fixture({.rowsPerStep = 20});
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(30))));
  Answer answer;
  ASSERT_TRUE(succeeds(begin(*sequence, tokens(70, 2), answer)));
  fixture.engine->step();
  EXPECT_EQ(sequence->position(), 50);
  sequence->cancel();
  ASSERT_TRUE(answer.isDone());
  EXPECT_EQ(sequence->position(), 30);
  fixture.newRows();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(4, 3))));
  EXPECT_EQ(fixture.newRows(), 34);
  // Of one that was to be read again, what was read by then is left.
  ASSERT_TRUE(succeeds(sequence->rewind(33)));
  ASSERT_TRUE(succeeds(begin(*sequence, tokens(5), answer)));
  EXPECT_EQ(sequence->position(), 0);
  fixture.engine->step();
  sequence->cancel();
  EXPECT_EQ(sequence->position(), 20);
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(4, 3))));
}

TEST(EngineStates, WhoWaitsForASlotIsGivenTheOneThatIsNotUsed) {
  StatefulFixture fixture({.parallel = 3}, /*slots=*/2);
  const auto first = fixture.sequence(), second = fixture.sequence(),
             third = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*first, tokens(40))));
  ASSERT_TRUE(succeeds(expectLogits(*second, tokens(30))));
  ASSERT_TRUE(succeeds(expectLogits(*first, tokens(1))));
  ASSERT_TRUE(succeeds(expectLogits(*third, tokens(20))));
  fixture.newRows();
  ASSERT_TRUE(succeeds(expectLogits(*first, tokens(1))));
  EXPECT_EQ(fixture.newRows(), 1);
  ASSERT_TRUE(succeeds(expectLogits(*second, tokens(1))));
  EXPECT_EQ(fixture.newRows(), 31);
}

/// With fewer slots and pages than texts: each gets what it would get alone. No
/// step begins before its tokens are known, whoever asks for it.
TEST(EngineStates, TextsAreWhatTheyAreAlone) {
  for (const int64_t rows : {4, 20, 512})
    for (const int64_t slots : {1, 3, 16}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(slots) +
                   " slots");
      StatefulFixture fixture(
          {.parallel = 16, .rowsPerStep = rows, .runsAhead = true}, slots);
      EXPECT_FALSE(fixture.engine->runsAhead());
      fixture.device.behavior.varies = true;
      auto prompt = [](size_t i) { return tokens(1 + i * 13 % 150, i); };
      auto count = [](size_t i) { return 10 + i * 3 % 17; };
      std::vector<std::unique_ptr<Text>> texts;
      for (size_t i = 0; i < 16; ++i) {
        texts.push_back(
            std::make_unique<Text>(fixture.sequence(), optionsOf(i), count(i)));
        EXPECT_TRUE(succeeds(texts.back()->read(prompt(i))));
      }
      fixture.runAll();
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(texts[i]->error.message(), "");
        EXPECT_EQ(texts[i]->chosen, expected(prompt(i), optionsOf(i), count(i),
                                             fixture.device.behavior))
            << "text " << i;
      }
    }
}

TEST(EngineStates, DraftsAreRefused) {
  StatefulFixture fixture;
  const Status status =
      Engine::create(*fixture.model, {.ngrams = NgramOptions()}).status();
  EXPECT_EQ(status.code(), StatusCode::Unsupported);
  EXPECT_TRUE(failsWith(status,
                        "keep states cannot take drafts of tokens back; "
                        "leave --ngram and --draft-model out"));
  // Of the model that drafts, too, whose engine takes back what did not come.
  Fixture plain;
  DraftModel drafts(*fixture.engine, /*most=*/4, kVocab);
  const Status drafted =
      Engine::create(*plain.model, {.draftModel = &drafts}).status();
  EXPECT_EQ(drafted.code(), StatusCode::Unsupported);
  EXPECT_TRUE(failsWith(drafted, "keep states cannot take drafts"));
}

} // namespace
