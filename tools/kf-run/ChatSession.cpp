//===- ChatSession.cpp - A conversation with a model ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatSession.h"

#include "Report.h"

#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/core/Stopwatch.h"
#include "runtime/core/WriteFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sys/stat.h>

using namespace kf;

/// Prompt tokens that are read before looking for an interrupt again.
static constexpr size_t kPrefillChunk = 512;

void ChatCounts::add(const ChatCounts &other) {
  reused += other.reused;
  computed += other.computed;
  generated += other.generated;
  decodeSteps += other.decodeSteps;
  prefillSeconds += other.prefillSeconds;
  decodeSeconds += other.decodeSeconds;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

/// The chat template, and what to call it in errors.
struct TemplateText {
  std::string source, origin;
};

static Result<TemplateText> findTemplate(const ChatOptions &options,
                                         const Model &model) {
  TemplateText found = {model.chat.chatTemplate, model.chat.templateOrigin};
  if (!options.templateFile.empty()) {
    KF_ASSIGN_OR_RETURN(MappedFile file,
                        MappedFile::open(options.templateFile));
    found = {std::string(file.text()), quotePath(options.templateFile)};
  }
  if (found.origin.empty())
    return Status::error(
        "model " + quotePath(model.name) +
        " has no chat template, so it may not be made for chats; give one with "
        "--template FILE, or use 'kf-run generate'");
  if (found.source.find_first_not_of(" \t\r\n") == std::string::npos)
    return Status::error("the chat template is empty; give one with "
                         "--template FILE, or use 'kf-run generate'")
        .in(found.origin);
  return found;
}

Result<std::unique_ptr<ChatSession>>
ChatSession::open(const ChatOptions &options) {
  KF_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(options.sampler));
  KF_ASSIGN_OR_RETURN(std::unique_ptr<ModelSession> run,
                      ModelSession::open(options.model, true));
  const Model &model = run->model();
  KF_RETURN_IF_ERROR(options.sampler.validateIds(model.config.vocabSize));
  if (!model.tokenizer)
    return Status::error("model " + quotePath(model.name) +
                         " has no tokenizer; chats need one");
  KF_ASSIGN_OR_RETURN(TemplateText text, findTemplate(options, model));
  Result<ChatTemplate> parsed = ChatTemplate::parse(text.source);
  if (!parsed.ok())
    return parsed.status().in(text.origin);
  ChatRenderOptions rendering;
  if (!model.chat.bosToken.empty())
    rendering.bosToken = model.chat.bosToken;
  if (!model.chat.eosToken.empty())
    rendering.eosToken = model.chat.eosToken;
  PromptEncoder encoder(parsed.take(), text.origin, *model.tokenizer,
                        std::move(rendering));
  KF_RETURN_IF_ERROR(run->start(0));
  return std::unique_ptr<ChatSession>(new ChatSession(
      std::move(run), std::move(encoder), std::move(sampler), options));
}

ChatSession::ChatSession(std::unique_ptr<ModelSession> run,
                         PromptEncoder encoder, Sampler sampler,
                         const ChatOptions &options)
    : run(std::move(run)), encoder(std::move(encoder)),
      sampler(std::move(sampler)), system(options.system),
      maxTokens(options.tokens), stopIds(this->run->model().config.eosIds) {
  for (int64_t id : this->encoder.endOfTurnIds())
    stopIds.push_back(id);
  if (maxTokens == 0)
    maxTokens = this->run->session().contextLength();
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

Result<StopReason> ChatSession::say(std::string text, const OnText &onText,
                                    CancelFlag cancelled) {
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
  const Session &session = run->session();
  if (static_cast<int64_t>(ids.size()) >= session.contextLength())
    return Status::error(
        "the conversation has " + std::to_string(ids.size()) +
        " tokens, but the context has room for " +
        std::to_string(session.contextLength()) + "; /clear starts over" +
        (session.contextLength() < run->model().config.maxPositions
             ? ", --context N makes more room"
             : ""));
  return generateAnswer(ids, onText, cancelled);
}

/// Goes back in the cache to the tokens that `ids` begin with; returns how
/// many. The last of `ids` is always left to be read, for its logits.
Result<size_t> ChatSession::reuse(std::span<const int32_t> ids) {
  const auto [inCache, inIds] = std::ranges::mismatch(cached, ids);
  size_t kept = static_cast<size_t>(inIds - ids.begin());
  kept = std::min(kept, ids.empty() ? 0 : ids.size() - 1);
  KF_RETURN_IF_ERROR(run->session().rewind(static_cast<int64_t>(kept)));
  cached.resize(kept);
  sampler.reset();
  for (int32_t id : cached)
    sampler.accept(id);
  return kept;
}

Result<StopReason> ChatSession::generateAnswer(std::span<const int32_t> ids,
                                               const OnText &onText,
                                               CancelFlag cancelled) {
  Session &session = run->session();
  const SessionTimings before = session.timings();
  const bool firstAnswer = session.position() == 0 && total.computed == 0;
  KF_ASSIGN_OR_RETURN(const size_t kept, reuse(ids));
  last = {};
  last.reused = static_cast<int64_t>(kept);

  Stopwatch prefilling;
  std::span<const int32_t> rest = ids.subspan(kept);
  while (rest.size() > kPrefillChunk && !isCancelled(cancelled)) {
    const std::span<const int32_t> chunk = rest.first(kPrefillChunk);
    const Status read = session.prefill(chunk).status();
    if (read.isCancelled())
      break;
    KF_RETURN_IF_ERROR(read);
    cached.insert(cached.end(), chunk.begin(), chunk.end());
    for (int32_t id : chunk)
      sampler.accept(id);
    rest = rest.subspan(kPrefillChunk);
  }
  last.prefillSeconds = prefilling.seconds();
  if (isCancelled(cancelled))
    return StopReason::Cancelled;

  GenerationOptions settings;
  settings.maxTokens = maxTokens;
  settings.stopIds = stopIds;
  settings.onText = onText;
  settings.onBadLogits = [&](const Status &error) {
    return run->explainBadLogits(error);
  };
  Result<Generation> result =
      generate(session, sampler, run->tokenizer(), rest, settings);
  if (!result.ok()) {
    // What was read by then is known up to the prompt only.
    KF_RETURN_IF_ERROR(session.rewind(cachedTokens()));
    return result.status();
  }
  cached.insert(cached.end(), rest.begin(), rest.end());
  cached.insert(cached.end(), result->ids.begin(), result->ids.end());
  cached.resize(static_cast<size_t>(session.position()));

  const SessionTimings after = session.timings();
  ModelSession::Readying ready = {after.compile + after.load + after.pack -
                                      before.compile - before.load -
                                      before.pack,
                                  0};
  if (firstAnswer)
    ready = run->readying(static_cast<int64_t>(ids.size()));
  last.computed = static_cast<int64_t>(ids.size() - rest.size() - kept) +
                  result->promptTokens;
  last.generated = static_cast<int64_t>(result->ids.size());
  last.decodeSteps = result->decodeSteps;
  last.prefillSeconds = std::max(
      0.0, last.prefillSeconds + result->prefillSeconds - ready.prefill);
  last.decodeSeconds = std::max(0.0, result->decodeSeconds - ready.decode);
  total.add(last);
  if (!result->ids.empty())
    conversation.push_back({"assistant", std::move(result->text)});
  return result->reason;
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
  return writeFile(
      path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n",
      replace);
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
  return Status();
}
