//===- LogProbsTest.cpp - How likely the model finds tokens ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EngineFixture.h"

#include "runtime/engine/Generation.h"

#include <cmath>

using namespace kf;
using namespace kf::test;

namespace {

TEST(LogProbs, AreThoseOfTheLogits) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {1, 3, -infinity, 3, 2};
  const double sum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  const ChosenLogProbs all = logProbsOf(logits, 4, 100);
  EXPECT_EQ(all.chosen.id, 4);
  EXPECT_NEAR(all.chosen.value, 2 - std::log(sum), 1e-6);
  std::vector<int32_t> ids;
  for (const LogProb &entry : all.top)
    ids.push_back(entry.id);
  EXPECT_EQ(ids, std::vector<int32_t>({1, 3, 4, 0, 2}));
  EXPECT_NEAR(all.top[0].value, 3 - std::log(sum), 1e-6);
  EXPECT_EQ(all.top[4].value, -infinity);
  EXPECT_TRUE(logProbsOf(logits, 0, 0).top.empty());
  // Large logits do not overflow, nor are small ones lost.
  const std::vector<float> large = {3e38f, 3e38f, -3e38f};
  EXPECT_NEAR(logProbsOf(large, 1, 0).chosen.value, -std::log(2.0), 1e-6);
}

/// Of the logits before penalties and temperature, whatever else is in a step,
/// whether it runs ahead or not, and whether the host sees the device's memory.
void expectLogProbs(bool runsAhead, bool isShared) {
  Fixture fixture({.parallel = 4, .runsAhead = runsAhead}, isShared);
  fixture.device.behavior.varies = true;
  constexpr size_t count = 40;
  struct Job {
    std::unique_ptr<Sequence> sequence;
    std::optional<Sampler> sampler;
    std::vector<int32_t> prompt, chosen;
    std::vector<ChosenLogProbs> given;
    std::unique_ptr<Generation> generation;
  };
  std::vector<Job> jobs(4);
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job &job = jobs[i];
    job.sequence = fixture.sequence();
    job.sampler = *Sampler::create(optionsOf(i));
    job.prompt = tokens(30 + i, i);
    GenerationOptions options;
    options.maxTokens = static_cast<int64_t>(count);
    options.onToken = [&job](int32_t id) { job.chosen.push_back(id); };
    if (i != 2) { // one of them wants none
      options.topLogProbs = i;
      options.onLogProbs = [&job](const TextLogProbs &given) {
        EXPECT_EQ(job.given.size() + 1, job.chosen.size())
            << "behind its token";
        job.given.push_back(given);
      };
    }
    job.generation = std::make_unique<Generation>(*job.sequence, *job.sampler,
                                                  nullptr, std::move(options));
    ASSERT_TRUE(job.generation->start(job.prompt).ok());
  }
  fixture.runAll();
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Job &job = jobs[i];
    ASSERT_EQ(job.chosen, expected(job.prompt, optionsOf(i), count,
                                   fixture.device.behavior));
    ASSERT_EQ(job.given.size(), i == 2 ? 0 : count);
    std::vector<int32_t> ids = job.prompt;
    for (size_t n = 0; n < job.given.size(); ++n) {
      std::vector<float> logits;
      for (int64_t v = 0; v < kVocab; ++v)
        logits.push_back(fakeLogit(ids, v, fixture.device.behavior));
      const ChosenLogProbs want = logProbsOf(logits, job.chosen[n], i);
      ASSERT_EQ(job.given[n].chosen, want.chosen);
      ASSERT_EQ(job.given[n].top, want.top);
      ids.push_back(job.chosen[n]);
    }
  }
  EXPECT_EQ(fixture.engine->counts().ahead > 30, runsAhead);
}

TEST(Engine, TokensHaveLogProbs) {
  expectLogProbs(/*runsAhead=*/false, /*isShared=*/true);
  expectLogProbs(/*runsAhead=*/false, /*isShared=*/false);
}
TEST(EngineAhead, TokensHaveLogProbs) {
  expectLogProbs(/*runsAhead=*/true, /*isShared=*/true);
  expectLogProbs(/*runsAhead=*/true, /*isShared=*/false);
}

} // namespace
