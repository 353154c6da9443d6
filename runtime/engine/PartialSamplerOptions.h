//===- PartialSamplerOptions.h - What was said of sampling ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options of a sampler come from several places, of which each says a part: a
// command line, a request, the model. The first one that says an option counts.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_PARTIALSAMPLEROPTIONS_H
#define KF_RUNTIME_ENGINE_PARTIALSAMPLEROPTIONS_H

#include "runtime/engine/Sampler.h"
#include "runtime/model/ModelConfig.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kf {

// Bounds of what people say, beyond which it makes no difference or no sense.
inline constexpr double kMostTemperature = 1e6;
inline constexpr double kMostPenalty = 1e6; ///< presence, frequency: and -1e6
inline constexpr int64_t kMostTokens = int64_t(1) << 24; ///< of any count

/// SamplerOptions as far as somebody said them.
struct PartialSamplerOptions {
  std::optional<double> temperature;
  std::optional<int64_t> topK;
  std::optional<double> topP, minP;
  std::optional<double> repetitionPenalty, presencePenalty, frequencyPenalty;
  std::optional<int64_t> penaltyWindow;
  std::optional<std::vector<LogitBias>> logitBias;
  std::optional<uint64_t> seed;

  /// What a model says.
  static PartialSamplerOptions of(const SamplingDefaults &defaults);

  /// Whether tokens are to be drawn rather than the most likely one taken: by a
  /// temperature above 0 or, without one, by any rule about what to draw from.
  bool asksToDraw() const;
  /// What is said here and, where nothing is, by `others`.
  PartialSamplerOptions over(const PartialSamplerOptions &others) const;
  /// What is said, and SamplerOptions' defaults.
  SamplerOptions complete() const;

  bool operator==(const PartialSamplerOptions &) const = default;
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_PARTIALSAMPLEROPTIONS_H
