//===- SamplingChoice.cpp - Who says how tokens are chosen ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/SamplingChoice.h"

using namespace kf;

/// What `model` says, that the user does not, and that makes a difference to
/// `chosen`.
static PartialSamplerOptions takenFrom(const PartialSamplerOptions &model,
                                       const PartialSamplerOptions &said,
                                       const SamplerOptions &chosen) {
  PartialSamplerOptions taken;
  const SamplerOptions neutral;
  auto take = [&](auto option, const auto &nothing) {
    if (model.*option && !(said.*option) && *(model.*option) != nothing)
      taken.*option = model.*option;
  };
  using Partial = PartialSamplerOptions;
  if (chosen.temperature > 0) {
    take(&Partial::temperature, neutral.temperature);
    take(&Partial::topK, neutral.topK);
    take(&Partial::topP, neutral.topP);
    take(&Partial::minP, neutral.minP);
  }
  take(&Partial::repetitionPenalty, neutral.repetitionPenalty);
  const bool penalizes =
      chosen.repetitionPenalty != neutral.repetitionPenalty ||
      chosen.presencePenalty != neutral.presencePenalty ||
      chosen.frequencyPenalty != neutral.frequencyPenalty;
  if (penalizes)
    take(&Partial::penaltyWindow, neutral.penaltyWindow);
  return taken;
}

ChosenSampling kf::chooseSampling(const PartialSamplerOptions &said,
                                  const SamplingDefaults &model,
                                  ModelSampling unsaid) {
  if (unsaid == ModelSampling::WhenDrawing && !said.asksToDraw())
    return {said.complete(), {}};
  const PartialSamplerOptions recommended = PartialSamplerOptions::of(model);
  const SamplerOptions chosen = said.over(recommended).complete();
  return {chosen, takenFrom(recommended, said, chosen)};
}
