//===- BatchApi.cpp - Files of OpenAI's batches ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchOptions.h"
#include "Interrupt.h"
#include "OwnApi.h"
#include "Progress.h"
#include "Report.h"

#include "runtime/batch/BatchFile.h"
#include "runtime/batch/OpenAiBatch.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace kf;

namespace {

/// A line of the file, and what becomes of it.
struct Job {
  size_t line = 0;
  OpenAiRequest request;
  std::unique_ptr<HttpAnswer> answer; ///< while it is worked on
  int status = 0;
  std::string body;
  std::string result; ///< once it is done; a line
};

bool isOfEmbeddings(const Job &job) {
  return job.request.endpoint == OpenAiEndpoint::Embeddings;
}

/// What bodies say in place of the options that the command has for requests of
/// its own form.
Status checkOptions(const BatchOptions &options) {
  for (auto [name, isGiven, field] :
       {std::tuple("--tokens", options.tokens.has_value(), "max_tokens"),
        std::tuple("--stop", !options.stops.empty(), "stop"),
        std::tuple("--ignore-eos", options.ignoreEos, "ignore_eos"),
        std::tuple("--json-schema", options.format.schema.has_value(),
                   "response_format"),
        std::tuple("--grammar", options.format.grammar.has_value(), "grammar"),
        std::tuple("--grammar-file", options.format.grammarFile.has_value(),
                   "grammar")})
    if (isGiven)
      return Status::error(std::string(name) +
                           " is not for OpenAI's batches; '" + field +
                           "' in their bodies says it");
  return Status();
}

/// What the body of an error says; nothing where it is of another form.
std::string messageOf(const std::string &body) {
  const Result<JsonDocument> parsed = parseJson(body);
  if (!parsed.ok() || !(*parsed)->is_object() || !(*parsed)->contains("error"))
    return {};
  const nlohmann::json &error = (**parsed)["error"];
  return error.is_object() && error.contains("message") &&
                 error["message"].is_string()
             ? error["message"].get<std::string>()
             : std::string();
}

class ApiBatch {
public:
  explicit ApiBatch(const BatchOptions &options) : options(options) {}

  /// A line that is wrong is a job that is done.
  void read(std::string_view text) {
    BatchReader reader(text);
    std::map<std::string, size_t> lines; // of ids
    while (std::optional<std::string_view> line = reader.nextLine()) {
      Job &job = jobs.emplace_back();
      job.line = reader.line();
      Result<OpenAiRequest> request = parseOpenAiRequest(*line);
      if (!request.ok()) {
        fail(job, "invalid_request", request.message());
        continue;
      }
      job.request = request.take();
      const std::string &id = job.request.id;
      if (id.empty())
        continue;
      if (auto [first, isNew] = lines.emplace(id, job.line); !isNew)
        fail(job, "duplicate_custom_id",
             "'custom_id' is that of line " + std::to_string(first->second));
    }
  }

  Status open() {
    const AdapterFlags &lora = options.model.lora;
    std::vector<std::string> names = lora.modelNames;
    // Without adapters, the command names the model, whatever bodies call it:
    // who wrote the file meant another program's, perhaps.
    if (lora.choices.empty())
      for (const Job &job : jobs)
        if (!job.request.model.empty())
          names.push_back(job.request.model);
    std::ranges::sort(names.begin() + 1, names.end());
    names.erase(std::unique(names.begin() + 1, names.end()), names.end());
    const size_t mostTexts = std::ranges::any_of(jobs, isOfEmbeddings)
                                 ? kMostInputs
                                 : kMostChoices; // of a request
    const int64_t count = static_cast<int64_t>(jobs.size());
    KF_RETURN_IF_ERROR(api.open(
        options.model, options.chatTemplate.options,
        {.parallel = options.parallel > 0 ? std::optional(options.parallel)
                                          : std::nullopt,
         .texts = count,
         .embedding = options.embedding.choice()},
        (options.parallel > 0 ? options.parallel : count) *
            static_cast<int64_t>(mostTexts),
        {.access = {},
         .names = std::move(names),
         .sampling = options.sampler}));
    catchFirstInterrupt();
    return Status();
  }

  /// Answers all of them and writes what comes of them, in order.
  Status run() {
    Progress progress("generating");
    std::vector<Job *> going;
    const auto atOnce = static_cast<size_t>(api.session().engine().parallel());
    size_t next = 0, written = 0;
    while (next < jobs.size() || !going.empty()) {
      if (isCancelled(&interruptFlag()))
        break;
      for (; next < jobs.size() && going.size() < atOnce; ++next)
        if (jobs[next].result.empty())
          going.push_back(begin(jobs[next]));
      std::erase_if(going, [this](Job *job) { return isOver(*job); });
      const size_t done = next - going.size();
      progress.update(
          static_cast<double>(done) / static_cast<double>(jobs.size()),
          std::to_string(done) + " of " + std::to_string(jobs.size()));
      KF_RETURN_IF_ERROR(write(written));
      if (!going.empty())
        api.wait();
    }
    for (Job &job : jobs)
      if (job.result.empty())
        cancel(job);
    KF_RETURN_IF_ERROR(write(written));
    return options.json.empty() ? Status() : writeOutput(options.json, pending);
  }

  bool anyFailed() const { return failed > 0; }
  std::string summary() const {
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.2f s", watch.seconds());
    return std::to_string(jobs.size()) + " requests, " +
           std::to_string(failed) + " failed" +
           (cancelled ? ", " + std::to_string(cancelled) + " cancelled" : "") +
           ", in " + seconds + "\n";
  }
  Status showProfile() { return kf::showProfile(options.model, api.session()); }

private:
  void complain(const Job &job, const std::string &message) {
    printError(quotePath(options.file) + ": line " + std::to_string(job.line) +
               ": " + message);
    ++failed;
  }

  void fail(Job &job, const char *code, const std::string &message) {
    complain(job, message);
    job.result =
        openAiResult(job.line, job.request.id, OpenAiError{code, message});
  }

  void cancel(Job &job) {
    job.answer.reset();
    ++cancelled;
    job.result = openAiResult(
        job.line, job.request.id,
        OpenAiError{"batch_cancelled", "an interrupt ended the batch"});
  }

  Job *begin(Job &job) {
    job.answer = api.post(std::string(job.request.path()),
                          std::exchange(job.request.body, {}));
    return &job;
  }

  /// Takes what is new of an answer; returns whether that was its end.
  bool isOver(Job &job) {
    HttpAnswer::Piece piece = job.answer->take();
    if (piece.head) {
      job.status = piece.head->status;
      job.body += piece.head->body;
    }
    job.body += piece.body;
    if (!piece.isLast)
      return false;
    job.answer.reset();
    if (job.status != 200)
      complain(job, messageOf(job.body));
    job.result = openAiResult(job.line, job.request.id, job.status,
                              std::exchange(job.body, {}));
    return true;
  }

  /// Writes the results of the jobs from number `written` on that are done.
  Status write(size_t &written) {
    for (; written < jobs.size() && !jobs[written].result.empty(); ++written)
      pending += jobs[written].result + "\n";
    if (!options.json.empty() || pending.empty())
      return Status();
    return writeStdout(std::exchange(pending, {}));
  }

  const BatchOptions &options;
  Stopwatch watch;
  OwnApi api;
  std::vector<Job> jobs; ///< their answers go before the API
  size_t failed = 0, cancelled = 0;
  std::string pending; ///< results that are not written yet
};

} // namespace

bool kf::isOpenAiBatch(std::string_view text) {
  const std::optional<std::string_view> line = BatchReader(text).nextLine();
  if (!line || !checkLineSize(*line).ok())
    return false;
  const Result<JsonDocument> object = parseJson(*line);
  return object.ok() && isOpenAiLine(**object);
}

Result<bool> kf::runOpenAiBatch(const BatchOptions &options,
                                std::string_view text) {
  KF_RETURN_IF_ERROR(checkOptions(options));
  ApiBatch batch(options);
  batch.read(text);
  KF_RETURN_IF_ERROR(batch.open());
  KF_RETURN_IF_ERROR(batch.run());
  if (!options.quiet)
    std::fputs(batch.summary().c_str(), stderr);
  KF_RETURN_IF_ERROR(batch.showProfile());
  return !batch.anyFailed();
}
