//===- GgufConfig.cpp - What a GGUF file says about its model -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/GgufConfig.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/GgufOddities.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/SamplingDefaults.h"

#include <algorithm>
#include <cmath>

using namespace kf;

namespace {

struct GgufFamily {
  std::string_view name; ///< general.architecture
  Architecture architecture;
};

constexpr GgufFamily families[] = {{"llama", Architecture::Llama},
                                   {"qwen2", Architecture::Qwen2},
                                   {"qwen3", Architecture::Qwen3},
                                   {"gpt2", Architecture::Gpt2},
                                   {"granite", Architecture::Granite},
                                   {"smollm3", Architecture::SmolLm3},
                                   {"olmo2", Architecture::Olmo2},
                                   {"starcoder2", Architecture::Starcoder2}};

const GgufFamily *findFamily(std::string_view name) {
  auto found = std::ranges::find(families, name, &GgufFamily::name);
  return found == std::end(families) ? nullptr : found;
}

/// Reads one file.
class GgufConfigReader {
public:
  explicit GgufConfigReader(const Gguf &gguf) : gguf(gguf) {}
  Result<ModelConfig> read();

private:
  Status readFamily();
  Status readSizes();
  Status readHeads();
  Status readNorm();
  Status readScales();
  Status readLayers();
  Result<std::optional<RopeConfig>> readRope() const;
  Status readRopeScaling(RopeConfig &rope) const;
  Result<int64_t> readWindow() const;
  Status readTokens();

  std::string keyOf(std::string_view name) const {
    return std::string(family->name) + "." + std::string(name);
  }
  /// "metadata 'llama.block_count' is 0", for the start of an error.
  std::string valueOf(std::string_view name, const std::string &value) const {
    return "metadata " + inQuotes(keyOf(name)) + " is " + value;
  }
  /// An integer from 1 to `most`; without `fallback` it has to be there.
  Result<int64_t> size(std::string_view name, int64_t most,
                       std::optional<int64_t> fallback = {}) const;
  /// The same, or an array of one such integer a layer, all equal.
  Result<int64_t> layerSize(std::string_view name, int64_t most,
                            std::optional<int64_t> fallback = {}) const;
  /// A factor, of which 0 and none are `fallback`.
  Result<double> scale(std::string_view name, double fallback) const;
  /// A finite number that is not negative.
  Result<double> notNegative(std::string_view name) const;
  /// RoPE's theta, or its factor of scaling; `fallback` is one of these, or 0.
  Result<double> ropeBase(std::string_view name, double fallback) const;
  bool hasTensor(std::string_view name) const {
    return gguf.lookUpTensor(name) != nullptr;
  }

  const Gguf &gguf;
  const GgufFamily *family = nullptr;
  ModelConfig config;
};

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Result<int64_t> GgufConfigReader::size(std::string_view name, int64_t most,
                                       std::optional<int64_t> fallback) const {
  std::optional<uint64_t> otherwise;
  if (fallback)
    otherwise = static_cast<uint64_t>(*fallback);
  KF_ASSIGN_OR_RETURN(uint64_t value, gguf.getUnsigned(keyOf(name), otherwise));
  if (value < 1 || value > static_cast<uint64_t>(most))
    return Status::error(valueOf(name, std::to_string(value)) +
                         ", but a number from 1 to " + std::to_string(most) +
                         " is expected");
  return static_cast<int64_t>(value);
}

Result<int64_t>
GgufConfigReader::layerSize(std::string_view name, int64_t most,
                            std::optional<int64_t> fallback) const {
  const GgufValue *value = gguf.lookUp(keyOf(name));
  if (!value || value->type() != GgufValueType::Array)
    return size(name, most, fallback);
  KF_ASSIGN_OR_RETURN(std::vector<int64_t> values,
                      gguf.getIntegers(keyOf(name)));
  if (values.size() != static_cast<size_t>(config.layers))
    return Status::error(
        valueOf(name, "an array of " + std::to_string(values.size())) +
        " numbers for " + std::to_string(config.layers) + " layers");
  auto other = std::ranges::find_if(
      values, [&](int64_t v) { return v != values.front(); });
  if (other != values.end())
    return Status::error(
        "metadata " + inQuotes(keyOf(name)) + " differs between layers (" +
            std::to_string(values.front()) + " and " + std::to_string(*other) +
            "), which is not supported",
        StatusCode::Unsupported);
  if (values.front() < 1 || values.front() > most)
    return Status::error(valueOf(name, std::to_string(values.front())) +
                         " in every layer, but a number from 1 to " +
                         std::to_string(most) + " is expected");
  return values.front();
}

Result<double> GgufConfigReader::notNegative(std::string_view name) const {
  KF_ASSIGN_OR_RETURN(double value, gguf.getFloat(keyOf(name)));
  if (!std::isfinite(value) || value < 0)
    return Status::error(
        valueOf(name, spellNumber(value)) +
        ", but a finite number that is not negative is expected");
  return value;
}

Result<double> GgufConfigReader::scale(std::string_view name,
                                       double fallback) const {
  KF_ASSIGN_OR_RETURN(double value, gguf.getFloat(keyOf(name), 0));
  if (value == 0)
    return fallback;
  if (value > 0 && std::isnormal(static_cast<float>(value)))
    return value;
  return Status::error(valueOf(name, spellNumber(value)) +
                       ", but a positive number is expected");
}

Result<double> GgufConfigReader::ropeBase(std::string_view name,
                                          double fallback) const {
  KF_ASSIGN_OR_RETURN(double value, gguf.getFloat(keyOf(name), fallback));
  if (value == fallback || (value >= kMinRopeBase && value <= kMaxRopeBase))
    return value;
  return Status::error(valueOf(name, spellNumber(value)) +
                       ", but a number from " + spellNumber(kMinRopeBase) +
                       " to " + spellNumber(kMaxRopeBase) + " is expected");
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

Status GgufConfigReader::readFamily() {
  KF_ASSIGN_OR_RETURN(std::string_view name,
                      gguf.getString("general.architecture"));
  family = findFamily(name);
  std::string known;
  for (const GgufFamily &candidate : families)
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  if (!family)
    return Status::error("architecture " + inQuotes(name) +
                             " is not supported (supported: " + known + ")",
                         StatusCode::Unsupported);
  config.architecture = family->architecture;
  config.naming = TensorNaming::Gguf;

  KF_ASSIGN_OR_RETURN(std::string_view type,
                      gguf.getString("general.type", "model"));
  if (type != "model")
    return Status::error("the file is of the type " + inQuotes(type) +
                         ", not a model");
  KF_ASSIGN_OR_RETURN(uint64_t parts, gguf.getUnsigned("split.count", 1));
  if (parts > 1)
    return Status::error(
        "the file is one of " + std::to_string(parts) +
        " parts of a model; join them with llama-gguf-split --merge");
  return Status();
}

Status GgufConfigReader::readSizes() {
  KF_ASSIGN_OR_RETURN(config.layers, size("block_count", kMaxLayers));
  KF_ASSIGN_OR_RETURN(config.hiddenSize, size("embedding_length", kMaxSize));
  KF_ASSIGN_OR_RETURN(config.intermediateSize,
                      layerSize("feed_forward_length", kMaxSize));
  KF_ASSIGN_OR_RETURN(config.maxPositions,
                      size("context_length", kMaxPositions));
  const GgufTensor *table = gguf.lookUpTensor("token_embd.weight");
  if (!table)
    return Status::error("no tensor 'token_embd.weight': the file has a "
                         "configuration but no model");
  config.vocabSize = table->shape.front();
  if (table->shape.size() != 2 || config.vocabSize < 1 ||
      config.vocabSize > kMaxSize)
    return Status::error("tensor 'token_embd.weight' is no matrix of 1 to " +
                         std::to_string(kMaxSize) + " rows");
  config.tiedEmbeddings = !hasTensor("output.weight");
  const std::string rows = ", but tensor 'token_embd.weight' has " +
                           std::to_string(config.vocabSize) + " rows";
  KF_ASSIGN_OR_RETURN(int64_t vocabulary,
                      size("vocab_size", kMaxSize, config.vocabSize));
  if (vocabulary != config.vocabSize)
    return Status::error(valueOf("vocab_size", std::to_string(vocabulary)) +
                         rows);
  // Rows that no token has are padding.
  const GgufValue *tokens = gguf.lookUp("tokenizer.ggml.tokens");
  if (tokens && tokens->size() > static_cast<uint64_t>(config.vocabSize))
    return Status::error("metadata 'tokenizer.ggml.tokens' has " +
                         std::to_string(tokens->size()) + " tokens" + rows);
  return Status();
}

Status GgufConfigReader::readHeads() {
  KF_ASSIGN_OR_RETURN(config.heads,
                      layerSize("attention.head_count", kMaxSize));
  KF_ASSIGN_OR_RETURN(config.kvHeads, layerSize("attention.head_count_kv",
                                                kMaxSize, config.heads));
  if (config.heads % config.kvHeads != 0)
    return Status::error("metadata " + inQuotes(keyOf("attention.head_count")) +
                         " " + std::to_string(config.heads) +
                         " is not a multiple of " +
                         inQuotes(keyOf("attention.head_count_kv")) + " " +
                         std::to_string(config.kvHeads));
  std::optional<int64_t> fallback;
  if (config.hiddenSize % config.heads == 0)
    fallback = config.hiddenSize / config.heads;
  if (!gguf.lookUp(keyOf("attention.key_length")) && fallback &&
      *fallback > kMaxHeadDim)
    return Status::error("metadata " + inQuotes(keyOf("embedding_length")) +
                         " " + std::to_string(config.hiddenSize) + " with " +
                         inQuotes(keyOf("attention.head_count")) + " " +
                         std::to_string(config.heads) + " makes heads of " +
                         std::to_string(*fallback) + " elements; at most " +
                         std::to_string(kMaxHeadDim) + " are possible");
  KF_ASSIGN_OR_RETURN(config.headDim,
                      size("attention.key_length", kMaxHeadDim, fallback));
  KF_ASSIGN_OR_RETURN(int64_t values,
                      size("attention.value_length", kMaxSize, config.headDim));
  if (values != config.headDim)
    return Status::error(
        valueOf("attention.value_length", std::to_string(values)) +
            ", but keys have " + std::to_string(config.headDim) +
            "; heads of two sizes are not supported",
        StatusCode::Unsupported);
  if (config.heads * config.headDim > kMaxSize)
    return Status::error(std::to_string(config.heads) + " heads of " +
                         std::to_string(config.headDim) + " elements have " +
                         std::to_string(config.heads * config.headDim) +
                         "; at most " + std::to_string(kMaxSize) +
                         " is possible");
  config.attentionScale = 1 / std::sqrt(static_cast<double>(config.headDim));
  return Status();
}

Status GgufConfigReader::readNorm() {
  const bool gpt2 = config.architecture == Architecture::Gpt2;
  const Family &own = familyOf(config.architecture);
  config.norm = own.norm;
  config.normBias = own.normBias;
  config.normPlaces = own.normPlaces;
  config.activation = ggufActivation(config.architecture);
  config.gatedMlp = own.gatedMlp;
  config.qkNorm = own.qkNorm;
  config.qkvBias =
      hasTensor(gpt2 ? "blk.0.attn_qkv.bias" : "blk.0.attn_q.bias");
  config.attentionOutputBias = hasTensor("blk.0.attn_output.bias");
  config.mlpBias = hasTensor("blk.0.ffn_down.bias");
  KF_ASSIGN_OR_RETURN(config.normEps,
                      notNegative(config.norm == Norm::Layer
                                      ? "attention.layer_norm_epsilon"
                                      : "attention.layer_norm_rms_epsilon"));
  return Status();
}

Status GgufConfigReader::readScales() {
  if (config.architecture != Architecture::Granite)
    return Status();
  KF_ASSIGN_OR_RETURN(config.attentionScale,
                      scale("attention.scale", config.attentionScale));
  KF_ASSIGN_OR_RETURN(config.embeddingScale, scale("embedding_scale", 1));
  KF_ASSIGN_OR_RETURN(config.residualScale, scale("residual_scale", 1));
  // Granite divides logits by it.
  KF_ASSIGN_OR_RETURN(const double divisor, scale("logit_scale", 1));
  config.logitScale = 1 / divisor;
  if (!std::isnormal(static_cast<float>(config.logitScale)))
    return Status::error(valueOf("logit_scale", spellNumber(divisor)) +
                         ", and 1 divided by it is beyond the range of f32");
  return Status();
}

Result<std::optional<RopeConfig>> GgufConfigReader::readRope() const {
  if (config.architecture == Architecture::Gpt2)
    return std::optional<RopeConfig>();
  RopeConfig rope;
  rope.dim = config.headDim;
  rope.interleaved = isInterleavedInGguf(config.architecture);
  KF_ASSIGN_OR_RETURN(rope.theta, ropeBase("rope.freq_base", rope.theta));
  KF_ASSIGN_OR_RETURN(int64_t rotated,
                      size("rope.dimension_count", kMaxSize, config.headDim));
  if (rotated != config.headDim)
    return Status::error(
        valueOf("rope.dimension_count", std::to_string(rotated)) +
            ", but heads have " + std::to_string(config.headDim) +
            " elements; rotating a part of them is not supported",
        StatusCode::Unsupported);
  if (config.headDim % 2 != 0)
    return Status::error("a head dimension of " +
                         std::to_string(config.headDim) +
                         " is odd; rotary embedding needs an even one");
  KF_RETURN_IF_ERROR(readRopeScaling(rope));
  if (const GgufTensor *factors = gguf.lookUpTensor("rope_freqs.weight")) {
    if (factors->shape != std::vector<int64_t>{config.headDim / 2} ||
        factors->typeNumber != findGgmlType(DataType::F32)->number)
      return Status::error("tensor 'rope_freqs.weight' is not of " +
                           std::to_string(config.headDim / 2) +
                           " F32, one for each pair of a head's elements");
    rope.frequencyFactors = true;
  }
  return std::optional(rope);
}

Status GgufConfigReader::readRopeScaling(RopeConfig &rope) const {
  // As llama.cpp has it, a factor alone scales linearly, and 0 is none.
  KF_ASSIGN_OR_RETURN(std::string_view type,
                      gguf.getString(keyOf("rope.scaling.type"), "linear"));
  if (type != "none" && type != "linear")
    return Status::error(
        "metadata " + inQuotes(keyOf("rope.scaling.type")) + " is " +
            inQuotes(type) +
            ", which is not supported (supported: none, linear)",
        StatusCode::Unsupported);
  const std::string_view name = gguf.contains(keyOf("rope.scaling.factor"))
                                    ? "rope.scaling.factor"
                                    : "rope.scale_linear";
  KF_ASSIGN_OR_RETURN(double factor, ropeBase(name, 0));
  if (type == "none" || factor == 0 || factor == 1)
    return Status();
  rope.scaling = RopeConfig::Scaling::Linear;
  rope.factor = factor;
  return Status();
}

Result<int64_t> GgufConfigReader::readWindow() const {
  // 0 is no window.
  KF_ASSIGN_OR_RETURN(uint64_t window,
                      gguf.getUnsigned(keyOf("attention.sliding_window"), 0));
  if (window > static_cast<uint64_t>(kMaxPositions))
    return Status::error(
        valueOf("attention.sliding_window", std::to_string(window)) +
        ", but a number from 0 to " + std::to_string(kMaxPositions) +
        " is expected");
  return static_cast<int64_t>(window);
}

Status GgufConfigReader::readLayers() {
  LayerConfig layer;
  KF_ASSIGN_OR_RETURN(layer.rope, readRope());
  KF_ASSIGN_OR_RETURN(layer.window, readWindow());
  // Files of OLMo 3 say so; three of four of its layers have the window.
  if (layer.window && config.architecture == Architecture::Olmo2)
    return Status::error(
        valueOf("attention.sliding_window", std::to_string(layer.window)) +
            "; windows of some layers are not supported",
        StatusCode::Unsupported);
  config.layerConfigs.assign(config.layers, layer);
  for (int64_t i = 0; i < config.layers; ++i)
    if (!isTurnedInGguf(config.architecture, i))
      config.layerConfigs[i].rope.reset();
  return Status();
}

Status GgufConfigReader::readTokens() {
  auto read = [&](std::string_view key, std::optional<int64_t> &out) -> Status {
    KF_ASSIGN_OR_RETURN(std::optional<uint64_t> id, gguf.findUnsigned(key));
    if (id && *id >= static_cast<uint64_t>(config.vocabSize))
      return Status::error("metadata " + inQuotes(key) + " is " +
                           std::to_string(*id) +
                           ", but tensor 'token_embd.weight' has " +
                           std::to_string(config.vocabSize) + " rows");
    if (id)
      out = static_cast<int64_t>(*id);
    return Status();
  };
  KF_RETURN_IF_ERROR(read("tokenizer.ggml.bos_token_id", config.bosId));
  // End of text, of a turn and of a message.
  for (std::string_view key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    std::optional<int64_t> id;
    KF_RETURN_IF_ERROR(read(key, id));
    if (id && std::ranges::find(config.eosIds, *id) == config.eosIds.end())
      config.eosIds.push_back(*id);
  }
  return Status();
}

Result<ModelConfig> GgufConfigReader::read() {
  KF_RETURN_IF_ERROR(readFamily());
  KF_RETURN_IF_ERROR(checkGgufKeys(gguf, family->name));
  config.warnings = findGgufOddities(gguf, family->name);
  KF_RETURN_IF_ERROR(readSizes());
  KF_RETURN_IF_ERROR(readHeads());
  KF_RETURN_IF_ERROR(readNorm());
  KF_RETURN_IF_ERROR(readScales());
  KF_RETURN_IF_ERROR(readLayers());
  KF_RETURN_IF_ERROR(readTokens());
  config.sampling = readSamplingDefaults(gguf, config.warnings);
  return std::move(config);
}

} // namespace

Result<ModelConfig> kf::readGgufConfig(const Gguf &gguf) try {
  Result<ModelConfig> result = GgufConfigReader(gguf).read();
  // Errors of lookups name the file already.
  if (result.ok() || result.message().starts_with(gguf.source() + ": "))
    return result;
  return result.status().in(gguf.source());
} catch (...) {
  return statusOfException();
}

Activation kf::ggufActivation(Architecture architecture) {
  const std::string_view name = familyOf(architecture).defaultActivation;
  return name == "silu" ? Activation::Silu : Activation::GeluTanh;
}

bool kf::isInterleavedInGguf(Architecture architecture) {
  return architecture == Architecture::Llama ||
         architecture == Architecture::Granite ||
         architecture == Architecture::SmolLm3;
}

bool kf::isTurnedInGguf(Architecture architecture, int64_t layer) {
  constexpr int64_t interval = 4; // of SmolLM3
  return architecture != Architecture::SmolLm3 || (layer + 1) % interval != 0;
}

bool kf::isGgufArchitecture(std::string_view name) {
  return findFamily(name) != nullptr;
}

std::string kf::ggufConfigText(const Gguf &gguf) {
  std::string text = "gguf";
  Result<std::string_view> architecture =
      gguf.getString("general.architecture");
  if (!architecture.ok())
    return text;
  text += '\n' + std::string(*architecture);
  const std::string prefix = std::string(*architecture) + ".";
  for (const GgufEntry &entry : gguf.metadata())
    if (entry.key.starts_with(prefix))
      text += '\n' + std::string(entry.key) + ' ' +
              std::string(nameOf(entry.value.type())) + ' ' +
              std::string(entry.value.bytes());
  return text;
}
