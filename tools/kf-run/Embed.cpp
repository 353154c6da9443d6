//===- Embed.cpp - kf-run embed -------------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "EmbeddingFlags.h"
#include "Interrupt.h"
#include "ModelFlags.h"
#include "Progress.h"
#include "Prompt.h"
#include "Report.h"

#include "runtime/core/JsonText.h"
#include "runtime/engine/Generation.h"

#include <algorithm>
#include <utility>

using namespace kf;

namespace {

struct EmbedOptions {
  ModelFlags model;
  EmbeddingFlags embedding;
  std::optional<std::string> text;
  std::string file, json;
  int64_t dimensions = 0, parallel = 16;
  bool noEscape = false;

  void addTo(OptionParser &parser) {
    parser.text({"prompt", 'p', "TEXT"}, text, "the text");
    parser.text({"file", 'f', "FILE"}, file,
                "the texts, one a line; - is stdin");
    addEscapeFlag(parser, noEscape, [this] {
      if (text)
        text = unescaped(*text);
    });
    embedding.addWithRowsTo(parser);
    parser.integer({"dimensions", 0, "N"}, dimensions, 1, int64_t(1) << 24,
                   "the first N numbers of each embedding alone, for models "
                   "that were trained for it; --normalize is of these");
    parser.integer({"parallel", 0, "N"}, parallel, 1, 4096,
                   "how many texts are read at once; 16 by default");
    parser.json(json, "the lines when all are there, instead of to stdout one "
                      "by one");
    model.addTo(parser);
    model.addRanksTo(parser);
    model.lora.addOneTo(parser);
    parser.addCheck([this] {
      return text && !file.empty()
                 ? Status::error("--prompt and --file exclude each other")
                 : Status();
    });
  }
};

/// A text, and what becomes of it.
struct Job {
  std::string where; ///< for errors
  std::string text;
  std::vector<int32_t> ids;
  std::optional<Sampler> sampler; ///< which chooses nothing
  std::unique_ptr<Sequence> sequence;
  std::unique_ptr<Generation> generation; ///< while it is read
  std::string line;                       ///< of the output, once it is done
};

/// One of --prompt, or a line of --file each; its last line break ends a line.
Result<std::vector<Job>> readJobs(const EmbedOptions &options) {
  std::vector<Job> jobs;
  if (options.text) {
    jobs.emplace_back().text = *options.text;
    jobs.back().where = "the text";
    return jobs;
  }
  KF_ASSIGN_OR_RETURN(const std::string all,
                      readBytes(std::nullopt, options.file));
  std::string_view rest = all;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    Job &job = jobs.emplace_back();
    job.where =
        quotePath(options.file) + ": line " + std::to_string(jobs.size());
    job.text = line;
  }
  if (jobs.empty())
    return Status::error(quotePath(options.file) + " has no text: one a line");
  return jobs;
}

std::string lineOf(size_t index, const GenerationResult &result,
                   const EmbeddingOptions &embedding, size_t width) {
  const std::span<const float> values = result.embedding;
  auto rowAt = [&](size_t first) {
    return jsonArray(values.subspan(first, width),
                     [](float value) { return jsonNumber(value); });
  };
  std::vector<JsonMember> members = {{"index", jsonText(index)},
                                     {"tokens", jsonText(result.promptTokens)}};
  if (embedding.pooling == Pooling::None) {
    std::string rows = "[";
    for (size_t first = 0; first < values.size(); first += width)
      rows += (first ? "," : "") + rowAt(first);
    members.emplace_back("embeddings", rows + "]");
  } else {
    members.emplace_back("embedding", rowAt(0));
  }
  return jsonObject(members) + "\n";
}

/// Texts and one model.
class Embedding {
public:
  explicit Embedding(const EmbedOptions &options) : options(options) {}

  /// Opens the model and reads the texts.
  Status open() {
    KF_ASSIGN_OR_RETURN(jobs, readJobs(options));
    KF_ASSIGN_OR_RETURN(run, openSession(options.model, true));
    catchFirstInterrupt();
    const ModelFiles &files = run->files();
    const Result<EmbeddingOptions> chosen =
        chooseEmbedding(options.embedding.choice(), files.pooling);
    if (!chosen.ok())
      return nameModel(files, chosen.status());
    embedding = *chosen;
    embedding.dimensions = options.dimensions;
    size_t longest = 0;
    for (Job &job : jobs) {
      Result<std::vector<int32_t>> ids =
          encodeText(files, job.text, &interruptFlag());
      if (!ids.ok())
        return ids.status().in(job.where);
      job.ids = ids.take();
      longest = std::max(longest, job.ids.size());
    }
    return run->start(
        {.tokens = static_cast<int64_t>(longest),
         .parallel =
             std::min(options.parallel, static_cast<int64_t>(jobs.size()))});
  }

  /// Reads all of them, and writes their lines in order.
  Status embed() {
    Progress progress("reading");
    const size_t most = static_cast<size_t>(run->engine().parallel());
    size_t begun = 0, written = 0;
    std::string pending;
    while (written < jobs.size()) {
      for (; begun < jobs.size() && begun - written < most; ++begun)
        KF_RETURN_IF_ERROR(begin(jobs[begun]).in(jobs[begun].where));
      run->engine().step();
      for (size_t i = written; i < begun; ++i)
        if (jobs[i].generation && jobs[i].generation->isDone())
          KF_RETURN_IF_ERROR(finish(i));
      for (; written < begun && !jobs[written].generation; ++written)
        pending += std::exchange(jobs[written].line, {});
      progress.update(static_cast<double>(written) /
                      static_cast<double>(jobs.size()));
      if (options.json.empty() && !pending.empty())
        KF_RETURN_IF_ERROR(writeStdout(std::exchange(pending, {})));
    }
    if (!options.json.empty())
      KF_RETURN_IF_ERROR(writeOutput(options.json, pending));
    return showProfile(options.model, *run);
  }

private:
  Status begin(Job &job) {
    KF_RETURN_IF_ERROR(run->checkFits(job.ids));
    KF_ASSIGN_OR_RETURN(job.sampler, Sampler::create({}));
    KF_ASSIGN_OR_RETURN(job.sequence, run->createSequence());
    GenerationOptions wanted;
    wanted.embedding = embedding;
    job.generation = std::make_unique<Generation>(*job.sequence, *job.sampler,
                                                  nullptr, std::move(wanted));
    return job.generation->start(job.ids);
  }

  Status finish(size_t index) {
    Job &job = jobs[index];
    const Result<GenerationResult> result = job.generation->take();
    job.generation.reset();
    job.sequence.reset();
    if (!result.ok())
      return run->engine().model().explain(result.status()).in(job.where);
    if (result->reason == StopReason::Cancelled)
      return Status::cancelled();
    const size_t width = static_cast<size_t>(
        embedding.dimensions ? embedding.dimensions
                             : run->files().config.hiddenSize);
    job.line = lineOf(index, *result, embedding, width);
    return Status();
  }

  const EmbedOptions &options;
  std::unique_ptr<Session> run;
  EmbeddingOptions embedding;
  std::vector<Job> jobs;
};

Status embed(const EmbedOptions &options) {
  Embedding embedding(options);
  KF_RETURN_IF_ERROR(embedding.open());
  return embedding.embed();
}

} // namespace

int kf::runEmbed(Arguments arguments) {
  EmbedOptions options;
  OptionParser parser(
      "embed [MODEL] -p TEXT | -f FILE [options]",
      "Makes embeddings: numbers that are near to one another for texts that "
      "mean the same to the model. Each text becomes a line, in the same "
      "order: \"index\", \"tokens\" and \"embedding\", or with --pooling none "
      "\"embeddings\", a row for each token. Tokens are those that the "
      "tokenizer puts around a text, too.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (!options.text && options.file.empty())
    return parser.usageError("--prompt or --file is missing");
  const Status status = embed(options);
  if (status.isCancelled() || interruptFlag())
    return reportInterrupt("embeddings are missing");
  return report(status);
}
