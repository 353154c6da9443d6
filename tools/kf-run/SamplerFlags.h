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

#include "runtime/engine/Sampler.h"

namespace kf {

/// Adds --temp, --top-k, --top-p, --min-p, --repeat-penalty,
/// --presence-penalty, --frequency-penalty, --repeat-last-n, --logit-bias and
/// --seed.
void addSamplerFlags(OptionParser &parser, SamplerOptions &out);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_SAMPLERFLAGS_H
