//===- EvalReport.cpp - What kf-run eval found ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/measure/EvalReport.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"
#include "runtime/measure/Statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

using namespace kf;

namespace {

using Json = nlohmann::json;

/// Deviations of version 1 were moved by runs far off.
constexpr int64_t kVersion = 2;

/// The most kernels that a file may list.
constexpr size_t kMostKernels = 100000;

std::string formatted(const char *format, double value) {
  char buffer[48];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

double rate(double amount, double seconds) {
  return seconds > 0 ? amount / seconds * 1e-9 : 0;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string toJson(const EvalEnvironment &environment) {
  return jsonObject({{"version", jsonText(environment.version)},
                     {"compiler", jsonText(environment.compiler)},
                     {"device", jsonText(environment.device)},
                     {"description", jsonText(environment.description)},
                     {"threads", jsonText(environment.threads)}});
}

std::string toJson(const MachineRates &rates) {
  return jsonObject(
      {{"read_bytes_per_second", jsonText(rates.readBytesPerSecond)},
       {"f32_flops_per_second", jsonText(rates.f32FlopsPerSecond)},
       {"i8_ops_per_second", jsonText(rates.i8OpsPerSecond)},
       {"bf16_flops_per_second", jsonText(rates.bf16FlopsPerSecond)}});
}

std::string toJson(const EvalKernel &kernel) {
  return jsonObject(
      {{"name", jsonText(kernel.name)},
       {"description", jsonText(kernel.description)},
       {"rows", jsonText(kernel.rows)},
       {"depth", jsonText(kernel.depth)},
       {"runs", jsonText(kernel.runs)},
       {"seconds", jsonText(kernel.seconds)},
       {"deviation", jsonText(kernel.deviation)},
       {"bytes", jsonText(kernel.bytes)},
       {"flops", jsonText(kernel.flops)},
       {"gb_per_second", jsonText(rate(kernel.bytes, kernel.seconds))},
       {"gflops_per_second", jsonText(rate(kernel.flops, kernel.seconds))},
       {"ceiling_fraction", jsonText(kernel.ceiling)},
       {"max_error", jsonText(kernel.maxError)},
       {"mean_error", jsonText(kernel.meanError)},
       {"cosine", jsonText(kernel.cosine)},
       {"complaint", jsonText(kernel.complaint)}});
}

std::string toJson(const FidelityResult &fidelity) {
  return jsonObject({{"tokens", jsonText(fidelity.tokens)},
                     {"kl_mean", jsonText(fidelity.klMean)},
                     {"kl_max", jsonText(fidelity.klMax)},
                     {"top1_agreement", jsonText(fidelity.top1Agreement)},
                     {"nll_device", jsonText(fidelity.nllDevice)},
                     {"nll_reference", jsonText(fidelity.nllReference)}});
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The member `key` of the object `json`.
Result<const Json *> member(const Json &json, const char *key) {
  if (!json.is_object())
    return Status::error("an object is expected");
  auto found = json.find(key);
  if (found == json.end())
    return Status::error(inQuotes(key) + " is missing");
  return &*found;
}

Status read(const Json &json, const char *key, std::string &out) {
  KF_ASSIGN_OR_RETURN(const Json *value, member(json, key));
  if (!value->is_string())
    return Status::error(inQuotes(key) + " is no text");
  out = value->get_ref<const std::string &>();
  return Status();
}

/// What comparisons print as it is: nothing that a terminal obeys.
Status readPrinted(const Json &json, const char *key, std::string &out) {
  KF_RETURN_IF_ERROR(read(json, key, out));
  if (std::ranges::any_of(out, [](char c) { return c < ' ' || c > '~'; }))
    return Status::error(inQuotes(key) + " has characters other than ASCII's "
                                         "that print");
  return Status();
}

/// A finite number from `least` to `most`.
Status read(const Json &json, const char *key, double &out, double least = 0,
            double most = 1e30) {
  KF_ASSIGN_OR_RETURN(const Json *value, member(json, key));
  if (!value->is_number())
    return Status::error(inQuotes(key) + " is no number");
  out = value->get<double>();
  if (!(out >= least && out <= most))
    return Status::error(inQuotes(key) + " is " + value->dump() +
                         ", which is not from " + formatted("%g", least) +
                         " to " + formatted("%g", most));
  return Status();
}

Status read(const Json &json, const char *key, int64_t &out) {
  KF_ASSIGN_OR_RETURN(const Json *value, member(json, key));
  if (!value->is_number_integer())
    return Status::error(inQuotes(key) + " is no integer");
  double number = 0;
  KF_RETURN_IF_ERROR(read(json, key, number, 0, 1e15));
  out = static_cast<int64_t>(number);
  return Status();
}

Status read(const Json &json, EvalEnvironment &out) {
  KF_RETURN_IF_ERROR(read(json, "version", out.version));
  KF_RETURN_IF_ERROR(read(json, "compiler", out.compiler));
  KF_RETURN_IF_ERROR(read(json, "device", out.device));
  KF_RETURN_IF_ERROR(read(json, "description", out.description));
  return read(json, "threads", out.threads);
}

Status read(const Json &json, MachineRates &out) {
  KF_RETURN_IF_ERROR(
      read(json, "read_bytes_per_second", out.readBytesPerSecond));
  KF_RETURN_IF_ERROR(read(json, "f32_flops_per_second", out.f32FlopsPerSecond));
  KF_RETURN_IF_ERROR(read(json, "i8_ops_per_second", out.i8OpsPerSecond));
  // Older files do not tell.
  if (!json.contains("bf16_flops_per_second"))
    return Status();
  return read(json, "bf16_flops_per_second", out.bf16FlopsPerSecond);
}

Status read(const Json &json, EvalKernel &out) {
  KF_RETURN_IF_ERROR(readPrinted(json, "name", out.name));
  KF_RETURN_IF_ERROR(readPrinted(json, "description", out.description));
  KF_RETURN_IF_ERROR(read(json, "rows", out.rows));
  KF_RETURN_IF_ERROR(read(json, "depth", out.depth));
  KF_RETURN_IF_ERROR(read(json, "runs", out.runs));
  KF_RETURN_IF_ERROR(read(json, "seconds", out.seconds));
  KF_RETURN_IF_ERROR(read(json, "deviation", out.deviation));
  KF_RETURN_IF_ERROR(read(json, "bytes", out.bytes));
  KF_RETURN_IF_ERROR(read(json, "flops", out.flops));
  KF_RETURN_IF_ERROR(read(json, "ceiling_fraction", out.ceiling));
  KF_RETURN_IF_ERROR(read(json, "max_error", out.maxError));
  KF_RETURN_IF_ERROR(read(json, "mean_error", out.meanError));
  // Of rounded numbers, a little more than 1 may come out.
  KF_RETURN_IF_ERROR(read(json, "cosine", out.cosine, -1.001, 1.001));
  return read(json, "complaint", out.complaint);
}

Status read(const Json &json, FidelityResult &out) {
  KF_RETURN_IF_ERROR(read(json, "tokens", out.tokens));
  KF_RETURN_IF_ERROR(read(json, "kl_mean", out.klMean));
  KF_RETURN_IF_ERROR(read(json, "kl_max", out.klMax));
  KF_RETURN_IF_ERROR(read(json, "top1_agreement", out.top1Agreement, 0, 1));
  KF_RETURN_IF_ERROR(read(json, "nll_device", out.nllDevice));
  return read(json, "nll_reference", out.nllReference);
}

Status read(const Json &json, EvalReport &out) {
  int64_t version = 0;
  KF_RETURN_IF_ERROR(read(json, "version", version));
  if (version != kVersion)
    return Status::error("version " + std::to_string(version) +
                         " is not known; this is version " +
                         std::to_string(kVersion));
  KF_ASSIGN_OR_RETURN(const Json *environment, member(json, "environment"));
  KF_RETURN_IF_ERROR(read(*environment, out.environment).in("environment"));
  KF_RETURN_IF_ERROR(read(json, "model", out.model));
  KF_ASSIGN_OR_RETURN(const Json *rates, member(json, "rates"));
  KF_RETURN_IF_ERROR(read(*rates, out.rates).in("rates"));
  KF_ASSIGN_OR_RETURN(const Json *kernels, member(json, "kernels"));
  if (!kernels->is_array())
    return Status::error("'kernels' is no array");
  if (kernels->size() > kMostKernels)
    return Status::error("'kernels' has " + std::to_string(kernels->size()) +
                         " entries; " + std::to_string(kMostKernels) +
                         " are possible");
  for (const Json &kernel : *kernels)
    KF_RETURN_IF_ERROR(
        read(kernel, out.kernels.emplace_back())
            .in("kernel " + std::to_string(out.kernels.size() - 1)));
  KF_ASSIGN_OR_RETURN(const Json *fidelity, member(json, "fidelity"));
  if (fidelity->is_null())
    return Status();
  return read(*fidelity, out.fidelity.emplace()).in("fidelity");
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// Lines about what differs.
class Differences {
public:
  explicit Differences(const EvalThresholds &thresholds)
      : thresholds(thresholds) {}

  void compareTimes(const EvalKernel &baseline, const EvalKernel &now) {
    const double change = now.seconds - baseline.seconds;
    const double noise =
        thresholds.noise * std::hypot(baseline.deviation, now.deviation);
    if (std::abs(change) <= thresholds.slower * baseline.seconds ||
        std::abs(change) <= noise)
      return;
    add(change > 0,
        now.key() + ": " + times(now) + ", " + times(baseline) + " before (" +
            formatted("%+.1f%%", 100 * change / baseline.seconds) + ")");
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
  static std::string times(const EvalKernel &kernel) {
    return formatted("%.4g", kernel.seconds * 1e6) + " +- " +
           formatted("%.2g", kernel.deviation * 1e6) + " us";
  }

  const EvalThresholds &thresholds;
};

} // namespace

std::string EvalKernel::key() const {
  std::string text = name + " (" + description + "), " + std::to_string(rows) +
                     (rows == 1 ? " row" : " rows");
  return depth ? text + " at " + std::to_string(depth) : text;
}

void EvalKernel::setTimes(std::span<const double> samples) {
  const Statistics statistics = statisticsOf(samples);
  runs = static_cast<int64_t>(statistics.count);
  seconds = statistics.median;
  deviation = statistics.spread;
}

std::string kf::toJson(const EvalReport &report) {
  std::string kernels;
  for (const EvalKernel &kernel : report.kernels)
    kernels += (kernels.empty() ? "\n" : ",\n") + ::toJson(kernel);
  return "{\"version\":" + jsonText(kVersion) +
         ",\n\"environment\":" + ::toJson(report.environment) +
         ",\n\"model\":" + jsonText(report.model) +
         ",\n\"rates\":" + ::toJson(report.rates) + ",\n\"kernels\":[" +
         kernels + "],\n\"fidelity\":" +
         (report.fidelity ? ::toJson(*report.fidelity) : "null") + "}\n";
}

Result<EvalReport> kf::parseEvalReport(std::string_view text) try {
  KF_ASSIGN_OR_RETURN(JsonDocument document, parseJson(text));
  EvalReport report;
  KF_RETURN_IF_ERROR(read(*document, report));
  return report;
} catch (...) {
  return statusOfException();
}

std::string kf::tableOf(const EvalReport &report) {
  std::string text;
  char line[200];
  if (!report.kernels.empty()) {
    size_t width = 6;
    for (const EvalKernel &kernel : report.kernels)
      width = std::max(width, kernel.name.size());
    std::snprintf(line, sizeof(line),
                  "  rows  depth        us    +-    GB/s  GFLOP/s  ceiling  "
                  "max error  mean error  1 - cosine  operands\n");
    text += "kernel" + std::string(width - 6, ' ') + line;
    for (const EvalKernel &kernel : report.kernels) {
      const std::string ceiling =
          kernel.ceiling > 0 ? formatted("%.1f%%", 100 * kernel.ceiling) : "-";
      std::snprintf(line, sizeof(line),
                    "  %4lld  %5lld  %8.1f  %3.0f%%  %6.2f  %7.1f  %7s  %9.2e  "
                    "%10.2e  %10.2e  ",
                    static_cast<long long>(kernel.rows),
                    static_cast<long long>(kernel.depth), kernel.seconds * 1e6,
                    kernel.seconds > 0 ? 100 * kernel.deviation / kernel.seconds
                                       : 0,
                    rate(kernel.bytes, kernel.seconds),
                    rate(kernel.flops, kernel.seconds), ceiling.c_str(),
                    kernel.maxError, kernel.meanError, 1 - kernel.cosine);
      text += kernel.name + std::string(width - kernel.name.size(), ' ') +
              line + kernel.description +
              (kernel.complaint.empty() ? "" : "  WRONG: " + kernel.complaint) +
              "\n";
    }
  }
  if (report.fidelity) {
    const FidelityResult &fidelity = *report.fidelity;
    text += "fidelity over " + std::to_string(fidelity.tokens) +
            " tokens: KL divergence " + formatted("%.3g", fidelity.klMean) +
            " mean, " + formatted("%.3g", fidelity.klMax) +
            " at most; top-1 agreement " +
            formatted("%.2f%%", 100 * fidelity.top1Agreement) +
            "; nats per token " + formatted("%.5f", fidelity.nllDevice) +
            ", the reference's " + formatted("%.5f", fidelity.nllReference) +
            "\n";
  }
  return text;
}

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
                                          const EvalThresholds &thresholds) {
  KF_RETURN_IF_ERROR(checkComparable(baseline, now));
  Differences differences(thresholds);
  if (baseline.environment.description != now.environment.description ||
      baseline.environment.threads != now.environment.threads)
    differences.note("the baseline was measured on " +
                     inQuotes(baseline.environment.description) + " with " +
                     std::to_string(baseline.environment.threads) +
                     " threads; times say little");
  std::map<std::string, const EvalKernel *> known;
  for (const EvalKernel &kernel : baseline.kernels)
    known.emplace(kernel.key(), &kernel);
  std::set<std::string> seen;
  for (const EvalKernel &kernel : now.kernels) {
    const std::string key = kernel.key();
    seen.insert(key);
    if (!kernel.complaint.empty())
      differences.add(true, key + ": " + kernel.complaint);
    auto found = known.find(key);
    if (found == known.end()) {
      differences.addOnlyNow(key);
      continue;
    }
    ++differences.result.compared;
    const EvalKernel &before = *found->second;
    differences.compareTimes(before, kernel);
    differences.compareErrors(key + ": 1 - cosine", 1 - before.cosine,
                              1 - kernel.cosine, 1e-6);
    differences.compareErrors(key + ": mean error", before.meanError,
                              kernel.meanError, 1e-6);
  }
  for (const EvalKernel &kernel : baseline.kernels)
    if (seen.insert(kernel.key()).second)
      differences.addOnlyBaseline(kernel.key());
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
