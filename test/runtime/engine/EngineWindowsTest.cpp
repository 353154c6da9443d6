//===- EngineWindowsTest.cpp - Engines whose layers have windows ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake fails where a window sees what was not written for it.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/StatusAssertions.h"
#include "test/runtime/engine/EngineFixture.h"

#include "runtime/model/LayerCaches.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>

using namespace kf;
using namespace kf::test;

namespace {

/// Two groups of layers of the fake see 100 positions, and one sees all; or
/// one, of all layers, sees 100.
struct WindowedFixture : Fixture {
  explicit WindowedFixture(EngineOptions options, bool areAll)
      : Fixture(std::move(options), /*shared=*/true, {}, nullptr,
                configOf(areAll)) {
    device.behavior.forgets = areAll;
  }

  static ModelConfig configOf(bool areAll) {
    return areAll ? allWindowedConfig() : windowedConfig();
  }

  /// Rows of all steps since this was last called.
  int64_t newRows() {
    return device.behavior.rows -
           std::exchange(rowsBefore, device.behavior.rows);
  }

private:
  int64_t rowsBefore = 0;
};

/// The `count` tokens that follow `text`, each with the largest logit.
std::vector<int32_t> chosen(std::vector<int32_t> text, int64_t count,
                            const Fixture &fixture) {
  const size_t before = text.size();
  for (; count > 0; --count) {
    int32_t best = 0;
    for (int32_t id = 1; id < kVocab; ++id)
      if (fakeLogit(text, id, fixture.device.behavior) >
          fakeLogit(text, best, fixture.device.behavior))
        best = id;
    text.push_back(best);
  }
  text.erase(text.begin(), text.begin() + static_cast<ptrdiff_t>(before));
  return text;
}

/// By whether all layers have windows.
class EngineWindows : public testing::TestWithParam<bool> {
protected:
  bool areAll() const { return GetParam(); }
  ModelConfig config() const { return WindowedFixture::configOf(areAll()); }
};

std::string nameOfWindows(const testing::TestParamInfo<bool> &info) {
  return info.param ? "InAllLayers" : "InSomeLayers";
}
INSTANTIATE_TEST_SUITE_P(, EngineWindows, testing::Bool(), nameOfWindows);

TEST_P(EngineWindows, LongPromptsKeepFewOfTheirPages) {
  WindowedFixture fixture({.rowsPerStep = 100}, areAll());
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(1000))));
  for (int32_t i = 0; i < 150; ++i)
    ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(1, i))));
  EXPECT_EQ(fixture.newRows(), 1150);
  EXPECT_LE(fixture.engine->pages().used(), areAll() ? 4 : 18 + 2 * 4);
  // What a whole text takes, and not three times its pages.
  EXPECT_EQ(fixture.engine->pages().total(), pagesOfSequence(config(), 1200));
  EXPECT_EQ(fixture.engine->pages().total(),
            areAll() ? 4 + 4 : 19 + 2 * (4 + 4));
  EXPECT_EQ(fixture.engine->textLimit(), 1200);
}

TEST_P(EngineWindows, APoolHasRoomForAsLongATextAsItSays) {
  // Pages of all of a text's positions, or of what windows see of any text.
  const std::pair<int64_t, int64_t> some[] = {
      {19 + 2 * 8 - 5, 14 * 64}, {7, 7 * 64}, {8, 1200}};
  for (const auto [pages, most] :
       std::span(some).subspan(areAll(), areAll() ? 2 : 1)) {
    WindowedFixture fixture({.rowsPerStep = 512, .pages = pages}, areAll());
    EXPECT_EQ(fixture.engine->textLimit(), most);
    const auto sequence = fixture.sequence();
    ASSERT_TRUE(
        succeeds(expectLogits(*sequence, tokens(static_cast<size_t>(most)))));
    EXPECT_TRUE(failsWith(readAll(*sequence, tokens(1)),
                          most == 1200
                              ? "context is full: 1200 of 1200"
                              : "the KV cache is too small: it has room for " +
                                    std::to_string(most)));
  }
}

TEST_P(EngineWindows, WhatIsReadIsTakenOver) {
  WindowedFixture fixture({.parallel = 2, .rowsPerStep = 64}, areAll());
  const auto first = fixture.sequence(), second = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*first, tokens(700))));
  fixture.newRows();
  std::vector<int32_t> other = tokens(700);
  other.push_back(3);
  ASSERT_TRUE(succeeds(expectLogits(*second, other, 700)));
  EXPECT_EQ(second->reusedTokens(), 700);
  EXPECT_EQ(fixture.newRows(), 1);
  // The two do not write to one another's pages.
  ASSERT_TRUE(succeeds(expectLogits(*first, tokens(80, 2))));
  ASSERT_TRUE(succeeds(expectLogits(*second, tokens(80, 4))));
}

/// By as much as a page nothing is read again, and further back as well unless
/// others have the pages.
TEST_P(EngineWindows, ATextGoesBack) {
  WindowedFixture fixture({.parallel = 2, .rowsPerStep = 64}, areAll());
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(700))));
  fixture.newRows();
  ASSERT_TRUE(succeeds(sequence->rewind(640)));
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(5, 3))));
  EXPECT_EQ(fixture.newRows(), 5);
  ASSERT_TRUE(succeeds(sequence->rewind(300)));
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(400, 4))));
  EXPECT_EQ(fixture.newRows(), 400);
  const auto other = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*other, tokens(1100, 7))));
  ASSERT_TRUE(succeeds(sequence->rewind(500)));
  fixture.newRows();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(5, 5))));
  EXPECT_EQ(sequence->position(), 505);
  EXPECT_GT(fixture.newRows(), 5);
}

TEST_P(EngineWindows, AForkSharesWhatWindowsSee) {
  WindowedFixture fixture({.parallel = 2}, areAll());
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(500))));
  const auto fork = sequence->fork().take();
  fixture.newRows();
  ASSERT_TRUE(succeeds(expectLogits(*fork, tokens(90, 3))));
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(90, 4))));
  EXPECT_EQ(fixture.newRows(), 180);
}

/// A step that fails in the middle of a prompt takes all of it back.
TEST_P(EngineWindows, AStepThatFailsIsTakenBack) {
  WindowedFixture fixture({.parallel = 2, .rowsPerStep = 64}, areAll());
  const auto sequence = fixture.sequence();
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(130))));
  int left = 7;
  fixture.device.behavior.onRun = [&] {
    if (--left == 0)
      fixture.device.behavior.failure = Status::error("out of order");
  };
  EXPECT_TRUE(failsWith(readAll(*sequence, tokens(700, 5)), "out of order"));
  EXPECT_EQ(sequence->position(), 130);
  fixture.device.behavior.failure = Status();
  fixture.device.behavior.onRun = nullptr;
  ASSERT_TRUE(succeeds(expectLogits(*sequence, tokens(700, 6))));
}

/// Texts that need more pages than there are wait, lose theirs and go on, with
/// steps ahead and drafts that are taken back.
TEST_P(EngineWindows, ManyTextsInFewPagesAreWhatTheyAreAlone) {
  for (const bool drafts : {false, true}) {
    EngineOptions options = {.parallel = 6, .rowsPerStep = 64};
    // Where all layers have windows, one less than three texts keep at most.
    options.pages = pagesOfSequence(config(), 1200) + (areAll() ? 3 : 4);
    options.runsAhead = !drafts;
    if (drafts)
      options.ngrams = NgramOptions();
    WindowedFixture fixture(options, areAll());
    fixture.device.behavior.errs = 300;
    constexpr size_t count = 6;
    constexpr int64_t length = 260;
    auto promptOf = [](size_t i) {
      return tokens(i % 2 ? 90 : 300, 1 + i / 2);
    };
    std::vector<std::unique_ptr<GeneratedText>> texts;
    for (size_t i = 0; i < count; ++i) {
      texts.push_back(std::make_unique<GeneratedText>(
          fixture, SamplerOptions{.temperature = 0},
          GenerationOptions{.maxTokens = length}));
      ASSERT_TRUE(succeeds(texts.back()->generation.start(promptOf(i))));
    }
    for (size_t done = 0; done < count;) {
      fixture.engine->step();
      for (size_t i = 0; i < count; ++i) {
        if (!texts[i] || !texts[i]->generation.isDone())
          continue;
        const auto result = texts[i]->generation.take();
        ASSERT_TRUE(succeeds(result.status()));
        EXPECT_EQ(result->ids, chosen(promptOf(i), length, fixture));
        texts[i].reset();
        ++done;
      }
    }
    EXPECT_GT(fixture.engine->counts().preemptions, 0);
    EXPECT_EQ(fixture.engine->counts().drafted > 0, drafts);
    EXPECT_EQ(fixture.engine->counts().ahead > 0, !drafts);
    EXPECT_EQ(fixture.engine->pages().used(), 0);
  }
}

} // namespace
