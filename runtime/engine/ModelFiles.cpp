//===- ModelFiles.cpp - What a model's files hold -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/ModelFiles.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/core/SystemError.h"
#include "runtime/io/Gguf.h"
#include "runtime/io/Nvfp4Weights.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GridWeights.h"
#include "runtime/model/StoredTensors.h"
#include "runtime/model/TiedEmbeddings.h"
#include "runtime/program/ExecutableCache.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

using namespace kf;

/// adaptStoredTensors() with `path` in the errors of its own.
static Status adaptTensors(const std::string &path, const ModelConfig &config,
                           std::unique_ptr<WeightSource> &weights) {
  const Status status = adaptStoredTensors(config, weights);
  return status.message().find(path) == std::string::npos ? status.in(path)
                                                          : status;
}

static Result<ModelFiles> openFolder(const std::string &path,
                                     bool withTokenizer) {
  ModelFiles model;
  model.name = path;
  KF_ASSIGN_OR_RETURN(model.config, loadModelConfig(path));
  KF_ASSIGN_OR_RETURN(MappedFile config,
                      MappedFile::open(path + "/config.json"));
  model.configText = config.text();
  KF_ASSIGN_OR_RETURN(model.weights, openModelWeights(path, model.config,
                                                      &model.config.warnings));
  KF_RETURN_IF_ERROR(settleTiedEmbeddings(model.config, *model.weights));
  model.pooling = loadPoolingConfig(path);
  if (!withTokenizer)
    return model;
  KF_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::open(path));
  KF_ASSIGN_OR_RETURN(model.chat, loadChatConfig(path));
  return model;
}

/// The tensors of `gguf`, those of types that no kernel reads as others; what
/// changes is said in the warnings of `config`, if there is one.
static Result<std::unique_ptr<WeightSource>>
withoutUnreadTypes(std::unique_ptr<Gguf> gguf, ModelConfig *config = nullptr) {
  const Gguf &file = *gguf;
  std::unique_ptr<WeightSource> weights;
  std::vector<std::string> notes;
  if (GridWeights::isNeeded(file)) {
    auto grids = std::make_unique<GridWeights>(std::move(gguf));
    notes = grids->notes();
    weights = std::move(grids);
  } else {
    weights = std::move(gguf);
  }
  if (Nvfp4Weights::isNeeded(file)) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Nvfp4Weights> made,
                        Nvfp4Weights::create(std::move(weights), file));
    notes.push_back(made->note());
    weights = std::move(made);
  }
  if (config)
    std::ranges::move(notes, std::back_inserter(config->warnings));
  return weights;
}

static Result<ModelFiles> openGguf(const std::string &path,
                                   bool withTokenizer) {
  ModelFiles model;
  model.name = path;
  KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::open(path));
  KF_ASSIGN_OR_RETURN(model.config, readGgufConfig(*gguf));
  model.configText = ggufConfigText(*gguf);
  model.pooling = readPoolingConfig(*gguf);
  if (withTokenizer) {
    KF_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::fromGguf(*gguf));
    KF_ASSIGN_OR_RETURN(model.chat, readChatConfig(*gguf));
  }
  KF_ASSIGN_OR_RETURN(model.weights,
                      withoutUnreadTypes(std::move(gguf), &model.config));
  KF_RETURN_IF_ERROR(adaptTensors(path, model.config, model.weights));
  return model;
}

/// A path in an error: in full.
static std::string quoted(const std::string &path) { return "'" + path + "'"; }

/// What else the file `path`, which begins with `start`, may be, and what to
/// give instead; empty where that is not known.
static std::string otherFormat(const std::string &path,
                               std::string_view start) {
  auto isCalled = [&](std::string_view suffix) {
    return path.ends_with(suffix);
  };
  if (isCalled(".safetensors"))
    return "is the weights alone; give the folder that it lies in, with "
           "config.json and a tokenizer";
  if (isCalled(".bin") || isCalled(".pt") || isCalled(".pth") ||
      start.starts_with("PK\x03\x04"))
    return "is of PyTorch, whose files are programs; give a folder with "
           "safetensors files, or a GGUF file";
  if (isCalled(".onnx"))
    return "is of ONNX, which is not read; give a folder as Hugging Face lays "
           "it out, or a GGUF file";
  if (isCalled(".mlir") || isCalled(".mlirbc"))
    return "is of MLIR: 'kf-run exec' runs its functions, 'kf-run emit-mlir' "
           "and kf-opt compile them";
  for (std::string_view old : {"lmgg", "tjgg", "fmgg", "algg"})
    if (start.starts_with(old))
      return "is of a format before GGUF; convert the model anew";
  return {};
}

Result<ModelFormat> kf::findModelFormat(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return Status::error("cannot open model " + quoted(path) + ": " +
                             std::strerror(errno),
                         codeOfSystemError(errno));
  if (S_ISDIR(info.st_mode)) {
    const auto has = [&](const char *file) {
      std::error_code ignored;
      return std::filesystem::exists(std::filesystem::path(path) / file,
                                     ignored);
    };
    if (has("adapter_config.json") && !has("config.json"))
      return Status::error(quoted(path) +
                           " is an adapter and not a model; give its model, "
                           "and it by --lora " +
                           quoted(path));
    return ModelFormat::Folder;
  }
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  if (Gguf::recognize(file.bytes()))
    return ModelFormat::Gguf;
  const std::string other = otherFormat(path, file.text().substr(0, 4));
  if (!other.empty())
    return Status::error("model " + quoted(path) + " " + other);
  return Status::error("model " + quoted(path) +
                       " is neither a GGUF file nor a folder; give one, or the "
                       "folder that holds config.json and model.safetensors");
}

Result<ModelFiles> kf::openModelFiles(const std::string &path,
                                      bool withTokenizer) {
  KF_ASSIGN_OR_RETURN(ModelFormat format, findModelFormat(path));
  return format == ModelFormat::Gguf ? openGguf(path, withTokenizer)
                                     : openFolder(path, withTokenizer);
}

Result<std::unique_ptr<WeightSource>>
kf::openModelWeights(const std::string &path, const ModelConfig &config,
                     std::vector<std::string> *notes) {
  KF_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> weights,
                      openSafetensors(path, notes));
  KF_RETURN_IF_ERROR(adaptTensors(path, config, weights));
  return weights;
}

Result<std::unique_ptr<WeightSource>>
kf::openModelWeights(const std::string &path) try {
  std::filesystem::path folder(path);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::openIfGguf(path));
    if (gguf) {
      const Result<ModelConfig> config = readGgufConfig(*gguf);
      KF_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> weights,
                          withoutUnreadTypes(std::move(gguf)));
      if (config.ok())
        KF_RETURN_IF_ERROR(adaptTensors(path, *config, weights));
      return weights;
    }
    folder = folder.parent_path();
  }
  if (!std::filesystem::exists(folder / "config.json", ignored))
    return openSafetensors(path);
  const Result<ModelConfig> config = loadModelConfig(folder.string());
  return config.ok() ? openModelWeights(path, *config) : openSafetensors(path);
} catch (...) {
  return statusOfException();
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

Result<bool> kf::findTokenizer(const std::string &path) {
  KF_ASSIGN_OR_RETURN(ModelFormat format, findModelFormat(path));
  if (format == ModelFormat::Gguf) {
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::open(path));
    return Tokenizer::isIn(*gguf);
  }
  return access((path + "/tokenizer.json").c_str(), F_OK) == 0 ||
         access((path + "/tokenizer.model").c_str(), F_OK) == 0;
}

Result<int64_t> kf::findAdapter(const ModelFiles &model,
                                std::string_view name) {
  if (name.empty())
    return 0;
  const auto found = std::ranges::find(model.adapters, name);
  if (found != model.adapters.end())
    return found - model.adapters.begin() + 1;
  std::string known;
  for (const std::string &each : model.adapters)
    known += (known.empty() ? "" : ", ") + inQuotes(each);
  return Status::error(
      "there is no adapter " + inQuotes(name) + "; " +
          (known.empty() ? "the model has none" : "the model has " + known),
      StatusCode::NotFound);
}

Result<int64_t> kf::findModelOrAdapter(const ModelFiles &model,
                                       std::span<const std::string> names,
                                       std::string_view name) {
  auto isModel = [&](std::string_view text) {
    return std::ranges::find(names, text) != names.end();
  };
  if (name.empty() || isModel(name))
    return 0;
  const size_t colon = name.rfind(':');
  const bool isBehindModel =
      colon != std::string_view::npos && isModel(name.substr(0, colon));
  if (const Result<int64_t> found =
          findAdapter(model, isBehindModel ? name.substr(colon + 1) : name);
      found.ok() && *found > 0)
    return found;
  std::string adapters;
  for (const std::string &each : model.adapters)
    adapters +=
        (adapters.empty() ? ", with the adapters " : ", ") + inQuotes(each);
  return Status::error("there is no model " + inQuotes(name) +
                           " here; this one is " + inQuotes(names.front()) +
                           adapters + ", and --alias gives it other names",
                       StatusCode::NotFound);
}

std::string kf::signatureOf(const ModelFiles &model) {
  std::string text = model.configText;
  // The tensors' values decide this.
  text += model.config.tiedEmbeddings ? "\ntied" : "\nuntied";
  // The context that the model was opened with decides this.
  const bool isShort =
      std::ranges::any_of(model.config.layerConfigs, [](const auto &layer) {
        return layer.rope && !layer.rope->isLong;
      });
  text += isShort ? "\nshort" : "";
  if (model.config.ranks > 1)
    text += "\nranks " + std::to_string(model.config.ranks);
  if (model.config.contextRanks > 1)
    text += "\ncontext ranks " + std::to_string(model.config.contextRanks);
  if (const StageConfig &stage = model.config.stage; stage.count > 1)
    text += "\nstage " + std::to_string(stage.number) + " of " +
            std::to_string(stage.count);
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

std::string kf::modelKeyOf(const ModelFiles &model) {
  return hashKey({signatureOf(model)});
}

std::vector<int32_t> kf::beginIds(const ModelFiles &model) {
  std::vector<int32_t> ids = model.tokenizer->prefixIds();
  if (ids.empty() && model.config.bosId)
    ids.push_back(static_cast<int32_t>(*model.config.bosId));
  return ids;
}

Result<std::vector<int32_t>> kf::encodePrompt(const ModelFiles &model,
                                              std::string_view text,
                                              CancelFlag cancelled) {
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      model.tokenizer->encode(text, {.cancelled = cancelled}));
  // A prompt with the begin-of-text token written out has it already.
  const std::vector<int32_t> &prefix = model.tokenizer->prefixIds();
  if (!std::ranges::equal(
          prefix, std::span(ids).first(std::min(ids.size(), prefix.size()))))
    ids.insert(ids.begin(), prefix.begin(), prefix.end());
  if (ids.empty() && model.config.bosId)
    ids.push_back(static_cast<int32_t>(*model.config.bosId));
  if (ids.empty())
    return Status::error("the prompt is empty, and the model has no "
                         "begin-of-text token to start from; give a prompt");
  return ids;
}

Result<std::vector<int32_t>> kf::encodeText(const ModelFiles &model,
                                            std::string_view text,
                                            CancelFlag cancelled) {
  if (text.empty())
    return Status::error("the text is empty; give at least one character");
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      model.tokenizer->encode(
                          text, {.addSpecial = true, .cancelled = cancelled}));
  if (ids.empty())
    return Status::error("the tokenizer makes no tokens of the text");
  return ids;
}
