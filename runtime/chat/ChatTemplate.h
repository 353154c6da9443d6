//===- ChatTemplate.h - Conversations to prompts ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Models say in a Jinja template how a conversation becomes a prompt. This is
// an interpreter of that language as Hugging Face's transformers run it (their
// sandbox that changes nothing, trim_blocks, lstrip_blocks, break and continue,
// their tojson, raise_exception and strftime_now, {% generation %}).
//
// Templates come with models from anywhere: what a rendering may compute, how
// deep it may nest and how much text it may make is bounded (Budget.h), and it
// reaches nothing but its variables. What is not supported (block, extends,
// include, import; filters for the web such as urlize; integers past 64 bits)
// is an error that names it and its line, when it is reached. `safe` and
// `escape` give plain strings, since templates of prompts do not escape.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CHAT_CHATTEMPLATE_H
#define KF_RUNTIME_CHAT_CHATTEMPLATE_H

#include "runtime/core/Cancellation.h"
#include "runtime/core/Status.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct ChatMessage {
  std::string role;    ///< "system", "user", "assistant", ...
  std::string content; ///< any bytes
  /// Other fields by name, each a JSON document: {"tool_call_id": "\"a\""}.
  std::map<std::string, std::string> fields = {};
};

/// What a template knows besides the messages.
struct ChatRenderOptions {
  /// Ends the prompt with what begins an answer.
  bool addGenerationPrompt = false;
  /// Variables bos_token and eos_token; undefined if absent.
  std::optional<std::string> bosToken, eosToken;
  /// More variables by name, each a JSON document: {"enable_thinking":
  /// "false"}.
  std::map<std::string, std::string> variables;
  /// The local time of strftime_now(); the present if absent.
  std::optional<std::tm> now;
  /// Steps after which a rendering is given up: some seconds.
  uint64_t maxSteps = kMaxSteps;
  CancelFlag cancelled = nullptr; ///< ends it within a hundredth of a second

  static constexpr uint64_t kMaxSteps = 20'000'000;
};

/// A parsed template. Cheap to copy; const functions may run on many threads at
/// once.
class ChatTemplate {
public:
  /// Parses a template of at most 1 MiB, in UTF-8. An error names its line.
  static Result<ChatTemplate> parse(std::string_view source);

  /// The prompt for `messages`. Errors: what raise_exception() was called with,
  /// as it is; anything else with the template's line, but for
  /// Status::cancelled().
  Result<std::string> render(const std::vector<ChatMessage> &messages,
                             const ChatRenderOptions &options = {}) const;

  /// Renders with `variables`, a JSON object, alone: for tools and tests.
  Result<std::string> render(const nlohmann::ordered_json &variables,
                             const std::optional<std::tm> &now = {}) const;

private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed)
      : parsed(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed; ///< never null
};

} // namespace kf

#endif // KF_RUNTIME_CHAT_CHATTEMPLATE_H
