//===- KernelTurns.cpp - Two kernels that take turns ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelTurns.h"

#include "runtime/core/Exceptions.h"
#include "runtime/measure/Statistics.h"

#include <algorithm>
#include <chrono>
#include <random>

using namespace kf;

namespace {

/// Runs of a turn: as many as take this long, but no more than kMostRuns.
constexpr double kTurnSeconds = 100e-6;
constexpr int64_t kMostRuns = 8;
/// Turns of each before the first look at them; twice as many before the next.
constexpr size_t kFirstLook = 24;
/// Turns after which it does to be nearly certain, and the last look.
constexpr size_t kEnough = 96, kMost = 768;

double steadySeconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

} // namespace

Result<TimeRatio> kf::ratioInTurns(const MeasureRuns &now,
                                   const MeasureRuns &before,
                                   const TurnOptions &options) try {
  auto clock = [&] {
    return options.clock ? options.clock() : steadySeconds();
  };
  auto median = [](const MeasureRuns &kernel, int64_t runs) -> Result<double> {
    KF_ASSIGN_OR_RETURN(const std::vector<double> seconds, kernel(runs));
    return statisticsOf(seconds).median;
  };
  KF_ASSIGN_OR_RETURN(double one, median(before, 1));
  KF_ASSIGN_OR_RETURN(const double other, median(now, 1));
  one = std::max({one, other, 1e-9});
  const int64_t runs = std::clamp<int64_t>(
      static_cast<int64_t>(kTurnSeconds / one), 1, kMostRuns);
  const double began = clock();
  std::vector<double> nows, befores;
  // Drawn, for others may take turns, too.
  std::minstd_rand order;
  for (size_t look = kFirstLook;; look *= 2) {
    while (nows.size() < look) {
      if (isCancelled(options.cancelled))
        return Status::cancelled();
      const bool isFirst = order() & 0x10000;
      for (const bool isNow : {isFirst, !isFirst}) {
        KF_ASSIGN_OR_RETURN(const double seconds,
                            median(isNow ? now : before, runs));
        (isNow ? nows : befores).push_back(seconds);
      }
    }
    const TimeRatio ratio = ratioOfPairs(nows, befores);
    const TimeVerdict verdict = verdictOf(ratio, options.slower);
    const bool isCertain = verdict == TimeVerdict::Slower ||
                           verdict == TimeVerdict::Faster ||
                           ratio.high < 1 + options.slower;
    const bool isEnough =
        verdict == TimeVerdict::Same && nows.size() >= kEnough;
    if (isCertain || isEnough || nows.size() >= kMost ||
        clock() - began >= options.seconds)
      return ratio;
  }
} catch (...) {
  return statusOfException();
}
