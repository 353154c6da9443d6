//===- Scores.h - What logits say -------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_SCORES_H
#define KF_RUNTIME_SESSION_SCORES_H

#include "runtime/engine/Model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace kf {

/// The model's error if a logit is not finite: no score means anything then.
inline Status checkLogits(const Model &model, size_t position,
                          std::span<const float> logits) {
  if (std::ranges::all_of(logits,
                          [](float logit) { return std::isfinite(logit); }))
    return Status();
  return model.badLogits("logits of position " + std::to_string(position) +
                         " are not finite");
}

/// log(sum(exp(logits))), summed in double. `logits` passed checkLogits.
inline double logSumExp(std::span<const float> logits) {
  const float highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(static_cast<double>(logit) - highest);
  return highest + std::log(sum);
}

/// Index of the highest logit, the lowest one of equals.
inline int64_t argmax(std::span<const float> logits) {
  return std::ranges::max_element(logits) - logits.begin();
}

} // namespace kf

#endif // KF_RUNTIME_SESSION_SCORES_H
