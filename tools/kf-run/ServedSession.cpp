//===- ServedSession.cpp - A model behind the server's API ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ServedSession.h"

#include "Report.h"

#include "runtime/core/MappedFile.h"
#include "runtime/session/ChatPrompts.h"

#include <chrono>
#include <thread>

using namespace kf;

Status ServedSession::openTemplate(const TemplateOptions &wanted) {
  const ModelFiles &files = opened->files();
  templateText = files.chat.chatTemplate;
  if (!wanted.file.empty()) {
    KF_ASSIGN_OR_RETURN(const MappedFile text, MappedFile::open(wanted.file));
    templateText = text.text();
  } else if (files.chat.templateOrigin.empty()) {
    printNote("the model has no chat template: /v1/chat/completions is "
              "refused; --template FILE gives one");
    return Status();
  }
  KF_ASSIGN_OR_RETURN(PromptEncoder made, openPromptEncoder(files, wanted));
  made.nameOrigin("the chat template"); // strangers see no paths
  encoder.emplace(std::move(made));
  return Status();
}

Status ServedSession::open(const ModelFlags &flags,
                           const TemplateOptions &chatTemplate,
                           ServedOptions given) {
  options = given;
  KF_ASSIGN_OR_RETURN(opened, openSession(flags, /*withTokenizer=*/true));
  KF_RETURN_IF_ERROR(opened->start(
      {.parallel = options.parallel,
       .texts = options.texts.value_or(opened->device().textsAtOnce() / 2),
       .longestStep = options.longestStep}));
  return openTemplate(chatTemplate);
}

Status ServedSession::serve(int64_t queued, Api &api) {
  KF_ASSIGN_OR_RETURN(texts,
                      Service::create(opened->engine(), &opened->tokenizer(),
                                      {.mostQueued = queued}));
  ServedModel model = {.service = texts.get(),
                       .files = &opened->files(),
                       .chat = encoder ? &*encoder : nullptr,
                       .chatTemplate = templateText,
                       .parallel = opened->engine().parallel()};
  if (Result<EmbeddingOptions> chosen =
          chooseEmbedding(options.embedding, opened->files().pooling);
      chosen.ok()) {
    model.embedding = *chosen;
  } else {
    model.noEmbeddings = chosen.status();
    printNote("/v1/embeddings is refused: " + chosen.message());
  }
  api.open(std::move(model));
  while (texts->state() == ServiceState::Loading)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return texts->failure();
}
