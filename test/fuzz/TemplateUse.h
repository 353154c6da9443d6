//===- TemplateUse.h - Renders any template, and tells its cost -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_FUZZ_TEMPLATEUSE_H
#define KF_TEST_FUZZ_TEMPLATEUSE_H

#include "runtime/chat/ChatTemplate.h"

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Parses `source` and renders a conversation with it, one of whose messages is
/// `content`. Returns what that took of the CPU, in seconds.
inline double useTemplate(std::string_view source, const std::string &content,
                          uint64_t maxSteps) {
  auto seconds = [] {
    timespec time = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = seconds();
  if (auto parsed = ChatTemplate::parse(source); parsed.ok()) {
    const std::vector<ChatMessage> messages = {
        {"system", "Be brief."},
        {"user", content},
        {"assistant", "<think>\n</think>"},
        {"user", ""}};
    ChatRenderOptions options;
    options.bosToken = "<s>";
    options.eosToken = "</s>";
    options.addGenerationPrompt = true;
    options.maxSteps = maxSteps;
    options.now = std::tm{};
    options.variables["tools"] =
        R"([{"type": "function", "function": {"name": "f", "parameters": {}}}])";
    (void)parsed->render(messages, options);
  }
  return seconds() - begin;
}

} // namespace kf

#endif // KF_TEST_FUZZ_TEMPLATEUSE_H
