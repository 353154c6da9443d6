//===- BatchFile.cpp - Requests, one a line -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/BatchFile.h"

#include "runtime/batch/FormatFields.h"
#include "runtime/batch/LogProbFields.h"
#include "runtime/batch/RequestFields.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"

#include <algorithm>

using namespace kf;
using nlohmann::json;

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr const char *kKeys[] = {"prompt",
                                 "ids",
                                 "messages",
                                 "n",
                                 "ignore_eos",
                                 "temp",
                                 "top_k",
                                 "top_p",
                                 "min_p",
                                 "seed",
                                 "repeat_penalty",
                                 "presence_penalty",
                                 "frequency_penalty",
                                 "repeat_last_n",
                                 "logit_bias",
                                 "stop",
                                 "logprobs",
                                 "top_logprobs",
                                 "response_format",
                                 "json_schema",
                                 "grammar",
                                 "chat_template_kwargs",
                                 "id",
                                 "model",
                                 "stream"};

/// What OpenAI's API and others call some of them.
constexpr const char *kOtherNames[] = {
    "max_tokens", "max_completion_tokens", "max_new_tokens",
    "n_predict",  "temperature",           "repetition_penalty"};

/// Keys of OpenAI's API that are none here, and why.
struct OtherKey {
  std::string_view names; ///< with blanks around each
  const char *advice;
};
constexpr OtherKey kOtherKeys[] = {
    {" custom_id method url body ",
     "is of OpenAI's batches, which are files of such lines alone; else a line "
     "is what their 'body' holds, with 'id' for 'custom_id'"},
    {" input instructions ",
     "is of another API; 'prompt' or 'messages' is what to go on from"},
    {" tools tool_choice functions function_call parallel_tool_calls ",
     "is not supported: batches read no calls of tools; kf-run serve does"},
    {" best_of echo suffix prediction ", "is not supported"},
    {" images image audio modalities ",
     "is not supported: prompts are text alone, without images and audio"},
    {" stream_options ",
     "is not supported: each request becomes a line when it is finished"},
};

//===----------------------------------------------------------------------===//
// What to go on from
//===----------------------------------------------------------------------===//

Result<ChatMessage> readMessage(const json &object, const std::string &name) {
  if (!object.is_object())
    return Status::error("'" + name + "' is " + shortDump(object) +
                         ", but an object of role and content is expected");
  const ConfigReader reader(object, name + ".");
  for (const auto &[key, value] : object.items())
    if (key != "role" && key != "content")
      return Status::error("'" + name + "' has a key " + inQuotes(key) +
                           "; role and content are possible");
  ChatMessage message;
  KF_ASSIGN_OR_RETURN(message.role, reader.text("role"));
  KF_ASSIGN_OR_RETURN(message.content, readContent(reader, name));
  if (message.role != "system" && message.role != "user" &&
      message.role != "assistant")
    return reader.unexpected("role", "system, user or assistant");
  return message;
}

Result<std::vector<ChatMessage>> readMessages(const ConfigReader &reader) {
  const json *value = reader.find("messages");
  if (!value->is_array() || value->empty())
    return reader.unexpected("messages", "an array of messages, at least one,");
  std::vector<ChatMessage> messages;
  for (const json &item : *value) {
    KF_ASSIGN_OR_RETURN(
        ChatMessage message,
        readMessage(item, "messages[" + std::to_string(messages.size()) + "]"));
    messages.push_back(std::move(message));
  }
  return messages;
}

Status readStart(const ConfigReader &reader, BatchRequest &request) {
  KF_ASSIGN_OR_RETURN(const std::string_view found,
                      reader.onlyOneOf({"prompt", "ids", "messages"}));
  if (found.empty())
    return Status::error("one of 'prompt', 'ids' and 'messages' is missing");
  if (reader.contains("prompt")) {
    KF_ASSIGN_OR_RETURN(request.prompt, reader.text("prompt"));
  } else if (reader.contains("ids")) {
    KF_ASSIGN_OR_RETURN(request.ids, readIds(reader, "ids"));
  } else {
    KF_ASSIGN_OR_RETURN(request.messages, readMessages(reader));
  }
  if (!request.messages && reader.contains("chat_template_kwargs"))
    return Status::error("'chat_template_kwargs' is for 'messages'");
  return Status();
}

Status checkKeys(const json &object) {
  for (const auto &[key, value] : object.items()) {
    if (std::ranges::find(kKeys, key) != std::end(kKeys) ||
        std::ranges::find(kOtherNames, key) != std::end(kOtherNames) ||
        std::ranges::find(kFormatFields, key) != std::end(kFormatFields))
      continue;
    for (const OtherKey &other : kOtherKeys)
      if (other.names.find(" " + key + " ") != other.names.npos)
        return Status::error("'" + key + "' " + other.advice);
    std::string known;
    for (const char *other : kKeys)
      known += (known.empty() ? "" : ", ") + std::string(other);
    return Status::error("there is no key " + inQuotes(key) +
                         "; possible are " + known);
  }
  return Status();
}

/// Of `line`, as it was parsed.
Result<BatchRequest> readRequest(const json &object, std::string_view line) {
  if (!object.is_object())
    return Status::error("a JSON object is expected, not " + shortDump(object));
  KF_RETURN_IF_ERROR(checkKeys(object));
  const ConfigReader reader(object);
  BatchRequest request;
  KF_RETURN_IF_ERROR(readStart(reader, request));
  KF_ASSIGN_OR_RETURN(request.variables, readTemplateVariables(reader, line));
  KF_RETURN_IF_ERROR(readInteger(reader,
                                 {"n", "max_tokens", "max_completion_tokens",
                                  "max_new_tokens", "n_predict"},
                                 -1, kMostTokens, request.tokens));
  if (reader.contains("ignore_eos")) {
    KF_ASSIGN_OR_RETURN(request.ignoreEos, reader.boolean("ignore_eos", false));
  }
  KF_RETURN_IF_ERROR(readStops(reader, request.stops));
  KF_RETURN_IF_ERROR(readSampling(reader, request.sampling));
  KF_ASSIGN_OR_RETURN(request.topLogProbs, readChatLogProbs(reader));
  KF_ASSIGN_OR_RETURN(request.format, readFormat(reader, line));
  KF_ASSIGN_OR_RETURN(request.model, readModelName(reader));
  if (reader.contains("stream")) {
    KF_ASSIGN_OR_RETURN(const bool stream, reader.boolean("stream", false));
    if (stream)
      return Status::error("'stream' is not supported: each request becomes a "
                           "line when it is finished");
  }
  if (const json *id = reader.find("id")) {
    if (!id->is_primitive())
      return reader.unexpected("id", "a text, a number, true or false");
    request.id = id->dump();
  }
  return request;
}

} // namespace

Status kf::checkLineSize(std::string_view line) {
  constexpr size_t most = size_t(64) << 20;
  return line.size() > most
             ? Status::error("more than 64 MiB; no context is that long")
             : Status();
}

Result<BatchRequest> kf::parseBatchRequest(std::string_view line) try {
  KF_RETURN_IF_ERROR(checkLineSize(line));
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseJson(line));
  return readRequest(*object, line);
} catch (...) {
  return statusOfException();
}

BatchReader::BatchReader(std::string_view text) : rest(text) {
  if (rest.starts_with(kByteOrderMark))
    rest.remove_prefix(kByteOrderMark.size());
}

std::optional<std::string_view> BatchReader::nextLine() {
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos)
      return line;
  }
  return std::nullopt;
}

std::optional<Result<BatchRequest>> BatchReader::next() try {
  const std::optional<std::string_view> line = nextLine();
  if (!line)
    return std::nullopt;
  Result<BatchRequest> request = parseBatchRequest(*line);
  if (request.ok())
    return request;
  return Result<BatchRequest>(
      request.status().in("line " + std::to_string(number)));
} catch (...) {
  return Result<BatchRequest>(statusOfException());
}
