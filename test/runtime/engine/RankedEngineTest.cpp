//===- RankedEngineTest.cpp - Ranks that follow an engine -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankedFixture.h"

using namespace kf;
using namespace kf::test;

namespace {

void expectRunsOfTheLeader(bool runsAhead) {
  Ranked ranked({.parallel = 3, .runsAhead = runsAhead});
  SamplerOptions options;
  options.temperature = 1;
  options.repetitionPenalty = 1.5;
  const std::vector<int32_t> prompt = tokens(70);
  FakeBehavior &own = ranked.fixture->device.behavior;
  own.varies = true;
  for (std::unique_ptr<Follower> &follower : ranked.followers)
    follower->device.behavior.varies = true;
  {
    // The third shares a page with the second, and copies what it writes.
    Text first(ranked.fixture->sequence(), options, 30),
        second(ranked.fixture->sequence(), {}, 20),
        third(ranked.fixture->sequence(), options, 10);
    EXPECT_TRUE(succeeds(first.read({1, 2})));
    EXPECT_TRUE(succeeds(second.read(prompt)));
    ranked.fixture->engine->step();
    EXPECT_TRUE(succeeds(third.read(prompt)));
    ranked.fixture->runAll();
    EXPECT_EQ(first.chosen, expected({1, 2}, options, 30, own));
    EXPECT_EQ(third.chosen, expected(prompt, options, 10, own));
  }
  EXPECT_EQ(ranked.engine().counts().ahead > 0, runsAhead);
  const int runs = own.runs;
  const std::vector<int32_t> ids = own.ids;
  ranked.finish();
  for (const std::unique_ptr<Follower> &follower : ranked.followers) {
    EXPECT_TRUE(succeeds(follower->end));
    EXPECT_EQ(follower->device.behavior.runs, runs);
    EXPECT_EQ(follower->device.behavior.ids, ids);
  }
}

TEST(RankedEngine, FollowersRunWhatTheLeaderDoes) {
  expectRunsOfTheLeader(/*runsAhead=*/false);
}
TEST(RankedEngine, FollowersRunAhead) {
  expectRunsOfTheLeader(/*runsAhead=*/true);
}

/// Ranks that have stages run bodies, and nothing that follows them, and what
/// rank 0 chose is on no other: no step runs ahead.
TEST(RankedEngine, StagesRunBodiesAlone) {
  Ranked ranked({.parallel = 2, .runsAhead = true}, /*areStages=*/true);
  EXPECT_FALSE(ranked.engine().runsAhead());
  const std::vector<int32_t> prompt = tokens(70);
  FakeBehavior &own = ranked.fixture->device.behavior;
  {
    Text first(ranked.fixture->sequence(), {}, 20),
        second(ranked.fixture->sequence(), {}, 10);
    EXPECT_TRUE(succeeds(first.read({1, 2})));
    EXPECT_TRUE(succeeds(second.read(prompt)));
    ranked.fixture->runAll();
    EXPECT_EQ(first.chosen, expected({1, 2}, {}, 20, own));
    EXPECT_EQ(second.chosen, expected(prompt, {}, 10, own));
  }
  EXPECT_EQ(ranked.engine().counts().ahead, 0u);
  std::vector<std::string> bodies;
  for (const std::string &name : ranked.fixture->asked)
    if (name.starts_with("body"))
      bodies.push_back(name);
  EXPECT_LT(bodies.size(), ranked.fixture->asked.size());
  const int runs = own.runs;
  const std::vector<int32_t> ids = own.ids;
  ranked.finish();
  for (size_t i = 0; i < ranked.followers.size(); ++i) {
    const Follower &follower = *ranked.followers[i];
    EXPECT_TRUE(succeeds(follower.end));
    EXPECT_EQ(ranked.asked[i], bodies);
    EXPECT_EQ(follower.device.behavior.runs, runs);
    EXPECT_EQ(follower.device.behavior.ids, ids);
  }
}

TEST(RankedEngine, AStepThatHasBegunIsNotCancelled) {
  Ranked ranked;
  std::atomic<bool> &cancelled = ranked.fixture->cancelled;
  ranked.fixture->device.behavior.onRun = [&] { cancelled = true; };
  auto sequence = ranked.fixture->sequence();
  EXPECT_TRUE(succeeds(readAll(*sequence, tokens(5))));
  EXPECT_EQ(readAll(*sequence, tokens(5)).code(), StatusCode::Cancelled);
}

TEST(RankedEngine, FollowersMeasureTheirRuns) {
  Profile profile;
  Ranked ranked({.profile = &profile});
  auto sequence = ranked.fixture->sequence();
  EXPECT_TRUE(succeeds(readAll(*sequence, tokens(5))));
  auto tables = ranked.leader->ask(ShowProfile());
  ASSERT_TRUE(succeeds(tables.status()));
  ASSERT_EQ(tables->size(), 2u);
  for (const std::string &table : *tables)
    EXPECT_TRUE(table.starts_with("body_16: 1 run, ")) << table;
}

TEST(RankedEngine, NobodyMeasuresUnasked) {
  Ranked ranked;
  auto sequence = ranked.fixture->sequence();
  EXPECT_TRUE(succeeds(readAll(*sequence, tokens(5))));
  EXPECT_TRUE(failsWith(ranked.leader->ask(ShowProfile()).status(),
                        "rank 1: the leading rank asks for a profile of runs "
                        "that are not measured"));
}

TEST(RankedEngine, NamesTheRankThatCannotBind) {
  Ranked ranked;
  ranked.fixture->change = [](Executable &step) {
    WeightSpec weight;
    weight.names = {"absent"};
    weight.shape = {4};
    step.weights = {weight};
  };
  static const float values[4] = {};
  ranked.fixture->source.tensors["absent"] = {DataType::F32, {4}, values, 16};
  auto sequence = ranked.fixture->sequence();
  EXPECT_TRUE(failsWith(readAll(*sequence, tokens(2)),
                        "rank 1: program 'body_16': there is no tensor "
                        "'absent'"));
}

TEST(RankedEngine, NamesTheRankWhoseRunFails) {
  Ranked ranked;
  ranked.followers[1]->device.behavior.failure =
      Status::error("the power is off");
  auto sequence = ranked.fixture->sequence();
  Status status = readAll(*sequence, tokens(1));
  ranked.followers[1]->thread.join();
  if (status.ok()) // the leader, which waits for nobody, was through before
    status = readAll(*sequence, tokens(1));
  EXPECT_TRUE(failsWith(status, "rank 2: the power is off"));
  sequence.reset();
  ranked.finish();
  EXPECT_TRUE(succeeds(ranked.followers[0]->end));
  EXPECT_TRUE(failsWith(ranked.followers[1]->end, "the power is off"));
}

/// Of two ranks, one fails in a run or goes away without a word, early or late.
/// As with collectives, the leader's runs wait for theirs, but at most four
/// behind: it is in any of the next steps when it hears of an end.
TEST(RankedEngine, RanksThatEndAtAnyTimeLeaveNobodyWaiting) {
  int failures = 0;
  for (int i = 0; i < 60; ++i) {
    const size_t rank = static_cast<size_t>(i % 2);
    const bool isSilent = i % 3 == 0;
    const std::string error = "rank " + std::to_string(rank + 1) +
                              (isSilent ? " has ended" : ": the power is off");
    std::atomic<int> runs = 0; // of that rank
    Ranked ranked({.parallel = 2, .runsAhead = i % 4 < 2});
    FakeBehavior &behavior = ranked.followers[rank]->device.behavior;
    ranked.fixture->device.behavior.onRun = [&, own = 0]() mutable {
      ++own;
      while (!ranked.followers[rank]->hasEnded && runs + i % 5 < own)
        std::this_thread::yield();
    };
    behavior.onRun = [&, isSilent, left = 1 + i * 7 % 23]() mutable {
      ++runs;
      if (--left == 0)
        behavior.failure =
            isSilent ? Status::cancelled() : Status::error("the power is off");
    };
    {
      Text first(ranked.fixture->sequence(), {}, 30),
          second(ranked.fixture->sequence(), {}, 20);
      EXPECT_TRUE(succeeds(first.read({1, 2})));
      EXPECT_TRUE(succeeds(second.read(tokens(70))));
      ranked.fixture->runAll();
      for (const Text *text : {&first, &second})
        if (!text->error.ok()) {
          EXPECT_EQ(text->error.message(), error);
          ++failures;
        }
    }
    ranked.finish();
    EXPECT_EQ(ranked.followers[rank]->end.isCancelled(), isSilent);
    EXPECT_TRUE(succeeds(ranked.followers[1 - rank]->end));
  }
  EXPECT_GT(failures, 30);
}

TEST(RankLeader, RefusesAnotherModel) {
  auto [here, there] = createThreadChannel();
  std::vector<std::unique_ptr<RankChannel>> channels;
  channels.push_back(std::move(here));
  RankLeader leader(std::move(channels));
  const std::vector<std::string> models = {"a"};
  EXPECT_TRUE(there->send(encode(RankAnswer{Status(), "b"})).ok());
  EXPECT_TRUE(failsWith(leader.awaitReady(models),
                        "rank 1 has another model than rank 0"));
  EXPECT_TRUE(there->send("?").ok());
  EXPECT_TRUE(failsWith(leader.awaitReady(models),
                        "rank 1: a message of another rank that is no answer"));
  there.reset();
  EXPECT_TRUE(failsWith(leader.awaitReady(models), "rank 1 has ended"));
}

//===----------------------------------------------------------------------===//
// Leaders that are wrong
//===----------------------------------------------------------------------===//

constexpr StepShape kBody = {StepPart::Body, 16}, kHead = {StepPart::Head, 1},
                    kChoice = {StepPart::Choose, 1};

/// What a rank that has a body and a choice of tokens, and was told `before`,
/// says to `command`, and ends with.
Status obeyed(const RankCommand &command,
              const std::vector<RankCommand> &before = {}) {
  auto [leader, there] = createThreadChannel();
  Follower follower(std::move(there), fakeConfig());
  std::string message;
  for (const StepShape &shape : {kBody, kHead, kChoice})
    encode(LoadProgram{shape, fakeStep(shape).serialize()}, message);
  encode(OpenCache{4, 16}, message);
  for (const StepShape &shape : {kBody, kHead, kChoice})
    encode(BindProgram{shape}, message);
  int answers = 7;
  for (const RankCommand &told : before) {
    encode(told, message);
    answers += isAnswered(told);
  }
  encode(command, message);
  EXPECT_TRUE(leader->send(message).ok());
  for (int answer = 0; answer < answers; ++answer) {
    const Result<std::optional<std::string>> given = leader->receive();
    if (!given.ok() || !*given) {
      ADD_FAILURE() << "no answer " << answer;
      break;
    }
    EXPECT_TRUE(succeeds(decodeAnswer(**given)->status));
  }
  Status answered;
  if (isAnswered(command))
    answered = decodeAnswer(*leader->receive().take())->status;
  leader.reset();
  follower.thread.join();
  return answered.ok() ? follower.end : answered;
}

TEST(RankFollower, DoesNothingOutsideOfItsBuffers) {
  static const std::vector<std::byte> bytes(1 << 16);
  const std::span<const std::byte> few = std::span(bytes).first(64);
  StartProgram start{kBody, {}};
  start.scalars[KF_SCALAR_N_TOKENS] = 1;
  start.scalars[KF_SCALAR_NAMED_SIZES] = 1;
  EXPECT_TRUE(succeeds(obeyed(WriteInput{kBody, 0, 0, few})));
  EXPECT_TRUE(succeeds(obeyed(start)));
  for (const auto &[command, error] :
       std::initializer_list<std::pair<RankCommand, const char *>>{
           {WriteInput{kBody, 0, 8, std::span(bytes)}, "reach past the end"},
           {WriteInput{kBody, 0, UINT64_MAX, few}, "reach past the end"},
           {WriteInput{kBody, 4, 0, few}, "input 4 of body_16"},
           {WriteInput{{StepPart::Body, 1}, 0, 0, few}, "body_1, which is not"},
           {CopyInput{kBody, 99, 0, kChoice, 0, 4}, "input 99 of body_16"},
           {CopyInput{kBody, 0, 0, kChoice, 0, 1 << 20}, "reach past the end"},
           {CopyInput{kBody, 0, 0, kChoice, UINT64_MAX, 4}, "past the end"},
           {CopyInput{kBody, 0, 0, {StepPart::Choose, 2}, 0, 4}, "choose_2"},
           {CopyPages{{{0, 4}}}, "a copy of page 0 to 4"},
           {CopyPages{{{-1, 0}}}, "a copy of page -1 to 0"},
           {CopyPages{{{1, 1}}}, "a copy of page 1 to 1"},
           {OpenCache{0, 16}, "a cache of 0 pages"},
           {OpenCache{INT32_MAX, 16}, "a cache of 2147483647 pages"},
           {OpenCache{INT64_MAX, 16}, "a cache of 9223372036854775807 pages"},
           {OpenCache{1, 16, -1}, "for -1 positions"},
           {OpenCache{2, 16, 129}, "2 pages for 129 positions"},
           {OpenCache{1, int64_t(1) << 40}, "steps of 1099511627776 rows"},
           {BindProgram{{StepPart::Choose, 16}}, "choose_16, which it has not"},
           {LoadProgram{{StepPart::Body, 1}, "no program"}, "no KernelForge"},
           {LoadProgram{kBody, fakeStep(kBody).serialize()},
            "body_16 again, which is bound"},
           {LoadProgram{{StepPart::Body, 1}, fakeStep(kHead).serialize()},
            "program 'head_1'"},
           {LoadProgram{{StepPart::Body, -5}, fakeStep(kBody).serialize()},
            "program 'body_16'"}})
    EXPECT_TRUE(failsWith(obeyed(command), error));
  for (const int64_t size : {int64_t(-1), int64_t(0), int64_t(17), INT64_MAX})
    for (const size_t slot : {KF_SCALAR_N_TOKENS, KF_SCALAR_NAMED_SIZES}) {
      StartProgram wrong = start;
      wrong.scalars[slot] = size;
      EXPECT_FALSE(obeyed(wrong).ok()) << slot << " is " << size;
    }
}

TEST(RankFollower, WritesNothingOutsideOfBuffersThatAProfileWatches) {
  static const std::vector<std::byte> bytes((1 << 16) + 1);
  const std::span<const std::byte> few = std::span(bytes).subspan(1, 64);
  for (uint32_t input = 0; input < fakeStep(kBody).inputs.size(); ++input) {
    EXPECT_TRUE(succeeds(
        obeyed(WriteInput{kBody, input, 0, few.first(4)}, {BeginProfile()})));
    for (const WriteInput &write :
         {WriteInput{kBody, input, 8, std::span(bytes)},
          WriteInput{kBody, input, uint64_t(1) << 62, few},
          WriteInput{kBody, input, UINT64_MAX - 3, few.first(4)},
          WriteInput{kBody, input, UINT64_MAX, few}})
      EXPECT_TRUE(failsWith(obeyed(write, {BeginProfile()}), "past the end"));
  }
}

/// But no more than their windows' pages have room for.
TEST(RankFollower, TextsHaveMorePositionsThanPagesWhereAllLayersHaveWindows) {
  for (const int64_t positions : {19 * kCachePage, 19 * kCachePage + 1}) {
    auto [leader, there] = createThreadChannel();
    Follower follower(std::move(there), allWindowedConfig());
    (void)leader->receive(); // that it is ready
    std::string message;
    encode(OpenCache{8, 16, positions}, message);
    EXPECT_TRUE(leader->send(message).ok());
    leader.reset();
    follower.thread.join();
    if (positions % kCachePage == 0)
      EXPECT_TRUE(succeeds(follower.end));
    else
      EXPECT_TRUE(failsWith(follower.end, "8 pages for 1217 positions"));
  }
}

TEST(RankFollower, NeedsACache) {
  for (const RankCommand &command : std::initializer_list<RankCommand>{
           BindProgram{kBody}, StartProgram{kBody, {}}, CopyPages{{{0, 1}}}}) {
    auto [leader, there] = createThreadChannel();
    Follower follower(std::move(there), fakeConfig());
    std::string message;
    encode(command, message);
    EXPECT_TRUE(leader->send(message).ok());
    (void)leader->receive(); // that it is ready
    const Result<RankAnswer> answer = decodeAnswer(*leader->receive().take());
    EXPECT_FALSE(answer->status.ok());
    leader.reset();
    follower.thread.join();
  }
}

} // namespace
