//===- CompareReport.cpp - Answers of servers and the model, side by side -===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompareReport.h"
#include "JsonDocument.h"

#include "runtime/client/AnswerComparison.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

using namespace kf;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kTail = 0.99;

std::string formatted(const char *format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

std::optional<Quantiles> quantilesOf(const std::vector<double> &samples) {
  if (samples.empty())
    return std::nullopt;
  return Quantiles{quantileOf(samples, 0.5), quantileOf(samples, kTail)};
}

/// Adds how alike two texts are to sums.
void compareTexts(const std::string &text, const std::string &own,
                  TargetSummary &summary) {
  ++summary.compared;
  summary.equal += text == own;
  const double common = static_cast<double>(commonCharacters(text, own));
  const double all = static_cast<double>(countCharacters(own));
  summary.commonCharacters += common;
  summary.commonShare += all > 0 ? common / all : text.empty();
}

} // namespace

TargetSummary kf::summarize(const TargetRun &run,
                            const std::vector<RemoteRequest> &requests,
                            const TargetRun &own) {
  TargetSummary summary;
  std::vector<double> first, between, rates;
  int64_t prompts = 0;
  bool countsPrompts = true;
  for (size_t i = 0; i < requests.size(); ++i) {
    const RemoteOutcome &outcome = run.outcomes[i];
    summary.retries += outcome.retries;
    if (!outcome.error.ok()) {
      ++(outcome.error.isCancelled() ? summary.cancelled : summary.failed);
      continue;
    }
    ++summary.answered;
    const Answer &answer = outcome.answer;
    const std::vector<double> &pieces = answer.pieces;
    const int64_t tokens =
        answer.outputTokens.value_or(static_cast<int64_t>(pieces.size()));
    summary.outputTokens += tokens;
    summary.countsTokens &= answer.outputTokens.has_value();
    countsPrompts &= answer.promptTokens.has_value();
    prompts += answer.promptTokens.value_or(0);
    if (!pieces.empty())
      first.push_back(pieces.front());
    for (size_t j = 1; j < pieces.size(); ++j)
      between.push_back(pieces[j] - pieces[j - 1]);
    if (tokens > 1 && pieces.size() > 1 && pieces.back() > pieces.front())
      rates.push_back(static_cast<double>(tokens - 1) /
                      (pieces.back() - pieces.front()));
    if (!run.isOwn && requests[i].isGreedy && own.outcomes[i].error.ok())
      compareTexts(answer.text, own.outcomes[i].answer.text, summary);
  }
  summary.firstPiece = quantilesOf(first);
  summary.betweenPieces = quantilesOf(between);
  if (!rates.empty())
    summary.tokensPerSecondOfText = quantileOf(rates, 0.5);
  if (countsPrompts && summary.answered)
    summary.promptTokens = prompts;
  if (run.seconds > 0)
    summary.tokensPerSecond =
        static_cast<double>(summary.outputTokens) / run.seconds;
  if (run.hasPrices && summary.promptTokens && summary.countsTokens)
    summary.cost =
        (static_cast<double>(prompts) * run.inputPrice +
         static_cast<double>(summary.outputTokens) * run.outputPrice) /
        1e6;
  if (summary.compared) {
    summary.commonCharacters /= static_cast<double>(summary.compared);
    summary.commonShare /= static_cast<double>(summary.compared);
  }
  return summary;
}

//===----------------------------------------------------------------------===//
// For people
//===----------------------------------------------------------------------===//

namespace {

std::string milliseconds(const std::optional<Quantiles> &quantiles) {
  if (!quantiles)
    return "-";
  auto text = [](double seconds) {
    return formatted(seconds < 0.1 ? "%.1f" : "%.0f", seconds * 1e3);
  };
  return text(quantiles->median) + " / " + text(quantiles->p99);
}

std::vector<std::string> cellsOf(const TargetRun &run,
                                 const TargetSummary &summary) {
  const std::string equal =
      run.isOwn ? ""
      : summary.compared == 0
          ? "-"
          : formatted("%.1f %%", 100 * static_cast<double>(summary.equal) /
                                     static_cast<double>(summary.compared));
  std::string name = printableText(run.name, 120);
  if (!run.model.empty())
    name += " " + printableText(run.model, 120);
  std::ranges::replace(name, '|', '/');
  return {
      std::move(name),
      std::to_string(summary.answered),
      std::to_string(summary.failed) +
          (summary.cancelled
               ? " + " + std::to_string(summary.cancelled) + " cancelled"
               : ""),
      std::to_string(summary.retries),
      milliseconds(summary.firstPiece),
      milliseconds(summary.betweenPieces),
      summary.tokensPerSecondOfText
          ? formatted("%.1f", *summary.tokensPerSecondOfText)
          : "-",
      formatted("%.1f", summary.tokensPerSecond),
      (summary.countsTokens ? "" : "~") + std::to_string(summary.outputTokens),
      summary.cost ? formatted("%.6f", *summary.cost) : "-",
      equal,
      summary.compared ? formatted("%.1f", summary.commonCharacters) +
                             formatted(" (%.1f %%)", 100 * summary.commonShare)
      : run.isOwn      ? ""
                       : "-"};
}

} // namespace

std::string kf::compareTable(std::span<const TargetRun> runs,
                             std::span<const TargetSummary> summaries) {
  std::vector<std::vector<std::string>> rows = {
      {"server", "ok", "failed", "retries", "first token ms", "between ms",
       "t/s of a text", "t/s", "tokens", "cost", "equal", "common characters"}};
  for (size_t i = 0; i < runs.size(); ++i)
    rows.push_back(cellsOf(runs[i], summaries[i]));
  std::vector<size_t> widths(rows.front().size());
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], countCharacters(row[i]));
  auto line = [&](const std::vector<std::string> &row) {
    std::string text = "|";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - countCharacters(row[i]), ' ');
      text +=
          i == 0 ? " " + row[i] + blanks + " |" : " " + blanks + row[i] + " |";
    }
    return text + "\n";
  };
  std::string out = line(rows.front()) + "|";
  for (size_t i = 0; i < widths.size(); ++i)
    out += i == 0 ? " " + std::string(widths[i], '-') + " |"
                  : " " + std::string(widths[i] - 1, '-') + ": |";
  out += "\n";
  for (size_t i = 1; i < rows.size(); ++i)
    out += line(rows[i]);
  return out;
}

//===----------------------------------------------------------------------===//
// For programs
//===----------------------------------------------------------------------===//

namespace {

Json orNull(const auto &value) { return value ? Json(*value) : Json(nullptr); }

Json quantilesJson(const std::optional<Quantiles> &quantiles) {
  if (!quantiles)
    return nullptr;
  return {{"p50", quantiles->median * 1e3}, {"p99", quantiles->p99 * 1e3}};
}

Json presetJson(const PresetUse &preset) {
  if (preset.name.empty())
    return nullptr;
  Json set = Json::object();
  for (const auto &[option, value] : preset.options)
    set[option] = value;
  return {{"name", preset.name}, {"sets", set}};
}

Json summaryJson(const TargetRun &run, const TargetSummary &summary) {
  Json json = {
      {"server", run.isOwn ? Json(nullptr) : Json(run.name)},
      {"model", run.isOwn ? run.name : run.model},
      {"answered", summary.answered},
      {"failed", summary.failed},
      {"cancelled", summary.cancelled},
      {"retries", summary.retries},
      {"seconds", run.seconds},
      {"first_token_ms", quantilesJson(summary.firstPiece)},
      {"between_tokens_ms", quantilesJson(summary.betweenPieces)},
      {"tokens_per_second_of_text", orNull(summary.tokensPerSecondOfText)},
      {"tokens_per_second", summary.tokensPerSecond},
      {"output_tokens", summary.outputTokens},
      {"output_tokens_counted_by",
       summary.countsTokens ? "server" : "pieces of text"},
      {"prompt_tokens", orNull(summary.promptTokens)},
      {"cost", orNull(summary.cost)}};
  if (run.isOwn)
    return json;
  const bool any = summary.compared > 0;
  json["agreement"] = {
      {"compared", summary.compared},
      {"equal", summary.equal},
      {"common_characters", any ? Json(summary.commonCharacters) : Json()},
      {"common_share", any ? Json(summary.commonShare) : Json()}};
  return json;
}

Json outcomeJson(const RemoteRequest &request, const RemoteOutcome &outcome) {
  Json json = {{"line", request.line}};
  if (!request.id.empty())
    json["id"] = readDocument(request.id);
  if (outcome.retries)
    json["retries"] = outcome.retries;
  if (!outcome.error.ok()) {
    json["error"] = outcome.error.message();
    return json;
  }
  const Answer &answer = outcome.answer;
  json["text"] = answer.text;
  json["finish_reason"] = answer.finishReason;
  json["greedy"] = request.isGreedy;
  json["prompt_tokens"] = orNull(answer.promptTokens);
  json["output_tokens"] = orNull(answer.outputTokens);
  json["first_token_ms"] =
      answer.pieces.empty() ? Json(nullptr) : Json(answer.pieces.front() * 1e3);
  json["seconds"] = answer.seconds;
  return json;
}

/// Nothing but ASCII, whatever a server has sent: a terminal may show it.
std::string dump(const Json &json, int indent) {
  return documentText(json, indent, /*ascii=*/true) + "\n";
}

} // namespace

std::string kf::compareLines(std::span<const TargetRun> runs,
                             std::span<const TargetSummary> summaries,
                             const PresetUse &preset) {
  std::string out;
  for (size_t i = 0; i < runs.size(); ++i) {
    Json json = summaryJson(runs[i], summaries[i]);
    json["preset"] = presetJson(preset);
    out += dump(json, -1);
  }
  return out;
}

std::string kf::compareJson(std::span<const TargetRun> runs,
                            std::span<const TargetSummary> summaries,
                            const std::vector<RemoteRequest> &requests,
                            const PresetUse &preset) {
  Json json = {{"requests", requests.size()},
               {"preset", presetJson(preset)},
               {"runs", Json::array()}};
  for (size_t i = 0; i < runs.size(); ++i) {
    Json run = summaryJson(runs[i], summaries[i]);
    run["answers"] = Json::array();
    for (size_t j = 0; j < requests.size(); ++j)
      run["answers"].push_back(outcomeJson(requests[j], runs[i].outcomes[j]));
    json["runs"].push_back(std::move(run));
  }
  return dump(json, 2);
}
