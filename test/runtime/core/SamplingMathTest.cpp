//===- SamplingMathTest.cpp - Random numbers, weights, penalties ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/SamplingMath.h"

#include "test/runtime/FlushedSubnormals.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace kf;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();
constexpr uint32_t kHeaviest = 1u << kWeightBits;

TEST(Philox, GivesItsKnownAnswers) {
  // The vectors that the generator was published with: zeros, ones, digits of
  // pi.
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                   {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DrawsByCounterAndSeed) {
  EXPECT_EQ(randomBits(0, 0), 0xe169c58d6627e8d5u);
  // Both words of the seed count, and so does the counter.
  EXPECT_NE(randomBits(1, 0), randomBits(0, 0));
  EXPECT_NE(randomBits(uint64_t(1) << 32, 0), randomBits(1, 0));
  EXPECT_NE(randomBits(0, 1), randomBits(0, 0));
  const std::array<uint32_t, 4> words =
      philox({7, 0, 0, 0}, {0x89abcdef, 0x01234567});
  EXPECT_EQ(randomBits(0x0123456789abcdef, 7), words[0] | uint64_t(words[1])
                                                              << 32);
}

TEST(TokenWeight, IsTheRelativeProbability) {
  std::mt19937 random(3);
  for (float temperature : {0.1f, 0.8f, 1.0f, 3.0f, 1e4f}) {
    const float scale = exponentScale(temperature);
    for (int i = 0; i < 20000; ++i) {
      const float largest = static_cast<float>(random() % 4096) / 64 - 32;
      const float logit =
          largest - temperature * static_cast<float>(random() % 30000) / 1000;
      const double exact = std::exp2(kWeightBits) *
                           std::exp((double(logit) - largest) / temperature);
      // Half a unit, the polynomial, and the rounding of the difference of
      // logits and of its product with the scale.
      const double bits = std::abs(std::log2(exact) - kWeightBits);
      EXPECT_NEAR(tokenWeight(logit, largest, scale), exact,
                  0.5 + exact * (1e-7 + 2e-7 * bits) +
                      exact * std::abs(largest) * 1e-7 / temperature)
          << logit << " of " << largest << " at " << temperature;
    }
  }
}

TEST(TokenWeight, NeverFalls) {
  // All of the binary logarithms, in steps of some units; neighbours around
  // each power of two.
  const float scale = exponentScale(std::log2(std::exp(1.0f)));
  uint32_t last = 0;
  for (int32_t at = -(32 << 16); at <= 0; ++at) {
    const float logit = std::ldexp(static_cast<float>(at), -16);
    for (float near :
         {std::nextafter(logit, -kInf), logit, std::nextafter(logit, kInf)}) {
      if (near > 0)
        continue;
      const uint32_t weight = tokenWeight(near, 0, scale);
      ASSERT_GE(weight, last) << near;
      last = weight;
    }
  }
  EXPECT_EQ(last, kHeaviest);
}

TEST(TokenWeight, HoldsAtTheEnds) {
  const float one = exponentScale(1);
  EXPECT_EQ(tokenWeight(-kInf, 0, one), 0u);
  EXPECT_EQ(tokenWeight(5, 5, one), kHeaviest);
  EXPECT_EQ(tokenWeight(-kMost, kMost, one), 0u);
  EXPECT_EQ(tokenWeight(-kMost, -kMost, one), kHeaviest);
  // The least temperature and the largest one.
  const float cold = exponentScale(std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(tokenWeight(1, 1, cold), kHeaviest);
  EXPECT_EQ(tokenWeight(1, std::nextafter(1.0f, 2.0f), cold), 0u);
  const float hot = exponentScale(kMost);
  EXPECT_EQ(tokenWeight(-1e6f, 1e6f, hot), kHeaviest);
  // Half a unit and above is one, below it nothing.
  const float log2 = std::log(2.0f);
  EXPECT_EQ(tokenWeight(-30 * log2, 0, one), 1u);
  EXPECT_EQ(tokenWeight(-30.9f * log2, 0, one), 1u);
  EXPECT_EQ(tokenWeight(-31.1f * log2, 0, one), 0u);
}

TEST(TopPSum, IsThePartRoundedDown) {
  EXPECT_EQ(topPSum(1000, 1), 1000u);
  EXPECT_EQ(topPSum(1000, 0.5f), 500u);
  EXPECT_EQ(topPSum(1001, 0.5f), 500u);
  EXPECT_EQ(topPSum(uint64_t(1) << 60, 0.25f), uint64_t(1) << 58);
  EXPECT_EQ(topPSum((uint64_t(1) << 61) - 1, 1), (uint64_t(1) << 61) - 1);
  EXPECT_EQ(topPSum(uint64_t(1) << 40, 1e-30f), 0u);
}

TEST(MinPWeight, IsThePartRoundedUp) {
  EXPECT_EQ(minPWeight(0), 0u);
  EXPECT_EQ(minPWeight(1), kHeaviest);
  EXPECT_EQ(minPWeight(0.5f), kHeaviest / 2);
  EXPECT_EQ(minPWeight(1e-30f), 1u);
}

TEST(DrawPoint, IsTheHighHalfOfTheProduct) {
  EXPECT_EQ(drawPoint(1000, 0), 0u);
  EXPECT_EQ(drawPoint(1000, ~uint64_t(0)), 999u);
  EXPECT_EQ(drawPoint(1000, uint64_t(1) << 63), 500u);
  EXPECT_EQ(multiplyHigh(~uint64_t(0), ~uint64_t(0)), ~uint64_t(0) - 1);
  EXPECT_EQ(multiplyHigh(0x123456789abcdef0, 0xfedcba9876543210),
            0x121fa00ad77d7422u);
}

TEST(AdjustLogit, PenalizesWhatWasSeen) {
  const SamplePenalties penalties = {2, 0.5f, 0.25f};
  EXPECT_EQ(adjustLogit(3, 0, 0, penalties), 3);
  EXPECT_EQ(adjustLogit(3, -1, 1, penalties), 4);
  EXPECT_EQ(adjustLogit(3, 2, 0, penalties), 0.5f);
  EXPECT_EQ(adjustLogit(-3, 2, 0, penalties), -7);
  EXPECT_EQ(adjustLogit(0, 1, 1, penalties), 0.25f);
}

TEST(AdjustLogit, KeepsTheFiniteFinite) {
  const SamplePenalties huge = {kMost, kMost, kMost};
  EXPECT_EQ(adjustLogit(-2, 2, 0, huge), -kMost);
  EXPECT_EQ(adjustLogit(kMost, 1, kMost, {1e-38f, 0, 0}), kMost);
  EXPECT_EQ(adjustLogit(0, INT32_MAX, 0, {1, 0, kMost}), -kMost);
  EXPECT_EQ(adjustLogit(1, 0, -kInf, {}), -kInf);
  EXPECT_EQ(adjustLogit(-kInf, 3, kMost, huge), -kInf);
  EXPECT_EQ(adjustLogit(kInf, 3, -kInf, huge), kInf);
  EXPECT_TRUE(std::isnan(adjustLogit(NAN, 3, 1, huge)));
  EXPECT_TRUE(std::isnan(adjustLogit(1, 0, NAN, {})));
}

/// A float of any magnitude, often of a small one; no NaN.
float anyFloat(std::mt19937 &random) {
  const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  const int number = static_cast<int>(random() % 2001) - 1000;
  switch (random() % 5) {
  case 0:
    return std::isnan(x) ? 1 : x;
  case 1:
    return std::ldexp(static_cast<float>(number), -149);
  case 2:
    return std::ldexp(static_cast<float>(number),
                      static_cast<int>(random() % 80) - 120);
  case 3:
    return static_cast<float>(number) / 64;
  default:
    return 0;
  }
}

TEST(SamplingMath, DoesWithoutSubnormals) {
  std::mt19937 random(1);
  for (int i = 0; i < 300'000; ++i) {
    const SamplePenalties penalties = {std::abs(anyFloat(random)),
                                       anyFloat(random), anyFloat(random)};
    const float logit = anyFloat(random), bias = anyFloat(random);
    const int32_t seen = static_cast<int32_t>(random() % 4);
    float largest = anyFloat(random), temperature = std::abs(anyFloat(random));
    if (!penalties.areValid() || std::isinf(largest) || largest < logit ||
        temperature == 0 || std::isinf(temperature))
      continue;
    // Not to be computed ahead of a change of the mode.
    std::function<std::pair<float, uint32_t>()> compute = [&] {
      return std::pair(adjustLogit(logit, seen, bias, penalties),
                       tokenWeight(logit, largest, exponentScale(temperature)));
    };
    const auto expected = compute();
    const auto found = [&] {
      test::FlushedSubnormals flushed;
      return compute();
    }();
    ASSERT_EQ(found.first, expected.first)
        << logit << " seen " << seen << " times, bias " << bias
        << ", penalties " << penalties.repetition << ", " << penalties.presence
        << ", " << penalties.frequency;
    ASSERT_EQ(found.second, expected.second)
        << logit << " and " << largest << " at temperature " << temperature;
  }
}

TEST(SampleSettings, KnowTheirRanges) {
  EXPECT_TRUE(SampleSettings{}.areValid());
  EXPECT_TRUE((SampleSettings{.temperature = kMost}).areValid());
  for (SampleSettings settings : {SampleSettings{.temperature = -1},
                                  {.temperature = NAN},
                                  {.temperature = kInf},
                                  {.topK = -1},
                                  {.topP = 0},
                                  {.topP = NAN},
                                  {.topP = 1.5f},
                                  {.minP = -0.5f},
                                  {.minP = 1.5f},
                                  {.minP = NAN}})
    EXPECT_FALSE(settings.areValid());
  EXPECT_TRUE(SamplePenalties{}.areValid());
  for (SamplePenalties penalties : {SamplePenalties{.repetition = 0},
                                    {.repetition = -1},
                                    {.repetition = kInf},
                                    {.repetition = NAN},
                                    {.presence = NAN},
                                    {.presence = kInf},
                                    {.frequency = -kInf},
                                    {.frequency = NAN}})
    EXPECT_FALSE(penalties.areValid());
}

} // namespace
