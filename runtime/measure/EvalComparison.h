//===- EvalComparison.h - Two reports of kf-run eval ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/decisions/eval-baseline.md says why times are compared as they are.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_EVALCOMPARISON_H
#define KF_RUNTIME_MEASURE_EVALCOMPARISON_H

#include "runtime/measure/EvalReport.h"
#include "runtime/measure/TimeRatio.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace kf {

/// How much worse than the baseline something may be.
struct EvalThresholds {
  double slower = 0.1; ///< share of the baseline's time
  double error = 0.5;  ///< share of the baseline's error or divergence
  double top1 = 0.01;  ///< of the share of positions that agree
};

struct EvalComparison {
  std::string text;        ///< a line for each difference, for people
  int64_t regressions = 0; ///< those past the thresholds
  int64_t unclear = 0;     ///< those that may be, as far as can be told
  /// EvalKernel::key() of kernels that are slower, or may be, by times that
  /// were not measured in turns, or too few: they are worth measuring again.
  std::set<std::string> again;
  /// Kernels on one size of step, and fidelity: in both reports, in one alone.
  int64_t compared = 0, onlyBaseline = 0, onlyNow = 0;
};

/// How kernels compare with the baseline's own code where both ran in turns, by
/// EvalKernel::key().
using TurnRatios = std::map<std::string, TimeRatio>;

/// An error where reports are of other devices or other models.
Status checkComparable(const EvalReport &baseline, const EvalReport &now);

/// Compares what both reports have, and names what only one has, which is
/// neither better nor worse: a part of what the baseline has may be measured.
/// Errors: checkComparable()'s, nothing in common.
///
/// Times: where `turns` has a kernel, they say whether it is slower, by
/// verdictOf(). Otherwise the runs of both reports do, over the ratio that all
/// kernels have in common, which is the machine's; the bounds are as wide as
/// ratios differ from kernel to kernel. There a kernel that was disturbed is
/// not said to be slower, unless by more than four times, and one of the same
/// code is not said to be unclear. Where all kernels together are slower, a
/// note says so; unless the machine's rates fell as much, that is unclear, too,
/// of the same code from twice the time on.
///
/// Errors, 1 - cosine and divergences are worse where they exceed the
/// baseline's by more than `error` of it and by more than what rounding
/// changes; a kernel that no longer agrees with the reference is always worse.
Result<EvalComparison> compareReports(const EvalReport &baseline,
                                      const EvalReport &now,
                                      const EvalThresholds &thresholds,
                                      const TurnRatios &turns = {});

} // namespace kf

#endif // KF_RUNTIME_MEASURE_EVALCOMPARISON_H
