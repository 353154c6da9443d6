//===- ChatPrompts.h - A model's chat template, ready for use ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_CHATPROMPTS_H
#define KF_RUNTIME_SESSION_CHATPROMPTS_H

#include "runtime/chat/PromptEncoder.h"
#include "runtime/engine/ModelFiles.h"

#include <ctime>
#include <map>
#include <optional>
#include <string>

namespace kf {

/// Which chat template there is, and what it is told.
struct TemplateOptions {
  std::string file = {}; ///< empty: the model's own
  /// Variables by name, each a JSON document, before those of a ChatPrompt.
  std::map<std::string, std::string> variables = {};
  /// As ChatRenderOptions': the local time that it tells.
  std::optional<std::tm> now = {};
};

/// What makes prompts of conversations for `model`, which must outlive it.
/// Errors: no tokenizer, no template, one that cannot be read.
Result<PromptEncoder> openPromptEncoder(const ModelFiles &model,
                                        const TemplateOptions &options = {});

} // namespace kf

#endif // KF_RUNTIME_SESSION_CHATPROMPTS_H
