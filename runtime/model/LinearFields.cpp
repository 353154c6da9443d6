//===- LinearFields.cpp - Layers with linear attention --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/LinearFields.h"

#include "runtime/core/Json.h"
#include "runtime/model/ConfigLimits.h"

#include <algorithm>

using namespace kf;
using nlohmann::json;

Result<std::vector<bool>> kf::readLinearLayers(const ConfigReader &reader,
                                               const Family &family,
                                               int64_t layers) {
  std::vector<bool> linear(layers, false);
  if (!family.linear.areRead)
    return linear;
  const json *types = reader.find("layer_types");
  const char *name = "full_attention_interval";
  KF_ASSIGN_OR_RETURN(const int64_t interval,
                      reader.integer(name, 1, kMaxLayers, 4));
  for (int64_t i = 0; i < layers; ++i)
    linear[i] = (i + 1) % interval != 0;
  if (!types)
    return linear;
  if (!types->is_array() || types->size() != static_cast<size_t>(layers))
    return reader.unexpected("layer_types", "a list of one entry a layer");
  for (int64_t i = 0; i < layers; ++i) {
    const json &type = (*types)[i];
    const bool isLinear = isText(type, "linear_attention");
    if (!isLinear && !isText(type, "full_attention"))
      return Status::error("'layer_types' has " + shortDump(type) +
                               ", which is not supported (supported: "
                               "full_attention, linear_attention)",
                           StatusCode::Unsupported);
    if (reader.contains(name) && isLinear != linear[i])
      return Status::error(
          reader.quoted(name) + ", but layer " + std::to_string(i) + " has " +
          (isLinear ? "linear" : "full") + " attention by 'layer_types'");
    linear[i] = isLinear;
  }
  return linear;
}

Status kf::readLinearAttention(const ConfigReader &reader, const Family &family,
                               ModelConfig &config) {
  if (std::ranges::none_of(config.layerConfigs, &LayerConfig::isLinear))
    return Status();
  LinearAttentionConfig &linear = config.linear;
  struct Size {
    const char *name;
    int64_t &value;
    int64_t least, most, otherwise;
  };
  const Size sizes[] = {
      {"linear_num_key_heads", linear.keyHeads, 1, kMaxSize, 16},
      {"linear_num_value_heads", linear.valueHeads, 1, kMaxSize, 32},
      {"linear_key_head_dim", linear.keyDim, 1, kMaxHeadDim, 128},
      {"linear_value_head_dim", linear.valueDim, 1, kMaxHeadDim, 128},
      {"linear_conv_kernel_dim", linear.taps, 2, kMaxTaps, 4}};
  for (const Size &size : sizes) {
    KF_ASSIGN_OR_RETURN(size.value, reader.integer(size.name, size.least,
                                                   size.most, size.otherwise));
  }
  if (linear.valueHeads % linear.keyHeads != 0)
    return Status::error("'linear_num_value_heads' " +
                         std::to_string(linear.valueHeads) +
                         " is not a multiple of 'linear_num_key_heads' " +
                         std::to_string(linear.keyHeads));
  // Each factor is at most 2^24, and each product with two of them below 2^62.
  if (linear.channels() + linear.valueHeads * linear.valueDim > kMaxSize)
    return Status::error(
        "'linear_num_key_heads' and 'linear_num_value_heads' make " +
        std::to_string(linear.channels()) + " columns of q, k and v; at most " +
        std::to_string(kMaxSize) + " are possible, those of z included");
  if (linear.stateElements() > kMaxId)
    return Status::error("'linear_key_head_dim' times "
                         "'linear_value_head_dim' makes states of " +
                         std::to_string(linear.stateElements()) +
                         " elements; at most " + std::to_string(kMaxId) +
                         " are possible");
  linear.byKeyHeads = family.linear.byKeyHeads;
  return Status();
}
