//===- Sampler.h - Choosing the next token ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_SAMPLER_H
#define KF_RUNTIME_TEXT_SAMPLER_H

#include "runtime/Status.h"
#include "runtime/text/Random.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kf {

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
  /// How many of the last tokens count as seen; 0 counts all.
  int64_t penaltyWindow = 0;
  uint64_t seed = 0;

  /// Fails, naming the option, unless every one is in its range.
  Status validate() const;
};

/// Chooses tokens. The filters apply in the order of Hugging Face's generate,
/// for which checkpoints' generation settings are written: repetition penalty,
/// temperature, top-k, top-p, min-p; what is left is drawn by its probability.
/// Of equally likely tokens the lower id counts as the more likely one. The
/// same logits, options and seed give the same tokens. One thread.
class Sampler {
public:
  static Result<Sampler> create(const SamplerOptions &options);

  /// Records a token, of the prompt or generated, for the repetition penalty.
  void accept(int32_t id) { history.push_back(id); }
  /// Chooses from `logits` [vocabulary]; does not accept the choice. -inf
  /// excludes a token. Fails if a logit is NaN or +inf, or all are -inf.
  Result<int32_t> sample(std::span<const float> logits);
  /// Forgets the tokens seen; the random numbers go on.
  void forget() { history.clear(); }
  /// Forgets the tokens seen and starts the random numbers over.
  void reset();

private:
  /// A token and its logit, later its weight (unnormalized probability).
  struct Candidate {
    double weight;
    int32_t id;
  };

  explicit Sampler(const SamplerOptions &options)
      : options(options), random(options.seed) {}
  Status checkLogits(std::span<const float> logits) const;
  void penalize(std::span<const float> logits);
  int32_t mostLikely() const;
  void keepTopK();
  void keepTopP();
  void keepMinP();
  int32_t draw();

  SamplerOptions options;
  Random random;
  std::vector<int32_t> history;
  std::vector<float> adjusted;  ///< logits after the penalty
  std::vector<uint32_t> seenAt; ///< by id: the round that penalized it
  uint32_t round = 0;
  std::vector<Candidate> candidates; ///< what the filters have left
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_SAMPLER_H
