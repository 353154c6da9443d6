//===- TemplateFlags.cpp - Options about the chat template ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TemplateFlags.h"

#include "runtime/batch/TemplateFields.h"

using namespace kf;

void TemplateFlags::addTo(OptionParser &parser, std::string_view implied) {
  parser.text({"template", 0, "FILE"}, options.file,
              std::string(implied) +
                  "a chat template (Jinja), instead of the model's own");
  parser.text({"chat-template-kwargs", 0, "JSON"}, variables,
              std::string(implied) +
                  "variables of the chat template, as an object: "
                  "'{\"enable_thinking\": false}' has Qwen3 answer at once");
  parser.addCheck([this]() -> Status {
    if (!variables)
      return Status();
    Result<TemplateVariables> parsed = parseTemplateVariables(*variables);
    if (!parsed.ok())
      return parsed.status().in("--chat-template-kwargs");
    options.variables = parsed.take();
    return Status();
  });
}
