//===- EmbeddedModel.cpp - The model inside a program ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/EmbeddedModel.h"

#include "runtime/core/WriteFile.h"
#include "runtime/io/Safetensors.h"

using namespace kf;

Result<ModelFiles> kf::openEmbeddedModel(bool withTokenizer) {
  ModelFiles model;
  model.name = "kf-stories (embedded)";
  model.configText = KF_EMBEDDED(config);
  KF_ASSIGN_OR_RETURN(
      model.config,
      parseModelConfig(model.configText, KF_EMBEDDED(generation_config)));
  const std::string_view weights = KF_EMBEDDED(weights);
  KF_ASSIGN_OR_RETURN(
      model.weights, Safetensors::fromMemory(std::as_bytes(std::span(weights)),
                                             "the embedded model.safetensors"));
  if (!withTokenizer)
    return model;
  KF_ASSIGN_OR_RETURN(model.tokenizer,
                      Tokenizer::fromJson(KF_EMBEDDED(tokenizer),
                                          "the embedded tokenizer.json"));
  KF_ASSIGN_OR_RETURN(model.chat,
                      parseChatConfig(KF_EMBEDDED(tokenizer_config)));
  model.chat.chatTemplate = KF_EMBEDDED(chat_template);
  model.chat.templateOrigin = "the embedded chat_template.jinja";
  return model;
}

Status kf::saveEmbeddedFiles(const std::string &folder) {
  for (const auto &[name, text] :
       {std::pair("tokenizer.json", KF_EMBEDDED(tokenizer)),
        std::pair("tokenizer_config.json", KF_EMBEDDED(tokenizer_config)),
        std::pair("generation_config.json", KF_EMBEDDED(generation_config)),
        std::pair("chat_template.jinja", KF_EMBEDDED(chat_template))})
    KF_RETURN_IF_ERROR(writeFile(folder + "/" + name, text));
  return Status();
}
