//===- Model.h - What MODEL stands for ---------------------------*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODEL_H
#define KF_TOOLS_KF_RUN_MODEL_H

#include "runtime/WeightSource.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/text/Tokenizer.h"

#include <memory>
#include <optional>
#include <string>

namespace kf {

/// A checkpoint: a folder as Hugging Face lays it out, or the model inside
/// this program.
struct Model {
  std::string name; ///< for people: the folder, or "kf-stories (embedded)"
  ModelConfig config;
  std::string configText; ///< config.json
  std::unique_ptr<WeightSource> weights;
  std::optional<Tokenizer> tokenizer; ///< where it was asked for
};

/// Opens the folder `path`, or the embedded model if it is empty. Weights are
/// mapped, not read. Errors name the file.
Result<Model> openModel(const std::string &path, bool withTokenizer);

/// Everything about `model` that its compiled programs depend on, as bytes to
/// hash: config.json, and the tensors' names, types and shapes.
std::string signatureOf(const Model &model);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODEL_H
