//===- ApiAnswer.cpp - What clients are answered --------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ApiAnswer.h"

#include "runtime/batch/LogProbFields.h"
#include "runtime/core/JsonText.h"

#include <algorithm>
#include <utility>

using namespace kf;

namespace {

std::string usageOf(const std::vector<ChoiceEnd> &ends) {
  int64_t prompt = 0, cached = 0, completion = 0;
  size_t next = 0; // prompts before it are counted: each once
  for (const ChoiceEnd &end : ends) {
    completion += end.completionTokens;
    if (end.prompt < next)
      continue;
    prompt += end.promptTokens;
    cached += end.cachedTokens;
    next = end.prompt + 1;
  }
  return jsonObject({{"prompt_tokens", jsonText(prompt)},
                     {"completion_tokens", jsonText(completion)},
                     {"total_tokens", jsonText(prompt + completion)},
                     {"prompt_tokens_details",
                      jsonObject({{"cached_tokens", jsonText(cached)}})}});
}

/// A tool's call; in a chunk, with its number.
std::string callOf(const ToolCall &call, std::optional<size_t> index) {
  std::vector<JsonMember> members;
  if (index)
    members.emplace_back("index", jsonText(*index));
  members.emplace_back("id", jsonText(call.id));
  members.emplace_back("type", jsonText("function"));
  members.emplace_back("function",
                       jsonObject({{"name", jsonText(call.name)},
                                   {"arguments", jsonText(call.arguments)}}));
  return jsonObject(members);
}

/// What the two forms of OpenAI share.
class OpenAiForm : public AnswerForm {
public:
  OpenAiForm(AnswerHead head, std::string object, std::string chunkObject)
      : head(std::move(head)), object(std::move(object)),
        chunkObject(std::move(chunkObject)) {}

  std::string usage(const std::vector<ChoiceEnd> &ends) const override {
    return head.includeUsage ? document(chunkObject, "[]", usageOf(ends))
                             : std::string();
  }
  bool endsWithDone() const override { return true; }

protected:
  /// Of all of an answer where they are wanted, and of a chunk that has some.
  std::string logProbsOf(const AnswerPart &part, bool isWhole) const {
    if (!head.logProbsBy || (part.logProbs.empty() && !isWhole))
      return "null";
    return logProbsText(part.logProbs, *head.logProbsBy);
  }
  virtual std::string logProbsText(std::span<const TextLogProbs> logProbs,
                                   const Tokenizer &tokenizer) const = 0;

  std::string document(const std::string &kind, const std::string &choices,
                       const std::string &usage) const {
    std::vector<JsonMember> members = {
        {"id", jsonText(head.id)},
        {"object", jsonText(kind)},
        {"created", jsonText(head.created)},
        {"model", jsonText(head.model)},
        {"system_fingerprint", jsonText(head.fingerprint)},
        {"choices", choices}};
    if (!usage.empty())
      members.emplace_back("usage", usage);
    return jsonObject(members);
  }
  std::string chunk(const std::string &choice) const {
    return document(chunkObject, "[" + choice + "]",
                    head.includeUsage ? "null" : "");
  }
  std::string all(const std::vector<std::string> &choices,
                  const std::vector<ChoiceEnd> &ends) const {
    return document(object,
                    jsonArray(choices, [](const auto &text) { return text; }),
                    usageOf(ends));
  }

private:
  AnswerHead head;
  std::string object, chunkObject;
};

class ChatForm : public OpenAiForm {
public:
  explicit ChatForm(AnswerHead head)
      : OpenAiForm(std::move(head), "chat.completion",
                   "chat.completion.chunk") {}

  std::string begin(size_t choice) const override {
    return delta(choice, R"({"role":"assistant","content":""})", "null",
                 "null");
  }

  std::string part(size_t choice, const AnswerPart &part) const override {
    std::vector<JsonMember> members;
    if (!part.reasoning.empty())
      members.emplace_back("reasoning_content", jsonText(part.reasoning));
    if (!part.content.empty())
      members.emplace_back("content", jsonText(part.content));
    if (!part.calls.empty()) {
      size_t index = 0;
      members.emplace_back("tool_calls",
                           jsonArray(part.calls, [&](const ToolCall &call) {
                             return callOf(call, index++);
                           }));
    }
    if (members.empty() && part.logProbs.empty())
      return "";
    if (members.empty())
      members.emplace_back("content", jsonText(""));
    return delta(choice, jsonObject(members), logProbsOf(part, false), "null");
  }

  std::string end(size_t choice, const ChoiceEnd &end) const override {
    return delta(choice, "{}", "null", jsonText(finishReasonOf(end)));
  }

  std::string whole(const std::vector<AnswerPart> &parts,
                    const std::vector<ChoiceEnd> &ends) const override {
    std::vector<std::string> choices;
    for (size_t i = 0; i < parts.size(); ++i)
      choices.push_back(
          jsonObject({{"index", jsonText(i)},
                      {"message", message(parts[i])},
                      {"logprobs", logProbsOf(parts[i], true)},
                      {"finish_reason", jsonText(finishReasonOf(ends[i]))}}));
    return all(choices, ends);
  }

private:
  std::string logProbsText(std::span<const TextLogProbs> logProbs,
                           const Tokenizer &tokenizer) const override {
    return chatLogProbs(logProbs, tokenizer);
  }

  std::string delta(size_t choice, const std::string &delta,
                    const std::string &logProbs,
                    const std::string &finish) const {
    return chunk(jsonObject({{"index", jsonText(choice)},
                             {"delta", delta},
                             {"logprobs", logProbs},
                             {"finish_reason", finish}}));
  }

  static std::string message(const AnswerPart &part) {
    std::vector<JsonMember> members = {{"role", jsonText("assistant")}};
    // As OpenAI answers where there are calls alone.
    members.emplace_back("content", part.content.empty() && !part.calls.empty()
                                        ? "null"
                                        : jsonText(part.content));
    members.emplace_back("refusal", "null");
    if (!part.reasoning.empty())
      members.emplace_back("reasoning_content", jsonText(part.reasoning));
    if (!part.calls.empty())
      members.emplace_back("tool_calls",
                           jsonArray(part.calls, [](const ToolCall &call) {
                             return callOf(call, std::nullopt);
                           }));
    return jsonObject(members);
  }
};

class CompletionForm : public OpenAiForm {
public:
  explicit CompletionForm(AnswerHead head)
      : OpenAiForm(std::move(head), "text_completion", "text_completion") {}

  std::string begin(size_t choice) const override { return ""; }
  std::string part(size_t choice, const AnswerPart &part) const override {
    if (part.content.empty() && part.logProbs.empty())
      return "";
    return chunk(text(choice, part.content, logProbsOf(part, false), "null"));
  }
  std::string end(size_t choice, const ChoiceEnd &end) const override {
    return chunk(text(choice, "", "null", jsonText(finishReasonOf(end))));
  }
  std::string whole(const std::vector<AnswerPart> &parts,
                    const std::vector<ChoiceEnd> &ends) const override {
    std::vector<std::string> choices;
    for (size_t i = 0; i < parts.size(); ++i)
      choices.push_back(text(i, parts[i].content, logProbsOf(parts[i], true),
                             jsonText(finishReasonOf(ends[i]))));
    return all(choices, ends);
  }

private:
  std::string logProbsText(std::span<const TextLogProbs> logProbs,
                           const Tokenizer &tokenizer) const override {
    return completionLogProbs(logProbs, tokenizer);
  }

  static std::string text(size_t choice, const std::string &text,
                          const std::string &logProbs,
                          const std::string &finish) {
    return jsonObject({{"index", jsonText(choice)},
                       {"text", jsonText(text)},
                       {"logprobs", logProbs},
                       {"finish_reason", finish}});
  }
};

class LlamaForm : public AnswerForm {
public:
  LlamaForm(AnswerHead head, bool withIds)
      : head(std::move(head)), withIds(withIds) {}

  std::string begin(size_t choice) const override { return ""; }
  std::string part(size_t choice, const AnswerPart &part) const override {
    if (part.content.empty() && part.logProbs.empty() &&
        (part.ids.empty() || !withIds))
      return "";
    std::vector<JsonMember> members = common(choice, part);
    members.emplace_back("stop", "false");
    return jsonObject(members);
  }
  std::string end(size_t choice, const ChoiceEnd &end) const override {
    return last(choice, AnswerPart(), end);
  }
  std::string usage(const std::vector<ChoiceEnd> &ends) const override {
    return "";
  }
  bool endsWithDone() const override { return false; }
  std::string whole(const std::vector<AnswerPart> &parts,
                    const std::vector<ChoiceEnd> &ends) const override {
    return last(0, parts.front(), ends.front());
  }

private:
  std::vector<JsonMember> common(size_t choice, const AnswerPart &part) const {
    std::vector<JsonMember> members = {
        {"index", jsonText(choice)},
        {"content", jsonText(part.content)},
        {"tokens", withIds ? jsonArray(part.ids) : "[]"}};
    if (head.logProbsBy)
      members.emplace_back("completion_probabilities",
                           llamaLogProbs(part.logProbs, *head.logProbsBy));
    return members;
  }

  std::string last(size_t choice, const AnswerPart &part,
                   const ChoiceEnd &end) const {
    const int64_t read = end.promptTokens - end.cachedTokens;
    const std::string_view type = finishReasonOf(end.reason) != "stop" ? "limit"
                                  : end.reason == StopReason::StopText ? "word"
                                                                       : "eos";
    std::vector<JsonMember> members = common(choice, part);
    members.insert(
        members.end(),
        {{"stop", "true"},
         {"model", jsonText(head.model)},
         {"tokens_predicted", jsonText(end.completionTokens)},
         {"tokens_evaluated", jsonText(end.promptTokens)},
         {"tokens_cached", jsonText(end.promptTokens + end.completionTokens)},
         {"truncated", "false"},
         {"stop_type", jsonText(type)},
         {"timings",
          jsonObject({{"prompt_n", jsonText(read)},
                      {"prompt_ms", jsonText(end.promptSeconds * 1e3)},
                      {"prompt_per_second", rate(read, end.promptSeconds)},
                      {"predicted_n", jsonText(end.completionTokens)},
                      {"predicted_ms", jsonText(end.decodeSeconds * 1e3)},
                      {"predicted_per_second",
                       rate(end.completionTokens, end.decodeSeconds)}})}});
    return jsonObject(members);
  }

  static std::string rate(int64_t count, double seconds) {
    return jsonText(seconds > 0 ? static_cast<double>(count) / seconds : 0.0);
  }

  AnswerHead head;
  bool withIds;
};

} // namespace

std::string_view kf::finishReasonOf(const ChoiceEnd &end) {
  const std::string_view reason = finishReasonOf(end.reason);
  return end.hasCalls && reason == "stop" ? "tool_calls" : reason;
}

std::unique_ptr<AnswerForm> kf::chatForm(AnswerHead head) {
  return std::make_unique<ChatForm>(std::move(head));
}
std::unique_ptr<AnswerForm> kf::completionForm(AnswerHead head) {
  return std::make_unique<CompletionForm>(std::move(head));
}
std::unique_ptr<AnswerForm> kf::llamaForm(AnswerHead head, bool withIds) {
  return std::make_unique<LlamaForm>(std::move(head), withIds);
}

std::string kf::eventOf(std::string_view json) {
  return std::string("data: ").append(json).append("\n\n");
}
