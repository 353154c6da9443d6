//===- SamplingMath.h - The arithmetic of choosing tokens -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kf.sample computes, element by element: the reference and the sampler on
// the host call these functions, and code generators emit the same formulas.
// All results are the same to the last bit everywhere: floats are added,
// multiplied and divided one operation at a time, and everything that is summed
// is an integer, so that no order of summation matters. Devices may take
// subnormal numbers for zeros; no choice depends on that.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_SAMPLINGMATH_H
#define KF_RUNTIME_CORE_SAMPLINGMATH_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace kf {

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
/// easy as 1, 2, 3", 2011): a function of a counter and a key.
inline constexpr std::array<uint32_t, 2> kPhiloxMultipliers = {0xD2511F53u,
                                                               0xCD9E8D57u};
/// What the words of the key grow by from round to round.
inline constexpr std::array<uint32_t, 2> kPhiloxKeySteps = {0x9E3779B9u,
                                                            0xBB67AE85u};
inline constexpr int kPhiloxRounds = 10;

constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t first = uint64_t(kPhiloxMultipliers[0]) * counter[0];
    const uint64_t second = uint64_t(kPhiloxMultipliers[1]) * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(first)};
    key[0] += kPhiloxKeySteps[0];
    key[1] += kPhiloxKeySteps[1];
  }
  return counter;
}

/// The 64 random bits of draw number `counter` of `seed`: the first two words
/// of philox({counter, 0, 0, 0}, {low word of seed, high word}), the first
/// being the low one.
constexpr uint64_t randomBits(uint64_t seed, uint32_t counter) {
  const std::array<uint32_t, 4> words =
      philox({counter, 0, 0, 0},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return words[0] | uint64_t(words[1]) << 32;
}

//===----------------------------------------------------------------------===//
// Settings of a row
//===----------------------------------------------------------------------===//

/// How one token is chosen; see kf.sample.
struct SampleSettings {
  float temperature = 0; ///< 0: the most likely token
  int32_t topK = 0;      ///< 0: all
  float topP = 1;
  float minP = 0;
  uint64_t seed = 0;
  uint32_t counter = 0; ///< which draw of the seed

  /// Whether all are in their ranges; NaN is in none.
  bool areValid() const {
    return temperature >= 0 &&
           temperature <= std::numeric_limits<float>::max() && topK >= 0 &&
           topP > 0 && topP <= 1 && minP >= 0 && minP <= 1;
  }

  bool operator==(const SampleSettings &) const = default;
};

/// What becomes of the logits of tokens that were seen; see kf.sample.
struct SamplePenalties {
  float repetition = 1, presence = 0, frequency = 0;

  /// Whether all are finite, and `repetition` is positive.
  bool areValid() const {
    constexpr float most = std::numeric_limits<float>::max();
    return repetition > 0 && repetition <= most && std::abs(presence) <= most &&
           std::abs(frequency) <= most;
  }

  bool operator==(const SamplePenalties &) const = default;
};

/// A token whose logit is changed before anything else happens.
struct LogitAdjustment {
  int32_t id = 0;
  int32_t seen = 0; ///< how often it occurred
  float bias = 0;   ///< added last; -inf excludes the token

  bool operator==(const LogitAdjustment &) const = default;
};

/// What an adjusted logit is made of, and it itself, is 0 or of this magnitude
/// at least, so that nothing subnormal matters. It is the least penalty for
/// repetition, too.
inline constexpr float kLeastLogit = 0x1p-64f;

/// 0 for what is closer to it than kLeastLogit.
inline float dropTiny(float x) { return std::abs(x) < kLeastLogit ? 0.0f : x; }

/// The logit after an adjustment by valid penalties. What is finite stays
/// finite, unless the bias is not; what is not finite stays as it is.
inline float adjustLogit(float logit, int32_t seen, float bias,
                         const SamplePenalties &penalties) {
  constexpr float most = std::numeric_limits<float>::max();
  if (!(std::abs(logit) <= most))
    return logit;
  logit = dropTiny(logit);
  if (seen > 0) {
    const float repetition = std::max(penalties.repetition, kLeastLogit);
    logit = dropTiny(logit > 0 ? logit / repetition : logit * repetition);
    // Two statements: a compiler may make one operation of one.
    const float less =
        std::clamp(penalties.frequency * static_cast<float>(seen), -most, most);
    logit = dropTiny(logit - dropTiny(less));
    logit = dropTiny(logit - penalties.presence);
    logit = std::clamp(logit, -most, most);
  }
  const float biased = dropTiny(logit + bias);
  return std::abs(bias) <= most ? std::clamp(biased, -most, most) : biased;
}

//===----------------------------------------------------------------------===//
// Weights: probabilities that can be summed
//===----------------------------------------------------------------------===//

/// The most likely token weighs 2^30, another one 2^30 times its probability
/// relative to that, rounded; below half a unit a token weighs nothing.
inline constexpr int kWeightBits = 30;
/// Fraction bits of binary logarithms of weights.
inline constexpr int kExponentBits = 26;
/// The binary logarithm of the least weight that is not nothing.
inline constexpr int kLeastExponent = -(kWeightBits + 1);
/// 2^(30 + x) = sum of kExp2[i] x^i for x in [0, 1), to 8.4e-8 of the result
/// and never falling.
inline constexpr std::array<uint32_t, 6> kExp2 = {
    1073741824u, 744265554u, 257874615u, 59914700u, 9681963u, 2004816u};
/// log2(e) in units of the last fraction bit.
inline constexpr float kLogitUnit =
    static_cast<float>(1.4426950408889634 * (1 << kExponentBits));

/// Lower temperatures are as this one. Where subnormal numbers change the
/// difference of two logits, that is below 2^-100: less than a unit of the
/// logarithm, which is dropped.
inline constexpr float kLeastTemperature = 0x1p-70f;

/// What turns differences of logits into binary logarithms, in units of the
/// last fraction bit; `temperature` is positive.
inline float exponentScale(float temperature) {
  return kLogitUnit / std::max(temperature, kLeastTemperature);
}

/// The weight of a token; `largest` is the largest logit, and finite. Never
/// smaller for a larger logit.
inline uint32_t tokenWeight(float logit, float largest, float scale) {
  constexpr float least = static_cast<float>(kLeastExponent) *
                          static_cast<float>(1 << kExponentBits);
  const float exponent = (logit - largest) * scale;
  if (!(exponent >= least))
    return 0;
  const int32_t fixed = static_cast<int32_t>(exponent); // towards 0
  const uint64_t fraction =
      uint64_t(static_cast<uint32_t>(fixed) & ((1u << kExponentBits) - 1))
      << (32 - kExponentBits);
  uint64_t power = kExp2.back();
  for (size_t i = kExp2.size() - 1; i-- > 0;)
    power = kExp2[i] + (power * fraction >> 32);
  const int shift = -(fixed >> kExponentBits); // 0 to 31
  return ((static_cast<uint32_t>(power) << 1 >> shift) + 1) >> 1;
}

/// The sum that the most likely tokens have to reach: topP of `sum`, which is
/// below 2^61, rounded down.
inline uint64_t topPSum(uint64_t sum, float topP) {
  const uint64_t part = static_cast<uint64_t>(topP * 0x1p32f);
  return (sum >> 32) * part + ((sum & 0xffffffffu) * part >> 32);
}

/// The least weight that min-p keeps.
inline uint32_t minPWeight(float minP) {
  return static_cast<uint32_t>(
      std::ceil(minP * static_cast<float>(1 << kWeightBits)));
}

/// The high half of a * b.
constexpr uint64_t multiplyHigh(uint64_t a, uint64_t b) {
  const uint64_t low = (a & 0xffffffffu) * (b & 0xffffffffu);
  const uint64_t middle = (a >> 32) * (b & 0xffffffffu) + (low >> 32);
  const uint64_t other = (a & 0xffffffffu) * (b >> 32) + (middle & 0xffffffffu);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

/// Where in [0, sum) a draw falls: `bits` / 2^64 of the sum, rounded down. The
/// first token, in order of ids, up to which weights sum up to more is drawn.
constexpr uint64_t drawPoint(uint64_t sum, uint64_t bits) {
  return multiplyHigh(sum, bits);
}

} // namespace kf

#endif // KF_RUNTIME_CORE_SAMPLINGMATH_H
