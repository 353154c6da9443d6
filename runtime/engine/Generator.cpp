//===- Generator.cpp - Tokens out of tokens -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Generator.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Stopwatch.h"

#include <algorithm>

using namespace kf;

namespace {

/// Collects what was generated and streams its text.
class Output {
public:
  Output(const Tokenizer *tokenizer, std::span<const int32_t> prompt,
         const GenerationOptions &options, Generation &result)
      : options(options), result(result) {
    if (tokenizer)
      decoder.emplace(*tokenizer, /*skipSpecial=*/true, prompt);
  }

  /// Appends `id`; returns why it ends the text, if it does.
  std::optional<StopReason> push(int32_t id) {
    result.ids.push_back(id);
    if (options.onToken)
      options.onToken(id);
    if (decoder && emit(decoder->push(id)))
      return StopReason::StopText;
    if (std::ranges::find(options.stopIds, id) != options.stopIds.end())
      return StopReason::StopToken;
    return std::nullopt;
  }
  /// What was held back, when no more tokens come; true as for emit().
  bool finish() {
    if (!decoder || emit(decoder->flush()))
      return decoder.has_value();
    release(held.size());
    return false;
  }

private:
  /// Lets `text` out but for what may be the beginning of a stop text; returns
  /// whether there was a whole one, from which on there is no text.
  bool emit(const std::string &text) {
    if (stopped)
      return true;
    held += text;
    size_t first = std::string::npos;
    for (const std::string &stop : options.stopTexts)
      first = std::min(first, held.find(stop));
    if (first != std::string::npos) {
      release(first);
      held.clear();
      stopped = true;
      return true;
    }
    size_t kept = 0;
    for (const std::string &stop : options.stopTexts)
      kept = std::max(kept, commonEnd(stop));
    release(held.size() - kept);
    return false;
  }

  /// How many bytes at the end of `held` a proper beginning of `stop` is.
  size_t commonEnd(std::string_view stop) const {
    for (size_t n = std::min(held.size(), stop.size() - 1); n > 0; --n)
      if (held.ends_with(stop.substr(0, n)))
        return n;
    return 0;
  }

  void release(size_t count) {
    const std::string text = held.substr(0, count);
    held.erase(0, count);
    result.text += text;
    if (options.onText && !text.empty())
      options.onText(text);
  }

  std::optional<StreamDecoder> decoder; ///< none: no text
  std::string held;                     ///< may begin a stop text
  bool stopped = false;                 ///< there was a stop text
  const GenerationOptions &options;
  Generation &result;
};

/// Why to end after the tokens so far, if there is a reason but a stop token.
std::optional<StopReason> limitReached(const Session &session,
                                       const GenerationOptions &options,
                                       const Generation &result) {
  if (session.isCancelled())
    return StopReason::Cancelled;
  if (static_cast<int64_t>(result.ids.size()) >= options.maxTokens)
    return StopReason::MaxTokens;
  if (session.position() >= session.contextLength() && !result.ids.empty())
    return StopReason::ContextFull;
  return std::nullopt;
}

/// The next token. A sampler refuses nothing but logits.
Result<int32_t> choose(Sampler &sampler, std::span<const float> logits,
                       const GenerationOptions &options) {
  Result<int32_t> id = sampler.sample(logits);
  if (id.ok())
    return id;
  const Status error = id.status().in("logits are not finite");
  return options.onBadLogits ? options.onBadLogits(error) : error;
}

} // namespace

std::string_view kf::nameOf(StopReason reason) {
  switch (reason) {
  case StopReason::StopToken:
    return "stop token";
  case StopReason::StopText:
    return "stop text";
  case StopReason::MaxTokens:
    return "token limit";
  case StopReason::ContextFull:
    return "context full";
  case StopReason::Cancelled:
    return "cancelled";
  }
  return "";
}

Result<Generation> kf::generate(Session &session, Sampler &sampler,
                                const Tokenizer *tokenizer,
                                std::span<const int32_t> prompt,
                                const GenerationOptions &options) try {
  Generation result;
  Output output(tokenizer, prompt, options, result);
  Stopwatch start;
  Result<std::span<const float>> logits = session.prefill(prompt);
  result.prefillSeconds = start.seconds();
  if (logits.status().isCancelled()) {
    result.reason = StopReason::Cancelled;
    return result;
  }
  if (!logits.ok())
    return logits.status();
  result.promptTokens = static_cast<int64_t>(prompt.size());
  for (int32_t id : prompt)
    sampler.accept(id);

  Stopwatch decoding;
  std::optional<StopReason> reason;
  while (!reason) {
    reason = limitReached(session, options, result);
    if (reason)
      break;
    if (!result.ids.empty()) {
      logits = session.decode(result.ids.back());
      if (logits.status().isCancelled())
        continue; // which limitReached() sees
      if (!logits.ok())
        return logits.status();
      ++result.decodeSteps;
    }
    KF_ASSIGN_OR_RETURN(int32_t id, choose(sampler, *logits, options));
    sampler.accept(id);
    if (result.ids.empty())
      result.firstTokenSeconds = start.seconds();
    reason = output.push(id);
  }
  result.decodeSeconds = decoding.seconds();
  // The last bytes of a text may complete a stop text.
  result.reason = output.finish() ? StopReason::StopText : *reason;
  return result;
} catch (...) {
  return statusOfException();
}
