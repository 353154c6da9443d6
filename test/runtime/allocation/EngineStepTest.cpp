//===- EngineStepTest.cpp - Steps of an engine without memory -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FailingAllocations.h"

#include "../engine/FakeModel.h"

#include "runtime/core/Exceptions.h"
#include "runtime/engine/Generation.h"
#include "runtime/serve/Service.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

using namespace kf;
using namespace kf::test;

namespace {

/// What several sequences read that share pages. Counts logits that are not
/// those of the sequence's tokens.
struct SharedPages {
  FakeModelDevice device;
  FakeSource source;
  int64_t wrong = 0;

  Reading readingOf(const Sequence &sequence, std::span<const int32_t> ids) {
    Reading reading;
    reading.ids.assign(ids.begin(), ids.end());
    reading.onLogits = [this, &sequence](size_t index,
                                         std::span<const float> logits) {
      // All of the ids are read in one step.
      const auto read = sequence.tokens().first(kBefore + index + 1);
      for (int64_t v = 0; v < kVocab; ++v)
        wrong += logits[v] != fakeLogit(read, v);
      return Status();
    };
    return reading;
  }

  /// Reads on with forks, in one step, and once more where that fails.
  Status run() {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, open());
    KF_ASSIGN_OR_RETURN(
        std::unique_ptr<Engine> engine,
        Engine::create(*model, {.contextLength = 200, .parallel = 4}));
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> first,
                        engine->createSequence());
    Reading reading;
    KF_RETURN_IF_ERROR(catchExceptions([&] {
      for (int32_t i = 0; i < kBefore; ++i)
        reading.ids.push_back(i % 7 + 1);
      return Status();
    }));
    KF_RETURN_IF_ERROR(first->read(std::move(reading)));
    while (engine->step()) {
    }
    std::unique_ptr<Sequence> forks[3];
    for (std::unique_ptr<Sequence> &fork : forks) {
      KF_ASSIGN_OR_RETURN(fork, first->fork());
      if (fork->position() != kBefore)
        return Status::outOfMemory();
    }
    const auto readOn = [&] {
      return catchExceptions([&] {
        for (const std::unique_ptr<Sequence> &fork : forks)
          if (fork->position() == kBefore)
            KF_RETURN_IF_ERROR(fork->read(readingOf(*fork, {{3, 1, 2}})));
        return Status();
      });
    };
    for (int attempt = 0; attempt < 2; ++attempt) {
      Status status = readOn();
      while (engine->step()) {
      }
      KF_RETURN_IF_ERROR(status);
    }
    for (const std::unique_ptr<Sequence> &fork : forks)
      if (fork->position() != kBefore + 3)
        return Status::outOfMemory();
    return Status();
  }

private:
  static constexpr int64_t kBefore = 70; ///< tokens that they share

  Result<std::unique_ptr<Model>> open() {
    return catchExceptions([&]() -> Result<std::unique_ptr<Model>> {
      return std::make_unique<Model>(
          fakeConfig(), device, source,
          [](const StepShape &shape) -> Result<Executable> {
            return catchExceptions(
                [&]() -> Result<Executable> { return fakeStep(shape); });
          });
    });
  }
};

} // namespace

/// A step that there is no memory for leaves no page that was to be copied.
TEST(Allocation, CopiesOfPages) {
  SharedPages pages;
  failEverywhere([&] { return pages.run(); }, {Failing::One, Failing::Rest},
                 [&] { EXPECT_EQ(std::exchange(pages.wrong, 0), 0); });
}

/// A text that another engine drafts for is the same, or an error.
TEST(Allocation, DraftModel) {
  FakeModelDevice device;
  device.behavior.varies = true;
  FakeSource source;
  const auto open = [&] {
    return catchExceptions([&]() -> Result<std::unique_ptr<Model>> {
      return std::make_unique<Model>(
          fakeConfig(), device, source,
          [](const StepShape &shape) -> Result<Executable> {
            return catchExceptions(
                [&]() -> Result<Executable> { return fakeStep(shape); });
          });
    });
  };
  DraftTimes times;
  for (int i = 0; i < 2; ++i) {
    times.drafting.add(1, 0.1);
    times.reading.add(1, 1);
  }
  std::vector<int32_t> first;
  failEverywhere(
      [&] {
        return catchExceptions([&]() -> Status {
          KF_ASSIGN_OR_RETURN(std::unique_ptr<Model> small, open());
          KF_ASSIGN_OR_RETURN(std::unique_ptr<Model> large, open());
          KF_ASSIGN_OR_RETURN(std::unique_ptr<Engine> drafting,
                              Engine::create(*small, {.contextLength = 200}));
          DraftModel drafts(*drafting, 4, kVocab, times);
          KF_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                              Engine::create(*large, {.contextLength = 200,
                                                      .draftModel = &drafts}));
          KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                              engine->createSequence());
          KF_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create({}));
          const int32_t prompt[] = {1, 2, 3};
          GenerationOptions options;
          options.maxTokens = 30;
          KF_ASSIGN_OR_RETURN(GenerationResult text,
                              generate(*sequence, sampler, nullptr, prompt,
                                       std::move(options)));
          if (first.empty()) {
            EXPECT_GT(text.acceptedDraftTokens, 0);
            first = text.ids;
          }
          EXPECT_EQ(text.ids, first);
          return Status();
        });
      },
      {Failing::One});
}

/// A service whose thread finds no memory ends texts with that, and itself.
TEST(Allocation, Service) {
  failEverywhere([] {
    return catchExceptions([]() -> Status {
      FakeModelDevice device;
      FakeSource source;
      Model model(fakeConfig(), device, source,
                  [](const StepShape &shape) -> Result<Executable> {
                    return catchExceptions([&]() -> Result<Executable> {
                      return fakeStep(shape);
                    });
                  });
      KF_ASSIGN_OR_RETURN(
          std::unique_ptr<Engine> engine,
          Engine::create(model, {.contextLength = 200, .parallel = 2}));
      KF_ASSIGN_OR_RETURN(std::unique_ptr<Service> service,
                          Service::create(*engine, nullptr));
      std::unique_ptr<TextHandle> handles[3];
      for (std::unique_ptr<TextHandle> &handle : handles) {
        TextRequest request;
        request.prompt = {1, 2, 3};
        request.maxTokens = 5;
        KF_ASSIGN_OR_RETURN(handle, service->submit(std::move(request)));
      }
      Status status;
      for (std::unique_ptr<TextHandle> &handle : handles)
        for (bool isOver = false; !isOver;) {
          const TextPiece piece = handle->wait();
          isOver = piece.end.has_value();
          if (isOver && !piece.end->ok())
            status = piece.end->status();
        }
      return status;
    });
  });
}
