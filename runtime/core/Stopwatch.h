//===- Stopwatch.h - Time since a moment ------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_STOPWATCH_H
#define KF_RUNTIME_CORE_STOPWATCH_H

#include <chrono>

namespace kf {

/// Starts when it is made.
class Stopwatch {
public:
  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

} // namespace kf

#endif // KF_RUNTIME_CORE_STOPWATCH_H
