//===- RankedModelsTest.cpp - Models that several ranks run ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Architectures of test/golden on 2 and 4 ranks, each a thread with a device of
// its own, all without states on the reference, and on 2 GPUs where there are
// as many: the logits of Hugging Face's transformers
// (test/golden/reference.json), its greedy continuation, and equal bits on all
// ranks, where each has an engine; and the same of a session, where one has it
// and the others follow. Weights in blocks are random ones, and what several
// ranks compute is what one does. Texts of kf-stories, many at once, are those
// of one rank.
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"

#include "runtime/collective/ThreadGroup.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/Stages.h"
#include "runtime/model/TiedEmbeddings.h"
#include "runtime/session/Session.h"
#include "test/runtime/TestFiles.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <thread>

using namespace kf;
using namespace kf::test;

namespace {

const std::string goldenFolder = testFile(KF_SOURCE_DIR "/test/golden/");

/// What a rank has computed.
struct RankResult {
  std::vector<float> logits;
  std::vector<int32_t> greedy;
};

struct RankedCase {
  std::string model, device;
  int64_t ranks;
};

/// Code for a CPU that rounds no rows: where weights are floats, and where they
/// are in blocks.
constexpr const char *plainCpu = "x86-64-v3";
constexpr const char *exactCpu = "x86-64-v3-f32";

EngineOptions engineOptions(const std::string &model) {
  EngineOptions options;
  // The table of short contexts is for as many.
  options.contextLength = model == "phi3-longrope-short" ? 64 : 0;
  options.reusesPrefixes = false;
  return options;
}

using OpenModel = std::function<std::unique_ptr<ModelUnderTest>(Group *group)>;

/// Reads `ids` and goes on with `count` tokens on each of `ranks` ranks; 1: by
/// no group.
std::vector<RankResult> runRanks(int64_t ranks, const OpenModel &open,
                                 const std::vector<int32_t> &ids,
                                 size_t count) {
  std::vector<RankResult> results(static_cast<size_t>(ranks));
  auto run = [&](Group *group, RankResult &result) {
    std::unique_ptr<ModelUnderTest> model = open(group);
    ASSERT_TRUE(model);
    auto logits = lastLogits(*model->sequence(), ids);
    ASSERT_TRUE(logits.ok()) << logits.message();
    result.logits = logits.take();
    result.greedy = model->continueGreedily(ids, count);
  };
  if (ranks == 1) {
    run(nullptr, results[0]);
    return results;
  }
  auto groups = createThreadGroup(ranks);
  EXPECT_TRUE(groups.ok()) << groups.message();
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(
        [&run, &result = results[rank], group = std::move((*groups)[rank])] {
          run(group.get(), result);
        });
  for (std::thread &thread : threads)
    thread.join();
  for (const RankResult &result : results) {
    EXPECT_EQ(result.logits, results[0].logits); // to the bit
    EXPECT_EQ(result.greedy, results[0].greedy);
  }
  return results;
}

class RankedModels : public testing::TestWithParam<RankedCase> {
protected:
  void SetUp() override {
    const auto &[model, device, ranks] = GetParam();
    KF_REQUIRE_DEVICE(device);
    if (device != "cuda")
      return;
    if (const std::string missing = missingForCudaRanks(ranks);
        !missing.empty())
      GTEST_SKIP() << missing;
  }
};

/// What transformers computes of a model.
struct Reference {
  Reference(const std::string &model, std::optional<DataType> type)
      : model(model), type(type) {
    std::ifstream file(goldenFolder + "reference.json");
    const auto all = nlohmann::json::parse(file).at(model);
    logits = all.at("last_logits").get<std::vector<double>>();
    greedy = all.at("greedy_20").get<std::vector<int32_t>>();
    ids = all.at("ids").get<std::vector<int32_t>>();
  }

  /// That `result` is this, within what `device` rounds.
  void expect(const RankResult &result, const std::string &device) const {
    const double rounding = isGpu(device) ? cudaRounding(model, type) : 0;
    const double tolerance = std::max(rounding, isGpu(device) ? 1e-3 : 2e-4);
    ASSERT_EQ(result.logits.size(), logits.size());
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(result.logits[i], logits[i], tolerance) << "logit " << i;
    if (rounding == 0)
      EXPECT_EQ(result.greedy, greedy);
  }

  std::string model;
  std::optional<DataType> type; ///< of the weights
  std::vector<double> logits;
  std::vector<int32_t> ids, greedy;
};

TEST_P(RankedModels, LogitsAndContinuationsMatch) {
  const RankedCase &test = GetParam();
  const std::string path = goldenFolder + test.model;
  auto config = loadModelConfig(path);
  ASSERT_TRUE(config.ok()) << config.message();
  const std::vector<int64_t> possible = possibleRanks(*config);
  if (std::ranges::find(possible, test.ranks) == possible.end()) {
    EXPECT_TRUE(config->latent.width > 0 || config->heads < test.ranks);
    return;
  }
  const Reference reference(test.model, config->dtype);
  const std::vector<RankResult> results = runRanks(
      test.ranks,
      [&](Group *group) {
        const unsigned threads = test.device == "cpu2" ? 2 : 1;
        const std::string device = threads == 2 ? "cpu" : test.device;
        return ModelUnderTest::open(path, device, threads, "native",
                                    engineOptions(test.model), {}, group);
      },
      reference.ids, reference.greedy.size());
  reference.expect(results[0], test.device);
}

/// A session of the model at `path`, whose programs this process shares.
Result<std::unique_ptr<Session>>
openSession(const std::string &path, const std::string &device, int64_t ranks,
            int64_t context, uint64_t cacheMemory = 0,
            Parallelism parallelism = Parallelism::Tensor) {
  SessionOptions options;
  options.model = {.path = path, .float8 = Float8Weights::KeptIfAny};
  options.withTokenizer = false;
  options.device.threads = ranks; // one each
  options.context = context;
  options.cacheMemory = cacheMemory;
  options.ranks = ranks;
  options.parallelism = parallelism;
  auto open = [device](const DeviceChoice &choice,
                       Observer *) -> Result<std::unique_ptr<Device>> {
    return openTestDevice(
        device == "cuda" ? "cuda:" + std::to_string(choice.rank) : device);
  };
  auto steps = [device](const ModelFiles &model, const Device &target,
                        const SessionOptions &) -> Result<SessionSteps> {
    return SessionSteps{
        .provide =
            [&model, code = targetFor(target, device)](const StepShape &shape) {
              return compileOnce(model.name, code, model.config, *model.weights,
                                 shape);
            },
        .cacheType = DataType::F32,
        .origin = [] { return std::string(); }};
  };
  return Session::open(options, {.device = open, .steps = steps});
}

void expectOfSession(Session &session, const Reference &reference,
                     const std::string &device) {
  // Twice: followers begin with a new cache.
  for (int i = 0; i < 2; ++i) {
    const Status started = session.start({.reusesPrefixes = i == 1});
    ASSERT_TRUE(started.ok()) << started.message();
    Engine &engine = session.engine();
    auto logits = lastLogits(*engine.createSequence().take(), reference.ids);
    ASSERT_TRUE(logits.ok()) << logits.message();
    auto sequence = engine.createSequence().take();
    Sampler sampler = Sampler::create({}).take();
    GenerationOptions options;
    options.maxTokens = static_cast<int64_t>(reference.greedy.size());
    auto generated =
        generate(*sequence, sampler, nullptr, reference.ids, options);
    ASSERT_TRUE(generated.ok()) << generated.message();
    reference.expect({logits.take(), generated->ids}, device);
  }
}

TEST_P(RankedModels, SessionsLeadTheOthers) {
  const RankedCase &test = GetParam();
  const std::string path = goldenFolder + test.model;
  const EngineOptions wanted = engineOptions(test.model);
  auto session =
      openSession(path, test.device, test.ranks, wanted.contextLength);
  if (test.model == "deepseek-v3") {
    EXPECT_EQ(session.message(),
              path + ": " + std::to_string(test.ranks) +
                  " ranks cannot share models with latent attention; 1 can");
    return;
  }
  if (!session.ok()) {
    EXPECT_TRUE(session.message().starts_with(
        path + ": 4 ranks cannot share the model's 2 heads, "))
        << session.message();
    EXPECT_TRUE(session.message().ends_with("; 1 and 2 can"));
    return;
  }
  const Reference reference(test.model, (*session)->files().config.dtype);
  expectOfSession(**session, reference, test.device);
}

class StagedModels : public RankedModels {};

/// The layers of each model in stages of as many ranks, which need no heads
/// that divide.
TEST_P(StagedModels, SessionsLeadTheStages) {
  const RankedCase &test = GetParam();
  const std::string path = goldenFolder + test.model;
  auto config = loadModelConfig(path);
  ASSERT_TRUE(config.ok()) << config.message();
  const std::vector<int64_t> possible = possibleStages(*config);
  // As many of them as there are layers where there are fewer than ranks.
  const int64_t stages = std::min(test.ranks, config->layers);
  auto session = openSession(path, test.device, stages,
                             engineOptions(test.model).contextLength,
                             /*cacheMemory=*/0, Parallelism::Pipeline);
  if (std::ranges::find(possible, stages) == possible.end()) {
    EXPECT_TRUE(session.message().starts_with(path + ": "))
        << session.message();
    EXPECT_TRUE(test.model == "gemma3n" || test.model == "gemma4-shared-kv" ||
                config->hasStates())
        << session.message();
    return;
  }
  ASSERT_TRUE(session.ok()) << session.message();
  const Reference reference(test.model, (*session)->files().config.dtype);
  expectOfSession(**session, reference, test.device);
}

class SharedContextModels : public RankedModels {};

/// The positions of texts on as many ranks, which need no heads that divide.
/// Most of their texts are of fewer positions than one rank has.
TEST_P(SharedContextModels, SessionsLeadThoseWithOtherPositions) {
  const RankedCase &test = GetParam();
  const std::string path = goldenFolder + test.model;
  auto config = loadModelConfig(path);
  ASSERT_TRUE(config.ok()) << config.message();
  auto session = openSession(path, test.device, test.ranks,
                             engineOptions(test.model).contextLength,
                             /*cacheMemory=*/0, Parallelism::Context);
  if (!session.ok()) {
    EXPECT_EQ(session.message(),
              path + ": the positions of models whose layers attend to windows "
                     "are not shared by ranks; leave --context-parallel out");
    EXPECT_TRUE(std::ranges::any_of(config->windows(), [&](int64_t window) {
      return window > 0 && window < config->maxPositions;
    }));
    return;
  }
  const Reference reference(test.model, (*session)->files().config.dtype);
  expectOfSession(**session, reference, test.device);
}

//===----------------------------------------------------------------------===//
// Many steps
//===----------------------------------------------------------------------===//

struct StoriesCase {
  std::string device;
  size_t steps, texts;
};

class RankedStories : public testing::TestWithParam<StoriesCase> {
protected:
  void SetUp() override {
    KF_REQUIRE_DEVICE(GetParam().device);
    if (GetParam().device != "cuda")
      return;
    if (const std::string missing = missingForCudaRanks(2); !missing.empty())
      GTEST_SKIP() << missing;
  }

  const std::string folder = testFile(KF_SOURCE_DIR "/models/kf-stories");
};

/// A text's first tokens, most of which all have.
std::vector<int32_t> storyIds(size_t text, size_t shared) {
  std::vector<int32_t> ids = {1472}; // the model's first
  for (size_t i = 0; i < shared; ++i)
    ids.push_back(static_cast<int32_t>(300 + 17 * i % 900));
  for (size_t i = 0; i < 1 + text % 9; ++i)
    ids.push_back(static_cast<int32_t>(300 + (31 * text + i) % 1000));
  return ids;
}

/// Logits of each step, on each rank: to the bit.
TEST_P(RankedStories, RanksHaveEqualBitsInEveryStep) {
  constexpr size_t texts = 4;
  std::vector<std::vector<size_t>> hashes(2);
  auto read = [&](Group &group) {
    auto model = ModelUnderTest::open(folder, GetParam().device, 1, "native",
                                      {}, {}, &group);
    ASSERT_TRUE(model);
    for (size_t text = 0; text < texts; ++text) {
      const std::unique_ptr<Sequence> sequence = model->sequence();
      std::vector<int32_t> ids = storyIds(text, 20);
      for (size_t step = 0; step < GetParam().steps / texts; ++step) {
        const auto logits = lastLogits(*sequence, ids);
        ASSERT_TRUE(logits.ok()) << logits.message();
        hashes[static_cast<size_t>(group.rank())].push_back(
            std::hash<std::string_view>()(
                std::string_view(reinterpret_cast<const char *>(logits->data()),
                                 logits->size() * sizeof(float))));
        ids = {static_cast<int32_t>(std::ranges::max_element(*logits) -
                                    logits->begin())};
      }
    }
  };
  auto groups = createThreadGroup(2);
  ASSERT_TRUE(groups.ok()) << groups.message();
  std::vector<std::thread> threads;
  for (auto &group : *groups)
    threads.emplace_back([&read, group = std::move(group)] { read(*group); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(hashes[0].size(), GetParam().steps / texts * texts);
  EXPECT_EQ(hashes[0], hashes[1]);
}

/// What texts become that are read at once: ids of each.
std::vector<std::vector<int32_t>>
readTogether(Session &session, const std::vector<std::vector<int32_t>> &prompts,
             size_t count, int64_t context) {
  std::vector<std::vector<int32_t>> results;
  const Status started = session.start(
      {.tokens = context, .parallel = static_cast<int64_t>(prompts.size())});
  EXPECT_TRUE(started.ok()) << started.message();
  if (!started)
    return results;
  std::vector<std::unique_ptr<Text>> texts;
  for (const auto &prompt : prompts) {
    texts.push_back(std::make_unique<Text>(
        session.engine().createSequence().take(), count));
    EXPECT_TRUE(texts.back()->start(prompt).ok());
  }
  results.resize(texts.size());
  for (size_t done = 0; done < texts.size();) {
    session.engine().step();
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!texts[i] || !texts[i]->generation->isDone())
        continue;
      auto result = texts[i]->generation->take();
      EXPECT_TRUE(result.ok()) << result.message();
      if (result.ok())
        results[i] = result->ids;
      texts[i].reset(); // others may wait for its pages
      ++done;
    }
  }
  return results;
}

/// Texts that begin alike, more than there are pages for at once: what `ranks`
/// make of them is what one does, but where tokens are as likely.
void expectTextsOfOneRank(const std::string &folder, const StoriesCase &wanted,
                          int64_t ranks, Parallelism parallelism) {
  const auto &[device, steps, texts] = wanted;
  constexpr size_t count = 24;
  // Where ranks share positions, more than a page of three of them has.
  const bool isShared = parallelism == Parallelism::Context;
  const size_t alike = isShared ? 198 : 70;
  const int64_t context = isShared ? 256 : 128;
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < texts; ++i)
    prompts.push_back(storyIds(i, alike));
  // Keys and values of 8 layers, 2 heads and 64 columns, in f32: pages for the
  // first tokens, and one for three of four texts.
  const auto memoryOf = [&](size_t first) {
    return (first + texts * 3 / 4) * kCachePage * 8 * 2 * 64 * 2 *
           sizeof(float);
  };
  auto one = openSession(folder, device, 1, context,
                         memoryOf(alike / static_cast<size_t>(kCachePage)));
  // Of all ranks together: of heads or layers, each has a part of a page.
  auto some = openSession(
      folder, device, ranks, context,
      memoryOf(1) * static_cast<uint64_t>(isShared ? ranks : 1), parallelism);
  ASSERT_TRUE(one.ok()) << one.message();
  ASSERT_TRUE(some.ok()) << some.message();
  const auto expected = readTogether(**one, prompts, count, context);
  const auto found = readTogether(**some, prompts, count, context);
  ASSERT_EQ(expected.size(), texts);
  ASSERT_EQ(found.size(), texts);
  const double tolerance =
      isGpu(device) ? 2 * cudaRounding("kf-stories", DataType::BF16) : 1e-3;
  size_t differ = 0;
  for (size_t i = 0; i < texts; ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size());
    const auto [own, other] = std::ranges::mismatch(found[i], expected[i]);
    if (own == found[i].end())
      continue;
    ++differ;
    std::vector<int32_t> ids = prompts[i];
    ids.insert(ids.end(), expected[i].begin(), other);
    const auto logits =
        lastLogits(*(*one)->engine().createSequence().take(), ids);
    ASSERT_TRUE(logits.ok()) << logits.message();
    EXPECT_NEAR((*logits)[static_cast<size_t>(*own)],
                (*logits)[static_cast<size_t>(*other)], tolerance)
        << "text " << i;
  }
  EXPECT_LE(differ, texts / 8);
}

TEST_P(RankedStories, TextsAreThoseOfOneRank) {
  expectTextsOfOneRank(folder, GetParam(), 2, Parallelism::Tensor);
}

/// As many steps are under way as there are stages.
TEST_P(RankedStories, TextsOfStagesAreThoseOfOneRank) {
  expectTextsOfOneRank(folder, GetParam(), 2, Parallelism::Pipeline);
  if (!isGpu(GetParam().device)) // of which there may be two
    expectTextsOfOneRank(folder, GetParam(), 3, Parallelism::Pipeline);
}

/// Pages of as many positions as ranks have together.
TEST_P(RankedStories, TextsOfSharedPositionsAreThoseOfOneRank) {
  for (const int64_t ranks : {2, 3})
    if (ranks == 2 || !isGpu(GetParam().device))
      expectTextsOfOneRank(folder, GetParam(), ranks, Parallelism::Context);
}

INSTANTIATE_TEST_SUITE_P(All, RankedStories,
                         testing::Values(StoriesCase{"cpu", 200, 8},
                                         StoriesCase{"cuda", 1000, 64}),
                         [](const auto &info) {
                           return info.param.device + "_2_ranks";
                         });

/// One rank chooses the kind of device, and where there are several of it, each
/// has its own.
TEST(RankedSessions, TheFirstRankChoosesTheKindOfDevice) {
  std::mutex guard;
  std::vector<std::string> opened;
  SessionOptions options;
  options.model.path = goldenFolder + "llama2-mha";
  options.withTokenizer = false;
  options.device.device = "auto";
  options.device.threads = 8;
  options.ranks = 2;
  auto open = [&](const DeviceChoice &choice,
                  Observer *) -> Result<std::unique_ptr<Device>> {
    std::lock_guard<std::mutex> lock(guard);
    opened.push_back(choice.device + " for rank " +
                     std::to_string(choice.rank) + " of " +
                     std::to_string(choice.ranks) + ", threads " +
                     std::to_string(choice.threads));
    return openTestDevice("reference");
  };
  auto steps = [](const ModelFiles &, const Device &,
                  const SessionOptions &) -> Result<SessionSteps> {
    return SessionSteps();
  };
  auto session = Session::open(options, {.device = open, .steps = steps});
  ASSERT_TRUE(session.ok()) << session.message();
  EXPECT_EQ(opened,
            (std::vector<std::string>{"auto for rank 0 of 2, threads 4",
                                      "reference for rank 1 of 2, threads 0"}));
}

/// Code for GPUs that this machine need not have: collectives are dispatches
/// there, too, of as many ranks as the program says.
TEST(RankedPrograms, AreCompiledForCuda) {
  for (const char *model :
       {"llama3-gqa-scaled", "gpt2-layernorm", "qwen2-moe"}) {
    const std::string path = goldenFolder + model;
    auto config = loadModelConfig(path);
    ASSERT_TRUE(config.ok()) << config.message();
    auto weights = openModelWeights(path, *config);
    ASSERT_TRUE(weights.ok()) << weights.message();
    ASSERT_TRUE(settleTiedEmbeddings(*config, **weights).ok());
    auto shard = shardModel(*config, weights.take(), /*rank=*/1, /*ranks=*/2);
    ASSERT_TRUE(shard.ok()) << shard.message();
    for (StepPart part : {StepPart::Body, StepPart::Head}) {
      auto program = compileOnce(
          path, "#kf.cuda_target<chip = \"sm_90a\", multiprocessors = 132>",
          shard->config, *shard->weights, {part, 16});
      ASSERT_TRUE(program.ok()) << program.message();
      EXPECT_EQ(program->ranks, 2);
      const int64_t collectives =
          std::ranges::count_if(program->dispatches, [](const auto &dispatch) {
            return dispatch.collective.has_value();
          });
      EXPECT_EQ(collectives, part == StepPart::Body ? 2 * config->layers : 1);
    }
  }
}

/// Models of each kind of layer: norms with and without a mean, biases,
/// windows, caches of several sizes, of chunks and of what makes keys, experts,
/// blocks.
constexpr std::initializer_list<const char *> kindsOfModels = {
    "llama3-gqa-scaled", "gpt2-layernorm", "cohere2",    "gemma3",
    "gemma3n",           "llama-float8",   "olmo2",      "phi3",
    "qwen2-moe",         "gpt-oss-mxfp4",  "gemma4-moe", "llama4",
    "deepseek-v3"};

bool isOneOfItsKind(const std::string &model) {
  return std::ranges::find(kindsOfModels, model) != kindsOfModels.end();
}

/// The reference runs every model without states on 2 and 4 ranks: what is
/// shared out, and what ranks tell one another, is the same on all devices. A
/// CPU's code depends on how wide a rank's part is: every model on 2 ranks, and
/// one of each kind on 4.
std::vector<RankedCase> goldenCases() {
  std::vector<RankedCase> cases;
  for (const auto &models :
       {denseGoldenModels, expertGoldenModels, layeredGoldenModels})
    for (const char *model : models) {
      const char *cpu = roundsToBytes(model) ? exactCpu : plainCpu;
      for (int64_t ranks : {2, 4})
        for (const char *device : {"reference", cpu})
          if (device != cpu || ranks == 2 || isOneOfItsKind(model))
            cases.push_back({model, device, ranks});
      if (!roundsToOthers(model) && !roundsToBytes(model))
        cases.push_back({model, "cuda", 2});
    }
  // Ranks of several threads each.
  for (int64_t ranks : {2, 4})
    cases.push_back({"llama3-gqa-scaled", "cpu2", ranks});
  return cases;
}

/// A stage's kernels, and those of a rank with some positions, are as wide as
/// the model's, which GoldenModelsTest runs on
/// CPUs: of these, one of each kind.
std::vector<RankedCase> stagedCases() {
  std::vector<RankedCase> cases = goldenCases();
  std::erase_if(cases, [](const RankedCase &test) {
    return test.device.starts_with("x86-64") && !isOneOfItsKind(test.model);
  });
  return cases;
}

std::string nameOfCase(const testing::TestParamInfo<RankedCase> &info) {
  std::string name = info.param.model + "_" + info.param.device + "_" +
                     std::to_string(info.param.ranks) + "_ranks";
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, RankedModels, testing::ValuesIn(goldenCases()),
                         nameOfCase);
INSTANTIATE_TEST_SUITE_P(All, StagedModels, testing::ValuesIn(stagedCases()),
                         nameOfCase);
INSTANTIATE_TEST_SUITE_P(All, SharedContextModels,
                         testing::ValuesIn(stagedCases()), nameOfCase);

/// Random weights of a type, in matrices whose widths are no multiples of what
/// the ranks share out, and an odd vocabulary.
struct BlockCase {
  DataType type;
  int64_t ranks;
  bool hasExperts = false; ///< in the place of the feed-forward block
};

/// That ranks with random weights compute what one does.
void expectWhatOneComputes(const ModelConfig &config, DataType type,
                           int64_t ranks) {
  // Neither rounds rows.
  for (const char *device : {"reference", exactCpu}) {
    KF_REQUIRE_DEVICE(device);
    auto run = [&](int64_t count) {
      return runRanks(
                 count,
                 [&](Group *group) {
                   return ModelUnderTest::openRandom(config, type, device,
                                                     engineOptions(""), group);
                 },
                 {1, 50, 200, 306, 7}, /*count=*/8)
          .front();
    };
    const RankResult one = run(1), several = run(ranks);
    ASSERT_EQ(one.logits.size(), several.logits.size());
    for (size_t i = 0; i < one.logits.size(); ++i)
      ASSERT_NEAR(one.logits[i], several.logits[i], 2e-4)
          << device << ", logit " << i;
    EXPECT_EQ(one.greedy, several.greedy) << device;
  }
}

class RankedBlocks : public testing::TestWithParam<BlockCase> {};

TEST_P(RankedBlocks, SeveralRanksComputeWhatOneDoes) {
  const auto [type, ranks, hasExperts] = GetParam();
  const std::string kind =
      hasExperts ? R"("mixtral", "num_local_experts": 4)" : R"("llama")";
  const ModelConfig config = parseModelConfig(R"({"model_type": )" + kind + R"(,
      "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 768,
      "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
      "vocab_size": 307, "rms_norm_eps": 1e-5,
      "max_position_embeddings": 64})")
                                 .take();
  expectWhatOneComputes(config, type, ranks);
}

// With 2 ranks, each has 2 of the 3 blocks of 256 columns of down; with 4, two
// have a block of o together; with 8, four have a KV head.
INSTANTIATE_TEST_SUITE_P(
    All, RankedBlocks,
    testing::Values(BlockCase{DataType::Q4_0, 4}, BlockCase{DataType::Q8_0, 8},
                    BlockCase{DataType::Q4_K, 2}, BlockCase{DataType::Q4_K, 4},
                    BlockCase{DataType::Q6_K, 2}, BlockCase{DataType::Q6_K, 8},
                    BlockCase{DataType::BF16, 8},
                    BlockCase{DataType::Q4_K, 2, true},
                    BlockCase{DataType::Q8_0, 4, true}),
    [](const testing::TestParamInfo<BlockCase> &info) {
      return std::string(nameOf(info.param.type)) + "_" +
             std::to_string(info.param.ranks) + "_ranks" +
             (info.param.hasExperts ? "_experts" : "");
    });

/// Gates of which few count are compared with the mean of all ranks' columns,
/// of which the last rank has fewer than others.
TEST(RankedGates, ZerosBehindColumnsDoNotCount) {
  const ModelConfig config = parseModelConfig(R"({"model_type": "gemma3n_text",
      "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": [5, 5],
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
      "layer_types": ["sliding_attention", "full_attention"],
      "activation_sparsity_pattern": [0.8, 0.0], "num_kv_shared_layers": 0,
      "vocab_size": 307, "vocab_size_per_layer_input": 307,
      "hidden_size_per_layer_input": 8, "laurel_rank": 8,
      "max_position_embeddings": 64})")
                                 .take();
  expectWhatOneComputes(config, DataType::F32, 4);
}

} // namespace
