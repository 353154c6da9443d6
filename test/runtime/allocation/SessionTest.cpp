//===- SessionTest.cpp - Opening sessions without memory ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "../engine/FakeModel.h"

#include "runtime/core/Exceptions.h"
#include "runtime/session/ChatPrompts.h"
#include "runtime/session/Session.h"

#include <gtest/gtest.h>

using namespace kf;
using namespace kf::test;

namespace {

const std::string kModel = KF_SOURCE_DIR "/test/golden/llama2-mha";

/// Is told of everything.
class Told : public Observer {};

TEST(Allocation, OpenModel) {
  const ModelChoice choice = {.path = kModel};
  Told told;
  failEverywhere([&] {
    return openModel(choice, /*withTokenizer=*/false, nullptr, &told).status();
  });
  failEverywhere([&] { return hasTokenizer(kModel).status(); });
  failEverywhere([&] { return hasChatTemplate(kModel).status(); });
}

TEST(Allocation, ChatPrompts) {
  const std::string path =
      KF_SOURCE_DIR "/models/kf-stories-gguf/kf-stories-Q4_0.gguf";
  const ModelFiles model =
      openModel({.path = path}, true, nullptr, nullptr).take();
  failEverywhere([&] { return openPromptEncoder(model).status(); });
}

/// Opens a model and starts it twice, with programs that are there and ones
/// that come when they are needed.
TEST(Allocation, Sessions) {
  Told told;
  SessionSources sources = {
      .device = [](const DeviceChoice &,
                   Observer *) -> Result<std::unique_ptr<Device>> {
        return std::unique_ptr<Device>(new FakeModelDevice());
      },
      .steps = {},
      .embedded = [](bool) -> Result<ModelFiles> {
        ModelFiles files;
        files.name = "the fake, whose name is no short text";
        files.config = fakeConfig();
        files.weights = std::make_unique<FakeSource>();
        return files;
      }};
  for (const bool areThere : {false, true}) {
    sources.steps = [areThere](const ModelFiles &model, const Device &,
                               const SessionOptions &) -> Result<SessionSteps> {
      const ModelConfig config = model.config;
      SessionSteps steps{
          .provide = [config](const StepShape &shape) -> Result<Executable> {
            return fakeStep(shape, config);
          },
          .cacheType = DataType::F32,
          .origin = [] { return std::string("made up"); }};
      if (areThere)
        steps.shapes = {{StepPart::Body, 1},
                        {StepPart::Body, 8},
                        {StepPart::Head, 1},
                        {StepPart::Choose, 1}};
      return steps;
    };
    failEverywhere([&]() -> Status {
      SessionOptions options;
      options.observer = &told;
      KF_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                          Session::open(options, sources));
      KF_RETURN_IF_ERROR(session->start({.parallel = 2}));
      KF_RETURN_IF_ERROR(session->start({.parallel = 3}));
      return session->engine().createSequence().status();
    });
  }
}

} // namespace
