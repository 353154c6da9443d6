//===- FuzzConfig.cpp - config.json and generation_config.json ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ChatConfig.h"
#include "runtime/model/ModelConfig.h"

#include <cstdlib>

/// Whether a sampler would take it.
static bool isInRange(const kf::SamplingDefaults &sampling) {
  return sampling.temperature.value_or(0) >= 0 &&
         sampling.topK.value_or(0) >= 0 && sampling.topP.value_or(1) > 0 &&
         sampling.topP.value_or(1) <= 1 && sampling.minP.value_or(0) >= 0 &&
         sampling.minP.value_or(0) <= 1 &&
         sampling.repetitionPenalty.value_or(1) > 0;
}

// config.json up to a NUL byte, where there is one, and from there on
// generation_config.json; and the whole as tokenizer_config.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  size_t split = text.find('\0');
  std::string_view generation =
      split == std::string_view::npos ? "" : text.substr(split + 1);
  auto config = kf::parseModelConfig(text.substr(0, split), generation);
  // What is accepted has to make sense to whoever allocates for it.
  if (config.ok() &&
      (config->layers <= 0 || config->hiddenSize <= 0 ||
       config->heads % config->kvHeads != 0 || !isInRange(config->sampling)))
    std::abort();
  auto chat = kf::parseChatConfig(text);
  if (chat.ok() && chat->chatTemplate.size() > size)
    std::abort();
  return 0;
}
