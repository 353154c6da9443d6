//===- ExampleEncoder.h - Examples as tokens --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tokens of a conversation are the assistant's, the chat template does
// not say. So each of its messages is rendered as the prompt that it answers,
// which ends with what begins an answer, and again with the answer at the end:
// what the second has beyond the first are its tokens. The prompt of a first
// message is the rendering of no messages at all. Answers of one
// conversation make one example as long as the template writes what was before
// each as it did before. A template that writes earlier turns otherwise
// (without their thoughts, say) makes several examples, each of which is what
// the model reads where it is used.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_EXAMPLEENCODER_H
#define KF_RUNTIME_TRAIN_EXAMPLEENCODER_H

#include "runtime/session/ChatPrompts.h"
#include "runtime/train/ExampleFile.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kf {

/// Tokens that are read as one text.
struct TrainingExample {
  std::vector<int32_t> ids;
  /// Whether a token is to be learnt. The first never is: nothing predicts it.
  std::vector<bool> counts; // [ids]

  bool operator==(const TrainingExample &) const = default;
};

/// How much of an example is wanted, and how much work it may be.
struct ExampleLimits {
  /// Tokens behind which nothing is wanted. Answers of a conversation that all
  /// lie behind them are not looked for.
  size_t tokens = SIZE_MAX;
  /// What the template is told in all to find the answers of a conversation,
  /// which grows with the square of their number, in bytes.
  size_t bytes = size_t(1) << 30;
  CancelFlag cancelled = nullptr;
};

/// Const functions may run on many threads at once.
class ExampleEncoder {
public:
  /// With the tokenizer of `model`, which must outlive it, and its chat
  /// template or the one of `options`. With `trainOnPrompt` all tokens count.
  /// Errors: no tokenizer, and a template of `options` that cannot be read.
  static Result<ExampleEncoder> open(const ModelFiles &model,
                                     const TemplateOptions &options,
                                     bool trainOnPrompt);

  /// Adds what an example makes, which may be nothing, to `out`; of those with
  /// more tokens than `limits` say, all that is wanted is right. Errors: no
  /// chat template, its own, one that tells no answer from its prompt, a
  /// conversation that takes more bytes, the tokenizer's, tokens that the model
  /// lacks; Status::cancelled().
  Status encode(const ExampleSource &source, std::vector<TrainingExample> &out,
                const ExampleLimits &limits = {}) const;

  /// A text between the model's begin and end tokens, all of which counts.
  Result<TrainingExample> encodeText(std::string_view text,
                                     CancelFlag cancelled = nullptr) const;

private:
  ExampleEncoder(const ModelFiles &model, Result<PromptEncoder> chat,
                 bool trainOnPrompt);
  Result<std::vector<int32_t>> tokensOf(std::string_view text,
                                        CancelFlag cancelled) const;
  Status checkVocabulary(const std::vector<int32_t> &ids) const;
  Result<TrainingExample> encodeCompletion(const CompletionExample &source,
                                           CancelFlag cancelled) const;
  Status encodeConversation(const ConversationExample &source,
                            std::vector<TrainingExample> &out,
                            const ExampleLimits &limits) const;

  const ModelFiles &model;
  Result<PromptEncoder> chat; ///< or why there is none
  std::vector<int32_t> begin; ///< of every text
  std::optional<int32_t> end; ///< of every text
  bool trainOnPrompt;
};

} // namespace kf

#endif // KF_RUNTIME_TRAIN_EXAMPLEENCODER_H
