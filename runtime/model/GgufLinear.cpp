//===- GgufLinear.cpp - What a GGUF file says of linear attention ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufLinear.h"

#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/ModelFamily.h"

#include <algorithm>

using namespace kf;

/// Which layers have it. Files count those that guess further tokens, too.
static Result<std::vector<bool>> readLayers(const Gguf &gguf,
                                            const GgufNumbers &numbers,
                                            const ModelConfig &config) {
  const int64_t all = config.layers + config.guessingLayers;
  if (const GgufValue *value = gguf.lookUp(numbers.keyOf(kGgufLinearLayers))) {
    if (value->type() != GgufValueType::Array)
      return Status::error("metadata " +
                           inQuotes(numbers.keyOf(kGgufLinearLayers)) +
                           " is no array of a truth value for each layer");
    return numbers.layerFlags(kGgufLinearLayers, *value, all);
  }
  KF_ASSIGN_OR_RETURN(const int64_t interval,
                      numbers.size(kGgufFullInterval, kMaxLayers, 4));
  std::vector<bool> linear;
  for (int64_t i = 0; i < all; ++i)
    linear.push_back((i + 1) % interval != 0);
  return linear;
}

/// An error unless `config`'s sizes are as large as others' may be.
static Status checkSizes(const GgufNumbers &numbers,
                         const ModelConfig &config) {
  const LinearAttentionConfig &linear = config.linear;
  if (linear.valueHeads % linear.keyHeads != 0)
    return Status::error(
        numbers.valueOf(kGgufValueHeads, std::to_string(linear.valueHeads)) +
        ", which is not a multiple of " +
        inQuotes(numbers.keyOf(kGgufKeyHeads)) + " " +
        std::to_string(linear.keyHeads));
  // Each factor is at most 2^24, and each product with two of them below 2^62.
  const int64_t ofHeads =
      linear.valueHeads * (2 * linear.keyDim + linear.valueDim);
  const int64_t columns = std::max(
      ofHeads, linear.channels() + linear.valueHeads * linear.valueDim);
  if (columns > kMaxSize)
    return Status::error("metadata " + inQuotes(numbers.keyOf(kGgufKeyHeads)) +
                         " and " + inQuotes(numbers.keyOf(kGgufValueHeads)) +
                         " make " + std::to_string(columns) +
                         " columns of q, k, v and z; at most " +
                         std::to_string(kMaxSize) + " are possible");
  if (linear.stateElements() > kMaxId)
    return Status::error(
        "metadata " + inQuotes(numbers.keyOf(kGgufKeyDim)) +
        " makes states of " + std::to_string(linear.stateElements()) +
        " elements; at most " + std::to_string(kMaxId) + " are possible");
  return Status();
}

Status kf::readGgufLinear(const Gguf &gguf, const GgufNumbers &numbers,
                          ModelConfig &config) {
  const Family &family = familyOf(config.architecture);
  if (!family.linear.areRead)
    return Status();
  KF_ASSIGN_OR_RETURN(const std::vector<bool> layers,
                      readLayers(gguf, numbers, config));
  bool isAny = false;
  for (int64_t i = 0; i < config.layers; ++i)
    isAny |= config.layerConfigs[i].isLinear = layers[i];
  if (!isAny)
    return Status();
  LinearAttentionConfig &linear = config.linear;
  KF_ASSIGN_OR_RETURN(linear.keyHeads, numbers.size(kGgufKeyHeads, kMaxSize));
  KF_ASSIGN_OR_RETURN(linear.valueHeads,
                      numbers.size(kGgufValueHeads, kMaxSize));
  KF_ASSIGN_OR_RETURN(linear.keyDim, numbers.size(kGgufKeyDim, kMaxHeadDim));
  KF_ASSIGN_OR_RETURN(linear.taps, numbers.size(kGgufTaps, kMaxTaps));
  if (linear.taps < 2)
    return Status::error(numbers.valueOf(kGgufTaps, "1") +
                         ", but a number from 2 to " +
                         std::to_string(kMaxTaps) + " is expected");
  KF_ASSIGN_OR_RETURN(const int64_t values,
                      numbers.size(kGgufValues, kMaxSize));
  if (values % linear.valueHeads != 0 ||
      values / linear.valueHeads > kMaxHeadDim)
    return Status::error(
        numbers.valueOf(kGgufValues, std::to_string(values)) + ", of which " +
        inQuotes(numbers.keyOf(kGgufValueHeads)) + " " +
        std::to_string(linear.valueHeads) + " make no heads of 1 to " +
        std::to_string(kMaxHeadDim) + " elements");
  linear.valueDim = values / linear.valueHeads;
  linear.byKeyHeads = family.linear.byKeyHeads;
  return checkSizes(numbers, config);
}
