//===- SchedulerTest.cpp - Who reads in a step, and who waits -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

using namespace kf;

namespace {

using Ids = std::vector<int32_t>;

/// Ids that no other `seed` begins with.
Ids idsOf(size_t count, int32_t seed) {
  Ids ids(count);
  for (size_t i = 0; i < count; ++i)
    ids[i] = static_cast<int32_t>((i * i + 7 * i) % 90) + 100 * (seed + 1);
  return ids;
}

/// A scheduler, and steps that nothing computes.
struct Steps {
  struct Row {
    ScheduledReading *reading;
    int64_t rows;
    bool isChosen;
    bool isPrompt = false;
    /// What steps are expected to be.
    bool operator==(const Row &other) const {
      return reading == other.reading && rows == other.rows &&
             isChosen == other.isChosen;
    }
  };

  explicit Steps(int64_t pages, int64_t positions = 1000,
                 Scheduler::Limits limits = {.rows = 512,
                                             .prompts = 512,
                                             .chosen = 16},
                 bool reusesPrefixes = true, int64_t slots = 0,
                 const CacheWindows &windows = {})
      : pool(PagePool::create(pages, slots, /*kinds=*/1, windows).take()),
        scheduler(*pool, positions, reusesPrefixes), limits(limits) {}

  std::unique_ptr<ScheduledReading> reading(Ids ids) {
    auto made = std::make_unique<ScheduledReading>(PagedSequence(*pool));
    read(*made, std::move(ids));
    return made;
  }
  void read(ScheduledReading &reading, Ids ids) {
    reading.ids = std::move(ids);
    reading.next = reading.readAgain = 0;
    reading.firstWanted = reading.ids.size();
    scheduler.add(reading);
  }

  /// What is in a step, which is committed.
  std::vector<Row> step() {
    std::vector<Row> step;
    int64_t chosen = limits.chosen;
    refused = nullptr;
    scheduler.plan(limits, [&](ScheduledReading &reading, int64_t rows) {
      const auto rest = static_cast<int64_t>(reading.rest());
      int64_t count = std::min(rest, rows);
      const bool isChosen = count == rest && chosen > 0;
      count -= count == rest && !isChosen;
      std::vector<PageCopy> copies;
      if (count == 0)
        return Scheduler::Share();
      if (!reading.pages.reserve(count, copies).ok()) {
        EXPECT_FALSE(refused) << "one at most has nobody to wait for";
        refused = &reading;
        scheduler.remove(reading);
        return Scheduler::Share();
      }
      chosen -= isChosen;
      step.push_back({&reading, count, isChosen, rest != 1});
      return Scheduler::Share{count, isChosen};
    });
    for (const Row &row : step) {
      row.reading->commit(static_cast<size_t>(row.rows));
      scheduler.served(*row.reading);
    }
    return step;
  }
  /// The reading is over.
  void end(ScheduledReading &reading) { scheduler.remove(reading); }
  /// Its sequence, too.
  void destroy(std::unique_ptr<ScheduledReading> &reading) {
    scheduler.remove(*reading);
    reading.reset();
  }

  std::unique_ptr<PagePool> pool;
  Scheduler scheduler;
  Scheduler::Limits limits;
  ScheduledReading *refused = nullptr; ///< in the last step
};

using Rows = std::vector<Steps::Row>;

/// The second has to wait for the first one's pages, and the third, which there
/// would be room for, does not overtake it.
TEST(Scheduler, BeginsInTheOrderOfArrival) {
  Steps steps(6);
  auto first = steps.reading(idsOf(150, 1));  // 3 pages, and one to go on
  auto second = steps.reading(idsOf(140, 2)); // the same
  auto third = steps.reading(idsOf(10, 3));
  EXPECT_EQ(steps.step(), Rows({{first.get(), 150, true}}));
  EXPECT_FALSE(second->begun());
  EXPECT_EQ(steps.scheduler.waiting(), 2);
  EXPECT_FALSE(steps.scheduler.anyCouldBegin());
  steps.end(*first);
  steps.read(*first, {1});
  EXPECT_EQ(steps.step(), Rows({{first.get(), 1, true}}));
  steps.destroy(first);
  EXPECT_TRUE(steps.scheduler.anyCouldBegin());
  EXPECT_TRUE(second->pages.pages().empty()) << "asking changes nothing";
  EXPECT_EQ(steps.step(),
            Rows({{second.get(), 140, true}, {third.get(), 10, true}}));
  EXPECT_EQ(steps.scheduler.preemptions(), 0);
  steps.end(*second);
  steps.end(*third);
}

/// The last one to come loses its pages, goes on later, and has its tokens
/// then.
TEST(Scheduler, TheLastOneLosesItsPages) {
  Steps steps(5);
  auto first = steps.reading(idsOf(64, 1));
  auto second = steps.reading(idsOf(64, 2));
  EXPECT_EQ(steps.step().size(), 2u);
  for (auto *reading : {first.get(), second.get()}) {
    steps.end(*reading);
    steps.read(*reading, {7});
  }
  EXPECT_EQ(steps.step().size(), 2u);
  // The first one reads more than there is beside the second.
  steps.end(*first);
  steps.read(*first, idsOf(190, 4));
  steps.end(*second);
  steps.read(*second, {8});
  EXPECT_EQ(steps.step(), Rows({{first.get(), 190, true}}));
  EXPECT_EQ(steps.scheduler.preemptions(), 1);
  EXPECT_EQ(steps.scheduler.waiting(), 1);
  EXPECT_EQ(second->readAgain, 65u);
  EXPECT_EQ(second->pages.length(), 0);
  Ids all = idsOf(64, 2);
  all.push_back(7);
  all.push_back(8);
  EXPECT_EQ(second->ids, all);
  const auto waits = steps.step();
  EXPECT_TRUE(waits.empty() || waits.front().reading != second.get());
  steps.destroy(first);
  // The first page of it is in the cache still.
  EXPECT_EQ(steps.step(), Rows({{second.get(), 2, true}}));
  EXPECT_TRUE(std::ranges::equal(second->pages.ids(), all));
  EXPECT_EQ(second->reused, 0) << "it did not begin with anything";
  steps.end(*second);
}

/// What they give up is for the one that takes it, not for whoever comes next.
TEST(Scheduler, LosersAreNotOvertaken) {
  Steps steps(9);
  auto first = steps.reading(idsOf(64, 1));
  EXPECT_EQ(steps.step().size(), 1u);
  steps.end(*first);
  auto second = steps.reading(idsOf(200, 2));
  EXPECT_EQ(steps.step().size(), 1u);
  steps.end(*second);
  steps.read(*first, idsOf(300, 3)); // one page more than there is
  steps.read(*second, {1});
  auto third = steps.reading(idsOf(10, 4));
  EXPECT_EQ(steps.step(), Rows({{first.get(), 300, true}}));
  EXPECT_FALSE(second->begun());
  EXPECT_FALSE(third->begun());
  steps.destroy(first);
  const Rows rows = steps.step();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].reading, second.get());
  EXPECT_EQ(rows[1].reading, third.get());
  steps.end(*second);
  steps.end(*third);
}

/// Where what the later ones have is not enough, they keep it.
TEST(Scheduler, NobodyLosesWhatWouldNotDo) {
  Steps steps(5);
  auto readAlone = [&](size_t count, int32_t seed) {
    auto reading = steps.reading(idsOf(count, seed));
    EXPECT_EQ(steps.step().size(), 1u);
    steps.end(*reading);
    return reading;
  };
  auto first = readAlone(150, 1), second = readAlone(64, 2),
       third = readAlone(10, 3);
  EXPECT_EQ(steps.pool->available(), 0);
  steps.read(*first, {1});
  steps.read(*second, idsOf(100, 4)); // two pages
  steps.read(*third, {1});
  EXPECT_EQ(steps.step(),
            Rows({{first.get(), 1, true}, {third.get(), 1, true}}));
  EXPECT_EQ(steps.scheduler.preemptions(), 0);
  steps.end(*third);
  steps.read(*third, {2});
  steps.destroy(first);
  EXPECT_EQ(steps.step(),
            Rows({{second.get(), 100, true}, {third.get(), 1, true}}));
  // What it has in common with others is not enough, either.
  steps.end(*second);
  second->pages.truncate(128);
  auto fourth = std::make_unique<ScheduledReading>(
      PagedSequence(second->pages.fork().take()));
  steps.end(*third);
  auto idle = readAlone(100, 5);
  EXPECT_EQ(steps.pool->available(), 0);
  steps.read(*second, {1});
  steps.read(*fourth, {1});
  EXPECT_TRUE(steps.step().empty());
  EXPECT_EQ(steps.refused, second.get());
  EXPECT_TRUE(fourth->begun());
  EXPECT_EQ(steps.scheduler.preemptions(), 0);
  steps.end(*fourth);
}

/// Who shares a page that would have to be copied gives that up.
TEST(Scheduler, ACopyLessIsAPageMore) {
  Steps steps(1);
  auto first = steps.reading(idsOf(30, 1));
  EXPECT_EQ(steps.step().size(), 1u);
  steps.end(*first);
  auto second = std::make_unique<ScheduledReading>(
      PagedSequence(first->pages.fork().take()));
  steps.read(*first, {1});
  steps.read(*second, {2});
  EXPECT_EQ(steps.step(), Rows({{first.get(), 1, true}}));
  EXPECT_EQ(steps.scheduler.preemptions(), 1);
  EXPECT_FALSE(second->begun());
  steps.end(*first);
  steps.end(*second);
}

/// What others have of its tokens is not read again, whoever loses.
TEST(Scheduler, WhatIsSharedStays) {
  Steps steps(7);
  const Ids common = idsOf(128, 1);
  auto first = steps.reading(common);
  EXPECT_EQ(steps.step().size(), 1u);
  steps.end(*first);
  Ids more = common;
  more.insert(more.end(), 70, 5);
  auto second = steps.reading(more);
  steps.read(*first, {9});
  EXPECT_EQ(steps.step().size(), 2u);
  EXPECT_EQ(second->reused, 128);
  steps.end(*first);
  steps.end(*second);
  steps.read(*second, {6});
  steps.read(*first, idsOf(200, 3)); // all but one page
  EXPECT_EQ(steps.step(), Rows({{first.get(), 200, true}}));
  EXPECT_FALSE(second->begun());
  steps.end(*first);
  EXPECT_EQ(first->pages.length(), 329);
  first->pages.truncate(128);
  // The first took the last page of the second, whose other one is in the
  // cache.
  EXPECT_EQ(steps.step(), Rows({{second.get(), 7, true}}));
  EXPECT_EQ(second->pages.length(), 199);
  steps.end(*second);
  first.reset();
}

/// Of what was told already nothing is told again.
TEST(Scheduler, WhatWasWantedIsWantedOnce) {
  Steps steps(4, 1000, {.rows = 50, .prompts = 50, .chosen = 50});
  auto first = steps.reading({1});
  EXPECT_EQ(steps.step().size(), 1u);
  steps.end(*first);
  auto second = steps.reading(idsOf(200, 2));
  second->firstWanted = 20;
  EXPECT_EQ(steps.step(), Rows({{second.get(), 50, false}}));
  steps.read(*first, idsOf(250, 3));
  size_t told = 0;
  while (!first->isWhole()) {
    told = std::max(told, static_cast<size_t>(second->pages.length()));
    EXPECT_FALSE(steps.step().empty());
  }
  EXPECT_EQ(second->pages.length(), 0);
  EXPECT_EQ(second->readAgain, 0u) << "these are what was asked for";
  EXPECT_GT(told, 50u);
  EXPECT_EQ(second->firstWanted, told);
  steps.destroy(first);
  while (!second->isWhole())
    EXPECT_FALSE(steps.step().empty());
  steps.end(*second);
}

/// What a sequence finds of its own, after it has lost its pages, is nothing
/// that it was spared.
TEST(Scheduler, WhatIsItsOwnIsNotReused) {
  Steps steps(5, 1000, {.rows = 50, .prompts = 50, .chosen = 50});
  auto first = steps.reading({1});
  steps.step();
  steps.end(*first);
  auto second = steps.reading(idsOf(150, 2));
  steps.step();
  EXPECT_EQ(steps.step(), Rows({{second.get(), 50, false}}));
  steps.read(*first, idsOf(250, 3));
  while (!first->isWhole())
    EXPECT_FALSE(steps.step().empty());
  EXPECT_EQ(steps.scheduler.preemptions(), 1);
  steps.destroy(first);
  steps.step();
  EXPECT_EQ(second->pages.length(), 64 + 50);
  EXPECT_EQ(second->reused, 0);
  steps.end(*second);
}

/// Where nobody who reads has a page to give, waiting would never end.
TEST(Scheduler, TheFirstOneFailsWhereNobodyReads) {
  Steps steps(3);
  auto idle = steps.reading(idsOf(100, 1));
  EXPECT_EQ(steps.step().size(), 1u);
  steps.end(*idle);
  auto first = steps.reading(idsOf(60, 2));
  EXPECT_EQ(steps.step().size(), 1u) << "alone, it has not to have more room";
  steps.end(*first);
  steps.read(*first, idsOf(5, 3));
  auto second = steps.reading(idsOf(10, 4));
  // It reads what there is room for.
  EXPECT_EQ(steps.step(), Rows({{first.get(), 4, false}}));
  EXPECT_TRUE(steps.step().empty());
  EXPECT_EQ(steps.refused, first.get());
  // Then it is the other one's turn.
  EXPECT_TRUE(steps.step().empty());
  EXPECT_EQ(steps.refused, second.get());
  EXPECT_TRUE(steps.scheduler.queue().empty());
  idle.reset();
  steps.read(*second, idsOf(10, 4));
  EXPECT_EQ(steps.step().size(), 1u);
  steps.end(*second);
}

/// Those that read keep their slots, and others wait for one.
TEST(Scheduler, WaitsForASlot) {
  Steps steps(20, 1000, {.rows = 512, .prompts = 512, .chosen = 16},
              /*reusesPrefixes=*/false, /*slots=*/1);
  auto first = steps.reading(idsOf(5, 0)), second = steps.reading(idsOf(6, 1));
  EXPECT_EQ(steps.step(), (Rows{{first.get(), 5, true}}));
  EXPECT_EQ(steps.scheduler.waiting(), 1);
  EXPECT_EQ(first->pages.slot(), 0);
  // It reads no more, and its slot goes to the next one.
  steps.end(*first);
  EXPECT_EQ(steps.step(), (Rows{{second.get(), 6, true}}));
  EXPECT_TRUE(first->pages.lacksState());
  // What it read is read again.
  steps.end(*second);
  steps.read(*first, {7});
  first->giveUpPages();
  EXPECT_EQ(first->readAgain, 5u);
  EXPECT_EQ(steps.step(), (Rows{{first.get(), 6, true}}));
  EXPECT_EQ(first->pages.length(), 6);
  EXPECT_TRUE(second->pages.lacksState());
}

/// Who does not read keeps its slot where one that wants to begin has no pages,
/// and whoever asks whether one could.
TEST(Scheduler, NobodyLosesASlotInVain) {
  Steps steps(7, 1000, {.rows = 512, .prompts = 512, .chosen = 16},
              /*reusesPrefixes=*/false, /*slots=*/2);
  auto idle = steps.reading(idsOf(5, 0));
  EXPECT_EQ(steps.step(), (Rows{{idle.get(), 5, true}}));
  steps.end(*idle);
  auto busy = steps.reading(idsOf(70, 1));
  EXPECT_EQ(steps.step(), (Rows{{busy.get(), 70, true}}));
  busy->ids = {1};
  busy->next = 0;
  auto large = steps.reading(idsOf(200, 2));
  EXPECT_FALSE(steps.scheduler.anyCouldBegin());
  EXPECT_EQ(steps.step(), (Rows{{busy.get(), 1, true}}));
  EXPECT_FALSE(idle->pages.lacksState());
  EXPECT_EQ(large->pages.slot(), -1);
  // There are pages enough for a small one, which is only asked about.
  steps.destroy(large);
  auto small = steps.reading(idsOf(3, 2));
  EXPECT_TRUE(steps.scheduler.anyCouldBegin());
  EXPECT_FALSE(idle->pages.lacksState());
  EXPECT_EQ(small->pages.slot(), -1);
  EXPECT_FALSE(small->begun());
}

/// Prompts leave a row to those behind them that generate.
TEST(Scheduler, PromptsLeaveRowsToOthers) {
  Steps steps(100, 1000, {.rows = 20, .prompts = 20, .chosen = 3});
  std::vector<std::unique_ptr<ScheduledReading>> generating;
  for (int32_t i = 0; i < 3; ++i) {
    generating.push_back(steps.reading(idsOf(2, i)));
    steps.step();
  }
  auto prompt = steps.reading(idsOf(100, 9));
  for (int round = 0; round < 5; ++round) {
    for (auto &reading : generating) {
      steps.end(*reading);
      steps.read(*reading, {1});
    }
    const Rows rows = steps.step();
    EXPECT_EQ(rows.size(), 4u);
    for (const Steps::Row &row : rows)
      EXPECT_EQ(row.rows, row.reading == prompt.get() ? 17 : 1);
  }
  for (auto &reading : generating)
    steps.end(*reading);
  steps.end(*prompt);
}

/// Those that generate do not count as prompts.
TEST(Scheduler, PromptsHaveALimitOfTheirOwn) {
  Steps steps(100, 1000, {.rows = 50, .prompts = 6, .chosen = 10});
  auto generating = steps.reading({1});
  steps.step();
  steps.end(*generating);
  auto first = steps.reading(idsOf(100, 1));
  auto second = steps.reading(idsOf(5, 2));
  steps.read(*generating, {2});
  EXPECT_EQ(steps.step(),
            Rows({{first.get(), 6, false}, {generating.get(), 1, true}}));
  EXPECT_EQ(steps.step(),
            Rows({{second.get(), 5, true}, {first.get(), 1, false}}));
  steps.end(*generating);
  steps.end(*first);
  steps.end(*second);
}

/// What they have drafted does not, either.
TEST(Scheduler, DraftsAreNoPrompts) {
  Steps steps(100, 1000, {.rows = 50, .prompts = 2, .chosen = 10});
  auto generating = steps.reading({1});
  steps.step();
  steps.end(*generating);
  auto prompt = steps.reading(idsOf(100, 1));
  steps.read(*generating, {2, 3, 4, 5, 6});
  generating->drafted = 4;
  EXPECT_EQ(steps.step(),
            Rows({{prompt.get(), 2, false}, {generating.get(), 5, true}}));
  steps.end(*generating);
  steps.end(*prompt);
}

/// Prompts that are alike are read in the order of arrival, not all at once.
TEST(Scheduler, PromptsAreReadOneAfterTheOther) {
  Steps steps(100, 1000, {.rows = 8, .prompts = 8, .chosen = 3});
  std::vector<std::unique_ptr<ScheduledReading>> prompts;
  for (int32_t i = 0; i < 3; ++i)
    prompts.push_back(steps.reading(idsOf(12, i)));
  EXPECT_EQ(steps.step(), Rows({{prompts[0].get(), 8, false}}));
  EXPECT_EQ(steps.step(),
            Rows({{prompts[0].get(), 4, true}, {prompts[1].get(), 4, false}}));
  EXPECT_EQ(steps.step(), Rows({{prompts[1].get(), 8, true}}));
  EXPECT_EQ(steps.step(), Rows({{prompts[2].get(), 8, false}}));
  EXPECT_EQ(steps.step(), Rows({{prompts[2].get(), 4, true}}));
  for (auto &prompt : prompts)
    steps.end(*prompt);
}

/// Short ones do not wait for long ones, nor these for ever.
TEST(Scheduler, ShortPromptsAreReadInEverySecondStep) {
  Steps steps(100, 1000, {.rows = 10, .prompts = 10, .chosen = 3});
  auto longest = steps.reading(idsOf(40, 1));
  std::vector<std::unique_ptr<ScheduledReading>> others;
  for (int round = 0; round < 2; ++round) {
    others.push_back(steps.reading(idsOf(10, 2 + round)));
    EXPECT_EQ(steps.step(), Rows({{longest.get(), 10, false}}));
    EXPECT_EQ(steps.step(), Rows({{others.back().get(), 10, true}}));
    steps.end(*others.back());
  }
  EXPECT_EQ(steps.step(), Rows({{longest.get(), 10, false}}));
  EXPECT_EQ(steps.step(), Rows({{longest.get(), 10, true}}));
  steps.end(*longest);
}

/// One who reads prompt after prompt comes with each of them anew.
TEST(Scheduler, WhoeverReadsOnComesBehindOthers) {
  Steps steps(100, 2000, {.rows = 64, .prompts = 64, .chosen = 3});
  auto first = steps.reading(idsOf(64, 1));
  auto second = steps.reading(idsOf(640, 2));
  int round = 0;
  for (; second->rest() > 0 && round < 25; ++round)
    for (const Steps::Row &row : steps.step())
      if (row.reading == first.get() && row.isChosen) {
        steps.end(*first);
        steps.read(*first, idsOf(64, 3 + round));
      }
  // Each has every second step.
  EXPECT_LE(round, 21);
  steps.end(*first);
  steps.end(*second);
}

/// Long prompts that wait do not hand their places to short ones: each that
/// generates has its turn, although a step chooses one token.
TEST(Scheduler, PromptsTakeNoTokensOutOfTurn) {
  Steps steps(400, 3000, {.rows = 16, .prompts = 16, .chosen = 1});
  constexpr int texts = 8;
  std::vector<std::unique_ptr<ScheduledReading>> generating;
  std::vector<int> last(texts, 0);
  for (int32_t i = 0; i < texts; ++i) {
    generating.push_back(steps.reading(idsOf(1, i)));
    steps.step();
    steps.end(*generating.back());
  }
  for (auto &reading : generating)
    steps.read(*reading, {1});
  auto longOne = steps.reading(idsOf(2000, 20)),
       other = steps.reading(idsOf(2000, 21)),
       shortOne = steps.reading(idsOf(2, 22));
  int longest = 0;
  for (int round = 1; round < 100; ++round)
    for (const Steps::Row &row : steps.step()) {
      if (!row.isChosen)
        continue;
      if (row.reading == shortOne.get()) {
        steps.destroy(shortOne);
        shortOne = steps.reading(idsOf(2, 22 + round));
        continue;
      }
      const auto text = std::ranges::find(
          generating, row.reading, &std::unique_ptr<ScheduledReading>::get);
      ASSERT_NE(text, generating.end());
      int &before = last[static_cast<size_t>(text - generating.begin())];
      longest = std::max(longest, round - before);
      before = round;
      steps.end(*row.reading);
      steps.read(*row.reading, {1});
    }
  EXPECT_LE(longest, texts + 3);
  for (auto &reading : generating)
    steps.end(*reading);
  steps.end(*longOne);
  steps.end(*other);
  steps.end(*shortOne);
}

//===----------------------------------------------------------------------===//
// Many requests
//===----------------------------------------------------------------------===//

struct Traffic {
  int64_t pages;
  size_t atOnce;      ///< requests that the scheduler knows at once
  bool alike = false; ///< many prompts begin with the same tokens
  bool reusesPrefixes = true;
  int64_t prompts = 64;   ///< rows of a step for them
  bool hasEnough = false; ///< nobody has to wait for a page once it has begun
  CacheWindows windows = {};
};

/// A thousand requests come in bursts and are generated, each token from all
/// before it. What has to hold, holds for each step.
void simulate(const Traffic &traffic) {
  constexpr size_t count = 1000;
  constexpr int64_t positions = 700, wantedRows = 16;
  Steps steps(traffic.pages, positions,
              {.rows = 64, .prompts = traffic.prompts, .chosen = wantedRows},
              traffic.reusesPrefixes, /*slots=*/0, traffic.windows);
  struct Text {
    std::unique_ptr<ScheduledReading> reading;
    Ids tokens; ///< all there have to be
    size_t prompt = 0;
    size_t known = 0;       ///< of tokens, that were read or are being read
    int64_t lastRow = 0;    ///< step, since it could have one
    int64_t lastToken = -1; ///< step
    bool hasBegun = false;  ///< at the moment
  };
  auto following = [](std::span<const int32_t> tokens) {
    uint64_t hash = 17;
    for (int32_t token : tokens)
      hash = hash * 31 + static_cast<uint64_t>(token);
    return static_cast<int32_t>(hash % 97);
  };
  std::mt19937 random(5);
  std::deque<Text> waiting;
  std::vector<Text> texts; // that the scheduler knows, by arrival
  int64_t step = 0, longestGap = 0, mostBegun = 0, rows = 0, needed = 0;
  int64_t longestWithoutRow = 0, longestOfFirst = 0;
  size_t made = 0, done = 0, overtaken = 0;
  while (done < count) {
    ASSERT_LT(step, 200'000) << "no progress";
    // Arrivals, all at once now and then.
    if (made < count && random() % 20 == 0)
      for (size_t n = random() % 30; n > 0 && made < count; --n, ++made) {
        Text text;
        text.tokens = idsOf(1 + random() % 300,
                            traffic.alike ? static_cast<int32_t>(random() % 3)
                                          : static_cast<int32_t>(made));
        text.prompt = text.tokens.size();
        for (size_t more = 1 + random() % 200; more > 0; --more)
          text.tokens.push_back(following(text.tokens));
        needed += static_cast<int64_t>(text.tokens.size()) - 1;
        waiting.push_back(std::move(text));
      }
    while (!waiting.empty() && texts.size() < traffic.atOnce) {
      Text text = std::move(waiting.front());
      waiting.pop_front();
      text.known = text.prompt;
      text.lastRow = step;
      text.reading = steps.reading(
          Ids(text.tokens.begin(),
              text.tokens.begin() + static_cast<ptrdiff_t>(text.prompt)));
      texts.push_back(std::move(text));
    }
    std::vector<const ScheduledReading *> before;
    for (const Text &text : texts)
      if (text.reading->begun())
        before.push_back(text.reading.get());

    const Rows taken = steps.step();
    ASSERT_FALSE(steps.refused) << "all fit, and all of them read";
    ASSERT_EQ(taken.empty(), texts.empty()) << "someone gets on";
    ++step;
    int64_t begun = 0;
    bool anyWaits = false;
    for (Text &text : texts) {
      const bool isBegun = text.reading->begun();
      begun += isBegun;
      if (!std::exchange(text.hasBegun, isBegun) && isBegun)
        overtaken += anyWaits;
      anyWaits |= !isBegun;
    }
    mostBegun = std::max(mostBegun, begun);
    // Of those that had begun, only the last ones have lost their pages.
    ASSERT_TRUE(before.empty() || before.front()->begun());
    ASSERT_TRUE(std::ranges::is_sorted(before, std::greater(),
                                       &ScheduledReading::begun));
    const auto firstPrompt = std::ranges::find_if(texts, [](const Text &text) {
      return text.reading->begun() && text.known == text.prompt;
    });
    for (Text &text : texts) {
      // Of the prompts, the one that came first.
      const bool hasPages =
          traffic.hasEnough
              ? text.reading->begun() && (text.known > text.prompt ||
                                          &text == std::to_address(firstPrompt))
              : &text == &texts.front();
      if (hasPages)
        longestWithoutRow = std::max(longestWithoutRow, step - text.lastRow);
      if (hasPages && text.known == text.prompt)
        longestOfFirst = std::max(longestOfFirst, step - text.lastRow);
      if (!hasPages || std::ranges::find(taken, text.reading.get(),
                                         &Steps::Row::reading) != taken.end())
        text.lastRow = step;
    }
    int64_t all = 0, ofPrompts = 0;
    for (const Steps::Row &row : taken) {
      all += row.rows;
      ofPrompts += row.isPrompt ? row.rows : 0;
      const auto text = std::ranges::find(
          texts, row.reading, [](const Text &t) { return t.reading.get(); });
      const ScheduledReading &reading = *text->reading;
      ASSERT_TRUE(std::ranges::equal(
          reading.pages.ids(),
          std::span(text->tokens).first(reading.pages.ids().size())));
      if (!row.isChosen)
        continue;
      ASSERT_EQ(reading.pages.ids().size(), text->known);
      ASSERT_EQ(following(reading.pages.ids()), text->tokens[text->known]);
      // Unless it has lost its pages in between.
      if (text->lastToken >= 0 && reading.readAgain == 0)
        longestGap = std::max(longestGap, step - text->lastToken);
      text->lastToken = step;
      if (++text->known == text->tokens.size()) {
        steps.destroy(text->reading);
        texts.erase(text);
        ++done;
        continue;
      }
      steps.end(*text->reading);
      steps.read(*text->reading, {text->tokens[text->known - 1]});
    }
    ASSERT_LE(all, 64);
    ASSERT_LE(ofPrompts, traffic.prompts);
    rows += all;
    if (step % 100 == 0) {
      std::vector<const PagedSequence *> living;
      for (const Text &text : texts)
        living.push_back(&text.reading->pages);
      const Status status = steps.pool->check(living);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  EXPECT_EQ(steps.pool->used(), 0);
  // Everybody's turn comes before anybody's second one.
  if (traffic.hasEnough)
    EXPECT_LE(longestGap, (mostBegun + wantedRows - 1) / wantedRows);
  EXPECT_EQ(steps.scheduler.preemptions() == 0, traffic.hasEnough);
  // Whoever came first of all gets on, and where there are pages, everybody.
  EXPECT_LE(longestWithoutRow, mostBegun);
  if (traffic.hasEnough)
    EXPECT_LE(longestOfFirst, 1 + (mostBegun + wantedRows - 1) / wantedRows);
  // Whoever waits for a prompt like its own is the only one to be overtaken.
  if (!traffic.alike)
    EXPECT_EQ(overtaken, 0u);
  // What is read again is little beside what has to be read.
  EXPECT_LT(rows, needed + needed / 5);
}

/// With as many at once as a step chooses tokens, each gets one each step.
TEST(SchedulerSimulation, EnoughPages) {
  simulate({.pages = 16 * 11, .atOnce = 16, .hasEnough = true});
}
/// Whose prompts are read slowly.
TEST(SchedulerSimulation, FewRowsOfPrompts) {
  simulate({.pages = 16 * 11, .atOnce = 16, .prompts = 5, .hasEnough = true});
}
TEST(SchedulerSimulation, FewPages) { simulate({.pages = 30, .atOnce = 16}); }
TEST(SchedulerSimulation, HardlyAnyPages) {
  simulate({.pages = 11, .atOnce = 16});
}
TEST(SchedulerSimulation, ManyAtOnce) {
  simulate({.pages = 200 * 11, .atOnce = 200, .hasEnough = true});
}
TEST(SchedulerSimulation, ManyWait) { simulate({.pages = 40, .atOnce = 1000}); }
TEST(SchedulerSimulation, PromptsThatBeginAlike) {
  simulate({.pages = 30, .atOnce = 100, .alike = true});
}
TEST(SchedulerSimulation, WithoutSharing) {
  simulate(
      {.pages = 30, .atOnce = 100, .alike = true, .reusesPrefixes = false});
}

/// Two groups of layers see 100 positions, so that a text has 11 pages at most
/// of those that see all, and 5 of each of the others, beside a step's.
constexpr CacheWindows kWindows = {.tables = 2, .positions = 100};
constexpr int64_t kMostPages = 11 + 2 * (5 + 1);

/// Of all layers: a text has no other pages.
constexpr CacheWindows kAllWindows = {
    .tables = 1, .positions = 100, .areAll = true};
constexpr int64_t kMostOfAll = 5 + 1;

/// What a text shares with those that came later, and would be its own without
/// them, is enough for it.
void shareWithLosers(const CacheWindows &windows) {
  constexpr size_t before = 300, more = 640;
  const int64_t alone = (windows.areAll ? 0 : cachePagesOf(before + more)) +
                        windows.tables * (windows.pagesKept() + 1);
  for (int64_t pages = alone; pages <= 3 * alone; ++pages) {
    SCOPED_TRACE(std::to_string(pages) + " pages");
    Steps steps(pages, 1000, {.rows = 64, .prompts = 64, .chosen = 16}, true,
                /*slots=*/0, windows);
    auto first = steps.reading(idsOf(before, 1));
    while (!first->isWhole())
      steps.step();
    steps.end(*first);
    std::vector<std::unique_ptr<ScheduledReading>> forks;
    for (int32_t i = 0; i < 3; ++i) {
      forks.push_back(
          std::make_unique<ScheduledReading>(first->pages.fork().take()));
      steps.read(*forks.back(), idsOf(128, 2 + i));
    }
    // Nobody takes pages of those that do not read.
    auto dropRefused = [&] {
      std::erase_if(
          forks, [&](const auto &fork) { return fork.get() == steps.refused; });
    };
    for (int step = 0; step < 12; ++step) {
      steps.step();
      dropRefused();
    }
    for (auto &fork : forks)
      if (fork->isWhole()) {
        steps.end(*fork);
        steps.read(*fork, {1});
      }
    steps.read(*first, idsOf(more, 9));
    for (int step = 0; step < 100 && !first->isWhole(); ++step) {
      steps.step();
      ASSERT_NE(steps.refused, first.get());
      dropRefused();
    }
    ASSERT_TRUE(first->isWhole());
    steps.end(*first);
    for (auto &fork : forks)
      steps.end(*fork);
  }
}

TEST(Scheduler, WindowsThatAreSharedWithLosersAreEnough) {
  shareWithLosers(kWindows);
  shareWithLosers(kAllWindows);
}

/// The pages of windows that a prompt needs for one step are nobody else's that
/// generates.
TEST(Scheduler, ChunksOfPromptsLeaveWindowsToOthers) {
  for (size_t length = 100; length < 140; ++length) {
    SCOPED_TRACE(std::to_string(length) + " tokens");
    // Not enough for a step of all rows once most of the prompt is read.
    Steps steps(25 + 2 * 5 + 3 + 2 * 4, 2000,
                {.rows = 513, .prompts = 512, .chosen = 16}, true,
                /*slots=*/0, kWindows);
    auto prompt = steps.reading(idsOf(1500, 1));
    auto other = steps.reading(idsOf(length, 2));
    bool generates = false;
    for (int step = 0; step < 60; ++step) {
      bool isServed = false;
      for (const Steps::Row &row : steps.step()) {
        if (!row.isChosen)
          continue;
        steps.end(*row.reading);
        isServed |= row.reading == other.get();
        if (row.reading == other.get())
          steps.read(*other, {step});
      }
      EXPECT_TRUE(isServed || !generates) << "step " << step;
      generates |= isServed;
    }
    EXPECT_TRUE(generates && prompt->isWhole());
    EXPECT_EQ(steps.scheduler.preemptions(), 0);
    steps.end(*other);
  }
}

TEST(SchedulerSimulation, WindowsWithEnoughPages) {
  simulate({.pages = 16 * kMostPages,
            .atOnce = 16,
            .hasEnough = true,
            .windows = kWindows});
}
TEST(SchedulerSimulation, WindowsWithFewPages) {
  simulate({.pages = 2 * kMostPages, .atOnce = 16, .windows = kWindows});
}
TEST(SchedulerSimulation, WindowsWithHardlyAnyPages) {
  simulate({.pages = kMostPages, .atOnce = 16, .windows = kWindows});
}
TEST(SchedulerSimulation, WindowsOfPromptsThatBeginAlike) {
  simulate({.pages = 3 * kMostPages / 2,
            .atOnce = 100,
            .alike = true,
            .windows = kWindows});
}

TEST(SchedulerSimulation, WindowsOfAllLayersWithEnoughPages) {
  simulate({.pages = 16 * kMostOfAll,
            .atOnce = 16,
            .hasEnough = true,
            .windows = kAllWindows});
}
TEST(SchedulerSimulation, WindowsOfAllLayersWithFewPages) {
  simulate({.pages = 2 * kMostOfAll, .atOnce = 16, .windows = kAllWindows});
}
TEST(SchedulerSimulation, WindowsOfAllLayersWithHardlyAnyPages) {
  simulate({.pages = kMostOfAll, .atOnce = 16, .windows = kAllWindows});
}
TEST(SchedulerSimulation, WindowsOfAllLayersOfPromptsThatBeginAlike) {
  simulate({.pages = 5 * kMostOfAll / 2,
            .atOnce = 100,
            .alike = true,
            .windows = kAllWindows});
}

/// Beside steps that are under way, whoever has nothing left to read is in no
/// other, and nobody loses pages: a step waits.
TEST(Scheduler, BesideOthersNobodyLosesPages) {
  Steps steps(5);
  auto first = steps.reading(idsOf(60, 1)),
       second = steps.reading(idsOf(60, 2));
  EXPECT_EQ(steps.step(),
            Rows({{first.get(), 60, true}, {second.get(), 60, true}}));
  steps.limits.isBeside = true;
  EXPECT_TRUE(steps.step().empty()) << "both wait for what is chosen";
  steps.end(*first);
  steps.read(*first, idsOf(250, 3)); // all but one page that there are
  EXPECT_TRUE(steps.step().empty());
  EXPECT_TRUE(second->begun());
  EXPECT_EQ(steps.scheduler.preemptions(), 0);
  EXPECT_FALSE(steps.refused);
  steps.end(*second);
  steps.read(*second, {1});
  steps.limits.isBeside = false;
  EXPECT_EQ(steps.step(), Rows({{first.get(), 250, true}}));
  EXPECT_FALSE(second->begun());
  EXPECT_EQ(steps.scheduler.preemptions(), 1);
}

/// Who has too few pages, and would not get enough of those behind it, does not
/// have others wait.
TEST(Scheduler, BesideOthersWhoIsShortTakesWhatThereIs) {
  Steps steps(6);
  auto first = steps.reading(idsOf(60, 1)),
       second = steps.reading(idsOf(60, 2)), third = steps.reading({1, 2});
  EXPECT_EQ(steps.step(), Rows({{first.get(), 60, true},
                                {second.get(), 60, true},
                                {third.get(), 2, true}}));
  for (ScheduledReading *each : {first.get(), second.get(), third.get()})
    steps.end(*each);
  steps.limits.isBeside = true;
  steps.read(*first, {1});
  steps.read(*second, idsOf(320, 3)); // more pages than are left
  EXPECT_EQ(steps.step(),
            Rows({{first.get(), 1, true}, {second.get(), 196, false}}));
  EXPECT_FALSE(steps.refused);
  EXPECT_EQ(steps.scheduler.preemptions(), 0);
}

/// A step has as many that generate as it is to have, by turns, and prompts
/// leave rows to no others.
TEST(Scheduler, TextsOfAStep) {
  Steps steps(40, 1000, {.rows = 4, .prompts = 4, .chosen = 16, .texts = 2});
  std::vector<std::unique_ptr<ScheduledReading>> texts;
  for (int32_t i = 0; i < 5; ++i)
    texts.push_back(steps.reading({i + 1}));
  auto prompt = steps.reading(idsOf(100, 1));
  auto again = [&](size_t i) {
    steps.end(*texts[i]);
    steps.read(*texts[i], {1});
  };
  EXPECT_EQ(steps.step(), Rows({{texts[0].get(), 1, true},
                                {texts[1].get(), 1, true},
                                {prompt.get(), 2, false}}));
  again(0);
  again(1);
  EXPECT_EQ(steps.step(), Rows({{texts[2].get(), 1, true},
                                {texts[3].get(), 1, true},
                                {prompt.get(), 2, false}}));
}

} // namespace
