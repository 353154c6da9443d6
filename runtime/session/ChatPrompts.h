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

#include <string>

namespace kf {

/// What makes prompts of conversations for `model`, which must outlive it: by
/// the template in the file `templateFile`, or by the model's own if that is
/// empty. Errors: no tokenizer, no template, one that cannot be read.
Result<PromptEncoder> openPromptEncoder(const ModelFiles &model,
                                        const std::string &templateFile);

} // namespace kf

#endif // KF_RUNTIME_SESSION_CHATPROMPTS_H
