//===- LogProbFields.h - Log-probabilities in requests and answers -*- C++ -*-//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fields by which requests ask for log-probabilities, and the JSON that
// answers have them in. The bytes of a token may be no UTF-8, where characters
// are made of several: its text has them as "\xe2" then.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_LOGPROBFIELDS_H
#define KF_RUNTIME_BATCH_LOGPROBFIELDS_H

#include "runtime/core/Status.h"
#include "runtime/engine/LogProbs.h"
#include "runtime/model/ConfigReader.h"
#include "runtime/text/Tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kf {

/// The most likely tokens that can be asked for beside each.
inline constexpr int64_t kMostTopLogProbs = 20;

/// How many likely tokens are wanted beside each; nothing: no
/// log-probabilities. Of a chat of OpenAI's API and a line of a file, with
/// `logprobs` and `top_logprobs`; of a completion, with the number `logprobs`;
/// of llama.cpp's, with `n_probs`, of which 0 wants nothing.
Result<std::optional<size_t>> readChatLogProbs(const ConfigReader &reader);
Result<std::optional<size_t>>
readCompletionLogProbs(const ConfigReader &reader);
Result<std::optional<size_t>> readLlamaLogProbs(const ConfigReader &reader);

/// What a choice of a chat has as `logprobs`: {"content": [...]}.
std::string chatLogProbs(std::span<const TextLogProbs> logProbs,
                         const Tokenizer &tokenizer);
/// The same of a completion: {"tokens": [...], "token_logprobs": [...],
/// "top_logprobs": [{...}], "text_offset": [...]}. The likely tokens have the
/// one that was chosen among them; of several that are written alike, only the
/// likeliest is there. Offsets are characters.
std::string completionLogProbs(std::span<const TextLogProbs> logProbs,
                               const Tokenizer &tokenizer);
/// llama.cpp's `completion_probabilities`: [...].
std::string llamaLogProbs(std::span<const TextLogProbs> logProbs,
                          const Tokenizer &tokenizer);

} // namespace kf

#endif // KF_RUNTIME_BATCH_LOGPROBFIELDS_H
