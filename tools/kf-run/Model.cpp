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

#include "runtime/io/Safetensors.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/model/TensorList.h"

#include <filesystem>

using namespace kf;

static Result<ModelFiles> openEmbedded(bool withTokenizer) {
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

Result<ModelKind> kf::findModelKind(const std::string &path) {
  if (path.empty())
    return ModelKind::Embedded;
  std::error_code ignored;
  if (findNamedConfig(path) && !std::filesystem::exists(path, ignored))
    return Status::error("there are no weights of " + quotePath(path) +
                         " here; --dummy-weights makes random ones, or give "
                         "the path of the model");
  KF_ASSIGN_OR_RETURN(ModelFormat format, findModelFormat(path));
  return format == ModelFormat::Gguf ? ModelKind::Gguf : ModelKind::Folder;
}

Result<ModelFiles> kf::openModel(const std::string &path, bool withTokenizer) {
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return openEmbedded(withTokenizer);
  Result<ModelFiles> model = openModelFiles(path, withTokenizer);
  if (model.ok())
    printModelWarnings(path, model->config);
  return model;
}

Result<bool> kf::hasTokenizer(const std::string &path) {
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return true;
  return findTokenizer(path);
}

void kf::printModelWarnings(const std::string &path,
                            const ModelConfig &config) {
  for (const std::string &line : config.warnings)
    printWarning("model " + quotePath(path) + ": " + line);
}

Status kf::nameModel(const ModelFiles &model, const Status &status) {
  const bool named = status.message().find(model.name) != std::string::npos;
  return named ? status : status.in(model.name);
}

void Float8Flag::addTo(OptionParser &parser) {
  parser.choice({"float8", 0, "TYPE"}, type, {"bf16", "f8"},
                "what weights of F8_E4M3 are multiplied as: bf16, to which "
                "they are rounded when they are loaded, by default; or f8, as "
                "they are stored, in half of the memory");
}

Status Float8Flag::apply(ModelFiles &model) const {
  if (type != "f8")
    return Status();
  Result<int64_t> kept = keepFloat8(model.config, *model.weights);
  if (!kept.ok() || *kept > 0 || !needsSome)
    return nameModel(model, kept.status());
  return nameModel(
      model,
      Status::error("--float8=f8 is for matrices of F8_E4M3 with at most "
                    "a scale for each row, and there is none; leave it "
                    "out"));
}
