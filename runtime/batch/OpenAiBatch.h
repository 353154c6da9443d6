//===- OpenAiBatch.h - Lines of OpenAI's batches ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A request and its result, each a line:
//
//   {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions",
//    "body": {"messages": [{"role": "user", "content": "Hello"}]}}
//   {"id": "batch_req_1", "custom_id": "a", "response": {"status_code": 200,
//    "body": {...}}, "error": null}
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_OPENAIBATCH_H
#define KF_RUNTIME_BATCH_OPENAIBATCH_H

#include "runtime/core/Status.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace kf {

/// Whether an object of a file of requests is of OpenAI's form, sound or not.
bool isOpenAiLine(const nlohmann::json &object);

enum class OpenAiEndpoint { Chat, Completions, Embeddings };
std::string_view pathOf(OpenAiEndpoint endpoint);

/// What a line asks for, but for its body.
struct OpenAiLine {
  std::string id; ///< `custom_id` as JSON; empty where there is none
  OpenAiEndpoint endpoint = OpenAiEndpoint::Completions;

  /// "/chat/completions", say.
  std::string_view path() const { return pathOf(endpoint); }
};

/// Reads `object`; "body" is an object then. Errors name the key.
Result<OpenAiLine> readOpenAiLine(const nlohmann::json &object);

/// A request to answer by itself.
struct OpenAiRequest : OpenAiLine {
  std::string body;  ///< as it stands in the line
  std::string model; ///< what the body calls the model; empty: nothing
};

/// The same of a line as it stands. Errors: a body that wants a stream, too.
Result<OpenAiRequest> parseOpenAiRequest(std::string_view line);

/// Why a line has no response.
struct OpenAiError {
  std::string code, message;
};

/// The result, without a line's end, of the request in line `number` with the
/// custom_id `id` (JSON, or empty): an answer whose body is JSON.
std::string openAiResult(size_t number, const std::string &id, int status,
                         const std::string &body);
/// The same of one without an answer.
std::string openAiResult(size_t number, const std::string &id,
                         const OpenAiError &error);

} // namespace kf

#endif // KF_RUNTIME_BATCH_OPENAIBATCH_H
