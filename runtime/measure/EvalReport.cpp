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

using namespace kf;

namespace {

using Json = nlohmann::json;

/// Version 2 had no samples, and nothing of the code.
constexpr int64_t kVersion = 3;

/// The most kernels that a file may list, and runs of one.
constexpr size_t kMostKernels = 100000, kMostRuns = 1000;

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
       {"i8_tile_ops_per_second", jsonText(rates.i8TileOpsPerSecond)},
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
       {"samples", jsonArray(kernel.samples)},
       {"disturbed", jsonText(kernel.disturbed)},
       {"code", jsonText(kernel.code)},
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

Status read(const Json &json, const char *key, bool &out) {
  KF_ASSIGN_OR_RETURN(const Json *value, member(json, key));
  if (!value->is_boolean())
    return Status::error(inQuotes(key) + " is neither true nor false");
  out = value->get<bool>();
  return Status();
}

/// Finite positive numbers.
Status read(const Json &json, const char *key, std::vector<double> &out) {
  KF_ASSIGN_OR_RETURN(const Json *value, member(json, key));
  if (!value->is_array() || value->size() > kMostRuns)
    return Status::error(inQuotes(key) + " is no array of at most " +
                         std::to_string(kMostRuns) + " numbers");
  for (const Json &element : *value) {
    const double number = element.is_number() ? element.get<double>() : 0;
    if (!(number >= 1e-30 && number <= 1e30))
      return Status::error(inQuotes(key) + " has an element that is no number "
                                           "from 1e-30 to 1e+30");
    out.push_back(number);
  }
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
  // Older files do not tell of these.
  if (json.contains("i8_tile_ops_per_second"))
    KF_RETURN_IF_ERROR(
        read(json, "i8_tile_ops_per_second", out.i8TileOpsPerSecond));
  if (json.contains("bf16_flops_per_second"))
    KF_RETURN_IF_ERROR(
        read(json, "bf16_flops_per_second", out.bf16FlopsPerSecond));
  return Status();
}

Status read(const Json &json, EvalKernel &out) {
  KF_RETURN_IF_ERROR(readPrinted(json, "name", out.name));
  KF_RETURN_IF_ERROR(readPrinted(json, "description", out.description));
  KF_RETURN_IF_ERROR(read(json, "rows", out.rows));
  KF_RETURN_IF_ERROR(read(json, "depth", out.depth));
  KF_RETURN_IF_ERROR(read(json, "runs", out.runs));
  KF_RETURN_IF_ERROR(read(json, "seconds", out.seconds));
  KF_RETURN_IF_ERROR(read(json, "deviation", out.deviation));
  KF_RETURN_IF_ERROR(read(json, "samples", out.samples));
  KF_RETURN_IF_ERROR(read(json, "disturbed", out.disturbed));
  KF_RETURN_IF_ERROR(read(json, "code", out.code));
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
  this->samples.clear();
  for (const double sample : samples)
    this->samples.push_back(sample / seconds);
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
  if (!report.kernels.empty())
    text +=
        "kernel: operands\n  rows  depth          us    +-    GB/s  GFLOP/s  "
        "ceiling  max error  mean error  1 - cosine\n";
  std::string_view name, operands;
  for (const EvalKernel &kernel : report.kernels) {
    if (kernel.name != name || kernel.description != operands)
      text += kernel.name + ": " + kernel.description + "\n";
    name = kernel.name;
    operands = kernel.description;
    const std::string ceiling =
        kernel.ceiling > 0 ? formatted("%.1f%%", 100 * kernel.ceiling) : "-";
    std::snprintf(
        line, sizeof(line),
        "  %4lld  %5lld  %10.1f  %3.0f%%  %6.2f  %7.1f  %7s  %9.2e  "
        "%10.2e  %10.2e",
        static_cast<long long>(kernel.rows),
        static_cast<long long>(kernel.depth), kernel.seconds * 1e6,
        kernel.seconds > 0 ? 100 * kernel.deviation / kernel.seconds : 0,
        rate(kernel.bytes, kernel.seconds), rate(kernel.flops, kernel.seconds),
        ceiling.c_str(), kernel.maxError, kernel.meanError, 1 - kernel.cosine);
    text += line;
    if (!kernel.complaint.empty())
      text += "\n    WRONG: " + kernel.complaint;
    text += "\n";
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
