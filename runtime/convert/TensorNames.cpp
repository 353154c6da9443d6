//===- TensorNames.cpp - Hugging Face's tensors in GGUF -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/TensorNames.h"

#include "runtime/io/Quote.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <set>
#include <span>

using namespace kf;

namespace {

std::string spell(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// What the parts of a layer, and those outside of layers, are called in both.
struct NamePair {
  std::string_view from, to;
};
constexpr NamePair kLlamaNames[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};
constexpr NamePair kGpt2Names[] = {
    {"wte", "token_embd"},          {"wpe", "position_embd"},
    {"ln_f", "output_norm"},        {"lm_head", "output"},
    {"ln_1", "attn_norm"},          {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"}, {"ln_2", "ffn_norm"},
    {"mlp.c_fc", "ffn_up"},         {"mlp.c_proj", "ffn_down"},
};

/// Turns a model's list of tensors into that of its GGUF file.
class Converter {
public:
  Converter(const ModelConfig &config, const WeightSource &weights)
      : config(config), weights(weights),
        gpt2(config.architecture == Architecture::Gpt2),
        root(gpt2 ? "transformer." : "model."),
        layers(gpt2 ? "h." : "layers.") {}

  Result<std::vector<ConvertedTensor>> convert() {
    const std::vector<std::string> names = weights.names();
    unused.insert(names.begin(), names.end());
    const std::vector<ListedTensor> listed = listTensors(config);
    // Checkpoints of the bare model lack the prefix.
    const bool prefixed = unused.contains(listed.front().name);
    for (const ListedTensor &tensor : listed) {
      std::string source = tensor.name;
      if (!prefixed && source.starts_with(root))
        source.erase(0, root.size());
      tensors.push_back(convert(tensor, std::move(source)));
      KF_RETURN_IF_ERROR(check(tensors.back(), tensor.shape));
    }
    if (config.rope && config.rope->scaling == RopeConfig::Scaling::Llama3)
      tensors.push_back(
          {.name = "rope_freqs.weight",
           .source = "",
           .shape = {config.headDim / 2},
           .values = llama3FrequencyFactors(*config.rope, config.headDim)});
    for (const std::string &name : unused)
      if (!isIgnorable(name))
        return Status::error("tensor " + inQuotes(name) +
                             " is not part of the model that config.json "
                             "describes");
    return std::move(tensors);
  }

private:
  /// "model.layers.3.mlp.up_proj.weight" is "blk.3.ffn_up.weight".
  ConvertedTensor convert(const ListedTensor &tensor, std::string source) {
    std::string_view rest = tensor.name;
    if (rest.starts_with(root))
      rest.remove_prefix(root.size());
    std::string name;
    if (rest.starts_with(layers)) {
      rest.remove_prefix(layers.size());
      const size_t end = rest.find('.') + 1;
      name = "blk." + std::string(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    const bool inLayer = !name.empty();
    const size_t ending = rest.rfind('.'); // ".weight" or ".bias"
    const std::string_view part = rest.substr(0, ending);
    const std::span<const NamePair> pairs =
        gpt2 ? std::span<const NamePair>(kGpt2Names) : kLlamaNames;
    const auto pair = std::ranges::find(pairs, part, &NamePair::from);
    assert(pair != pairs.end() && "every part has a name in GGUF");
    name += std::string(pair->to) + std::string(rest.substr(ending));

    ConvertedTensor result;
    result.name = std::move(name);
    result.source = std::move(source);
    result.shape = tensor.shape;
    result.headDim = config.headDim;
    const bool halves = config.architecture == Architecture::Llama ||
                        config.architecture == Architecture::Mistral;
    if (halves && (pair->to == "attn_q" || pair->to == "attn_k"))
      result.order = TensorOrder::HalvesOfHeads;
    if (gpt2 && inLayer && tensor.role == ListedTensor::Role::Matrix) {
      result.order = TensorOrder::Transposed;
      std::ranges::reverse(result.shape);
    }
    return result;
  }

  Status check(const ConvertedTensor &tensor,
               const std::vector<int64_t> &stored) {
    KF_ASSIGN_OR_RETURN(TensorView view, weights.describe(tensor.source));
    if (view.shape != stored)
      return Status::error("tensor " + inQuotes(tensor.source) + " has shape " +
                           spell(view.shape) + ", but config.json implies " +
                           spell(stored));
    if (isBlock(view.type) && tensor.order == TensorOrder::Transposed)
      return Status::error("tensor " + inQuotes(tensor.source) +
                           " is quantized, so it cannot be transposed");
    unused.erase(tensor.source);
    return Status();
  }

  /// Buffers that older versions of Hugging Face's code stored, and an output
  /// matrix beside the embedding table that takes its place.
  bool isIgnorable(const std::string &name) const {
    return name.ends_with(".rotary_emb.inv_freq") ||
           name.ends_with(".attn.bias") || name.ends_with(".masked_bias") ||
           (config.tiedEmbeddings && name == "lm_head.weight");
  }

  const ModelConfig &config;
  const WeightSource &weights;
  bool gpt2;
  std::string root, layers;
  std::set<std::string> unused;
  std::vector<ConvertedTensor> tensors;
};

} // namespace

Result<std::vector<ConvertedTensor>>
kf::listConvertedTensors(const ModelConfig &config,
                         const WeightSource &weights) {
  return Converter(config, weights).convert();
}

std::vector<float> kf::llama3FrequencyFactors(const RopeConfig &rope,
                                              int64_t headDim) {
  // Waves that fit into the original context more than highFreqFactor times
  // keep their frequency, those that fit less than lowFreqFactor times are
  // slowed down by the factor; between, the frequency is interpolated.
  std::vector<float> factors;
  for (int64_t i = 0; i < headDim / 2; ++i) {
    const double exponent =
        2 * static_cast<double>(i) / static_cast<double>(headDim);
    const double wave = 2 * std::numbers::pi * std::pow(rope.theta, exponent);
    const double fits = static_cast<double>(rope.originalContext) / wave;
    const double kept =
        std::clamp((fits - rope.lowFreqFactor) /
                       (rope.highFreqFactor - rope.lowFreqFactor),
                   0.0, 1.0);
    factors.push_back(
        static_cast<float>(1 / (kept + (1 - kept) / rope.factor)));
  }
  return factors;
}
