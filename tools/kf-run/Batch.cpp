//===- Batch.cpp - kf-run batch -------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchOptions.h"
#include "Commands.h"
#include "Interrupt.h"
#include "JsonDocument.h"
#include "Progress.h"
#include "Prompt.h"
#include "Report.h"

#include "runtime/batch/BatchFile.h"
#include "runtime/batch/LogProbFields.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/engine/Generation.h"
#include "runtime/model/LayerCaches.h"
#include "runtime/session/ChatPrompts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>

using namespace kf;

/// Of a request that does not say.
static constexpr int64_t kUnsaidTokens = 256;

void BatchOptions::addTo(OptionParser &parser) {
  parser.text({"file", 0, "FILE"}, file,
              "the requests, a JSON object a line; - is stdin");
  parser.integer({"parallel", 0, "N"}, parallel, 0, 4096,
                 "how many are worked on at once; 0, the default: as many as "
                 "have the most tokens a second together, 16 or, on NVIDIA "
                 "GPUs, 256, but no more than have room for whole contexts in "
                 "their memory");
  parser.json(json, "the results when all are there, instead of to stdout "
                    "one by one");
  parser.integer({"tokens", 'n', "N"}, tokens, -1, kMostTokens,
                 "the most tokens to generate for a request that has no "
                 "\"n\"; 256 by default, -1: until the context is full");
  addEscapeFlag(parser, noEscape, [this] {
    for (std::string &stop : stops)
      stop = unescaped(stop);
  });
  addStopFlag(parser, stops);
  parser.flag({"ignore-eos"}, ignoreEos,
              "goes on after tokens that end a text");
  chatTemplate.addTo(parser, "for \"messages\": ");
  addSamplerFlags(parser, sampler, ModelSampling::WhenDrawing);
  format.addTo(parser);
  embedding.addTo(parser);
  parser.flag({"quiet"}, quiet, "prints results and errors alone");
  model.addTo(parser);
  model.addRanksTo(parser);
  model.addDraftsTo(parser);
  model.lora.addNamesTo(parser, model.model);
}

namespace {

/// A line of the file, and what becomes of it.
struct Job {
  size_t line = 0;
  std::string id; ///< as JSON; empty where there is none
  std::vector<int32_t> prompt;
  int64_t adapter = 0; ///< number
  GenerationOptions settings;
  std::optional<Sampler> sampler;
  std::shared_ptr<TokenConstraintSource> constraint; ///< null: none

  std::unique_ptr<Sequence> sequence;
  std::unique_ptr<Generation> generation; ///< while it goes on
  Status error;
  GenerationResult result;
  std::vector<TextLogProbs> logProbs; ///< where they are wanted
  bool isDone = false;
};

std::string jsonLine(const Job &job,
                     const std::optional<Tokenizer> &tokenizer) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  json["line"] = job.line;
  if (!job.id.empty())
    json["id"] = readDocument(job.id);
  if (!job.error.ok()) {
    json["finish_reason"] = "error";
    json["error"] = job.error.message();
  } else {
    json["ids"] = job.result.ids;
    if (tokenizer)
      json["text"] = job.result.text;
    if (job.settings.onLogProbs)
      json["logprobs"] = readDocument(chatLogProbs(job.logProbs, *tokenizer));
    json["finish_reason"] = finishReasonOf(job.result.reason);
    json["prompt_tokens"] = job.prompt.size();
    json["prompt_tokens_reused"] = job.result.reusedTokens;
  }
  return documentText(json, -1) + "\n";
}

std::string formatted(const char *format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

/// Requests of one file on one model.
class Batch {
public:
  explicit Batch(const BatchOptions &options) : options(options) {}

  /// Opens the model and reads the requests. A request that is wrong is a job
  /// that has failed.
  Status open(std::string_view file) {
    KF_ASSIGN_OR_RETURN(format, options.format.read());
    std::vector<BatchRequest> requests; // of jobs without an error
    bool wantText = false;
    BatchReader reader(file);
    while (std::optional<Result<BatchRequest>> request = reader.next()) {
      Job &job = jobs.emplace_back();
      job.line = reader.line();
      if (!request->ok()) {
        fail(job, request->status());
        requests.emplace_back();
        continue;
      }
      wantText |= !(*request)->ids || (*request)->stops ||
                  !options.stops.empty() || format || (*request)->format ||
                  (*request)->topLogProbs;
      job.id = (*request)->id;
      requests.push_back(request->take());
    }
    if (jobs.empty())
      return Status::error(quotePath(options.file) +
                           " holds no request: a JSON object a line, with "
                           "\"prompt\", \"ids\" or \"messages\"");
    KF_RETURN_IF_ERROR(openModel(wantText));
    Progress progress("reading requests");
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (isCancelled(&interruptFlag()))
        break;
      if (!jobs[i].isDone)
        if (Status status = prepare(requests[i], jobs[i]); !status.ok())
          fail(jobs[i], status.in("line " + std::to_string(jobs[i].line)));
      progress.update(static_cast<double>(i + 1) /
                      static_cast<double>(jobs.size()));
    }
    return start();
  }

  /// Works on all of them and writes what comes of them, in order.
  Status run() {
    Progress progress("generating");
    Stopwatch watch;
    const double readied = engine().timings().total();
    std::vector<Job *> going;
    size_t next = 0, written = 0, done = 0;
    while (next < jobs.size() || !going.empty()) {
      while (next < jobs.size() && hasRoom(jobs[next], going)) {
        Job &job = jobs[next++];
        if (!job.isDone && begin(job))
          going.push_back(&job);
      }
      engine().step();
      std::erase_if(going, [&](Job *job) {
        if (job->generation->isDone())
          finish(*job);
        return job->isDone;
      });
      done = next - going.size();
      seconds = watch.seconds() - (engine().timings().total() - readied);
      progress.update(static_cast<double>(done) /
                          static_cast<double>(jobs.size()),
                      std::to_string(done) + " of " +
                          std::to_string(jobs.size()) + ", " + rateText());
      KF_RETURN_IF_ERROR(write(written));
    }
    KF_RETURN_IF_ERROR(write(written));
    return options.json.empty() ? Status() : writeOutput(options.json, pending);
  }

  Status showProfile() { return kf::showProfile(options.model, *model); }
  /// Says once, when nobody waits any more, what made logits not finite.
  void explainFailures() {
    const Model &run = engine().model();
    if (!run.gaveBadLogits())
      return;
    if (const Result<std::string> cause = run.findCauseOfBadLogits())
      printNote("logits were not finite: " + *cause);
  }
  bool anyFailed() const {
    return std::ranges::any_of(jobs,
                               [](const Job &job) { return !job.error.ok(); });
  }

  std::string summary() const {
    const EngineCounts counts = model->engine().counts();
    int64_t prompts = 0, reused = 0, failed = 0, cancelled = 0;
    for (const Job &job : jobs) {
      prompts += job.result.promptTokens;
      reused += job.result.reusedTokens;
      failed += !job.error.ok();
      cancelled += job.result.reason == StopReason::Cancelled;
    }
    const double rows = static_cast<double>(counts.rows) /
                        static_cast<double>(std::max<int64_t>(counts.steps, 1));
    return std::to_string(jobs.size()) + " requests, " +
           std::to_string(failed) + " failed" +
           (cancelled ? ", " + std::to_string(cancelled) + " cancelled" : "") +
           ": prompts " + std::to_string(prompts) + " tokens (" +
           std::to_string(reused) + " reused), generated " +
           std::to_string(counts.chosen) + " in " +
           formatted("%.2f s", seconds) + " (" + rateText() + "), " +
           std::to_string(counts.steps) + " steps of " +
           formatted("%.1f", rows) + " rows, at most " +
           std::to_string(counts.mostPages) + " of " +
           std::to_string(model->engine().pages().total()) +
           " cache pages used\n";
  }

private:
  Engine &engine() { return model->engine(); }

  void fail(Job &job, Status status) {
    printError(quotePath(options.file) + ": " + status.message());
    job.error = std::move(status);
    job.isDone = true;
  }

  Status openModel(bool wantText) {
    const DummyChoice &dummy = options.model.dummy;
    bool withTokenizer = wantText || !dummy.tokenizer.empty();
    if (!withTokenizer && !dummy.used()) {
      KF_ASSIGN_OR_RETURN(withTokenizer, hasTokenizer(options.model.model));
    }
    KF_ASSIGN_OR_RETURN(model, openSession(options.model, withTokenizer));
    catchFirstInterrupt();
    return Status();
  }

  /// Makes tokens and settings of a request.
  Status prepare(const BatchRequest &request, Job &job) {
    const ModelFiles &files = model->files();
    const ChosenSampling sampling =
        chooseSampling(request.sampling.over(options.sampler),
                       files.config.sampling, ModelSampling::WhenDrawing);
    KF_RETURN_IF_ERROR(sampling.options.validateIds(files.config.vocabSize));
    KF_ASSIGN_OR_RETURN(job.sampler, Sampler::create(sampling.options));
    KF_ASSIGN_OR_RETURN(job.adapter, adapterOf(request.model));
    const int64_t tokens =
        request.tokens.value_or(options.tokens.value_or(kUnsaidTokens));
    job.settings.maxTokens =
        tokens == -1 ? std::numeric_limits<int64_t>::max() : tokens;
    if (!request.ignoreEos.value_or(options.ignoreEos))
      job.settings.stopIds = files.config.eosIds;
    job.settings.stopTexts = request.stops.value_or(options.stops);
    if (request.topLogProbs) {
      job.settings.topLogProbs = *request.topLogProbs;
      job.settings.onLogProbs = [&job](const TextLogProbs &logProbs) {
        job.logProbs.push_back(logProbs);
      };
    }
    if (!options.quiet && !noted) {
      const std::string recommended = recommendedFlags(sampling);
      noteRecommended(recommended);
      noted = !recommended.empty();
    }
    if (request.ids) {
      job.prompt = *request.ids;
    } else if (request.prompt) {
      KF_ASSIGN_OR_RETURN(job.prompt, model->encodePrompt(*request.prompt));
    } else {
      KF_RETURN_IF_ERROR(prepareChat(request, job));
    }
    if (request.format || format)
      return prepareFormat(request.format ? *request.format : *format, job);
    return Status();
  }

  /// The adapter that a request names as its model. Where there are none, the
  /// command names the model, whatever requests call it.
  Result<int64_t> adapterOf(const std::string &name) const {
    const ModelFiles &files = model->files();
    return files.adapters.empty()
               ? 0
               : findModelOrAdapter(files, options.model.lora.modelNames, name);
  }

  Status prepareFormat(const OutputFormat &wanted, Job &job) {
    if (!compiler) {
      // Ends of turns end texts, too, where the model has a template.
      std::vector<int64_t> ends;
      if (Result<PromptEncoder> made =
              openPromptEncoder(model->files(), options.chatTemplate.options);
          made.ok())
        ends = made->endOfTurnIds();
      KF_ASSIGN_OR_RETURN(compiler,
                          makeConstraintCompiler(model->files(), ends));
    }
    KF_ASSIGN_OR_RETURN(job.constraint,
                        compiler->compile(wanted, &interruptFlag()));
    return Status();
  }

  Status prepareChat(const BatchRequest &request, Job &job) {
    if (!encoder) {
      KF_ASSIGN_OR_RETURN(
          PromptEncoder made,
          openPromptEncoder(model->files(), options.chatTemplate.options));
      encoder.emplace(std::move(made));
      endOfTurn = encoder->endOfTurnIds();
    }
    KF_ASSIGN_OR_RETURN(job.prompt,
                        encoder->encode({.messages = *request.messages,
                                         .variables = request.variables},
                                        &interruptFlag()));
    if (!job.settings.stopIds.empty())
      job.settings.stopIds.insert(job.settings.stopIds.end(), endOfTurn.begin(),
                                  endOfTurn.end());
    return Status();
  }

  /// Makes the engine, with a context for the longest request.
  Status start() {
    int64_t longest = 0;
    for (const Job &job : jobs) {
      const int64_t prompt = static_cast<int64_t>(job.prompt.size());
      const int64_t most = std::numeric_limits<int32_t>::max();
      longest =
          std::max(longest, prompt + std::min(job.settings.maxTokens, most));
    }
    const int64_t count = static_cast<int64_t>(jobs.size());
    std::optional<int64_t> parallel;
    if (options.parallel > 0)
      parallel = std::min(options.parallel, count);
    return model->start(
        {.tokens = longest, .parallel = parallel, .texts = count});
  }

  /// Pages of the cache that a job takes at most.
  int64_t pagesOf(const Job &job) {
    const int64_t prompt = static_cast<int64_t>(job.prompt.size());
    const int64_t context = engine().contextLength();
    return pagesOfSequence(
        engine().model().config(),
        std::min(context, prompt + std::min(job.settings.maxTokens, context)));
  }
  /// Whether `job` can be begun beside those that are going on, so that none
  /// runs out of pages for the others' sake.
  bool hasRoom(const Job &job, const std::vector<Job *> &going) {
    if (job.isDone || going.empty())
      return true;
    int64_t pages = pagesOf(job);
    for (const Job *other : going)
      pages += pagesOf(*other);
    return going.size() < static_cast<size_t>(engine().parallel()) &&
           pages <= engine().pages().total();
  }

  /// Whether a job goes on now; else it is done.
  bool begin(Job &job) {
    const std::optional<Tokenizer> &tokenizer = model->files().tokenizer;
    const Status status = [&]() -> Status {
      if (isCancelled(&interruptFlag()))
        return Status::cancelled();
      KF_RETURN_IF_ERROR(model->checkFits(job.prompt));
      if (job.constraint) {
        KF_ASSIGN_OR_RETURN(job.settings.constraint, job.constraint->begin());
      }
      KF_ASSIGN_OR_RETURN(job.sequence, engine().createSequence(job.adapter));
      job.generation = std::make_unique<Generation>(
          *job.sequence, *job.sampler, tokenizer ? &*tokenizer : nullptr,
          job.settings);
      return job.generation->start(job.prompt);
    }();
    if (status.ok())
      return true;
    end(job, status);
    return false;
  }

  void finish(Job &job) {
    Result<GenerationResult> result = job.generation->take();
    if (result.ok())
      job.result = result.take();
    end(job, result.status());
  }

  void end(Job &job, const Status &status) {
    job.generation.reset();
    job.sequence.reset();
    job.settings.constraint.reset();
    job.constraint.reset();
    job.isDone = true;
    if (status.isCancelled())
      job.result.reason = StopReason::Cancelled;
    else if (!status.ok())
      fail(job, status.in("line " + std::to_string(job.line)));
  }

  /// Writes the results of the jobs from number `written` on that are done.
  Status write(size_t &written) {
    for (; written < jobs.size() && jobs[written].isDone; ++written)
      pending += jsonLine(jobs[written], model->files().tokenizer);
    if (!options.json.empty() || pending.empty())
      return Status();
    return writeStdout(std::exchange(pending, {}));
  }

  std::string rateText() const {
    const double tokens = static_cast<double>(model->engine().counts().chosen);
    return formatted("%.0f tok/s", seconds > 0 ? tokens / seconds : 0);
  }

  const BatchOptions &options;
  std::unique_ptr<Session> model;
  std::vector<Job> jobs;
  std::optional<PromptEncoder> encoder; ///< once messages were seen
  std::vector<int64_t> endOfTurn;
  std::optional<OutputFormat> format;           ///< of requests that do not say
  std::unique_ptr<ConstraintCompiler> compiler; ///< once it was needed
  bool noted = false;  ///< how the model recommends to sample
  std::string pending; ///< results that are not written yet
  double seconds = 0;  ///< of generating, without making programs ready
};

Result<bool> runAll(const BatchOptions &options) {
  if (options.quiet)
    Progress::turnOff();
  KF_ASSIGN_OR_RETURN(const std::string file,
                      readBytes(std::nullopt, options.file));
  if (isOpenAiBatch(file))
    return runOpenAiBatch(options, file);
  if (options.embedding.isGiven())
    return Status::error("--pooling and --normalize are for embeddings, which "
                         "OpenAI's batches ask for; 'kf-run embed' makes those "
                         "of a file of texts");
  Batch batch(options);
  KF_RETURN_IF_ERROR(batch.open(file));
  KF_RETURN_IF_ERROR(batch.run());
  batch.explainFailures();
  if (!options.quiet)
    std::fputs(batch.summary().c_str(), stderr);
  KF_RETURN_IF_ERROR(batch.showProfile());
  return !batch.anyFailed();
}

} // namespace

int kf::runBatch(Arguments arguments) {
  BatchOptions options;
  OptionParser parser(
      "batch [MODEL] --file FILE [options]",
      "Continues many texts at once. Each line of FILE is an object with "
      "\"prompt\", \"ids\" or \"messages\", and what is to differ from the "
      "options: \"n\", \"temp\", \"top_k\", \"seed\", \"stop\" and so on. "
      "Each becomes a line, in the same order: \"ids\", \"text\", "
      "\"finish_reason\" (stop, length, cancelled, error), \"prompt_tokens\" "
      "and \"prompt_tokens_reused\", or \"error\". What prompts have in "
      "common at their begin is computed once. A file of OpenAI's batches "
      "(\"custom_id\", \"url\", \"body\") is answered in their form, as "
      "'kf-run serve' would answer the bodies, embeddings among them.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (options.file.empty())
    return parser.usageError("--file is missing");
  std::error_code none; // a file that is not there is another one
  if (!options.json.empty() &&
      std::filesystem::equivalent(options.file, options.json, none))
    return parser.usageError("--json would replace the requests; name another "
                             "file");
  const Result<bool> succeeded = runAll(options);
  if (!succeeded.ok())
    return report(succeeded.status());
  if (interruptFlag())
    return ExitInterrupted;
  return *succeeded ? ExitSuccess : ExitFailure;
}
