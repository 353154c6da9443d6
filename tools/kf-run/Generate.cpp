//===- Generate.cpp - Continuing a text -----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Generate.h"

#include "Interrupt.h"
#include "JsonDocument.h"
#include "Progress.h"
#include "Prompt.h"
#include "Report.h"

#include "runtime/core/Stopwatch.h"
#include "runtime/engine/Generation.h"
#include "runtime/text/Utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>

using namespace kf;

namespace {

/// Seconds of each part of a run.
struct Times {
  double load = 0;    ///< opening files, loading programs, packing weights
  double pack = 0;    ///< of that, packing weights
  double compile = 0; ///< compiling, or finding programs in the cache
  double prefill = 0, decode = 0;
  double firstToken = 0; ///< since the command began
  double total = 0;
};

double rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string formatted(const char *format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

std::string phase(const char *name, int64_t tokens, double seconds) {
  return std::string(name) + " " + std::to_string(tokens) + " tokens in " +
         formatted("%.1f ms", seconds * 1e3) + " (" +
         formatted("%.0f tok/s", rate(tokens, seconds)) + ")";
}

std::string summary(Session &run, const GenerationResult &result,
                    const Times &times) {
  return run.device().name() + ": load " +
         formatted("%.1f ms", times.load * 1e3) + ", compile " +
         formatted("%.1f ms", times.compile * 1e3) + " (" + run.origin() +
         "), " + phase("prefill", result.promptTokens, times.prefill) + ", " +
         phase("decode", result.decodedTokens, times.decode) +
         (result.draftTokens > 0
              ? ", of " + std::to_string(result.draftTokens) +
                    " drafted tokens " +
                    std::to_string(result.acceptedDraftTokens) + " were right"
              : "") +
         ", peak memory " +
         formatted("%.1f MB", static_cast<double>(peakMemory()) / 1e6) + ", " +
         std::string(nameOf(result.reason)) + "\n";
}

std::string jsonReport(Session &run, const std::string &prompt,
                       std::span<const int32_t> promptIds,
                       const GenerationResult &result, const Times &times) {
  const EngineMemory memory = run.engine().memory();
  nlohmann::ordered_json json = {
      {"model", run.files().name},
      {"device", run.device().name()},
      {"ranks", run.ranks()},
      {"prompt", toValidUtf8(prompt)},
      {"prompt_ids", promptIds},
      {"ids", result.ids},
      {"text", result.text},
      {"stop_reason", nameOf(result.reason)},
      {"context", run.engine().contextLength()},
      {"draft_tokens", result.draftTokens},
      {"accepted_draft_tokens", result.acceptedDraftTokens},
      {"timings",
       {{"load", times.load},
        {"pack", times.pack},
        {"compile", times.compile},
        {"prefill", times.prefill},
        {"prefill_tokens", result.promptTokens},
        {"first_token", times.firstToken},
        {"decode", times.decode},
        {"decode_tokens", result.decodedTokens},
        {"total", times.total}}},
      {"memory",
       {{"weights", memory.weights},
        {"cache", memory.cache},
        {"arenas", memory.arenas},
        {"io", memory.io},
        {"peak", peakMemory()}}}};
  return documentText(json) + "\n";
}

Times timesOf(const Session &run, const GenerationResult &result,
              double started) {
  const EngineTimings timings = run.engine().timings();
  Times times;
  times.compile = timings.compile;
  times.pack = timings.pack;
  times.load = run.openSeconds() + timings.load + timings.pack;
  times.prefill = std::max(0.0, result.prefillSeconds - result.prefillReadying);
  times.decode = std::max(0.0, result.decodeSeconds - result.decodeReadying);
  times.firstToken = started + result.prefillSeconds;
  return times;
}

/// A text that is held to a format is of no use where it was cut off.
void warnIfCut(const GenerationOptions &settings, StopReason reason) {
  if (!settings.constraint || settings.maxTokens == 0)
    return;
  if (reason == StopReason::MaxTokens)
    printWarning("the text is cut off before the end of its format; -n N "
                 "allows more tokens");
  if (reason == StopReason::ContextFull)
    printWarning("the context is full before the end of the text's format; "
                 "-c N makes it longer, as far as the model goes");
}

Status generateText(const GenerateOptions &options, const SessionFlags &flags,
                    const OpenSession &open) {
  Stopwatch watch;
  if (options.quiet)
    Progress::turnOff();
  KF_RETURN_IF_ERROR(options.sampler.complete().validate());
  KF_ASSIGN_OR_RETURN(const std::optional<OutputFormat> format,
                      options.format.read());
  std::string prompt;
  if (options.ids.empty()) {
    KF_ASSIGN_OR_RETURN(prompt, readPrompt(options.prompt, options.file));
  }
  // Ids in, ids out, where nothing turns them into text.
  bool withTokenizer = options.ids.empty() || format;
  if (!withTokenizer && !flags.dummy.used()) {
    KF_ASSIGN_OR_RETURN(withTokenizer, hasTokenizer(flags.model));
  }
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Session> run, open(withTokenizer));
  const ChosenSampling sampling =
      chooseSampling(options.sampler, run->files().config.sampling,
                     ModelSampling::WhenDrawing);
  KF_RETURN_IF_ERROR(
      sampling.options.validateIds(run->files().config.vocabSize));
  KF_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(sampling.options));
  const std::optional<Tokenizer> &tokenizer = run->files().tokenizer;
  if (!tokenizer && !options.stops.empty())
    return Status::error("--stop is found in text, and the model has no "
                         "tokenizer; give --tokenizer, or leave it out");
  catchFirstInterrupt();
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids, options.ids.empty()
                                                    ? run->encodePrompt(prompt)
                                                    : parseIds(options.ids));
  const int64_t count = static_cast<int64_t>(ids.size());
  KF_RETURN_IF_ERROR(
      run->start({.tokens = count + std::max<int64_t>(options.tokens, 0)}));
  KF_RETURN_IF_ERROR(run->checkFits(ids));
  if (!options.quiet)
    noteRecommended(recommendedFlags(sampling));

  GenerationOptions settings;
  settings.maxTokens = options.tokens == -1
                           ? std::numeric_limits<int64_t>::max()
                           : options.tokens;
  if (!options.ignoreEos)
    settings.stopIds = run->files().config.eosIds;
  settings.stopTexts = options.stops;
  if (format) {
    KF_ASSIGN_OR_RETURN(const std::unique_ptr<ConstraintCompiler> compiler,
                        makeConstraintCompiler(run->files()));
    KF_ASSIGN_OR_RETURN(const std::shared_ptr<TokenConstraintSource> source,
                        compiler->compile(*format, &interruptFlag()));
    KF_ASSIGN_OR_RETURN(settings.constraint, source->begin());
  }
  // A report on stdout has the text within, and is all that stands there.
  const bool printsText = options.json != "-";
  Status written;
  HeldWarnings warnings;
  settings.onText = [&](std::string_view text) {
    if (!printsText)
      return;
    warnings.begin();
    if (!written.ok())
      return;
    written = writeStdout(text);
    if (!written.ok())
      interruptFlag() = true;
  };
  if (!tokenizer)
    settings.onToken = [&, first = true](int32_t id) mutable {
      settings.onText((first ? "" : ",") + std::to_string(id));
      first = false;
    };
  if (options.echo)
    settings.onText(prompt);
  const double started = watch.seconds();
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Sequence> sequence,
                      run->createSequence());
  Result<GenerationResult> generated = generate(
      *sequence, sampler, tokenizer ? &*tokenizer : nullptr, ids, settings);
  if (!generated.ok())
    return run->engine().model().explain(generated.status());
  const GenerationResult result = generated.take();
  KF_RETURN_IF_ERROR(written);
  if (printsText)
    KF_RETURN_IF_ERROR(writeStdout("\n"));
  warnings.end();
  warnIfCut(settings, result.reason);
  Times times = timesOf(*run, result, started);
  times.total = watch.seconds();
  if (!options.quiet)
    std::fputs(summary(*run, result, times).c_str(), stderr);
  KF_RETURN_IF_ERROR(showProfile(flags, *run));
  if (options.json.empty())
    return Status();
  return writeOutput(options.json,
                     jsonReport(*run, prompt, ids, result, times));
}

int finish(const Status &status) {
  if (status.isCancelled())
    return reportInterrupt("nothing was generated");
  const int code = report(status);
  return code == ExitSuccess && interruptFlag() ? ExitInterrupted : code;
}

} // namespace

void GenerateOptions::addTo(OptionParser &parser) {
  parser.text({"prompt", 'p', "TEXT"}, prompt,
              "the text to continue; without it and --file, what stdin has, "
              "unless that is a terminal. An empty one starts from the "
              "begin-of-text token",
              OptionParser::Empty::Allowed);
  parser.text({"file", 0, "FILE"}, file,
              "reads the prompt from FILE; - is stdin. One line break at "
              "the end is not part of it");
  parser.text({"ids", 0, "1,2,3"}, ids,
              "the prompt as token ids, read as they are. A model without a "
              "tokenizer answers with ids");
  parser.integer({"tokens", 'n', "N"}, tokens, -1, int64_t(1) << 24,
                 "the most tokens to generate; 256 by default, -1: until the "
                 "context is full");
  addEscapeFlag(parser, noEscape, [this] {
    if (prompt)
      prompt = unescaped(*prompt);
    for (std::string &stop : stops)
      stop = unescaped(stop);
  });
  addStopFlag(parser, stops);
  parser.flag({"ignore-eos"}, ignoreEos,
              "goes on after tokens that end a text");
  addSamplerFlags(parser, sampler, ModelSampling::WhenDrawing);
  format.addTo(parser);
  parser.json(json, "ids, text, timings and memory, in place of the text");
  parser.flag({"quiet"}, quiet, "prints the text and nothing about it");
  parser.addCheck([this] {
    if (prompt && !file.empty())
      return Status::error("--prompt and --file exclude each other");
    if (ids.empty())
      return Status();
    if (prompt || !file.empty())
      return Status::error("--ids is a prompt, as --prompt and --file are; "
                           "give one of them");
    return parseIds(ids).status();
  });
}

int kf::runGeneration(const GenerateOptions &options, const SessionFlags &flags,
                      const OpenSession &open) {
  return finish(generateText(options, flags, open));
}
