//===- GgufStreams.h - What a GGUF file says of streams ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFSTREAMS_H
#define KF_RUNTIME_MODEL_GGUFSTREAMS_H

#include "runtime/io/Gguf.h"
#include "runtime/model/GgufNumbers.h"
#include "runtime/model/ModelConfig.h"

#include <string_view>

namespace kf {

/// Keys behind the architecture's name: how many streams there are, which one
/// layers compute, at how many deviations gates of each layer are cut off, and
/// the width of tokens' inputs of a layer.
inline constexpr std::string_view kGgufStreams = "altup.num_inputs",
                                  kGgufActiveStream = "altup.active_idx",
                                  kGgufCutoffs = "activation_sparsity_scale",
                                  kGgufTokenInputs =
                                      "embedding_length_per_layer_input";

/// Sets what `config`, whose layers are known, has of streams, of cut gates and
/// of tokens' inputs, where models of its architecture do. Errors name the key
/// or the tensor.
Status readGgufStreams(const Gguf &gguf, const GgufNumbers &numbers,
                       ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFSTREAMS_H
