//===- StoredTensors.cpp - How checkpoints hold a model's tensors ---------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/StoredTensors.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/io/RenamedWeights.h"
#include "runtime/io/SplitWeights.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/TensorList.h"

#include <algorithm>

using namespace kf;

/// Shows rows of Phi-3's tensors as LLaMA's.
static Status splitTensors(const ModelConfig &config,
                           std::unique_ptr<WeightSource> &weights) {
  const TensorNames &names = tensorNames(config);
  const bool gguf = config.naming == TensorNaming::Gguf;
  // In GGUF it has the name of the matrix that is the second half of it.
  const std::string_view qkv = gguf ? "attn_qkv" : "self_attn.qkv_proj";
  const std::string_view gateUp = gguf ? names.up : "mlp.gate_up_proj";
  const std::vector<std::string> all = weights->names();
  auto has = [&](const std::string &name) {
    return std::ranges::binary_search(all, name);
  };
  const std::string bare = std::string(names.layer) + ".";
  // Checkpoints of the bare model lack the prefix.
  const std::string prefix(has(std::string(names.embedding) + ".weight")
                               ? std::string_view()
                               : names.prefix);
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
      status = split->split(nameOf(qkv), {{nameOf(names.query), queries},
                                          {nameOf(names.key), keys},
                                          {nameOf(names.value), keys}});
    if (status.ok() && !has(nameOf(names.gate)))
      status = split->split(nameOf(gateUp),
                            {{nameOf(names.gate), config.intermediateSize},
                             {nameOf(names.up), config.intermediateSize}});
  }
  weights = std::move(split);
  return status;
}

/// What the names of a language model begin with where it is a part of another,
/// in older files and in newer ones, and what they begin with alone.
struct Place {
  std::string_view inside, alone;
};
static constexpr Place kPlaces[] = {{"language_model.model.", "model."},
                                    {"language_model.lm_head.", "lm_head."},
                                    {"model.language_model.", "model."}};
/// The same of tensors that make what it reads of images.
static constexpr std::string_view kOfImages[] = {
    "vision_tower.", "multi_modal_projector.", "model.vision_tower.",
    "model.multi_modal_projector."};

/// Shows the language model of a checkpoint alone.
static Status unwrapTensors(std::unique_ptr<WeightSource> &weights) {
  RenamedWeights::Names names; // in the checkpoint, by what they are to be
  bool isChanged = false;
  for (const std::string &name : weights->names()) {
    auto begins = [&](std::string_view with) { return name.starts_with(with); };
    if (std::ranges::any_of(kOfImages, begins)) {
      isChanged = true;
      continue;
    }
    const auto *place = std::ranges::find_if(kPlaces, begins, &Place::inside);
    const bool isInside = place != std::end(kPlaces);
    isChanged |= isInside;
    const std::string alone =
        isInside ? std::string(place->alone) + name.substr(place->inside.size())
                 : name;
    if (const auto [other, isNew] = names.emplace(alone, name); !isNew)
      return Status::error("checkpoint tensors " + inQuotes(other->second) +
                           " and " + inQuotes(name) + " hold the same");
  }
  if (isChanged)
    weights =
        std::make_unique<RenamedWeights>(std::move(weights), std::move(names));
  return Status();
}

Status kf::adaptStoredTensors(const ModelConfig &config,
                              std::unique_ptr<WeightSource> &weights) try {
  if (familyOf(config.architecture).wrapperType)
    KF_RETURN_IF_ERROR(unwrapTensors(weights));
  return config.architecture == Architecture::Phi3
             ? splitTensors(config, weights)
             : Status();
} catch (...) {
  return statusOfException();
}
