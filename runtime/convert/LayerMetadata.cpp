//===- LayerMetadata.cpp - What layers do as GGUF metadata ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/LayerMetadata.h"

#include "runtime/convert/ModelMetadata.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufExperts.h"
#include "runtime/model/GgufLatent.h"
#include "runtime/model/GgufLayerSizes.h"
#include "runtime/model/GgufLinear.h"
#include "runtime/model/GgufStreams.h"
#include "runtime/model/ModelFamily.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

using namespace kf;

Status kf::inexpressible(const std::string &what) {
  return Status::error("a GGUF file cannot say that " + what);
}

/// Every so many-th layer that has experts, as files of Llama 4 say it.
static int64_t expertStep(const ModelConfig &config) {
  const auto first =
      std::ranges::find(config.layerConfigs, true, &LayerConfig::hasExperts);
  return first - config.layerConfigs.begin() + 1;
}

/// How many of the first layers have no experts.
static int64_t plainLayers(const ModelConfig &config) {
  return expertStep(config) - 1;
}

/// Which layers have experts.
static Status checkExpertLayers(const ModelConfig &config) {
  if (config.experts.count == 0)
    return Status();
  const bool isFirst = familyOf(config.architecture).experts.firstPlain;
  const bool isEvery = config.architecture == Architecture::Llama4;
  for (int64_t i = 0; i < config.layers; ++i) {
    const bool has = isFirst   ? i >= plainLayers(config)
                     : isEvery ? (i + 1) % expertStep(config) == 0
                               : true;
    if (config.hasExperts(i) == has)
      continue;
    return inexpressible("layer " + std::to_string(i) + " has " +
                         (has ? "no experts ('mlp_only_layers' or "
                                "'decoder_sparse_step')"
                              : "experts ('moe_layers')"));
  }
  return Status();
}

/// What goes without saying in files of Llama 4.
static Status checkChunks(const ModelConfig &config) {
  const Family &own = familyOf(config.architecture);
  if (!own.chunked)
    return Status();
  const QueryGrowth growth = {own.queryGrowth.defaultScale,
                              own.queryGrowth.defaultPeriod};
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig &layer = config.layerConfigs[i];
    const std::string number = "layer " + std::to_string(i);
    const bool turns = isTurnedInGguf(config.architecture, i, false);
    if (layer.window != (turns ? own.defaultWindow : 0))
      return inexpressible(number + " has chunks of " +
                           std::to_string(layer.window) + " rather than " +
                           std::to_string(turns ? own.defaultWindow : 0) +
                           " positions ('attention_chunk_size')");
    if (turns ? layer.queryGrowth.has_value() : layer.queryGrowth != growth)
      return inexpressible(
          number + "'s queries grow by other numbers than 0.1 and 8192 "
                   "('attn_temperature_tuning', 'attn_scale', 'floor_scale')");
  }
  if ((config.qkNorm != QkNorm::None) != hasGgufQkNorm(config))
    return inexpressible("queries and keys are " +
                         std::string(hasGgufQkNorm(config) ? "not " : "") +
                         "normalized ('use_qk_norm')");
  if (config.experts.sharedWidth != config.experts.width)
    return inexpressible("the shared expert has another width than others");
  return Status();
}

/// Sizes that files have for layers with a window, and for others.
static Status checkSizes(const ModelConfig &config) {
  if (familyOf(config.architecture).streams.count && !config.streams.scaled)
    return inexpressible("the corrected stream is not scaled "
                         "('altup_correct_scale')");
  const bool shares = familyOf(config.architecture).sizes.sharing;
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig &layer = config.layerConfigs[i];
    if (!shares && (layer.keysOf || layer.headDim || layer.kvHeads ||
                    layer.intermediateSize))
      return inexpressible("layer " + std::to_string(i) +
                           " has other sizes than the model");
    if (layer.window > 0 && layer.headDim)
      return inexpressible("layer " + std::to_string(i) +
                           ", which has a window, has heads of its own");
  }
  return Status();
}

Status kf::checkLayers(const ModelConfig &config) {
  KF_RETURN_IF_ERROR(checkExpertLayers(config));
  KF_RETURN_IF_ERROR(checkChunks(config));
  return checkSizes(config);
}

void kf::addSizes(const ModelConfig &config, MetadataAdder &add) {
  const LayerSizeFields &fields = familyOf(config.architecture).sizes;
  std::vector<int32_t> widths, kvHeads;
  int64_t fullDim = config.headDim;
  int32_t sharing = 0;
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig own = config.layer(i);
    widths.push_back(static_cast<int32_t>(own.intermediateSize));
    kvHeads.push_back(static_cast<int32_t>(own.kvHeads));
    sharing += own.keysOf ? 1 : 0;
    if (own.window == 0)
      fullDim = own.headDim;
  }
  const auto addFor = [&](const std::string &key,
                          const std::vector<int32_t> &values, int64_t all) {
    if (std::ranges::all_of(values, [&](int32_t v) { return v == all; }))
      add.integer(key, all);
    else
      add.integers(key, values);
  };
  addFor("feed_forward_length", widths, config.intermediateSize);
  add.integer("attention.head_count", config.heads);
  if (config.latent.width || fields.sharing == nullptr) {
    add.integer("attention.head_count_kv", config.kvHeads);
  } else {
    addFor("attention.head_count_kv", kvHeads, config.kvHeads);
    add.integer(std::string(kGgufSharing), sharing);
  }
  if (config.latent.width)
    return;
  if (fields.fullHeadDim ||
      config.headDim * config.heads != config.hiddenSize ||
      config.architecture == Architecture::Qwen3 ||
      config.architecture == Architecture::Qwen3Moe) {
    add.integer("attention.key_length", fullDim);
    add.integer("attention.value_length", fullDim);
  }
  if (fields.fullHeadDim) {
    add.integer(std::string(kGgufSlidingKey), config.headDim);
    add.integer(std::string(kGgufSlidingValue), config.headDim);
  }
}

void kf::addLatentMetadata(const ModelConfig &config, MetadataAdder &add) {
  const LatentConfig &latent = config.latent;
  if (!latent.width)
    return;
  if (latent.queryWidth)
    add.integer(std::string(kGgufQueryRow), latent.queryWidth);
  add.integer(std::string(kGgufKeyRow), latent.width);
  add.integer("attention.key_length", latent.width + latent.turnedDim);
  add.integer("attention.value_length", latent.width);
  add.integer(std::string(kGgufLatentKey), latent.plainDim + latent.turnedDim);
  add.integer(std::string(kGgufLatentValue), latent.valueDim);
  const RopeConfig *rope = ggufRopes(config).full;
  if (!rope || rope->scaling != RopeConfig::Scaling::Yarn ||
      isUsualScale(config))
    return;
  const double magnitude =
      std::sqrt(config.attentionScale / ggufAttentionScale(config));
  add.real(std::string(kGgufYarnScale),
           (magnitude - 1) / std::log(rope->factor));
}

void kf::addStreamMetadata(const ModelConfig &config, MetadataAdder &add) {
  const Family &family = familyOf(config.architecture);
  if (!family.tokenInputWidth)
    return;
  add.integer(std::string(kGgufTokenInputs), config.tokenInputWidth);
  if (!family.streams.count)
    return;
  add.integer(std::string(kGgufStreams), config.streams.count);
  add.integer(std::string(kGgufActiveStream), config.streams.active);
  std::vector<float> cutoffs;
  for (const LayerConfig &layer : config.layerConfigs)
    cutoffs.push_back(layer.gateCutoff
                          ? static_cast<float>(*layer.gateCutoff)
                          : -std::numeric_limits<float>::infinity());
  add.reals(std::string(kGgufCutoffs), cutoffs);
}

void kf::addRouterMetadata(const ModelConfig &config, MetadataAdder &add) {
  const ExpertsConfig &experts = config.experts;
  if (experts.count == 0)
    return;
  if (config.architecture == Architecture::Llama4)
    add.integer(std::string(kGgufExpertStep), expertStep(config));
  if (!familyOf(config.architecture).experts.groups)
    return;
  add.integer(std::string(kGgufGating), 2); // sigmoid
  add.flag(std::string(kGgufExpertsNormalized), experts.normalized);
  add.real(std::string(kGgufExpertsScale), experts.scale);
  add.integer(std::string(kGgufSharedCount),
              experts.sharedWidth / experts.width);
  add.integer(std::string(kGgufPlainLayers), plainLayers(config));
  if (experts.groups > 1) {
    add.integer(std::string(kGgufExpertGroups), experts.groups);
    add.integer(std::string(kGgufKeptGroups), experts.keptGroups);
  }
}

/// The number p of which every p-th layer, and no other, has no linear
/// attention; nothing where there is none.
static std::optional<int64_t> fullInterval(const ModelConfig &config) {
  for (int64_t p = 1; p <= config.layers + 1; ++p) {
    bool fits = true;
    for (int64_t i = 0; i < config.layers; ++i)
      fits &= config.layerConfigs[i].isLinear == ((i + 1) % p != 0);
    if (fits)
      return p;
  }
  return std::nullopt;
}

void kf::addLinearMetadata(const ModelConfig &config, MetadataAdder &add) {
  const LinearAttentionConfig &linear = config.linear;
  if (!familyOf(config.architecture).linear.areRead)
    return;
  std::vector<bool> layers;
  for (const LayerConfig &layer : config.layerConfigs)
    layers.push_back(layer.isLinear);
  add.flags(std::string(kGgufLinearLayers), layers);
  // Older readers know this one.
  if (const std::optional<int64_t> interval = fullInterval(config))
    add.integer(std::string(kGgufFullInterval), *interval);
  if (config.hasStates()) {
    add.integer(std::string(kGgufTaps), linear.taps);
    add.integer(std::string(kGgufKeyDim), linear.keyDim);
    add.integer(std::string(kGgufKeyHeads), linear.keyHeads);
    add.integer(std::string(kGgufValueHeads), linear.valueHeads);
    add.integer(std::string(kGgufValues), linear.valueHeads * linear.valueDim);
  }
  if (!familyOf(config.architecture).mixesPositions)
    return;
  // Which pairs turn by which position of an image; for texts all are one.
  const auto attends =
      std::ranges::find(config.layerConfigs, false, &LayerConfig::isLinear);
  if (attends == config.layerConfigs.end() || !attends->rope)
    return;
  const auto pairs = static_cast<int32_t>(attends->rope->dim / 2);
  add.integers("rope.dimension_sections",
               {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0});
}
