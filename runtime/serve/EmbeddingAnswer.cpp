//===- EmbeddingAnswer.cpp - The answer with embeddings -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/EmbeddingAnswer.h"

#include "runtime/core/JsonText.h"
#include "runtime/serve/ApiError.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

using namespace kf;

std::string kf::base64Of(std::span<const float> values) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((values.size() * sizeof(float) + 2) / 3 * 4);
  uint32_t bits = 0; // of bytes that are not out
  int count = 0;
  for (float value : values) {
    const auto word = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      bits = bits << 8 | (word >> shift & 0xff);
      if (++count < 3)
        continue;
      for (int digit = 18; digit >= 0; digit -= 6)
        out += digits[bits >> digit & 0x3f];
      bits = 0;
      count = 0;
    }
  }
  if (count > 0) {
    bits <<= 8 * (3 - count);
    for (int digit = 18; digit >= 18 - 6 * count; digit -= 6)
      out += digits[bits >> digit & 0x3f];
    out.append(static_cast<size_t>(3 - count), '=');
  }
  return out;
}

EmbeddingAnswer::EmbeddingAnswer(
    std::vector<std::unique_ptr<TextHandle>> handles, Options options)
    : options(std::move(options)) {
  for (std::unique_ptr<TextHandle> &handle : handles)
    texts.push_back({.handle = std::move(handle), .embedding = {}});
}

Status EmbeddingAnswer::advance(Text &text) {
  if (!text.handle)
    return Status();
  const TextPiece piece = text.handle->take();
  if (!piece.end)
    return Status();
  text.handle.reset();
  KF_RETURN_IF_ERROR(piece.end->status());
  const GenerationResult &result = **piece.end;
  if (result.reason == StopReason::Cancelled)
    return Status::error("the server is shutting down", StatusCode::Cancelled);
  tokens += result.promptTokens;
  text.embedding = options.base64
                       ? jsonText(base64Of(result.embedding))
                       : jsonArray(result.embedding,
                                   [](float value) { return jsonText(value); });
  options.onEnd();
  return Status();
}

HttpAnswer::Piece EmbeddingAnswer::take() {
  Piece piece;
  if (isDone)
    return piece;
  for (Text &text : texts)
    if (Status status = advance(text); !status.ok()) {
      isDone = piece.isLast = true;
      texts.clear();
      piece.head = ApiError::of(status).response();
      piece.body.swap(piece.head->body);
      return piece;
    }
  if (std::ranges::any_of(
          texts, [](const Text &text) { return text.handle != nullptr; }))
    return piece;
  isDone = piece.isLast = true;
  int64_t index = 0;
  const std::string data = jsonArray(texts, [&](const Text &text) {
    return jsonObject({{"object", jsonText("embedding")},
                       {"index", jsonText(index++)},
                       {"embedding", text.embedding}});
  });
  piece.head.emplace();
  piece.body =
      jsonObject({{"object", jsonText("list")},
                  {"data", data},
                  {"model", jsonText(options.model)},
                  {"usage", jsonObject({{"prompt_tokens", jsonText(tokens)},
                                        {"total_tokens", jsonText(tokens)}})}});
  return piece;
}
