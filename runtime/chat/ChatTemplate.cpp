//===- ChatTemplate.cpp - Conversations to prompts ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/ChatTemplate.h"

#include "runtime/chat/Interpreter.h"
#include "runtime/chat/LocalTime.h"
#include "runtime/core/Exceptions.h"
#include "runtime/text/Utf8.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

using namespace kf;
using namespace kf::jinja;

using Json = nlohmann::ordered_json;

struct ChatTemplate::Parsed {
  Body body;
};

namespace {

constexpr size_t kMaxSource = size_t(1) << 20;

Status statusOf(const Failure &failure) {
  // An error is one line, whatever the template's text has.
  std::string line;
  for (char c : failure.message)
    line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  if (failure.raised)
    return Status::error(
        line.empty() ? "the chat template refuses the conversation" : line);
  // What fails before the first line has none.
  return Status::error(
      "chat template" +
      (failure.line ? ", line " + std::to_string(failure.line) : "") + ": " +
      line);
}

Status checkUtf8(std::string_view source) {
  const size_t valid = validUtf8Prefix(source);
  if (valid == source.size())
    return Status();
  const std::string_view before = source.substr(0, valid);
  char byte[8];
  std::snprintf(byte, sizeof(byte), "0x%02X",
                static_cast<unsigned char>(source[valid]));
  return Status::error(
      "chat template, line " +
      std::to_string(1 + std::ranges::count(before, '\n')) + ": byte " +
      std::to_string(valid + 1) + " of the template, " + byte +
      ", begins no character of UTF-8; save the template in UTF-8");
}

/// The value of a JSON document that is called `name` in errors.
Result<Value> valueOf(const std::string &name, const std::string &text,
                      Budget &budget) {
  std::optional<Value> value = fromJson(text, budget);
  if (!value)
    return Status::error("variable '" + name +
                         "' of the chat template is not JSON");
  return std::move(*value);
}

Result<Value> messageValue(const ChatMessage &message, Budget &budget) {
  std::vector<std::pair<Value, Value>> fields = {
      {makeText("role", budget), makeText(message.role, budget)},
      {makeText("content", budget), makeText(message.content, budget)}};
  for (const auto &[name, text] : message.fields) {
    KF_ASSIGN_OR_RETURN(Value value, valueOf(name, text, budget));
    fields.emplace_back(makeText(name, budget), std::move(value));
  }
  return makeDict(std::move(fields), budget);
}

/// Returns fn(), a Result. What it throws becomes an error.
template <typename Fn> auto catchFailures(Fn &&fn) {
  return catchExceptions([&]() -> decltype(fn()) {
    try {
      return fn();
    } catch (const Failure &failure) {
      return statusOf(failure);
    } catch (const Cancelled &) {
      return Status::cancelled();
    }
  });
}

} // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  return catchFailures([&]() -> Result<ChatTemplate> {
    if (source.size() > kMaxSource)
      return Status::error("the chat template has " +
                           std::to_string(source.size()) +
                           " bytes; at most 1 MiB is supported");
    KF_RETURN_IF_ERROR(checkUtf8(source));
    auto parsed = std::make_shared<Parsed>();
    parsed->body = parseTemplate(source);
    return ChatTemplate(std::move(parsed));
  });
}

Result<std::string>
ChatTemplate::render(const std::vector<ChatMessage> &messages,
                     const ChatRenderOptions &options) const {
  return catchFailures([&]() -> Result<std::string> {
    Interpreter interpreter(options.now.value_or(localTimeNow()),
                            options.maxSteps, options.cancelled);
    Budget &budget = interpreter.budget;
    std::vector<Value> items;
    for (const ChatMessage &message : messages) {
      KF_ASSIGN_OR_RETURN(Value item, messageValue(message, budget));
      items.push_back(std::move(item));
    }
    interpreter.define("messages",
                       makeSequence(Kind::List, std::move(items), budget));
    // As transformers defines them.
    interpreter.define("tools", Value());
    interpreter.define("documents", Value());
    interpreter.define("add_generation_prompt",
                       Value(options.addGenerationPrompt));
    if (options.bosToken)
      interpreter.define("bos_token", makeText(*options.bosToken, budget));
    if (options.eosToken)
      interpreter.define("eos_token", makeText(*options.eosToken, budget));
    for (const auto &[name, text] : options.variables) {
      KF_ASSIGN_OR_RETURN(Value value, valueOf(name, text, budget));
      interpreter.define(name, std::move(value));
    }
    return interpreter.run(parsed->body);
  });
}

Result<std::string>
ChatTemplate::render(const Json &variables,
                     const std::optional<std::tm> &now) const {
  return catchFailures([&]() -> Result<std::string> {
    Interpreter interpreter(now.value_or(localTimeNow()),
                            ChatRenderOptions::kMaxSteps);
    if (variables.is_object())
      for (const auto &[name, value] : variables.items())
        interpreter.define(name, *fromJson(value.dump(), interpreter.budget));
    return interpreter.run(parsed->body);
  });
}
