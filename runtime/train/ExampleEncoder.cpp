//===- ExampleEncoder.cpp - Examples as tokens ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ExampleEncoder.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Lines.h"

#include <algorithm>
#include <span>

using namespace kf;

/// How many tokens two texts begin with alike.
static size_t sharedTokens(std::span<const int32_t> a,
                           std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// How many bytes the first messages of `source` have, with what is told of
/// all of them: one number more than there are messages.
static std::vector<size_t> bytesUntil(const ConversationExample &source) {
  auto bytesOf = [](const std::map<std::string, std::string> &documents) {
    size_t sum = 0;
    for (const auto &[name, document] : documents)
      sum += document.size();
    return sum;
  };
  std::vector<size_t> sums = {bytesOf(source.variables)};
  for (const ChatMessage &message : source.messages)
    sums.push_back(sums.back() + message.role.size() + message.content.size() +
                   bytesOf(message.fields));
  return sums;
}

ExampleEncoder::ExampleEncoder(const ModelFiles &model,
                               Result<PromptEncoder> chat, bool trainOnPrompt)
    : model(model), chat(std::move(chat)), begin(beginIds(model)),
      trainOnPrompt(trainOnPrompt) {
  if (!model.config.eosIds.empty())
    end = static_cast<int32_t>(model.config.eosIds.front());
}

Result<ExampleEncoder> ExampleEncoder::open(const ModelFiles &model,
                                            const TemplateOptions &options,
                                            bool trainOnPrompt) {
  if (!model.tokenizer)
    return Status::error("model " + quotePath(model.name) +
                         " has no tokenizer; training needs one");
  Result<PromptEncoder> chat = openPromptEncoder(model, options);
  // Files without conversations need none.
  if (!chat.ok() && !options.file.empty())
    return chat.status();
  return ExampleEncoder(model, std::move(chat), trainOnPrompt);
}

Status ExampleEncoder::checkVocabulary(const std::vector<int32_t> &ids) const {
  const int64_t size = model.config.vocabSize;
  for (int32_t id : ids)
    if (id >= size)
      return Status::error("the tokenizer gives token id " +
                           std::to_string(id) +
                           ", which the model's vocabulary of " +
                           std::to_string(size) + " lacks");
  return Status();
}

/// The tokens of a text behind those that begin every text.
Result<std::vector<int32_t>>
ExampleEncoder::tokensOf(std::string_view text, CancelFlag cancelled) const {
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      model.tokenizer->encode(text, {.cancelled = cancelled}));
  KF_RETURN_IF_ERROR(checkVocabulary(ids));
  // A text may have them written out.
  if (sharedTokens(ids, begin) < begin.size())
    ids.insert(ids.begin(), begin.begin(), begin.end());
  return ids;
}

Result<TrainingExample> ExampleEncoder::encodeText(std::string_view text,
                                                   CancelFlag cancelled) const {
  return encodeCompletion({"", std::string(text)}, cancelled);
}

Result<TrainingExample>
ExampleEncoder::encodeCompletion(const CompletionExample &source,
                                 CancelFlag cancelled) const {
  TrainingExample example;
  KF_ASSIGN_OR_RETURN(example.ids,
                      tokensOf(source.prompt + source.completion, cancelled));
  size_t first = begin.size();
  if (!source.prompt.empty()) {
    // A token that has bytes of both counts.
    KF_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt,
                        tokensOf(source.prompt, cancelled));
    first = sharedTokens(prompt, example.ids);
  }
  if (end && (example.ids.empty() || example.ids.back() != *end))
    example.ids.push_back(*end);
  example.counts.assign(example.ids.size(), true);
  if (!trainOnPrompt)
    std::fill_n(example.counts.begin(), first, false);
  return example;
}

Status ExampleEncoder::encodeConversation(const ConversationExample &source,
                                          std::vector<TrainingExample> &out,
                                          const ExampleLimits &limits) const {
  KF_RETURN_IF_ERROR(chat.status());
  const std::vector<size_t> bytes = bytesUntil(source);
  size_t told = 0;
  // The first of the messages, as the template is told them.
  auto promptOf = [&](size_t messages, bool forAnswer) -> Result<ChatPrompt> {
    told += bytes[messages];
    if (told > limits.bytes)
      return Status::error(
          "the conversation is so long that its answers are not found with " +
          bytesText(limits.bytes) + " told to the chat template; divide it");
    const auto first = source.messages.begin();
    return ChatPrompt{
        .messages = {first, first + static_cast<ptrdiff_t>(messages)},
        .forAnswer = forAnswer,
        .variables = source.variables};
  };
  auto encode = [&](size_t messages,
                    bool forAnswer) -> Result<PromptEncoder::Encoded> {
    KF_ASSIGN_OR_RETURN(const ChatPrompt prompt, promptOf(messages, forAnswer));
    return chat->encodeWithText(prompt, limits.cancelled);
  };
  if (trainOnPrompt) {
    KF_ASSIGN_OR_RETURN(PromptEncoder::Encoded all,
                        encode(source.messages.size(), false));
    KF_RETURN_IF_ERROR(checkVocabulary(all.ids));
    const size_t size = all.ids.size();
    out.push_back({std::move(all.ids), std::vector<bool>(size, true)});
    return Status();
  }
  std::optional<TrainingExample> current;
  std::string text; // of `current`
  // Messages up to the last answer that counts, and how the template writes
  // them, which is asked for once; empty where it cannot.
  const size_t wanted = static_cast<size_t>(
      source.counts.rend() -
      std::find(source.counts.rbegin(), source.counts.rend(), true));
  std::optional<std::string> whole;
  for (size_t i = 0; i < source.messages.size(); ++i) {
    if (!source.counts[i])
      continue;
    KF_ASSIGN_OR_RETURN(PromptEncoder::Encoded answered, encode(i + 1, false));
    KF_RETURN_IF_ERROR(checkVocabulary(answered.ids));
    const Result<PromptEncoder::Encoded> prompt = encode(i, true);
    if (!prompt.ok() && (i > 0 || prompt.status().isCancelled()))
      return prompt.status();
    if (!prompt.ok() || !answered.text.starts_with(prompt->text)) {
      if (i == 0)
        return Status::error(
            "messages[0] is the assistant's, and the chat template does not "
            "tell what is before it" +
            (prompt.ok() ? std::string() : ": " + prompt.message()) +
            "; put a message in front, or have all tokens count with "
            "--train-on-prompt");
      // An answer may begin otherwise than its prompt has it, without thoughts
      // for instance, but what is before it has to be the same.
      KF_ASSIGN_OR_RETURN(const PromptEncoder::Encoded before,
                          encode(i, false));
      if (!answered.text.starts_with(before.text))
        return Status::error(
            "the chat template writes what is before messages[" +
            std::to_string(i) +
            "] otherwise once that is there, so that its tokens cannot be "
            "found; --train-on-prompt has all tokens count");
    }
    const size_t first = sharedTokens(prompt->ids, answered.ids);
    const bool goesOn = current && answered.text.starts_with(text);
    if (current && !goesOn)
      out.push_back(*std::exchange(current, std::nullopt));
    std::vector<bool> counts = current ? current->counts : std::vector<bool>();
    // The last tokens of what was before may be others with more behind them.
    counts.resize(current ? sharedTokens(current->ids, answered.ids) : 0);
    counts.resize(answered.ids.size(), false);
    std::fill(counts.begin() + static_cast<ptrdiff_t>(first), counts.end(),
              true);
    current = TrainingExample{std::move(answered.ids), std::move(counts)};
    text = std::move(answered.text);
    // What goes on behind all that is wanted adds nothing. A template that
    // writes earlier turns otherwise has done so where all answers are there.
    if (i + 1 == wanted || current->ids.size() <= limits.tokens)
      continue;
    if (!whole) {
      KF_ASSIGN_OR_RETURN(const ChatPrompt all, promptOf(wanted, false));
      Result<std::string> written = chat->render(all, limits.cancelled);
      if (written.status().isCancelled())
        return written.status();
      whole = written.ok() ? written.take() : std::string();
    }
    if (whole->starts_with(text))
      break;
  }
  if (current)
    out.push_back(std::move(*current));
  return Status();
}

Status ExampleEncoder::encode(const ExampleSource &source,
                              std::vector<TrainingExample> &out,
                              const ExampleLimits &limits) const try {
  const CancelFlag cancelled = limits.cancelled;
  if (const auto *conversation = std::get_if<ConversationExample>(&source))
    return encodeConversation(*conversation, out, limits);
  const auto *plain = std::get_if<PlainExample>(&source);
  if (plain && plain->text.empty())
    return Status();
  KF_ASSIGN_OR_RETURN(
      TrainingExample example,
      plain ? encodeText(plain->text, cancelled)
            : encodeCompletion(std::get<CompletionExample>(source), cancelled));
  out.push_back(std::move(example));
  return Status();
} catch (...) {
  return statusOfException();
}
