//===- SearchTest.cpp - Tests of the search for schedules -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a machine that is made up: its clock goes on by what runs take.
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/Search.h"

#include "test/runtime/StatusAssertions.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

using namespace kf;
using test::failsWith;

namespace {

class FakeMachine : public CandidateMeasurer {
public:
  explicit FakeMachine(std::vector<double> seconds) : seconds(seconds) {}

  Result<Verdict> prepare(size_t candidate) override {
    prepared.push_back(candidate);
    clock += prepareSeconds;
    if (broken.contains(candidate))
      return Status::error("it needs more scratch memory than there is");
    if (wrong.contains(candidate))
      return Verdict{false, 0.5, "result 0, element 3 is 1 instead of 2"};
    if (cancelled && prepared.size() == cancelAfter)
      *cancelled = true;
    return Verdict{true, 1e-6, {}};
  }

  std::vector<std::string> otherCases() const override {
    std::vector<std::string> names;
    for (const auto &[name, seconds] : elsewhere)
      names.push_back(name);
    return names;
  }

  Result<std::vector<double>> measure(size_t candidate, size_t inCase,
                                      int64_t runs) override {
    EXPECT_FALSE(wrong.contains(candidate) || broken.contains(candidate));
    EXPECT_FALSE(released.contains(candidate));
    if (cancelled && *cancelled)
      return Status::cancelled();
    if (fails.contains(candidate))
      return Status::error("the device is lost");
    std::normal_distribution<double> normal(1, noise);
    std::vector<double> result(runs);
    disturbed = false;
    for (double &value : result) {
      // Slower and slower, as a machine that gets warm.
      value =
          (inCase == 0 ? seconds : elsewhere[inCase - 1].second)[candidate] *
          (1 + drift * clock);
      if (isBusy && isBusy(clock)) {
        disturbed = tellsOfOthers;
        if (threaded.contains(candidate))
          value *= 2.2;
      }
      if (noise > 0)
        value *= std::max(normal(random), 0.5);
      clock += value;
    }
    (inCase == 0 ? counts : countsElsewhere)[candidate] += runs;
    return result;
  }

  bool wasDisturbed() const override { return disturbed; }
  void release(size_t candidate) override { released.insert(candidate); }

  Result<SearchOutcome> search(SearchOptions options = {}) {
    std::vector<ScheduleCandidate> candidates;
    for (size_t i = 0; i < seconds.size(); ++i)
      candidates.push_back({"#schedule<" + std::to_string(i) + ">",
                            predicted.empty() ? seconds[i] : predicted[i]});
    options.clock = [this] { return clock; };
    return searchSchedules(candidates, *this, options);
  }

  /// Where one candidate takes that long to be made ready.
  Result<SearchOutcome> searchForASecond() {
    prepareSeconds = 1;
    SearchOptions options;
    options.seconds = 1;
    return search(options);
  }

  std::vector<double> seconds, predicted;
  /// Cases beside that of `seconds`.
  std::vector<std::pair<std::string, std::vector<double>>> elsewhere;
  std::set<size_t> wrong, broken, fails, released;
  std::set<size_t> threaded; ///< share cores with another process
  /// When there is one, by the clock; whether the machine says so.
  std::function<bool(double)> isBusy;
  bool tellsOfOthers = true, disturbed = false;
  std::vector<size_t> prepared;
  std::map<size_t, int64_t> counts, countsElsewhere; ///< runs
  double noise = 0, drift = 0, prepareSeconds = 0.05, clock = 0;
  std::atomic<bool> *cancelled = nullptr;
  size_t cancelAfter = 0;
  std::mt19937_64 random{3};
};

const TuningTrial &trialOf(const SearchOutcome &outcome, size_t candidate) {
  const std::string name = "#schedule<" + std::to_string(candidate) + ">";
  auto found = std::ranges::find(outcome.tried, name, &TuningTrial::schedule);
  EXPECT_NE(found, outcome.tried.end()) << name;
  return *found;
}

/// Candidates from 1 to about 3 ms, in no order.
std::vector<double> someSeconds(std::mt19937_64 &random, size_t count) {
  std::uniform_real_distribution<double> seconds(1e-3, 3e-3);
  std::vector<double> result(count);
  std::ranges::generate(result, [&] { return seconds(random); });
  return result;
}

TEST(SearchTest, FindsTheBestWithAHandicappedDefault) {
  for (int seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> seconds = someSeconds(random, 14);
    seconds[0] = 9e-3;
    FakeMachine machine(seconds);
    machine.random = random;
    machine.noise = 0.05;
    machine.drift = 0.05;
    auto outcome = machine.search();
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    const double best = *std::ranges::min_element(seconds);
    EXPECT_LE(seconds[outcome->winner], best / 0.97) << seed;
    EXPECT_EQ(outcome->tried.size(), 14u);
    EXPECT_LT(outcome->seconds, outcome->defaultSeconds);
    EXPECT_LE(machine.clock, 5.5);
  }
}

TEST(SearchTest, NeverSlowerThanTheDefault) {
  int changed = 0;
  for (int seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> seconds = someSeconds(random, 12);
    seconds[0] = *std::ranges::min_element(seconds) * 1.002;
    FakeMachine machine(seconds);
    machine.random = random;
    machine.noise = 0.1;
    machine.drift = 0.05;
    auto outcome = machine.search();
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    EXPECT_LE(seconds[outcome->winner], 1.01 * seconds[0]) << seed;
    changed += outcome->winner != 0;
    EXPECT_GT(outcome->noise, 0);
  }
  EXPECT_LE(changed, 5) << "0.2 % is less than is measured";
}

TEST(SearchTest, EqualOnesLeaveTheDefault) {
  FakeMachine machine(std::vector<double>(8, 2e-3));
  machine.noise = 0.05;
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 0u);
}

TEST(SearchTest, ABusyMachineDoesNotSpeakForOneThread) {
  FakeMachine machine({1e-3, 2e-3, 1.1e-3});
  machine.threaded = {0, 2};
  machine.isBusy = [](double clock) { return std::fmod(clock, 0.083) < 0.065; };
  machine.tellsOfOthers = false;
  machine.noise = 0.02;
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 0u);
  EXPECT_FALSE(outcome->disturbed);
}

TEST(SearchTest, AMachineThatIsAlwaysBusyLeavesTheDefault) {
  FakeMachine machine({1e-3, 1.5e-3});
  machine.threaded = {0};
  machine.isBusy = [](double) { return true; };
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 0u);
  EXPECT_TRUE(outcome->disturbed);
  EXPECT_DOUBLE_EQ(outcome->seconds, 2.2e-3);
  EXPECT_LE(machine.clock, 5.5);
}

TEST(SearchTest, DisturbedTurnsDoNotCount) {
  FakeMachine machine({1.2e-3, 1e-3, 1.4e-3});
  machine.threaded = {0, 1};
  machine.isBusy = [](double clock) { return clock < 2; };
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 1u);
  EXPECT_FALSE(outcome->disturbed);
  EXPECT_DOUBLE_EQ(outcome->seconds, 1e-3);
  EXPECT_DOUBLE_EQ(outcome->defaultSeconds, 1.2e-3);
}

/// Number 1 is the fastest with many rows and clearly slower with few.
TEST(SearchTest, ClearlySlowerElsewhereIsOutAtOnce) {
  FakeMachine machine({2e-3, 1e-3, 1.6e-3, 1.8e-3});
  machine.elsewhere = {{"with 128 rows", {6e-4, 9e-4, 6e-4, 5e-4}},
                       {"with 32 rows", {2e-4, 2e-4, 2e-4, 2e-4}}};
  machine.noise = 0.05;
  machine.drift = 0.05;
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 2u);
  EXPECT_EQ(trialOf(*outcome, 1).rejected.find("slower with 128 rows, 1."), 0u)
      << trialOf(*outcome, 1).rejected;
  EXPECT_EQ(machine.counts[1], 3);
  EXPECT_EQ(machine.countsElsewhere[1], 3);
  // Its time is that of the first case, as all others'.
  EXPECT_NEAR(trialOf(*outcome, 1).seconds, 1e-3, 2e-4);
  EXPECT_NEAR(outcome->seconds, 1.6e-3, 4e-4);
  EXPECT_NEAR(outcome->defaultSeconds, 2e-3, 5e-4);
  EXPECT_EQ(trialOf(*outcome, 2).rejected, "");
  EXPECT_LE(machine.clock, 5.5);
}

/// By less than shows at once: the turns of the last round do.
TEST(SearchTest, SlowerElsewhereDoesNotWin) {
  for (int seed = 0; seed < 20; ++seed) {
    FakeMachine machine({2e-3, 1.5e-3, 1.8e-3, 2.2e-3});
    machine.elsewhere = {{"with 128 rows", {6e-4, 6e-4, 6e-4, 6e-4}},
                         {"with 32 rows", {2e-4, 2.16e-4, 2e-4, 2e-4}}};
    machine.noise = 0.05;
    machine.random.seed(seed);
    auto outcome = machine.search();
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    EXPECT_NE(outcome->winner, 1u) << seed;
    EXPECT_EQ(trialOf(*outcome, 1).rejected.find("slower with 32 rows, 1."), 0u)
        << seed << ": " << trialOf(*outcome, 1).rejected;
    EXPECT_EQ(trialOf(*outcome, 0).rejected, "");
  }
}

TEST(SearchTest, AsFastElsewhereWins) {
  int found = 0;
  for (int seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> seconds = someSeconds(random, 14);
    seconds[0] = 4e-3;
    FakeMachine machine(seconds);
    machine.elsewhere = {{"with 128 rows", std::vector<double>(14, 7e-4)},
                         {"with 32 rows", std::vector<double>(14, 3e-4)}};
    machine.random = random;
    machine.noise = 0.05;
    machine.drift = 0.05;
    auto outcome = machine.search();
    ASSERT_TRUE(outcome.ok()) << outcome.message();
    const double best = *std::ranges::min_element(seconds);
    found += seconds[outcome->winner] <= best / 0.97;
    EXPECT_NE(outcome->winner, 0u) << seed;
    EXPECT_LE(machine.clock, 5.5);
  }
  EXPECT_GE(found, 45) << "noise looks like a loss now and then";
}

TEST(SearchTest, AllSlowerElsewhereTakeNoMoreTime) {
  FakeMachine machine({5e-3, 1e-3, 1e-3, 1e-3, 1e-3});
  machine.elsewhere = {{"with 2 rows", {1e-4, 9e-4, 9e-4, 9e-4, 9e-4}}};
  auto outcome = machine.searchForASecond();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.prepared.size(), 2u);
  EXPECT_EQ(outcome->winner, 0u);
  EXPECT_LE(machine.clock, 2.3);
}

/// What shares a core with another process is no loss.
TEST(SearchTest, DisturbedFirstRunsElsewhereDoNotCount) {
  FakeMachine machine({2e-3, 1e-3});
  machine.elsewhere = {{"with 128 rows", {6e-4, 6e-4}}};
  machine.threaded = {1};
  machine.isBusy = [](double clock) { return clock < 2; };
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 1u);
  EXPECT_EQ(trialOf(*outcome, 1).rejected, "");
}

TEST(SearchTest, RejectsAndReportsAWrongOne) {
  FakeMachine machine({2e-3, 1e-4, 1e-3, 1.5e-3});
  machine.wrong = {1};
  machine.broken = {3};
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 2u);
  EXPECT_EQ(machine.counts.count(1), 0u);
  EXPECT_EQ(trialOf(*outcome, 1).rejected,
            "result 0, element 3 is 1 instead of 2");
  EXPECT_EQ(trialOf(*outcome, 1).error, 0.5);
  EXPECT_EQ(trialOf(*outcome, 1).seconds, 0);
  EXPECT_EQ(trialOf(*outcome, 3).rejected,
            "it needs more scratch memory than there is");
  EXPECT_EQ(trialOf(*outcome, 2).rejected, "");
  EXPECT_GT(trialOf(*outcome, 2).seconds, 0);
}

TEST(SearchTest, OneThatCannotBeMeasuredIsOut) {
  FakeMachine machine({2e-3, 1e-4, 1e-3});
  machine.fails = {1};
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 2u);
  EXPECT_EQ(trialOf(*outcome, 1).rejected, "the device is lost");
}

TEST(SearchTest, AWrongDefaultIsAnError) {
  FakeMachine machine({2e-3, 1e-3});
  machine.wrong = {0};
  EXPECT_TRUE(failsWith(machine.search().status(),
                        "the default schedule: result 0, element 3"));
  FakeMachine other({2e-3, 1e-3});
  other.broken = {0};
  EXPECT_TRUE(failsWith(other.search().status(),
                        "the default schedule: it needs more scratch"));
  EXPECT_TRUE(
      failsWith(searchSchedules({}, other).status(), "there is no schedule"));
}

TEST(SearchTest, TriesWhatTheModelLikes) {
  FakeMachine machine({5e-3, 4e-3, 3e-3, 2e-3, 1e-3});
  machine.predicted = {1, 3, 0, 4, 2};
  SearchOptions options;
  options.mostCandidates = 3;
  auto outcome = machine.search(options);
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.prepared, (std::vector<size_t>{0, 2, 4}));
  EXPECT_EQ(outcome->winner, 4u);
  EXPECT_EQ(trialOf(*outcome, 4).predictedSeconds, 2);
}

TEST(SearchTest, ShortTimeMeansFewCandidates) {
  FakeMachine machine(std::vector<double>{5e-3, 1e-3, 2e-3, 3e-3, 4e-3});
  auto outcome = machine.searchForASecond();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(machine.prepared.size(), 2u);
  EXPECT_EQ(outcome->winner, 1u);
  EXPECT_LE(machine.clock, 2.3);
}

TEST(SearchTest, MeasuresTheGoodOnesMore) {
  FakeMachine machine(
      {1.2e-3, 1e-3, 1.1e-3, 1.3e-3, 1.4e-3, 1.5e-3, 1.6e-3, 1.7e-3, 9e-3});
  machine.noise = 0.02;
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 1u);
  EXPECT_GT(machine.counts[1], 3 * machine.counts[7]);
  // Hopeless at first sight.
  EXPECT_EQ(machine.counts[8], 3);
  EXPECT_EQ(machine.released.size(), 9u);
}

TEST(SearchTest, TheDefaultAlone) {
  FakeMachine machine({1e-3});
  auto outcome = machine.search();
  ASSERT_TRUE(outcome.ok()) << outcome.message();
  EXPECT_EQ(outcome->winner, 0u);
  EXPECT_EQ(outcome->seconds, 1e-3);
  EXPECT_LT(machine.clock, 0.1);
}

TEST(SearchTest, IsCancelled) {
  std::atomic<bool> cancelled = false;
  FakeMachine machine({1e-3, 2e-3, 3e-3, 4e-3});
  machine.cancelled = &cancelled;
  machine.cancelAfter = 2;
  SearchOptions options;
  options.cancelled = &cancelled;
  EXPECT_TRUE(machine.search(options).status().isCancelled());
  EXPECT_EQ(machine.prepared.size(), 2u);
}

TEST(SearchTest, KeepsWhatIsSettledWhenCancelled) {
  std::atomic<bool> cancelled = false;
  FakeMachine machine({1e-3, 9e-3, 1.1e-3, 5e-3, 0.9e-3, 2e-3});
  machine.predicted = {1, 2, 3, 4, 5, 6};
  machine.wrong = {3};
  machine.cancelled = &cancelled;
  machine.cancelAfter = 5;
  std::vector<SearchOutcome> outcomes;
  SearchOptions options;
  options.cancelled = &cancelled;
  options.onCancelled = [&](const SearchOutcome &outcome) {
    outcomes.push_back(outcome);
  };
  EXPECT_TRUE(machine.search(options).status().isCancelled());
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].winner, 0u);
  EXPECT_EQ(outcomes[0].seconds, 1e-3);
  EXPECT_EQ(outcomes[0].defaultSeconds, 0);
  // Not 2 and 4, which may be the fastest, nor 5, which was not tried.
  std::vector<std::string> schedules;
  for (const TuningTrial &trial : outcomes[0].tried)
    schedules.push_back(trial.schedule);
  EXPECT_EQ(schedules, (std::vector<std::string>{"#schedule<0>", "#schedule<1>",
                                                 "#schedule<3>"}));
}

TEST(SearchTest, KeepsNothingBeforeTheDefaultIsMeasured) {
  std::atomic<bool> cancelled = true;
  FakeMachine machine({1e-3, 2e-3});
  SearchOptions options;
  options.cancelled = &cancelled;
  options.onCancelled = [](const SearchOutcome &) { ADD_FAILURE(); };
  EXPECT_TRUE(machine.search(options).status().isCancelled());
}

TEST(SearchTest, SaysHowFarItIs) {
  FakeMachine machine({1e-3, 2e-3, 3e-3, 4e-3});
  std::vector<double> shares;
  SearchOptions options;
  options.onProgress = [&](double share) { shares.push_back(share); };
  ASSERT_TRUE(machine.search(options).ok());
  EXPECT_GT(shares.size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(shares));
  EXPECT_LE(shares.back(), 1);
}

} // namespace
