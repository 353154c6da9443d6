//===- Generation.cpp - Tokens out of tokens ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Generation.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <utility>

using namespace kf;

/// Collects what was generated and streams its text.
class Generation::Output {
public:
  Output(const Tokenizer *tokenizer, std::span<const int32_t> prompt,
         const GenerationOptions &options, GenerationResult &result)
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
  GenerationResult &result;
};

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

Generation::Generation(Sequence &sequence, Sampler &sampler,
                       const Tokenizer *tokenizer, GenerationOptions options)
    : sequence(sequence), sampler(sampler), tokenizer(tokenizer),
      options(std::move(options)) {}

Generation::~Generation() {
  options = {}; // nobody is to be called any more
  options.maxTokens = 0;
  if (output && !isDone())
    sequence.cancel();
}

Status Generation::start(std::span<const int32_t> prompt) try {
  auto made = std::make_unique<Output>(tokenizer, prompt, options, result);
  for (int32_t id : prompt)
    sampler.accept(id);
  watch = Stopwatch();
  readiedBefore = readied();
  promptCount = static_cast<int64_t>(prompt.size());
  KF_RETURN_IF_ERROR(
      read({prompt.begin(), prompt.end()}, options.maxTokens > 0));
  output = std::move(made);
  return Status();
} catch (...) {
  return statusOfException();
}

Status Generation::read(std::vector<int32_t> ids, bool choose) {
  Reading reading;
  reading.ids = std::move(ids);
  reading.sampler = choose ? &sampler : nullptr;
  const int64_t end =
      sequence.position() + static_cast<int64_t>(reading.ids.size());
  reading.goesOn =
      choose &&
      static_cast<int64_t>(result.ids.size()) + 1 < options.maxTokens &&
      end < sequence.contextLength();
  reading.done = [this](const Reading::Outcome &outcome) { onRead(outcome); };
  return sequence.read(std::move(reading));
}

void Generation::onRead(const Reading::Outcome &outcome) {
  if (outcome.status().isCancelled()) {
    finish(StopReason::Cancelled);
    return;
  }
  const Status status = catchExceptions([&]() -> Status {
    KF_RETURN_IF_ERROR(outcome.status());
    return goOn(*outcome);
  });
  if (!status.ok())
    end = status;
}

/// What was to be read is read, and `id` follows it, if one was wanted.
Status Generation::goOn(std::optional<int32_t> id) {
  if (result.promptTokens == 0) {
    result.promptTokens = promptCount;
    result.reusedTokens = sequence.reusedTokens();
    result.prefillSeconds = watch.seconds();
    result.prefillReadying = readied() - readiedBefore;
    watch = Stopwatch();
    readiedBefore = readied();
  } else {
    ++result.decodeSteps;
  }
  if (!id) {
    finish(StopReason::MaxTokens);
    return Status();
  }
  sampler.accept(*id);
  if (std::optional<StopReason> reason = output->push(*id))
    finish(*reason);
  else if (static_cast<int64_t>(result.ids.size()) >= options.maxTokens)
    finish(StopReason::MaxTokens);
  else if (sequence.position() >= sequence.contextLength())
    finish(StopReason::ContextFull);
  else
    return read({*id}, true);
  return Status();
}

void Generation::finish(StopReason reason) {
  if (result.promptTokens) {
    result.decodeSeconds = watch.seconds();
    result.decodeReadying = readied() - readiedBefore;
  }
  // The last bytes of a text may complete a stop text.
  end = catchExceptions([&] {
    result.reason = output->finish() ? StopReason::StopText : reason;
    return Status();
  });
}

Result<GenerationResult> Generation::take() {
  assert(isDone() && "there is no result yet");
  if (!end->ok())
    return *end;
  return std::move(result);
}

Result<GenerationResult> kf::generate(Sequence &sequence, Sampler &sampler,
                                      const Tokenizer *tokenizer,
                                      std::span<const int32_t> prompt,
                                      GenerationOptions options) {
  Generation generation(sequence, sampler, tokenizer, std::move(options));
  KF_RETURN_IF_ERROR(generation.start(prompt));
  while (!generation.isDone())
    sequence.engine().step();
  return generation.take();
}
