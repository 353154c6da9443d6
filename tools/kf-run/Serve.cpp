//===- Serve.cpp - kf-run serve -------------------------------------------===//
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
#include "Report.h"
#include "SamplerFlags.h"
#include "ServedSession.h"
#include "TemplateFlags.h"

#include "runtime/core/MappedFile.h"
#include "runtime/serve/HttpServer.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <thread>

#include <sys/resource.h>

using namespace kf;

namespace {

struct ServeOptions {
  ModelFlags model;
  std::string host = "127.0.0.1", keyFile;
  TemplateFlags chatTemplate;
  std::optional<int64_t> parallel;
  int64_t port = 8080, queue = 128, tokens = -1, drain = 30;
  int64_t connections = 1024;
  int64_t stepMilliseconds = std::lround(1e3 * kLongestServedStep);
  uint64_t body = 16 << 20;
  std::vector<std::string> keys, hosts, origins;
  PartialSamplerOptions sampler;
  EmbeddingFlags embedding;

  void addTo(OptionParser &parser) {
    parser.text({"host", 0, "HOST"}, host,
                "the address to listen on; 127.0.0.1 by default, which other "
                "machines do not reach; 0.0.0.0 is all of this one's");
    parser.integer({"port", 0, "N"}, port, 0, 65535,
                   "the port; 8080 by default, 0: one that is free");
    parser.texts({"api-key", 0, "KEY"}, keys,
                 "a key that requests have to have, as 'Authorization: Bearer "
                 "KEY'. May be given more than once");
    parser.text({"api-key-file", 0, "FILE"}, keyFile,
                "the same, a key a line: others on this machine see options");
    parser.integer({"parallel", 0, "N"}, parallel, 0, 4096,
                   "how many texts are generated at once; 8 by default, on "
                   "NVIDIA GPUs 128; 0: as many as have the most tokens a "
                   "second together, 16 or 256. By default and with 0 no more "
                   "than have room for whole contexts in a GPU's memory");
    parser.integer({"queue", 0, "N"}, queue, 1, 1 << 20,
                   "how many more wait; others are answered 429. 128 by "
                   "default");
    parser.integer({"step-ms", 0, "N"}, stepMilliseconds, 1, 60'000,
                   "how long a step should take at most, in milliseconds; 250 "
                   "by default. With more, prompts are read in larger chunks: "
                   "first tokens come earlier, and tokens of texts that go on "
                   "later");
    parser.integer({"tokens", 'n', "N"}, tokens, -1, kMostTokens,
                   "the most tokens of an answer; -1, the default: until the "
                   "context is full");
    chatTemplate.addTo(parser);
    addSamplerFlags(parser, sampler, ModelSampling::Always,
                    "1, as OpenAI has it");
    embedding.addTo(parser);
    parser.bytes({"max-body", 0, "SIZE"}, body,
                 "the most bytes of a request's body; 16M by default");
    parser.integer({"max-connections", 0, "N"}, connections, 1, 1 << 16,
                   "the most connections; 1024 by default");
    parser.texts({"allow-host", 0, "NAME"}, hosts,
                 "a name that requests may call the server by where it has no "
                 "key, beside addresses and localhost. May be given more than "
                 "once");
    parser.texts({"cors-origin", 0, "ORIGIN"}, origins,
                 "an origin whose pages may send requests, as in "
                 "https://example.org; * is any. May be given more than once");
    parser.integer({"drain", 0, "SECONDS"}, drain, 0, 3600,
                   "how long answers may go on after an interrupt; 30 by "
                   "default");
    model.addTo(parser);
    model.addRanksTo(parser);
    model.addDraftsTo(parser);
    model.lora.addNamesTo(parser, model.model);
  }
};

/// The keys of a file, one a line.
Status readKeys(const std::string &path, std::vector<std::string> &keys) {
  KF_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  std::string_view text = file.text();
  const size_t before = keys.size();
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (!line.empty())
      keys.emplace_back(line);
  }
  if (keys.size() == before)
    return Status::error(quotePath(path) + " has no key: one a line");
  return Status();
}

/// A connection is a file to the system, which allows few without being asked.
void allowConnections(int64_t count) {
  constexpr rlim_t others = 256; // of the model, the cache and so on
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  const rlim_t wanted = static_cast<rlim_t>(count) + others;
  if (limit.rlim_cur >= wanted)
    return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  // Where there are fewer, those that come wait.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/// A model behind a port.
class Serving {
public:
  explicit Serving(const ServeOptions &options) : options(options) {}
  ~Serving() { end(); }

  /// Finds what is wrong with options and files, before anybody is told that
  /// there is a server.
  Status open() {
    settings.access = {options.keys, options.hosts, options.origins};
    if (!options.keyFile.empty())
      KF_RETURN_IF_ERROR(readKeys(options.keyFile, settings.access.keys));
    return served.open(
        options.model, options.chatTemplate.options,
        {.parallel = options.parallel == 0 ? std::nullopt : options.parallel,
         .texts =
             options.parallel == 0 ? std::optional(INT64_MAX) : std::nullopt,
         .longestStep = 1e-3 * static_cast<double>(options.stepMilliseconds),
         .embedding = options.embedding.choice()});
  }

  /// Listens, and answers that the model is loading.
  Status listen() {
    isOpenToAll = settings.access.keys.empty();
    settings.names = options.model.lora.modelNames;
    name = settings.names.front();
    settings.mostTokens = std::max<int64_t>(options.tokens, 0);
    settings.sampling = options.sampler;
    api = std::make_unique<Api>(std::move(settings));

    HttpServerOptions http;
    http.host = options.host;
    http.port = static_cast<uint16_t>(options.port);
    http.mostBodyBytes = options.body;
    http.mostConnections = static_cast<size_t>(options.connections);
    allowConnections(options.connections);
    KF_ASSIGN_OR_RETURN(server, HttpServer::create(http, *api));
    server->catchSignals({SIGINT, SIGTERM}, [this] {
      // What is still loading ends, too.
      if (!isReady)
        interruptFlag() = true;
      server->stop(std::chrono::steady_clock::now() +
                   std::chrono::seconds(options.drain));
    });
    thread = std::thread([this] { server->run(); });
    if (isOpenToAll && !server->isLocal())
      printNote("whoever reaches this machine can use the model; --api-key "
                "wants a key");
    return writeStdout("listening on " + server->url() + "\n");
  }

  /// Makes the model's programs ready.
  Status load() {
    KF_RETURN_IF_ERROR(served.serve(options.queue, *api));
    isReady = true;
    return writeStdout(
        "serving " + name + " at " + server->url() + ": context " +
        std::to_string(served.service().contextLength()) + ", " +
        std::to_string(served.session().engine().parallel()) + " at once, on " +
        served.session().device().name() + "\n");
  }

  /// Until an interrupt; nothing uses the session's device any more then.
  void wait() {
    thread.join();
    api.reset();
    served.close();
  }

  Status showProfile() {
    return kf::showProfile(options.model, served.session());
  }

private:
  /// From the outside in: what is refers to what was made before.
  void end() {
    if (thread.joinable()) {
      server->stop();
      thread.join();
    }
    api.reset();
    served.close();
  }

  const ServeOptions &options;
  ApiOptions settings; ///< until it listens
  std::string name;
  bool isOpenToAll = false;
  std::atomic<bool> isReady = false;
  std::unique_ptr<Api> api;
  std::unique_ptr<HttpServer> server;
  std::thread thread; ///< of the server
  ServedSession served;
};

Status serve(const ServeOptions &options) {
  Serving serving(options);
  KF_RETURN_IF_ERROR(serving.open());
  KF_RETURN_IF_ERROR(serving.listen());
  KF_RETURN_IF_ERROR(serving.load());
  serving.wait();
  return serving.showProfile();
}

} // namespace

int kf::runServe(Arguments arguments) {
  ServeOptions options;
  OptionParser parser(
      "serve [MODEL] [options]",
      "Answers requests of OpenAI's API by HTTP: /v1/chat/completions, "
      "/v1/completions, /v1/embeddings and /v1/models, and llama.cpp's "
      "/completion, /tokenize, "
      "/health and so on (docs/Server.md). Prints the address when it listens "
      "and a line more when the model is ready. An interrupt (or SIGTERM) "
      "lets answers end first; another one ends it at once.");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  const Status status = serve(options);
  if (status.isCancelled() || interruptFlag())
    return ExitInterrupted;
  return status.ok() ? ExitSuccess : report(status);
}
