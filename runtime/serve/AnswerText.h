//===- AnswerText.h - What a generated text is made of ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models write what they think between <think> and </think>, and calls of tools
// in one of a few forms:
//
//   <tool_call>{"name": "f", "arguments": {}}</tool_call>    (Hermes, Qwen)
//   {"name": "f", "parameters": {}}                          (Llama 3)
//   [TOOL_CALLS][{"name": "f", "arguments": {}}]             (Mistral)
//
// What is no call of a tool that the request names, written so to its end, is
// content, unless the answer has to be a call: then one that was cut off is
// what was written of it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_ANSWERTEXT_H
#define KF_RUNTIME_SERVE_ANSWERTEXT_H

#include "runtime/engine/LogProbs.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct ToolCall {
  std::string id = {}; ///< who sends it gives it one
  std::string name;
  std::string arguments; ///< a JSON object, as text, or what there is of it

  bool operator==(const ToolCall &) const = default;
};

/// Some of an answer, or all of it.
struct AnswerPart {
  std::string content = {}, reasoning = {}; ///< UTF-8
  std::vector<ToolCall> calls = {};
  std::vector<int32_t> ids = {};
  std::vector<TextLogProbs> logProbs = {};

  /// Appends what follows.
  void add(const AnswerPart &next);
};

/// The calls that `text` consists of, and what else it says; nothing if it
/// calls no tool of `tools`.
std::optional<AnswerPart> readToolCalls(std::string_view text,
                                        const std::vector<std::string> &tools);

/// What was written of a call of one of `tools`, the first in `text`, that has
/// no end: its arguments so far, and its name; nothing while several tools are
/// possible.
std::optional<ToolCall> readCutCall(std::string_view text,
                                    const std::vector<std::string> &tools);

/// Takes a generated text apart as it comes.
class AnswerText {
public:
  struct Options {
    /// Whether what is in <think> is apart; else it is content.
    bool splitsThinking = false;
    /// Whether the prompt ended inside of <think>.
    bool startsThinking = false;
    /// Names of tools that may be called; null: none.
    std::shared_ptr<const std::vector<std::string>> tools = {};
    /// Whether all but thoughts is a call of one of these (ForcedCall.h).
    bool isCall = false;
  };

  explicit AnswerText(Options options);

  /// What `text` adds. What may be the begin of a tag or of a call waits.
  AnswerPart push(std::string_view text);
  /// What is left at the end, calls too. Where a limit cut the text, what there
  /// is of a call that it had to be is one.
  AnswerPart finish(bool isCut);

private:
  enum class State {
    Start,          ///< there may be a <think>
    BeforeThinking, ///< there was one, and at most blanks behind it
    Thinking,
    AfterThinking, ///< at most blanks behind </think>
    BeforeContent, ///< there may be a call
    Content,
    Call ///< there was the begin of one
  };

  enum class Reach { Goes, Ends, IsCut }; ///< what is behind `pending`

  /// Moves what is sure from `pending` to `out`; returns whether the state
  /// changed.
  bool advance(AnswerPart &out, Reach reach);

  Options options;
  State state;
  std::string pending; ///< that is not given out yet
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_ANSWERTEXT_H
