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
#include "runtime/model/GgufExperts.h"
#include "runtime/model/GgufLatent.h"
#include "runtime/model/GgufLayerSizes.h"
#include "runtime/model/GgufLinear.h"
#include "runtime/model/GgufNumbers.h"
#include "runtime/model/GgufOddities.h"
#include "runtime/model/GgufRope.h"
#include "runtime/model/GgufStreams.h"
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
                                   {"starcoder2", Architecture::Starcoder2},
                                   {"gemma2", Architecture::Gemma2},
                                   {"gemma3", Architecture::Gemma3},
                                   {"phi3", Architecture::Phi3},
                                   {"stablelm", Architecture::StableLm},
                                   {"command-r", Architecture::Cohere},
                                   {"cohere2", Architecture::Cohere2},
                                   {"qwen2moe", Architecture::Qwen2Moe},
                                   {"qwen3moe", Architecture::Qwen3Moe},
                                   {"granitemoe", Architecture::GraniteMoe},
                                   {"olmoe", Architecture::Olmoe},
                                   {"gpt-oss", Architecture::GptOss},
                                   {"qwen3next", Architecture::Qwen3Next},
                                   {"qwen35", Architecture::Qwen3_5},
                                   {"gemma3n", Architecture::Gemma3n},
                                   {"gemma4", Architecture::Gemma4},
                                   {"deepseek2", Architecture::DeepseekV3},
                                   {"llama4", Architecture::Llama4}};

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
  Status tellMixtral();
  Status countLayers();
  Status readSizes();
  Status readHeads();
  Status readNorm();
  Status readScales();
  Status readCaps();
  Status readWindows();
  Status readLayers();
  Result<int64_t> readWindow() const;
  Result<std::vector<bool>> readSliding() const;
  Status readTokens();

  std::string keyOf(std::string_view name) const {
    return numbers->keyOf(name);
  }
  bool hasTensor(std::string_view name) const {
    return gguf.lookUpTensor(name) != nullptr;
  }

  const Gguf &gguf;
  const GgufFamily *family = nullptr;
  std::optional<GgufNumbers> numbers; ///< of the family's keys
  int64_t window = 0;                 ///< of the layers that have one
  std::vector<bool> slides;           ///< which have
  ModelConfig config;
};

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
  numbers.emplace(gguf, name);
  config.architecture = family->architecture;
  // Some of OLMo 3's layers have a window; in files that is all that is new.
  if (config.architecture == Architecture::Olmo2 &&
      numbers->contains("attention.sliding_window"))
    config.architecture = Architecture::Olmo3;
  KF_RETURN_IF_ERROR(tellMixtral());
  config.naming = TensorNaming::Gguf;

  KF_ASSIGN_OR_RETURN(std::string_view type,
                      gguf.getString("general.type", "model"));
  if (type != "model")
    return Status::error("the file is of the type " + inQuotes(type) +
                         ", not a model");
  KF_ASSIGN_OR_RETURN(const uint64_t parts,
                      gguf.getUnsigned(kGgufSplitCount, 1));
  if (parts > 1 && gguf.files().size() != parts)
    return Status::error("the file is one of " + std::to_string(parts) +
                         " parts of a model, and the others are not open");
  return Status();
}

/// Mixtral's files are LLaMA's with experts.
Status GgufConfigReader::tellMixtral() {
  if (config.architecture != Architecture::Llama)
    return Status();
  KF_ASSIGN_OR_RETURN(const uint64_t experts,
                      gguf.getUnsigned(keyOf(kGgufExpertCount), 0));
  if (experts > 0) {
    config.architecture = Architecture::Mixtral;
    return Status();
  }
  KF_ASSIGN_OR_RETURN(const uint64_t chosen,
                      gguf.getUnsigned(keyOf(kGgufExpertsChosen), 0));
  if (chosen == 0)
    return Status();
  return Status::error(
      numbers->valueOf(kGgufExpertsChosen, std::to_string(chosen)) + ", but " +
      inQuotes(keyOf(kGgufExpertCount)) + " says of no experts");
}

/// Some files have layers behind the last one that guess further tokens.
Status GgufConfigReader::countLayers() {
  KF_ASSIGN_OR_RETURN(config.layers, numbers->size("block_count", kMaxLayers));
  KF_ASSIGN_OR_RETURN(const uint64_t guessing,
                      gguf.getUnsigned(keyOf(kGgufGuessingLayers), 0));
  if (guessing >= static_cast<uint64_t>(config.layers))
    return Status::error(
        numbers->valueOf(kGgufGuessingLayers, std::to_string(guessing)) +
        ", but all layers are " + std::to_string(config.layers));
  config.guessingLayers = static_cast<int64_t>(guessing);
  config.layers -= config.guessingLayers;
  config.layerConfigs.resize(config.layers);
  return Status();
}

Status GgufConfigReader::readSizes() {
  KF_RETURN_IF_ERROR(countLayers());
  KF_ASSIGN_OR_RETURN(config.hiddenSize,
                      numbers->size("embedding_length", kMaxSize));
  if (familyOf(config.architecture).sizes.sharing) {
    KF_ASSIGN_OR_RETURN(
        const std::vector<int64_t> widths,
        numbers->layerSizes("feed_forward_length", config.layers, kMaxSize));
    config.intermediateSize = widths.front();
  } else {
    KF_ASSIGN_OR_RETURN(
        config.intermediateSize,
        numbers->layerSize("feed_forward_length", config.layers, kMaxSize));
  }
  KF_ASSIGN_OR_RETURN(config.maxPositions,
                      numbers->size("context_length", kMaxPositions));
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
                      numbers->size("vocab_size", kMaxSize, config.vocabSize));
  if (vocabulary != config.vocabSize)
    return Status::error(
        numbers->valueOf("vocab_size", std::to_string(vocabulary)) + rows);
  // Rows that no token has are padding.
  const GgufValue *tokens = gguf.lookUp("tokenizer.ggml.tokens");
  if (tokens && tokens->size() > static_cast<uint64_t>(config.vocabSize))
    return Status::error("metadata 'tokenizer.ggml.tokens' has " +
                         std::to_string(tokens->size()) + " tokens" + rows);
  return Status();
}

Status GgufConfigReader::readHeads() {
  const Family &own = familyOf(config.architecture);
  if (own.sizes.fullHeadDim) {
    KF_RETURN_IF_ERROR(readGgufLayerHeads(*numbers, slides, config));
    config.attentionScale = ggufAttentionScale(config);
    return Status();
  }
  KF_ASSIGN_OR_RETURN(
      config.heads,
      numbers->layerSize("attention.head_count", config.layers, kMaxSize));
  if (own.latent.defaultWidth)
    return readGgufLatent(gguf, *numbers, config);
  KF_ASSIGN_OR_RETURN(config.kvHeads,
                      numbers->layerSize("attention.head_count_kv",
                                         config.layers, kMaxSize,
                                         config.heads));
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
  KF_ASSIGN_OR_RETURN(config.headDim, numbers->size("attention.key_length",
                                                    kMaxHeadDim, fallback));
  KF_ASSIGN_OR_RETURN(int64_t values, numbers->size("attention.value_length",
                                                    kMaxSize, config.headDim));
  if (values != config.headDim)
    return Status::error(
        numbers->valueOf("attention.value_length", std::to_string(values)) +
            ", but keys have " + std::to_string(config.headDim) +
            "; heads of two sizes are not supported",
        StatusCode::Unsupported);
  if (config.heads * config.headDim > kMaxSize)
    return Status::error(std::to_string(config.heads) + " heads of " +
                         std::to_string(config.headDim) + " elements have " +
                         std::to_string(config.heads * config.headDim) +
                         "; at most " + std::to_string(kMaxSize) +
                         " is possible");
  config.attentionScale = ggufAttentionScale(config);
  return Status();
}

Status GgufConfigReader::readNorm() {
  const bool gpt2 = config.architecture == Architecture::Gpt2;
  const bool phi3 = config.architecture == Architecture::Phi3;
  const Family &own = familyOf(config.architecture);
  // Norms of Gemma multiply by their weights: converters add the 1.
  config.norm = own.norm;
  config.normBias = own.normBias;
  config.normPlaces = own.normPlaces;
  config.parallelBlocks =
      own.parallelBlocks ||
      (own.parallelField && !hasTensor("blk.0.ffn_norm.weight"));
  config.activation = ggufActivation(config.architecture);
  config.gatedMlp = own.gatedMlp;
  config.qkNorm = own.qkNorm;
  config.attentionSinks = own.attentionSinks;
  config.gatedAttention = own.gatedAttention;
  config.valueNorm = own.valueNorm;
  config.layerScales =
      own.layerScales && hasTensor("blk.0.layer_output_scale.weight");
  const auto attends =
      std::ranges::find(config.layerConfigs, false, &LayerConfig::isLinear);
  const std::string attention =
      "blk." + std::to_string(attends - config.layerConfigs.begin()) + ".attn_";
  config.qkvBias =
      hasTensor(attention + (gpt2 || phi3          ? "qkv.bias"
                             : config.latent.width ? "kv_a_mqa.bias"
                                                   : "q.bias"));
  config.attentionOutputBias = hasTensor(attention + "output.bias");
  config.mlpBias = hasTensor("blk.0.ffn_down.bias");
  KF_ASSIGN_OR_RETURN(
      config.normEps,
      numbers->notNegative(config.norm == Norm::Layer
                               ? "attention.layer_norm_epsilon"
                               : "attention.layer_norm_rms_epsilon"));
  return Status();
}

Status GgufConfigReader::readScales() {
  const Family &own = familyOf(config.architecture);
  if (own.rootEmbeddingScale)
    config.embeddingScale = std::sqrt(static_cast<double>(config.hiddenSize));
  if (own.attentionScale || own.scoreDivisor) {
    KF_ASSIGN_OR_RETURN(
        config.attentionScale,
        numbers->scale("attention.scale", config.attentionScale));
  }
  if (own.logitScale) {
    KF_RETURN_IF_ERROR(gguf.getFloat(keyOf("logit_scale")).status());
    KF_ASSIGN_OR_RETURN(config.logitScale, numbers->scale("logit_scale", 1));
  }
  if (!own.logitDivisor)
    return Status();
  KF_ASSIGN_OR_RETURN(config.embeddingScale,
                      numbers->scale("embedding_scale", 1));
  KF_ASSIGN_OR_RETURN(config.residualScale,
                      numbers->scale("residual_scale", 1));
  // Granite divides logits by it.
  KF_ASSIGN_OR_RETURN(const double divisor, numbers->scale("logit_scale", 1));
  config.logitScale = 1 / divisor;
  if (!std::isnormal(static_cast<float>(config.logitScale)))
    return Status::error(numbers->valueOf("logit_scale", spellNumber(divisor)) +
                         ", and 1 divided by it is beyond the range of f32");
  return Status();
}

Status GgufConfigReader::readCaps() {
  const Family &own = familyOf(config.architecture);
  // Gemma 3's files have none of scores.
  if (own.attentionCap && own.defaultAttentionCap > 0) {
    KF_ASSIGN_OR_RETURN(config.attentionCap,
                        numbers->number("attn_logit_softcapping", kMinCap,
                                        kMaxCap, own.defaultAttentionCap));
  }
  if (own.logitCap) {
    KF_ASSIGN_OR_RETURN(config.logitCap,
                        numbers->number("final_logit_softcapping", kMinCap,
                                        kMaxCap, own.defaultLogitCap));
  }
  return Status();
}

/// How many positions back layers with a window attend; 0 where none has one.
Result<int64_t> GgufConfigReader::readWindow() const {
  std::optional<uint64_t> fallback = 0;
  if (config.architecture == Architecture::Cohere2 ||
      config.architecture == Architecture::GptOss)
    fallback.reset(); // their files always have the key
  if (config.architecture == Architecture::Gemma2 ||
      config.architecture == Architecture::Llama4)
    fallback =
        static_cast<uint64_t>(familyOf(config.architecture).defaultWindow);
  KF_ASSIGN_OR_RETURN(
      const uint64_t window,
      gguf.getUnsigned(keyOf("attention.sliding_window"), fallback));
  if (familyOf(config.architecture).chunked && window != fallback)
    return Status::error(
        numbers->valueOf("attention.sliding_window", std::to_string(window)) +
            ", which is not supported (supported: " +
            std::to_string(*fallback) + ")",
        StatusCode::Unsupported);
  if (window > static_cast<uint64_t>(kMaxPositions))
    return Status::error(
        numbers->valueOf("attention.sliding_window", std::to_string(window)) +
        ", but a number from 0 to " + std::to_string(kMaxPositions) +
        " is expected");
  return static_cast<int64_t>(window);
}

/// Which layers have the window.
Result<std::vector<bool>> GgufConfigReader::readSliding() const {
  std::vector<bool> slides(config.layers, window > 0);
  const int64_t usual = ggufFullLayers(config.architecture);
  if (!usual || window == 0)
    return slides;
  const std::string_view name = "attention.sliding_window_pattern";
  const GgufValue *value = gguf.lookUp(keyOf(name));
  if (value && value->type() == GgufValueType::Array)
    return numbers->layerFlags(name, *value, config.layers);
  // Every so many-th layer has no window.
  KF_ASSIGN_OR_RETURN(int64_t period, numbers->size(name, kMaxLayers, usual));
  for (int64_t i = 0; i < config.layers; ++i)
    slides[i] = (i + 1) % period != 0;
  return slides;
}

Status GgufConfigReader::readWindows() {
  const bool chunked = familyOf(config.architecture).chunked;
  KF_ASSIGN_OR_RETURN(window, readWindow());
  KF_ASSIGN_OR_RETURN(slides, readSliding());
  for (int64_t i = 0; i < config.layers; ++i) {
    config.layerConfigs[i].window = slides[i] ? window : 0;
    config.layerConfigs[i].chunked = slides[i] && chunked;
  }
  return Status();
}

Status GgufConfigReader::readLayers() {
  const QueryGrowthFields &growth = familyOf(config.architecture).queryGrowth;
  KF_RETURN_IF_ERROR(readGgufLayerSizes(gguf, *numbers, slides, config));
  GgufRopes ropes;
  if (config.architecture != Architecture::Gpt2) {
    KF_ASSIGN_OR_RETURN(ropes, readGgufRopes(gguf, *numbers, config));
  }
  for (int64_t i = 0; i < config.layers; ++i) {
    LayerConfig &layer = config.layerConfigs[i];
    if (!layer.isLinear && isTurnedInGguf(config.architecture, i, slides[i]))
      layer.rope = slides[i] ? ropes.sliding : ropes.full;
    else if (growth.used)
      layer.queryGrowth = {growth.defaultScale, growth.defaultPeriod};
  }
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
  KF_RETURN_IF_ERROR(readWindows());
  KF_RETURN_IF_ERROR(readHeads());
  KF_RETURN_IF_ERROR(readGgufLinear(gguf, *numbers, config));
  KF_RETURN_IF_ERROR(readNorm());
  KF_RETURN_IF_ERROR(readScales());
  KF_RETURN_IF_ERROR(readCaps());
  KF_RETURN_IF_ERROR(readLayers());
  KF_RETURN_IF_ERROR(readGgufStreams(gguf, *numbers, config));
  KF_RETURN_IF_ERROR(readGgufExperts(gguf, *numbers, config));
  if (!hasGgufQkNorm(config))
    config.qkNorm = QkNorm::None;
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
         architecture == Architecture::SmolLm3 ||
         architecture == Architecture::Mixtral ||
         architecture == Architecture::GraniteMoe ||
         familyOf(architecture).interleavedRope;
}

bool kf::isTurnedInGguf(Architecture architecture, int64_t layer,
                        bool hasWindow) {
  constexpr int64_t interval = 4; // of SmolLM3
  switch (familyOf(architecture).turned) {
  case TurnedLayers::None:
    return false;
  case TurnedLayers::All:
    return true;
  case TurnedLayers::Listed:
    return (layer + 1) % interval != 0;
  case TurnedLayers::Sliding:
    return hasWindow;
  }
  return true;
}

bool kf::isYarnTruncatedInGguf(Architecture architecture) {
  return architecture != Architecture::GptOss;
}

int64_t kf::ggufFullLayers(Architecture architecture) {
  return architecture == Architecture::Llama4
             ? 4
             : familyOf(architecture).fullLayers;
}

bool kf::hasGgufQkNorm(const ModelConfig &config) {
  constexpr int64_t maverick = 128; // experts of the Llama 4 without
  return config.architecture != Architecture::Llama4 ||
         config.experts.count != maverick;
}

double kf::ggufAttentionScale(const ModelConfig &config) {
  if (familyOf(config.architecture).unscaledAttention)
    return 1;
  if (config.latent.width)
    return 1 / std::sqrt(static_cast<double>(config.latent.plainDim +
                                             config.latent.turnedDim));
  // The largest Gemmas have other heads than their scale says.
  const bool isLargest =
      (config.architecture == Architecture::Gemma2 && config.layers == 46) ||
      (config.architecture == Architecture::Gemma3 && config.layers == 62);
  const int64_t divisor =
      isLargest ? std::max<int64_t>(config.hiddenSize / config.heads, 1)
                : config.headDim;
  return 1 / std::sqrt(static_cast<double>(divisor));
}

bool kf::isGgufArchitecture(std::string_view name) {
  return findFamily(name) != nullptr;
}

std::string_view kf::ggufNameOf(Architecture architecture) {
  const auto *found =
      std::ranges::find(families, architecture, &GgufFamily::architecture);
  return found == std::end(families) ? std::string_view() : found->name;
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
  // Programs hold these numbers; of other tensors they know the names alone.
  for (std::string_view name : {kGgufLongFactors, kGgufShortFactors})
    if (Result<TensorView> table = gguf.find(std::string(name)); table.ok())
      text.append(static_cast<const char *>(table->data), table->bytes);
  return text;
}
