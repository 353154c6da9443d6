//===- TimeRatio.h - How much longer one thing takes ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times of one thing over those of another, with bounds. All of it goes by
// ranks, so that runs far off count as one run each, however far they are, and
// nothing is supposed of how times are distributed.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_TIMERATIO_H
#define KF_RUNTIME_MEASURE_TIMERATIO_H

#include <cmath>
#include <span>

namespace kf {

/// How many times as long something takes now as before.
struct TimeRatio {
  double ratio = 1;                ///< as far as can be told
  double low = 0, high = HUGE_VAL; ///< it lies between these

  bool operator==(const TimeRatio &) const = default;
};

/// Of pairs: now[i] and before[i] were measured one right behind the other, so
/// that what slows the machine down does so for both. The bounds are those of
/// the sign test: for ratios whose median lies beyond one of them, the chance
/// to see this is below one in a million. With fewer than 20 pairs there are
/// none. Times are positive, and there are as many of both.
TimeRatio ratioOfPairs(std::span<const double> now,
                       std::span<const double> before);

/// Of times that were measured apart, on a machine that was as fast both times.
/// The ratio is the median of all quotients (Hodges and Lehmann), and the
/// bounds are those of the test of Mann and Whitney, which errs once in thirty
/// thousand times on either side. With fewer than 12 times of both there are
/// none. Of more than 200 times, 200 evenly spread ranks count. Times are
/// positive.
TimeRatio ratioOfSamples(std::span<const double> now,
                         std::span<const double> before);

enum class TimeVerdict {
  Same,   ///< not slower by more than what is allowed
  Slower, ///< by more than that, for certain
  Faster, ///< by as much, for certain
  Unclear ///< it may be slower by so much that this should not go unseen
};

/// What `ratio` says where something may take 1 + `slower` times as long. It
/// may not go unseen from (1 + `slower`)^3 times on.
TimeVerdict verdictOf(const TimeRatio &ratio, double slower);

} // namespace kf

#endif // KF_RUNTIME_MEASURE_TIMERATIO_H
