//===- FusedTensors.cpp - Matrices that checkpoints hold in one -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/FusedTensors.h"

#include "runtime/core/Exceptions.h"
#include "runtime/io/SplitWeights.h"
#include "runtime/model/TensorList.h"

#include <algorithm>

using namespace kf;

Status kf::splitFusedTensors(const ModelConfig &config,
                             std::unique_ptr<WeightSource> &weights) try {
  if (config.architecture != Architecture::Phi3)
    return Status();
  const TensorNames &names = tensorNames(config);
  const std::vector<std::string> all = weights->names();
  auto has = [&](const std::string &name) {
    return std::ranges::binary_search(all, name);
  };
  const std::string bare = std::string(names.layer) + ".";
  // Checkpoints of the bare model lack the prefix.
  const std::string prefix =
      has(std::string(names.embedding) + ".weight") ? "" : names.prefix.data();
  const int64_t queries = config.heads * config.headDim;
  const int64_t keys = config.kvHeads * config.headDim;
  auto split = std::make_unique<SplitWeights>(std::move(weights));
  Status status;
  for (int64_t i = 0; i < config.layers && status.ok(); ++i) {
    auto nameOf = [&](std::string_view part) {
      return prefix + bare + std::to_string(i) + "." + std::string(part) +
             ".weight";
    };
    if (!has(nameOf(names.query)))
      status = split->split(nameOf("self_attn.qkv_proj"),
                            {{nameOf(names.query), queries},
                             {nameOf(names.key), keys},
                             {nameOf(names.value), keys}});
    if (status.ok() && !has(nameOf(names.gate)))
      status = split->split(nameOf("mlp.gate_up_proj"),
                            {{nameOf(names.gate), config.intermediateSize},
                             {nameOf(names.up), config.intermediateSize}});
  }
  weights = std::move(split);
  return status;
} catch (...) {
  return statusOfException();
}
