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

#include <vector>

namespace kf {

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

/// All files of a model, or of an adapter, that a result takes the place of.
inline std::vector<const char *> resultFiles(bool ofModel) {
  if (!ofModel)
    return {"adapter_config.json", "adapter_model.safetensors"};
  std::vector<const char *> names = {"config.json", "model.safetensors",
                                     "model.safetensors.index.json"};
  for (const char *name : kFilesBesideWeights)
    names.push_back(name);
  return names;
}

} // namespace kf

#endif // KF_RUNTIME_TRAIN_RESULTFILES_H
