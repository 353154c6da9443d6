//===- ChatSession.h - A conversation with a model --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_CHATSESSION_H
#define KF_TOOLS_KF_RUN_CHATSESSION_H

#include "FormatFlags.h"
#include "ModelFlags.h"
#include "SamplerFlags.h"
#include "TemplateFlags.h"

#include "runtime/chat/PromptEncoder.h"
#include "runtime/core/Cancellation.h"
#include "runtime/engine/Generation.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct ChatOptions {
  ModelFlags model;
  TemplateFlags chatTemplate;
  std::string system;            ///< empty: no system message
  int64_t tokens = 0;            ///< the most of an answer; 0: the model's
                                 ///< max_new_tokens, or what fits
  PartialSamplerOptions sampler; ///< the model says the rest
  FormatFlags format;            ///< what answers have to be
};

/// Tokens and seconds, of one answer or of all.
struct ChatCounts {
  int64_t reused = 0;    ///< prompt tokens that were in the cache
  int64_t computed = 0;  ///< prompt tokens that were not
  int64_t generated = 0; ///< tokens of answers
  int64_t decodedTokens = 0;
  double prefillSeconds = 0, decodeSeconds = 0; ///< without compiling

  void add(const ChatCounts &other);
};

/// A model and a conversation. For each answer the whole conversation is
/// rendered and tokenized, and read as a new sequence: what the engine's cache
/// has of its beginning is reused, and the rest is computed. So a template may
/// rewrite what was said earlier: then less is reused. Of models whose layers
/// keep states, nothing is. One thread.
class ChatSession {
public:
  /// Opens the model and makes its session. Errors: a model without a template.
  static Result<std::unique_ptr<ChatSession>> open(const ChatOptions &options);

  /// Called with pieces of an answer as they come.
  using OnText = std::function<void(std::string_view)>;
  /// Says `text` as the user and adds the answer to the conversation. An error
  /// (of the template, or a full context) leaves the conversation as it was.
  Result<StopReason> say(std::string text, const OnText &onText,
                         CancelFlag cancelled);
  /// Answers a conversation that ends with the user's message.
  Result<StopReason> answer(const OnText &onText, CancelFlag cancelled);
  /// Answers the user's last message anew, with another seed. Without a new
  /// answer, the conversation stays as it was. Errors: answer()'s, and a
  /// conversation without a message of the user's.
  Result<StopReason> answerAgain(const OnText &onText, CancelFlag cancelled);

  const std::vector<ChatMessage> &messages() const { return conversation; }
  /// The user spoke last.
  bool awaitsAnswer() const;
  /// Starts over, with the system message.
  void clear();
  /// Takes the user's last message back, and what was answered; false if there
  /// is none.
  bool undo();
  /// The system message of this conversation and of those that clear() begins;
  /// empty for none.
  const std::string &systemMessage() const { return system; }
  void setSystemMessage(std::string text);
  /// Writes the conversation to a JSON file, which may be there already if
  /// `replace`, and reads one in. A file that is none leaves the conversation
  /// as it was.
  Status save(const std::string &path, bool replace) const;
  Status load(const std::string &path);

  Session &model() { return *run; }
  /// How tokens of answers are chosen.
  const ChosenSampling &sampling() const { return chosen; }
  /// What of that, and of the answers' length, the model recommends, as flags.
  const std::string &recommended() const { return modelFlags; }
  /// The seed of the last answer.
  uint64_t seed() const { return chosen.options.seed + attempt; }
  /// Tokens of the conversation that were read.
  int64_t position() const { return sequence ? sequence->position() : 0; }
  const ChatCounts &lastCounts() const { return last; }
  const ChatCounts &totalCounts() const { return total; }

private:
  ChatSession(std::unique_ptr<Session> run, PromptEncoder encoder,
              const ChatOptions &options);

  /// Messages up to the user's last one, that included; 0 without one.
  size_t endOfQuestion() const;
  Result<StopReason> generateAnswer(std::span<const int32_t> ids,
                                    const OnText &onText);

  std::unique_ptr<Session> run;
  PromptEncoder encoder;
  ChosenSampling chosen;
  std::string modelFlags; ///< recommended()
  uint64_t attempt = 0;   ///< how often the last answer was asked for again
  std::string system;
  int64_t maxTokens;
  std::vector<int64_t> stopIds;
  std::shared_ptr<TokenConstraintSource> constraint; ///< null: none
  std::vector<ChatMessage> conversation;
  std::unique_ptr<Sequence> sequence; ///< of the last answer; may be null
  ChatCounts last, total;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_CHATSESSION_H
