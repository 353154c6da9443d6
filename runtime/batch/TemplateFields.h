//===- TemplateFields.h - What is told to chat templates --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Variables of chat templates, in a JSON object: of requests, the field
// `chat_template_kwargs`.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_BATCH_TEMPLATEFIELDS_H
#define KF_RUNTIME_BATCH_TEMPLATEFIELDS_H

#include "runtime/core/Status.h"
#include "runtime/model/ConfigReader.h"

#include <map>
#include <string>
#include <string_view>

namespace kf {

/// Values by name, each a JSON document as it stands in the text.
using TemplateVariables = std::map<std::string, std::string>;

/// The members of the JSON object `text`. Errors: a text that is no object or
/// has more than 64 members, and names of what the template is given anyway.
Result<TemplateVariables> parseTemplateVariables(std::string_view text);

/// Those of the field `chat_template_kwargs` of `body`, whose fields `reader`
/// has; none where it is absent. Errors name the field.
Result<TemplateVariables> readTemplateVariables(const ConfigReader &reader,
                                                std::string_view body);

} // namespace kf

#endif // KF_RUNTIME_BATCH_TEMPLATEFIELDS_H
