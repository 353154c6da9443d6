//===- ApiGenerate.cpp - Requests that have a body ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"
#include "runtime/serve/Api.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <chrono>
#include <limits>

using namespace kf;

static HttpResponse errorOf(const Status &status) {
  return ApiError::of(status).response();
}

HttpResponse Api::tokenize(std::string_view body, CancelFlag cancelled) const {
  Result<TokenizeRequest> request = parseTokenizeRequest(body);
  if (!request.ok())
    return errorOf(request.status());
  const Tokenizer &tokenizer = *served.files->tokenizer;
  EncodeOptions encoding;
  encoding.addSpecial = request->addSpecial;
  encoding.parseSpecial = request->parseSpecial;
  encoding.cancelled = cancelled;
  Result<std::vector<int32_t>> ids =
      tokenizer.encode(request->content, encoding);
  if (!ids.ok())
    return errorOf(ids.status());
  const std::string tokens =
      !request->withPieces ? jsonArray(*ids) : jsonArray(*ids, [&](int32_t id) {
        const std::string_view bytes = tokenizer.bytesOf(id);
        // As llama.cpp has it: bytes that are no text are numbers.
        std::vector<int> numbers;
        for (char byte : bytes)
          numbers.push_back(static_cast<unsigned char>(byte));
        const bool isText = validUtf8Prefix(bytes) == bytes.size();
        return jsonObject(
            {{"id", jsonText(id)},
             {"piece", isText ? jsonText(bytes) : jsonArray(numbers)}});
      });
  return {.body = jsonObject({{"tokens", tokens}})};
}

HttpResponse Api::detokenize(std::string_view body) const {
  Result<std::vector<int32_t>> ids = parseDetokenizeRequest(body);
  if (!ids.ok())
    return errorOf(ids.status());
  const std::string text =
      served.files->tokenizer->decode(*ids, /*skipSpecial=*/false);
  return {.body = jsonObject({{"content", jsonText(toValidUtf8(text))}})};
}

HttpResponse Api::applyTemplate(std::string_view body,
                                CancelFlag cancelled) const {
  Result<GenerationRequest> request = parseChatRequest(body);
  if (!request.ok())
    return errorOf(request.status());
  if (Status status = checkTemplate(*request, cancelled); !status.ok())
    return errorOf(status);
  const Result<std::string> text =
      served.chat->render(*request->chat, cancelled);
  if (!text.ok())
    return errorOf(text.status());
  return {.body = jsonObject({{"prompt", jsonText(*text)}})};
}

/// Sets `adapter` to the number of the one that a request calls its model: by
/// its name, or behind one of the model's and a colon.
std::optional<ApiError> Api::findModel(const std::string &name,
                                       int64_t &adapter) const {
  const Result<int64_t> found =
      findModelOrAdapter(*served.files, options.names, name);
  adapter = found.ok() ? *found : 0;
  if (found.ok())
    return std::nullopt;
  return ApiError{404, found.message(), "invalid_request_error",
                  "model_not_found", "model"};
}

/// An error for more tokens of a field than the context has room for.
std::optional<ApiError> Api::checkLength(size_t tokens,
                                         const char *field) const {
  const int64_t context = served.service->contextLength();
  if (static_cast<int64_t>(tokens) <= context)
    return std::nullopt;
  const char *name = std::string_view(field) == "input" ? "input" : "prompt";
  return ApiError{400,
                  // Clients look for these words.
                  "this model's maximum context length is " +
                      std::to_string(context) + " tokens, and the " + name +
                      " has " + std::to_string(tokens) + "; shorten it",
                  "invalid_request_error", "context_length_exceeded", field};
}

/// What a client is told whose text the service has not taken.
ApiError Api::refusedBy(const Status &status) const {
  ApiError error = ApiError::of(status);
  if (status.code() == StatusCode::Unavailable &&
      served.service->failure().ok()) {
    error.status = 429;
    error.type = "rate_limit_error";
    error.code = "rate_limit_exceeded";
  }
  return error;
}

/// An error for more texts than can ever be there at once.
Status Api::checkChoices(const GenerationRequest &request) const {
  const int64_t most = served.service->mostTexts();
  const auto prompts =
      static_cast<int64_t>(request.chat ? 1 : request.prompts.size());
  if (prompts * request.choices <= most)
    return Status();
  return Status::error(
      (request.choices > 1
           ? "'n' is " + std::to_string(request.choices)
           : "'prompt' has " + std::to_string(prompts) + " prompts") +
      ", which makes " + std::to_string(prompts * request.choices) +
      " texts of the request, but " + std::to_string(most) +
      " are the most here (--parallel and --queue together)");
}

/// Whether there is a template, and it makes something of what the request has
/// for it.
Status Api::checkTemplate(const GenerationRequest &request,
                          CancelFlag cancelled) const {
  if (!served.chat)
    return Status::error("the model has no chat template, so it may not be "
                         "made for chats; use /v1/completions",
                         StatusCode::Unsupported);
  // What none of its variables is would be ignored.
  if (request.chat->variables.contains("reasoning_effort") &&
      served.chatTemplate.find("reasoning_effort") == std::string::npos)
    return Status::error("'reasoning_effort' is not supported: the model's "
                         "chat template makes nothing of it; leave it out",
                         StatusCode::Unsupported);
  if (!request.tools)
    return Status();
  ChatPrompt without = *request.chat;
  without.variables.erase("tools");
  KF_ASSIGN_OR_RETURN(const std::string given,
                      served.chat->render(*request.chat, cancelled));
  KF_ASSIGN_OR_RETURN(const std::string other,
                      served.chat->render(without, cancelled));
  if (given == other)
    return Status::error(
        "'tools' is not supported: the model's chat template makes nothing of "
        "them; --template FILE gives the server one that has the variable "
        "'tools', as those of Qwen, Llama 3 and Mistral do, or put them into a "
        "message",
        StatusCode::Unsupported);
  return Status();
}

/// Of a field's text, as `encode` has it, or of its token ids.
Result<std::vector<int32_t>> Api::idsOf(
    const PromptStart &prompt, const std::string &field,
    const std::function<Result<std::vector<int32_t>>(const std::string &)>
        &encode) const {
  const auto *ids = std::get_if<std::vector<int32_t>>(&prompt);
  if (!ids)
    return encode(std::get<std::string>(prompt));
  const int64_t vocabulary = served.files->config.vocabSize;
  if (const int32_t most = *std::ranges::max_element(*ids); most >= vocabulary)
    return Status::error(
        "'" + field + "' has the token " + std::to_string(most) +
        "; the vocabulary's ids are 0 to " + std::to_string(vocabulary - 1));
  return *ids;
}

Result<std::vector<std::vector<int32_t>>>
Api::encode(const GenerationRequest &request, CancelFlag cancelled) const {
  std::vector<std::vector<int32_t>> prompts;
  if (request.chat) {
    KF_RETURN_IF_ERROR(checkTemplate(request, cancelled));
    KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                        served.chat->encode(*request.chat, cancelled));
    prompts.push_back(std::move(ids));
  }
  for (const PromptStart &prompt : request.prompts) {
    KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                        idsOf(prompt, "prompt", [&](const std::string &text) {
                          return encodePrompt(*served.files, text, cancelled);
                        }));
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

SamplerOptions Api::samplingOf(Form form, const GenerationRequest &request,
                               uint64_t choice) {
  // OpenAI's API draws with 1 where nobody says otherwise.
  PartialSamplerOptions last;
  last.temperature = 1;
  SamplerOptions sampling =
      request.sampling.over(options.sampling)
          .over(PartialSamplerOptions::of(served.files->config.sampling))
          .over(last)
          .complete();
  // llama.cpp's penalties are of tokens of the prompt, too, and OpenAI's not.
  sampling.penalizesPrompt = form == Form::Llama;
  if (request.sampling.seed) {
    // Choices of one request differ, as with a seed each.
    sampling.seed = *request.sampling.seed + choice;
  } else if (!options.sampling.seed) {
    const std::scoped_lock lock(randomMutex);
    sampling.seed = random();
  }
  return sampling;
}

AnswerText::Options Api::textOptions(const GenerationRequest &request,
                                     std::span<const int32_t> prompt) const {
  AnswerText::Options text;
  if (!request.chat)
    return text;
  text.splitsThinking = thinks;
  if (thinks) {
    constexpr size_t few = 16; // of which the tag is made, and blanks
    const std::string end = served.files->tokenizer->decode(
        prompt.last(std::min(few, prompt.size())), /*skipSpecial=*/false);
    const size_t last = end.find_last_not_of(" \t\r\n") + 1;
    text.startsThinking =
        std::string_view(end).substr(0, last).ends_with("<think>");
  }
  text.tools = request.tools;
  if (!request.forcedTools.empty()) {
    std::vector<std::string> names;
    for (const ToolSchema &tool : request.forcedTools)
      names.push_back(tool.name);
    text.tools = std::make_shared<const std::vector<std::string>>(names);
    text.isCall = true;
  }
  return text;
}

/// What a text is held to, or null. It begins behind thoughts that the prompt
/// has opened.
Result<std::shared_ptr<TokenConstraintSource>>
Api::constraintOf(const GenerationRequest &request, bool startsThinking,
                  CancelFlag cancelled) {
  std::optional<OutputFormat> format = request.format;
  if (!request.forcedTools.empty()) {
    KF_ASSIGN_OR_RETURN(format,
                        formatOfCall(request.forcedTools, served.chatTemplate));
  }
  if (!format)
    return std::shared_ptr<TokenConstraintSource>();
  if (startsThinking)
    format->before.insert(0, "</think>\n\n");
  return constraints->compile(*format, cancelled);
}

AnswerHead Api::headFor(Form form, const GenerationRequest &request) {
  AnswerHead head;
  head.id = (form == Form::Chat ? "chatcmpl-" : "cmpl-") + randomText(24);
  head.created = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  head.model = request.model.empty() ? options.names.front() : request.model;
  head.fingerprint = "kf-" + std::to_string(created);
  head.includeUsage = request.includeUsage;
  if (request.topLogProbs)
    head.logProbsBy = &*served.files->tokenizer;
  return head;
}

std::unique_ptr<HttpAnswer> Api::generate(Form form, std::string_view body,
                                          const std::function<void()> &onNews,
                                          CancelFlag cancelled) {
  Result<GenerationRequest> parsed = form == Form::Chat ? parseChatRequest(body)
                                     : form == Form::Completion
                                         ? parseCompletionRequest(body)
                                         : parseLlamaRequest(body);
  if (!parsed.ok())
    return answerNow(errorOf(parsed.status()));
  const GenerationRequest &request = *parsed;
  TextRequest text;
  if (std::optional<ApiError> error = findModel(request.model, text.adapter))
    return answerNow(error->response());
  if (options.mostTokens && request.maxTokens.value_or(-1) > options.mostTokens)
    return answerNow(errorOf(
        Status::error("'max_tokens' is " + std::to_string(*request.maxTokens) +
                      ", but an answer has at most " +
                      std::to_string(options.mostTokens) + " tokens here")));
  if (Status status = checkChoices(request); !status.ok())
    return answerNow(errorOf(status));
  Result<std::vector<std::vector<int32_t>>> prompts =
      encode(request, cancelled);
  if (!prompts.ok())
    return answerNow(errorOf(prompts.status()));
  const int64_t context = served.service->contextLength();
  for (const std::vector<int32_t> &prompt : *prompts)
    if (std::optional<ApiError> error = checkLength(
            prompt.size(), form == Form::Chat ? "messages" : "prompt"))
      return answerNow(error->response());

  // As OpenAI has it, a completion that does not say is short.
  const int64_t unsaid = form == Form::Completion ? 16 : -1;
  text.maxTokens = request.maxTokens.value_or(unsaid);
  if (text.maxTokens == -1)
    text.maxTokens = options.mostTokens ? options.mostTokens : context;
  if (!request.ignoreEos) {
    text.stopIds = served.files->config.eosIds;
    if (request.chat)
      text.stopIds.insert(text.stopIds.end(), endOfTurn.begin(),
                          endOfTurn.end());
  }
  text.stopIds.insert(text.stopIds.end(), request.stopIds.begin(),
                      request.stopIds.end());
  text.stopTexts = request.stops;
  text.topLogProbs = request.topLogProbs;

  if (Status known = samplingOf(form, request, 0)
                         .validateIds(served.files->config.vocabSize);
      !known.ok()) {
    ApiError error = ApiError::of(known);
    error.param = "logit_bias";
    return answerNow(error.response());
  }
  const bool startsThinking =
      request.chat && textOptions(request, prompts->front()).startsThinking;
  Result<std::shared_ptr<TokenConstraintSource>> constraint =
      constraintOf(request, startsThinking, cancelled);
  if (!constraint.ok())
    return answerNow(errorOf(constraint.status()));
  text.constraint = constraint.take();

  std::vector<GenerationAnswer::Choice> choices;
  for (size_t i = 0; i < prompts->size(); ++i)
    for (int64_t n = 0; n < request.choices; ++n) {
      text.prompt = (*prompts)[i];
      text.sampling = samplingOf(form, request, static_cast<uint64_t>(n));
      Result<std::unique_ptr<TextHandle>> handle =
          served.service->submit(text, onNews);
      if (!handle.ok())
        return answerNow(refusedBy(handle.status()).response());
      choices.push_back({.handle = handle.take(),
                         .text = AnswerText(textOptions(request, text.prompt)),
                         .prompt = i});
    }
  AnswerHead head = headFor(form, request);
  GenerationAnswer::Options answer{
      .stream = request.stream,
      .oneCall = !request.parallelToolCalls,
      .onEnd =
          [this](std::string_view reason) {
            ++counts.finished[std::string(reason)];
          },
      // Some templates want nine letters or digits.
      .makeCallId = [this] { return randomText(9); }};
  return std::make_unique<GenerationAnswer>(
      std::move(choices),
      form == Form::Chat ? chatForm(std::move(head))
      : form == Form::Completion
          ? completionForm(std::move(head))
          : llamaForm(std::move(head), request.returnsIds),
      std::move(answer));
}
