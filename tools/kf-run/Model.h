//===- Model.h - What MODEL stands for --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODEL_H
#define KF_TOOLS_KF_RUN_MODEL_H

#include "runtime/model/ChatConfig.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/weights/WeightSource.h"

#include <memory>
#include <optional>
#include <string>

namespace kf {

/// What a MODEL argument can be.
enum class ModelKind {
  Embedded, ///< the model inside this program: no argument
  Folder,   ///< as Hugging Face lays it out
  Gguf      ///< one file
};

/// Looks at what is at `path`; a file is known by its first bytes. Other files
/// are errors that say what would do.
Result<ModelKind> findModelKind(const std::string &path);

/// A checkpoint and what belongs to it.
struct ModelFiles {
  std::string name; ///< for people: the path, or "kf-stories (embedded)"
  ModelConfig config;
  /// What `config` was read from, as text: config.json, or the metadata of a
  /// GGUF file that its architecture defines.
  std::string configText;
  std::unique_ptr<WeightSource> weights;

  // Where the tokenizer was asked for:
  std::optional<Tokenizer> tokenizer;
  ChatConfig chat; ///< empty where the model has none
};

/// Opens the model at `path`, or the embedded one if it is empty, and prints
/// its configuration's warnings. Weights are mapped, not read. Errors name the
/// file.
Result<ModelFiles> openModel(const std::string &path, bool withTokenizer);

/// Gives `model` the tokenizer at `path`: a folder's or a GGUF file's with its
/// chat template, or a tokenizer.json or tokenizer.model alone. Errors name the
/// file.
Status openTokenizer(const std::string &path, ModelFiles &model);

/// Whether the model at `path` comes with a tokenizer, readable or not.
Result<bool> hasTokenizer(const std::string &path);

struct DummyOptions;
/// The same where `dummy` may say that `path` is a known model's name. Such a
/// model has the tokenizer that `dummy` names; asking for one fails without.
Result<ModelFiles> openModel(const std::string &path, bool withTokenizer,
                             const DummyOptions &dummy);

/// Prints what `config`, of the model at `path`, warns of.
void printModelWarnings(const std::string &path, const ModelConfig &config);

/// `status` with the model's name in front, unless an error has it already.
Status nameModel(const ModelFiles &model, const Status &status);

/// Everything about `model` that its compiled programs depend on, as bytes to
/// hash: what its configuration was read from, and the tensors' names, types
/// and shapes.
std::string signatureOf(const ModelFiles &model);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODEL_H
