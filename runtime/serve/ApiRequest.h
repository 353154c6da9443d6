//===- ApiRequest.h - What clients ask for ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bodies of requests, as values. A field that is known is obeyed, or it is an
// error that names it: of type StatusCode::Unsupported where there is no code
// for what it asks, unless its value asks for nothing. Unknown fields are
// ignored, and null counts as absent.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_APIREQUEST_H
#define KF_RUNTIME_SERVE_APIREQUEST_H

#include "runtime/chat/PromptEncoder.h"
#include "runtime/constraint/OutputFormat.h"
#include "runtime/core/Status.h"
#include "runtime/engine/PartialSamplerOptions.h"
#include "runtime/serve/ForcedCall.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kf {

/// The most answers to one request: prompts times `n`.
inline constexpr int64_t kMostChoices = 128;

/// Each choice of a request has a copy of these.
inline constexpr size_t kMostStops = 64, kMostStopBytes = 256;
inline constexpr size_t kMostStopIds = 4096, kMostLogitBiases = 4096;

/// A text, or token ids, at least one.
using PromptStart = std::variant<std::string, std::vector<int32_t>>;

/// What is to be generated, each number in the range of its option; nothing
/// where the request says nothing.
struct GenerationRequest {
  /// Of a chat; else there are `prompts`, at least one.
  std::optional<ChatPrompt> chat;
  std::vector<PromptStart> prompts;

  std::string model;                ///< empty: not said
  std::optional<int64_t> maxTokens; ///< -1: no limit
  PartialSamplerOptions sampling;
  std::vector<std::string> stops; ///< none is empty
  std::vector<int64_t> stopIds;   ///< besides the model's
  int64_t choices = 1;            ///< for each prompt
  bool ignoreEos = false;         ///< goes on after tokens that end a text
  bool stream = false;
  bool includeUsage = false; ///< a chunk of counts ends the stream
  /// The names of the tools that `chat` has as the variable "tools"; null:
  /// none. The choices share them.
  std::shared_ptr<const std::vector<std::string>> tools = {};
  bool parallelToolCalls = true;
  /// Of which the answer has to call one; none: it need not call any.
  std::vector<ToolSchema> forcedTools = {};
  std::optional<OutputFormat> format = {}; ///< what texts are held to
  bool returnsIds = false;                 ///< llama.cpp's return_tokens
  /// How many likely tokens are told beside each; nothing: no
  /// log-probabilities.
  std::optional<size_t> topLogProbs = {};
};

/// OpenAI's POST /v1/chat/completions.
Result<GenerationRequest> parseChatRequest(std::string_view body);
/// OpenAI's POST /v1/completions.
Result<GenerationRequest> parseCompletionRequest(std::string_view body);
/// llama.cpp's POST /completion.
Result<GenerationRequest> parseLlamaRequest(std::string_view body);

/// The most texts of a request for embeddings: as many as OpenAI's.
inline constexpr size_t kMostInputs = 2048;

/// OpenAI's POST /v1/embeddings.
struct EmbeddingRequest {
  std::vector<PromptStart> inputs;   ///< at least one; no text is empty
  std::string model;                 ///< empty: not said
  std::optional<int64_t> dimensions; ///< at least 1
  bool base64 = false;               ///< else numbers
};
Result<EmbeddingRequest> parseEmbeddingRequest(std::string_view body);

/// llama.cpp's POST /tokenize.
struct TokenizeRequest {
  std::string content;
  bool addSpecial = false;
  bool parseSpecial = true;
  bool withPieces = false;
};
Result<TokenizeRequest> parseTokenizeRequest(std::string_view body);

/// llama.cpp's POST /detokenize: its tokens, maybe none.
Result<std::vector<int32_t>> parseDetokenizeRequest(std::string_view body);

} // namespace kf

#endif // KF_RUNTIME_SERVE_APIREQUEST_H
