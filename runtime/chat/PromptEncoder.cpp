//===- PromptEncoder.cpp - Conversations to tokens ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/PromptEncoder.h"

#include "runtime/core/Exceptions.h"
#include "runtime/text/Utf8.h"

#include <algorithm>

using namespace kf;

/// A noncharacter that occurs in none of `messages`.
static Result<std::string> findMark(const std::vector<ChatMessage> &messages) {
  for (char32_t c = 0xfdd0; c <= 0xfdef; ++c) {
    std::string mark;
    appendUtf8(mark, c);
    if (std::ranges::none_of(messages, [&](const ChatMessage &message) {
          return message.content.find(mark) != std::string::npos ||
                 message.role.find(mark) != std::string::npos;
        }))
      return mark;
  }
  return Status::error("the conversation has every noncharacter from U+FDD0 to "
                       "U+FDEF, which is no text");
}

PromptEncoder::PromptEncoder(ChatTemplate chat, std::string origin,
                             const Tokenizer &tokenizer,
                             ChatRenderOptions options)
    : chat(std::move(chat)), origin(std::move(origin)), tokenizer(tokenizer),
      options(std::move(options)) {
  for (int64_t id = 0; id < tokenizer.vocabSize(); ++id) {
    if (!tokenizer.isSpecial(static_cast<int32_t>(id)))
      continue;
    std::optional<std::string> piece =
        tokenizer.pieceOf(static_cast<int32_t>(id));
    if (piece && !piece->empty())
      specials.push_back(std::move(*piece));
  }
}

std::string PromptEncoder::guard(std::string_view text,
                                 std::string_view mark) const {
  std::vector<size_t> cuts;
  for (const std::string &special : specials)
    for (size_t at = text.find(special); at != std::string_view::npos;
         at = text.find(special, at + 1))
      cuts.push_back(at + stepUtf8(text.substr(at)).length);
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
  std::string result;
  size_t done = 0;
  for (size_t cut : cuts) {
    result.append(text.substr(done, cut - done)).append(mark);
    done = cut;
  }
  return result.append(text.substr(done));
}

Result<std::vector<int32_t>>
PromptEncoder::encode(const std::vector<ChatMessage> &messages, bool forAnswer,
                      CancelFlag cancelled) const try {
  KF_ASSIGN_OR_RETURN(const std::string mark, findMark(messages));
  std::vector<ChatMessage> guarded;
  for (const ChatMessage &message : messages)
    guarded.push_back(
        {guard(message.role, mark), guard(message.content, mark)});
  ChatRenderOptions settings = options;
  settings.addGenerationPrompt = forAnswer;
  settings.cancelled = cancelled;
  Result<std::string> rendered = chat.render(guarded, settings);
  if (!rendered.ok())
    return rendered.status().in(origin);
  const std::string marked = rendered.take();

  std::string text;
  std::vector<AddedTokens::Range> literal;
  for (size_t at = 0; at < marked.size();) {
    const size_t next = std::min(marked.find(mark, at), marked.size());
    text.append(marked, at, next - at);
    at = next + mark.size();
    if (next == marked.size())
      break;
    // A token that has the bytes on both sides, or ends or begins there.
    const size_t begin = text.empty() ? 0 : text.size() - 1;
    const size_t end = text.size() + 1;
    if (!literal.empty() && literal.back().end >= begin)
      literal.back().end = end;
    else
      literal.push_back({begin, end});
  }
  EncodeOptions encoding;
  encoding.literal = literal;
  encoding.cancelled = cancelled;
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      tokenizer.encode(text, encoding));
  if (ids.empty())
    return Status::error("the chat template makes no text of the conversation")
        .in(origin);
  return ids;
} catch (...) {
  return statusOfException();
}

std::vector<int64_t> PromptEncoder::endOfTurnIds() const {
  const std::string probe = "KernelForge";
  ChatRenderOptions settings = options;
  settings.addGenerationPrompt = false;
  Result<std::string> text =
      chat.render({{"user", "?"}, {"assistant", probe}}, settings);
  if (!text.ok())
    return {};
  const size_t end = text->rfind(probe);
  if (end == std::string::npos)
    return {};
  Result<std::vector<int32_t>> ids =
      tokenizer.encode(text->substr(end + probe.size()), EncodeOptions{});
  if (ids.ok())
    for (int32_t id : *ids)
      if (tokenizer.isSpecial(id))
        return {id};
  return {};
}
