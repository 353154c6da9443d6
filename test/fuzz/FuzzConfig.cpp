//===- FuzzConfig.cpp - config.json and the files beside it ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ChatConfig.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/RopeFactors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

/// Whether a sampler would take it.
static bool isInRange(const kf::SamplingDefaults &sampling) {
  return sampling.temperature.value_or(0) >= 0 &&
         sampling.topK.value_or(0) >= 0 && sampling.topP.value_or(1) > 0 &&
         sampling.topP.value_or(1) <= 1 && sampling.minP.value_or(0) >= 0 &&
         sampling.minP.value_or(0) <= 1 &&
         sampling.repetitionPenalty.value_or(1) > 0;
}

/// Whether f32 can be multiplied by it.
static bool isFactor(double scale) {
  return scale > 0 && std::isnormal(static_cast<float>(scale));
}

/// Whether heads can be turned so.
static bool canTurn(const kf::RopeConfig &rope, const kf::ModelConfig &config,
                    int64_t headDim) {
  const size_t pairs = static_cast<size_t>(rope.dim) / 2;
  const std::vector<float> factors = kf::ropeFactors(rope);
  return rope.dim > 0 && rope.dim % 2 == 0 && rope.dim <= headDim &&
         rope.theta >= 1 && std::isfinite(rope.theta) && rope.factor > 0 &&
         (factors.empty() || factors.size() == pairs) &&
         std::ranges::all_of(factors, isFactor) && isFactor(rope.magnitude) &&
         isFactor(config.attentionScale * rope.magnitude * rope.magnitude);
}

/// Whether layers that have experts can choose some.
static bool hasSoundExperts(const kf::ModelConfig &config) {
  const kf::ExpertsConfig &experts = config.experts;
  const bool areSound =
      experts.chosen > 0 && experts.chosen <= experts.count &&
      experts.width > 0 && experts.sharedWidth >= 0 &&
      (!experts.sharedGate || experts.sharedWidth > 0) &&
      isFactor(experts.scale) &&
      (experts.groups == 0 ||
       (experts.choiceBias && experts.count % experts.groups == 0 &&
        experts.keptGroups > 0 && experts.keptGroups <= experts.groups)) &&
      (!experts.choiceBias || experts.sigmoid) &&
      (!experts.clamp ||
       (experts.clamp->limit > 0 && experts.clamp->alpha > 0));
  return experts.count > 0 ? areSound
                           : std::ranges::none_of(config.layerConfigs,
                                                  &kf::LayerConfig::hasExperts);
}

/// Whether layers that keep states have heads for these.
static bool hasSoundStates(const kf::ModelConfig &config) {
  const kf::LinearAttentionConfig &linear = config.linear;
  if (!config.hasStates())
    return std::ranges::none_of(config.layerConfigs,
                                &kf::LayerConfig::isLinear);
  return linear.keyDim > 0 && linear.valueDim > 0 && linear.taps > 1 &&
         linear.valueHeads > 0 && linear.valueHeads % linear.keyHeads == 0 &&
         linear.stateElements() <= INT32_MAX;
}

/// Whether each layer has heads that can be turned, and keys.
static bool haveSoundLayers(const kf::ModelConfig &config) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const kf::LayerConfig layer = config.layer(i);
    if (layer.window < 0 || layer.headDim <= 0 || layer.kvHeads <= 0 ||
        layer.intermediateSize <= 0 ||
        !std::isfinite(layer.gateCutoff.value_or(0)) ||
        (layer.chunked && layer.window == 0) ||
        (layer.queryGrowth && (!(layer.queryGrowth->scale >= 0) ||
                               layer.queryGrowth->period <= 0)) ||
        config.heads % layer.kvHeads != 0 ||
        (layer.rope && !canTurn(*layer.rope, config, layer.headDim)))
      return false;
    if (!layer.keysOf)
      continue;
    if (*layer.keysOf < 0 || *layer.keysOf >= i)
      return false;
    const kf::LayerConfig other = config.layer(*layer.keysOf);
    if (other.keysOf || other.headDim != layer.headDim ||
        other.kvHeads != layer.kvHeads)
      return false;
  }
  return true;
}

/// Whether steps can be made of it: those that allocate for it and kernels
/// check none of this.
static bool isSound(const kf::ModelConfig &config) {
  return config.layers > 0 && config.hiddenSize > 0 && config.kvHeads > 0 &&
         config.headDim > 0 && config.intermediateSize > 0 &&
         config.heads % config.kvHeads == 0 &&
         isFactor(config.attentionScale) && isFactor(config.embeddingScale) &&
         isFactor(config.residualScale) && isFactor(config.logitScale) &&
         (config.attentionCap == 0 || isFactor(config.attentionCap)) &&
         (config.logitCap == 0 || isFactor(config.logitCap)) &&
         hasSoundExperts(config) && hasSoundStates(config) &&
         config.streams.count > 0 && config.streams.active >= 0 &&
         config.streams.active < config.streams.count &&
         config.latent.width >= 0 && config.guessingLayers >= 0 &&
         config.narrowWidth >= 0 && config.tokenInputWidth >= 0 &&
         (config.tokenInputWidth == 0 || config.tokenInputVocab > 0) &&
         config.layerConfigs.size() == static_cast<size_t>(config.layers) &&
         haveSoundLayers(config);
}

// config.json up to a NUL byte, where there is one, from there on
// generation_config.json, and behind another one hf_quant_config.json; and the
// whole as tokenizer_config.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  std::array<std::optional<std::string_view>, 3> files = {text};
  for (size_t i = 1; i < files.size() && files[i - 1]; ++i)
    if (const size_t end = files[i - 1]->find('\0');
        end != std::string_view::npos) {
      files[i] = files[i - 1]->substr(end + 1);
      files[i - 1] = files[i - 1]->substr(0, end);
    }
  auto config =
      kf::parseModelConfig(*files[0], files[1].value_or(""), files[2]);
  if (config.ok() && (!isSound(*config) || !isInRange(config->sampling)))
    std::abort();
  // Of a longer context and of a shorter one.
  for (int64_t context : {int64_t(1), int64_t(1) << 30})
    if (config.ok()) {
      kf::settleContext(*config, context);
      if (!isSound(*config))
        std::abort();
    }
  auto chat = kf::parseChatConfig(text);
  if (chat.ok() && chat->chatTemplate.size() > size)
    std::abort();
  return 0;
}
