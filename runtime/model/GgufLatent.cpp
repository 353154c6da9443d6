//===- GgufLatent.cpp - What a GGUF file says of latent attention ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufLatent.h"

#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/GgufRope.h"
#include "runtime/model/RopeFactors.h"

#include <algorithm>
#include <cmath>

using namespace kf;

Status kf::readGgufLatent(const Gguf &gguf, const GgufNumbers &numbers,
                          ModelConfig &config) {
  LatentConfig &latent = config.latent;
  KF_ASSIGN_OR_RETURN(const uint64_t queryRow,
                      gguf.getUnsigned(numbers.keyOf(kGgufQueryRow), 0));
  if (queryRow > 0) {
    KF_ASSIGN_OR_RETURN(latent.queryWidth,
                        numbers.size(kGgufQueryRow, kMaxSize));
  }
  KF_ASSIGN_OR_RETURN(latent.width, numbers.size(kGgufKeyRow, kMaxHeadDim));
  KF_ASSIGN_OR_RETURN(latent.turnedDim, numbers.size(kGgufTurned, kMaxHeadDim));
  KF_ASSIGN_OR_RETURN(const int64_t key,
                      numbers.size(kGgufLatentKey, kMaxHeadDim));
  KF_ASSIGN_OR_RETURN(latent.valueDim,
                      numbers.size(kGgufLatentValue, kMaxHeadDim));
  if (latent.turnedDim % 2 != 0 || latent.turnedDim >= key)
    return Status::error(
        numbers.valueOf(kGgufTurned, std::to_string(latent.turnedDim)) +
        ", but an even number below " +
        inQuotes(numbers.keyOf(kGgufLatentKey)) + " " + std::to_string(key) +
        " is expected");
  latent.plainDim = key - latent.turnedDim;
  // Each has matrices of its own.
  if (config.heads * config.layers > kMaxModelExperts)
    return Status::error(
        numbers.valueOf("attention.head_count", std::to_string(config.heads)) +
        ", which times " + std::to_string(config.layers) +
        " layers is beyond the " + std::to_string(kMaxModelExperts) +
        " heads that are possible");
  config.kvHeads = 1;
  config.headDim = latent.turnedDim + latent.width;
  for (auto [name, implied] :
       {std::pair("attention.head_count_kv", config.kvHeads),
        std::pair("attention.key_length", config.headDim),
        std::pair("attention.value_length", latent.width)}) {
    KF_ASSIGN_OR_RETURN(const int64_t value,
                        numbers.size(name, kMaxSize, implied));
    if (value != implied)
      return Status::error(numbers.valueOf(name, std::to_string(value)) +
                           ", but other keys imply " + std::to_string(implied));
  }
  const int64_t widest =
      std::max({config.headDim, key, latent.plainDim + latent.valueDim});
  if (config.headDim > kMaxHeadDim || config.heads * widest > kMaxSize)
    return Status::error(
        numbers.valueOf("attention.head_count", std::to_string(config.heads)) +
        ", of heads of " + std::to_string(widest) + " elements; at most " +
        std::to_string(kMaxHeadDim) + " elements of one and " +
        std::to_string(kMaxSize) + " of all are possible");
  config.attentionScale = 1 / std::sqrt(static_cast<double>(key));
  return Status();
}

Status kf::readGgufLatentYarn(const GgufNumbers &numbers, RopeConfig &rope,
                              ModelConfig &config) {
  if (!numbers.contains(kGgufYarnScale) ||
      rope.scaling != RopeConfig::Scaling::Yarn)
    return Status();
  KF_ASSIGN_OR_RETURN(const double tenth,
                      numbers.number(kGgufYarnScale, 0, kMaxYarn));
  if (tenth == 0)
    return Status();
  const double magnitude = yarnMagnitude(rope.factor, 10 * tenth);
  if (numbers.contains(kGgufYarnMagnitude))
    return Status::error(numbers.valueOf(kGgufYarnScale, spellNumber(tenth)) +
                             ", which is not supported beside " +
                             inQuotes(numbers.keyOf(kGgufYarnMagnitude)),
                         StatusCode::Unsupported);
  config.attentionScale *= magnitude * magnitude;
  rope.magnitude /= yarnMagnitude(rope.factor);
  if (std::isnormal(static_cast<float>(config.attentionScale)))
    return Status();
  return Status::error(numbers.valueOf(kGgufYarnScale, spellNumber(tenth)) +
                       ", which makes attention's scale " +
                       spellNumber(config.attentionScale) +
                       ", beyond the range of f32");
}
