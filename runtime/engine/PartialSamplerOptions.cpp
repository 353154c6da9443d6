//===- PartialSamplerOptions.cpp - What was said of sampling --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PartialSamplerOptions.h"

using namespace kf;

PartialSamplerOptions
PartialSamplerOptions::of(const SamplingDefaults &defaults) {
  PartialSamplerOptions result;
  result.temperature = defaults.temperature;
  result.topK = defaults.topK;
  result.topP = defaults.topP;
  result.minP = defaults.minP;
  result.repetitionPenalty = defaults.repetitionPenalty;
  result.penaltyWindow = defaults.penaltyWindow;
  return result;
}

bool PartialSamplerOptions::asksToDraw() const {
  return temperature ? *temperature > 0 : topK || topP || minP;
}

PartialSamplerOptions
PartialSamplerOptions::over(const PartialSamplerOptions &others) const {
  PartialSamplerOptions result = *this;
  auto fill = [&](auto member) {
    if (!(result.*member))
      result.*member = others.*member;
  };
  fill(&PartialSamplerOptions::temperature);
  fill(&PartialSamplerOptions::topK);
  fill(&PartialSamplerOptions::topP);
  fill(&PartialSamplerOptions::minP);
  fill(&PartialSamplerOptions::repetitionPenalty);
  fill(&PartialSamplerOptions::presencePenalty);
  fill(&PartialSamplerOptions::frequencyPenalty);
  fill(&PartialSamplerOptions::penaltyWindow);
  fill(&PartialSamplerOptions::logitBias);
  fill(&PartialSamplerOptions::seed);
  return result;
}

SamplerOptions PartialSamplerOptions::complete() const {
  SamplerOptions result;
  result.temperature = temperature.value_or(result.temperature);
  result.topK = topK.value_or(result.topK);
  result.topP = topP.value_or(result.topP);
  result.minP = minP.value_or(result.minP);
  result.repetitionPenalty =
      repetitionPenalty.value_or(result.repetitionPenalty);
  result.presencePenalty = presencePenalty.value_or(result.presencePenalty);
  result.frequencyPenalty = frequencyPenalty.value_or(result.frequencyPenalty);
  result.penaltyWindow = penaltyWindow.value_or(result.penaltyWindow);
  if (logitBias)
    result.logitBias = *logitBias;
  result.seed = seed.value_or(result.seed);
  return result;
}
