//===- KernelTurns.h - Two kernels that take turns --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TUNING_KERNELTURNS_H
#define KF_RUNTIME_TUNING_KERNELTURNS_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Status.h"
#include "runtime/measure/TimeRatio.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace kf {

/// Seconds of each of so many runs, as KernelVariant::measure() has them.
using MeasureRuns = std::function<Result<std::vector<double>>(int64_t runs)>;

struct TurnOptions {
  double slower = 0.1; ///< as verdictOf() has it
  /// Ends turns that tell nothing for certain, once there are as many as bounds
  /// need.
  double seconds = 5;
  CancelFlag cancelled = nullptr;
  /// Seconds since any point; empty: the system's steady clock.
  std::function<double()> clock;
};

/// Lets two kernels take turns until it is certain whether the first one is
/// slower, or the time is over: what others do to the machine they do to both.
/// Errors: those of measuring, Status::cancelled().
Result<TimeRatio> ratioInTurns(const MeasureRuns &now,
                               const MeasureRuns &before,
                               const TurnOptions &options);

} // namespace kf

#endif // KF_RUNTIME_TUNING_KERNELTURNS_H
