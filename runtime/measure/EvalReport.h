//===- EvalReport.h - What kf-run eval found --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measurements of kernels and of a model, their file, and how two of them are
// compared. The file is a JSON object; "version" changes when a member changes
// its meaning.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MEASURE_EVALREPORT_H
#define KF_RUNTIME_MEASURE_EVALREPORT_H

#include "runtime/core/Status.h"
#include "runtime/measure/MachineRates.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Where something was measured.
struct EvalEnvironment {
  std::string version;     ///< of kf-run
  std::string compiler;    ///< with LLVM's version and the target
  std::string device;      ///< "cpu"
  std::string description; ///< chip and features
  int64_t threads = 0;     ///< workgroups that run at once; 0: unknown
};

/// How the tokens that two devices predict for one text compare. Natural
/// logarithms.
struct FidelityResult {
  int64_t tokens = 0; ///< positions whose logits were compared
  /// Of KL(reference || device) over positions.
  double klMean = 0, klMax = 0;
  double top1Agreement =
      0; ///< share of positions with the same likeliest token
  /// -log p of the text's own next tokens, on the average; 0 without any.
  double nllDevice = 0, nllReference = 0;
};

/// One kernel on one size of step.
struct EvalKernel {
  std::string name;            ///< as `kf-run emit-mlir` prints it
  std::string description;     ///< types of its operands
  int64_t rows = 0;            ///< of the step
  int64_t depth = 0;           ///< positions before the step's rows
  int64_t runs = 0;            ///< that were timed
  double seconds = 0;          ///< median
  double deviation = 0;        ///< of the seconds of a run: Statistics::spread
  double bytes = 0, flops = 0; ///< of a run; 0: not known
  double ceiling = 0;          ///< share of what the machine can; 0: not known
  double maxError = 0, meanError = 0, cosine = 1; ///< against the reference
  std::string complaint; ///< where it does not agree; else empty

  /// What tells kernels of a report apart.
  std::string key() const;
  /// Sets `runs`, `seconds` and `deviation` from the seconds of each run.
  void setTimes(std::span<const double> samples);
};

struct EvalReport {
  EvalEnvironment environment;
  /// As the command names it. Empty where it names none: kernels are those of a
  /// layer of a transformer, and fidelity is the embedded model's.
  std::string model;
  MachineRates rates;
  std::vector<EvalKernel> kernels;
  std::optional<FidelityResult> fidelity;
};

/// The file form, and the inverse: errors say what is missing or wrong, in
/// files of other versions too.
std::string toJson(const EvalReport &report);
Result<EvalReport> parseEvalReport(std::string_view text);

/// For people.
std::string tableOf(const EvalReport &report);

/// How much worse than the baseline something may be.
struct EvalThresholds {
  double slower = 0.1; ///< share of the baseline's time
  double noise = 3;    ///< deviations of the two measurements' difference
  double error = 0.5;  ///< share of the baseline's error or divergence
  double top1 = 0.01;  ///< of the share of positions that agree
};

struct EvalComparison {
  std::string text;        ///< a line for each difference, for people
  int64_t regressions = 0; ///< those past the thresholds
  /// Kernels on one size of step, and fidelity: in both reports, in one alone.
  int64_t compared = 0, onlyBaseline = 0, onlyNow = 0;
};

/// An error where reports are of other devices or other models.
Status checkComparable(const EvalReport &baseline, const EvalReport &now);

/// Compares what both reports have, and names what only one has, which is
/// neither better nor worse: a part of what the baseline has may be measured.
/// Errors: checkComparable()'s, nothing in common.
///
/// A kernel is slower where its median exceeds the baseline's by more than
/// `slower` of it and by more than `noise` times sqrt(d1^2 + d2^2), d1 and d2
/// being the deviations of the two; otherwise the difference is what the
/// machine does between two runs. Errors, 1 - cosine and divergences are worse
/// where they exceed the baseline's by more than `error` of it and by more than
/// what rounding changes; a kernel that no longer agrees with the reference is
/// always worse.
Result<EvalComparison> compareReports(const EvalReport &baseline,
                                      const EvalReport &now,
                                      const EvalThresholds &thresholds);

} // namespace kf

#endif // KF_RUNTIME_MEASURE_EVALREPORT_H
