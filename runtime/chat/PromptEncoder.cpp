//===- PromptEncoder.cpp - Conversations to tokens ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/PromptEncoder.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/text/Utf8.h"

#include <algorithm>
#include <new>

using namespace kf;

/// `json`, a JSON document, with fn(text) in place of each text in it, names of
/// members too, spelled with as few escapes as there can be.
template <typename Fn>
static std::string replaceTexts(std::string_view json, Fn fn) {
  std::string out;
  for (size_t at = 0; at < json.size();) {
    const size_t begin = std::min(json.find('"', at), json.size());
    out.append(json.substr(at, begin - at));
    size_t end = begin + 1;
    while (end < json.size() && json[end] != '"')
      end += json[end] == '\\' ? 2 : 1;
    at = std::min(end + 1, json.size());
    const std::string_view literal = json.substr(begin, at - begin);
    const Result<JsonDocument> text = parseJson(literal);
    if (text.status().code() == StatusCode::OutOfMemory)
      throw std::bad_alloc(); // it may be a text all the same
    if (text.ok() && (*text)->is_string())
      out += jsonText(fn((*text)->get_ref<const std::string &>()));
    else
      out += literal; // no JSON, which the template says
  }
  return out;
}

/// `prompt` with texts of its JSON documents by fn(text), as replaceTexts().
template <typename Fn>
static ChatPrompt replaceJsonTexts(ChatPrompt prompt, Fn fn) {
  for (ChatMessage &message : prompt.messages)
    for (auto &[name, json] : message.fields)
      json = replaceTexts(json, fn);
  for (auto &[name, json] : prompt.variables)
    json = replaceTexts(json, fn);
  return prompt;
}

/// A noncharacter that occurs nowhere in `prompt`, whose JSON has no escapes
/// for such.
static Result<std::string> findMark(const ChatPrompt &prompt) {
  for (char32_t c = 0xfdd0; c <= 0xfdef; ++c) {
    std::string mark;
    appendUtf8(mark, c);
    auto has = [&](const std::string &text) {
      return text.find(mark) != std::string::npos;
    };
    auto hasAny = [&](const std::map<std::string, std::string> &documents) {
      return std::ranges::any_of(documents, [&](const auto &document) {
        return has(document.second);
      });
    };
    if (!hasAny(prompt.variables) &&
        std::ranges::none_of(prompt.messages, [&](const ChatMessage &message) {
          return has(message.content) || has(message.role) ||
                 hasAny(message.fields);
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

Result<PromptEncoder::Rendered>
PromptEncoder::renderGuarded(const ChatPrompt &prompt,
                             CancelFlag cancelled) const {
  ChatPrompt guarded =
      replaceJsonTexts(prompt, [](const std::string &text) { return text; });
  KF_ASSIGN_OR_RETURN(const std::string mark, findMark(guarded));
  guarded = replaceJsonTexts(std::move(guarded), [&](const std::string &text) {
    return guard(text, mark);
  });
  for (ChatMessage &message : guarded.messages) {
    message.role = guard(message.role, mark);
    message.content = guard(message.content, mark);
  }
  ChatRenderOptions settings = options;
  settings.addGenerationPrompt = guarded.forAnswer;
  settings.cancelled = cancelled;
  for (const auto &[name, json] : guarded.variables)
    settings.variables[name] = json;
  Result<std::string> rendered = chat.render(guarded.messages, settings);
  if (!rendered.ok())
    return rendered.status().in(origin);
  const std::string marked = rendered.take();

  Rendered result;
  for (size_t at = 0; at < marked.size();) {
    const size_t next = std::min(marked.find(mark, at), marked.size());
    result.text.append(marked, at, next - at);
    at = next + mark.size();
    if (next == marked.size())
      break;
    // A token that has the bytes on both sides, or ends or begins there.
    const size_t begin = result.text.empty() ? 0 : result.text.size() - 1;
    const size_t end = result.text.size() + 1;
    if (!result.literal.empty() && result.literal.back().end >= begin)
      result.literal.back().end = end;
    else
      result.literal.push_back({begin, end});
  }
  return result;
}

Result<std::string> PromptEncoder::render(const ChatPrompt &prompt,
                                          CancelFlag cancelled) const try {
  KF_ASSIGN_OR_RETURN(Rendered rendered, renderGuarded(prompt, cancelled));
  return std::move(rendered.text);
} catch (...) {
  return statusOfException();
}

Result<PromptEncoder::Encoded>
PromptEncoder::encodeWithText(const ChatPrompt &prompt,
                              CancelFlag cancelled) const try {
  KF_ASSIGN_OR_RETURN(Rendered rendered, renderGuarded(prompt, cancelled));
  EncodeOptions encoding;
  encoding.literal = rendered.literal;
  encoding.cancelled = cancelled;
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      tokenizer.encode(rendered.text, encoding));
  if (ids.empty())
    return Status::error("the chat template makes no text of the conversation")
        .in(origin);
  return Encoded{std::move(rendered.text), std::move(ids)};
} catch (...) {
  return statusOfException();
}

Result<std::vector<int32_t>> PromptEncoder::encode(const ChatPrompt &prompt,
                                                   CancelFlag cancelled) const {
  KF_ASSIGN_OR_RETURN(Encoded encoded, encodeWithText(prompt, cancelled));
  return std::move(encoded.ids);
}

Result<std::vector<int32_t>>
PromptEncoder::encode(const std::vector<ChatMessage> &messages, bool forAnswer,
                      CancelFlag cancelled) const {
  return encode(ChatPrompt{.messages = messages, .forAnswer = forAnswer},
                cancelled);
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
