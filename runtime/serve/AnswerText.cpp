//===- AnswerText.cpp - What a generated text is made of ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/AnswerText.h"

#include "runtime/batch/JsonSlice.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"

#include <algorithm>

using namespace kf;

namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";
constexpr std::string_view kCall = "<tool_call>", kCallEnd = "</tool_call>";
constexpr std::string_view kMistral = "[TOOL_CALLS]";

/// Bytes at the end of `text` that may be the begin of `tag`.
size_t partOf(std::string_view text, std::string_view tag) {
  size_t length = std::min(text.size(), tag.size() - 1);
  while (!text.ends_with(tag.substr(0, length)))
    --length;
  return length;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// {"name": ..., "arguments" or "parameters": ...}
std::optional<ToolCall> readCall(std::string_view text,
                                 const std::vector<std::string> &tools) {
  const Result<JsonDocument> parsed = parseJson(text);
  if (!parsed.ok() || !(*parsed)->is_object())
    return std::nullopt;
  const auto name = (*parsed)->find("name");
  if (name == (*parsed)->end() || !name->is_string() ||
      std::ranges::none_of(
          tools, [&](const std::string &tool) { return isText(*name, tool); }))
    return std::nullopt;
  ToolCall call{.name = name->get<std::string>(), .arguments = "{}"};
  for (const char *key : {"arguments", "parameters"}) {
    const auto given = (*parsed)->find(key);
    if (given == (*parsed)->end() || given->is_null())
      continue;
    call.arguments = given->is_string() ? given->get<std::string>()
                                        : std::string(memberText(text, key));
    const Result<JsonDocument> arguments = parseJson(call.arguments);
    // The parser skips a byte order mark, which other parsers refuse.
    if (!arguments.ok() || !(*arguments)->is_object() ||
        call.arguments.starts_with("\xef\xbb\xbf"))
      return std::nullopt;
    break;
  }
  return call;
}

/// Calls one after another: an array of them, or with blanks, ';' or ','
/// between.
std::optional<std::vector<ToolCall>>
readCallList(std::string_view text, const std::vector<std::string> &tools) {
  text = trimmed(text);
  const std::string array =
      text.starts_with('[') ? std::string(text) : "[" + std::string(text) + "]";
  std::vector<ToolCall> calls;
  std::vector<std::string_view> elements = elementTexts(array);
  std::string joined; // "{...}; {...}" as an array
  if (!parseJson(array).ok()) {
    joined = array;
    for (size_t at = 0; (at = joined.find("};", at)) != joined.npos; ++at)
      joined[at + 1] = ',';
    if (!parseJson(joined).ok())
      return std::nullopt;
    elements = elementTexts(joined);
  }
  for (std::string_view element : elements) {
    std::optional<ToolCall> call = readCall(element, tools);
    if (!call)
      return std::nullopt;
    calls.push_back(std::move(*call));
  }
  if (calls.empty())
    return std::nullopt;
  return calls;
}

} // namespace

void AnswerPart::add(const AnswerPart &next) {
  content += next.content;
  reasoning += next.reasoning;
  calls.insert(calls.end(), next.calls.begin(), next.calls.end());
  ids.insert(ids.end(), next.ids.begin(), next.ids.end());
  logProbs.insert(logProbs.end(), next.logProbs.begin(), next.logProbs.end());
}

std::optional<AnswerPart>
kf::readToolCalls(std::string_view text,
                  const std::vector<std::string> &tools) {
  AnswerPart part;
  if (text.find(kCall) == std::string_view::npos) {
    const size_t tag = text.find(kMistral);
    const size_t begin = tag == text.npos ? 0 : tag + kMistral.size();
    auto calls = readCallList(text.substr(begin), tools);
    if (!calls)
      return std::nullopt;
    part.calls = std::move(*calls);
    part.content = trimmed(text.substr(0, tag == text.npos ? 0 : tag));
    return part;
  }
  while (!text.empty()) {
    const size_t begin = std::min(text.find(kCall), text.size());
    part.content += trimmed(text.substr(0, begin));
    if (begin == text.size())
      break;
    text.remove_prefix(begin + kCall.size());
    // The last one may lack its end, where that is a token that ends the text.
    const size_t end = std::min(text.find(kCallEnd), text.size());
    auto calls = readCallList(text.substr(0, end), tools);
    if (!calls)
      return std::nullopt;
    part.calls.insert(part.calls.end(), calls->begin(), calls->end());
    text.remove_prefix(std::min(end + kCallEnd.size(), text.size()));
  }
  return part;
}

/// The object at the begin of `text`, or what there is of it.
static std::string_view objectAtBegin(std::string_view text) {
  bool isInText = false;
  size_t depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (isInText && c == '\\')
      ++at;
    else if (c == '"')
      isInText = !isInText;
    else if (!isInText && (c == '{' || c == '['))
      ++depth;
    else if (!isInText && (c == '}' || c == ']') && --depth == 0)
      return text.substr(0, at + 1);
  }
  return text;
}

std::optional<ToolCall> kf::readCutCall(std::string_view text,
                                        const std::vector<std::string> &tools) {
  auto skip = [&](std::string_view token) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    const bool isNext = text.starts_with(token);
    if (isNext)
      text.remove_prefix(token.size());
    return isNext;
  };
  for (std::string_view tag : {kCall, kMistral, std::string_view("[")})
    skip(tag);
  const bool hasName = skip("{") && skip("\"name\"") && skip(":");
  skip("");
  std::vector<std::string> possible;
  for (const std::string &tool : tools) {
    const std::string name = jsonText(tool);
    if (hasName && skip(name)) {
      const bool hasArguments =
          skip(",") && (skip("\"arguments\"") || skip("\"parameters\"")) &&
          skip(":");
      skip("");
      return ToolCall{.name = tool,
                      .arguments =
                          std::string(hasArguments && text.starts_with('{')
                                          ? objectAtBegin(text)
                                          : std::string_view())};
    }
    if (!hasName || name.starts_with(text))
      possible.push_back(tool);
  }
  if (possible.size() != 1)
    return std::nullopt;
  return ToolCall{.name = possible.front(), .arguments = ""};
}

AnswerText::AnswerText(Options given)
    : options(std::move(given)),
      state(!options.splitsThinking  ? State::BeforeContent
            : options.startsThinking ? State::BeforeThinking
                                     : State::Start) {}

bool AnswerText::advance(AnswerPart &out, Reach reach) {
  const bool isEnd = reach != Reach::Goes;
  const bool hasTools = options.tools && !options.tools->empty();
  const size_t blanks =
      std::min(pending.find_first_not_of(kBlanks), pending.size());
  switch (state) {
  case State::Start: {
    const std::string_view text = std::string_view(pending).substr(blanks);
    if (text.starts_with(kThink)) {
      pending.erase(0, blanks + kThink.size());
      state = State::BeforeThinking;
      return true;
    }
    if (kThink.starts_with(text) && !isEnd)
      return false;
    state = State::BeforeContent;
    return true;
  }
  case State::BeforeThinking:
    pending.erase(0, blanks);
    if (pending.empty())
      return false;
    state = State::Thinking;
    return true;
  case State::Thinking: {
    const size_t end = pending.find(kThinkEnd);
    if (end != pending.npos) {
      out.reasoning += pending.substr(0, end);
      pending.erase(0, end + kThinkEnd.size());
      state = State::AfterThinking;
      return true;
    }
    const size_t kept = isEnd ? 0 : partOf(pending, kThinkEnd);
    out.reasoning += pending.substr(0, pending.size() - kept);
    pending.erase(0, pending.size() - kept);
    return false;
  }
  case State::AfterThinking:
    pending.erase(0, blanks);
    if (pending.empty())
      return false;
    state = State::BeforeContent;
    return true;
  case State::BeforeContent:
    if (!hasTools) {
      state = State::Content;
      return true;
    }
    if (options.isCall) {
      state = State::Call;
      return true;
    }
    if (blanks == pending.size() && !isEnd)
      return false;
    state = blanks < pending.size() &&
                    (pending[blanks] == '{' || pending[blanks] == '[')
                ? State::Call
                : State::Content;
    return true;
  case State::Content: {
    size_t sure = pending.size();
    if (hasTools) {
      const size_t tag = std::min(pending.find(kCall), pending.find(kMistral));
      if (tag != pending.npos) {
        out.content += pending.substr(0, tag);
        pending.erase(0, tag);
        state = State::Call;
        return true;
      }
      if (!isEnd)
        sure -= std::max(partOf(pending, kCall), partOf(pending, kMistral));
    }
    out.content += pending.substr(0, sure);
    pending.erase(0, sure);
    return false;
  }
  case State::Call:
    if (!isEnd)
      return false;
    if (std::optional<AnswerPart> calls =
            readToolCalls(pending, *options.tools))
      out.add(*calls);
    else if (!options.isCall || reach != Reach::IsCut)
      out.content += pending;
    else if (std::optional<ToolCall> call =
                 readCutCall(pending, *options.tools))
      out.calls.push_back(std::move(*call));
    pending.clear();
    return false;
  }
  return false;
}

AnswerPart AnswerText::push(std::string_view text) {
  AnswerPart out;
  pending += text;
  while (advance(out, Reach::Goes)) {
  }
  return out;
}

AnswerPart AnswerText::finish(bool isCut) {
  AnswerPart out;
  while (advance(out, isCut ? Reach::IsCut : Reach::Ends)) {
  }
  return out;
}
