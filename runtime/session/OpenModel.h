//===- OpenModel.h - A model's files, as people name them -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_OPENMODEL_H
#define KF_RUNTIME_SESSION_OPENMODEL_H

#include "runtime/core/Observer.h"
#include "runtime/engine/ModelFiles.h"
#include "runtime/session/DummyModel.h"

#include <functional>
#include <string>

namespace kf {

/// What a model's path can be.
enum class ModelKind {
  Embedded, ///< the model inside this program: no path
  Folder,   ///< as Hugging Face lays it out
  Gguf      ///< one file
};

/// What weights of F8_E4M3 are multiplied as.
enum class Float8Weights {
  Rounded,  ///< bf16, to which they are rounded when they are loaded
  Kept,     ///< as they are stored; a model without any is an error
  KeptIfAny ///< as they are stored, if there are any
};

/// An adapter in PEFT's format that a model is opened with.
struct AdapterChoice {
  std::string name; ///< of requests for it: not empty, without ':'
  std::string path; ///< a folder
};

/// An error where requests could not name an adapter `name`.
Status checkAdapterName(const std::string &name);

/// A model, and how its weights are taken.
struct ModelChoice {
  /// A GGUF file, or a folder with config.json, model.safetensors (or its
  /// index) and a tokenizer; a known name where `dummy` makes the weights;
  /// empty: the model that the program carries.
  std::string path;
  DummyChoice dummy = {};
  Float8Weights float8 = Float8Weights::Rounded;
  /// ModelFiles::adapters are these.
  std::vector<AdapterChoice> adapters = {};
};

/// Opens the model that a program carries (EmbeddedModel.h); null: it carries
/// none.
using OpenEmbedded = std::function<Result<ModelFiles>(bool withTokenizer)>;

/// Looks at what is at `path`. Errors as findModelFormat(); the name of a known
/// model is one that says how it can be had.
Result<ModelKind> findModelKind(const std::string &path);

/// Opens the model; weights are mapped, not read. A model of dummy weights has
/// the tokenizer that `dummy` names; asking for one fails without. `observer`,
/// which may be null, is told what the configuration warns of. Errors name the
/// file.
Result<ModelFiles> openModel(const ModelChoice &choice, bool withTokenizer,
                             const OpenEmbedded &openEmbedded,
                             Observer *observer);

/// Whether the model at `path` comes with a tokenizer, readable or not.
Result<bool> hasTokenizer(const std::string &path);

/// Whether the model at `path` comes with a chat template.
Result<bool> hasChatTemplate(const std::string &path);

/// What `config`, of the model at `path`, warns of, a line each.
std::vector<std::string> modelWarnings(const std::string &path,
                                       const ModelConfig &config);

/// `status` with the model's name in front, unless an error has it already.
Status nameModel(const ModelFiles &model, const Status &status);

} // namespace kf

#endif // KF_RUNTIME_SESSION_OPENMODEL_H
