//===- Eval.cpp - kf-run eval ---------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "EvalKernels.h"
#include "Fidelity.h"
#include "Interrupt.h"
#include "MeasuredCeilings.h"
#include "Report.h"
#include "TerminalObserver.h"

#include "runtime/core/MappedFile.h"
#include "runtime/measure/EvalComparison.h"

#include <cstdio>
#include <filesystem>

using namespace kf;

namespace {

struct EvalOptions {
  ModelFlags model;
  bool kernels = false, fidelity = false; ///< neither: both
  KernelEvalOptions kernelOptions;
  std::string file, json, baseline;
  int64_t tokens = 128;
  std::optional<double> threshold, errorThreshold;
  EvalThresholds thresholds; ///< with these two

  bool wantsKernels() const { return kernels || !fidelity; }
  bool wantsFidelity() const { return fidelity || !kernels; }

  void addTo(OptionParser &parser) {
    parser.flag({"kernels"}, kernels,
                "measures kernels alone: their time, what they move and "
                "compute in it, and their errors");
    parser.flag({"fidelity"}, fidelity,
                "measures a model's logits alone: their divergence from the "
                "reference's, and how often the likeliest token is the same");
    kernelOptions.addTo(parser);
    parser.text({"file", 0, "FILE"}, file,
                "the text to compare logits over; a .json file holds an array "
                "of texts. Without it, a text of kf-run's own, or random ids "
                "for a model without a tokenizer");
    parser.integer({"tokens", 'n', "N"}, tokens, 1, 65536,
                   "the most tokens of the text; 128 by default, for the "
                   "reference is slow");
    parser.text({"json", 0, "FILE"}, json,
                "writes what was measured, and where, to FILE, and the code of "
                "kernels to the folder FILE.kernels; - is stdout, in place of "
                "the table, without the code");
    parser.output(json);
    parser.text({"baseline", 0, "FILE"}, baseline,
                "what --json wrote before: prints what differs, and exits with "
                "1 if something is worse, with 3 if the machine is too noisy "
                "to tell. Kernels that became others take turns with those of "
                "FILE.kernels");
    parser.real({"threshold", 0, "X"}, threshold, 0, 1000,
                "how much slower than the baseline a kernel may be, as a share "
                "of its time; 0.1 by default. What lies within the noise is "
                "never worse");
    parser.real({"error-threshold", 0, "X"}, errorThreshold, 0, 1000,
                "how much an error or a divergence may exceed the baseline's, "
                "as a share of it; 0.5 by default");
    model.addTo(parser);
    parser.addCheck([this] {
      if (baseline.empty() && (threshold || errorThreshold))
        return Status::error(
            std::string(threshold ? "--threshold" : "--error-threshold") +
            " is of a comparison; give --baseline, too");
      if (!wantsFidelity() && !file.empty())
        return Status::error("--file is the text for --fidelity, which "
                             "--kernels alone leaves out");
      if (!wantsKernels() && !kernelOptions.typesText.empty())
        return Status::error("--types is of kernels, which --fidelity alone "
                             "measures none of; leave it out");
      thresholds.slower = threshold.value_or(thresholds.slower);
      thresholds.error = errorThreshold.value_or(thresholds.error);
      if (model.profile.file && !wantsFidelity())
        return Status::error("--profile is of a model's steps, which --kernels "
                             "alone runs none of; leave it out");
      if (model.model.empty() && model.float8.type == "f8")
        return Status::error("--float8 is of a MODEL's weights; those of "
                             "f8_e4m3 without one are multiplied as they are, "
                             "leave it out");
      if (!model.model.empty() && !kernelOptions.typesText.empty())
        return Status::error("--types is for kernels without a MODEL, whose "
                             "weights have types of their own; leave it out");
      return Status();
    });
  }
};

Result<EvalEnvironment> environmentOf(const ModelFlags &flags,
                                      const Device &device) {
  KF_ASSIGN_OR_RETURN(const CompilerOptions compiler,
                      compilerOptionsFor(flags, device));
  EvalEnvironment environment;
  environment.version = KF_VERSION;
  KF_ASSIGN_OR_RETURN(environment.compiler, compilerFingerprint(compiler));
  environment.device = device.name();
  environment.description = device.description();
  environment.threads = device.workers();
  return environment;
}

Result<EvalReport> readBaseline(const std::string &path) {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  Result<EvalReport> report = parseEvalReport(file.text());
  if (report.ok())
    return report;
  return Status::error(quotePath(path) + ": " + report.message() +
                       "; --baseline takes what eval --json FILE wrote: "
                       "measure again");
}

/// How often kernels that seem to be slower are measured again.
constexpr int kAgain = 2;

/// Measures the kernels, and what is in doubt once more.
Result<KernelEvaluation>
measureKernels(const EvalOptions &options, Device &device,
               const std::optional<EvalReport> &baseline, EvalReport result) {
  if (!baseline)
    return evaluateKernels(options.model, options.kernelOptions, device,
                           result.rates);
  const KernelBaseline before{*baseline, codeBeside(options.baseline),
                              options.thresholds.slower};
  KF_ASSIGN_OR_RETURN(KernelEvaluation all,
                      evaluateKernels(options.model, options.kernelOptions,
                                      device, result.rates, &before));
  for (int i = 0; i < kAgain; ++i) {
    result.kernels = all.kernels;
    const Result<EvalComparison> comparison =
        compareReports(*baseline, result, options.thresholds, all.turns);
    if (!comparison.ok() || comparison->again.empty())
      break;
    KF_ASSIGN_OR_RETURN(KernelEvaluation again,
                        evaluateKernels(options.model, options.kernelOptions,
                                        device, result.rates, &before,
                                        &comparison->again));
    all.merge(std::move(again));
  }
  if (all.withoutCode)
    printNote(std::to_string(all.withoutCode) +
              (all.withoutCode == 1 ? " kernel differs" : " kernels differ") +
              " from the baseline's, whose code is not in " +
              quotePath(before.code.folder()) +
              "; times of two runs are compared, between which the machine may "
              "have changed");
  return all;
}

/// Keeps the code of kernels for who compares with the report in `file`.
Status keepCode(const std::string &file,
                const std::map<std::string, Executable> &kernels) {
  // Nothing lies beside a device or a pipe.
  std::error_code code;
  if (!std::filesystem::is_regular_file(file, code))
    return Status();
  const ExecutableCache cache = codeBeside(file);
  if (Status status = cache.prepare(); !status.ok()) {
    printWarning(status.message() + "; the kernels' code is not kept");
    return Status();
  }
  KF_RETURN_IF_ERROR(cache.clear().status());
  for (const auto &[key, executable] : kernels)
    KF_RETURN_IF_ERROR(cache.store(key, executable));
  return Status();
}

/// The exit code, where nothing fails.
Result<int> evaluate(const EvalOptions &options) {
  std::optional<EvalReport> baseline;
  if (!options.baseline.empty()) {
    KF_ASSIGN_OR_RETURN(baseline, readBaseline(options.baseline));
  }
  catchFirstInterrupt();
  EvalReport result;
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                      openDevice(options.model.device, &terminal()));
  KF_ASSIGN_OR_RETURN(result.environment,
                      environmentOf(options.model, *device));
  result.model = options.model.model;
  if (baseline)
    KF_RETURN_IF_ERROR(
        checkComparable(*baseline, result).in(quotePath(options.baseline)));
  if (baseline && !(options.wantsKernels() && !baseline->kernels.empty()) &&
      !(options.wantsFidelity() && baseline->fidelity))
    return Status::error("the baseline has nothing of what is to be measured; "
                         "measure the same with --json anew")
        .in(quotePath(options.baseline));
  KernelEvaluation kernels;
  if (options.wantsKernels()) {
    CeilingOptions settings;
    settings.cancelled = &interruptFlag();
    KF_ASSIGN_OR_RETURN(result.rates, measureCeilings(*device, settings));
    KF_ASSIGN_OR_RETURN(kernels,
                        measureKernels(options, *device, baseline, result));
    result.kernels = kernels.kernels;
  }
  device.reset(); // its threads, and what its memory holds
  if (options.wantsFidelity()) {
    KF_ASSIGN_OR_RETURN(
        const std::vector<std::vector<int32_t>> texts,
        fidelityTexts(options.model, options.file, options.tokens));
    KF_ASSIGN_OR_RETURN(result.fidelity, measureFidelity(options.model, texts));
  }
  if (options.json != "-")
    KF_RETURN_IF_ERROR(writeStdout(tableOf(result)));
  if (!options.json.empty())
    KF_RETURN_IF_ERROR(writeOutput(options.json, toJson(result)));
  if (!options.json.empty() && options.json != "-" && options.wantsKernels())
    KF_RETURN_IF_ERROR(keepCode(options.json, kernels.code));
  if (!baseline)
    return int(ExitSuccess);
  Result<EvalComparison> comparison =
      compareReports(*baseline, result, options.thresholds, kernels.turns);
  if (!comparison.ok())
    return comparison.status().in(quotePath(options.baseline));
  std::fputs(comparison->text.c_str(), stderr);
  if (comparison->regressions)
    return Status::error(
        std::to_string(comparison->regressions) +
        (comparison->regressions == 1 ? " result is" : " results are") +
        " worse than the baseline " + quotePath(options.baseline));
  if (comparison->unclear) {
    printError("the machine is too noisy to judge " +
               std::to_string(comparison->unclear) + " of " +
               std::to_string(comparison->compared) +
               " results, and none is known to be worse than the baseline " +
               quotePath(options.baseline) +
               ": measure again when nothing else runs, or with more "
               "--repetitions");
    return int(ExitUnclear);
  }
  std::string verdict = "as good as the baseline";
  if (comparison->onlyBaseline || comparison->onlyNow)
    verdict += " in what both have, " + std::to_string(comparison->compared) +
               " of its " +
               std::to_string(comparison->compared + comparison->onlyBaseline) +
               " results";
  std::fputs((verdict + "\n").c_str(), stderr);
  return int(ExitSuccess);
}

} // namespace

int kf::runEval(Arguments arguments) {
  EvalOptions options;
  OptionParser parser(
      "eval [MODEL] [options]",
      "Measures how fast a device's kernels are and how near to the "
      "reference, and how near a model's logits are. Without MODEL, kernels "
      "are those of a layer of a transformer, in every type of weights, and "
      "the logits the embedded model's.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  const Result<int> code = evaluate(options);
  if (code.ok())
    return *code;
  return code.status().isCancelled()
             ? reportInterrupt("nothing is known of the rest")
             : report(code.status());
}
