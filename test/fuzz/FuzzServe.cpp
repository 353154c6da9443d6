//===- FuzzServe.cpp - Bodies of requests, and texts of models ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte says what the rest is: a body for one of the server's
// endpoints, a text with thoughts and calls of tools, or the begin of a
// request's head.
//
//===----------------------------------------------------------------------===//

#include "GrammarUse.h"

#include "runtime/batch/JsonSlice.h"
#include "runtime/core/Json.h"
#include "runtime/serve/AnswerText.h"
#include "runtime/serve/ApiError.h"
#include "runtime/serve/ApiRequest.h"
#include "runtime/serve/HttpAccess.h"
#include "runtime/serve/HttpMessage.h"

#include <algorithm>
#include <cstdlib>

using namespace kf;

static void require(bool condition) {
  if (!condition)
    std::abort();
}

/// What a call of a tool is held to is a schema, whatever the tools' parameters
/// are.
static void checkCall(const std::vector<ToolSchema> &tools) {
  for (const char *form :
       {"<tool_call>", "[TOOL_CALLS]", R"({"name": "", "parameters": {}})"}) {
    const Result<OutputFormat> format = formatOfCall(tools, form);
    require(format.ok());
    const std::string message(
        Grammar::fromJsonSchema(format->text, fuzzLimits(),
                                {.documents = format->documents})
            .message());
    require(message.find("not valid JSON") == message.npos &&
            message.find("no document") == message.npos);
  }
}

/// Whether what is accepted can be run.
static void checkRequest(const Result<GenerationRequest> &parsed) {
  if (!parsed.ok()) {
    const ApiError error = ApiError::of(parsed.status());
    require(parseJson(error.json()).ok());
    require(error.message.find('\n') == std::string::npos);
    return;
  }
  const GenerationRequest &request = *parsed;
  require(request.chat.has_value() == request.prompts.empty());
  require(request.sampling.complete().validate().ok());
  require(request.maxTokens.value_or(-1) >= -1 && request.choices >= 1);
  require(std::ranges::none_of(request.stops, &std::string::empty));
  for (const PromptStart &prompt : request.prompts)
    if (const auto *ids = std::get_if<std::vector<int32_t>>(&prompt))
      require(!ids->empty() && *std::ranges::min_element(*ids) >= 0);
  require(static_cast<int64_t>(request.prompts.size()) * request.choices <=
          kMostChoices);
  if (!request.chat)
    return;
  require(!request.chat->messages.empty());
  require(request.forcedTools.empty() || request.tools);
  if (!request.forcedTools.empty())
    checkCall(request.forcedTools);
  for (const ChatMessage &message : request.chat->messages)
    for (const auto &[name, json] : message.fields)
      require(parseJson(json).ok());
  for (const auto &[name, json] : request.chat->variables)
    require(parseJson(json).ok());
}

static void checkEmbeddings(const Result<EmbeddingRequest> &parsed) {
  if (!parsed.ok()) {
    require(parseJson(ApiError::of(parsed.status()).json()).ok());
    return;
  }
  require(!parsed->inputs.empty() && parsed->inputs.size() <= kMostInputs);
  require(parsed->dimensions.value_or(1) >= 1);
  for (const PromptStart &input : parsed->inputs)
    if (const auto *ids = std::get_if<std::vector<int32_t>>(&input))
      require(!ids->empty() && *std::ranges::min_element(*ids) >= 0);
    else
      require(!std::get<std::string>(input).empty());
}

/// A text gives the same in one piece and byte by byte, and loses nothing but
/// blanks and tags; of one that had to be a call, all but that is lost where a
/// limit cut it.
static void checkText(std::string_view text, bool thinks, bool isCall,
                      bool isCut) {
  const auto tools = std::make_shared<const std::vector<std::string>>(
      std::initializer_list<std::string>{"f", "g"});
  const AnswerText::Options options{
      .splitsThinking = thinks, .tools = tools, .isCall = isCall};
  AnswerText whole(options), bytes(options);
  AnswerPart first = whole.push(text), second;
  first.add(whole.finish(isCut));
  for (size_t i = 0; i < text.size(); ++i)
    second.add(bytes.push(text.substr(i, 1)));
  second.add(bytes.finish(isCut));
  require(first.content == second.content &&
          first.reasoning == second.reasoning && first.calls == second.calls);
  if (isCall && isCut)
    return;
  for (const ToolCall &call : first.calls)
    require(parseJson(call.arguments).ok());
  if (!thinks && first.calls.empty())
    require(first.content == text);
}

static void checkTexts(std::string_view text, bool thinks) {
  for (bool isCall : {false, true})
    for (bool isCut : {false, true})
      checkText(text, thinks, isCall, isCut);
}

/// Headers are lines, and what is answered to them is no more lines than it is
/// meant to be.
static void checkHead(std::string_view text) {
  HttpRequest request;
  request.addHeaderLines(text);
  for (const auto &[name, value] : request.headers) {
    require(!name.empty() && name.find_first_of(" \t\r\n:") == name.npos);
    require(value.find("\r\n") == value.npos);
  }
  const HttpAccess access = {.keys = {"key"}, .origins = {"*"}};
  (void)access.hasKey(request);
  (void)access.isHostAllowed(request);
  (void)access.isOriginAllowed(request);
  HttpResponse response{.body = "{}", .headers = access.corsHeaders(request)};
  response.headers.emplace_back("Echo", request.header("origin"));
  const std::string head = headText(response, HttpFraming::Length, 2, false);
  require(static_cast<size_t>(std::ranges::count(head, '\n')) ==
          response.headers.size() + 5);
  if (const std::optional<std::string> path = pathOf(text))
    require(path->starts_with('/') && path->find('\0') == path->npos);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  const std::string_view text(reinterpret_cast<const char *>(data + 1),
                              size - 1);
  switch (data[0] % 8) { // '0' to '7' in the corpus
  case 0:
    for (std::string_view part : elementTexts(text))
      (void)memberText(part, "a");
    for (const auto &[name, part] : memberTexts(text))
      require(memberText(text, name).data() <= part.data());
    break;
  case 1:
    checkRequest(parseChatRequest(text));
    break;
  case 2:
    checkRequest(parseCompletionRequest(text));
    break;
  case 3:
    checkRequest(parseLlamaRequest(text));
    break;
  case 4:
    (void)parseTokenizeRequest(text);
    (void)parseDetokenizeRequest(text);
    checkEmbeddings(parseEmbeddingRequest(text));
    break;
  case 5:
    checkTexts(text, false);
    break;
  case 6:
    checkTexts(text, true);
    break;
  default:
    checkHead(text);
    break;
  }
  return 0;
}
