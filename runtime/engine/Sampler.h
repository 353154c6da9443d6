//===- Sampler.h - Choosing the next token ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_SAMPLER_H
#define KF_RUNTIME_ENGINE_SAMPLER_H

#include "runtime/core/SamplingMath.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace kf {

/// A number to add to a token's logit; -inf excludes the token.
struct LogitBias {
  int64_t id = 0;
  double bias = 0;

  bool operator==(const LogitBias &) const = default;
};

/// How to choose. The defaults choose the most likely token.
struct SamplerOptions {
  /// Divides the logits; 0 takes the highest, the lowest id of equals.
  double temperature = 0;
  /// Keeps the k most likely tokens; 0 keeps all.
  int64_t topK = 0;
  /// Keeps the fewest most likely tokens whose probabilities reach this sum.
  double topP = 1;
  /// Drops tokens less likely than this times the most likely one.
  double minP = 0;
  /// Divides positive and multiplies negative logits of tokens seen before.
  double repetitionPenalty = 1;
  /// Subtracted from the logits of tokens seen before.
  double presencePenalty = 0;
  /// Subtracted from a token's logit for each time that it was seen.
  double frequencyPenalty = 0;
  /// How many of the last tokens count as seen; -1: all.
  int64_t penaltyWindow = -1;
  /// Whether tokens of prompts count as seen, as llama.cpp does; else those
  /// alone that were generated, as OpenAI does.
  bool penalizesPrompt = true;
  /// Added to the logits of tokens, whether seen or not. Of a token that comes
  /// twice, the last one counts.
  std::vector<LogitBias> logitBias = {};
  uint64_t seed = 0;

  /// Fails, naming the option, unless every one is in its range.
  Status validate() const;
  /// Fails if a token of `logitBias` is none of a vocabulary of `size`.
  Status validateIds(int64_t size) const;
};

/// Chooses tokens as kf.sample does: the same logits, options, seed and tokens
/// so far give the same choice on the host and on every device. A draw is the
/// one of its seed that has the number of tokens so far, whatever was chosen
/// before. One thread.
class Sampler {
public:
  static Result<Sampler> create(const SamplerOptions &options);

  /// Records a token that was generated.
  void accept(int32_t id);
  /// Records one of a prompt.
  void acceptPrompt(int32_t id);
  /// Chooses from `logits` [vocabulary]; does not accept the choice. -inf
  /// excludes a token, and so does a bit of `allowed` that is not set, if it is
  /// not empty (TokenConstraint::allowed). Fails if a logit is NaN or +inf, or
  /// no token is left.
  Result<int32_t> sample(std::span<const float> logits,
                         std::span<const uint32_t> allowed = {}) const;
  /// Forgets the tokens so far.
  void reset();

  /// Whether the choice depends on which tokens there were, not on their number
  /// alone.
  bool dependsOnTokens() const { return penalizes(); }
  /// Whether a bias of -inf keeps the token from being chosen.
  bool excludes(int32_t id) const;
  /// What kf.sample takes for the next token: numbers in their ranges.
  SampleSettings settings() const;
  SamplePenalties penalties() const;
  /// The tokens whose logits change, by id, each once.
  std::vector<LogitAdjustment> adjustments() const;

private:
  explicit Sampler(const SamplerOptions &options);
  bool penalizes() const;
  void see(int32_t id);
  void forgetOne(int32_t id);

  SamplerOptions options;
  uint64_t position = 0;        ///< tokens so far
  std::vector<int32_t> history; ///< the last ones that are penalized
  size_t oldest = 0;            ///< where in a full history the next one goes
  std::map<int32_t, LogitAdjustment> adjusted; ///< by id
};

/// A choice by kf.sample's rules from logits that were adjusted; -1 if they
/// hold NaN, +inf, or nothing but -inf. `settings` are valid.
int32_t sampleToken(std::span<const float> logits,
                    const SampleSettings &settings);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_SAMPLER_H
