//===- ChatPrompts.cpp - A model's chat template, ready for use -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/ChatPrompts.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Lines.h"
#include "runtime/core/MappedFile.h"

#include <utility>

using namespace kf;

/// The chat template, and what to call it in errors.
struct TemplateText {
  std::string source, origin;
};

static Result<TemplateText> findTemplate(const ModelFiles &model,
                                         const std::string &path) {
  TemplateText found = {model.chat.chatTemplate, model.chat.templateOrigin};
  if (!path.empty()) {
    KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    found = {std::string(file.text()), quotePath(path)};
  }
  if (found.origin.empty())
    return Status::error(
        "model " + quotePath(model.name) +
        " has no chat template, so it may not be made for chats; give one with "
        "--template FILE, or use 'kf-run generate'");
  if (found.source.find_first_not_of(" \t\r\n") == std::string::npos)
    return Status::error("the chat template is empty; give one with "
                         "--template FILE, or use 'kf-run generate'")
        .in(found.origin);
  return found;
}

Result<PromptEncoder>
kf::openPromptEncoder(const ModelFiles &model,
                      const TemplateOptions &options) try {
  if (!model.tokenizer)
    return Status::error("model " + quotePath(model.name) +
                         " has no tokenizer; chats need one");
  KF_ASSIGN_OR_RETURN(TemplateText text, findTemplate(model, options.file));
  Result<ChatTemplate> parsed = ChatTemplate::parse(text.source);
  if (!parsed.ok())
    return parsed.status().in(text.origin);
  ChatRenderOptions rendering;
  rendering.variables = options.variables;
  rendering.now = options.now;
  if (!model.chat.bosToken.empty())
    rendering.bosToken = model.chat.bosToken;
  if (!model.chat.eosToken.empty())
    rendering.eosToken = model.chat.eosToken;
  return PromptEncoder(parsed.take(), text.origin, *model.tokenizer,
                       std::move(rendering));
} catch (...) {
  return statusOfException();
}
