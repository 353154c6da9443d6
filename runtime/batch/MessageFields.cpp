//===- MessageFields.cpp - Conversations in OpenAI's form -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/MessageFields.h"

#include "runtime/batch/JsonSlice.h"
#include "runtime/batch/RequestFields.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"

#include <algorithm>

using namespace kf;
using nlohmann::json;

Result<std::vector<std::string_view>> kf::textsOf(const json &array,
                                                  std::string_view text) {
  std::vector<std::string_view> texts = elementTexts(text);
  if (texts.size() != array.size())
    return Status::error("an array of " + std::to_string(array.size()) +
                             " elements was read as one of " +
                             std::to_string(texts.size()),
                         StatusCode::Internal);
  return texts;
}

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// A call of a tool in a message, for the template: what OpenAI's clients send
/// as a text, the arguments, is the object that they are.
Result<std::string> readToolCall(const json &call, std::string_view text,
                                 const std::string &name) {
  if (!call.is_object())
    return Status::error("'" + name + "' is " + shortDump(call) +
                         ", but an object is expected");
  const ConfigReader reader(call, name + ".");
  KF_ASSIGN_OR_RETURN(const std::string id, reader.text("id", ""));
  KF_ASSIGN_OR_RETURN(const std::string type, reader.text("type", "function"));
  if (type != "function")
    return reader.unexpected("type", "\"function\"");
  const json *function = reader.find("function");
  if (!function || !function->is_object())
    return reader.unexpected("function", "an object of name and arguments");
  const ConfigReader fields(*function, name + ".function.");
  KF_ASSIGN_OR_RETURN(const std::string called, fields.text("name"));
  const json *arguments = fields.find("arguments");
  std::string json = "{}";
  if (arguments && arguments->is_string()) {
    const auto &given = arguments->get_ref<const std::string &>();
    const Result<JsonDocument> parsed = parseJson(given);
    if (parsed.status().code() == StatusCode::OutOfMemory)
      return parsed.status();
    const bool isObject = parsed.ok() && (*parsed)->is_object() &&
                          !given.starts_with(kByteOrderMark);
    json = isObject ? given : jsonText(given);
  } else if (arguments && arguments->is_object()) {
    json = std::string(memberText(memberText(text, "function"), "arguments"));
  } else if (arguments) {
    return fields.unexpected("arguments", "a string");
  }
  return jsonObject({{"id", jsonText(id)},
                     {"type", jsonText(type)},
                     {"function", jsonObject({{"name", jsonText(called)},
                                              {"arguments", json}})}});
}

Result<std::string> readToolCalls(const ConfigReader &reader,
                                  std::string_view message,
                                  const std::string &name) {
  const json *value = reader.find("tool_calls");
  if (!value->is_array())
    return reader.unexpected("tool_calls", "an array");
  KF_ASSIGN_OR_RETURN(const std::vector<std::string_view> texts,
                      textsOf(*value, memberText(message, "tool_calls")));
  std::vector<std::string> calls;
  for (const json &call : *value) {
    const size_t number = calls.size();
    KF_ASSIGN_OR_RETURN(
        std::string read,
        readToolCall(call, texts[number],
                     name + ".tool_calls[" + std::to_string(number) + "]"));
    calls.push_back(std::move(read));
  }
  return jsonArray(calls, [](const std::string &call) { return call; });
}

Result<ChatMessage> readMessage(const json &object, std::string_view text,
                                const std::string &name) {
  if (!object.is_object())
    return Status::error("'" + name + "' is " + shortDump(object) +
                         ", but an object of role and content is expected");
  const ConfigReader reader(object, name + ".");
  ChatMessage message;
  KF_ASSIGN_OR_RETURN(message.role, reader.text("role"));
  constexpr std::string_view roles[] = {"system", "developer", "user",
                                        "assistant", "tool"};
  if (std::ranges::find(roles, message.role) == std::end(roles))
    return reader.unexpected("role",
                             "system, developer, user, assistant or tool");
  const bool isAnswer = message.role == "assistant";
  if (message.role == "developer")
    message.role = "system"; // what templates call it
  // An assistant's message may have calls alone.
  if (reader.contains("content") || !isAnswer) {
    KF_ASSIGN_OR_RETURN(message.content, readContent(reader, name));
  }
  for (const char *key : {"function_call", "audio", "refusal"})
    if (reader.contains(key))
      return unsupportedField(name + "." + key, "leave it out");
  for (const char *key : {"name", "tool_call_id", "reasoning_content"})
    if (reader.contains(key)) {
      KF_ASSIGN_OR_RETURN(const std::string value, reader.text(key));
      message.fields[key] = jsonText(value);
    }
  if (reader.contains("tool_calls")) {
    if (!isAnswer)
      return reader.unexpected("tool_calls", "none, in this role,");
    KF_ASSIGN_OR_RETURN(const std::string calls,
                        readToolCalls(reader, text, name));
    if (calls != "[]")
      message.fields["tool_calls"] = calls;
  }
  return message;
}

} // namespace

Result<std::vector<ChatMessage>>
kf::readChatMessages(const ConfigReader &reader, std::string_view body) {
  const json *value = reader.find("messages");
  if (!value)
    return Status::error("'messages' is missing");
  if (!value->is_array() || value->empty())
    return reader.unexpected("messages", "an array of messages, at least one,");
  KF_ASSIGN_OR_RETURN(const std::vector<std::string_view> texts,
                      textsOf(*value, memberText(body, "messages")));
  std::vector<ChatMessage> messages;
  for (const json &item : *value) {
    const size_t number = messages.size();
    KF_ASSIGN_OR_RETURN(
        ChatMessage message,
        readMessage(item, texts[number],
                    "messages[" + std::to_string(number) + "]"));
    messages.push_back(std::move(message));
  }
  return messages;
}
