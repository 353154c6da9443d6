//===- SessionTest.cpp - Prefill, decode, chunks and their errors ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Session.h"

#include "FakeModel.h"

#include <gtest/gtest.h>

#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

/// A session of the fake model that records which steps it asked for.
struct Fixture {
  explicit Fixture(int64_t context = 1200, bool shared = true)
      : device(shared) {
    SessionOptions options;
    options.contextLength = context;
    options.cancelled = &cancelled;
    auto provider = [this](const StepShape &shape) -> Result<Executable> {
      asked.push_back(nameOf(shape));
      if (!failure.ok())
        return failure;
      Executable step = fakeStep(shape);
      if (change)
        change(step);
      return step;
    };
    auto made =
        Session::create(fakeConfig(), device, source, provider, options);
    EXPECT_TRUE(made.ok()) << made.message();
    session = made.take();
  }

  FakeDevice device;
  FakeSource source;
  std::vector<std::string> asked;
  std::atomic<bool> cancelled{false};
  Status failure; ///< what the provider fails with
  std::function<void(Executable &)> change;
  std::unique_ptr<Session> session;
};

std::vector<int32_t> tokens(size_t count) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i)
    ids[i] = static_cast<int32_t>((3 * i + 1) % kVocab);
  return ids;
}

void expectLogits(const Result<std::span<const float>> &logits,
                  std::span<const int32_t> read) {
  ASSERT_TRUE(logits.ok()) << logits.message();
  ASSERT_EQ(logits->size(), static_cast<size_t>(kVocab));
  for (int64_t v = 0; v < kVocab; ++v)
    EXPECT_EQ((*logits)[v], fakeLogit(read, v)) << "entry " << v;
}

using Names = std::vector<std::string>;

TEST(Session, AnyChunkingGivesTheSameLogits) {
  for (bool shared : {true, false})
    for (size_t count : {1, 2, 15, 16, 17, 40, 512, 513, 514, 600, 1030, 1200})
      for (size_t first : {size_t(0), size_t(1), size_t(5), count / 2}) {
        SCOPED_TRACE(std::to_string(first) + " of " + std::to_string(count));
        std::vector<int32_t> ids = tokens(count);
        std::span<const int32_t> all(ids);
        Fixture fixture(1200, shared);
        first = std::min(first, count - 1);
        if (first)
          expectLogits(fixture.session->prefill(all.first(first)),
                       all.first(first));
        expectLogits(fixture.session->prefill(all.subspan(first)), all);
        EXPECT_EQ(fixture.session->position(), static_cast<int64_t>(count));
      }
}

TEST(Session, DecodeContinues) {
  Fixture fixture;
  std::vector<int32_t> ids = tokens(30);
  std::span<const int32_t> all(ids);
  expectLogits(fixture.session->prefill(all.first(10)), all.first(10));
  for (size_t i = 10; i < ids.size(); ++i)
    expectLogits(fixture.session->decode(ids[i]), all.first(i + 1));
  fixture.session->reset();
  EXPECT_EQ(fixture.session->position(), 0);
  expectLogits(fixture.session->decode(4), std::vector<int32_t>{4});
}

TEST(Session, AllLogits) {
  for (size_t count : {1, 2, 16, 17, 50, 513, 529}) {
    SCOPED_TRACE(count);
    Fixture fixture(1200, /*shared=*/false);
    std::vector<int32_t> ids = tokens(count + 2);
    std::span<const int32_t> all(ids);
    expectLogits(fixture.session->prefill(all.first(2)), all.first(2));
    int64_t next = 2;
    Status status = fixture.session->allLogits(
        all.subspan(2),
        [&](int64_t position, std::span<const float> logits) -> Status {
          EXPECT_EQ(position, next++);
          expectLogits(logits, all.first(position + 1));
          return Status();
        });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(next, fixture.session->position());
    EXPECT_EQ(next, static_cast<int64_t>(count + 2));
  }
}

TEST(Session, CallbackEndsAllLogits) {
  Fixture fixture;
  Status status = fixture.session->allLogits(
      tokens(20), [](int64_t position, std::span<const float>) {
        return position == 3 ? Status::error("enough") : Status();
      });
  EXPECT_EQ(status.message(), "enough");
  EXPECT_EQ(fixture.session->position(), 0);
}

TEST(Session, ProgramsAreAskedForWhenNeeded) {
  Fixture fixture;
  EXPECT_TRUE(fixture.asked.empty());
  (void)fixture.session->prefill(tokens(1));
  EXPECT_EQ(fixture.asked, Names({"step_1_logits"}));
  (void)fixture.session->prefill(tokens(5));
  EXPECT_EQ(fixture.asked, Names({"step_1_logits", "step_16_logits"}));
  (void)fixture.session->prefill(tokens(16));
  EXPECT_EQ(fixture.asked.size(), 2u);
  (void)fixture.session->prefill(tokens(17));
  EXPECT_EQ(fixture.asked.back(), "step_512_logits");
  auto ignore = [](int64_t, std::span<const float>) { return Status(); };
  (void)fixture.session->allLogits(tokens(16), ignore);
  EXPECT_EQ(fixture.asked.back(), "step_16_16_logits");
  (void)fixture.session->allLogits(tokens(17), ignore);
  EXPECT_EQ(fixture.asked.back(), "step_512_512_logits");
  EXPECT_EQ(fixture.asked.size(), 5u);
  // What is there serves, rather than being compiled for.
  Fixture large;
  (void)large.session->prefill(tokens(520));
  EXPECT_EQ(large.asked, Names({"step_512_logits"}));
}

TEST(Session, ShortContextMakesSmallPrograms) {
  Fixture fixture(5);
  (void)fixture.session->prefill(tokens(4));
  EXPECT_EQ(fixture.asked, Names({"step_5_logits"}));
  Fixture one(1);
  expectLogits(one.session->prefill(tokens(1)), tokens(1));
}

TEST(Session, FullContext) {
  Fixture fixture(20);
  (void)fixture.session->prefill(tokens(18));
  const int runs = fixture.device.runs;
  EXPECT_EQ(fixture.session->prefill(tokens(3)).message(),
            "context is full: 18 of 20 positions are used, no room for 3 more");
  EXPECT_FALSE(
      fixture.session
          ->allLogits(tokens(3),
                      [](int64_t, std::span<const float>) { return Status(); })
          .ok());
  EXPECT_EQ(fixture.device.runs, runs);
  EXPECT_EQ(fixture.session->position(), 18);
  EXPECT_TRUE(fixture.session->prefill(tokens(2)).ok());
  EXPECT_EQ(fixture.session->decode(1).message(),
            "context is full: 20 of 20 positions are used, no room for 1 more");
  fixture.session->reset();
  EXPECT_TRUE(fixture.session->decode(1).ok());
}

TEST(Session, Rewind) {
  Fixture fixture;
  const std::vector<int32_t> first = tokens(40);
  ASSERT_TRUE(fixture.session->prefill(first).ok());
  ASSERT_TRUE(fixture.session->decode(2).ok());
  ASSERT_TRUE(fixture.session->rewind(25).ok());
  EXPECT_EQ(fixture.session->position(), 25);
  // Others follow the 25: fewer, and then more than there were.
  std::vector<int32_t> read(first.begin(), first.begin() + 25);
  for (size_t count : {1, 3, 30}) {
    const std::vector<int32_t> more(count, static_cast<int32_t>(count % 7));
    read.insert(read.end(), more.begin(), more.end());
    expectLogits(fixture.session->prefill(more), read);
  }
  ASSERT_TRUE(fixture.session->rewind(0).ok());
  expectLogits(fixture.session->decode(4), std::vector<int32_t>{4});

  EXPECT_EQ(fixture.session->rewind(2).message(),
            "cannot go back to position 2; 1 tokens were read");
  EXPECT_FALSE(fixture.session->rewind(-1).ok());
  EXPECT_EQ(fixture.session->position(), 1);
}

TEST(Session, WrongIds) {
  Fixture fixture;
  EXPECT_EQ(fixture.session->prefill({}).message(),
            "there are no tokens to read; begin with the begin-of-text token");
  EXPECT_EQ(fixture.session->decode(kVocab).message(),
            "token id 11 is outside the vocabulary of 11");
  EXPECT_EQ(fixture.session->prefill(std::vector<int32_t>{0, -1}).message(),
            "token id -1 is outside the vocabulary of 11");
  EXPECT_TRUE(fixture.asked.empty());
  EXPECT_EQ(fixture.device.runs, 0);
}

TEST(Session, WrongContextLength) {
  FakeDevice device;
  FakeSource source;
  for (int64_t context : {int64_t(-1), int64_t(1201), INT64_MAX}) {
    auto session = Session::create(fakeConfig(), device, source, nullptr,
                                   {.contextLength = context});
    EXPECT_EQ(session.message(), "a context of " + std::to_string(context) +
                                     " positions is not possible; the model "
                                     "was made for 1 to 1200");
  }
}

TEST(Session, FailureOfTheProvider) {
  Fixture fixture;
  fixture.failure = Status::error("no compiler");
  EXPECT_EQ(fixture.session->prefill(tokens(20)).message(), "no compiler");
  EXPECT_EQ(fixture.session->position(), 0);
  fixture.failure = Status();
  expectLogits(fixture.session->prefill(tokens(20)), tokens(20));
}

/// Between any two steps, and while programs are made.
TEST(Session, CancelledLeavesThePosition) {
  const std::vector<int32_t> ids = tokens(1100); // 512, 512 and 76 of them
  const std::span<const int32_t> all(ids);
  auto ignore = [](int64_t, std::span<const float>) { return Status(); };
  for (int last = 1; last <= 3; ++last) {
    SCOPED_TRACE(last);
    Fixture fixture;
    Session &session = *fixture.session;
    expectLogits(session.prefill(all.first(5)), all.first(5));
    fixture.device.runs = 0;
    fixture.device.onRun = [&] {
      fixture.cancelled = fixture.device.runs == last;
    };
    // Three chunks; the run that is going on ends.
    Status status = session.prefill(all.subspan(5)).status();
    EXPECT_EQ(status.isCancelled(), last < 3) << status.message();
    EXPECT_EQ(fixture.device.runs, last);
    EXPECT_EQ(session.position(), last < 3 ? 5 : 1100);
    ASSERT_TRUE(session.rewind(5).ok());

    fixture.cancelled = false;
    fixture.device.runs = 0;
    status = session.allLogits(all.subspan(5), ignore);
    EXPECT_EQ(status.isCancelled(), last < 3) << status.message();
    EXPECT_EQ(fixture.device.runs, last);
    EXPECT_EQ(session.position(), last < 3 ? 5 : 1100);
    EXPECT_TRUE(session.decode(1).status().isCancelled());

    fixture.device.onRun = nullptr;
    fixture.cancelled = false;
    ASSERT_TRUE(session.rewind(5).ok());
    expectLogits(session.prefill(all.subspan(5)), all);
  }
  Fixture fixture;
  fixture.cancelled = true;
  EXPECT_TRUE(fixture.session->prefill(all).status().isCancelled());
  EXPECT_TRUE(fixture.asked.empty());
}

TEST(Session, StepsThatDoNotFit) {
  const std::function<void(Executable &)> changes[] = {
      [](Executable &step) { step.inputs.pop_back(); },
      [](Executable &step) { step.inputs[0].type = DataType::I64; },
      [](Executable &step) { step.outputs[0].shape[1] = kVocab + 1; },
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
    EXPECT_EQ(fixture.session->decode(1).message(),
              "the program 'step_1_logits' that was compiled for "
              "'step_1_logits' does not "
              "fit the model");
  }
  // Caches that differ between programs.
  Fixture fixture;
  fixture.change = [](Executable &step) {
    if (step.programName == "step_16_logits")
      step.caches[0].keyBlock = 8;
  };
  EXPECT_TRUE(fixture.session->decode(1).ok());
  EXPECT_EQ(
      fixture.session->prefill(tokens(3)).message(),
      "program 'step_16_logits': two programs of one session lay cache 0 out "
      "differently; compile them alike");
  EXPECT_EQ(fixture.session->position(), 1);
}

TEST(Session, Accounting) {
  Fixture fixture(100);
  fixture.change = [](Executable &) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  EXPECT_EQ(fixture.session->memory().total(), 0u);
  (void)fixture.session->prefill(tokens(3));
  SessionMemory memory = fixture.session->memory();
  EXPECT_EQ(memory.weights, 0u);
  EXPECT_EQ(memory.cache, 2u * 128 * 2 * sizeof(float)); // 100 rounded up
  EXPECT_EQ(memory.arenas, 256u);
  // Ids, positions, sequences, pages of 1200 for 16, wanted row, logits.
  EXPECT_EQ(memory.io, 3u * 64 + 16 * 19 * 4 + 64 + 64);
  EXPECT_EQ(memory.total(), memory.cache + memory.arenas + memory.io);
  SessionTimings timings = fixture.session->timings();
  EXPECT_GE(timings.compile, 0.002);
  EXPECT_GE(timings.load, 0.0);
  EXPECT_EQ(timings.pack, 0.0);
}

} // namespace
