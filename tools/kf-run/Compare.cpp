//===- Compare.cpp - kf-run compare ---------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "CompareReport.h"
#include "Interrupt.h"
#include "Progress.h"
#include "Prompt.h"
#include "Report.h"
#include "TemplateFlags.h"

#include "runtime/core/Quote.h"
#include "runtime/engine/PartialSamplerOptions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

using namespace kf;

namespace {

/// Servers' own values of an option, with commas between them: one for all, or
/// as many as there are servers.
std::vector<std::string> splitList(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct CompareOptions {
  ModelFlags model;
  std::string against, file, json, output = "md";
  TemplateFlags chatTemplate;
  std::optional<std::string> names, keys, inputPrices, outputPrices;
  int64_t tokens = 256, parallel = 4, retries = 4;
  double temperature = 0, timeout = 600;
  bool keyInClear = false, quiet = false;

  std::vector<RemoteServer> servers;
  std::vector<TargetRun> runs; ///< of the servers, with names and prices

  void addTo(OptionParser &parser);
  Status check();

private:
  /// `list` as a value for each server; empty where it is not given.
  Result<std::vector<std::string>>
  spread(const char *option, const std::optional<std::string> &list) const;
  Status readKeys();
  Status readPrices(const char *option, const std::optional<std::string> &list,
                    double TargetRun::*price);
};

void CompareOptions::addTo(OptionParser &parser) {
  parser.text({"against", 0, "URL,..."}, against,
              "the servers: http://127.0.0.1:8080, https://api.openai.com/v1");
  parser.text({"file", 0, "FILE"}, file,
              "the requests, a JSON object a line, as 'kf-run batch' or "
              "OpenAI's batches have them; - is stdin");
  parser.text({"remote-model", 0, "NAME,..."}, names,
              "what servers call the model to ask, one name for all or one for "
              "each; by default the first that a server lists");
  parser.text({"key-env", 0, "NAME,..."}, keys,
              "the environment variables that hold the servers' keys, - for "
              "none; OPENAI_API_KEY by default");
  parser.flag({"key-in-clear"}, keyInClear,
              "sends keys to http:// addresses of other machines, too: all on "
              "the way can read them");
  parser.text({"price-input", 0, "X,..."}, inputPrices,
              "what a million tokens of prompts cost");
  parser.text({"price-output", 0, "X,..."}, outputPrices,
              "what a million generated tokens cost");
  parser.integer({"parallel", 0, "N"}, parallel, 1, 256,
                 "how many requests are under way at once; 4 by default");
  parser.integer({"tokens", 'n', "N"}, tokens, -1, kMostTokens,
                 "the most tokens to generate for a request that does not say; "
                 "256 by default, -1: what a server does then");
  parser.real({"temp", 0, "X"}, temperature, 0, kMostTemperature,
              "the temperature of requests that do not say; 0 by default, "
              "which takes the likeliest token");
  parser.real({"timeout", 0, "SECONDS"}, timeout, 0.1, 86400,
              "how long a server may take for an answer; 600 by default");
  parser.integer({"retries", 0, "N"}, retries, 0, 100,
                 "how often a request is sent again where a server is busy "
                 "(429), fails (500 and above) or is not reached; 4 by "
                 "default");
  chatTemplate.addTo(parser, "for the model: ");
  parser.choice({"output", 'o', "FORMAT"}, output, {"md", "jsonl"},
                "md (the default) or jsonl, an object a line");
  parser.json(json, "the figures and all texts");
  parser.flag({"quiet"}, quiet, "prints results and errors alone");
  model.addTo(parser);
  parser.addCheck([this] { return check(); });
}

Result<std::vector<std::string>>
CompareOptions::spread(const char *option,
                       const std::optional<std::string> &list) const {
  if (!list)
    return std::vector<std::string>();
  std::vector<std::string> values = splitList(*list);
  if (values.size() == 1)
    values.resize(servers.size(), values.front());
  if (values.size() != servers.size())
    return Status::error(std::string(option) + " has " +
                         std::to_string(values.size()) + " values for " +
                         std::to_string(servers.size()) +
                         " servers; give one, or one for each");
  return values;
}

/// Whether a variable may be called so; keys mostly are not.
bool isVariableName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
  });
}

Status CompareOptions::readKeys() {
  constexpr const char *unsaid = "OPENAI_API_KEY";
  std::vector<std::string> variables;
  KF_ASSIGN_OR_RETURN(variables, spread("--key-env", keys));
  if (!keys) {
    KF_ASSIGN_OR_RETURN(const ApiKey key, ApiKey::fromEnvironment(unsaid));
    if (servers.size() > 1 && !key.isEmpty())
      return Status::error("--key-env is missing, which says whose key each of "
                           "the servers gets, - for none: OPENAI_API_KEY is "
                           "set, and not for all of them");
    variables.assign(servers.size(), key.isEmpty() ? "-" : unsaid);
  }
  for (size_t i = 0; i < servers.size(); ++i) {
    RemoteServer &server = servers[i];
    if (variables[i] == "-")
      continue;
    if (!isVariableName(variables[i])) // which is not shown: it may be a key
      return Status::error("--key-env takes names of environment variables, or "
                           "- for no key; the value given is none");
    KF_ASSIGN_OR_RETURN(server.key, ApiKey::fromEnvironment(variables[i]));
    if (server.key.isEmpty())
      return Status::error("--key-env names the variable " +
                           inQuotes(variables[i]) +
                           ", which is empty or not set; - is no key");
    if (!server.address.isEncrypted && !server.address.isLocal && !keyInClear)
      return Status::error("the key of " + inQuotes(server.address.base) +
                           " would be readable on the way; give an https:// "
                           "address, --key-env - for no key, or "
                           "--key-in-clear");
  }
  return Status();
}

Status CompareOptions::readPrices(const char *option,
                                  const std::optional<std::string> &list,
                                  double TargetRun::*price) {
  KF_ASSIGN_OR_RETURN(const std::vector<std::string> values,
                      spread(option, list));
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string &text = values[i];
    double value = 0;
    const char *last = text.data() + text.size();
    auto [end, code] = std::from_chars(text.data(), last, value);
    constexpr double most = 1e9;
    if (code != std::errc() || end != last || !(value >= 0 && value <= most))
      return Status::error(std::string(option) +
                           " takes numbers from 0 to 1e+09, not " +
                           inQuotes(text));
    runs[i].*price = value;
    runs[i].hasPrices = true;
  }
  return Status();
}

Status CompareOptions::check() {
  if (against.empty())
    return Status::error("--against is missing");
  if (file.empty())
    return Status::error("--file is missing");
  std::error_code none; // a file that is not there is another one
  if (!json.empty() && std::filesystem::equivalent(file, json, none))
    return Status::error("--json would replace the requests; name another "
                         "file");
  for (const std::string &url : splitList(against)) {
    RemoteServer server;
    KF_ASSIGN_OR_RETURN(server.address, ServerAddress::parse(url));
    server.timeout = timeout;
    server.retries = retries;
    TargetRun &run = runs.emplace_back();
    run.name = server.address.base;
    servers.push_back(std::move(server));
  }
  KF_ASSIGN_OR_RETURN(const std::vector<std::string> models,
                      spread("--remote-model", names));
  for (size_t i = 0; i < models.size(); ++i) {
    if (models[i].empty())
      return Status::error("--remote-model has an empty name");
    runs[i].model = models[i];
  }
  KF_RETURN_IF_ERROR(
      readPrices("--price-input", inputPrices, &TargetRun::inputPrice));
  KF_RETURN_IF_ERROR(
      readPrices("--price-output", outputPrices, &TargetRun::outputPrice));
  return readKeys();
}

/// Prints what has failed; of many, some.
void printFailures(const TargetRun &run,
                   const std::vector<RemoteRequest> &requests) {
  constexpr size_t most = 5;
  size_t count = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Status &error = run.outcomes[i].error;
    if (error.ok() || error.isCancelled())
      continue;
    if (++count <= most)
      printError(printableText(run.name, 200) + ": line " +
                 std::to_string(requests[i].line) + ": " + error.message());
  }
  if (count > most)
    printNote(std::to_string(count - most) + " more have failed there");
}

/// Returns whether all requests were answered by all.
Result<bool> compareAll(const CompareOptions &options,
                        const PresetUse &preset) {
  if (options.quiet)
    Progress::turnOff();
  // What is missing is told before the model is at work.
  KF_RETURN_IF_ERROR(loadLibCurl().status());
  KF_ASSIGN_OR_RETURN(const std::string file,
                      readBytes(std::nullopt, options.file));
  Result<std::vector<RemoteRequest>> parsed = parseRemoteRequests(
      file, {.temperature = options.temperature, .tokens = options.tokens});
  if (!parsed.ok())
    return parsed.status().in(quotePath(options.file));
  const std::vector<RemoteRequest> requests = parsed.take();
  catchFirstInterrupt();

  std::vector<TargetRun> runs(1);
  runs.front().isOwn = true;
  runs.front().name =
      options.model.model.empty() ? "kf-stories" : options.model.model;
  auto show = [&](Progress &progress) {
    return [&](size_t done) {
      progress.update(
          static_cast<double>(done) / static_cast<double>(requests.size()),
          std::to_string(done) + " of " + std::to_string(requests.size()));
    };
  };
  {
    Progress progress("generating");
    KF_RETURN_IF_ERROR(askModel(options.model, options.chatTemplate.options,
                                requests, options.parallel, show(progress),
                                runs.front()));
  }
  // One after the other, and the model has ended: nobody takes from others what
  // they are measured with.
  for (size_t i = 0; i < options.servers.size(); ++i) {
    TargetRun run = options.runs[i];
    Progress progress("asking " + printableText(run.name, 60));
    KF_RETURN_IF_ERROR(askServer(options.servers[i], requests, options.parallel,
                                 show(progress), run));
    runs.push_back(std::move(run));
  }

  std::vector<TargetSummary> summaries;
  bool anyFailed = false;
  for (const TargetRun &run : runs) {
    printFailures(run, requests);
    summaries.push_back(summarize(run, requests, runs.front()));
    anyFailed |= summaries.back().failed > 0;
  }
  KF_RETURN_IF_ERROR(writeStdout(options.output == "md"
                                     ? compareTable(runs, summaries)
                                     : compareLines(runs, summaries, preset)));
  if (!options.json.empty())
    KF_RETURN_IF_ERROR(writeOutput(
        options.json, compareJson(runs, summaries, requests, preset)));
  return !anyFailed;
}

} // namespace

int kf::runCompare(Arguments arguments) {
  CompareOptions options;
  OptionParser parser(
      "compare [MODEL] --against URL,... --file FILE [options]",
      "Sends the same requests to servers of OpenAI's API and to the model "
      "itself, one after another, and prints a row for each: how many were "
      "answered, "
      "the time to the first token and between tokens (median / 99 %), tokens "
      "a second, what they cost, and how far greedy texts are the model's "
      "(docs/Compare.md).");
  options.addTo(parser);
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  const Result<bool> succeeded = compareAll(options, parser.presetUse());
  if (interruptFlag())
    return ExitInterrupted;
  if (!succeeded.ok())
    return report(succeeded.status());
  return *succeeded ? ExitSuccess : ExitFailure;
}
