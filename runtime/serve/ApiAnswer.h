//===- ApiAnswer.h - What clients are answered ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Generated text as the JSON that clients of OpenAI's API and of llama.cpp's
// server expect, whole or chunk by chunk.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_APIANSWER_H
#define KF_RUNTIME_SERVE_APIANSWER_H

#include "runtime/engine/Generation.h"
#include "runtime/serve/AnswerText.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What is the same in all chunks of an answer.
struct AnswerHead {
  std::string id;      ///< "chatcmpl-..."
  int64_t created = 0; ///< seconds since 1970
  std::string model;
  std::string fingerprint;   ///< of the server and what it runs
  bool includeUsage = false; ///< a chunk of counts is the last
  /// Names the tokens whose log-probabilities are sent; null: none are.
  const Tokenizer *logProbsBy = nullptr;
};

/// How one of the answer's choices ended.
struct ChoiceEnd {
  StopReason reason = StopReason::MaxTokens;
  bool hasCalls = false; ///< of tools
  size_t prompt = 0;     ///< which of the request's prompts it is of
  int64_t promptTokens = 0, cachedTokens = 0, completionTokens = 0;
  double promptSeconds = 0, decodeSeconds = 0;
};

/// "stop", "length" or "tool_calls".
std::string_view finishReasonOf(const ChoiceEnd &end);

/// One of the forms in which text is sent. Functions return JSON, or nothing
/// where the form has no such chunk.
class AnswerForm {
public:
  virtual ~AnswerForm() = default;
  /// The first chunk of a choice.
  virtual std::string begin(size_t choice) const = 0;
  virtual std::string part(size_t choice, const AnswerPart &part) const = 0;
  /// The last chunk of a choice.
  virtual std::string end(size_t choice, const ChoiceEnd &end) const = 0;
  /// The chunk of counts behind all choices.
  virtual std::string usage(const std::vector<ChoiceEnd> &ends) const = 0;
  /// Whether "data: [DONE]" ends a stream.
  virtual bool endsWithDone() const = 0;
  /// All of it at once.
  virtual std::string whole(const std::vector<AnswerPart> &parts,
                            const std::vector<ChoiceEnd> &ends) const = 0;
};

/// Of /v1/chat/completions, /v1/completions and llama.cpp's /completion.
std::unique_ptr<AnswerForm> chatForm(AnswerHead head);
std::unique_ptr<AnswerForm> completionForm(AnswerHead head);
std::unique_ptr<AnswerForm> llamaForm(AnswerHead head, bool withIds);

/// An event of a stream (text/event-stream) that has `json`.
std::string eventOf(std::string_view json);

} // namespace kf

#endif // KF_RUNTIME_SERVE_APIANSWER_H
