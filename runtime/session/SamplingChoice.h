//===- SamplingChoice.h - Who says how tokens are chosen --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_SAMPLINGCHOICE_H
#define KF_RUNTIME_SESSION_SAMPLINGCHOICE_H

#include "runtime/engine/PartialSamplerOptions.h"
#include "runtime/model/ModelConfig.h"

namespace kf {

/// When what a user leaves open is the model's to say.
enum class ModelSampling {
  Always,
  WhenDrawing ///< if the user asks to draw; else the most likely token is taken
};

struct ChosenSampling {
  SamplerOptions options;
  /// What of it is the model's choice and makes a difference.
  PartialSamplerOptions recommended;
};

/// What the user says, then what the model does, and a sampler's defaults.
ChosenSampling chooseSampling(const PartialSamplerOptions &said,
                              const SamplingDefaults &model,
                              ModelSampling unsaid);

} // namespace kf

#endif // KF_RUNTIME_SESSION_SAMPLINGCHOICE_H
