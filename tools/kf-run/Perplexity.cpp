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
#include "ModelFlags.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/core/Lines.h"
#include "runtime/core/Quote.h"
#include "runtime/session/TextLoss.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>

using namespace kf;

namespace {

/// What is scored, and after what.
enum class Convention {
  Documents, ///< each text after its begin token, the end token too
  LlamaCpp,  ///< the second half of each chunk of all text
  Strided    ///< Hugging Face's: what a window has beyond the one before
};

struct PerplexityOptions {
  ModelFlags model;
  std::string file, json, conventionName;
  std::optional<int64_t> window, stride, chunks;
  Convention convention = Convention::Documents;

  void addTo(OptionParser &parser) {
    parser.text({"file", 0, "FILE"}, file,
                "the text; a .json file holds an array of texts");
    parser.choice({"convention", 0, "NAME"}, conventionName,
                  {"documents", "llama.cpp", "strided"},
                  "what is scored: documents (the default), each text between "
                  "the begin and the end token; llama.cpp, the second half of "
                  "each chunk of --window tokens, as llama-perplexity does; "
                  "strided, windows of --window tokens that advance by "
                  "--stride, of each what no window before had, as Hugging "
                  "Face does. The last two join the texts of an array by empty "
                  "lines");
    parser.integer({"window", 0, "N"}, window, 2, int64_t(1) << 24,
                   "tokens of a chunk or window; by default 512 (llama.cpp), "
                   "or what the context has room for (strided). Or -c N");
    parser.integer({"stride", 0, "N"}, stride, 1, int64_t(1) << 24,
                   "implies strided; half of the window by default");
    parser.integer({"chunks", 0, "N"}, chunks, -1, int64_t(1) << 40,
                   "implies llama.cpp: the first N chunks; -1, the default: "
                   "all");
    parser.json(json, "\"nll_per_token\", \"perplexity\", \"tokens\", the "
                      "standard errors of the first two, and the convention");
    model.addTo(parser);
    model.addRanksTo(parser);
    model.lora.addOneTo(parser);
    parser.addCheck([this] { return complete(); });
  }

private:
  Status complete() {
    if (conventionName.empty())
      conventionName = stride ? "strided" : chunks ? "llama.cpp" : "documents";
    convention = conventionName == "strided"     ? Convention::Strided
                 : conventionName == "llama.cpp" ? Convention::LlamaCpp
                                                 : Convention::Documents;
    auto wrong = [&](const char *option, const char *other) {
      return Status::error(std::string(option) + " is not of --convention " +
                           conventionName + ", but of " + other);
    };
    if (stride && convention != Convention::Strided)
      return wrong("--stride", "strided");
    if (chunks && convention != Convention::LlamaCpp)
      return wrong("--chunks", "llama.cpp");
    if (window && convention == Convention::Documents)
      return wrong("--window", "llama.cpp and strided; -c N cuts texts");
    if (chunks == 0)
      return Status::error("--chunks 0 scores nothing; -1 scores all");
    return Status();
  }
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
  void show(double share, const TextLoss &loss) {
    char perplexity[48];
    std::snprintf(perplexity, sizeof(perplexity), "perplexity %.4f",
                  loss.perplexity());
    line.update(
        (static_cast<double>(before) + share * static_cast<double>(current)) /
            static_cast<double>(bytes),
        perplexity);
  }

private:
  size_t bytes = 0, before = 0, current = 0;
  Progress line{"scoring"};
};

/// Adds the losses of the second half of each of up to `limit` chunks of
/// `window` tokens. Each begins with the model's begin token in place of its
/// own, if prompts do.
Status addChunks(Session &run, std::vector<int32_t> ids, size_t window,
                 int64_t limit, TextLoss &loss, ScoringProgress &progress) {
  size_t count = ids.size() / window;
  if (count == 0)
    return Status::error("the text has " + std::to_string(ids.size()) +
                         " tokens, but a chunk " + std::to_string(window) +
                         "; give a longer text, or a smaller --window");
  if (limit >= 0)
    count = std::min(count, static_cast<size_t>(limit));
  const std::vector<int32_t> &prefix = run.tokenizer().prefixIds();
  for (size_t chunk = 0; chunk < count; ++chunk) {
    const std::span<int32_t> part =
        std::span(ids).subspan(chunk * window, window);
    if (!prefix.empty())
      part.front() = prefix.front();
    KF_RETURN_IF_ERROR(
        addLoss(run, part, window / 2 + 1, loss, [&](size_t scored) {
          progress.show(
              (static_cast<double>(chunk) +
               static_cast<double>(scored) / static_cast<double>(window)) /
                  static_cast<double>(count),
              loss);
        }));
  }
  return Status();
}

/// Adds the losses of windows of `window` tokens that begin `stride` apart: of
/// each, those of the tokens that the one before has not.
Status addStrided(Session &run, std::span<const int32_t> ids, size_t window,
                  size_t stride, TextLoss &loss, ScoringProgress &progress) {
  size_t scored = 1; // Nothing predicts the first token.
  for (size_t begin = 0; scored < ids.size(); begin += stride) {
    const std::span<const int32_t> part =
        ids.subspan(begin, std::min(window, ids.size() - begin));
    KF_RETURN_IF_ERROR(
        addLoss(run, part, scored - begin, loss, [&](size_t end) {
          progress.show(static_cast<double>(begin + end) /
                            static_cast<double>(ids.size()),
                        loss);
        }));
    scored = begin + part.size();
  }
  return Status();
}

/// The texts as one, as the conventions of chunks and windows have it.
std::string joined(std::span<const std::string> documents) {
  std::string text;
  for (const std::string &document : documents)
    text += (text.empty() ? "" : "\n\n") + document;
  return text;
}

/// Adds the loss of all of `text` by chunks or windows.
Status addText(Session &run, std::string text, const PerplexityOptions &options,
               TextLoss &loss, ScoringProgress &progress) {
  const bool isChunks = options.convention == Convention::LlamaCpp;
  // llama.cpp takes a file's last line break for its editor's.
  if (isChunks && text.ends_with('\n'))
    text.pop_back();
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      encodeForLoss(run, text, &interruptFlag()));
  const std::vector<int32_t> &prefix = run.tokenizer().prefixIds();
  ids.insert(ids.begin(), prefix.begin(), prefix.end());
  const int64_t context = run.engine().contextLength();
  const bool isContextGiven =
      options.model.context || options.model.wholeContext || !isChunks;
  const int64_t window = options.window.value_or(
      isContextGiven ? context : std::min<int64_t>(context, 512));
  // The last token of a window is not read.
  if (window - 1 > context)
    return Status::error(
        "--window " + std::to_string(window) + " is more than the context of " +
        std::to_string(context) + " positions, and one token that is not read");
  if (isChunks)
    return addChunks(run, std::move(ids), static_cast<size_t>(window),
                     options.chunks.value_or(-1), loss, progress);
  const int64_t stride =
      options.stride.value_or(std::max<int64_t>(window / 2, 1));
  if (stride > window - 1)
    return Status::error(
        "--stride " + std::to_string(stride) + " skips tokens: windows have " +
        std::to_string(window) + "; give less than that, or a larger --window");
  return addStrided(run, ids, static_cast<size_t>(window),
                    static_cast<size_t>(stride), loss, progress);
}

Result<TextLoss> measure(const PerplexityOptions &options) {
  const std::string file = quotePath(options.file);
  KF_ASSIGN_OR_RETURN(std::vector<std::string> documents,
                      readDocuments(options.file));
  if (std::ranges::all_of(documents, &std::string::empty))
    return Status::error(file + " has no text to predict");
  if (options.convention != Convention::Documents)
    documents = {joined(documents)};
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Session> run,
                      openSession(options.model, true));
  KF_RETURN_IF_ERROR(run->start({.tokens = options.window.value_or(0)}));
  catchFirstInterrupt();
  TextLoss loss;
  std::optional<ScoringProgress> progress(documents);
  for (size_t i = 0; i < documents.size(); ++i) {
    progress->begin(documents[i]);
    const Status status =
        options.convention == Convention::Documents
            ? addTextLoss(*run, documents[i], &interruptFlag(), loss,
                          [&](size_t scored, size_t all) {
                            progress->show(static_cast<double>(scored) /
                                               static_cast<double>(all),
                                           loss);
                          })
            : addText(*run, documents[i], options, loss, *progress);
    KF_RETURN_IF_ERROR(status.in(
        documents.size() == 1 ? file
                              : "text " + std::to_string(i) + " of " + file));
  }
  if (loss.tokens == 0)
    return Status::error(file + " has no token to predict");
  progress.reset();
  KF_RETURN_IF_ERROR(showProfile(options.model, *run));
  return loss;
}

std::string jsonReport(const TextLoss &loss, const std::string &convention) {
  return "{\"nll_per_token\": " + jsonNumber(loss.perToken()) +
         ", \"perplexity\": " + jsonNumber(loss.perplexity()) +
         ", \"tokens\": " + std::to_string(loss.tokens) +
         ", \"nll_standard_error\": " + jsonNumber(loss.error()) +
         ", \"perplexity_standard_error\": " +
         jsonNumber(loss.perplexity() * loss.error()) + ", \"convention\": \"" +
         convention + "\"}\n";
}

std::string textReport(const TextLoss &loss) {
  return "perplexity " + jsonNumber(loss.perplexity()) +
         (loss.tokens > 1
              ? " +- " + spellNumber(loss.perplexity() * loss.error())
              : "") +
         " (" + jsonNumber(loss.perToken()) + " nats per token, " +
         std::to_string(loss.tokens) + " tokens)\n";
}

} // namespace

int kf::runPerplexity(Arguments arguments) {
  PerplexityOptions options;
  OptionParser parser(
      "perplexity [MODEL] --file FILE [options]",
      "Measures how well a model predicts texts, with the standard error that "
      "so many tokens leave: each one between the begin and the end token, "
      "without the context of the others; the text's tokens and the end token "
      "count. A text longer than the context is cut into windows. Other "
      "programs score other tokens: see --convention.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (options.file.empty())
    return parser.usageError("--file is missing");
  Result<TextLoss> loss = measure(options);
  if (loss.status().isCancelled())
    return reportInterrupt("the perplexity is not known");
  if (!loss.ok())
    return report(loss.status());
  return report(options.json.empty()
                    ? writeStdout(textReport(*loss))
                    : writeOutput(options.json,
                                  jsonReport(*loss, options.conventionName)));
}
