//===- CompiledSessionTest.cpp - Sessions whose steps are compiled --------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Driver/CompiledSession.h"

#include "runtime/engine/Generation.h"
#include "runtime/session/ChatPrompts.h"
#include "runtime/session/EmbeddedModel.h"
#include "runtime/session/SamplingChoice.h"
#include "test/runtime/StatusAssertions.h"
#include "test/runtime/TempFile.h"
#include "test/runtime/allocation/FailingAllocations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace kf;
using namespace kf::test;

namespace {

constexpr std::string_view kPrompt = "Once upon a time";
constexpr int64_t kTokens = 24;

/// All that a program has to do to open a model and continue a text with it.
Result<std::string> continueText(const std::string &path, Observer *observer,
                                 std::string &origin) {
  SessionOptions options;
  options.model.path = path;
  options.device.threads = 2;
  options.observer = observer;
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                      openSession(options, {}, openEmbeddedModel));
  KF_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                      session->encodePrompt(kPrompt));
  KF_RETURN_IF_ERROR(session->start({.tokens = 100, .parallel = 2}));
  KF_RETURN_IF_ERROR(session->checkFits(ids));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                      session->engine().createSequence());
  const ModelConfig &config = session->files().config;
  KF_ASSIGN_OR_RETURN(Sampler sampler,
                      Sampler::create(chooseSampling({}, config.sampling,
                                                     ModelSampling::WhenDrawing)
                                          .options));
  GenerationOptions settings;
  settings.maxTokens = kTokens;
  settings.stopIds = config.eosIds;
  KF_ASSIGN_OR_RETURN(
      GenerationResult result,
      generate(*sequence, sampler, &session->tokenizer(), ids, settings));
  origin = session->origin();
  return result.text;
}

/// What kf-run prints.
std::string printedByKfRun(const std::string &path) {
  const std::string command = KF_RUN " generate '" + path + "' -p '" +
                              std::string(kPrompt) + "' -n " +
                              std::to_string(kTokens) + " -t 2 --quiet";
  std::string text;
  std::FILE *pipe = ::popen(command.c_str(), "r");
  if (!pipe)
    return text;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), pipe))
    text.append(buffer, count);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

class Recorder : public Observer {
public:
  void onBegin(const std::string &work) override { begun.push_back(work); }
  void onEnd() override { ++ended; }
  void onProgress(double share) override { lastShare = share; }

  std::vector<std::string> begun;
  size_t ended = 0;
  double lastShare = 0;
};

/// Programs are kept in a folder of the test's own.
class CompiledSession : public testing::Test {
protected:
  CompiledSession() { ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1); }

  TempFolder folder;
};

TEST_F(CompiledSession, ContinuesATextAsKfRunDoes) {
  for (const std::string path :
       {KF_SOURCE_DIR "/models/kf-stories",
        KF_SOURCE_DIR "/models/kf-stories-gguf/kf-stories-Q4_0.gguf"}) {
    std::string origin;
    Result<std::string> text = continueText(path, nullptr, origin);
    ASSERT_TRUE(text.ok()) << text.message();
    EXPECT_EQ(*text + "\n", printedByKfRun(path)) << path;
  }
}

TEST_F(CompiledSession, TellsWhatItDoesAndKeepsPrograms) {
  Recorder first, second;
  std::string origin;
  Result<std::string> text = continueText("", &first, origin);
  ASSERT_TRUE(text.ok()) << text.message();
  EXPECT_EQ(origin, "compiled");
  EXPECT_EQ(*text + "\n", printedByKfRun(KF_SOURCE_DIR "/models/kf-stories"));
  EXPECT_EQ(first.begun.front(), "opening the model");
  for (const char *work : {"reading the prompt's tokens", "compiling body_1",
                           "compiling head_1", "compiling choose_1"})
    EXPECT_EQ(std::ranges::count(first.begun, work), 1) << work;
  // Those of the layers, and the output matrix.
  EXPECT_EQ(std::ranges::count(first.begun, "packing weights"), 2);
  EXPECT_EQ(first.ended, first.begun.size());
  EXPECT_EQ(first.lastShare, 1);

  Result<std::string> again = continueText("", &second, origin);
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(origin, "cached");
  EXPECT_EQ(*again, *text);
  EXPECT_EQ(std::ranges::count(second.begun, "compiling body_1"), 0);
}

TEST_F(CompiledSession, ReadsTheModelsChatTemplate) {
  Result<std::unique_ptr<Session>> session =
      openSession({}, {}, openEmbeddedModel);
  ASSERT_TRUE(session.ok()) << session.message();
  Result<PromptEncoder> encoder = openPromptEncoder((*session)->files());
  ASSERT_TRUE(encoder.ok()) << encoder.message();
  const std::vector<ChatMessage> messages = {{"user", "A story, please."}};
  Result<std::vector<int32_t>> ids = encoder->encode(messages, true, nullptr);
  ASSERT_TRUE(ids.ok()) << ids.message();
  EXPECT_GT(ids->size(), 4u);
}

TEST_F(CompiledSession, RefusesWhatTheCompilerDoesNotKnow) {
  auto fails = [](const CompileChoice &choice, const std::string &text) {
    return failsWith(openSession({}, choice, openEmbeddedModel).status(), text);
  };
  EXPECT_TRUE(fails({.cacheType = "f12"}, "f12"));
  EXPECT_TRUE(fails({.targetCpu = "no-such-cpu"}, "no-such-cpu"));
  EXPECT_TRUE(fails({.tuningFile = folder.path("absent")}, "--tuning-db: "));
  SessionOptions options;
  options.device.device = "abacus";
  EXPECT_TRUE(failsWith(openSession(options, {}, openEmbeddedModel).status(),
                        "--device takes one of cpu, reference, vulkan, cuda"));
}

/// Up to where LLVM is asked, which ends the process without memory.
TEST_F(CompiledSession, OpensNothingWithoutMemory) {
  const std::string end = "this is as far as the test goes";
  const CompileChoice choice = {.targetCpu = "a name that is no short text"};
  const OpenEmbedded embedded = [&](bool) -> Result<ModelFiles> {
    return Status::error(end, StatusCode::NotFound);
  };
  failEverywhere([&] {
    const auto opened = openSession({}, choice, embedded);
    const bool isAtTheEnd = opened.message() == end;
    return isAtTheEnd ? Status() : Status::outOfMemory();
  });
}

TEST_F(CompiledSession, OwnsNoModelUnlessItIsGiven) {
  EXPECT_TRUE(failsWith(openSession({}).status(), "carries no model"));
}

} // namespace
