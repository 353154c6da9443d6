//===- ChatConfig.h - A model's chat template -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_CHATCONFIG_H
#define KF_RUNTIME_MODEL_CHATCONFIG_H

#include "runtime/core/Status.h"
#include "runtime/io/Gguf.h"

#include <string>
#include <string_view>

namespace kf {

/// How a model wants conversations written.
struct ChatConfig {
  std::string chatTemplate; ///< Jinja; empty if the model has none
  /// The file that the template comes from, and where in it, for errors; empty
  /// if there is none, not even an empty one.
  std::string templateOrigin;
  std::string bosToken, eosToken; ///< as text; empty if there is none
};

/// Reads the text of a tokenizer_config.json. Of several templates the one
/// named "default" counts. `templateOrigin` is "chat_template".
Result<ChatConfig> parseChatConfig(std::string_view tokenizerConfig);

/// Reads what `folder` has of tokenizer_config.json, special_tokens_map.json
/// (for tokens that the first lacks) and chat_template.jinja, whose template
/// goes first. Errors begin with the file's path.
Result<ChatConfig> loadChatConfig(const std::string &folder);

/// Reads the metadata tokenizer.chat_template, and the texts of the tokens that
/// tokenizer.ggml.bos_token_id and eos_token_id name.
Result<ChatConfig> readChatConfig(const Gguf &gguf);

} // namespace kf

#endif // KF_RUNTIME_MODEL_CHATCONFIG_H
