//===- GgufLinear.h - What a GGUF file says of linear attention -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFLINEAR_H
#define KF_RUNTIME_MODEL_GGUFLINEAR_H

#include "runtime/io/Gguf.h"
#include "runtime/model/GgufNumbers.h"
#include "runtime/model/ModelConfig.h"

#include <string_view>

namespace kf {

/// Keys behind the architecture's name: of all layers, which have linear
/// attention; else every so many-th one has none.
inline constexpr std::string_view kGgufLinearLayers =
                                      "attention.recurrent_layers",
                                  kGgufFullInterval = "full_attention_interval";
/// Rows that the convolution sums up, elements of a key, heads of keys and of
/// values, and elements of all values.
inline constexpr std::string_view kGgufTaps = "ssm.conv_kernel",
                                  kGgufKeyDim = "ssm.state_size",
                                  kGgufKeyHeads = "ssm.group_count",
                                  kGgufValueHeads = "ssm.time_step_rank",
                                  kGgufValues = "ssm.inner_size";

/// Says which layers of `config`, whose layerConfigs are there, have linear
/// attention, and of what sizes, where layers of the architecture may. Errors
/// name the key.
Status readGgufLinear(const Gguf &gguf, const GgufNumbers &numbers,
                      ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFLINEAR_H
