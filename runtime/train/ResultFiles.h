//===- ResultFiles.h - What a training writes -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names of the files of a result, in its folder.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_RESULTFILES_H
#define KF_RUNTIME_TRAIN_RESULTFILES_H

#include "runtime/core/Status.h"

#include <string>
#include <vector>

namespace kf {

/// The weights of a model that is written.
inline constexpr const char *kWeightsFile = "model.safetensors";

/// What a model has beside its weights and config.json, and its copy with new
/// weights as well.
inline constexpr const char *kFilesBesideWeights[] = {"generation_config.json",
                                                      "tokenizer.json",
                                                      "tokenizer_config.json",
                                                      "tokenizer.model",
                                                      "special_tokens_map.json",
                                                      "added_tokens.json",
                                                      "vocab.json",
                                                      "merges.txt",
                                                      "chat_template.jinja"};

/// Names of the files in `folder` that are of a model, with the shards of its
/// weights, or of an adapter: a result takes their place. None where the folder
/// cannot be read.
std::vector<std::string> resultFilesIn(const std::string &folder, bool ofModel);

/// Removes what a model that was in `folder` has beside the weights of a
/// result, kWeightsFile. What is of the folder `model`, which the result was
/// trained from, stays; empty: there is none. Of both, what says how weights
/// were quantized goes. An error names the file that cannot be removed.
Status removeFilesOfOthers(const std::string &folder, const std::string &model);

} // namespace kf

#endif // KF_RUNTIME_TRAIN_RESULTFILES_H
