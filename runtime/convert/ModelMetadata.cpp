//===- ModelMetadata.cpp - A configuration as GGUF metadata ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/ModelMetadata.h"

#include "runtime/convert/LayerMetadata.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufExperts.h"
#include "runtime/model/GgufRope.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/RopeFactors.h"
#include "runtime/model/SamplingDefaults.h"

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace kf;

namespace {

/// The most positions back that a layer attends; 0 where all see everything.
int64_t longestWindow(const ModelConfig &config) {
  const std::vector<int64_t> windows = config.windows();
  return windows.empty() ? 0 : std::ranges::max(windows);
}

/// That scores and logits are capped, or not, as the architecture's are.
Status checkCaps(const ModelConfig &config) {
  const Family &own = familyOf(config.architecture);
  if (own.defaultAttentionCap > 0 && config.attentionCap == 0)
    return inexpressible("attention's scores have no cap");
  if (own.defaultAttentionCap == 0 && config.attentionCap > 0)
    return inexpressible("attention's scores have a cap");
  if (own.defaultLogitCap > 0 && config.logitCap == 0)
    return inexpressible("logits have no cap");
  return Status();
}

/// That what gates of experts are clamped by is what files are silent about.
Status checkClamp(const ModelConfig &config) {
  const ExpertFields &fields = familyOf(config.architecture).experts;
  if (!config.experts.clamp)
    return Status();
  const GateClamp &clamp = *config.experts.clamp;
  for (auto [name, value, usual] :
       {std::tuple(fields.clampLimit, clamp.limit, fields.defaultClampLimit),
        std::tuple(fields.clampAlpha, clamp.alpha, fields.defaultClampAlpha)})
    if (value != usual)
      return inexpressible(inQuotes(name) + " is " + spellNumber(value) +
                           " rather than " + spellNumber(usual));
  return Status();
}

/// That probabilities of experts, and gates, are as files have them.
Status checkExperts(const ModelConfig &config) {
  const ExpertFields &fields = familyOf(config.architecture).experts;
  if (!fields.count || config.experts.count == 0)
    return Status();
  if (!fields.groups &&
      config.experts.normalized != isNormalizedInGguf(config.architecture))
    return inexpressible(
        "the probabilities of the experts that are chosen are " +
        std::string(config.experts.normalized ? "" : "not ") +
        "divided by their sum ('norm_topk_prob')");
  return checkClamp(config);
}

/// That layers turn queries and keys by the RoPEs that the file has.
Status checkRopes(const ModelConfig &config) {
  const GgufRopePlan ropes = ggufRopes(config);
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig &layer = config.layerConfigs[i];
    if (layer.isLinear)
      continue;
    const bool slides = layer.window > 0;
    const RopeConfig *rope = slides ? ropes.sliding : ropes.full;
    const bool isTurned =
        rope && isTurnedInGguf(config.architecture, i, slides);
    if (layer.rope.has_value() != isTurned ||
        (isTurned && *layer.rope != *rope))
      return inexpressible("layer " + std::to_string(i) +
                           " has another RoPE than the architecture's");
  }
  const RopeConfig *rope = ropes.full;
  if (!rope)
    return Status();
  const Family &own = familyOf(config.architecture);
  if (own.interleavedField &&
      rope->interleaved != isInterleavedInGguf(config.architecture))
    return inexpressible("RoPE turns halves of heads rather than neighbours (" +
                         inQuotes(own.interleavedField) + ")");
  // Readers expect a table of the proportional one, whose place is taken then.
  if (own.proportionalRope && (rope->scaling == RopeConfig::Scaling::Yarn ||
                               rope->scaling == RopeConfig::Scaling::Llama3))
    return inexpressible("RoPE of layers without a window is scaled by " +
                         std::string(rope->scaling == RopeConfig::Scaling::Yarn
                                         ? "yarn"
                                         : "llama3"));
  if (own.ropeByType && longestWindow(config) > 0 &&
      (ropes.sliding->scaling != RopeConfig::Scaling::None ||
       (ropes.sliding->dim != rope->dim && !own.sizes.fullHeadDim)))
    return inexpressible("layers with a window scale RoPE, or turn another "
                         "part of heads");
  if (const bool isTruncated = isYarnTruncatedInGguf(config.architecture);
      rope->scaling == RopeConfig::Scaling::Yarn &&
      rope->truncate != isTruncated)
    return inexpressible("yarn's bounds are " +
                         std::string(isTruncated ? "no " : "") +
                         "whole numbers ('truncate')");
  if (rope->scaling == RopeConfig::Scaling::LongRope &&
      config.architecture != Architecture::Phi3)
    return inexpressible("RoPE is scaled by longrope");
  if (rope->scaling == RopeConfig::Scaling::Proportional &&
      !own.proportionalRope)
    return inexpressible("RoPE is scaled by proportional");
  for (auto [name, value] :
       {std::pair("theta", rope->theta), std::pair("factor", rope->factor),
        std::pair("theta", ropes.sliding->theta)})
    if (const float stored = static_cast<float>(value);
        !std::isfinite(stored) || stored == 0)
      return inexpressible(std::string("the RoPE's ") + name +
                           " is a number beyond the range of F32");
  return Status();
}

/// What every GGUF model of an architecture has, and its metadata does not
/// mention.
Status checkImplied(const ModelConfig &config) {
  const Family &own = familyOf(config.architecture);
  if (const Architecture architecture = ggufArchitecture(config);
      ggufNameOf(architecture).empty())
    return Status::error("GGUF files of the architecture " +
                             inQuotes(nameOf(architecture)) +
                             " are not supported",
                         StatusCode::Unsupported);
  if (config.activation != ggufActivation(config.architecture))
    return inexpressible("the model's activation is not " +
                         std::string(own.defaultActivation));
  if (!own.attentionScale && !own.scoreDivisor && !config.latent.width &&
      !isUsualScale(config))
    return inexpressible("attention is not scaled by the head dimension");
  if (!ggufFullLayers(config.architecture))
    for (const LayerConfig &layer : config.layerConfigs)
      if (layer.window != config.layerConfigs.front().window)
        return inexpressible("some layers have a sliding window and others "
                             "have none");
  KF_RETURN_IF_ERROR(checkLayers(config));
  KF_RETURN_IF_ERROR(checkCaps(config));
  KF_RETURN_IF_ERROR(checkExperts(config));
  return checkRopes(config);
}

void addExperts(const ModelConfig &config, MetadataAdder &add) {
  const ExpertsConfig &experts = config.experts;
  if (experts.count == 0)
    return;
  add.integer(std::string(kGgufExpertCount), experts.count);
  add.integer(std::string(kGgufExpertsChosen), experts.chosen);
  if (hasGgufExpertWidth(config.architecture))
    add.integer(std::string(kGgufExpertWidth), experts.width);
  if (experts.sharedWidth > 0 &&
      familyOf(config.architecture).experts.sharedGate)
    add.integer(std::string(kGgufSharedWidth), experts.sharedWidth);
}

void addScales(const ModelConfig &config, MetadataAdder &add) {
  const Family &own = familyOf(config.architecture);
  if (own.attentionScale || (!isUsualScale(config) && !config.latent.width))
    add.real("attention.scale", config.attentionScale);
  if (own.logitDivisor) {
    add.real("embedding_scale", config.embeddingScale);
    add.real("residual_scale", config.residualScale);
    add.real("logit_scale", 1 / config.logitScale);
  }
  if (own.logitScale)
    add.real("logit_scale", config.logitScale);
  if (config.attentionCap > 0)
    add.real("attn_logit_softcapping", config.attentionCap);
  if (config.logitCap > 0)
    add.real("final_logit_softcapping", config.logitCap);
}

void addWindows(const ModelConfig &config, MetadataAdder &add) {
  const Family &own = familyOf(config.architecture);
  if (own.chunked)
    return; // goes without saying
  int64_t window = longestWindow(config);
  // Where readers take it that there is one, no layer has it.
  const bool isImplied = config.architecture == Architecture::Gemma2 ||
                         config.architecture == Architecture::Gemma3n ||
                         config.architecture == Architecture::Gemma4 ||
                         config.architecture == Architecture::Cohere2 ||
                         config.architecture == Architecture::GptOss;
  if (window == 0 && isImplied)
    window = config.maxPositions;
  if (window == 0)
    return;
  add.integer("attention.sliding_window", window);
  if (!own.fullLayers)
    return;
  const char *key = "attention.sliding_window_pattern";
  // Readers of Gemma 4's files expect an array.
  const std::optional<int64_t> period = slidingPeriod(config);
  if (period && !own.sizes.sharing) {
    add.integer(key, *period);
    return;
  }
  std::vector<bool> slides;
  for (const LayerConfig &layer : config.layerConfigs)
    slides.push_back(layer.window > 0);
  add.flags(key, slides);
}

void addRope(const ModelConfig &config, MetadataAdder &add) {
  const GgufRopePlan ropes = ggufRopes(config);
  if (!ropes.full)
    return;
  const RopeConfig &rope = *ropes.full;
  add.integer("rope.dimension_count", rope.dim);
  add.real("rope.freq_base", rope.theta);
  if (familyOf(config.architecture).sizes.fullHeadDim)
    add.integer(std::string(kGgufSlidingTurned), ropes.sliding->dim);
  if (familyOf(config.architecture).ropeByType && longestWindow(config) > 0)
    add.real("rope.freq_base_swa", ropes.sliding->theta);
  const auto addOriginal = [&] {
    add.integer("rope.scaling.original_context_length", rope.originalContext);
  };
  switch (rope.scaling) {
  case RopeConfig::Scaling::None:
  case RopeConfig::Scaling::Llama3: // the tensor rope_freqs.weight
  case RopeConfig::Scaling::Proportional:
    return;
  case RopeConfig::Scaling::Linear:
    add.text("rope.scaling.type", "linear");
    add.real("rope.scaling.factor", rope.factor);
    return;
  case RopeConfig::Scaling::Yarn: {
    add.text("rope.scaling.type", "yarn");
    add.real("rope.scaling.factor", rope.factor);
    addOriginal();
    add.real("rope.scaling.yarn_beta_fast", rope.betaFast);
    add.real("rope.scaling.yarn_beta_slow", rope.betaSlow);
    const double more =
        rope.magnitude / (config.latent.width && !isUsualScale(config)
                              ? 1
                              : yarnMagnitude(rope.factor));
    if (std::fabs(more - 1) > 1e-6)
      add.real("rope.scaling.attn_factor", more);
    return;
  }
  case RopeConfig::Scaling::LongRope:
    add.text("rope.scaling.type", "longrope");
    addOriginal();
    add.real("rope.scaling.attn_factor", rope.magnitude);
    return;
  }
}

void addSampling(const SamplingDefaults &sampling, GgufMetadata &metadata) {
  auto add = [&](const char *key, std::optional<double> value) {
    if (value)
      metadata.addF32(key, static_cast<float>(*value));
  };
  // Readers draw where a file says how to, so one that does not draw says so.
  const bool says = sampling.topK || sampling.topP || sampling.minP;
  add(kGgufTemperature,
      says && !sampling.temperature ? 0.0 : sampling.temperature);
  if (sampling.topK)
    metadata.addI32(kGgufTopK, static_cast<int32_t>(*sampling.topK));
  add(kGgufTopP, sampling.topP);
  add(kGgufMinP, sampling.minP);
  add(kGgufRepetitionPenalty, sampling.repetitionPenalty);
}

} // namespace

GgufRopePlan kf::ggufRopes(const ModelConfig &config) {
  GgufRopePlan ropes;
  for (const LayerConfig &layer : config.layerConfigs) {
    const RopeConfig *&rope = layer.window > 0 ? ropes.sliding : ropes.full;
    if (layer.rope && !rope)
      rope = &*layer.rope;
  }
  if (!ropes.full)
    ropes.full = ropes.sliding;
  if (!ropes.sliding || !familyOf(config.architecture).ropeByType)
    ropes.sliding = ropes.full;
  return ropes;
}

std::optional<int64_t> kf::slidingPeriod(const ModelConfig &config) {
  const std::vector<LayerConfig> &layers = config.layerConfigs;
  auto fits = [&](int64_t period) {
    for (size_t i = 0; i < layers.size(); ++i)
      if ((layers[i].window > 0) != ((i + 1) % period != 0))
        return false;
    return true;
  };
  // Where layers end before it does, the usual one is among several.
  const int64_t usual = familyOf(config.architecture).fullLayers;
  if (usual > 0 && fits(usual))
    return usual;
  const int64_t most = std::min(config.layers + 1, kMaxLayers);
  for (int64_t period = 1; period <= most; ++period)
    if (fits(period))
      return period;
  return std::nullopt;
}

bool kf::isScaledAsLlama3(const ModelConfig &config) {
  const RopeConfig *rope = ggufRopes(config).full;
  return rope && rope->scaling == RopeConfig::Scaling::Llama3;
}

bool kf::isUsualScale(const ModelConfig &config) {
  const double scale = ggufAttentionScale(config);
  return std::fabs(config.attentionScale - scale) <= 1e-6 * scale;
}

bool kf::isBeyondQwen2(const ModelConfig &config) {
  return config.architecture == Architecture::Qwen2 &&
         (config.heads * config.headDim != config.hiddenSize ||
          isScaledAsLlama3(config));
}

Architecture kf::ggufArchitecture(const ModelConfig &config) {
  if (config.architecture == Architecture::Mistral ||
      config.architecture == Architecture::Mixtral || isBeyondQwen2(config))
    return Architecture::Llama;
  return config.architecture == Architecture::Olmo3 ? Architecture::Olmo2
                                                    : config.architecture;
}

Status kf::addModelMetadata(const ModelConfig &config, const std::string &name,
                            GgufMetadata &metadata) {
  KF_RETURN_IF_ERROR(checkImplied(config));
  const std::string_view architecture = ggufNameOf(ggufArchitecture(config));
  metadata.addText("general.architecture", architecture);
  metadata.addText("general.name", name);
  MetadataAdder add(std::string(architecture), metadata);
  add.integer("block_count", config.layers);
  add.integer("context_length", config.maxPositions);
  add.integer("embedding_length", config.hiddenSize);
  addSizes(config, add);
  add.real(config.norm == Norm::Layer ? "attention.layer_norm_epsilon"
                                      : "attention.layer_norm_rms_epsilon",
           config.normEps);
  if (familyOf(config.architecture).parallelField)
    add.flag("use_parallel_residual", config.parallelBlocks);
  addExperts(config, add);
  addRouterMetadata(config, add);
  addLatentMetadata(config, add);
  addStreamMetadata(config, add);
  addScales(config, add);
  addWindows(config, add);
  addRope(config, add);
  addLinearMetadata(config, add);
  add.integer("vocab_size", config.vocabSize);
  addSampling(config.sampling, metadata);
  return Status();
}
