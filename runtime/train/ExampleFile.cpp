//===- ExampleFile.cpp - Examples to train on, one a line -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ExampleFile.h"

#include "runtime/batch/BatchFile.h"
#include "runtime/batch/JsonSlice.h"
#include "runtime/batch/MessageFields.h"
#include "runtime/batch/TemplateFields.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/model/ConfigReader.h"

#include <algorithm>

using namespace kf;
using nlohmann::json;

namespace {

/// Keys of other programs' forms, and what to give instead.
struct OtherForm {
  const char *key, *advice;
};
constexpr OtherForm kOtherForms[] = {
    {"conversations",
     "is another form of conversations; give 'messages' with 'role' and "
     "'content' in place of 'from' and 'value'"},
    {"instruction", "is another form; give 'prompt' and 'completion', or "
                    "'messages'"},
    {"input_ids", "is not read: examples are texts; give 'text'"},
};

/// Of such an answer a model would learn to end at once.
bool saysNothing(const ChatMessage &message, const json &source) {
  const auto isThere = [&](const char *field) {
    const auto found = source.find(field);
    return found != source.end() && !found->is_null() && !found->empty();
  };
  return message.content.empty() && !isThere("tool_calls") &&
         !isThere("reasoning_content");
}

/// Sets what each message counts, by its role and its weight.
Status readWeights(const json &messages, ConversationExample &example) {
  bool hasAnswer = false;
  for (size_t i = 0; i < example.messages.size(); ++i) {
    const bool isAnswer = example.messages[i].role == "assistant";
    const ConfigReader reader(messages[i],
                              "messages[" + std::to_string(i) + "].");
    bool counts = isAnswer;
    if (reader.contains("weight")) {
      KF_ASSIGN_OR_RETURN(const double weight, reader.number("weight", 0, 1));
      if (!isAnswer || (weight != 0 && weight != 1))
        return reader.unexpected("weight",
                                 isAnswer ? "0 or 1" : "none, in this role,");
      counts = weight == 1;
    }
    hasAnswer |= isAnswer;
    if (counts && saysNothing(example.messages[i], messages[i]))
      return Status::error("messages[" + std::to_string(i) +
                           "] is an answer without content or calls of tools; "
                           "a 'weight' of 0 leaves it out");
    example.counts.push_back(counts);
  }
  return hasAnswer ? Status()
                   : Status::error("no message is the assistant's, so that "
                                   "there is nothing to learn");
}

Result<ExampleSource> readConversation(const ConfigReader &reader,
                                       std::string_view line) {
  const json *messages = reader.find("messages");
  if (messages->is_array() && messages->size() > kMostMessages)
    return Status::error("'messages' has " + std::to_string(messages->size()) +
                         " messages; at most " + std::to_string(kMostMessages) +
                         " are possible");
  ConversationExample example;
  KF_ASSIGN_OR_RETURN(example.messages, readChatMessages(reader, line));
  KF_RETURN_IF_ERROR(readWeights(*messages, example));
  KF_ASSIGN_OR_RETURN(example.variables, readTemplateVariables(reader, line));
  if (const json *tools = reader.find("tools")) {
    if (!tools->is_array())
      return reader.unexpected("tools", "an array");
    if (!tools->empty())
      example.variables["tools"] = std::string(memberText(line, "tools"));
  }
  return ExampleSource(std::move(example));
}

Result<ExampleSource> readExample(const json &value, std::string_view line) {
  if (value.is_string())
    return ExampleSource(PlainExample{value.get<std::string>()});
  if (!value.is_object())
    return Status::error("a JSON object is expected, not " + shortDump(value));
  const ConfigReader reader(value);
  KF_RETURN_IF_ERROR(reader.onlyOneOf({"messages", "prompt", "text"}).status());
  if (reader.contains("messages"))
    return readConversation(reader, line);
  if (reader.contains("prompt")) {
    CompletionExample example;
    KF_ASSIGN_OR_RETURN(example.prompt, reader.text("prompt"));
    KF_ASSIGN_OR_RETURN(example.completion, reader.text("completion"));
    if (example.completion.empty())
      return reader.unexpected("completion", "a text that is not empty");
    return ExampleSource(std::move(example));
  }
  if (reader.contains("text")) {
    PlainExample example;
    KF_ASSIGN_OR_RETURN(example.text, reader.text("text"));
    return ExampleSource(std::move(example));
  }
  for (const OtherForm &other : kOtherForms)
    if (reader.contains(other.key))
      return Status::error("'" + std::string(other.key) + "' " + other.advice);
  return Status::error("one of 'messages', 'prompt' with 'completion', and "
                       "'text' is missing");
}

} // namespace

Result<ExampleSource> kf::parseExample(std::string_view line) try {
  KF_RETURN_IF_ERROR(checkLineSize(line));
  KF_ASSIGN_OR_RETURN(const JsonDocument value, parseJson(line));
  return readExample(*value, line);
} catch (...) {
  return statusOfException();
}
