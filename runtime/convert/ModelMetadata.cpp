//===- ModelMetadata.cpp - A configuration as GGUF metadata ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/ModelMetadata.h"

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
  const bool gpt2 = config.architecture == Architecture::Gpt2;
  if (config.activation != (gpt2 ? Activation::GeluTanh : Activation::Silu))
    return inexpressible("the model's activation is not " +
                         std::string(gpt2 ? "gelu_new" : "silu"));
  const double scale = 1 / std::sqrt(static_cast<double>(config.headDim));
  if (std::fabs(config.attentionScale - scale) > 1e-6 * scale)
    return inexpressible("attention is not scaled by the head dimension");
  for (int64_t window : config.windows)
    if (window != config.windows.front())
      return inexpressible("some layers have a sliding window and others have "
                           "none");
  return Status();
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

} // namespace

Status kf::addModelMetadata(const ModelConfig &config, const std::string &name,
                            GgufMetadata &metadata) {
  KF_RETURN_IF_ERROR(checkImplied(config));
  // Mistral's files say llama.
  const Architecture architecture = config.architecture == Architecture::Mistral
                                        ? Architecture::Llama
                                        : config.architecture;
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
  if (!config.windows.empty() && config.windows.front() > 0)
    add.integer("attention.sliding_window", config.windows.front());
  if (config.rope) {
    add.integer("rope.dimension_count", config.headDim);
    add.real("rope.freq_base", config.rope->theta);
    // Llama 3's scaling is the tensor rope_freqs.weight.
    if (config.rope->scaling == RopeConfig::Scaling::Linear) {
      add.text("rope.scaling.type", "linear");
      add.real("rope.scaling.factor", config.rope->factor);
    }
  }
  add.integer("vocab_size", config.vocabSize);
  return Status();
}
