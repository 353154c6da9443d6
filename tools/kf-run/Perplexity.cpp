//===- Perplexity.cpp - kf-run perplexity ---------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Documents.h"
#include "Interrupt.h"
#include "ModelSession.h"
#include "Progress.h"
#include "Report.h"
#include "Scores.h"

#include <algorithm>
#include <cstdio>
#include <functional>

using namespace kf;

namespace {

/// Sum of -log p over the tokens that were predicted.
struct Loss {
  double sum = 0;
  int64_t tokens = 0;

  double perToken() const { return sum / static_cast<double>(tokens); }
};

/// How much of all texts is scored, and how well they were predicted so far.
class ScoringProgress {
public:
  explicit ScoringProgress(std::span<const std::string> documents) {
    for (const std::string &document : documents)
      bytes += document.size();
  }
  /// Goes on to the next document.
  void begin(const std::string &document) {
    before += current;
    current = document.size();
  }
  /// `share` of the document is scored.
  void show(double share, const Loss &loss) {
    char perplexity[48];
    std::snprintf(perplexity, sizeof(perplexity), "perplexity %.4f",
                  std::exp(loss.perToken()));
    line.update(
        (static_cast<double>(before) + share * static_cast<double>(current)) /
            static_cast<double>(bytes),
        perplexity);
  }

private:
  size_t bytes = 0, before = 0, current = 0;
  Progress line{"scoring"};
};

/// Adds the loss of predicting `targets` after `begin`: `inputs` is both but
/// for the last target. Calls `onTargets` with the number of those so far.
Status addWindow(ModelSession &run, std::span<const int32_t> begin,
                 std::span<const int32_t> targets, Loss &loss,
                 const std::function<void(size_t)> &onTargets) {
  std::vector<int32_t> inputs(begin.begin(), begin.end());
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  // Nothing predicts the first token of all.
  const size_t first = begin.empty() ? 1 : begin.size();
  if (inputs.size() <= first)
    return Status();
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                      run.engine().createSequence());
  const Model &model = run.engine().model();
  return model.explain(readLogits(
      *sequence, std::span(inputs).first(inputs.size() - 1),
      [&](size_t position, std::span<const float> logits) {
        const size_t next = position + 1;
        if (next < first)
          return Status();
        KF_RETURN_IF_ERROR(checkLogits(model, position, logits));
        const float logit = logits[static_cast<size_t>(inputs[next])];
        loss.sum += logSumExp(logits) - logit;
        ++loss.tokens;
        onTargets(next + 1 - begin.size());
        return Status();
      }));
}

/// Adds the loss of one document: begin tokens, text, end token. One that is
/// longer than the context is cut into windows, each of which begins anew.
Status addDocument(ModelSession &run, const std::string &text, Loss &loss,
                   ScoringProgress &progress) {
  const ModelFiles &model = run.files();
  const std::vector<int32_t> begin = beginIds(model);
  KF_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      run.tokenizer().encode(text, {.cancelled = &interruptFlag()}));
  if (!model.config.eosIds.empty())
    ids.push_back(static_cast<int32_t>(model.config.eosIds.front()));
  for (int32_t id : ids)
    if (id >= model.config.vocabSize)
      return Status::error("the tokenizer gives token id " +
                           std::to_string(id) +
                           ", which the model's vocabulary of " +
                           std::to_string(model.config.vocabSize) + " lacks");
  const size_t context = static_cast<size_t>(run.engine().contextLength());
  if (context < begin.size() + 1)
    return Status::error("a context of " + std::to_string(context) +
                         " is too short to predict anything");
  // The last target is not read, so one more than the rest of the context.
  const size_t window = context - begin.size() + 1;
  for (std::span<const int32_t> rest(ids); !rest.empty();) {
    const size_t count = std::min(window, rest.size());
    const size_t before = ids.size() - rest.size();
    KF_RETURN_IF_ERROR(
        addWindow(run, begin, rest.first(count), loss, [&](size_t targets) {
          progress.show(static_cast<double>(before + targets) /
                            static_cast<double>(ids.size()),
                        loss);
        }));
    rest = rest.subspan(count);
  }
  return Status();
}

Result<Loss> measure(const ModelFlags &options, const std::string &file) {
  KF_ASSIGN_OR_RETURN(std::vector<std::string> documents, readDocuments(file));
  if (std::ranges::all_of(documents, &std::string::empty))
    return Status::error(quotePath(file) + " has no text to predict");
  KF_ASSIGN_OR_RETURN(std::unique_ptr<ModelSession> run,
                      ModelSession::open(options, true));
  KF_RETURN_IF_ERROR(run->start(0));
  catchFirstInterrupt();
  Loss loss;
  std::optional<ScoringProgress> progress(documents);
  for (size_t i = 0; i < documents.size(); ++i) {
    progress->begin(documents[i]);
    KF_RETURN_IF_ERROR(
        addDocument(*run, documents[i], loss, *progress)
            .in(documents.size() == 1
                    ? quotePath(file)
                    : "text " + std::to_string(i) + " of " + quotePath(file)));
  }
  if (loss.tokens == 0)
    return Status::error(quotePath(file) + " has no token to predict");
  progress.reset();
  KF_RETURN_IF_ERROR(run->showProfile());
  return loss;
}

} // namespace

int kf::runPerplexity(Arguments arguments) {
  ModelFlags options;
  std::string file;
  std::optional<std::string> json;
  OptionParser parser(
      "perplexity [MODEL] --file FILE [options]",
      "Measures how well a model predicts texts: each one between the begin "
      "and the end token, without the context of the others; the text's "
      "tokens and the end token count. A text longer than the context is cut "
      "into windows.");
  parser.text({"file", 0, "FILE"}, file,
              "the text; a .json file holds an array of texts");
  parser.optionalText({"json", 0, "FILE"}, "-", json,
                      "writes JSON to FILE, or to stdout without it: "
                      "\"nll_per_token\", \"perplexity\", \"tokens\"");
  parser.output(json);
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (file.empty())
    return parser.usageError("--file is missing");
  Result<Loss> loss = measure(options, file);
  if (loss.status().isCancelled())
    return reportInterrupt("the perplexity is not known");
  if (!loss.ok())
    return report(loss.status());
  const std::string nll = jsonNumber(loss->perToken());
  const std::string perplexity = jsonNumber(std::exp(loss->perToken()));
  const std::string tokens = std::to_string(loss->tokens);
  if (json)
    return report(writeOutput(*json, "{\"nll_per_token\": " + nll +
                                         ", \"perplexity\": " + perplexity +
                                         ", \"tokens\": " + tokens + "}\n"));
  return report(writeStdout("perplexity " + perplexity + " (" + nll +
                            " nats per token, " + tokens + " tokens)\n"));
}
