//===- SessionTest.cpp - Sessions without a compiler ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session takes what it cannot make itself, a device and programs, so that
// the engine's fakes do here. CompiledSessionTest has real ones.
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"
#include "runtime/session/SessionDraft.h"

#include "runtime/engine/Generation.h"
#include "runtime/model/DummyWeights.h"
#include "runtime/model/LayerCaches.h"
#include "runtime/model/ModelWork.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/TempFile.h"
#include "test/runtime/engine/FakeModel.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace kf;
using namespace kf::test;

namespace {

/// Writes down what it is told.
class Recorder : public Observer {
public:
  void onBegin(const std::string &work) override {
    lines.push_back("begin " + work);
    ++open;
  }
  void onProgress(double) override { EXPECT_GT(open, 0); }
  void onEnd() override {
    --open;
    EXPECT_GE(open, 0);
  }
  void onWarning(const std::string &line) override {
    lines.push_back("warning: " + line);
  }
  void onNote(const std::string &line) override {
    lines.push_back("note: " + line);
  }

  std::vector<std::string> lines;
  int open = 0;
};

/// What sessions of the fake model are made with.
SessionSources fakeSources(const ModelConfig &config = fakeConfig()) {
  auto openFake = [config](bool /*withTokenizer*/) -> Result<ModelFiles> {
    ModelFiles files;
    files.name = "the fake";
    files.config = config;
    files.weights = std::make_unique<FakeSource>();
    return files;
  };
  return {.device = [](const DeviceChoice &,
                       Observer *) -> Result<std::unique_ptr<Device>> {
            return std::unique_ptr<Device>(new FakeModelDevice());
          },
          .steps = [](const ModelFiles &model, const Device &,
                      const SessionOptions &) -> Result<SessionSteps> {
            const ModelConfig config = model.config;
            return SessionSteps{
                .provide = [config](const StepShape &shape)
                    -> Result<Executable> { return fakeStep(shape, config); },
                .cacheType = DataType::F32,
                .origin = [] { return std::string("made up"); }};
          },
          .embedded = openFake};
}

std::unique_ptr<Session>
openFakeSession(SessionOptions options = {},
                const ModelConfig &config = fakeConfig()) {
  Result<std::unique_ptr<Session>> session =
      Session::open(std::move(options), fakeSources(config));
  EXPECT_TRUE(session.ok()) << session.message();
  return session.ok() ? session.take() : nullptr;
}

/// Positions that a session with `options` has room for.
int64_t contextOf(SessionOptions options, const StartOptions &needs) {
  std::unique_ptr<Session> session = openFakeSession(std::move(options));
  EXPECT_TRUE(succeeds(session->start(needs)));
  return session->engine().contextLength();
}

TEST(Session, RunsAModel) {
  Recorder recorder;
  std::unique_ptr<Session> session = openFakeSession({.observer = &recorder});
  EXPECT_EQ(session->files().name, "the fake");
  EXPECT_EQ(session->origin(), "made up");
  EXPECT_GT(session->openSeconds(), 0);
  EXPECT_EQ(session->profile(), nullptr);
  ASSERT_TRUE(succeeds(session->start({.tokens = 20, .parallel = 3})));
  std::unique_ptr<Sequence> sequence =
      session->engine().createSequence().take();
  Sampler sampler = Sampler::create({}).take();
  const std::vector<int32_t> prompt = {1, 2, 3};
  GenerationOptions settings;
  settings.maxTokens = 2;
  Result<GenerationResult> generated =
      generate(*sequence, sampler, nullptr, prompt, settings);
  ASSERT_TRUE(generated.ok()) << generated.message();
  // The fake's logits increase with the token.
  EXPECT_EQ(generated->ids, std::vector<int32_t>({kVocab - 1, kVocab - 1}));
  EXPECT_EQ(recorder.lines,
            std::vector<std::string>{"begin opening the model"});
  EXPECT_EQ(recorder.open, 0);
}

TEST(Session, StartsAgain) {
  std::unique_ptr<Session> session = openFakeSession();
  ASSERT_TRUE(succeeds(session->start({.parallel = 1})));
  ASSERT_TRUE(succeeds(session->start({.parallel = 2})));
  EXPECT_EQ(session->engine().pages().total(), 2 * cachePagesOf(1200));
}

TEST(Session, HasAModelThatDrafts) {
  std::unique_ptr<Session> session = openFakeSession(
      {.cacheMemory = 6 * 1024, .draft = DraftChoice{.mostTokens = 3}});
  ASSERT_TRUE(session);
  for (int64_t parallel : {1, 2}) {
    ASSERT_TRUE(succeeds(session->start({.parallel = parallel})));
    const Engine &engine = session->engine();
    ASSERT_TRUE(engine.draftEngine());
    EXPECT_EQ(engine.draftEngine()->parallel(), parallel);
    // The cache's memory is for both.
    const int64_t page =
        LayerCaches(fakeConfig(), DataType::F32).bytes(1).take();
    EXPECT_EQ(engine.pages().total(), 6 * 1024 / (2 * page));
    EXPECT_EQ(engine.draftEngine()->pages().total(), engine.pages().total());
    std::unique_ptr<Sequence> sequence =
        session->engine().createSequence().take();
    Sampler sampler = Sampler::create({}).take();
    const std::vector<int32_t> prompt = {1, 2, 3};
    GenerationOptions settings;
    settings.maxTokens = 40;
    Result<GenerationResult> generated =
        generate(*sequence, sampler, nullptr, prompt, settings);
    ASSERT_TRUE(generated.ok()) << generated.message();
    EXPECT_EQ(generated->ids, std::vector<int32_t>(40, kVocab - 1));
    EXPECT_GT(generated->draftTokens, 0);
  }
}

/// A draft model has pages for all texts that the model has pages for,
/// whichever of the two have layers with windows.
TEST(Session, HasPagesForDraftsOfLongTexts) {
  const ModelConfig windowed = windowedConfig(), plain = fakeConfig();
  const int64_t rows = FakeModelDevice().promptRows();
  for (const bool modelHasWindows : {false, true}) {
    SessionSources sources = fakeSources();
    int opened = 0;
    sources.embedded = [&](bool) -> Result<ModelFiles> {
      const bool isDraft = opened++ > 0;
      ModelFiles files;
      files.name = "the fake";
      files.config = isDraft != modelHasWindows ? windowed : plain;
      files.weights = std::make_unique<FakeSource>();
      return files;
    };
    Result<std::unique_ptr<Session>> session =
        Session::open({.draft = DraftChoice{.mostTokens = 3}}, sources);
    ASSERT_TRUE(session.ok()) << session.message();
    ASSERT_TRUE(succeeds((*session)->start({.parallel = 2})));
    const Engine &engine = (*session)->engine();
    EXPECT_EQ(
        engine.draftEngine()->pages().total(),
        pagesOfSequences(modelHasWindows ? plain : windowed, 1200, 2, rows));
    // Short texts alone, of which windows' layers see all.
    SessionOptions options = {.cacheMemory = 1 << 15,
                              .draft = DraftChoice{.mostTokens = 3}};
    opened = 0;
    session = Session::open(std::move(options), sources);
    ASSERT_TRUE(session.ok()) << session.message();
    ASSERT_TRUE(succeeds((*session)->start({.parallel = 8})));
    const int64_t pages = (*session)->engine().pages().total();
    EXPECT_LT(pages, 8 * 19);
    EXPECT_EQ((*session)->engine().draftEngine()->pages().total(),
              modelHasWindows ? pagesBeside(plain, windowed, pages, 1200)
                              : 3 * pages);
  }
}

/// A model with a vocabulary of single letters.
ModelFiles filesOf(const std::string &name, const std::string &letters,
                   int64_t rows) {
  ModelFiles files;
  files.name = name;
  files.config = fakeConfig();
  files.config.vocabSize = rows;
  std::string vocabulary;
  for (size_t i = 0; i < letters.size(); ++i)
    vocabulary += std::string(i ? ", " : "") + "\"" + letters[i] +
                  "\": " + std::to_string(i);
  Result<Tokenizer> tokenizer = Tokenizer::fromJson(
      R"({"model": {"type": "BPE", "vocab": {)" + vocabulary +
          R"(}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel", )"
          R"("add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})",
      "test");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.message();
  files.tokenizer = tokenizer.take();
  return files;
}

TEST(SessionDraft, VocabulariesAreTheSame) {
  const ModelFiles model = filesOf("large", "abcd", 4);
  EXPECT_TRUE(succeeds(checkSameVocabulary(model, filesOf("s", "abcd", 4))));
  // Rows behind the tokens.
  EXPECT_TRUE(succeeds(checkSameVocabulary(model, filesOf("s", "abcd", 9))));
  EXPECT_EQ(checkSameVocabulary(model, filesOf("s", "abdc", 4)).message(),
            "'s' cannot draft for 'large', which has another tokenizer: token "
            "2 is 'd' of the one and 'c' of the other");
  EXPECT_EQ(checkSameVocabulary(model, filesOf("s", "abc", 4)).message(),
            "'s' cannot draft for 'large', which has another tokenizer: token "
            "3 is no token of the one and 'd' of the other");
  ModelFiles without = filesOf("s", "abcd", 4);
  without.tokenizer.reset();
  EXPECT_TRUE(succeeds(checkSameVocabulary(model, without)));
  without.config.vocabSize = 9;
  EXPECT_EQ(checkSameVocabulary(model, without).message(),
            "'s' cannot draft for 'large': their vocabularies have 9 and 4 "
            "tokens");
}

/// A GPU with as much memory as the test says.
class SmallGpu : public FakeModelDevice {
public:
  explicit SmallGpu(const uint64_t &free) : free(free) {}
  std::string name() const override { return "cuda"; }
  int64_t textsAtOnce() const override { return 256; }

private:
  Status doJoin(Group &) override { return Status(); }
  Result<DeviceMemory> doMemory() const override {
    return DeviceMemory{
        .total = 1 << 30, .free = free, .largestBuffer = 1 << 30};
  }

  const uint64_t &free;
};

ModelConfig configWithWeights() {
  ModelConfig config = fakeConfig();
  config.intermediateSize = 4;
  return config;
}

/// Of a model of that shape, with random weights, on a GPU that has `free`
/// bytes.
SessionSources sourcesOnGpu(const uint64_t &free) {
  const ModelConfig config = configWithWeights();
  return {
      .device = [&free](const DeviceChoice &,
                        Observer *) -> Result<std::unique_ptr<Device>> {
        return std::unique_ptr<Device>(new SmallGpu(free));
      },
      .steps = [config](const ModelFiles &, const Device &,
                        const SessionOptions &) -> Result<SessionSteps> {
        return SessionSteps{
            .provide = [config](const StepShape &shape) -> Result<Executable> {
              Executable step = fakeStep(shape, config);
              step.target = "cuda";
              WeightSpec weight;
              weight.names = {"model.embed_tokens.weight"};
              weight.shape = {kVocab, kHidden};
              step.weights = {weight};
              return step;
            },
            .cacheType = DataType::F32,
            .origin = [] { return std::string(); }};
      },
      .embedded = [config](bool) -> Result<ModelFiles> {
        ModelFiles files;
        files.name = "the fake";
        files.config = config;
        KF_ASSIGN_OR_RETURN(files.weights,
                            DummyWeights::create(config, DataType::F32, 1));
        return files;
      }};
}

/// Each start is told what does not fit, with the weights as long as they are
/// not on the device.
TEST(Session, ChecksMemoryAtEachStart) {
  const ModelConfig config = configWithWeights();
  constexpr uint64_t page = 2 * 2 * 4 * kCachePage;
  const uint64_t cache =
      2 * page * static_cast<uint64_t>(cachePagesOf(config.maxPositions));
  uint64_t free = 1 << 30;
  const SessionSources sources = sourcesOnGpu(free);
  Result<std::unique_ptr<Session>> opened = Session::open({}, sources);
  ASSERT_TRUE(opened.ok()) << opened.message();
  Session &session = **opened;
  ASSERT_TRUE(succeeds(session.start({.parallel = 1})));
  free = cache;
  EXPECT_TRUE(failsWith(session.start({.parallel = 2}),
                        "the fake: weights of 0.00 GiB and a KV cache"));
  ASSERT_TRUE(succeeds(session.start({.parallel = 1})));
  {
    std::unique_ptr<Sequence> sequence =
        session.engine().createSequence().take();
    Sampler sampler = Sampler::create({}).take();
    const std::vector<int32_t> prompt = {1};
    GenerationOptions settings;
    settings.maxTokens = 1;
    ASSERT_TRUE(succeeds(
        generate(*sequence, sampler, nullptr, prompt, settings).status()));
  }
  EXPECT_TRUE(succeeds(session.start({.parallel = 2})));
  --free;
  EXPECT_TRUE(failsWith(session.start({.parallel = 2}),
                        "the fake: a KV cache of 0.00 GiB (2432 positions) is "
                        "0.00 GiB more than"));
}

/// Of stages, the one that takes most is to fit, whichever rank has it.
TEST(Session, ChecksTheMemoryOfEachStage) {
  ModelConfig config = fakeConfig();
  config.layers = 3;
  config.intermediateSize = 4;
  // The fewest bytes that stage 1 of 2 takes, of one layer and the head, with
  // all that stage 0 has more: a layer's weights and cache.
  constexpr uint64_t page = 2 * 2 * 4 * kCachePage;
  const uint64_t cache =
      page * static_cast<uint64_t>(cachePagesOf(config.maxPositions));
  const auto weights = [&](int64_t layers) {
    ModelConfig some = config;
    some.layers = layers;
    return DummyWeights::create(some, DataType::F32, 1).take();
  };
  const auto bytesOf = [&](int64_t layers) {
    ModelConfig some = config;
    some.layers = layers;
    return ModelWork::of(some, *weights(layers), DataType::F32)->tensorBytes();
  };
  const uint64_t layer = bytesOf(2) - bytesOf(1);
  const uint64_t table = uint64_t(kVocab) * kHidden * sizeof(float);
  const uint64_t norm = bytesOf(1) - layer - 2 * table;
  const uint64_t first = 2 * (layer + cache) + table; // rank 1's stage
  ASSERT_GT(first, layer + cache + table + norm);     // rank 0's
  uint64_t free = first - 1;
  const SessionSources sources = {
      .device = [&](const DeviceChoice &,
                    Observer *) -> Result<std::unique_ptr<Device>> {
        return std::unique_ptr<Device>(new SmallGpu(free));
      },
      .steps = [&](const ModelFiles &, const Device &,
                   const SessionOptions &) -> Result<SessionSteps> {
        return SessionSteps{
            .provide = [](const StepShape &) -> Result<Executable> {
              return Status::error("there is room");
            },
            .shapes = {StepShape{StepPart::Body, 1}},
            .cacheType = DataType::F32,
            .origin = [] { return std::string(); }};
      },
      .embedded = [&](bool) -> Result<ModelFiles> {
        ModelFiles files;
        files.name = "the fake";
        files.config = config;
        files.weights = weights(config.layers);
        return files;
      }};
  Result<std::unique_ptr<Session>> opened = Session::open(
      {.ranks = 2, .parallelism = Parallelism::Pipeline}, sources);
  ASSERT_TRUE(opened.ok()) << opened.message();
  EXPECT_TRUE(
      failsWith((*opened)->start({.parallel = 1}),
                "the fake: rank 1: weights of 0.00 GiB and a KV cache"));
  free = first;
  EXPECT_TRUE(failsWith((*opened)->start({.parallel = 1}), "there is room"));
}

TEST(Session, IsEndedByAFlag) {
  std::atomic<bool> cancelled{false};
  std::unique_ptr<Session> session = openFakeSession({.cancelled = &cancelled});
  ASSERT_TRUE(succeeds(session->start({})));
  EXPECT_FALSE(session->engine().isCancelled());
  cancelled = true;
  EXPECT_TRUE(session->engine().isCancelled());
}

TEST(Session, ChoosesHowManyTextsThereAreAtOnce) {
  std::unique_ptr<Session> session = openFakeSession();
  ASSERT_TRUE(succeeds(session->start({.parallel = std::nullopt})));
  EXPECT_EQ(session->engine().parallel(), 16);
  ASSERT_TRUE(succeeds(session->start({.parallel = std::nullopt, .texts = 5})));
  EXPECT_EQ(session->engine().parallel(), 5);

  // Of a GPU, as many as have whole contexts in nine tenths of its memory
  // beside the weights; in a cache of a given size they wait for pages.
  const ModelConfig config = configWithWeights();
  const auto files = DummyWeights::create(config, DataType::F32, 1).take();
  const uint64_t weights =
      ModelWork::of(config, *files, DataType::F32)->tensorBytes();
  const uint64_t context = LayerCaches(config, DataType::F32)
                               .bytes(cachePagesOf(config.maxPositions))
                               .take();
  auto atOnce = [&](uint64_t room, SessionOptions options, int64_t texts) {
    const uint64_t free = room + weights * 10 / 9 + 1;
    auto opened = Session::open(std::move(options), sourcesOnGpu(free)).take();
    const Status status =
        opened->start({.parallel = std::nullopt, .texts = texts});
    EXPECT_EQ(status.code() == StatusCode::OutOfMemory, !status.ok())
        << status.message();
    return status.ok() ? opened->engine().parallel() : -1;
  };
  EXPECT_EQ(atOnce(1000 * context, {}, INT64_MAX), 256);
  EXPECT_EQ(atOnce(100 * context, {}, INT64_MAX), 90);
  EXPECT_EQ(atOnce(100 * context, {}, 40), 40);
  EXPECT_EQ(atOnce(100 * context, {.cacheMemory = 4 * context}, INT64_MAX),
            256);
  // What fits by no margin is for programs to fail with.
  EXPECT_EQ(atOnce(context + context / 20, {}, INT64_MAX), 1);
  EXPECT_EQ(atOnce(context / 2, {}, INT64_MAX), -1);
}

TEST(Session, TakesTimes) {
  std::unique_ptr<Session> session =
      openFakeSession({.profile = std::make_shared<Profile>()});
  EXPECT_NE(session->profile(), nullptr);
}

TEST(Session, ChoosesTheContext) {
  // The fake was made for 1200 positions.
  EXPECT_EQ(contextOf({}, {}), 1200);
  EXPECT_EQ(contextOf({.context = 300}, {.tokens = 500}), 300);
  EXPECT_EQ(contextOf({.wholeContext = true}, {.tokens = 500}), 1200);
  std::unique_ptr<Session> session = openFakeSession({.context = 1201});
  EXPECT_TRUE(
      failsWith(session->start({}), "the model was made for 1 to 1200"));
}

TEST(Session, RefusesNumbersThatCannotBe) {
  for (const int64_t parallel : {int64_t(-1), int64_t(0), INT64_MAX}) {
    std::unique_ptr<Session> session = openFakeSession();
    EXPECT_TRUE(failsWith(session->start({.parallel = parallel}),
                          "a number of parallel sequences"));
  }
  for (const int64_t context : {int64_t(-1), INT64_MAX}) {
    std::unique_ptr<Session> session =
        openFakeSession({.context = context, .cacheMemory = 1 << 20});
    EXPECT_TRUE(failsWith(session->start({}), "a context of"));
  }
}

TEST(Session, BoundsTheCache) {
  // A page has keys and values, each of two f32, at 64 positions.
  constexpr uint64_t page = 2 * 2 * 4 * kCachePage;
  std::unique_ptr<Session> session = openFakeSession({.cacheMemory = 5 * page});
  ASSERT_TRUE(succeeds(session->start({.parallel = 4})));
  EXPECT_EQ(session->engine().pages().total(), 5);
  session = openFakeSession({.cacheMemory = page - 1});
  EXPECT_TRUE(
      failsWith(session->start({}),
                "--cache-memory of 1023 B has no room for 64 positions of "
                "the KV cache, which take 1.00 KiB"));
}

/// A text has a page of each of three groups of layers at least.
TEST(Session, BoundsTheCacheOfWindows) {
  constexpr uint64_t page = 2 * 2 * 4 * kCachePage;
  const ModelConfig config = windowedConfig();
  std::unique_ptr<Session> session = openFakeSession({}, config);
  ASSERT_TRUE(succeeds(session->start({.parallel = 4})));
  EXPECT_EQ(session->engine().pages().total(),
            pagesOfSequences(config, 1200, 4, FakeModelDevice().promptRows()));
  session = openFakeSession({.cacheMemory = 3 * page}, config);
  ASSERT_TRUE(succeeds(session->start({.parallel = 4})));
  EXPECT_EQ(session->engine().pages().total(), 3);
  EXPECT_EQ(session->engine().textLimit(), kCachePage);
  session = openFakeSession({.cacheMemory = 3 * page - 1}, config);
  EXPECT_TRUE(
      failsWith(session->start({}),
                "--cache-memory of 3.00 KiB has no room for 64 positions "
                "of the KV cache, which take 3.00 KiB"));
}

/// A prompt is read in as few steps as if windows had no pages of their own.
TEST(Session, WindowsLeaveRoomForWholeSteps) {
  const int64_t rows = FakeModelDevice().promptRows();
  const Sampler sampler = Sampler::create({}).take();
  for (const int64_t parallel : {1, 3}) {
    std::unique_ptr<Session> session =
        openFakeSession({.context = 8 * rows}, windowedConfig(8 * rows));
    ASSERT_TRUE(succeeds(session->start({.parallel = parallel})));
    const auto sequence = session->engine().createSequence().take();
    for (const int64_t count : {6 * rows, rows, rows}) {
      const int64_t before = session->engine().counts().steps;
      Reading reading;
      reading.ids.assign(static_cast<size_t>(count), 1);
      reading.sampler = &sampler;
      ASSERT_TRUE(succeeds(readAlone(*sequence, std::move(reading)).status()));
      EXPECT_EQ(session->engine().counts().steps - before, count / rows);
    }
  }
}

/// A slot for states is no part of a page: there is one for many of them.
TEST(Session, BoundsTheCacheOfStates) {
  ModelConfig config = statefulConfig(/*maxPositions=*/100000);
  config.linear.keyDim = config.linear.valueDim = 64;
  const LayerCaches caches(config, DataType::F32);
  const int64_t one = caches.bytes(1).take();
  ASSERT_GT(one, 10 * (caches.bytes(2).take() - one));
  for (const int64_t pages : {1, 63, 64, 65, 150}) {
    const auto bytes = static_cast<uint64_t>(caches.bytes(pages).take());
    for (const auto &[memory, fitting] :
         {std::pair(bytes, pages), {bytes - 1, pages - 1}}) {
      std::unique_ptr<Session> session =
          openFakeSession({.context = 10000, .cacheMemory = memory}, config);
      const Status status = session->start({});
      if (fitting == 0) {
        EXPECT_TRUE(failsWith(status,
                              "has no room for 64 positions of the KV "
                              "cache and states beside it, which take "));
        continue;
      }
      ASSERT_TRUE(succeeds(status));
      EXPECT_EQ(session->engine().pages().total(), fitting);
    }
  }
  // Never more than the contexts take.
  std::unique_ptr<Session> session =
      openFakeSession({.context = 6400, .cacheMemory = 1 << 30}, config);
  ASSERT_TRUE(succeeds(session->start({.parallel = 2})));
  EXPECT_EQ(session->engine().pages().total(), 200);
}

TEST(Session, ChecksThatAPromptFits) {
  std::unique_ptr<Session> session = openFakeSession({.context = 4});
  ASSERT_TRUE(succeeds(session->start({})));
  EXPECT_TRUE(succeeds(session->checkFits(std::vector<int32_t>(4))));
  EXPECT_TRUE(failsWith(session->checkFits(std::vector<int32_t>(5)),
                        "5 tokens, but the context has room for 4; raise "
                        "--context or shorten the prompt"));
}

TEST(Session, ReturnsErrorsOfWhatItIsMadeWith) {
  auto fails = [](const SessionSources &sources, const std::string &text) {
    return failsWith(Session::open({}, sources).status(), text);
  };
  SessionSources sources = fakeSources();
  sources.steps = [](const ModelFiles &, const Device &,
                     const SessionOptions &) -> Result<SessionSteps> {
    return Status::error("no steps");
  };
  EXPECT_TRUE(fails(sources, "no steps"));
  sources.device = [](const DeviceChoice &choice,
                      Observer *) -> Result<std::unique_ptr<Device>> {
    return Status::error("no device " + choice.device);
  };
  EXPECT_TRUE(fails(sources, "no device cpu"));
  sources.embedded = nullptr;
  EXPECT_TRUE(fails(sources, "this program carries no model; name one"));
}

TEST(Session, ReturnsErrorsOfItsSteps) {
  SessionSources sources = fakeSources();
  sources.steps = [](const ModelFiles &, const Device &,
                     const SessionOptions &) -> Result<SessionSteps> {
    return SessionSteps{.provide = [](const StepShape &) -> Result<Executable> {
                          return Status::error("no such step",
                                               StatusCode::NotFound);
                        },
                        .shapes = {StepShape{}},
                        .cacheType = DataType::F32,
                        .origin = [] { return std::string(); }};
  };
  std::unique_ptr<Session> session = Session::open({}, sources).take();
  const Status status = session->start({});
  EXPECT_TRUE(failsWith(status, "no such step"));
  EXPECT_EQ(status.code(), StatusCode::NotFound);
}

TEST(Session, ReadsProgramsFromFiles) {
  SessionSources sources = fakeSources();
  sources.steps = stepsFromFiles({"/absent"});
  EXPECT_TRUE(
      failsWith(Session::open({}, sources).status(), "cannot open '/absent'"));
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

constexpr const char *kGolden = KF_SOURCE_DIR "/test/golden/llama2-mha";

TEST(OpenModel, OpensAFolder) {
  Result<ModelFiles> model =
      openModel({.path = kGolden}, /*withTokenizer=*/false, nullptr, nullptr);
  ASSERT_TRUE(model.ok()) << model.message();
  EXPECT_EQ(model->name, kGolden);
  EXPECT_FALSE(model->tokenizer);
}

TEST(OpenModel, TellsWarnings) {
  const TempFolder folder;
  std::filesystem::copy(kGolden, folder.path("model"));
  folder.write("model/generation_config.json",
               R"({"do_sample": true, "num_beams": 4})");
  Recorder recorder;
  ASSERT_TRUE(succeeds(
      openModel({.path = folder.path("model")}, false, nullptr, &recorder)
          .status()));
  ASSERT_EQ(recorder.lines.size(), 1u);
  EXPECT_TRUE(recorder.lines[0].starts_with("warning: model '" +
                                            folder.path("model") + "': "))
      << recorder.lines[0];
}

TEST(OpenModel, MakesRandomWeights) {
  ModelChoice choice;
  choice.path = "tinyllama-1.1b";
  choice.dummy.seed = "1";
  choice.dummy.weightType = "q4_0";
  Result<ModelFiles> model = openModel(choice, false, nullptr, nullptr);
  ASSERT_TRUE(model.ok()) << model.message();
  EXPECT_EQ(model->name, "tinyllama-1.1b (dummy weights)");
  EXPECT_TRUE(failsWith(openModel(choice, true, nullptr, nullptr).status(),
                        "has no tokenizer"));
  choice.dummy.weightType = "q9";
  EXPECT_TRUE(failsWith(openModel(choice, false, nullptr, nullptr).status(),
                        "--weight-type"));
  choice.dummy.seed.reset();
  EXPECT_TRUE(failsWith(openModel(choice, false, nullptr, nullptr).status(),
                        "--weight-type needs --dummy-weights"));
}

TEST(OpenModel, KeepsFloat8WhereThereIsAny) {
  ModelChoice choice = {.path = kGolden, .float8 = Float8Weights::KeptIfAny};
  EXPECT_TRUE(succeeds(openModel(choice, false, nullptr, nullptr).status()));
  choice.float8 = Float8Weights::Kept;
  EXPECT_TRUE(failsWith(openModel(choice, false, nullptr, nullptr).status(),
                        "--float8=f8 is for matrices of F8_E4M3"));
}

} // namespace
