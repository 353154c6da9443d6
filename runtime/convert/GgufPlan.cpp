//===- GgufPlan.cpp - What a GGUF file is going to hold -------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/GgufPlan.h"

#include "runtime/convert/ModelMetadata.h"
#include "runtime/convert/ReaderProblems.h"
#include "runtime/convert/TensorTypes.h"
#include "runtime/convert/TokenizerMetadata.h"
#include "runtime/core/Exceptions.h"
#include "runtime/model/ConfigLimits.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/GgufExperts.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace kf;

namespace {

constexpr std::string_view kFileTypeKey = "general.file_type";
constexpr std::string_view kQuantizationKey = "general.quantization_version";
/// The version of ggml's block formats; the only one that there is now.
constexpr uint32_t kQuantizationVersion = 2;

/// Adds the tensors with the types that `rule` gives them, and what goes into
/// the metadata and the notes about types.
void addTensors(std::vector<ConvertedTensor> tensors, const TypeRule &rule,
                GgufPlan &plan) {
  // By wanted type, type and length of rows: how many, and one of them.
  struct Fallback {
    int64_t count = 0;
    std::string name;
  };
  std::map<std::tuple<DataType, DataType, int64_t>, Fallback> fallbacks;
  for (ConvertedTensor &tensor : tensors) {
    const ChosenType chosen = chooseType(rule, tensor.name, tensor.shape);
    if (chosen.type != chosen.wanted) {
      Fallback &fallback =
          fallbacks[{chosen.wanted, chosen.type, tensor.shape.back()}];
      if (fallback.count++ == 0)
        fallback.name = tensor.name;
    }
    plan.tensors.push_back({std::move(tensor), chosen.type});
  }
  plan.metadata.addU32(kQuantizationKey, kQuantizationVersion);
  plan.metadata.addU32(kFileTypeKey, fileTypeNumber(rule.type));
  for (const auto &[key, fallback] : fallbacks) {
    const auto &[wanted, type, columns] = key;
    plan.notes.push_back(
        std::to_string(fallback.count) +
        (fallback.count == 1 ? " tensor is " : " tensors are ") +
        std::string(nameOf(type)) + " instead of " +
        std::string(nameOf(wanted)) + ": rows of " + std::to_string(columns) +
        " elements do not end with a block of " +
        std::to_string(elementsPerBlock(wanted)) + " (" +
        (fallback.count == 1 ? "" : "such as ") + fallback.name + ")");
  }
}

/// The number of layers that the tensors' names imply.
int64_t countLayers(const Gguf &source) {
  int64_t layers = 0;
  constexpr std::string_view prefix = "blk.";
  constexpr int64_t most = 1 << 20; // what no model has
  for (const GgufTensor &tensor : source.tensors()) {
    if (!tensor.name.starts_with(prefix))
      continue;
    int64_t layer = 0;
    for (char c : tensor.name.substr(prefix.size())) {
      if (c < '0' || c > '9')
        break;
      layer = std::min(layer * 10 + (c - '0'), most);
    }
    layers = std::max(layers, layer + 1);
  }
  return layers;
}

/// The number that metadata has behind the architecture's name; 0 without it.
uint64_t numberOf(const Gguf &source, std::string_view key) {
  const GgufValue *name = source.lookUp("general.architecture");
  const std::string architecture(name ? name->toString().value_or("")
                                      : std::string_view());
  const GgufValue *value = source.lookUp(architecture + "." + std::string(key));
  return value ? value->toUnsigned().value_or(0) : 0;
}

/// Query heads that share a key head; 1 where the file does not say one number.
int64_t countQueriesPerKey(const Gguf &source) {
  const uint64_t queries = numberOf(source, "attention.head_count");
  const uint64_t keys = numberOf(source, "attention.head_count_kv");
  return keys > 0 && queries >= keys
             ? static_cast<int64_t>(std::min<uint64_t>(queries / keys, 1024))
             : 1;
}

/// How embeddings are made; GGUF has no word for those that keep their length.
void addPooling(const PoolingConfig &pooling, const ModelConfig &config,
                GgufPlan &plan) {
  if (pooling.pooling)
    plan.metadata.addU32(std::string(ggufNameOf(ggufArchitecture(config))) +
                             ".pooling_type",
                         static_cast<uint32_t>(*pooling.pooling));
  if (pooling.pooling && pooling.normalizes == false)
    plan.notes.push_back("the file cannot say that embeddings are not "
                         "normalized: --normalize none does");
  if (!pooling.unsupported.ok())
    plan.notes.push_back("the file does not say how embeddings are made: " +
                         pooling.unsupported.message());
}

/// A warning where layers that attend to another one's keys have none.
void addMissingKeys(const ModelConfig &config,
                    const std::vector<ConvertedTensor> &tensors,
                    GgufPlan &plan) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".attn_k.weight";
    if (std::ranges::find(tensors, name, &ConvertedTensor::name) !=
        tensors.end())
      continue;
    plan.warnings.push_back("llama.cpp will not load the file: it expects " +
                            name + ", which nothing reads");
    return;
  }
}

/// Whether a key says which of a model's files one is.
bool isOfSplit(std::string_view key) {
  return key == kGgufSplitNumber || key == kGgufSplitCount ||
         key == kGgufSplitTensors;
}

} // namespace

Result<GgufPlan> kf::planFromModel(const ModelConfig &config,
                                   const WeightSource &weights,
                                   const TokenizerTexts &tokenizer,
                                   const std::string &name, DataType type,
                                   const PoolingConfig &pooling) try {
  GgufPlan plan;
  // First of all, so that the sizes that follow are those of the weights.
  KF_ASSIGN_OR_RETURN(std::vector<ConvertedTensor> tensors,
                      listConvertedTensors(config, weights));
  KF_RETURN_IF_ERROR(addModelMetadata(config, name, plan.metadata));
  addPooling(pooling, config, plan);
  plan.warnings = listReaderProblems(config);
  if (config.architecture == Architecture::Gemma3n)
    addMissingKeys(config, tensors, plan);
  if (isBeyondQwen2(config))
    plan.notes.push_back(
        "the file's architecture is llama, since qwen2 has " +
        std::string(config.heads * config.headDim != config.hiddenSize
                        ? "no size of heads of its own"
                        : "no RoPE scaling of Llama 3's kind"));
  if (!tokenizer.json.empty()) {
    KF_RETURN_IF_ERROR(
        addTokenizerMetadata(tokenizer.json, config, plan.metadata, plan.notes)
            .in("tokenizer.json"));
  } else if (!tokenizer.sentencePiece.empty()) {
    KF_RETURN_IF_ERROR(addSentencePieceMetadata(tokenizer.sentencePiece, config,
                                                plan.metadata, plan.notes)
                           .in("tokenizer.model"));
  } else {
    // Readers of GGUF expect the key.
    plan.metadata.addText("tokenizer.ggml.model", "none");
    addSpecialIds(config, {}, plan.metadata, plan.notes);
    plan.notes.push_back("the model has no tokenizer, nor will the file");
  }
  if (!tokenizer.chatTemplate.empty())
    plan.metadata.addText("tokenizer.chat_template", tokenizer.chatTemplate);
  addTensors(std::move(tensors),
             {.type = type,
              .layers = config.layers,
              .queriesPerKey = config.heads / config.kvHeads,
              .tied = config.tiedEmbeddings,
              .experts = config.experts.count},
             plan);
  return plan;
} catch (...) {
  return statusOfException();
}

Result<GgufPlan> kf::planFromGguf(const Gguf &source, DataType type) try {
  if (source.tensors().empty())
    return Status::error(source.source() + " has no tensors");
  GgufPlan plan;
  for (const GgufEntry &entry : source.metadata())
    if (entry.key != kFileTypeKey && entry.key != kQuantizationKey &&
        entry.key != kGgufAlignmentKey && !isOfSplit(entry.key))
      plan.metadata.addCopy(entry);
  std::vector<ConvertedTensor> tensors;
  for (const GgufTensor &tensor : source.tensors()) {
    const std::string name(tensor.name);
    KF_ASSIGN_OR_RETURN(TensorView view, source.find(name));
    ConvertedTensor converted;
    converted.name = converted.source = name;
    converted.shape = view.shape;
    tensors.push_back(std::move(converted));
  }
  addTensors(std::move(tensors),
             {.type = type,
              .layers = countLayers(source),
              .queriesPerKey = countQueriesPerKey(source),
              .tied = !source.lookUpTensor("output.weight"),
              .experts = static_cast<int64_t>(std::min<uint64_t>(
                  numberOf(source, kGgufExpertCount), kMaxExperts))},
             plan);
  // A tensor that keeps its type is copied.
  int64_t again = 0;
  for (const GgufPlan::Tensor &planned : plan.tensors) {
    const GgufTensor *tensor = source.lookUpTensor(planned.tensor.name);
    const DataType from = *tensor->type->type;
    again += isBlock(from) && from != planned.type;
  }
  if (again > 0)
    plan.notes.push_back(std::to_string(again) +
                         " tensors of the source are quantized already: "
                         "quantize the original for the best result");
  return plan;
} catch (...) {
  return statusOfException();
}
