//===- RopeFactors.h - Frequencies of scaled RoPE ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_ROPEFACTORS_H
#define KF_RUNTIME_MODEL_ROPEFACTORS_H

#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <vector>

namespace kf {

/// What kf.rope divides the frequencies theta^(-2i / dim) by, [dim / 2]: YaRN's
/// ramp (Peng et al., "YaRN", 2023), or one of LongRoPE's tables (Ding et al.,
/// "LongRoPE", 2024). Empty for the other scalings, which kf.rope computes
/// itself.
std::vector<float> ropeFactors(const RopeConfig &rope);

/// What YaRN multiplies cosines and sines by where nothing else is said: 0.1 *
/// scale * ln(factor) + 1 ("YaRN").
double yarnMagnitude(double factor, double scale = 1);

/// Chooses what depends on how long contexts may become: LongRoPE's table, for
/// all sequences alike, as keys in the cache stay as they were turned. Returns
/// the most positions that `config` is right for then. Without this, a model is
/// for all of its positions.
int64_t settleContext(ModelConfig &config, int64_t context);

} // namespace kf

#endif // KF_RUNTIME_MODEL_ROPEFACTORS_H
