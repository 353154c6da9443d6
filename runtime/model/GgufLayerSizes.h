//===- GgufLayerSizes.h - Sizes of a GGUF file's layers ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFLAYERSIZES_H
#define KF_RUNTIME_MODEL_GGUFLAYERSIZES_H

#include "runtime/io/Gguf.h"
#include "runtime/model/GgufNumbers.h"
#include "runtime/model/ModelConfig.h"

#include <string_view>
#include <vector>

namespace kf {

/// Keys behind the architecture's name: sizes of layers with a window, and how
/// many of the last layers attend to the keys of earlier ones.
inline constexpr std::string_view kGgufSlidingKey = "attention.key_length_swa",
                                  kGgufSlidingValue =
                                      "attention.value_length_swa",
                                  kGgufSharing = "attention.shared_kv_layers";

/// Sets the heads of `config`, and of its layers where those without a window
/// have others; `slides` says which have one. Errors name the key.
Status readGgufLayerHeads(const GgufNumbers &numbers,
                          const std::vector<bool> &slides, ModelConfig &config);
/// Sets the width of feed-forward blocks of layers that have another one than
/// the first, and whose keys layers attend to.
Status readGgufLayerSizes(const Gguf &gguf, const GgufNumbers &numbers,
                          const std::vector<bool> &slides, ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFLAYERSIZES_H
