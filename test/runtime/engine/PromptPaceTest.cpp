//===- PromptPaceTest.cpp - Rows of prompts beside texts that go on -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PromptPace.h"
#include "runtime/engine/Scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>

using namespace kf;

namespace {

/// What steps take on some machine: its programs, from the smallest on, what
/// each takes in seconds, and what each of the rows that are used adds.
struct Machine {
  std::vector<std::pair<int64_t, double>> programs;
  double row = 0;

  int64_t programOf(int64_t rows) const {
    return std::ranges::lower_bound(programs, rows, {},
                                    &std::pair<int64_t, double>::first)
        ->first;
  }
  double seconds(int64_t rows) const {
    const auto program = std::ranges::lower_bound(
        programs, rows, {}, &std::pair<int64_t, double>::first);
    return program->second + row * static_cast<double>(rows);
  }
};

/// Like an H200 with llama-3-8b in q4_k: a program takes as long for a row as
/// for all.
const Machine inTiles = {{{1, 1.7e-3},
                          {16, 2.4e-3},
                          {32, 3.4e-3},
                          {64, 4.1e-3},
                          {128, 7.6e-3},
                          {512, 18e-3},
                          {2048, 70e-3}},
                         2e-6};
/// Like two cores with a billion weights in q4_0: all rows take time.
const Machine byRows = {{{1, 11e-3}, {16, 11e-3}, {64, 11e-3}, {512, 11e-3}},
                        6.6e-3};

/// Runs `steps` steps of `texts` texts and prompts without end; returns the
/// rows of prompts of the last one.
int64_t settle(PromptPace &pace, const Machine &machine, int64_t texts,
               int steps, int64_t most = 512) {
  int64_t prompts = 0;
  for (int step = 0; step < steps; ++step) {
    prompts = pace.rows(texts, most,
                        [&](int64_t rows) { return machine.programOf(rows); });
    EXPECT_GE(prompts, 1);
    EXPECT_LE(prompts, most);
    const int64_t rows = texts + prompts;
    pace.add(machine.programOf(rows), rows, machine.seconds(rows),
             /*isMixed=*/true);
  }
  return prompts;
}
/// The same without prompts.
void generate(PromptPace &pace, const Machine &machine, int64_t rows,
              int steps) {
  for (int step = 0; step < steps; ++step)
    pace.add(machine.programOf(rows), rows, machine.seconds(rows),
             /*isMixed=*/false);
}

TEST(StepLines, AreLearned) {
  StepLines lines;
  EXPECT_FALSE(lines.hasAny());
  lines.add(16, 4, 100); // the first one finds nothing in caches
  EXPECT_FALSE(lines.hasAny());
  lines.add(16, 4, 0.4);
  ASSERT_TRUE(lines.hasAny());
  // Of one number of rows, others may take their share, of other programs too.
  EXPECT_NEAR(lines.of(16, 8), 0.8, 1e-9);
  EXPECT_NEAR(lines.of(16, 2), 0.2, 1e-9);
  EXPECT_NEAR(lines.of(64, 32), 3.2, 1e-9);
  EXPECT_NEAR(lines.of(1, 1), 0.1, 1e-9);
  for (int step = 0; step < 20; ++step)
    lines.add(16, step % 2 ? 4 : 12, step % 2 ? 0.4 : 0.6);
  EXPECT_NEAR(lines.of(16, 8), 0.5, 0.02);
  EXPECT_NEAR(lines.of(16, 16), 0.7, 0.03);
  EXPECT_NEAR(lines.of(64, 32), 1.4, 0.06);
  // More rows never take less.
  for (int step = 0; step < 200; ++step)
    lines.add(16, step % 2 ? 4 : 12, step % 2 ? 0.6 : 0.4);
  EXPECT_DOUBLE_EQ(lines.of(16, 4), lines.of(16, 12));
}

TEST(StepLines, OneThatTookLongIsNotAll) {
  StepLines lines;
  for (int step = 0; step < 100; ++step)
    lines.add(16, 4, 0.1);
  lines.add(16, 4, 50);
  EXPECT_LT(lines.of(16, 4), 0.105);
  // Where all do, they are.
  for (int step = 0; step < 400; ++step)
    lines.add(16, 4, 50);
  EXPECT_NEAR(lines.of(16, 4), 50, 1);
}

/// What did not run for long may be quicker by now.
TEST(StepLines, AreForgotten) {
  StepLines lines;
  for (int step = 0; step < 3; ++step) {
    lines.add(16, 16, 0.1);
    lines.add(64, 32, 0.35);
  }
  EXPECT_NEAR(lines.of(64, 32), 0.35, 1e-9);
  for (int step = 0; step < 2000; ++step)
    lines.add(16, 16, 0.1);
  EXPECT_NEAR(lines.of(64, 32), 0.2, 1e-9);
}

/// Once a program is tried again, what it took before is nothing any more.
TEST(StepLines, StayForgotten) {
  StepLines lines;
  for (int step = 0; step < 40; ++step) {
    lines.add(16, 16, 0.1);
    lines.add(64, 32, 5);
  }
  for (int step = 0; step < 2000; ++step)
    lines.add(16, 16, 0.1);
  lines.add(64, 32, 0.15);
  EXPECT_NEAR(lines.of(64, 32), 0.15, 1e-9);
  // A time that is no longer so is not worse than a guess for long.
  for (int step = 0; step < 2000; ++step)
    lines.add(16, 16, 0.1);
  lines.add(64, 32, 0.3);
  EXPECT_NEAR(lines.of(64, 32), 0.3, 1e-9);
}

/// The first time of a program may be one that something else had the machine
/// in: it is not believed beyond what a smaller program says.
TEST(StepLines, AFirstTimeIsNotAll) {
  StepLines lines;
  for (int step = 0; step < 3; ++step)
    lines.add(16, 16, 0.1);
  lines.add(64, 32, 1); // not counted
  lines.add(64, 32, 1);
  EXPECT_NEAR(lines.of(64, 32), 0.4, 1e-9);
  for (int step = 0; step < 4; ++step)
    lines.add(64, 32, 0.1);
  EXPECT_LT(lines.of(64, 32), 0.25);
  // Nor is one that comes after a long time.
  for (int step = 0; step < 2000; ++step)
    lines.add(16, 16, 0.1);
  lines.add(64, 32, 1);
  EXPECT_NEAR(lines.of(64, 32), 0.4, 1e-9);
}

TEST(PromptPace, BeginsWithARow) {
  PromptPace pace;
  EXPECT_EQ(pace.rows(1, 512, [](int64_t) { return 512; }), 1);
}

/// As many as take no longer than those that generate.
TEST(PromptPace, SharesTheTime) {
  for (int64_t texts : {1, 4, 16, 40}) {
    SCOPED_TRACE(texts);
    PromptPace pace;
    generate(pace, byRows, texts, 10);
    const int64_t rows = settle(pace, byRows, texts, 30);
    const double ratio = byRows.seconds(texts + rows) / byRows.seconds(texts);
    EXPECT_LE(ratio, 2);
    EXPECT_GE(ratio, texts == 1 ? 1.3 : 1.6);
  }
}

/// Where there are always prompts, they take all the rows that they may have:
/// the rest of a step is little beside these.
TEST(PromptPace, GivesWayToPromptsWithoutEnd) {
  PromptPace pace;
  generate(pace, byRows, 4, 10);
  EXPECT_LT(settle(pace, byRows, 4, 30, 64), 10);
  EXPECT_EQ(settle(pace, byRows, 4, 1000, 64), 64);
  generate(pace, byRows, 4, 200);
  EXPECT_LT(settle(pace, byRows, 4, 1, 64), 10);
}

/// Rows that a program computes anyway are those of prompts.
TEST(PromptPace, FillsPrograms) {
  for (auto [texts, program] : {std::pair(69, 128), std::pair(100, 128)}) {
    SCOPED_TRACE(texts);
    PromptPace pace;
    generate(pace, inTiles, texts, 10);
    const int64_t rows = settle(pace, inTiles, texts, 30);
    EXPECT_EQ(texts + rows, program);
  }
  // There has to be one, and then there may be as many as are as quick.
  PromptPace pace;
  generate(pace, inTiles, 128, 10);
  EXPECT_EQ(settle(pace, inTiles, 128, 30), 384);
}

/// What was too slow once is not tried all the time.
TEST(PromptPace, DoesNotTryInVain) {
  PromptPace pace;
  int slow = 0;
  for (int round = 0; round < 100; ++round) {
    generate(pace, inTiles, 69, 20);
    for (int step = 0; step < 10; ++step)
      slow += settle(pace, inTiles, 69, 1) > 59;
  }
  EXPECT_GE(slow, 1);
  EXPECT_LE(slow, 6);
}

//===----------------------------------------------------------------------===//
// Many requests
//===----------------------------------------------------------------------===//

/// Texts that clients ask for, one after the other each, and prompts that come
/// beside them.
struct Traffic {
  int clients = 64;
  size_t prompt = 64, answer = 512;
  double rate = 0; ///< of others, a second
  int atOnce = 1;  ///< of these
  size_t longPrompt = 2048;
  size_t most = 80; ///< of all, at once
  int64_t rowsOfStep = 2048;
};

struct Times {
  double tokens = 0; ///< a second
  double between50 = 0, between99 = 0;
  double first50 = 0, first99 = 0;   ///< of clients
  double beside50 = 0, beside99 = 0; ///< of those that come beside them
};

double share(std::vector<double> &values, double part) {
  if (values.empty())
    return 0;
  const auto place =
      values.begin() +
      static_cast<ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, place);
  return *place;
}

/// A thousand requests, in steps that take what `machine` says, and chance.
/// With `isPaced`, texts have their share; else prompts take all rows.
Times simulate(const Machine &machine, const Traffic &traffic, bool isPaced) {
  constexpr size_t count = 1000;
  struct Request {
    std::unique_ptr<ScheduledReading> reading;
    bool isBeside = false;
    double asked = 0, last = 0;
    size_t told = 0;
  };
  const auto pool = PagePool::create(int64_t(1) << 16).take();
  Scheduler scheduler(*pool, 1 << 16, /*reusesPrefixes=*/false);
  PromptPace pace;
  std::mt19937 random(5);
  std::exponential_distribution<double> pause(std::max(traffic.rate, 1e-9) /
                                              traffic.atOnce);
  std::uniform_real_distribution<double> chance(0.97, 1.05);
  std::vector<Request> waiting, running;
  for (int client = 0; client < traffic.clients; ++client)
    waiting.emplace_back();
  std::vector<double> between, first, beside;
  double now = 0, next = pause(random);
  size_t done = 0, tokens = 0;
  while (done < count) {
    for (; next <= now; next += pause(random))
      for (int more = 0; more < traffic.atOnce; ++more)
        waiting.push_back({.isBeside = true, .asked = next});
    while (!waiting.empty() && running.size() < traffic.most) {
      Request request = std::move(waiting.front());
      waiting.erase(waiting.begin());
      request.reading =
          std::make_unique<ScheduledReading>(PagedSequence(*pool));
      request.reading->ids.resize(request.isBeside ? traffic.longPrompt
                                                   : traffic.prompt);
      request.reading->firstWanted = request.reading->ids.size();
      scheduler.add(*request.reading);
      running.push_back(std::move(request));
    }
    const int64_t texts = std::ranges::count_if(
        scheduler.queue(), [](const ScheduledReading *reading) {
          return reading->begun() && reading->isGenerating();
        });
    const int64_t prompts =
        isPaced && texts > 0
            ? pace.rows(texts, traffic.rowsOfStep - texts,
                        [&](int64_t rows) { return machine.programOf(rows); })
            : traffic.rowsOfStep;
    std::vector<std::pair<ScheduledReading *, int64_t>> step;
    int64_t rows = 0, ofPrompts = 0;
    scheduler.plan({traffic.rowsOfStep, prompts, 128},
                   [&](ScheduledReading &reading, int64_t room) {
                     const int64_t taken =
                         std::min(static_cast<int64_t>(reading.rest()), room);
                     std::vector<PageCopy> copies;
                     EXPECT_TRUE(reading.pages.reserve(taken, copies).ok());
                     step.emplace_back(&reading, taken);
                     rows += taken;
                     if (!reading.isGenerating())
                       ofPrompts += taken;
                     return Scheduler::Share{
                         taken, taken == static_cast<int64_t>(reading.rest())};
                   });
    const double seconds = machine.seconds(rows) * chance(random);
    now += seconds;
    pace.add(machine.programOf(rows), rows, seconds,
             ofPrompts > 0 && ofPrompts < rows);
    for (auto &[reading, taken] : step) {
      reading->commit(static_cast<size_t>(taken));
      scheduler.served(*reading);
      if (!reading->isWhole())
        continue;
      scheduler.remove(*reading);
      const auto request =
          std::ranges::find(running, reading, [](const Request &each) {
            return each.reading.get();
          });
      ++tokens;
      if (++request->told > 1)
        between.push_back(now - request->last);
      else
        (request->isBeside ? beside : first).push_back(now - request->asked);
      request->last = now;
      if (request->told < traffic.answer) {
        reading->ids = {1};
        reading->next = 0;
        reading->firstWanted = 1;
        scheduler.add(*reading);
        continue;
      }
      if (!request->isBeside) {
        ++done;
        waiting.push_back({.asked = now});
      }
      running.erase(request);
    }
  }
  return {static_cast<double>(tokens) / now,
          share(between, 0.5),
          share(between, 0.99),
          share(first, 0.5),
          share(first, 0.99),
          share(beside, 0.5),
          share(beside, 0.99)};
}

void show(const char *name, const Times &times) {
  std::printf("%s: %.0f tok/s, between p50 %.1f ms, p99 %.1f ms, first p50 "
              "%.0f ms, p99 %.0f ms, of others %.0f ms, %.0f ms\n",
              name, times.tokens, 1e3 * times.between50, 1e3 * times.between99,
              1e3 * times.first50, 1e3 * times.first99, 1e3 * times.beside50,
              1e3 * times.beside99);
}

/// Few tokens come later than twice the median while there is time for all
/// prompts, and where more come, earlier than before.
TEST(PromptPaceSimulation, TokensComeEvenly) {
  for (auto [rate, atOnce] :
       {std::pair(0.5, 1), std::pair(1.0, 1), std::pair(2.0, 1),
        std::pair(4.0, 1), std::pair(2.0, 8)}) {
    SCOPED_TRACE(rate);
    const Traffic traffic = {.rate = rate, .atOnce = atOnce};
    const Times before = simulate(inTiles, traffic, false);
    const Times after = simulate(inTiles, traffic, true);
    show("before", before);
    show("after", after);
    EXPECT_LE(after.between99, (rate <= 1 ? 2 : 2.6) * after.between50);
    EXPECT_GE(after.tokens, 0.98 * before.tokens);
    EXPECT_LE(after.beside99, std::max(before.beside99, 2.0));
  }
}

/// Where prompts take all that a machine has, they are read as if nobody
/// generated.
TEST(PromptPaceSimulation, NothingIsLostWhereAllIsAsked) {
  for (int clients : {2, 4, 8, 32}) {
    SCOPED_TRACE(clients);
    const Traffic traffic = {.clients = clients,
                             .prompt = 128,
                             .answer = 64,
                             .most = 8,
                             .rowsOfStep = 36};
    const Times before = simulate(byRows, traffic, false);
    const Times after = simulate(byRows, traffic, true);
    show("before", before);
    show("after", after);
    EXPECT_GE(after.tokens, (clients < 4 ? 0.85 : 0.95) * before.tokens);
  }
}

} // namespace
