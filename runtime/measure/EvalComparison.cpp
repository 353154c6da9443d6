//===- EvalComparison.cpp - Two reports of kf-run eval --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/EvalComparison.h"

#include "runtime/core/Quote.h"
#include "runtime/measure/Statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace kf;

namespace {

/// Kernels whose ratios tell at least what all have in common.
constexpr size_t kLeastInCommon = 8;
/// How far ratios of kernels differ at least without a meaning, and how many
/// times as far as they do on the average a single one may.
constexpr double kLeastSpread = 0.02, kSpreads = 3;
/// Others that have cores explain no more: of a kernel's runs that they
/// disturbed, and of all kernels whose code is the same.
constexpr double kMostDisturbed = 4, kMostShared = 2;
/// What all kernels have in common is worth a note from this on.
constexpr double kNotedChange = 1.05;

std::string formatted(const char *format, double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

/// Some digits of a number of one unit, whatever its size: "24310", "12.5".
std::string inUnit(double value, int digits) {
  constexpr int most = 3; // behind the point
  const int before =
      value >= 1 ? static_cast<int>(std::floor(std::log10(value))) + 1 : 0;
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f",
                std::clamp(digits - before, 0, most), value);
  std::string number = text;
  while (number.find('.') != number.npos &&
         (number.ends_with('0') || number.ends_with('.')))
    number.pop_back();
  return number;
}

std::string times(double ratio) { return formatted("%.3g times", ratio); }

/// One kernel, in both reports.
struct KernelPair {
  const EvalKernel *before = nullptr, *now = nullptr;
  std::string key;
  TimeRatio ratio;    ///< of the runs of both reports
  double fastest = 1; ///< of the fastest run of each
  double fast = 1;    ///< of their lower quartiles
  bool known = false; ///< whether there are runs of both

  bool isSameCode() const {
    return !now->code.empty() && now->code == before->code;
  }
  bool wasDisturbed() const { return now->disturbed || before->disturbed; }
};

double lowerQuartile(std::vector<double> samples) {
  const auto quarter =
      samples.begin() + static_cast<ptrdiff_t>(samples.size() / 4);
  std::ranges::nth_element(samples, quarter);
  return *quarter;
}

KernelPair pairOf(const EvalKernel &before, const EvalKernel &now) {
  KernelPair pair;
  pair.before = &before;
  pair.now = &now;
  pair.key = now.key();
  const double scale = now.seconds / before.seconds;
  pair.known = !before.samples.empty() && !now.samples.empty() &&
               std::isfinite(scale) && scale > 0;
  if (!pair.known)
    return pair;
  const TimeRatio shares = ratioOfSamples(now.samples, before.samples);
  pair.ratio = {shares.ratio * scale, shares.low * scale, shares.high * scale};
  pair.fastest =
      std::ranges::min(now.samples) / std::ranges::min(before.samples) * scale;
  pair.fast =
      lowerQuartile(now.samples) / lowerQuartile(before.samples) * scale;
  return pair;
}

/// What the ratios of all kernels have in common, which is the machine's, and
/// how far they differ.
struct CommonRatio {
  double ratio = 1;
  double spread = kLeastSpread; ///< of the logarithms
  size_t kernels = 0;           ///< that tell; 0: too few
};

CommonRatio commonOf(const std::vector<KernelPair> &pairs) {
  std::vector<double> logs;
  for (const KernelPair &pair : pairs)
    if (pair.known)
      logs.push_back(std::log(pair.ratio.ratio));
  if (logs.size() < kLeastInCommon)
    return {};
  const Statistics statistics = statisticsOf(logs);
  return {std::exp(statistics.median),
          std::max(statistics.spread, kLeastSpread), logs.size()};
}

/// How many times as slow the machine's rates say that it is; the most that one
/// of them does.
double slowdownOf(const MachineRates &before, const MachineRates &now) {
  double most = 0;
  for (double MachineRates::*rate : kMachineRates)
    if (before.*rate > 0 && now.*rate > 0)
      most = std::max(most, before.*rate / (now.*rate));
  return most;
}

/// Lines about what differs.
class Differences {
public:
  explicit Differences(const EvalThresholds &thresholds)
      : thresholds(thresholds) {}

  void compareTurns(const KernelPair &pair, const TimeRatio &ratio) {
    const TimeVerdict verdict = verdictOf(ratio, thresholds.slower);
    if (verdict == TimeVerdict::Unclear)
      result.again.insert(pair.key);
    add(verdict, pair.key + ": " + times(ratio.ratio) +
                     " as long as the baseline's kernel, in turns" +
                     bounds(ratio));
  }

  void compareSamples(const KernelPair &pair, const CommonRatio &common) {
    TimeRatio ratio = {1, 0, HUGE_VAL};
    if (pair.known) {
      const double width = std::exp(kSpreads * common.spread);
      ratio = {pair.ratio.ratio / common.ratio,
               std::min({pair.ratio.low, pair.fastest, pair.fast}) /
                   common.ratio / width,
               std::max(pair.ratio.high, pair.fast) / common.ratio * width};
    }
    TimeVerdict verdict = verdictOf(ratio, thresholds.slower);
    if (verdict == TimeVerdict::Slower && pair.wasDisturbed() &&
        ratio.low < kMostDisturbed)
      verdict = TimeVerdict::Unclear;
    if (verdict == TimeVerdict::Unclear && pair.isSameCode())
      verdict = TimeVerdict::Same;
    if (verdict == TimeVerdict::Slower || verdict == TimeVerdict::Unclear)
      result.again.insert(pair.key);
    add(verdict,
        pair.key + ": " + measured(*pair.now) + ", " + measured(*pair.before) +
            " before, " + times(ratio.ratio) + " as long" +
            (common.kernels ? " beside the others" : "") + bounds(ratio) +
            (pair.isSameCode() ? ", though its code is the same" : "") +
            (pair.wasDisturbed() ? ", while other processes had cores" : ""));
  }

  /// `isJudged`: the kernels are compared by their runs, and their code is not
  /// known to be the same.
  void compareCommon(const CommonRatio &common, double machine, bool isJudged) {
    if (common.kernels == 0 ||
        std::abs(std::log(common.ratio)) < std::log(kNotedChange))
      return;
    const double allowed =
        std::max(1 + thresholds.slower, isJudged ? 1 : kMostShared);
    const bool isUnclear =
        common.ratio > allowed && machine * allowed < common.ratio;
    const std::string line =
        "all kernels: " + times(common.ratio) +
        " as long as before (median of " + std::to_string(common.kernels) +
        ")" +
        (machine > 0
             ? ", by its rates the machine takes " + times(machine) + " as long"
             : "");
    if (isUnclear)
      add(TimeVerdict::Unclear,
          line + ": the machine may be slower, or all of it");
    else
      note(line);
  }

  /// `rounding` is what an error may change without a meaning.
  void compareErrors(const std::string &what, double baseline, double now,
                     double rounding) {
    const double change = now - baseline;
    if (std::abs(change) <= thresholds.error * baseline ||
        std::abs(change) <= rounding)
      return;
    add(change > 0, what + " " + formatted("%.3g", now) + ", " +
                        formatted("%.3g", baseline) + " before");
  }

  void compareAgreement(double baseline, double now) {
    if (std::abs(now - baseline) <= thresholds.top1)
      return;
    add(now < baseline, "top-1 agreement " + formatted("%.2f%%", 100 * now) +
                            ", " + formatted("%.2f%%", 100 * baseline) +
                            " before");
  }

  void add(bool isWorse, const std::string &line) {
    result.text += (isWorse ? "worse   " : "better  ") + line + "\n";
    result.regressions += isWorse;
  }
  void note(const std::string &line) {
    result.text += "note    " + line + "\n";
  }
  void addOnlyBaseline(const std::string &what) {
    note(what + ": not measured, but in the baseline");
    ++result.onlyBaseline;
  }
  void addOnlyNow(const std::string &what) {
    note(what + ": not in the baseline");
    ++result.onlyNow;
  }

  EvalComparison result;

private:
  void add(TimeVerdict verdict, const std::string &line) {
    if (verdict == TimeVerdict::Slower || verdict == TimeVerdict::Faster)
      add(verdict == TimeVerdict::Slower, line);
    if (verdict != TimeVerdict::Unclear)
      return;
    result.text += "unclear " + line + "\n";
    ++result.unclear;
  }

  static std::string measured(const EvalKernel &kernel) {
    return inUnit(kernel.seconds * 1e6, 4) + " +- " +
           inUnit(kernel.deviation * 1e6, 2) + " us";
  }
  static std::string bounds(const TimeRatio &ratio) {
    return ratio.low > 0 ? " (" + formatted("%.3g", ratio.low) + " to " +
                               formatted("%.3g", ratio.high) + ")"
                         : " (too few runs to say)";
  }

  const EvalThresholds &thresholds;
};

void compareKernels(const EvalReport &baseline, const EvalReport &now,
                    const TurnRatios &turns, Differences &differences) {
  std::map<std::string, const EvalKernel *> known;
  for (const EvalKernel &kernel : baseline.kernels)
    known.emplace(kernel.key(), &kernel);
  std::set<std::string> seen;
  std::vector<KernelPair> pairs;
  for (const EvalKernel &kernel : now.kernels) {
    const std::string key = kernel.key();
    seen.insert(key);
    if (!kernel.complaint.empty())
      differences.add(true, key + ": " + kernel.complaint);
    if (auto found = known.find(key); found != known.end())
      pairs.push_back(pairOf(*found->second, kernel));
    else
      differences.addOnlyNow(key);
  }
  const CommonRatio common = commonOf(pairs);
  size_t judged = 0;
  for (const KernelPair &pair : pairs)
    judged += !turns.contains(pair.key) && !pair.isSameCode();
  differences.compareCommon(common, slowdownOf(baseline.rates, now.rates),
                            2 * judged > pairs.size());
  for (const KernelPair &pair : pairs) {
    ++differences.result.compared;
    if (auto found = turns.find(pair.key); found != turns.end())
      differences.compareTurns(pair, found->second);
    else
      differences.compareSamples(pair, common);
    differences.compareErrors(pair.key + ": 1 - cosine",
                              1 - pair.before->cosine, 1 - pair.now->cosine,
                              1e-6);
    differences.compareErrors(pair.key + ": mean error", pair.before->meanError,
                              pair.now->meanError, 1e-6);
  }
  for (const EvalKernel &kernel : baseline.kernels)
    if (seen.insert(kernel.key()).second)
      differences.addOnlyBaseline(kernel.key());
}

} // namespace

Status kf::checkComparable(const EvalReport &baseline, const EvalReport &now) {
  if (baseline.environment.device != now.environment.device)
    return Status::error("the baseline was measured on " +
                         inQuotes(baseline.environment.device) + ", this on " +
                         inQuotes(now.environment.device));
  auto of = [](const EvalReport &report) {
    return report.model.empty() ? "without MODEL"
                                : "of " + inQuotes(report.model);
  };
  if (baseline.model != now.model)
    return Status::error("the baseline is " + of(baseline) + ", this " +
                         of(now));
  return Status();
}

Result<EvalComparison> kf::compareReports(const EvalReport &baseline,
                                          const EvalReport &now,
                                          const EvalThresholds &thresholds,
                                          const TurnRatios &turns) {
  KF_RETURN_IF_ERROR(checkComparable(baseline, now));
  Differences differences(thresholds);
  if (baseline.environment.description != now.environment.description ||
      baseline.environment.threads != now.environment.threads)
    differences.note("the baseline was measured on " +
                     inQuotes(baseline.environment.description) + " with " +
                     std::to_string(baseline.environment.threads) +
                     " threads; times say little");
  compareKernels(baseline, now, turns, differences);
  if (baseline.fidelity && !now.fidelity)
    differences.addOnlyBaseline("fidelity");
  if (!baseline.fidelity && now.fidelity)
    differences.addOnlyNow("fidelity");
  if (baseline.fidelity && now.fidelity) {
    ++differences.result.compared;
    differences.compareErrors("KL divergence", baseline.fidelity->klMean,
                              now.fidelity->klMean, 1e-5);
    differences.compareAgreement(baseline.fidelity->top1Agreement,
                                 now.fidelity->top1Agreement);
  }
  if (!differences.result.compared)
    return Status::error("the baseline has nothing of what was measured");
  return std::move(differences.result);
}
