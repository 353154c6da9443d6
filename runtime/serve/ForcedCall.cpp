//===- ForcedCall.cpp - Answers that have to be calls of tools ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ForcedCall.h"

#include "runtime/core/JsonText.h"

using namespace kf;

namespace {

/// How calls are written.
struct CallForm {
  std::string_view before, arguments, after;
};

Result<CallForm> formOf(std::string_view chatTemplate) {
  auto has = [&](std::string_view word) {
    return chatTemplate.find(word) != chatTemplate.npos;
  };
  // Some write XML within <tool_call>.
  if (has("<tool_call>") && !has("<function="))
    return CallForm{"<tool_call>\n", "arguments", "\n</tool_call>"};
  // The tag is a control token, which is no text: the array alone is read, too.
  if (has("[TOOL_CALLS]"))
    return CallForm{"[", "arguments", "]"};
  if (has("\"name\"") && has("\"parameters\""))
    return CallForm{"", "parameters", ""};
  return Status::error("'tool_choice' is not supported with this model: how "
                       "its chat template writes calls is not known; \"auto\" "
                       "and \"none\" are possible",
                       StatusCode::Unsupported);
}

} // namespace

Result<OutputFormat> kf::formatOfCall(const std::vector<ToolSchema> &tools,
                                      std::string_view chatTemplate) {
  KF_ASSIGN_OR_RETURN(const CallForm form, formOf(chatTemplate));
  OutputFormat format;
  format.name = "'tools'";
  format.before = form.before;
  format.after = form.after;
  const std::string key(form.arguments);
  std::vector<std::string> calls;
  for (const ToolSchema &tool : tools) {
    const std::string arguments =
        tool.parameters.empty()
            ? R"({"type":"object","additionalProperties":false})"
            : jsonObject({{"allOf",
                           "[" + tool.parameters + R"(,{"type":"object"}])"}});
    if (!tool.parameters.empty())
      format.documents.push_back("/anyOf/" + std::to_string(calls.size()) +
                                 "/properties/" + key + "/allOf/0");
    const std::string properties =
        jsonObject({{"name", jsonObject({{"const", jsonText(tool.name)}})},
                    {key, arguments}});
    calls.push_back(
        jsonObject({{"type", jsonText("object")},
                    {"properties", properties},
                    {"required", "[\"name\"," + jsonText(key) + "]"},
                    {"additionalProperties", "false"}}));
  }
  format.text = jsonObject(
      {{"anyOf", jsonArray(calls, [](const std::string &c) { return c; })}});
  return format;
}
