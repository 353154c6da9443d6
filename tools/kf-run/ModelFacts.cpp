//===- ModelFacts.cpp - What can be told about a model --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelFacts.h"

#include "ModelArgument.h"
#include "ModelFlags.h"
#include "Report.h"

#include "runtime/core/Json.h"
#include "runtime/io/Safetensors.h"
#include "runtime/model/ChatConfig.h"
#include "runtime/model/ConfigReader.h"
#include "runtime/model/GgufConfig.h"
#include "runtime/model/LayerCaches.h"
#include "runtime/model/Step.h"
#include "runtime/model/StoredTensors.h"
#include "runtime/model/TiedEmbeddings.h"
#include "runtime/program/Executable.h"

#include <unistd.h>

using namespace kf;

namespace {

void addTensors(const WeightSource &weights, ModelFacts &facts) {
  for (const std::string &name : weights.names()) {
    TensorFacts tensor;
    tensor.name = name;
    Result<TensorView> view = weights.describe(name);
    if (view.ok()) {
      tensor.type = nameOf(view->type);
      tensor.shape = view->shape;
      tensor.bytes = view->bytes;
      // Its bytes were counted before.
      tensor.elements =
          static_cast<uint64_t>(*checkedElementCount(view->shape));
    } else {
      facts.tensorProblem = view.message();
    }
    facts.tensors.push_back(std::move(tensor));
  }
}

void setTokenizer(const Result<Tokenizer> &tokenizer, std::string kind,
                  ModelFacts &facts) {
  facts.tokenizer = std::move(kind);
  if (tokenizer.ok())
    facts.tokens = static_cast<uint64_t>(tokenizer->vocabSize());
  else
    facts.tokenizerProblem = tokenizer.message();
}

void setChat(const Result<ChatConfig> &chat, ModelFacts &facts) {
  facts.chatTemplate = chat.ok() && !chat->chatTemplate.empty();
  if (!chat.ok() && facts.tokenizerProblem.empty())
    facts.tokenizerProblem = chat.message();
}

Result<ModelFacts> collectEmbedded() {
  KF_ASSIGN_OR_RETURN(ModelFiles model, openModel({}, /*withTokenizer=*/true));
  ModelFacts facts;
  facts.name = model.name;
  facts.format = "safetensors";
  facts.architecture = nameOf(model.config.architecture);
  facts.config = model.config;
  setTokenizer(std::move(*model.tokenizer), "tokenizer.json", facts);
  facts.chatTemplate = !model.chat.chatTemplate.empty();
  addTensors(*model.weights, facts);
  return facts;
}

Result<ModelFacts> collectDummy(const std::string &name,
                                const DummyChoice &dummy) {
  KF_ASSIGN_OR_RETURN(ModelFiles model,
                      openModel({.path = name, .dummy = dummy}, false));
  ModelFacts facts;
  facts.name = model.name;
  facts.format = "configuration by name";
  facts.architecture = nameOf(model.config.architecture);
  facts.config = model.config;
  if (model.tokenizer)
    setTokenizer(std::move(*model.tokenizer), dummy.tokenizer, facts);
  facts.chatTemplate = !model.chat.chatTemplate.empty();
  addTensors(*model.weights, facts);
  return facts;
}

/// The architecture that `folder`'s config.json names, if it does.
std::string modelTypeOf(const std::string &folder) {
  Result<MappedFile> file = MappedFile::open(folder + "/config.json");
  if (!file.ok())
    return {};
  Result<JsonDocument> object = parseJson(file->text());
  if (!object.ok() || !(*object)->is_object())
    return {};
  Result<std::string> type = ConfigReader(**object).text("model_type", "");
  return type.ok() ? type.take() : std::string();
}

bool hasFile(const std::string &folder, const char *name) {
  return access((folder + "/" + name).c_str(), F_OK) == 0;
}

Result<ModelFacts> collectFolder(const std::string &path) {
  ModelFacts facts;
  facts.name = path;
  facts.format = "Hugging Face folder";
  facts.architecture = modelTypeOf(path);
  Result<ModelConfig> config = loadModelConfig(path);
  if (config.ok())
    facts.config = config.take();
  else
    facts.configProblem = config.message();

  Result<std::unique_ptr<WeightSource>> weights = openSafetensors(path);
  Status read = weights.status();
  if (weights.ok())
    addTensors(**weights, facts);
  if (weights.ok() && facts.config)
    read = adaptStoredTensors(*facts.config, *weights);
  if (read.ok() && weights.ok() && facts.config)
    read = settleTiedEmbeddings(*facts.config, **weights);
  if (!read.ok())
    facts.tensorProblem = read.message();
  if (facts.config)
    printModelWarnings(path, *facts.config);
  if (!facts.config && !weights.ok() && !hasFile(path, "config.json"))
    return Status::error("folder " + quotePath(path) +
                         " holds neither config.json nor safetensors files");

  for (const char *file : {"tokenizer.json", "tokenizer.model"})
    if (facts.tokenizer.empty() && hasFile(path, file))
      setTokenizer(Tokenizer::open(path), file, facts);
  setChat(loadChatConfig(path), facts);
  return facts;
}

/// "gpt2, llama-bpe"; empty without a tokenizer.
std::string ggufTokenizer(const Gguf &gguf) {
  if (!Tokenizer::isIn(gguf))
    return {};
  Result<std::string_view> model = gguf.getString("tokenizer.ggml.model", "");
  Result<std::string_view> pre = gguf.getString("tokenizer.ggml.pre", "");
  std::string kind(model.ok() ? *model : "");
  if (!kind.empty() && pre.ok() && !pre->empty())
    kind += ", " + std::string(*pre);
  return kind;
}

Result<ModelFacts> collectGguf(const std::string &path) {
  ModelFacts facts;
  facts.name = path;
  KF_ASSIGN_OR_RETURN(facts.gguf, Gguf::open(path));
  const Gguf &gguf = *facts.gguf;
  facts.format = "GGUF version " + std::to_string(gguf.version());
  Result<std::string_view> architecture =
      gguf.getString("general.architecture", "");
  if (architecture.ok())
    facts.architecture = *architecture;
  Result<ModelConfig> config = readGgufConfig(gguf);
  if (config.ok())
    facts.config = config.take();
  else
    facts.configProblem = config.message();
  if (facts.config)
    printModelWarnings(path, *facts.config);

  if (std::string kind = ggufTokenizer(gguf); !kind.empty())
    setTokenizer(Tokenizer::fromGguf(gguf), std::move(kind), facts);
  // Tokens are there even where nothing knows how text is cut into them.
  if (const GgufValue *tokens = gguf.lookUp("tokenizer.ggml.tokens"))
    facts.tokens = tokens->size();
  setChat(readChatConfig(gguf), facts);

  for (const GgufTensor &tensor : gguf.tensors()) {
    // Without a type, nothing bounds the number of elements.
    uint64_t elements = 0;
    if (tensor.type)
      elements = static_cast<uint64_t>(*checkedElementCount(tensor.shape));
    else
      facts.tensorProblem = "tensor " + std::string(tensor.name) +
                            " has the unknown " + tensor.typeName();
    facts.tensors.push_back({std::string(tensor.name), tensor.typeName(),
                             tensor.shape, elements, tensor.bytes});
  }
  return facts;
}

} // namespace

uint64_t ModelFacts::parameters() const {
  uint64_t sum = 0;
  for (const TensorFacts &tensor : tensors)
    sum += tensor.elements;
  return sum;
}

uint64_t ModelFacts::tensorBytes() const {
  uint64_t sum = 0;
  for (const TensorFacts &tensor : tensors)
    sum += tensor.bytes;
  return sum;
}

std::map<std::string, TypeFacts> ModelFacts::types() const {
  std::map<std::string, TypeFacts> result;
  for (const TensorFacts &tensor : tensors) {
    TypeFacts &type = result[tensor.type];
    ++type.tensors;
    type.elements += tensor.elements;
    type.bytes += tensor.bytes;
  }
  return result;
}

static std::vector<MemoryFacts> memoryOf(const ModelConfig &config) {
  std::vector<MemoryFacts> result;
  const LayerCaches halves(config, DataType::F16), floats(config);
  std::vector<int64_t> contexts;
  for (int64_t n = 512; n < config.maxPositions; n *= 4)
    contexts.push_back(n);
  contexts.push_back(config.maxPositions);
  for (int64_t context : contexts) {
    const int64_t pages = pagesOfSequence(config, context);
    Result<int64_t> half = halves.bytes(pages);
    Result<int64_t> full = floats.bytes(pages);
    if (half.ok() && full.ok()) // else no machine has so much
      result.push_back({context, static_cast<uint64_t>(*half),
                        static_cast<uint64_t>(*full)});
  }
  return result;
}

std::vector<MemoryFacts> ModelFacts::memory() const {
  return config ? memoryOf(*config) : std::vector<MemoryFacts>();
}

static Result<RankFacts> factsOf(ModelShard shard, int64_t ranks) {
  RankFacts facts;
  facts.ranks = ranks;
  for (const std::string &name : shard.weights->names()) {
    KF_ASSIGN_OR_RETURN(const TensorView view, shard.weights->describe(name));
    facts.weights += view.bytes;
  }
  const int64_t context = shard.config.maxPositions;
  const CacheWindows groups = cacheWindowsOf(shard.config);
  // Pages that every so many positions of a long text add.
  const int64_t added = groups.areAll ? 0 : 1;
  const int64_t positions = pagePositionsOf(shard.config);
  auto addCache = [&](DataType type, uint64_t &token, uint64_t &windows,
                      uint64_t &tokensOfGiB) -> Status {
    const LayerCaches caches(shard.config, type);
    KF_ASSIGN_OR_RETURN(const int64_t page, caches.bytes(1));
    if (added * page > 0) {
      token = static_cast<uint64_t>((page - 1) / positions + 1);
      tokensOfGiB =
          static_cast<uint64_t>((int64_t(1) << 30) / page * positions);
    }
    if (groups.tables == 0)
      return Status();
    KF_ASSIGN_OR_RETURN(
        const int64_t pages,
        caches.bytes(pagesOfSequence(shard.config, context) -
                     added * cachePagesOf(context, shard.config)));
    windows = static_cast<uint64_t>(pages);
    return Status();
  };
  KF_RETURN_IF_ERROR(addCache(DataType::F16, facts.tokenF16, facts.windowsF16,
                              facts.tokensOfGiBF16));
  KF_RETURN_IF_ERROR(addCache(DataType::F32, facts.tokenF32, facts.windowsF32,
                              facts.tokensOfGiBF32));
  facts.memory = memoryOf(shard.config);
  facts.collectives = collectivesOf(shard.config);
  facts.config = std::move(shard.config);
  return facts;
}

Result<std::vector<RankFacts>> kf::collectRankFacts(const std::string &path,
                                                    const DummyChoice &dummy,
                                                    int64_t ranks,
                                                    Parallelism parallelism) {
  KF_ASSIGN_OR_RETURN(ModelFiles model,
                      openModel({.path = path, .dummy = dummy}, false));
  const std::shared_ptr<const WeightSource> weights = std::move(model.weights);
  const bool isCut = parallelism == Parallelism::Pipeline;
  std::vector<RankFacts> all;
  for (int64_t rank = 0; rank < (isCut ? ranks : 1); ++rank) {
    Result<ModelShard> shard =
        partOfRank(model.config, weights, rank, ranks, parallelism);
    if (!shard.ok())
      return nameModel(model, shard.status());
    KF_ASSIGN_OR_RETURN(RankFacts facts, factsOf(shard.take(), ranks));
    if (isCut)
      facts.rank = rank;
    all.push_back(std::move(facts));
  }
  return all;
}

Result<ModelFacts> kf::collectFacts(const std::string &path,
                                    const DummyChoice &dummy) {
  if (dummy.used())
    return collectDummy(path, dummy);
  KF_ASSIGN_OR_RETURN(ModelKind kind, findModelKind(path));
  if (kind == ModelKind::Embedded)
    return collectEmbedded();
  if (kind == ModelKind::Gguf)
    return collectGguf(path);
  return collectFolder(path);
}
