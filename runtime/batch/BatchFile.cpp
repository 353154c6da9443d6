//===- BatchFile.cpp - Requests, one a line -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/BatchFile.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigReader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

using namespace kf;
using nlohmann::json;

namespace {

constexpr size_t kMostBytes = size_t(64) << 20; ///< of a line
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
                                 "id",
                                 "model",
                                 "stream"};

/// What OpenAI's API and others call a key of these.
struct OtherName {
  const char *name, *key;
};
constexpr OtherName kOtherNames[] = {
    {"max_tokens", "n"},     {"max_completion_tokens", "n"},
    {"max_new_tokens", "n"}, {"n_predict", "n"},
    {"temperature", "temp"}, {"repetition_penalty", "repeat_penalty"}};

/// Keys of OpenAI's API that are none here, and why.
struct OtherKey {
  std::string_view names; ///< with blanks around each
  const char *advice;
};
constexpr OtherKey kOtherKeys[] = {
    {" custom_id method url body ",
     "is of OpenAI's batches: a line is what their 'body' holds, with 'id' for "
     "'custom_id'"},
    {" input instructions ",
     "is of another API; 'prompt' or 'messages' is what to go on from"},
    {" tools tool_choice functions function_call parallel_tool_calls ",
     "is not supported: models call no tools; put them into the prompt"},
    {" response_format json_schema grammar guided_json ",
     "is not supported: tokens are not held to a grammar"},
    {" logprobs top_logprobs ",
     "is not supported; 'kf-run logits' prints scores"},
    {" best_of echo suffix prediction ", "is not supported"},
    {" images image audio modalities ",
     "is not supported: prompts are text alone, without images and audio"},
    {" stream_options ",
     "is not supported: each request becomes a line when it is finished"},
};

/// A token's id; nothing for any other value.
std::optional<int32_t> toId(const json &value) {
  // Every number without a sign is one of these, even where it fits an int64_t.
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > std::numeric_limits<int32_t>::max())
    return std::nullopt;
  return value.get<int32_t>();
}

/// The same from an object's key.
std::optional<int32_t> parseId(std::string_view text) {
  int32_t id = 0;
  auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), id);
  if (code != std::errc() || end != text.data() + text.size() || id < 0)
    return std::nullopt;
  return id;
}

/// What is added to a logit; nothing for any other value.
std::optional<double> toBias(const json &value) {
  if (value.is_boolean() && !value.get<bool>())
    return -std::numeric_limits<double>::infinity();
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    return std::nullopt;
  return value.get<double>();
}

//===----------------------------------------------------------------------===//
// What to go on from
//===----------------------------------------------------------------------===//

Result<std::vector<int32_t>> readIds(const ConfigReader &reader) {
  const json *value = reader.find("ids");
  std::vector<int32_t> ids;
  bool sound = value->is_array() && !value->empty();
  for (size_t i = 0; sound && i < value->size(); ++i) {
    std::optional<int32_t> id = toId((*value)[i]);
    sound = id.has_value();
    ids.push_back(id.value_or(0));
  }
  if (!sound)
    return reader.unexpected("ids", "an array of token ids, at least one,");
  return ids;
}

/// A message's content: a text, or OpenAI's array of parts that are texts.
Result<std::string> readContent(const ConfigReader &reader,
                                const std::string &name) {
  const json *value = reader.find("content");
  if (!value || !value->is_array())
    return reader.text("content");
  std::string content;
  for (const json &part : *value) {
    const ConfigReader fields(part, name + ".content[].");
    if (!part.is_object())
      return reader.unexpected("content", "a text, or an array of objects,");
    KF_ASSIGN_OR_RETURN(const std::string type, fields.text("type"));
    if (type != "text")
      return Status::error("'" + name + ".content' has a part of type " +
                           inQuotes(type) +
                           "; prompts are text alone, without images and "
                           "audio");
    KF_ASSIGN_OR_RETURN(const std::string text, fields.text("text"));
    content += text;
  }
  return content;
}

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
  const char *found = nullptr;
  for (const char *key : {"prompt", "ids", "messages"}) {
    if (!reader.contains(key))
      continue;
    if (found)
      return Status::error("'" + std::string(found) + "' and '" + key +
                           "' exclude each other");
    found = key;
  }
  if (!found)
    return Status::error("one of 'prompt', 'ids' and 'messages' is missing");
  if (reader.contains("prompt")) {
    KF_ASSIGN_OR_RETURN(request.prompt, reader.text("prompt"));
  } else if (reader.contains("ids")) {
    KF_ASSIGN_OR_RETURN(request.ids, readIds(reader));
  } else {
    KF_ASSIGN_OR_RETURN(request.messages, readMessages(reader));
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

Status readNumber(const ConfigReader &reader, const char *key, double least,
                  double most, std::optional<double> &out, bool above = false) {
  if (!reader.contains(key))
    return Status();
  KF_ASSIGN_OR_RETURN(out, reader.number(key, least, most, above));
  return Status();
}

Status readInteger(const ConfigReader &reader, const char *key, int64_t least,
                   int64_t most, std::optional<int64_t> &out) {
  if (!reader.contains(key))
    return Status();
  KF_ASSIGN_OR_RETURN(out, reader.integer(key, least, most));
  return Status();
}

Status readSeed(const ConfigReader &reader, std::optional<uint64_t> &out) {
  const json *value = reader.find("seed");
  if (!value)
    return Status();
  if (!value->is_number_unsigned())
    return reader.unexpected("seed",
                             "an integer from 0 to 18446744073709551615");
  out = value->get<uint64_t>();
  return Status();
}

Status readLogitBias(const ConfigReader &reader,
                     std::optional<std::vector<LogitBias>> &out) {
  const json *value = reader.find("logit_bias");
  if (!value)
    return Status();
  out.emplace();
  bool sound = value->is_object() || value->is_array();
  auto add = [&](std::optional<int32_t> id, std::optional<double> bias) {
    sound = sound && id && bias;
    if (sound)
      out->push_back({*id, *bias});
  };
  if (value->is_object())
    for (const auto &[key, bias] : value->items())
      add(parseId(key), toBias(bias));
  if (value->is_array())
    for (const json &pair : *value) {
      const bool isPair = pair.is_array() && pair.size() == 2;
      add(isPair ? toId(pair[0]) : std::nullopt,
          isPair ? toBias(pair[1]) : std::nullopt);
    }
  if (!sound)
    return reader.unexpected("logit_bias",
                             "an object from token ids to numbers, or an array "
                             "of such pairs,");
  return Status();
}

Status readSampling(const ConfigReader &reader, PartialSamplerOptions &out) {
  constexpr double most = kMostTemperature, penalty = kMostPenalty;
  KF_RETURN_IF_ERROR(readNumber(reader, "temp", 0, most, out.temperature));
  KF_RETURN_IF_ERROR(readInteger(reader, "top_k", 0, kMostTokens, out.topK));
  KF_RETURN_IF_ERROR(
      readNumber(reader, "top_p", 0, 1, out.topP, /*above=*/true));
  KF_RETURN_IF_ERROR(readNumber(reader, "min_p", 0, 1, out.minP));
  KF_RETURN_IF_ERROR(readSeed(reader, out.seed));
  KF_RETURN_IF_ERROR(readNumber(reader, "repeat_penalty", 0, penalty,
                                out.repetitionPenalty, /*above=*/true));
  KF_RETURN_IF_ERROR(readNumber(reader, "presence_penalty", -penalty, penalty,
                                out.presencePenalty));
  KF_RETURN_IF_ERROR(readNumber(reader, "frequency_penalty", -penalty, penalty,
                                out.frequencyPenalty));
  KF_RETURN_IF_ERROR(
      readInteger(reader, "repeat_last_n", -1, kMostTokens, out.penaltyWindow));
  return readLogitBias(reader, out.logitBias);
}

Status readStops(const ConfigReader &reader,
                 std::optional<std::vector<std::string>> &out) {
  const json *value = reader.find("stop");
  if (!value)
    return Status();
  std::span<const json> list(value, 1);
  if (value->is_array())
    list = value->get_ref<const json::array_t &>();
  out.emplace();
  for (const json &stop : list) {
    if (!stop.is_string() || stop.get_ref<const std::string &>().empty())
      return reader.unexpected("stop", "a text that is not empty, or an array "
                                       "of such texts,");
    out->push_back(stop.get<std::string>());
  }
  return Status();
}

/// Calls keys of `object` as they are here, without a copy (see JsonDocument).
Status renameKeys(json &object) {
  for (const OtherName &other : kOtherNames) {
    const auto found = object.find(other.name);
    if (found == object.end())
      continue;
    const auto own = object.find(other.key);
    const bool hasBoth = own != object.end() && !own->is_null();
    if (hasBoth && !found->is_null())
      return Status::error("'" + std::string(other.key) + "' and '" +
                           other.name + "' are the same here: give one");
    if (!hasBoth)
      object[other.key].swap(*found);
    object.erase(found);
  }
  return Status();
}

Status checkKeys(const json &object) {
  for (const auto &[key, value] : object.items()) {
    if (std::ranges::find(kKeys, key) != std::end(kKeys))
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

Result<BatchRequest> readRequest(json &object) {
  if (!object.is_object())
    return Status::error("a JSON object is expected, not " + shortDump(object));
  KF_RETURN_IF_ERROR(renameKeys(object));
  KF_RETURN_IF_ERROR(checkKeys(object));
  const ConfigReader reader(object);
  BatchRequest request;
  KF_RETURN_IF_ERROR(readStart(reader, request));
  KF_RETURN_IF_ERROR(readInteger(reader, "n", -1, kMostTokens, request.tokens));
  if (reader.contains("ignore_eos")) {
    KF_ASSIGN_OR_RETURN(request.ignoreEos, reader.boolean("ignore_eos", false));
  }
  KF_RETURN_IF_ERROR(readStops(reader, request.stops));
  KF_RETURN_IF_ERROR(readSampling(reader, request.sampling));
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

Result<BatchRequest> kf::parseBatchRequest(std::string_view line) try {
  if (line.size() > kMostBytes)
    return Status::error("more than 64 MiB; no context is that long");
  KF_ASSIGN_OR_RETURN(JsonDocument object, parseJson(line));
  return readRequest(*object);
} catch (...) {
  return statusOfException();
}

BatchReader::BatchReader(std::string_view text) : rest(text) {
  if (rest.starts_with(kByteOrderMark))
    rest.remove_prefix(kByteOrderMark.size());
}

std::optional<Result<BatchRequest>> BatchReader::next() try {
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      continue;
    Result<BatchRequest> request = parseBatchRequest(line);
    if (request.ok())
      return request;
    return Result<BatchRequest>(
        request.status().in("line " + std::to_string(number)));
  }
  return std::nullopt;
} catch (...) {
  return Result<BatchRequest>(statusOfException());
}
