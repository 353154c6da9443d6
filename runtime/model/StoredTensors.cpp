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
#include "runtime/io/ExpertStacks.h"
#include "runtime/io/LinearTensors.h"
#include "runtime/io/RenamedWeights.h"
#include "runtime/io/SplitWeights.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/TensorList.h"

#include <algorithm>

using namespace kf;

namespace {

/// Shows rows of a checkpoint's tensors as those that the model implies, a
/// layer at a time.
class TensorSplitter {
public:
  TensorSplitter(const ModelConfig &config,
                 std::unique_ptr<WeightSource> weights)
      : config(config), names(tensorNames(config)), all(weights->names()),
        weights(std::make_unique<SplitWeights>(std::move(weights))) {
    // Checkpoints of the bare model lack the prefix.
    if (!has(std::string(names.embedding) + ".weight"))
      prefix = names.prefix;
  }

  /// The tensors as splitLayer(layer) leaves them.
  using Layer = Status (TensorSplitter::*)();
  /// The matrices of all streams in one, [streams - 1, D, D].
  Status splitStreams() {
    const int64_t hidden = config.hiddenSize, count = config.streams.count - 1;
    for (std::string_view part : {names.streamProjections, names.streamEnds}) {
      std::vector<SplitWeights::Part> parts;
      for (int64_t i = 1; i <= count; ++i)
        parts.push_back({TensorNames::ofStream(part, i) + ".weight", hidden});
      KF_RETURN_IF_ERROR(splitStack(std::string(part) + ".weight",
                                    {count, hidden, hidden}, parts));
    }
    return Status();
  }
  Status split(Layer splitLayer) {
    for (layer = 0; layer < config.layers; ++layer)
      KF_RETURN_IF_ERROR((this->*splitLayer)());
    return Status();
  }
  std::unique_ptr<WeightSource> take() { return std::move(weights); }

  /// Phi-3's queries, keys and values, and its gate and up, which in GGUF have
  /// the name of the matrix that is the second half of them.
  Status splitProjections() {
    const bool gguf = config.naming == TensorNaming::Gguf;
    const std::string_view qkv = gguf ? "attn_qkv" : "self_attn.qkv_proj";
    const std::string_view gateUp = gguf ? names.up : "mlp.gate_up_proj";
    const int64_t queries = config.heads * config.headDim;
    const int64_t keys = config.kvHeads * config.headDim;
    if (!has(nameOf(names.query)))
      KF_RETURN_IF_ERROR(
          weights->split(nameOf(qkv), {{nameOf(names.query), queries},
                                       {nameOf(names.key), keys},
                                       {nameOf(names.value), keys}}));
    if (has(nameOf(names.gate)))
      return Status();
    return weights->split(nameOf(gateUp),
                          {{nameOf(names.gate), config.intermediateSize},
                           {nameOf(names.up), config.intermediateSize}});
  }

  /// Keys and values of all heads, of latent attention, in one matrix: of each
  /// head its keys, and its values behind them.
  Status splitLatent() {
    const LatentConfig &latent = config.latent;
    std::vector<SplitWeights::Part> parts;
    for (int64_t head = 0; head < config.heads; ++head) {
      parts.push_back({nameOf(names.ofHead("keys", head)), latent.plainDim});
      parts.push_back({nameOf(names.ofHead("values", head)), latent.valueDim});
    }
    return weights->split(nameOf(names.keysValues), parts);
  }

  /// Those of GGUF files: a stack of matrices for keys, each transposed, and
  /// one for values.
  Status splitGgufLatent() {
    const LatentConfig &latent = config.latent;
    std::vector<SplitWeights::Part> keys, values;
    for (int64_t head = 0; head < config.heads; ++head) {
      keys.push_back({nameOf(names.ofHead("keys", head)), latent.width});
      values.push_back({nameOf(names.ofHead("values", head)), latent.valueDim});
    }
    KF_RETURN_IF_ERROR(splitStack(nameOf(names.stackedKeys),
                                  {config.heads, latent.width, latent.plainDim},
                                  keys));
    return splitStack(nameOf(names.stackedValues),
                      {config.heads, latent.valueDim, latent.width}, values);
  }

  /// Experts in two stacks: [E, 2 * width, D], gates first, and [E, D, width].
  Status splitExperts() {
    const ExpertsConfig &experts = config.experts;
    if (!config.hasExperts(layer))
      return Status();
    auto partOf = [&](std::string_view part, int64_t expert) {
      return nameOf(names.ofExpert(part, expert));
    };
    if (has(partOf(names.expertGate, 0)))
      return Status();
    std::vector<SplitWeights::Part> inputs, outputs;
    for (int64_t i = 0; i < experts.count; ++i) {
      inputs.push_back({partOf(names.expertGate, i), experts.width});
      inputs.push_back({partOf(names.expertUp, i), experts.width});
      outputs.push_back({partOf(names.expertDown, i), config.hiddenSize});
    }
    KF_RETURN_IF_ERROR(splitStack(
        whole(names.stackedInputs),
        {experts.count, 2 * experts.width, config.hiddenSize}, inputs));
    return splitStack(whole(names.stackedOutputs),
                      {experts.count, config.hiddenSize, experts.width},
                      outputs);
  }

  /// Experts of GGUF files: a stack for each of an expert's matrices, or one
  /// for gates and ups, and of its biases where it has some, in older files
  /// apart. The matrix of one row
  /// that weighs the shared expert may be a vector there.
  Status splitGgufExperts() {
    const ExpertsConfig &experts = config.experts;
    if (!config.hasExperts(layer))
      return Status();
    const std::string sharedRouter = nameOf(names.sharedRouter);
    if (experts.sharedGate && has(sharedRouter)) {
      KF_ASSIGN_OR_RETURN(const TensorView view,
                          weights->describe(sharedRouter));
      if (view.shape.size() == 1)
        KF_RETURN_IF_ERROR(weights->split(sharedRouter, {{sharedRouter, 1}}));
    }
    if (has(nameOf(names.ofExpert(names.expertGate, 0))))
      return Status();
    const int64_t width = experts.width, hidden = config.hiddenSize;
    if (const std::string stack = nameOf("ffn_gate_up_exps"); has(stack)) {
      std::vector<SplitWeights::Part> parts;
      for (int64_t i = 0; i < experts.count; ++i)
        for (std::string_view part : {names.expertGate, names.expertUp})
          parts.push_back({nameOf(names.ofExpert(part, i)), width});
      KF_RETURN_IF_ERROR(
          splitStack(stack, {experts.count, 2 * width, hidden}, parts));
      return splitGgufStack(names.expertDown, hidden, width);
    }
    KF_RETURN_IF_ERROR(splitGgufStack(names.expertGate, width, hidden));
    KF_RETURN_IF_ERROR(splitGgufStack(names.expertUp, width, hidden));
    return splitGgufStack(names.expertDown, hidden, width);
  }

private:
  bool has(const std::string &name) const {
    return std::ranges::binary_search(all, name);
  }
  /// Splits the stack `name`, whose shape is implied.
  Status splitStack(const std::string &name,
                    const std::vector<int64_t> &implied,
                    const std::vector<SplitWeights::Part> &parts) {
    KF_ASSIGN_OR_RETURN(const TensorView view, weights->describe(name));
    KF_RETURN_IF_ERROR(checkShape(name, view.shape, implied));
    return weights->split(name, parts);
  }
  /// Splits the stack of one of the matrices that experts have.
  Status splitGgufStack(std::string_view part, int64_t rows, int64_t columns) {
    const int64_t count = config.experts.count;
    std::vector<SplitWeights::Part> parts, biases;
    for (int64_t i = 0; i < count; ++i) {
      const std::string expert = names.ofExpert(part, i);
      parts.push_back({nameOf(expert), rows});
      biases.push_back({whole(expert) + ".bias", 1, /*isVector=*/true});
    }
    const std::string stack = TensorNames::ggufStack(part);
    KF_RETURN_IF_ERROR(
        splitStack(nameOf(stack), {count, rows, columns}, parts));
    if (!config.experts.bias)
      return Status();
    return splitStack(whole(stack) + ".bias", {count, rows}, biases);
  }
  // In the layer that is split.
  std::string nameOf(std::string_view part) const {
    return whole(part) + ".weight";
  }
  std::string whole(std::string_view name) const {
    return std::string(prefix) + std::string(names.layer) + "." +
           std::to_string(layer) + "." + std::string(name);
  }

  const ModelConfig &config;
  const TensorNames &names;
  std::vector<std::string> all; ///< in the checkpoint
  std::unique_ptr<SplitWeights> weights;
  std::string_view prefix;
  int64_t layer = 0;
};

} // namespace

/// What the names of a language model begin with where it is a part of another,
/// in older files and in newer ones, and what they begin with alone.
struct Place {
  std::string_view inside, alone;
};
static constexpr Place kPlaces[] = {{"language_model.model.", "model."},
                                    {"language_model.lm_head.", "lm_head."},
                                    {"model.language_model.", "model."}};
/// The same of tensors that make what it reads of images and sounds.
static constexpr std::string_view kOfImages[] = {
    "audio_tower.",
    "model.audio_tower.",
    "embed_audio.",
    "model.embed_audio.",
    "embed_vision.",
    "model.embed_vision.",
    "vision_tower.",
    "model.vision_tower.",
    "vision_embedder.",
    "model.vision_embedder.",
    "vision_model.",
    "model.vision_model.",
    "visual.",
    "model.visual.",
    "multi_modal_projector.",
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

/// Shows experts one by one that a checkpoint has in stacks of this form.
static Status unstackExperts(const ModelConfig &config,
                             const ExpertStacks::Form &form,
                             std::unique_ptr<WeightSource> &weights) {
  const TensorNames &names = tensorNames(config);
  const ExpertsConfig &experts = config.experts;
  // Checkpoints of the bare model lack the prefix.
  const bool prefixed = weights
                            ->describe(std::string(names.prefix) +
                                       std::string(names.embedding) + ".weight")
                            .ok();
  auto stacks = std::make_unique<ExpertStacks>(std::move(weights), form);
  Status status;
  for (int64_t layer = 0; layer < config.layers && status.ok(); ++layer) {
    if (!config.hasExperts(layer))
      continue;
    const std::string at = std::string(prefixed ? names.prefix : "") +
                           std::string(names.layer) + "." +
                           std::to_string(layer) + ".";
    std::vector<ExpertStacks::Parts> gateUp, down;
    for (int64_t i = 0; i < experts.count; ++i) {
      gateUp.push_back({at + names.ofExpert(names.expertGate, i),
                        at + names.ofExpert(names.expertUp, i)});
      down.push_back({at + names.ofExpert(names.expertDown, i)});
    }
    const std::string stack = at + std::string(names.experts) + ".";
    status = stacks->add(stack + "gate_up_proj", experts.width,
                         config.hiddenSize, gateUp);
    if (status.ok())
      status = stacks->add(stack + "down_proj", config.hiddenSize,
                           experts.width, down);
  }
  weights = std::move(stacks);
  return status;
}

/// Shows what GGUF files have of linear attention as other checkpoints do.
static Status adaptLinearTensors(const ModelConfig &config,
                                 std::unique_ptr<WeightSource> &weights) {
  const TensorNames &names = tensorNames(config);
  const LinearAttentionConfig &linear = config.linear;
  const int64_t keys = linear.keyHeads * linear.keyDim;
  const int64_t times =
      names.tiledHeads ? linear.valueHeads / linear.keyHeads : 1;
  auto tensors = std::make_unique<LinearTensors>(std::move(weights));
  Status status;
  for (int64_t layer = 0; layer < config.layers && status.ok(); ++layer) {
    if (!config.layer(layer).isLinear)
      continue;
    const std::string at =
        std::string(names.layer) + "." + std::to_string(layer) + ".";
    status = tensors->addDecay(at + std::string(names.linearDecay),
                               linear.valueHeads);
    if (status.ok())
      status = tensors->addConvolution(
          at + std::string(names.convolution) + ".weight",
          {{keys, times},
           {keys, times},
           {linear.valueHeads * linear.valueDim, 1}},
          linear.taps);
  }
  weights = std::move(tensors);
  return status;
}

Status kf::adaptStoredTensors(const ModelConfig &config,
                              std::unique_ptr<WeightSource> &weights) try {
  const bool gguf = config.naming == TensorNaming::Gguf;
  if (familyOf(config.architecture).wrapperType && !gguf)
    KF_RETURN_IF_ERROR(unwrapTensors(weights));
  if (gguf && config.hasStates())
    KF_RETURN_IF_ERROR(adaptLinearTensors(config, weights));
  if (config.architecture == Architecture::GptOss && !gguf)
    return unstackExperts(config, {.inTurns = true, .hasBiases = true},
                          weights);
  if (config.architecture == Architecture::Llama4 && !gguf)
    return unstackExperts(config, {}, weights);
  std::vector<TensorSplitter::Layer> splits;
  if (config.architecture == Architecture::Phi3)
    splits.push_back(&TensorSplitter::splitProjections);
  if (config.latent.width)
    splits.push_back(gguf ? &TensorSplitter::splitGgufLatent
                          : &TensorSplitter::splitLatent);
  if (config.experts.count > 0 && gguf)
    splits.push_back(&TensorSplitter::splitGgufExperts);
  else if (!tensorNames(config).stackedInputs.empty())
    splits.push_back(&TensorSplitter::splitExperts);
  const bool stacksStreams = gguf && config.streams.count > 1;
  if (splits.empty() && !stacksStreams)
    return Status();
  TensorSplitter splitter(config, std::move(weights));
  Status status = stacksStreams ? splitter.splitStreams() : Status();
  for (TensorSplitter::Layer split : splits)
    if (status.ok())
      status = splitter.split(split);
  weights = splitter.take();
  return status;
} catch (...) {
  return statusOfException();
}
