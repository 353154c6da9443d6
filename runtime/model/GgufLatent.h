//===- GgufLatent.h - What a GGUF file says of latent attention -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFLATENT_H
#define KF_RUNTIME_MODEL_GGUFLATENT_H

#include "runtime/io/Gguf.h"
#include "runtime/model/GgufNumbers.h"
#include "runtime/model/ModelConfig.h"

#include <string_view>

namespace kf {

/// Keys behind the architecture's name: widths of the rows that queries, and
/// keys and values, are made of; elements of a head's key and value, and how
/// many of a key's are turned.
inline constexpr std::string_view kGgufQueryRow = "attention.q_lora_rank",
                                  kGgufKeyRow = "attention.kv_lora_rank",
                                  kGgufLatentKey = "attention.key_length_mla",
                                  kGgufLatentValue =
                                      "attention.value_length_mla",
                                  kGgufTurned = "rope.dimension_count";
/// A tenth of the factor of the logarithm that attention's scale has of yarn.
inline constexpr std::string_view kGgufYarnScale =
    "rope.scaling.yarn_log_multiplier";

/// Sets latent attention's sizes, the heads of the cache and attention's scale,
/// without yarn's share in it, of `config`, whose heads and layers are known.
/// Errors name the key.
Status readGgufLatent(const Gguf &gguf, const GgufNumbers &numbers,
                      ModelConfig &config);
/// Gives attention's scale yarn's share, where `rope` is scaled so and the file
/// says it; RoPE's magnitude, which is the usual one times the file's
/// attn_factor, is that factor alone then.
Status readGgufLatentYarn(const GgufNumbers &numbers, RopeConfig &rope,
                          ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFLATENT_H
