//===- RankedFixture.h - An engine that other ranks follow ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake model has no collectives: followers run what the leader does, and
// that is what is looked at. test/conformance has models that are shared out.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_ENGINE_RANKEDFIXTURE_H
#define KF_TEST_RUNTIME_ENGINE_RANKEDFIXTURE_H

#include "EngineFixture.h"

#include "runtime/engine/RankFollower.h"
#include "runtime/engine/RankLeader.h"
#include "test/runtime/StatusAssertions.h"

#include <thread>

namespace kf::test {

/// A rank on a thread of its own.
struct Follower {
  Follower(std::unique_ptr<RankChannel> leader, const ModelConfig &config)
      : thread([this, config, leader = std::move(leader)]() mutable {
          RankFollower rank(config, device, source, {});
          EXPECT_TRUE(
              leader->send(encode(RankAnswer{Status(), "the fake"})).ok());
          end = rank.follow(*leader);
          // One that is cancelled has no time to say so.
          if (!end.ok() && !end.isCancelled())
            (void)leader->send(encode(RankAnswer{end, {}}));
          leader.reset();
          hasEnded = true;
        }) {}

  FakeModelDevice device;
  FakeSource source;
  Status end;                        ///< once the thread has ended
  std::atomic<bool> hasEnded{false}; ///< and its connection is closed
  std::thread thread;
};

/// An engine that some ranks follow.
struct Ranked {
  /// With `areStages`, they are told of bodies alone, which `asked` names.
  explicit Ranked(EngineOptions options = {}, bool areStages = false,
                  size_t count = 2, const ModelConfig &config = fakeConfig())
      : followers(count), asked(count) {
    std::vector<std::unique_ptr<RankChannel>> channels;
    for (std::unique_ptr<Follower> &follower : followers) {
      auto [here, there] = createThreadChannel();
      channels.push_back(std::move(here));
      follower = std::make_unique<Follower>(std::move(there), config);
    }
    leader = std::make_unique<RankLeader>(std::move(channels));
    EXPECT_TRUE(succeeds(leader->awaitReady(
        std::vector<std::string>(followers.size(), "the fake"))));
    std::vector<StepProvider> stages;
    for (size_t i = 0; areStages && i < followers.size(); ++i)
      stages.push_back([this, i, config](const StepShape &shape) {
        asked[i].push_back(nameOf(shape));
        return Result<Executable>(fakeStep(shape, config));
      });
    fixture = std::make_unique<Fixture>(options, /*shared=*/true,
                                        std::vector<StepShape>(), leader.get(),
                                        config, std::move(stages));
  }
  ~Ranked() { finish(); }

  Engine &engine() { return *fixture->engine; }

  /// Ends all, and waits for the followers.
  void finish() {
    fixture.reset();
    leader.reset();
    for (std::unique_ptr<Follower> &follower : followers)
      if (follower->thread.joinable())
        follower->thread.join();
  }

  std::vector<std::unique_ptr<Follower>> followers;
  std::vector<std::vector<std::string>> asked; ///< of stages
  std::unique_ptr<RankLeader> leader;
  std::unique_ptr<Fixture> fixture;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_ENGINE_RANKEDFIXTURE_H
