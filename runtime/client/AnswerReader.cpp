//===- AnswerReader.cpp - An answer of OpenAI's API, as it comes ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/AnswerReader.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Shorten.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace kf;
using nlohmann::json;

namespace {

constexpr size_t kMostErrorBytes = size_t(64) << 10;
constexpr size_t kMostMessageBytes = 300, kMostReasonBytes = 40;

/// The member `key`; null where there is none, or it is null.
const json *find(const json &object, const char *key) {
  if (!object.is_object())
    return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// Whatever of it the parser's message has, a key may be in it.
Status notJson(const char *what, const Status &status) {
  return Status::error(std::string(what) + " is not sound JSON", status.code());
}

std::optional<int64_t> readCount(const json &object, const char *key) {
  constexpr uint64_t most = uint64_t(1) << 40; // tokens
  const json *value = find(object, key);
  if (!value || !value->is_number_unsigned() || value->get<uint64_t>() > most)
    return std::nullopt;
  return value->get<int64_t>();
}

/// The text of an error in a form that somebody uses; null if there is none.
const std::string *findMessage(const json &body) {
  const json *error = find(body, "error");
  for (const json *at : {error ? find(*error, "message") : nullptr, error,
                         find(body, "message"), find(body, "detail")})
    if (at && at->is_string())
      return at->get_ptr<const std::string *>();
  return nullptr;
}

} // namespace

std::string kf::printableText(std::string_view text, size_t most) {
  std::string out;
  const std::string valid = toValidUtf8(cutText(text, most));
  for (std::string_view rest = valid; !rest.empty();) {
    const Utf8Step step = stepUtf8(rest);
    const char32_t c = step.character;
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
      out += '?';
    else
      out += rest.substr(0, step.length);
    rest.remove_prefix(step.length);
  }
  return text.size() > most ? out + "..." : out;
}

std::string kf::errorMessage(std::string_view body, const ApiKey &key) {
  const Result<JsonDocument> parsed = parseJson(body);
  const std::string *message = parsed.ok() ? findMessage(**parsed) : nullptr;
  // Hidden first: half a key is none that is found.
  return printableText(key.hide(message ? std::string_view(*message) : body),
                       kMostMessageBytes);
}

AnswerReader::AnswerReader(int status, std::string_view contentType, ApiKey key)
    : status(status),
      isStream(status == 200 && contentType.starts_with("text/event-stream")),
      key(std::move(key)),
      events([this](std::string_view data) { return readEvent(data); }) {}

bool AnswerReader::isDone() const {
  return done || (status != 200 && body.size() == kMostErrorBytes);
}

Status AnswerReader::push(std::string_view bytes, double seconds) try {
  if (!done)
    now = seconds;
  if (isStream)
    return done ? Status() : events.push(bytes);
  if (status != 200) { // the begin will do
    body += bytes.substr(0, kMostErrorBytes - body.size());
    return Status();
  }
  if (bytes.size() > kMostBodyBytes - body.size())
    return Status::error("an answer of more than 32 MiB");
  body += bytes;
  return Status();
} catch (...) {
  return statusOfException();
}

Status AnswerReader::readEvent(std::string_view data) {
  if (done)
    return Status();
  if (data == "[DONE]") {
    done = true;
    return Status();
  }
  const Result<JsonDocument> chunk = parseJson(data);
  if (!chunk.ok())
    return notJson("an event of the stream", chunk.status());
  return readChunk(**chunk);
}

Status AnswerReader::readChunk(const json &chunk) {
  if (find(chunk, "error")) {
    const std::string *message = findMessage(chunk);
    return Status::error("the server ended the answer with an error" +
                             (message ? ": " + printableText(key.hide(*message),
                                                             kMostMessageBytes)
                                      : std::string()),
                         StatusCode::Unavailable);
  }
  readUsage(chunk);
  const json *choices = find(chunk, "choices");
  if (!choices || !choices->is_array())
    return Status();
  anyChunk = true;
  for (const json &choice : *choices) {
    const json *index = find(choice, "index");
    if (!index || *index == 0)
      KF_RETURN_IF_ERROR(readChoice(choice));
  }
  return Status();
}

Status AnswerReader::readChoice(const json &choice) {
  bool any = false;
  KF_RETURN_IF_ERROR(addText(choice, "text", true, any));
  for (const char *key : {"delta", "message"}) {
    const json *part = find(choice, key);
    if (!part)
      continue;
    KF_RETURN_IF_ERROR(addText(*part, "content", true, any));
    KF_RETURN_IF_ERROR(addText(*part, "reasoning_content", false, any));
    KF_RETURN_IF_ERROR(addText(*part, "reasoning", false, any));
    any |= find(*part, "tool_calls") != nullptr;
  }
  if (any && isStream)
    answer.pieces.push_back(now);
  if (const json *reason = find(choice, "finish_reason");
      reason && reason->is_string())
    answer.finishReason = printableText(
        key.hide(reason->get_ref<const std::string &>()), kMostReasonBytes);
  return Status();
}

/// Adds the text `key`, if `from` has it, to the answer's where that `isShown`.
Status AnswerReader::addText(const json &from, const char *key, bool isShown,
                             bool &any) {
  const json *value = find(from, key);
  if (!value)
    return Status();
  if (!value->is_string())
    return Status::error("an answer whose '" + std::string(key) +
                         "' is no text");
  const std::string &text = value->get_ref<const std::string &>();
  if (text.size() > kMostTextBytes - answer.text.size() ||
      answer.pieces.size() >= kMostTextBytes)
    return Status::error("an answer with more than 16 MiB of text");
  any |= !text.empty();
  if (isShown)
    answer.text += text; // valid UTF-8, as JSON is
  return Status();
}

void AnswerReader::readUsage(const json &chunk) {
  const json *usage = find(chunk, "usage");
  if (!usage)
    return;
  if (std::optional<int64_t> count = readCount(*usage, "prompt_tokens"))
    answer.promptTokens = count;
  if (std::optional<int64_t> count = readCount(*usage, "completion_tokens"))
    answer.outputTokens = count;
}

Status AnswerReader::serverError() const {
  const std::string message = errorMessage(body, key);
  return Status::error("answered " + std::to_string(status) +
                           (message.empty() ? "" : ": " + message),
                       status == 429 || status >= 500 ? StatusCode::Unavailable
                       : status == 404                ? StatusCode::NotFound
                                                      : StatusCode::Invalid);
}

Result<Answer> AnswerReader::finish(double seconds) try {
  if (status != 200)
    return serverError();
  if (!done)
    now = seconds;
  if (!isStream) {
    const Result<JsonDocument> whole = parseJson(body);
    if (!whole.ok())
      return notJson("the answer", whole.status());
    KF_RETURN_IF_ERROR(readChunk(**whole));
  }
  if (!anyChunk)
    return Status::error("an answer without 'choices'");
  if (isStream && !done && answer.finishReason.empty())
    return Status::error("the stream ended in the middle of the answer",
                         StatusCode::Unavailable);
  answer.seconds = now;
  answer.text = key.hide(answer.text);
  return std::move(answer);
} catch (...) {
  return statusOfException();
}
