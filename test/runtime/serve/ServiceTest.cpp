//===- ServiceTest.cpp - Texts of many threads by one engine --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/Service.h"

#include "test/runtime/engine/EngineFixture.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>

using namespace kf;
using namespace kf::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

/// Holds runs of the fake model until it is opened.
class Gate {
public:
  /// What a run calls.
  void pass() {
    std::unique_lock lock(mutex);
    ++arrived;
    changed.notify_all();
    changed.wait(lock, [&] { return opened >= arrived; });
  }
  /// Waits until run number `count` has come, counted from 1.
  void await(int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return arrived >= count; });
  }
  /// Lets runs up to number `count` go.
  void open(int count = INT_MAX) {
    std::unique_lock lock(mutex);
    opened = std::max(opened, count);
    changed.notify_all();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0, opened = 0;
};

/// A service of the fake model.
struct Served {
  explicit Served(EngineOptions engineOptions = {.parallel = 4},
                  const ServiceOptions &options = {},
                  const Tokenizer *tokenizer = nullptr,
                  std::function<void(Fixture &)> change = {})
      : fixture(engineOptions) {
    fixture.device.behavior.varies = true;
    if (change)
      change(fixture);
    service = Service::create(*fixture.engine, tokenizer, options).take();
  }

  std::unique_ptr<TextHandle> submit(TextRequest request,
                                     std::function<void()> onNews = {}) {
    auto handle = service->submit(std::move(request), std::move(onNews));
    EXPECT_TRUE(handle.ok()) << handle.message();
    return handle.take();
  }
  void awaitReady() const {
    while (service->state() == ServiceState::Loading)
      std::this_thread::sleep_for(1ms);
  }
  std::vector<int32_t> expectedOf(const TextRequest &request) const {
    return expected(request.prompt, request.sampling,
                    static_cast<size_t>(request.maxTokens),
                    fixture.device.behavior);
  }

  Fixture fixture;
  std::unique_ptr<Service> service; ///< goes first
};

/// All that a handle gives until the end, behind what was `taken` before.
struct Taken {
  explicit Taken(TextHandle &handle, std::vector<int32_t> taken = {})
      : ids(std::move(taken)) {
    while (!end) {
      TextPiece piece = handle.wait();
      EXPECT_FALSE(piece.isEmpty());
      text += piece.text;
      ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
      logProbs.insert(logProbs.end(), piece.logProbs.begin(),
                      piece.logProbs.end());
      end = std::move(piece.end);
    }
    EXPECT_TRUE(handle.take().isEmpty());
    EXPECT_TRUE(handle.wait().isEmpty()) << "nothing comes after the end";
    if (end->ok()) {
      EXPECT_EQ((*end)->ids, ids);
      EXPECT_EQ((*end)->text, text);
    }
  }
  bool isCancelled() const {
    return end->ok() && (*end)->reason == StopReason::Cancelled;
  }

  std::string text;
  std::vector<int32_t> ids;
  std::vector<TextLogProbs> logProbs;
  std::optional<Result<GenerationResult>> end;
};

TextRequest requestOf(size_t i, int64_t count = 30) {
  TextRequest request;
  request.prompt = tokens(10 + i % 40, i);
  request.sampling = optionsOf(i);
  request.maxTokens = count;
  return request;
}

/// What texts may be held to.
class FakeConstraintSource : public TokenConstraintSource {
public:
  explicit FakeConstraintSource(int32_t completeAt) : completeAt(completeAt) {}
  Result<std::unique_ptr<TokenConstraint>> begin() override {
    if (completeAt < 0)
      return Status::error("there is no constraint");
    auto constraint = std::make_unique<FakeConstraint>();
    constraint->completeAt = completeAt;
    return Result<std::unique_ptr<TokenConstraint>>(std::move(constraint));
  }

private:
  int32_t completeAt;
};

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

// Several of one source, beside free ones; one that cannot begin ends alone.
TEST(Service, HoldsTextsToConstraints) {
  Served served;
  const auto source = std::make_shared<FakeConstraintSource>(9);
  std::vector<std::unique_ptr<TextHandle>> handles;
  auto request = [&](size_t i) {
    TextRequest one = requestOf(i);
    one.sampling.logitBias.clear();
    if (i % 2)
      one.constraint = source;
    return one;
  };
  for (size_t i = 0; i < 8; ++i)
    handles.push_back(served.submit(request(i)));
  TextRequest bad = requestOf(1);
  bad.constraint = std::make_shared<FakeConstraintSource>(-1);
  auto none = served.submit(bad);
  for (size_t i = 0; i < 8; ++i) {
    const TextRequest one = request(i);
    const Taken taken(*handles[i]);
    ASSERT_TRUE(taken.end->ok()) << taken.end->message();
    FakeConstraint constraint;
    EXPECT_EQ(taken.ids, expected(one.prompt, one.sampling, i % 2 ? 9 : 30,
                                  served.fixture.device.behavior,
                                  i % 2 ? &constraint : nullptr));
    EXPECT_EQ((*taken.end)->reason,
              i % 2 ? StopReason::Complete : StopReason::MaxTokens);
  }
  const Taken refused(*none);
  EXPECT_EQ(refused.end->message(), "there is no constraint");
}

TEST(Service, GivesWhatTheModelSays) {
  Served served;
  const TextRequest request = requestOf(7);
  auto handle = served.submit(request);
  const Taken taken(*handle);
  EXPECT_EQ(taken.ids, served.expectedOf(request));
  EXPECT_EQ((*taken.end)->reason, StopReason::MaxTokens);
  const ServiceCounts counts = served.service->counts();
  EXPECT_EQ(counts.finished, 1);
  EXPECT_EQ(counts.generatedTokens, 30);
  EXPECT_EQ(counts.promptTokens, 17);
  EXPECT_EQ(counts.cachedTokens, 0);
  EXPECT_EQ(counts.firstToken.count, 1);
  EXPECT_EQ(counts.betweenTokens.count, 29);
  EXPECT_EQ(counts.pagesUsed, 0);
  EXPECT_GT(counts.pagesCached, 0);
  EXPECT_EQ(counts.running + counts.waiting + counts.queued, 0);
  // The same again is in the cache.
  EXPECT_EQ(Taken(*served.submit(request)).ids, taken.ids);
  EXPECT_EQ(served.service->counts().cachedTokens, 16);
  // A prompt alone.
  TextRequest alone = requestOf(5, 0);
  EXPECT_EQ((*Taken(*served.submit(alone)).end)->promptTokens, 15);
  EXPECT_EQ(served.service->counts().promptTokens, 17 + 17 + 15);
}

TEST(Service, EmbeddingsBesideTexts) {
  Served served({.parallel = 3});
  std::vector<TextRequest> requests;
  std::vector<std::unique_ptr<TextHandle>> handles;
  for (size_t i = 0; i < 9; ++i) {
    requests.push_back(requestOf(i));
    if (i % 3)
      requests.back().embedding = {i % 3 == 1 ? Pooling::Last : Pooling::Mean,
                                   /*normalizes=*/false};
    handles.push_back(served.submit(requests.back()));
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    const Taken taken(*handles[i]);
    ASSERT_TRUE(taken.end->ok()) << taken.end->message();
    const GenerationResult &result = **taken.end;
    EXPECT_EQ(result.promptTokens, int64_t(requests[i].prompt.size()));
    if (i % 3 == 0) {
      EXPECT_EQ(taken.ids, served.expectedOf(requests[i]));
      EXPECT_TRUE(result.embedding.empty());
      continue;
    }
    EXPECT_TRUE(taken.ids.empty());
    EXPECT_EQ(result.reason, StopReason::Complete);
    ASSERT_EQ(result.embedding.size(), size_t(kHidden));
    if (i % 3 == 1)
      EXPECT_TRUE(std::ranges::equal(result.embedding,
                                     fakeEmbedding(requests[i].prompt)));
  }
  const ServiceCounts counts = served.service->counts();
  EXPECT_EQ(counts.finished, 9);
  EXPECT_EQ(counts.generatedTokens, 3 * 30);
  EXPECT_EQ(counts.firstToken.count, 3);
  int64_t prompts = 0;
  for (const TextRequest &request : requests)
    prompts += static_cast<int64_t>(request.prompt.size());
  EXPECT_EQ(counts.promptTokens, prompts);
}

TEST(Service, GivesTextAndStopsAtOne) {
  const Tokenizer tokenizer =
      *Tokenizer::open(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json");
  Served served({}, {}, &tokenizer);
  TextRequest request = requestOf(3, 20);
  const Taken whole(*served.submit(request));
  EXPECT_FALSE(whole.text.empty());
  EXPECT_EQ(whole.ids, served.expectedOf(request));
  request.stopTexts = {whole.text.substr(4, 2)};
  const Taken cut(*served.submit(request));
  EXPECT_EQ((*cut.end)->reason, StopReason::StopText);
  EXPECT_EQ(cut.text,
            whole.text.substr(0, whole.text.find(request.stopTexts.front())));
  request.stopTexts.clear();
  request.stopIds = {whole.ids[2]};
  EXPECT_EQ((*Taken(*served.submit(request)).end)->reason,
            StopReason::StopToken);
}

int64_t charactersOf(std::string_view text) {
  return std::ranges::count_if(text,
                               [](char byte) { return (byte & 0xc0) != 0x80; });
}

/// Those of the tokens that a text has, with the piece that they begin in;
/// characters may be of several tokens.
TEST(Service, GivesLogProbsOfTheText) {
  const Tokenizer tokenizer =
      *Tokenizer::fromJson(R"({"model": {"type": "BPE", "merges": [], "vocab":
            {"Ã": 0, "©": 1, "a": 2, "b": 3, "c": 4, "Â": 5, "d": 6,
             "e": 7, "f": 8, "g": 9, "<end>": 10}},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "decoder": {"type": "ByteLevel"}, "added_tokens":
            [{"id": 10, "content": "<end>", "special": true}]})",
                           "test");
  Served served({}, {}, &tokenizer);
  for (size_t number = 0; number < 8; ++number) {
    TextRequest request = requestOf(number, 40);
    EXPECT_TRUE(Taken(*served.submit(request)).logProbs.empty());
    request.topLogProbs = number;
    const Taken whole(*served.submit(request));
    ASSERT_EQ(whole.logProbs.size(), whole.ids.size());
    StreamDecoder decoder(tokenizer, /*skipSpecial=*/true, request.prompt);
    std::string text;
    for (size_t i = 0; i < whole.ids.size(); ++i) {
      EXPECT_EQ(whole.logProbs[i].chosen.id, whole.ids[i]);
      EXPECT_EQ(whole.logProbs[i].top.size(), number);
      EXPECT_EQ(whole.logProbs[i].offset, charactersOf(text));
      text += decoder.push(whole.ids[i]);
    }

    // What is cut from the text is cut from them.
    for (size_t at : {size_t{0}, size_t{1}, whole.text.size() / 2}) {
      while ((whole.text[at] & 0xc0) == 0x80)
        --at;
      TextRequest stopping = request;
      stopping.stopTexts = {whole.text.substr(at, 9)};
      std::string &stop = stopping.stopTexts[0];
      while (!stop.empty() && (stop.back() & 0x80) != 0)
        stop.pop_back();
      if (stop.empty())
        continue;
      const Taken cut(*served.submit(stopping));
      ASSERT_EQ((*cut.end)->reason, StopReason::StopText);
      size_t kept = 0;
      while (kept < whole.logProbs.size() &&
             whole.logProbs[kept].offset < charactersOf(cut.text))
        ++kept;
      ASSERT_EQ(cut.logProbs.size(), kept);
      for (size_t i = 0; i < kept; ++i)
        EXPECT_EQ(cut.logProbs[i].chosen, whole.logProbs[i].chosen);
    }

    // A stop token has some where it has a text.
    for (int32_t stop : {10, 3}) {
      TextRequest ending = request;
      ending.stopIds = {stop};
      const Taken ended(*served.submit(ending));
      const bool isHidden =
          (*ended.end)->reason == StopReason::StopToken && stop == 10;
      EXPECT_EQ(ended.logProbs.size(), ended.ids.size() - isHidden);
    }
  }
}

/// They come no later than the text that they are of, and no earlier.
TEST(Service, LogProbsComeWithTheirText) {
  const Tokenizer tokenizer =
      *Tokenizer::open(KF_SOURCE_DIR "/models/kf-stories/tokenizer.json");
  Served served({}, {}, &tokenizer);
  TextRequest request = requestOf(3, 200);
  request.topLogProbs = 1;
  request.stopTexts = {"!!!!!!", "\"#$"};
  const std::unique_ptr<TextHandle> handle = served.submit(request);
  std::string text;
  for (bool isEnd = false; !isEnd;) {
    const TextPiece piece = handle->wait();
    const int64_t before = charactersOf(text);
    text += piece.text;
    isEnd = piece.end.has_value();
    for (const TextLogProbs &token : piece.logProbs) {
      EXPECT_GE(token.offset, before);
      EXPECT_TRUE(isEnd || token.offset < charactersOf(text));
    }
    EXPECT_TRUE(piece.text.empty() || !piece.logProbs.empty());
  }
}

TEST(Service, WrongRequestsAreRefusedAtOnce) {
  Served served({.contextLength = 100});
  auto errorOf = [&](auto change) {
    TextRequest request = requestOf(1);
    change(request);
    auto handle = served.service->submit(std::move(request));
    EXPECT_FALSE(handle.ok());
    EXPECT_EQ(handle.status().code(), StatusCode::Invalid);
    return handle.message();
  };
  EXPECT_EQ(errorOf([](TextRequest &r) { r.prompt.clear(); }),
            "there are no tokens to continue; begin with the begin-of-text "
            "token");
  EXPECT_EQ(errorOf([](TextRequest &r) { r.prompt[3] = kVocab; }),
            "token id 11 is outside the vocabulary of 11");
  EXPECT_EQ(errorOf([](TextRequest &r) { r.prompt = tokens(101); }),
            "the prompt has 101 tokens; there is room for 100");
  EXPECT_EQ(errorOf([](TextRequest &r) { r.maxTokens = -1; }),
            "a text of -1 tokens is not possible; 0 or more are");
  EXPECT_EQ(errorOf([](TextRequest &r) { r.stopTexts = {"a", ""}; }),
            "a text that is to stop at an empty text has no beginning; stop "
            "texts have at least one character");
  EXPECT_EQ(errorOf([](TextRequest &r) { r.sampling.topP = 0; }),
            "top-p must be above 0 and at most 1, not 0");
  EXPECT_EQ(errorOf([](TextRequest &r) { r.sampling.logitBias = {{99, 1}}; }),
            "logit bias: there is no token 99; the vocabulary's ids are 0 to "
            "10");
  EXPECT_FALSE(
      Service::create(*served.fixture.engine, nullptr, {.mostQueued = 0}).ok());
  // One that is as long as can be.
  TextRequest longest = requestOf(1);
  longest.prompt = tokens(100);
  const Taken taken(*served.submit(longest));
  EXPECT_EQ((*taken.end)->reason, StopReason::ContextFull);
  EXPECT_EQ(taken.ids.size(), 1u);
}

/// Penalties of what was generated, and of the prompt only where that is asked
/// for.
TEST(Service, PenaltiesOfWhatWasGenerated) {
  Served served;
  TextRequest request = requestOf(0, 60);
  request.sampling = {.presencePenalty = 3, .frequencyPenalty = 0.5};
  const Taken all(*served.submit(request));
  EXPECT_EQ(all.ids, served.expectedOf(request));
  request.sampling.penalizesPrompt = false;
  const Taken generated(*served.submit(request));
  EXPECT_EQ(generated.ids, served.expectedOf(request));
  EXPECT_NE(generated.ids, all.ids);
}

/// A cache that is smaller than the context limits texts.
TEST(Service, SmallCachesAreALimit) {
  Served served({.contextLength = 300, .parallel = 2, .pages = 2});
  EXPECT_EQ(served.service->contextLength(), 128);
  TextRequest request = requestOf(4, 1000);
  const int64_t room = 128 - 14 + 1;
  const Taken taken(*served.submit(request));
  request.maxTokens = room;
  EXPECT_EQ(taken.ids, served.expectedOf(request));
  EXPECT_EQ((*taken.end)->reason, StopReason::MaxTokens);
  request.prompt = tokens(129);
  EXPECT_EQ(served.service->submit(request).message(),
            "the prompt has 129 tokens; there is room for 128");
}

/// With few pages texts wait, and lose theirs, and are what they would be.
TEST(Service, FewPagesMakeTextsWait) {
  Gate gate; // all are there before the first one goes on
  Served served({.contextLength = 400, .parallel = 6, .pages = 12}, {}, nullptr,
                [&](Fixture &fixture) {
                  fixture.device.behavior.onRun = [&] { gate.pass(); };
                });
  std::vector<std::unique_ptr<TextHandle>> handles;
  for (size_t i = 0; i < 30; ++i)
    handles.push_back(served.submit(requestOf(i, 300)));
  gate.open();
  for (size_t i = 0; i < 30; ++i)
    EXPECT_EQ(Taken(*handles[i]).ids, served.expectedOf(requestOf(i, 300)));
  EXPECT_GT(served.service->counts().preemptions, 0);
  EXPECT_EQ(served.service->counts().waiting, 0);
  EXPECT_EQ(served.service->counts().cachedTokens, 0);
}

/// A text that fails is the only one that does.
TEST(Service, ErrorsAreTheTextsOwn) {
  Served served({.parallel = 3}, {}, nullptr,
                [](Fixture &fixture) { fixture.device.behavior.poison = 7; });
  TextRequest good = requestOf(0, 60), bad = good;
  good.prompt = {1, 2, 3};
  good.sampling = {.logitBias = {{7, -INFINITY}}};
  bad.prompt = {1, 2, 7};
  auto first = served.submit(good);
  auto failing = served.submit(bad);
  auto last = served.submit(good);
  const Taken failed(*failing);
  EXPECT_EQ(failed.end->message(), "model 'the fake': logits are not finite");
  EXPECT_EQ(Taken(*first).ids, served.expectedOf(good));
  EXPECT_EQ(Taken(*last).ids, served.expectedOf(good));
  EXPECT_EQ(served.service->counts().failed, 1);
  EXPECT_EQ(served.service->counts().finished, 2);
}

//===----------------------------------------------------------------------===//
// Waiting, cancelling, stopping
//===----------------------------------------------------------------------===//

struct GateOwner {
  Gate gate;
};

/// Whose runs the gate holds. The gate goes last.
struct Held : GateOwner, Served {
  explicit Held(int64_t mostQueued = 3, int64_t parallel = 1)
      : Served({.parallel = parallel}, {.mostQueued = mostQueued}, nullptr,
               [this](Fixture &fixture) {
                 fixture.device.behavior.onRun = [this] { gate.pass(); };
               }) {}
  ~Held() { gate.open(); }
};

/// As many as may be there at once can come at once: those that the engine has
/// room for do not count as waiting, though the thread has not seen them yet.
TEST(Service, AnIdleOneTakesAllAtOnce) {
  Held held(/*mostQueued=*/2, /*parallel=*/3);
  auto first = held.submit(requestOf(0));
  held.gate.await(1);
  std::vector<std::unique_ptr<TextHandle>> others;
  for (size_t i = 1; i < 5; ++i)
    others.push_back(held.submit(requestOf(i)));
  EXPECT_EQ(held.service->counts().queued, 4);
  EXPECT_FALSE(held.service->submit(requestOf(5)).ok());
  // Whoever leaves makes room.
  others.pop_back();
  others.push_back(held.submit(requestOf(4)));
  held.gate.open();
  for (size_t i = 1; i < 5; ++i)
    EXPECT_EQ(Taken(*others[i - 1]).ids, held.expectedOf(requestOf(i)));
}

TEST(Service, FullQueueRefuses) {
  Held held(2);
  auto running = held.submit(requestOf(0));
  held.gate.await(1);
  auto second = held.submit(requestOf(1));
  auto third = held.submit(requestOf(2));
  EXPECT_EQ(held.service->mostTexts(), 3);
  auto refused = held.service->submit(requestOf(3));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::Unavailable);
  EXPECT_EQ(refused.message(),
            "the queue is full: 2 requests wait; try again later");
  EXPECT_EQ(held.service->counts().queued, 2);
  EXPECT_EQ(held.service->counts().refused, 1);
  const std::vector<TextState> texts = held.service->texts();
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_TRUE(texts[0].isBegun);
  EXPECT_FALSE(texts[1].isBegun);
  EXPECT_EQ(texts[2].number, 3u);
  EXPECT_EQ(texts[2].prompt, 12);
  // One that goes leaves room.
  third.reset();
  EXPECT_EQ(held.service->counts().queued, 1);
  auto fourth = held.submit(requestOf(3));
  held.gate.open();
  EXPECT_EQ(Taken(*running).ids, held.expectedOf(requestOf(0)));
  EXPECT_EQ(Taken(*second).ids, held.expectedOf(requestOf(1)));
  EXPECT_EQ(Taken(*fourth).ids, held.expectedOf(requestOf(3)));
  EXPECT_TRUE(held.service->texts().empty());
}

/// Each text that has not ended is counted in one place, also one whose first
/// step is not over, and one that ends while others wait.
TEST(Service, CountsWhatHasNotEnded) {
  Held held;
  std::vector<std::unique_ptr<TextHandle>> handles;
  for (size_t i = 0; i < 3; ++i)
    handles.push_back(held.submit(requestOf(i, /*count=*/2)));
  for (int64_t ended = 0; ended < 3; ++ended) {
    held.gate.await(static_cast<int>(2 * ended) + 1);
    const ServiceCounts counts = held.service->counts();
    EXPECT_EQ(counts.finished, ended);
    EXPECT_EQ(counts.running, 1);
    EXPECT_EQ(counts.waiting, 0);
    EXPECT_EQ(counts.queued, 2 - ended);
    held.gate.open(static_cast<int>(2 * ended) + 2);
  }
  EXPECT_TRUE(Taken(*handles.back()).end->ok());
  EXPECT_EQ(held.service->counts().running, 0);
}

TEST(Service, CancelledInTheQueueEndsAtOnce) {
  Held held;
  auto running = held.submit(requestOf(0));
  held.gate.await(1);
  int news = 0;
  auto queued = held.submit(requestOf(1), [&] { ++news; });
  queued->cancel();
  // The step still runs.
  TextPiece piece = queued->take();
  ASSERT_TRUE(piece.end && piece.end->ok());
  EXPECT_EQ((*piece.end)->reason, StopReason::Cancelled);
  EXPECT_EQ((*piece.end)->promptTokens, 0);
  EXPECT_EQ(held.service->counts().cancelled, 1);
  EXPECT_EQ(held.service->counts().queued, 0);
  queued->cancel();
  EXPECT_TRUE(queued->take().isEmpty());
  held.gate.open();
  EXPECT_EQ(Taken(*running).ids.size(), 30u);
  EXPECT_EQ(news, 0);
}

/// What runs ends after its step, and is in no other one; what it shared a step
/// with goes on.
TEST(Service, CancelledWhileRunningEndsAfterTheStep) {
  Held held(3, 2);
  auto gone = held.submit(requestOf(0, 500));
  held.gate.await(1);
  auto stays = held.submit(requestOf(1, 40));
  held.gate.open(4);
  held.gate.await(5); // both are in it
  gone->cancel();
  const TextPiece before = gone->take();
  EXPECT_EQ(before.ids.size(), 4u);
  held.gate.open(5);
  held.gate.await(6);
  // It ended before the next step, which is of the other alone.
  const Taken taken(*gone, before.ids);
  EXPECT_TRUE(taken.isCancelled());
  EXPECT_EQ(taken.ids.size(), 5u);
  const int64_t rows = held.fixture.device.behavior.rows;
  held.gate.open(6);
  held.gate.await(7);
  EXPECT_EQ(held.fixture.device.behavior.rows, rows + 1);
  held.gate.open();
  EXPECT_EQ(Taken(*stays).ids, held.expectedOf(requestOf(1, 40)));
}

/// Where there is nothing else to do, no other step has to come.
TEST(Service, CancelledAloneEndsAfterTheStep) {
  Held held;
  auto handle = held.submit(requestOf(1, 1000));
  held.gate.await(1);
  held.gate.open(1);
  held.gate.await(2);
  handle->cancel();
  held.gate.open(2);
  const Taken taken(*handle);
  EXPECT_TRUE(taken.isCancelled());
  EXPECT_EQ(taken.ids.size(), 2u);
}

TEST(Service, DestroyedHandlesCancel) {
  Held held(/*mostQueued=*/20, /*parallel=*/2);
  for (size_t i = 0; i < 20; ++i)
    held.submit(requestOf(i, 1000)).reset();
  held.gate.open();
  EXPECT_EQ(Taken(*held.submit(requestOf(3))).ids,
            held.expectedOf(requestOf(3)));
  while (held.service->counts().cancelled < 20)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(held.service->counts().pagesUsed, 0);
  EXPECT_EQ(held.service->counts().finished, 1);
}

TEST(Service, DeadlinesEndWhatIsQueuedAndWhatRuns) {
  Held held(/*mostQueued=*/3, /*parallel=*/2);
  held.awaitReady();
  // It runs also where this machine is so slow that the others are late before
  // they are begun.
  auto other = held.submit(requestOf(2));
  held.gate.await(1);
  TextRequest late = requestOf(0, 1000);
  late.deadline = Clock::now() + 2s;
  auto running = held.submit(late);
  held.gate.open(1);
  held.gate.await(2);
  auto queued = held.submit(late);
  std::this_thread::sleep_until(*late.deadline);
  held.gate.open();
  EXPECT_TRUE(Taken(*running).isCancelled());
  EXPECT_TRUE(Taken(*queued).isCancelled());
  EXPECT_EQ(Taken(*other).ids, held.expectedOf(requestOf(2)));
  EXPECT_EQ(held.service->counts().cancelled, 2);
}

TEST(Service, StopsAtOnceOrAfterwards) {
  for (bool atOnce : {true, false}) {
    Held held;
    std::vector<std::unique_ptr<TextHandle>> handles;
    for (size_t i = 0; i < 3; ++i)
      handles.push_back(held.submit(requestOf(i)));
    held.gate.await(1);
    held.service->stop(Clock::now() + 1h);
    if (atOnce)
      held.service->stop();
    EXPECT_EQ(held.service->state(), ServiceState::Stopping);
    auto refused = held.service->submit(requestOf(4));
    EXPECT_EQ(refused.status().code(), StatusCode::Cancelled);
    held.gate.open();
    held.service->join();
    EXPECT_EQ(held.service->state(), ServiceState::Stopped);
    for (size_t i = 0; i < 3; ++i) {
      const Taken taken(*handles[i]);
      EXPECT_EQ(taken.isCancelled(), atOnce);
      if (!atOnce)
        EXPECT_EQ(taken.ids, held.expectedOf(requestOf(i)));
    }
    // Handles may outlive it.
    held.service.reset();
    handles.front()->cancel();
  }
}

//===----------------------------------------------------------------------===//
// Getting ready, and resting
//===----------------------------------------------------------------------===//

TEST(Service, MakesProgramsReadyFirst) {
  Gate gate;
  Served served({.parallel = 40}, {}, nullptr, [&](Fixture &fixture) {
    fixture.change = [&](Executable &) { gate.pass(); };
  });
  gate.await(1);
  EXPECT_EQ(served.service->state(), ServiceState::Loading);
  auto handle = served.submit(requestOf(0));
  EXPECT_TRUE(handle->take().isEmpty());
  gate.open();
  EXPECT_EQ(Taken(*handle).ids, served.expectedOf(requestOf(0)));
  EXPECT_EQ(served.service->state(), ServiceState::Ready);
  // None is made when it is needed.
  const size_t made = served.fixture.asked.size();
  EXPECT_EQ(made, 10u); // 4 bodies, 3 heads and 3 choices
  std::vector<std::unique_ptr<TextHandle>> handles;
  for (size_t i = 0; i < 40; ++i)
    handles.push_back(served.submit(requestOf(i)));
  for (size_t i = 0; i < 40; ++i)
    EXPECT_EQ(Taken(*handles[i]).ids, served.expectedOf(requestOf(i)));
  EXPECT_EQ(served.fixture.asked.size(), made);
}

TEST(Service, ProgramsThatCannotBeMadeAreSaid) {
  Gate gate;
  Served served({}, {}, nullptr, [&](Fixture &fixture) {
    fixture.change = [&](Executable &step) {
      gate.pass();
      step.target = "another";
    };
  });
  gate.await(1);
  auto handle = served.submit(requestOf(0));
  gate.open();
  const Taken taken(*handle);
  EXPECT_FALSE(taken.end->ok());
  served.service->join();
  EXPECT_EQ(served.service->state(), ServiceState::Failed);
  EXPECT_EQ(served.service->failure().message(), taken.end->message());
  EXPECT_EQ(served.service->counts().failed, 1);
  EXPECT_EQ(served.service->submit(requestOf(1)).message(),
            taken.end->message());
}

/// Nothing to do takes no time.
TEST(Service, SleepsWhenIdle) {
  Served served;
  EXPECT_EQ(Taken(*served.submit(requestOf(0))).ids.size(), 30u);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 20);
}

//===----------------------------------------------------------------------===//
// Readers
//===----------------------------------------------------------------------===//

/// A reader is told once, until it has taken what there was; who takes nothing
/// finds all of it at the end, and keeps nobody waiting.
TEST(Service, ReadersAreToldOnceUntilTheyTake) {
  Served served({.parallel = 2});
  std::atomic<int> slowNews = 0;
  auto slow = served.submit(requestOf(1, 50), [&] { ++slowNews; });
  struct Eager {
    std::unique_ptr<TextHandle> handle;
    std::vector<int32_t> ids;
    std::atomic<bool> isDone = false;
    std::mutex mutex;
  } eager;
  std::atomic<int> calls = 0;
  {
    std::unique_lock lock(eager.mutex);
    eager.handle = served.submit(requestOf(2, 50), [&] {
      ++calls;
      std::unique_lock lock(eager.mutex);
      TextPiece piece = eager.handle->take();
      eager.ids.insert(eager.ids.end(), piece.ids.begin(), piece.ids.end());
      if (piece.end)
        eager.isDone = true;
    });
  }
  while (!eager.isDone)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(eager.ids, served.expectedOf(requestOf(2, 50)));
  EXPECT_GE(calls, 50);
  while (served.service->counts().finished < 2)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(slowNews, 1);
  EXPECT_EQ(Taken(*slow).ids, served.expectedOf(requestOf(1, 50)));
  // A wait has an end.
  Held held;
  auto waiting = held.submit(requestOf(0));
  EXPECT_TRUE(waiting->wait(Clock::now() + 5ms).isEmpty());
}

/// From many threads, with texts that are cancelled, dropped and late: those
/// that are not are what they would be alone.
TEST(Service, ManyThreads) {
  constexpr size_t threads = 8, each = 40;
  Served served({.contextLength = 300, .parallel = 6, .pages = 8},
                {.mostQueued = 10});
  std::atomic<int64_t> finished = 0, cancelled = 0, refused = 0;
  auto client = [&](size_t thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (size_t i = 0; i < each; ++i) {
      TextRequest request = requestOf(random() % 30, 1 + random() % 60);
      const unsigned fate = random() % 10;
      if (fate == 3)
        request.deadline =
            Clock::now() + std::chrono::microseconds(random() % 2000);
      Result<std::unique_ptr<TextHandle>> handle =
          served.service->submit(request);
      if (!handle.ok()) {
        EXPECT_EQ(handle.status().code(), StatusCode::Unavailable);
        ++refused;
        std::this_thread::sleep_for(1ms);
        --i;
        continue;
      }
      if (fate == 0) {
        ++cancelled;
        continue; // dropped
      }
      if (fate == 1)
        (*handle)->cancel();
      if (fate == 2) {
        EXPECT_FALSE((*handle)->wait().isEmpty());
        (*handle)->cancel();
      }
      if (fate == 4) {
        (void)served.service->counts();
        (void)served.service->texts();
      }
      bool isCancelled = false;
      std::vector<int32_t> ids;
      for (;;) {
        TextPiece piece = (*handle)->wait();
        if (piece.isEmpty())
          break;
        ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
        if (piece.end) {
          ASSERT_TRUE(piece.end->ok()) << piece.end->message();
          isCancelled = (*piece.end)->reason == StopReason::Cancelled;
          ids = (*piece.end)->ids;
        }
      }
      const std::vector<int32_t> want = served.expectedOf(request);
      ASSERT_LE(ids.size(), want.size());
      ASSERT_TRUE(std::ranges::equal(ids, std::span(want).first(ids.size())));
      if (!isCancelled && fate > 3)
        ASSERT_EQ(ids.size(), want.size());
      ++(isCancelled ? cancelled : finished);
    }
  };
  std::vector<std::thread> clients;
  for (size_t i = 0; i < threads; ++i)
    clients.emplace_back(client, i);
  for (std::thread &thread : clients)
    thread.join();
  served.service->stop(Clock::now() + 1h);
  served.service->join();
  const ServiceCounts counts = served.service->counts();
  EXPECT_EQ(counts.refused, refused);
  // What was dropped may have been quicker than the end of its handle.
  EXPECT_EQ(counts.finished + counts.cancelled,
            static_cast<int64_t>(threads * each));
  EXPECT_GE(counts.finished, finished);
  EXPECT_EQ(counts.failed, 0);
  EXPECT_EQ(counts.pagesUsed, 0);
}

} // namespace
