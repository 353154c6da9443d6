//===- StepPace.h - Rows of a step that takes not too long ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_STEPPACE_H
#define KF_RUNTIME_ENGINE_STEPPACE_H

#include <cstdint>
#include <optional>

namespace kf {

/// How many rows the next step may have, by how long the last ones took. It
/// begins with one, and at most doubles what a step had; what took too long is
/// cut at once, and not tried again for some time.
class StepPace {
public:
  /// Steps have at most `most` rows, and should take at most `seconds`; none:
  /// any time.
  StepPace(std::optional<double> seconds, int64_t most);

  /// At least 1.
  int64_t rows() const { return limit; }
  /// A step of `rows` rows took `seconds`.
  void add(int64_t rows, double seconds);

private:
  std::optional<double> longest;
  int64_t most;
  int64_t limit;
  int64_t tooMany = 0; ///< rows that took too long; 0: none that are known
  int patience = 0;    ///< steps until as many are tried again
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_STEPPACE_H
