//===- StepPace.cpp - Rows of a step that takes not too long --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StepPace.h"

#include <algorithm>

using namespace kf;

/// The part of the time that a step is planned for: steps of as many rows do
/// not all take as long, and a row takes longer the more comes before it.
static constexpr double kPlanned = 0.8;
/// Quick steps before something that took too long is tried again.
static constexpr int kPatience = 32;

StepPace::StepPace(std::optional<double> seconds, int64_t most)
    : longest(seconds), most(most), limit(seconds ? 1 : most) {}

void StepPace::add(int64_t rows, double seconds) {
  if (!longest)
    return;
  // Rows cost less the more there are: more of them take at most their share of
  // the time, and fewer of them at least that.
  const double planned = *longest * kPlanned;
  const double fitting =
      std::min(static_cast<double>(rows) * planned / std::max(seconds, 1e-9),
               static_cast<double>(most));
  const auto share = static_cast<int64_t>(fitting);
  if (seconds > planned) {
    if (seconds > *longest && rows > 1) {
      tooMany = rows;
      patience = kPatience;
    }
    limit = std::max<int64_t>(std::min({limit, share, rows - 1}), 1);
    return;
  }
  int64_t next = std::min({std::max(share, rows + 1), 2 * rows, most});
  if (patience > 0 && --patience > 0)
    next = std::min(next, tooMany - 1);
  // What is quick with few rows says nothing against more of them.
  limit = std::max(limit, next);
}
