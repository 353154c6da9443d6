//===- RequestFile.h - Requests to send to servers ------------ -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of requests, a JSON object a line, in one of two forms: that of
// 'kf-run batch' (runtime/batch/BatchFile.h), or that of OpenAI's batches,
//
//   {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions",
//    "body": {"messages": [{"role": "user", "content": "Hello"}]}}
//
// Both become bodies of OpenAI's API that ask for a stream, with counts of
// tokens at its end.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_REQUESTFILE_H
#define KF_RUNTIME_CLIENT_REQUESTFILE_H

#include "runtime/batch/OpenAiBatch.h"
#include "runtime/core/Status.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What a request gets that does not say it.
struct RequestDefaults {
  double temperature = 0;
  int64_t tokens = 256; ///< -1: nothing, so that the server decides
};

/// A request, for any server.
struct RemoteRequest {
  size_t line = 0; ///< of the file, from 1 on
  std::string id;  ///< as JSON; empty where there is none
  bool isChat = false;
  /// Whether the likeliest token is always taken, so that equal models have
  /// equal texts.
  bool isGreedy = false;
  /// An object, without "model". Keys are in the file's order, which says that
  /// of a schema's properties.
  nlohmann::ordered_json body;

  /// The body for a model of this name; empty: without one.
  Result<std::string> bodyFor(const std::string &model) const;
  /// "/chat/completions" or "/completions".
  std::string_view path() const {
    return pathOf(isChat ? OpenAiEndpoint::Chat : OpenAiEndpoint::Completions);
  }
};

/// Reads one line. Errors name the key.
Result<RemoteRequest> parseRemoteRequest(std::string_view line,
                                         const RequestDefaults &defaults);

/// Reads all lines of a file's `text`, at least one. Errors name the line.
Result<std::vector<RemoteRequest>>
parseRemoteRequests(std::string_view text, const RequestDefaults &defaults);

} // namespace kf

#endif // KF_RUNTIME_CLIENT_REQUESTFILE_H
