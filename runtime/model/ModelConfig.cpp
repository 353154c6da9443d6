//===- ModelConfig.cpp - What config.json says about a model --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/ModelConfig.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/ConfigReader.h"
#include "runtime/model/ExpertFields.h"
#include "runtime/model/LatentFields.h"
#include "runtime/model/LayerFields.h"
#include "runtime/model/LinearFields.h"
#include "runtime/model/ModelFamily.h"
#include "runtime/model/QuantizationField.h"
#include "runtime/model/SamplingDefaults.h"
#include "runtime/model/StreamFields.h"
#include "runtime/model/UnsupportedFields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>

using namespace kf;
using nlohmann::json;

namespace {

/// GPT-2 has names of its own, and its class takes the others' too; these count
/// where a file has both (its attribute_map).
struct Alias {
  const char *Family::*own;
  const char *other;
};
constexpr Alias gpt2Aliases[] = {
    {&Family::hiddenSize, "hidden_size"},
    {&Family::layers, "num_hidden_layers"},
    {&Family::heads, "num_attention_heads"},
    {&Family::maxPositions, "max_position_embeddings"}};

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Checks that the file is of `className`, if it says of what.
Status checkClass(const ConfigReader &reader, const char *className) {
  const json *classes = reader.find("architectures");
  if (classes && (!classes->is_array() || classes->size() != 1 ||
                  !isText((*classes)[0], className)))
    return reader.unexpected("architectures",
                             "[\"" + std::string(className) + "\"]");
  return Status();
}

Result<const Family *> readFamily(const ConfigReader &reader) {
  KF_ASSIGN_OR_RETURN(std::string modelType, reader.text("model_type"));
  const Family *found = nullptr;
  std::string known;
  for (const Family &family : modelFamilies()) {
    if (modelType == family.modelType)
      found = &family;
    known += (known.empty() ? "" : ", ") + std::string(family.modelType);
    if (family.wrapperType)
      known += ", " + std::string(family.wrapperType);
  }
  if (!found)
    return Status::error("'model_type' " + inQuotes(modelType) +
                             " is not supported (supported: " + known + ")",
                         StatusCode::Unsupported);
  KF_RETURN_IF_ERROR(checkClass(reader, found->className));
  return found;
}

/// `family` with the names that the file uses. Adds a warning where it uses two
/// that disagree.
Family resolveAliases(const ConfigReader &reader, Family family,
                      std::vector<std::string> &warnings) {
  if (family.architecture != Architecture::Gpt2)
    return family;
  for (auto [own, other] : gpt2Aliases) {
    const json *value = reader.find(other), *hidden = reader.find(family.*own);
    if (!value)
      continue;
    if (hidden && *hidden != *value)
      warnings.push_back("config.json: " + reader.quoted(other) + " and " +
                         reader.quoted(family.*own) +
                         "; the first counts, as in transformers");
    family.*own = other;
  }
  return family;
}

Result<Activation> readActivation(const ConfigReader &reader,
                                  const Family &family) {
  static constexpr std::pair<const char *, Activation> names[] = {
      {"silu", Activation::Silu},
      {"swish", Activation::Silu},
      {"gelu", Activation::Gelu},
      {"gelu_new", Activation::GeluTanh},
      {"gelu_fast", Activation::GeluTanh},
      {"gelu_pytorch_tanh", Activation::GeluTanh},
      {"relu", Activation::Relu}};
  KF_ASSIGN_OR_RETURN(std::string name,
                      reader.text(family.activation, family.defaultActivation));
  std::string known;
  for (auto [spelling, kind] : names) {
    if (name == spelling)
      return kind;
    known += (known.empty() ? "" : ", ") + std::string(spelling);
  }
  return Status::error(
      "'" + std::string(family.activation) + "' is " + inQuotes(name) +
          ", which is not supported (supported: " + known + ")",
      StatusCode::Unsupported);
}

/// What GPT-2's configuration class says where nobody says anything: the end
/// token of its own vocabulary, which smaller ones do not have.
constexpr int64_t kGpt2DefaultId = 50256;

/// Adds the ids of `key`, an integer or a list of them, to `ids`.
Status readIds(const ConfigReader &reader, std::string_view key,
               const ModelConfig &config, std::vector<int64_t> &ids) {
  const json *value = reader.find(key);
  if (!value)
    return Status();
  std::span<const json> list(value, 1);
  if (value->is_array())
    list = value->get_ref<const json::array_t &>();
  for (const json &id : list) {
    bool fits = id.is_number_integer() && id >= 0 && id <= kMaxId;
    if (!fits)
      return reader.unexpected(key, "a token id or a list of them");
    int64_t number = id.get<int64_t>();
    const bool inside = number < config.vocabSize;
    if (!inside && config.architecture == Architecture::Gpt2 &&
        number == kGpt2DefaultId)
      continue;
    if (!inside)
      return Status::error("'" + std::string(key) + "' has the id " +
                           std::to_string(number) + ", but 'vocab_size' is " +
                           std::to_string(config.vocabSize));
    if (std::ranges::find(ids, number) == ids.end())
      ids.push_back(number);
  }
  return Status();
}

Status readTokens(const ConfigReader &reader, ModelConfig &config) {
  std::vector<int64_t> bos;
  KF_RETURN_IF_ERROR(readIds(reader, "bos_token_id", config, bos));
  if (!bos.empty() && !config.bosId)
    config.bosId = bos.front();
  return readIds(reader, "eos_token_id", config, config.eosIds);
}

/// What an absent field stands for; nothing where it has to be there.
std::optional<int64_t> unlessZero(int64_t value) {
  return value ? std::optional(value) : std::nullopt;
}

Status readSizes(const ConfigReader &reader, const Family &family,
                 ModelConfig &config) {
  KF_ASSIGN_OR_RETURN(config.hiddenSize,
                      reader.integer(family.hiddenSize, 1, kMaxSize,
                                     unlessZero(family.defaultHiddenSize)));
  KF_ASSIGN_OR_RETURN(config.layers,
                      reader.integer(family.layers, 1, kMaxLayers,
                                     unlessZero(family.defaultLayers)));
  KF_ASSIGN_OR_RETURN(config.heads,
                      reader.integer(family.heads, 1, kMaxSize,
                                     unlessZero(family.defaultHeads)));
  KF_ASSIGN_OR_RETURN(config.vocabSize,
                      reader.integer("vocab_size", 1, kMaxSize,
                                     unlessZero(family.defaultVocabSize)));
  KF_ASSIGN_OR_RETURN(config.maxPositions,
                      reader.integer(family.maxPositions, 1, kMaxPositions,
                                     family.defaultMaxPositions));
  return Status();
}

Status notMultiple(const char *name, int64_t value, const char *of,
                   int64_t divisor) {
  return Status::error("'" + std::string(name) + "' " + std::to_string(value) +
                       " is not a multiple of '" + of + "' " +
                       std::to_string(divisor));
}

/// The size of heads of which a file has only the number.
Result<int64_t> divideHidden(const ModelConfig &config, const Family &family) {
  const int64_t dim = config.hiddenSize / config.heads;
  if (dim > kMaxHeadDim)
    return Status::error("'" + std::string(family.hiddenSize) + "' " +
                         std::to_string(config.hiddenSize) + " with '" +
                         family.heads + "' " + std::to_string(config.heads) +
                         " makes heads of " + std::to_string(dim) +
                         " elements; at most " + std::to_string(kMaxHeadDim) +
                         " are possible");
  return dim;
}

/// GPT-2 states no more than its hidden size and heads.
Status readGpt2Heads(const ConfigReader &reader, const Family &family,
                     ModelConfig &config) {
  if (config.hiddenSize % config.heads != 0)
    return notMultiple(family.hiddenSize, config.hiddenSize, family.heads,
                       config.heads);
  config.kvHeads = config.heads;
  KF_ASSIGN_OR_RETURN(config.headDim, divideHidden(config, family));
  KF_ASSIGN_OR_RETURN(
      config.intermediateSize,
      reader.integer("n_inner", 1, kMaxSize, 4 * config.hiddenSize));
  return Status();
}

Status readHeads(const ConfigReader &reader, const Family &family,
                 ModelConfig &config) {
  if (family.architecture == Architecture::Gpt2)
    return readGpt2Heads(reader, family, config);
  if (family.latent.defaultWidth) {
    KF_RETURN_IF_ERROR(readLatent(reader, family, config));
    KF_ASSIGN_OR_RETURN(
        config.intermediateSize,
        reader.integer(family.intermediateSize, 1, kMaxSize,
                       unlessZero(family.defaultIntermediateSize)));
    return Status();
  }
  // Where the class's default is not the number of heads, the field has to be
  // there.
  std::optional<int64_t> kvHeads = unlessZero(family.defaultKvHeads), headDim;
  if (!family.needsKvHeads)
    kvHeads = config.heads;
  KF_ASSIGN_OR_RETURN(config.kvHeads, reader.integer("num_key_value_heads", 1,
                                                     kMaxSize, kvHeads));
  if (config.heads % config.kvHeads != 0)
    return notMultiple(family.heads, config.heads, "num_key_value_heads",
                       config.kvHeads);
  if (family.defaultHeadDim) {
    headDim = family.defaultHeadDim;
  } else if (!reader.contains("head_dim") &&
             config.hiddenSize % config.heads == 0) {
    KF_ASSIGN_OR_RETURN(headDim, divideHidden(config, family));
  }
  KF_ASSIGN_OR_RETURN(config.headDim,
                      reader.integer("head_dim", 1, kMaxHeadDim, headDim));
  if (config.headDim % 2 != 0)
    return Status::error("a head dimension of " +
                         std::to_string(config.headDim) +
                         " is odd; rotary embedding needs an even one");
  if (config.heads * config.headDim > kMaxSize)
    return Status::error("'num_attention_heads' times 'head_dim' is " +
                         std::to_string(config.heads * config.headDim) +
                         "; at most " + std::to_string(kMaxSize) +
                         " is possible");
  // Of a list, readLayerSizes() takes what each layer has.
  const char *widthField = family.intermediateSize;
  const json *width = reader.find(widthField);
  if (family.sizes.listsWidths && width && width->is_array() &&
      !width->empty()) {
    const json first = {{widthField, width->front()}};
    KF_ASSIGN_OR_RETURN(config.intermediateSize,
                        ConfigReader(first).integer(widthField, 1, kMaxSize));
    return Status();
  }
  KF_ASSIGN_OR_RETURN(
      config.intermediateSize,
      reader.integer(widthField, 1, kMaxSize,
                     unlessZero(family.defaultIntermediateSize)));
  return Status();
}

Result<bool> readBias(const ConfigReader &reader, const BiasField &field) {
  if (!field.name)
    return field.otherwise;
  return reader.boolean(field.name, field.otherwise);
}

/// What a field's value makes a factor of.
enum class ScaleKind { Factor, Divisor, RootDivisor };

/// Sets `scale` to what the field's value makes, if the family has the field.
Status readScale(const ConfigReader &reader, const char *name, double otherwise,
                 double &scale, ScaleKind kind = ScaleKind::Factor) {
  if (!name)
    return Status();
  KF_ASSIGN_OR_RETURN(const double value, reader.positive(name, otherwise));
  scale = kind == ScaleKind::Factor    ? value
          : kind == ScaleKind::Divisor ? 1 / value
                                       : 1 / std::sqrt(value);
  // Kernels have it as f32.
  if (std::isnormal(static_cast<float>(scale)))
    return Status();
  return Status::error(reader.quoted(name) + ", which makes a factor of " +
                       spellNumber(scale) +
                       "; one that is a normal f32 is expected");
}

/// The cap of the field `name`, which is null where there is none.
Result<double> readCap(const ConfigReader &reader, const char *name,
                       double otherwise) {
  if (!name || reader.isNull(name))
    return 0;
  if (!reader.find(name))
    return otherwise;
  return reader.number(name, kMinCap, kMaxCap);
}

Status readScales(const ConfigReader &reader, const Family &family,
                  ModelConfig &config) {
  bool scaled = true;
  if (family.architecture == Architecture::Gpt2) {
    KF_ASSIGN_OR_RETURN(scaled, reader.boolean("scale_attn_weights", true));
  }
  scaled &= !family.unscaledAttention;
  config.attentionScale =
      scaled ? 1 / std::sqrt(static_cast<double>(config.headDim)) : 1;
  KF_RETURN_IF_ERROR(
      readScale(reader, family.attentionScale, 1, config.attentionScale));
  KF_RETURN_IF_ERROR(readScale(reader, family.scoreDivisor,
                               family.defaultScoreDivisor,
                               config.attentionScale, ScaleKind::RootDivisor));
  if (family.rootEmbeddingScale)
    config.embeddingScale = std::sqrt(static_cast<double>(config.hiddenSize));
  KF_RETURN_IF_ERROR(
      readScale(reader, family.embeddingScale, 1, config.embeddingScale));
  KF_RETURN_IF_ERROR(
      readScale(reader, family.residualScale, 1, config.residualScale));
  KF_RETURN_IF_ERROR(readScale(reader, family.logitScale,
                               family.defaultLogitScale, config.logitScale));
  KF_RETURN_IF_ERROR(readScale(reader, family.logitDivisor, 1,
                               config.logitScale, ScaleKind::Divisor));
  KF_ASSIGN_OR_RETURN(config.attentionCap, readCap(reader, family.attentionCap,
                                                   family.defaultAttentionCap));
  KF_ASSIGN_OR_RETURN(config.logitCap,
                      readCap(reader, family.logitCap, family.defaultLogitCap));
  return Status();
}

Status readBlocks(const ConfigReader &reader, const Family &family,
                  ModelConfig &config) {
  config.norm = family.norm;
  config.normBias = family.normBias;
  config.zeroCenteredNorms = family.zeroCenteredNorms;
  config.normPlaces = family.normPlaces;
  config.qkNorm = family.qkNorm;
  if (family.qkNormField) {
    KF_ASSIGN_OR_RETURN(const bool used,
                        reader.boolean(family.qkNormField, true));
    if (!used)
      config.qkNorm = QkNorm::None;
  }
  config.attentionSinks = family.attentionSinks;
  config.valueNorm = family.valueNorm;
  config.layerScales = family.layerScales;
  config.gatedAttention = family.gatedAttention;
  config.gatedMlp = family.gatedMlp;
  config.parallelBlocks = family.parallelBlocks;
  if (family.parallelField) {
    KF_ASSIGN_OR_RETURN(config.parallelBlocks,
                        reader.boolean(family.parallelField, false));
  }
  KF_ASSIGN_OR_RETURN(config.normEps,
                      reader.positive(family.eps, family.defaultEps,
                                      /*zero=*/true));
  KF_ASSIGN_OR_RETURN(config.activation, readActivation(reader, family));
  KF_ASSIGN_OR_RETURN(config.qkvBias, readBias(reader, family.qkvBias));
  KF_ASSIGN_OR_RETURN(config.attentionOutputBias,
                      readBias(reader, family.outputBias));
  KF_ASSIGN_OR_RETURN(config.mlpBias, readBias(reader, family.mlpBias));
  return Status();
}

Status readTokenInputs(const ConfigReader &reader, const Family &family,
                       ModelConfig &config) {
  if (!family.tokenInputWidth)
    return Status();
  KF_ASSIGN_OR_RETURN(config.tokenInputWidth,
                      reader.integer(family.tokenInputWidth, 0, kMaxSize,
                                     family.defaultTokenInputWidth));
  if (config.tokenInputWidth == 0)
    return Status();
  if (config.layers * config.tokenInputWidth > kMaxSize)
    return Status::error(
        reader.quoted(family.tokenInputWidth) + ", which times '" +
        family.layers + "' " + std::to_string(config.layers) + " is " +
        std::to_string(config.layers * config.tokenInputWidth) + "; at most " +
        std::to_string(kMaxSize) + " is possible");
  KF_ASSIGN_OR_RETURN(config.tokenInputVocab,
                      reader.integer(family.tokenInputVocab, 1, kMaxSize,
                                     family.defaultTokenInputVocab));
  return Status();
}

/// The configuration of the language model in `object`, which is one that reads
/// images, too: its text_config, and of what stands beside it all that the
/// language model needs. Null where `object` is no such model's.
Result<json> unwrapText(const json &object) {
  const ConfigReader reader(object);
  const json *type = reader.find("model_type");
  const auto families = modelFamilies();
  const auto family = std::ranges::find_if(families, [&](const Family &family) {
    return type && family.wrapperType && isText(*type, family.wrapperType);
  });
  if (family == families.end())
    return json();
  KF_RETURN_IF_ERROR(checkClass(reader, family->wrapperClass));
  const json *inside = reader.find("text_config");
  if (!inside)
    return Status::error("'text_config' is missing");
  if (!inside->is_object())
    return reader.unexpected("text_config", "an object");
  json text = *inside;
  if (!text.contains("model_type"))
    text["model_type"] = family->modelType;
  if (!isText(text["model_type"], family->modelType))
    return ConfigReader(text, "text_config.")
        .unexpected("model_type", '"' + std::string(family->modelType) + '"');
  for (const char *name :
       {"bos_token_id", "compression_config", "dtype", "eos_token_id",
        "quantization_config", "tie_word_embeddings", "torch_dtype"})
    if (const json *value = reader.find(name); value && !text.contains(name))
      text[name] = *value;
  return text;
}

Result<ModelConfig> readModel(const json &outside) {
  if (!outside.is_object())
    return Status::error("a JSON object is expected");
  KF_ASSIGN_OR_RETURN(const json text, unwrapText(outside));
  const json &object = text.is_null() ? outside : text;
  ConfigReader reader(object, text.is_null() ? "" : "text_config.");
  KF_ASSIGN_OR_RETURN(const Family *known, readFamily(reader));
  KF_RETURN_IF_ERROR(checkUnsupportedFields(reader, *known));

  ModelConfig config;
  KF_ASSIGN_OR_RETURN(config.hasCacheScales,
                      readCacheScales(reader, config.warnings));
  const Family family = resolveAliases(reader, *known, config.warnings);
  config.architecture = family.architecture;
  KF_RETURN_IF_ERROR(readSizes(reader, family, config));
  KF_RETURN_IF_ERROR(readHeads(reader, family, config));
  KF_RETURN_IF_ERROR(readBlocks(reader, family, config));
  KF_RETURN_IF_ERROR(readScales(reader, family, config));
  KF_RETURN_IF_ERROR(readLayers(reader, family, config));
  KF_RETURN_IF_ERROR(readLinearAttention(reader, family, config));
  KF_RETURN_IF_ERROR(readExperts(reader, family, config));
  KF_RETURN_IF_ERROR(readTokenInputs(reader, family, config));
  KF_RETURN_IF_ERROR(readStreams(reader, family, config));
  if (family.guessingLayers) {
    KF_ASSIGN_OR_RETURN(
        config.guessingLayers,
        reader.integer(family.guessingLayers, 0, kMaxLayers, 0));
  }
  KF_ASSIGN_OR_RETURN(
      config.tiedEmbeddings,
      reader.boolean("tie_word_embeddings", family.defaultTied));
  KF_RETURN_IF_ERROR(readTokens(reader, config));

  KF_ASSIGN_OR_RETURN(std::string dtype, reader.text("torch_dtype", ""));
  KF_ASSIGN_OR_RETURN(dtype, reader.text("dtype", dtype));
  if (dtype == "float32")
    config.dtype = DataType::F32;
  else if (dtype == "float16")
    config.dtype = DataType::F16;
  else if (dtype == "bfloat16")
    config.dtype = DataType::BF16;
  return config;
}

Status readGenerationConfig(std::string_view text, ModelConfig &config) {
  KF_ASSIGN_OR_RETURN(JsonDocument object, parseJson(text));
  if (!object->is_object())
    return Status::error("a JSON object is expected");
  const ConfigReader reader(*object);
  KF_RETURN_IF_ERROR(readTokens(reader, config));
  std::vector<std::string> warnings;
  config.sampling = readSamplingDefaults(reader, warnings);
  for (const std::string &line : warnings)
    config.warnings.push_back("generation_config.json: " + line);
  return Status();
}

/// Whether config.json, or what it has of a language model, has a
/// `quantization_config`.
bool saysHowItIsQuantized(const json &config) {
  auto says = [](const json &object) {
    const auto found = object.find("quantization_config");
    return found != object.end() && !found->is_null();
  };
  const auto text = config.find("text_config");
  return says(config) ||
         (text != config.end() && text->is_object() && says(*text));
}

Status readQuantConfig(std::string_view text, ModelConfig &config) {
  KF_ASSIGN_OR_RETURN(const JsonDocument file, parseJson(text));
  KF_ASSIGN_OR_RETURN(config.hasCacheScales,
                      readModelOptFile(*file, config.warnings));
  return Status();
}

/// Of config.json, of generation_config.json unless it is empty, and of
/// hf_quant_config.json, which does not count beside a `quantization_config`.
Result<ModelConfig> readFiles(std::string_view config,
                              std::string_view generationConfig,
                              std::optional<std::string_view> quantConfig) {
  Result<JsonDocument> object = parseJson(config);
  if (!object.ok())
    return object.status().in("config.json");
  Result<ModelConfig> result = readModel(**object);
  if (!result.ok())
    return result.status().in("config.json");
  if (!generationConfig.empty())
    KF_RETURN_IF_ERROR(readGenerationConfig(generationConfig, *result)
                           .in("generation_config.json"));
  if (quantConfig && !saysHowItIsQuantized(**object))
    KF_RETURN_IF_ERROR(
        readQuantConfig(*quantConfig, *result).in("hf_quant_config.json"));
  return result;
}

} // namespace

std::string_view kf::nameOf(Architecture architecture) {
  return familyOf(architecture).modelType;
}

const RopeConfig *ModelConfig::commonRope() const {
  if (layerConfigs.empty() || !layerConfigs.front().rope)
    return nullptr;
  const std::optional<RopeConfig> &first = layerConfigs.front().rope;
  const bool isCommon =
      std::ranges::all_of(layerConfigs, [&](const LayerConfig &layer) {
        return layer.rope == first;
      });
  return isCommon ? &*first : nullptr;
}

std::vector<int64_t> ModelConfig::windows() const {
  std::vector<int64_t> windows;
  for (const LayerConfig &layer : layerConfigs)
    windows.push_back(layer.window);
  return windows;
}

LayerConfig ModelConfig::layer(int64_t number) const {
  const auto index = static_cast<size_t>(number);
  LayerConfig layer =
      index < layerConfigs.size() ? layerConfigs[index] : LayerConfig();
  for (auto [own, size] :
       {std::pair(&layer.headDim, headDim), std::pair(&layer.kvHeads, kvHeads),
        std::pair(&layer.intermediateSize, intermediateSize)})
    if (*own == 0)
      *own = size;
  return layer;
}

bool ModelConfig::hasExperts(int64_t layer) const {
  const auto index = static_cast<size_t>(layer);
  return index < layerConfigs.size() && layerConfigs[index].hasExperts;
}

Result<ModelConfig>
kf::parseModelConfig(std::string_view config,
                     std::string_view generationConfig) try {
  return readFiles(config, generationConfig, std::nullopt);
} catch (...) {
  return statusOfException();
}

Result<ModelConfig>
kf::parseModelConfig(std::string_view config, std::string_view generationConfig,
                     std::optional<std::string_view> quantConfig) try {
  return readFiles(config, generationConfig, quantConfig);
} catch (...) {
  return statusOfException();
}

Result<ModelConfig> kf::loadModelConfig(const std::string &folder) try {
  const std::filesystem::path base(folder);
  KF_ASSIGN_OR_RETURN(MappedFile file,
                      MappedFile::open((base / "config.json").string()));
  std::array<std::optional<MappedFile>, 2> others;
  std::array<std::optional<std::string_view>, 2> texts;
  for (size_t i = 0; i < others.size(); ++i) {
    const std::string path =
        (base / (i == 0 ? "generation_config.json" : "hf_quant_config.json"))
            .string();
    if (std::error_code ignored; !std::filesystem::exists(path, ignored))
      continue;
    KF_ASSIGN_OR_RETURN(others[i], MappedFile::open(path));
    texts[i] = others[i]->text();
  }
  Result<ModelConfig> result =
      readFiles(file.text(), texts[0].value_or(""), texts[1]);
  // The line begins with the file's name.
  if (!result.ok())
    return Status::error((base / result.message()).string(),
                         result.status().code());
  return result;
} catch (...) {
  return statusOfException();
}
