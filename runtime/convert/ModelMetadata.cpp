//===- ModelMetadata.cpp - A configuration as GGUF metadata ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/ModelMetadata.h"

#include "runtime/core/Quote.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/SamplingDefaults.h"

#include <algorithm>
#include <cmath>

using namespace kf;

namespace {

Status inexpressible(const std::string &what) {
  return Status::error("a GGUF file cannot say that " + what);
}

/// What every GGUF model of an architecture has, and its metadata does not
/// mention.
Status checkImplied(const ModelConfig &config) {
  if (const std::string_view name = nameOf(ggufArchitecture(config));
      !isGgufArchitecture(name))
    return Status::error("GGUF files of the architecture " + inQuotes(name) +
                             " are not supported",
                         StatusCode::Unsupported);
  if (config.activation != ggufActivation(config.architecture))
    return inexpressible(
        "the model's activation is not " +
        std::string(familyOf(config.architecture).defaultActivation));
  const double scale = 1 / std::sqrt(static_cast<double>(config.headDim));
  if (config.architecture != Architecture::Granite &&
      std::fabs(config.attentionScale - scale) > 1e-6 * scale)
    return inexpressible("attention is not scaled by the head dimension");
  for (const LayerConfig &layer : config.layerConfigs)
    if (layer.window != config.layerConfigs.front().window)
      return inexpressible("some layers have a sliding window and others have "
                           "none");
  const RopeConfig *rope = ggufRope(config);
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::optional<RopeConfig> &own = config.layerConfigs[i].rope;
    const bool isTurned = rope && isTurnedInGguf(config.architecture, i);
    if (own.has_value() != isTurned || (own && *own != *rope))
      return inexpressible("layer " + std::to_string(i) +
                           " has another RoPE than the architecture's");
  }
  if (!rope)
    return Status();
  if (rope->scaling == RopeConfig::Scaling::Yarn)
    return inexpressible("RoPE is scaled by yarn");
  if (rope->scaling == RopeConfig::Scaling::LongRope)
    return inexpressible("RoPE is scaled by longrope");
  for (auto [name, value] :
       {std::pair("theta", rope->theta), std::pair("factor", rope->factor)})
    if (const float stored = static_cast<float>(value);
        !std::isfinite(stored) || stored == 0)
      return inexpressible(std::string("the RoPE's ") + name +
                           " is a number beyond the range of F32");
  return Status();
}

/// Most layers that llama.cpp has room for.
constexpr int64_t kReaderLayers = 512;

bool isScaledAsLlama3(const ModelConfig &config) {
  const RopeConfig *rope = ggufRope(config);
  return rope && rope->scaling == RopeConfig::Scaling::Llama3;
}

class MetadataAdder {
public:
  MetadataAdder(std::string architecture, GgufMetadata &metadata)
      : architecture(std::move(architecture)), metadata(metadata) {}

  void integer(const std::string &key, int64_t value) {
    metadata.addU32(architecture + "." + key, static_cast<uint32_t>(value));
  }
  void real(const std::string &key, double value) {
    metadata.addF32(architecture + "." + key, static_cast<float>(value));
  }
  void text(const std::string &key, const std::string &value) {
    metadata.addText(architecture + "." + key, value);
  }

private:
  std::string architecture;
  GgufMetadata &metadata;
};

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

const RopeConfig *kf::ggufRope(const ModelConfig &config) {
  for (const LayerConfig &layer : config.layerConfigs)
    if (layer.rope)
      return &*layer.rope;
  return nullptr;
}

bool kf::isBeyondQwen2(const ModelConfig &config) {
  return config.architecture == Architecture::Qwen2 &&
         (config.heads * config.headDim != config.hiddenSize ||
          isScaledAsLlama3(config));
}

Architecture kf::ggufArchitecture(const ModelConfig &config) {
  return config.architecture == Architecture::Mistral || isBeyondQwen2(config)
             ? Architecture::Llama
             : config.architecture;
}

std::vector<std::string> kf::listReaderProblems(const ModelConfig &config) {
  std::vector<std::string> problems;
  const std::string name(nameOf(ggufArchitecture(config)));
  const bool qwen3 = config.architecture == Architecture::Qwen3;
  if (qwen3 && config.attentionOutputBias)
    problems.push_back("llama.cpp will not load the file: its qwen3 has no "
                       "biases of the attention's output (such as "
                       "blk.0.attn_output.bias)");
  if (qwen3 && isScaledAsLlama3(config))
    problems.push_back("llama.cpp will not load the file: its qwen3 has no "
                       "RoPE scaling of Llama 3's kind (rope_freqs.weight)");
  if (config.layers > kReaderLayers)
    problems.push_back("llama.cpp will not load the file: " + name +
                       ".block_count is " + std::to_string(config.layers) +
                       ", of which it takes " + std::to_string(kReaderLayers));
  const int64_t window =
      config.layerConfigs.empty() ? 0 : config.layerConfigs.front().window;
  if (window > 0 && window < config.maxPositions)
    problems.push_back(
        "llama.cpp will not heed " + name + ".attention.sliding_window: past " +
        std::to_string(window) + " positions, its results are not the model's");
  return problems;
}

Status kf::addModelMetadata(const ModelConfig &config, const std::string &name,
                            GgufMetadata &metadata) {
  KF_RETURN_IF_ERROR(checkImplied(config));
  const Architecture architecture = ggufArchitecture(config);
  metadata.addText("general.architecture", nameOf(architecture));
  metadata.addText("general.name", name);
  MetadataAdder add(std::string(nameOf(architecture)), metadata);
  add.integer("block_count", config.layers);
  add.integer("context_length", config.maxPositions);
  add.integer("embedding_length", config.hiddenSize);
  add.integer("feed_forward_length", config.intermediateSize);
  add.integer("attention.head_count", config.heads);
  add.integer("attention.head_count_kv", config.kvHeads);
  add.real(config.norm == Norm::Layer ? "attention.layer_norm_epsilon"
                                      : "attention.layer_norm_rms_epsilon",
           config.normEps);
  if (config.headDim * config.heads != config.hiddenSize ||
      config.architecture == Architecture::Qwen3) {
    add.integer("attention.key_length", config.headDim);
    add.integer("attention.value_length", config.headDim);
  }
  if (config.architecture == Architecture::Granite) {
    add.real("attention.scale", config.attentionScale);
    add.real("embedding_scale", config.embeddingScale);
    add.real("residual_scale", config.residualScale);
    add.real("logit_scale", 1 / config.logitScale);
  }
  if (!config.layerConfigs.empty() && config.layerConfigs.front().window > 0)
    add.integer("attention.sliding_window", config.layerConfigs.front().window);
  if (const RopeConfig *rope = ggufRope(config)) {
    add.integer("rope.dimension_count", config.headDim);
    add.real("rope.freq_base", rope->theta);
    // Llama 3's scaling is the tensor rope_freqs.weight.
    if (rope->scaling == RopeConfig::Scaling::Linear) {
      add.text("rope.scaling.type", "linear");
      add.real("rope.scaling.factor", rope->factor);
    }
  }
  add.integer("vocab_size", config.vocabSize);
  addSampling(config.sampling, metadata);
  return Status();
}
