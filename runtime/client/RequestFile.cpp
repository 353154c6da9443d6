//===- RequestFile.cpp - Requests to send to servers ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/RequestFile.h"

#include "runtime/batch/BatchFile.h"
#include "runtime/batch/OpenAiBatch.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/model/ConfigReader.h"

#include <algorithm>

using namespace kf;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// What OpenAI's API calls a key of batches' own form.
struct OwnKey {
  std::string_view name, other;
};
constexpr OwnKey kOwnKeys[] = {{"n", "max_tokens"},
                               {"max_new_tokens", "max_tokens"},
                               {"n_predict", "max_tokens"},
                               {"temp", "temperature"},
                               {"repetition_penalty", "repeat_penalty"},
                               {"ids", "prompt"}};

/// Moves the member `from` to the name `to`.
void rename(ordered_json &object, const std::string &from,
            const std::string &to) {
  ordered_json value = std::move(object[from]);
  object.erase(from);
  object[to] = std::move(value);
}

/// A logit_bias in the form of OpenAI's: {"15": -1.5}.
void spellBiases(ordered_json &body) {
  const auto found = body.find("logit_bias");
  if (found == body.end())
    return;
  constexpr double never = -100; // the least that their API takes
  ordered_json object = ordered_json::object();
  auto add = [&](const std::string &id, const ordered_json &bias) {
    object[id] = bias.is_boolean() ? ordered_json(never) : bias;
  };
  if (found->is_object())
    for (const auto &[id, bias] : found->items())
      add(id, bias);
  else // pairs, as parseBatchRequest has seen
    for (const ordered_json &pair : *found)
      add(std::to_string(pair[0].get<int64_t>()), pair[1]);
  *found = std::move(object);
}

/// Reads a line of batches' own form, which is the object `body`.
Result<RemoteRequest> readOwn(std::string_view line, ordered_json body) {
  KF_ASSIGN_OR_RETURN(const BatchRequest checked, parseBatchRequest(line));
  RemoteRequest request;
  request.id = checked.id;
  request.isChat = checked.messages.has_value();
  for (const char *key : {"id", "model", "stream"})
    body.erase(key);
  for (auto member = body.begin(); member != body.end();)
    member = member->is_null() ? body.erase(member) : std::next(member);
  for (const OwnKey &key : kOwnKeys)
    if (body.contains(key.name))
      rename(body, std::string(key.name), std::string(key.other));
  if (body.contains("max_tokens") && body["max_tokens"] == -1)
    body.erase("max_tokens");
  spellBiases(body);
  if (!request.isChat) { // of completions it is one number, or none
    body.erase("logprobs");
    body.erase("top_logprobs");
    if (checked.topLogProbs)
      body["logprobs"] = *checked.topLogProbs;
  }
  request.body = std::move(body);
  return request;
}

/// Reads a line of OpenAI's batches, `object`; `ordered` is the same.
Result<RemoteRequest> readForeign(const json &object, ordered_json ordered) {
  KF_ASSIGN_OR_RETURN(const OpenAiLine line, readOpenAiLine(object));
  RemoteRequest request;
  request.id = line.id;
  if (line.endpoint == OpenAiEndpoint::Embeddings)
    return Status::error("'url' is of embeddings; texts are compared, of "
                         "\"/v1/chat/completions\" or \"/v1/completions\"");
  request.isChat = line.endpoint == OpenAiEndpoint::Chat;
  const json &body = object["body"];
  // One answer each is compared.
  for (const char *key : {"n", "best_of"})
    if (body.contains(key) && body[key] != 1 && !body[key].is_null())
      return Status::error("'body." + std::string(key) + "' is " +
                           shortDump(body[key]) +
                           ", but 1 is expected: one "
                           "answer of each request is compared");
  if (!body.contains(request.isChat ? "messages" : "prompt"))
    return Status::error("'body' has no " + std::string(request.isChat
                                                            ? "'messages'"
                                                            : "'prompt'"));
  request.body = std::move(ordered["body"]);
  request.body.erase("model");
  return request;
}

void addDefaults(ordered_json &body, const RequestDefaults &defaults) {
  auto says = [&](const char *key) {
    return body.contains(key) && !body[key].is_null();
  };
  if (!says("temperature"))
    body["temperature"] = defaults.temperature;
  if (defaults.tokens != -1 && !says("max_tokens") &&
      !says("max_completion_tokens"))
    body["max_tokens"] = defaults.tokens;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
}

} // namespace

Result<std::string> RemoteRequest::bodyFor(const std::string &model) const try {
  const std::string text = body.dump();
  if (model.empty())
    return text;
  // There is always something behind it.
  const json name = model;
  return "{\"model\":" +
         name.dump(-1, ' ', false, json::error_handler_t::replace) + "," +
         text.substr(1);
} catch (...) {
  return statusOfException();
}

Result<RemoteRequest>
kf::parseRemoteRequest(std::string_view line,
                       const RequestDefaults &defaults) try {
  // Checks the nesting and the keys; the other parser keeps their order.
  KF_ASSIGN_OR_RETURN(const JsonDocument document, parseJson(line));
  ordered_json ordered = ordered_json::parse(line);
  KF_ASSIGN_OR_RETURN(RemoteRequest request,
                      isOpenAiLine(*document)
                          ? readForeign(*document, std::move(ordered))
                          : readOwn(line, std::move(ordered)));
  addDefaults(request.body, defaults);
  request.isGreedy = request.body["temperature"] == 0;
  return request;
} catch (...) {
  return statusOfException();
}

Result<std::vector<RemoteRequest>>
kf::parseRemoteRequests(std::string_view text,
                        const RequestDefaults &defaults) try {
  std::vector<RemoteRequest> requests;
  BatchReader reader(text);
  while (std::optional<std::string_view> line = reader.nextLine()) {
    Result<RemoteRequest> request = parseRemoteRequest(*line, defaults);
    if (!request.ok())
      return request.status().in("line " + std::to_string(reader.line()));
    request->line = reader.line();
    requests.push_back(request.take());
  }
  if (requests.empty())
    return Status::error("no request: a JSON object a line, with \"prompt\", "
                         "\"ids\" or \"messages\"");
  return requests;
} catch (...) {
  return statusOfException();
}
