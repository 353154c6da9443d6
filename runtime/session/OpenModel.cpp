//===- OpenModel.cpp - A model's files, as people name them ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/OpenModel.h"

#include "runtime/adapter/AdapterWeights.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Lines.h"
#include "runtime/core/Quote.h"
#include "runtime/io/Gguf.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/NamedConfigs.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <filesystem>

using namespace kf;

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

Result<ModelKind> kf::findModelKind(const std::string &path) try {
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
                         "'hf download " +
                         path + " --local-dir DIR', and give DIR");
  KF_ASSIGN_OR_RETURN(ModelFormat format, findModelFormat(path));
  return format == ModelFormat::Gguf ? ModelKind::Gguf : ModelKind::Folder;
} catch (...) {
  return statusOfException();
}

/// Whether experts have matrices that would be kept in 8 bits in other places.
/// `weights` are of no use after that.
static Result<bool> hasFloat8Experts(const ModelConfig &config,
                                     WeightSource &weights) {
  KF_ASSIGN_OR_RETURN(const std::vector<ListedTensor> tensors,
                      findTensors(config, weights));
  for (const ListedTensor &tensor : tensors) {
    if (!tensor.ofExpert)
      continue;
    KF_ASSIGN_OR_RETURN(const bool isKept, weights.keepFloat8(tensor.name));
    if (isKept)
      return true;
  }
  return false;
}

/// Has the weights of `model` kept in 8 bits, if they are to be.
static Status apply(Float8Weights float8, ModelFiles &model) {
  if (float8 == Float8Weights::Rounded)
    return Status();
  const Result<int64_t> kept = keepFloat8(model.config, *model.weights);
  if (!kept.ok() || *kept > 0 || float8 == Float8Weights::KeptIfAny)
    return nameModel(model, kept.status());
  const Result<bool> ofExperts = hasFloat8Experts(model.config, *model.weights);
  if (!ofExperts.ok())
    return nameModel(model, ofExperts.status());
  const std::string none =
      *ofExperts ? "there are none but those of experts, which are read as bf16"
                 : "there is none";
  return nameModel(model, Status::error("--float8=f8 is for matrices of "
                                        "F8_E4M3 with at most a scale for each "
                                        "row, and " +
                                        none + "; leave it out"));
}

Status kf::checkAdapterName(const std::string &name) {
  if (!name.empty() && name.find(':') == std::string::npos)
    return Status();
  if (name.empty())
    return Status::error("an adapter has no name; give NAME=PATH");
  return Status::error("an adapter cannot be called " + inQuotes(name) +
                       "; give it a name without ':'");
}

/// Opens the adapters of a model, and has its weights show theirs.
static Status addAdapters(const std::vector<AdapterChoice> &choices,
                          ModelFiles &model) {
  if (choices.empty())
    return Status();
  std::vector<PeftAdapter> adapters;
  for (const AdapterChoice &choice : choices) {
    KF_RETURN_IF_ERROR(checkAdapterName(choice.name));
    if (std::ranges::find(model.adapters, choice.name) != model.adapters.end())
      return Status::error("two adapters are called " + inQuotes(choice.name) +
                           "; give them names of their own");
    KF_ASSIGN_OR_RETURN(PeftAdapter adapter,
                        PeftAdapter::open(choice.path, model.config));
    adapters.push_back(std::move(adapter));
    model.adapters.push_back(choice.name);
  }
  Result<std::unique_ptr<AdapterWeights>> weights = AdapterWeights::create(
      model.config, std::move(model.weights), std::move(adapters));
  if (!weights.ok())
    return nameModel(model, weights.status());
  model.weights = weights.take();
  return Status();
}

static Result<ModelFiles> openAnyModel(const ModelChoice &choice,
                                       bool withTokenizer,
                                       const OpenEmbedded &openEmbedded,
                                       Observer *observer) {
  KF_RETURN_IF_ERROR(checkDummy(choice.dummy, choice.path));
  if (choice.dummy.used())
    return openDummyModel(choice.path, withTokenizer, choice.dummy);
  KF_ASSIGN_OR_RETURN(const ModelKind kind, findModelKind(choice.path));
  if (kind == ModelKind::Embedded) {
    if (!openEmbedded)
      return Status::error("this program carries no model; name one",
                           StatusCode::NotFound);
    return openEmbedded(withTokenizer);
  }
  Result<ModelFiles> model = openModelFiles(choice.path, withTokenizer);
  if (model.ok() && observer)
    for (const std::string &line : modelWarnings(choice.path, model->config))
      observer->onWarning(line);
  return model;
}

Result<ModelFiles> kf::openModel(const ModelChoice &choice, bool withTokenizer,
                                 const OpenEmbedded &openEmbedded,
                                 Observer *observer) try {
  KF_ASSIGN_OR_RETURN(ModelFiles model, openAnyModel(choice, withTokenizer,
                                                     openEmbedded, observer));
  KF_RETURN_IF_ERROR(apply(choice.float8, model));
  KF_RETURN_IF_ERROR(addAdapters(choice.adapters, model));
  return model;
} catch (...) {
  return statusOfException();
}

Result<bool> kf::hasTokenizer(const std::string &path) try {
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return true;
  return findTokenizer(path);
} catch (...) {
  return statusOfException();
}

Result<bool> kf::hasChatTemplate(const std::string &path) try {
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
} catch (...) {
  return statusOfException();
}

std::vector<std::string> kf::modelWarnings(const std::string &path,
                                           const ModelConfig &config) {
  std::vector<std::string> lines;
  for (const std::string &line : config.warnings)
    lines.push_back("model " + quotePath(path) + ": " + line);
  return lines;
}

Status kf::nameModel(const ModelFiles &model, const Status &status) try {
  const bool named = status.message().find(model.name) != std::string::npos;
  return named ? status : status.in(model.name);
} catch (...) {
  return statusOfException();
}
