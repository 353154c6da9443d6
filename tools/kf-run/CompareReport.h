//===- CompareReport.h - Answers of servers and the model, side by side  -*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_COMPAREREPORT_H
#define KF_TOOLS_KF_RUN_COMPAREREPORT_H

#include "CompareTargets.h"
#include "OptionParser.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// A measure's median and the value that 99 % do not exceed, in seconds.
struct Quantiles {
  double median = 0, p99 = 0;
};

/// What a run's outcomes come to.
struct TargetSummary {
  size_t answered = 0, failed = 0, cancelled = 0;
  int64_t retries = 0;
  std::optional<Quantiles> firstPiece, betweenPieces;
  /// Tokens that were generated, as the server counts them, and where it does
  /// not, pieces.
  int64_t outputTokens = 0;
  bool countsTokens = true; ///< no answer's pieces were counted instead
  std::optional<int64_t> promptTokens; ///< nothing where an answer lacks it
  double tokensPerSecond = 0;          ///< of all answers together
  std::optional<double> tokensPerSecondOfText; ///< behind the first, the median
  /// By the prices that were given; nothing where there are none, or where an
  /// answer's tokens are not counted.
  std::optional<double> cost;

  // Beside the model's texts, of greedy requests that both have answered.
  size_t compared = 0, equal = 0;
  double commonCharacters = 0; ///< the mean
  double commonShare = 0;      ///< of the model's text, the mean
};

TargetSummary summarize(const TargetRun &run,
                        const std::vector<RemoteRequest> &requests,
                        const TargetRun &own);

/// A table for people.
std::string compareTable(std::span<const TargetRun> runs,
                         std::span<const TargetSummary> summaries);
/// An object a line for each run.
std::string compareLines(std::span<const TargetRun> runs,
                         std::span<const TargetSummary> summaries,
                         const PresetUse &preset);
/// All of it, texts too.
std::string compareJson(std::span<const TargetRun> runs,
                        std::span<const TargetSummary> summaries,
                        const std::vector<RemoteRequest> &requests,
                        const PresetUse &preset);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_COMPAREREPORT_H
