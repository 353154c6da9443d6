//===- BatchFile.h - Requests, one a line -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of requests has a JSON object a line:
//
//   {"prompt": "Once", "n": 20, "temp": 0.7, "id": "a"}
//   {"messages": [{"role": "user", "content": "Hello"}], "stop": ["\n"]}
//
// `prompt` (a text), `ids` (token ids) or `messages` (of role and content) is
// what to go on from, one of them. The other keys are all optional, and named
// as the options of `kf-run generate` with _ for -:
//
//   n, ignore_eos
//   temp, top_k, top_p, min_p, seed
//   repeat_penalty, presence_penalty, frequency_penalty, repeat_last_n
//   logit_bias  an object from token ids to numbers, {"15": -1.5}, or an array
//               of pairs, [[15, -1.5]]; false excludes the token
//   stop        a text or an array of texts
//   logprobs    true for the log-probability of each token
//   top_logprobs  how many of the likeliest tokens are beside it, at most 20
//   response_format, json_schema, grammar  what the text has to be
//               (FormatFields.h)
//   id          a text, a number, true or false, to be handed through
//
// Requests of OpenAI's API are read, too: max_tokens and max_completion_tokens
// are n, temperature is temp, a content may be an array of texts; model names
// an adapter, alone or behind the model's name and a colon, and says nothing
// where there are none, for the command names the model, and stream has to be
// false. What else such requests have is an error that says so. Lines of
// OpenAI's batches are of another form (OpenAiBatch.h).
//
// null counts as absent. Lines without anything are skipped, and so are the
// byte order mark of a file and the carriage return of a line.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_BATCHFILE_H
#define KF_RUNTIME_BATCH_BATCHFILE_H

#include "runtime/batch/TemplateFields.h"
#include "runtime/chat/ChatTemplate.h"
#include "runtime/constraint/OutputFormat.h"
#include "runtime/core/Status.h"
#include "runtime/engine/PartialSamplerOptions.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// What a line asks for, each number in the range of its option; nothing where
/// it says nothing.
struct BatchRequest {
  // One of these:
  std::optional<std::string> prompt;       ///< UTF-8; maybe empty
  std::optional<std::vector<int32_t>> ids; ///< at least one, none below 0
  std::optional<std::vector<ChatMessage>> messages; ///< at least one
  TemplateVariables variables; ///< chat_template_kwargs: of messages

  std::optional<int64_t> tokens; ///< n: the most to generate; -1: no limit
  std::optional<bool> ignoreEos;
  std::optional<std::vector<std::string>> stops; ///< none is empty
  PartialSamplerOptions sampling;
  std::optional<OutputFormat> format;
  /// How many likely tokens are told beside each; nothing: no
  /// log-probabilities.
  std::optional<size_t> topLogProbs;
  std::string model; ///< empty: not said
  std::string id;    ///< as JSON; empty where there is none
};

/// An error for a line that is too long to be read.
Status checkLineSize(std::string_view line);

/// Reads one line. Errors name the key.
Result<BatchRequest> parseBatchRequest(std::string_view line);

/// Reads the lines of a text, which must outlive it, one by one. One thread.
class BatchReader {
public:
  explicit BatchReader(std::string_view text);

  /// The next request, or what is wrong with its line: "line 3: 'temp' is -1,
  /// but a number from 0 to 1e+06 is expected"; nothing after the last one. An
  /// error leaves the lines after it to be read.
  std::optional<Result<BatchRequest>> next();
  /// The next line that has anything; nothing after the last one.
  std::optional<std::string_view> nextLine();
  /// The number of the line that was read last, from 1 on.
  size_t line() const { return number; }

private:
  std::string_view rest;
  size_t number = 0;
};

} // namespace kf

#endif // KF_RUNTIME_BATCH_BATCHFILE_H
