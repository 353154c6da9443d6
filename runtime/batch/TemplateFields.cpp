//===- TemplateFields.cpp - What is told to chat templates ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/TemplateFields.h"

#include "runtime/batch/JsonSlice.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Quote.h"

using namespace kf;
using nlohmann::json;

/// The members of `object`, whose text is `text`.
static Result<TemplateVariables> readMembers(const json &object,
                                             std::string_view text) {
  constexpr size_t most = 64;
  if (!object.is_object() || object.size() > most)
    return Status::error("an object of at most " + std::to_string(most) +
                         " variables is expected, not " + shortDump(object));
  for (const char *own : {"messages", "tools", "add_generation_prompt"})
    if (object.contains(own))
      return Status::error(inQuotes(own) + " is told to the template anyway");
  TemplateVariables variables;
  for (auto &[name, value] : memberTexts(text))
    variables[name] = std::string(value);
  return variables;
}

Result<TemplateVariables>
kf::parseTemplateVariables(std::string_view text) try {
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseJson(text));
  return readMembers(*object, text);
} catch (...) {
  return statusOfException();
}

Result<TemplateVariables> kf::readTemplateVariables(const ConfigReader &reader,
                                                    std::string_view body) {
  constexpr const char *key = "chat_template_kwargs";
  const json *given = reader.find(key);
  if (!given)
    return TemplateVariables();
  Result<TemplateVariables> variables =
      readMembers(*given, memberText(body, key));
  if (!variables.ok())
    return variables.status().in(inQuotes(key));
  return variables;
}
