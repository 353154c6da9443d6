//===- MessageFields.h - Conversations in OpenAI's form ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_MESSAGEFIELDS_H
#define KF_RUNTIME_BATCH_MESSAGEFIELDS_H

#include "runtime/chat/ChatTemplate.h"
#include "runtime/core/Status.h"
#include "runtime/model/ConfigReader.h"

#include <string_view>
#include <vector>

namespace kf {

/// The texts of the elements of `array`, which is `text` as it was parsed.
Result<std::vector<std::string_view>> textsOf(const nlohmann::json &array,
                                              std::string_view text);

/// The field `messages` of `body`, whose fields `reader` has: at least one, of
/// role and content, with calls of tools and their results. Arguments of calls,
/// which are texts there, are the objects that templates expect. Errors name
/// the field.
Result<std::vector<ChatMessage>> readChatMessages(const ConfigReader &reader,
                                                  std::string_view body);

} // namespace kf

#endif // KF_RUNTIME_BATCH_MESSAGEFIELDS_H
