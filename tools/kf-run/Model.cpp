//===- Model.cpp - What MODEL stands for ----------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include "Report.h"

#include "runtime/core/Quote.h"
#include "runtime/io/Gguf.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <filesystem>

using namespace kf;

void kf::addModelArgument(OptionParser &parser, std::string &model,
                          std::optional<std::string> &named,
                          std::string_view help) {
  parser.positional("MODEL", false, model, help);
  parser.text({"model", 'm', "MODEL"}, named, "the same as MODEL");
  parser.addCheck([&model, &named] {
    if (!named)
      return Status();
    if (!model.empty())
      return Status::error("MODEL is given twice: " + inQuotes(model) +
                           " and --model " + inQuotes(*named));
    model = *named;
    return Status();
  });
}

/// Whether `path` may be a model of Hugging Face's hub, "owner/name".
static bool isRepositoryName(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash == path.npos || slash == 0 || slash + 1 == path.size() ||
      path.front() == '.' || path.find('/', slash + 1) != path.npos ||
      path.ends_with(".gguf"))
    return false;
  return std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') ||
           std::string_view("-_./").find(c) != std::string_view::npos;
  });
}

Result<ModelKind> kf::findModelKind(const std::string &path) {
  if (path.empty())
    return ModelKind::Embedded;
  std::error_code ignored;
  if (findNamedConfig(path) && !std::filesystem::exists(path, ignored))
    return Status::error("there are no weights of " + quotePath(path) +
                         " here; --dummy-weights makes random ones, or give "
                         "the path of the model");
  if (isRepositoryName(path) && !std::filesystem::exists(path, ignored))
    return Status::error("there is no folder " + quotePath(path) +
                         " here, and models are not downloaded: "
                         "'huggingface-cli download " +
                         path + " --local-dir DIR', and give DIR");
  KF_ASSIGN_OR_RETURN(ModelFormat format, findModelFormat(path));
  return format == ModelFormat::Gguf ? ModelKind::Gguf : ModelKind::Folder;
}

Result<ModelFiles> kf::openModel(const std::string &path, bool withTokenizer) {
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return openEmbeddedModel(withTokenizer);
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

Result<bool> kf::hasChatTemplate(const std::string &path) {
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return true;
  ChatConfig chat;
  if (kind == ModelKind::Gguf) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::open(path));
    KF_ASSIGN_OR_RETURN(chat, readChatConfig(*gguf));
  } else {
    KF_ASSIGN_OR_RETURN(chat, loadChatConfig(path));
  }
  return !chat.chatTemplate.empty();
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
