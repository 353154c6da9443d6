//===- SamplerFlags.h - Options of commands that choose tokens --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_SAMPLERFLAGS_H
#define KF_TOOLS_KF_RUN_SAMPLERFLAGS_H

#include "OptionParser.h"

#include "runtime/engine/PartialSamplerOptions.h"
#include "runtime/model/ModelConfig.h"

#include <string>
#include <vector>

namespace kf {

/// When what flags leave open is the model's to say.
enum class ModelSampling {
  Always,
  WhenDrawing ///< if a flag asks to draw; else the most likely token is taken
};

/// Adds --temp, --top-k, --top-p, --min-p, --repeat-penalty,
/// --presence-penalty, --frequency-penalty, --repeat-last-n, --logit-bias and
/// --seed, which say what nobody says otherwise: `unsaid`.
void addSamplerFlags(OptionParser &parser, PartialSamplerOptions &out,
                     ModelSampling unsaid);

/// Adds --stop.
void addStopFlag(OptionParser &parser, std::vector<std::string> &out);

struct ChosenSampling {
  SamplerOptions options;
  /// What of it is the model's choice and makes a difference, as flags: "--temp
  /// 0.8 --top-p 0.95".
  std::string recommended;

  /// Prints a note of what is `recommended`, if anything.
  void note() const;
};

/// What `flags` say, then what the model does, and a sampler's defaults.
ChosenSampling chooseSampling(const PartialSamplerOptions &flags,
                              const SamplingDefaults &model,
                              ModelSampling unsaid);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_SAMPLERFLAGS_H
