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

#include "runtime/session/SamplingChoice.h"

#include <string>
#include <vector>

namespace kf {

/// Adds --temp, --top-k, --top-p, --min-p, --repeat-penalty,
/// --presence-penalty, --frequency-penalty, --repeat-last-n, --logit-bias and
/// --seed, which say what nobody says otherwise: `unsaid`, and `temperature` is
/// the temperature where the model recommends none, for the help.
void addSamplerFlags(OptionParser &parser, PartialSamplerOptions &out,
                     ModelSampling unsaid,
                     const std::string &temperature = "0");

/// Adds --stop.
void addStopFlag(OptionParser &parser, std::vector<std::string> &out);

/// What of `sampling` is the model's choice, as flags: "--temp 0.8 --top-p
/// 0.95".
std::string recommendedFlags(const ChosenSampling &sampling);
/// Prints a note that the model recommends these `flags`, if there are any.
void noteRecommended(const std::string &flags);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_SAMPLERFLAGS_H
