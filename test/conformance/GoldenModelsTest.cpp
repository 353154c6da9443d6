//===- GoldenModelsTest.cpp - Logits equal to Hugging Face's --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every architecture of test/golden, on every device: the logits, their
// normalizers and the greedy continuation that Hugging Face's transformers
// computes in float32 (test/golden/reference.json).
//
//===----------------------------------------------------------------------===//

#include "ModelUnderTest.h"
#include "TestDevice.h"
#include "test/runtime/TestFiles.h"

#include "gtest/gtest.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

using namespace kf;
using namespace kf::test;

namespace {

const std::string goldenFolder = testFile(KF_SOURCE_DIR "/test/golden/");

/// Positions that a model is opened for; 0: all of its own.
int64_t contextOf(const std::string &model) {
  // The table of short contexts is for as many.
  return model == "phi3-longrope-short" ? 64 : 0;
}

class GoldenModels : public testing::TestWithParam<ModelCase> {
protected:
  void SetUp() override {
    KF_REQUIRE_DEVICE(GetParam().device);
    std::ifstream file(goldenFolder + "reference.json");
    auto all = nlohmann::json::parse(file);
    reference = all.at(GetParam().model);
    ids = reference.at("ids").get<std::vector<int32_t>>();
    const std::string &device = GetParam().device;
    const bool multipliesWords = test::multipliesIn16Bits(device);
    isWidened = (roundsToOthers(GetParam().model) &&
                 (device == "cpu" || multipliesWords)) ||
                (roundsToBytes(GetParam().model) && device != "reference" &&
                 (device != "vulkan" || multipliesWords));
    // What a test reads is computed, whatever was read before.
    model = open({.contextLength = contextOf(GetParam().model),
                  .reusesPrefixes = false});
    ASSERT_TRUE(model);
    rounding = roundingOfRows();
    // GPUs add up in another order.
    tolerance = std::max(rounding, isGpu(GetParam().device) ? 1e-3 : 2e-4);
  }

  std::unique_ptr<ModelUnderTest> open(const EngineOptions &options) {
    return ModelUnderTest::open(
        goldenFolder + GetParam().model, GetParam().device, GetParam().threads,
        "native", options, [this](std::unique_ptr<WeightSource> &weights) {
          if (isWidened)
            widen(weights);
        });
  }

  /// cudaRounding(), also where the CPU multiplies tiles or pairs, or Vulkan's
  /// subgroups matrices.
  double roundingOfRows() {
    const ModelCase &test = GetParam();
    const std::optional<DataType> type = model->config().dtype;
    if (test::multipliesIn16Bits(test.device) && !isWidened)
      return cudaRounding(test.model, type);
    return type == DataType::BF16 && !isWidened && roundsProducts()
               ? cudaRounding(test.model, type)
               : 0;
  }

  /// Whether products of many rows with weights of bf16 round these to bf16.
  bool roundsProducts() {
    if (GetParam().device != "cpu")
      return GetParam().device == "cuda";
    const auto sizes = programRows(model->engine().rowsPerStep(), 1,
                                   model->config(), model->runsOn());
    auto step = model->compileStep({StepPart::Body, sizes.back()});
    EXPECT_TRUE(step.ok()) << step.message();
    return step.ok() && roundsToBF16(*step, model->runsOn());
  }

  void expectLastLogits(std::span<const float> logits) {
    auto expected = reference.at("last_logits").get<std::vector<double>>();
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], tolerance) << "logit " << i;
  }

  /// That `token` has the largest logit; where rows are rounded, one that may
  /// have been the largest before.
  void expectChoice(std::span<const float> logits, int32_t token) {
    if (rounding == 0)
      EXPECT_EQ(argmax(logits), token);
    else
      EXPECT_GE(logits[token], logits[argmax(logits)] - 2 * tolerance);
  }

  bool isWidened = false; ///< its weights are f32
  double rounding = 0, tolerance = 0;
  nlohmann::json reference;
  std::vector<int32_t> ids;
  std::unique_ptr<ModelUnderTest> model;
};

TEST_P(GoldenModels, EveryPositionMatches) {
  auto argmaxes = reference.at("argmax").get<std::vector<int32_t>>();
  auto normalizers = reference.at("logsumexp").get<std::vector<double>>();
  int64_t seen = 0;
  auto sequence = model->sequence();
  Status status = readLogits(
      *sequence, ids, [&](size_t position, std::span<const float> logits) {
        SCOPED_TRACE(position);
        expectChoice(logits, argmaxes.at(position));
        EXPECT_NEAR(logSumExp(logits), normalizers.at(position), tolerance);
        if (position + 1 == ids.size())
          expectLastLogits(logits);
        ++seen;
        return Status();
      });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(seen, static_cast<int64_t>(ids.size()));
}

TEST_P(GoldenModels, GreedyContinuationMatches) {
  auto expected = reference.at("greedy_20").get<std::vector<int32_t>>();
  const auto found = model->continueGreedily(ids, expected.size());
  if (rounding == 0) {
    EXPECT_EQ(found, expected);
    return;
  }
  ASSERT_EQ(found.size(), expected.size());
  const auto [own, other] = std::ranges::mismatch(found, expected);
  if (own == found.end())
    return;
  // Texts are the same up to there.
  ids.insert(ids.end(), expected.begin(), other);
  auto logits = lastLogits(*model->sequence(), ids);
  ASSERT_TRUE(logits.ok()) << logits.message();
  expectChoice(*logits, *other);
}

TEST_P(GoldenModels, ChunkingDoesNotMatter) {
  auto whole = lastLogits(*model->sequence(), ids);
  ASSERT_TRUE(whole.ok()) << whole.message();
  for (size_t chunk : {size_t(1), size_t(2), size_t(7)}) {
    auto sequence = model->sequence();
    std::vector<float> last;
    for (size_t at = 0; at < ids.size(); at += chunk) {
      auto part = std::span<const int32_t>(ids).subspan(
          at, std::min(chunk, ids.size() - at));
      auto logits = lastLogits(*sequence, part);
      ASSERT_TRUE(logits.ok()) << logits.message();
      last = logits.take();
    }
    for (size_t i = 0; i < whole->size(); ++i)
      ASSERT_NEAR(last[i], (*whole)[i], std::max(rounding, 1e-4))
          << "chunk " << chunk;
  }
}

class LayeredModels : public GoldenModels {};

/// Pages of all caches are shared, and copied where texts part.
TEST_P(LayeredModels, PrefixesAreReused) {
  if (rounding > 0)
    GTEST_SKIP() << "rows are rounded otherwise in steps of other sizes";
  std::vector<int32_t> prompt;
  for (int i = 0; i < 3; ++i)
    prompt.insert(prompt.end(), ids.begin(), ids.end());
  auto sharing = open({.parallel = 2});
  ASSERT_TRUE(sharing);
  auto expectSame = [&](int64_t reused) {
    auto expected = lastLogits(*model->sequence(), prompt);
    ASSERT_TRUE(expected.ok()) << expected.message();
    auto sequence = sharing->sequence();
    auto found = lastLogits(*sequence, prompt);
    ASSERT_TRUE(found.ok()) << found.message();
    EXPECT_GE(sequence->reusedTokens(), reused);
    for (size_t i = 0; i < expected->size(); ++i)
      ASSERT_NEAR((*found)[i], (*expected)[i], 1e-4) << "logit " << i;
  };
  expectSame(0);
  expectSame(64);
  // Another end, in the midst of a page.
  prompt.resize(80);
  prompt.push_back(ids.front());
  expectSame(64);
}

class StatefulModels : public GoldenModels {
protected:
  void SetUp() override {
    GoldenModels::SetUp();
    if (!IsSkipped() && rounding > 0)
      GTEST_SKIP() << "rows are rounded otherwise in steps of other sizes";
  }

  void expectLogits(Sequence &sequence, std::span<const int32_t> more) {
    auto logits = lastLogits(sequence, more);
    ASSERT_TRUE(logits.ok()) << logits.message();
    expectLastLogits(*logits);
  }
};

/// A state is that of the last token: a sequence that goes back, and one that
/// others are forked from, read again what they need.
TEST_P(StatefulModels, StatesAreThoseOfTheText) {
  const std::span<const int32_t> all = ids, begin = all.first(10),
                                 rest = all.subspan(10);
  auto sequence = model->sequence();
  ASSERT_TRUE(
      readLogits(*sequence, begin, [](size_t, auto) { return Status(); }).ok());
  auto fork = sequence->fork();
  ASSERT_TRUE(fork.ok()) << fork.message();
  expectLogits(*sequence, rest);
  expectLogits(**fork, rest);
  ASSERT_TRUE(sequence->rewind(20).ok());
  expectLogits(*sequence, all.subspan(20));
  EXPECT_EQ(sequence->position(), static_cast<int64_t>(ids.size()));
}

/// Nothing of another text is taken over, and drafts are refused.
TEST_P(StatefulModels, NothingIsTakenBackOrOver) {
  auto sharing = open({.parallel = 2});
  ASSERT_TRUE(sharing);
  for (int i = 0; i < 2; ++i) {
    auto sequence = sharing->sequence();
    expectLogits(*sequence, ids);
    EXPECT_EQ(sequence->reusedTokens(), 0);
  }
  auto drafting = Engine::create(const_cast<Model &>(model->engine().model()),
                                 {.ngrams = NgramOptions()});
  ASSERT_FALSE(drafting.ok());
  EXPECT_EQ(drafting.message(),
            "a model whose layers keep states cannot take drafts of tokens "
            "back; leave --ngram and --draft-model out");
}

INSTANTIATE_TEST_SUITE_P(Dense, GoldenModels,
                         testing::ValuesIn(casesOf(denseGoldenModels,
                                                   {"x86-64-v3"})),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Experts, GoldenModels,
                         testing::ValuesIn(casesOf(expertGoldenModels,
                                                   {"x86-64-v3"})),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Layered, GoldenModels,
                         testing::ValuesIn(casesOf(layeredGoldenModels,
                                                   {"x86-64-v3"})),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Layered, LayeredModels,
                         testing::ValuesIn(casesOf(layeredGoldenModels,
                                                   {"x86-64-v3"})),
                         caseName);

INSTANTIATE_TEST_SUITE_P(Stateful, GoldenModels,
                         testing::ValuesIn(casesOf(statefulGoldenModels,
                                                   {"x86-64-v3"})),
                         caseName);
INSTANTIATE_TEST_SUITE_P(Stateful, StatefulModels,
                         testing::ValuesIn(casesOf(statefulGoldenModels,
                                                   {"x86-64-v3"})),
                         caseName);

} // namespace
