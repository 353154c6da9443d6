//===- ExampleFile.h - Examples to train on, one a line ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of examples has a JSON value a line, of one of these forms:
//
//   {"messages": [{"role": "user", "content": "Hello"},
//                 {"role": "assistant", "content": "Hi!"}], "tools": [...]}
//   {"prompt": "The capital of France is", "completion": " Paris."}
//   {"text": "Once upon a time there was a dog."}
//
// The first is OpenAI's: messages may have calls of tools and, of the
// assistant, a weight, of which 0 leaves the message out of the loss. `tools`
// and `chat_template_kwargs` are told to the chat template. A text alone, in
// quotes, is as good as the third. Other keys say nothing; null counts as
// absent. Lines without anything are skipped, and so are the byte order mark of
// a file and the carriage return of a line.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_EXAMPLEFILE_H
#define KF_RUNTIME_TRAIN_EXAMPLEFILE_H

#include "runtime/chat/ChatTemplate.h"
#include "runtime/core/Status.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kf {

/// A text that counts as a whole.
struct PlainExample {
  std::string text;
};

/// A text of which the second part counts.
struct CompletionExample {
  std::string prompt, completion;
};

/// A conversation of which the assistant's messages count.
struct ConversationExample {
  std::vector<ChatMessage> messages;
  /// Of the chat template, each a JSON document: tools.
  std::map<std::string, std::string> variables;
  /// Whether a message counts; one of the assistant's at least is there.
  std::vector<bool> counts; // [messages]
};

using ExampleSource =
    std::variant<PlainExample, CompletionExample, ConversationExample>;

/// The most messages of a conversation: what it takes to find the tokens that
/// count grows with their square.
inline constexpr size_t kMostMessages = 1024;

/// Reads one line. Errors name the key.
Result<ExampleSource> parseExample(std::string_view line);

} // namespace kf

#endif // KF_RUNTIME_TRAIN_EXAMPLEFILE_H
