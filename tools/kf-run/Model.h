//===- Model.h - What MODEL stands for --------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODEL_H
#define KF_TOOLS_KF_RUN_MODEL_H

#include "OptionParser.h"

#include "runtime/engine/ModelFiles.h"

#include <optional>
#include <string>
#include <string_view>

namespace kf {

/// What a MODEL argument can be.
enum class ModelKind {
  Embedded, ///< the model inside this program: no argument
  Folder,   ///< as Hugging Face lays it out
  Gguf      ///< one file
};

/// Adds MODEL, which `model` holds once `parser` has run, and --model, which is
/// the same; `named` has what that said.
void addModelArgument(OptionParser &parser, std::string &model,
                      std::optional<std::string> &named, std::string_view help);

/// Looks at what is at `path`. Errors as findModelFormat(); the name of a known
/// model is one that says how it can be had.
Result<ModelKind> findModelKind(const std::string &path);

/// Opens the model that the program carries; an error where it carries none.
Result<ModelFiles> openEmbeddedModel(bool withTokenizer);

/// Opens the model at `path`, or the embedded one if it is empty, and prints
/// its configuration's warnings. Weights are mapped, not read. Errors name the
/// file.
Result<ModelFiles> openModel(const std::string &path, bool withTokenizer);

struct DummyOptions;
/// The same where `dummy` may say that `path` is a known model's name. Such a
/// model has the tokenizer that `dummy` names; asking for one fails without.
Result<ModelFiles> openModel(const std::string &path, bool withTokenizer,
                             const DummyOptions &dummy);

/// What weights of F8_E4M3 are multiplied as.
struct Float8Flag {
  std::string type = "bf16";
  bool needsSome = true; ///< weights of 8 bits, if they are to be kept

  void addTo(OptionParser &parser);
  /// Has the weights of `model` kept in 8 bits, if they are to be.
  Status apply(ModelFiles &model) const;
};

/// Whether the model at `path` comes with a tokenizer, readable or not.
Result<bool> hasTokenizer(const std::string &path);

/// Whether the model at `path` comes with a chat template.
Result<bool> hasChatTemplate(const std::string &path);

/// Prints what `config`, of the model at `path`, warns of.
void printModelWarnings(const std::string &path, const ModelConfig &config);

/// `status` with the model's name in front, unless an error has it already.
Status nameModel(const ModelFiles &model, const Status &status);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODEL_H
