//===- AnswerReader.h - An answer of OpenAI's API, as it comes  -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a server answers to a request of a chat or a completion: a stream of
// chunks, or all of it at once, or an error. Nothing of it is taken on trust.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CLIENT_ANSWERREADER_H
#define KF_RUNTIME_CLIENT_ANSWERREADER_H

#include "runtime/client/ApiKey.h"
#include "runtime/client/EventStream.h"
#include "runtime/core/Status.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What came of a request.
struct Answer {
  std::string text;         ///< valid UTF-8
  std::string finishReason; ///< "stop", "length" ...; empty: not said
  /// As the server counts them; nothing where it does not say.
  std::optional<int64_t> promptTokens, outputTokens;
  /// Seconds from the begin of the request to each piece of text, thoughts and
  /// calls of tools included.
  std::vector<double> pieces;
  double seconds = 0; ///< to the end
};

/// Reads one answer. One thread.
class AnswerReader {
public:
  /// The most bytes of a text, and of a body that is no stream.
  static constexpr size_t kMostTextBytes = size_t(16) << 20;
  static constexpr size_t kMostBodyBytes = size_t(32) << 20;

  /// The body's kind: `status` 200 has an answer, others an error, and
  /// `contentType` says whether it is a stream. Nothing that is read from it
  /// has `key`, which a server may repeat.
  AnswerReader(int status, std::string_view contentType, ApiKey key = {});
  AnswerReader(const AnswerReader &) = delete;
  AnswerReader &operator=(const AnswerReader &) = delete;

  /// Reads some of the body, which came `seconds` after the request.
  Status push(std::string_view bytes, double seconds);
  /// Whether what follows does not matter: "[DONE]" has come, or enough of an
  /// error.
  bool isDone() const;
  /// The answer, once the body has ended. Errors: the server's own, with its
  /// status and message, and an answer that is cut off or none at all.
  Result<Answer> finish(double seconds);

private:
  Status readEvent(std::string_view data);
  Status readChunk(const nlohmann::json &chunk);
  Status readChoice(const nlohmann::json &choice);
  void readUsage(const nlohmann::json &chunk);
  Status addText(const nlohmann::json &from, const char *key, bool isShown,
                 bool &any);
  Status serverError() const;

  const int status;
  const bool isStream;
  const ApiKey key;
  EventStream events;
  Answer answer;
  std::string body; ///< of an error, or a whole answer
  double now = 0;   ///< of what push() reads
  bool done = false;
  bool anyChunk = false;
};

/// The message of an error's body, as one line without control characters and
/// `key`: that of OpenAI's form, or else the begin of the body.
std::string errorMessage(std::string_view body, const ApiKey &key);

/// `text` fit for a terminal: control characters become '?', those that begin
/// with the byte 0xc2 too, and bytes that are no UTF-8 U+FFFD; at most `most`
/// bytes, or so.
std::string printableText(std::string_view text, size_t most);

} // namespace kf

#endif // KF_RUNTIME_CLIENT_ANSWERREADER_H
