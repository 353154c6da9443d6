//===- Generator.h - Tokens out of tokens -----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_GENERATOR_H
#define KF_RUNTIME_ENGINE_GENERATOR_H

#include "runtime/engine/Sampler.h"
#include "runtime/engine/Session.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct GenerationOptions {
  /// The most tokens to generate.
  int64_t maxTokens = 256;
  /// Ids that end the text, ModelConfig::eosIds mostly.
  std::vector<int64_t> stopIds;
  /// Texts that end it: it is cut where one begins, as soon as one is complete.
  /// Each is valid UTF-8 and not empty; without a tokenizer there is no text to
  /// find them in.
  std::vector<std::string> stopTexts;
  /// Called with every piece of text as soon as it is complete UTF-8; may be
  /// empty.
  std::function<void(std::string_view text)> onText;
  /// Called with every token, before its text; may be empty.
  std::function<void(int32_t id)> onToken;
  /// Called with the error where logits are not finite, and returns what
  /// generate() fails with: more about it. May be empty.
  std::function<Status(const Status &error)> onBadLogits;
};

/// Why a generation ended.
enum class StopReason {
  StopToken,
  StopText,
  MaxTokens,
  ContextFull,
  Cancelled ///< by SessionOptions::cancelled
};
/// "stop token", "stop text", "token limit", "context full", "cancelled".
std::string_view nameOf(StopReason reason);

struct Generation {
  /// Generated; a stop token is the last, or the one that ended a stop text.
  std::vector<int32_t> ids;
  /// Valid UTF-8, without special tokens, up to a stop text.
  std::string text;
  StopReason reason = StopReason::MaxTokens;

  int64_t promptTokens = 0;     ///< that were read; 0 where cancelled before
  double prefillSeconds = 0;    ///< until the first logits, compiling included
  double firstTokenSeconds = 0; ///< until the first token was chosen
  int64_t decodeSteps = 0;      ///< tokens that went through Session::decode
  double decodeSeconds = 0;     ///< in those steps and in choosing from them
};

/// Continues `prompt` from where `session` is. `sampler` learns of the prompt
/// and of what it chose. Without `tokenizer` there are ids and no text. Errors:
/// the session's, where it was not cancelled, and the sampler's; an empty
/// prompt is the session's.
Result<Generation> generate(Session &session, Sampler &sampler,
                            const Tokenizer *tokenizer,
                            std::span<const int32_t> prompt,
                            const GenerationOptions &options);
inline Result<Generation> generate(Session &session, Sampler &sampler,
                                   const Tokenizer &tokenizer,
                                   std::span<const int32_t> prompt,
                                   const GenerationOptions &options) {
  return generate(session, sampler, &tokenizer, prompt, options);
}

} // namespace kf

#endif // KF_RUNTIME_ENGINE_GENERATOR_H
