//===- RopeFactors.cpp - Frequencies of scaled RoPE -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/RopeFactors.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace kf;

/// Frequencies that turn more than betaFast times in the original context stay,
/// those that turn less than betaSlow times are divided by the factor, and
/// those between by something between, linear in their numbers.
static std::vector<float> yarnFactors(const RopeConfig &rope) {
  const double dim = static_cast<double>(rope.dim);
  // The number of the frequency that turns so often.
  auto numberOf = [&](double turns) {
    const double wave =
        static_cast<double>(rope.originalContext) / (2 * std::numbers::pi);
    return dim * std::log(wave / turns) / (2 * std::log(rope.theta));
  };
  double low = numberOf(rope.betaFast), high = numberOf(rope.betaSlow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high)
    high += 0.001;
  std::vector<float> factors;
  for (int64_t i = 0; i < rope.dim / 2; ++i) {
    const double ramp =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / (1 - ramp + ramp / rope.factor)));
  }
  return factors;
}

/// Divided by it, a frequency turns no head by as much as f32 can tell, in as
/// many positions as there can be.
static constexpr float kStill = 1e30f;

static std::vector<float> proportionalFactors(const RopeConfig &rope) {
  const auto turned = static_cast<int64_t>(rope.turnedShare *
                                           static_cast<double>(rope.dim) / 2);
  std::vector<float> factors(static_cast<size_t>(rope.dim / 2), kStill);
  std::fill_n(factors.begin(), turned, static_cast<float>(rope.factor));
  return factors;
}

std::vector<float> kf::ropeFactors(const RopeConfig &rope) {
  if (rope.scaling == RopeConfig::Scaling::Proportional)
    return proportionalFactors(rope);
  if (rope.scaling == RopeConfig::Scaling::LongRope)
    return rope.isLong ? rope.longFactors : rope.shortFactors;
  return rope.scaling == RopeConfig::Scaling::Yarn ? yarnFactors(rope)
                                                   : std::vector<float>();
}

double kf::yarnMagnitude(double factor, double scale) {
  return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1;
}

int64_t kf::settleContext(ModelConfig &config, int64_t context) {
  int64_t most = config.maxPositions;
  for (LayerConfig &layer : config.layerConfigs) {
    if (!layer.rope || layer.rope->scaling != RopeConfig::Scaling::LongRope)
      continue;
    layer.rope->isLong = context > layer.rope->originalContext;
    if (!layer.rope->isLong)
      most = std::min(most, layer.rope->originalContext);
  }
  return most;
}
