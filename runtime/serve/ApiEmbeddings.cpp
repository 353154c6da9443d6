//===- ApiEmbeddings.cpp - Requests for embeddings ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/Api.h"
#include "runtime/serve/EmbeddingAnswer.h"

using namespace kf;

/// What the request asks for, once it is known to be possible.
Result<EmbeddingOptions>
Api::embeddingOf(const EmbeddingRequest &request) const {
  KF_RETURN_IF_ERROR(served.noEmbeddings);
  EmbeddingOptions embedding = served.embedding;
  const int64_t most = served.files->config.hiddenSize;
  embedding.dimensions = request.dimensions.value_or(0);
  if (embedding.dimensions > most)
    return Status::error("'dimensions' is " +
                         std::to_string(embedding.dimensions) +
                         ", but embeddings of this model have " +
                         std::to_string(most) + " at most");
  const auto inputs = static_cast<int64_t>(request.inputs.size());
  if (const int64_t texts = served.service->mostTexts(); inputs > texts)
    return Status::error("'input' has " + std::to_string(inputs) +
                         " texts, but " + std::to_string(texts) +
                         " are the most here (--parallel and --queue "
                         "together)");
  return embedding;
}

std::unique_ptr<HttpAnswer> Api::embed(std::string_view body,
                                       const std::function<void()> &onNews,
                                       CancelFlag cancelled) {
  const Result<EmbeddingRequest> request = parseEmbeddingRequest(body);
  if (!request.ok())
    return answerNow(ApiError::of(request.status()).response());
  int64_t adapter = 0;
  if (std::optional<ApiError> error = findModel(request->model, adapter))
    return answerNow(error->response());
  const Result<EmbeddingOptions> embedding = embeddingOf(*request);
  if (!embedding.ok())
    return answerNow(ApiError::of(embedding.status()).response());
  std::vector<TextRequest> texts;
  for (const PromptStart &input : request->inputs) {
    Result<std::vector<int32_t>> ids =
        idsOf(input, "input", [&](const std::string &text) {
          return encodeText(*served.files, text, cancelled);
        });
    if (!ids.ok())
      return answerNow(ApiError::of(ids.status()).response());
    if (std::optional<ApiError> error = checkLength(ids->size(), "input"))
      return answerNow(error->response());
    TextRequest &text = texts.emplace_back();
    text.prompt = ids.take();
    text.embedding = *embedding;
    text.adapter = adapter;
  }
  std::vector<std::unique_ptr<TextHandle>> handles;
  for (TextRequest &text : texts) {
    Result<std::unique_ptr<TextHandle>> handle =
        served.service->submit(std::move(text), onNews);
    if (!handle.ok())
      return answerNow(refusedBy(handle.status()).response());
    handles.push_back(handle.take());
  }
  return std::make_unique<EmbeddingAnswer>(
      std::move(handles),
      EmbeddingAnswer::Options{.model = request->model.empty()
                                            ? options.names.front()
                                            : request->model,
                               .base64 = request->base64,
                               .onEnd = [this] { ++counts.finished["stop"]; }});
}
