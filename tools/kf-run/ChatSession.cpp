//===- ChatSession.cpp - A conversation with a model ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatSession.h"

#include "Interrupt.h"
#include "JsonDocument.h"
#include "Report.h"

#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/core/WriteFile.h"
#include "runtime/session/ChatPrompts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sys/stat.h>

using namespace kf;

void ChatCounts::add(const ChatCounts &other) {
  reused += other.reused;
  computed += other.computed;
  generated += other.generated;
  decodedTokens += other.decodedTokens;
  prefillSeconds += other.prefillSeconds;
  decodeSeconds += other.decodeSeconds;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<ChatSession>>
ChatSession::open(const ChatOptions &options) {
  KF_RETURN_IF_ERROR(options.sampler.complete().validate());
  KF_ASSIGN_OR_RETURN(const std::optional<OutputFormat> format,
                      options.format.read());
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Session> run,
                      openSession(options.model, true));
  const ModelFiles &model = run->files();
  PartialSamplerOptions flags = options.sampler;
  if (!flags.seed)
    flags.seed = seedByClock();
  ChosenSampling sampling =
      chooseSampling(flags, model.config.sampling, ModelSampling::Always);
  KF_RETURN_IF_ERROR(sampling.options.validateIds(model.config.vocabSize));
  KF_RETURN_IF_ERROR(Sampler::create(sampling.options).status());
  KF_ASSIGN_OR_RETURN(PromptEncoder encoder,
                      openPromptEncoder(model, options.chatTemplate.options));
  KF_RETURN_IF_ERROR(run->start({}));
  std::unique_ptr<ChatSession> chat(
      new ChatSession(std::move(run), std::move(encoder), options));
  if (format) {
    KF_ASSIGN_OR_RETURN(const std::unique_ptr<ConstraintCompiler> compiler,
                        makeConstraintCompiler(chat->run->files(),
                                               chat->encoder.endOfTurnIds()));
    KF_ASSIGN_OR_RETURN(chat->constraint,
                        compiler->compile(*format, &interruptFlag()));
  }
  chat->modelFlags = recommendedFlags(sampling);
  chat->chosen = std::move(sampling);
  if (const std::optional<int64_t> most = model.config.sampling.maxNewTokens;
      most && options.tokens == 0) {
    chat->maxTokens = *most;
    std::string &flags = chat->modelFlags;
    flags += (flags.empty() ? "-n " : " -n ") + std::to_string(*most);
  }
  return chat;
}

ChatSession::ChatSession(std::unique_ptr<Session> run, PromptEncoder encoder,
                         const ChatOptions &options)
    : run(std::move(run)), encoder(std::move(encoder)), system(options.system),
      maxTokens(options.tokens), stopIds(this->run->files().config.eosIds) {
  for (int64_t id : this->encoder.endOfTurnIds())
    stopIds.push_back(id);
  if (maxTokens == 0)
    maxTokens = this->run->engine().contextLength();
  clear();
}

//===----------------------------------------------------------------------===//
// Answering
//===----------------------------------------------------------------------===//

bool ChatSession::awaitsAnswer() const {
  return !conversation.empty() && conversation.back().role == "user";
}

void ChatSession::clear() {
  conversation.clear();
  if (!system.empty())
    conversation.push_back({"system", system});
}

void ChatSession::setSystemMessage(std::string text) {
  const bool isThere =
      !conversation.empty() && conversation.front().role == "system";
  if (isThere)
    conversation.erase(conversation.begin());
  system = std::move(text);
  if (!system.empty())
    conversation.insert(conversation.begin(), {"system", system});
}

size_t ChatSession::endOfQuestion() const {
  size_t end = conversation.size();
  while (end > 0 && conversation[end - 1].role != "user")
    --end;
  return end;
}

bool ChatSession::undo() {
  const size_t end = endOfQuestion();
  if (end == 0)
    return false;
  conversation.resize(end - 1);
  return true;
}

Result<StopReason> ChatSession::answerAgain(const OnText &onText,
                                            CancelFlag cancelled) {
  const size_t end = endOfQuestion();
  if (end == 0)
    return Status::error("there is nothing to answer again yet");
  std::vector<ChatMessage> before = conversation;
  conversation.resize(end);
  ++attempt;
  Result<StopReason> reason = answer(onText, cancelled);
  if (awaitsAnswer())
    conversation = std::move(before);
  return reason;
}

Result<StopReason> ChatSession::say(std::string text, const OnText &onText,
                                    CancelFlag cancelled) {
  attempt = 0;
  conversation.push_back({"user", std::move(text)});
  Result<StopReason> reason = answer(onText, cancelled);
  // Roles take turns: without an answer the question goes too.
  if (awaitsAnswer())
    conversation.pop_back();
  return reason;
}

Result<StopReason> ChatSession::answer(const OnText &onText,
                                       CancelFlag cancelled) {
  Result<std::vector<int32_t>> encoded =
      encoder.encode(conversation, true, cancelled);
  if (encoded.status().isCancelled())
    return StopReason::Cancelled;
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids, std::move(encoded));
  const int64_t context = run->engine().contextLength();
  if (static_cast<int64_t>(ids.size()) >= context)
    return Status::error("the conversation has " + std::to_string(ids.size()) +
                         " tokens, but the context has room for " +
                         std::to_string(context) + "; /clear starts over" +
                         (context < run->files().config.maxPositions
                              ? ", --context N makes more room"
                              : ""));
  return generateAnswer(ids, onText);
}

Result<StopReason> ChatSession::generateAnswer(std::span<const int32_t> ids,
                                               const OnText &onText) {
  // Gives its pages back, where the new one finds them.
  sequence.reset();
  KF_ASSIGN_OR_RETURN(sequence, run->createSequence());
  SamplerOptions sampling = chosen.options;
  sampling.seed = seed();
  KF_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(sampling));
  GenerationOptions settings;
  settings.maxTokens = maxTokens;
  settings.stopIds = stopIds;
  settings.onText = onText;
  if (constraint) {
    KF_ASSIGN_OR_RETURN(settings.constraint, constraint->begin());
  }
  Result<GenerationResult> generated =
      generate(*sequence, sampler, &run->tokenizer(), ids, settings);
  if (!generated.ok())
    return run->engine().model().explain(generated.status());
  GenerationResult result = generated.take();
  last = {};
  last.reused = result.reusedTokens;
  last.computed = result.promptTokens - result.reusedTokens;
  last.generated = static_cast<int64_t>(result.ids.size());
  last.decodedTokens = result.decodedTokens;
  last.prefillSeconds =
      std::max(0.0, result.prefillSeconds - result.prefillReadying);
  last.decodeSeconds =
      std::max(0.0, result.decodeSeconds - result.decodeReadying);
  total.add(last);
  if (!result.ids.empty())
    conversation.push_back({"assistant", std::move(result.text)});
  return result.reason;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Status ChatSession::save(const std::string &path, bool replace) const {
  using Json = nlohmann::ordered_json;
  Json messages = Json::array();
  for (const ChatMessage &message : conversation)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  const Json json = {{"messages", std::move(messages)}};
  return writeFile(path, documentText(json) + "\n", replace);
}

Status ChatSession::load(const std::string &path) {
  constexpr uint64_t most = uint64_t(64) << 20;
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  const std::string name = quotePath(path);
  if (file.text().size() > most)
    return Status::error(name + " has more than 64 MiB; no context is that "
                                "long");
  Result<JsonDocument> parsed = parseJson(file.text());
  if (!parsed.ok())
    return parsed.status().in(name);
  const nlohmann::json &json = **parsed;
  const nlohmann::json *messages = json.is_object() && json.contains("messages")
                                       ? &json["messages"]
                                       : nullptr;
  if (!messages || !messages->is_array())
    return Status::error(name + " holds no conversation: an object with the "
                                "array 'messages'");
  std::vector<ChatMessage> read;
  for (const nlohmann::json &message : *messages) {
    auto text = [&](const char *key) -> const std::string * {
      auto it = message.find(key);
      return it != message.end() && it->is_string()
                 ? it->get_ptr<const std::string *>()
                 : nullptr;
    };
    const std::string *role = message.is_object() ? text("role") : nullptr;
    const std::string *content =
        message.is_object() ? text("content") : nullptr;
    if (!role || !content)
      return Status::error(name + ": message " + std::to_string(read.size()) +
                           " lacks the text 'role' or 'content'");
    if (*role != "system" && *role != "user" && *role != "assistant")
      return Status::error(name + ": message " + std::to_string(read.size()) +
                           " has the role " + inQuotes(*role) +
                           "; system, user and assistant are possible");
    read.push_back({*role, *content});
  }
  conversation = std::move(read);
  attempt = 0;
  return Status();
}
