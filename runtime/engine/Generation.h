//===- Generation.h - Tokens out of tokens ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_GENERATION_H
#define KF_RUNTIME_ENGINE_GENERATION_H

#include "runtime/engine/Engine.h"
#include "runtime/engine/Pooler.h"
#include "runtime/engine/Sampler.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// `onText`, `onToken` and `onLogProbs` may do what Reading's `done` may. They
/// may cancel any sequence; their own generation ends with
/// StopReason::Cancelled then, unless the token is the last one anyway. They
/// may destroy any generation, their own too, and then what it refers to: none
/// of its callbacks is called any more, and they live until the one that was
/// called returns.
struct GenerationOptions {
  /// The most tokens to generate.
  int64_t maxTokens = 256;
  /// Ids that end the text, ModelConfig::eosIds mostly.
  std::vector<int64_t> stopIds;
  /// Texts that end it: it is cut where one begins, as soon as one is complete.
  /// Each is valid UTF-8 and not empty; without a tokenizer there is no text to
  /// find them in.
  std::vector<std::string> stopTexts;
  /// What the text is held to, and no other one; it ends where that is
  /// complete. Null: nothing. The engine's thread uses it until the end.
  std::shared_ptr<TokenConstraint> constraint;
  /// Called with every piece of text as soon as it is complete UTF-8; may be
  /// empty.
  std::function<void(std::string_view text)> onText;
  /// Called with every token of the text, in order, before the piece of text
  /// that it begins in: how likely the model finds it, and the `topLogProbs`
  /// most likely ones. Not with what a stop text cuts away, nor with a stop
  /// token, but for one that has a text. Without a tokenizer, behind `onToken`.
  /// May be empty.
  std::function<void(const TextLogProbs &logProbs)> onLogProbs;
  size_t topLogProbs = 0;
  /// Called with every token, before its text; may be empty.
  std::function<void(int32_t id)> onToken;
  /// Makes the embedding of the prompt, which is all that the sequence reads,
  /// instead: no token is chosen, and the options above say nothing.
  std::optional<EmbeddingOptions> embedding;
};

/// Why a generation ended.
enum class StopReason {
  StopToken,
  StopText,
  Complete, ///< by GenerationOptions::constraint; of an embedding, always
  MaxTokens,
  ContextFull,
  Cancelled ///< by EngineOptions::cancelled, or Sequence::cancel()
};
/// "stop token", "stop text", "complete", "token limit", "context full",
/// "cancelled".
std::string_view nameOf(StopReason reason);
/// As OpenAI's API has it: "stop" where the text has ended, "length" where a
/// limit was reached; "cancelled".
std::string_view finishReasonOf(StopReason reason);

struct GenerationResult {
  /// Generated; a stop token is the last, or the one that ended a stop text.
  std::vector<int32_t> ids;
  /// Valid UTF-8, without special tokens, up to a stop text.
  std::string text;
  StopReason reason = StopReason::MaxTokens;
  /// Of GenerationOptions::embedding: Pooler::take().
  std::vector<float> embedding;

  int64_t promptTokens = 0;  ///< that were read; 0 where cancelled before
  int64_t reusedTokens = 0;  ///< of them, those that were in the cache
  double prefillSeconds = 0; ///< until it was read and a token chosen
  int64_t decodedTokens = 0; ///< that were read behind the prompt
  int64_t draftTokens = 0;   ///< that were drafted, and tokens chosen behind
  int64_t acceptedDraftTokens = 0; ///< of these, those that were chosen
  double decodeSeconds = 0;        ///< in that, steps of others included
  /// Parts of the two that went into making programs ready.
  double prefillReadying = 0, decodeReadying = 0;
};

/// A text that is being generated, token by token, while its engine runs.
class Generation {
public:
  /// Without `tokenizer` there are ids and no text. It, the sequence and the
  /// sampler must outlive the generation, or its end.
  Generation(Sequence &sequence, Sampler &sampler, const Tokenizer *tokenizer,
             GenerationOptions options);
  /// Ends it. The sequence has nothing to read afterwards.
  ~Generation();
  Generation(const Generation &) = delete;
  Generation &operator=(const Generation &) = delete;

  /// Continues `prompt` from where the sequence is. The sampler learns of the
  /// prompt and of what it chose. Errors: the sequence's; an empty prompt is
  /// one. Call once.
  Status start(std::span<const int32_t> prompt);
  bool isDone() const;
  /// What came of it, when it is done. Errors: those that ended it, but for
  /// being cancelled.
  Result<GenerationResult> take();

private:
  class Text;

  /// What the sequence's readings refer to, too.
  std::shared_ptr<Text> text;
};

/// Generates alone: runs the sequence's engine until the generation is done.
Result<GenerationResult> generate(Sequence &sequence, Sampler &sampler,
                                  const Tokenizer *tokenizer,
                                  std::span<const int32_t> prompt,
                                  GenerationOptions options);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_GENERATION_H
