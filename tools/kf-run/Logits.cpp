//===- Logits.cpp - kf-run logits -----------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interrupt.h"
#include "ModelFlags.h"
#include "Prompt.h"
#include "Report.h"

#include "runtime/session/Scores.h"

using namespace kf;

namespace {

/// What is known of every position, and the logits of the last one.
struct Scores {
  std::vector<int64_t> argmax;
  std::vector<double> logSumExp;
  std::vector<float> last;
};

/// "[1,2,3]".
template <typename T, typename Format>
std::string jsonArray(const std::vector<T> &values, Format format) {
  std::string out = "[";
  for (const T &value : values) {
    if (out.size() > 1)
      out += ',';
    out += format(value);
  }
  return out + "]";
}

std::string jsonReport(const Scores &scores) {
  auto integer = [](int64_t value) { return std::to_string(value); };
  auto real = [](auto value) { return jsonNumber(value); };
  return "{\"argmax\": " + jsonArray(scores.argmax, integer) +
         ",\n \"logsumexp\": " + jsonArray(scores.logSumExp, real) +
         ",\n \"last_logits\": " + jsonArray(scores.last, real) + "}\n";
}

std::string textReport(std::span<const int32_t> ids, const Scores &scores) {
  std::string out = "position  id  argmax  logsumexp\n";
  for (size_t i = 0; i < ids.size(); ++i)
    out += std::to_string(i) + "  " + std::to_string(ids[i]) + "  " +
           std::to_string(scores.argmax[i]) + "  " +
           jsonNumber(scores.logSumExp[i]) + "\n";
  return out;
}

Result<Scores> score(const ModelFlags &options, std::span<const int32_t> ids) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Session> run,
                      openSession(options, false));
  KF_RETURN_IF_ERROR(run->start({.tokens = static_cast<int64_t>(ids.size())}));
  catchFirstInterrupt();
  Scores scores;
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                      run->createSequence());
  const Model &model = run->engine().model();
  KF_RETURN_IF_ERROR(model.explain(readLogits(
      *sequence, ids, [&](size_t index, std::span<const float> logits) {
        KF_RETURN_IF_ERROR(checkLogits(model, index, logits));
        scores.argmax.push_back(argmax(logits));
        scores.logSumExp.push_back(logSumExp(logits));
        if (index + 1 == ids.size())
          scores.last.assign(logits.begin(), logits.end());
        return Status();
      })));
  KF_RETURN_IF_ERROR(showProfile(options, *run));
  return scores;
}

} // namespace

int kf::runLogits(Arguments arguments) {
  ModelFlags options;
  std::string idsText;
  std::string json;
  OptionParser parser(
      "logits [MODEL] --ids 1,2,3 [options]",
      "Reads token ids and prints, for every position, the most likely next "
      "token and the logarithm of the sum of exponentials of all logits.");
  parser.text({"ids", 0, "1,2,3"}, idsText, "the token ids to read");
  parser.json(json, "\"argmax\" and \"logsumexp\" of every position, "
                    "\"last_logits\" of the last one, nothing rounded");
  options.addTo(parser);
  options.addRanksTo(parser);
  options.lora.addOneTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (idsText.empty())
    return parser.usageError("--ids is missing");
  Result<std::vector<int32_t>> ids = parseIds(idsText);
  if (!ids.ok())
    return parser.usageError(ids.message());
  Result<Scores> scores = score(options, *ids);
  if (scores.status().isCancelled())
    return reportInterrupt("no scores are written");
  if (!scores.ok())
    return report(scores.status());
  return report(json.empty() ? writeStdout(textReport(*ids, *scores))
                             : writeOutput(json, jsonReport(*scores)));
}
