//===- LearningRate.h - The learning rate of each step ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_LEARNINGRATE_H
#define KF_RUNTIME_TRAIN_LEARNINGRATE_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace kf {

/// It rises to `peak` in `warmup` steps, and falls to `minimum` by the end of
/// `steps`, or stays.
struct LearningRate {
  enum class Decay { Constant, Linear, Cosine };

  double peak = 0;
  double minimum = 0; ///< of Linear and Cosine
  Decay decay = Decay::Constant;
  int64_t warmup = 0; ///< steps below the peak
  int64_t steps = 1;  ///< in all

  /// Of the step number `step`, from 0: the first has a rate above 0, the one
  /// behind the warmup the peak, and one behind the last would have the
  /// minimum.
  double at(int64_t step) const {
    if (step < warmup)
      return peak * static_cast<double>(step + 1) /
             static_cast<double>(warmup + 1);
    if (decay == Decay::Constant)
      return peak;
    const double done =
        std::min(static_cast<double>(step - warmup) /
                     static_cast<double>(std::max<int64_t>(steps - warmup, 1)),
                 1.0);
    const double left = decay == Decay::Linear
                            ? 1 - done
                            : (1 + std::cos(std::numbers::pi * done)) / 2;
    return minimum + (peak - minimum) * left;
  }
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_LEARNINGRATE_H
