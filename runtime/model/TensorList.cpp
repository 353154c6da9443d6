//===- TensorList.cpp - The tensors that a model has ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/TensorList.h"

#include <utility>

using namespace kf;

namespace {

using Role = ListedTensor::Role;

class ListBuilder {
public:
  explicit ListBuilder(const ModelConfig &config) : config(config) {}

  std::vector<ListedTensor> build() {
    const int64_t hidden = config.hiddenSize;
    const bool gpt2 = config.architecture == Architecture::Gpt2;
    const std::string root = gpt2 ? "transformer." : "model.";
    const std::string embedding = gpt2 ? "wte" : "embed_tokens";
    add(root + embedding + ".weight", {config.vocabSize, hidden});
    if (gpt2)
      add(root + "wpe.weight", {config.maxPositions, hidden});
    for (int64_t i = 0; i < config.layers; ++i) {
      const std::string number = std::to_string(i) + ".";
      if (gpt2)
        addGpt2Layer(root + "h." + number);
      else
        addLlamaLayer(root + "layers." + number);
    }
    addNorm(root + (gpt2 ? "ln_f" : "norm"), hidden);
    if (!config.tiedEmbeddings)
      add("lm_head.weight", {config.vocabSize, hidden});
    return std::move(tensors);
  }

private:
  int64_t queries() const { return config.heads * config.headDim; }
  int64_t keys() const { return config.kvHeads * config.headDim; }

  void addLlamaLayer(const std::string &layer) {
    const int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    const std::string attention = layer + "self_attn.", mlp = layer + "mlp.";
    addNorm(layer + "input_layernorm", hidden);
    addLinear(attention + "q_proj", queries(), hidden, config.qkvBias);
    addLinear(attention + "k_proj", keys(), hidden, config.qkvBias);
    addLinear(attention + "v_proj", keys(), hidden, config.qkvBias);
    if (config.qkNorm) {
      add(attention + "q_norm.weight", {config.headDim}, Role::NormWeight);
      add(attention + "k_norm.weight", {config.headDim}, Role::NormWeight);
    }
    addLinear(attention + "o_proj", hidden, queries(),
              config.attentionOutputBias);
    addNorm(layer + "post_attention_layernorm", hidden);
    if (config.gatedMlp)
      addLinear(mlp + "gate_proj", inner, hidden, config.mlpBias);
    addLinear(mlp + "up_proj", inner, hidden, config.mlpBias);
    addLinear(mlp + "down_proj", hidden, inner, config.mlpBias);
  }

  void addGpt2Layer(const std::string &layer) {
    const int64_t hidden = config.hiddenSize, inner = config.intermediateSize;
    addNorm(layer + "ln_1", hidden);
    addLinear(layer + "attn.c_attn", queries() + 2 * keys(), hidden,
              config.qkvBias, /*transposed=*/true);
    addLinear(layer + "attn.c_proj", hidden, queries(),
              config.attentionOutputBias, /*transposed=*/true);
    addNorm(layer + "ln_2", hidden);
    addLinear(layer + "mlp.c_fc", inner, hidden, config.mlpBias,
              /*transposed=*/true);
    addLinear(layer + "mlp.c_proj", hidden, inner, config.mlpBias,
              /*transposed=*/true);
  }

  void addLinear(const std::string &base, int64_t out, int64_t in, bool bias,
                 bool transposed = false) {
    if (transposed)
      add(base + ".weight", {in, out});
    else
      add(base + ".weight", {out, in});
    if (bias)
      add(base + ".bias", {out}, Role::Bias);
  }

  void addNorm(const std::string &base, int64_t size) {
    add(base + ".weight", {size}, Role::NormWeight);
    if (config.norm == Norm::Layer)
      add(base + ".bias", {size}, Role::Bias);
  }

  void add(std::string name, std::vector<int64_t> shape,
           Role role = Role::Matrix) {
    tensors.push_back({std::move(name), role, std::move(shape)});
  }

  const ModelConfig &config;
  std::vector<ListedTensor> tensors;
};

} // namespace

std::vector<ListedTensor> kf::listTensors(const ModelConfig &config) {
  return ListBuilder(config).build();
}
