//===- Model.cpp - What MODEL stands for ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include "EmbeddedModel.h"
#include "Report.h"

#include "runtime/core/MappedFile.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/model/TiedEmbeddings.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

namespace {

Result<ModelFiles> openEmbedded(bool withTokenizer) {
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

Result<ModelFiles> openFolder(const std::string &path, bool withTokenizer) {
  ModelFiles model;
  model.name = path;
  KF_ASSIGN_OR_RETURN(model.config, loadModelConfig(path));
  KF_ASSIGN_OR_RETURN(MappedFile config,
                      MappedFile::open(path + "/config.json"));
  model.configText = config.text();
  KF_ASSIGN_OR_RETURN(model.weights, openSafetensors(path));
  KF_RETURN_IF_ERROR(settleTiedEmbeddings(model.config, *model.weights));
  if (!withTokenizer)
    return model;
  KF_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::open(path));
  KF_ASSIGN_OR_RETURN(model.chat, loadChatConfig(path));
  return model;
}

Result<ModelFiles> openGguf(const std::string &path, bool withTokenizer) {
  ModelFiles model;
  model.name = path;
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::open(path));
  KF_ASSIGN_OR_RETURN(model.config, readGgufConfig(*gguf));
  model.configText = ggufConfigText(*gguf);
  if (withTokenizer) {
    KF_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::fromGguf(*gguf));
    KF_ASSIGN_OR_RETURN(model.chat, readChatConfig(*gguf));
  }
  model.weights = std::move(gguf);
  return model;
}

} // namespace

Result<ModelKind> kf::findModelKind(const std::string &path) {
  if (path.empty())
    return ModelKind::Embedded;
  struct stat info;
  if (stat(path.c_str(), &info) != 0 && findNamedConfig(path))
    return Status::error("there are no weights of " + quotePath(path) +
                         " here; --dummy-weights makes random ones, or give "
                         "the path of the model");
  if (stat(path.c_str(), &info) != 0)
    return Status::error("cannot open model " + quotePath(path) + ": " +
                         std::strerror(errno));
  if (S_ISDIR(info.st_mode))
    return ModelKind::Folder;
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (Gguf::recognize(file.bytes()))
    return ModelKind::Gguf;
  return Status::error("model " + quotePath(path) +
                       " is neither a GGUF file nor a folder; give one, or the "
                       "folder that holds config.json and model.safetensors");
}

Result<ModelFiles> kf::openModel(const std::string &path, bool withTokenizer) {
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return openEmbedded(withTokenizer);
  Result<ModelFiles> model = kind == ModelKind::Gguf
                                 ? openGguf(path, withTokenizer)
                                 : openFolder(path, withTokenizer);
  if (model.ok())
    printModelWarnings(path, model->config);
  return model;
}

void kf::printModelWarnings(const std::string &path,
                            const ModelConfig &config) {
  for (const std::string &line : config.warnings)
    printWarning("model " + quotePath(path) + ": " + line);
}

Status kf::openTokenizer(const std::string &path, ModelFiles &model) {
  struct stat info;
  const bool isFolder = stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (isFolder) {
    KF_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::open(path));
    KF_ASSIGN_OR_RETURN(model.chat, loadChatConfig(path));
    return Status();
  }
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::openIfGguf(path));
  if (!gguf) {
    KF_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::open(path));
    return Status();
  }
  KF_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::fromGguf(*gguf));
  KF_ASSIGN_OR_RETURN(model.chat, readChatConfig(*gguf));
  return Status();
}

Result<bool> kf::hasTokenizer(const std::string &path) {
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return true;
  if (kind == ModelKind::Gguf) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::open(path));
    return Tokenizer::isIn(*gguf);
  }
  return access((path + "/tokenizer.json").c_str(), F_OK) == 0 ||
         access((path + "/tokenizer.model").c_str(), F_OK) == 0;
}

Status kf::nameModel(const ModelFiles &model, const Status &status) {
  const bool named = status.message().find(model.name) != std::string::npos;
  return named ? status : status.in(model.name);
}

std::string kf::signatureOf(const ModelFiles &model) {
  std::string text = model.configText;
  // The tensors' values decide this.
  text += model.config.tiedEmbeddings ? "\ntied" : "\nuntied";
  for (const std::string &name : model.weights->names()) {
    text += '\n' + name;
    // A tensor of a type that nothing reads has no part in the programs.
    Result<TensorView> view = model.weights->describe(name);
    if (!view.ok())
      continue;
    for (int64_t dim : view->shape)
      text += ' ' + std::to_string(dim);
    text += ' ' + std::string(nameOf(view->type));
  }
  return text;
}
