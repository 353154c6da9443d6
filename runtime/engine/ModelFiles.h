//===- ModelFiles.h - What a model's files hold -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_MODELFILES_H
#define KF_RUNTIME_ENGINE_MODELFILES_H

#include "runtime/core/Cancellation.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/PoolingConfig.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/weights/WeightSource.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// How the files of a model lie.
enum class ModelFormat {
  Folder, ///< as Hugging Face lays it out
  Gguf    ///< one file, or the first of several
};

/// Looks at what is at `path`; a file is known by its first bytes. Other files
/// are errors that say what would do.
Result<ModelFormat> findModelFormat(const std::string &path);

/// A checkpoint and what belongs to it.
struct ModelFiles {
  std::string name; ///< for people: the path, mostly
  ModelConfig config;
  /// What `config` was read from, as text: config.json, or the metadata of a
  /// GGUF file that its architecture defines.
  std::string configText;
  std::unique_ptr<WeightSource> weights;
  PoolingConfig pooling; ///< of embeddings
  /// Names of the adapters that the model was opened with, of numbers from 1
  /// on.
  std::vector<std::string> adapters;

  // Where the tokenizer was asked for:
  std::optional<Tokenizer> tokenizer;
  ChatConfig chat; ///< empty where the model has none
};

/// The number of the adapter `name`, 0 for an empty one. Error: the model was
/// opened without it, with the names that there are.
Result<int64_t> findAdapter(const ModelFiles &model, std::string_view name);

/// The number of the adapter that a request means by `name`, "ADAPTER" or
/// "MODEL:ADAPTER", where the model is called `names`, one at least; 0 for one
/// of these and for an empty name. Error: neither, with what there is.
Result<int64_t> findModelOrAdapter(const ModelFiles &model,
                                   std::span<const std::string> names,
                                   std::string_view name);

/// Opens the model at `path`. Weights are mapped, not read. Errors name the
/// file; what the configuration warns of is in `config.warnings`.
Result<ModelFiles> openModelFiles(const std::string &path, bool withTokenizer);

/// Opens the tensors of a model that lies as Hugging Face lays it out, a folder
/// or a file that openSafetensors() takes, under the names that listTensors()
/// has and programs ask for; `notes` are openSafetensors()'. Errors are those
/// of openSafetensors() and, with the path, adaptStoredTensors().
Result<std::unique_ptr<WeightSource>>
openModelWeights(const std::string &path, const ModelConfig &config,
                 std::vector<std::string> *notes = nullptr);

/// The same by the config.json that the files lie beside, and of a GGUF file by
/// its metadata. Where there is none, or that of a model that is not read here,
/// tensors have the names that are stored.
Result<std::unique_ptr<WeightSource>> openModelWeights(const std::string &path);

/// Gives `model` the tokenizer at `path`: a folder's or a GGUF file's with its
/// chat template, or a tokenizer.json or tokenizer.model alone. Errors name the
/// file.
Status openTokenizer(const std::string &path, ModelFiles &model);

/// Whether the model at `path` comes with a tokenizer, readable or not.
Result<bool> findTokenizer(const std::string &path);

/// Everything about `model` that its compiled programs depend on, as bytes to
/// hash: what its configuration was read from, and the tensors' names, types
/// and shapes.
std::string signatureOf(const ModelFiles &model);

/// signatureOf() as a key of 32 hexadecimal digits, which a program compiled
/// for `model` carries (Executable::model).
std::string modelKeyOf(const ModelFiles &model);

/// The tokens that generation continues: `text` behind the begin-of-text token
/// where the model has one and `text` does not begin with it. An interrupt ends
/// it (Interrupt.h). Errors: no token to start from, and the tokenizer's.
Result<std::vector<int32_t>> encodePrompt(const ModelFiles &model,
                                          std::string_view text,
                                          CancelFlag cancelled = nullptr);

/// The tokens of a text whose embedding is wanted, with those that the
/// tokenizer puts around it. Errors: an empty text, one without tokens, the
/// tokenizer's.
Result<std::vector<int32_t>> encodeText(const ModelFiles &model,
                                        std::string_view text,
                                        CancelFlag cancelled = nullptr);

/// The tokens that begin every text of `model`: maybe none.
std::vector<int32_t> beginIds(const ModelFiles &model);

} // namespace kf

#endif // KF_RUNTIME_ENGINE_MODELFILES_H
