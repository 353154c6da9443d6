//===- LogProbs.h - How likely the model finds tokens -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_LOGPROBS_H
#define KF_RUNTIME_ENGINE_LOGPROBS_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kf {

/// The natural logarithm of a token's probability, at most 0.
struct LogProb {
  int32_t id = 0;
  float value = 0;

  bool operator==(const LogProb &) const = default;
};

/// What a model says of a token that was chosen: probabilities are those of its
/// logits, before temperature, penalties, biases, masks and filters.
struct ChosenLogProbs {
  LogProb chosen;
  /// The most likely tokens, from the likeliest on, of equals the lowest id
  /// first; the one that was chosen may be among them, or not.
  std::vector<LogProb> top;
};

/// The same of a token of a text, which begins behind `offset` characters.
struct TextLogProbs : ChosenLogProbs {
  int64_t offset = 0;
};

/// Of the choice `id` from `logits` [vocabulary], with the `count` most likely
/// tokens, or all. The logits are no NaN, and one at least is finite.
ChosenLogProbs logProbsOf(std::span<const float> logits, int32_t id,
                          size_t count);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_LOGPROBS_H
