//===- Sampler.cpp - Choosing the next token ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Sampler.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

using namespace kf;

static constexpr float kLargest = std::numeric_limits<float>::max();
static constexpr float kInfinity = std::numeric_limits<float>::infinity();

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
  if (!std::isfinite(presencePenalty))
    return outOfRange("presence penalty", "finite", presencePenalty);
  if (!std::isfinite(frequencyPenalty))
    return outOfRange("frequency penalty", "finite", frequencyPenalty);
  if (penaltyWindow < -1)
    return outOfRange("repetition window", "0 or more, or -1 for all tokens",
                      static_cast<double>(penaltyWindow));
  for (const LogitBias &entry : logitBias)
    if (!(entry.bias < kInfinity))
      return outOfRange("logit bias", "finite or -inf", entry.bias);
  return Status();
}

Status SamplerOptions::validateIds(int64_t size) const {
  for (const LogitBias &entry : logitBias)
    if (entry.id < 0 || entry.id >= size)
      return Status::error(
          "logit bias: there is no token " + std::to_string(entry.id) +
          "; the vocabulary's ids are 0 to " + std::to_string(size - 1));
  return Status();
}

/// The nearest float from `least` to the largest.
static float toFloat(double value, float least = -kLargest) {
  return static_cast<float>(std::clamp<double>(value, least, kLargest));
}

SampleSettings Sampler::settings() const {
  constexpr float tiny = std::numeric_limits<float>::min();
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return {toFloat(options.temperature),
          static_cast<int32_t>(std::min(options.topK, most)),
          toFloat(options.topP, tiny),
          toFloat(options.minP),
          options.seed,
          static_cast<uint32_t>(position)};
}

SamplePenalties Sampler::penalties() const {
  constexpr float tiny = std::numeric_limits<float>::min();
  return {toFloat(options.repetitionPenalty, tiny),
          toFloat(options.presencePenalty), toFloat(options.frequencyPenalty)};
}

//===----------------------------------------------------------------------===//
// Tokens so far
//===----------------------------------------------------------------------===//

Sampler::Sampler(const SamplerOptions &options) : options(options) { reset(); }

Result<Sampler> Sampler::create(const SamplerOptions &options) {
  KF_RETURN_IF_ERROR(options.validate());
  return Sampler(options);
}

void Sampler::reset() {
  position = 0;
  oldest = 0;
  history.clear();
  adjusted.clear();
  for (const LogitBias &entry : options.logitBias) {
    const int32_t id = static_cast<int32_t>(entry.id);
    const float bias = entry.bias < 0 && std::isinf(entry.bias)
                           ? -kInfinity
                           : toFloat(entry.bias);
    adjusted[id] = {id, 0, bias};
  }
}

bool Sampler::penalizes() const {
  return options.penaltyWindow != 0 &&
         (options.repetitionPenalty != 1 || options.presencePenalty != 0 ||
          options.frequencyPenalty != 0);
}

void Sampler::accept(int32_t id) {
  ++position;
  if (penalizes())
    see(id);
}

void Sampler::acceptPrompt(int32_t id) {
  ++position;
  if (penalizes() && options.penalizesPrompt)
    see(id);
}

/// From now on `id` is penalized.
void Sampler::see(int32_t id) {
  LogitAdjustment &entry = adjusted[id];
  entry.id = id;
  ++entry.seen;
  if (options.penaltyWindow < 0)
    return;
  if (history.size() < static_cast<uint64_t>(options.penaltyWindow)) {
    history.push_back(id);
    return;
  }
  forgetOne(std::exchange(history[oldest], id));
  oldest = (oldest + 1) % history.size();
}

void Sampler::forgetOne(int32_t id) {
  auto it = adjusted.find(id);
  if (--it->second.seen == 0 && it->second.bias == 0)
    adjusted.erase(it);
}

bool Sampler::excludes(int32_t id) const {
  const auto found = adjusted.find(id);
  return found != adjusted.end() && found->second.bias == -kInfinity;
}

std::vector<LogitAdjustment> Sampler::adjustments() const {
  std::vector<LogitAdjustment> list;
  list.reserve(adjusted.size());
  for (const auto &[id, adjustment] : adjusted)
    list.push_back(adjustment);
  return list;
}

//===----------------------------------------------------------------------===//
// Filters
//===----------------------------------------------------------------------===//

namespace {

struct Candidate {
  float logit;
  int32_t id;
  uint32_t weight;
};
using Candidates = std::vector<Candidate>;

bool moreLikely(const Candidate &a, const Candidate &b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

uint64_t sumOf(const Candidates &candidates) {
  uint64_t sum = 0;
  for (const Candidate &candidate : candidates)
    sum += candidate.weight;
  return sum;
}

void keepTopK(Candidates &candidates, int32_t topK) {
  if (topK == 0 || static_cast<size_t>(topK) >= candidates.size())
    return;
  std::nth_element(candidates.begin(), candidates.begin() + topK - 1,
                   candidates.end(), moreLikely);
  candidates.resize(topK);
}

void keepTopP(Candidates &candidates, float topP) {
  if (topP == 1)
    return;
  const uint64_t wanted = topPSum(sumOf(candidates), topP);
  // Take the likeliest from a heap until they reach the sum: the vocabulary is
  // large and few are wanted.
  auto lessLikely = [](const Candidate &a, const Candidate &b) {
    return moreLikely(b, a);
  };
  std::make_heap(candidates.begin(), candidates.end(), lessLikely);
  uint64_t sum = 0;
  auto rest = candidates.end();
  do {
    std::pop_heap(candidates.begin(), rest, lessLikely);
    sum += (--rest)->weight;
  } while (rest != candidates.begin() && sum < wanted);
  candidates.erase(candidates.begin(), rest);
}

int32_t draw(Candidates &candidates, uint64_t bits) {
  // By id, so that how the filters ordered them has no influence.
  auto byId = [](const Candidate &a, const Candidate &b) {
    return a.id < b.id;
  };
  if (!std::is_sorted(candidates.begin(), candidates.end(), byId))
    std::sort(candidates.begin(), candidates.end(), byId);
  uint64_t point = drawPoint(sumOf(candidates), bits);
  for (const Candidate &candidate : candidates) {
    if (point < candidate.weight)
      return candidate.id;
    point -= candidate.weight;
  }
  return -1; // never: the point lies below the sum
}

} // namespace

int32_t kf::sampleToken(std::span<const float> logits,
                        const SampleSettings &settings) {
  float largest = -kInfinity;
  int32_t best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < kInfinity))
      return -1;
    if (logits[i] > largest) {
      largest = logits[i];
      best = static_cast<int32_t>(i);
    }
  }
  if (best < 0 || settings.temperature == 0)
    return best;

  const float scale = exponentScale(settings.temperature);
  Candidates candidates;
  candidates.reserve(logits.size());
  // What weighs nothing is never drawn and comes last in every order.
  for (size_t i = 0; i < logits.size(); ++i)
    if (uint32_t weight = tokenWeight(logits[i], largest, scale))
      candidates.push_back({logits[i], static_cast<int32_t>(i), weight});
  keepTopK(candidates, settings.topK);
  keepTopP(candidates, settings.topP);
  std::erase_if(candidates, [least = minPWeight(settings.minP)](
                                const Candidate &candidate) {
    return candidate.weight < least;
  });
  return draw(candidates, randomBits(settings.seed, settings.counter));
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// Why no token can be drawn from `logits`.
static Status describeBadLogits(std::span<const float> logits) {
  for (size_t i = 0; i < logits.size(); ++i)
    if (!(logits[i] < kInfinity))
      return Status::error("the logit of token " + std::to_string(i) + " is " +
                           (std::isnan(logits[i]) ? "NaN" : "infinite"));
  return Status::error("no token has a finite logit");
}

Result<int32_t> Sampler::sample(std::span<const float> logits,
                                std::span<const uint32_t> allowed) const {
  std::vector<float> changed;
  std::span<const float> chosenFrom = logits;
  if (!adjusted.empty() || !allowed.empty()) {
    changed.assign(logits.begin(), logits.end());
    for (const auto &[id, entry] : adjusted)
      if (id >= 0 && static_cast<size_t>(id) < changed.size())
        changed[id] =
            adjustLogit(changed[id], entry.seen, entry.bias, penalties());
    if (!allowed.empty())
      for (size_t id = 0; id < changed.size(); ++id)
        if (changed[id] < kInfinity && !(allowed[id / 32] >> id % 32 & 1))
          changed[id] = -kInfinity;
    chosenFrom = changed;
  }
  const int32_t id = sampleToken(chosenFrom, settings());
  if (id < 0)
    return describeBadLogits(chosenFrom);
  return id;
}
