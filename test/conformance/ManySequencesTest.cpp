//===- ManySequencesTest.cpp - Models that read many texts at once --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a text becomes does not depend on those that are read beside it: not by
// their numbers, not by when they come and go, not by pages that they share.
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"
#include "runtime/model/LayerCaches.h"
#include "runtime/serve/Service.h"
#include "test/runtime/TestFiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

const std::string goldenFolder = testFile(KF_SOURCE_DIR "/test/golden/");

/// Ids of a vocabulary of `size`, without the first ten.
std::vector<int32_t> someIds(size_t count, uint32_t seed, uint32_t size = 307) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t &id : ids)
    id = static_cast<int32_t>(10 + random() % (size - 10));
  return ids;
}

//===----------------------------------------------------------------------===//
// Numbers that are not finite
//===----------------------------------------------------------------------===//

constexpr int32_t kSickToken = 5;

/// Another source but for the embedding of one token, which is NaN.
class SickSource : public WeightSource {
public:
  SickSource(std::unique_ptr<WeightSource> healthy)
      : healthy(std::move(healthy)) {
    const TensorView view = this->healthy->find(name).take();
    const std::byte *data = static_cast<const std::byte *>(view.data);
    bytes.assign(data, data + view.bytes);
    const size_t row = view.bytes / static_cast<size_t>(view.shape[0]);
    // All bits set is NaN in every type of floats.
    std::memset(bytes.data() + kSickToken * row, 0xff, row);
  }

  Result<TensorView> find(const std::string &wanted) const override {
    Result<TensorView> view = healthy->find(wanted);
    if (view.ok() && wanted == name)
      view->data = bytes.data();
    return view;
  }
  std::vector<std::string> names() const override { return healthy->names(); }

private:
  const std::string name = "model.embed_tokens.weight";
  std::unique_ptr<WeightSource> healthy;
  std::vector<std::byte> bytes;
};

struct Case {
  std::string device;
  unsigned threads;
};

class ManySequences : public testing::TestWithParam<Case> {
protected:
  void SetUp() override { KF_REQUIRE_DEVICE(GetParam().device); }

  std::unique_ptr<ModelUnderTest>
  open(const EngineOptions &options, bool sick = false,
       const std::string &model = "llama2-mha") {
    return ModelUnderTest::open(
        goldenFolder + model, GetParam().device, GetParam().threads, "native",
        options, [&](std::unique_ptr<WeightSource> &weights) {
          if (sick)
            weights = std::make_unique<SickSource>(std::move(weights));
          // Else steps of other sizes round rows otherwise.
          if (model != "llama2-mha")
            widen(weights);
        });
  }

  void continueInFewPages(const std::string &model, int64_t pages,
                          uint32_t vocabulary, size_t longer);
  /// `name` is a model all of whose windows are made 100 positions wide, whose
  /// caches have `windows` then, and which keeps `used` pages of 250 positions.
  void readInPagesOfWindows(const std::string &name,
                            const CacheWindows &windows, uint32_t vocabulary,
                            int64_t used);
};

TEST_P(ManySequences, NaNStaysInItsSequence) {
  auto alone = open({}, /*sick=*/true);
  auto together = open({.parallel = 4}, /*sick=*/true);
  ASSERT_TRUE(alone && together);
  const std::vector<int32_t> prompt = someIds(75, 1);
  const std::vector<int32_t> lone = alone->continueGreedily(prompt, 30);

  Text healthy(together->sequence(), 30);
  ASSERT_TRUE(healthy.start(prompt).ok());
  // Of every length beside it, so that they are in its tiles and its pages'
  // neighbours, again and again.
  std::vector<std::unique_ptr<Text>> sick;
  int failed = 0;
  for (uint32_t round = 0; !healthy.generation->isDone(); ++round) {
    if (sick.size() < 3) {
      std::vector<int32_t> ids = someIds(1 + round * 7 % 90, 100 + round);
      ids[ids.size() / 2] = kSickToken;
      sick.push_back(std::make_unique<Text>(together->sequence(), 5));
      ASSERT_TRUE(sick.back()->start(ids).ok());
    }
    together->engine().step();
    std::erase_if(sick, [&](const std::unique_ptr<Text> &text) {
      if (!text->generation->isDone())
        return false;
      const std::string error = text->generation->take().message();
      EXPECT_NE(error.find("are not finite"), std::string::npos) << error;
      ++failed;
      return true;
    });
  }
  EXPECT_GT(failed, 20);
  const auto cause = together->engine().model().findCauseOfBadLogits();
  ASSERT_TRUE(cause.ok()) << cause.message();
  EXPECT_NE(cause->find("has a NaN in row 5"), std::string::npos) << *cause;
  auto result = healthy.generation->take();
  ASSERT_TRUE(result.ok()) << result.message();
  EXPECT_EQ(result->ids, lone);
}

//===----------------------------------------------------------------------===//
// Few pages
//===----------------------------------------------------------------------===//

/// Texts that lose their pages and read their tokens again become what they are
/// alone, drawn or not.
/// `longer` is how many tokens each prompt has more than the one before.
void ManySequences::continueInFewPages(const std::string &model, int64_t pages,
                                       uint32_t vocabulary, size_t longer) {
  constexpr size_t kTokens = 170;
  auto promptOf = [&](size_t i) {
    return someIds(20 + i * longer, static_cast<uint32_t>(i), vocabulary);
  };
  auto alone = open({}, /*sick=*/false, model);
  auto together = open({.parallel = 4, .pages = pages}, /*sick=*/false, model);
  ASSERT_TRUE(alone && together);
  auto sampling = [](size_t i) {
    SamplerOptions options;
    options.temperature = static_cast<double>(i % 2);
    options.seed = i;
    return options;
  };
  std::vector<std::unique_ptr<Text>> texts;
  for (size_t i = 0; i < 4; ++i) {
    texts.push_back(
        std::make_unique<Text>(together->sequence(), kTokens, sampling(i)));
    ASSERT_TRUE(texts.back()->start(promptOf(i)).ok());
  }
  size_t done = 0;
  while (done < texts.size()) {
    together->engine().step();
    for (size_t i = 0; i < 4; ++i) {
      if (!texts[i] || !texts[i]->generation->isDone())
        continue;
      const auto result = texts[i]->generation->take();
      texts[i].reset(); // others need its pages
      ++done;
      ASSERT_TRUE(result.ok()) << result.message();
      Text lone(alone->sequence(), kTokens, sampling(i));
      ASSERT_TRUE(lone.start(promptOf(i)).ok());
      while (!lone.generation->isDone())
        alone->engine().step();
      EXPECT_EQ(result->ids, lone.generation->take()->ids) << "text " << i;
      EXPECT_EQ(result->ids.size(), kTokens);
    }
  }
  EXPECT_GT(together->engine().counts().preemptions, 0);
}

TEST_P(ManySequences, FewPages) { continueInFewPages("llama2-mha", 7, 307, 0); }

/// Three of four layers see 8 positions, and give back pages of texts of up to
/// four, which take up to 14.
TEST_P(ManySequences, FewPagesOfWindows) {
  continueInFewPages("gemma3", 18, 80, 20);
}

/// All layers see 8, so that a text keeps three pages, whatever its length.
TEST_P(ManySequences, FewPagesWhereAllLayersHaveWindows) {
  continueInFewPages("mistral-window", 6, 307, 20);
}

/// Logits behind 250 tokens, read in steps of several sizes, where layers with
/// windows give pages back, and where they share those of all layers, as a
/// model does that has no more positions than its windows' pages. Page tables
/// of 4 and 5 pages are read in as many parts by all devices.
void ManySequences::readInPagesOfWindows(const std::string &name,
                                         const CacheWindows &windows,
                                         uint32_t vocabulary, int64_t used) {
  auto config = loadModelConfig(goldenFolder + name);
  ASSERT_TRUE(config.ok()) << config.message();
  for (LayerConfig &layer : config->layerConfigs)
    if (layer.window > 0)
      layer.window = 100;
  const std::vector<int32_t> ids = someIds(250, 3, vocabulary);
  std::vector<std::vector<float>> logits[2];
  for (const bool isShared : {false, true}) {
    config->maxPositions = isShared ? 256 : 320;
    const auto model = ModelUnderTest::openRandom(
        *config, DataType::F32, GetParam().device, {}, nullptr);
    ASSERT_TRUE(model);
    EXPECT_EQ(cacheWindowsOf(model->config()),
              isShared ? CacheWindows() : windows);
    const auto sequence = model->sequence();
    for (size_t at = 0, count = 170; at < ids.size(); at += count, count = 1)
      ASSERT_TRUE(readLogits(*sequence, std::span(ids).subspan(at, count),
                             [&](size_t, std::span<const float> row) {
                               logits[isShared].emplace_back(row.begin(),
                                                             row.end());
                               return Status();
                             })
                      .ok());
    EXPECT_EQ(model->engine().pages().used(), isShared ? 4 : used);
  }
  ASSERT_EQ(logits[0].size(), ids.size());
  EXPECT_EQ(logits[0], logits[1]);
}

TEST_P(ManySequences, WindowsSeeTheSameInPagesOfTheirOwn) {
  readInPagesOfWindows("gemma3", {.tables = 3, .positions = 100}, 80,
                       4 + 3 * 3);
}
TEST_P(ManySequences, WindowsOfAllLayersSeeTheSameInPagesOfTheirOwn) {
  readInPagesOfWindows("mistral-window",
                       {.tables = 1, .positions = 100, .areAll = true}, 307, 3);
}

/// Two of the texts have slots for their states at a time.
TEST_P(ManySequences, FewSlots) { continueInFewPages("qwen3-5", 5, 64, 20); }

//===----------------------------------------------------------------------===//
// A service
//===----------------------------------------------------------------------===//

/// Clients on threads of their own, some of which leave early: the others get
/// what each gets alone.
TEST_P(ManySequences, Served) {
  constexpr size_t kClients = 8, kRequests = 4, kPrompts = 6, kTokens = 60;
  auto alone = open({});
  auto together = open({.parallel = 4, .pages = 8, .longestStep = 0.25});
  ASSERT_TRUE(alone && together);
  std::vector<std::vector<int32_t>> wanted;
  for (uint32_t i = 0; i < kPrompts; ++i)
    wanted.push_back(alone->continueGreedily(someIds(10 + 20 * i, i), kTokens));
  auto made = Service::create(together->engine(), nullptr);
  ASSERT_TRUE(made.ok()) << made.message();
  const std::unique_ptr<Service> service = made.take();
  std::vector<std::thread> clients;
  for (size_t client = 0; client < kClients; ++client)
    clients.emplace_back([&, client] {
      for (size_t request = 0; request < kRequests; ++request) {
        const auto i = static_cast<uint32_t>((client + request) % kPrompts);
        TextRequest wish;
        wish.prompt = someIds(10 + 20 * i, i);
        wish.maxTokens = kTokens;
        auto handle = service->submit(std::move(wish));
        ASSERT_TRUE(handle.ok()) << handle.message();
        const bool leaves = (client + 3 * request) % 5 == 0;
        for (TextPiece piece; !piece.end;) {
          piece = (*handle)->wait();
          if (leaves)
            break;
          if (piece.end) {
            ASSERT_TRUE(piece.end->ok()) << piece.end->message();
            EXPECT_EQ((*piece.end)->ids, wanted[i]);
          }
        }
      }
    });
  for (std::thread &client : clients)
    client.join();
  service->stop(std::chrono::steady_clock::now() + std::chrono::hours(1));
  service->join();
  const ServiceCounts counts = service->counts();
  EXPECT_EQ(counts.finished + counts.cancelled,
            static_cast<int64_t>(kClients * kRequests));
  EXPECT_EQ(counts.pagesUsed, 0);
}

//===----------------------------------------------------------------------===//
// Coming and going
//===----------------------------------------------------------------------===//

/// Prompts of which many begin alike: within a page, and behind some.
std::vector<std::vector<int32_t>> prompts(uint32_t vocabulary) {
  std::vector<std::vector<int32_t>> list;
  const std::vector<int32_t> common = someIds(140, 7, vocabulary);
  for (uint32_t i = 0; i < 12; ++i) {
    const size_t shared = std::array{0, 20, 64, 100, 128, 140}[i % 6];
    std::vector<int32_t> ids(common.begin(),
                             common.begin() + static_cast<ptrdiff_t>(shared));
    for (int32_t id : someIds(1 + i * 5 % 23, i, vocabulary))
      ids.push_back(id);
    list.push_back(std::move(ids));
  }
  return list;
}

/// Texts come at random, are cancelled, and forked where they ended, for ten
/// thousand steps; each has to become what the reference makes of it alone.
void comeAndGo(const std::string &name, uint32_t vocabulary) {
  constexpr size_t kTokens = 20, kForked = 12, kForks = 3;
  const std::vector<std::vector<int32_t>> list = prompts(vocabulary);
  const bool hasStates = name == "qwen3-5"; // which rounding adds up in
  auto change = [&](std::unique_ptr<WeightSource> &weights) {
    if (hasStates)
      widen(weights);
  };
  auto reference = ModelUnderTest::open(goldenFolder + name, "reference");
  auto model = ModelUnderTest::open(
      goldenFolder + name, "cpu", 2, "native",
      {.parallel = 8, .pages = 14, .rowsPerStep = 48}, change);
  ASSERT_TRUE(reference && model);
  // What has to come of prompt p, and of its fork f.
  struct Expected {
    std::vector<int32_t> text;
    std::vector<int32_t> forkPrompts[kForks], forks[kForks];
  };
  std::vector<Expected> expected;
  for (size_t p = 0; p < list.size(); ++p) {
    Expected &entry = expected.emplace_back();
    entry.text = reference->continueGreedily(list[p], kTokens);
    for (uint32_t f = 0; f < kForks; ++f) {
      // The last token that was chosen was not read.
      entry.forkPrompts[f] = {entry.text.back()};
      for (int32_t id : someIds(1 + 9 * f, 40 + f, vocabulary))
        entry.forkPrompts[f].push_back(id);
      std::vector<int32_t> all = list[p];
      all.insert(all.end(), entry.text.begin(), entry.text.end() - 1);
      all.insert(all.end(), entry.forkPrompts[f].begin(),
                 entry.forkPrompts[f].end());
      entry.forks[f] = reference->continueGreedily(all, kForked);
    }
  }

  struct Job {
    std::unique_ptr<Text> text;
    const std::vector<int32_t> *want;
    size_t prompt;
    bool isFork;
  };
  std::mt19937 random(5);
  auto below = [&](size_t n) { return random() % n; };
  std::vector<Job> going, ended;
  int64_t right = 0, forked = 0, cancelled = 0;
  Engine &engine = model->engine();
  while (engine.counts().steps < 10000) {
    if (going.size() < 8 && below(3) == 0) {
      const size_t p = below(list.size());
      Job job = {std::make_unique<Text>(model->sequence(), kTokens),
                 &expected[p].text, p, false};
      ASSERT_TRUE(job.text->start(list[p]).ok());
      going.push_back(std::move(job));
    }
    if (going.size() < 8 && !ended.empty() && below(4) == 0) {
      const Job &origin = ended[below(ended.size())];
      const uint32_t f = static_cast<uint32_t>(below(kForks));
      Job job = {
          std::make_unique<Text>(origin.text->sequence->fork().take(), kForked),
          &expected[origin.prompt].forks[f], origin.prompt, true};
      ASSERT_TRUE(job.text->start(expected[origin.prompt].forkPrompts[f]).ok());
      going.push_back(std::move(job));
      ++forked;
    }
    if (!going.empty() && below(50) == 0)
      going[below(going.size())].text->sequence->cancel();
    engine.step();
    for (size_t i = going.size(); i-- > 0;) {
      if (!going[i].text->generation->isDone())
        continue;
      Job job = std::move(going[i]);
      going.erase(going.begin() + static_cast<ptrdiff_t>(i));
      auto result = job.text->generation->take();
      if (!result.ok()) {
        // Those that have ended and are kept may have what one needs.
        ASSERT_EQ(result.status().code(), StatusCode::OutOfMemory)
            << result.message();
        continue;
      }
      if (result->reason == StopReason::Cancelled) {
        ASSERT_TRUE(std::equal(result->ids.begin(), result->ids.end(),
                               job.want->begin()));
        ++cancelled;
        continue;
      }
      ASSERT_EQ(result->ids, *job.want)
          << "prompt " << job.prompt << (job.isFork ? ", forked" : "");
      ++right;
      if (!job.isFork && ended.size() < 3)
        ended.push_back(std::move(job));
    }
    if (!ended.empty() && below(30) == 0)
      ended.erase(ended.begin() + static_cast<ptrdiff_t>(below(ended.size())));
  }
  EXPECT_GT(right, 1000);
  EXPECT_GT(forked, 200);
  EXPECT_GT(cancelled, 50);
  going.clear();
  ended.clear();
  EXPECT_EQ(engine.pages().used(), 0);
  EXPECT_TRUE(engine.pages().check({}).ok());
}

TEST(ComingAndGoing, Stress) { comeAndGo("llama3-gqa-scaled", 307); }
/// Of a model with states, of which there are four for eight texts.
TEST(ComingAndGoing, StressOfStates) { comeAndGo("qwen3-5", 64); }

INSTANTIATE_TEST_SUITE_P(All, ManySequences,
                         testing::Values(Case{"reference", 1}, Case{"cpu", 1},
                                         Case{"cpu", 2}, Case{"vulkan", 1},
                                         Case{"cuda", 1}),
                         [](const testing::TestParamInfo<Case> &info) {
                           return info.param.device +
                                  std::to_string(info.param.threads);
                         });

} // namespace
