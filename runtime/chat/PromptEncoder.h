//===- PromptEncoder.h - Conversations to tokens ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A prompt's control tokens are the template's to write. What people write is
// text, also where it spells "<|im_end|>". But templates trim, cut and compare
// contents, so that contents cannot be kept apart while they are rendered.
// Hence: where a message spells a special token, a noncharacter of Unicode that
// occurs in no message is put behind the first character of it. The template
// renders that like any other text. In the rendering, the marks are taken out
// again, and the tokenizer is told that no special token may reach across where
// they were. Messages that spell no special token are rendered as they are.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_PROMPTENCODER_H
#define KF_RUNTIME_CHAT_PROMPTENCODER_H

#include "runtime/chat/ChatTemplate.h"
#include "runtime/text/Tokenizer.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// A conversation, and what who asks tells the template besides.
struct ChatPrompt {
  std::vector<ChatMessage> messages;
  /// Whether what begins an answer is to be behind it.
  bool forAnswer = true;
  /// Variables by name, each a JSON document: tools, enable_thinking. They go
  /// before ChatRenderOptions'.
  std::map<std::string, std::string> variables = {};
};

/// Renders and tokenizes conversations. The tokenizer must outlive it. Const
/// functions may run on many threads at once.
class PromptEncoder {
public:
  /// `origin` says in errors of the template where it is from: a file.
  PromptEncoder(ChatTemplate chat, std::string origin,
                const Tokenizer &tokenizer, ChatRenderOptions options);

  /// Says in errors of the template from now on where it is from: for those
  /// who are not to see names of files.
  void nameOrigin(std::string name) { origin = std::move(name); }

  /// The tokens of `messages`; `forAnswer` adds what begins an answer. Special
  /// tokens are the template's own. Errors: the template's, one that makes no
  /// text, the tokenizer's, and messages that hold all 32 noncharacters from
  /// U+FDD0 on; Status::cancelled() where `cancelled` ended the template.
  Result<std::vector<int32_t>> encode(const std::vector<ChatMessage> &messages,
                                      bool forAnswer,
                                      CancelFlag cancelled = nullptr) const;
  Result<std::vector<int32_t>> encode(const ChatPrompt &prompt,
                                      CancelFlag cancelled = nullptr) const;

  /// A prompt's text and its tokens.
  struct Encoded {
    std::string text;
    std::vector<int32_t> ids;
  };
  /// What encode() gives, with what it tokenizes.
  Result<Encoded> encodeWithText(const ChatPrompt &prompt,
                                 CancelFlag cancelled = nullptr) const;

  /// What encode() tokenizes. Errors: the template's.
  Result<std::string> render(const ChatPrompt &prompt,
                             CancelFlag cancelled = nullptr) const;

  /// Ids that the template puts behind an answer: the first special token
  /// there, none if there is none or the template refuses to tell.
  std::vector<int64_t> endOfTurnIds() const;

private:
  struct Rendered {
    std::string text;
    /// Where no special token may reach into.
    std::vector<AddedTokens::Range> literal;
  };

  Result<Rendered> renderGuarded(const ChatPrompt &prompt,
                                 CancelFlag cancelled) const;
  /// `text` with `mark` inside every special token that it spells.
  std::string guard(std::string_view text, std::string_view mark) const;

  ChatTemplate chat;
  std::string origin;
  const Tokenizer &tokenizer;
  ChatRenderOptions options;
  std::vector<std::string> specials; ///< what special tokens look like
};

} // namespace kf

#endif // KF_RUNTIME_CHAT_PROMPTENCODER_H
