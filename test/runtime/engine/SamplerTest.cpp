//===- SamplerTest.cpp - Filters, ranges, distributions -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Sampler.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

using namespace kf;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Sampler make(const SamplerOptions &options) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler.ok()) << sampler.message();
  return sampler.take();
}

int32_t sampleOnce(const SamplerOptions &options, std::vector<float> logits) {
  auto id = make(options).sample(logits);
  EXPECT_TRUE(id.ok()) << id.message();
  return id.ok() ? *id : -1;
}

/// How often each token came in `count` draws.
std::vector<int> histogram(const SamplerOptions &options,
                           const std::vector<float> &logits, int count) {
  Sampler sampler = make(options);
  std::vector<int> result(logits.size());
  for (int i = 0; i < count; ++i) {
    const int32_t id = *sampler.sample(logits);
    ++result[id];
    sampler.accept(id);
  }
  return result;
}

std::set<int32_t> support(const SamplerOptions &options,
                          const std::vector<float> &logits) {
  std::vector<int> counts = histogram(options, logits, 4000);
  std::set<int32_t> result;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] != 0)
      result.insert(static_cast<int32_t>(i));
  return result;
}

/// The chi-square statistic of `counts` for draws by the softmax of `logits` /
/// `temperature`; what can never be drawn must not have been.
double chiSquare(const std::vector<int> &counts,
                 const std::vector<float> &logits, double temperature) {
  double total = 0, draws = 0, result = 0;
  for (float logit : logits)
    total += std::exp(logit / temperature);
  for (int count : counts)
    draws += count;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = draws * std::exp(logits[i] / temperature) / total;
    if (expected == 0)
      EXPECT_EQ(counts[i], 0);
    else
      result += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return result;
}

TEST(Sampler, GreedyTakesTheLowestOfEquals) {
  EXPECT_EQ(sampleOnce({}, {1, 3, 2, 3}), 1);
  EXPECT_EQ(sampleOnce({}, {-kInf, -2, -kInf}), 1);
  EXPECT_EQ(sampleOnce({}, {5}), 0);
}

TEST(Sampler, RefusesBrokenLogits) {
  for (double temperature : {0.0, 1.0}) {
    Sampler sampler = make({.temperature = temperature});
    auto errorOf = [&](std::vector<float> logits) {
      return sampler.sample(logits).message();
    };
    EXPECT_EQ(errorOf({1, NAN}), "the logit of token 1 is NaN");
    EXPECT_EQ(errorOf({kInf, 1}), "the logit of token 0 is infinite");
    EXPECT_EQ(errorOf({-kInf, -kInf}), "no token has a finite logit");
    EXPECT_EQ(errorOf({}), "no token has a finite logit");
  }
}

TEST(Sampler, ChoosesAmongWhatIsAllowed) {
  const std::vector<float> logits = {5, 4, 3, 2};
  const std::vector<uint32_t> allowed = {0b1100};
  EXPECT_EQ(*make({}).sample(logits, allowed), 2);
  EXPECT_EQ(*make({.logitBias = {{3, 2}}}).sample(logits, allowed), 3);
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_GE(*make({.temperature = 50, .seed = seed}).sample(logits, allowed),
              2);
  const auto none = make({.logitBias = {{2, -INFINITY}, {3, -INFINITY}}})
                        .sample(logits, allowed);
  EXPECT_EQ(none.message(), "no token has a finite logit");
  // What is not finite is an error wherever it is.
  EXPECT_FALSE(make({}).sample(std::vector<float>{NAN, 4, 3, 2}, allowed).ok());
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  auto errorOf = [](const SamplerOptions &options) {
    return Sampler::create(options).message();
  };
  EXPECT_EQ(errorOf({.temperature = -1}),
            "temperature must be 0 or more, not -1");
  EXPECT_EQ(errorOf({.temperature = NAN}),
            "temperature must be 0 or more, not nan");
  EXPECT_EQ(errorOf({.temperature = kInf}),
            "temperature must be 0 or more, not inf");
  EXPECT_EQ(errorOf({.topK = -1}), "top-k must be 0 or more, not -1");
  EXPECT_EQ(errorOf({.topP = 0}), "top-p must be above 0 and at most 1, not 0");
  EXPECT_EQ(errorOf({.topP = 1.5}),
            "top-p must be above 0 and at most 1, not 1.5");
  EXPECT_EQ(errorOf({.minP = -0.1}), "min-p must be from 0 to 1, not -0.1");
  EXPECT_EQ(errorOf({.minP = 1.1}), "min-p must be from 0 to 1, not 1.1");
  EXPECT_EQ(errorOf({.repetitionPenalty = 0}),
            "repetition penalty must be above 0, not 0");
  EXPECT_EQ(errorOf({.presencePenalty = kInf}),
            "presence penalty must be finite, not inf");
  EXPECT_EQ(errorOf({.frequencyPenalty = NAN}),
            "frequency penalty must be finite, not nan");
  EXPECT_EQ(errorOf({.penaltyWindow = -2}),
            "repetition window must be 0 or more, or -1 for all tokens, not "
            "-2");
  EXPECT_EQ(errorOf({.logitBias = {{3, 1}, {4, kInf}}}),
            "logit bias must be finite or -inf, not inf");
  EXPECT_EQ(errorOf({.logitBias = {{3, -kInf}}}), "");
  EXPECT_EQ(errorOf({}), "");
}

TEST(Sampler, DrawsByProbability) {
  const std::vector<float> logits = {0, 1, -kInf, 2, -1, 0.5f};
  for (double temperature : {0.5, 1.0, 2.0}) {
    std::vector<int> counts =
        histogram({.temperature = temperature, .seed = 7}, logits, 200'000);
    // Four degrees of freedom: exceeded once in ten thousand seeds.
    EXPECT_LT(chiSquare(counts, logits, temperature), 23.5) << temperature;
  }
}

TEST(Sampler, SeedsDrawIndependently) {
  // The first draw of many seeds is as random as many draws of one.
  const std::vector<float> logits = {0, 1, -kInf, 2, -1, 0.5f};
  std::vector<int> counts(logits.size());
  for (uint64_t seed = 0; seed < 100'000; ++seed)
    ++counts[sampleOnce({.temperature = 1, .seed = seed}, logits)];
  EXPECT_LT(chiSquare(counts, logits, 1), 23.5);
}

TEST(Sampler, DrawsFromManyTokens) {
  // A thousand tokens: 999 degrees of freedom, whose 0.9999 quantile is 1169.
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = 2 * std::sin(static_cast<float>(i));
  std::vector<int> counts =
      histogram({.temperature = 1, .seed = 11}, logits, 500'000);
  EXPECT_LT(chiSquare(counts, logits, 1), 1169);
}

TEST(Sampler, FiltersKeepTheLikeliest) {
  // Probabilities 0.4, 0.3, 0.2, 0.1 in another order.
  const std::vector<float> logits = {std::log(0.2f), std::log(0.4f),
                                     std::log(0.1f), std::log(0.3f)};
  using Set = std::set<int32_t>;
  EXPECT_EQ(support({.temperature = 1}, logits), (Set{0, 1, 2, 3}));
  EXPECT_EQ(support({.temperature = 1, .topK = 1}, logits), Set{1});
  EXPECT_EQ(support({.temperature = 1, .topK = 2}, logits), (Set{1, 3}));
  EXPECT_EQ(support({.temperature = 1, .topK = 99}, logits), (Set{0, 1, 2, 3}));
  EXPECT_EQ(support({.temperature = 1, .topP = 0.39}, logits), Set{1});
  EXPECT_EQ(support({.temperature = 1, .topP = 0.41}, logits), (Set{1, 3}));
  EXPECT_EQ(support({.temperature = 1, .topP = 0.71}, logits), (Set{0, 1, 3}));
  EXPECT_EQ(support({.temperature = 1, .topP = 1e-300}, logits), Set{1});
  EXPECT_EQ(support({.temperature = 1, .minP = 0.49}, logits), (Set{0, 1, 3}));
  EXPECT_EQ(support({.temperature = 1, .minP = 1}, logits), Set{1});
  // top-p counts within what top-k left: 0.4 / 0.7 = 0.57.
  EXPECT_EQ(support({.temperature = 1, .topK = 2, .topP = 0.56}, logits),
            Set{1});
  // A high temperature comes before top-p: all four are about equal.
  EXPECT_EQ(support({.temperature = 1e6, .topP = 0.74}, logits),
            (Set{0, 1, 3}));
  // Of equals the lower ids stay.
  EXPECT_EQ(support({.temperature = 1, .topK = 2}, {1, 1, 1, 1}), (Set{0, 1}));
  EXPECT_EQ(support({.temperature = 1, .topP = 0.5}, {1, 1, 1, 1}),
            (Set{0, 1}));
}

TEST(Sampler, ExtremeTemperaturesStayFinite) {
  EXPECT_EQ(sampleOnce({.temperature = 1e-300}, {1, 3, 2}), 1);
  EXPECT_EQ(sampleOnce({.temperature = 1}, {-3e38f, 3e38f}), 1);
  EXPECT_EQ(support({.temperature = 1e300}, {-1e38f, 1e38f}).size(), 2u);
}

TEST(Sampler, PenalizesWhatItHasSeen) {
  Sampler sampler = make({.repetitionPenalty = 2});
  const std::vector<float> logits = {3, 2, -1, -1.5f};
  EXPECT_EQ(*sampler.sample(logits), 0);
  sampler.accept(0); // 1.5
  EXPECT_EQ(*sampler.sample(logits), 1);
  sampler.accept(0); // counts once
  sampler.accept(1); // 1
  EXPECT_EQ(*sampler.sample(logits), 0);
  sampler.reset();
  EXPECT_EQ(*sampler.sample(logits), 0);

  // Negative logits are multiplied.
  Sampler negative = make({.repetitionPenalty = 2});
  negative.accept(2);
  EXPECT_EQ(*negative.sample(std::vector<float>{-kInf, -9, -1, -1.5f}), 3);

  // Ids outside of the logits do nothing.
  negative.accept(-1);
  negative.accept(INT32_MAX);
  EXPECT_TRUE(negative.sample(logits).ok());

  // A penalty below 1 invites; none leaves the finite numbers.
  Sampler tiny = make({.temperature = 1, .repetitionPenalty = 1e-300});
  tiny.accept(1);
  EXPECT_EQ(*tiny.sample(logits), 1);
  Sampler huge = make({.temperature = 1, .repetitionPenalty = 1e300});
  huge.accept(0);
  EXPECT_EQ(*huge.sample(std::vector<float>{-1}), 0);
}

TEST(Sampler, SubtractsPenaltiesAndAddsBiases) {
  const std::vector<float> logits = {3, 2, 1, 0};
  Sampler presence = make({.presencePenalty = 1.5});
  presence.accept(0);
  presence.accept(0);
  EXPECT_EQ(*presence.sample(logits), 1); // 1.5, 2, 1, 0
  Sampler frequency = make({.frequencyPenalty = 0.6});
  frequency.accept(0);
  EXPECT_EQ(*frequency.sample(logits), 0); // 2.4, 2, 1, 0
  frequency.accept(0);
  EXPECT_EQ(*frequency.sample(logits), 1); // 1.8, 2, 1, 0
  Sampler negative = make({.presencePenalty = -2});
  negative.accept(2);
  EXPECT_EQ(*negative.sample(logits), 0); // 3, 2, 3, 0
  negative.accept(3);
  EXPECT_EQ(sampleOnce({.logitBias = {{3, 2.5}, {1, 1.5}}}, logits), 1);
  EXPECT_EQ(sampleOnce({.logitBias = {{0, -kInf}, {1, -kInf}}}, logits), 2);
  // The last of two for one token counts.
  EXPECT_EQ(sampleOnce({.logitBias = {{3, 9}, {3, 1}}}, logits), 0);
  // Seen and biased.
  Sampler both = make({.presencePenalty = 1, .logitBias = {{0, 0.5}}});
  both.accept(0);
  EXPECT_EQ(*both.sample(logits), 0); // 2.5, 2, 1, 0
  EXPECT_EQ(*make({.logitBias = {{0, -kInf}}}).sample(logits), 1);
  EXPECT_EQ(
      make({.logitBias = {{0, -kInf}}}).sample(std::vector<float>{1}).message(),
      "no token has a finite logit");
}

TEST(Sampler, ListsItsAdjustments) {
  Sampler sampler = make({.presencePenalty = 1,
                          .penaltyWindow = 3,
                          .logitBias = {{7, 0.5}, {2, -1}}});
  using List = std::vector<std::array<double, 3>>;
  auto list = [&] {
    List result;
    for (const LogitAdjustment &entry : sampler.adjustments())
      result.push_back({double(entry.id), double(entry.seen), entry.bias});
    return result;
  };
  EXPECT_EQ(list(), (List{{2, 0, -1}, {7, 0, 0.5}}));
  for (int32_t id : {7, 4, 4, 9})
    sampler.accept(id);
  EXPECT_EQ(list(), (List{{2, 0, -1}, {4, 2, 0}, {7, 0, 0.5}, {9, 1, 0}}));
  EXPECT_EQ(sampler.settings().counter, 4u);
  sampler.reset();
  EXPECT_EQ(list(), (List{{2, 0, -1}, {7, 0, 0.5}}));
  EXPECT_EQ(sampler.settings().counter, 0u);
}

TEST(Sampler, KnowsTheVocabulary) {
  const SamplerOptions options = {.logitBias = {{3, 1}, {10, 1}}};
  EXPECT_EQ(options.validateIds(11).message(), "");
  EXPECT_EQ(options.validateIds(10).message(),
            "logit bias: there is no token 10; the vocabulary's ids are 0 to "
            "9");
  const SamplerOptions negative = {.logitBias = {{-1, 1}}};
  EXPECT_FALSE(negative.validateIds(10).ok());
}

TEST(Sampler, ForgetsBeyondTheWindow) {
  Sampler sampler = make({.repetitionPenalty = 10, .penaltyWindow = 2});
  const std::vector<float> logits = {3, 2, 1};
  sampler.accept(0);
  EXPECT_EQ(*sampler.sample(logits), 1);
  sampler.accept(1);
  EXPECT_EQ(*sampler.sample(logits), 2);
  sampler.accept(2);
  EXPECT_EQ(*sampler.sample(logits), 0);
  sampler.accept(2);
  sampler.accept(0);
  EXPECT_EQ(*sampler.sample(logits), 1);

  Sampler none = make({.repetitionPenalty = 10, .penaltyWindow = 0});
  none.accept(0);
  EXPECT_EQ(*none.sample(logits), 0);
}

/// Tokens of prompts are penalized or not; they count for the draws anyway.
TEST(Sampler, PenalizesPromptsWhereItIsTo) {
  const std::vector<float> logits = {3, 2, 1};
  for (bool penalizesPrompt : {true, false})
    for (const SamplerOptions &options :
         {SamplerOptions{.repetitionPenalty = 10},
          SamplerOptions{.presencePenalty = 1.5},
          SamplerOptions{.frequencyPenalty = 1.5},
          SamplerOptions{.presencePenalty = 1.5, .penaltyWindow = 1}}) {
      SamplerOptions wanted = options;
      wanted.penalizesPrompt = penalizesPrompt;
      Sampler sampler = make(wanted);
      sampler.acceptPrompt(0);
      EXPECT_EQ(*sampler.sample(logits), penalizesPrompt ? 1 : 0);
      EXPECT_EQ(sampler.settings().counter, 1u);
      sampler.accept(0);
      sampler.acceptPrompt(2);
      // The window is of those that count.
      const bool isForgotten = penalizesPrompt && options.penaltyWindow == 1;
      EXPECT_EQ(*sampler.sample(logits), isForgotten ? 0 : 1);
      EXPECT_EQ(sampler.settings().counter, 3u);
      sampler.reset();
      EXPECT_EQ(*sampler.sample(logits), 0);
    }
}

TEST(Sampler, RepeatsWithItsSeed) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = std::sin(static_cast<float>(i));
  auto drawsOf = [&](uint64_t seed, int64_t topK) {
    Sampler sampler = make({.temperature = 1, .topK = topK, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) {
      ids.push_back(*sampler.sample(logits));
      // A draw depends on the number of tokens so far, and on nothing else.
      EXPECT_EQ(*sampler.sample(logits), ids.back());
      sampler.accept(i % 3);
    }
    sampler.reset();
    EXPECT_EQ(*sampler.sample(logits), ids[0]);
    return ids;
  };
  EXPECT_EQ(drawsOf(1, 0), drawsOf(1, 0));
  EXPECT_NE(drawsOf(1, 0), drawsOf(2, 0));
  EXPECT_EQ(drawsOf(1, 10), drawsOf(1, 10));
  // A filter that keeps all changes nothing.
  EXPECT_EQ(drawsOf(1, 0), drawsOf(1, 100));
}

} // namespace
