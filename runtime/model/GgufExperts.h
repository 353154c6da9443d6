//===- GgufExperts.h - What a GGUF file says of experts ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files have the number of experts, of those that a row chooses, and widths;
// the rest goes without saying in each architecture, as llama.cpp has it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_GGUFEXPERTS_H
#define KF_RUNTIME_MODEL_GGUFEXPERTS_H

#include "runtime/model/GgufNumbers.h"
#include "runtime/model/ModelConfig.h"

#include <string_view>

namespace kf {

/// Keys behind the architecture's name.
inline constexpr std::string_view kGgufExpertCount = "expert_count",
                                  kGgufExpertsChosen = "expert_used_count",
                                  kGgufExpertWidth =
                                      "expert_feed_forward_length",
                                  kGgufSharedWidth =
                                      "expert_shared_feed_forward_length";
/// How probabilities are made of products, 2 being sigmoids; groups, and how
/// many are kept; of how many experts the shared block is; whether chosen ones'
/// probabilities are divided by their sum, and what they give multiplied by;
/// and which layers have experts: every so many-th, or all but the first ones.
inline constexpr std::string_view kGgufGating = "expert_gating_func",
                                  kGgufExpertGroups = "expert_group_count",
                                  kGgufKeptGroups = "expert_group_used_count",
                                  kGgufSharedCount = "expert_shared_count",
                                  kGgufExpertsNormalized =
                                      "expert_weights_norm",
                                  kGgufExpertsScale = "expert_weights_scale",
                                  kGgufExpertStep = "interleave_moe_layer_step",
                                  kGgufPlainLayers =
                                      "leading_dense_block_count";

/// Whether files of the architecture have a key for the width of experts,
/// rather than that of all blocks.
bool hasGgufExpertWidth(Architecture architecture);
/// Whether the probabilities of the chosen experts are divided by their sum,
/// where files do not say it.
bool isNormalizedInGguf(Architecture architecture);

/// Sets the experts of `config`, whose architecture, layers and intermediate
/// size are known, and says which layers have them, where models of the
/// architecture do. Errors name the key.
Status readGgufExperts(const Gguf &gguf, const GgufNumbers &numbers,
                       ModelConfig &config);

} // namespace kf

#endif // KF_RUNTIME_MODEL_GGUFEXPERTS_H
