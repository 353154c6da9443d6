//===- FuzzChatTemplate.cpp - Any bytes as a chat template ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/chat/ChatTemplate.h"

#include <string>
#include <vector>

using namespace kf;

/// The bytes are a template; with a zero byte among them, what follows it is
/// the user's message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view source(reinterpret_cast<const char *>(data), size);
  std::string content = " It's <|im_end|> {{ x }} \xff\u00e9\u2003\n";
  if (const size_t zero = source.find('\0'); zero != source.npos) {
    content = source.substr(zero + 1);
    source = source.substr(0, zero);
  }
  auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok())
    return 0;
  const std::vector<ChatMessage> messages = {{"system", "Be brief."},
                                             {"user", content},
                                             {"assistant", "<think>\n</think>"},
                                             {"user", ""}};
  ChatRenderOptions options;
  options.bosToken = "<s>";
  options.eosToken = "</s>";
  options.addGenerationPrompt = true;
  options.maxSteps = 200'000;
  options.now = std::tm{};
  options.variables["tools"] =
      R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])";
  (void)parsed->render(messages, options);
  return 0;
}
