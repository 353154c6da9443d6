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

#include "runtime/io/MappedFile.h"
#include "runtime/io/Safetensors.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

namespace {

Result<Model> openEmbedded(bool withTokenizer) {
  Model model;
  model.name = "kf-stories (embedded)";
  model.configText = KF_EMBEDDED(config);
  KF_ASSIGN_OR_RETURN(
      model.config,
      parseModelConfig(model.configText, KF_EMBEDDED(generation_config)));
  const std::string_view weights = KF_EMBEDDED(weights);
  KF_ASSIGN_OR_RETURN(
      model.weights, Safetensors::fromMemory(std::as_bytes(std::span(weights)),
                                             "the embedded model.safetensors"));
  if (withTokenizer) {
    KF_ASSIGN_OR_RETURN(model.tokenizer,
                        Tokenizer::fromJson(KF_EMBEDDED(tokenizer),
                                            "the embedded tokenizer.json"));
  }
  return model;
}

/// Checks that `path` is a folder, and says what else would do.
Status checkFolder(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return Status::error("cannot open model " + quotePath(path) + ": " +
                         std::strerror(errno));
  if (S_ISDIR(info.st_mode))
    return Status();
  return Status::error("model " + quotePath(path) +
                       " is not a folder; give the one that holds config.json "
                       "and model.safetensors");
}

} // namespace

Result<Model> kf::openModel(const std::string &path, bool withTokenizer) {
  if (path.empty())
    return openEmbedded(withTokenizer);
  KF_RETURN_IF_ERROR(checkFolder(path));
  Model model;
  model.name = path;
  const std::string configPath = path + "/config.json";
  KF_ASSIGN_OR_RETURN(MappedFile config, MappedFile::open(configPath));
  model.configText = config.text();
  std::string generation;
  const std::string generationPath = path + "/generation_config.json";
  if (access(generationPath.c_str(), F_OK) == 0) {
    KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(generationPath));
    generation = file.text();
  }
  Result<ModelConfig> parsed = parseModelConfig(model.configText, generation);
  if (!parsed.ok())
    return parsed.status().in(configPath);
  model.config = parsed.take();
  KF_ASSIGN_OR_RETURN(model.weights, openSafetensors(path));
  if (withTokenizer) {
    KF_ASSIGN_OR_RETURN(model.tokenizer,
                        Tokenizer::open(path + "/tokenizer.json"));
  }
  return model;
}

std::string kf::signatureOf(const Model &model) {
  std::string text = model.configText;
  for (const std::string &name : model.weights->names()) {
    text += '\n' + name;
    // A tensor of a type that nothing reads has no part in the programs.
    Result<TensorView> view = model.weights->find(name);
    if (!view.ok())
      continue;
    for (int64_t dim : view->shape)
      text += ' ' + std::to_string(dim);
    text += ' ' + std::string(nameOf(view->type));
  }
  return text;
}
