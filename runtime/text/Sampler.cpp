//===- Sampler.cpp - Choosing the next token ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

using namespace kf;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// "temperature must be ..., not -1"
static Status outOfRange(const char *option, const char *range, double value) {
  char number[32];
  std::snprintf(number, sizeof(number), "%g", value);
  return Status::error(std::string(option) + " must be " + range + ", not " +
                       number);
}

Status SamplerOptions::validate() const {
  // Written so that NaN fails.
  if (!(temperature >= 0 && std::isfinite(temperature)))
    return outOfRange("temperature", "0 or more", temperature);
  if (topK < 0)
    return outOfRange("top-k", "0 or more", static_cast<double>(topK));
  if (!(topP > 0 && topP <= 1))
    return outOfRange("top-p", "above 0 and at most 1", topP);
  if (!(minP >= 0 && minP <= 1))
    return outOfRange("min-p", "from 0 to 1", minP);
  if (!(repetitionPenalty > 0 && std::isfinite(repetitionPenalty)))
    return outOfRange("repetition penalty", "above 0", repetitionPenalty);
  if (penaltyWindow < 0)
    return outOfRange("repetition window", "0 or more",
                      static_cast<double>(penaltyWindow));
  return Status();
}

Result<Sampler> Sampler::create(const SamplerOptions &options) {
  KF_RETURN_IF_ERROR(options.validate());
  return Sampler(options);
}

void Sampler::reset() {
  history.clear();
  random = Random(options.seed);
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

Status Sampler::checkLogits(std::span<const float> logits) const {
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) ||
        logits[i] == std::numeric_limits<float>::infinity())
      return Status::error("the logit of token " + std::to_string(i) + " is " +
                           (std::isnan(logits[i]) ? "NaN" : "infinite"));
    any |= std::isfinite(logits[i]);
  }
  return any ? Status() : Status::error("no token has a finite logit");
}

void Sampler::penalize(std::span<const float> logits) {
  adjusted.assign(logits.begin(), logits.end());
  if (options.repetitionPenalty == 1)
    return;
  // Each token once, however often it was seen.
  seenAt.resize(logits.size(), 0);
  if (++round == 0) {
    std::fill(seenAt.begin(), seenAt.end(), 0);
    round = 1;
  }
  size_t window = options.penaltyWindow == 0
                      ? history.size()
                      : std::min(history.size(),
                                 static_cast<size_t>(options.penaltyWindow));
  for (size_t i = history.size() - window; i < history.size(); ++i) {
    int32_t id = history[i];
    if (id < 0 || static_cast<size_t>(id) >= logits.size() ||
        seenAt[id] == round)
      continue;
    seenAt[id] = round;
    float &logit = adjusted[id];
    if (!std::isfinite(logit))
      continue;
    double penalized = logit > 0 ? logit / options.repetitionPenalty
                                 : logit * options.repetitionPenalty;
    // Finite stays finite, whatever the penalty.
    constexpr double limit = std::numeric_limits<float>::max();
    logit = static_cast<float>(std::clamp(penalized, -limit, limit));
  }
}

int32_t Sampler::mostLikely() const {
  return static_cast<int32_t>(
      std::max_element(adjusted.begin(), adjusted.end()) - adjusted.begin());
}

/// The order of likelihood.
static constexpr auto moreLikely = [](const auto &a, const auto &b) {
  return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
};

void Sampler::keepTopK() {
  if (options.topK == 0 ||
      static_cast<uint64_t>(options.topK) >= candidates.size())
    return;
  std::nth_element(candidates.begin(), candidates.begin() + options.topK - 1,
                   candidates.end(), moreLikely);
  candidates.resize(options.topK);
}

void Sampler::keepTopP() {
  if (options.topP == 1)
    return;
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  // Take the likeliest from a heap until they reach the sum: the vocabulary is
  // large and few are wanted.
  auto lessLikely = [](const Candidate &a, const Candidate &b) {
    return moreLikely(b, a);
  };
  std::make_heap(candidates.begin(), candidates.end(), lessLikely);
  double sum = 0, wanted = options.topP * total;
  auto rest = candidates.end();
  while (rest != candidates.begin() && sum < wanted) {
    std::pop_heap(candidates.begin(), rest, lessLikely);
    sum += (--rest)->weight;
  }
  candidates.erase(candidates.begin(), rest);
}

void Sampler::keepMinP() {
  if (options.minP == 0)
    return;
  double highest = 0;
  for (const Candidate &candidate : candidates)
    highest = std::max(highest, candidate.weight);
  std::erase_if(candidates, [&](const Candidate &candidate) {
    return candidate.weight < options.minP * highest;
  });
}

int32_t Sampler::draw() {
  // By id, so that how the filters ordered them has no influence.
  auto byId = [](const Candidate &a, const Candidate &b) {
    return a.id < b.id;
  };
  if (!std::is_sorted(candidates.begin(), candidates.end(), byId))
    std::sort(candidates.begin(), candidates.end(), byId);
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  double point = random.uniform() * total;
  int32_t last = candidates.front().id;
  for (const Candidate &candidate : candidates) {
    if (candidate.weight == 0)
      continue;
    last = candidate.id;
    if (point < candidate.weight)
      break;
    point -= candidate.weight;
  }
  return last;
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  KF_RETURN_IF_ERROR(checkLogits(logits));
  penalize(logits);
  int32_t best = mostLikely();
  if (options.temperature == 0)
    return best;

  double highest = adjusted[best];
  candidates.clear();
  candidates.reserve(adjusted.size());
  for (size_t i = 0; i < adjusted.size(); ++i)
    candidates.push_back(
        {std::exp((adjusted[i] - highest) / options.temperature),
         static_cast<int32_t>(i)});
  keepTopK();
  keepTopP();
  keepMinP();
  return draw();
}
