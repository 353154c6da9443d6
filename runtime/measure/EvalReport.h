//===- EvalReport.h - What kf-run eval found --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Measurements of kernels and of a model, and their file. That is a JSON
// object; "version" changes when a member changes its meaning. EvalComparison.h
// compares two.
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
  std::vector<double> samples; ///< [runs], each as a share of `seconds`
  bool disturbed = false;      ///< other processes had cores meanwhile
  std::string code;            ///< hash of what was run; empty: not known
  double bytes = 0, flops = 0; ///< of a run; 0: not known
  double ceiling = 0;          ///< share of what the machine can; 0: not known
  double maxError = 0, meanError = 0, cosine = 1; ///< against the reference
  std::string complaint; ///< where it does not agree; else empty

  /// What tells kernels of a report apart.
  std::string key() const;
  /// Sets `runs`, `seconds`, `deviation` and `samples` from the seconds of each
  /// run.
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

} // namespace kf

#endif // KF_RUNTIME_MEASURE_EVALREPORT_H
