//===- FuzzGguf.cpp - Any bytes as a GGUF file ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Nvfp4Weights.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/PoolingConfig.h"
#include "runtime/model/StoredTensors.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cstdlib>

using namespace kf;

namespace {

/// Reads every value in every way; arrays in arrays too.
uint64_t readAll(const GgufValue &value) {
  uint64_t sum = value.toUnsigned().value_or(1);
  sum += value.toSigned() ? 1 : 0;
  sum += value.toFloat() ? 1 : 0;
  sum += value.toBool() ? 1 : 0;
  for (char c : value.toString().value_or(""))
    sum += static_cast<uint8_t>(c);
  if (auto texts = value.toStrings())
    for (std::string_view text : *texts)
      for (char c : text)
        sum += static_cast<uint8_t>(c);
  if (auto numbers = value.toIntegers())
    for (int64_t number : *numbers)
      sum += static_cast<uint64_t>(number);
  if (auto floats = value.toFloats())
    sum += floats->size();
  const std::vector<GgufValue> elements = value.elements(64);
  if (value.type() == GgufValueType::Array &&
      elements.size() != std::min<uint64_t>(value.size(), 64))
    std::abort();
  for (const GgufValue &element : elements)
    sum += readAll(element);
  return sum;
}

/// Whether code can count on a RoPE's numbers.
bool isSound(const RopeConfig &rope, int64_t headDim) {
  if (rope.dim < 2 || rope.dim % 2 != 0 || rope.dim > headDim ||
      !(rope.theta >= 1) || !(rope.factor >= 1) || !(rope.magnitude > 0))
    return false;
  const size_t factors =
      rope.scaling == RopeConfig::Scaling::LongRope ? size_t(rope.dim) / 2 : 0;
  return rope.longFactors.size() == factors &&
         rope.shortFactors.size() == factors;
}

bool isSound(const LatentConfig &latent, const ModelConfig &config) {
  return latent.width == 0 ||
         (latent.width > 0 && latent.queryWidth >= 0 && latent.plainDim > 0 &&
          latent.turnedDim > 0 && latent.turnedDim % 2 == 0 &&
          latent.valueDim > 0 && config.kvHeads == 1 &&
          config.headDim == latent.turnedDim + latent.width);
}

bool isSound(const LinearAttentionConfig &linear, const ModelConfig &config) {
  if (std::ranges::any_of(config.layerConfigs, &LayerConfig::isLinear) !=
      config.hasStates())
    return false;
  return !config.hasStates() ||
         (linear.valueHeads > 0 && linear.valueHeads % linear.keyHeads == 0 &&
          linear.keyDim > 0 && linear.valueDim > 0 && linear.taps >= 2);
}

/// Streams, and the inputs of tokens that they need.
bool isSound(const StreamsConfig &streams, const ModelConfig &config) {
  if (streams.count < 1 || streams.active < 0 ||
      streams.active >= streams.count || config.narrowWidth < 0 ||
      config.tokenInputWidth < 0 ||
      (config.tokenInputWidth > 0 && config.tokenInputVocab < 1))
    return false;
  return streams.count == 1 ||
         (config.narrowWidth > 0 && config.tokenInputWidth > 0);
}

bool isSound(const ExpertsConfig &experts) {
  if (experts.count == 0)
    return true;
  if (experts.chosen < 1 || experts.chosen > experts.count ||
      experts.width < 1 || experts.sharedWidth < 0 || experts.groups < 0)
    return false;
  if (experts.groups == 0)
    return experts.keptGroups == 0;
  const int64_t size = experts.count / experts.groups;
  return experts.count % experts.groups == 0 && size >= 2 &&
         experts.keptGroups >= 1 && experts.keptGroups <= experts.groups &&
         experts.keptGroups * size >= experts.chosen;
}

/// Every size of a configuration is one that code can count on.
void check(const ModelConfig &config) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const LayerConfig layer = config.layer(i);
    if (layer.window < 0 || layer.kvHeads < 1 || layer.headDim < 1 ||
        config.heads % layer.kvHeads != 0 || layer.intermediateSize < 1 ||
        (layer.keysOf && (*layer.keysOf < 0 || *layer.keysOf >= i)) ||
        (layer.rope && !isSound(*layer.rope, layer.headDim)))
      std::abort();
  }
  if (!isSound(config.experts) || !isSound(config.latent, config) ||
      !isSound(config.linear, config) || !isSound(config.streams, config))
    std::abort();
  if (config.layers < 1 ||
      config.layerConfigs.size() != size_t(config.layers) ||
      config.kvHeads < 1 || config.heads % config.kvHeads != 0 ||
      config.headDim < 1 || config.vocabSize < 1 || !(config.normEps >= 0))
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = Gguf::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok())
    return 0;
  uint64_t sum = 0;
  for (const GgufEntry &entry : (*file)->metadata()) {
    if ((*file)->lookUp(entry.key) != &entry.value)
      std::abort();
    sum += readAll(entry.value);
  }
  // Whatever is accepted must lie within the input.
  for (const std::string &name : (*file)->names()) {
    auto view = (*file)->find(name);
    if (!view.ok())
      continue;
    auto bytes = checkedByteCount(view->type, view->shape);
    if (!bytes.ok() || uint64_t(*bytes) != view->bytes)
      std::abort();
    for (uint64_t i = 0; i < view->bytes; ++i)
      sum += static_cast<const uint8_t *>(view->data)[i];
    (*file)->release(name);
  }
  sum += ggufConfigText(**file).size();
  auto config = readGgufConfig(**file);
  if (config.ok())
    check(*config);
  if (auto chat = readChatConfig(**file); chat.ok())
    sum += chat->chatTemplate.size() + chat->bosToken.size();
  const PoolingConfig pooling = readPoolingConfig(**file);
  if (pooling.pooling && !pooling.unsupported.ok())
    std::abort();
  const Gguf &gguf = **file;
  std::unique_ptr<WeightSource> weights = file.take();
  if (Nvfp4Weights::isNeeded(gguf)) {
    auto made = Nvfp4Weights::create(std::move(weights), gguf);
    if (!made.ok())
      return 0;
    weights = made.take();
    for (const std::string &name : weights->names()) {
      sum += weights->find(name).ok() ? 1 : 0;
      weights->release(name);
    }
  }
  // The tensors that the configuration implies, apart and in stacks.
  if (config.ok() && adaptStoredTensors(*config, weights).ok())
    sum += findTensors(*config, *weights).ok() ? 1 : 0;
  return sum == ~uint64_t(0);
}
